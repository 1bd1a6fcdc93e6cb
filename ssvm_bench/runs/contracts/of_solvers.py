"""The contract of solvers (:mod:`ssvm_bench.solvers.base`): what they report, and what they count.

The oracle that counts calls shows a solver its abstract methods only, as an oracle of another
package would.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.oracles.base import Oracle, Plane, Problem, Risk
from ssvm_bench.runs import checkpoints
from ssvm_bench.runs.contracts import Findings, expect
from ssvm_bench.solvers.base import Solver

Build = Callable[[Problem, Clock, int], Solver]

Row = tuple[np.ndarray, float, float]
"""w, primal and dual."""

_COUNTS = ("oracle_calls", "approx_calls", "oracle_time")

ITERATIONS = 40
LAM = 0.5  # every method is quick with it
ROUNDING = 1e-9
_COSTS = (1e-5, 1e-7)
_RESTORED = 7


def _handed_on(name: str) -> Any:
    """Return a method of `Counting` that delegates to the inner oracle."""
    return lambda self, *arguments: getattr(self.inner, name)(*arguments)


class Counting(Oracle):
    """An oracle that counts its calls, and hides that it is compiled."""

    def __init__(self, inner: Oracle) -> None:
        self.inner, self.n, self.d, self.exact = inner, inner.n, inner.d, inner.exact
        self.calls = 0

    truth, predict, loss, joint_feature, fixed_score = (
        _handed_on(name) for name in ("truth", "predict", "loss", "joint_feature", "fixed_score")
    )

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Count a call."""
        self.calls += 1
        return self.inner.argmax(w, i)

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Count a call."""
        self.calls += 1
        return self.inner.best_plane(w, i)

    def risk(self, w: np.ndarray, with_plane: bool = True, terms: range | None = None) -> Risk:
        """Count one call per term."""
        self.calls += self.n if terms is None else len(terms)
        return self.inner.risk(w, with_plane, terms)


def check(build: Build, config: Any, oracle: Oracle, findings: Findings) -> None:
    """Check a solver on the problem of an oracle.

    Parameters
    ----------
    build : callable
        Builds the solver of a problem, given a clock and a seed.
    config : dataclass
        Its ``Config``.
    oracle : Oracle
        Exact, of a few terms.
    findings : Findings
    """
    rows: list[Row] = []
    with findings.claim("build returns a Solver"):
        built = _built(build, oracle)
        expect(isinstance(built, Solver), f"it returns {type(built).__name__}")
    if findings.broken:
        return
    with findings.claim("w is float64 of shape (d,), finite, and stays as reported"):
        rows = _trace(build, oracle)
    if not rows:
        return
    has_dual = getattr(config, "has_dual", True)
    findings.check(
        "dual ≤ primal in every row",
        lambda: _duality(rows),
        "" if has_dual else "the solver says that it has no dual value",
    )
    findings.check(
        "F rises, and the gap falls",
        lambda: _progress(rows),
        "" if has_dual else "the solver says that it has no dual value",
    )
    with findings.claim(f"primal is lower after {ITERATIONS} iterations than at the beginning"):
        first, last = rows[0][1], min(primal for _, primal, _ in rows[1:])
        expect(last < first, f"{last:.9g}, and {first:.9g} at the beginning")
    with findings.claim("the same seed makes the same trace"):
        _compare(rows, _trace(build, oracle))
    has_state, compiled = _has_state(built), getattr(config, "needs_expectations", False)
    findings.check(
        "a new one that takes its state goes on with the same trace",
        lambda: _compare(rows, _trace(build, oracle, _RESTORED)),
        "" if has_state else "it does not say its STATE: a run that is ended begins anew",
    )
    with findings.claim("counts and time only rise"):
        _rises(build, oracle)
    findings.check(
        "every call of the oracle is on the clock",
        lambda: _counts(build, oracle),
        "it asks for expectations, which are compiled" if compiled else "",
    )


def _progress(rows: list[Row]) -> None:
    """Compare dual and gap at the end with those at the beginning."""
    (_, primal, dual), (_, last_primal, last_dual) = rows[0], rows[-1]
    gap, last = primal - dual, last_primal - last_dual
    solved = gap <= ROUNDING * max(1.0, abs(primal))
    text = f"the dual is {last_dual:.9g} after {ITERATIONS} iterations, and {dual:.9g} before"
    expect(solved or (math.isfinite(last_dual) and last_dual > dual), text)
    text = f"the gap is {last:.9g} after {ITERATIONS} iterations, and {gap:.9g} before"
    expect(solved or last < gap, text)


def _built(build: Build, oracle: Oracle) -> Solver:
    return build(Problem(oracle.fresh(), LAM), Clock("work", *_COSTS), 0)


def _duality(rows: list[Row]) -> None:
    best = min(primal for _, primal, _ in rows)
    for k, (_, _, dual) in enumerate(rows):
        expect(not math.isnan(dual), f"no dual value in row {k} (has_dual = False?)")
        low = dual <= best + ROUNDING * max(1.0, abs(best))
        expect(low, f"row {k} has the dual {dual:.9g}, and a primal is {best:.9g}")


def _trace(build: Build, oracle: Oracle, restored: int | None = None) -> list[Row]:
    """Return all rows; from index ``restored`` on, those of a solver restored from its state."""
    solver = _built(build, oracle)
    solver.begin()
    rows = []
    for k in range(ITERATIONS + 1):
        if k == restored:
            state = copy.deepcopy(checkpoints.of_solver(solver))
            solver = _built(build, oracle)
            checkpoints.restore_solver(solver, state)
        w, dual = solver.reported()
        expect(
            isinstance(w, np.ndarray) and w.shape == (oracle.d,) and w.dtype == np.float64,
            f"row {k}: w is {getattr(w, 'dtype', type(w).__name__)} {np.shape(w)}",
        )
        expect(bool(np.isfinite(w).all()), f"row {k}: w is not finite")
        again = solver.reported()
        same = np.array_equal(w, again.w) and _equal((dual,), (again.dual,))
        expect(same, f"row {k}: reported twice, it is another iterate")
        rows.append((w.copy(), Problem(oracle, LAM).primal(w), float(dual)))
        if k < ITERATIONS and not solver.converged and solver.ended is None:
            solver.iterate()
            expect(np.array_equal(w, rows[-1][0]), f"row {k}: the next iteration has changed its w")
    return rows


def _rises(build: Build, oracle: Oracle) -> None:
    """Compare what has been spent before and after iterations."""
    solver = _built(build, oracle)
    solver.begin()
    for k in range(1, ITERATIONS + 1):
        before = _spent(solver)
        if solver.converged or solver.ended is not None:
            return
        solver.iterate()
        for name, spent in _spent(solver).items():
            expect(spent >= before[name], f"{name} falls in iteration {k}")
        expect(solver.approx_passes >= 0, f"approx_passes is negative in iteration {k}")


def _spent(solver: Solver) -> dict[str, float]:
    """Return what only rises: the counts and the time of the solver's clock."""
    return {**{name: getattr(solver.clock, name) for name in _COUNTS}, "time": solver.clock.now()}


def _has_state(solver: Solver) -> bool:
    try:
        solver.state()
    except NotImplementedError:
        return False
    return True


def _compare(rows: list[Row], others: list[Row]) -> None:
    """Compare two traces."""
    for k, (one, other) in enumerate(zip(rows, others, strict=True)):
        same = np.array_equal(one[0], other[0]) and _equal(one[1:], other[1:])
        expect(same, f"row {k}: primal {one[1]!r}, then {other[1]!r}")


def _counts(build: Build, oracle: Oracle) -> None:
    """Compare the calls that were made with those on the clock, after every iteration."""
    counting, clock = Counting(oracle), Clock("work", *_COSTS)
    solver = build(Problem(counting, LAM), clock, 0)
    solver.begin()
    for k in range(4):
        expect(
            counting.calls == clock.oracle_calls,
            f"{counting.calls} calls after {k} iterations, and the clock has {clock.oracle_calls}",
        )
        if not solver.converged and solver.ended is None:
            solver.iterate()
    expect(counting.calls > 0, "it has called no oracle in three iterations")


def _equal(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return bool(np.array_equal(np.array(one), np.array(other), equal_nan=True))
