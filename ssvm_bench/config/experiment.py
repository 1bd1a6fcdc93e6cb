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
    gaps: [0.1, 0.01, 0.001]       # relative gaps of the figure targets

``grid`` may be a list of grids: the runs are those of each in turn, without repeats. ``each``,
``instead`` and overrides are for all of them. So options that only some solvers have can vary:

.. code-block:: yaml

    grid:
      - {dataset: [ocr, usps], solver: ssg}
      - {dataset: [ocr, usps], solver: mpbcfw, solver.T: [5, 10], path: "[100/n,10/n]"}

The runs along a ``path`` are runs of the experiment, too, made together by one process.

In place of ``grid``, ``each`` and ``instead``, ``like: NAME`` takes those of another experiment:
one set of runs, several sets of figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from ssvm_bench.config import catalog
from ssvm_bench.errors import ConfigError, nearest

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig

RUNS = ("grid", "each", "instead")
"""Keys that say which runs there are."""

KEYS = ("title", *RUNS, "like", "figures", "gaps")

GAPS = (0.1, 0.05, 0.02, 0.01)
"""Relative gaps of targets unless the file says others."""

OF_THE_GRID = ("seed", "results_dir", "force", "quiet")
"""Options that cannot differ between datasets."""


class Choices(NamedTuple):
    """What can be listed for a kind of figure, and what one and several of them are called."""

    names: tuple[str, ...]
    one: str = "x axis"
    several: str = "x axes"


@dataclass(frozen=True)
class Experiment:
    """One experiment file.

    Attributes
    ----------
    name : str
        The file's name without suffix; figures go to ``<results_dir>/figures/<name>/``.
    runs : str
        Name of the experiment whose runs it shows: its own, or the one that it is like. Their
        thinned traces are kept in ``<results_dir>/traces/<runs>/``.
    title : str
        Title of the figures.
    grids : tuple of tuple of str
        Each grid, as overrides of a sweep.
    each : dict
        Dataset → overrides of the runs on it.
    figures : dict
        Kind of figure → its x axes, or what else is chosen of it.
    gaps : tuple of float
        Relative gaps of the figure ``targets``, falling.
    """

    name: str
    runs: str
    title: str
    grids: tuple[tuple[str, ...], ...]
    each: Mapping[str, tuple[str, ...]]
    figures: Mapping[str, tuple[str, ...]]
    gaps: tuple[float, ...]

    def configs(
        self, overrides: Sequence[str] = (), config_dirs: Sequence[Path] = ()
    ) -> list[RunConfig]:
        """Return the runs to make, in the order of the grids.

        Each is made once, and none that another one makes along its path.

        Parameters
        ----------
        overrides : sequence of str
            They replace what the file says of the same option, in every grid.
        config_dirs : sequence of Path
            Further folders of config files.

        Raises
        ------
        ConfigError
            If an override, or a combination of them, is wrong.
        """
        from ssvm_bench.config.compose import compose_runs

        given = {_option(text) for text in overrides}
        each = {
            dataset: [text for text in own if _option(text) not in given]
            for dataset, own in self.each.items()
        }
        runs = [
            config
            for grid in self.grids
            for config in compose_runs([*grid, *overrides], True, config_dirs, each)
        ]
        on_the_way = {stage for config in runs for stage in config.stages()[:-1]}
        return [config for config in dict.fromkeys(runs) if config not in on_the_way]


def along_paths(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return all runs that leave a folder, those along a path before its end, without repeats."""
    return list(dict.fromkeys(stage for config in configs for stage in config.stages()))


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
    file, content = _read(name, config_dirs, KEYS)
    origin, runs = file, content
    if "like" in content:
        for key in RUNS:
            if key in content:
                raise ConfigError(f"{file}: {key} is that of {content['like']}; leave one out.")
        origin, runs = _like(file, content["like"], config_dirs)
    grids = _grids(runs.get("grid"), f"{origin}: grid")
    each = _of_datasets(runs, "each", origin, config_dirs)
    instead = _of_datasets(runs, "instead", origin, config_dirs)
    if instead:
        for where, grid in grids.items():
            grid["dataset"] = _at_hand(grid.get("dataset"), instead, is_at_hand, origin, where)
    figures = _mapping(content.get("figures") or {}, f"{file}: figures")
    if "gaps" in content and "targets" not in figures:
        raise ConfigError(f"{file}: gaps are for the figure targets: add it to figures.")
    return Experiment(
        file.stem,
        origin.stem,
        str(content.get("title", file.stem)),
        tuple(tuple(_overrides(grid, where)) for where, grid in grids.items()),
        {
            dataset: tuple(_own_options(own, f"{origin}: each.{dataset}"))
            for dataset, own in each.items()
        },
        {str(kind): _chosen(str(kind), names, kinds, file) for kind, names in figures.items()},
        _gaps(content.get("gaps", list(GAPS)), f"{file}: gaps"),
    )


def _like(file: Path, name: Any, config_dirs: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """Return the file and the content of the experiment that another one is like."""
    if not isinstance(name, str):
        raise ConfigError(f"{file}: like must be the name of an experiment.")
    try:
        origin, content = _read(name, config_dirs, KEYS)
    except ConfigError as error:
        raise ConfigError(f"{file}: like: {error}") from error
    if "like" in content:
        raise ConfigError(f"{file}: {name} is itself like {content['like']}; name that one.")
    return origin, content


def _read(
    name: str, config_dirs: Sequence[Path], keys: Iterable[str]
) -> tuple[Path, dict[str, Any]]:
    """Return an experiment's file and its content, with no other keys than those."""
    known = catalog.entries("experiments", config_dirs)
    file = Path(name) if name.endswith((".yaml", ".yml")) else known.get(name)
    if file is None and "/" in name:
        raise ConfigError(f"There is no experiment {name!r}: the path of a file ends in .yaml.")
    if file is None or (file.suffix and not file.is_file() and "/" not in name):
        raise ConfigError(f"There is no experiment {name!r}. {nearest(name, known)}")
    if not file.is_file():
        raise ConfigError(f"There is no experiment {name!r}: no such file.")
    if known.get(file.stem, file).resolve() != file.resolve():
        raise ConfigError(
            f"{file} has the name of {known[file.stem]}, and its results would replace those. "
            "Rename it."
        )
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"Cannot read the experiment {file}: {reason}.") from error
    content = _mapping(content, f"{file}: an experiment")
    for key in content:
        if key not in keys:
            raise ConfigError(f"{file}: there is no key {key}. {nearest(str(key), keys)}")
    return file, content


def _of_datasets(
    content: Mapping[str, Any], key: str, file: Path, config_dirs: Sequence[Path]
) -> dict[str, Any]:
    """Return a mapping of the file whose keys must be datasets."""
    known = catalog.entries("dataset", config_dirs)
    found = _mapping(content.get(key) or {}, f"{file}: {key}")
    for name in found:
        if name not in known:
            raise ConfigError(
                f"{file}: {key}: there is no dataset {name}. {nearest(str(name), known)}"
            )
    return found


def _at_hand(
    datasets: Any,
    instead: Mapping[str, Any],
    is_at_hand: Callable[[str], bool],
    file: Path,
    where: str,
) -> list[Any]:
    """Return the grid's datasets, or those in their place whose raw data are there."""

    def taken(name: str) -> str:
        other = instead.get(name)
        try:
            return str(other) if other and is_at_hand(str(other)) else name
        except ConfigError as error:
            raise ConfigError(f"{file}: instead.{name}: {error}") from error

    names = [datasets] if isinstance(datasets, str) and "," not in datasets else datasets
    if not isinstance(names, list):
        raise ConfigError(f"{where}.dataset must be a name or a list of names, with instead.")
    return [taken(name) for name in names]


def _grids(value: Any, where: str) -> dict[str, dict[Any, Any]]:
    """Return each grid by where it is in the file: ``grid``, or ``grid[0]`` and so on."""
    if not isinstance(value, list):
        return {where: dict(_mapping(value, where))}
    if not value:
        raise ConfigError(f"{where} must be a mapping of keys to values, or a list of them.")
    places = {f"{where}[{k}]": grid for k, grid in enumerate(value)}
    return {place: dict(_mapping(grid, place)) for place, grid in places.items()}


def _own_options(options: Any, where: str) -> Iterable[str]:
    """Yield the options of the runs on one dataset as overrides."""
    for key, value in _mapping(options, where).items():
        if isinstance(value, list) or key in OF_THE_GRID:
            raise ConfigError(f"{where}.{key}: what varies between runs belongs into the grid.")
        yield f"{key}={_values(value, f'{where}.{key}')}"


def _mapping(value: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a mapping of keys to values.")
    return value


def _chosen(kind: str, names: Any, kinds: Mapping[str, Choices], file: Path) -> tuple[str, ...]:
    """Return what is chosen of one kind of figure, checked."""
    if kind not in kinds:
        raise ConfigError(f"{file}: there is no figure {kind}. {nearest(kind, kinds)}")
    choices = kinds[kind]
    if not isinstance(names, list) or not names:
        raise ConfigError(f"{file}: figures.{kind} must be a list of {choices.several}.")
    for name in names:
        if name not in choices.names:
            hint = nearest(str(name), choices.names)
            raise ConfigError(f"{file}: figures.{kind} has no {choices.one} {name}. {hint}")
    return tuple(names)


def _gaps(value: Any, where: str) -> tuple[float, ...]:
    """Return the checked relative gaps, largest first."""
    gaps = value if isinstance(value, list) else []
    numbers = [gap for gap in gaps if type(gap) in (int, float) and 0 < gap < math.inf]
    if not numbers or len(set(numbers)) < len(gaps):
        raise ConfigError(f"{where} must be a list of different positive numbers, got {value}.")
    return tuple(sorted(map(float, numbers), reverse=True))


def _overrides(options: Any, where: str) -> Iterable[str]:
    """Yield options and values as overrides."""
    for key, value in _mapping(options, where).items():
        yield f"{key}={_values(value, f'{where}.{key}')}"


def _option(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _values(value: Any, where: str) -> str:
    """Return the right-hand side of an override: a value, or the values of a sweep."""
    nested = isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)
    if isinstance(value, dict) or nested or value == []:
        raise ConfigError(f"{where} must be a value or a list of values.")
    if isinstance(value, list):
        return ",".join(_word(item) for item in value)
    return value if isinstance(value, str) else _word(value)


def _word(value: Any) -> str:
    """Return one value as the command line reads it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    if isinstance(value, str) and not re.fullmatch(r"[\w.+-]+", text):
        escaped = text.replace("'", "\\'")
        return f"'{escaped}'"
    return text
