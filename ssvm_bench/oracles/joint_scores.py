"""The examples of joint features as kernels see them, and the operations of kernels on them.

They implement :mod:`ssvm_bench.oracles.scoring` for :mod:`.joint_features`. Gram matrices
G[l, m] = ⟨ψ(x^l), ψ(x^m)⟩ of the parts of an example, and bounds from them, are here, too.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.jit import generic, implements, kernel, prefetch, prefetch_range
from ssvm_bench.base.linalg import dot_from
from ssvm_bench.base.memory import check_room
from ssvm_bench.oracles import scoring

# mypy: disable-error-code="no-untyped-def"


class JointFeatures(NamedTuple):
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Example i owns the parts ``offsets[i]:offsets[i + 1]``.
    truth : ndarray of uint8 or uint16, shape (parts,)
        Ground-truth labels, of `arrays.label_type`.
    indptr, indices, values : ndarrays of int64, uint16, and the dataset's type
        ψ(x^l): rows of a CSR matrix of shape (parts, f), with j·stride, the index in w, for j.
    gram_start : ndarray of int64, shape (n + 1,)
    gram : ndarray of float64, or uint8 where that holds all numbers
        G of example i, row by row, from ``gram_start[i]``.
    n_features, n_labels, stride : int
        f, K, and K rounded up to 2 or to a multiple of 4.
    transitions : bool
        Whether ϕ has the sum over transitions.
    scale : ndarray of float64, shape (parts,)
        Factor of the losses of each part; empty if all are 1.
    losses : ndarray of float64, shape (K, K) or (0, 0)
        Δ of a true label (row) and any label; empty: 1 for every wrong label.
    rows, used : ndarrays of uint32 (or wider) and int64, shapes (f,) and (1,)
        Used by `WideFeatures` only.
    """

    offsets: np.ndarray
    truth: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    gram_start: np.ndarray
    gram: np.ndarray
    n_features: int
    n_labels: int
    stride: int
    transitions: bool
    scale: np.ndarray
    losses: np.ndarray
    rows: np.ndarray = np.zeros(0, np.uint32)
    used: np.ndarray = np.zeros(0, np.int64)

    @property
    def columns(self) -> tuple[int, int]:
        """See `joint_features.columns`."""
        return self.n_labels, self.stride

    @property
    def squared_radius(self) -> float:
        """A bound of R²; see `radius2`."""
        return radius2(self, 2.0)


def features_with(*names: str) -> Any:
    """Return a base class: a named tuple with the fields of all features, and the given ones."""
    of_all = JointFeatures._fields[: JointFeatures._fields.index("transitions") + 1]
    return namedtuple("Features", (*of_all, *names))


class WideFeatures(JointFeatures):
    """Examples of many features: ``indices`` are the features j, with weights from ``rows[j]`` on.

    The first ``used[0]`` rows belong to features that have been touched; all others share the last
    row.
    """

    @property
    def last_index(self) -> int:
        """The largest index."""
        return self.n_features - 1


class BinaryFeatures(JointFeatures):
    """Examples whose features are 0 or 1, so that products with them are left out."""


class WideBinaryFeatures(WideFeatures):
    """Examples of many features, all of them 0 or 1."""


@generic
def _value(features, values, k):
    """Return the k-th of a part's non-zero ``values``."""
    return values[k]


def _one(features, values, k):
    return 1.0


def _look_ahead_to_ones(features, begin, end):
    prefetch_range(features.indices, begin, end)


def _add_labels_to_ones(features, part, labels, count, scale, delta, v):
    for s in range(count):
        scoring.add_label(features, part, np.int64(labels[s]), scale * delta[s], v)


class DenseFeatures(features_with("scale", "losses")):  # type: ignore[misc]
    """Examples whose features are mostly not 0; w is stored label by label, w[c·f + j].

    ``values`` is ψ(x^l) with its zeros. A label's weights and values are both contiguous, so that
    several are multiplied at a time.
    """

    columns = JointFeatures.columns


@implements(scoring.label_score, DenseFeatures)
def _dense_score(features, w, part, label):
    f = features.n_features
    return dot_from(features.values, part * f, w, label * f, f)


@implements(scoring.add_label, DenseFeatures)
def _add_dense_label(features, part, label, scale, v):
    f = features.n_features
    values, weights = features.values[part * f :], v[label * f :]
    for j in range(f):
        weights[j] += scale * values[j]


@implements(scoring.look_ahead, DenseFeatures)
def _look_ahead_to_dense(features, begin, end):
    prefetch_range(features.values, begin, end)


@implements(scoring.label_index, DenseFeatures)
def _dense_index(features, part, k, label):
    return label * features.n_features + k


@generic
def place(features, index):
    """Return where in w the row of a feature begins, given its index in ``indices``."""
    return index


@implements(place, WideFeatures)
def _place(features, index):
    return np.int64(features.rows[np.uint32(index)])


@generic
def touch(features, part):
    """Assign rows to the features of a part, before anything is added to them."""


@implements(touch, WideFeatures)
def _touch(features, part):
    untouched = (features.n_features - 1) * features.stride
    for j in _row(features, part)[0]:
        if features.rows[j] == untouched and features.used[0] < features.n_features:
            features.rows[j] = features.used[0] * features.stride
            features.used[0] += 1


@generic
def fetch(features, w, i, seen, seen_count):
    """Prefetch the weights that example i reads, where w is larger than the caches.

    They are the weights of the labels seen at each part with more than one such label.
    """


@implements(fetch, WideFeatures)
def _fetch(features, w, i, seen, seen_count):
    for q in range(features.offsets[i], features.offsets[i + 1]):
        if seen_count[q] > 1:
            for j in _row(features, q)[0]:
                for s in range(seen_count[q]):
                    prefetch(w, place(features, j) + seen[q, s])


@kernel
def _row(features, part):
    """Return the indices and the values of ψ(x^part)."""
    begin = features.indptr[part]
    end = features.indptr[part + 1]
    return features.indices[begin:end], features.values[begin:end]


@implements(scoring.unary_scores, JointFeatures)
def _unary_scores(features, w, i, theta):
    stride = features.stride
    first, L = scoring.parts(features, i)
    for l in range(L):
        indices, values = _row(features, first + l)
        row = theta[l]
        row[:] = 0.0
        k = 0
        # four features at a time: otherwise every addition waits for the previous store
        while k + 4 <= indices.size:
            a = w[place(features, indices[k]) :]
            b = w[place(features, indices[k + 1]) :]
            c = w[place(features, indices[k + 2]) :]
            d = w[place(features, indices[k + 3]) :]
            va, vb = _value(features, values, k), _value(features, values, k + 1)
            vc, vd = _value(features, values, k + 2), _value(features, values, k + 3)
            for j in range(stride):
                row[j] += (va * a[j] + vb * b[j]) + (vc * c[j] + vd * d[j])
            k += 4
        while k < indices.size:
            a = w[place(features, indices[k]) :]
            va = _value(features, values, k)
            for j in range(stride):
                row[j] += va * a[j]
            k += 1


@implements(scoring.label_score, JointFeatures)
def _label_score(features, w, part, label):
    indices, values = _row(features, part)
    here = w[label:]
    k = 0
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    while k + 4 <= indices.size:  # as `dot_at` does
        t0 += _value(features, values, k) * here[place(features, indices[k])]
        t1 += _value(features, values, k + 1) * here[place(features, indices[k + 1])]
        t2 += _value(features, values, k + 2) * here[place(features, indices[k + 2])]
        t3 += _value(features, values, k + 3) * here[place(features, indices[k + 3])]
        k += 4
    while k < indices.size:
        t0 += _value(features, values, k) * here[place(features, indices[k])]
        k += 1
    return (t0 + t1) + (t2 + t3)


@implements(scoring.add_label, JointFeatures)
def _add_label(features, part, label, scale, v):
    indices, values = _row(features, part)
    of_label = v[label:]
    for k in range(values.size):
        of_label[place(features, indices[k])] += scale * _value(features, values, k)


@implements(scoring.add_labels, JointFeatures)
def _add_labels(features, part, labels, count, scale, delta, v):
    indices, values = _row(features, part)
    for k in range(values.size):
        row = v[place(features, indices[k]) :]
        factor = scale * values[k]
        for s in range(count):
            row[labels[s]] += factor * delta[s]


for _kind in (BinaryFeatures, WideBinaryFeatures):
    implements(_value, _kind)(_one)
    implements(scoring.look_ahead, _kind)(_look_ahead_to_ones)
    implements(scoring.add_labels, _kind)(_add_labels_to_ones)


@implements(scoring.label_index, JointFeatures)
def _label_index(features, part, k, label):
    return np.int64(place(features, features.indices[features.indptr[part] + k])) + label


@implements(scoring.add_marginals, JointFeatures)
def _add_marginals(features, part, scale, delta, v):
    indices, values = _row(features, part)
    for k in range(values.size):
        row = v[place(features, indices[k]) :]
        factor = scale * _value(features, values, k)
        for c in range(features.n_labels):
            row[c] += factor * delta[c]


@implements(scoring.add_labels_twice, JointFeatures)
def _add_labels_twice(features, part, labels, count, delta, scale, v, other_scale, other):
    indices, values = _row(features, part)
    for k in range(values.size):
        index = np.int64(place(features, indices[k]))
        row, other_row, value = v[index:], other[index:], _value(features, values, k)
        factor, other_factor = scale * value, other_scale * value
        for s in range(count):
            row[labels[s]] += factor * delta[s]
            other_row[labels[s]] += other_factor * delta[s]


@implements(scoring.marginal_change_product, JointFeatures)
def _marginal_change_product(features, a, a_before, b, b_before):
    total = 0.0
    for c in range(features.n_labels):
        total += (a[c] - a_before[c]) * (b[c] - b_before[c])
    return total


@implements(scoring.expected_label_loss, JointFeatures)
def _expected_label_loss(features, part, mu):
    if features.losses.size > 0:
        total = 0.0
        for c in range(features.n_labels):
            total += mu[c] * scoring.label_loss(features, part, c)
        return total
    return scoring.loss_of_part(features, part) * (1.0 - mu[features.truth[part]])


# ---- Gram matrices of the parts of each example -------------------------------------------------


def check_room_of_pairs(lengths: np.ndarray, each: float, of_longest: float = 0.0) -> None:
    """Raise ``RunFailedError`` if numbers for all pairs of an example's parts take too much memory.

    Parameters
    ----------
    lengths : ndarray of int64
        L of each example.
    each, of_longest : float
        Bytes of a number, and further bytes of it in the longest example while it is computed.
    """
    squares = np.square(lengths, dtype=np.float64)
    check_room(
        each * squares.sum() + of_longest * squares.max(initial=0.0),
        f"Products of all pairs of parts of an example, of up to {lengths.max(initial=0)} parts,",
        "Divide long examples into shorter ones, or use fewer.",
    )


def gram_matrices(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    gram_start: np.ndarray,
    n_features: int,
    stride: int,
    narrow: bool = False,
) -> np.ndarray:
    """Return the Gram matrices of all examples; the indices of features are ``stride`` apart.

    Its type is float64, or, if it may be ``narrow``, uint8 where that holds all numbers.
    """
    kind: type = np.float64
    if narrow and values.dtype == np.uint8:
        largest = int(np.diff(indptr).max(initial=0)) * int(values.max(initial=0)) ** 2
        kind = np.uint8 if largest < 1 << 8 else np.float64
    check_room_of_pairs(np.diff(offsets), np.dtype(kind).itemsize)
    gram = np.empty(gram_start[-1], kind)
    dense = np.zeros(n_features)  # much smaller than w: it stays in the cache
    features = np.empty(np.diff(indptr[offsets]).max(initial=0), np.int64)
    _fill_gram(gram, offsets, indptr, indices, values, gram_start, stride, dense, features)
    return gram


@kernel
def _fill_gram(gram, offsets, indptr, indices, values, gram_start, stride, dense, features):
    for i in range(offsets.size - 1):
        first = offsets[i]
        L = offsets[i + 1] - first
        if L == 1:
            total = 0.0
            for value in values[indptr[first] : indptr[first + 1]]:
                total += np.float64(value) * np.float64(value)
            gram[gram_start[i]] = total
            continue
        begin = indptr[first]
        for k in range(begin, indptr[first + L]):
            features[k - begin] = indices[k] // stride
        G = gram[gram_start[i] :]
        for a in range(L):
            for k in range(indptr[first + a], indptr[first + a + 1]):
                dense[features[k - begin]] = values[k]
            for b in range(a + 1):
                total = 0.0
                for k in range(indptr[first + b], indptr[first + b + 1]):
                    total += values[k] * dense[features[k - begin]]
                G[a * L + b] = total
                G[b * L + a] = total
            for k in range(indptr[first + a], indptr[first + a + 1]):
                dense[features[k - begin]] = 0.0


def radius2(features: Any, r2: float) -> float:
    """Return a bound of R² = max over i and y of ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖².

    For an example of L parts, it is r² Σ_{l,m} |G[l,m]| + 2 (L−1)²; without transitions, the first
    summand. Inner products of differences of labels are at most r²; up to L − 1 transitions are
    removed, and as many added. The bound is exact for examples of one part. Where G is not kept,
    its numbers are bounded by ‖ψ(x^l)‖ ‖ψ(x^m)‖.
    """
    if features.gram.size:
        absolute = np.abs(features.gram)
        of_unary = np.add.reduceat(absolute, features.gram_start[:-1], dtype=np.float64)
    else:
        part = np.repeat(np.arange(features.truth.size), np.diff(features.indptr))
        squares = np.bincount(part, np.square(features.values, dtype=float), features.truth.size)
        of_unary = np.add.reduceat(np.sqrt(squares), features.offsets[:-1]) ** 2
    moves = (np.diff(features.offsets) - 1.0) * features.transitions
    return float((r2 * of_unary + 2.0 * moves**2).max())
