"""Ranking: a labeling says of each pair of a relevant and another document if it is swapped.

.. code-block:: text

    ϕ(x, y) = 1/m Σ_pairs (1 − 2 y_pq) (x_p − x_q)        Δ(y_i, y) = 1/m Σ_pairs y_pq

with m pairs, the ground truth being y = 0. The maximum is taken pair by pair.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle, OracleConfig


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options: those of every oracle."""

    structures: ClassVar[tuple[str, ...]] = ("queries",)


class Ranking(Oracle):
    """The oracle; ``differences[i]`` has x_p − x_q of the pairs of query i, a row each."""

    def __init__(self, dataset: Dataset) -> None:
        self.n, self.d = dataset.n, dataset.n_features
        self.differences = []
        for begin, end in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True):
            x, y = dataset.x[begin:end], dataset.y[begin:end]
            pairs = x[y == 1][:, None, :] - x[y == 0][None, :, :]
            self.differences.append(pairs.reshape(-1, self.d))

    def truth(self, i: int) -> np.ndarray:
        """Return that no pair is swapped."""
        return np.zeros(len(self.differences[i]), np.uint8)

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Swap the pairs whose margin is below 1/2: that gains the loss 1, and costs twice it."""
        return (2.0 * (self.differences[i] @ w) < 1.0).astype(np.uint8)

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Swap the pairs whose margin is negative."""
        return (self.differences[i] @ w < 0.0).astype(np.uint8)

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return the share of swapped pairs."""
        return float(y.mean())

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ϕ(x_i, y), which is dense."""
        signs = 1.0 - 2.0 * y
        return np.arange(self.d), signs @ self.differences[i] / y.size


def build(config: Config, dataset: Dataset) -> Ranking:
    """Return the oracle of queries."""
    config.check_structure(dataset)
    return Ranking(dataset)
