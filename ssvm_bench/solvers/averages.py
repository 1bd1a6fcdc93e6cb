"""Weighted averages of the iterates of block solvers (MP-BCFW, section 3.5).

.. code-block:: text

    φ̄^(k+1) = k/(k+2) φ̄^(k) + 2/(k+2) φ^(k+1)

There is one over the iterates after exact steps, and one over those after approximate steps; what
is reported is the point between the two with the highest dual value. The latest iterate's may be
higher still: both bound the optimum from below, and the larger one is the dual value reported. How
an average is kept by sparse updates is told in :mod:`ssvm_bench.planes.passes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ssvm_bench.oracles.base import best_interpolation
from ssvm_bench.planes.dual_iterate import DualIterate, no_average
from ssvm_bench.planes.passes import Average
from ssvm_bench.solvers.base import Iterate


class Averages:
    """Both averages, or none.

    Parameters
    ----------
    phi : DualIterate
        Whose averages.
    wanted : bool
        Without, the iterate itself is reported, and nothing is kept.

    Attributes
    ----------
    exact, approximate : Average
    """

    def __init__(self, phi: DualIterate, wanted: bool) -> None:
        self.phi = phi
        self.wanted = wanted
        self.restart()

    def restart(self) -> None:
        """Begin both averages anew, at the next iterate."""
        self.exact, self.approximate = self._new(), self._new()

    @contextmanager
    def of_exact_steps(self) -> Iterator[None]:
        """Let the block's steps enter the average over exact steps."""
        with self._entered(self.exact, self.approximate):
            yield

    @contextmanager
    def of_approximate_steps(self) -> Iterator[None]:
        """Let the block's steps enter the average over approximate steps."""
        with self._entered(self.approximate, self.exact):
            yield

    def reported(self) -> Iterate:
        """Return w of the best interpolation of the averages, or of the iterate; the best bound."""
        problem, (w, circ) = self.phi.problem, self._best()
        bound = problem.dual(w, circ)
        return Iterate(w, max(bound, problem.dual(*self._latest())) if self.wanted else bound)

    def diagnostics(self) -> dict[str, float]:
        """Return the average's own F, if averages are wanted."""
        return {"dual_of_average": self.phi.problem.dual(*self._best())} if self.wanted else {}

    def _latest(self) -> tuple[np.ndarray, float]:
        """Return w and φ∘ of the latest iterate, in the outer layout."""
        return self.phi.outer(self.phi.state.w), self.phi.circ

    def _best(self) -> tuple[np.ndarray, float]:
        """Return w and φ∘ of the best interpolation of the averages, or of the latest iterate."""
        phi, state, problem = self.phi, self.phi.state, self.phi.problem
        averages = [
            (phi.outer(state.w - average.z / weight), phi.circ - float(average.circ[0]) / weight)
            for average in (self.exact, self.approximate)
            if self.wanted and (weight := _weight(average)) > 0
        ]
        if not averages:
            return self._latest()
        return best_interpolation(problem, averages[0], averages[-1])

    def _new(self) -> Average:
        none = no_average()
        return none._replace(z=np.zeros_like(self.phi.state.w)) if self.wanted else none

    @contextmanager
    def _entered(self, mine: Average, other: Average) -> Iterator[None]:
        """Let the block's steps enter one average, and the other one in one go."""
        state = self.phi.state
        w, circ = state.w.copy() if self.wanted else None, self.phi.circ
        self.phi.set(average=mine)
        yield
        if w is not None:
            self._shift(other, w, circ)

    def _shift(self, average: Average, w: np.ndarray, circ: float) -> None:
        """Let an average know of all steps since φ was this, which have the same weight in it."""
        weight = _weight(average)
        average.z[:] += weight * (self.phi.state.w - w)
        average.circ[0] += weight * (self.phi.circ - circ)


def _weight(average: Average) -> float:
    """Return W_k = k(k + 1)/2."""
    return float(0.5 * average.k[0] * (average.k[0] + 1.0))
