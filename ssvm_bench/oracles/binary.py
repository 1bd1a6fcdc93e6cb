"""Binary classification: the hinge of y_i ⟨w, x_i⟩ (DCD paper, section 1.1).

.. code-block:: text

    H_i(w) = 1/n C_i max(0, m_i Δ(y_i,−y_i) − y_i ⟨w, x_i⟩),   y_i ∈ {−1, 1}      ϕ(x, y) = y/2 · x

By default, C_i, m_i and Δ are 1; see :mod:`ssvm_bench.oracles.options`. There are as many weights
as features: a bias is a constant feature. With λ = 1/(C n), P/λ is LIBLINEAR's objective at C. The
oracle is exact.

References
----------
D. Ramanan: Dual coordinate solvers for large-scale structural SVMs. arXiv:1312.1743, 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.multiclass import Enumeration
from ssvm_bench.oracles.options import CostsConfig
from ssvm_bench.oracles.signed_features import SignedOracle, signed_features

CODE_VERSION = 1

SIGNS = -1, 1
"""y_i of the labels 0 and 1, and their names, unless the dataset names them."""


@dataclass(frozen=True)
class Config(CostsConfig):
    """Options of the oracle."""

    def names(self, dataset: Dataset) -> Sequence[str]:
        """Return the labels' names, or −1 and 1."""
        return super().names(dataset) if dataset.vocabulary else [*map(str, SIGNS)]


def build(config: Config, dataset: Dataset) -> SignedOracle:
    """Return the oracle of a dataset whose examples have one of two labels.

    Raises
    ------
    ConfigError
        If the number of labels is another one, or labels form a structure.
    """
    config.check_structure(dataset)
    if dataset.n_labels != len(SIGNS):
        raise ConfigError(
            f"oracle={config.name} is for two labels, and those of {dataset.name} are "
            f"{dataset.n_labels}. Try oracle=multiclass."
        )
    margins = np.ones(dataset.n) if dataset.margins is None else dataset.margins
    truth = np.ascontiguousarray(dataset.y, dtype=np.uint8)
    losses = np.zeros((dataset.n, len(SIGNS)))
    matrix = config.loss_matrix(dataset)
    if matrix is not None:
        margins = margins * matrix[truth, 1 - truth]
    losses[np.arange(dataset.n), 1 - truth] = margins
    costs = config.example_costs(dataset)
    signs = np.array(SIGNS) / 2.0
    features = signed_features(dataset, truth, signs, losses, costs)
    return SignedOracle(Enumeration(features), matrix)
