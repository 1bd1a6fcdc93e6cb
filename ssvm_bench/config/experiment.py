"""Experiment files, ``experiments/NAME.yaml``: grids of runs and the figures made of them.

.. code-block:: yaml

    # one-line description, shown by ``ssvm-bench list``
    title: what the figures are headed with
    grid:                          # option of `ssvm-bench run` → its value, or a list of values
      seed: range(3)               # a text stands as it would on the command line
      dataset: [ocr, weizmann]
      solver: [bcfw, mpbcfw]
    each:                          # dataset → options of the runs on it
      ocr: {budget.max_seconds: 30}
    instead: {weizmann: horseseg}  # dataset → the one to take where its raw data are at hand
    figures:                       # kind of figure → its x axes
      suboptimality: [iteration, time]
      targets: [time, calls]
      claims: [mpbcfw]             # the papers whose claims are judged
    gaps: [0.1, 0.01, 0.001]       # relative gaps of targets and of scaling, errors of rates

``grid`` may be a list of grids: the runs are those of each in turn, without repeats. ``each``,
``instead`` and overrides are for all of them; ``dataset=…`` and ``solver=…`` choose among what the
grids list. With several grids, options that only some solvers have can vary:

.. code-block:: yaml

    grid:
      - {dataset: [ocr, usps], solver: ssg}
      - {dataset: [ocr, usps], solver: mpbcfw, solver.T: [5, 10], path: "[100/n,10/n]"}

The runs along a ``path`` are runs of the experiment, too, made together by one process.

In place of ``grid``, ``each`` and ``instead``, ``like: NAME`` takes those of another experiment:
one set of runs, several sets of figures. ``like: [NAME, NAME]`` takes the runs of several.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.config import catalog, grid

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig

RUNS = ("grid", "each", "instead")
"""Keys that say which runs there are."""

KEYS = ("title", *RUNS, "like", "figures", "gaps")

GAPS = (0.1, 0.05, 0.02, 0.01)
"""Relative gaps of targets unless the file says others."""

MOST_GAPS = 20
"""Most gaps that a figure distinguishes."""

LONGEST_TITLE = 200
"""Most characters of the figures' title."""


class Choices(NamedTuple):
    """What can be listed for a kind of figure, and what one and several of them are called.

    ``gaps``: whether it shows the experiment's gaps.
    """

    names: tuple[str, ...]
    one: str = "x axis"
    several: str = "x axes"
    gaps: bool = False


class Grid(NamedTuple):
    """A grid: the experiment that it is from, overrides of a sweep, and of runs on one dataset."""

    origin: str
    words: tuple[str, ...]
    each: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Experiment:
    """One experiment file.

    Attributes
    ----------
    name : str
        The file's name without suffix; figures go to ``<results_dir>/figures/<name>/``.
    runs : str
        Name of the experiment whose runs it shows: its own, or the one that it is like; its own,
        too, if it is like several.
    title : str
        Title of the figures.
    grids : tuple of Grid
        What its runs are.
    figures : dict
        Kind of figure → its x axes, or what else is chosen of it.
    gaps : tuple of float
        Relative gaps of the figures ``targets`` and ``scaling``, errors of ``rates``, falling.
    """

    name: str
    runs: str
    title: str
    grids: tuple[Grid, ...]
    figures: Mapping[str, tuple[str, ...]]
    gaps: tuple[float, ...]

    @property
    def origins(self) -> tuple[str, ...]:
        """The experiments that its runs are of; traces are kept in ``<results_dir>/traces/``."""
        return tuple(dict.fromkeys(of.origin for of in self.grids))

    def configs(
        self, overrides: Sequence[str] = (), config_dirs: Sequence[Path] = ()
    ) -> list[RunConfig]:
        """Return the runs to make; the arguments are those of `expanded`."""
        return self.expanded(overrides, config_dirs).configs

    def expanded(
        self, overrides: Sequence[str] = (), config_dirs: Sequence[Path] = ()
    ) -> ExpandedGrid:
        """Return the runs of each grid.

        Parameters
        ----------
        overrides : sequence of str
            They replace what the file says of the same option, in every grid. Where the grids list
            all datasets that an override names, or all solvers, it chooses among them: each grid
            keeps its own, and one that has none is left out.
        config_dirs : sequence of Path
            Further folders of config files.

        Raises
        ------
        ConfigError
            If an override, or a combination of them, is wrong.
        """
        from ssvm_bench.config.compose import Composer
        from ssvm_bench.config.overrides import check_count

        def option(text: str) -> str:
            return text.partition("=")[0].lstrip("+")

        composer, runs = Composer(config_dirs), []
        listed = [composer.choices(of.words) for of in self.grids]
        wanted = {
            key: names
            for key, names in composer.choices(overrides).items()
            if {name for own in listed for name in own.get(key, ())}.issuperset(names)
        }
        given = set(map(option, overrides))
        for of, own in zip(self.grids, listed, strict=True):
            kept = {key: [n for n in wanted[key] if n in own.get(key, [n])] for key in wanted}
            if not all(kept.values()):
                continue
            chosen = [f"{key}={','.join(names)}" for key, names in kept.items()]
            each = {
                dataset: [text for text in options if option(text) not in given]
                for dataset, options in of.each.items()
            }
            runs.append((of.origin, composer.runs([*of.words, *overrides, *chosen], True, each)))
            check_count(sum(len(configs) for _, configs in runs))
        if not runs:
            both = " with ".join(f"{key}={','.join(names)}" for key, names in wanted.items())
            raise ConfigError(f"No grid of {self.name} has {both}.")
        return ExpandedGrid(tuple(runs))


class ExpandedGrid(NamedTuple):
    """The runs of an experiment, under some overrides.

    Attributes
    ----------
    of_grids : tuple of (str, list of RunConfig)
        Of each grid, the experiment that its runs are of, and these.
    """

    of_grids: tuple[tuple[str, list[RunConfig]], ...]

    @property
    def configs(self) -> list[RunConfig]:
        """The runs to make, in the order of the grids.

        Each is made once, and none that another one makes along its path.
        """
        runs = dict.fromkeys(config for _, configs in self.of_grids for config in configs)
        on_the_way = {stage for config in runs for stage in config.path_steps()[:-1]}
        return [config for config in runs if config not in on_the_way]

    @property
    def origin_of(self) -> dict[Path, str]:
        """Each run's own folder, whatever its source → the first experiment that has it."""
        found: dict[Path, str] = {}
        for origin, configs in self.of_grids:
            for config in along_paths(configs):
                for source in config.sources():
                    found.setdefault(config.with_source(source).own_folder, origin)
        return found


def along_paths(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return all runs that leave a folder, those along a path before its end, without repeats."""
    return list(dict.fromkeys(stage for config in configs for stage in config.path_steps()))


def dependency_levels(configs: Sequence[RunConfig]) -> tuple[list[int], list[int]]:
    """Return the numbers of the runs to make first, and of those that are then in one of them.

    Such runs differ in their budget alone.
    """
    alike: dict[RunConfig, list[RunConfig]] = {}
    key = [replace(config, budget=configs[0].budget) for config in configs]
    for of, config in zip(key, configs, strict=True):
        alike.setdefault(of, []).append(config)
    found: tuple[list[int], list[int]] = [], []
    for number, (of, config) in enumerate(zip(key, configs, strict=True)):
        others = (other.budget for other in alike[of] if other != config)
        found[any(other.contains(config.budget) for other in others)].append(number)
    return found


def load(
    name: str,
    config_dirs: Sequence[Path],
    kinds: Mapping[str, Choices],
    is_at_hand: Callable[[str], bool],
) -> Experiment:
    """Read an experiment file.

    Parameters
    ----------
    name : str
        Its name or its path.
    config_dirs : sequence of Path
        Further folders of config files.
    kinds : dict
        Kind of figure → what can be chosen of it.
    is_at_hand : callable
        Tells whether the raw data of a dataset are there.

    Raises
    ------
    ConfigError
        If there is none, or it is not as the module's docstring says.
    """
    file, content = _read(name, config_dirs)
    origins = [(file, content)]
    if "like" in content:
        like = content["like"]
        for key in (key for key in RUNS if key in content):
            raise ConfigError(f"{file}: {key} is that of {like}; leave one out.")
        several = like if isinstance(like, list) and like else [like]
        origins = [_like(file, one, config_dirs) for one in several]
    grids = [found for origin in origins for found in _grids(*origin, config_dirs, is_at_hand)]
    figures = grid.mapping(content.get("figures") or {}, f"{file}: figures")
    with_gaps = [name for name, choices in kinds.items() if choices.gaps]
    if "gaps" in content and not figures.keys() & {*with_gaps}:
        wanted = " and ".join(with_gaps)
        raise ConfigError(f"{file}: gaps are for the figures {wanted}: add one to figures.")
    title = content.get("title", _as_meant(file.stem))
    if not isinstance(title, str) or not title.isprintable() or len(title) > LONGEST_TITLE:
        raise ConfigError(
            f"{file}: title must be one line of text, of at most {LONGEST_TITLE} characters, "
            f"got {shown(repr(title))}."
        )
    return Experiment(
        file.stem,
        origins[0][0].stem if len(origins) == 1 else file.stem,
        title,
        tuple(grids),
        {kind: _chosen(kind, names, kinds, file) for kind, names in figures.items()},
        _gaps(content.get("gaps", list(GAPS)), file),
    )


def _as_meant(name: str) -> str:
    """Return a file's name as text, also where Python takes file names for ASCII."""
    return os.fsencode(name).decode(errors="replace")


def _check_known(says: str, name: Any, known: Iterable[str]) -> None:
    """Raise ``ConfigError``, which ``says`` of what there is no such thing, unless it is known."""
    if name not in known:
        raise ConfigError(f"{says} {shown(name)}. {nearest(str(name), known)}")


def _like(file: Path, name: Any, config_dirs: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """Return the file and the content of the experiment that another one is like."""
    if not isinstance(name, str):
        raise ConfigError(f"{file}: like must be the name of an experiment.")
    try:
        origin, content = _read(name, config_dirs)
    except ConfigError as error:
        raise ConfigError(f"{file}: like: {error}") from error
    if "like" in content:
        raise ConfigError(f"{file}: {name} is itself like {content['like']}; name that one.")
    return origin, content


def _read(name: str, config_dirs: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """Return an experiment's file and its content, with no other keys than ``KEYS``."""
    known = catalog.entries("experiments", config_dirs)
    is_path, missing = name.endswith((".yaml", ".yml")), "There is no experiment"
    file = Path(name) if is_path else known.get(name)
    if file is None and "/" in name:
        raise ConfigError(f"{missing} {shown(repr(name))}: the path of a file ends in .yaml.")
    if file is None or not (file.is_file() or "/" in name):
        raise ConfigError(f"{missing} {shown(repr(name))}. {nearest(name, known)}")
    if not file.is_file():
        raise ConfigError(f"{missing} {shown(repr(name))}: no such file.")
    called = _as_meant(file.stem)
    if not re.fullmatch(r"\w[^/]{0,99}", called) or not called.isprintable():
        raise ConfigError(
            f"{shown(file, 200)}: the name of an experiment begins with a letter, and has at most "
            "100 characters. Rename the file."
        )
    if not known.get(file.stem, file).samefile(file):
        raise ConfigError(
            f"{file} has the name of {known[file.stem]}, and its results would replace those. "
            "Rename it."
        )
    content = grid.mapping(catalog.read_yaml(file), f"{file}: an experiment")
    for key in content:
        _check_known(f"{file}: there is no key", key, KEYS)
    return file, content


def _grids(
    file: Path,
    content: Mapping[str, Any],
    config_dirs: Sequence[Path],
    is_at_hand: Callable[[str], bool],
) -> Iterator[Grid]:
    """Yield the grids of a file's own runs."""
    known = catalog.entries("dataset", config_dirs)
    of_datasets = {}
    for key in ("each", "instead"):
        of_datasets[key] = grid.mapping(content.get(key) or {}, f"{file}: {key}")
        for name in of_datasets[key]:
            _check_known(f"{file}: {key}: there is no dataset", name, known)
    each = {
        dataset: grid.words(options, f"{file}: each.{dataset}", of_one=True)
        for dataset, options in of_datasets["each"].items()
    }

    def at_hand(name: str) -> str:
        other = of_datasets["instead"].get(name)
        try:
            return str(other) if other and is_at_hand(str(other)) else name
        except ConfigError as error:
            raise ConfigError(f"{file}: instead.{name}: {error}") from error

    for where, options in grid.grids(content.get("grid"), f"{file}: grid").items():
        if of_datasets["instead"]:
            names = options.get("dataset")
            names = [names] if isinstance(names, str) and "," not in names else names
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ConfigError(
                    f"{where}.dataset must be a name or a list of names, with instead."
                )
            options["dataset"] = [at_hand(name) for name in names]
        yield Grid(file.stem, grid.words(options, where), each)


def _chosen(kind: str, names: Any, kinds: Mapping[str, Choices], file: Path) -> tuple[str, ...]:
    """Return what is chosen of one kind of figure, checked."""
    _check_known(f"{file}: there is no figure", kind, kinds)
    choices = kinds[kind]
    if not isinstance(names, list) or not names:
        raise ConfigError(f"{file}: figures.{kind} must be a list of {choices.several}.")
    for name in names:
        _check_known(f"{file}: figures.{kind} has no {choices.one}", name, choices.names)
    return tuple(dict.fromkeys(names))


def _gaps(value: Any, file: Path) -> tuple[float, ...]:
    """Return the checked relative gaps, largest first."""
    gaps = value if isinstance(value, list) else []
    numbers = [gap for gap in gaps if type(gap) in (int, float) and 0 < gap < 1e9]
    if not 0 < len(set(numbers)) == len(gaps) <= MOST_GAPS:
        raise ConfigError(
            f"{file}: gaps must be a list of different positive numbers, at most {MOST_GAPS}, "
            f"got {shown(value)}."
        )
    return tuple(sorted(map(float, numbers), reverse=True))
