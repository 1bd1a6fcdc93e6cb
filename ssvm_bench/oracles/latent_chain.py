"""Chains with hidden states (DCD paper, section 1.5; Yu and Joachims 2009).

A part of label c is in one of S states, s = S c + h with h = 0, …, S − 1. A labeling s of states
has the labels y(s)_l = ⌊s_l / S⌋. The labels are observed, the states are not. States have the
weights, and pairs of states the transitions, that labels have in chains without hidden states:

.. code-block:: text

    H_i(w) = 1/n max_s { Δ(y_i, y(s)) + ⟨w, ϕ(x_i, s) − ϕ(x_i, s_i)⟩ },     y(s_i) = y_i

This is the convex problem of a chain of K S labels whose loss matrix is 0 between states of one
label, so that Viterbi's program is the oracle. An outer loop chooses the states s_i of the examples
anew, by the same program over the labelings that have the observed labels:

.. code-block:: text

    s_i ← argmax { ⟨w, ϕ(x_i, s)⟩ : y(s) = y_i }

This can only lower P at w. Since each convex problem starts there, the objective never rises:

.. code-block:: text

    J(w) = λ/2 ‖w‖² + 1/n Σ_i [ max_s { Δ(y_i, y(s)) + ⟨w, ϕ(x_i, s)⟩ }
                                − max { ⟨w, ϕ(x_i, s)⟩ : y(s) = y_i } ]

The prediction is y(s), the labels of the best s. The oracle is exact. With S = 1, it is `viterbi`.

============  ==================================================================================
``start``     the states of the first round
============  ==================================================================================
``clusters``  for each label, k-means of the features of its parts, from ``seed``
``random``    drawn from ``seed``
============  ==================================================================================

No start has all parts of a label in the same state: a state without parts gets no weights, and is
never chosen.

References
----------
D. Ramanan: Dual coordinate solvers for large-scale structural SVMs. arXiv:1312.1743, 2013.
C.-N. Yu, T. Joachims: Learning structural SVMs with latent variables. ICML 2009.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.state import array, expect
from ssvm_bench.config.validation import Count, Natural, one_of
from ssvm_bench.datasets.arrays import MOST_LABELS
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.labeling import LabelingOracle, maximise
from ssvm_bench.oracles.options import ClassesConfig
from ssvm_bench.oracles.scoring import labeling_score, longest, scratch, unary_scores
from ssvm_bench.oracles.viterbi import Viterbi, with_scratch

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

STARTS = CLUSTERS, RANDOM = ("clusters", "random")


@dataclass(frozen=True)
class Config(ClassesConfig):
    """Options of the oracle.

    Attributes
    ----------
    states : int
        S, the hidden states of each label.
    start : str
        The states of the examples at first: ``clusters`` or ``random``.
    seed : int
        Of the start.
    """

    structures: ClassVar[tuple[str, ...]] = ("chain",)
    has_expectations: ClassVar[bool] = True
    has_latent: ClassVar[bool] = True

    states: Count = 2
    start: Annotated[str, one_of(STARTS)] = CLUSTERS
    seed: Natural = 0


class LatentChainOracle(LabelingOracle):
    """The oracle, whose labelings are states; its truth has the present states of the examples.

    Parameters
    ----------
    compiled : Viterbi
        The compiled oracle of the states.
    loss_matrix : ndarray of float64, shape (K, K), optional
        Δ of the labels.
    states : int
        S.
    """

    def __init__(self, compiled: Viterbi, loss_matrix: np.ndarray | None, states: int) -> None:
        super().__init__(compiled, loss_matrix)
        self.states = states

    def latent(self) -> np.ndarray:
        """Return 1 + the state of each part, int64."""
        return self.features.truth.astype(np.int64) + 1

    def update_latent(self, w: np.ndarray) -> tuple[LatentChainOracle, int]:
        """Return the oracle with the best states of the labels at w, and how many changed."""
        best = self.features.truth.copy()
        _impute(self.compiled, self.pack(w), self.states, best, longest(self.features))
        changes = int(np.count_nonzero(best != self.features.truth))
        return self.with_latent(best.astype(np.int64) + 1), changes

    def with_latent(self, values: np.ndarray) -> LatentChainOracle:
        """Return the oracle with other states of the same labels."""
        truth = self.features.truth
        array(self.latent(), values, truth.shape)
        same = (values > 0).all() and ((values - 1) // self.states == truth // self.states).all()
        expect(bool(same), "has states of other labels")
        features = self.features._replace(truth=(values - 1).astype(truth.dtype))
        compiled = self.compiled._replace(features=features)
        made = LatentChainOracle(compiled, self.loss_matrix, self.states)
        made.caller = self.caller
        return made

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return the labels of the best states."""
        return super().predictions(w) // self.states

    def losses_of_parts(self, w: np.ndarray) -> np.ndarray:
        """Return Δ of the observed and the predicted label of every part."""
        return self._lost(self.features.truth // self.states, self.predictions(w))


def build(config: Config, dataset: Dataset) -> LatentChainOracle:
    """Return the oracle of a dataset whose examples are chains.

    Raises
    ------
    ConfigError
        If the dataset's labels do not form chains, or have too many states.
    """
    config.check_structure(dataset)
    S, K = config.states, dataset.n_labels
    if S * K > MOST_LABELS:
        raise ConfigError(
            f"oracle.states={S} for each of the {K} labels of {dataset.name} are more than "
            f"{MOST_LABELS} states. Use fewer."
        )
    weights, losses = config.part_weights(dataset), config.loss_matrix(dataset)
    check_room(
        16.0 * (S * K) ** 2,  # of labels, and of states
        f"The losses of all pairs of {S * K} states",
        "Use fewer states or labels.",
    )
    of_labels = 1.0 - np.eye(K) if losses is None else losses
    y = dataset.y.astype(np.int64) * S + _start(config, dataset)
    features = joint_features.build(
        dataset.derived(y=y, n_labels=S * K),
        weights=weights,
        losses=np.kron(of_labels, np.ones((S, S))),
    )
    return LatentChainOracle(with_scratch(features), losses, S)


def _start(config: Config, dataset: Dataset) -> np.ndarray:
    """Return h of every part in the first round."""
    if config.start == RANDOM:
        return np.random.RandomState(config.seed).randint(config.states, size=dataset.y.size)
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    found = np.zeros(dataset.y.size, np.int64)
    for label in range(dataset.n_labels if config.states > 1 else 0):
        parts = np.flatnonzero(dataset.y == label)
        if parts.size:
            clusters = KMeans(min(config.states, parts.size), n_init=1, random_state=config.seed)
            with warnings.catch_warnings():  # about fewer different points than clusters
                warnings.simplefilter("ignore", ConvergenceWarning)
                found[parts] = clusters.fit(dataset.x[parts]).labels_
    return found


@allocating_kernel
def _impute(oracle, w, states, best, most):
    """Write the best states with the labels of the present ones, which stay if none are better.

    Parameters
    ----------
    oracle : Viterbi
        Its truth has the present states.
    w : ndarray of float64, shape (inner_d,)
    states : int
        S.
    best : ndarray, shape (parts,)
        At first, the present states.
    most : int
        The largest number of parts of an example.
    """
    features = oracle.features
    theta, y, _, _ = scratch(features, most)
    for i in range(features.offsets.size - 1):
        first, end = features.offsets[i], features.offsets[i + 1]
        truth = features.truth[first:end]
        unary_scores(features, w, i, theta)
        present = labeling_score(features, w, i, theta, truth)
        for l in range(truth.size):
            for s in range(features.n_labels):
                if s // states != truth[l] // states:
                    theta[l, s] = -np.inf
        maximise(oracle, w, i, theta, 0.0, y)
        if labeling_score(features, w, i, theta, y) > present:
            best[first:end] = y[: truth.size]
