"""The mean over the second half of a sequence, from sums over its beginnings.

.. code-block:: text

    (S_k − S_b)/(k − b)        S_k = Σ_{t≤k} x_t,    b the last end of a pass with 2b ≤ k
"""

from __future__ import annotations

import numpy as np

_MOST_SUMS = 128
"""Sums that are kept: the tail begins 1/64 before the half at most."""


class Tail:
    """The sums at the ends of passes; where there are many, of every second, fourth, … one.

    Attributes
    ----------
    sums : list
        k and S_k.
    stride : int
        Passes from one to the next.
    """

    def __init__(self) -> None:
        self.sums: list[tuple[int, np.ndarray | float]] = [(0, 0.0)]
        self.stride, self._passes = 1, 0

    def end_of_pass(self, k: int, total: np.ndarray) -> None:
        """Take note of S_k at the end of a pass."""
        self._passes += 1
        if self._passes % self.stride == 0:
            self.sums.append((k, total))
            if len(self.sums) > _MOST_SUMS:
                self.sums = self.sums[::2]
                self.stride *= 2

    def mean(self, k: int, total: np.ndarray) -> np.ndarray:
        """Return the mean over the second half of k, whose S_k is ``total``."""
        begin, before = [pair for pair in self.sums if 2 * pair[0] <= k][-1]
        return (total - before) / (k - begin)
