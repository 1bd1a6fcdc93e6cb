"""Checkpoints: the whole state of a run, written while it works, and how a run resumes from one.

Under ``clock=work``, a run that was stopped and resumed on one machine has the trace of one that
was not, bit for bit (:mod:`ssvm_bench.base.linalg`). A checkpoint contains, as arrays and plain
values (:mod:`ssvm_bench.base.state`): the state of the solver with its clock and random streams;
the recorder with the trace; the run's position in its loop, and the time spent. Problem and solver
are built anew; the solver then restores its state.

Runs that differ only in their budget share a folder, which holds the longest of them. A run resumes
where one of them was left, or where one has ended and kept its state; else it starts from the
beginning. A shorter run that has to be executed nevertheless gets a folder of its own. If it ends
where a longer one was left, or on the way there, it keeps its state, so that the longer one can
still resume.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from ssvm_bench.base.errors import SsvmBenchError, described
from ssvm_bench.base.state import StateError, expect, like, of
from ssvm_bench.config import validation
from ssvm_bench.config.schema import Budget, Checkpoint, RunConfig
from ssvm_bench.results import checkpoint_file, checks, provenance, run_folder, trace
from ssvm_bench.results.budgets import budget_of, converged_at, ending, goes_as_far
from ssvm_bench.results.trace import is_whole, read_metadata, read_run
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.resolved import ResolvedRun
from ssvm_bench.solvers.base import OF_ALL, Solver

logger = logging.getLogger(__name__)

_SHARE = 0.01
"""Largest share of a run's time that periodic checkpoints take."""

Dump: TypeAlias = Callable[[BinaryIO], object]


@dataclass
class Progress:
    """Position of a run, between two iterations.

    Attributes
    ----------
    iteration : int
        Iterations done in the current round.
    due : int
        The iteration to be evaluated next.
    evaluated : int
        The iteration evaluated last.
    converged_at : int
        The iteration after which the solver had first converged at a larger gap than the one asked
        for; −1: it has not.
    begin : float
        Time on the run's clock at which the round began.
    wall_time : float
        Seconds that earlier processes have spent on the run.
    checkpoint_time : float
        Seconds spent on checkpoints.
    cpu : str
        The processor.
    resumed : list of dict
        One entry per resumption: ``iteration``, where it began; ``started``, when; and ``cpu``, the
        processor before it, if that was another one.
    """

    iteration: int = 0
    due: int = 0
    evaluated: int = -1
    converged_at: int = -1
    begin: float = 0.0
    wall_time: float = 0.0
    checkpoint_time: float = 0.0
    cpu: str = field(default_factory=provenance.cpu_model)
    resumed: list[dict[str, Any]] = field(default_factory=list)

    def next_round(self, begin: float) -> None:
        """Go to the beginning of a round."""
        self.iteration, self.due, self.begin = 0, 0, begin
        self.evaluated = self.converged_at = -1


class Resumed(NamedTuple):
    """A resumed run: its solver, its recorder and its position."""

    solver: Solver
    recorder: Recorder
    progress: Progress


Begun: TypeAlias = Callable[[Any], Resumed]


class Checkpoints:
    """Writes the state of one run from time to time.

    Parameters
    ----------
    config : Checkpoint
        When to write.
    whose : dict
        `checkpoint_file.identity` of the run.
    write : callable
        Writes the trace so far to disk, if it can; its argument writes the checkpoint file.
    now : callable
        Seconds on a monotonic clock.
    """

    def __init__(
        self,
        config: Checkpoint,
        whose: dict[str, str],
        write: Callable[[Dump], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every, self._keep, self._whose = config.every, config.keep, whose
        self._write, self._now, self._begin = write, now, now()
        self._due = math.inf if config.every is None else self._begin + config.every

    def write_if_due(
        self, solver: Solver, recorder: Recorder, progress: Progress, reason: str | None
    ) -> None:
        """Write the state if it is due, or if the run ends here; the clock is paused.

        Parameters
        ----------
        solver, recorder, progress
            The state.
        reason : str or None
            Why the run ends, if it does.
        """
        begin = self._now()
        last = reason == "interrupted" and self._every is not None
        wanted = last or begin >= self._due or (reason is not None and self._keep)
        if not wanted or not recorder.rows:
            return
        with solver.clock.paused():
            try:
                spent = progress.wall_time + self._now() - self._begin
                state = state_of(solver, recorder, replace(progress, wall_time=spent))
                self._write(lambda file: checkpoint_file.write(file, self._whose, state))
                logger.debug("Checkpoint after iteration %s", progress.iteration)
            except Exception as error:  # a component's state may raise or contain anything
                self._every, self._keep = None, False
                logger.warning("This run cannot be resumed after it ends: %s.", described(error))
        took = self._now() - begin
        progress.checkpoint_time += took
        if self._every is None:
            self._due = math.inf
        elif self._every > 0:
            self._due = begin + took + max(self._every, took / _SHARE)


def state_of(solver: Solver, recorder: Recorder, progress: Progress) -> dict[str, Any]:
    """Return the state of a run, as `restored` takes it."""
    return {**of_solver(solver), "record": recorder.state(), "progress": vars(progress)}


def of_solver(solver: Solver) -> dict[str, Any]:
    """Return the state of a solver: its own attributes, and those of all solvers."""
    return {"solver": solver.state(), "of_all": of(_of_all(solver))}


def restore_solver(solver: Solver, state: Mapping[str, Any]) -> None:
    """Restore a state into a new solver; its clock stays paused."""
    solver.state()  # raises an error if the solver has no state
    solver.restore(state["solver"])
    own = _of_all(solver)
    for name, found in like(own, state["of_all"]).items():
        if found is not own[name]:
            setattr(solver, name, found)
    solver.ended = solver.ended or None


def _of_all(solver: Solver) -> dict[str, Any]:
    """Return the attributes of all solvers; ``ended`` is an empty text in place of None."""
    return {**{name: getattr(solver, name) for name in OF_ALL}, "ended": solver.ended or ""}


def restored(state: Any, run: ResolvedRun, recorder: Recorder) -> Resumed:
    """Return a run that resumes from a state; its clock stays paused.

    Parameters
    ----------
    state : mapping
        What `state_of` has returned, not checked yet.
    run : ResolvedRun
    recorder : Recorder
        A new one, into which the recorded state is restored.

    Raises
    ------
    StateError
        If it cannot be a state of this run.
    """
    expect(state.keys() == {"solver", "of_all", "record", "progress"}, "it has other names")
    record, problem = state["record"], run.problem
    if (values := record["latent"]) is not None:
        problem = problem.with_latent(values)
    solver = run.started(problem=problem)
    if run.config.eval.after_exact_pass:
        solver.keep_after_exact_pass()
    restore_solver(solver, state)
    recorder.restore(record, problem, solver.reported().w)
    return Resumed(solver, recorder, _progress(state["progress"]))


def _progress(state: Any) -> Progress:
    """Return the progress in a state, checked."""
    resumed = state["resumed"]
    plain = isinstance(resumed, list) and all(
        isinstance(each, dict) and all(isinstance(value, int | str) for value in each.values())
        for each in resumed
    )
    expect(plain, "resumed is no list of plain values")
    rest = like(vars(Progress()) | {"resumed": {}}, {**state, "resumed": {}})
    return Progress(**{**rest, "resumed": resumed})


def resume(folder: Path, whose: dict[str, str], begun: Begun) -> Resumed | None:
    """Return the run resumed from a folder's checkpoint; None if there is no usable checkpoint.

    Parameters
    ----------
    folder : Path
        Of a partial trace, or of a finished run.
    whose : dict
        As for `Checkpoints`.
    begun : callable
        Returns the run that resumes from a state, as `restored` does.
    """
    try:
        return begun(checkpoint_file.read(folder, whose))
    except FileNotFoundError:
        return None
    except Exception as error:  # a component may raise anything if the state does not fit
        reason = str(error)
        if not isinstance(error, checkpoint_file.UnusableError):
            what = error if isinstance(error, StateError) else described(error)
            reason = f"its state does not fit: {what}"
        logger.warning(
            "The checkpoint in %s is left aside: %s. No run resumes from it.", folder, reason
        )
        return None


# ---- runs that differ in their budget ---------------------------------------------------------


def find_checkpoint(
    run: ResolvedRun, whose: dict[str, str], begun: Begun, leads_on: bool
) -> tuple[ResolvedRun, Resumed] | None:
    """Return the run to make, and what to resume; None if the run starts from the beginning.

    Parameters
    ----------
    run : ResolvedRun
        The requested run.
    whose, begun
        As for `resume`.
    leads_on : bool
        Whether another run begins at its end.
    """
    left = run_folder.partial_folder(run.folder)
    for folder in (left, run.folder):
        found = resume(folder, whose, begun)
        made = None if found is None else _made_of(found, run, leads_on)
        if found is not None and made is not None:
            if folder == left and not _contains(run.config.budget, left):
                made = replace(made, checkpoint=replace(made.checkpoint, keep=True))
            logger.info(
                "Resuming after iteration %s, from the checkpoint in %s (force=true does not).",
                *(found.progress.iteration, folder),
            )
            return replace(run, config=made), found
    if is_whole(run.folder):
        logger.info(_why_anew(run))
    return None


def _made_of(found: Resumed, run: ResolvedRun, leads_on: bool) -> RunConfig | None:
    """Return the config to resume a state with; None if the state is of no use for the run.

    The requested run may be a beginning of the state's trace: then the run ends where it is.
    """
    if run.folder == run.own_folder:
        return run.config  # a run of the same budget left it
    at, budget = found.progress.iteration, run.config.budget
    rows = trace.as_columns(found.recorder.rows)
    if ending(rows, None, budget, found.progress.converged_at) is not None:
        return None if leads_on else replace(run.config, budget=Budget(at, None, 0.0))
    return run.config if budget.max_iterations is None or at <= budget.max_iterations else None


def _contains(budget: Budget, left: Path) -> bool:
    """Return whether a budget goes as far as that of a run that was left in a folder."""
    try:
        stored = read_metadata(left)["config"]["budget"]
        other = validation.build(Budget, stored, Budget.section)
        return budget.contains(other) and (budget.gap_tol > 0 or other.gap_tol == 0)
    except (SsvmBenchError, LookupError, TypeError):
        return True


def _why_anew(run: ResolvedRun) -> str:
    """Return why a run starts from the beginning although one of another budget has finished."""
    before = read_run(run.folder)
    reason, at = before.end["stop_reason"], before.columns["iteration"][-1]
    if goes_as_far(before.columns, reason, run.config.budget, converged_at(before)):
        return (
            f"A longer run, {before.folder}, was not evaluated at iteration "
            f"{run.config.budget.max_iterations}: this one is made by itself."
        )
    return (
        f"{before.folder} has ended before, after iteration {at} ({reason}), and has no checkpoint "
        "to resume from: the run starts again. A run made with checkpoint.keep=true can be "
        "extended."
    )


def destination(run: ResolvedRun, rows: checks.Columns, reason: str, progress: Progress) -> Path:
    """Return the folder for a finished run; a run that went further is not replaced.

    Parameters
    ----------
    run : ResolvedRun
    rows : Columns
        Its trace.
    reason : str
        Why it has ended.
    progress : Progress
        At its end.
    """
    if os.path.lexists(run.own_folder):
        return run.own_folder
    before = read_run(run.folder) if is_whole(run.folder) else None
    budget = None if before is None else budget_of(before)
    if budget is None or budget == run.config.budget:
        return run.folder
    if goes_as_far(rows, reason, budget, progress.converged_at):
        return run.folder
    return run.own_folder
