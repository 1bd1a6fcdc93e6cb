"""The best expansion of a labeling of a graph with Potts terms, exactly, by a minimum cut.

Each node of a labeling y may keep its label or take α. With x_l = 1 for "takes α", the change of
the energy is, up to a constant,

.. code-block:: text

    E(x) = Σ_l d_l x_l + Σ_{k∼l} c_{kl} e_{kl}(x_k, x_l),      c ≥ 0, x ∈ {0,1}^L

    y_k = y_l or y_k = α or y_l = α     e = [x_k ≠ x_l], with x_k = 1 where y_k = α
    α ≠ y_k ≠ y_l ≠ α                   e = ½ [x_k ≠ x_l] − ½ x_k − ½ x_l

From y = 0, an expansion to 1 is any labeling of two labels. All numbers are int64, so that sums
and ties are exact. Of several minimisers, the result is the smallest, which the others contain:
x_l = 1 only where every minimiser has x_l = 1. It is the lexicographically lowest, and the side of
a minimum cut that can still reach the sink.

**Dominance.** A node with d_l ≥ Σ_k c_{kl} is 0 in the smallest minimiser, for any values of the
others; where all labels are 0, a node with d_l < −Σ_k c_{kl} is 1. The edge to a decided neighbour
becomes a part of d_l; only nodes that are not decided are cut.

**Flows are remembered.** A flow f along an edge, −c ≤ f ≤ c, moves f from d of one end to d of
the other, and changes no energy. So the last flow for a similar energy is sent first, and only the
rest is searched for (Kohli and Torr, PAMI 2007). That flow changes only the time, not the result.
It is kept as precisely as it was found: where nothing has changed, nothing is left to search for.

**Sums along a tree.** Where a flow is not maximal, the excess of each node is first sent towards
the root of a spanning tree, from the leaves on: where capacities suffice, excesses and deficits
meet after one look at every node.

**The cut is compiled**: a maximum flow by augmenting paths in a search tree that grows from the
sink. The tree grows backwards along arcs that are not saturated. When it reaches a node to which
the source can send more, the path from there to the sink is augmented. An arc that this saturates
cuts off a subtree, whose nodes look for another parent or leave the tree. The algorithm of Boykov
and Kolmogorov grows a second tree from the source, which is useless where a flow is nearly maximal
from the beginning. Distances to the root, marked with the number of the path after which they were
computed, keep the paths short.

When the tree cannot grow, it holds exactly the nodes that can still reach the sink: the side of the
sink in the minimum cut in which that side is smallest.

References
----------
Y. Boykov, V. Kolmogorov: An experimental comparison of min-cut/max-flow algorithms for energy
minimization in vision. PAMI 2004.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.errors import needed
from ssvm_bench.base.jit import allocating_kernel, kernel

# mypy: disable-error-code="no-untyped-def"


APART, OUTSIDE, INSIDE = 0, 1, 2
"""Whether a node is in the tree; APART: it is not in the network."""

_ROOT, _ORPHAN, _NONE = -1, -2, -3
"""In place of an arc to a parent: the parent is the sink; the node is an orphan; no arc or node."""


class Arcs(NamedTuple):
    """The arcs of some nodes, two for each edge; those of p are ``first[p]:first[p + 1]``.

    Attributes
    ----------
    first : ndarray of int64, shape (nodes + 1,)
    head, sister : ndarrays of int32, shape (arcs,)
        The node that an arc leads to; the reverse arc.
    """

    first: np.ndarray
    head: np.ndarray
    sister: np.ndarray


class Flow(NamedTuple):
    """A flow, and the search tree.

    Attributes
    ----------
    residual : ndarray of int64, shape (arcs,)
        Residual capacity of an arc.
    excess : ndarray of int64, shape (nodes,)
        Residual capacity from the source; below 0, minus that to the sink.
    tree : ndarray of int8, shape (nodes,)
    parent, distance : ndarrays of int32, shape (nodes,)
        The arc to the parent, and the number of steps to the sink.
    known : ndarray of int64, shape (nodes,)
        Number of paths that had been augmented when the distance was computed.
    waits : ndarray of bool, shape (nodes,)
        Whether a node is in the queue of those from which the tree may grow.
    queue, orphans : ndarrays of int32, shape (nodes,)
        Ring buffers of nodes; a node is in each at most once.
    """

    residual: np.ndarray
    excess: np.ndarray
    tree: np.ndarray
    parent: np.ndarray
    distance: np.ndarray
    known: np.ndarray
    waits: np.ndarray
    queue: np.ndarray
    orphans: np.ndarray


def room(nodes: int, arcs: int) -> Flow:
    """Return a flow whose arrays have space for so many nodes and arcs."""
    of_nodes = (np.int64, np.int8, np.int32, np.int32, np.int64, bool, np.int32, np.int32)
    return Flow(np.zeros(arcs, np.int64), *(np.zeros(nodes, dtype) for dtype in of_nodes))


@kernel
def maximise_flow(arcs, flow, nodes):
    """Maximise the flow from source to sink, beginning with ``residual`` and ``excess``.

    At first, ``tree`` is APART or OUTSIDE; at the end, INSIDE is the sink's side of the minimum
    cut. Return the number of paths that were augmented.
    """
    waiting = begin = paths = 0
    for p in range(nodes):
        flow.waits[p] = False
        if flow.tree[p] != APART and flow.excess[p] < 0:
            flow.tree[p] = INSIDE
            flow.parent[p], flow.distance[p], flow.known[p] = _ROOT, 1, 0
            waiting = _wait(flow, nodes, begin, waiting, p)
    while waiting > 0:
        p = flow.queue[begin]
        begin = begin + 1 if begin + 1 < nodes else 0
        waiting -= 1
        flow.waits[p] = False
        while flow.tree[p] == INSIDE:
            q, waiting = _grow(arcs, flow, nodes, begin, waiting, p)
            if q == _NONE:
                break
            while flow.tree[q] == INSIDE and flow.excess[q] > 0:
                paths += 1
                found = _augment(arcs, flow, q)
                waiting = _adopt(arcs, flow, nodes, begin, waiting, found, paths)
    return paths


@kernel
def _wait(flow, nodes, begin, waiting, p):
    """Append node p to the queue, unless it is in it; return the length of the queue."""
    if flow.waits[p]:
        return waiting
    flow.waits[p] = True
    place = begin + waiting
    flow.queue[place if place < nodes else place - nodes] = p
    return waiting + 1


@kernel
def _grow(arcs, flow, nodes, begin, waiting, p):
    """Let the neighbours of p join the tree; return the first to which the source can send."""
    for a in range(arcs.first[p], arcs.first[p + 1]):
        q, back = arcs.head[a], arcs.sister[a]
        if flow.tree[q] == APART or flow.residual[back] == 0:
            continue
        joins = flow.tree[q] == OUTSIDE
        if joins:
            flow.tree[q] = INSIDE
            waiting = _wait(flow, nodes, begin, waiting, q)
        elif flow.known[q] > flow.known[p] or flow.distance[q] <= flow.distance[p]:
            continue
        flow.parent[q], flow.distance[q], flow.known[q] = back, flow.distance[p] + 1, flow.known[p]
        if joins and flow.excess[q] > 0:
            return q, waiting
    return _NONE, waiting


@kernel
def _augment(arcs, flow, q):
    """Augment the path from q to the sink; return how many nodes have become orphans."""
    amount, p = flow.excess[q], q
    while flow.parent[p] != _ROOT:
        amount = min(amount, flow.residual[flow.parent[p]])
        p = arcs.head[flow.parent[p]]
    amount = min(amount, -flow.excess[p])

    flow.excess[q] -= amount
    flow.excess[p] += amount
    found = 0
    if flow.excess[p] == 0:
        flow.parent[p] = _ORPHAN
        flow.orphans[0] = p
        found = 1
    root, p = p, q
    while p != root:
        a = flow.parent[p]
        flow.residual[a] -= amount
        flow.residual[arcs.sister[a]] += amount
        if flow.residual[a] == 0:
            flow.parent[p] = _ORPHAN
            flow.orphans[found] = p
            found += 1
        p = arcs.head[a]
    return found


@kernel
def _adopt(arcs, flow, nodes, begin, waiting, found, paths):
    """Give every orphan the parent that is nearest to the sink, or let it leave the tree."""
    at = 0
    while found > 0:
        p = flow.orphans[at]
        at = at + 1 if at + 1 < nodes else 0
        found -= 1
        parent, nearest = _NONE, nodes + 1
        for a in range(arcs.first[p], arcs.first[p + 1]):
            q = arcs.head[a]
            if flow.tree[q] == INSIDE and flow.residual[a] > 0:
                steps = _steps(arcs, flow, q, paths)
                if 0 < steps < nearest:
                    parent, nearest = a, steps
        if parent != _NONE:
            flow.parent[p], flow.distance[p], flow.known[p] = parent, nearest + 1, paths
            continue
        for a in range(arcs.first[p], arcs.first[p + 1]):
            q = arcs.head[a]
            if flow.tree[q] == INSIDE:
                if flow.residual[a] > 0:
                    waiting = _wait(flow, nodes, begin, waiting, q)
                up = flow.parent[q]
                if up >= 0 and arcs.head[up] == p:
                    flow.parent[q] = _ORPHAN
                    place = at + found
                    flow.orphans[place if place < nodes else place - nodes] = q
                    found += 1
        flow.tree[p] = OUTSIDE
    return waiting


@kernel
def _steps(arcs, flow, q, paths):
    """Return the distance from q to the sink; 0 if the root of q is an orphan."""
    steps, p = 0, q
    while flow.known[p] != paths:
        up = flow.parent[p]
        if up == _ORPHAN:
            return 0
        steps += 1
        if up == _ROOT:
            flow.known[p], flow.distance[p] = paths, 1
            break
        p = arcs.head[up]
    else:
        steps += flow.distance[p]
    left, p = steps, q
    while flow.known[p] != paths:
        flow.known[p], flow.distance[p] = paths, left
        left -= 1
        p = arcs.head[flow.parent[p]]
    return steps


# ---- The best expansion -----------------------------------------------------------------------

AUTO, COMPILED, PYMAXFLOW = ENGINES = "auto", "compiled", "pymaxflow"

OPEN = 2
"""State of a node that is not yet decided to be 0 or 1."""


class Graphs(NamedTuple):
    """The neighbours in every example; nodes and edges are numbered within their example.

    Attributes
    ----------
    offsets, edge_start : ndarrays of int64, shape (n + 1,)
        Example i owns the nodes ``offsets[i]:offsets[i + 1]``, and its edges.
    tail, head : ndarrays of int32, shape (edges,)
    start : ndarray of int64, shape (nodes + 1,)
        A node's neighbours are ``neighbour[start[node]:start[node + 1]]``.
    neighbour, via, back : ndarrays of int32, shape (2 edges,)
        A neighbour, the edge to it, and the index of the reverse arc in these arrays.
    arc : ndarray of int32, shape (edges,)
        The index in these arrays of an edge's arc from its lower to its higher node.
    order, up : ndarrays of int32, shape (nodes,)
        The nodes of each example in breadth-first order, and every node's arc to its parent; -1: it
        is a root (`_spanning_trees`).
    x : ndarray of float64, shape (edges, k)
        Features of the edges, ≥ 0.
    sums : ndarray of float64, shape (n, k)
        Sums of the features over the edges of each example.
    """

    offsets: np.ndarray
    edge_start: np.ndarray
    tail: np.ndarray
    head: np.ndarray
    start: np.ndarray
    neighbour: np.ndarray
    via: np.ndarray
    back: np.ndarray
    arc: np.ndarray
    order: np.ndarray
    up: np.ndarray
    x: np.ndarray
    sums: np.ndarray


class Energy(NamedTuple):
    """One energy, and scratch for its minimisation; sizes are those of the largest example.

    Attributes
    ----------
    x : ndarray of int8, shape (L,)
        0, 1 or ``OPEN``: the state of each node, before and after.
    d, most : ndarrays of int64, shape (L,)
        d; Σ_k c_{kl}.
    capacity : ndarray of int64, shape (edges,)
        c, even numbers.
    found : Flow
        Flow and tree of its minimum cut.
    last : ndarray of float64, shape (rows, edges of all examples)
        The last flow through each edge, from its lower to its higher node, as a share of the
        capacity; a row for each kind of energy. No rows: PyMaxflow computes flows.
    """

    x: np.ndarray
    d: np.ndarray
    most: np.ndarray
    capacity: np.ndarray
    found: Flow
    last: np.ndarray


def graphs(
    edges: np.ndarray,
    edge_offsets: np.ndarray,
    offsets: np.ndarray,
    edge_x: np.ndarray | None = None,
) -> Graphs:
    """Return the neighbours in some graphs; the arrays are as in a `Dataset`.

    Edges without features get one, with value 1.
    """
    x = np.ones((len(edges), 1)) if edge_x is None else edge_x
    tail, head = (np.ascontiguousarray(edges[:, side], np.int32) for side in (0, 1))
    counts = np.diff(edge_offsets)
    example = np.repeat(np.arange(counts.size), counts)
    first = offsets[example]
    local = (np.arange(tail.size) - edge_offsets[example]).astype(np.int32)
    ends = np.concatenate((first + tail, first + head))
    order = np.argsort(ends, kind="stable")
    degrees = np.bincount(ends, minlength=offsets[-1])
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size)
    arcs = Arcs(
        first=np.concatenate(([0], np.cumsum(degrees))),
        head=np.concatenate((head, tail))[order],
        sister=np.roll(place, tail.size)[order],
    )
    offsets = offsets.astype(np.int64)
    by_breadth, up = _spanning_trees(arcs, offsets)
    return Graphs(
        offsets=offsets,
        edge_start=edge_offsets.astype(np.int64),
        tail=tail,
        head=head,
        start=arcs.first,
        neighbour=arcs.head,
        via=np.concatenate((local, local))[order],
        back=arcs.sister,
        order=by_breadth,
        up=up,
        arc=np.where(tail < head, place[: tail.size], place[tail.size :]),
        x=x,
        sums=np.stack([np.bincount(example, of, counts.size) for of in x.T], axis=1),
    )


@allocating_kernel
def _spanning_trees(arcs, offsets):
    """Return ``order`` and ``up`` of `Graphs`: each connected part of an example has a tree."""
    nodes = offsets[-1]
    order = np.zeros(nodes, np.int32)
    up = np.full(nodes, -1, np.int32)
    met = np.zeros(nodes, np.bool_)
    for i in range(offsets.size - 1):
        begin = offsets[i]
        known = visited = begin
        for root in range(begin, offsets[i + 1]):
            if not met[root]:
                met[root] = True
                order[known] = root - begin
                known += 1
            while visited < known:
                p = begin + order[visited]
                visited += 1
                for a in range(arcs.first[p], arcs.first[p + 1]):
                    q = begin + arcs.head[a]
                    if not met[q]:
                        met[q] = True
                        order[known], up[q] = q - begin, arcs.sister[a]
                        known += 1
    return order, up


class Minimiser:
    """Minimises ``energy`` over the graph of an example; the result is in ``energy.x``.

    Parameters
    ----------
    of : Graphs
    rows : int
        Number of kinds of energies, whose last flows are remembered.
    engine : str
        One of ``ENGINES``; see `GraphConfig`.

    Attributes
    ----------
    compiled : bool
        Whether the cut is compiled.
    energy : Energy
        Filled in by `set_capacities`, and by a kernel that ends with `minimise`.
    """

    def __init__(self, of: Graphs, rows: int, engine: str = AUTO) -> None:
        self._graphs, self.compiled = of, engine != PYMAXFLOW
        last = np.zeros((rows if self.compiled else 0, of.tail.size), np.float64)
        self.energy = self._energy(np.zeros(of.back.size, np.int64), last)
        if not self.compiled:
            with needed("graphs", "oracle.engine=pymaxflow"):
                import maxflow
            self._graph = maxflow.GraphInt(self.energy.x.size, self.energy.capacity.size)

    def _energy(self, residual: np.ndarray, last: np.ndarray) -> Energy:
        L = int(np.diff(self._graphs.offsets).max(initial=0))
        E = int(np.diff(self._graphs.edge_start).max(initial=0))
        d, most, capacity = (np.zeros(size, np.int64) for size in (L, L, E))
        found = room(L, 0)._replace(residual=residual)
        return Energy(np.zeros(L, np.int8), d, most, capacity, found, last)

    def apart(self) -> Minimiser:
        """Return one for another thread, and for other examples: flows are those of all."""
        made = copy.copy(self)
        made.energy = self._energy(self.energy.found.residual, self.energy.last)
        return made

    def cut(self, i: int, y: np.ndarray) -> None:
        """Decide the nodes of example i, with labels y, that `minimise` has left open."""
        graphs, of, graph = self._graphs, self.energy, self._graph
        nodes = np.flatnonzero(of.x[: graphs.offsets[i + 1] - graphs.offsets[i]] == OPEN)
        d = of.found.excess[nodes]
        edges = slice(graphs.edge_start[i], graphs.edge_start[i + 1])
        k, l = graphs.tail[edges], graphs.head[edges]
        cut = (of.x[k] == OPEN) & (of.x[l] == OPEN)
        k, l, c = k[cut], l[cut], of.capacity[: cut.size][cut]
        c = np.where(y[k] == y[l], c, c // 2)
        graph.reset()
        ids = graph.add_nodes(nodes.size)
        graph.add_grid_tedges(ids, np.maximum(d, 0), np.maximum(-d, 0))
        graph.add_edges(np.searchsorted(nodes, k), np.searchsorted(nodes, l), c, c)
        graph.maxflow()
        of.x[nodes] = graph.get_grid_segments(ids)


@kernel
def set_capacities(graphs, i, potts, s, of):
    """Set the capacities of example i: 2^s ⟨potts, x_e⟩, rounded to an even integer."""
    begin, most = graphs.edge_start[i], of.most
    most[: graphs.offsets[i + 1] - graphs.offsets[i]] = 0
    for e in range(begin, graphs.edge_start[i + 1]):
        cost = 0.0
        for j in range(potts.size):
            cost += potts[j] * graphs.x[e, j]
        c = 2 * np.int64(np.rint(cost * 2.0 ** (s - 1)))
        of.capacity[e - begin] = c
        most[graphs.tail[e]] += c
        most[graphs.head[e]] += c


@kernel
def expand(graphs, i, u, alpha, y, fixed, of):
    """Find the best expansion of y to α, given the costs u of the nodes' labels.

    Parameters
    ----------
    u : ndarray of int64, shape (≥ L, K)
    y : ndarray of integers, shape (≥ L,)
    fixed : ndarray of int64, shape (≥ L,)
        Below 0 where a node may change its label.
    of : Energy
        Its capacities are set.

    Returns
    -------
    bool
        Whether nodes are left open for `Minimiser.cut`.
    """
    for l in range(graphs.offsets[i + 1] - graphs.offsets[i]):
        of.d[l] = u[l, alpha] - u[l, y[l]]
        if y[l] == alpha:
            of.x[l] = 1
        else:
            of.x[l] = OPEN if fixed[l] < 0 and of.d[l] < of.most[l] else 0
    return minimise(graphs, i, of, y, alpha)


@kernel
def minimise(graphs, i, of, y, row):
    """Decide the open nodes of example i.

    Parameters
    ----------
    y : ndarray of integers, shape (≥ L,)
        The labels; those of open nodes are not α.
    row : int
        Kind of the energy, which selects the last flow: α for an expansion.

    Returns
    -------
    bool
        Whether nodes are left open for `Minimiser.cut`.
    """
    begin = graphs.offsets[i]
    L = graphs.offsets[i + 1] - begin
    flow, edges, any_open = of.found, graphs.edge_start[i], False
    for l in range(L):
        is_open = of.x[l] == OPEN
        any_open |= is_open
        flow.tree[l] = OUTSIDE if is_open else APART
        flow.excess[l] = of.d[l]
    if not any_open:
        return False
    for e in range(edges, graphs.edge_start[i + 1]):
        _join(graphs, of, y, e, of.capacity[e - edges], row)
    if of.last.shape[0] == 0:
        return True
    short = False
    for l in range(L):
        short |= flow.tree[l] == OUTSIDE and flow.excess[l] < 0
    if short:
        _send_up(graphs, flow, begin, L)
        arcs = Arcs(graphs.start[begin : begin + L + 1], graphs.neighbour, graphs.back)
        maximise_flow(arcs, flow, L)
        for e in range(edges, graphs.edge_start[i + 1]):
            k, l, c = graphs.tail[e], graphs.head[e], of.capacity[e - edges]
            if of.x[k] == OPEN and of.x[l] == OPEN and c > 0:
                c = c if y[k] == y[l] else c // 2
                of.last[row, e] = (c - flow.residual[graphs.arc[e]]) / c
    for l in range(L):
        if of.x[l] == OPEN:
            of.x[l] = 1 if flow.tree[l] == INSIDE else 0
    return False


@kernel
def _send_up(graphs, flow, begin, L):
    """Send the excess of every open node to its parent, as far as there is capacity."""
    for k in range(begin + L - 1, begin - 1, -1):
        l, a = graphs.order[k], graphs.up[begin + graphs.order[k]]
        if a >= 0 and flow.tree[l] == OUTSIDE and flow.tree[graphs.neighbour[a]] == OUTSIDE:
            b = graphs.back[a]
            sent = min(max(flow.excess[l], -flow.residual[b]), flow.residual[a])
            flow.residual[a] -= sent
            flow.residual[b] += sent
            flow.excess[l] -= sent
            flow.excess[graphs.neighbour[a]] += sent


@kernel
def _join(graphs, of, y, e, c, row):
    """Add an edge of capacity c to the network, with its last flow; or to the d of its open end."""
    flow, k, l = of.found, min(graphs.tail[e], graphs.head[e]), max(graphs.tail[e], graphs.head[e])
    same = y[k] == y[l]
    if of.x[k] == OPEN and of.x[l] == OPEN:
        inside, sent = c if same else c // 2, 0
        if of.last.shape[0] > 0:
            a, last = graphs.arc[e], np.int64(np.rint(of.last[row, e] * np.float64(inside)))
            sent = min(max(last, -inside), inside)
            flow.residual[a], flow.residual[graphs.back[a]] = inside - sent, inside + sent
        apart = 0 if same else inside
        flow.excess[k] -= apart + sent
        flow.excess[l] -= apart - sent
    elif of.x[k] == OPEN or of.x[l] == OPEN:
        node, other = (k, l) if of.x[k] == OPEN else (l, k)
        if of.x[other] == 1:
            flow.excess[node] -= c
        elif same:
            flow.excess[node] += c
