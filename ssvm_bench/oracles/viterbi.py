"""Chains: the oracle is Viterbi's dynamic program (MP-BCFW, equation 9).

With v[l, c] = θ[l, c] + [c ≠ y_i^l]/L + m[l, c], the score of the best labeling of the parts
l, …, L−1 that begins with c, and messages from the end of the chain to its beginning,

.. code-block:: text

    m[L−1, a] = 0        m[l, a] = max_b { T[a, b] + v[l+1, b] }

the maximiser is read off forwards: y^0 = argmax v[0], y^l = argmax_b { T[y^{l−1}, b] + v[l, b] }.
Reading forwards with the lowest label first is what makes ties lexicographic. Only maxima are
kept on the way back, so that the inner loop runs over contiguous a without branches.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from ssvm_bench import joint_features
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.jit import implements, kernel
from ssvm_bench.joint_features import JointFeatures, longest
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.labeling import LabelingOracle, check_structure, expect, maximise

CODE_VERSION = 1

Config = OracleConfig


class Viterbi(NamedTuple):
    """The compiled oracle: the examples, and scratch for v, shape (longest, stride)."""

    features: JointFeatures
    v: np.ndarray


def build(config: OracleConfig, dataset: Dataset) -> LabelingOracle:
    """Return the oracle of a dataset whose examples are chains.

    Raises
    ------
    ConfigError
        If the dataset's labels do not form chains.
    """
    check_structure(config.name, dataset, ("chain",))
    features = joint_features.build(dataset)
    return LabelingOracle(Viterbi(features, np.zeros((longest(features), features.stride))))


@kernel
def _max_plus(transitions, after, here, K):  # type: ignore[no-untyped-def]
    """Let here[a] = max_b { T[a, b] + after[b] }; T[a, b] is ``transitions[b · stride + a]``."""
    stride = here.size
    here[:] = -np.inf
    b = 0
    # four labels at a time: a quarter of the loads and stores of ``here``
    while b + 4 <= K:
        t0 = transitions[b * stride :]
        t1 = transitions[(b + 1) * stride :]
        t2 = transitions[(b + 2) * stride :]
        t3 = transitions[(b + 3) * stride :]
        v0, v1, v2, v3 = after[b], after[b + 1], after[b + 2], after[b + 3]
        for a in range(stride):
            x0, x1, x2, x3 = t0[a] + v0, t1[a] + v1, t2[a] + v2, t3[a] + v3
            x0 = x0 if x0 > x1 else x1
            x2 = x2 if x2 > x3 else x3
            x0 = x0 if x0 > x2 else x2
            here[a] = x0 if x0 > here[a] else here[a]
        b += 4
    while b < K:
        t0 = transitions[b * stride :]
        for a in range(stride):
            x0 = t0[a] + after[b]
            here[a] = x0 if x0 > here[a] else here[a]
        b += 1


@implements(maximise, Viterbi)
def _viterbi(oracle, w, i, theta, loss, y):  # type: ignore[no-untyped-def]
    features = oracle.features
    v = oracle.v
    K = features.n_labels
    stride = features.stride
    base = features.n_features * stride
    first = features.offsets[i]
    L = features.offsets[i + 1] - first

    for l in range(L - 1, -1, -1):
        here = v[l]
        if l == L - 1:
            here[:] = 0.0
        else:
            _max_plus(w[base:], v[l + 1], here, K)
        share = loss / L
        unary = theta[l]
        for c in range(stride):
            here[c] += unary[c] + share
        here[features.truth[first + l]] -= share

    best = 0
    for c in range(1, K):
        if v[0, c] > v[0, best]:
            best = c
    y[0] = best
    for l in range(1, L):
        row = w[base + y[l - 1] :]
        best = 0
        highest = row[0] + v[l, 0]
        for b in range(1, K):
            value = row[b * stride] + v[l, b]
            if value > highest:
                highest = value
                best = b
        y[l] = best


@implements(expect, Viterbi)
def _forward_backward(oracle, L, unary, moves, mu, nu, work):  # type: ignore[no-untyped-def]
    """Sum over all labelings, forwards and backwards, with all messages as logarithms."""
    K, stride = oracle.features.n_labels, oracle.features.stride
    before, after = work[0], work[1]
    for b in range(K):
        before[0, b] = 0.0
        after[L - 1, b] = 0.0
    for l in range(1, L):
        for b in range(K):
            row = moves[b * stride :]
            highest = -np.inf
            for a in range(K):
                highest = max(highest, before[l - 1, a] + unary[l - 1, a] + row[a])
            total = 0.0
            for a in range(K):
                total += exp(before[l - 1, a] + unary[l - 1, a] + row[a] - highest)
            before[l, b] = highest + log(total)
    for l in range(L - 2, -1, -1):
        for a in range(K):
            highest = -np.inf
            for b in range(K):
                value = moves[b * stride + a] + unary[l + 1, b] + after[l + 1, b]
                highest = max(highest, value)
            total = 0.0
            for b in range(K):
                total += exp(moves[b * stride + a] + unary[l + 1, b] + after[l + 1, b] - highest)
            after[l, a] = highest + log(total)
    highest = -np.inf
    for c in range(K):
        highest = max(highest, unary[0, c] + after[0, c])
    total = 0.0
    for c in range(K):
        total += exp(unary[0, c] + after[0, c] - highest)
    norm = highest + log(total)
    for l in range(L):
        for c in range(K):
            mu[l, c] = exp(before[l, c] + unary[l, c] + after[l, c] - norm)
    nu[:] = 0.0
    for l in range(1, L):
        for b in range(K):
            here = unary[l, b] + after[l, b] - norm
            for a in range(K):
                place = b * stride + a
                nu[place] += exp(before[l - 1, a] + unary[l - 1, a] + moves[place] + here)
