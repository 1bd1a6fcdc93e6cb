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
(`touch`); all untouched features share the last row, of zeros. Rows that are not in
use are never written to and take no memory: the system allocates pages when they are written.

**Zeros and ones**, as of pixels and words, are `BinaryFeatures`: products with them are left out,
and results have the same bits. **Few zeros**, as of grey values or of what a network learned: a
solver may have `DenseFeatures`, whose w is stored label by label inside, too.

Functions whose ``features`` are not typed serve all types of features
(:mod:`ssvm_bench.oracles.scoring`): `columns` returns how many weights a feature has.

**What kernels call** is first: they implement :mod:`ssvm_bench.oracles.scoring`. Gram matrices
G[l, m] = ⟨ψ(x^l), ψ(x^m)⟩ of the parts of an example, and bounds from them, are among it. Then the
examples are arranged, and w is packed.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import (
    generic,
    implements,
    kernel,
    prefetch,
    prefetch_range,
    unrolled_kernel,
)
from ssvm_bench.base.linalg import dot_from
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.base.threads import current
from ssvm_bench.datasets.arrays import label_type
from ssvm_bench.datasets.base import Dataset
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

    Its type is that of `gram_type`.
    """
    kind = gram_type(indptr, values, narrow)
    check_room_of_pairs(np.diff(offsets), np.dtype(kind).itemsize)
    gram = np.empty(gram_start[-1], kind)
    dense = np.zeros(n_features)  # much smaller than w: it stays in the cache
    features = np.empty(np.diff(indptr[offsets]).max(initial=0), np.int64)
    _fill_gram(gram, offsets, indptr, indices, values, gram_start, stride, dense, features)
    return gram


def gram_type(indptr: np.ndarray, values: np.ndarray, narrow: bool) -> type:
    """Return float64, or, if it may be ``narrow``, uint8 where that holds all Gram matrices."""
    if narrow and values.dtype == np.uint8:
        largest = int(np.diff(indptr).max(initial=0)) * int(values.max(initial=0)) ** 2
        return np.uint8 if largest < 1 << 8 else np.float64
    return np.float64


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


# ---- The examples of a dataset, and the layouts of w -------------------------------------------

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
    predicts: bool = False,
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
    predicts : bool
        Whether the oracle is asked for predictions alone: without Gram matrices, and in a layout of
        w that f and K determine, so that `packed` weights fit any examples.

    Raises
    ------
    RunFailedError
        Numbers for the parts of an example, and their labels or pairs, do not fit into memory.
    """
    rows = csr_array(dataset.x)
    indptr = rows.indptr.astype(np.int64)
    stride = padded(dataset.n_labels)
    f, values = dataset.n_features, weighted(rows, costs)
    # kernels of graphs index w by ``indices``
    wide = (with_gram or predicts) and f * stride > 1 << 16
    with_gram = with_gram and not predicts
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
        else np.zeros(0, gram_type(indptr, values, wide)),
        n_features=f,
        n_labels=dataset.n_labels,
        stride=stride,
        transitions=dataset.structure == "chain",
        scale=product(costs, dataset.margins, weights),
        losses=np.zeros((0, 0)) if losses is None else losses,
    )
    return made._replace(rows=_every_row(f, stride), used=np.array([f])) if wide else made


@functools.lru_cache(maxsize=1)
def _every_row(f: int, stride: int) -> np.ndarray:
    """Return the table in which all features have rows, which is never written to."""
    kind = _row_type(f, stride)
    rows: np.ndarray = np.arange(f, dtype=kind) * kind(stride)
    return rows


def _row_type(f: int, stride: int) -> Any:
    return np.uint32 if f * stride <= 1 << 32 else np.int64


def with_rows(features: WideFeatures, touched: np.ndarray) -> WideFeatures:
    """Return the features with a new table, in which the touched ones have rows, in this order."""
    f, stride = features.n_features, features.stride
    rows: np.ndarray = np.full(f, (f - 1) * stride, _row_type(f, stride))
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
        there, of_labels = np.zeros(f, bool), w[: K * f].reshape(K, f)
        current().share(f, lambda _, a, b: of_labels[:, a:b].any(axis=0, out=there[a:b]))
        features = with_rows(features, np.flatnonzero(there))
        return features, pack(features, w)
    c, j = np.divmod(w.places[: np.searchsorted(w.places, K * f)], f)
    a, b = np.divmod(w.places[c.size :] - K * f, K)
    features = with_rows(features, np.flatnonzero(np.bincount(j, minlength=f)))
    inner = np.zeros(inner_dimension(features))
    inner[features.rows[j] + c] = w.values[: c.size]
    inner[(f + b) * stride + a] = w.values[c.size :]
    return features, inner


class Packed(NamedTuple):
    """Weights as kernels read them, for predictions on any examples.

    Attributes
    ----------
    inner : ndarray of float64, shape (inner_d,)
        w in the inner layout.
    rows, used : ndarrays
        As of `JointFeatures`: `WideFeatures` have rows where w is not 0.
    """

    inner: np.ndarray
    rows: np.ndarray = JointFeatures._field_defaults["rows"]
    used: np.ndarray = JointFeatures._field_defaults["used"]


def packed(features: Any, w: Any) -> Packed:
    """Pack w, an ndarray or `Nonzeros` in the outer layout."""
    if isinstance(features, WideFeatures):
        features, inner = at_nonzeros(features, w)
        return Packed(inner, features.rows, features.used)
    return Packed(pack(features, np.asarray(w, np.float64)))


def at_packed(features: Any, weights: Packed) -> Any:
    """Return the features with the rows of packed weights.

    Raises
    ------
    ValueError
        The weights were packed for other numbers of features or labels.
    """
    wide = isinstance(features, WideFeatures)
    sizes = weights.inner.size, weights.rows.size
    if sizes != (inner_dimension(features), features.n_features if wide else 0):
        raise ValueError(f"weights were packed for other features or labels: sizes {sizes}")
    return features._replace(rows=weights.rows, used=weights.used) if wide else features


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
        _share_rows(features, w, inner, True)
    return inner


def unpack(features: Any, inner: np.ndarray) -> np.ndarray:
    """Convert w from the inner layout to the outer one."""
    w = np.zeros(dimension(features))
    for outside, inside in _both(features, w, inner):
        outside[:] = inside
    if isinstance(features, WideFeatures):
        _share_rows(features, w, inner, False)
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


def _share_rows(features: WideFeatures, w: np.ndarray, inner: np.ndarray, inwards: bool) -> None:
    """Copy w to the rows of its features, or back, in the threads of the team."""
    K, rows = features.n_labels, features.rows

    def copy(_: int, begin: int, end: int) -> None:
        _copy_rows(w, inner, K, rows, begin, end, inwards)

    current().share(rows.size, copy)


@unrolled_kernel
def _copy_rows(w, inner, K, rows, first, end, inwards):
    """Copy some columns of w to the rows of their features, or back; these are 0 before.

    The copy goes by blocks of columns that the cache holds: w is larger with many features.
    """
    f = rows.size
    for begin in range(first, end, _BLOCK):
        for c in range(K):
            for j in range(begin, min(begin + _BLOCK, end)):
                here, there = c * f + j, np.int64(rows[j]) + c
                if inwards and w[here] != 0.0:
                    inner[there] = w[here]
                elif not inwards and inner[there] != 0.0:
                    w[here] = inner[there]
