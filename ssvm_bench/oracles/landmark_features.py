"""Features of landmarks, read from the maps of patterns of an image: see :mod:`.landmarks`."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.datasets.structures import CODES
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.joint_scores import features_with
from ssvm_bench.oracles.scoring import label_score

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
        As in :class:`ssvm_bench.oracles.joint_scores.JointFeatures`, of examples of 2P − 1 parts;
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
