"""Labels of the nodes of a graph, with a Potts term: what min-cut and α-expansion share.

.. code-block:: text

    ϕ(x_i, y) = Σ_l e_{y_l} ⊗ ψ(x_i^l)          Θ_i(y) = −p Σ_{k∼l} [y_k ≠ y_l]

(MP-BCFW, equation 10 with p = 1, whose plus is a misprint: with it the energy would not be
submodular.) Where p is learned, it is the last weight, and Θ_i = 0:

.. code-block:: text

    ϕ(x_i, y) = [ Σ_l e_{y_l} ⊗ ψ(x_i^l),  −Σ_{k∼l} [y_k ≠ y_l] ]      w = [ w_1 … w_K  p ],  p ≥ 0

p ≥ 0 is a constraint of training (`Oracle.nonnegative`), without which a minimum cut would not be
exact, nor an expansion a minimum cut. An oracle minimises an energy, minus the augmented score:

.. code-block:: text

    E(y) = Σ_l u[l, y_l] + p Σ_{k∼l} [y_k ≠ y_l],     u[l, c] = −⟨w_c, ψ(x_i^l)⟩ − Δ(y_i^l, c) s_l/L

in integers: E times the largest power of two for which no sum can overflow. Rounding u and p to
integers is then finer than the rounding of its floating-point sum, and minimisation adds none: what
is found is the minimiser, and ties are ties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.config.validation import check_at_least, check_choice
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import checks, joint_features
from ssvm_bench.oracles.base import Plane
from ssvm_bench.oracles.cut import AUTO, ENGINES, Minimiser, graphs
from ssvm_bench.oracles.labeling import PartsOracle
from ssvm_bench.oracles.options import ClassesConfig
from ssvm_bench.oracles.scoring import add_difference, labeling_loss

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
        p ≥ 0: what it costs that neighbours have different labels; ``learned``: one more weight,
        the last, which training keeps ≥ 0.
    engine : str
        What finds minimum cuts: ``compiled`` (:mod:`ssvm_bench.oracles.max_flow`), or
        ``pymaxflow``, the package; the answers are the same. ``auto``: the faster one, which is
        ``compiled``.
    """

    structures: ClassVar[tuple[str, ...]] = ("graph",)
    has_expectations: ClassVar[bool] = False

    potts: float | str = field(default=1.0, kw_only=True)
    engine: str = field(default=AUTO, kw_only=True)

    def __post_init__(self) -> None:
        """Check the engine."""
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


class GraphOracle(PartsOracle):
    """A max-oracle over labelings of graphs; a subclass minimises the energy.

    Parameters
    ----------
    dataset : Dataset
    config : GraphConfig
        What a wrong label of each part counts, and neighbours with different labels.

    Attributes
    ----------
    graphs : Graphs
        The neighbours in every example.
    minimiser : Minimiser
        For binary energies on those graphs.
    """

    def __init__(self, dataset: Dataset, config: GraphConfig) -> None:
        weights, losses = config.part_weights(dataset), config.loss_matrix(dataset)
        features = joint_features.build(dataset, with_gram=False, weights=weights, losses=losses)
        super().__init__(features, losses)
        self.potts = 0.0 if isinstance(config.potts, str) else config.potts
        self.nonnegative = int(config.needs_nonnegative)
        self.d += self.nonnegative
        self.inner_size += self.nonnegative
        edges, bounds = np.asarray(dataset.edges), np.asarray(dataset.edge_offsets)
        self.graphs = graphs(edges, bounds, dataset.offsets)
        self.minimiser = Minimiser(self.graphs, dataset.n_labels, config.engine)
        self._labels, self._signs = np.zeros(2, self.features.truth.dtype), np.array([1.0, -1.0])
        star = np.zeros(self.inner_size)
        indices, values = np.zeros(self.d, np.int64), np.zeros(self.d)
        self._problem = self.features, self.graphs
        self._scratch = self._labels, self._signs, star, indices, values

    def fixed_score(self, i: int, y: np.ndarray) -> float:
        """Return −p times the number of edges between different labels."""
        return -self.potts * float(cut_edges(self.graphs, i, y))

    def potts_at(self, w: np.ndarray) -> float:
        """Return p, which is a weight if it is learned.

        Raises
        ------
        RunFailedError
            If it is negative.
        """
        if not self.nonnegative:
            return self.potts
        if w[-1] < 0.0:
            raise RunFailedError(
                f"The learned Potts weight is {w[-1]:g}, and cuts need one that is not negative: "
                "its solver has to keep the last weight ≥ 0."
            )
        return float(w[-1])

    def outer(self, inner: np.ndarray) -> np.ndarray:
        """Return the weights of the nodes' features, and the Potts weight if it is learned."""
        return np.append(super().outer(inner), inner[inner.size - self.nonnegative :])

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y)."""
        indices, values = super().joint_feature(i, y)
        cuts = cut_edges(self.graphs, i, y)
        if self.nonnegative and cuts:
            return np.append(indices, self.d - 1), np.append(values, -float(cuts))
        return indices, values

    def plane(self, i: int, y: np.ndarray) -> Plane:
        """Return φ^{iy}, summed over the parts whose label is wrong."""
        nonzero, cuts, loss = _plane(*self._problem, i, y, *self._scratch)
        if self.nonnegative and cuts != 0:
            for row, last in zip(self._scratch[-2:], (self.d - 1, -cuts), strict=True):
                row[nonzero] = last
            nonzero += 1
        indices, values = (row[:nonzero] for row in self._scratch[-2:])
        offset = loss - self.potts * cuts
        return Plane(indices.copy(), values / self.n, offset / self.n)

    def plane_at(self, w: np.ndarray, i: int, y: np.ndarray) -> tuple[Plane, float]:
        """Return the plane of the labeling that `argmax` has found, and its value H_i(w).

        A plane that is made here, of a labeling that was checked, need not be checked itself.
        """
        plane = self.plane(i, y)
        values = self._scratch[-1][: plane.indices.size]  # n times the plane's
        value = dot_at(values, plane.indices, w) / self.n + plane.offset
        checks.check_value(self, i, y, value, w)
        return plane, value

    def add_planes(self, w: np.ndarray, terms: range, star: np.ndarray) -> tuple[float, float]:
        """Add up by one call per term."""
        packed, potts = joint_features.pack(self.features, w), self.potts_at(w)
        value = offset = 0.0
        for i, y in zip(terms, self.argmaxes(w, terms), strict=True):
            climb, cuts, offset_i = _value(*self._problem, i, y, packed)
            if self.nonnegative:
                climb -= potts * cuts
            else:
                offset_i -= potts * cuts
            checks.check_value(self, i, y, climb + offset_i, w)
            value += climb + offset_i
            offset += offset_i
            if star.size:
                add_difference(self.features, i, y, self._labels, self._signs, star)
                if self.nonnegative:
                    star[-1] -= cuts
        return value, offset

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
    if not size < 2.0 ** (_BITS - 1):  # also where it is not a number
        return 0
    return _BITS - math.frexp(size)[1]


@kernel
def unit_of(potts, s):
    """Return 2^s p as an even integer, which α-expansion halves."""
    return 2 * np.int64(np.rint(potts * 2.0 ** (s - 1)))


@kernel
def cut_edges(graphs, i, y):
    """Return the number of edges of example i between different labels."""
    count = 0
    for e in range(graphs.edge_start[i], graphs.edge_start[i + 1]):
        if y[graphs.tail[e]] != y[graphs.head[e]]:
            count += 1
    return count


@kernel
def _extra_cuts(features, graphs, i, y):
    """Return the number of cut edges of y, less that of the ground truth."""
    truth = features.truth[features.offsets[i] : features.offsets[i + 1]]
    return cut_edges(graphs, i, y) - cut_edges(graphs, i, truth)


@kernel
def _plane(features, graphs, i, y, labels, signs, star, indices, values):
    """Write n φ⋆ as a sparse row; return its size, the extra cut edges and the loss.

    ``star`` is zero before and after.
    """
    add_difference(features, i, y, labels, signs, star)
    nonzero = 0
    stride = features.stride
    for c in range(features.n_labels):
        for j in range(features.n_features):
            value = star[j * stride + c]
            if value != 0.0:
                indices[nonzero] = c * features.n_features + j
                values[nonzero] = value
                nonzero += 1
                star[j * stride + c] = 0.0
    return nonzero, _extra_cuts(features, graphs, i, y), labeling_loss(features, i, y)


@kernel
def _value(features, graphs, i, y, w):
    """Return the score of y above the truth's but for the edges, its extra cut edges, and its loss.

    w is in the inner layout.
    """
    first = features.offsets[i]
    total = 0.0
    for l in range(features.offsets[i + 1] - first):
        here, there = y[l], features.truth[first + l]
        if here != there:
            for k in range(features.indptr[first + l], features.indptr[first + l + 1]):
                row = w[features.indices[k] :]
                total += features.values[k] * (row[here] - row[there])
    return total, _extra_cuts(features, graphs, i, y), labeling_loss(features, i, y)
