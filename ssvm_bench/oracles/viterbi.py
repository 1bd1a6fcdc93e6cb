"""Chains: the oracle is Viterbi's dynamic program (MP-BCFW, equation 9).

With v[l, c] = θ[l, c] + Δ(y_i^l, c) s_l/L + m[l, c], the score of the best labeling of the parts
l, …, L−1 that begins with c, and messages from the end of the chain to its beginning,

.. code-block:: text

    m[L−1, a] = 0        m[l, a] = max_b { T[a, b] + v[l+1, b] }

the maximiser is read off forwards: y^0 = argmax v[0], y^l = argmax_b { T[y^{l−1}, b] + v[l, b] }.
Reading forwards, with the lowest label first, makes ties lexicographic. Only maxima are
kept on the way back, so that the inner loop runs over contiguous a without branches.

If there are many labels, a step looks at few. With b' = argmax v[l+1], it leaves out every b with

.. code-block:: text

    max_a T[a, b] + v[l+1, b]  ≤  min_a T[a, b'] + v[l+1, b']

Such a b is above b' for no a; the maxima have the same bits. Esposito and Radicioni (CarpeDiem,
JMLR 2009) and Kaji et al. (staggered decoding, ACL 2010) leave labels out by similar bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.kernel_options import KernelConfig
from ssvm_bench.oracles.labeling import LabelingOracle, expect, maximise, threaded
from ssvm_bench.oracles.options import ClassesConfig
from ssvm_bench.oracles.scoring import label_loss, longest, loss_of_part, parts

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(KernelConfig, ClassesConfig):
    """Options of the oracle."""

    structures: ClassVar[tuple[str, ...]] = ("chain",)
    has_expectations: ClassVar[bool] = True


_LONG = 64
"""Chains up to this length always keep products: planes as rows have no compiled pass."""

_MANY = 32
"""From this number of labels on, a step first selects those that can be maximisers."""

_SMALL = 1e-250
"""Sums above this have lost nothing to underflow: summands that vanish are below 1e-307."""

_LARGE = 200.0
"""Logarithm of the largest factor by which summands that vanish may be multiplied."""


@threaded("v", "most", "labels")
class Viterbi(NamedTuple):
    """The compiled oracle: the examples, and scratch.

    Scratch is v, shape (longest, stride); max_a T[a, b] for each b; and the labels b of a step.
    """

    features: Any
    v: np.ndarray
    most: np.ndarray
    labels: np.ndarray


def build(config: Config, dataset: Dataset) -> LabelingOracle:
    """Return the oracle of a dataset whose examples are chains.

    Raises
    ------
    ConfigError
        If the dataset's labels do not form chains.
    """
    return _oracle(config, dataset, _products_pay(dataset))


def predictor(config: Config, dataset: Dataset) -> LabelingOracle:
    """Return the oracle for predictions alone; as `build`."""
    return _oracle(config, dataset, predicts=True)


def _oracle(
    config: Config, dataset: Dataset, with_gram: bool = False, predicts: bool = False
) -> LabelingOracle:
    config.check_structure(dataset)
    weights, losses = config.part_weights(dataset), config.loss_matrix(dataset)
    if config.has_kernel:
        return config.kernel_oracle(dataset, with_scratch, losses, weights=weights)
    how: Any = {"weights": weights, "losses": losses, "predicts": predicts}
    return LabelingOracle(with_scratch(joint_features.build(dataset, with_gram, **how)), losses)


def _products_pay(dataset: Dataset) -> bool:
    """Return whether to keep products between the parts of an example: L² numbers for L parts.

    Without them, planes are sparse rows of up to d numbers, with inner products in O(d).
    """
    K, lengths = dataset.n_labels, np.diff(dataset.offsets).astype(float)
    d = K * (dataset.n_features + K)
    return bool(np.square(lengths).mean() <= max(d, _LONG**2))


def with_scratch(features: Any) -> Viterbi:
    """Return the compiled oracle of examples."""
    stride = features.stride
    v = np.zeros((longest(features), stride))
    return Viterbi(features, v, np.zeros(stride), np.arange(stride + 3))


@kernel
def _largest(transitions, K, stride, most):
    """Let most[b] = max_a T[a, b]; T[a, b] is ``transitions[b · stride + a]``."""
    # four labels at a time: a maximum waits for the one before it
    for b0 in range(0, K, 4):
        b1, b2, b3 = min(b0 + 1, K - 1), min(b0 + 2, K - 1), min(b0 + 3, K - 1)
        t0, t1 = transitions[b0 * stride :], transitions[b1 * stride :]
        t2, t3 = transitions[b2 * stride :], transitions[b3 * stride :]
        x0, x1, x2, x3 = t0[0], t1[0], t2[0], t3[0]
        for a in range(K):
            x0 = t0[a] if t0[a] > x0 else x0
            x1 = t1[a] if t1[a] > x1 else x1
            x2 = t2[a] if t2[a] > x2 else x2
            x3 = t3[a] if t3[a] > x3 else x3
        most[b0], most[b1], most[b2], most[b3] = x0, x1, x2, x3


@kernel
def _candidates(transitions, after, most, K, labels):
    """Write the labels b that can be argmax_b { T[a, b] + after[b] } for an a; return their number.

    A label b is left out if its bound shows that it is above b' = argmax after for no a.
    """
    stride = most.size
    best = 0
    for b in range(1, K):
        best = b if after[b] > after[best] else best
    row = transitions[best * stride : best * stride + K]
    least = row[0]
    for a in range(K):
        least = row[a] if row[a] < least else least
    least += after[best]
    count = 0
    for b in range(K):
        labels[count] = b
        count += b == best or not after[b] + most[b] <= least
    return count


@kernel
def _max_plus(transitions, after, here, labels, count):
    """Let here[a] = max_b { T[a, b] + after[b] } over the first ``count`` labels b."""
    stride = here.size
    here[:] = -np.inf
    for k in range(count, count + 3):
        labels[k] = labels[0]
    # four labels at a time: a quarter of the loads and stores of ``here``
    for k in range(0, count, 4):
        b0, b1, b2, b3 = labels[k], labels[k + 1], labels[k + 2], labels[k + 3]
        t0 = transitions[b0 * stride :]
        t1 = transitions[b1 * stride :]
        t2 = transitions[b2 * stride :]
        t3 = transitions[b3 * stride :]
        v0, v1, v2, v3 = after[b0], after[b1], after[b2], after[b3]
        for a in range(stride):
            x0, x1, x2, x3 = t0[a] + v0, t1[a] + v1, t2[a] + v2, t3[a] + v3
            x0 = x0 if x0 > x1 else x1
            x2 = x2 if x2 > x3 else x3
            x0 = x0 if x0 > x2 else x2
            here[a] = x0 if x0 > here[a] else here[a]


@implements(maximise, Viterbi)
def _viterbi(oracle, w, i, theta, loss, y):
    features = oracle.features
    v = oracle.v
    K = features.n_labels
    stride = features.stride
    base = features.n_features * stride
    first, L = parts(features, i)

    count, many = K, K >= _MANY and L > 1
    if many:
        _largest(w[base:], K, stride, oracle.most)
    for l in range(L - 1, -1, -1):
        here = v[l]
        if l == L - 1:
            here[:] = 0.0
        else:
            if many:
                count = _candidates(w[base:], v[l + 1], oracle.most, K, oracle.labels)
            _max_plus(w[base:], v[l + 1], here, oracle.labels, count)
        unary = theta[l]
        if features.losses.size > 0:
            for c in range(K):
                here[c] += unary[c] + loss * label_loss(features, first + l, c) / L
        else:
            share = loss * loss_of_part(features, first + l) / L
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
def _forward_backward(oracle, L, unary, moves, mu, nu, work):
    """Sum over all labelings, forwards and backwards, with all messages as logarithms.

    The sums over transitions use the factors exp(T − max T), which are computed once, and so need
    no exponentials of their own. A sum so small that summands may have vanished is computed again,
    with logarithms.
    """
    K, stride = oracle.features.n_labels, oracle.features.stride
    before, after = work[0, :L], work[1, :L]
    factors, scaled, logs = work[0, L:], work[1, L], work[1, L + 1]
    top = _factors(moves, factors, K) if L > 1 else 0.0
    before[0, :K] = 0.0
    after[L - 1, :K] = 0.0
    for l in range(1, L):
        highest = _scale(before[l - 1], unary[l - 1], logs, scaled, K)
        for b in range(K):
            total = 0.0
            for a in range(K):
                total += factors[b, a] * scaled[a]
            if total > _SMALL:
                before[l, b] = highest + top + log(total)
            else:
                before[l, b] = _log_sum(logs, moves[b * stride : (b + 1) * stride], K)
    for l in range(L - 2, -1, -1):
        highest = _scale(after[l + 1], unary[l + 1], logs, scaled, K)
        here = after[l]
        here[:K] = 0.0
        for b in range(K):
            for a in range(K):
                here[a] += factors[b, a] * scaled[b]
        for a in range(K):
            if here[a] > _SMALL:
                here[a] = highest + top + log(here[a])
            else:
                here[a] = _log_sum(logs, moves[a::stride], K)
    norm = _log_sum(unary[0], after[0], K)
    for l in range(L):
        for c in range(K):
            mu[l, c] = exp(before[l, c] + unary[l, c] + after[l, c] - norm)
    nu[:] = 0.0
    for l in range(1, L):
        highest = _scale(before[l - 1], unary[l - 1], logs, scaled, K)
        for b in range(K):
            rest = unary[l, b] + after[l, b] - norm
            row = nu[b * stride : (b + 1) * stride]
            if highest + top + rest < _LARGE:
                factor = exp(highest + top + rest)
                for a in range(K):
                    row[a] += factor * scaled[a] * factors[b, a]
            else:
                for a in range(K):
                    row[a] += exp(logs[a] + moves[b * stride + a] + rest)
    return norm


@kernel
def _factors(moves, factors, K):
    """Let ``factors[b, a]`` be exp(T[a, b] − max T); return max T."""
    stride = factors.shape[1]
    top = -np.inf
    for b in range(K):
        for a in range(K):
            top = max(top, moves[b * stride + a])
    for b in range(K):
        for a in range(K):
            factors[b, a] = exp(moves[b * stride + a] - top)
    return top


@kernel
def _scale(x, y, logs, scaled, K):
    """Let ``logs`` be x + y, and ``scaled`` exp(x + y − max); return the maximum."""
    highest = -np.inf
    for c in range(K):
        logs[c] = x[c] + y[c]
        highest = max(highest, logs[c])
    for c in range(K):
        scaled[c] = exp(logs[c] - highest)
    return highest


@kernel
def _log_sum(x, y, K):
    """Return log Σ_c exp(x_c + y_c)."""
    highest = -np.inf
    for c in range(K):
        highest = max(highest, x[c] + y[c])
    total = 0.0
    for c in range(K):
        total += exp(x[c] + y[c] - highest)
    return highest + log(total)
