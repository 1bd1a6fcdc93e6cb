"""Time of `mpbcfw_fast` and `mpbcfw_newton` to small relative gaps, and the optima that they find.

    python docs/second_order.py [DATASET …]

λ = 1/n, CPU seconds and exact passes of seeds 0, 1 and 2 (OCR: 0), medians; P is evaluated off the
clock, in 3 % of the iterations. A run ends at the smallest gap, or after `SECONDS`. The optimum
lies between the highest F and the lowest P of all runs. Beside it: how many more planes have weight
than there are terms, in the last run.
"""

import sys
from statistics import median

from ssvm_bench.base import state
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

SOLVERS = "mpbcfw_fast", "mpbcfw_newton"
GAPS = 1e-4, 1e-6, 1e-8, 1e-10
SECONDS = {"usps": 20, "weizmann": 20, "ocr": 100}
SEEDS = {"usps": "0,1,2", "weizmann": "0,1,2", "ocr": "0"}


def run(config, problem):
    """Return seconds and passes to each gap, infinite where it is not reached; best F and P; m."""
    solver = components.build_solver(config, problem, clock := Clock("cpu"))
    found, dual, primal = [], -float("inf"), float("inf")
    passes, due = 0, 1.0
    while len(found) < len(GAPS) and clock.now() < SECONDS[config.dataset.name]:
        solver.iterate()
        passes += 1
        if passes >= due:
            with clock.paused():
                w, bound = solver.reported()
                value = problem.primal(w)
            due = max(passes + 1, 1.03 * passes)
            dual, primal = max(dual, bound), min(primal, value)
            while len(found) < len(GAPS) and value - bound <= GAPS[len(found)] * value:
                found.append((clock.now(), passes))
    found += [(float("inf"),) * 2] * (len(GAPS) - len(found))
    weights = state.of(solver.visits.policy.simplex)["alpha"]
    return found, dual, primal, int((weights > 0).sum()) - problem.n


def main(names):
    """Print the table."""
    print(f"| data | solver | {' | '.join(f'{gap:g}' for gap in GAPS)} |")
    print("|---" * (len(GAPS) + 2) + "|")
    optima = []
    for name in names:
        highest, lowest = -float("inf"), float("inf")
        for solver in SOLVERS:
            options = f"dataset={name}", "dataset.source=real", f"solver={solver}", "lam=1/n"
            configs = compose_runs([*options, f"seed={SEEDS[name]}"], multirun=True)
            data = components.load_dataset(configs[0].dataset)
            oracle = components.build_oracle(configs[0].oracle, configs[0].dataset)
            problem = Problem(oracle, configs[0].lam_of(data.n))
            components.build_solver(configs[0], problem, Clock("work")).iterate()  # compiled
            runs = []
            for config in configs:
                found, dual, primal, m = run(config, problem)
                highest, lowest = max(highest, dual), min(lowest, primal)
                runs.append(found)
            cells = []
            for each in zip(*runs, strict=True):
                seconds, passes = (median(of) for of in zip(*each, strict=True))
                reached = seconds < float("inf")
                cells.append(f"{seconds:.3g} s, {passes:g}" if reached else "–")
            print(f"| {name} | `{solver}` | {' | '.join(cells)} |", flush=True)
        optima.append(f"{name}: {highest:.15g} to {lowest:.15g}, {m} planes")
    print("", *optima, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(SECONDS))
