"""Text in images: the oracle is a dynamic program over the boundaries of characters.

A column's label is a character and a column in it (:mod:`ssvm_bench.datasets.structures`);
its weights are a column of the character's template, so that

.. code-block:: text

    ⟨w, ϕ(x, y)⟩ = Σ_i Σ_{j < ω(a_i)} ⟨x[k_i + j], w[a_i, j]⟩

is the correlation of the image with the templates (Uřičář and Franc 2012, section 4.3). Transitions
are constraints, without weights. With θ[l, c] the score of a label plus its share of the loss, the
best score of the columns k, …, W − 1 is

.. code-block:: text

    b[W] = 0        b[k] = max_a { Σ_{j < ω(a)} θ[k + j, (a, j)] + b[k + ω(a)] }

over the characters that fit. Expectations come from the same recursion with log Σ exp in place of
max, from both ends. The loss is the share of columns with a wrong label. The oracle is exact; of
several best labelings, it returns the lexicographically lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.datasets.base import SEGMENTS, Dataset
from ssvm_bench.datasets.structures import Alphabet
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.joint_features import JointFeatures
from ssvm_bench.oracles.labeling import LabelingOracle, expect, maximise, threaded
from ssvm_bench.oracles.scoring import longest, parts

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 2


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of the oracle."""

    structures: ClassVar[tuple[str, ...]] = (SEGMENTS,)
    has_expectations: ClassVar[bool] = True


@threaded("best", "choice", "ahead", "right")
class Segments(NamedTuple):
    """The compiled oracle.

    Attributes
    ----------
    features : JointFeatures
    starts, widths : ndarrays of int64, shape (characters,)
        Label of the first column of each character, and ω.
    best : ndarray of float64, shape (longest + 1,)
        Scratch: b.
    choice : ndarray of int64, shape (longest,)
        Scratch: the first character of the best text that begins at a column.
    ahead, right : ndarrays of float64 and int64, shape (labels + 1,)
        Scratch: for each label, the score of the rest of its character from a column on, and how
        many labels of this rest are true.
    """

    features: JointFeatures
    starts: np.ndarray
    widths: np.ndarray
    best: np.ndarray
    choice: np.ndarray
    ahead: np.ndarray
    right: np.ndarray


class SegmentsOracle(LabelingOracle):
    """The oracle; not every sequence of labels is a text."""

    any_label = False


def build(config: Config, dataset: Dataset) -> SegmentsOracle:
    """Return the oracle of a dataset of texts.

    Raises
    ------
    ConfigError
        If the dataset's labels are no segments.
    """
    config.check_structure(dataset)
    alphabet = dataset.admissible
    assert isinstance(alphabet, Alphabet)  # as every dataset of this structure has
    features = joint_features.build(dataset)
    most, labels = longest(features), features.n_labels
    compiled = Segments(
        *(features, alphabet.starts, np.array(alphabet.widths)),
        *(np.zeros(most + 1), np.zeros(most, np.int64)),
        *(np.zeros(labels + 1), np.zeros(labels + 1, np.int64)),
    )
    return SegmentsOracle(compiled)


@implements(maximise, Segments)
def _best_text(oracle, w, i, theta, loss, y):
    features = oracle.features
    first, L = parts(features, i)
    truth = features.truth[first : first + L]
    best, share = oracle.best, loss / L
    ahead, right = oracle.ahead, oracle.right
    ahead[:] = 0.0
    right[:] = 0
    best[L] = 0.0
    for k in range(L - 1, -1, -1):
        row = theta[k]
        for c in range(features.n_labels):
            ahead[c] = row[c] + ahead[c + 1]
            right[c] = right[c + 1]
        right[truth[k]] += 1
        best[k] = -inf
        oracle.choice[k] = 0
        for a in range(oracle.widths.size):
            end, c = k + oracle.widths[a], oracle.starts[a]
            if end <= L and best[end] > -inf:
                total = ahead[c] + (share * (oracle.widths[a] - right[c]) + best[end])
                if total > best[k]:
                    best[k] = total
                    oracle.choice[k] = a
            ahead[c] = 0.0  # the label before it is the last of another character
            right[c] = 0
    k = 0
    while k < L:
        a = oracle.choice[k]
        for j in range(min(oracle.widths[a], L - k)):
            y[k + j] = oracle.starts[a] + j
        k += oracle.widths[a]


@implements(expect, Segments)
def _expected_text(oracle, L, unary, moves, mu, nu, work):
    """Sum over all texts, forwards and backwards; ``work[0]`` has the messages as logarithms."""
    before, after, scores, ways = work[0, :, 0], work[0, :, 1], work[1], work[1, L]
    A = oracle.widths.size
    after[L] = 0.0
    for k in range(L - 1, -1, -1):
        for a in range(A):
            end = k + oracle.widths[a]
            scores[k, a] = ways[a] = -inf
            if end <= L and after[end] > -inf:
                total = 0.0
                for j in range(oracle.widths[a]):
                    total += unary[k + j, oracle.starts[a] + j]
                scores[k, a] = total
                ways[a] = total + after[end]
        after[k] = _log_sum(ways, A)
    norm = after[0]
    before[0] = 0.0
    for k in range(1, L + 1):
        for a in range(A):
            begin = k - oracle.widths[a]
            ways[a] = scores[begin, a] + before[begin] if begin >= 0 else -inf
        before[k] = _log_sum(ways, A)
    mu[:L] = 0.0
    for k in range(L):
        for a in range(A):
            if scores[k, a] > -inf and before[k] > -inf:
                end = k + oracle.widths[a]
                weight = exp(before[k] + scores[k, a] + after[end] - norm)
                for j in range(oracle.widths[a]):
                    mu[k + j, oracle.starts[a] + j] += weight
    return norm


@kernel
def _log_sum(x, size):
    """Return log Σ_a exp(x[a]) over the first entries of x; −∞ if all of them are."""
    top = -inf
    for a in range(size):
        top = max(top, x[a])
    if top == -inf:
        return -inf
    total = 0.0
    for a in range(size):
        total += exp(x[a] - top)
    return top + log(total)
