"""From the finished runs of an experiment to its files: figures, and the numbers they show.

A figure shows one source of data: what the stand-ins gave goes to files of its own,
``…-synthetic``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ssvm_bench import experiments
from ssvm_bench.errors import RunFailedError
from ssvm_bench.trace import find_runs, is_finished, read_trace

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.experiments import Experiment

AXES = {"iteration": "iterations", "time": "time"}
"""x axis of a figure → name of its files."""

FIGURES = {"suboptimality": tuple(AXES)}
"""Kinds of figures and the x axes they can have."""

FORMATS = ("png", "pdf")
"""Formats of the figures unless others are asked for."""


def plot(
    name: str,
    formats: Sequence[str] = FORMATS,
    overrides: Sequence[str] = (),
    config_dirs: Sequence[Path] = (),
    say: Callable[[str], object] = experiments.to_stderr,
) -> list[Path]:
    """Draw the figures of an experiment from its finished runs; run nothing.

    Parameters
    ----------
    name, overrides, config_dirs, say
        As for `run`. Under ``dataset.source=auto``, a dataset's runs on real data are drawn if
        there are any, else those on its stand-in.
    formats : sequence of str
        Some of ``png``, ``pdf``, ``svg``; empty stands for png and pdf.

    Returns
    -------
    list of Path
        The files written: figures, and the numbers they show as CSV.

    Raises
    ------
    ConfigError
        If the experiment or an override is wrong.
    RunFailedError
        If no run has finished, a run cannot be read, or a figure cannot be written.
    """
    from ssvm_bench.config.compose import compose_runs

    experiment = experiments.load(name, config_dirs)
    configs = compose_runs([*experiment.overrides, *overrides], True, config_dirs)
    folders: list[Path] = []
    missing: list[str] = []
    for dataset in dict.fromkeys(config.dataset.name for config in configs):
        mine = [config for config in configs if config.dataset.name == dataset]
        found = _finished(mine)
        folders += [folder for folder in found if folder is not None]
        missing += [
            experiments.title(config)
            for config, folder in zip(mine, found, strict=True)
            if folder is None
        ]
    results_dir = configs[0].results_dir
    if not folders:
        raise RunFailedError(
            f"No run of the experiment {experiment.name} has finished in {results_dir}. Make them "
            f"with `ssvm-bench experiment {name}`, and plot with the same overrides as you run; or "
            "choose another folder with results_dir=…"
        )
    if missing:
        say(f"{len(missing)} of {len(configs)} runs are missing: {'; '.join(missing)}.")
    return draw(experiment, folders, results_dir, formats or FORMATS, say)


def _finished(configs: Sequence[RunConfig]) -> list[Path | None]:
    """Return the finished run of each config of one dataset, or None; all of one source."""
    folders: list[Path | None] = []
    for source in ("real", "synthetic"):
        folders = [
            folder if is_finished(folder) else None
            for folder in (
                (config.with_source(source) if config.dataset.source == "auto" else config).folder
                for config in configs
            )
        ]
        if any(folders):
            break
    return folders


def draw(
    experiment: Experiment,
    folders: Iterable[Path],
    results_dir: Path,
    formats: Sequence[str],
    say: Callable[[str], object],
) -> list[Path]:
    """Draw every figure of an experiment; the real data and the stand-ins apart."""
    from ssvm_bench.figures import curves, draw

    traces = [read_trace(folder) for folder in dict.fromkeys(folders)]
    datasets = dict.fromkeys(trace.metadata["dataset"]["name"] for trace in traces)
    others = [folder for dataset in datasets for folder in find_runs(results_dir, dataset)]
    best = curves.best_values([*(trace.folder for trace in traces), *others], say)
    written = []
    for source in dict.fromkeys(trace.metadata["dataset"]["source"] for trace in traces):
        shown = [trace for trace in traces if trace.metadata["dataset"]["source"] == source]
        suffix = "" if source == "real" else f"-{source}"
        for axis in experiment.figures.get("suboptimality", ()):
            table = curves.suboptimality(shown, best, axis)
            figure = draw.draw_curves(
                table,
                curves.axis_label(shown, axis),
                experiment.title,
                curves.notes(table, shown, axis),
            )
            stem = results_dir / "figures" / experiment.name / f"{AXES[axis]}{suffix}"
            written += draw.save(figure, table, stem, formats)
    return written
