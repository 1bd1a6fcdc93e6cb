"""Experiment files, ``experiments/NAME.yaml``: a grid of runs and the figures made of them.

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

In place of ``grid``, ``each`` and ``instead``, ``like: NAME`` takes those of another experiment:
one set of runs, several sets of figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ssvm_bench.config import catalog
from ssvm_bench.errors import ConfigError, nearest

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig

AXES = {"iteration": "iterations", "calls": "oracle_calls", "time": "time"}
"""x axis of a figure → name of its files."""

FIGURES = {"suboptimality": tuple(AXES), "selection": ("iteration",), "claims": ("table",)}
"""Kinds of figures and the x axes they can have."""

RUNS = ("grid", "each", "instead")
"""Keys that say which runs there are."""


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
    overrides : tuple of str
        The grid, as overrides of a sweep.
    each : dict
        Dataset → overrides of the runs on it.
    figures : dict
        Kind of figure → its x axes.
    """

    name: str
    runs: str
    title: str
    overrides: tuple[str, ...]
    each: Mapping[str, tuple[str, ...]]
    figures: Mapping[str, tuple[str, ...]]

    def configs(
        self, overrides: Sequence[str] = (), config_dirs: Sequence[Path] = ()
    ) -> list[RunConfig]:
        """Return the runs, in the order of the grid.

        Parameters
        ----------
        overrides : sequence of str
            They replace what the file says of the same option.
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
        return compose_runs([*self.overrides, *overrides], True, config_dirs, each)


def load(name: str, config_dirs: Sequence[Path] = ()) -> Experiment:
    """Read an experiment file, given its name or its path.

    Raises
    ------
    ConfigError
        If there is none, or it is not as the module's docstring says.
    """
    file, content = _read(name, config_dirs, ("title", *RUNS, "like", "figures"))
    origin, runs = file, content
    if "like" in content:
        for key in RUNS:
            if key in content:
                raise ConfigError(f"{file}: {key} is that of {content['like']}; leave one out.")
        origin, runs = _read(str(content["like"]), config_dirs, ("title", *RUNS, "figures"))
    grid = _mapping(runs.get("grid"), f"{origin}: grid")
    each = _mapping(runs.get("each", {}), f"{origin}: each")
    instead = _mapping(runs.get("instead", {}), f"{origin}: instead")
    if isinstance(grid.get("dataset"), list):
        grid = {**grid, "dataset": [_at_hand(name, instead) for name in grid["dataset"]]}
    figures = _mapping(content.get("figures", {}), f"{file}: figures")
    return Experiment(
        file.stem,
        origin.stem,
        str(content.get("title", file.stem)),
        tuple(_overrides(grid, f"{origin}: grid")),
        {
            str(dataset): tuple(_overrides(own, f"{origin}: each.{dataset}"))
            for dataset, own in each.items()
        },
        {str(kind): _axes(str(kind), axes, file) for kind, axes in figures.items()},
    )


def _read(
    name: str, config_dirs: Sequence[Path], keys: Iterable[str]
) -> tuple[Path, dict[str, Any]]:
    """Return an experiment's file and its content, with no other keys than those."""
    known = catalog.entries("experiments", config_dirs)
    file = Path(name) if name.endswith((".yaml", ".yml")) else known.get(name)
    if file is None or not file.is_file():
        raise ConfigError(f"There is no experiment {name!r}. {nearest(name, known)}")
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


def _at_hand(dataset: Any, instead: Mapping[Any, Any]) -> Any:
    """Return the dataset, or the one to take in its place if the raw data of that are there."""
    from ssvm_bench.datasets.status import status

    other = instead.get(dataset)
    return other if other is not None and status(str(other)).state == "ready" else dataset


def _mapping(value: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a mapping of keys to values.")
    return value


def _axes(kind: str, axes: Any, file: Path) -> tuple[str, ...]:
    """Return the checked x axes of one kind of figure."""
    if kind not in FIGURES:
        raise ConfigError(f"{file}: there is no figure {kind}. {nearest(kind, FIGURES)}")
    if not isinstance(axes, list) or not axes:
        raise ConfigError(f"{file}: figures.{kind} must be a list of x axes.")
    for axis in axes:
        if axis not in FIGURES[kind]:
            hint = nearest(str(axis), FIGURES[kind])
            raise ConfigError(f"{file}: figures.{kind} has no x axis {axis}. {hint}")
    return tuple(axes)


def _overrides(options: Any, where: str) -> Iterable[str]:
    """Yield options and values as overrides."""
    for key, value in _mapping(options, where).items():
        yield f"{key}={_values(value, f'{where}.{key}')}"


def _option(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _values(value: Any, where: str) -> str:
    """Return the right-hand side of an override: a value, or the values of a sweep."""
    if isinstance(value, dict) or value == []:
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
