"""Transduction: a classifier is trained together with the labels of the points that it classifies.

.. code-block:: text

    min over y ∈ L^n, α ∈ R^{n×L}  of   Σ_i ℓ(y_i; K_i α) + ν ⟨α, Kα⟩ + Σ_C E_C(y_C)          (5)

(E. Laude et al., *Discrete-continuous ADMM for transductive inference in higher-order MRFs*, CVPR
2018.) Observed labels are fixed. A solver reports a point (W, y) of the problem, with W = Gᵀα
(:mod:`.kernels`), so its value is computed from G W and ‖W‖².

=============  ================================================  ==============================
symbol         what                                              where
=============  ================================================  ==============================
ℓ              ``loss``                                          :mod:`.losses`
K, G           ``kernel``, ``sigma``, ``components``, ``ridge``  :mod:`.kernels`
E_C            observed labels; bounds on counts (the            :mod:`.energies`
               dataset's cliques, and ``balance``); Potts
               pairs (the dataset's, times ``potts``)
ν              ``nu``; there is no λ
=============  ================================================  ==============================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import inner, norm
from ssvm_bench.base.state import expect
from ssvm_bench.config.validation import Count, NotNegative, Positive, Share, one_of
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.objective import TRANSDUCTION, Objective, Terms
from ssvm_bench.papers.transduction.datasets import points
from ssvm_bench.papers.transduction.datasets.points import POINTS, Cliques, Points
from ssvm_bench.papers.transduction.oracles import energies, kernels, losses
from ssvm_bench.papers.transduction.oracles.energies import LabelingEnergy, sum_of
from ssvm_bench.papers.transduction.oracles.kernels import FeatureMap

CODE_VERSION = 1

_LOOKED_AT = 1000
_EQUAL = 1e-9
"""Costs count as equal that differ by less than this share of the largest."""


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of problem (5).

    Attributes
    ----------
    loss : str
        ``softmax``, ``crammer_singer`` or ``one_vs_all``.
    kernel : str
        ``linear``, ``rbf``, ``nystrom`` or ``random_features``.
    scaling : str
        Scaling of features: ``none``, ``unit`` (norm of a point), ``standard`` (of a feature) or
        ``dimension`` (x/√f for f features).
    sigma : float or None
        σ of all kernels but ``linear``: exp(−‖x − x′‖²/(2σ²)). None: the median distance of two
        points.
    components : int
        Landmarks of ``nystrom``, or random features.
    ridge : float
        γ, added to the diagonal of K (``rbf``).
    nu : float
        ν, the weight of the regulariser.
    balance : float or None
        The number of points of each label is within this share of n/L.
    ties : str
        Which points of equal costs get label 1 within bounds on counts: the first (``index``), or
        the last, as from a linear program (``lp``; one clique of two labels only).
    tie_tolerance : float
        Costs of two points that differ by less are equal; also for one clique of two labels.
    potts : float
        Factor of the weights of the dataset's pairs.
    precision : float or None
        Relative residual at which conjugate gradients for (17) end; None: 1e-11,
        and a decomposition instead if a matrix is small.
    """

    structures: ClassVar[tuple[str, ...]] = (POINTS,)
    has_expectations: ClassVar[bool] = False
    family: ClassVar[str] = TRANSDUCTION
    weight: ClassVar[str] = "oracle.nu"

    loss: Annotated[str, one_of(losses.LOSSES)] = "softmax"
    kernel: Annotated[str, one_of(kernels.KERNELS)] = "linear"
    scaling: Annotated[str, one_of(kernels.SCALINGS)] = "none"
    sigma: Positive | None = 0.5477
    components: Count = 500
    ridge: NotNegative = 0.0
    nu: Positive = 0.05
    balance: Share | None = None
    ties: Annotated[str, one_of(energies.TIES)] = energies.INDEX
    tie_tolerance: NotNegative = 0.0
    potts: NotNegative = 1.0
    precision: Positive | None = None

    @property
    def own_weight(self) -> float:
        """ν."""
        return self.nu


def build(config: Config, dataset: Dataset) -> Transduction:
    """Return the terms of a dataset of points.

    Raises
    ------
    ConfigError
        The dataset is not one of points; no labeling keeps all bounds on counts; there are both
        bounds and pairs, for which there is no label step; or the kernel is too large.
    """
    config.check_structure(dataset)
    if not isinstance(dataset, Points):
        raise ConfigError(
            f"dataset={dataset.name} has the structure {POINTS}, but its loader returned a "
            "Dataset, not ssvm_bench.papers.transduction.datasets.points.Points, which has the "
            "labeled points."
        )
    return Transduction(config, dataset)


class TransductivePoint(NamedTuple):
    """A classifier W = Gᵀα, shape (m, L), and labels y, int64 of shape (n,)."""

    W: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class TransductiveProblem(Objective):
    """Problem (5).

    Attributes
    ----------
    kernel : FeatureMap
    loss : Softmax, CrammerSinger or OneVsAll
    energy : LabelingEnergy
    lam : float
        ν.
    truth : ndarray of int64, shape (n,)
        The true labels, only for scoring.
    overlap : Overlap or None
        Scores the figure if points are superpixels.
    name : str
        Distinguishes problems on the same points.
    """

    kernel: FeatureMap
    loss: losses.Softmax | losses.CrammerSinger | losses.OneVsAll
    energy: LabelingEnergy
    lam: float
    truth: np.ndarray
    overlap: Overlap | None
    name: str

    @property
    def n(self) -> int:
        """Number of points."""
        return self.truth.size

    @property
    def d(self) -> int:
        """Number of stored weights."""
        return self.kernel.kept * self.n_labels

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return self.energy.n_labels

    def value(self, scores: np.ndarray, W: np.ndarray, y: np.ndarray) -> float:
        """Return the objective (5), given the scores Kα, too."""
        loss = losses.total(self.loss, y, scores)
        return loss + self.lam * inner(W, W) + self.energy.value(y)

    def unaries(self, scores: np.ndarray) -> np.ndarray:
        """Return ℓ(l; K_i α) of all points and labels, shape (n, L)."""
        u = np.empty_like(scores)
        losses.values(self.loss, scores, u)
        return u

    def label_step(self, u: np.ndarray, y: np.ndarray | None, delta: float = 0.0) -> np.ndarray:
        """Return the label step of u, or y if the step does not lower the objective by δ (16)."""
        found = self.energy.minimise(u, y)
        if y is None:
            return found
        fall = sum_of(u, y) + self.energy.value(y) - sum_of(u, found) - self.energy.value(found)
        return found if fall > 0 and fall >= delta else y

    def measured(self, point: TransductivePoint) -> tuple[float, dict[str, float]]:
        """Return the objective, accuracies, the kernel's off-diagonal mean, and the overlap."""
        scores = self.kernel.scores(point.W)
        right = float(np.mean(point.y == self.truth))
        scored = {"accuracy": self.accuracy(point.y), "accuracy_all": right}
        if not np.isnan(self.kernel.off_diagonal):
            scored["off_diagonal"] = self.kernel.off_diagonal
        if self.overlap is not None:
            labelled = np.flatnonzero(self.energy.observed >= 0)
            fitted = scores[labelled].argmax(axis=1)
            scored |= self.overlap.measured(point.y)
            scored["told_iou"] = agreement(fitted == FIGURE, self.truth[labelled] == FIGURE)
        return self.value(scores, point.W, point.y), scored

    def accuracy(self, y: np.ndarray) -> float:
        """Return the share of right labels among unobserved ones; NaN if all are observed."""
        free = self.energy.free
        return float(np.mean(y[free] == self.truth[free])) if free.size else np.nan

    def tied(self, u: np.ndarray) -> bool:
        """Return whether more than half of these label costs, shape (n, L), are equal to others.

        They are those of the points without an observed label, of which the first `_LOOKED_AT`
        suffice; a constant for all labels of a point does not matter.
        """
        cost = u[self.energy.free[:_LOOKED_AT]]
        cost = cost - cost.mean(axis=1, keepdims=True)
        size = np.abs(cost).max(initial=0.0)
        distinct = np.unique(np.round(cost / (_EQUAL * max(size, 1e-300))), axis=0)
        return 2 * len(distinct) < len(cost)

    def check_point(self, point: TransductivePoint) -> None:
        """Raise ``StateError`` if the point has a label that does not exist."""
        expect(bool((point.y < self.n_labels).all()), "has a label that there is not")

    def size(self, point: TransductivePoint) -> float:
        """Return ‖W‖_F, the root of ⟨α, Kα⟩."""
        return norm(point.W)

    def losses(self, point: TransductivePoint) -> dict[str, float]:
        """Return the classifier's share of errors on observed labels, and that of y on others."""
        observed = np.flatnonzero(self.energy.observed >= 0)
        best = self.kernel.scores(point.W)[observed].argmax(axis=1)
        train = float(np.mean(best != self.truth[observed])) if observed.size else np.nan
        return {"train": train, "test": 1.0 - self.accuracy(point.y)}

    def arrays(self, point: TransductivePoint) -> dict[str, np.ndarray]:
        """Return the weights, label by label (W, or α with a kernel matrix), and the labels."""
        return {"w": self.kernel.alpha(point.W).ravel(), "y": point.y.astype(np.uint8)}


class Transduction(Terms):
    """The terms of problem (5)."""

    def __init__(self, config: Config, dataset: Points) -> None:
        points.check_labelled(dataset)  # not checked before if it is a subset
        truth = dataset.y.astype(np.int64)
        observed, pixels = np.where(dataset.labeled, truth, -1), dataset.pixels
        overlap = None if pixels is None else overlap_of(pixels, dataset.frame, observed)
        self.made = TransductiveProblem(
            kernel=kernels.build(config, dataset.x, dataset.name),
            loss=losses.build(config.loss, dataset.n_labels),
            energy=_energy(config, dataset, observed),
            lam=config.nu,
            truth=truth,
            overlap=overlap,
            name=_name(config),
        )
        self.n, self.d = self.made.n, self.made.d

    def problem(self, lam: float) -> TransductiveProblem:
        """Return the problem with a ν."""
        return replace(self.made, lam=lam)


def _energy(config: Config, dataset: Points, observed: np.ndarray) -> LabelingEnergy:
    L, pairs, weights = dataset.n_labels, dataset.pairs, dataset.weights
    cliques = dataset.cliques or points.no_cliques(L)
    if config.balance is not None:
        cliques = _with_balance(cliques, dataset.n, L, config.balance)
    if pairs is None or weights is None or not len(pairs) or config.potts == 0:
        if len(cliques):
            of = energies.bounds_on_counts
            return of(observed, L, cliques, config.ties, config.tie_tolerance)
        energies.check_ties(config.ties)
        return LabelingEnergy(observed, L)
    if len(cliques):
        raise ConfigError(
            f"dataset={dataset.name} has both bounds on counts and Potts pairs, and there is no "
            "label step for both. Set oracle.potts=0, or oracle.balance=null if that is the bound."
        )
    energies.check_ties(config.ties)
    return energies.Potts(observed, L, pairs.astype(np.int64), config.potts * weights)


def _with_balance(cliques: Cliques, n: int, L: int, share: float) -> Cliques:
    """Return the cliques and a clique of all points, with counts within a share of n/L."""
    low, high = np.floor(n / L * (1 - share)), np.ceil(n / L * (1 + share))
    bounds = (np.full((1, L), bound, np.int64) for bound in (low, high))
    return Cliques(
        np.append(cliques.offsets, cliques.offsets[-1] + n),
        np.concatenate((cliques.members, np.arange(n))),
        *(np.concatenate(both) for both in zip(cliques[2:], bounds, strict=True)),
    )


def _name(config: Config) -> str:
    """Return a name that distinguishes problems on the same points with the same ν."""
    parts = [config.loss, config.kernel, f"scaling {config.scaling}"]
    if config.kernel != "linear":
        parts.append("sigma " + ("median" if config.sigma is None else f"{config.sigma:g}"))
    if config.kernel in ("nystrom", "random_features"):
        parts.append(f"components {config.components}")
    usual = {"ridge": 0.0, "balance": None, "tie_tolerance": 0.0, "potts": 1.0}
    others = {name: getattr(config, name) for name in usual}
    parts += [f"{name} {of:g}" for name, of in others.items() if of != usual[name]]
    parts += [f"ties {config.ties}"] * (config.ties != energies.INDEX)
    return ", ".join(parts)


# ---- overlap ----------------------------------------------------------------------------------

FIGURE = 1


class Overlap(NamedTuple):
    """Intersection over union of the figure (label 1) in pixels, per picture and then the mean.

    .. code-block:: text

        IoU_t = Σ_{i∈t: y_i=1} p_i1 / ( Σ_{i∈t} p_i1 + Σ_{i∈t: y_i=1} Σ_{c≠1} p_ic )

        false pixels    Σ_{i: y_i=1} Σ_{c≠1} p_ic,  as a share of all pixels
        missed pixels   Σ_{i: y_i≠1} p_i1,  as a share of all pixels

    p_ic is the number of pixels of superpixel i with the true label c. The IoU is 1 if a picture
    has neither true nor found figure. Pictures whose superpixels are all labelled, e.g. the first
    of a video, do not count. (F. Perazzi et al.: A benchmark dataset and evaluation methodology for
    video object segmentation, CVPR 2016, section 4.1: J.)

    Attributes
    ----------
    figure, other : ndarrays of float64, shape (n,)
        Number of pixels of each point that are figure, and that are not.
    frame : ndarray of int64, shape (n,)
        The picture of each point.
    counted : ndarray of int64
        The pictures that count.
    """

    figure: np.ndarray
    other: np.ndarray
    frame: np.ndarray
    counted: np.ndarray

    def iou(self, y: np.ndarray) -> np.ndarray:
        """Return the IoU of each picture that counts, for the labels of all points."""
        found = y == FIGURE
        both, true, more = (
            np.bincount(self.frame, weights=pixels)[self.counted]
            for pixels in (found * self.figure, self.figure, found * self.other)
        )
        union = true + more
        return np.where(union > 0, both / np.maximum(union, 1.0), 1.0)

    def mean_iou(self, y: np.ndarray) -> float:
        """Return the mean IoU; NaN if no picture counts."""
        return float(self.iou(y).mean()) if self.counted.size else np.nan

    def measured(self, y: np.ndarray) -> dict[str, float]:
        """Return the columns of traces: mean IoU, false and missed pixels, mean IoU of the truth.

        The true label of a superpixel is the label of most of its pixels.
        """
        counts = np.isin(self.frame, self.counted)
        found = y == FIGURE
        pixels = float(self.figure[counts].sum() + self.other[counts].sum())
        false, missed = self.other[counts & found].sum(), self.figure[counts & ~found].sum()
        shares = [float(wrong) / pixels if pixels else np.nan for wrong in (false, missed)]
        truth = self.mean_iou(np.where(self.figure > self.other, FIGURE, 1 - FIGURE))
        return dict(zip(OVERLAP, (self.mean_iou(y), *shares, truth), strict=True))


OVERLAP = ("iou", "false_pixels", "missed_pixels", "truth_iou")
"""Trace columns of runs on superpixels."""


def agreement(found: np.ndarray, true: np.ndarray) -> float:
    """Return the intersection over union of two sets of points; 1 if both are empty."""
    union = np.count_nonzero(found | true)
    return np.count_nonzero(found & true) / union if union else 1.0


def overlap_of(pixels: np.ndarray, frame: np.ndarray | None, observed: np.ndarray) -> Overlap:
    """Return the overlap for pixels, shape (n, L), and observed labels (−1: not observed)."""
    frame = np.zeros(len(pixels), np.int64) if frame is None else frame
    figure = pixels[:, FIGURE].astype(np.float64)
    other = pixels.sum(axis=1) - figure
    return Overlap(figure, other, frame, np.unique(frame[observed < 0]))
