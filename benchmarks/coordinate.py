"""Dual coordinate descent, beside the solvers that a user would pick elsewhere, or here.

LIBLINEAR, by scikit-learn, solves our problems of two classes and of regression: with C = 1, and
the constant feature in the data, so that its weight is regularised as the others, it minimises

.. code-block:: text

    1/2 ‖w‖² + Σ_i max(0, 1 − y_i ⟨w, x_i⟩)   or   Σ_i max(0, |y_i − ⟨w, x_i⟩| − ε)   =  n P(w)

with λ = 1/n, by dual coordinate descent as well. It tells nothing of its primal on the way, and no
tolerance of its own stands for a gap: it is given the fewest sweeps after which its primal is
within 0.1 % of the optimum, as if they had been known. Ours has to prove a gap of 0.1 %, and counts
whole: oracle, solver and sweeps, as ``fit`` takes data as they come.

Among our own solvers, `dcd` and `mpbcfw_fast` go to a gap of 1 %, at the dataset's own λ. Here the
oracle is there already, and to compute the gap is on nobody's clock but where a solver does it by
itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR

from benchmarks.gaps import MOST_ITERATIONS, race
from benchmarks.passes import loaded, seconds
from benchmarks.report import COORDINATE, LIBLINEAR, OPTIMA, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components
from ssvm_bench.solvers.base import Solver

OURS = ("dcd", "mpbcfw_fast")

REPEATS = 5
"""Runs of each, with another seed, in turn."""

WITHIN = 1e-3
"""Relative gap, or suboptimality, of the race with LIBLINEAR."""

GAP = 1e-2
"""Relative gap of the race between our own."""

PRECISION = 1e-7
"""Relative gap at which an optimum is known."""

FINEST = 1e-7
"""Tolerance with which LIBLINEAR finds it."""

SWEEPS = tuple(sorted({round(1.1**k) for k in range(100)}))
"""How many of LIBLINEAR's are tried."""


def measure_coordinate(call: Sequence[str]) -> Iterator[Measurement]:
    """Compare on the dataset that the overrides ``call`` choose."""
    config = compose_runs((*call, "solver=dcd"))[0]
    if config.oracle.kind in _RIVALS:
        yield from _beside_liblinear(compose_runs((*call, "dataset.bias=1", "solver=dcd"))[0])
    else:
        yield from _beside_our_own([compose_runs((*call, f"solver={name}"))[0] for name in OURS])


# ---- LIBLINEAR ----------------------------------------------------------------------------------


def _classifier(config: RunConfig, **options: Any) -> LinearSVC:
    return LinearSVC(loss="hinge", **options)


def _regressor(config: RunConfig, **options: Any) -> LinearSVR:
    return LinearSVR(loss="epsilon_insensitive", epsilon=config.oracle.epsilon, **options)


_RIVALS = {"binary": _classifier, "regression": _regressor}
"""Kind of oracle → its problem's solver."""


def _beside_liblinear(config: RunConfig) -> Iterator[Measurement]:
    dataset = loaded(config.dataset)
    components.warm_up(config, dataset)
    subject = (dataset.name, dataset.source)
    known = _solved(config, dataset, PRECISION)
    best = known.reported()
    found, _ = fit(config, dataset, known.problem, tol=FINEST, max_iter=10**7)
    apart = 1e6 * abs(found - known.problem.primal(best.w)) / best.dual
    yield from_samples(*subject, OPTIMA, [apart], unit="ppm", note=f"P = {best.dual:.9g}")

    for sweeps in SWEEPS:
        few = {"tol": 1e-12, "max_iter": sweeps}
        if fit(config, dataset, known.problem, **few)[0] <= (1 + WITHIN) * best.dual:
            break
    else:
        return
    ours, theirs = [], []
    for seed in range(REPEATS):
        again = replace(config, seed=seed)
        ours.append(seconds(partial(_solved, again, dataset, WITHIN)))
        theirs.append(fit(config, dataset, known.problem, **few)[1])
    note = f"LIBLINEAR {1000 * np.median(theirs):.0f} ms, {sweeps} sweeps"
    ratios = np.array(ours) / theirs
    yield from_samples(*subject, LIBLINEAR, ratios, seconds=float(np.median(ours)), note=note)


def _solved(config: RunConfig, dataset: Dataset, tol: float) -> Solver:
    """Return the solver that has proved so small a gap, from the data on."""
    oracle = registry.module("oracle", config.oracle.kind).build(config.oracle, dataset)
    config = replace(config, solver=replace(config.solver, tol=tol))
    problem = Problem(oracle, config.lam_of(dataset.n))
    solver = components.build_solver(config, problem, Clock("cpu"))
    for _ in range(MOST_ITERATIONS):
        solver.iterate()
        if solver.converged:
            break
    return solver


def fit(
    config: RunConfig, dataset: Dataset, problem: Problem, **options: Any
) -> tuple[float, float]:
    """Return the primal value that LIBLINEAR reaches, and its time."""
    model = _RIVALS[config.oracle.kind](
        config, C=1.0, fit_intercept=False, dual=True, random_state=0, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        spent = seconds(lambda: model.fit(dataset.x, dataset.y))
    return problem.primal(model.coef_.ravel()), spent


# ---- our own ------------------------------------------------------------------------------------


def _beside_our_own(configs: Sequence[RunConfig]) -> Iterator[Measurement]:
    dataset = loaded(configs[0].dataset)
    oracle = components.build_oracle(configs[0].oracle, configs[0].dataset)
    problem = Problem(oracle, configs[0].lam_of(dataset.n))
    for config in configs:
        components.warm_up(config, dataset)
    times = np.array(
        [
            [race(replace(config, seed=seed), problem, (GAP,))[0][0] for config in configs]
            for seed in range(REPEATS)
        ]
    )
    yield from_samples(
        *(dataset.name, dataset.source, COORDINATE, times[:, 0] / times[:, 1]),
        seconds=float(np.median(times[:, 0])),
        note=f"mpbcfw_fast {np.median(times[:, 1]):.2g} s",
    )
