"""A first sweep of dual coordinate descent against one of LIBLINEAR, of which it is an extension.

Both visit every example once, from α = 0, in random order, on the same features and without bias.
LIBLINEAR's is the time of a fit with one sweep less that of a fit with none, which has all else:
checks, copies, the diagonal. Ours has the bounds in it, and not what comes before the first sweep.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR

from benchmarks.passes import loaded, seconds
from benchmarks.report import Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Problem
from ssvm_bench.papers.dual_coordinate.measures import FIRST_SWEEP
from ssvm_bench.runs import components

ROUNDS = 15
"""Comparisons, each of two fits and one sweep of ours."""


def measure_first_sweep(call: Sequence[str]) -> Iterator[Measurement]:
    """Compare on the dataset that the overrides ``call`` choose, if LIBLINEAR has that problem."""
    config = compose_runs((*call, "solver=dcd", "solver.M=0"))[0]
    if config.oracle.name not in ("binary", "regression"):
        return
    dataset = loaded(config.dataset)
    problem = Problem(components.build_oracle(config.oracle, config.dataset), 1 / dataset.n)
    components.warm_up(config, dataset)
    ours, theirs = [], []
    for seed in range(ROUNDS):
        solver = components.build_solver(config, problem, Clock("cpu"))
        ours.append(seconds(solver.iterate))
        theirs.append(_fit(config, dataset, 1, seed) - _fit(config, dataset, 0, seed))
    sweep = float(np.median(theirs))
    yield from_samples(
        dataset.name,
        dataset.source,
        FIRST_SWEEP,
        [float(one) / sweep for one in ours],
        seconds=float(np.median(ours)),
        note=f"LIBLINEAR {1e3 * sweep:.2g} ms",
    )


def _fit(config: RunConfig, dataset: Dataset, sweeps: int, seed: int) -> float:
    """Return the time of a fit that ends after so many sweeps."""
    how = {"C": 1.0, "fit_intercept": False, "max_iter": sweeps, "random_state": seed}
    if config.oracle.name == "binary":
        model = LinearSVC(loss="hinge", dual=True, **how)
    else:
        epsilon = config.oracle.epsilon
        model = LinearSVR(loss="epsilon_insensitive", epsilon=epsilon, dual=True, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return seconds(lambda: model.fit(dataset.x, dataset.y))
