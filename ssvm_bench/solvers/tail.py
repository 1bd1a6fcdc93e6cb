"""The mean over the second half of a sequence, from its partial sums.

.. code-block:: text

    (S_k − S_b)/(k − b)        S_k = Σ_{t≤k} x_t,    b the last end of a pass with 2b ≤ k
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.state import Stateful, expect, parts_like

_MOST_SUMS = 128
"""Most sums that are kept: the tail begins at most k/64 before k/2."""


class Tail(Stateful):
    """The sums at the ends of passes; if there are many, of every second, fourth, … pass.

    Parameters
    ----------
    size : int
        Number of entries of a sum.

    Attributes
    ----------
    sums : list
        Pairs of k and S_k.
    stride : int
        Number of passes from one sum to the next.
    """

    STATE = ("stride", "_passes")

    def __init__(self, size: int) -> None:
        self.sums = [(0, np.zeros(size))]
        self.stride, self._passes = 1, 0

    def state(self) -> dict[str, Any]:
        """Return the counts, and the sums as rows of an array."""
        steps, sums = zip(*self.sums, strict=True)
        return {**super().state(), "steps": np.array(steps, np.int64), "sums": np.array(sums)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        found = parts_like(self.state(), state, ("steps", "sums"))
        self.stride, self._passes, steps, sums = found.values()
        expect(sums.shape == (steps.size, self.sums[0][1].size), "has sums of another shape")
        expect(steps.size > 0 and steps[0] == 0, "does not begin with no step")
        expect(self.stride > 0, "has no stride")
        self.sums = list(zip(steps.tolist(), sums, strict=True))

    def end_of_pass(self, k: int, total: np.ndarray) -> None:
        """Record S_k, which is ``total``, at the end of a pass."""
        self._passes += 1
        if self._passes % self.stride == 0:
            self.sums.append((k, total))
            if len(self.sums) > _MOST_SUMS:
                self.sums = self.sums[::2]
                self.stride *= 2

    def mean(self, k: int, total: np.ndarray) -> np.ndarray:
        """Return the mean over the second half of k entries, whose S_k is ``total``."""
        begin, before = [pair for pair in self.sums if 2 * pair[0] <= k][-1]
        return (total - before) / (k - begin)
