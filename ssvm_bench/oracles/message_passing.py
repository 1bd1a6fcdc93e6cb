r"""A lower bound of the energy of labels of a graph with Potts terms, by message passing (TRW-S).

.. math:: \min_y E(y), \qquad E(y) = \sum_l u_l(y_l) + \sum_{k \sim l} p_{kl} [y_k \ne y_l]

A message from node k to its neighbour l adds M(c) to label c of l and subtracts it from their edge,
so that the energy of no labeling changes. A sweep visits the nodes in order. At node l, with the
messages that it has received,

.. code-block:: text

    θ(c) = u_l(c) + Σ_k M_{k→l}(c)                   v = min θ,   θ ← θ − v
    to each later neighbour m, with s = 1 / max(earlier, later neighbours of l):
        g(c) = s θ(c) − M_{m→l}(c)                   δ = min g
        M_{l→m}(c) ← min(g(c), δ + p_{lm}) − δ

The sum Σ_l v + Σ δ of a sweep is a lower bound. The reason: l's share of θ and the rest of the edge
to m add up to at least δ for any labels; there are at most 1/s such shares, the rest of θ is ≥ 0,
and later visits change neither. This holds for any messages at the beginning of the sweep. Forward
and backward sweeps by turns raise the bound: on a tree, and for two labels, to the minimum. The
limit is at most the optimum of the linear programming relaxation, and mostly equal to it.

References
----------
V. Kolmogorov: Convergent tree-reweighted message passing for energy minimization. PAMI 2006.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.jit import allocating_kernel, kernel

# mypy: disable-error-code="no-untyped-def"


@allocating_kernel
def lower_bound(graphs, i, u, costs, most, tolerance):
    """Return a lower bound of the energies of all labelings of example i.

    Parameters
    ----------
    graphs : Graphs
    i : int
    u : ndarray of float64, shape (L, K)
    costs : ndarray of float64, shape (edges of example i,)
        p ≥ 0.
    most : int
        Largest number of pairs of sweeps.
    tolerance : float
        The bound is returned when a pair of sweeps has raised it by no more than that.
    """
    edges = graphs.edge_start[i + 1] - graphs.edge_start[i]
    messages = np.zeros((edges, 2, u.shape[1]))
    theta = np.empty(u.shape[1])
    bound = -np.inf
    for _ in range(most):
        before = bound
        for forward in (True, False):
            bound = max(bound, _sweep(graphs, i, u, costs, messages, theta, forward))
        if bound - before <= tolerance:
            break
    return bound


@kernel
def _sweep(graphs, i, u, costs, messages, theta, forward):
    """Do one sweep; return its bound. ``messages[e, 1]`` goes to the higher node."""
    first = graphs.offsets[i]
    L, K = u.shape
    bound = 0.0
    for step in range(L):
        l = step if forward else L - 1 - step
        for c in range(K):
            theta[c] = u[l, c]
        earlier = later = 0
        arcs = range(graphs.start[first + l], graphs.start[first + l + 1])
        for a in arcs:
            to_here = 1 if graphs.neighbour[a] < l else 0
            if (to_here == 1) == forward:
                earlier += 1
            else:
                later += 1
            for c in range(K):
                theta[c] += messages[graphs.via[a], to_here, c]
        lowest = np.inf
        for c in range(K):
            lowest = min(lowest, theta[c])
        for c in range(K):
            theta[c] -= lowest
        bound += lowest
        share = 1.0 / max(earlier, later, 1)
        for a in arcs:
            to_here = 1 if graphs.neighbour[a] < l else 0
            if (to_here == 1) == forward:
                continue
            of_edge, sent = messages[graphs.via[a]], 1 - to_here
            lowest = np.inf
            for c in range(K):
                of_edge[sent, c] = share * theta[c] - of_edge[to_here, c]
                lowest = min(lowest, of_edge[sent, c])
            for c in range(K):
                of_edge[sent, c] = min(of_edge[sent, c] - lowest, costs[graphs.via[a]])
            bound += lowest
    return bound
