"""Other centres for in-out separation: exact passes to a relative gap of 0.01, seed by seed.

    python docs/centres.py [DATASET …]

`mpbcfw_fast` on Weizmann and Stanford, under ``clock=work``, so that the counts do not depend
on the load. Exact passes call the oracle at (1 − β) w + β c. What c and β are:

- w: no centre
- following: c ← (c + w)/2 before each exact pass, β = 0.5: `solver.in_out=0.5`
- slower, faster: the same, a quarter and three quarters of the way
- average: c is the mean of w before all passes so far; weighted: of weights 1, 2, 3, …
- last: c is w before the pass before; best: c is the w of lowest P before any pass, which is
  computed off the clock, and would cost a call of every oracle
- adapted: following; β is halved after a pass in which fewer than half of the planes found were
  above φ^i at w, and grows by a tenth of 1 − β after any other
"""

import sys
from statistics import median

import numpy as np
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes.dual_iterate import AT_W
from ssvm_bench.runs import components
from ssvm_bench.solvers.block.several_steps import SeveralStepVisits

GAP, MOST = 0.01, 80


class Centre:
    """What is asked: (1 − β) w + β c before each exact pass."""

    def __init__(self, beta, move):
        self.beta, self.move, self.passes, self.lowest = beta, move, 0, np.inf

    def prepare(self, visits, order, whole, clock):
        """Take the place of `SeveralStepVisits.prepare`, with another centre."""
        w = visits.phi.w
        if self.passes == 0:
            visits.centre = np.zeros_like(w)
            self.before = w.copy()
        self.passes += 1
        self.move(self, visits, w)
        query = (1.0 - self.beta) * w + self.beta * visits.centre
        visits.phi.set(query=AT_W if whole or self.beta == 0 else query, in_out=self.beta)
        _prepare(visits, order, whole, clock)  # in_out is 0: it has no centre


def towards(share):
    """Return a centre that goes so much of the way to w, by the number of the pass."""

    def move(centre, visits, w):
        visits.centre += share(centre.passes) * (w - visits.centre)

    return move


def last(centre, visits, w):
    """Take w before the pass before."""
    visits.centre, centre.before = centre.before, w.copy()


def best(centre, visits, w):
    """Take the w of lowest P."""
    problem = visits.phi.problem
    value = problem.primal(visits.phi.outer_w())
    if value < centre.lowest:
        centre.lowest, visits.centre = value, w.copy()


def adapted(centre, visits, w):
    """Follow w, and ask nearer to it where planes found elsewhere were of no use at w."""
    towards(lambda _: 0.5)(centre, visits, w)
    if centre.passes > 1:
        useful = np.mean(visits.policy.gaps > 0)
        centre.beta = centre.beta / 2 if useful < 0.5 else centre.beta + 0.1 * (1 - centre.beta)


CENTRES = {
    "w": (0.0, towards(lambda _: 0.5)),
    "following": (0.5, towards(lambda _: 0.5)),
    "slower": (0.5, towards(lambda _: 0.25)),
    "faster": (0.5, towards(lambda _: 0.75)),
    "average": (0.5, towards(lambda k: 1 / k)),
    "weighted": (0.5, towards(lambda k: 2 / (k + 1))),
    "last": (0.5, last),
    "best": (0.5, best),
    "adapted": (0.5, adapted),
}

_prepare = SeveralStepVisits.prepare


def passes(problem, config, centre):
    """Return the exact passes to the gap; `MOST` where it is not reached."""
    solver = components.build_solver(config, problem, Clock("work", *config.oracle.costs))
    solver.passes.visits.prepare = lambda *given: centre.prepare(solver.passes.visits, *given)
    for k in range(1, MOST + 1):
        solver.iterate()
        w, dual = solver.reported()
        if (primal := problem.primal(w)) - dual <= GAP * primal:
            return k
    return MOST


def table(names):
    """Yield the rows of the table."""
    for name in names:
        options = [f"dataset={name}", "dataset.source=real", "solver=mpbcfw_fast"]
        options += ["solver.in_out=null", "clock=work", "seed=range(3)"]
        runs = compose_runs(options, multirun=True)
        data = components.load_dataset(runs[0].dataset)
        oracle = components.build_oracle(runs[0].oracle, runs[0].dataset)
        problem = Problem(oracle, runs[0].lam_of(data.n))
        for title, centre in CENTRES.items():
            found = [passes(problem, run, Centre(*centre)) for run in runs]
            row = {"dataset": name, "centre": title, "passes": median(found)}
            yield {**row, "passes_min": min(found), "passes_max": max(found)}


if __name__ == "__main__":
    keep("centres/centres", table(sys.argv[1:] or ("weizmann", "stanford")))
