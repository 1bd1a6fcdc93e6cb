"""Averages of the iterates of a block solver: over exact and over approximate steps.

.. code-block:: text

    φ̄ = φ − Z/W_k        Σ_{t≤k} φ^(t) = k φ − Z,  where all weigh the same

=============  =============================================================================
``averaging``  after k iterates
=============  =============================================================================
weighted       2/(k(k+1)) Σ_t t φ^(t)                           (MP-BCFW, section 3.5)
tail           the mean of φ^(t) over the second half of the passes
=============  =============================================================================

How Z is kept by sparse updates: :mod:`ssvm_bench.planes.dual_iterate`. A pass is an outer
iteration; where there are many, the tail begins 1/64 before the half at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ssvm_bench.base.linalg import best_interpolation
from ssvm_bench.base.state import Stateful
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.shared import Average, no_average
from ssvm_bench.solvers.tail import Tail

AVERAGING = WEIGHTED, TAIL = ("weighted", "tail")

STEPS = ("exact", "approximate")
"""What an average is of."""


class Averages(Stateful):
    """Both averages, or none.

    Parameters
    ----------
    phi : DualIterate
        Whose averages.
    wanted : bool
        Without, the iterate itself is reported, and nothing is kept.
    tail : bool
        Whether they are means over the second half of the passes.

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
        """Let the block's steps enter their average one by one, and the other one in one go."""
        mine, other = self.exact, self.approximate
        if not exact:
            mine, other = other, mine
        w, offset = self.phi.w.copy() if self.wanted else None, self.phi.offset
        self.phi.set(average=mine)
        yield
        if w is not None:  # the other one has the same weight for all of them
            weight = _weight(other)
            other.z[:] += weight * (self.phi.w - w)
            other.offset[0] += weight * (self.phi.offset - offset)

    def end_of_pass(self) -> None:
        """Take note of where a pass ends: there the tail may begin."""
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
        """Return w and φ∘ of each average that there is, by the kind of its steps."""
        return {steps: self._mean(tail, average) for steps, tail, average in self._kept()}

    def _kept(self) -> list[tuple[str, Tail, Average]]:
        """Return what is of exact and what is of approximate steps, where there were any."""
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
        """Return the sum of all iterates that enter a mean, w and behind it φ∘."""
        k = float(average.k[0])
        return np.append(k * self.phi.w - average.z, k * self.phi.offset - average.offset[0])


def _weight(average: Average) -> float:
    """Return W_k: k(k + 1)/2, or k in a plain mean."""
    k = float(average.k[0])
    return k if average.plain else 0.5 * k * (k + 1.0)
