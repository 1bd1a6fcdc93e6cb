"""Experiments: a grid of runs and the figures made of them, ``experiments/NAME.yaml``.

.. code-block:: yaml

    # one-line description, shown by ``ssvm-bench list``
    title: what the figures are headed with
    grid:                          # option of `ssvm-bench run` → its value, or a list of values
      dataset: [ocr, usps]
      solver: [bcfw, mpbcfw]
      seed: range(3)               # a text stands as it would on the command line
    figures:                       # kind of figure → its x axes
      suboptimality: [iteration, time]

A run that has finished is never made again, so an experiment that was interrupted, or in which
runs failed, is completed by the same command. Figures are drawn from finished runs only. A figure
shows one source of data: what the stand-ins gave goes to files of its own, ``…-synthetic``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ssvm_bench.config import catalog
from ssvm_bench.errors import ConfigError, RunFailedError, nearest

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runner import Outcome
    from ssvm_bench.terminal import Display


AXES = {"iteration": "iterations", "calls": "oracle_calls", "time": "time"}
"""x axis of a figure → name of its files."""

FIGURES = {"suboptimality": tuple(AXES), "selection": ("iteration",), "claims": ("table",)}
"""Kinds of figures and the x axes they can have."""

FORMATS = ("png", "pdf")
"""Formats of the figures unless others are asked for."""


@dataclass(frozen=True)
class Experiment:
    """One experiment file.

    Attributes
    ----------
    name : str
        The file's name without suffix; figures go to ``<results_dir>/figures/<name>/``.
    title : str
        Title of the figures.
    overrides : tuple of str
        The grid, as overrides of a sweep.
    figures : dict
        Kind of figure → its x axes.
    """

    name: str
    title: str
    overrides: tuple[str, ...]
    figures: Mapping[str, tuple[str, ...]]


@dataclass
class ExperimentOutcome:
    """What became of an experiment.

    Attributes
    ----------
    total : int
        Number of runs in the experiment.
    results_dir : Path
        Root of their files.
    runs : list of (RunConfig, Outcome)
        Every run that was looked at, in order, finished or not.
    failures : list of (RunConfig, str)
        The runs that could not even be started, with the reason.
    figures : list of Path
        The files drawn of them, by :mod:`ssvm_bench.outputs`.
    """

    total: int
    results_dir: Path
    runs: list[tuple[RunConfig, Outcome]] = field(default_factory=list)
    failures: list[tuple[RunConfig, str]] = field(default_factory=list)
    figures: list[Path] = field(default_factory=list)

    @property
    def folders(self) -> list[Path]:
        """Folders of the finished runs."""
        done = ("finished", "skipped")
        return [outcome.folder for _, outcome in self.runs if outcome.status in done]

    @property
    def failed(self) -> int:
        """Number of runs that are not finished."""
        return self.total - len(self.folders)

    @property
    def status(self) -> str:
        """``finished``, ``interrupted``, or ``failed`` if any run is not finished."""
        if any(outcome.status == "interrupted" for _, outcome in self.runs):
            return "interrupted"
        return "failed" if self.failed else "finished"


def to_stderr(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)


def run(
    name: str,
    overrides: Sequence[str] = (),
    config_dirs: Sequence[Path] = (),
    make_display: Callable[[bool], Display] | None = None,
    say: Callable[[str], object] = to_stderr,
) -> ExperimentOutcome:
    """Make all missing runs of an experiment, one after the other.

    Parameters
    ----------
    name : str
        An experiment that ``ssvm-bench list experiments`` shows, or the path of a YAML file.
    overrides : sequence of str
        For every run; an option of the grid is replaced.
    config_dirs : sequence of Path
        Further folders of config files.
    make_display : callable, optional
        From ``quiet`` to the display of a run; default `terminal.make_display`.
    say : callable
        Told what goes on, and which run failed why.

    Returns
    -------
    ExperimentOutcome
        A run that fails does not stop the others; an interrupt does.

    Raises
    ------
    ConfigError
        If the experiment, an override or a combination of them is wrong.
    """
    from ssvm_bench import runner, terminal
    from ssvm_bench.config.compose import compose_runs

    make_display = make_display or terminal.make_display
    experiment = load(name, config_dirs)
    configs = compose_runs([*experiment.overrides, *overrides], True, config_dirs)
    result = ExperimentOutcome(len(configs), configs[0].results_dir)
    for k, config in enumerate(configs, 1):
        if not config.quiet:
            say(f"run {k}/{len(configs)} {title(config)}")
        try:
            with make_display(config.quiet) as display:
                outcome = runner.run(config, display)
        except RunFailedError as error:
            result.failures.append((config, str(error)))
            say(f"{title(config)} failed: {error}")
            continue
        result.runs.append((config, outcome))
        if outcome.status == "interrupted":
            say(f"Interrupted in run {k} of {len(configs)}; the same command goes on from here.")
            return result
    return result


def load(name: str, config_dirs: Sequence[Path] = ()) -> Experiment:
    """Read an experiment file, given its name or its path.

    Raises
    ------
    ConfigError
        If there is none, or it is not as the module's docstring says.
    """
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
        if key not in ("title", "grid", "figures"):
            raise ConfigError(
                f"{file}: there is no key {key}. {nearest(str(key), ['title', 'grid', 'figures'])}"
            )
    grid = _mapping(content.get("grid"), f"{file}: grid")
    figures = _mapping(content.get("figures", {}), f"{file}: figures")
    return Experiment(
        file.stem,
        str(content.get("title", file.stem)),
        tuple(f"{key}={_values(value, f'{file}: grid.{key}')}" for key, value in grid.items()),
        {str(kind): _axes(str(kind), axes, file) for kind, axes in figures.items()},
    )


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


def title(config: RunConfig) -> str:
    """Return how a run is called in messages."""
    return f"{config.dataset.name} {config.solver.name} seed={config.seed}"
