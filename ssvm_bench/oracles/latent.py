"""Binary detection with a latent position (DCD paper, section 1.4).

.. code-block:: text

    H_i(w) = 1/n C_i max( 0, m_i − ⟨w, ψ(x_i, z_i)⟩ )             of a positive example
    H_i(w) = 1/n C_i max( 0, max_z { m_i + ⟨w, ψ(x_i, z)⟩ } )     of a negative one

for positions z (:mod:`ssvm_bench.oracles.window_features`). A negative example is violated by any
position. A positive one has a position z_i, which is fixed: that makes the problem convex. An
outer loop chooses all z_i anew, as `LatentOracle.improved` does,

.. code-block:: text

    z_i ← argmax_z ⟨w, ψ(x_i, z)⟩

which can only lower P at w; and as each convex step starts there, the objective

.. code-block:: text

    J(w) = min over all z_i of P(w)
         = λ/2 ‖w‖² + 1/n Σ_i C_i max( 0, m_i − y_i max_z ⟨w, ψ(x_i, z)⟩ ),  y_i ∈ {−1, 1}

never rises. An example is predicted positive if some position scores above 0.
C_i and m_i are 1, or see :mod:`ssvm_bench.oracles.costs`. Exact.

===========  ====================================================================
``start``    the z_i of the first round
===========  ====================================================================
``ink``      the window with the largest sum of pixels, of several the first
``centre``   the window in the middle of the canvas
``planted``  where the loader knows the object to be: for comparison
===========  ====================================================================

References
----------
D. Ramanan: Dual coordinate solvers for large-scale structural SVMs. arXiv:1312.1743, 2013.
P. Felzenszwalb, R. Girshick, D. McAllester, D. Ramanan: Object detection with discriminatively
trained part-based models. IEEE TPAMI, 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import implements
from ssvm_bench.config.validation import NotNegative, one_of
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import window_features
from ssvm_bench.oracles.costs import CostsConfig
from ssvm_bench.oracles.labeling import LabelingOracle, maximise
from ssvm_bench.oracles.scoring import label_loss

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

NAMES = ("-1", "1")
"""What the labels 0 and 1 of the examples are called."""

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
        See the module's docstring.
    """

    structures: ClassVar[tuple[str, ...]] = ("latent",)
    has_expectations: ClassVar[bool] = False
    has_latent: ClassVar[bool] = True

    bias: NotNegative = 1.0
    start: Annotated[str, one_of(STARTS)] = "ink"

    def names(self, dataset: Dataset) -> Sequence[str]:
        """Return −1 and 1."""
        return NAMES


class Detection(NamedTuple):
    """The compiled oracle."""

    features: window_features.WindowFeatures


class LatentOracle(LabelingOracle):
    """The oracle; its truth says where the object of each positive example is."""

    any_label = False

    def __init__(self, compiled: Detection) -> None:
        super().__init__(compiled)
        nothing = np.zeros_like(compiled.features.fixed)
        self.predicting = Detection(compiled.features._replace(fixed=nothing))

    def latent(self) -> np.ndarray:
        """Return the true labels: 1 + z_i of a positive example, else 0."""
        return self.features.truth

    def improved(self, w: np.ndarray) -> tuple[LatentOracle, int]:
        """Return the oracle with the best positions of the positive examples at w."""
        positive = np.flatnonzero(self.features.fixed)
        truth = self.features.truth.copy()
        truth[positive], _ = self._best_windows(w, positive)
        changed = int(np.count_nonzero(truth != self.features.truth))
        better = LatentOracle(Detection(self.features._replace(truth=truth)))
        better.caller = self.caller
        return better, changed

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the share of examples whose object is missed, or found where there is none."""
        _, scores = self._best_windows(w, np.arange(self.n))
        return float(np.mean((scores > 0.0) != (self.features.truth > 0)))

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y)."""
        dense = window_features.window(self.features, i, y[0])
        indices = np.flatnonzero(dense)
        return indices, dense[indices]

    def radius(self) -> float:
        """Return a bound of R."""
        return math.sqrt(self.features.squared_radius())

    def _best_windows(self, w: np.ndarray, examples: np.ndarray) -> Any:
        return window_features.best_windows(self.features, self._pack(w), examples)


def build(config: Config, dataset: Dataset) -> LatentOracle:
    """Return the oracle of canvases that show an object, somewhere, or none.

    Raises
    ------
    ConfigError
        If the examples have no positions, or too many; or nobody knows where the objects are.
    """
    config.check_structure(dataset)
    windows = dataset.windows
    assert windows is not None  # as every dataset of this structure has
    if windows.positions > _MOST_POSITIONS:
        raise ConfigError(
            f"oracle={config.name} is for up to {_MOST_POSITIONS} positions, and {dataset.name} "
            f"has {windows.positions}. Use a smaller canvas, or a larger step between windows."
        )
    costs = config.example_costs(dataset)
    truth = np.where(dataset.y > 0, 1 + _places(config, dataset), 0).astype(np.uint8)
    features = window_features.build(dataset, windows, truth, config.bias, costs)
    built = LatentOracle(Detection(features))
    if config.start == INK:  # the ink is the score of weights that are 1
        built, _ = built.improved(np.ones(built.d))
    return built


def _places(config: Config, dataset: Dataset) -> np.ndarray | int:
    """Return where the positive examples' windows are at first; for ``ink``, the first of all."""
    assert dataset.windows is not None
    if config.start == CENTRE:
        down, across = dataset.windows.shape
        return down // 2 * across + across // 2
    if config.start == INK:
        return 0
    if dataset.places is None:
        raise ConfigError(
            f"oracle.start={PLANTED} needs to know where the objects of {dataset.name} are, and "
            f"nobody does. Try oracle.start={INK}."
        )
    return dataset.places


@implements(maximise, Detection)
def _best_position(oracle, w, i, theta, loss, y):
    features = oracle.features
    first, end = 1, features.n_labels
    if features.fixed[i]:
        first = np.int64(features.truth[i])
        end = first + 1
    best = 0
    highest = loss * label_loss(features, i, 0)
    for c in range(first, end):
        value = theta[0, c] + loss * label_loss(features, i, c)
        if value > highest:
            highest = value
            best = c
    y[0] = best
