"""`shrink`, `inner_steps` and `T` of `mpbcfw_fast`: CPU seconds to relative gaps, by data.

    python docs/approximate_passes.py [DATASET …] [SHRINK/INNER_STEPS/T …]

With λ = 1/n and seed 0, on 2,000 sentences of CoNLL-2000, 1,500 words of OCR, and all of USPS. The
options decide which terms an approximate pass visits, how many steps a visit makes, and how long a
plane without weight stays. A rule by which a run chooses them itself could gain as much as the best
row of a table is below the first, the preset. Evaluations are off the clock. A cell is empty where
the gap is not reached in `MOST` seconds.
"""

import sys

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

GAPS = 0.1, 0.03, 0.01
MOST = 60
EXAMPLES = {"conll2000": 2000, "ocr": 1500}
SETTINGS = (
    *("0.03/5/2", "0/5/2", "0.01/5/2", "0.1/5/2"),
    *("0.03/2/2", "0.03/10/2", "0.03/20/2"),
    *("0.03/5/1", "0.03/5/5", "0.03/5/10"),
    *("0.01/10/1", "0.01/10/5", "0.1/10/2", "0.1/5/1", "0.1/5/5", "0.1/10/5", "0.1/2/5"),
)


def composed(name, setting):
    """Return the configuration of a run."""
    shrink, inner_steps, T = setting.split("/")
    options = [f"dataset={name}", "dataset.source=real", "solver=mpbcfw_fast", "lam=1/n"]
    options += [f"solver.shrink={shrink}", f"solver.inner_steps={inner_steps}", f"solver.T={T}"]
    if name in EXAMPLES:
        options.append(f"dataset.n_samples={EXAMPLES[name]}")
    return compose_runs(options)[0]


def seconds(problem, config):
    """Return gap → seconds and exact passes until it is reached."""
    clock, found, passes = Clock("cpu"), {}, 0
    solver = components.build_solver(config, problem, clock)
    solver.begin()
    while clock.now() < MOST and GAPS[-1] not in found:
        solver.iterate()
        passes += 1
        with clock.paused():
            w, dual = solver.reported()
            primal = problem.primal(w)
        for gap in GAPS:
            if primal - dual <= gap * primal:
                found.setdefault(gap, (clock.now(), passes))
    return found


def main(names, settings):
    """Print a table for each dataset."""
    for name in names:
        config = composed(name, settings[0])
        dataset = components.load_dataset(config.dataset)
        oracle = components.build_oracle(config.oracle, config.dataset)
        problem = Problem(oracle, 1.0 / oracle.n)
        components.warm_up(config, dataset)
        seconds(problem, config)  # what a warm-up does not compile, a first run does
        print(f"| {name}: `shrink`, `inner_steps`, `T` | {' | '.join(map(str, GAPS))} |")
        print(f"|---|{'---:|' * len(GAPS)}")
        for setting in settings:
            found = seconds(problem, composed(name, setting))
            cells = [f"{found[g][0]:.3g} s, {found[g][1]}" if g in found else "" for g in GAPS]
            print(f"| {setting.replace('/', ', ')} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen = [one for one in given if "/" in one]
    main(
        [one for one in given if "/" not in one] or ["usps", "ocr", "conll2000"], chosen or SETTINGS
    )
