"""Joint features of an object with a latent position: windows that are views on a canvas.

.. code-block:: text

    ϕ(x_i, 0) = 0        ϕ(x_i, 1 + z) = ψ(x_i, z) = [the pixels of window z, b]

A label says where the object is: 0 nowhere, 1 + z at position z. d is the size of a window and 1,
whatever the number of positions, and nothing is kept of a window: its pixels are those of the
canvas, whose non-zeros are kept once. The scores of all positions are one walk over these; each
pixel enters the windows that it is in, in the same order for all of them.

An example without an object may have any label. Where the object of an example is *fixed*, it has
two: 0, and its true one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import allocating_kernel, implements, kernel
from ssvm_bench.base.linalg import dot
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.structures import Windows
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.joint_features import padded, weighted
from ssvm_bench.oracles.scoring import label_loss

# mypy: disable-error-code="no-untyped-def"


class WindowFeatures(NamedTuple):
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets, truth, indptr, values, n_features, n_labels, stride
        As in :class:`ssvm_bench.oracles.joint_features.JointFeatures`, of examples of one part;
        ``n_features`` is d, the values are float64, and there is a label for each position, and 0.
    rows, places : ndarrays of int32 and uint16 or uint32
        Row of every non-zero of the canvases, and its pixel, row · width + column.
    gram_start, gram : ndarrays
        G of every example, which is 1: the labels have features of their own.
    transitions : bool
        There are none.
    bias, losses : ndarrays of float64, shape (n,)
        b, and what a wrong label costs, both times C_i.
    fixed : ndarray of bool, shape (n,)
        Whether the example has but two labels.
    grid : tuple of int
        Positions down and across, height and width of a window, width and pixels of the canvas, and
        the step.
    dense : ndarray of float64, shape (d,)
        Scratch: a sum of windows.
    """

    offsets: np.ndarray
    truth: np.ndarray
    indptr: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    values: np.ndarray
    gram_start: np.ndarray
    gram: np.ndarray
    n_features: int
    n_labels: int
    stride: int
    transitions: bool
    bias: np.ndarray
    losses: np.ndarray
    fixed: np.ndarray
    grid: tuple[int, int, int, int, int, int, int]
    dense: np.ndarray

    @property
    def columns(self) -> tuple[int, int]:
        """Weights of a feature, and places for them in the inner layout."""
        return 1, 1

    @property
    def last_place(self) -> int:
        """The last pixel of a canvas."""
        return self.grid[5] - 1

    def squared_radius(self) -> float:
        """Return a bound of the largest ‖ψ(x_i, z)‖²: with all pixels of the canvas."""
        pixels = np.add.reduceat(np.append(self.values**2, 0.0), self.indptr[:-1])
        return float((pixels * (np.diff(self.indptr) > 0) + self.bias**2).max())


def build(
    dataset: Dataset,
    windows: Windows,
    truth: np.ndarray,
    bias: float,
    costs: np.ndarray | None,
) -> WindowFeatures:
    """Arrange a dataset's canvases.

    Parameters
    ----------
    dataset : Dataset
    windows : Windows
    truth : ndarray of uint8, shape (n,)
        The true labels; an example whose true label is not 0 is fixed.
    bias : float
        b.
    costs : ndarray of float64, shape (n,), optional
        C_i > 0, by which features and losses are multiplied.
    """
    rows = csr_array(dataset.x)
    n, d = dataset.n, windows.size[0] * windows.size[1] + 1
    weights = np.ones(n) if costs is None else costs
    margins = np.ones(n) if dataset.margins is None else dataset.margins
    narrow = np.uint16 if rows.shape[1] <= 1 << 16 else np.uint32
    return WindowFeatures(
        offsets=np.arange(n + 1),
        truth=truth,
        indptr=rows.indptr.astype(np.int64),
        rows=(rows.indices // windows.canvas[1]).astype(np.int32),
        places=rows.indices.astype(narrow),
        values=weighted(rows, costs).astype(np.float64),
        gram_start=np.arange(n + 1),
        gram=np.ones(n),
        n_features=d,
        n_labels=windows.positions + 1,
        stride=padded(windows.positions + 1),
        transitions=False,
        bias=bias * weights,
        losses=weights * margins,
        fixed=truth > 0,
        grid=(*windows.shape, *windows.size, windows.canvas[1], rows.shape[1], windows.step),
        dense=np.zeros(d),
    )


@kernel
def all_scores(features, w, i, theta):
    """Let ``theta[0, c]`` be the score of every label c."""
    down, across, height, width, canvas, _, step = features.grid
    row = theta[0]
    row[0] = 0.0
    row[1 : features.n_labels] = features.bias[i] * w[features.n_features - 1]
    for k in range(features.indptr[i], features.indptr[i + 1]):
        a, value = np.int64(features.rows[k]), features.values[k]
        b = np.int64(features.places[k]) - a * canvas
        first = max(0, (b - width) // step + 1)
        end = min(across, b // step + 1)
        for r in range(max(0, (a - height) // step + 1), min(down, a // step + 1)):
            here = row[1 + r * across :]
            pixel = (a - r * step) * width + b
            for c in range(first, end):
                here[c] += value * w[pixel - c * step]


@kernel
def _corner(features, label):
    """Return row and column of the window of a label that is not 0."""
    across, step = features.grid[1], features.grid[6]
    z = np.int64(label) - 1
    return z // across * step, z % across * step


@kernel
def _place(features, k, corner):
    """Return the place of non-zero k in the window with this corner; −1: it is not in it."""
    height, width, canvas = features.grid[2], features.grid[3], features.grid[4]
    a = np.int64(features.rows[k])
    b = np.int64(features.places[k]) - a * canvas - corner[1]
    a -= corner[0]
    return a * width + b if 0 <= a < height and 0 <= b < width else -1


@kernel
def _window_score(features, w, i, label):
    """Return the score of one label."""
    if label == 0:
        return 0.0
    corner = _corner(features, label)
    total = features.bias[i] * w[features.n_features - 1]
    for k in range(features.indptr[i], features.indptr[i + 1]):
        place = _place(features, k, corner)
        if place >= 0:
            total += features.values[k] * w[place]
    return total


@kernel
def _add_window(features, i, label, scale, v):
    """Add scale · ϕ(x_i, label) to v."""
    if label == 0:
        return
    corner = _corner(features, label)
    v[features.n_features - 1] += scale * features.bias[i]
    for k in range(features.indptr[i], features.indptr[i + 1]):
        place = _place(features, k, corner)
        if place >= 0:
            v[place] += scale * features.values[k]


@allocating_kernel
def best_windows(features, w, examples):
    """Return label and score of the best window of some examples: the true one, if it is the best.

    Parameters
    ----------
    features : WindowFeatures
    w : ndarray of float64, shape (d,)
    examples : ndarray of int64, shape (m,)

    Returns
    -------
    labels : ndarray of uint8, shape (m,)
    scores : ndarray of float64, shape (m,)
    """
    labels, scores = np.ones(examples.size, np.uint8), np.zeros(examples.size)
    theta = np.zeros((1, features.stride))
    for k in range(examples.size):
        all_scores(features, w, examples[k], theta)
        labels[k] = max(features.truth[examples[k]], 1)
        scores[k] = theta[0, labels[k]]
        for c in range(1, features.n_labels):
            if theta[0, c] > scores[k]:
                labels[k], scores[k] = c, theta[0, c]
    return labels, scores


@allocating_kernel
def window(features, i, label):
    """Return ϕ(x_i, label), shape (d,)."""
    dense = np.zeros(features.n_features)
    _add_window(features, i, label, 1.0, dense)
    return dense


@implements(scoring.unary_scores, WindowFeatures)
def _unary_scores(features, w, i, theta):
    if features.fixed[i]:  # it has no other labels
        theta[0, 0] = 0.0
        theta[0, features.truth[i]] = _window_score(features, w, i, features.truth[i])
    else:
        all_scores(features, w, i, theta)


@implements(scoring.label_scores, WindowFeatures)
def _label_scores(features, w, part, labels, count, theta):
    for k in range(count):
        theta[k] = _window_score(features, w, part, labels[k])


@implements(scoring.add_labels, WindowFeatures)
def _add_labels(features, part, labels, count, scale, delta, v):
    for k in range(count):
        if delta[k] != 0.0:
            _add_window(features, part, labels[k], scale * delta[k], v)


@implements(scoring.add_labels_twice, WindowFeatures)
def _add_labels_twice(features, part, labels, count, delta, scale, v, other_scale, other):
    for k in range(count):
        if delta[k] != 0.0:
            _add_window(features, part, labels[k], scale * delta[k], v)
            _add_window(features, part, labels[k], other_scale * delta[k], other)


@implements(scoring.label_size, WindowFeatures)
def _label_size(features, part):
    return features.indptr[part + 1] - features.indptr[part] + 1  # b


@implements(scoring.label_place, WindowFeatures)
def _label_place(features, part, k, label):
    k += features.indptr[part]
    if label > 0 and k < features.indptr[part + 1]:
        place = _place(features, k, _corner(features, label))
        if place >= 0:
            return place
    return features.n_features - 1  # b, of which there is one


@implements(scoring.squared_label_norm, WindowFeatures)
def _squared_label_norm(features, part, labels, count, delta):
    features.dense[:] = 0.0
    for k in range(count):
        if delta[k] != 0.0:
            _add_window(features, part, labels[k], delta[k], features.dense)
    return dot(features.dense, features.dense, features.n_features)


@implements(scoring.label_difference_product, WindowFeatures)
def _label_difference_product(features, part, row, labels, count, one, other):
    features.dense[:] = 0.0
    for k in range(count):
        c = np.int64(labels[k])
        if row[c] != 0.0:
            _add_window(features, part, c, row[c], features.dense)
    score = _window_score(features, features.dense, part, one)
    return score - _window_score(features, features.dense, part, other)


@implements(scoring.label_loss, WindowFeatures)
def _label_loss(features, part, c):
    return features.losses[part] if (c > 0) != (features.truth[part] > 0) else 0.0


@implements(scoring.labeling_loss, WindowFeatures)
def _labeling_loss(features, i, y):
    return label_loss(features, i, y[0])
