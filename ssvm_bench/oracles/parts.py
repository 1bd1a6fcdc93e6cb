"""What all oracles over labels of parts share: examples in one layout, truth, features and loss.

A subclass brings the maximisation, and the sum of the maximising planes over some terms. Loss:
normalised Hamming, 0/1 for examples of one part; or what the features say.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.interrupts import checkpoint
from ssvm_bench.base.jit import kernel
from ssvm_bench.oracles import checks, joint_features
from ssvm_bench.oracles.base import Oracle, Risk
from ssvm_bench.oracles.scoring import hamming_loss, labeling_loss

# mypy: disable-error-code="no-untyped-def"


class PartsOracle(Oracle):
    """A max-oracle over labelings of the parts of examples.

    Attributes
    ----------
    features : JointFeatures or SignedFeatures
        The examples.

    Raises
    ------
    RunFailedError
        If their arrays contradict each other, which only those can that `build` has not made.
    """

    def __init__(self, features: Any) -> None:
        if not joint_features.is_consistent(features):
            raise RunFailedError(
                f"The oracle {type(self).__name__} cannot be used: the arrays do not fit together "
                f"in its {type(features).__name__}. Let the build of its module make them."
            )
        self.features = features
        self.n = features.offsets.size - 1
        self._parts: list[int] = np.diff(features.offsets).tolist()  # quick to look up
        self.d = joint_features.dimension(features)

    @abstractmethod
    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return the labeling with the highest score, as far as the oracle is exact.

        Parameters
        ----------
        w : ndarray of float64, shape (d,)
        i : int
            The example.
        augmented : bool
            Whether the score has the loss in it. If not, it is a prediction that is wanted, and
            the ground truth must not be looked at.
        """

    @abstractmethod
    def add_planes(
        self, w: np.ndarray, with_plane: bool, begin: int, end: int, star: np.ndarray
    ) -> tuple[float, float]:
        """Return n H(w) and n φ̂∘ over the terms ``begin … end − 1``; add n φ̂⋆ to ``star``.

        ``star`` is in the inner layout, and stays as it is without ``with_plane``.
        """

    def truth(self, i: int) -> np.ndarray:
        """Return y_i."""
        return self.features.truth[self.features.offsets[i] : self.features.offsets[i + 1]]

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the loss-augmented labeling."""
        return self._checked(self.labeling(w, i, augmented=True), i)

    def argmaxes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the `argmax` of each of some terms; what others answer is checked here, too."""
        found = super().argmaxes(w, terms)
        if self.caller is None:
            yield from found
        else:
            yield from (self._checked(y, i) for i, y in zip(terms, found, strict=True))

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the labeling by the score alone."""
        return self._checked(self.labeling(w, i, augmented=False), i)

    def _checked(self, y: np.ndarray, i: int) -> np.ndarray:
        checks.check_labeling(self, i, y, self._parts[i], self.features.n_labels)
        return y

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return the loss that is trained with."""
        return float(_loss(self.features, i, y))

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean share of wrong labels in an example, whatever they count in training."""
        total = 0.0
        for i in range(self.n):
            checkpoint()
            total += hamming_loss(self.features, i, self.predict(w, i))
        return total / self.n

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y) in the outer layout."""
        return joint_features.joint_feature(self.features, i, y)

    def risk(
        self, w: np.ndarray, with_plane: bool = True, begin: int = 0, end: int | None = None
    ) -> Risk:
        """Return H(w) and its maximising plane by one pass over the terms."""
        star = np.zeros(joint_features.inner_dimension(self.features))
        last = self.n if end is None else end
        value, offset = self.add_planes(w, with_plane, begin, last, star)
        plane = joint_features.unpack(self.features, star) if with_plane else np.zeros(self.d)
        if with_plane:
            plane /= self.n
        return Risk(value / self.n, plane, offset / self.n)


@kernel
def _loss(features, i, y):
    return labeling_loss(features, i, y)
