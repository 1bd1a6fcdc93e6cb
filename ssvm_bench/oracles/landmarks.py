"""Landmarks on a tree: the oracle is a dynamic program over their positions.

With v[l, z] the score of the best positions of a landmark's subtree if it is at position z, and
θ the scores of positions and of displacements
(:mod:`ssvm_bench.oracles.landmark_features`),

.. code-block:: text

    v[l, z] = θ[l, z] + loss + Σ_{children c of l} max_u { v[c, u] + θ[edge of c, z − u] }

(Uřičář and Franc 2012, section 4.2). Deformation weights may have either sign, so that θ need not
be concave in the displacement, and no distance transform applies: the maximum is over all pairs of
positions, whose displacements lie side by side in memory. Exact; of several best labelings the
lexicographically lowest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.jit import allocating_kernel, implements, kernel
from ssvm_bench.datasets.base import LANDMARKS, Dataset
from ssvm_bench.datasets.structures import Boxes
from ssvm_bench.oracles import landmark_features
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.labeling import LabelingOracle, maximise
from ssvm_bench.oracles.landmark_features import LandmarkFeatures
from ssvm_bench.oracles.scoring import label_loss, labeling_loss

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of the oracle."""

    structures: ClassVar[tuple[str, ...]] = (LANDMARKS,)
    has_expectations: ClassVar[bool] = False


class Landmarks(NamedTuple):
    """The compiled oracle: the examples, and scratch for v and a message, shape (P + 1, stride)."""

    features: LandmarkFeatures
    v: np.ndarray


class LandmarkOracle(LabelingOracle):
    """The oracle; labels of edges follow from those of landmarks."""

    any_label = False

    def __init__(self, compiled: Landmarks, boxes: Boxes) -> None:
        super().__init__(compiled)
        self.boxes = boxes

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y)."""
        dense = landmark_features.joint_feature(self.features, i, y)
        indices = np.flatnonzero(dense)
        return indices, dense[indices]

    def radius(self) -> float:
        """Return a bound of R."""
        return math.sqrt(self.features.squared_radius)

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return the pixels of the landmarks, as labels of the dataset, of all examples."""
        P = len(self.boxes.names)
        labels = super().predictions(w).reshape(self.n, -1)[:, :P].astype(np.int64)
        rows, columns = np.divmod(labels, self.features.grids[:P, 3])
        corners = self.features.grids[:P, :2]
        pixels = (rows + corners[:, 0]) * self.boxes.image[1] + columns + corners[:, 1]
        return pixels.ravel()

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions."""
        return float(_loss(self.features, super().predictions(w))) / self.n


def build(config: Config, dataset: Dataset) -> LandmarkOracle:
    """Return the oracle of a dataset of landmarks.

    Raises
    ------
    ConfigError
        If the dataset's labels are no landmarks.
    """
    config.check_structure(dataset)
    features, boxes = landmark_features.build(dataset), dataset.admissible
    assert isinstance(boxes, Boxes)
    return LandmarkOracle(
        Landmarks(features, np.zeros((len(boxes.names) + 1, features.stride))), boxes
    )


@implements(maximise, Landmarks)
def _best_positions(oracle, w, i, theta, loss, y):
    features, v = oracle.features, oracle.v
    P, L = features.parents.size, features.begins.size
    first = features.offsets[i]
    for l in range(P):
        size = features.grids[l, 2] * features.grids[l, 3]
        for z in range(size):
            v[l, z] = theta[l, z] + loss * label_loss(features, first + l, z) / L
    message = v[P]
    for l in range(P - 1, 0, -1):
        _send(features.grids, l, features.parents[l], P, v[l], theta[P + l - 1], message)
        above = v[features.parents[l]]
        for z in range(
            features.grids[features.parents[l], 2] * features.grids[features.parents[l], 3]
        ):
            above[z] += message[z]
    for l in range(P):
        rows, columns = features.grids[l, 2], features.grids[l, 3]
        best, highest, edge = 0, -np.inf, 0
        for z in range(rows * columns):
            value, at = v[l, z], 0
            if l > 0:
                at = _displacement(features.grids, l, features.parents[l], P, y, z)
                value += theta[P + l - 1, at]
            if value > highest:
                best, highest, edge = z, value, at
        y[l] = best
        if l > 0:
            y[P + l - 1] = edge


@kernel
def _send(grids, l, parent, P, below, of_edge, message):
    """Let message[z] = max_u { below[u] + of_edge[z − u] } for the positions z of the parent."""
    rows, columns = grids[parent, 2], grids[parent, 3]
    message[: rows * columns] = -np.inf
    across = grids[P + l - 1, 3]
    for u_row in range(grids[l, 2]):
        for u_column in range(grids[l, 3]):
            score = below[u_row * grids[l, 3] + u_column]
            # displacements of the parent's first row and column, counted from the lowest ones
            down, right = grids[l, 2] - 1 - u_row, grids[l, 3] - 1 - u_column
            for row in range(rows):
                table = of_edge[(down + row) * across + right :]
                here = message[row * columns :]
                for z in range(columns):
                    value = score + table[z]
                    here[z] = value if value > here[z] else here[z]


@kernel
def _displacement(grids, l, parent, P, y, z):
    """Return the label of a landmark's edge, with its parent where y says, and itself at z."""
    above = np.int64(y[parent])
    down = grids[l, 2] - 1 - z // grids[l, 3] + above // grids[parent, 3]
    right = grids[l, 3] - 1 - z % grids[l, 3] + above % grids[parent, 3]
    return down * grids[P + l - 1, 3] + right


@allocating_kernel
def _loss(features, labels):
    """Return the sum of the losses of labelings, one after the other."""
    total = 0.0
    for i in range(features.offsets.size - 1):
        total += labeling_loss(features, i, labels[features.offsets[i] :])
    return total
