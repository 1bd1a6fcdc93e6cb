"""Landmarks on a tree: templates of local patterns, deformations, and the oracle over positions.

.. code-block:: text

    ϕ(x, y) = [ Σ_l e_l ⊗ ψ(x, y^l),  Σ_{l > 0} e_l ⊗ g(y^{p(l)} − y^l) ]

    g(δ) = (δ_r, δ_c, δ_r², δ_c²),  δ in units of a quarter of the image's height

with ψ the indicators of the patterns around a position, 256 for each cell of
:mod:`ssvm_bench.datasets.structures`, of which one is 1. They are read from the maps of the
image, and never stored. The weights of g may have either sign.

**Parts.** An example has 2P − 1 parts: its P landmarks, whose labels are the positions in their
search boxes, and the P − 1 edges of the tree, whose labels are the possible displacements. Every
part has weights of its own, so that ϕ is a sum over parts without transitions, and G is the
identity. The label of an edge follows from those of its ends; the oracle obeys this constraint. So
planes are labelings, of a few bytes each, for any number of weights.

The loss is the mean distance of the landmarks from their true positions, in percent of the distance
between the eyes and the mouth.

**The oracle** is a dynamic program. With v[l, z] the score of the best positions of a landmark's
subtree if it is at position z, and θ the scores of positions and of displacements,

.. code-block:: text

    v[l, z] = θ[l, z] + loss + Σ_{children c of l} max_u { v[c, u] + θ[edge of c, z − u] }

(Uřičář and Franc 2012, section 4.2). Deformation weights may have either sign, so that θ need not
be concave in the displacement, and no distance transform applies: the maximum is over all pairs of
positions, whose displacements are contiguous in memory. The oracle is exact; of several best
labelings, it returns the lexicographically lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.datasets.arrays import label_type
from ssvm_bench.datasets.base import LANDMARKS, Dataset
from ssvm_bench.datasets.structures import CODES, MARGIN, Boxes, pattern_cells
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.joint_features import features_with, padded
from ssvm_bench.oracles.labeling import LabelingOracle, maximise, threaded
from ssvm_bench.oracles.scoring import label_loss, label_score

# mypy: disable-error-code="no-untyped-def"


OF_EDGE = 4
"""Weights of an edge."""


_OF_IMAGES = ("maps", "across", "cells", "parents", "grids")
_OF_LABELS = ("begins", "unit", "scale", "counts", "pixels")


class LandmarkFeatures(features_with(*_OF_IMAGES, *_OF_LABELS)):  # type: ignore[misc]
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets, truth, n_features, n_labels, stride, transitions
        As in :class:`ssvm_bench.oracles.joint_features.JointFeatures`, of examples of 2P − 1 parts;
        ``n_features`` is d, and ``n_labels`` is that of the part with most labels.
    indptr, indices, values : ndarrays
        No entries: a part's features are in ``maps``.
    gram_start, gram : ndarrays
        The identity, for every example.
    maps : ndarray of uint8, shape (n, scales · (H + 8) · (W + 8))
        Patterns of the images.
    across : int
        W + 8.
    cells : ndarray of int64, shape (cells,)
        Indices in the maps of an image, for the cells of a landmark at the first pixel. r rows
        below and c columns to the right, they are larger by r · across + c.
    parents : ndarray of int64, shape (P,)
    grids : ndarray of int64, shape (2P − 1, 4)
        First row and column, and numbers of rows and columns, of the labels of a part: positions,
        or displacements of the parent from the landmark.
    begins : ndarray of int64, shape (2P − 1,)
        Index in w at which the weights of a part begin.
    unit : float
        Unit of displacements, in pixels.
    scale : ndarray of float64, shape (n,)
        100 / the distance of the eyes and the mouth.
    counts : ndarray of float64, shape (256,)
        Scratch: all 0 between calls.
    pixels : ndarray of int64, shape (labels,)
        Scratch: the `_pixel` of labels.
    """

    @property
    def squared_radius(self) -> float:
        """A bound of the largest ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖²."""
        low, size = self.grids[self.parents.size :, :2], self.grids[self.parents.size :, 2:]
        last = low + size - 1
        linear = (size - 1) / self.unit
        quadratic = np.maximum(low**2, last**2) / self.unit**2
        of_edges = (linear**2 + quadratic**2).sum()
        return float(2 * self.parents.size * self.cells.size + of_edges)


@kernel
def position_of(features, l, label):
    """Return row and column of the position, or displacement, of a label of part l."""
    across = features.grids[l, 3]
    return features.grids[l, 0] + label // across, features.grids[l, 1] + label % across


@kernel
def _part(features, part):
    """Return the example of a part, and the index of the part in it."""
    L = features.begins.size
    return part // L, part % L


@kernel
def _pixel(features, l, label):
    """Return the distance in the maps from the first pixel's cells to those of a label."""
    row, column = position_of(features, l, label)
    return row * features.across + column


@kernel
def _code(features, i, k, pixel):
    """Return the pattern of cell k around a pixel."""
    return np.int64(features.maps[i, features.cells[k] + pixel])


@kernel
def _deformation(features, l, label):
    """Return g of a displacement."""
    row, column = position_of(features, l, label)
    a, b = row / features.unit, column / features.unit
    return a, b, a * a, b * b


@implements(scoring.label_score, LandmarkFeatures)
def _label_score(features, w, part, label):
    i, l = _part(features, part)
    here = w[features.begins[l] :]
    if l >= features.parents.size:
        a, b, c, d = _deformation(features, l, label)
        return (here[0] * a + here[1] * b) + (here[2] * c + here[3] * d)
    pixel = _pixel(features, l, label)
    total = 0.0
    for k in range(features.cells.size):
        total += here[CODES * k + _code(features, i, k, pixel)]
    return total


@implements(scoring.add_label, LandmarkFeatures)
def _add_label(features, part, label, scale, v):
    i, l = _part(features, part)
    here = v[features.begins[l] :]
    if l >= features.parents.size:
        deformation = _deformation(features, l, label)
        for k in range(OF_EDGE):
            here[k] += scale * deformation[k]
        return
    pixel = _pixel(features, l, label)
    for k in range(features.cells.size):
        here[CODES * k + _code(features, i, k, pixel)] += scale


@implements(scoring.unary_scores, LandmarkFeatures)
def _unary_scores(features, w, i, theta):
    P = features.parents.size
    for l in range(features.begins.size):
        row = theta[l]
        top, left, rows, columns = features.grids[l]
        if l >= P:
            for label in range(rows * columns):
                row[label] = label_score(features, w, features.offsets[i] + l, label)
            continue
        row[:] = 0.0
        for k in range(features.cells.size):
            weights = w[features.begins[l] + CODES * k :]
            codes = features.maps[i, features.cells[k] + top * features.across + left :]
            for r in range(rows):
                line, here = codes[r * features.across :], row[r * columns :]
                for c in range(columns):
                    here[c] += weights[line[c]]


@implements(scoring.label_size, LandmarkFeatures)
def _label_size(features, part):
    _, l = _part(features, part)
    return OF_EDGE if l >= features.parents.size else features.cells.size


@implements(scoring.label_index, LandmarkFeatures)
def _label_index(features, part, k, label):
    i, l = _part(features, part)
    if l >= features.parents.size:
        return features.begins[l] + k
    pixel = _pixel(features, l, np.int64(label))
    return features.begins[l] + CODES * k + _code(features, i, k, pixel)


@implements(scoring.squared_label_norm, LandmarkFeatures)
def _squared_label_norm(features, part, labels, count, delta):
    i, l = _part(features, part)
    if l >= features.parents.size:
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for s in range(count):
            if delta[s] != 0.0:
                one = _deformation(features, l, np.int64(labels[s]))
                a, b = a + delta[s] * one[0], b + delta[s] * one[1]
                c, d = c + delta[s] * one[2], d + delta[s] * one[3]
        return (a * a + b * b) + (c * c + d * d)
    for s in range(count):
        features.pixels[s] = _pixel(features, l, np.int64(labels[s]))
    total = 0.0
    for k in range(features.cells.size):
        for s in range(count):
            features.counts[_code(features, i, k, features.pixels[s])] += delta[s]
        for s in range(count):
            code = _code(features, i, k, features.pixels[s])
            total += features.counts[code] ** 2
            features.counts[code] = 0.0
    return total


@implements(scoring.label_difference_product, LandmarkFeatures)
def _label_difference_product(features, part, row, labels, count, one, other):
    total = 0.0
    for k in range(count):
        label = np.int64(labels[k])
        if row[label] != 0.0:
            product = _label_product(features, part, label, np.int64(one))
            total += row[label] * (product - _label_product(features, part, label, np.int64(other)))
    return total


@kernel
def _label_product(features, part, label, other):
    """Return ⟨e(label) ⊗ ψ, e(other) ⊗ ψ⟩ of a part."""
    i, l = _part(features, part)
    if l >= features.parents.size:
        one, two = _deformation(features, l, label), _deformation(features, l, other)
        return (one[0] * two[0] + one[1] * two[1]) + (one[2] * two[2] + one[3] * two[3])
    here, there = _pixel(features, l, label), _pixel(features, l, other)
    same = 0.0
    for k in range(features.cells.size):
        same += _code(features, i, k, here) == _code(features, i, k, there)
    return same


@implements(scoring.label_loss, LandmarkFeatures)
def _label_loss(features, part, c):
    i, l = _part(features, part)
    P = features.parents.size
    if l >= P:
        return 0.0
    row, column = position_of(features, l, np.int64(c))
    true_row, true_column = position_of(features, l, np.int64(features.truth[part]))
    distance = sqrt((row - true_row) ** 2 + (column - true_column) ** 2)
    return distance * features.scale[i] * features.begins.size / P


# ---- The oracle -------------------------------------------------------------------------------

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of the oracle."""

    structures: ClassVar[tuple[str, ...]] = (LANDMARKS,)
    has_expectations: ClassVar[bool] = False


@threaded("v")
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
        return self.predicted(w)[1] / self.n


def build(config: Config, dataset: Dataset) -> LandmarkOracle:
    """Return the oracle of a dataset of landmarks.

    Raises
    ------
    ConfigError
        If the dataset's labels are no landmarks.
    """
    config.check_structure(dataset)
    boxes = dataset.admissible
    assert isinstance(boxes, Boxes)  # as every dataset of landmarks has
    parents, cells = np.array(boxes.parents), pattern_cells()
    corners, sizes = np.array(boxes.corners), np.array(boxes.sizes)
    children, up = np.arange(1, parents.size), parents[1:]
    low = corners[up] - (corners[children] + sizes[children] - 1)
    of_edges = np.concatenate((low, sizes[up] + sizes[children] - 1), axis=1)
    grids = np.concatenate((np.concatenate((corners, sizes), axis=1), of_edges))
    n_labels = int((grids[:, 2] * grids[:, 3]).max())
    weights = np.repeat([len(cells) * CODES, OF_EDGE], [parents.size, up.size])
    L, n = len(grids), dataset.n
    positions = boxes.positions(dataset.y).reshape(n, -1, 2)
    seen = np.concatenate((positions, positions[:, up] - positions[:, children]), axis=1)
    place = seen - grids[:, :2]
    H, W = (side + 2 * MARGIN for side in boxes.image)
    scale, row, column = cells.T
    features = LandmarkFeatures(
        offsets=L * np.arange(n + 1),
        truth=(place[..., 0] * grids[:, 3] + place[..., 1]).ravel().astype(label_type(n_labels)),
        indptr=np.zeros(n * L + 1, np.int64),
        indices=np.zeros(0, np.uint32),
        values=np.zeros(0),
        gram_start=L * L * np.arange(n + 1),
        gram=np.tile(np.eye(L).ravel(), n),
        n_features=int(weights.sum()),
        n_labels=n_labels,
        stride=padded(n_labels),
        transitions=False,
        maps=np.ascontiguousarray(dataset.x),
        across=W,
        cells=np.ascontiguousarray((scale * H + row) * W + column),
        parents=parents,
        grids=grids,
        begins=np.cumsum(weights) - weights,
        unit=boxes.image[0] / 4.0,
        scale=100.0 / boxes.scale(positions),
        counts=np.zeros(CODES),
        pixels=np.zeros(n_labels, np.int64),
    )
    return LandmarkOracle(Landmarks(features, np.zeros((parents.size + 1, features.stride))), boxes)


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
        parent = features.parents[l]
        _send(features.grids, l, parent, P, v[l], theta[P + l - 1], message)
        for z in range(features.grids[parent, 2] * features.grids[parent, 3]):
            v[parent, z] += message[z]
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
    """Return the label of a landmark's edge, for its parent's position in y and its own, z."""
    above = np.int64(y[parent])
    down = grids[l, 2] - 1 - z // grids[l, 3] + above // grids[parent, 3]
    right = grids[l, 3] - 1 - z % grids[l, 3] + above % grids[parent, 3]
    return down * grids[P + l - 1, 3] + right
