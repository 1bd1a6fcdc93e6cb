"""Gram matrices G[l, m] = ⟨ψ(x^l), ψ(x^m)⟩ of the parts of each example, and bounds from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.jit import kernel

# mypy: disable-error-code="no-untyped-def"


def matrices(
    offsets: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    gram_start: np.ndarray,
    n_features: int,
    stride: int,
    narrow: bool = False,
) -> np.ndarray:
    """Return G of all examples; the indices of features are ``stride`` apart.

    Its type is float64, or, if it may be ``narrow``, uint8 where that holds all numbers.
    """
    kind: type = np.float64
    if narrow and values.dtype == np.uint8:
        largest = int(np.diff(indptr).max(initial=0)) * int(values.max(initial=0)) ** 2
        kind = np.uint8 if largest < 1 << 8 else np.float64
    gram = np.empty(gram_start[-1], kind)
    dense = np.zeros(n_features)  # much smaller than w: it stays in the cache
    features = np.empty(np.diff(indptr[offsets]).max(initial=0), np.int64)
    _fill(gram, offsets, indptr, indices, values, gram_start, stride, dense, features)
    return gram


@kernel
def _fill(gram, offsets, indptr, indices, values, gram_start, stride, dense, features):
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
