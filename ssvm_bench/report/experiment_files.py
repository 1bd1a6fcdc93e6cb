"""From the finished runs of an experiment to its files: figures, and the numbers they show.

.. code-block:: text

    <results_dir>/                 or, if that is committed, its folder `own`: see `folder`
      figures/<experiment>/        figures, their numbers as CSV, tables, provenance.json
      claims.md, claims.csv        the claims table of the experiment that makes a paper's runs
      reference/optima.json        the best values ever seen, see `optima`
      traces/<experiment>/         thinned traces, see `stored_traces`

Files with one name show the same runs, and are written together. Runs that overrides chose have a
folder of their own, for claims as well: ``figures/<experiment>/dataset=usps,seed=0+1/``. A figure
shows one source of data: files on synthetic data have other names, ``…-synthetic``. Where committed
results are, it shows the user's own runs or committed ones, the latter in
``own/figures/<experiment>/runs=committed/``. All files are made from traces: of raw runs if there
are any, else from thinned ones.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, nearest, shown
from ssvm_bench.claims import display, fidelity
from ssvm_bench.config import LOADED_FROM, experiment, registry, shown_as
from ssvm_bench.config.experiment import ExpandedGrid, Experiment
from ssvm_bench.datasets import sources
from ssvm_bench.figures import convergence, crossover, kind, profile, scaling, targets
from ssvm_bench.figures.kind import FigureData, Kind, Output, robust
from ssvm_bench.jobs import experiments
from ssvm_bench.results import loading, older_code, optima, stored_traces
from ssvm_bench.results.folder import (
    COMMITTED,
    MINE,
    ResultsFolder,
    SkippedFiles,
    as_folder,
    existing_folder,
    results_folder,
    sweep,
    write_files,
)
from ssvm_bench.results.provenance import provenance_of
from ssvm_bench.results.table import Run, Runs, grouped

if TYPE_CHECKING:
    from ssvm_bench.config.experiment import Shard
    from ssvm_bench.jobs.backends import Backend
    from ssvm_bench.jobs.experiments import ExperimentOutcome


def kinds() -> dict[str, Kind]:
    """Return name → kind, in the order of their sections on the page of the report."""
    papers = registry.papers()
    found = [
        *convergence.KINDS,
        *(display.kind(papers), fidelity.kind(papers)),
        *(targets.KIND, targets.COMPARISON, crossover.KIND, profile.KIND),
        *(convergence.AGREEMENT, scaling.KIND),
        *(kind for paper in papers.values() for kind in paper.kinds),
    ]
    return {kind.name: robust(kind) for kind in found}


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
    backend: Backend | None = None,
) -> ExperimentOutcome:
    """Execute all missing runs of an experiment; then draw its figures, unless interrupted.

    With a shard, no figures are drawn.

    Parameters
    ----------
    name : str
        An experiment that ``ssvm-bench list experiments`` shows, or the path of a YAML file.
    overrides, config_dirs, shard, backend
        As for `experiments.run`. Errors are those of `experiments.run` and `draw`.
    """
    experiment = load(name, config_dirs)
    outcome = experiments.run(experiment, overrides, config_dirs, shard, backend)
    if shard is not None:
        logger.info(
            "This was shard %s. Merge the folders of all of them with `ssvm-bench merge`; "
            "`ssvm-bench plot %s` then draws the figures.",
            *(shard, name),
        )
    elif not outcome.interrupted:
        with SkippedFiles() as skipped:
            runs = loading.of_configs(outcome.finished, skipped)
            if runs:
                grid = experiment.expanded(overrides, config_dirs)
                where = results_folder(outcome.results_dir, overrides)
                outcome.files = draw(experiment, runs, (), where, (), skipped, grid)
    return outcome


def plot(
    name: str,
    formats: Sequence[str] = (),
    overrides: Sequence[str] = (),
    config_dirs: Sequence[Path] = (),
    whose: str = "",
    log_x: bool | None = None,
    only: Sequence[str] = (),
) -> list[Path]:
    """Draw the figures of an experiment from its finished runs, without executing any.

    Parameters
    ----------
    name, overrides, config_dirs
        As for `make`. Under ``dataset.source=auto``, a dataset's runs on real data are drawn if
        there are any, else those on its synthetic data.
    formats : sequence of str
        Formats as for `kind.files_of`; empty: png and pdf, for photographs png.
    whose : str
        Whose runs to draw, see `ResultsFolder.sides`; empty: the user's own if there are any.
    log_x : bool, optional
        Whether the x axes of curves are logarithmic; None: where short curves need it.
    only : sequence of str
        The kinds of figures to draw, also ones that the experiment does not list; empty: those that
        it lists.

    Returns
    -------
    list of Path
        What was written, see `draw`.

    Raises
    ------
    ConfigError
        If the experiment, an override or a kind is wrong, if there is no such results folder, if
        there are no committed runs to choose, or if the experiment has no tables and only these are
        asked for.
    RunFailedError
        If no run has finished, none can be read, or a file cannot be written.
    """
    experiment = load(name, config_dirs)
    grid = experiment.expanded(overrides, config_dirs)
    known = kinds()
    for each in only:
        if each not in known:
            raise ConfigError(f"There is no figure {shown(repr(each))}. {nearest(each, known)}")
    where = existing_folder(grid.configs[0].results_dir, overrides)
    with SkippedFiles() as skipped:
        renewed = where.made == where.root and not whose  # what is committed, by all runs there
        found = loading.find(experiment, grid, (where,) if renewed else where.sides(whose), skipped)
        missing = [experiments.title(config) for config, run in found.pairs if run is None]
        if not found.runs:
            made_by = name if experiment.runs == experiment.name else experiment.runs
            what_to_do = skipped.problems or [
                f"Make them with `ssvm-bench experiment {made_by}`, and plot with the same "
                "overrides as you run; or choose another folder with results_dir=…"
            ]
            of = {MINE: " of your own", COMMITTED: f" that is {where.origin}"}.get(whose, "")
            raise RunFailedError(
                f"No run{of} of the experiment {experiment.name} has finished in {where.root}"
                f"{' and can be read' * bool(skipped.problems)}. {what_to_do[0]}"
            )
        if missing:
            named = missing[:NAMED] + ["…"] * (len(missing) > NAMED)
            logger.warning(
                "%s of %s runs are missing: %s.", len(missing), len(found.pairs), "; ".join(named)
            )
        if left_out := older_code.left_out(found.older):
            logger.warning("%s", left_out)
        if not whose and found.where.whose == MINE and found.has_others:
            logger.info(
                "These are your own runs. `ssvm-bench plot %s --runs committed` draws those "
                "that are %s.",
                name,
                where.origin,
            )
        kept, of_side = found.stored.values(), where._replace(whose=found.where.whose)
        return draw(experiment, found.runs, kept, of_side, formats, skipped, grid, log_x, only)


def draw(
    experiment: Experiment,
    runs: Iterable[Run],
    kept: Iterable[Run],
    results_dir: Path | ResultsFolder,
    formats: Sequence[str],
    skipped: SkippedFiles | None,
    grid: ExpandedGrid | None = None,
    log_x: bool | None = None,
    only: Sequence[str] = (),
) -> list[Path]:
    """Write all files of an experiment; real and synthetic data have separate files.

    Everything is drawn from thinned traces, so that the same files can be drawn without raw runs.
    Files of an earlier drawing that these runs do not give are named in a warning.

    Parameters
    ----------
    experiment : Experiment
        What to draw.
    runs : iterable of Run
        Its finished runs.
    kept : iterable of Run
        Traces that are stored already; the other runs are stored first.
    results_dir : Path or ResultsFolder
        The results folder.
    formats : sequence of str
        As for `plot`.
    skipped : SkippedFiles or None
        Collects files and other runs in the results folder that cannot be read; None: raise errors.
    grid : ExpandedGrid, optional
        The runs of the experiment that were asked for; by default those of its file.
    log_x : bool, optional
    only : sequence of str
        As for `plot`.

    Returns
    -------
    list of Path
        Figures, tables, their numbers and provenance; the folders of thinned traces that were
        written; the file with the best values.

    Raises
    ------
    ConfigError
        If only tables are asked for, and the experiment has none.
    RunFailedError
        If a file cannot be written.
    """
    if only:
        known = kinds()
        usual = {name: tuple(known[name].chosen) or known[name].choices.names for name in only}
        listed = {name: experiment.figures.get(name, usual[name]) for name in only}
        experiment = replace(experiment, figures=listed)
    where = as_folder(results_dir)
    sweep(where)
    stored = {run.own_folder: run for run in kept}
    of_datasets = grouped(runs, lambda run: run.dataset).values()
    chosen = {run.own_folder: run for members in of_datasets for run in members}
    raw = [run for run in chosen.values() if stored.get(run.own_folder) is not run]
    origins = grid.origin_of if grid else {}
    places = grouped(raw, lambda run: origins.get(run.own_folder, experiment.runs))
    hashes = {folder.parent.name for folder in chosen}
    for name, members in places.items():
        thinned = stored_traces.write(members, where, name, skipped, hashes)
        chosen.update({run.own_folder: run for run in thinned})
    record = where.made / optima.FILE
    before = record.stat().st_mtime_ns if record.exists() else 0
    drawn = Runs(chosen.values(), optima.reference([*chosen.values()], where, skipped))
    committed = f"runs={COMMITTED}" * (where.whose == COMMITTED and where.made != where.root)
    variant = ",".join(filter(None, (grid.variant if grid else "", committed)))
    made = [*outputs(experiment, drawn, where.root, variant=variant, log_x=log_x)]
    if only and all(output.json for _, output in made):
        logger.warning("%s: these runs give no %s.", experiment.name, " and no ".join(only))
    if kind.TABLES in formats and not any(output.tables for _, output in made):
        said = f"{experiment.name} has no tables, so that there is nothing to write as tex"
        if set(formats) == {kind.TABLES}:
            raise ConfigError(f"{said}. Its figures can be {', '.join(kind.PICTURES)}.")
        logger.warning("%s.", said)
    contents: dict[Path, bytes] = {}
    for place, output in made:
        contents |= kind.files_of(output, where.made / place, formats)
    folder = where.made / "figures" / experiment.name / variant
    if experiment.digest and of_own_experiment(folder, where.root) not in ("", experiment.digest):
        logger.warning(
            "%s: the former figures are of another %s.yaml, or of that file before it changed, and "
            "are replaced. Give experiments different names to keep the figures of each.",
            folder,
            experiment.name,
        )
    write_files(contents, where.root)
    if not only:
        _warn_of_others(folder, contents, drawn)
    if where.notice:  # files are where a user would not look for them
        logger.info(where.notice)
    changed = [record] * (record.exists() and record.stat().st_mtime_ns != before)
    return [*contents, *(where.made / "traces" / name for name in places), *changed]


def of_own_experiment(folder: Path, root: Path, key: str = "experiment") -> str:
    """Return the digest or the ``title`` of the user's experiment drawn in a folder, or nothing."""
    for path in sorted(folder.glob("provenance*.json")):
        with suppress(OSError, ValueError, AttributeError):
            if value := json.loads(files.read(path, within=root)).get(key):
                return str(value)
    return ""


def _warn_of_others(folder: Path, written: Iterable[Path], runs: Runs) -> None:
    """Warn of files in a folder that are named like those just written, and were not."""
    drawn = {stored_traces.suffix(run.source) for run in runs}
    marks = {stored_traces.suffix(source) for source in LOADED_FROM} - {""}

    def source_of(path: Path) -> str:
        return next((mark for mark in marks if path.stem.endswith(mark)), "")

    ends = {*(f".{end}" for end in (*kind.PICTURES, kind.TABLES)), ".csv", ".md"}
    there = {path for path in folder.iterdir() if path.suffix in ends and source_of(path) in drawn}
    if others := sorted(path.name for path in there - {*written}):
        logger.warning(
            "%s: %s %s not drawn now, and may show other runs. Delete what you do not need.",
            folder,
            ", ".join(others),
            "was" if len(others) == 1 else "were",
        )


def by_source(data: FigureData) -> dict[str, FigureData]:
    """Return source → input of the figures on its data."""

    def source_of(run: Run) -> str:
        return shown_as(run.source)

    together = data.runs.groups(source_of)
    return {
        source: data._replace(
            runs=runs, others=Runs(run for run in data.runs if source_of(run) != source)
        )
        for source, runs in together.items()
    }


def outputs(
    experiment: Experiment,
    runs: Runs,
    results_dir: Path,
    wanted: Callable[[Kind], bool] = lambda _: True,
    variant: str = "",
    log_x: bool | None = None,
) -> Iterator[tuple[Path, Output]]:
    """Yield all outputs of an experiment; real and synthetic data have separate ones.

    Before each is the path of its files below the results folder, without suffix.

    Parameters
    ----------
    experiment : Experiment
        What to draw.
    runs : Runs
        Its runs, as they are stored, with the best values known.
    results_dir : Path
        The folder with the numbers that are not from runs.
    wanted : callable
        Returns whether to make a kind of figure.
    variant : str
        What distinguishes the runs from those of the experiment's file.
    log_x : bool, optional
        As for `plot`.
    """
    folder = Path("figures", experiment.name, variant)
    papers = registry.papers().values()
    of_paper = not variant and any(experiment.name in paper.experiments for paper in papers)
    about = experiment.title, experiment.gaps, results_dir
    everything = FigureData(runs, *about, log_x=log_x, stands_for=experiment.stands_for)
    for source, data in by_source(everything).items():
        suffix = stored_traces.suffix(source)
        for name, choices in experiment.figures.items():
            made = kinds()[name]
            for output in made.files(data, choices) if wanted(made) else ():
                place = Path() if made.at_top and of_paper else folder
                yield place / f"{output.name}{suffix}", output
        own = {"experiment": experiment.digest, "title": experiment.title}
        of = own if experiment.digest else {}
        text = json.dumps({**of, **provenance_of(data.runs)}, indent=2)
        place = folder / f"provenance{suffix}"
        yield place, Output(place.name, json=f"{text}\n".encode())
