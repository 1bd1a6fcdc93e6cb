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
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.alpha_expansion import (
    FREE,
    AlphaExpansion,
    _cheapest,
    _copy,
    _expand,
    _start_from,
    _unary_energies,
    halve,
    number_of_cuts,
)
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.cut import OPEN, minimise, set_capacities
from ssvm_bench.runs import components

ITERATIONS, SHOWN, REPEATS = 20, (1, 5, 10, 20), 3
WAYS = "alone", "halves", "forgotten", "K cuts", "given"
ALONE, HALVES, FORGOTTEN, K_CUTS, GIVEN = range(len(WAYS))
CLASSES, SCALE, STEP = (16, 64), 2.0, 0.1
"""Numbers of random classes; size of their weights, and of a step relative to that."""


@kernel
def label(features, graphs, w, i, potts, room, of, way, cuts, told, y):
    """Label example i as the oracle does, with one of the `WAYS` to fix labels first.

    ``told`` are the partially optimal labels, for ``GIVEN``. Return whether a cut was left open,
    which none is: no network here needs PyMaxflow.
    """
    K, L = features.n_labels, y.size
    first, end, optimal = room.first[:L], room.end[:L], room.optimal[:L]
    begin, edges = graphs.edge_start[i], graphs.edge_start[i + 1] - graphs.edge_start[i]
    s = _unary_energies(features, graphs, w, i, 1.0, potts, room.theta, room.u)
    set_capacities(graphs, i, potts, s, of)
    optimal[:] = FREE
    if way == FORGOTTEN:
        for row in range(K, K + cuts):
            for e in range(begin, begin + edges):
                of.last[row, e] = 0
    if way in (HALVES, FORGOTTEN):
        first[:] = 0
        end[:] = K
        _copy(of.capacity, edges, room.capacity)
        if halve(graphs, i, room.u, room.capacity, first, end, room.zeros, cuts, of, 0) > 0:
            return True
        for l in range(L):
            optimal[l] = first[l] if of.x[l] == 1 else FREE
        _copy(room.capacity, edges, of.capacity)
    elif way == K_CUTS:
        if _cut_each(graphs, i, room.u, optimal, first, end, room.zeros, of):
            return True
    elif way == GIVEN:
        _copy(told, L, optimal)
    free = 0
    for l in range(L):
        free += optimal[l] == FREE
        y[l] = _cheapest(room.u[l]) if optimal[l] == FREE else optimal[l]
    if free == 0:
        return False
    _start_from(graphs, i, features.truth[graphs.offsets[i] :], room, of, y)
    return _expand(graphs, i, room.u, room.optimal, y, 0, 0, False, of)[2]


@kernel
def _cut_each(graphs, i, u, optimal, lowest, second, zeros, of):
    """Cut each label from the rest, of which the lowest energy is one of two."""
    L, K = optimal.size, u.shape[1]
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
        if minimise(graphs, i, of, zeros, alpha):
            return True
        for l in range(L):
            if of.x[l] == 1:
                optimal[l] = alpha
    return False


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
    """Time all ways at each w; they must agree, at the first one with the oracle, too."""
    on = replace(config, partial_optimality=True)
    oracles = [AlphaExpansion(on, dataset) for _ in WAYS]  # each has its own flows
    theirs = {ALONE: AlphaExpansion(config, dataset), HALVES: AlphaExpansion(on, dataset)}
    cuts, sizes = number_of_cuts(dataset.n_labels), np.diff(dataset.offsets)
    told = np.zeros(sizes.max(), np.int64)
    for t, w in enumerate(path):
        seconds, same, fixed = np.zeros(len(WAYS)), 0, 0
        packed, potts = joint_features.pack(oracles[0].features, w), oracles[0].potts_at(w)
        for i in range(dataset.n):
            found = np.zeros((len(WAYS), sizes[i]), oracles[0].features.truth.dtype)
            for way, oracle in enumerate(oracles):
                problem = *oracle._problem, packed, i, potts, oracle._room
                given = *problem, oracle.minimiser.energy, way, cuts, told, found[way]
                if t == i == 0:
                    label(*given)  # compile
                start = process_time()
                left = label(*given)
                seconds[way] += process_time() - start
                optimal = oracle._room.optimal[: sizes[i]]
                assert not left
                if way == HALVES:
                    told[: sizes[i]] = optimal
                    fixed += np.count_nonzero(optimal != FREE)
                elif way > HALVES:
                    assert np.array_equal(optimal, told[: sizes[i]]), WAYS[way]
                    assert np.array_equal(found[way], found[HALVES]), WAYS[way]
                if t == 0 and way in theirs:
                    assert np.array_equal(found[way], theirs[way].labeling(w, i, True))
            same += np.array_equal(found[ALONE], found[HALVES])
        ratios = dict(zip(WAYS[1:], seconds[1:] / seconds[ALONE], strict=True))
        ms = 1e3 * seconds[ALONE] / dataset.n
        yield {"fixed": fixed / sizes.sum(), "same": same / dataset.n, "ms": ms, **ratios}


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
