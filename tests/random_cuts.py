"""Random expansions of random graphs by both engines of minimum cuts, which must agree.

    python tests/random_cuts.py --cuts 1000000

One engine finds its flows from those of the energies before, the other one anew. Small numbers make
ties, large ones need all bits; capacities of 0, nodes without edges, and nodes that are decided
before are among them.
"""

import argparse

import numpy as np

from ssvm_bench.oracles import cut

ENERGIES = 20
"""Of each graph, one after the other."""


def compare(cuts: int, seed: int) -> int:
    """Return how many of so many expansions the engines do not agree on."""
    rng, different = np.random.default_rng(seed), 0
    for _ in range(0, cuts, ENERGIES):
        graphs = random_graphs(rng)
        minimisers = [cut.Minimiser(graphs, 2, engine) for engine in (cut.COMPILED, cut.PYMAXFLOW)]
        size = 2 ** int(rng.choice([1, 3, 20, 50]))
        for _ in range(ENERGIES):
            i = int(rng.integers(graphs.offsets.size - 1))
            L = int(graphs.offsets[i + 1] - graphs.offsets[i])
            E = int(graphs.edge_start[i + 1] - graphs.edge_start[i])
            alpha, y = int(rng.integers(2)), rng.integers(4, size=L)
            x = np.where(y == alpha, 1, rng.choice([0, cut.OPEN], size=L, p=[0.1, 0.9]))
            d = rng.integers(-size, size + 1, size=L)
            capacity = 2 * rng.integers(size, size=E) * (rng.random(E) < 0.9)
            found = []
            for minimiser in minimisers:
                of = minimiser.energy
                of.x[:L], of.d[:L], of.capacity[:E] = x, d, capacity
                if cut.minimise(graphs, i, of, y, alpha):
                    minimiser.cut(i, y)
                found.append(of.x[:L].tolist())
            different += found[0] != found[1]
    return different


def random_graphs(rng: np.random.Generator) -> cut.Graphs:
    """Return up to three graphs, of up to forty nodes each."""
    edges, sizes = [], rng.integers(1, rng.choice([4, 12, 40]), size=rng.integers(1, 4))
    for L in sizes.tolist():
        every = np.stack(np.triu_indices(L, 1), axis=1)
        edges.append(every[rng.random(len(every)) < min(1.0, rng.integers(1, 7) / L)])
    bounds = np.cumsum([0, *map(len, edges)])
    return cut.graphs(np.concatenate(edges), bounds, np.cumsum([0, *sizes]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    wrong = compare(arguments.cuts, arguments.seed)
    print(f"{wrong} of {arguments.cuts} cuts differ")
    raise SystemExit(wrong > 0)
