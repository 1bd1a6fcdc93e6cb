"""A maximum flow by augmenting paths in a search tree that grows from the sink, compiled.

The tree grows backwards along arcs that are not saturated. When it reaches a node to which the
source can send more, the path from there to the sink is augmented. An arc that this saturates cuts
off a subtree, whose nodes look for another parent or leave the tree. The algorithm of Boykov and
Kolmogorov grows a second tree from the source, which is useless where a flow is nearly maximal
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

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import kernel

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
