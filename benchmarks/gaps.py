"""Time and exact passes to relative gaps, of ``mpbcfw_fast`` and on MNIST of bundle methods.

CPU seconds of the solver; the oracle is there already, and the gap is computed on nobody's clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.passes import loaded, seconds
from benchmarks.report import TO_GAP, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components


class Race(NamedTuple):
    """What is measured on a dataset.

    Attributes
    ----------
    gaps : tuple of float
        Relative gaps, from large to small.
    repeats : int
        Runs, each with a seed of its own.
    solvers : tuple of str
        Ours, then those beside which it is measured.
    options : tuple of str
        Overrides of these runs.
    """

    gaps: tuple[float, ...] = (1e-2,)
    repeats: int = 3
    solvers: tuple[str, ...] = ("mpbcfw_fast",)
    options: tuple[str, ...] = ()


# on MNIST, the hardest problem of the bundle methods' report (experiment bmrm_mnist)
BMRM_REPORT = Race(repeats=1, solvers=("mpbcfw_fast", "prox_bmrm", "bmrm"), options=("lam=1/n",))

RACES = {
    "ocr": Race(gaps=(1e-2, 1e-3)),
    "usps": Race(gaps=(1e-2, 1e-4)),
    "stanford": Race(repeats=1),
    "mnist": BMRM_REPORT,
}
"""Dataset → its race, if that is not `Race`'s defaults."""

MOST_ITERATIONS = 8000

GROWTH = 1.03
"""The gap is computed after each iteration, and less often after many."""


def measure_gaps(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the dataset that the overrides ``call`` choose."""
    (first,) = compose_runs((*call, "solver=mpbcfw_fast"))
    dataset = loaded(first.dataset)
    oracle = components.build_oracle(first.oracle, first.dataset)
    asked = RACES.get(dataset.name, Race())
    for name in asked.solvers:
        (config,) = compose_runs((*call, f"solver={name}", *asked.options))
        problem = Problem(oracle, config.lam_of(dataset.n))
        components.warm_up(config, dataset)
        seeds = range(asked.repeats)
        runs = np.array([race(replace(config, seed=seed), problem, asked.gaps) for seed in seeds])
        for k, gap in enumerate(asked.gaps):
            spent, passes = runs[:, k].T
            note = f"{np.median(passes):.0f} exact passes"
            what = TO_GAP.format(name, f"{gap:g}")
            yield from_samples(dataset.name, dataset.source, what, spent, unit="s", note=note)


def race(config: RunConfig, problem: Problem, gaps: Sequence[float]) -> list[tuple[float, float]]:
    """Return CPU seconds and exact passes to each relative gap; NaN where it is not reached."""
    solver = components.build_solver(config, problem, Clock("cpu"))
    spent, due = 0.0, 1
    found: list[tuple[float, float]] = []
    for passes in range(1, MOST_ITERATIONS + 1):
        spent += seconds(solver.iterate)
        if passes < due:
            continue
        due = max(passes + 1, int(GROWTH * passes))
        w, dual = solver.reported()
        primal = problem.primal(w)
        while primal - dual <= gaps[len(found)] * primal:
            found.append((spent, passes))
            if len(found) == len(gaps):
                return found
    return [*found, *[(np.nan, np.nan)] * (len(gaps) - len(found))]
