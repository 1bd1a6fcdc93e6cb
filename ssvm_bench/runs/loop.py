"""The loop of a run: budget, evaluation, stop reason, interrupt.

A run repeats the solver's outer iterations. It evaluates the reported iterate while the clock is
paused, and ends for one of these reasons:

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
``interrupted``     Ctrl-C, SIGTERM or SIGHUP: after the iteration; a partial trace is kept. After
                    two signals: where the loop gets control next, and without an evaluation
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

A solver's own precision ends runs that ask for no gap. In others, a solver that has converged goes
on (`Solver.refine`). What it computes is the same for every gap that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.results.budgets import LIMITS
from ssvm_bench.runs.checkpoints import Progress
from ssvm_bench.runs.components import build_solver
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.solvers.base import Solver

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
    with interrupts.deferred() as arrived:
        try:
            if not (warm_started or progress.resumed):
                solver.begin()
            if config.eval.after_exact_pass and not progress.resumed:
                solver.keep_after_exact_pass()
            reason = _round(config, solver, recorder, arrived, progress, write_checkpoint)
            while reason not in BROKEN_OFF and (after := next_round(config, solver, recorder)):
                solver = after
                progress.next_round(solver.clock.now())
                reason = _round(config, solver, recorder, arrived, progress, write_checkpoint)
            if reason not in BROKEN_OFF:
                recorder.predict()
            return reason
        except interrupts.EndedEarlyError:
            return "interrupted"
        except ArithmeticError as error:
            if not progress.resumed:
                raise
            raise RunFailedError(
                f"The run went on from a checkpoint with numbers that no run computes ({error}). "
                "Begin it anew with force=true."
            ) from error


def _round(
    config: RunConfig,
    solver: Solver,
    recorder: Recorder,
    arrived: interrupts.Arrived,
    progress: Progress,
    write_checkpoint: WriteCheckpoint,
) -> str:
    """Execute a round, or the rest of a resumed one; return its stop reason."""
    while True:
        interrupts.end_if_urgent()
        reason = _exhausted(config.budget, progress.iteration, solver.clock.now() - progress.begin)
        if reason is None:
            reason = "converged" if solver.converged else solver.ended
        if arrived.count:
            reason = "interrupted"
        # before the last evaluation: a run resumed with a larger budget may not evaluate here
        write_checkpoint(solver, recorder, progress, reason)
        wanted = reason is not None or progress.iteration >= progress.due
        if wanted and progress.evaluated < progress.iteration:
            progress.evaluated = progress.iteration
            progress.due = config.eval.after(progress.iteration)
            row = recorder.evaluate(solver, progress.iteration)
            if not _is_finite(row, getattr(config.solver, "has_dual", False)):
                return "diverged"
            recorder.check_duality()
        asked = config.budget.gap_tol > 0 and progress.evaluated == progress.iteration
        if asked and reason in (None, "converged"):
            before, reason = reason, _at_gap(config.budget, solver, recorder, progress, reason)
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
    """Return why a run that asks for a gap ends after an evaluation; None if it goes on.

    Parameters
    ----------
    budget, solver, recorder, progress
        The run; the solver is refined if it has converged at a larger gap.
    reason : str or None
        ``converged``, if the solver has.
    """
    rows = recorder.rows_of_round
    relative = rows[-1]["gap"] / max(abs(rows[-1]["primal"]), 1e-12)
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
    relative = row["gap"] / max(abs(row["primal"]), 1e-12)
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
