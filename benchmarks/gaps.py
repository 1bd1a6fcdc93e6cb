"""Time and exact passes of ``mpbcfw_fast`` to relative gaps, at the dataset's own λ.

CPU seconds of the solver; the oracle is there already, and the gap is computed after each
iteration, on nobody's clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.passes import loaded, seconds
from benchmarks.report import TO_GAP, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

GAPS = {"ocr": (1e-2, 1e-3), "usps": (1e-2, 1e-4), "weizmann": (1e-2,), "stanford": (1e-2,)}
"""Dataset → gaps, from large to small; of all others 0.01."""

REPEATS = {"stanford": 1}
"""Dataset → runs, each with a seed of its own; of all others 3."""

MOST_ITERATIONS = 5000


def measure_gaps(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the dataset that the overrides ``call`` choose."""
    (config,) = compose_runs((*call, "solver=mpbcfw_fast"))
    dataset = loaded(config.dataset)
    oracle = components.build_oracle(config.oracle, config.dataset)
    problem = Problem(oracle, config.lam_of(dataset.n))
    components.warm_up(config, dataset)
    gaps = GAPS.get(dataset.name, (1e-2,))
    seeds = range(REPEATS.get(dataset.name, 3))
    runs = np.array([race(replace(config, seed=seed), problem, gaps) for seed in seeds])
    for k, gap in enumerate(gaps):
        spent, passes = runs[:, k].T
        note = f"{np.median(passes):.0f} exact passes"
        what = TO_GAP.format("mpbcfw_fast", f"{gap:g}")
        yield from_samples(dataset.name, dataset.source, what, spent, unit="s", note=note)


def race(config: RunConfig, problem: Problem, gaps: Sequence[float]) -> list[tuple[float, float]]:
    """Return CPU seconds and exact passes to each relative gap; NaN where it is not reached."""
    solver = components.build_solver(config, problem, Clock("cpu"))
    spent = 0.0
    found: list[tuple[float, float]] = []
    for passes in range(1, MOST_ITERATIONS + 1):
        spent += seconds(solver.iterate)
        w, dual = solver.reported()
        primal = problem.primal(w)
        while primal - dual <= gaps[len(found)] * primal:
            found.append((spent, passes))
            if len(found) == len(gaps):
                return found
    return [*found, *[(np.nan, np.nan)] * (len(gaps) - len(found))]
