"""Experiments: all runs of a grid, one after the other or several at once, and their status.

A finished run is not executed again. So the same command completes an experiment that was
interrupted, or in which runs failed. Several processes on one results folder share the work: a run
that another process executes is skipped, and checked again at the end.

The status of a run is

==========  ================================================================================
``done``    it has finished, or a longer run that begins with it has
``running`` a process works on it
``failed``  the last attempt ended in an error in one of its iterations, or diverged
``missing`` none of these; also a run that was interrupted, and one that failed before its
            first iteration or with its process
==========  ================================================================================

`config.experiment` reads experiment files; `report.experiment_files` draws figures of finished
runs.
"""

from __future__ import annotations

import itertools
import logging
import statistics
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.config import LOCAL, registry
from ssvm_bench.config.experiment import Experiment, Shard, along_paths, dependency_levels
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.sources import status as dataset_status
from ssvm_bench.jobs import tokens
from ssvm_bench.jobs.dispatch import Dispatcher, Ended
from ssvm_bench.results import budgets, run_folder, trace, words
from ssvm_bench.runs import Outcome
from ssvm_bench.runs.requirements import check_extras

logger = logging.getLogger(__name__)

STATES = ("done", "running", "failed", "missing")


@dataclass
class ExperimentOutcome:
    """The outcome of an experiment.

    Attributes
    ----------
    configs : list of RunConfig
        Its runs.
    outcomes : dict
        Index of a run in `configs` → its outcome, finished or not.
    failures : dict
        Index of a run → why it failed.
    tracebacks : dict
        Index of a run that failed → its traceback, from whichever process.
    interrupted : bool
        Whether it was interrupted before all runs had been processed.
    files : list of Path
        What was written of the runs by `ssvm_bench.report.experiment_files.draw`.
    """

    configs: list[RunConfig]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    tracebacks: dict[int, str] = field(default_factory=dict)
    interrupted: bool = False
    files: list[Path] = field(default_factory=list)

    def fail(self, number: int, error: RunFailedError) -> None:
        """Record that a run failed, and why."""
        self.failures[number], self.tracebacks[number] = str(error), error.traceback
        logger.warning("%s failed: %s", title(self.configs[number]), error)

    @property
    def results_dir(self) -> Path:
        """Root of the runs' files."""
        return self.configs[0].results_dir

    @property
    def runs(self) -> list[tuple[RunConfig, Outcome]]:
        """Every run with an outcome, in order."""
        return [(self.configs[k], self.outcomes[k]) for k in sorted(self.outcomes)]

    @property
    def finished(self) -> list[RunConfig]:
        """The finished runs and those along their paths, with the sources of their data."""
        known = [config.with_source(outcome.summary["source"]) for config, outcome in self._done]
        return along_paths(known)

    @property
    def failed(self) -> int:
        """Number of runs that are not finished."""
        return len(self.configs) - len(self._done)

    @property
    def _done(self) -> list[tuple[RunConfig, Outcome]]:
        done = ("finished", "skipped")
        return [(config, outcome) for config, outcome in self.runs if outcome.status in done]


def run(
    experiment: Experiment,
    overrides: Sequence[str] = (),
    config_dirs: Sequence[Path] = (),
    shard: Shard | None = None,
    dispatcher: Dispatcher | None = None,
) -> ExperimentOutcome:
    """Execute all missing runs of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The content of its file.
    overrides : sequence of str
        For every run; they replace options of the experiment.
    config_dirs : sequence of Path
        Further folders of config files.
    shard : Shard, optional
        Which of the runs; all by default.
    dispatcher : Dispatcher, optional
        Executes several runs at once; by default, this process executes one after the other.

    Returns
    -------
    ExperimentOutcome
        A run that fails does not stop the others; an interrupt does.

    Raises
    ------
    ConfigError
        If an override or a combination of them is wrong, or if a package that a run takes is not
        installed: then no run has begun.
    RunFailedError
        If the dispatcher cannot execute runs.
    """
    configs = experiment.configs(overrides, config_dirs)
    if shard is not None:
        configs = shard.of(configs)
    result = ExperimentOutcome(configs)
    tokens.sweep(result.results_dir)
    _look(result)
    if dispatcher is None or dispatcher.backend == LOCAL:  # other nodes may have other packages
        check_extras(config for k, config in enumerate(configs) if k not in result.outcomes)
    if result.outcomes:
        logger.info("%s of %s had finished before.", len(result.outcomes), words.runs(len(configs)))
    for wave in dependency_levels(configs):
        _look(result)
        waiting = {k: configs[k] for k in wave if k not in result.outcomes}
        if dispatcher is None:
            _in_turn(waiting, result)
        elif waiting:
            _at_once(waiting, result, dispatcher)
        if result.interrupted:
            break
    if result.interrupted:
        _look(result)  # some processes may have ended just after writing their files
        how = "the same command, without force=true," if configs[0].force else "the same command"
        missing = f"{result.failed} of {words.runs(len(configs))} missing"
        logger.warning("Interrupted; %s: %s goes on.", missing, how)
    return result


def _look(result: ExperimentOutcome) -> None:
    """Add the outcomes of runs that have finished before."""
    for number, config in enumerate(result.configs):
        before = None if number in result.outcomes else finished_before(config)
        if before is not None:
            result.outcomes[number] = before


def _in_turn(waiting: Mapping[int, RunConfig], result: ExperimentOutcome) -> None:
    """Execute runs one after the other, in this process."""
    from ssvm_bench.runs import runner, terminal

    held: dict[int, RunConfig] = {}

    def in_the_end() -> Iterator[tuple[int, RunConfig]]:
        if held:
            logger.info("Others are at work on %s; waiting for them.", words.runs(len(held)))
        yield from held.items()

    for number, config in itertools.chain(waiting.items(), in_the_end()):
        if not config.quiet:
            logger.info("run %s/%s %s", number + 1, len(result.configs), title(config))
        try:
            with terminal.make_display(config.quiet) as display:
                outcome = runner.run(config, display, wait=number in held)
        except RunFailedError as error:
            error.traceback = traceback.format_exc()
            result.fail(number, error)
            continue
        if outcome.status == "held":
            held[number] = config
            continue
        result.outcomes[number] = outcome
        if outcome.status == "interrupted":
            result.interrupted = True
            return


def _at_once(
    waiting: Mapping[int, RunConfig], result: ExperimentOutcome, dispatcher: Dispatcher
) -> None:
    """Execute several runs at once, each in a process of its own."""
    left, total = dict(waiting), len(result.configs)
    begun = itertools.count(len(result.outcomes) + 1)
    durations = Durations((config, before.summary) for config, before in result.runs)

    def started(number: int) -> None:
        config = result.configs[number]
        if not config.quiet:
            logger.info("run %s/%s %s …", next(begun), total, title(config))

    def ended(number: int, answer: Ended) -> None:
        config = result.configs[number]
        if not isinstance(answer, RunFailedError) and answer.status == "interrupted":
            result.outcomes[number] = answer
            logger.info("%s interrupted: its trace so far is in %s", title(config), answer.folder)
            return
        del left[number]
        if isinstance(answer, RunFailedError):
            result.fail(number, answer)
            return
        result.outcomes[number] = answer
        durations.add(config, answer.summary)
        if not config.quiet:
            seconds, eta = durations.left(along_paths(left.values()), dispatcher.at_once), ""
            if left and seconds:
                eta = f"; {words.runs(len(left))} left, ETA {words.minutes(seconds)}"
            logger.info(
                "%s %s (%s): iteration %s, gap %s%s",
                *(title(config), answer.status, answer.stop_reason),
                answer.summary.get("iteration", 0),
                *(words.number(answer.summary.get("gap"), ".2g", "-"), eta),
            )

    result.interrupted = not dispatcher.make(waiting, started, ended)


def title(config: RunConfig) -> str:
    """Return the name of a run in messages."""
    lam = "" if config.lam is None else f" lam={config.lam}"
    return f"{config.dataset.name} {config.solver.name} seed={config.seed}{lam}"


# ---- status -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunStatus:
    """Where one run stands.

    Attributes
    ----------
    config : RunConfig
        Which run.
    state : str
        One of ``STATES``.
    folder : Path
        Folder of its files; for a failed run, of its partial trace and the traceback.
    damage : str
        Why its stored files cannot be read; such a run is executed again.
    summary : mapping
        Content of ``summary.json`` if the run is done, else empty.
    """

    config: RunConfig
    state: str
    folder: Path
    damage: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """Return the status as plain values."""
        return {
            **{group: getattr(self.config, group).name for group in ("dataset", "solver")},
            "lam": self.config.lam,
            "seed": self.config.seed,
            "state": self.state,
            "folder": str(self.folder),
            "damage": self.damage,
            "summary": dict(self.summary),
        }


def survey(configs: Iterable[RunConfig]) -> list[RunStatus]:
    """Return the status of each run, and of each run along its path, from their folders."""
    return [_status(config) for config in along_paths(configs)]


def _status(config: RunConfig) -> RunStatus:
    """Return the status of a run; if its source is not known yet, the most advanced one."""
    found = [_state(config.with_source(source)) for source in _sources(config)]
    return min(found, key=lambda status: (STATES.index(status.state), not status.damage))


def _state(config: RunConfig) -> RunStatus:
    before = budgets.find_run(config)
    if before is not None:
        return RunStatus(config, "done", before.folder, summary=before.end)
    folder = config.folder
    problem = next(filter(None, map(trace.damage, config.folders)), "")
    if run_folder.is_locked(folder):
        return RunStatus(config, "running", folder)
    partial = run_folder.partial_folder(folder)
    with suppress(SsvmBenchError):
        if partial.is_dir() and trace.read_summary(partial)["stop_reason"] != "interrupted":
            return RunStatus(config, "failed", partial, problem)
    return RunStatus(config, "missing", folder, problem)


def _sources(config: RunConfig) -> tuple[str, ...]:
    """Return the possible sources of a run's data, as far as known without loading them."""
    sources = config.sources()
    if config.source != "auto":
        return sources
    with suppress(SsvmBenchError):  # of a dataset that has no raw file
        if dataset_status(config.dataset.kind).state != "missing":
            return sources[:-1]
    return sources


def finished_before(config: RunConfig) -> Outcome | None:
    """Return the outcome of a run whose path has finished, if that is certain; load no data.

    It is never certain for a dataset of another package: its data may have changed since.
    """
    sources = _sources(config)
    if len(sources) > 1 or config.force or not registry.is_own("dataset", config.dataset.kind):
        return None
    config = config.with_source(sources[0])
    found = [budgets.find_run(stage) for stage in config.path_steps()]
    if found[-1] is None or not all(found):
        return None
    return Outcome.of("skipped", found[-1])


class Durations:
    """Estimates the seconds from the start of a run to its end, from finished runs of its kind.

    Parameters
    ----------
    runs : iterable of (RunConfig, summary)
        Runs that have finished.
    """

    def __init__(self, runs: Iterable[tuple[RunConfig, Mapping[str, Any]]] = ()) -> None:
        self._seen: dict[tuple[str, str], list[float]] = {}
        for config, summary in runs:
            self.add(config, summary)

    def add(self, config: RunConfig, summary: Mapping[str, Any]) -> None:
        """Add a run that has finished."""
        seconds = summary.get("wall_time")
        if seconds is not None:
            self._seen.setdefault(_kind(config), []).append(float(seconds))

    def left(self, configs: Sequence[RunConfig], jobs: int) -> float | None:
        """Return the seconds that runs will take, ``jobs`` at a time; None if that is unknown."""
        each = [self._of(config) for config in configs]
        known = [seconds for seconds in each if seconds is not None]
        if len(known) < len(each):
            return None
        return max(sum(known) / min(jobs, len(known)), *known) if known else 0.0

    def _of(self, config: RunConfig) -> float | None:
        """Return the median of runs with that dataset and solver, else ``budget.max_seconds``."""
        seen = self._seen.get(_kind(config))
        return statistics.median(seen) if seen else config.budget.max_seconds


def _kind(config: RunConfig) -> tuple[str, str]:
    return config.dataset.name, config.solver.name


def lines(found: Sequence[RunStatus], jobs: int) -> list[str]:
    """Return the lines to print: datasets by solvers, the sum, and the failed runs.

    Parameters
    ----------
    found : sequence of RunStatus
        As `survey` returns them.
    jobs : int
        Number of runs at once, for the estimate of the time left.
    """
    solvers = list(dict.fromkeys(run.config.solver.name for run in found))
    cells = [["", *solvers]]
    for dataset in dict.fromkeys(run.config.dataset.name for run in found):
        kinds = [(dataset, solver) for solver in solvers]
        counts = [_count([run for run in found if _kind(run.config) == kind]) for kind in kinds]
        cells.append([dataset, *counts])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    text += ["", f"{_count(found)}, of {len(found)} runs{_eta(found, jobs)}"]
    return text + [f"failed: {run.folder}" for run in found if run.state == "failed"]


def _count(found: Sequence[RunStatus]) -> str:
    counts = {state: sum(run.state == state for run in found) for state in STATES}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "-"


def _eta(found: Sequence[RunStatus], jobs: int) -> str:
    done = [run for run in found if run.state == "done"]
    durations = Durations((run.config, run.summary) for run in done)
    seconds = durations.left([run.config for run in found if run.state != "done"], jobs)
    if seconds is None:
        return "; ETA unknown until a run of each kind is done"
    return f"; ETA {words.minutes(seconds)} with --jobs {jobs}" if seconds else ""
