"""The same problem by a solver that a user would pick elsewhere: scikit-learn's LinearSVC.

With C = 1, no intercept and Crammer and Singer's loss, LinearSVC minimises

.. code-block:: text

    1/2 ‖w‖² + Σ_i max_y (Δ(y_i, y) − ⟨w, ϕ(x_i, y_i) − ϕ(x_i, y)⟩) = n P(w),    λ = 1/n

by a dual coordinate method, up to a tolerance; it tells nothing on the way. So it is run with ever
smaller tolerances until its primal is within 0.1 % of the optimum, and the time of that run alone
counts, as if the tolerance had been known. The optimum is bounded from below by the dual value of
a long run of our own: what is within 0.1 % of that is within 0.1 % of the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.passes import loaded, seconds
from benchmarks.report import RIVAL, Measurement
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components
from ssvm_bench.solvers.base import Solver

WITHIN = 1e-3
"""Relative suboptimality of the primal."""

TOLERANCES = tuple(0.02 / 2**k for k in range(12))
LAST_GAP = 2e-4
"""Relative gap at which our own run ends."""

MOST_ITERATIONS = 2000


def measure_rivals(call: Sequence[str]) -> Iterator[Measurement]:
    """Compare on the dataset that the overrides ``call`` choose, if it is a multiclass one."""
    config = compose_runs((*call, "solver=mpbcfw_fast"))[0]
    dataset = loaded(config.dataset)
    if dataset.structure != "independent" or np.unique(dataset.y).size < max(dataset.n_labels, 3):
        return  # LinearSVC knows only the classes that it sees, and two of them as one
    problem = Problem(components.build_oracle(config.oracle, config.dataset), 1 / dataset.n)
    components.warm_up(config, dataset)
    solver = components.build_solver(config, problem, Clock("cpu"))
    times, primals, dual = _trajectory(solver, problem)
    good = np.flatnonzero(primals <= (1 + WITHIN) * dual)
    if not good.size:
        return
    ours = times[good[0]]
    x = np.asarray(dataset.x.toarray() if hasattr(dataset.x, "toarray") else dataset.x, float)
    for tolerance in TOLERANCES:
        theirs, primal = _fit(x, dataset.y, tolerance, problem)
        if primal <= (1 + WITHIN) * dual:
            ratio = float(ours / theirs)
            note = f"LinearSVC {theirs:.1f} s with tol={tolerance:g}"
            yield Measurement(
                *(dataset.name, dataset.source, RIVAL, ratio, ratio, ratio),
                seconds=float(ours),
                note=note,
            )
            return


def _trajectory(solver: Solver, problem: Problem) -> tuple[np.ndarray, np.ndarray, float]:
    """Return times and primal values of a long run, and its last dual value."""
    times, primals = [0.0], [problem.primal(solver.reported().w)]
    for _ in range(MOST_ITERATIONS):
        times.append(times[-1] + seconds(solver.iterate))
        iterate = solver.reported()
        primals.append(problem.primal(iterate.w))
        if primals[-1] - iterate.dual <= LAST_GAP * primals[-1] or solver.converged:
            break
    return np.array(times), np.array(primals), solver.reported().dual


def _fit(x: np.ndarray, y: np.ndarray, tolerance: float, problem: Problem) -> tuple[float, float]:
    """Return the time of a run of LinearSVC, and its primal value."""
    model = LinearSVC(
        multi_class="crammer_singer",
        fit_intercept=False,
        C=1.0,
        tol=tolerance,
        max_iter=1_000_000,
        random_state=0,
    )
    theirs = seconds(lambda: model.fit(x, y))
    return theirs, problem.primal(model.coef_.ravel())
