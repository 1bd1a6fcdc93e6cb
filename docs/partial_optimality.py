"""Does it pay to fix partially optimal labels before α-expansion? Ratios of the time of a call.

    python docs/partial_optimality.py

On Stanford and Weizmann, each oracle maximises every term at the w after each of the first 20
iterations of MP-BCFW (λ = 1/n, seed 0), in order, so that all have their flows from the w before.
On Stanford's images with K random classes, w is random, and moves a little from one call of a term
to the next. The oracles are asked in turn, term by term, in CPU time of this process. A ratio is
that to α-expansion alone, the median of three repeats, each with new oracles.

- halves: `oracle.partial_optimality=true`, ⌈1 + log₂ K⌉ cuts
- forgotten: the same, but the flows of those cuts are not remembered
- K cuts: one for each label, compiled as one call
- given: the labels are known, and cost nothing: what α-expansion saves
"""

from dataclasses import replace
from time import process_time

import numpy as np
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import kernel
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.alpha_expansion import FREE, AlphaExpansion
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.cut import OPEN, minimise
from ssvm_bench.runs import components

ITERATIONS, SHOWN, REPEATS = 20, (1, 5, 10, 20), 3
RATIOS = "halves", "forgotten", "K cuts", "given"
CLASSES, SCALE, STEP = (16, 64), 2.0, 0.1
"""Numbers of random classes; size of their weights, and of a step relative to that."""


class Forgotten(AlphaExpansion):
    """Forgets the flows of the cuts that fix labels."""

    def _fix_labels(self, i):
        edges = slice(*self.graphs.edge_start[i : i + 2])
        self.minimiser.energy.last[self.features.n_labels :, edges] = 0
        super()._fix_labels(i)


class KCuts(AlphaExpansion):
    """Finds the partially optimal labels by a cut of each label from the rest."""

    def _fix_labels(self, i):
        scratch = self._optimal, *self._sets, self._zeros
        _cut_each(self.graphs, i, self.u, *scratch, self.minimiser.energy)


class Given(AlphaExpansion):
    """Takes the partially optimal labels of another oracle, ``teller``."""

    def _fix_labels(self, i):
        self._optimal[:] = self.teller._optimal


@kernel
def _cut_each(graphs, i, u, optimal, lowest, second, zeros, of):
    """Cut each label from the rest, of which the lowest energy is one of two."""
    L, K = graphs.offsets[i + 1] - graphs.offsets[i], u.shape[1]
    for l in range(L):
        lowest[l] = second[l] = 2**61
        for c in range(K):
            if u[l, c] < lowest[l]:
                lowest[l], second[l] = u[l, c], lowest[l]
            elif u[l, c] < second[l]:
                second[l] = u[l, c]
    for alpha in range(K):
        for l in range(L):
            of.d[l] = u[l, alpha] - (second[l] if u[l, alpha] == lowest[l] else lowest[l])
            of.x[l] = OPEN if optimal[l] == FREE and of.d[l] < of.most[l] else 0
        minimise(graphs, i, of, zeros, alpha)
        for l in range(L):
            if of.x[l] == 1:
                optimal[l] = alpha


def of_training(name):
    """Return a dataset, its α-expansion, and w after each iteration of MP-BCFW."""
    (run,) = compose_runs([f"dataset={name}", "dataset.source=real", "solver=mpbcfw"])
    dataset = components.load_dataset(run.dataset)
    problem = Problem(components.build_oracle(run.oracle, run.dataset), run.lam_of(dataset.n))
    solver, path = components.build_solver(run, problem, Clock("cpu")), []
    for _ in range(ITERATIONS):
        solver.iterate()
        path.append(solver.reported().w.copy())
    (run,) = compose_runs([f"dataset={name}", "oracle=alpha_expansion"])
    return dataset, run.oracle, path


def of_classes(dataset, K):
    """Return the dataset with K classes, and a random walk of w."""
    rng, size = np.random.RandomState(0), K * dataset.n_features
    steps = SCALE * STEP * rng.normal(size=(ITERATIONS, size))
    return replace(dataset, n_labels=K), list(SCALE * rng.normal(size=size) + np.cumsum(steps, 0))


def measure(dataset, config, path):
    """Time all oracles at each w; they must agree."""
    on = replace(config, partial_optimality=True)
    oracles = {"alone": AlphaExpansion(config, dataset), "halves": AlphaExpansion(on, dataset)}
    oracles |= {"forgotten": Forgotten(on, dataset), "K cuts": KCuts(on, dataset)}
    oracles["given"] = given = Given(on, dataset)
    given.teller = oracles["halves"]
    for oracle in oracles.values():
        oracle.labeling(path[0], 0, True)  # compile
        oracle.diagnostics()
    for w in path:
        seconds, same = dict.fromkeys(oracles, 0.0), 0
        for i in range(dataset.n):
            found = {}
            for name, oracle in oracles.items():
                start = process_time()
                found[name] = oracle.labeling(w, i, True)
                seconds[name] += process_time() - start
            same += np.array_equal(found["alone"], found["halves"])
            for name in RATIOS:
                assert np.array_equal(found[name], found["halves"]), name
                assert np.array_equal(oracles[name]._optimal, given.teller._optimal), name
        alone = seconds.pop("alone")
        ratios = {name: spent / alone for name, spent in seconds.items()}
        fixed = given.teller.diagnostics()["fixed_share"]
        yield {"ms": 1e3 * alone / dataset.n, **ratios, "fixed": fixed, "same": same / dataset.n}


def rows(name, dataset, config, path):
    """Yield the rows of a dataset."""
    repeats = [list(measure(dataset, config, path)) for _ in range(REPEATS)]
    for t in SHOWN:
        row = {key: np.median([made[t - 1][key] for made in repeats]) for key in repeats[0][0]}
        yield {"data": name, "K": dataset.n_labels, "call": t, **row}


def table():
    """Yield the rows of the table."""
    for name in ("weizmann", "stanford"):
        dataset, config, path = of_training(name)
        yield from rows(name, dataset, config, path)
    few = dataset.head(100)  # of Stanford
    for K in CLASSES:
        made, path = of_classes(few, K)
        yield from rows("random classes", made, config, path)


if __name__ == "__main__":
    keep("partial_optimality/partial_optimality", table())
