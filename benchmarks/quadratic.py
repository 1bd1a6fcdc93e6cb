"""The inner QP of the bundle methods, by our own method and by a QP library, PIQP.

P-BMRM is run on the dataset, with P = 16 and λ = 1/n, until it has as many planes as wanted; then
the QP that it solves next is solved by both. Ours begins at the last solution, as in a run; PIQP,
an interior-point method like other libraries for dense QPs, cannot make use of one. Both are to
get within the same absolute gap, a hundredth of 1 % of the primal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from statistics import median

import numpy as np

from benchmarks.passes import loaded, seconds
from benchmarks.report import QP, Measurement
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components
from ssvm_bench.solvers.bundle import qp
from ssvm_bench.solvers.bundle.bmrm import BundleMethod, build

SIZES = (200, 500, 1000, 2000)
"""Numbers of planes; PIQP takes a minute for 4000."""

REPEATS = 3
"""QPs of about that size, one after the other."""

PRECISION = 1e-4
"""Gap of the QP, relative to the primal."""


def measure_qps(call: Sequence[str]) -> Iterator[Measurement]:
    """Compare on the dataset that the overrides ``call`` choose, if it has an example per risk."""
    config = compose_runs((*call, "solver=p_bmrm"))[0]
    dataset = loaded(config.dataset)
    if dataset.n < config.solver.P or find_spec("piqp") is None:  # it comes with the extra "dev"
        return
    problem = Problem(components.build_oracle(config.oracle, config.dataset), 1 / dataset.n)
    components.warm_up(config, dataset)
    solver = build(replace(config.solver, epsilon=PRECISION), problem, Clock("cpu"), 0)
    for size in SIZES:
        while solver.model.size < size and not solver.converged:
            solver.iterate()
        if solver.converged:
            return
        ratios, ours = [], []
        for _ in range(REPEATS):
            mine, other = _both(solver)
            ours.append(mine)
            ratios.append(mine / other)
        yield Measurement(
            *(dataset.name, dataset.source, QP.format(size)),
            *(median(ratios), min(ratios), max(ratios)),
            seconds=median(ours),
        )


def _both(solver: BundleMethod) -> tuple[float, float]:
    """Do an iteration; return the seconds of both methods for its QP."""
    before = solver.model.weights(proximal=False).copy()
    solver.learn(*solver.sample(solver.point))
    gram, block, q, mu = solver.model.quadratic(solver.problem.lam, 0.0)
    m, tol = q.size, PRECISION * solver.primal
    beta = np.pad(before, (0, m - before.size))
    dense = np.ascontiguousarray(gram[:m, :m])
    ours = seconds(lambda: qp.maximise(gram, block, q, mu, beta, tol, 10**8))
    sums = np.zeros((solver.config.P, m))
    sums[block, np.arange(m)] = 1.0

    import piqp

    def library() -> None:
        other = piqp.DenseSolver()
        other.settings.eps_duality_gap_abs = tol
        other.setup(
            dense / mu, -q, sums, np.ones(len(sums)), None, None, None, np.zeros(m), np.ones(m)
        )
        if other.solve() != piqp.PIQP_SOLVED:
            raise RuntimeError("PIQP has not solved the QP.")

    return ours, seconds(library)
