"""One run, from its configuration to its files.

During a run, its trace so far and its state (:mod:`ssvm_bench.runs.checkpoints`) are written to
disk: ``kill -9`` costs the rows of the last ten seconds, and what was computed since the last
checkpoint. The next start of the same run resumes from the checkpoint. A run with a larger budget
resumes from the end, if the final state was kept. A run with a smaller budget is read from the
trace (:mod:`ssvm_bench.results.budgets`).

**The loop** of a run repeats the solver's outer iterations. It evaluates the reported iterate while
the clock is paused, and ends for one of these reasons:

==================  ==========================================================================
``gap_tol``         the relative gap (P − F)/max(|P|, 1e-12) is small enough
``max_iterations``  outer iterations done
``max_seconds``     seconds on the run's clock spent
``converged``       a whole exact pass changed nothing: optimal, as far as the oracle is exact;
                    bundle methods: the relative gap is at most their ε; dual coordinate descent:
                    at most its tolerance. Where the budget asks for a gap, it is at most that gap
``stalled``         the gap that the budget asks for cannot be reached: the solver has converged as
                    far as rounding or an inexact oracle allow, or at a gap of rounding neither P
                    nor F has improved for a long time
``cache_full``      examples have left the cache of online dual coordinate descent; their weights
                    are fixed, and a further pass would count them again
``qp_steps``        an inner QP did not converge in its steps, or for rounding: bundle methods and
                    1-slack cutting planes report their best iterate
``diverged``        primal or dual is not finite: the run has failed
``interrupted``     Ctrl-C, SIGTERM or SIGHUP: after the iteration, or the evaluation that is being
                    made; a partial trace is kept. After two signals: where the loop gets control
                    next, and without an evaluation
``error``           the solver or the oracle raised: partial trace and traceback are kept
==================  ==========================================================================

A problem with latent values is solved in rounds, each a convex problem with better latent values
than the last one. The stop reason is that of the last round.

.. code-block:: text

    w ← argmin P(w) for the latent values z            as far as the budget goes: one round
    z ← the best latent values at w                    P(w) does not rise
    J(w) = min_z P(w)                                  what is minimised: not convex

This is the convex-concave procedure (Felzenszwalb et al. 2010; *coordinate descent* in Ramanan
2013, sections 1.4 and 1.5). The first row of a round is the w at which the last round ended, so its
primal value is J(w). A round ends at its iterate with the lowest primal value. Hence J never rises
from round to round, however early a convex problem is stopped. The solver continues with what it
knows where that is valid for the new problem (`Solver.update_latent`); else a new one is built.

The rounds end when no latent value changes, or after ``solver.latent_rounds`` rounds. The budget
applies to each round.

A run has one thread for linear algebra: threads that wait for each other spend CPU seconds, with
small factors several times those of the work, and another number of threads has other sums.

A solver's own precision ends runs that ask for no gap. In others, a solver that has converged
continues (`Solver.refine`). What it computes is the same for every gap that is asked for.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import math
import time
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from ssvm_bench.base import interrupts, memory
from ssvm_bench.base.errors import RunFailedError, contained, described
from ssvm_bench.base.threads import Team
from ssvm_bench.config import LOCAL
from ssvm_bench.config.schema import Budget, RunConfig, plain_values
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.results import checkpoint_file, checks, run_folder
from ssvm_bench.results.budgets import LIMITS, find_run
from ssvm_bench.results.provenance import cpu_model, provenance
from ssvm_bench.results.run_folder import HeldError, counted, lock
from ssvm_bench.results.table import Run, relative_gap
from ssvm_bench.results.trace import (
    as_columns,
    damage,
    is_whole,
    read_metadata,
    remove_superseded,
    write_partial,
    write_run,
)
from ssvm_bench.runs import Outcome, checkpoints, components
from ssvm_bench.runs.checkpoints import Progress
from ssvm_bench.runs.components import build_solver, team_of, warm_up
from ssvm_bench.runs.recorder import Recorder, held_out_loss
from ssvm_bench.runs.resolved import ResolvedRun, resolve
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream
    from ssvm_bench.datasets.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


@contained("The run failed")
def run(
    config: RunConfig,
    display: Display,
    concurrent_runs: int = 0,
    wait: bool = True,
    engine: str = LOCAL,
) -> Outcome:
    """Execute a run after those of its path, and write its files; skip it if all have finished.

    Parameters
    ----------
    config : RunConfig
        Which run.
    display : Display
        Shows the progress.
    concurrent_runs : int
        Number of other runs that are certainly executed at the same time; those that are seen on
        this node count as well, for the trace's metadata.
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
    runs = resolve(config)
    last = runs[-1]
    dataset, caller = last.dataset, last.caller
    logger.debug("Fingerprint of %s: %s", dataset.name, dataset.fingerprint)
    with ExitStack() as locks:
        for one in runs:
            logger.debug("Files: %s", one.folder)
            try:
                locks.enter_context(lock(one.folder, wait))
            except HeldError:
                return Outcome("held", "held", last.folder, {})
        if not config.force:
            places = [folder for one in runs for folder in one.folders]
            for damaged in filter(None, map(damage, places)):
                logger.warning("%s The run is repeated.", damaged)
            for folder in places:
                _check_same_data(folder, dataset)
        before = [None if config.force else find_run(one.config) for one in runs]
        if before[-1] is not None and all(before):
            for one in runs:
                remove_superseded(one.folder)
            return _skipped(before[-1])
        _tell_unseen(dataset)
        ready = time.perf_counter()
        warm_up(last.config, dataset, last.prior, called=caller is not None)
        logger.debug("Kernels were ready after %.2f s", time.perf_counter() - ready)
        if caller is not None:
            locks.callback(caller.close)
            caller.start(last.terms)
        others = locks.enter_context(counted(last.config.results_dir))
        about = display, begin, lambda: max(concurrent_runs, others()), engine
        steps = [
            PathStep(one, found is not None, one is not last, *about)
            for one, found in zip(runs, before, strict=True)
        ]
        solver = None
        for step in steps[_first(steps) :]:
            outcome = step.make(solver)
            solver = step.solver
            if outcome.status == "interrupted":
                return outcome
        found = None if step.run is last else find_run(last.config)
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


def _first(steps: list[PathStep]) -> int:
    """Return the index of the run to begin a path with: the last that can resume, or the first."""
    for k in reversed(range(len(steps))):
        if all(step.had_finished for step in steps[:k]) and steps[k].resume():
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


# ---- One run of a path ------------------------------------------------------------------------


@dataclass(eq=False)
class PathStep:
    """One run of a path, and the metadata of its files.

    Parameters
    ----------
    run : ResolvedRun
        Resumed, it may have another budget.
    had_finished : bool
        Whether it has finished before, as a run on the path of another one can.
    leads_on : bool
        Whether another run of the path begins at its end.
    display : Display
    begin : float
        When the work on the run began, by ``time.perf_counter``.
    concurrent_runs : callable
        Returns the number of other runs that are executed now.
    engine : str
        Backend that started this process (:mod:`ssvm_bench.jobs`).

    Attributes
    ----------
    solver : Solver or None
        The current solver; None until it is built or restored.
    """

    run: ResolvedRun
    had_finished: bool
    leads_on: bool
    display: Display
    begin: float
    concurrent_runs: Callable[[], int]
    engine: str
    solver: Solver | None = None

    def __post_init__(self) -> None:
        """Compute the identity of the run's checkpoints, and create its recorder."""
        self.progress = checkpoints.Progress()
        whose = f"{self.run.hash}/seed={self.run.config.seed}"
        self.whose = checkpoint_file.identity(whose, self.run.dataset.fingerprint)
        self.recorder = self._new_recorder()

    def _new_recorder(self) -> Recorder:
        options, dataset = self.run.config, self.run.dataset
        held_out = {
            name: functools.partial(held_out_loss, options.oracle, dataset, examples)
            for name, examples in dataset.held_out.items()
        }
        about = held_out, self._store, options.solver.latent_rounds, options.eval.bound
        return Recorder(self.run.problem, self.display, *about)

    def resume(self) -> bool:
        """Restore the run where it was left or had ended; return whether that was possible."""
        if self.had_finished or self.run.config.force:
            return False

        def begun(state: Any) -> checkpoints.Resumed:
            return checkpoints.restored(state, self.run, self._new_recorder())

        found = checkpoints.find_checkpoint(self.run, self.whose, begun, self.leads_on)
        if found is None:
            return False
        self.run, (self.solver, self.recorder, self.progress) = found
        before = {} if self.progress.cpu == cpu_model() else {"cpu": self.progress.cpu}
        self.progress.resumed.append(
            {"iteration": self.progress.iteration, "started": _now(), **before}
        )
        self.progress.cpu = cpu_model()
        return True

    def make(self, before: Solver | None) -> Outcome:
        """Execute the run, warm-started from the solver of another λ if there is one."""
        run, problem = self.run, self.run.problem
        if before is not None:
            self.begin = time.perf_counter()
        self.display.start(run.config, run.dataset.source, problem.n, problem.d, run.lam)
        self.metadata = self._metadata()
        writer = checkpoints.Checkpoints(
            run.config.checkpoint, self.whose, lambda dump: self._store(checkpoint=dump)
        )
        resumes = run.config.checkpoint.every is not None
        with interrupts.deferred(ENDING + RESUMES * resumes) as arrived:
            try:
                if self.solver is None:
                    self.solver = run.started(before)
                else:  # restored from a checkpoint
                    self.solver.clock.start()
                about = before is not None, self.progress, writer.write_if_due
                reason = loop(run.config, self.solver, self.recorder, *about)
            except BaseException as error:  # a component may raise SystemExit
                where = self._write_partial("error", traceback=traceback.format_exc())
                raise RunFailedError(
                    f"The run failed in iteration {len(self.recorder.rows)}: {described(error)}. "
                    f"What it had measured, and the traceback, are in {where}."
                ) from error
            beside = max(self.metadata["concurrent_runs"], self.concurrent_runs())
            self.metadata |= {**self._latent(), "concurrent_runs": beside}
            if reason not in BROKEN_OFF:
                if not self.leads_on:
                    self.solver = None  # its planes need not be there beside what is written
                return self._finish(reason)
            where = self._write_partial(reason)
            if reason == "diverged":
                raise self._diverged(where)
            arrived.answered = True
            return Outcome("interrupted", reason, where, self._summary(reason))

    def _finish(self, reason: str) -> Outcome:
        """Write the files of a run that has finished."""
        run, recorder, summary = self.run, self.recorder, self._summary(reason)
        if warning := unreached(run.config.budget, recorder.rows[-1], reason):
            logger.warning("%s", warning)
        folder = run.folder
        if self.had_finished:
            logger.info("This run of the path had finished before, and is kept: %s", folder)
        else:
            rows = as_columns(recorder.rows)
            folder = checkpoints.destination(run, rows, reason, self.progress)
            with nullcontext() if folder == run.folder else run_folder.lock(folder):
                write_run(
                    folder,
                    recorder.rows,
                    self.metadata,
                    run.config.resolved(),
                    summary,
                    recorder.problem.arrays(recorder.w),
                    self._vocabulary(),
                    with_checkpoint=run.config.checkpoint.keep,
                    partial=run_folder.partial_folder(run.folder),
                )
        self.display.finish(summary, folder)
        return Outcome("finished", reason, folder, summary)

    def _vocabulary(self) -> Vocabulary | None:
        """Return the names to store; with a kernel always, so that predictions need no data."""
        if self.run.config.oracle.has_kernel:
            from ssvm_bench.datasets.vocabulary import Vocabulary

            return Vocabulary.of(self.run.dataset)
        return self.run.dataset.vocabulary

    def _diverged(self, where: Path) -> RunFailedError:
        """Return the error of a run whose numbers are not finite."""
        row = self.recorder.rows[-1]
        fixed = getattr(self.run.config.solver, "step", "line_search") != "line_search"
        return RunFailedError(
            f"The run diverged in iteration {row['iteration']}: primal {row['primal']}, dual "
            f"{row['dual']}. Its trace is in {where}; try "
            f"{'solver.step=line_search or ' if fixed else ''}a larger lam."
        )

    def _store(self, rows: checks.Columns | None = None, **state: Any) -> None:
        """Write the rows so far to disk, and the state if it is given; the clock is paused."""
        if self.had_finished:
            return
        assert self.solver is not None
        with self.solver.clock.paused():
            try:
                self._write_partial("interrupted", rows, **state)
            except RunFailedError as error:
                logger.warning("What was measured so far is not on disk: %s", error)

    def _write_partial(self, reason: str, rows: checks.Columns | None = None, **more: Any) -> Path:
        measured = self.recorder.rows if rows is None else rows
        about = self.metadata, self._summary(reason)
        return write_partial(self.run.folder, measured, *about, **more)

    def _metadata(self) -> dict[str, Any]:
        options, dataset, problem = self.run.config, self.run.dataset, self.run.problem
        prior = options.prior.text(options.solver.constraint)
        about = {
            "config": options.resolved(),
            "dataset": {
                "name": dataset.name,
                "source": dataset.source,
                "n": problem.n,
                "d": problem.d,
                "radius": problem.radius(),
                "fingerprint": dataset.fingerprint,
            },
            "hash": self.run.own_hash,
            "code": options.code(),
            **({"plug_ins": plug_ins} if (plug_ins := options.plug_ins()) else {}),
            "lam": self.run.lam,
            **({"prior": prior} if prior else {}),
            **({"objective": problem.name} if problem.name else {}),
            "seed": options.seed,
            "clock": options.clock,
            "concurrent_runs": self.concurrent_runs(),
            "engine": self.engine,
            "started": _now(),
            **({"resumed": self.progress.resumed} if self.progress.resumed else {}),
            **self._latent(),
            **provenance(),
        }
        try:
            checks.check(plain_values(about), checks.METADATA)
        except ValueError as error:  # the value is a component's
            raise RunFailedError(f"No run can be made of that: {error}.") from error
        return about

    def _latent(self) -> dict[str, str]:
        """Return a digest of the problem's fixed latent values, if it has some."""
        values = self.recorder.problem.latent()
        if values is None:
            return {}
        return {"latent": hashlib.sha256(values.tobytes()).hexdigest()[:12]}

    def _summary(self, reason: str) -> dict[str, Any]:
        went_on = self.progress.converged_at
        return {
            **self.recorder.summary(),
            "stop_reason": reason,
            **({"converged_at": went_on} if went_on >= 0 else {}),
            "dataset": self.run.dataset.name,
            "solver": self.run.config.solver.name,
            "source": self.run.dataset.source,
            "seed": self.run.config.seed,
            "wall_time": self.progress.wall_time + time.perf_counter() - self.begin,
            "checkpoint_time": self.progress.checkpoint_time,
        }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# ---- The loop ---------------------------------------------------------------------------------

ENDING = "Ending after this iteration and its evaluation; Ctrl-C again ends at once."
RESUMES = " The same command resumes the run."
"""What a first signal says; the latter of a run with checkpoints."""

BROKEN_OFF = ("interrupted", "diverged")
"""Stop reasons of runs that have a partial trace."""


_ROUNDING, _PATIENCE = 1e-10, 100
"""A run stalls at a relative gap of rounding, after so many rows without a better P or F."""

WriteCheckpoint: TypeAlias = Callable[[Solver, Recorder, Progress, "str | None"], object]


def loop(
    config: RunConfig,
    solver: Solver,
    recorder: Recorder,
    warm_started: bool = False,
    progress: Progress | None = None,
    write_checkpoint: WriteCheckpoint = lambda *_: None,
) -> str:
    """Iterate and evaluate until something ends the run; return the stop reason of its last round.

    Parameters
    ----------
    config, solver, recorder
        The run.
    warm_started : bool
        Whether the solver has solved another λ before.
    progress : Progress, optional
        Position of the run, updated in place; by default, its beginning.
    write_checkpoint : callable
        Called before every iteration, and at the end with the reason, to write the state:
        `Checkpoints.write_if_due`.
    """
    progress = progress or Progress()
    with interrupts.deferred() as arrived, team_of(config.parallel) as team, threadpool_limits(1):
        about = config, recorder, arrived, progress, write_checkpoint, team
        try:
            if not (warm_started or progress.resumed):
                solver.begin()
            if config.eval.after_exact_pass and not progress.resumed:
                solver.keep_after_exact_pass()
            reason = _round(solver, *about)
            while reason not in BROKEN_OFF and (after := next_round(config, solver, recorder)):
                solver = after
                progress.next_round(solver.clock.now())
                reason = _round(solver, *about)
            if reason not in BROKEN_OFF:
                with team.working():
                    recorder.predict()
            return reason
        except interrupts.EndedEarlyError:
            return "interrupted"
        except ArithmeticError as error:
            if not progress.resumed:
                raise
            raise RunFailedError(
                f"The run resumed from a checkpoint with numbers that no run computes ({error}). "
                "Begin it anew with force=true."
            ) from error


def _round(
    solver: Solver,
    config: RunConfig,
    recorder: Recorder,
    arrived: interrupts.Arrived,
    progress: Progress,
    write_checkpoint: WriteCheckpoint,
    team: Team,
) -> str:
    """Execute a round, or the rest of a resumed one; return its stop reason."""
    budget, schedule = config.budget, config.eval
    while True:
        interrupts.end_if_urgent()
        reason = _exhausted(budget, progress.iteration, solver.clock.now() - progress.begin)
        if reason is None:
            reason = "converged" if solver.converged else solver.ended
        if arrived.count:
            reason = "interrupted"
        # before the last evaluation: a run resumed with a larger budget may not evaluate here
        write_checkpoint(solver, recorder, progress, reason)
        wanted = reason is not None or progress.iteration >= progress.due
        if wanted and progress.evaluated < progress.iteration:
            progress.evaluated = progress.iteration
            progress.due = schedule.after(progress.iteration)
            with team.working():
                row = recorder.evaluate(solver, progress.iteration)
            if not _is_finite(row, config.solver.has_dual):
                return "diverged"
            recorder.check_duality()
        asked = budget.gap_tol > 0 and progress.evaluated == progress.iteration
        before = reason
        if asked and reason in (None, "converged"):
            reason = _at_gap(budget, solver, recorder, progress, reason)
        if reason is None and arrived.count:  # during the evaluation: no other iteration begins
            reason = "interrupted"
        if before is None and reason is not None:
            write_checkpoint(solver, recorder, progress, reason)
        if reason is not None:
            return reason
        recorder.keep()
        solver.iterate()
        progress.iteration += 1


def _at_gap(
    budget: Budget, solver: Solver, recorder: Recorder, progress: Progress, reason: str | None
) -> str | None:
    """Return why a run that asks for a gap ends after an evaluation; None if it continues.

    Parameters
    ----------
    budget, solver, recorder, progress
        The run; the solver is refined if it has converged at a larger gap.
    reason : str or None
        ``converged``, if the solver has.
    """
    rows = recorder.rows_of_round
    relative = relative_gap(rows[-1]["primal"], rows[-1]["gap"])
    if relative <= budget.gap_tol:
        return reason or "gap_tol"
    if math.isnan(relative):
        return reason
    if reason == "converged":
        if progress.converged_at < 0:
            progress.converged_at = progress.iteration
        if not solver.refine():
            return "stalled"
        return solver.ended
    return "stalled" if relative <= _ROUNDING and _has_stalled(rows) else None


def unreached(budget: Budget, row: Mapping[str, Any], reason: str) -> str | None:
    """Return a sentence if a run ended for a reason of its own without the gap that it asks for."""
    relative = relative_gap(row["primal"], row["gap"])
    if reason in LIMITS or budget.gap_tol == 0 or relative <= budget.gap_tol:
        return None
    if math.isnan(relative):
        return f"budget.gap_tol={budget.gap_tol:g} has no effect: the solver computes no gap."
    return (
        f"The run ended as {reason} at a relative gap of {relative:.2g}, and not at "
        f"budget.gap_tol={budget.gap_tol:g}: this solver comes no closer on this problem."
    )


def _has_stalled(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the last rows have neither a lower primal nor a higher dual value."""
    if len(rows) <= _PATIENCE:
        return False
    before, since = rows[:-_PATIENCE], rows[-_PATIENCE:]
    lowest, highest = (
        (min(row["primal"] for row in some), max(row["dual"] for row in some))
        for some in (before, since)
    )
    return highest[0] >= lowest[0] and highest[1] <= lowest[1]


def _is_finite(row: Mapping[str, Any], has_dual: bool) -> bool:
    """Tell whether an iterate's numbers are finite; the dual of a solver without one may be NaN."""
    dual = row["dual"] if has_dual or not math.isnan(row["dual"]) else 0.0
    return all(math.isfinite(value) for value in (row["primal"], dual, row["w_norm"]))


def _exhausted(budget: Budget, iteration: int, seconds: float) -> str | None:
    if budget.max_iterations is not None and iteration >= budget.max_iterations:
        return "max_iterations"
    if budget.max_seconds is not None and seconds >= budget.max_seconds:
        return "max_seconds"
    return None


def next_round(config: RunConfig, solver: Solver, recorder: Recorder) -> Solver | None:
    """Begin another round; return its solver, or None if the last round has ended.

    Parameters
    ----------
    config, solver, recorder
        The run; its solver has ended a round.
    """
    w = recorder.end_round()
    if recorder.round == recorder.latent_rounds:
        return None
    problem, clock = recorder.problem, solver.clock
    values = problem.latent()
    assert values is not None  # problems with several rounds have latent values
    with clock.exact(min(problem.n, int(np.count_nonzero(values)))):
        better, changes = problem.update_latent(w)
    if changes == 0:
        return None
    if not solver.update_latent(better):
        solver = build_solver(config, better, clock)
        solver.begin()
    if config.eval.after_exact_pass:
        solver.keep_after_exact_pass()
    recorder.begin_round(better, changes)
    return solver


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
    runs = resolve(config, dataset)
    last = runs[-1]
    terms, prior, caller = last.terms, last.prior, last.caller
    if (kind := _kind(config, dataset)) not in _warm:
        warm_up(config, dataset, prior, called=caller is not None)
        _warm.add(kind)
    solver = None
    if before is not None:
        lam, state = before
        solver = last.started(problem=components.problem_of(terms, lam, prior))
        with solver.clock.paused():
            checkpoints.restore_solver(solver, state)
    with ExitStack() as stack:
        if caller is not None:
            stack.callback(caller.close)
            caller.start(terms)
        rounds, bound = config.solver.latent_rounds, config.eval.bound
        for one in runs:
            problem = one.problem
            display.start(one.config, dataset.source, problem.n, problem.d, one.lam)
            recorder = Recorder(problem, display, latent_rounds=rounds, bound=bound)
            warm_started, solver = solver is not None, one.started(solver)
            reason = loop(one.config, solver, recorder, warm_started)
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
