"""Experiment files, ``experiments/NAME.yaml``: grids of runs and the figures made of them.

.. code-block:: yaml

    # one-line description, shown by ``ssvm-bench list``
    title: what the figures are headed with
    grid:                          # option of `ssvm-bench run` → its value, or a list of values
      seed: range(3)               # text is written as on the command line
      dataset: [ocr, weizmann]
      solver: [bcfw, mpbcfw]
    each:                          # dataset → options of the runs on it
      ocr: {budget.max_seconds: 30}
    instead: {weizmann: horseseg}  # dataset → what replaces it where there are raw data of that
    figures:                       # kind of figure → its x axes
      suboptimality: [iteration, time]
      targets: [time, calls]
      profile: [calls, time, 1ms]  # costs: the last one is time, if a call took a millisecond
      claims: [mpbcfw]             # the papers whose claims are judged
    gaps: [0.1, 0.01, 0.001]       # relative gaps of targets, errors of rates

Without ``gaps``, they are chosen from those that the runs reached, see `targets.gaps_reached`.

``grid`` may be a list of grids: the runs are those of each in turn, without repeats. ``each``,
``instead`` and overrides apply to all grids; ``dataset=…`` and ``solver=…`` choose among those that
the grids list. With several grids, options that only some solvers have can vary:

.. code-block:: yaml

    grid:
      - {dataset: [ocr, usps], solver: ssg}
      - {dataset: [ocr, usps], solver: mpbcfw, solver.T: [5, 10], path: "[100/n,10/n]"}

The runs along a ``path`` are runs of the experiment as well; one process executes them all.

In place of ``grid``, ``each`` and ``instead``, ``like: NAME`` takes those of another experiment:
one set of runs, several sets of figures. ``like: [NAME, NAME]`` takes the runs of several.

Grids, and the options of each dataset, become overrides. Text is written as on the command line, so
that ``range(3)`` is a sweep.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.config import catalog

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig

T = TypeVar("T")

OF_THE_GRID = ("seed", "results_dir", "force", "quiet")
"""Options that cannot differ between datasets."""

_KEY = re.compile(r"\w+(\.\w+)*")


def mapping(value: Any, where: str) -> dict[Any, Any]:
    """Return a value; raise ``ConfigError`` unless it is a mapping."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a mapping of keys to values.")
    return value


def grids(value: Any, where: str) -> dict[str, dict[Any, Any]]:
    """Return location in the file (``grid``, or ``grid[0]`` and so on) → grid."""
    if not isinstance(value, list):
        return {where: dict(mapping(value, where))}
    if not value:
        raise ConfigError(f"{where} must be a mapping of keys to values, or a list of them.")
    places = {f"{where}[{k}]": grid for k, grid in enumerate(value)}
    return {place: dict(mapping(grid, place)) for place, grid in places.items()}


def words(options: Any, where: str, of_one: bool = False) -> tuple[str, ...]:
    """Return options and values as overrides; options ``of_one`` dataset must not vary."""
    found = []
    for key, value in mapping(options, where).items():
        option = f"{where}.{shown(key)}"
        if of_one and (isinstance(value, list) or key in OF_THE_GRID):
            raise ConfigError(f"{option}: what varies between runs belongs into the grid.")
        if not _KEY.fullmatch(key):
            raise ConfigError(f"{where}: {shown(key)} is no name of an option.")
        values = value if isinstance(value, list) else [value]
        if not values or any(isinstance(each, (dict, list)) for each in values):
            raise ConfigError(f"{option} must be a value or a list of values.")
        text = value if isinstance(value, str) else ",".join(_word(option, each) for each in values)
        found.append(f"{key}={text}")
    return tuple(found)


def _word(option: str, value: Any) -> str:
    """Return one value as it is written on the command line."""
    if value is not None and re.fullmatch(r"[\w.+-]+", str(value)) and type(value) is not bool:
        return str(value)
    from ssvm_bench.config.overrides import written

    return written(option, value)


@dataclass(frozen=True)
class Shard:
    """One of several parts of an experiment, for machines that share nothing.

    Attributes
    ----------
    number, count : int
        Its number, from 1, and the number of shards.
    """

    number: int
    count: int

    @classmethod
    def parsed(cls, text: str) -> Shard:
        """Return the shard of a text like ``2/4``.

        Raises
        ------
        ConfigError
            If the text names no shard.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                f"--shard must be I/K, the I-th of K parts with 1 ≤ I ≤ K, got {shown(text)}."
            )
        return cls(int(found[1]), int(found[2]))

    def of(self, runs: Sequence[T]) -> list[T]:
        """Return its part of all runs, in their order.

        The runs are shuffled, always in the same way, and dealt like cards. So runs that are costly
        by their solver, dataset or λ are spread over the shards.
        """
        import numpy as np

        from ssvm_bench.base import random

        shuffled = random.permutation(len(runs), np.random.PCG64(0))
        return [runs[k] for k in sorted(shuffled[self.number - 1 :: self.count].tolist())]

    def __str__(self) -> str:
        """Return the text that `parsed` reads."""
        return f"{self.number}/{self.count}"


# ---- Experiments ------------------------------------------------------------------------------

RUNS = ("grid", "each", "instead")
"""Keys that define the runs."""

KEYS = ("title", *RUNS, "like", "figures", "gaps")

MOST_GAPS = 20
"""The largest number of gaps that a figure distinguishes."""

LONGEST_TITLE = 200
"""The largest number of characters of the figures' title."""


class Choices(NamedTuple):
    """What can be listed for a kind of figure; the words for one and for several of these names.

    ``gaps``: whether the figure shows the experiment's gaps.
    """

    names: tuple[str, ...]
    one: str = "x axis"
    several: str = "x axes"
    gaps: bool = False


class Grid(NamedTuple):
    """A grid: its experiment, the overrides of its sweep, and dataset → further overrides.

    ``instead``: dataset → the one that replaces it where there are raw data of that.
    """

    origin: str
    words: tuple[str, ...]
    each: Mapping[str, tuple[str, ...]]
    instead: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Experiment:
    """One experiment file.

    Attributes
    ----------
    name : str
        The file's name without suffix; figures go to ``<results_dir>/figures/<name>/``.
    runs : str
        Name of the experiment whose runs it shows: the one that it is like; its own name if it is
        like none or several.
    title : str
        Title of the figures.
    grids : tuple of Grid
        The grids of its runs.
    figures : dict
        Kind of figure → its x axes, or other choices.
    gaps : tuple of float
        Relative gaps of figures, or errors of ``rates``, falling; empty: chosen from the runs.
    digest : str
        Of what a user's file says of its runs; empty for the program's own.
    """

    name: str
    runs: str
    title: str
    grids: tuple[Grid, ...]
    figures: Mapping[str, tuple[str, ...]]
    gaps: tuple[float, ...]
    digest: str = ""

    @property
    def origins(self) -> tuple[str, ...]:
        """The experiments that its runs belong to; ``<results_dir>/traces/`` has their traces."""
        return tuple(dict.fromkeys(of.origin for of in self.grids))

    @property
    def stands_for(self) -> dict[str, str]:
        """Dataset → the one that it stands for, as there are no raw data of that."""
        return {name: other for of in self.grids for name, other in of.instead.items()}

    def configs(
        self, overrides: Sequence[str] = (), config_dirs: Sequence[Path] = ()
    ) -> list[RunConfig]:
        """Return the runs to execute; the arguments are those of `expanded`."""
        return self.expanded(overrides, config_dirs).configs

    def expanded(
        self, overrides: Sequence[str] = (), config_dirs: Sequence[Path] = ()
    ) -> ExpandedGrid:
        """Return the runs of each grid.

        Parameters
        ----------
        overrides : sequence of str
            They replace the file's values of the same options in every grid. If the grids together
            list all datasets (solvers, …) that an override names, it chooses among them: each grid
            keeps those that it lists, and a grid with none of them is left out.
        config_dirs : sequence of Path
            Further folders of config files.

        Raises
        ------
        ConfigError
            If an override, or a combination of them, is wrong.
        """
        from ssvm_bench.config.compose import Composer
        from ssvm_bench.config.overrides import check_count, variant

        def option(text: str) -> str:
            return text.partition("=")[0].lstrip("+")

        composer, runs = Composer(config_dirs), []
        listed = [composer.choices(of.words) for of in self.grids]
        asked = composer.choices(overrides)
        wanted = {
            key: names
            for key, names in asked.items()
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
            try:
                made = composer.runs([*of.words, *overrides, *chosen], True, each)
            except ConfigError as error:
                unlisted = self._unlisted(asked, listed)
                if unlisted:
                    composer.runs(overrides, True)  # raises their own mistakes
                raise ConfigError(f"{unlisted}{error}") from error
            runs.append((of.origin, made))
            check_count(sum(len(configs) for _, configs in runs))
        if not runs:
            both = " with ".join(f"{key}={','.join(names)}" for key, names in wanted.items())
            raise ConfigError(f"No grid of {self.name} has {both}.")
        return ExpandedGrid(tuple(runs), variant(overrides))

    def _unlisted(
        self, asked: Mapping[str, Sequence[Any]], listed: Sequence[Mapping[str, Sequence[Any]]]
    ) -> str:
        """Return the beginning of a message: which choices it does not list, and has no options of.

        Empty if it lists all that overrides ask for.
        """
        for key, names in asked.items():
            known = dict.fromkeys(name for own in listed for name in own.get(key, ()))
            if others := [name for name in names if name not in known]:
                return (
                    f"{self.name} has no options for {key}={','.join(map(str, others))}: it lists "
                    f"{', '.join(map(str, known)) or 'none'}. Choose one of these, or set them "
                    "yourself. Without them: "
                )
        return ""


class ExpandedGrid(NamedTuple):
    """The runs of an experiment, with overrides.

    Attributes
    ----------
    of_grids : tuple of (str, list of RunConfig)
        For each grid, its experiment and its runs.
    variant : str
        The name of the overrides that chose the runs; empty if these are those of the file.
    """

    of_grids: tuple[tuple[str, list[RunConfig]], ...]
    variant: str = ""

    @property
    def configs(self) -> list[RunConfig]:
        """The runs to execute, in the order of the grids, without repeats.

        Runs that lie on the path of another one are left out.
        """
        runs = dict.fromkeys(config for _, configs in self.of_grids for config in configs)
        on_the_way = {stage for config in runs for stage in config.path_steps()[:-1]}
        return [config for config in runs if config not in on_the_way]

    @property
    def origin_of(self) -> dict[Path, str]:
        """Own folder of each run, for each source it can have → where its trace is stored."""
        found: dict[Path, str] = {}
        for origin, configs in self.of_grids:
            for config in along_paths(configs):
                for source in config.sources():
                    place = self.within(origin)
                    found.setdefault(config.with_source(source).own_folder, place)
        return found

    def within(self, experiment: str) -> str:
        """Return the folder of an experiment's files on these runs, below that of all its files."""
        return "/".join(filter(None, (experiment, self.variant)))


def along_paths(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return the runs and all runs along their paths, in that order, without repeats."""
    return list(dict.fromkeys(stage for config in configs for stage in config.path_steps()))


def dependency_levels(configs: Sequence[RunConfig]) -> tuple[list[int], list[int]]:
    """Return the indices of the runs to execute first, and of those that these then contain.

    A run can contain another one that differs in the budget only.
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
    kinds: Mapping[str, Choices] | None,
    is_at_hand: Callable[[str], bool],
) -> Experiment:
    """Read an experiment file.

    Parameters
    ----------
    name : str
        Its name or its path.
    config_dirs : sequence of Path
        Further folders of config files.
    kinds : dict or None
        Kind of figure → its choices; None: the figures are left out.
    is_at_hand : callable
        Returns whether the raw data of a dataset are available.

    Raises
    ------
    ConfigError
        If the file does not exist, or does not follow the module's docstring.
    """
    file, content = _read(name, config_dirs)
    if kinds is None:
        of_figures = ("figures", "gaps")
        content = {key: value for key, value in content.items() if key not in of_figures}
        kinds = {}
    origins = [(file, content)]
    if "like" in content:
        like = content["like"]
        for key in (key for key in RUNS if key in content):
            raise ConfigError(f"{file}: {key} is that of {like}; leave one out.")
        several = like if isinstance(like, list) and like else [like]
        origins = [_like(file, one, config_dirs) for one in several]
    grids = [found for origin in origins for found in _grids(*origin, config_dirs, is_at_hand)]
    figures = mapping(content.get("figures") or {}, f"{file}: figures")
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
        _gaps(content["gaps"], file) if "gaps" in content else (),
        "" if file.is_relative_to(catalog.shipped("experiments")) else _digest(content),
    )


def _digest(content: Mapping[str, Any]) -> str:
    runs = {key: content[key] for key in (*RUNS, "like") if key in content}
    return hashlib.sha256(json.dumps(runs, default=str).encode()).hexdigest()[:12]


def _as_meant(name: str) -> str:
    """Return a file's name as text, even where Python decodes file names as ASCII."""
    return os.fsencode(name).decode(errors="replace")


def _check_known(says: str, name: Any, known: Iterable[str]) -> None:
    """Raise ``ConfigError``, with a message that begins with ``says``, unless a name is known."""
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
    """Return an experiment's file and its content; refuse keys that are not in ``KEYS``."""
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
    content = mapping(catalog.read_yaml(file), f"{file}: an experiment")
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
        of_datasets[key] = mapping(content.get(key) or {}, f"{file}: {key}")
        for name in of_datasets[key]:
            _check_known(f"{file}: {key}: there is no dataset", name, known)
    each = {
        dataset: words(options, f"{file}: each.{dataset}", of_one=True)
        for dataset, options in of_datasets["each"].items()
    }

    def at_hand(name: str) -> str:
        other = of_datasets["instead"].get(name)
        try:
            return str(other) if other and is_at_hand(str(other)) else name
        except ConfigError as error:
            raise ConfigError(f"{file}: instead.{name}: {error}") from error

    for where, options in grids(content.get("grid"), f"{file}: grid").items():
        if of_datasets["instead"]:
            names = options.get("dataset")
            names = [names] if isinstance(names, str) and "," not in names else names
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ConfigError(
                    f"{where}.dataset must be a name or a list of names, with instead."
                )
            options["dataset"] = [at_hand(name) for name in names]
        instead = {name: str(other) for name, other in of_datasets["instead"].items()}
        yield Grid(file.stem, words(options, where), each, instead)


def _chosen(kind: str, names: Any, kinds: Mapping[str, Choices], file: Path) -> tuple[str, ...]:
    """Return the checked choices of one kind of figure."""
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
