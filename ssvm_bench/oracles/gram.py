"""Gram matrices of the parts of examples, G[l, m] = ⟨ψ(x^l), ψ(x^m)⟩.

With them, products of planes are sums over parts and labels, however many features there are
(:mod:`ssvm_bench.oracles.joint_features`).
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.jit import allocating_kernel

# mypy: disable-error-code="no-untyped-def"


@allocating_kernel
def gram_matrices(offsets, indptr, places, values, gram_start, n_features, stride):
    """Return G of all examples; features have places ``stride`` apart."""
    gram = np.empty(gram_start[-1])
    most = 0
    for i in range(offsets.size - 1):
        most = max(most, indptr[offsets[i + 1]] - indptr[offsets[i]])
    dense = np.zeros(n_features)  # much smaller than w: it stays in the cache
    features = np.empty(most, np.int64)
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
            features[k - begin] = places[k] // stride
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
    return gram
