"""Joint features of labeled parts and of transitions between neighbours in a chain.

.. code-block:: text

    ϕ(x_i, y) = Σ_l e_{y_l} ⊗ ψ(x_i^l)  +  Σ_l e_{y_l} ⊗ e_{y_{l+1}}      (MP-BCFW, equations 7, 9)

with ψ(x^l) ∈ R^f and K labels. Multiclass problems are chains of length one: no second sum.
A chain's ϕ is linear in its label indicators, so every inner product below is one of indicators:
with the scores θ[l, c] = ⟨w_c, ψ(x^l)⟩ and the Gram matrix G[l, m] = ⟨ψ(x^l), ψ(x^m)⟩ of the parts
of one example,

.. code-block:: text

    ⟨Σ_l δ_l ⊗ ψ(x^l), w⟩ = Σ_l ⟨δ_l, θ[l]⟩         ‖Σ_l δ_l ⊗ ψ(x^l)‖² = Σ_{l,m} G[l,m] ⟨δ_l, δ_m⟩

**Two layouts of w.** Outside, as in ``weights.npz``: class by class, w[c·f + j], then the
transitions w[K·f + K·a + b] from a to b. Inside the kernels, so that a non-zero feature touches
one contiguous row: w[j·stride + c], then w[f·stride + b·stride + a], where ``stride`` is K rounded
up to 2 or to a multiple of 4 and the padding is always 0. ``pack`` and ``unpack`` convert.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.jit import allocating_kernel, kernel
from ssvm_bench.linalg import dot_at

# mypy: disable-error-code="no-untyped-def"


class JointFeatures(NamedTuple):
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Example i owns the parts ``offsets[i]:offsets[i + 1]``.
    truth : ndarray of uint8, shape (parts,)
        Ground-truth labels.
    indptr, places, values : ndarrays of int64, uint16 or uint32, and the dataset's type
        ψ(x^l), the rows of a CSR matrix of shape (parts, f); instead of j its place in w, j·stride.
    gram_start : ndarray of int64, shape (n + 1,)
    gram : ndarray of float64
        G of example i, row by row, from ``gram_start[i]``.
    n_features, n_labels, stride : int
        f, K, and K rounded up to 2 or to a multiple of 4.
    transitions : bool
        Whether ϕ has its second sum.
    """

    offsets: np.ndarray
    truth: np.ndarray
    indptr: np.ndarray
    places: np.ndarray
    values: np.ndarray
    gram_start: np.ndarray
    gram: np.ndarray
    n_features: int
    n_labels: int
    stride: int
    transitions: bool


def build(dataset: Dataset, with_gram: bool = True) -> JointFeatures:
    """Arrange a dataset's examples; transitions are learned if its structure is a chain.

    Without Gram matrices, whose size is the square of an example's, ``gram`` is empty.
    """
    rows = csr_array(dataset.x)
    indptr = rows.indptr.astype(np.int64)
    stride = 2 if dataset.n_labels <= 2 else -(-dataset.n_labels // 4) * 4
    # narrow types: in random order, reading the features is what a pass waits for
    narrow = np.uint16 if dataset.n_features * stride <= 1 << 16 else np.uint32
    places = rows.indices.astype(narrow) * narrow(stride)
    values = rows.data
    offsets = dataset.offsets.astype(np.int64)
    lengths = np.diff(offsets) if with_gram else np.zeros(dataset.n, np.int64)
    gram_start = np.concatenate(([0], np.cumsum(lengths**2)))
    gram = np.zeros(0)
    if with_gram:
        gram = _gram(offsets, indptr, places, values, gram_start, dataset.n_features * stride)
    return JointFeatures(
        offsets=offsets,
        truth=np.ascontiguousarray(dataset.y, dtype=np.uint8),
        indptr=indptr,
        places=places,
        values=values,
        gram_start=gram_start,
        gram=gram,
        n_features=dataset.n_features,
        n_labels=dataset.n_labels,
        stride=stride,
        transitions=dataset.structure == "chain",
    )


def is_consistent(features: JointFeatures) -> bool:
    """Tell whether no index of the arrays leads out of another, and all labels exist."""
    offsets, indptr, gram_start = features.offsets, features.indptr, features.gram_start
    lengths = np.diff(offsets)
    of_gram = np.diff(gram_start)
    return bool(
        offsets[0] == indptr[0] == gram_start[0] == 0
        and lengths.min(initial=1) > 0
        and offsets[-1] == features.truth.size == indptr.size - 1
        and int(features.truth.max(initial=0)) < features.n_labels <= features.stride
        and np.diff(indptr).min(initial=0) >= 0
        and indptr[-1] == features.places.size == features.values.size
        and int(features.places.max(initial=0)) <= (features.n_features - 1) * features.stride
        and (not of_gram.any() or np.array_equal(of_gram, lengths**2))
        and gram_start[-1] == features.gram.size
    )


def joint_feature(features: JointFeatures, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-zeros of ϕ(x_i,y) in the outer layout: indices and values."""
    labels = np.asarray(y, np.int64)
    first, last = features.offsets[i], features.offsets[i + 1]
    entries = slice(features.indptr[first], features.indptr[last])
    rows = np.repeat(labels, np.diff(features.indptr[first : last + 1]))
    inner = np.zeros(inner_dimension(features))
    np.add.at(inner, features.places[entries] + rows, features.values[entries])
    if features.transitions:
        moves = labels[1:] * features.stride + labels[:-1]
        np.add.at(inner, transition_base(features) + moves, 1.0)
    dense = unpack(features, inner)
    indices = np.flatnonzero(dense)
    return indices, dense[indices]


def dimension(features: JointFeatures) -> int:
    """Return d, the number of weights."""
    K = features.n_labels
    return K * features.n_features + (K * K if features.transitions else 0)


def transition_base(features: JointFeatures) -> int:
    """Return where the transitions begin in the inner layout."""
    return features.n_features * features.stride


def largest_radius2(features: JointFeatures) -> float:
    """Return a bound of R² = max over i and y of ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖².

    With G of an example of L parts, 2 Σ_{l,m} |G[l,m]| + 2 (L−1)²; without a second sum, the first:
    inner products of differences of two label indicators are at most 2, and of L − 1 transitions
    as many may go as come. Exact for examples of one part. It needs the Gram matrices.
    """
    of_unary = np.add.reduceat(np.abs(features.gram), features.gram_start[:-1])
    moves = (np.diff(features.offsets) - 1.0) * features.transitions
    return float(2.0 * (of_unary + moves**2).max())


def inner_dimension(features: JointFeatures) -> int:
    """Return the length of w in the inner layout."""
    rows = features.n_labels if features.transitions else 0
    return transition_base(features) + rows * features.stride


def pack(features: JointFeatures, w: np.ndarray) -> np.ndarray:
    """Convert w from the outer layout (length d) to the inner one."""
    K, f = features.n_labels, features.n_features
    inner = np.zeros((inner_dimension(features) // features.stride, features.stride))
    inner[:f, :K] = w[: K * f].reshape(K, f).T
    if features.transitions:
        inner[f:, :K] = w[K * f :].reshape(K, K).T
    return inner.ravel()


def unpack(features: JointFeatures, inner: np.ndarray) -> np.ndarray:
    """Convert w from the inner layout to the outer one."""
    K, f = features.n_labels, features.n_features
    rows = inner.reshape(-1, features.stride)[:, :K]
    return np.concatenate((rows[:f].T.ravel(), rows[f:].T.ravel()))


@allocating_kernel
def _gram(offsets, indptr, places, values, gram_start, size):
    gram = np.empty(gram_start[-1])
    dense = np.zeros(size)
    for i in range(offsets.size - 1):
        first = offsets[i]
        L = offsets[i + 1] - first
        for a in range(L):
            for k in range(indptr[first + a], indptr[first + a + 1]):
                dense[places[k]] = values[k]
            for b in range(L):
                total = 0.0
                for k in range(indptr[first + b], indptr[first + b + 1]):
                    total += values[k] * dense[places[k]]
                gram[gram_start[i] + a * L + b] = total
            for k in range(indptr[first + a], indptr[first + a + 1]):
                dense[places[k]] = 0.0
    return gram


@kernel
def longest(features):
    """Return the largest number of parts of an example."""
    most = 0
    for i in range(features.offsets.size - 1):
        most = max(most, features.offsets[i + 1] - features.offsets[i])
    return most


@kernel
def unary_scores(features, w, i, theta):
    """Compute θ of example i into ``theta[:L]``, shape (L, stride); w in the inner layout."""
    stride = features.stride
    first = features.offsets[i]
    for l in range(features.offsets[i + 1] - first):
        places, values = _row(features, first + l)
        row = theta[l]
        row[:] = 0.0
        k = 0
        # four features at a time: otherwise every addition waits for the store of the last one
        while k + 4 <= values.size:
            a = w[places[k] :]
            b = w[places[k + 1] :]
            c = w[places[k + 2] :]
            d = w[places[k + 3] :]
            va, vb, vc, vd = values[k], values[k + 1], values[k + 2], values[k + 3]
            for j in range(stride):
                row[j] += (va * a[j] + vb * b[j]) + (vc * c[j] + vd * d[j])
            k += 4
        while k < values.size:
            a = w[places[k] :]
            va = values[k]
            for j in range(stride):
                row[j] += va * a[j]
            k += 1


@kernel
def _row(features, part):
    """Return the places in w and the values of ψ(x^part)."""
    begin = features.indptr[part]
    end = features.indptr[part + 1]
    return features.places[begin:end], features.values[begin:end]


@kernel
def label_scores(features, w, part, labels, count, theta):
    """Compute ``theta[k]`` = θ[part, labels[k]] for the first ``count`` of a few labels."""
    places, values = _row(features, part)
    for s in range(count):
        theta[s] = dot_at(values, places, w[np.int64(labels[s]) :])


@kernel
def add_labels(features, part, labels, count, scale, delta, v):
    """Add scale · Σ_k delta[k] e_{labels[k]} ⊗ ψ(x^part) to v, over the first ``count`` labels."""
    places, values = _row(features, part)
    for k in range(values.size):
        row = v[places[k] :]
        factor = scale * values[k]
        for s in range(count):
            row[labels[s]] += factor * delta[s]


@kernel
def add_marginals(features, part, scale, delta, v):
    """Do `add_labels` for all labels."""
    for k in range(features.indptr[part], features.indptr[part + 1]):
        row = v[features.places[k] :]
        factor = scale * features.values[k]
        for c in range(features.n_labels):
            row[c] += factor * delta[c]


@kernel
def add_labels_twice(features, part, labels, count, delta, scale, v, other_scale, other):
    """Do `add_labels` to v with one scale and to another vector with another."""
    places, values = _row(features, part)
    for k in range(values.size):
        place = np.int64(places[k])
        row, other_row = v[place:], other[place:]
        factor, other_factor = scale * values[k], other_scale * values[k]
        for s in range(count):
            row[labels[s]] += factor * delta[s]
            other_row[labels[s]] += other_factor * delta[s]


@kernel
def add_losses(features, i, scale, theta):
    """Add scale · Δ(y_i, ·) to the unary scores of example i."""
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
    for l in range(L):
        for c in range(features.n_labels):
            if c != features.truth[first + l]:
                theta[l, c] += scale / L


@kernel
def labeling_score(features, w, i, theta, y):
    """Return ⟨w, ϕ(x_i, y)⟩ from the scores θ of example i."""
    base = features.n_features * features.stride
    total = 0.0
    for l in range(features.offsets[i + 1] - features.offsets[i]):
        total += theta[l, y[l]]
        if l > 0 and features.transitions:
            total += w[base + y[l] * features.stride + y[l - 1]]
    return total


@kernel
def labeling_size(features, w, i, theta, y):
    """Return the sum of the magnitudes of what `labeling_score` adds up."""
    base = features.n_features * features.stride
    total = 0.0
    for l in range(features.offsets[i + 1] - features.offsets[i]):
        total += abs(theta[l, y[l]])
        if l > 0 and features.transitions:
            total += abs(w[base + y[l] * features.stride + y[l - 1]])
    return total


@kernel
def hamming_loss(features, i, y):
    """Return Δ(y_i, y), the share of parts with another label than the ground truth."""
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
    wrong = 0
    for l in range(L):
        if y[l] != features.truth[first + l]:
            wrong += 1
    return wrong / L


@kernel
def add_difference(features, i, y, labels, signs, v):
    """Add s (ϕ(x_i, y) − ϕ(x_i, y_i)) to v, in the inner layout; where they agree costs nothing.

    ``signs`` is [s, −s] and ``labels`` scratch for two labels.
    """
    base = features.n_features * features.stride
    first = features.offsets[i]
    for l in range(features.offsets[i + 1] - first):
        labels[0], labels[1] = y[l], features.truth[first + l]
        if labels[0] != labels[1]:
            add_labels(features, first + l, labels, 2, 1.0, signs, v)
        if l > 0 and features.transitions:
            v[base + y[l] * features.stride + y[l - 1]] += signs[0]
            v[base + labels[1] * features.stride + features.truth[first + l - 1]] += signs[1]
