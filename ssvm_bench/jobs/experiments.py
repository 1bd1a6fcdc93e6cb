"""Experiments: all runs of a grid, one after the other or several at once.

A finished run is not executed again. So the same command completes an experiment that was
interrupted, or in which runs failed. Several processes on one results folder share the work: a run
that another process executes is skipped, and checked again at the end.

`config.experiment` reads experiment files; `report.experiment_files` draws figures of finished
runs.
"""

from __future__ import annotations

import itertools
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.experiment import Experiment, Shard, along_paths, dependency_levels
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.jobs import slurm
from ssvm_bench.jobs.backends import Backend, Local
from ssvm_bench.jobs.call import Call, asked_for, remove, sweep
from ssvm_bench.jobs.status import Durations, finished_before
from ssvm_bench.jobs.supervisor import Ended, Supervisor
from ssvm_bench.results import words
from ssvm_bench.runs import Outcome
from ssvm_bench.runs.resolved import check_extras

logger = logging.getLogger(__name__)


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
    backend: Backend | None = None,
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
    backend : Backend, optional
        Starts workers; by default, this process executes one run after the other.

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
        If the backend cannot execute runs.
    """
    configs = experiment.configs(overrides, config_dirs)
    if shard is not None:
        configs = shard.of(configs)
    result = ExperimentOutcome(configs)
    sweep(result.results_dir)
    with suppress(RunFailedError):  # where SLURM does not answer, its jobs may be at work
        slurm.sweep(result.results_dir)
    _look(result)
    if backend is None or isinstance(backend, Local):  # other nodes may have other packages
        check_extras(config for k, config in enumerate(configs) if k not in result.outcomes)
    if result.outcomes:
        logger.info("%s of %s had finished before.", len(result.outcomes), words.runs(len(configs)))
    if backend is None:
        for wave in dependency_levels(configs):
            _look(result)
            _in_turn({k: configs[k] for k in wave if k not in result.outcomes}, result)
            if result.interrupted:
                break
    elif missing := [k for k in range(len(configs)) if k not in result.outcomes]:
        _at_once(asked_for(experiment, overrides, config_dirs, shard), result, missing, backend)
    if result.interrupted:
        _look(result)  # some processes may have ended just after writing their files
        how = "the same command, without force=true," if configs[0].force else "the same command"
        of_all = f"{result.failed} of {words.runs(len(configs))} missing"
        logger.warning("Interrupted; %s: %s resumes them.", of_all, how)
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
    asked: Mapping[str, Any], result: ExperimentOutcome, missing: Sequence[int], backend: Backend
) -> None:
    """Execute several runs at once, by workers."""
    left, total = {k: result.configs[k] for k in missing}, len(result.configs)
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
            seconds, eta = durations.left(along_paths(left.values()), backend.count), ""
            if left and seconds:
                eta = f"; {words.runs(len(left))} left, ETA {words.minutes(seconds)}"
            logger.info(
                "%s %s (%s): iteration %s, gap %s%s",
                *(title(config), answer.status, answer.stop_reason),
                answer.summary.get("iteration", 0),
                *(words.number(answer.summary.get("gap"), ".2g", "-"), eta),
            )

    with closing(backend):
        backend.open(len(missing))
        about = {name: getattr(backend, name) for name in ("beside", "retries", "outlives")}
        call = Call.issue(asked, result.configs, missing, backend=backend.name, **about)
        try:
            with call.led():
                result.interrupted = not Supervisor(call, backend, started, ended).supervise()
        finally:
            if not backend.stays:
                remove(call.path)


def title(config: RunConfig) -> str:
    """Return the name of a run in messages."""
    lam = "" if config.lam is None else f" lam={config.lam}"
    return f"{config.dataset.name} {config.solver.name} seed={config.seed}{lam}"
