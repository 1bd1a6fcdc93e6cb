"""Runs of smaller budgets, read from a finished run: its rows up to where the budget ends.

A budget determines when a run ends, not what it computes. So a finished run contains the run of
every budget that ends within its rows, at the first row with

.. code-block:: text

    iteration ≥ max_iterations,   time ≥ max_seconds   or   (P − F)/max(|P|, 1e-12) ≤ gap_tol

Rows, best values and stop reason of such a beginning are known. Losses and weights are known only
for the end of the finished run. A run that ended for a reason of its own is the run of every budget
that does not end earlier, with two exceptions, as a solver's own precision ends only runs that ask
for no gap (:mod:`ssvm_bench.runs.runner`). A run that has converged at a larger gap than the one
asked for has not ended for that budget. One that continued is cut where its solver first converged,
if no gap is asked for.

A run has a row at the iteration at which it ends. So an iteration limit must be the iteration of a
row; a time limit is reached at the first row that is late enough.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import validation
from ssvm_bench.config.schema import Budget, RunConfig, plain_values
from ssvm_bench.results.checks import Columns
from ssvm_bench.results.run_folder import recover
from ssvm_bench.results.table import Run, relative_gap
from ssvm_bench.results.trace import read_run

if TYPE_CHECKING:
    from ssvm_bench.results.folder import SkippedFiles

LIMITS = ("max_iterations", "max_seconds", "gap_tol")
"""Stop reasons that are a limit of the budget, in the order in which they are checked."""


class Ending(NamedTuple):
    """Where a budget ends a run: the number of rows until then, and the reason."""

    rows: int
    reason: str


def ending(
    rows: Columns, reason: str | None, budget: Budget, converged_at: int = -1
) -> Ending | None:
    """Return where a budget ends a run; None if that is not among its rows.

    Parameters
    ----------
    rows : Columns
    reason : str or None
        Why the run has ended, if it has.
    budget : Budget
        Another budget.
    converged_at : int
        The iteration after which the solver first converged, if the run continued; −1: it did not.
    """
    reached, iteration = _reached(rows, budget, converged_at), np.asarray(rows["iteration"])
    there = np.flatnonzero(reached.any(axis=0))
    own = reason if _ended(rows, reason, budget) else None
    if there.size == 0:
        return None if own is None else Ending(iteration.size, own)
    last = int(there[0])
    if budget.max_iterations is not None and iteration[last] > budget.max_iterations:
        return None
    why = (*LIMITS, "converged")[int(np.argmax(reached[:, last]))]
    if own is not None and why == "gap_tol" and last == iteration.size - 1:
        why = "converged" if own == "stalled" else own  # it is checked first
    return Ending(last + 1, why)


def goes_as_far(rows: Columns, reason: str, budget: Budget, converged_at: int = -1) -> bool:
    """Tell whether a run ends where a budget does, or later; the arguments are `ending`'s."""
    return _ended(rows, reason, budget) or bool(_reached(rows, budget, converged_at).any())


def _ended(rows: Columns, reason: str | None, budget: Budget) -> bool:
    """Tell whether a run ended for a reason of its own that also ends runs of a budget."""
    if reason == "converged" and budget.gap_tol > 0:
        return (
            not relative_gap(rows["primal"], rows["gap"])[-1] > budget.gap_tol
        )  # NaN: there is no gap
    if reason == "stalled":
        return budget.gap_tol > 0
    return reason is not None and reason not in LIMITS


def _reached(rows: Columns, budget: Budget, converged_at: int) -> np.ndarray:
    """Return which limits each row has reached; the last one is that of the solver itself."""
    iteration, time = (np.asarray(rows[name], float) for name in ("iteration", "time"))
    limits = budget.max_iterations, budget.max_seconds
    most, longest = (math.inf if limit is None else limit for limit in limits)
    asks = budget.gap_tol > 0
    small = asks & (relative_gap(rows["primal"], rows["gap"]) <= budget.gap_tol)
    own = (iteration >= converged_at) & (converged_at >= 0 and not asks)
    return np.stack([iteration >= most, time >= longest, small, own])


def converged_at(run: Run) -> int:
    """Return after which iteration a run's solver first converged, if it continued; else −1."""
    return int(run.end.get("converged_at", -1))


def budget_of(run: Run) -> Budget | None:
    """Return the budget of a run; None if its configuration contains no valid one."""
    stored = run.config.get("budget")
    try:
        return None if stored is None else validation.build(Budget, stored, Budget.section)
    except ConfigError:
        return None


def find_run(config: RunConfig, skipped: SkippedFiles | None = None) -> Run | None:
    """Return the finished run of a configuration, truncated to its budget.

    Parameters
    ----------
    config : RunConfig
        Its dataset's source is known.
    skipped : SkippedFiles, optional
        Collects runs that cannot be read.

    Returns
    -------
    Run or None
        None if there is no such run, or it ends before the budget does.
    """
    if not os.path.lexists(config.folder):
        recover(config.folder.parent)
    for folder in filter(os.path.lexists, config.folders):
        try:
            found = truncate(read_run(folder), config)
        except RunFailedError as error:
            if skipped is not None:
                skipped.add(error)
        else:
            if found is not None:
                return found
    return None


def truncate(run: Run, config: RunConfig) -> Run | None:
    """Return a run truncated to a configuration's budget; None if the run does not reach it."""
    asked = config.resolved().get("budget")
    about, rows, reason = run.metadata, run.columns, run.end["stop_reason"]
    is_same = about["config"].get("budget") == asked
    if is_same and (reason != "converged" or _ended(rows, reason, config.budget)):
        return run
    end = ending(rows, reason, config.budget, converged_at(run))
    if end is None:
        return None
    about = {**about, "config": {**about["config"], "budget": asked}, "hash": config.own_hash()}
    summary = {**run.end, "stop_reason": end.reason}
    if end.rows < len(run):
        about["cut_from"] = {"iteration": int(rows["iteration"][-1]), "stop_reason": reason}
        run = run.take(slice(end.rows))
        unknown = ("wall_time", *(key for key in summary if key.endswith("_loss")))
        summary |= {
            **{name: column[-1] for name, column in run.columns.items()},
            **best(run["primal"], run["dual"]),
            **dict.fromkeys(unknown),
        }
    return replace(run, metadata=about, end=plain_values(summary))


def best(primal: np.ndarray, dual: np.ndarray) -> dict[str, float]:
    """Return the summary of all rows: the best values, and the share of rows where P rises."""
    return {
        "best_primal": primal.min(),
        "primal_rises": np.mean(primal[1:] > primal[:-1]) if primal.size > 1 else math.nan,
        "best_dual": math.nan if np.isnan(dual).all() else np.nanmax(dual),
    }
