"""Binary detection with a latent position (DCD paper, section 1.4).

.. code-block:: text

    H_i(w) = 1/n C_i max( 0, m_i − ⟨w, ψ(x_i, z_i)⟩ )             of a positive example
    H_i(w) = 1/n C_i max( 0, max_z { m_i + ⟨w, ψ(x_i, z)⟩ } )     of a negative one

for positions z. A negative example may be violated at any position. A positive one has a position
z_i, which is fixed: this makes the problem convex. An outer loop chooses all z_i anew, by
`LatentOracle.update_latent`:

.. code-block:: text

    z_i ← argmax_z ⟨w, ψ(x_i, z)⟩

This can only lower P at w. Since each convex problem starts there, the objective

.. code-block:: text

    J(w) = min over all z_i of P(w)
         = λ/2 ‖w‖² + 1/n Σ_i C_i max( 0, m_i − y_i max_z ⟨w, ψ(x_i, z)⟩ ),  y_i ∈ {−1, 1}

never rises. An example is predicted positive if some position scores above 0. By default, C_i and
m_i are 1; a loss matrix multiplies m_i (:mod:`ssvm_bench.oracles.options`). The oracle is exact.

===========  ====================================================================
``start``    the z_i of the first round
===========  ====================================================================
``ink``      the window with the largest sum of pixels, of several the first
``centre``   the window in the middle of the canvas
``planted``  the true position, if the loader knows it: for comparison
===========  ====================================================================

**Joint features** are windows that are views on a canvas:

.. code-block:: text

    ϕ(x_i, 0) = 0        ϕ(x_i, 1 + z) = ψ(x_i, z) = [the pixels of window z, b]

A label says where the object is: 0 nowhere, 1 + z at position z. d is the size of a window plus 1,
for any number of positions. Windows are not stored: their pixels are those of the canvas, whose
non-zeros are stored once. One pass over these computes the scores of all positions: each pixel is
added to the windows that contain it, in the same order for all windows.

An example without an object may have any label. An example whose object is *fixed* has two labels:
0, and its true one.

References
----------
D. Ramanan: Dual coordinate solvers for large-scale structural SVMs. arXiv:1312.1743, 2013.
P. Felzenszwalb, R. Girshick, D. McAllester, D. Ramanan: Object detection with discriminatively
trained part-based models. IEEE TPAMI, 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import allocating_kernel, implements, kernel
from ssvm_bench.base.linalg import dot
from ssvm_bench.base.state import array, expect
from ssvm_bench.config.validation import NotNegative, one_of
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.joint_features import features_with, padded, placed, weighted
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.oracles.multiclass import Enumeration
from ssvm_bench.oracles.options import CostsConfig
from ssvm_bench.oracles.scoring import add_label, label_score

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

NAMES = ("-1", "1")
"""Names of the labels 0 and 1 of the examples."""

STARTS = INK, CENTRE, PLANTED = ("ink", "centre", "planted")

_MOST_POSITIONS = 255
"""Labels are kept as bytes."""


@dataclass(frozen=True)
class Config(CostsConfig):
    """Options of the oracle.

    Attributes
    ----------
    bias : float
        b, the constant feature of every window; 0: none.
    start : str
        Where the positive examples' windows are at first: ``ink``, ``centre`` or ``planted``.
    """

    structures: ClassVar[tuple[str, ...]] = ("latent",)
    has_expectations: ClassVar[bool] = False
    has_latent: ClassVar[bool] = True

    bias: NotNegative = 1.0
    start: Annotated[str, one_of(STARTS)] = "ink"

    def names(self, dataset: Dataset) -> Sequence[str]:
        """Return −1 and 1."""
        return NAMES


class WindowFeatures(features_with("rows", "bias", "losses", "fixed", "grid", "dense")):  # type: ignore[misc]
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets, truth, indptr, values, n_features, n_labels, stride
        As in :class:`ssvm_bench.oracles.joint_features.JointFeatures`, of examples of one part;
        ``n_features`` is d, the values are float64, and the labels are 0 and one per position.
    rows, indices : ndarrays of int32 and uint16 or uint32
        Row of every non-zero of the canvases, and its pixel, row · width + column.
    gram_start, gram : ndarrays
        G of every example, which is 1: the labels have features of their own.
    transitions : bool
        False.
    bias, losses : ndarrays of float64, shape (n,)
        b, and the loss of a wrong label, both times C_i.
    fixed : ndarray of bool, shape (n,)
        Whether the example has only two labels.
    grid : tuple of int
        Positions down and across, height and width of a window, width and pixels of the canvas, and
        the step.
    dense : ndarray of float64, shape (d,)
        Scratch: a sum of windows.
    """

    @property
    def last_index(self) -> int:
        """The last pixel of a canvas."""
        return self.grid[5] - 1

    @property
    def squared_radius(self) -> float:
        """A bound of the largest ‖ψ(x_i, z)‖², from all pixels of the canvas."""
        pixels = np.add.reduceat(np.append(self.values**2, 0.0), self.indptr[:-1])
        return float((pixels * (np.diff(self.indptr) > 0) + self.bias**2).max())


@kernel
def all_scores(features, w, i, theta):
    """Write the score of every label c into ``theta[0, c]``."""
    down, across, height, width, canvas, _, step = features.grid
    row = theta[0]
    row[0] = 0.0
    row[1 : features.n_labels] = features.bias[i] * w[features.n_features - 1]
    for k in range(features.indptr[i], features.indptr[i + 1]):
        a, value = np.int64(features.rows[k]), features.values[k]
        b = np.int64(features.indices[k]) - a * canvas
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
def _index(features, k, corner):
    """Return the index of non-zero k in the window with this corner; −1: it is outside."""
    height, width, canvas = features.grid[2], features.grid[3], features.grid[4]
    a = np.int64(features.rows[k])
    b = np.int64(features.indices[k]) - a * canvas - corner[1]
    a -= corner[0]
    return a * width + b if 0 <= a < height and 0 <= b < width else -1


@implements(scoring.label_score, WindowFeatures)
def _label_score(features, w, i, label):
    if label == 0:
        return 0.0
    corner = _corner(features, label)
    total = features.bias[i] * w[features.n_features - 1]
    for k in range(features.indptr[i], features.indptr[i + 1]):
        index = _index(features, k, corner)
        if index >= 0:
            total += features.values[k] * w[index]
    return total


@implements(scoring.add_label, WindowFeatures)
def _add_label(features, i, label, scale, v):
    if label == 0:
        return
    corner = _corner(features, label)
    v[features.n_features - 1] += scale * features.bias[i]
    for k in range(features.indptr[i], features.indptr[i + 1]):
        index = _index(features, k, corner)
        if index >= 0:
            v[index] += scale * features.values[k]


@allocating_kernel
def best_windows(features, w, examples):
    """Return label and score of the best window of some examples; ties go to the true window.

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


@implements(scoring.unary_scores, WindowFeatures)
def _unary_scores(features, w, i, theta):
    if features.fixed[i]:
        theta[0] = -np.inf  # for labels that the example does not have
        theta[0, 0] = 0.0
        theta[0, features.truth[i]] = label_score(features, w, i, np.int64(features.truth[i]))
    else:
        all_scores(features, w, i, theta)


@implements(scoring.label_size, WindowFeatures)
def _label_size(features, part):
    return features.indptr[part + 1] - features.indptr[part] + 1  # b


@implements(scoring.label_index, WindowFeatures)
def _label_index(features, part, k, label):
    k += features.indptr[part]
    if label > 0 and k < features.indptr[part + 1]:
        index = _index(features, k, _corner(features, label))
        if index >= 0:
            return index
    return features.n_features - 1  # b, also for non-zeros outside of the window


@implements(scoring.squared_label_norm, WindowFeatures)
def _squared_label_norm(features, part, labels, count, delta):
    features.dense[:] = 0.0
    for k in range(count):
        if delta[k] != 0.0:
            add_label(features, part, np.int64(labels[k]), delta[k], features.dense)
    return dot(features.dense, features.dense, features.n_features)


@implements(scoring.label_difference_product, WindowFeatures)
def _label_difference_product(features, part, row, labels, count, one, other):
    features.dense[:] = 0.0
    for k in range(count):
        c = np.int64(labels[k])
        if row[c] != 0.0:
            add_label(features, part, c, row[c], features.dense)
    score = label_score(features, features.dense, part, np.int64(one))
    return score - label_score(features, features.dense, part, np.int64(other))


@implements(scoring.label_loss, WindowFeatures)
def _label_loss(features, part, c):
    return features.losses[part] if (c > 0) != (features.truth[part] > 0) else 0.0


# ---- the oracle ---------------------------------------------------------------------------------


class LatentOracle(LabelingOracle):
    """The oracle; its truth has the position of the object in each positive example."""

    any_label = False

    def __init__(self, features: WindowFeatures, loss_matrix: np.ndarray | None = None) -> None:
        super().__init__(Enumeration(features), loss_matrix)
        nothing = np.zeros_like(features.fixed)
        self.predicting = Enumeration(features._replace(fixed=nothing))

    def latent(self) -> np.ndarray:
        """Return the true labels: 1 + z_i of a positive example, else 0."""
        return self.features.truth

    def update_latent(self, w: np.ndarray) -> tuple[LatentOracle, int]:
        """Return the oracle with the best positions of objects at w, and how many changed."""
        positive = np.flatnonzero(self.features.fixed)
        truth = self.features.truth.copy()
        truth[positive], _ = best_windows(self.features, self.pack(w), positive)
        return self.with_latent(truth), int(np.count_nonzero(truth != self.features.truth))

    def with_latent(self, values: np.ndarray) -> LatentOracle:
        """Return the oracle with other positions."""
        truth = self.features.truth
        array(truth, values, truth.shape)
        there = (values < self.features.n_labels).all() and ((values > 0) == (truth > 0)).all()
        expect(bool(there), "has positions that there are not")
        made = LatentOracle(self.features._replace(truth=values), self.loss_matrix)
        made.caller = self.caller
        return made

    def losses_of_parts(self, w: np.ndarray) -> np.ndarray:
        """Return which examples are misclassified (object or none), or the losses of that."""
        _, inner = self.at(self.compiled, w)
        _, scores = best_windows(self.features, inner, np.arange(self.n))
        return self._lost((self.features.truth > 0).astype(int), (scores > 0.0).astype(int))


def build(config: Config, dataset: Dataset) -> LatentOracle:
    """Return the oracle of canvases that show one object, or none.

    Raises
    ------
    ConfigError
        If the examples have no positions, or too many, or ``start`` needs unknown positions.
    """
    config.check_structure(dataset)
    windows = dataset.windows
    assert windows is not None  # as every dataset of this structure has
    if windows.positions > _MOST_POSITIONS:
        raise ConfigError(
            f"oracle={config.name} is for up to {_MOST_POSITIONS} positions, and {dataset.name} "
            f"has {windows.positions}. Use a smaller canvas, or a larger step between windows."
        )
    down, across = windows.shape
    middle = down // 2 * across + across // 2
    positions: dict[str, Any] = {INK: 0, CENTRE: middle, PLANTED: dataset.places}
    if positions[config.start] is None:
        raise ConfigError(
            f"oracle.start={PLANTED} needs to know where the objects of {dataset.name} are, and "
            f"nobody does. Try oracle.start={INK}."
        )
    truth = np.where(dataset.y > 0, 1 + positions[config.start], 0).astype(np.uint8)
    rows, costs, n = csr_array(dataset.x), config.example_costs(dataset), dataset.n
    weights = np.ones(n) if costs is None else costs
    margins = np.ones(n) if dataset.margins is None else dataset.margins
    matrix = config.loss_matrix(dataset)
    if matrix is not None:
        margins = margins * matrix[dataset.y, 1 - dataset.y]
    d = windows.size[0] * windows.size[1] + 1
    features = WindowFeatures(
        offsets=np.arange(n + 1),
        truth=truth,
        indptr=rows.indptr.astype(np.int64),
        rows=(rows.indices // windows.canvas[1]).astype(np.int32),
        indices=placed(rows, 1),
        values=weighted(rows, costs).astype(np.float64),
        gram_start=np.arange(n + 1),
        gram=np.ones(n),
        n_features=d,
        n_labels=windows.positions + 1,
        stride=padded(windows.positions + 1),
        transitions=False,
        bias=config.bias * weights,
        losses=weights * margins,
        fixed=truth > 0,
        grid=(*windows.shape, *windows.size, windows.canvas[1], rows.shape[1], windows.step),
        dense=np.zeros(d),
    )
    built = LatentOracle(features, matrix)
    if config.start == INK:  # the ink is the score of weights that are 1
        built, _ = built.update_latent(np.ones(d))
    return built
