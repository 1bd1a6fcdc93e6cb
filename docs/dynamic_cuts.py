"""What minimum cuts save that begin at the last flow, and how much there is to remember.

    python docs/dynamic_cuts.py

CPU microseconds of a call of the oracle along the same points, those after each of ``PASSES``
iterations of `mpbcfw_fast` under ``clock=work``, with λ = 1/n, on 100 photographs of Stanford and
all of Weizmann: with the last flow of a term sent first, as it is built; with all flows forgotten
before each call; and by PyMaxflow. All find the same labelings, which is asserted. Then the share
of labels that change from one point to the next, and ‖w − w'‖/‖w‖ of two successive points, both as
medians over the points.
"""

from itertools import pairwise
from statistics import median
from time import process_time

import numpy as np
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

PASSES = 25
DATA = {"stanford": ["dataset.n_samples=100"], "weizmann": []}


def composed(name, *options):
    """Return the configuration of a run."""
    about = [f"dataset={name}", "dataset.source=real", *DATA[name], "solver=mpbcfw_fast", "lam=1/n"]
    return compose_runs([*about, *options])[0]


def problem_of(config):
    """Return the problem of a run, with its kernels compiled."""
    dataset = components.load_dataset(config.dataset)
    components.warm_up(config, dataset)
    oracle = components.build_oracle(config.oracle, config.dataset)
    return Problem(oracle, 1.0 / oracle.n)


def points(name):
    """Return w after each iteration of a run."""
    config = composed(name, "clock=work")
    clock = Clock("work", *config.oracle.costs)
    solver, found = components.build_solver(config, problem_of(config), clock), []
    solver.begin()
    for _ in range(PASSES):
        solver.iterate()
        found.append(np.array(solver.reported().w))
    return found


def microseconds(oracle, ws, forgets=False):
    """Return those of a call, and the labelings of each point."""
    last, seconds, labelings = oracle.minimiser.energy.last, 0.0, []
    last[:] = 0.0
    for w in ws:
        found = []
        for i in range(oracle.n):
            if forgets:
                last[:, oracle.edges_of(i)] = 0.0
            begin = process_time()
            found.append(oracle.argmax(w, i))
            seconds += process_time() - begin
        labelings.append(np.concatenate(found))
    return 1e6 * seconds / (len(ws) * oracle.n), np.array(labelings)


def measured(name):
    """Return the row of a dataset."""
    ws, ours = points(name), problem_of(composed(name)).oracle
    kept, same = microseconds(ours, ws)
    forgotten, again = microseconds(ours, ws, forgets=True)
    theirs = problem_of(composed(name, "oracle.engine=pymaxflow")).oracle
    package, others = microseconds(theirs, ws)
    assert (same == again).all()
    assert (same == others).all()
    return {
        "dataset": name,
        "last_flow": kept,
        "forgotten": forgotten,
        "pymaxflow": package,
        "changed": median((now != before).mean() for before, now in pairwise(same)),
        "moved": median(np.linalg.norm(w - v) / np.linalg.norm(w) for v, w in pairwise(ws)),
    }


if __name__ == "__main__":
    keep("dynamic_cuts", map(measured, DATA))
