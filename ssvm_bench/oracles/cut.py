"""Binary energies with Potts terms on a graph, minimised exactly: dominance, then a minimum cut.

.. code-block:: text

    min over x ∈ {0,1}^L of  E(x) = Σ_l d_l x_l + Σ_{k∼l} c_{kl} [x_k ≠ x_l],      c ≥ 0

All numbers are int64, so that sums are exact and ties are ties. Of several minimisers the answer
is the smallest, which the others contain: x_l = 1 only where every minimiser has it. It is the
lexicographically lowest, and of a minimum cut the side that can still reach the sink.

**Dominance.** Whatever the others are, a node with d_l ≥ Σ_k c_{kl} is 0 in the smallest
minimiser, and one with d_l < −Σ_k c_{kl} is 1. A decided neighbour k turns c_{kl} [x_k ≠ x_l] into
a part of d_l, so that decisions spread; only what stays undecided is cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.extras import needed
from ssvm_bench.base.jit import kernel

# mypy: disable-error-code="no-untyped-def"

OPEN = 2
"""State of a node that is not decided to be 0 or 1."""


class Graphs(NamedTuple):
    """The neighbours in every example, nodes and edges counted within their example.

    Attributes
    ----------
    offsets, edge_start : ndarrays of int64, shape (n + 1,)
        Example i owns the nodes ``offsets[i]:offsets[i + 1]``, and its edges.
    tail, head : ndarrays of int32, shape (edges,)
    start : ndarray of int64, shape (nodes + 1,)
        A node's neighbours are ``neighbour[start[node]:start[node + 1]]``.
    neighbour, via : ndarrays of int32, shape (2 edges,)
        A neighbour, and the edge to it.
    """

    offsets: np.ndarray
    edge_start: np.ndarray
    tail: np.ndarray
    head: np.ndarray
    start: np.ndarray
    neighbour: np.ndarray
    via: np.ndarray


class Energy(NamedTuple):
    """One energy, and scratch for its minimisation; sizes are those of the largest example.

    Attributes
    ----------
    x : ndarray of int8, shape (L,)
        0, 1 or ``OPEN``: what is decided, before and after.
    d, capacity : ndarrays of int64, shapes (L,) and (edges,)
        The energy. ``d`` is changed where neighbours are decided.
    bound : ndarray of int64, shape (L,)
        Σ_k c_{kl} over undecided neighbours.
    stack, place, node : ndarrays of int64, shape (L,)
        Decided nodes whose neighbours do not know yet; where a node is in the cut graph; the
        node at a place.
    source, sink, k, l, c : ndarrays of int64, shapes (L,) and (edges,)
        The cut graph: capacities from the source and to the sink, edges.
    """

    x: np.ndarray
    d: np.ndarray
    bound: np.ndarray
    stack: np.ndarray
    place: np.ndarray
    node: np.ndarray
    source: np.ndarray
    sink: np.ndarray
    capacity: np.ndarray
    k: np.ndarray
    l: np.ndarray
    c: np.ndarray


def graphs(edges: np.ndarray, edge_offsets: np.ndarray, offsets: np.ndarray) -> Graphs:
    """Return the neighbours in some graphs; the arrays are as in a `Dataset`."""
    tail, head = (np.ascontiguousarray(edges[:, side], np.int32) for side in (0, 1))
    counts = np.diff(edge_offsets)
    first = np.repeat(offsets[:-1], counts)
    local = (np.arange(tail.size) - np.repeat(edge_offsets[:-1], counts)).astype(np.int32)
    ends = np.concatenate((first + tail, first + head))
    order = np.argsort(ends, kind="stable")
    degrees = np.bincount(ends, minlength=offsets[-1])
    return Graphs(
        offsets=offsets.astype(np.int64),
        edge_start=edge_offsets.astype(np.int64),
        tail=tail,
        head=head,
        start=np.concatenate(([0], np.cumsum(degrees))),
        neighbour=np.concatenate((head, tail))[order],
        via=np.concatenate((local, local))[order],
    )


class Minimiser:
    """Minimises ``energy`` over the graph of an example; the answer is left in ``energy.x``.

    Attributes
    ----------
    energy : Energy
        To be filled in by a kernel that ends with `decide`.
    """

    def __init__(self, of: Graphs) -> None:
        with needed("graphs", "The minimum cut of a graph"):
            import maxflow

        L = int(np.diff(of.offsets).max(initial=0))
        E = int(np.diff(of.edge_start).max(initial=0))
        of_nodes, of_edges = np.zeros((7, L), np.int64), np.zeros((4, E), np.int64)
        self.energy = Energy(np.zeros(L, np.int8), *of_nodes, *of_edges)
        self._ids = np.arange(L)
        self._graph = maxflow.GraphInt(L, E)

    def cut(self, nodes: int, edges: int) -> None:
        """Decide the nodes that `decide` has left open, given their number and their edges'."""
        if nodes == 0:
            return
        graph, ids, of = self._graph, self._ids[:nodes], self.energy
        c = of.c[:edges]
        graph.reset()
        graph.add_nodes(nodes)
        graph.add_grid_tedges(ids, of.source[:nodes], of.sink[:nodes])
        graph.add_edges(of.k[:edges], of.l[:edges], c, c)
        graph.maxflow()
        of.x[of.node[:nodes]] = graph.get_grid_segments(ids)


@kernel
def decide(graphs, i, of):
    """Decide nodes of example i by dominance, and write down the cut graph of the others.

    Returns
    -------
    nodes, edges : int
        Size of the cut graph.
    """
    first = graphs.offsets[i]
    L = graphs.offsets[i + 1] - first
    waiting = 0
    for l in range(L):
        if of.x[l] != OPEN:
            of.stack[waiting] = l
            waiting += 1
        total = 0
        for e in range(graphs.start[first + l], graphs.start[first + l + 1]):
            total += of.capacity[graphs.via[e]]
        of.bound[l] = total
    while waiting > 0:  # what was decided before, in one sweep
        waiting -= 1
        _propagate(graphs, first, of, of.stack[waiting])
    for l in range(L):
        if of.x[l] == OPEN and _dominated(of, l):
            of.stack[0] = l
            waiting = 1
            while waiting > 0:
                waiting -= 1
                k = of.stack[waiting]
                _propagate(graphs, first, of, k)
                for e in range(graphs.start[first + k], graphs.start[first + k + 1]):
                    other = graphs.neighbour[e]
                    if of.x[other] == OPEN and _dominated(of, other):
                        of.stack[waiting] = other
                        waiting += 1
    return _cut_graph(graphs, i, of)


@kernel
def _propagate(graphs, first, of, k):
    """Add to the energy of the open neighbours of k, which is decided, what that means to them."""
    for e in range(graphs.start[first + k], graphs.start[first + k + 1]):
        l = graphs.neighbour[e]
        if of.x[l] == OPEN:
            c = of.capacity[graphs.via[e]]
            of.bound[l] -= c
            of.d[l] += c if of.x[k] == 0 else -c


@kernel
def _dominated(of, l):
    """Decide node l if its own part of the energy outweighs its open neighbours'."""
    if of.d[l] >= of.bound[l]:
        of.x[l] = 0
    elif of.d[l] < -of.bound[l]:
        of.x[l] = 1
    return of.x[l] != OPEN


@kernel
def _cut_graph(graphs, i, of):
    nodes = 0
    for l in range(graphs.offsets[i + 1] - graphs.offsets[i]):
        if of.x[l] == OPEN:
            of.place[l] = nodes
            of.node[nodes] = l
            of.source[nodes] = max(of.d[l], 0)
            of.sink[nodes] = max(-of.d[l], 0)
            nodes += 1
    edges = 0
    if nodes > 0:
        begin = graphs.edge_start[i]
        for e in range(graphs.edge_start[i + 1] - begin):
            k, l = graphs.tail[begin + e], graphs.head[begin + e]
            if of.x[k] == OPEN and of.x[l] == OPEN:
                of.k[edges], of.l[edges] = of.place[k], of.place[l]
                of.c[edges] = of.capacity[e]
                edges += 1
    return nodes, edges
