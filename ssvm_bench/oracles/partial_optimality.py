"""Partially optimal labels, which all labelings of lowest energy have, by ⌈1 + log₂ K⌉ cuts.

.. code-block:: text

    E(y) = Σ_l u[l, y_l] + Σ_{k∼l} p_{kl} [y_k ≠ y_l],      y ∈ {0, …, K − 1}^L,  p ≥ 0

**What they are** (Kovtun). For each label α, the binary energy "α against the rest" has, for the
rest, the lowest cost of a node:

.. code-block:: text

    g_α(x) = Σ_l (u[l,α] − min_{β≠α} u[l,β]) x_l + Σ_{k∼l} p_{kl} [x_k ≠ x_l]

Let A_α be its smallest minimiser. Giving α to all of A_α never raises the energy of a labeling:
the change of E is at most that of g_α, and g_α(x ∪ A_α) ≤ g_α(x) by submodularity. So the nodes of
A_α have label α in every labeling of lowest energy, and the sets of different α are disjoint.

**How they are found** (with as many cuts as Gridchyn and Kolmogorov need, instead of K). Let N be
nodes that include all A_α for α in a set of labels: at first, all nodes and all labels. Let B
and B' be the halves of that set, and

.. code-block:: text

    h(x) = Σ_{l∈N} (min_{β∈B} u[l,β] − min_{β∈B'} u[l,β]) x_l + Σ_{k∼l, k,l∈N} p_{kl} [x_k ≠ x_l]

For α in B and x = 0 outside of N, g_α is h plus a sum of non-negative terms of single nodes:
u[l,α] is at least the first minimum, min_{β≠α} u[l,β] is at most the second one, and
neighbours k outside of N cost p_{kl} each. So with S a minimiser of h, h(A_α ∩ S) ≤ h(A_α) gives
g_α(A_α ∩ S) ≤ g_α(A_α): all of A_α is in S. In the same way, A_α is outside of S for α in B'. Then
S and N ∖ S replace N. The halves of all sets are cut at once, as one graph without the edges
between different N. In the end, each N has a label α of its own, and one more cut, of g_α for
x = 0 outside of N, finds A_α.

References
----------
I. Kovtun: Partial optimal labeling search for a NP-hard subclass of (max,+) problems. DAGM 2003.
I. Gridchyn, V. Kolmogorov: Potts model, parametric maxflow and k-submodular functions. ICCV 2013.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.jit import kernel
from ssvm_bench.oracles.cut import OPEN, minimise

# mypy: disable-error-code="no-untyped-def"

_NO_LABEL = 2**61
"""Lowest cost over no labels: above all other costs, by more than all edges."""


def number_of_cuts(K: int) -> int:
    """Return ⌈1 + log₂ K⌉."""
    return 1 + (K - 1).bit_length()


@kernel
def halve(graphs, i, u, capacity, first, end, zeros, cuts, of, made):
    """Make the remaining cuts of example i, after ``made`` of ``cuts``.

    At the end, ``of.x`` is 1 where a node has a partially optimal label, which is in ``first``.

    Parameters
    ----------
    u : ndarray of int64, shape (≥ L, K)
    capacity : ndarray of int64, shape (≥ edges,)
        p, even numbers.
    first, end : ndarrays of int64, shape (L,)
        A node still has the labels first … end − 1; 0 and K before the first cut.
    zeros : ndarray of integers, shape (≥ L,)
    of : Energy
        Its ``most`` is the one for ``capacity``; its own capacities are scratch. It has ``cuts``
        rows of flows, after one row for each label.

    Returns
    -------
    int
        Number of cuts made, if the last one is left to `Minimiser.cut`; 0: all are finished.
    """
    while made < cuts:
        if made > 0:
            _take(of.x, first, end)
        _split(graphs, i, u, capacity, first, end, made == cuts - 1, of)
        made += 1
        if minimise(graphs, i, of, zeros, u.shape[1] + made - 1):
            return made
    return 0


@kernel
def _take(x, first, end):
    """Keep the half of each node's labels to which the cut assigned the node."""
    for l in range(first.size):
        half = (first[l] + end[l]) // 2
        if x[l] == 1:
            first[l] = half
        else:
            end[l] = half


@kernel
def _split(graphs, i, u, capacity, first, end, last, of):
    """Set up h with x = 1 for the upper half of each set; for the last cut, g_α of the only α."""
    begin = graphs.offsets[i]
    for l in range(first.size):
        inside = 0
        for a in range(graphs.start[begin + l], graphs.start[begin + l + 1]):
            e = graphs.via[a]
            together = first[graphs.neighbour[a]] == first[l]
            of.capacity[e] = capacity[e] if together else 0
            inside += of.capacity[e]
        if last:
            rest = min(_lowest(u[l], 0, first[l]), _lowest(u[l], end[l], u.shape[1]))
            of.d[l] = u[l, first[l]] - rest + of.most[l] - inside
        else:
            half = (first[l] + end[l]) // 2  # a single label is the upper half
            of.d[l] = _lowest(u[l], half, end[l]) - _lowest(u[l], first[l], half)
        of.x[l] = 0 if of.d[l] >= inside else 1 if of.d[l] < -inside else OPEN


@kernel
def _lowest(costs, first, end):
    """Return the lowest cost of the labels first … end − 1."""
    lowest = np.int64(_NO_LABEL)
    for c in range(first, end):
        lowest = min(lowest, costs[c])
    return lowest
