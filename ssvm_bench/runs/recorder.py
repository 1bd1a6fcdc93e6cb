"""The rows of a run's trace: evaluated, and written to disk while the run works."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ssvm_bench.base import memory
from ssvm_bench.base.errors import RunFailedError, shown
from ssvm_bench.base.state import Limits, StateError, expect, of, parts_like
from ssvm_bench.config import registry
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.objective import Objective
from ssvm_bench.results.budgets import best
from ssvm_bench.results.checks import Columns, check_rows
from ssvm_bench.results.trace import COLUMNS, as_columns
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

logger = logging.getLogger(__name__)

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)

KEEP_SECONDS = 10.0
"""Longest time that a row is in memory only."""

_COUNTS = ("round", "_first", "_before", "_changes", "_eval_time")
"""Numbers of a recorder's state, besides its rows."""

_LIMITS = {
    "round": Limits(least=1, most="latent_rounds"),
    "_first": Limits(below=lambda _, recorder: len(recorder.rows)),
}


class Recorder:
    """Evaluates the iterates that a solver reports, and keeps the rows of the trace.

    Parameters
    ----------
    problem : Objective
    display : Display
        Shows every row.
    held_out : mapping
        Name → function from w to the mean loss on held-out examples; only `predict` calls it.
    keep : callable, optional
        Writes the rows so far to disk.
    latent_rounds : int
        Largest number of rounds, each with a problem of its own.
    bound : bool
        Whether to compute upper bounds of primal values (``eval.bound``).

    Attributes
    ----------
    problem : Objective
        The problem of the current round.
    round : int
        Number of the current round, from 1.
    rows : list of dict
        The trace so far.
    w : object
        The last row's point in the coordinates of the data (:mod:`ssvm_bench.oracles.objective`):
        the weights of their features.
    losses : dict of str to float
        Mean loss of the last row's predictions, for ``"train"`` and for each held-out name; NaN
        until `predict` is called.
    """

    def __init__(
        self,
        problem: Objective,
        display: Display,
        held_out: Mapping[str, Callable[[np.ndarray], float]] | None = None,
        keep: Callable[[Columns], object] | None = None,
        latent_rounds: int = 1,
        bound: bool = False,
    ) -> None:
        self.problem, self.bound = problem, bound
        self.display = display
        self.held_out = held_out or {}
        self.rows: list[dict[str, Any]] = []
        self.w: Any = None
        self.losses = dict.fromkeys(("train", *self.held_out), math.nan)
        self._iterate: Any = None
        self._earlier: Any = None
        self._eval_time = 0.0
        self._flusher = None if keep is None else TraceFlusher(keep)
        self.latent_rounds, self.round = latent_rounds, 1
        self._first = self._before = self._changes = 0
        self._begins_at: Any = None
        self._best = math.inf, self.w

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs: all except display, problem and held-out losses."""
        primal, point = self._best
        return {
            **{name: getattr(self, name) for name in _COUNTS},
            "rows": as_columns(self.rows),
            "iterate": of(self._iterate),
            "begins": self._begins_at is not None,
            "best_primal": float(primal),
            "best": of(point),
            "latent": self.problem.latent() if self.round > 1 else None,
        }

    def restore(self, state: Mapping[str, Any], problem: Objective, point: Any) -> None:
        """Restore the state of another recorder of the same run.

        Parameters
        ----------
        state : mapping
        problem : Objective
            The problem with the latent values of the state.
        point : object
            Any point of the problem.

        Raises
        ------
        StateError
            If it cannot be the state of such a run.
        """
        own = self.state()
        expect(state.keys() == own.keys(), "has other names")
        self.problem, self.rows = problem, _rows(state["rows"])
        points = ["iterate"] if state["best"] is None else ["iterate", "best"]
        own |= dict.fromkeys(points, point)
        for elsewhere in ("rows", "latent"):
            del own[elsewhere]
        found = parts_like(own, {name: state[name] for name in own}, _LIMITS, self)
        for name in points:
            problem.check_point(found[name])
        for name in _COUNTS:
            setattr(self, name, found[name])
        self._iterate = found["iterate"]
        self.w = problem.weights(self._iterate)
        self._begins_at = self._iterate if found["begins"] else None
        self._best = found["best_primal"], found["best"]

    def evaluate(self, solver: Solver, iteration: int) -> Mapping[str, Any]:
        """Add, show and return the row of an iteration; the clock is paused meanwhile."""
        with solver.clock.paused():
            start = time.perf_counter()
            self._earlier = self._iterate
            self._iterate, dual = solver.reported()
            if self._begins_at is not None:
                self._iterate, self._begins_at = self._begins_at, None
            self.w = self.problem.weights(self._iterate)
            memory.trim(self.problem.d)  # oracles arrange w for themselves
            primal, of_evaluation = self.problem.measured(self._iterate)
            after = self._after_exact_pass(solver, primal, dual)
            bounds = self._bounds(self._iterate, primal, dual)
            self._eval_time += time.perf_counter() - start
            row = {
                "iteration": self._before + iteration,
                "oracle_calls": solver.clock.oracle_calls,
                "approx_calls": solver.clock.approx_calls,
                "time": solver.clock.now(),
                "oracle_time": solver.clock.oracle_time,
                "cpu_time": solver.clock.cpu(),
                "eval_time": self._eval_time,
                "primal": primal,
                "dual": dual,
                "gap": primal - dual,
                "working_set_mean": solver.working_set_mean(),
                "approx_passes": solver.approx_passes,
                "w_norm": self.problem.size(self.w),
            }
            others: tuple[Any, ...] = of_evaluation, solver.diagnostics(), after, bounds
            for more in others:
                if not isinstance(more, Mapping):
                    got = shown(repr(more))
                    raise RunFailedError(f"diagnostics() must return numbers by name, got {got}")
                if taken := COLUMNS.keys() & more:
                    raise RunFailedError(f"diagnostics() has {min(taken)}, a column of every trace")
                row |= more
            if self.latent_rounds > 1:
                row["latent_round"] = float(self.round)
                row["latent_changes"] = float(self._changes)
                if primal < self._best[0]:
                    self._best = primal, self._iterate
            if solver.clock.caller is not None:
                clock = solver.clock
                row |= {"oracle_seconds": clock.caller_seconds, "oracle_wait": clock.caller_waited}
            self._add(row)
        return row

    def _add(self, row: dict[str, Any]) -> None:
        _check_numbers(row)
        self.rows.append(row)
        self.display.row(row)

    @property
    def rows_of_round(self) -> list[dict[str, Any]]:
        """The rows of the current round."""
        return self.rows[self._first :]

    def end_round(self) -> Any:
        """Make the round's iterate with the lowest primal value the last one; return it."""
        primal, point = self._best
        row = self.rows[-1]
        if self.latent_rounds > 1 and primal < row["primal"]:
            self._earlier, self._iterate = self._iterate, point
            self.w = self.problem.weights(point)
            norm = self.problem.size(self.w)
            own = {"primal": primal, "gap": primal - row["dual"], "w_norm": norm}
            self._add({**row, **own, **self._bounds(point, primal, row["dual"])})
        return self._iterate

    def begin_round(self, problem: Objective, changes: int) -> None:
        """Begin a round with another problem, at the point where the last round ended.

        Parameters
        ----------
        problem : Objective
        changes : int
            Number of latent values that have changed.
        """
        self.problem, self._changes = problem, changes
        self.round += 1
        self._first, self._before = len(self.rows), self.rows[-1]["iteration"]
        self._begins_at = self._iterate
        self._best = math.inf, self._iterate
        logger.info("Latent round %s: %s latent values are others.", self.round, changes)

    def _after_exact_pass(self, solver: Solver, primal: float, dual: float) -> dict[str, float]:
        """Return primal and dual after the last exact pass, if the solver keeps that iterate."""
        kept = solver.after_exact_pass
        if kept is None:
            return {}
        if not np.array_equal(kept.w, self._iterate):
            # by a fresh problem: the oracle's results may depend on earlier calls
            (primal, _), dual = self.problem.fresh().measured(kept.w), kept.dual
        return {"primal_after_exact": primal, "dual_after_exact": dual}

    def _bounds(self, point: Any, primal: float, dual: float) -> dict[str, float]:
        """Return an upper bound of the primal value, and its gap, if ``bound`` is set."""
        if not self.bound:
            return {}
        above = self.problem.upper_bound(point, primal)
        return {"primal_bound": above, "gap_bound": above - dual}

    def check_duality(self) -> None:
        """Raise ``RunFailedError`` if the last dual value is above its primal, beyond rounding."""
        row = self.rows[-1]
        self.problem.check_bound(self._iterate, self._earlier, row["primal"], row["dual"])
        self._earlier = None  # it may be large

    def keep(self) -> None:
        """Write the rows to disk if it is time; to be called in every iteration."""
        if self._flusher is not None:
            self._flusher.look(self.rows)

    def predict(self) -> None:
        """Compute the losses of the last row's iterate."""
        self.losses |= self.problem.losses(self._iterate)
        for name, loss in self.held_out.items():
            self.losses[name] = loss(self.w)
        _check_numbers(self.losses)

    def summary(self) -> dict[str, Any]:
        """Return the last row, the best primal and dual values, and the mean losses.

        The best values are those of the last latent round: earlier rounds have other problems.
        """
        if not self.rows:
            return {}
        rows = self.rows_of_round or self.rows[-1:]
        primal, dual = (np.array([row[name] for row in rows]) for name in ("primal", "dual"))
        return {
            **self.rows[-1],
            **best(primal, dual),
            **{f"{name}_loss": loss for name, loss in self.losses.items()},
        }


def _check_numbers(found: Mapping[str, Any]) -> None:
    """Raise ``RunFailedError`` unless all values that components report are numbers."""
    for name, value in found.items():
        if not isinstance(name, str) or not name.isprintable():
            raise RunFailedError(f"{shown(repr(name))} is no name of a column")
        is_count = name in COLUMNS and COLUMNS[name].dtype == "int64"
        if isinstance(value, int | np.integer):
            good = -(1 << 63) <= value < 1 << 63  # the range of a column
        else:
            good = isinstance(value, _NUMBERS) and (not is_count or float(value).is_integer())
        if not good:
            what = "an integer" if is_count else "a number of 64 bits"
            got = shown(hex(value) if isinstance(value, int) else repr(value))  # of any length
            raise RunFailedError(f"{name} must be {what}, got {got}")


def _rows(state: Any) -> list[dict[str, Any]]:
    """Return the rows of a state; raise unless its columns are numbers, and equally many."""
    columns: list[Any] = list(state.values()) if isinstance(state, Mapping) else [None]
    for column in columns:
        expect(isinstance(column, np.ndarray) and column.ndim == 1, "has no columns")
        expect(column.dtype.kind in "biuf", "has rows that are no numbers")
        expect(0 < column.size == columns[0].size, "has columns of several lengths")
    try:
        check_rows(state)
    except ValueError as error:
        raise StateError(f"has rows that are not those of a trace: {error}") from None
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(state, row, strict=True)) for row in rows]


class TraceFlusher:
    """Writes rows to disk before they are too old, at a cost far below 1 % of the time.

    It checks the rows after every iteration, and uses no thread: a row is written early if it would
    be too old after another iteration of twice the length of the last one.

    Parameters
    ----------
    write : callable
        Called with all rows so far.
    now : callable
        Seconds on a monotonic clock.
    """

    def __init__(
        self, write: Callable[[Columns], object], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self.now = write, now
        self._kept: dict[str, np.ndarray] = {}
        self._size = 0
        self._waits_since: float | None = None
        self._looked = now()

    def look(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows if one of them has waited long enough."""
        now = self.now()
        if self._waits_since is None and len(rows) > self._size:
            self._waits_since = now
        expected = now + 2 * (now - self._looked)
        if self._waits_since is not None and expected - self._waits_since > KEEP_SECONDS:
            new, old = as_columns(rows[self._size :]), np.full(self._size, math.nan)
            none = np.full(len(rows) - self._size, math.nan)
            self._kept = {
                name: np.concatenate([self._kept.get(name, old), new.get(name, none)])
                for name in {**self._kept, **new}
            }
            self._size = len(rows)
            self.write(self._kept)
            self._waits_since = None
            now = self.now()
        self._looked = now


# ---- held-out examples ------------------------------------------------------------------------


def held_out_loss(config: Any, trained: Any, examples: Dataset, w: np.ndarray) -> float:
    """Return the mean loss of predictions for held-out examples, by an oracle built for them."""
    oracle = registry.module("oracle", config.kind).build(config, examples)
    if config.has_kernel:
        oracle = oracle.over(trained.x)
    if examples.unseen is None:
        return float(oracle.mean_loss(w))
    return loss_of_labels(getattr(oracle, "loss_matrix", None), examples, oracle.predictions(w))


def loss_of_labels(matrix: np.ndarray | None, examples: Dataset, predicted: np.ndarray) -> float:
    """Return the mean loss of predicted labels of parts: by a matrix, or the share of wrong ones.

    A part whose true label is unknown to training has the largest possible loss.
    """
    losses = predicted != examples.y if matrix is None else matrix[examples.y, predicted]
    if examples.unseen is not None:
        losses = np.where(examples.unseen.mask, 1.0 if matrix is None else matrix.max(), losses)
    shares = np.add.reduceat(losses, examples.offsets[:-1]) / np.diff(examples.offsets)
    return float(shares.mean())
