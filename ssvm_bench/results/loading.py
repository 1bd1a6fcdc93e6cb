"""Loading runs: those of a results folder or of an experiment, raw or as stored traces.

.. code-block:: text

    names(where)         datasets and solvers, by the names of files; none is read
    each(where)          each run folder and file of stored traces, with its runs or what is wrong
    load(where)          the runs of a results folder, each once
    stored(where, name)  the traces that are stored with an experiment
    find(experiment, …)  the finished runs of an experiment, of the first side that has some
    unfinished(where)    what is no finished run, and why

A raw run takes precedence over its stored trace. Committed results consist of stored traces only.
All readers check the files against their checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import LOADED_FROM
from ssvm_bench.config.experiment import ExpandedGrid, Experiment, along_paths
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.results import older_code, stored_traces
from ssvm_bench.results.budgets import find_run
from ssvm_bench.results.folder import COMMITTED, ResultsFolder, SkippedFiles, as_folder
from ssvm_bench.results.run_folder import PARTIAL, TRACEBACK
from ssvm_bench.results.table import Run, Runs, grouped
from ssvm_bench.results.trace import (
    damage,
    find_runs,
    is_finished,
    read_run,
    read_summary,
    read_when_asked,
)

REASON_LENGTH = 400


class Source(NamedTuple):
    """The folder of a raw run, or a file of stored traces, as it was read.

    Attributes
    ----------
    path : Path
    name : str
        The name under which the traces are stored; empty for a raw run.
    runs : sequence of Run
    problem : RunFailedError, optional
        Why it cannot be read.
    """

    path: Path
    name: str
    runs: Sequence[Run] = ()
    problem: RunFailedError | None = None


def names(
    where: ResultsFolder, wanted: Callable[[str], bool] = lambda _: True, raw: bool = True
) -> set[str]:
    """Return ``<dataset>-<solver>`` of all that `each` would read, which has the parameters."""
    folders = find_runs(where.root) if raw and where.whose != COMMITTED else ()
    found = {"-".join(folder.parts[-4:-2]) for folder in folders}
    for name in filter(wanted, stored_traces.names(where)):
        found |= {*map(stored_traces.named, stored_traces.files_of(where, name))}
    return found


def each(
    where: ResultsFolder, wanted: Callable[[str], bool] = lambda _: True, raw: bool = True
) -> Iterator[Source]:
    """Yield the finished runs of a results folder, then its stored traces, file by file.

    Parameters
    ----------
    where : ResultsFolder
        The folder, perhaps restricted to one side.
    wanted : callable
        Whether to read the traces that are stored under a name.
    raw : bool
        Whether to read raw runs.
    """

    def read(path: Path, name: str, by: Callable[[Path], Sequence[Run]]) -> Source:
        try:
            return Source(path, name, by(path))
        except RunFailedError as error:
            return Source(path, name, problem=error)

    for folder in find_runs(where.root) if raw and where.whose != COMMITTED else ():
        yield read(folder, "", lambda path: [read_run(path)])
    for name in filter(wanted, stored_traces.names(where)):
        for path in stored_traces.files_of(where, name):
            yield read(path, name, partial(stored_traces.read_file, results_dir=where.root))


class Loaded(NamedTuple):
    """The runs of a results folder: raw ones, those that are only stored, and what is damaged.

    Runs of ``older`` code are not among them (:mod:`ssvm_bench.results.older_code`).
    """

    raw: Runs
    stored: Runs
    damaged: Sequence[Source]
    older: Runs = Runs()

    @property
    def runs(self) -> Runs:
        """All runs."""
        return self.raw + self.stored


def load(
    where: ResultsFolder, wanted: Callable[[str], bool] = lambda _: True, raw: bool = True
) -> Loaded:
    """Return the runs of a results folder, each once; the parameters are those of `each`."""
    sources = [*each(where, wanted, raw)]
    of = {run.own_folder: run for source in sources if not source.name for run in source.runs}
    stored: dict[tuple[str, Path], Run] = {}
    for source in (source for source in sources if source.name):
        for run in source.runs:
            if run.own_folder not in of:
                stored.setdefault((source.path.name, run.own_folder), run)
    damaged = [source for source in sources if source.problem]
    older = older_code.among([*of.values(), *stored.values()])
    gone = {id(run) for run in older}
    as_written, as_stored = (
        Runs(run for run in runs if id(run) not in gone) for runs in (of.values(), stored.values())
    )
    return Loaded(as_written, as_stored, damaged, Runs(older))


def stored(
    where: Path | ResultsFolder, name: str, skipped: SkippedFiles | None = None
) -> list[Run]:
    """Return the traces that are stored under a name; an empty list if there are none.

    Parameters
    ----------
    where : Path or ResultsFolder
    name : str
        Name of an experiment, or of a folder below.
    skipped : SkippedFiles, optional
        Collects damaged files.

    Raises
    ------
    RunFailedError
        If a file is damaged, and ``skipped`` is not given.
    """
    found = load(as_folder(where), name.__eq__, raw=False)
    for problem in (source.problem for source in found.damaged if source.problem):
        if skipped is None:
            raise problem
        skipped.add(problem)
    return [*found.stored]


class Failure(NamedTuple):
    """What is no finished run: its path, what it is, its iterations, if known, and why."""

    path: Path
    what: str
    iterations: int | None
    reason: str


UNREADABLE = "cannot be read"


def unfinished(root: Path) -> Iterator[Failure]:
    """Yield the partial traces below a results folder, and run folders that lack a file."""
    for folder in sorted(root.glob("runs/*/*/*/seed=*")):
        if folder.name.endswith(PARTIAL):
            yield Failure(folder, "partial trace", *_end(folder))
        elif not is_finished(folder):
            try:
                read_run(folder)
            except RunFailedError as error:
                yield Failure(folder, UNREADABLE, None, str(error))


def _end(folder: Path) -> tuple[int | None, str]:
    """Return the number of iterations of a partial trace, and why it ended."""
    try:
        summary = read_summary(folder)
    except RunFailedError as error:
        return None, str(error)
    reason = str(summary.get("stop_reason"))
    with suppress(OSError):
        text = files.read(folder / TRACEBACK, within=folder).decode(errors="replace")
        reason += f": {(text.strip().splitlines() or [''])[-1][:REASON_LENGTH]}"
    return summary.get("iteration"), reason


# ---- the runs of an experiment ----------------------------------------------------------------

Stored: TypeAlias = Callable[[ResultsFolder, str, SkippedFiles], list[Run]]
"""Returns the traces stored under a name in a results folder."""


class ExperimentRuns(NamedTuple):
    """The runs of an experiment in a results folder, all of one side.

    Attributes
    ----------
    where : ResultsFolder
        The folder, restricted to that side.
    stored : dict
        Own folder of a run → its stored trace.
    pairs : list of (RunConfig, Run or None)
        Each run that the experiment asks for, if it has finished.
    has_others : bool
        Whether the other side has traces of the experiment, too.
    older : sequence of Run
        Raw runs beside those with a plug-in, by other code than it has now.
    """

    where: ResultsFolder
    stored: Mapping[Path, Run]
    pairs: Sequence[tuple[RunConfig, Run | None]]
    has_others: bool = False
    older: Sequence[Run] = ()

    @property
    def runs(self) -> Runs:
        """The finished runs."""
        return Runs(run for _, run in self.pairs if run is not None)


def find(
    experiment: Experiment,
    grid: ExpandedGrid,
    sides: Sequence[ResultsFolder],
    skipped: SkippedFiles,
    read: Stored = stored,
) -> ExperimentRuns:
    """Return the finished runs of an experiment, of the first side that has some.

    Parameters
    ----------
    experiment, grid
        The experiment, and its runs.
    sides : sequence of ResultsFolder
        As `ResultsFolder.sides` returns them.
    skipped : SkippedFiles
        Collects files that cannot be read.
    read : callable
        Reads stored traces, as `stored` does.
    """
    configs = along_paths(grid.configs)
    names = {name for of in experiment.origins for name in (of, grid.within(of))}
    first, *others = sides

    def of_side(side: ResultsFolder) -> ExperimentRuns:
        runs = (run for name in sorted(names) for run in read(side, name, skipped))
        kept = {run.own_folder: run for run in runs}
        pairs = finished(configs, kept, None if side.whose == COMMITTED else skipped)
        return ExperimentRuns(side, kept, pairs)

    found = of_side(first)
    if not found.runs:
        return next(filter(lambda of: of.runs, map(of_side, others)), found)
    both = any(stored_traces.files_of(side, name) for side in others for name in names)
    return found._replace(has_others=both, older=_older(found, configs))


def _older(found: ExperimentRuns, configs: Sequence[RunConfig]) -> list[Run]:
    """Return the raw runs of a side's plug-ins that are not of their code of today."""
    if found.where.whose == COMMITTED:
        return []
    names = {(of.dataset.name, of.solver.name) for of in configs if of.plug_ins()}
    shown = {run.folder for run in found.runs}
    candidates = []
    for folder in (
        folder for name in sorted(names) for folder in find_runs(found.where.root, *name)
    ):
        if folder not in shown:
            with suppress(RunFailedError):  # such a run is named where it is to be shown
                candidates.append(read_when_asked(folder))
    return older_code.beside(found.runs, candidates)


def of_configs(configs: Iterable[RunConfig], skipped: SkippedFiles) -> Runs:
    """Return the raw runs of some configs, those that have finished."""
    return Runs(run for config in configs if (run := find_run(config, skipped)))


def finished(
    configs: Sequence[RunConfig], stored: Mapping[Path, Run], skipped: SkippedFiles | None = None
) -> list[tuple[RunConfig, Run | None]]:
    """Return the configs with their finished runs; on real data if the dataset has such runs.

    Parameters
    ----------
    configs : sequence of RunConfig
    stored : mapping
        Own folder of a run → its stored trace, which replaces a missing raw run.
    skipped : SkippedFiles, optional
        Collects raw runs that cannot be read; None: only stored traces count.
    """
    pairs: list[tuple[RunConfig, Run | None]] = []
    for some in grouped(configs, lambda config: config.dataset.name).values():
        found: list[Run | None] = []
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


def _run(config: RunConfig, stored: Mapping[Path, Run], skipped: SkippedFiles | None) -> Run | None:
    # fast path: there are no raw runs
    if skipped is None or not (config.results_dir / "runs" / config.dataset.name).is_dir():
        return stored.get(config.own_folder)
    found = find_run(config, skipped)
    # a stored trace does not replace a damaged finished run, which may be newer
    if found is None and not any(is_finished(place) and damage(place) for place in config.folders):
        return stored.get(config.own_folder)
    return found
