"""Plates and landmarks: what their oracles take, and how far MP-BCFW is ahead of BCFW.

.. code-block:: text

    plates       t(exact pass) / t(product of all columns with all columns of templates)
    landmarks    t(exact pass), and peak memory of a whole run, data and all
    both         t(MP-BCFW until its gap is that of BCFW after 30 iterations) / t(BCFW)

in CPU time, at the smallest λ that the bundle-method report has on each. An exact pass is that of
all oracles at the w that BCFW has reached, with their planes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.passes import Product, loaded, seconds
from benchmarks.processes import peak_of_run
from benchmarks.report import AHEAD, PASS, SCORES, SHORT_MEMORY, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import LANDMARKS, SEGMENTS
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components
from ssvm_bench.solvers.base import Solver

LAMBDAS = {SEGMENTS: "lam=100/n", LANDMARKS: "lam=10/n"}
AHEAD_OF_BCFW = ("mpbcfw", "mpbcfw_fast")

ITERATIONS = 30
"""Of BCFW: earlier, its primal value rises and falls, and the gap of an iteration says little."""

SHORT = 3
"""Iterations of the run whose memory is measured."""

ROUNDS = 5
"""Exact passes, and products, in turn."""


def measure_dynamic_programs(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the dataset that the overrides ``call`` choose, if it is one of these."""
    dataset = loaded(compose_runs(call)[0].dataset)
    structure = dataset.structure
    if structure not in LAMBDAS:
        return
    at = (*call, LAMBDAS[structure])
    configs = {name: compose_runs((*at, f"solver={name}"))[0] for name in ("bcfw", *AHEAD_OF_BCFW)}
    subject = (dataset.name, dataset.source)
    if structure == LANDMARKS:
        note = f"{SHORT} iterations"
        short = (*call, "solver=mpbcfw", f"budget.max_iterations={SHORT}")
        yield from_samples(*subject, SHORT_MEMORY, [peak_of_run(*short)], unit="MB", note=note)
    oracle = components.build_oracle(configs["bcfw"].oracle, configs["bcfw"].dataset)
    problem = Problem(oracle, configs["bcfw"].lam_of(dataset.n))
    for config in configs.values():
        components.warm_up(config, dataset)

    bcfw = _made(configs["bcfw"], problem)
    taken = sum(seconds(bcfw.iterate) for _ in range(ITERATIONS))
    gap, w = _gap(bcfw, problem), bcfw.reported().w
    one_pass = partial(problem.risk, w)
    if structure == LANDMARKS:
        passes = [seconds(one_pass) for _ in range(ROUNDS)]
        yield from_samples(*subject, PASS.format(dataset.n), passes, unit="s")
    else:
        product = Product(dataset)
        pairs = [(seconds(one_pass), product.seconds()) for _ in range(ROUNDS)]
        ratios = [ours / bound for ours, bound in pairs]
        yield from_samples(*subject, SCORES, ratios, seconds=min(ours for ours, _ in pairs))
    note = f"bcfw {taken:.3g} s to a gap of {gap:.3g}"
    for name in AHEAD_OF_BCFW:
        ours = _time_to(gap, _made(configs[name], problem), problem)
        yield from_samples(*(*subject, AHEAD.format(name), [ours / taken]), seconds=ours, note=note)


def _made(config: RunConfig, problem: Problem) -> Solver:
    return components.build_solver(config, problem, Clock("cpu"))


def _gap(solver: Solver, problem: Problem) -> float:
    """Return the gap of what a solver reports."""
    w, dual = solver.reported()
    return problem.primal(w) - dual


def _time_to(gap: float, solver: Solver, problem: Problem) -> float:
    """Return the time to a gap, evaluations apart; NaN where it takes more iterations than BCFW."""
    spent = 0.0
    for _ in range(ITERATIONS):
        spent += seconds(solver.iterate)
        if _gap(solver, problem) <= gap:
            return spent
    return math.nan
