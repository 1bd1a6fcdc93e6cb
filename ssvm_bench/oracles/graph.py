"""Labels of the nodes of a graph, with a Potts term: what min-cut and α-expansion share.

.. code-block:: text

    ϕ(x_i, y) = Σ_l e_{y_l} ⊗ ψ(x_i^l)     Θ_i(y) = −⟨p, c(y)⟩     c(y) = Σ_{k∼l} x_{kl} [y_k ≠ y_l]

(MP-BCFW, equation 10 with p = 1, whose plus is a misprint: with it, the energy would not be
submodular.) Edges have k features x_{kl} ≥ 0 (``edge_x`` of a `Dataset`), or else a single one, 1;
a fixed Potts weight is the same for each. A learned p is the last k weights, and Θ_i = 0:

.. code-block:: text

    ϕ(x_i, y) = [ Σ_l e_{y_l} ⊗ ψ(x_i^l),  −c(y) ]        w = [ w_1 … w_K  p ],        p ≥ 0

p ≥ 0 is a constraint of training (`Oracle.nonnegative`). Without it, a minimum cut would not be
exact, nor an expansion a minimum cut. An oracle minimises an energy, the negative augmented score:

.. code-block:: text

    E(y) = Σ_l u[l, y_l] + ⟨p, c(y)⟩,        u[l, c] = −⟨w_c, ψ(x_i^l)⟩ − Δ(y_i^l, c) s_l/L

It does so in integers: E times the largest power of two for which no sum can overflow. Rounding u
and p to integers is then finer than the rounding of a floating-point sum, and minimisation adds
none: the result is the minimiser, and ties are exact.

**A lower bound** of an energy Σ_l u_l(y_l) + Σ_{k∼l} p_{kl} [y_k ≠ y_l] comes from message passing
(TRW-S). A message from node k to its neighbour l adds M(c) to label c of l and subtracts it from
their edge, so that the energy of no labeling changes. A sweep visits the nodes in order. At node l,
with the messages that it has received,

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

import copy
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.base.jit import allocating_kernel, kernel, shared_kernel
from ssvm_bench.base.linalg import dot_at, dot_from, inner
from ssvm_bench.config.validation import check_at_least, check_choice
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import checks, joint_features
from ssvm_bench.oracles.base import Plane, Risk
from ssvm_bench.oracles.cut import AUTO, ENGINES, PYMAXFLOW, Graphs, Minimiser, graphs
from ssvm_bench.oracles.labeling import PartsOracle, in_order
from ssvm_bench.oracles.options import ClassesConfig
from ssvm_bench.oracles.scoring import add_difference, labeling_loss, longest, parts

# mypy: disable-error-code="no-untyped-def"

LEARNED = "learned"

_BITS = 60
"""No sum of energies reaches 2 to this power, which leaves a bit for differences."""


@dataclass(frozen=True)
class GraphConfig(ClassesConfig):
    """Options of an oracle of graphs.

    Attributes
    ----------
    potts : float or str
        p ≥ 0: what it costs that neighbours have different labels, times the sum of their edge's
        features if it has any; ``learned``: one more weight, or one for each of these features, the
        last ones, which training keeps ≥ 0.
    engine : str
        What finds minimum cuts: ``compiled`` (:mod:`ssvm_bench.oracles.cut`), or
        ``pymaxflow``, the package; the answers are the same. ``auto``: the faster one, which is
        ``compiled``.
    """

    structures: ClassVar[tuple[str, ...]] = ("graph",)
    has_expectations: ClassVar[bool] = False

    potts: float | str = field(default=1.0, kw_only=True)
    engine: str = field(default=AUTO, kw_only=True)

    @property
    def extra(self) -> str:
        """The extra that the engine takes; empty if none."""
        return "graphs" if self.engine == PYMAXFLOW else ""

    def __post_init__(self) -> None:
        """Check the engine, and the Potts weight."""
        super().__post_init__()
        check_choice("oracle.engine", self.engine, ENGINES)
        if isinstance(self.potts, str):
            if self.potts != LEARNED:
                got = shown(self.potts)
                raise ConfigError(f"oracle.potts must be a number ≥ 0, or learned, got {got}.")
        else:
            check_at_least("oracle.potts", self.potts, 0)

    @property
    def needs_nonnegative(self) -> bool:
        """See `OracleConfig`."""
        return self.potts == LEARNED


class Writing(NamedTuple):
    """What kernels need for a plane of a graph.

    Attributes
    ----------
    features : JointFeatures
    graphs : Graphs
    potts, fixed : ndarrays of float64, shape (k,)
        p, and what of it is not learned: p or 0.
    learned : int
        Number of weights that are p: k or 0.
    y : ndarray like labels, shape (≥ L,)
        The labeling of a call.
    cuts, two, signs, star : ndarrays
        Scratch of `_plane`.
    """

    features: Any
    graphs: Graphs
    potts: np.ndarray
    fixed: np.ndarray
    learned: int
    y: np.ndarray
    cuts: np.ndarray
    two: np.ndarray
    signs: np.ndarray
    star: np.ndarray


class GraphOracle(PartsOracle):
    """A max-oracle over labelings of graphs; a subclass minimises the energy.

    Parameters
    ----------
    dataset : Dataset
    config : GraphConfig
        Weights and losses of labels, the Potts weight, and the engine.
    others : int
        Number of kinds of energies to minimise, besides one for each label.

    Attributes
    ----------
    graphs : Graphs
        The neighbours in every example.
    minimiser : Minimiser
        Minimises binary energies on those graphs.
    """

    def __init__(self, dataset: Dataset, config: GraphConfig, others: int = 0) -> None:
        weights, losses = config.part_weights(dataset), config.loss_matrix(dataset)
        features = joint_features.build(dataset, with_gram=False, weights=weights, losses=losses)
        super().__init__(features, losses)
        edges, bounds = np.asarray(dataset.edges), np.asarray(dataset.edge_offsets)
        self.graphs = graphs(edges, bounds, dataset.offsets, dataset.edge_x)
        k = self.graphs.x.shape[1]
        self.potts = np.full(k, 0.0 if isinstance(config.potts, str) else config.potts)
        self.nonnegative = k if config.needs_nonnegative else 0
        self.d += self.nonnegative
        self.minimiser = Minimiser(self.graphs, dataset.n_labels + others, config.engine)
        self._problem = self.features, self.graphs
        self._make_room()

    def _make_room(self) -> None:
        """Allocate the scratch of calls and of planes."""
        two, signs = np.zeros(2, self.features.truth.dtype), np.array([1.0, -1.0])
        star = np.zeros(joint_features.inner_dimension(self.features))
        indices, values = np.zeros(self.d, np.int64), np.zeros(self.d)
        self._cuts = np.zeros(self.graphs.x.shape[1])
        self._scratch = self._cuts, two, signs, star, indices, values

    def _writing(self) -> Writing:
        """Return what kernels need for a plane."""
        L, k = longest(self.features), self.potts.size
        potts = np.zeros(k) if self.nonnegative else self.potts
        y = np.zeros(L, self.features.truth.dtype)
        return Writing(*self._problem, potts, self.potts, self.nonnegative, y, *self._scratch[:4])

    @property
    def takes_threads(self) -> bool:
        """See `Oracle`: PyMaxflow keeps the interpreter's lock."""
        return self.minimiser.compiled

    def apart(self) -> GraphOracle:
        """See `Oracle`."""
        made = copy.copy(self)
        made.minimiser = self.minimiser.apart()
        made._make_room()
        return made

    def fixed_score(self, i: int, y: np.ndarray) -> float:
        """Return −⟨p, c(y)⟩, or 0 if p is learned."""
        return -inner(self.potts, self.cuts(i, y))

    def edges_of(self, i: int) -> slice:
        """Return the slice of the edges of example i."""
        return slice(*self.graphs.edge_start[i : i + 2])

    def cuts(self, i: int, y: np.ndarray) -> np.ndarray:
        """Return c(y), the sum of the features of edges between different labels, shape (k,)."""
        graphs, edges = self.graphs, self.edges_of(i)
        apart = y[graphs.tail[edges]] != y[graphs.head[edges]]
        found: np.ndarray = graphs.x[edges][apart].sum(axis=0)
        return found

    def potts_at(self, w: np.ndarray) -> np.ndarray:
        """Return p, shape (k,): a part of w if it is learned.

        Raises
        ------
        RunFailedError
            If one is negative.
        """
        if not self.nonnegative:
            return self.potts
        potts: np.ndarray = w[w.size - self.nonnegative :].copy()
        if (lowest := potts.min()) < 0.0:
            raise RunFailedError(
                f"A learned Potts weight is {lowest:g}, and cuts need one that is not negative: "
                "its solver has to keep the last weights ≥ 0."
            )
        return potts

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y)."""
        indices, values = super().joint_feature(i, y)
        if not self.nonnegative:
            return indices, values
        cuts = self.cuts(i, y)
        (some,) = np.nonzero(cuts)
        last = self.d - self.nonnegative + some
        return np.append(indices, last), np.append(values, -cuts[some])

    def plane(self, i: int, y: np.ndarray) -> Plane:
        """Return φ^{iy}, summed over the parts whose label is wrong."""
        learned = self.d - self.nonnegative
        nonzero, loss = _plane(*self._problem, i, y, learned, *self._scratch)
        indices, values = (row[:nonzero] for row in self._scratch[-2:])
        offset = loss - inner(self.potts, self._cuts)
        return Plane(indices.copy(), values / self.n, offset / self.n)

    def plane_at(self, w: np.ndarray, i: int, y: np.ndarray) -> tuple[Plane, float]:
        """Return the plane of y, which `argmax` returned at w, and its value H_i(w).

        The plane is computed here, from a checked labeling, and so needs no check itself.
        """
        plane = self.plane(i, y)
        values = self._scratch[-1][: plane.indices.size]  # n times the plane's
        value = dot_at(values, plane.indices, w) / self.n + plane.offset
        checks.check_value(self, i, y, value, w)
        return plane, value

    def _sum(self, w: np.ndarray, terms: range, with_plane: bool) -> Risk:
        """See `PartsOracle`; this makes one call per term."""
        packed, potts = joint_features.pack(self.features, w), self.potts_at(w)
        of_nodes, of_edges = np.zeros(packed.size if with_plane else 0), np.zeros(self.nonnegative)
        found, numbers = [*self.argmaxes(w, terms)], np.arange(terms.start, terms.stop)
        labels = np.concatenate([np.zeros(0, self.features.truth.dtype), *found])
        values, offsets = np.zeros((2, len(terms)))
        given = packed, numbers, labels, potts, self.nonnegative > 0, *self._scratch[:3]
        _add_terms(*self._problem, *given, of_nodes, of_edges, values, offsets)
        for k in np.flatnonzero(values < 0.0).tolist():
            checks.check_value(self, terms[k], found[k], float(values[k]), w)
        star = np.append(self.outer(of_nodes), of_edges) if with_plane else np.zeros(self.d)
        return Risk(in_order(values), star, in_order(offsets))

    def check_scale(self, i: int, s: int) -> None:
        """Raise `RunFailedError` if `exponent` has found no scale for the energies of example i."""
        if s == 0:
            raise RunFailedError(
                f"The scores of example {i} are not finite, or too large to compare with the "
                "Potts term; is lam too small, or has the run diverged?"
            )


@kernel
def exponent(pairs, total):
    """Return the largest s with 2^s (pairs + total) < 2^60, or 0 if there is none above 0."""
    # one more unit, so that a graph without edges has a scale as well
    size = pairs + 1.0 + total
    if not size < 2.0 ** (_BITS - 1):  # also if it is NaN
        return 0
    return _BITS - math.frexp(size)[1]


@kernel
def edges_cost(graphs, i, potts):
    """Return the cost of cutting all edges of example i."""
    total = 0.0
    for j in range(potts.size):
        total += potts[j] * graphs.sums[i, j]
    return total


@kernel
def _set_extra_cuts(features, graphs, i, y, cuts):
    """Set ``cuts`` to c(y) − c(y_i)."""
    cuts[:] = 0.0
    truth = features.truth[features.offsets[i] :]
    for e in range(graphs.edge_start[i], graphs.edge_start[i + 1]):
        k, l = graphs.tail[e], graphs.head[e]
        sign = (1.0 if y[k] != y[l] else 0.0) - (1.0 if truth[k] != truth[l] else 0.0)
        if sign != 0.0:
            for j in range(cuts.size):
                cuts[j] += sign * graphs.x[e, j]


@kernel
def set_potts(given, w):
    """Set p where it is a part of w; return whether no number is negative."""
    right = True
    for j in range(given.learned):
        given.potts[j] = w[w.size - given.learned + j]
        right &= given.potts[j] >= 0.0
    return right


@kernel
def write_plane_of(given, w, i, exact, indices, values):
    """Do `write_plane` for the labeling ``given.y``; ``exact`` as in `Oracle`."""
    n = given.graphs.offsets.size - 1
    scratch = given.cuts, given.two, given.signs, given.star
    d = w.size - given.learned
    size, loss = _plane(given.features, given.graphs, i, given.y, d, *scratch, indices, values)
    offset = loss - dot_from(given.fixed, 0, given.cuts, 0, given.cuts.size)
    value = offset
    if exact:
        value += dot_at(values[:size], indices, w)
    for k in range(size):
        values[k] /= n
    return size, offset / n, not (exact and value < 0.0)


@shared_kernel
def _plane(features, graphs, i, y, learned, cuts, labels, signs, star, indices, values):
    """Write n φ⋆ as a sparse row; return its size and the loss.

    ``star`` is zero before and after; ``cuts`` is c(y) − c(y_i) after. The weights from ``learned``
    on are those of edges.
    """
    add_difference(features, i, y, labels, signs, star)
    nonzero = 0
    stride = features.stride
    for c in range(features.n_labels):
        if not _is_wrong_or_missed(features, i, y, c):
            continue
        for j in range(features.n_features):
            value = star[j * stride + c]
            if value != 0.0:
                indices[nonzero] = c * features.n_features + j
                values[nonzero] = value
                nonzero += 1
                star[j * stride + c] = 0.0
    _set_extra_cuts(features, graphs, i, y, cuts)
    for j in range(indices.size - learned):
        if cuts[j] != 0.0:
            indices[nonzero] = learned + j
            values[nonzero] = -cuts[j]
            nonzero += 1
    return nonzero, labeling_loss(features, i, y)


@kernel
def _is_wrong_or_missed(features, i, y, c):
    """Return whether y has label c where the truth has another, or the truth where y has."""
    first, L = parts(features, i)
    for l in range(L):
        here, there = y[l], features.truth[first + l]
        if here != there and (here == c or there == c):
            return True
    return False


@kernel
def _add_terms(
    features,
    graphs,
    w,
    terms,
    all_labels,
    potts,
    learned,
    cuts,
    two,
    signs,
    of_nodes,
    of_edges,
    values,
    offsets,
):
    """Add the planes of labelings of some terms, times n, in their order.

    Parameters
    ----------
    w : ndarray of float64
        In the inner layout.
    all_labels : ndarray
        The labelings, one after the other.
    learned : bool
        Whether p is a part of w.
    cuts, two, signs
        As in `_plane`.
    of_nodes, of_edges : ndarrays of float64
        n φ̂⋆ of the nodes, in the inner layout, and of the edges; ``of_nodes`` is empty: only the
        numbers are wanted.
    values, offsets : ndarrays of float64, shape (terms,)
        Set to n H_i(w) and n φ∘ of each.
    """
    at = 0
    for k in range(terms.size):
        i = terms[k]
        y = all_labels[at:]
        at += parts(features, i)[1]
        climb, offset = _value(features, graphs, i, y, w, cuts)
        of_cuts = dot_from(potts, 0, cuts, 0, potts.size)
        if learned:
            climb -= of_cuts
        else:
            offset -= of_cuts
        values[k], offsets[k] = climb + offset, offset
        if of_nodes.size > 0:
            add_difference(features, i, y, two, signs, of_nodes)
            for j in range(of_edges.size):
                of_edges[j] -= cuts[j]


@kernel
def _value(features, graphs, i, y, w, cuts):
    """Return the score of y minus that of y_i, without edges, and the loss; set ``cuts``.

    w is in the inner layout.
    """
    first, L = parts(features, i)
    total = 0.0
    for l in range(L):
        here, there = y[l], features.truth[first + l]
        if here != there:
            for k in range(features.indptr[first + l], features.indptr[first + l + 1]):
                row = w[features.indices[k] :]
                total += features.values[k] * (row[here] - row[there])
    _set_extra_cuts(features, graphs, i, y, cuts)
    return total, labeling_loss(features, i, y)


# ---- a lower bound by message passing ------------------------------------------------------------


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
