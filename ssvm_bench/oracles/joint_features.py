"""Joint features of labeled parts and of transitions between neighbours in a chain.

.. code-block:: text

    ϕ(x_i, y) = Σ_l e_{y_l} ⊗ ψ(x_i^l)  +  Σ_l e_{y_l} ⊗ e_{y_{l+1}}      (MP-BCFW, equations 7, 9)

with ψ(x^l) ∈ R^f and K labels. Multiclass problems are chains of length one: no second sum.
A chain's ϕ is linear in its label indicators, so every inner product below is one of indicators:
with the scores θ[l, c] = ⟨w_c, ψ(x^l)⟩ and the Gram matrix G[l, m] = ⟨ψ(x^l), ψ(x^m)⟩ of the parts
of one example,

.. code-block:: text

    ⟨Σ_l δ_l ⊗ ψ(x^l), w⟩ = Σ_l ⟨δ_l, θ[l]⟩         ‖Σ_l δ_l ⊗ ψ(x^l)‖² = Σ_{l,m} G[l,m] ⟨δ_l, δ_m⟩

**Layouts of w.** The outer layout, as in ``weights.npz``, is class by class: w[c·f + j], then the
transitions w[K·f + K·a + b] from a to b. In the inner layout, of the kernels, a non-zero feature
touches one contiguous row: w[j·stride + c], then w[f·stride + b·stride + a]. Here ``stride`` is K
rounded up to 2 or to a multiple of 4; the padding is always 0. ``pack`` and ``unpack`` convert.

**Many features**, as of words: most of w stays 0, as planes touch a feature only where the oracle
finds a wrong label. So `WideFeatures` have a table with the row of each feature. A solver may have
a table of its own, whose rows are in the order in which planes touch their features
(`joint_scores.touch`); all untouched features share the last row, of zeros. Rows that are not in
use are never written to and take no memory: the system allocates pages when they are written.

**Zeros and ones**, as of pixels and words, are `BinaryFeatures`: products with them are left out,
and results have the same bits. **Few zeros**, as of grey values or of what a network learned: a
solver may have `DenseFeatures`, whose w is stored label by label inside, too.

Functions whose ``features`` are not typed serve all types of features
(:mod:`ssvm_bench.oracles.scoring`): `columns` returns how many weights a feature has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import kernel
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.datasets.arrays import label_type
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.joint_scores import (
    BinaryFeatures,
    DenseFeatures,
    JointFeatures,
    WideBinaryFeatures,
    WideFeatures,
    gram_matrices,
)

# mypy: disable-error-code="no-untyped-def"

_BLOCK = 256
"""Columns of w that are copied at a time."""

_SCORES = 2
"""Vectors with a number for each part of the longest example and each label: least there are."""

_DENSE = 0.5
"""From this share of non-zeros on, it is faster to store the zeros, too."""


def build(
    dataset: Dataset,
    with_gram: bool = True,
    costs: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    losses: np.ndarray | None = None,
) -> JointFeatures:
    """Arrange a dataset's examples; transitions are learned if its structure is a chain.

    Parameters
    ----------
    dataset : Dataset
    with_gram : bool
        Whether to compute the Gram matrices, L² numbers for L parts; if not, ``gram`` is empty.
    costs : ndarray of float64, shape (n,), optional
        C_i > 0, by which the features and losses of examples of one part are multiplied.
    weights : ndarray of float64, shape (parts,), optional
        Factors of the losses of parts, and of nothing else.
    losses : ndarray of float64, shape (K, K), optional
        Δ of a true label (row) and any label; None: 1 for every wrong label.

    Raises
    ------
    RunFailedError
        Numbers for the parts of an example, and their labels or pairs, do not fit into memory.
    """
    rows = csr_array(dataset.x)
    indptr = rows.indptr.astype(np.int64)
    stride = padded(dataset.n_labels)
    f, values = dataset.n_features, weighted(rows, costs)
    wide = with_gram and f * stride > 1 << 16  # kernels of graphs index w by ``indices``
    indices = rows.indices if wide else placed(rows, stride)
    offsets = dataset.offsets.astype(np.int64)
    most = int(np.diff(offsets).max(initial=0))
    check_room(
        _SCORES * 8.0 * most * stride,
        f"Scores of {dataset.n_labels} labels of up to {most} parts",
        "Divide long examples into shorter ones, or use fewer labels.",
    )
    lengths = np.diff(offsets) if with_gram else np.zeros(dataset.n, np.int64)
    gram_start = np.concatenate(([0], np.cumsum(lengths**2)))
    psi = offsets, indptr, indices, values
    binary = bool((values == 1).all())
    kind: Any = BinaryFeatures if binary else JointFeatures
    if wide:
        kind = WideBinaryFeatures if binary else WideFeatures
    made = kind(
        offsets=offsets,
        truth=np.ascontiguousarray(dataset.y, label_type(dataset.n_labels)),
        indptr=indptr,
        indices=indices,
        values=values,
        gram_start=gram_start,
        gram=gram_matrices(*psi, gram_start, f, 1 if wide else stride, wide)
        if with_gram
        else np.zeros(0),
        n_features=f,
        n_labels=dataset.n_labels,
        stride=stride,
        transitions=dataset.structure == "chain",
        scale=product(costs, dataset.margins, weights),
        losses=np.zeros((0, 0)) if losses is None else losses,
    )
    return with_rows(made, np.arange(f)) if wide else made


def with_rows(features: WideFeatures, touched: np.ndarray) -> WideFeatures:
    """Return the features with a new table, in which the touched ones have rows, in this order."""
    f, stride = features.n_features, features.stride
    kind = np.uint32 if f * stride <= 1 << 32 else np.int64
    rows = np.full(f, (f - 1) * stride, kind)
    rows[touched] = np.arange(touched.size) * stride
    return features._replace(rows=rows, used=np.array([touched.size]))


def with_zeros(features: JointFeatures) -> JointFeatures | DenseFeatures:
    """Return `DenseFeatures` that store the zeros, or the same features if zeros are many."""
    f, parts, there = features.n_features, features.truth.size, features.values.size
    if there < _DENSE * f * parts:
        return features
    values = features.values
    if there < f * parts:
        row = np.repeat(np.arange(parts), np.diff(features.indptr))
        values = np.zeros(f * parts, values.dtype)
        values[row * f + features.indices // features.stride] = features.values
    own = {name: getattr(features, name) for name in DenseFeatures._fields}
    own |= {"indptr": np.arange(parts + 1) * f, "values": values, "indices": np.zeros(0, np.uint16)}
    return DenseFeatures(**own)


def nonzeros(features: WideFeatures, inner: np.ndarray) -> Nonzeros:
    """Convert w from the inner layout, where it is 0 at untouched features, to the outer one."""
    K, f, stride = features.n_labels, features.n_features, features.stride
    touched = np.flatnonzero(features.rows < features.used * stride)
    rows = features.rows[touched]

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:  # by label: w has many non-zeros
        for c in range(K):
            yield c * f + touched, inner[rows + c]
        if features.transitions:
            table = inner[f * stride :].reshape(K, stride)[:, :K].T
            yield K * f + np.arange(K * K), table.ravel()

    there = [(places[w != 0.0], w[w != 0.0]) for places, w in blocks()]
    places, values = map(np.concatenate, zip(*there, strict=True))
    return Nonzeros(dimension(features), places, values)


def at_nonzeros(features: WideFeatures, w: Any) -> tuple[WideFeatures, np.ndarray]:
    """Return the features with rows for those where w is not 0, and w in the resulting layout.

    Parameters
    ----------
    features : WideFeatures
    w : ndarray or Nonzeros
        In the outer layout.
    """
    K, f, stride = features.n_labels, features.n_features, features.stride
    if not isinstance(w, Nonzeros):
        w = np.asarray(w, np.float64)
        there = np.zeros(f, bool)
        for of_label in w[: K * f].reshape(K, f):
            there |= of_label != 0.0
        features = with_rows(features, np.flatnonzero(there))
        return features, pack(features, w)
    c, j = np.divmod(w.places[: np.searchsorted(w.places, K * f)], f)
    a, b = np.divmod(w.places[c.size :] - K * f, K)
    features = with_rows(features, np.flatnonzero(np.bincount(j, minlength=f)))
    inner = np.zeros(inner_dimension(features))
    inner[features.rows[j] + c] = w.values[: c.size]
    inner[(f + b) * stride + a] = w.values[c.size :]
    return features, inner


def padded(n_labels: int) -> int:
    """Return K rounded up to 2 or to a multiple of 4."""
    return 2 if n_labels <= 2 else -(-n_labels // 4) * 4


def placed(rows: csr_array, stride: int) -> np.ndarray:
    """Return the non-zeros' indices in w, in a narrow type.

    A pass in random order mostly waits for reading the features.
    """
    size = rows.shape[1] * stride
    narrow = np.uint16 if size <= 1 << 16 else np.uint32 if size <= 1 << 32 else np.int64
    return rows.indices.astype(narrow) * narrow(stride)


def weighted(rows: csr_array, costs: np.ndarray | None) -> np.ndarray:
    """Return the non-zeros, each times the cost of its row."""
    return rows.data if costs is None else rows.data * np.repeat(costs, np.diff(rows.indptr))


def product(*factors: np.ndarray | None) -> np.ndarray:
    """Return the product of the factors that are not None; an empty array if all are."""
    given = [factor for factor in factors if factor is not None]
    return np.multiply.reduce(given, dtype=np.float64) if given else np.zeros(0)


def is_consistent(features: Any) -> bool:
    """Return whether all indices are within the arrays that they refer to, and all labels exist."""
    offsets, indptr, gram_start = features.offsets, features.indptr, features.gram_start
    lengths, of_gram = np.diff(offsets), np.diff(gram_start)
    last_index = getattr(features, "last_index", (features.n_features - 1) * columns(features)[1])
    return bool(
        offsets[0] == indptr[0] == gram_start[0] == 0
        and lengths.min(initial=1) > 0
        and offsets[-1] == features.truth.size == indptr.size - 1
        and int(features.truth.max(initial=0)) < features.n_labels <= features.stride
        and np.diff(indptr).min(initial=0) >= 0
        and indptr[-1] == features.indices.size == features.values.size
        and int(features.indices.max(initial=0)) <= last_index
        and (not of_gram.any() or np.array_equal(of_gram, lengths**2))
        and gram_start[-1] == features.gram.size
    )


def columns(features: Any) -> tuple[int, int]:
    """Return how many weights a feature has, and how many indices they take in the inner layout.

    Both are 1, unless labels have weights of their own.
    """
    return getattr(features, "columns", (1, 1))


def dimension(features: Any) -> int:
    """Return d, the number of weights."""
    of_transitions = features.n_labels**2 if features.transitions else 0
    return columns(features)[0] * features.n_features + of_transitions


def transition_base(features: Any) -> int:
    """Return the index at which the transitions begin in the inner layout."""
    return features.n_features * columns(features)[1]


def inner_dimension(features: Any) -> int:
    """Return the length of w in the inner layout."""
    rows = features.n_labels if features.transitions else 0
    return transition_base(features) + rows * features.stride


def pack(features: Any, w: np.ndarray) -> np.ndarray:
    """Convert w from the outer layout (length d) to the inner one."""
    inner = np.zeros(inner_dimension(features))
    for outside, inside in _both(features, w, inner):
        inside[:] = outside
    if isinstance(features, WideFeatures):
        _copy_rows(w, inner, features.n_labels, features.rows, True)
    return inner


def unpack(features: Any, inner: np.ndarray) -> np.ndarray:
    """Convert w from the inner layout to the outer one."""
    w = np.zeros(dimension(features))
    for outside, inside in _both(features, w, inner):
        outside[:] = inside
    if isinstance(features, WideFeatures):
        _copy_rows(w, inner, features.n_labels, features.rows, False)
    return w


def _both(features: Any, w: np.ndarray, inner: np.ndarray) -> Iterator[tuple[Any, Any]]:
    """Yield views of the same weights outside and inside, except for the rows of a table."""
    (K, stride), f = columns(features), features.n_features
    if isinstance(features, DenseFeatures):
        yield w[: K * f], inner[: K * f]
    elif not isinstance(features, WideFeatures):
        yield w[: K * f].reshape(K, f), inner[: f * stride].reshape(f, stride)[:, :K].T
    if features.transitions:
        yield w[K * f :].reshape(K, K), inner[f * stride :].reshape(K, stride)[:, :K].T


@kernel
def _copy_rows(w, inner, K, rows, inwards):
    """Copy w to the rows of its features, or back; the destination is 0 before.

    The copy goes by blocks of columns that the cache holds: w is larger with many features.
    """
    f = rows.size
    for begin in range(0, f, _BLOCK):
        for c in range(K):
            for j in range(begin, min(begin + _BLOCK, f)):
                here, there = c * f + j, np.int64(rows[j]) + c
                if inwards and w[here] != 0.0:
                    inner[there] = w[here]
                elif not inwards and inner[there] != 0.0:
                    w[here] = inner[there]
