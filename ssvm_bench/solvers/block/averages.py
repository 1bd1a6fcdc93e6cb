"""Averages of the iterates of a block solver: over exact and over approximate steps.

.. code-block:: text

    φ̄ = φ − Z/W_k        Σ_{t≤k} φ^(t) = k φ − Z,  if all weights are equal

=============  =============================================================================
``averaging``  after k iterates
=============  =============================================================================
weighted       2/(k(k+1)) Σ_t t φ^(t)                           (MP-BCFW, section 3.5)
tail           the mean of φ^(t) over the second half of the passes
=============  =============================================================================

Z is kept by sparse updates (:mod:`ssvm_bench.planes.dual_iterate`). A pass is an outer iteration;
after many passes, the tail begins at most 1/64 of them before the half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ssvm_bench.base.linalg import best_interpolation
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.planes.dual_iterate import Average, no_average

if TYPE_CHECKING:
    from ssvm_bench.planes.dual_iterate import DualIterate

AVERAGING = WEIGHTED, TAIL = ("weighted", "tail")

STEPS = ("exact", "approximate")
"""Kinds of steps; each has its own average."""

_MOST_SUMS = 128
"""Most sums that a tail keeps: it begins at most k/64 before k/2."""


class Averages(Stateful):
    """The averages over exact and over approximate steps, or none.

    Parameters
    ----------
    phi : DualIterate
        The iterate to average.
    wanted : bool
        Whether to keep averages; else the iterate itself is reported.
    tail : bool
        Whether the averages are means over the second half of the passes.

    Attributes
    ----------
    exact, approximate : Average
    """

    STATE = ("exact", "approximate", "_tails")

    def __init__(self, phi: DualIterate, wanted: bool, tail: bool = False) -> None:
        self.phi = phi
        self.wanted = wanted
        self.tail = wanted and tail
        self.restart()

    def restart(self) -> None:
        """Begin both averages anew, at the next iterate."""
        size = self.phi.w.size if self.wanted else 0
        self.exact, self.approximate = (no_average(size, self.tail) for _ in range(2))
        of_sums = size + 1 if self.tail else 0
        self._tails = Tail(of_sums), Tail(of_sums)

    @contextmanager
    def of_steps(self, exact: bool) -> Iterator[None]:
        """Add each step of the block to its kind's average; update the other average once."""
        mine, other = self.exact, self.approximate
        if not exact:
            mine, other = other, mine
        w, offset = self.phi.w.copy() if self.wanted else None, self.phi.offset
        self.phi.set(average=mine)
        yield
        if w is not None:  # the other average has the same weight for all steps
            weight = _weight(other)
            other.z[:] += weight * (self.phi.w - w)
            other.offset[0] += weight * (self.phi.offset - offset)

    def end_of_pass(self) -> None:
        """Record the end of a pass, where the tail may begin."""
        if self.tail:
            for _, tail, average in self._kept():
                tail.end_of_pass(int(average.k[0]), self._sum(average))

    def best(self) -> tuple[np.ndarray, float]:
        """Return w and φ∘ of the best interpolation of the averages, or of the latest iterate."""
        phi, averages = self.phi, [*self.each().values()]
        if not averages:
            return phi.outer_w(), phi.offset
        problem = phi.problem
        metric = problem.oracle.metric
        return best_interpolation(problem.lam, averages[0], averages[-1], metric)

    def each(self) -> dict[str, tuple[np.ndarray, float]]:
        """Return kind of steps → w and φ∘, for each average that has steps."""
        return {steps: self._mean(tail, average) for steps, tail, average in self._kept()}

    def _kept(self) -> list[tuple[str, Tail, Average]]:
        """Return kind, tail and average of exact and of approximate steps, if there were any."""
        both = zip(STEPS, self._tails, (self.exact, self.approximate), strict=True)
        return [(steps, tail, average) for steps, tail, average in both if average.k[0] > 0]

    def _mean(self, tail: Tail, average: Average) -> tuple[np.ndarray, float]:
        """Return w and φ∘ of an average."""
        if self.tail:
            mean = tail.mean(int(average.k[0]), self._sum(average))
            w, offset = mean[:-1], float(mean[-1])
        else:
            weight = _weight(average)
            w = self.phi.w - average.z / weight
            offset = self.phi.offset - float(average.offset[0]) / weight
        return self.phi.outer(w), offset

    def _sum(self, average: Average) -> np.ndarray:
        """Return the sum of all iterates of an average: w, followed by φ∘."""
        k = float(average.k[0])
        return np.append(k * self.phi.w - average.z, k * self.phi.offset - average.offset[0])


def _weight(average: Average) -> float:
    """Return W_k: k(k + 1)/2, or k for a plain mean."""
    k = float(average.k[0])
    return k if average.plain else 0.5 * k * (k + 1.0)


class Tail(Stateful):
    """The mean over the second half of a sequence, from its partial sums at the ends of passes.

    .. code-block:: text

        (S_k − S_b)/(k − b)        S_k = Σ_{t≤k} x_t,    b the last end of a pass with 2b ≤ k

    If there are many passes, only the sums of every second, fourth, … one are kept.

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
    LIMITS: ClassVar[Mapping[str, Limits]] = {
        "stride": Limits(least=1),
        "steps": Limits(size=..., of=lambda found, _: found["steps"][:1], equals=(0,)),
        "sums": Limits(
            size=lambda found, tail: (found["steps"].size, tail.sums[0][1].size),
        ),
    }

    def __init__(self, size: int) -> None:
        self.sums = [(0, np.zeros(size))]
        self.stride, self._passes = 1, 0

    def _stored(self) -> dict[str, Any]:
        """Return the counts, and the sums as rows of an array."""
        steps, sums = zip(*self.sums, strict=True)
        return {**super()._stored(), "steps": np.array(steps, np.int64), "sums": np.array(sums)}

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        super()._rebuild(found)
        self.sums = list(zip(found["steps"].tolist(), found["sums"], strict=True))

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
