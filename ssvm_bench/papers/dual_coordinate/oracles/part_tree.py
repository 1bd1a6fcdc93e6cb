"""A tree of parts: whether there is a figure, and where (Ramanan 2013, (10)–(12)).

.. code-block:: text

    ϕ(x, z) = [ ψ(x, z_0), …, ψ(x, z_{P−1});  g(z_1 − z_{p(1)} − a_1), …;  b ]      ϕ(x, none) = 0

    g(δ) = (δ_r, δ_c, δ_r², δ_c²),  δ in units of the reach

with ψ the features of the window at a position, divided by 255, a_l the anchor of part l and p(l)
its parent (:mod:`ssvm_bench.papers.dual_coordinate.datasets.stick_figures`). A displacement is
within the reach in rows and columns; the weights of g may have either sign.

**Labels.** An example has one label per part: 1 + the position, row by row; all 0: no figure. The
loss is 1 if it is wrong whether there is a figure, else 0. In training, the places z_i in a
positive image are known and fixed, so that its only other labeling is “no figure” (11). In a
negative image, every placement is a false alarm (12). Predictions search the placements of every
image.

**The oracle** is a dynamic program. With θ_l the scores of positions,

.. code-block:: text

    v[l, z] = θ_l(z) + Σ_{children c of l} max_u { v[c, u] + ⟨w_c, g(u − z − a_c)⟩ }

It is exact; of several best labelings, it returns the lexicographically lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.base.linalg import inner
from ssvm_bench.config.validation import Positive
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle, OracleConfig
from ssvm_bench.papers.dual_coordinate.datasets.stick_figures import FIGURES, Figures

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

OF_EDGE = 4
"""Weights of an edge."""


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of the oracle.

    Attributes
    ----------
    bias : float
        The feature b of a figure; 0: none.
    """

    structures: ClassVar[tuple[str, ...]] = (FIGURES,)
    has_expectations: ClassVar[bool] = False

    bias: Positive = 1.0


class PartTree(Oracle):
    """The oracle; see the module."""

    def __init__(self, dataset: Figures, bias: float) -> None:
        tree = self.tree = dataset.tree
        P, size = len(tree.parents), tree.window**2 * tree.features
        self.bias = bias
        self.images = dataset.x.reshape(dataset.n, tree.cells, tree.cells * tree.features)
        self.truths = np.where(dataset.y[:, None] > 0, 1 + dataset.joints, 0).astype(np.uint16)
        self.n, self.d = dataset.n, P * size + (P - 1) * OF_EDGE + 1
        self._size = size
        self._parents, self._anchors = np.array(tree.parents), np.array(tree.anchors)

    def truth(self, i: int) -> np.ndarray:
        """Return the places of the figure, or that there is none."""
        return self.truths[i]

    def latent(self) -> np.ndarray:
        """Return the places of the figures, which are fixed in training."""
        return self.truths

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the best admissible labeling, loss included."""
        truth = self.truths[i]
        if truth[0] > 0:
            return truth.copy() if self.score(w, i, truth) > 1.0 else np.zeros_like(truth)
        return self._placed(w, i, -1.0)

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the best placement if its score is above 0, else that there is no figure."""
        return self._placed(w, i, 0.0)

    def _placed(self, w: np.ndarray, i: int, least: float) -> np.ndarray:
        """Return the best placement if its score is above ``least``, else no figure."""
        tree = self.tree
        sizes = (tree.side, tree.window, tree.features, tree.reach)
        y, score = best_placement(self.images[i], w, self._parents, self._anchors, *sizes)
        placed = score + self.bias * w[-1] > least
        return (y + 1 if placed else np.zeros_like(y)).astype(self.truths.dtype)

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return 1 if y is wrong in whether there is a figure."""
        return float((y[0] > 0) != (self.truths[i, 0] > 0))

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ϕ(x_i, y)."""
        if y[0] == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        tree, joints = self.tree, y.astype(np.int64) - 1
        wide = tree.window * tree.features
        rows, columns = np.divmod(joints, tree.side)
        windows = [
            self.images[i, row : row + tree.window, column : column + wide].ravel() / 255.0
            for row, column in zip(rows, columns * tree.features, strict=True)
        ]
        away = tree.displacements(joints[None])[0] / max(tree.reach, 1)
        edges = np.concatenate((away, away**2), axis=1).ravel()
        values = np.concatenate((*windows, edges, [self.bias]))
        (indices,) = np.nonzero(values)
        return indices, values[indices]

    def score(self, w: np.ndarray, i: int, y: np.ndarray) -> float:
        """Return ⟨w, ϕ(x_i,y)⟩."""
        indices, values = self.joint_feature(i, y)
        return inner(values, w[indices])

    def radius(self) -> float:
        """Return a bound of the largest ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖, which is ‖ϕ‖ of one labeling."""
        cells = (self.images.astype(np.float64) ** 2).reshape(self.n, self.tree.cells, -1)
        window = self._size * float(cells.max(initial=0.0)) / 255**2
        P = len(self.tree.parents)
        return float(np.sqrt(P * window + (P - 1) * OF_EDGE + self.bias**2))


def build(config: Config, dataset: Dataset) -> PartTree:
    """Return the oracle of images that show a figure, or none.

    Raises
    ------
    ConfigError
        If the dataset has no figures.
    """
    config.check_structure(dataset)
    assert isinstance(dataset, Figures)  # as every dataset of this structure is
    return PartTree(dataset, config.bias)


@allocating_kernel
def best_placement(image, w, parents, anchors, side, window, features, reach):
    """Return the positions of the best placement, and its score without the bias.

    Parameters
    ----------
    image : ndarray of uint8, shape (cells, cells · features)
    w : ndarray of float64, shape (d,)
    parents : ndarray of int64, shape (P,)
    anchors : ndarray of int64, shape (P, 2)
    side, window, features, reach : int
        Of the `Tree`.

    Returns
    -------
    y : ndarray of int64, shape (P,)
    score : float
    """
    P, positions = parents.size, side * side
    wide, size = window * features, window * window * features
    v = np.zeros((P, positions))
    best = np.zeros((P, positions), np.int64)
    grey = np.zeros(image.shape)
    for r in range(image.shape[0]):
        for c in range(image.shape[1]):
            grey[r, c] = image[r, c] / 255.0
    for l in range(P - 1, -1, -1):
        for z in range(positions):
            r, c = z // side, z % side
            total = 0.0
            for a in range(window):
                here = grey[r + a, c * features : c * features + wide]
                weights = w[l * size + a * wide : l * size + (a + 1) * wide]
                for k in range(wide):
                    total += weights[k] * here[k]
            v[l, z] += total
        if l == 0:
            break
        unit = max(reach, 1)
        of_edge = w[P * size + (l - 1) * 4 : P * size + l * 4]
        for z in range(positions):
            r, c = z // side + anchors[l, 0], z % side + anchors[l, 1]
            highest = -np.inf
            for row in range(max(r - reach, 0), min(r + reach + 1, side)):
                for column in range(max(c - reach, 0), min(c + reach + 1, side)):
                    down, across = (row - r) / unit, (column - c) / unit
                    u = row * side + column
                    value = v[l, u] + (of_edge[0] * down + of_edge[1] * across)
                    value += of_edge[2] * down * down + of_edge[3] * across * across
                    if value > highest:
                        highest, best[l, z] = value, u
            v[parents[l], z] += highest
    y = np.zeros(P, np.int64)
    for z in range(positions):
        if v[0, z] > v[0, y[0]]:
            y[0] = z
    for l in range(1, P):
        y[l] = best[l, y[parents[l]]]
    return y, v[0, y[0]]
