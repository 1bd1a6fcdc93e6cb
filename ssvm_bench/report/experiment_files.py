"""From the finished runs of an experiment to its files: figures, and the numbers they show.

.. code-block:: text

    <results_dir>/                 or, if that is committed, its folder `own`: see `folder`
      figures/<experiment>/        figures, their numbers as CSV, tables, provenance.json
      claims.md, claims.csv        the claims table, if the experiment lists it
      reference/optima.json        the best values ever seen, see `optima`
      traces/<experiment>/         thinned traces, see `stored_traces`

All files are made from traces: of raw runs if there are any, else from thinned ones. A figure shows
one source of data: files on synthetic data have other names, ``…-synthetic``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.claims import fidelity
from ssvm_bench.claims import table as claims
from ssvm_bench.config import LOADED_FROM, experiment, registry, shown_as
from ssvm_bench.config.experiment import Experiment, along_paths
from ssvm_bench.datasets import sources
from ssvm_bench.figures import convergence, kind, scaling, targets
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.jobs import experiments
from ssvm_bench.results import optima, stored_traces
from ssvm_bench.results.budgets import find_run
from ssvm_bench.results.folder import ResultsFolder, plain, results_folder, sweep
from ssvm_bench.results.provenance import provenance_of
from ssvm_bench.results.reading import SkippedFiles, damage, is_finished
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.run_folder import write_file
from ssvm_bench.results.trace import BestValues, Trace

if TYPE_CHECKING:
    from ssvm_bench.config.grid import Shard
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.jobs.dispatch import Dispatcher
    from ssvm_bench.jobs.experiments import ExperimentOutcome


def kinds() -> dict[str, Kind]:
    """Return name → kind, in the order of their sections on the page of the report."""
    papers = registry.papers()
    found = [
        *convergence.KINDS,
        *(claims.kind(papers), fidelity.kind(papers)),
        *(targets.KIND, targets.COMPARISON, convergence.AGREEMENT, scaling.KIND),
        *(kind for paper in papers.values() for kind in paper.kinds),
    ]
    return {kind.name: kind for kind in found}


def load(name: str, config_dirs: Sequence[Path] = ()) -> Experiment:
    """Read an experiment file, given its name or its path.

    Raises
    ------
    ConfigError
        If it does not exist, is wrong, or lists an unknown kind of figure.
    """
    registry.use(config_dirs)  # they may have papers
    choices = {kind.name: kind.choices for kind in kinds().values()}
    return experiment.load(
        name, config_dirs, choices, lambda data: sources.status(data).state == "ready"
    )


logger = logging.getLogger(__name__)

NAMED = 6
"""The largest number of missing runs that a message names."""


def make(
    name: str,
    overrides: Sequence[str] = (),
    config_dirs: Sequence[Path] = (),
    shard: Shard | None = None,
    dispatcher: Dispatcher | None = None,
) -> ExperimentOutcome:
    """Execute all missing runs of an experiment; then draw its figures, unless interrupted.

    With a shard, no figures are drawn.

    Parameters
    ----------
    name : str
        An experiment that ``ssvm-bench list experiments`` shows, or the path of a YAML file.
    overrides, config_dirs, shard, dispatcher
        As for `experiments.run`. Errors are those of `experiments.run` and `draw`.
    """
    experiment = load(name, config_dirs)
    outcome = experiments.run(experiment, overrides, config_dirs, shard, dispatcher)
    if shard is not None:
        logger.info(
            "This was shard %s. Merge the folders of all of them with `ssvm-bench merge`; "
            "`ssvm-bench plot %s` then draws the figures.",
            *(shard, name),
        )
    elif not outcome.interrupted:
        with SkippedFiles() as skipped:
            runs = [run for config in outcome.finished if (run := find_run(config, skipped))]
            if runs:
                origins = experiment.expanded(overrides, config_dirs).origin_of
                where = results_folder(outcome.results_dir, overrides)
                outcome.figures = draw(experiment, runs, (), where, (), skipped, origins)
    return outcome


def plot(
    name: str,
    formats: Sequence[str] = (),
    overrides: Sequence[str] = (),
    config_dirs: Sequence[Path] = (),
) -> list[Path]:
    """Draw the figures of an experiment from its finished runs, without executing any.

    Parameters
    ----------
    name, overrides, config_dirs
        As for `make`. Under ``dataset.source=auto``, a dataset's runs on real data are drawn if
        there are any, else those on its synthetic data.
    formats : sequence of str
        Formats as for `kind.save`; empty: png and pdf, for photographs png.

    Returns
    -------
    list of Path
        The files written: figures and tables, and the numbers they show as CSV.

    Raises
    ------
    ConfigError
        If the experiment or an override is wrong.
    RunFailedError
        If no run has finished, none can be read, or a file cannot be written.
    """
    experiment = load(name, config_dirs)
    grid = experiment.expanded(overrides, config_dirs)
    configs = along_paths(grid.configs)
    where = results_folder(configs[0].results_dir, overrides)
    with SkippedFiles() as skipped:
        kept = {
            trace.own_folder: trace
            for origin in experiment.origins
            for trace in stored_traces.read(where, origin, skipped)
        }
        pairs = finished(configs, kept, skipped)
        missing = [experiments.title(config) for config, run in pairs if run is None]
        runs = [run for _, run in pairs if run is not None]
        if not runs:
            made_by = name if experiment.runs == experiment.name else experiment.runs
            what_to_do = skipped.problems or [
                f"Make them with `ssvm-bench experiment {made_by}`, and plot with the same "
                "overrides as you run; or choose another folder with results_dir=…"
            ]
            raise RunFailedError(
                f"No run of the experiment {experiment.name} has finished in {where.root}"
                f"{' and can be read' * bool(skipped.problems)}. {what_to_do[0]}"
            )
        if missing:
            named = missing[:NAMED] + ["…"] * (len(missing) > NAMED)
            logger.warning(
                "%s of %s runs are missing: %s.", len(missing), len(configs), "; ".join(named)
            )
        origins = grid.origin_of
        return draw(experiment, runs, kept.values(), where, formats, skipped, origins)


def finished(
    configs: Sequence[RunConfig], stored: Mapping[Path, Trace], skipped: SkippedFiles | None = None
) -> list[tuple[RunConfig, Trace | None]]:
    """Return the configs with their finished runs; on real data if the dataset has such runs.

    Parameters
    ----------
    configs : sequence of RunConfig
    stored : mapping
        Own folder of a run → its stored trace, which replaces a missing raw run.
    skipped : SkippedFiles, optional
        Collects raw runs that cannot be read; None: only stored traces count.
    """
    pairs: list[tuple[RunConfig, Trace | None]] = []
    for some in grouped(configs, lambda config: config.dataset.name).values():
        found: list[Trace | None] = []
        for source in LOADED_FROM:
            runs = [
                config.with_source(source) if source in config.sources() else None
                for config in some
            ]
            found = [None if run is None else _run(run, stored, skipped) for run in runs]
            folders = [folder for run in runs if run and skipped for folder in run.folders]
            if any(found) or any(map(damage, folders)):
                break
        pairs += zip(some, found, strict=True)
    return pairs


def _run(
    config: RunConfig, stored: Mapping[Path, Trace], skipped: SkippedFiles | None
) -> Trace | None:
    # fast path: there are no raw runs
    if skipped is None or not (config.results_dir / "runs" / config.dataset.name).is_dir():
        return stored.get(config.own_folder)
    found = find_run(config, skipped)
    # a stored trace does not replace a damaged finished run, which may be newer
    if found is None and not any(is_finished(place) and damage(place) for place in config.folders):
        return stored.get(config.own_folder)
    return found


def draw(
    experiment: Experiment,
    runs: Iterable[Trace],
    kept: Iterable[Trace],
    results_dir: Path | ResultsFolder,
    formats: Sequence[str],
    skipped: SkippedFiles | None,
    origins: Mapping[Path, str] = MappingProxyType({}),
) -> list[Path]:
    """Write all files of an experiment; real and synthetic data have separate files.

    Everything is drawn from thinned traces, so that the same files can be drawn without raw runs.

    Parameters
    ----------
    experiment : Experiment
        What to draw.
    runs : iterable of Trace
        Its finished runs.
    kept : iterable of Trace
        Traces that are stored already; the other runs are stored first.
    results_dir : Path or ResultsFolder
        The results folder.
    formats : sequence of str
        As for `plot`.
    skipped : SkippedFiles or None
        Collects files and other runs in the results folder that cannot be read; None: raise errors.
    origins : mapping
        Own folder of a run → the experiment that its trace is stored with; by default
        ``experiment.runs``.

    Returns
    -------
    list of Path
        Figures and tables.
    """
    where = plain(results_dir)
    sweep(where)
    stored = {trace.own_folder: trace for trace in kept}
    of_datasets = grouped(runs, lambda run: run.data["name"]).values()
    chosen = {run.own_folder: run for members in of_datasets for run in members}
    raw = [run for run in chosen.values() if stored.get(run.own_folder) is not run]
    places = grouped(raw, lambda run: origins.get(run.own_folder, experiment.runs))
    hashes = {folder.parent.name for folder in chosen}
    for place, members in places.items():
        thinned = stored_traces.write(members, where, place, skipped, hashes)
        chosen.update({run.own_folder: run for run in thinned})
    traces = list(chosen.values())
    best = optima.reference(traces, where, skipped)
    written: list[Path] = []
    for made in outputs(experiment, traces, best, where.root):
        stem = where.made / made.place
        if isinstance(made.shown, Output):
            written += kind.save(made.shown, stem, formats)
        else:
            write_file(stem.with_name(f"{stem.name}.json"), made.shown)
    if where.notice:  # files are where a user would not look for them
        logger.info(where.notice)
    return written


class Made(NamedTuple):
    """An output from an experiment's runs.

    Attributes
    ----------
    place : Path
        Path of its files below the results folder, without suffix.
    shown : Output or bytes
        Numbers and figures; or the content of ``provenance.json``.
    """

    place: Path
    shown: Output | bytes

    def texts(self) -> dict[str, bytes]:
        """Return suffix → content of its files except pictures."""
        return {"json": self.shown} if isinstance(self.shown, bytes) else self.shown.texts()


def by_source(data: FigureData) -> dict[str, FigureData]:
    """Return source → input of the figures on its data."""
    together = grouped(data.traces, lambda trace: shown_as(trace.data["source"]))
    return {
        source: data._replace(
            traces=runs,
            others=[run for of, some in together.items() if of != source for run in some],
        )
        for source, runs in together.items()
    }


def outputs(
    experiment: Experiment,
    traces: Sequence[Trace],
    best: BestValues,
    results_dir: Path,
    wanted: Callable[[Kind], bool] = lambda _: True,
) -> Iterator[Made]:
    """Yield all outputs of an experiment; real and synthetic data have separate ones.

    Parameters
    ----------
    experiment : Experiment
        What to draw.
    traces : sequence of Trace
        Its runs, as they are stored.
    best : BestValues
    results_dir : Path
        The folder with the numbers that are not from runs.
    wanted : callable
        Returns whether to make a kind of figure.
    """
    folder = Path("figures", experiment.name)
    everything = FigureData(traces, best, experiment.title, experiment.gaps, results_dir)
    for source, data in by_source(everything).items():
        suffix = stored_traces.suffix(source)
        for name, choices in experiment.figures.items():
            made = kinds()[name]
            for output in made.files(data, choices) if wanted(made) else ():
                place = Path() if made.at_top else folder
                yield Made(place / f"{output.name}{suffix}", output)
        text = json.dumps(provenance_of(data.traces), indent=2)
        yield Made(folder / f"provenance{suffix}", f"{text}\n".encode())
