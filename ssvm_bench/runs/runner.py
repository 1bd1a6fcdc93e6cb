"""One run, from its configuration to its files.

During a run, its trace so far and its state (:mod:`ssvm_bench.runs.checkpoints`) are written to
disk: ``kill -9`` costs the rows of the last ten seconds, and what was computed since the last
checkpoint. The next start of the same run resumes from the checkpoint. A run with a larger budget
resumes from the end, if the final state was kept. A run with a smaller budget is read from the
trace (:mod:`ssvm_bench.results.budgets`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssvm_bench.base import memory
from ssvm_bench.base.errors import RunFailedError, contained
from ssvm_bench.config import LOCAL
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.progress import silence
from ssvm_bench.results.budgets import find_run
from ssvm_bench.results.run_folder import HeldError, lock
from ssvm_bench.results.table import Run
from ssvm_bench.results.trace import damage, is_whole, read_metadata, remove_superseded
from ssvm_bench.runs import Outcome, checkpoints, components
from ssvm_bench.runs.components import load_dataset, warm_up
from ssvm_bench.runs.extras import check_extras
from ssvm_bench.runs.loop import loop
from ssvm_bench.runs.path_step import PathStep
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.requirements import check_data, check_oracle, check_requirements
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream

logger = logging.getLogger(__name__)


@contained("The run failed")
def run(
    config: RunConfig,
    display: Display,
    concurrent_runs: int = 0,
    wait: bool = True,
    engine: str = LOCAL,
) -> Outcome:
    """Execute one run and write its files, unless it has finished before; first those of its path.

    Parameters
    ----------
    config : RunConfig
        Which run.
    display : Display
        Shows the progress.
    concurrent_runs : int
        Number of other runs that are executed at the same time, for the trace's metadata.
    wait : bool
        Whether to wait for another process that works on the same run.
    engine : str
        Backend that started this process, for the metadata: see :mod:`ssvm_bench.jobs`.

    Raises
    ------
    ConfigError
        If dataset, oracle and solver do not fit together.
    RunFailedError
        If the data cannot be loaded, the run fails, or its files cannot be written; or if the run
        has finished before, on other data.
    """
    begin = time.perf_counter()
    memory.give_back()
    check_requirements(config)
    check_extras([config])
    with silence(config.quiet):
        rows = components.chunk_rows(config)
        dataset = load_dataset(config.dataset, rows)
    check_data(config, dataset)
    terms = components.build_oracle(config.oracle, config.dataset, rows)
    check_oracle(config, terms)
    prior = components.prior_of(config, terms.d)
    config = config.with_source(dataset.source)
    caller = components.caller_of(config, dataset.fingerprint)
    if caller is not None:
        terms = terms.called_by(caller)
    stages = [(stage, stage.lam_of(dataset.n)) for stage in config.path_steps()]
    logger.debug("Fingerprint of %s: %s", dataset.name, dataset.fingerprint)
    with ExitStack() as locks:
        for stage, _ in stages:
            logger.debug("Files: %s", stage.folder)
            try:
                locks.enter_context(lock(stage.folder, wait))
            except HeldError:
                return Outcome("held", "held", config.folder, {})
        if not config.force:
            places = [folder for stage, _ in stages for folder in stage.folders]
            for damaged in filter(None, map(damage, places)):
                logger.warning("%s It is made again.", damaged)
            for folder in places:
                _check_same_data(folder, dataset)
        before = [None if config.force else find_run(stage) for stage, _ in stages]
        if before[-1] is not None and all(before):
            for stage, _ in stages:
                remove_superseded(stage.folder)
            return _skipped(before[-1])
        _tell_unseen(dataset)
        ready = time.perf_counter()
        warm_up(config, dataset, prior, called=caller is not None)
        logger.debug("Kernels were there after %.2f s", time.perf_counter() - ready)
        if caller is not None:
            locks.callback(caller.close)
            caller.start(terms)
        about = dataset, display, begin, concurrent_runs, engine
        made = []
        for (stage, lam), found in zip(stages, before, strict=True):
            problem, leads_on = components.problem_of(terms, lam, prior), stage is not stages[-1][0]
            made.append(PathStep(stage, problem, lam, found is not None, leads_on, *about))
        solver = None
        for one in made[_first(made) :]:
            outcome = one.make(solver)
            solver = one.solver
            if outcome.status == "interrupted":
                return outcome
        found = None if one.config == config else find_run(config)
        return outcome if found is None else Outcome.of("finished", found)


def _skipped(before: Run) -> Outcome:
    """Say that the run has finished before; return its outcome."""
    if before.is_truncated:
        end, whole = before.end["iteration"], before.metadata["cut_from"]["iteration"]
        logger.info(
            "A longer run has finished before, of %s iterations: %s. This one is its beginning, "
            "until iteration %s; weights and losses are those of the end (force=true makes this "
            "one by itself).",
            *(whole, before.folder, end),
        )
    else:
        logger.info("This run has finished before: %s (force=true redoes it)", before.folder)
    return Outcome.of("skipped", before)


def _first(runs: list[PathStep]) -> int:
    """Return the index of the run to begin a path with: the last that can resume, or the first."""
    for k in reversed(range(len(runs))):
        if all(one.had_finished for one in runs[:k]) and runs[k].resume():
            return k
    return 0


def _tell_unseen(dataset: Dataset | DataStream) -> None:
    """Warn of held-out labels that are unknown to training."""
    for name, examples in dataset.held_out.items():
        if examples.unseen is not None:
            logger.warning(
                "%s of the %s %s labels are unknown to training. Whatever is predicted for them "
                "counts as wrong.",
                *(np.count_nonzero(examples.unseen.mask), examples.y.size, name),
            )


def _check_same_data(folder: Path, dataset: Dataset | DataStream) -> None:
    """Raise an error if a folder holds a finished run on data with another fingerprint."""
    if is_whole(folder):
        before = read_metadata(folder)["dataset"]["fingerprint"]
        if before != dataset.fingerprint:
            raise RunFailedError(
                f"The run {folder} has finished before, on other data: their fingerprint was "
                f"{before}, that of {dataset.name} ({dataset.source}) is {dataset.fingerprint} now."
                " Keep both with another results_dir, or make it again with force=true."
            )


# ---- without files ----------------------------------------------------------------------------

_warm: set[Hashable] = set()
"""Kinds of problems whose kernels have been compiled."""


class Trained(NamedTuple):
    """Result of a run without files.

    Attributes
    ----------
    recorder : Recorder
        With the trace and w.
    reason : str
        Why the run has ended.
    solver : Solver
        In its final state.
    """

    recorder: Recorder
    reason: str
    solver: Solver


def train(
    config: RunConfig,
    dataset: Dataset,
    display: Display,
    before: tuple[float, Mapping[str, Any]] | None = None,
) -> Trained:
    """Execute a run, after those of its path, on the examples of a Python program; write no files.

    A process compiles kernels once per kind of problem, not once per call: a search over parameters
    makes many calls.

    Parameters
    ----------
    config : RunConfig
        Which run.
    dataset : Dataset
        Its examples.
    display : Display
        Shows the progress.
    before : float and mapping, optional
        λ and the state (`checkpoints.of_solver`) of a solver of the same problem, to continue from.

    Raises
    ------
    ConfigError
        If examples, oracle and solver do not fit together.
    RunFailedError
        If the run fails.
    """
    check_requirements(config)
    check_data(config, dataset)
    terms = components.oracle_of(config.oracle, dataset)
    check_oracle(config, terms)
    caller = components.caller_of(config, dataset.fingerprint, dataset)
    if caller is not None:
        terms = terms.called_by(caller)
    prior = components.prior_of(config, terms.d)
    if (kind := _kind(config, dataset)) not in _warm:
        warm_up(config, dataset, prior, called=caller is not None)
        _warm.add(kind)
    solver = None
    if before is not None:
        lam, state = before
        solver = components.started(config, components.problem_of(terms, lam, prior), None)
        with solver.clock.paused():
            checkpoints.restore_solver(solver, state)
    with ExitStack() as stack:
        if caller is not None:
            stack.callback(caller.close)
            caller.start(terms)
        for stage in config.path_steps():
            lam = stage.lam_of(dataset.n)
            problem = components.problem_of(terms, lam, prior)
            display.start(stage, dataset.source, problem.n, problem.d, lam)
            rounds = getattr(stage.solver, "latent_rounds", 1)
            bound = stage.eval.bound
            recorder = Recorder(problem, display, latent_rounds=rounds, bound=bound)
            warm_started, solver = solver is not None, components.started(stage, problem, solver)
            reason = loop(stage, solver, recorder, warm_started)
            if reason == "diverged":
                raise RunFailedError(
                    f"Training diverged in iteration {recorder.rows[-1]['iteration']}; try a "
                    "larger lam."
                )
    assert solver is not None  # a path has at least one run
    return Trained(recorder, reason, solver)


def _kind(config: RunConfig, dataset: Dataset) -> Hashable:
    """Return what determines which kernels are compiled."""
    x, y = dataset.x, dataset.y
    options = config.oracle, config.solver, config.prior, config.parallel, bool(config.path)
    return *options, dataset.structure, type(x), x.dtype, y.dtype
