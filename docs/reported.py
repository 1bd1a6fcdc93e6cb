"""Other points to report than w: exact passes of `mpbcfw_fast` to relative gaps, P at each point.

    python docs/reported.py [DATASET …]

The bound is F of the run, the same for all points, and each value of P is one more pass of the
oracle, which is not counted. With λ = 1/n and ``clock=work``, so that counts do not depend on the
load. The points after an iteration:

- w: what a run reports
- centre: half way from the last centre to w, as `solver.in_out=0.5` calls the oracle
- mean of four: of w after this iteration and the three before
- on the way: of the best point so far, w, and two points between them, the one of lowest P, as in
  OCAS and Prox-BMRM
"""

import sys

import numpy as np
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

GAPS = 0.1, 0.05, 0.02, 0.01
MOST = 80
BETWEEN = 0.35, 0.7, 1.0


def passes(dataset):
    """Return point → gap → exact passes until P at the point has it."""
    config = compose_runs([f"dataset={dataset}", "solver=mpbcfw_fast", "lam=1/n", "clock=work"])[0]
    terms = components.build_oracle(config.oracle, config.dataset)
    problem = Problem(terms, 1.0 / terms.n)
    clock = Clock("work", *config.oracle.costs)
    solver = components.build_solver(config, problem, clock)
    solver.begin()
    found, last = {}, []
    centre = best = lowest = None
    for _ in range(MOST):
        solver.iterate()
        w, dual = solver.reported()
        w = np.array(w, float)
        last = [*last[-3:], w]
        centre = w if centre is None else 0.5 * (centre + w)
        values = {
            "w": problem.primal(w),
            "centre": problem.primal(centre),
            "mean of four": problem.primal(np.mean(last, axis=0)),
        }
        way = [w] if best is None else [best + share * (w - best) for share in BETWEEN]
        for point in way:
            if lowest is None or (value := problem.primal(point)) < lowest:
                best, lowest = point, values["w"] if lowest is None else value
        values["on the way"] = lowest
        for point, value in values.items():
            for gap in GAPS:
                if value - dual <= gap * value:
                    found.setdefault((point, gap), clock.oracle_calls / problem.n)
        if ("w", GAPS[-1]) in found:
            return found
    return found


def main(datasets):
    """Print and keep the passes of each point to each gap that it has within those of w."""
    rows = [
        {"dataset": dataset, "point": point, "gap": gap, "passes": count}
        for dataset in datasets
        for (point, gap), count in passes(dataset).items()
    ]
    keep("reported/reported", rows)


if __name__ == "__main__":
    main(sys.argv[1:] or ["conll2000"])
