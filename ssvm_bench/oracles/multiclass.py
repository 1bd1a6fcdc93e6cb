"""Multiclass classification: the oracle enumerates the labels (MP-BCFW, equation 8).

.. code-block:: text

    H_i(w) = 1/n C_i max_y { m_i Δ(y_i,y) + ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ }

By default, C_i and m_i are 1 and Δ(y_i,y) is [y ≠ y_i]; see :mod:`ssvm_bench.oracles.options`. The
oracle is exact; of several best labels, it returns the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from ssvm_bench.base.jit import implements
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import Constraints, of_wrong_labels
from ssvm_bench.oracles.joint_features import WideFeatures
from ssvm_bench.oracles.kernel_options import KernelConfig
from ssvm_bench.oracles.labeling import LabelingOracle, expect, maximise, threaded
from ssvm_bench.oracles.options import CostsConfig
from ssvm_bench.oracles.scoring import label_loss

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(KernelConfig, CostsConfig):
    """Options of the oracle."""


@threaded()
class Enumeration(NamedTuple):
    """The compiled oracle of examples of one part, whatever the type of their features."""

    features: Any


class MulticlassOracle(LabelingOracle):
    """An oracle of examples of one part, whose labels have weights of their own."""

    def constraints(self) -> Constraints:
        """Return all planes; with K labels, they take 2 (K − 1) times as much as the features."""
        features, n = self.features, self.n
        K, f = features.n_labels, features.n_features
        Constraints.check_fit(n * (K - 1), 2.0 * (K - 1) * features.values.size)
        term, label = of_wrong_labels(features.truth, K)
        wide = isinstance(features, WideFeatures)
        places = features.indices // (1 if wide else features.stride)
        rows = csr_array((features.values, places, features.indptr), shape=(n, f))[term].tocoo()
        wrong, true = (f * each[rows.row] for each in (label, features.truth[term].astype(int)))
        star = coo_array(
            (
                np.concatenate((rows.data, -rows.data)) / n,
                (np.tile(rows.row, 2), np.concatenate((wrong + rows.col, true + rows.col))),
            ),
            shape=(term.size, self.d),
        ).tocsr()
        losses = features.scale[term] if features.scale.size else np.ones(term.size)
        if self.loss_matrix is not None:
            losses = losses * self.loss_matrix[features.truth[term], label]
        return Constraints.of(np.arange(n + 1) * (K - 1), star, losses / n)


def build(config: Config, dataset: Dataset) -> LabelingOracle:
    """Return the oracle of a dataset whose examples have one label each.

    Raises
    ------
    ConfigError
        If the dataset's labels form a structure.
    """
    return _oracle(config, dataset)


def predictor(config: Config, dataset: Dataset) -> LabelingOracle:
    """Return the oracle for predictions alone; as `build`."""
    return _oracle(config, dataset, predicts=True)


def _oracle(config: Config, dataset: Dataset, predicts: bool = False) -> LabelingOracle:
    config.check_structure(dataset)
    costs, losses = config.example_costs(dataset), config.loss_matrix(dataset)
    if config.has_kernel:
        return config.kernel_oracle(dataset, Enumeration, losses, costs=costs)
    features = joint_features.build(dataset, costs=costs, losses=losses, predicts=predicts)
    return MulticlassOracle(Enumeration(features), losses)


@implements(maximise, Enumeration)
def _enumerate(oracle, w, i, theta, loss, y):
    features = oracle.features
    part = features.offsets[i]
    best = 0
    highest = theta[0, 0] + loss * label_loss(features, part, 0)
    for c in range(1, features.n_labels):
        value = theta[0, c] + loss * label_loss(features, part, c)
        if value > highest:
            highest = value
            best = c
    y[0] = best


@implements(expect, Enumeration)
def _softmax(oracle, L, unary, moves, mu, nu, work):
    K = oracle.features.n_labels
    highest = unary[0, 0]
    for c in range(1, K):
        highest = max(highest, unary[0, c])
    total = 0.0
    for c in range(K):
        mu[0, c] = exp(unary[0, c] - highest)
        total += mu[0, c]
    for c in range(K):
        mu[0, c] /= total
    return highest + log(total)
