"""Options of `mpbcfw_fast`: CPU seconds and exact passes to relative gaps, by data.

    python docs/approximate_passes.py [DATASET …] [OPTION=VALUE,… …]

With λ = 1/n and seed 0, on 1,500 words of OCR, USPS, all sentences of CoNLL-2000, and
the photographs of Weizmann and Stanford. `shrink`, `inner_steps` and `T` decide which terms an
approximate pass visits, how many steps a visit makes, and how long a plane without weight stays;
`share`, when a term's planes are searched in place of the oracle; `in_out`, where the oracle is
asked; `kappa` accelerates. A rule by which a run chooses them itself could gain as much as the best
row of a dataset is below the first, the preset. Evaluations are off the clock. A gap that is not
reached in `MOST` seconds has no row. Without arguments, which takes half an hour, the table of all
is written.
"""

import sys

from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

GAPS = 0.1, 0.03, 0.01
MOST = 60
EXAMPLES = {"ocr": 1500}
SETTINGS = (
    "newton_share=0.2",  # the preset
    *("shrink=0", "shrink=0.01", "shrink=0.1"),
    *("inner_steps=2", "inner_steps=10", "inner_steps=20"),
    *("T=1", "T=5", "T=10"),
    *("shrink=0.01,inner_steps=10,T=1", "shrink=0.01,inner_steps=10,T=5"),
    *("shrink=0.1,inner_steps=10", "shrink=0.1,T=1", "shrink=0.1,T=5"),
    *("shrink=0.1,inner_steps=10,T=5", "shrink=0.1,inner_steps=2,T=5"),
)
PHOTOGRAPHS = (
    *SETTINGS[:10],
    *("newton_share=0", "share=0.1", "share=0.25", "share=0.5"),
    *("kappa=0", "kappa=3", "kappa=12", "in_out=null", "in_out=0.25", "in_out=0.75"),
)
SENTENCES = (SETTINGS[0], "shrink=0.1", "shrink=0.3", "shrink=0.5", "shrink=1", "newton_share=0")
TRIED = {
    "usps": SETTINGS,
    "ocr": SETTINGS,
    "conll2000": SENTENCES,
    "weizmann": PHOTOGRAPHS,
    "stanford": PHOTOGRAPHS,
}


def composed(name, setting):
    """Return the configuration of a run."""
    options = [f"dataset={name}", "dataset.source=real", "solver=mpbcfw_fast", "lam=1/n"]
    options += [f"solver.{option}" for option in setting.split(",")]
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


def rows(name, settings):
    """Yield a row of the table for each setting and gap."""
    config = composed(name, settings[0])
    dataset = components.load_dataset(config.dataset)
    oracle = components.build_oracle(config.oracle, config.dataset)
    problem = Problem(oracle, 1.0 / oracle.n)
    components.warm_up(config, dataset)
    seconds(problem, config)  # what a warm-up does not compile, a first run does
    for setting in settings:
        for gap, (spent, passes) in seconds(problem, composed(name, setting)).items():
            options = setting.replace(",", " ")
            print(name, options, gap, spent, passes, flush=True)
            yield {"dataset": name, "options": options, "gap": gap, "time": spent, "calls": passes}


def main(names, settings):
    """Measure; without arguments, write the table."""
    chosen = {name: settings or TRIED[name] for name in names or TRIED}
    found = [row for name, tried in chosen.items() for row in rows(name, tried)]
    if not names and not settings:
        keep("approximate_passes/approximate_passes", found)


if __name__ == "__main__":
    given = sys.argv[1:]
    options = tuple(one for one in given if "=" in one)
    main([one for one in given if "=" not in one], options)
