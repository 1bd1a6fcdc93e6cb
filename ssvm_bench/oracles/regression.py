"""Regression with the ε-insensitive loss (DCD paper, section 1.6; Vapnik).

.. code-block:: text

    H_i(w) = 1/n C_i max(0, |t_i − ⟨w, x_i⟩| − ε)
           = 1/n C_i max( 0,  ⟨w, x_i⟩ − t_i − ε,  t_i − ⟨w, x_i⟩ − ε )

The label of a term says where its prediction is: in the tube (0, the ground truth, whose plane is
0), above (1), or below (2). ϕ(x, y) is 0, x or −x; −t_i − ε and t_i − ε do not depend on w: they
are the fixed score Θ_i. The paper has two terms per example, each with a slack, of which at most
one is positive. Their sum is this maximum, so one term with both planes is the same problem, with n
the number of examples. C_i is 1, or the example's cost. With λ = 1/(C n), P/λ is LIBLINEAR's
objective at C. A bias is a constant feature. The oracle is exact.

References
----------
D. Ramanan: Dual coordinate solvers for large-scale structural SVMs. arXiv:1312.1743, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ssvm_bench.base.linalg import applied
from ssvm_bench.config.validation import NotNegative
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.multiclass import Enumeration
from ssvm_bench.oracles.signed_features import SignedFeatures, SignedOracle, signed_features

CODE_VERSION = 1

SIGNS = np.array([0.0, 1.0, -1.0])
"""s of the labels: in the tube, above, below."""


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of the oracle.

    Attributes
    ----------
    epsilon : float
        ε ≥ 0, in the unit of the targets.
    """

    structures: ClassVar[tuple[str, ...]] = ("regression",)
    has_expectations: ClassVar[bool] = True
    takes_costs: ClassVar[bool] = True

    epsilon: NotNegative = 0.1


class RegressionOracle(SignedOracle):
    """The oracle of a regression; labels have a fixed score but no loss.

    Attributes
    ----------
    targets : ndarray of float64, shape (n,)
        t_i.
    """

    def __init__(self, features: SignedFeatures, dataset: Dataset) -> None:
        super().__init__(Enumeration(features))
        self.targets = dataset.y
        self._x = dataset.x

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return 0."""
        return 0.0

    def fixed_score(self, i: int, y: np.ndarray) -> float:
        """Return Θ_i(y)."""
        return float(self.features.losses[i, y[0]])

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the label of the prediction, by `argmax`, since labels have no loss."""
        return self.argmax(w, i)

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean absolute error 1/n Σ_i |t_i − ⟨w, x_i⟩|."""
        dense = isinstance(self._x, np.ndarray)
        found = applied(self._x, w) if dense else self._x @ w
        return float(np.abs(self.targets - found).mean())


def build(config: Config, dataset: Dataset) -> RegressionOracle:
    """Return the oracle of a dataset whose examples have a real number each.

    Raises
    ------
    ConfigError
        If the examples have labels instead.
    """
    config.check_structure(dataset)
    targets = dataset.y
    losses = -config.epsilon - np.outer(targets, SIGNS)
    losses[:, 0] = 0.0
    truth = np.zeros(dataset.n, np.uint8)
    features = signed_features(dataset, truth, SIGNS, losses, dataset.costs)
    return RegressionOracle(features, dataset)
