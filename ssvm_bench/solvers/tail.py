"""The mean over the second half of a sequence, from sums over its beginnings.

.. code-block:: text

    (S_k − S_b)/(k − b)        S_k = Σ_{t≤k} x_t,    b the last end of a pass with 2b ≤ k
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.state import Stateful, expect, parts_like

_MOST_SUMS = 128
"""Sums that are kept: the tail begins 1/64 before the half at most."""


class Tail(Stateful):
    """The sums at the ends of passes; where there are many, of every second, fourth, … one.

    Parameters
    ----------
    size : int
        Entries of a sum.

    Attributes
    ----------
    sums : list
        k and S_k.
    stride : int
        Passes from one to the next.
    """

    STATE = ("stride", "_passes")

    def __init__(self, size: int) -> None:
        self.sums = [(0, np.zeros(size))]
        self.stride, self._passes = 1, 0

    def state(self) -> dict[str, Any]:
        """Return the sums as rows, and counts."""
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
