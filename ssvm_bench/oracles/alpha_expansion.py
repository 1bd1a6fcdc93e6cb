"""Several labels on a graph: partially optimal labels, then α-expansion on the others.

**α-expansion.** From a labeling y, each node may keep its label or take α; the best such move is
a minimum cut (:mod:`ssvm_bench.oracles.cut`). The labels are tried in turn until none improves. The
result y then has E(y) ≤ E(y*) + (cost of the edges that y* cuts), for y* of lowest energy. The
start is the better of the unary minimum and the ground truth, so that H_i ≥ 0 although the oracle
is not exact. Predictions start from the unary minimum.

**Partial optimality.** Some labels belong to every labeling of lowest energy; ⌈1 + log₂ K⌉ minimum
cuts find them. Let

.. code-block:: text

    E(y) = Σ_l u[l, y_l] + Σ_{k∼l} p_{kl} [y_k ≠ y_l],      y ∈ {0, …, K − 1}^L,  p ≥ 0

For each label α, the binary energy "α against the rest" has, for the rest, the lowest cost of a
node (Kovtun):

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
Y. Boykov, O. Veksler, R. Zabih: Fast approximate energy minimization via graph cuts. PAMI 2001.
I. Kovtun: Partial optimal labeling search for a NP-hard subclass of (max,+) problems. DAGM 2003.
I. Gridchyn, V. Kolmogorov: Potts model, parametric maxflow and k-submodular functions. ICCV 2013.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel, shared_kernel
from ssvm_bench.base.linalg import applied, inner
from ssvm_bench.base.state import Limits
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.oracles.cut import OPEN, Energy, expand, minimise, set_capacities
from ssvm_bench.oracles.graph import (
    GraphConfig,
    GraphOracle,
    Writing,
    edges_cost,
    exponent,
    lower_bound,
    set_potts,
    write_plane_of,
)
from ssvm_bench.oracles.labeling import write_plane
from ssvm_bench.oracles.scoring import add_losses, longest, parts, unary_scores

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

_SWEEPS = 100, 1e-5
"""Largest number of pairs of sweeps for a bound, and the rise that ends them: n H_i is about 1."""

FREE = -1
"""Mark of a node whose label is not known to be optimal."""

_TERM, _STEP, _MADE, _ALPHA, _FAILURES, _ANSWERED, _FIXED, _STATE = range(8)
"""Where `_label` is: the term and what it does there, cuts made, as for `_expand`; nodes fixed."""

_BEGIN, _FIX, _START, _EXPAND = range(4)
_DONE, _LEFT, _NO_SCALE = range(3)

_NO_LABEL = 2**61
"""Lowest cost over no labels: above all other costs, by more than all edges."""


@dataclass(frozen=True)
class Config(GraphConfig):
    """Options of the oracle.

    Attributes
    ----------
    partial_optimality : bool
        Fix the partially optimal labels first.
    warm_start : bool
        Start from the last labeling of the same example too, if it is better than the other two.
        What the oracle returns then depends on the calls before.
    """

    partial_optimality: bool = False
    warm_start: bool = False


def build(config: Config, dataset: Dataset) -> AlphaExpansion:
    """Return the oracle of a dataset of graphs.

    Raises
    ------
    ConfigError
        If the dataset's labels form no graph.
    """
    config.check_structure(dataset)
    return AlphaExpansion(config, dataset)


class Room(NamedTuple):
    """Scratch of a call; sizes are those of the largest example.

    Attributes
    ----------
    theta, u : ndarrays of float64 and int64, shapes (L, stride) and (L, K)
        The scores, and the unary energies, times a power of two.
    optimal : ndarray of int64, shape (L,)
        The partially optimal label of a node, or ``FREE``.
    first, end : ndarrays of int64, shape (L,)
        As in `halve`.
    other, zeros : ndarrays like labels, shape (L,)
        Another start; zeros.
    capacity : ndarray of int64, shape (edges,)
        Capacities, while `halve` changes those of the energy.
    """

    theta: np.ndarray
    u: np.ndarray
    optimal: np.ndarray
    first: np.ndarray
    end: np.ndarray
    other: np.ndarray
    zeros: np.ndarray
    capacity: np.ndarray


class CompiledExpansion(NamedTuple):
    """The oracle for `write_plane`: what a plane needs, and what `_label` does.

    Attributes
    ----------
    packed : ndarray of float64
        w in the inner layout, of a call.
    term, starts : ndarrays of int64, shapes (1,) and (2,)
        The only term of a call; where its labeling begins and ends.
    at : ndarray of int64
        As in `_label`.
    last, known, room, of
        As in `_label`.
    """

    given: Writing
    packed: np.ndarray
    term: np.ndarray
    starts: np.ndarray
    at: np.ndarray
    last: np.ndarray
    known: np.ndarray
    room: Room
    of: Energy


class AlphaExpansion(GraphOracle):
    """The approximate oracle for several labels.

    Attributes
    ----------
    fixed, asked : int
        Nodes that the first step has fixed, and all nodes, since the last call of `diagnostics`.
    last, known : ndarrays
        With ``warm_start``, the last labeling of every example, and whether there is one.
    """

    STATE = ("fixed", "asked", "last", "known")
    LIMITS: ClassVar[Mapping[str, Limits]] = {"last": Limits(below="features.n_labels")}
    exact = False

    def __init__(self, config: Config, dataset: Dataset) -> None:
        self._fixing = number_of_cuts(dataset.n_labels) if config.partial_optimality else 0
        super().__init__(dataset, config, self._fixing)
        self.config = config
        self.fixed = self.asked = 0
        self._forget(0, 0)

    def _make_room(self) -> None:
        """See `GraphOracle`."""
        super()._make_room()
        L, K = longest(self.features), self.features.n_labels
        optimal, first, end = np.zeros((3, L), np.int64)
        other, zeros = np.zeros((2, L), self.features.truth.dtype)
        capacity = np.zeros_like(self.minimiser.energy.capacity)
        theta, u = np.zeros((L, self.features.stride)), np.zeros((L, K), np.int64)
        self._room = Room(theta, u, optimal, first, end, other, zeros, capacity)

    def writing(self) -> CompiledExpansion | None:
        """See `Oracle`; only `own_labelings` counts the nodes that are fixed."""
        own = type(self) is AlphaExpansion and self.minimiser.compiled
        if not own or self.config.partial_optimality:
            return None
        return CompiledExpansion(
            given=self._writing(),
            packed=np.zeros(joint_features.inner_dimension(self.features)),
            term=np.zeros(1, np.int64),
            starts=np.zeros(2, np.int64),
            at=np.zeros(_STATE, np.int64),
            last=self.last,
            known=self.known,
            room=self._room,
            of=self.minimiser.energy,
        )

    @property
    def takes_threads(self) -> bool:
        """See `Oracle`: with ``warm_start``, what it finds depends on the calls before."""
        return super().takes_threads and not self.config.warm_start

    def apart(self) -> AlphaExpansion:
        """See `Oracle`."""
        made = super().apart()
        assert isinstance(made, AlphaExpansion)
        made.fixed = made.asked = 0
        return made

    def rejoin(self, other: Oracle) -> None:
        """See `Oracle`."""
        assert isinstance(other, AlphaExpansion)
        self.fixed += other.fixed
        self.asked += other.asked

    def fresh(self) -> AlphaExpansion:
        """Return the oracle for a solver: with ``warm_start``, one that remembers its labelings."""
        if not self.config.warm_start:
            return self
        made = copy.copy(self)
        made._forget(self.features.truth.size, self.n)
        return made

    def _forget(self, parts: int, examples: int) -> None:
        self.last = np.zeros(parts, self.features.truth.dtype)
        self.known = np.zeros(examples, bool)

    def diagnostics(self) -> dict[str, float]:
        """Return the share of nodes that the first step has fixed since the last call."""
        share = self.fixed / self.asked if self.asked else np.nan
        self.fixed = self.asked = 0
        return {"fixed_share": share} if self.config.partial_optimality else {}

    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return a labeling that no expansion improves."""
        return self._labelings(w, np.array([i]), augmented)[0]

    def own_labelings(self, w: np.ndarray, terms: np.ndarray, loss: float) -> list[np.ndarray]:
        """See `Oracle`; this is one compiled pass, unless PyMaxflow cuts."""
        found = self._labelings(w, terms, augmented=True)
        return [self._checked(y, i) for i, y in zip(terms.tolist(), found, strict=True)]

    def _labelings(self, w: np.ndarray, terms: np.ndarray, augmented: bool) -> list[np.ndarray]:
        """Return labelings of some terms that no expansion improves."""
        packed, potts = joint_features.pack(self.features, w), self.potts_at(w)
        starts = np.cumsum([0, *(self._parts[i] for i in terms.tolist())])
        labels, at = np.zeros(starts[-1], self.features.truth.dtype), np.zeros(_STATE, np.int64)
        of = self.minimiser.energy
        state = self._fixing, self.last, self.known, self._room, of, starts, labels, at
        given: Any = *self._problem, packed, terms, float(augmented), potts, *state
        while (left := _label(*given)) != _DONE:
            k = at[_TERM]
            self.check_scale(int(terms[k]), int(left != _NO_SCALE))
            y = self._room.zeros if at[_STEP] == _FIX else labels[starts[k] : starts[k + 1]]
            self.minimiser.cut(terms[k], y)
        self.fixed += int(at[_FIXED])
        self.asked += labels.size
        return [labels[begin:end] for begin, end in pairwise(starts.tolist())]

    def upper_bound(self, w: np.ndarray, i: int) -> float:
        """Return an upper bound of H_i(w), from a lower bound of the energy by message passing."""
        packed, potts, y = joint_features.pack(self.features, w), self.potts_at(w), self.truth(i)
        theta, u = self._room.theta, self._room.u
        s = _unary_energies(*self._problem, packed, i, 1.0, potts, theta, u)
        self.check_scale(i, s)
        score = theta[: y.size, : self.features.n_labels]
        of_truth = score[np.arange(y.size), y].sum() - inner(potts, self.cuts(i, y))
        costs = applied(self.graphs.x[self.edges_of(i)], potts)
        lowest = lower_bound(self.graphs, i, -score, costs, *_SWEEPS)
        return float(-lowest - of_truth) / self.n


@implements(write_plane, CompiledExpansion, shared=True)
def _write_plane(oracle, w, i, indices, values):
    given, features, starts = oracle.given, oracle.given.features, oracle.starts
    if not set_potts(given, w):
        return 0, 0.0, False
    for j in range(features.n_features):
        for c in range(features.n_labels):
            oracle.packed[j * features.stride + c] = w[c * features.n_features + j]
    oracle.term[0], starts[1] = i, parts(features, i)[1]
    oracle.at[:] = 0
    scratch = oracle.last, oracle.known, oracle.room, oracle.of, starts, given.y, oracle.at
    asked = given.graphs, oracle.packed, oracle.term, 1.0, given.potts, 0
    if _label(features, *asked, *scratch) != _DONE:
        return 0, 0.0, False
    return write_plane_of(given, w, i, False, indices, values)


@shared_kernel
def _label(
    features, graphs, w, terms, loss, potts, cuts, last, known, room, of, starts, labels, at
):
    """Label some terms, or go on where a cut was left to `Minimiser.cut`.

    Parameters
    ----------
    w : ndarray of float64
        In the inner layout.
    loss : float
        1.0 with the loss, 0.0 for predictions, which do not start from the truth.
    cuts : int
        Number of cuts that fix labels; 0: none are fixed.
    last, known : ndarrays
        As in `AlphaExpansion`.
    room : Room
    of : Energy
    starts : ndarray of int64, shape (terms + 1,)
        Where in ``labels`` a term's labeling begins.
    at : ndarray of int64, shape (_STATE,)
        Where this is, and the number of nodes that were fixed; all 0 at the beginning.

    Returns
    -------
    int
        ``_DONE``, ``_LEFT``, or ``_NO_SCALE`` of a term's scores.
    """
    while at[_TERM] < terms.size:
        i = terms[at[_TERM]]
        y = labels[starts[at[_TERM]] : starts[at[_TERM] + 1]]
        first, end, optimal = room.first[: y.size], room.end[: y.size], room.optimal[: y.size]
        edges = graphs.edge_start[i + 1] - graphs.edge_start[i]
        if at[_STEP] == _BEGIN:
            s = _unary_energies(features, graphs, w, i, loss, potts, room.theta, room.u)
            if s == 0:
                return _NO_SCALE
            set_capacities(graphs, i, potts, s, of)
            optimal[:] = FREE
            first[:] = 0
            end[:] = features.n_labels
            _copy(of.capacity, edges, room.capacity)
            at[_MADE], at[_STEP] = 0, _FIX if cuts > 0 else _START
        if at[_STEP] == _FIX:
            given = graphs, i, room.u, room.capacity, first, end, room.zeros, cuts, of
            at[_MADE] = halve(*given, at[_MADE])
            if at[_MADE] > 0:
                return _LEFT
            for l in range(y.size):
                optimal[l] = first[l] if of.x[l] == 1 else FREE
            _copy(room.capacity, edges, of.capacity)
            at[_STEP] = _START
        if at[_STEP] == _START:
            free = 0
            for l in range(y.size):
                free += optimal[l] == FREE
                y[l] = _cheapest(room.u[l]) if optimal[l] == FREE else optimal[l]
            at[_FIXED] += y.size - free
            at[_ALPHA] = at[_ANSWERED] = 0
            at[_FAILURES] = 0 if free > 0 else features.n_labels
            if free > 0 and loss > 0.0:
                begin = graphs.offsets[i]
                _start_from(graphs, i, features.truth[begin:], room, of, y)
                if known.size > 0 and known[i]:
                    _start_from(graphs, i, last[begin:], room, of, y)
            at[_STEP] = _EXPAND
        expanding = graphs, i, room.u, room.optimal, y, at[_ALPHA], at[_FAILURES]
        at[_ALPHA], at[_FAILURES], left = _expand(*expanding, at[_ANSWERED] == 1, of)
        at[_ANSWERED] = 1
        if left:
            return _LEFT
        if known.size > 0 and loss > 0.0:
            known[i] = True
            _copy(y, y.size, last[graphs.offsets[i] :])
        at[_TERM], at[_STEP] = at[_TERM] + 1, _BEGIN
    return _DONE


@kernel
def _copy(here, count, there):
    """Copy the first numbers of an array."""
    for k in range(count):  # an assignment of slices would allocate
        there[k] = here[k]


@kernel
def _cheapest(costs):
    """Return the first label of lowest cost."""
    best = 0
    for c in range(1, costs.size):
        best = c if costs[c] < costs[best] else best
    return best


@kernel
def _start_from(graphs, i, start, room, of, y):
    """Let y be ``start``, except at fixed labels, if that has less energy."""
    other = room.other[: y.size]
    for l in range(y.size):
        other[l] = start[l] if room.optimal[l] == FREE else room.optimal[l]
    if energy(graphs, i, room.u, of.capacity, other) < energy(graphs, i, room.u, of.capacity, y):
        _copy(other, y.size, y)


@kernel
def _unary_energies(features, graphs, w, i, loss, potts, theta, u):
    """Write 2^s u[l, c] into ``u``, and return s; 0: there is no such s."""
    L, K = parts(features, i)[1], features.n_labels
    unary_scores(features, w, i, theta)
    add_losses(features, i, loss, theta)
    total = 0.0
    for l in range(L):
        largest = 0.0
        for c in range(K):
            size = abs(theta[l, c])
            if size > largest or size != size:  # a NaN remains
                largest = size
        total += largest
    s = exponent(edges_cost(graphs, i, potts), total)
    scale = 2.0**s
    for l in range(L if s > 0 else 0):
        for c in range(K):
            u[l, c] = np.int64(np.rint(-scale * theta[l, c]))
    return s


@kernel
def energy(graphs, i, u, capacity, y):
    """Return E(y) times the power of two that is a factor of ``u`` and ``capacity``."""
    total, begin = np.int64(0), graphs.edge_start[i]
    for e in range(begin, graphs.edge_start[i + 1]):
        if y[graphs.tail[e]] != y[graphs.head[e]]:
            total += capacity[e - begin]
    for l in range(y.size):
        total += u[l, y[l]]
    return total


@kernel
def _take(alpha, x, y):
    """Give α to the nodes with x = 1; return whether a label has changed."""
    changed = False
    for l in range(y.size):
        if x[l] == 1 and y[l] != alpha:
            y[l] = alpha
            changed = True
    return changed


@kernel
def _expand(graphs, i, u, optimal, y, alpha, failures, answered, of):
    """Try labels in turn, from α on, until none improves or nodes are left open.

    Parameters
    ----------
    failures : int
        Number of expansions since the last improvement.
    answered : bool
        Whether ``of.x`` already holds the expansion to α, by `Minimiser.cut`.

    Returns
    -------
    alpha, failures : int
        Values for the next call.
    left : bool
        Whether the expansion to α is left to `Minimiser.cut`; if not, y is final.
    """
    while failures < u.shape[1]:
        if not answered and expand(graphs, i, u, alpha, y, optimal, of):
            return alpha, failures, True
        answered = False
        # the smallest minimiser is not empty only if it improves
        taken = _take(alpha, of.x, y[: graphs.offsets[i + 1] - graphs.offsets[i]])
        failures = 0 if taken else failures + 1
        alpha = (alpha + 1) % u.shape[1]
    return alpha, failures, False


# ---- partial optimality -------------------------------------------------------------------------


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
            _keep_half(of.x, first, end)
        _split(graphs, i, u, capacity, first, end, made == cuts - 1, of)
        made += 1
        if minimise(graphs, i, of, zeros, u.shape[1] + made - 1):
            return made
    return 0


@kernel
def _keep_half(x, first, end):
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
