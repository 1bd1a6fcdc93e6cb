"""Joint features of which only inner products are known: kernels (MP-BCFW, section 5).

.. code-block:: text

    ϕ(x_i, y) = Σ_l C_i e_{y_l} ⊗ ψ(x_i^l)  +  transitions         ⟨ψ(x), ψ(x′)⟩ = k(x, x′)
    w = Σ_j Σ_c β[j, c] e_c ⊗ ψ(x_j)  +  T        θ[i, c] = C_i S[i, c],   S = K β
    ‖w‖² = ⟨β, S⟩ + ‖T‖²

The j are the parts of all training examples, the *basis*; β[j] is 0 except for those of the
support. A step on a term changes β at its own parts only, and all of S by their rows of K; a visit
without a step only reads S. So kernel values are needed row by row, at the parts where steps are
made (:mod:`ssvm_bench.planes.kernel_iterate` keeps the rows), and an oracle call only reads S.

**Layouts.** The outer one, as in ``weights.npz``, is β class by class, then the transitions. The
inner one, with B parts in the basis and P parts of examples, which are the same in training, is:

======================  ==================================================================
v[j·stride + c]         β[j, c]
v[(B + j)·stride + c]   D[j, c]: the share of β that is not in S yet, as no row of j is kept
v[2B·stride + c·P + i]  S[i, c] = Σ_j K[i, j] (β − D)[j, c]
from (2B + P)·stride    transitions, as in :mod:`ssvm_bench.oracles.joint_features`
======================  ==================================================================

All entries are linear in w: a sum of vectors in this layout is the vector of the sum of weights.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ssvm_bench.base.files import LARGEST
from ssvm_bench.base.jit import implements
from ssvm_bench.base.linalg import matrix_product
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.datasets.arrays import label_type, normalised
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.joint_features import (
    JointFeatures,
    check_room_of_pairs,
    features_with,
    padded,
    product,
)
from ssvm_bench.oracles.kernels import SUPPORT, KernelFunction, KernelPoints
from ssvm_bench.oracles.labeling import LabelingOracle

# mypy: disable-error-code="no-untyped-def"

_BLOCK = 512
"""Points whose kernel values are in memory at once."""

_OF_LONGEST = 24.0
"""Bytes per pair of parts that are only there while kernel values are computed."""

_OWN = ("scale", "losses", "costs", "basis", "rows", "slot", "used", "now")


class KernelFeatures(features_with(*_OWN)):  # type: ignore[misc]
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets, truth, indptr, indices, values, gram_start, gram, n_features, n_labels, stride
        As in :class:`ssvm_bench.oracles.joint_features.JointFeatures`: every part has one feature
        of its own, G has kernel values, and ``n_features`` is 2B + P.
    transitions, scale, losses
        As in that class.
    costs : ndarray of float64, shape (parts,)
        C_i of each part.
    basis : int
        B.
    rows : ndarray of float64, shape (rows kept, parts)
        The rows of K that are kept.
    slot : ndarray of int64, shape (parts,)
        Index in ``rows`` of the row of each part; −1: it is not kept.
    used : ndarray of int64, shape (rows kept,)
        When each row was last used.
    now : ndarray of int64, shape (2,)
        The time, and whether some D is not 0.
    """

    columns, squared_radius = JointFeatures.columns, JointFeatures.squared_radius

    def coefficients(self, v: np.ndarray) -> np.ndarray:
        """Return β of a vector, shape (B, K); a view."""
        return v[: self.basis * self.stride].reshape(-1, self.stride)[:, : self.n_labels]

    def waiting(self, v: np.ndarray) -> np.ndarray:
        """Return D of a vector, shape (B, K); a view."""
        return self.coefficients(v[self.basis * self.stride :])

    def scores(self, v: np.ndarray) -> np.ndarray:
        """Return S of a vector, class by class, shape (K, P); a view."""
        begin = 2 * self.basis * self.stride
        return v[begin : begin + self.n_labels * self.truth.size].reshape(self.n_labels, -1)

    def moves(self, v: np.ndarray) -> np.ndarray:
        """Return the transitions of a vector, shape (K, K), from a to b at [b, a]; a view."""
        K = self.n_labels if self.transitions else 0
        begin = self.n_features * self.stride
        return v[begin : begin + K * self.stride].reshape(K, self.stride)[:, :K]

    def squared_norm(self, v: np.ndarray) -> float:
        """Return ‖w‖²."""
        of_moves = self.moves(v)
        by_label = self.coefficients(v).T * self.scores(v)
        return float(by_label.sum()) + float((of_moves * of_moves).sum())


def build(
    kernel: KernelFunction,
    points: KernelPoints,
    dataset: Dataset,
    costs: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    losses: np.ndarray | None = None,
) -> KernelFeatures:
    """Arrange a dataset's examples, which are the basis; no row of K is kept yet.

    Parameters
    ----------
    kernel : KernelFunction
    points : KernelPoints
        The dataset's parts.
    dataset : Dataset
    costs, weights, losses : ndarrays of float64, optional
        As in :func:`ssvm_bench.oracles.joint_features.build`.
    """
    parts, stride = dataset.y.size, padded(dataset.n_labels)
    offsets = dataset.offsets.astype(np.int64)
    lengths = np.diff(offsets)
    gram_start = np.concatenate(([0], np.cumsum(lengths**2)))
    of_parts = np.ones(parts) if costs is None else np.repeat(costs, lengths)
    if lengths.max() == 1:
        products = kernel.at_themselves(points) * of_parts**2
    else:
        check_room_of_pairs(lengths, 8.0, of_longest=_OF_LONGEST)
        products = np.empty(gram_start[-1])
        for i, (first, last) in enumerate(pairwise(offsets.tolist())):
            own = points.take(slice(first, last))
            products[gram_start[i] : gram_start[i + 1]] = kernel.values(own, own).ravel()
    return KernelFeatures(
        offsets=offsets,
        truth=np.ascontiguousarray(dataset.y, label_type(dataset.n_labels)),
        indptr=np.arange(parts + 1),
        indices=np.arange(parts) * stride,
        values=np.ones(parts),
        gram_start=gram_start,
        gram=products,
        n_features=3 * parts,
        n_labels=dataset.n_labels,
        stride=stride,
        transitions=dataset.structure == "chain",
        scale=product(costs, dataset.margins, weights),
        losses=np.zeros((0, 0)) if losses is None else losses,
        costs=of_parts,
        basis=parts,
        rows=np.zeros((0, parts)),
        slot=np.full(parts, -1),
        used=np.zeros(0, np.int64),
        now=np.zeros(2, np.int64),
    )


class KernelOracle(LabelingOracle):
    """An oracle whose w is a sum over a basis; `kernel_options` builds it.

    Parameters
    ----------
    compiled : NamedTuple
        As in `LabelingOracle`, with `KernelFeatures`.
    kernel : KernelFunction
    points : KernelPoints
        The parts of the examples.
    loss_matrix : ndarray of float64, shape (K, K), optional
        As in `LabelingOracle`.
    basis : KernelPoints, optional
        The points that w is a sum over; None: ``points``.
    """

    has_kernel = True

    def __init__(
        self,
        compiled: Any,
        kernel: KernelFunction,
        points: KernelPoints,
        loss_matrix: np.ndarray | None = None,
        basis: KernelPoints | None = None,
    ) -> None:
        super().__init__(compiled, loss_matrix)
        self.kernel, self.points = kernel, points
        self.basis = points if basis is None else basis
        self.name = kernel.name
        K = self.features.n_labels
        self.d = K * self.features.basis + (K * K if self.features.transitions else 0)
        self._packed: tuple[np.ndarray, np.ndarray] | None = None

    def over(self, x: Any) -> KernelOracle:
        """Return the oracle for weights over another basis, such as that of training.

        Parameters
        ----------
        x : ndarray or csr_array, shape (B, f)
            Features of the basis.
        """
        basis, parts = KernelPoints.of(x), self.points.squares.size
        B = basis.squares.size
        features = self.features._replace(basis=B, n_features=2 * B + parts)
        compiled = self.compiled._replace(features=features)
        return KernelOracle(compiled, self.kernel, self.points, self.loss_matrix, basis)

    def pack(self, w: np.ndarray) -> np.ndarray:
        """See `Oracle`; S is computed block by block, unless w is the same as in the last call."""
        w = np.asarray(w, np.float64)
        if self._packed is None or not np.array_equal(self._packed[0], w):
            self._packed = w.copy(), self._inner(w)
        return self._packed[1].copy()

    def packed(self, w: np.ndarray | Nonzeros) -> np.ndarray:
        """See `Oracle`: S is of the examples, so that there is nothing to prepare."""
        return np.asarray(w)

    def at(self, oracle: Any, w: Any) -> tuple[Any, np.ndarray]:
        """See `LabelingOracle`."""
        return oracle, self.pack(w)

    def _inner(self, w: np.ndarray) -> np.ndarray:
        features, inner = self.features, np.zeros(self.inner_d)
        K, B = features.n_labels, features.basis
        beta = w[: K * B].reshape(K, B)
        features.coefficients(inner)[:] = beta.T
        support = np.flatnonzero(beta.any(axis=0))
        of_support, taken, S = beta[:, support], self.basis.take(support), features.scores(inner)
        for begin in range(0, S.shape[1], _BLOCK):
            block = slice(begin, begin + _BLOCK)
            values = self.kernel.values(taken, self.points.take(block))
            S[:, block] = matrix_product(of_support, values)
        if features.transitions:
            features.moves(inner)[:] = w[K * B :].reshape(K, K).T
        return inner

    def outer(self, inner: np.ndarray) -> np.ndarray:
        """See `PartsOracle`."""
        features = self.features
        parts = features.coefficients(inner).T.ravel(), features.moves(inner).T.ravel()
        return np.concatenate(parts)

    def stored(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Return the features of the support, unless they are too large for a file."""
        features = self.features
        kept, _ = support(w, features.n_labels, features.basis)
        x = normalised(self.basis.x[kept])
        arrays = [x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]
        found = dict(zip(SUPPORT[:1] if len(arrays) == 1 else SUPPORT[1:], arrays, strict=True))
        return found if sum(array.nbytes for array in arrays) < LARGEST // 2 else {}

    def part_scores(self, w: np.ndarray) -> np.ndarray:
        """Return the scores of the labels of all parts, shape (parts, K)."""
        return self.features.scores(self.pack(w)).T.copy()

    def metric(self, w: np.ndarray) -> np.ndarray:
        """See `Oracle`; the basis must be the parts of the examples."""
        moved = w.copy()
        S = self.features.scores(self.pack(w))
        moved[: S.size] = S.ravel()
        return moved


def support(w: np.ndarray, K: int, B: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of B parts have coefficients other than 0, and w over these alone."""
    beta = w[: K * B].reshape(K, B)
    (kept,) = np.nonzero(beta.any(axis=0))
    return kept, np.concatenate((beta[:, kept].ravel(), w[K * B :]))


# ---- scoring ----------------------------------------------------------------------------------


@implements(scoring.waits, KernelFeatures)
def _waits(features):
    return features.now[1] != 0


@implements(scoring.label_score, KernelFeatures)
def _label_score(features, w, part, label):
    begin = 2 * features.basis * features.stride + label * features.truth.size
    return features.costs[part] * w[begin + part]


@implements(scoring.add_label, KernelFeatures)
def _add_label(features, part, label, scale, v):
    amount = scale * features.costs[part]
    v[part * features.stride + label] += amount
    slot = features.slot[part]
    if slot < 0:
        v[(features.basis + part) * features.stride + label] += amount
        features.now[1] = 1
        return
    features.used[slot] = features.now[0]
    row = features.rows[slot]
    scores = v[2 * features.basis * features.stride + label * row.size :]
    for j in range(row.size):
        scores[j] += amount * row[j]
