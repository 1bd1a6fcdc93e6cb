"""The approximate passes of an outer iteration, and the rule that ends them (MP-BCFW, section 3.4).

After each pass, its increase of F per second is compared with that of the iteration so far, from
the start of the exact pass; if it is lower, the iteration ends.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.solvers.block.visits import Visits


class PlainPasses:
    """Passes over the working sets, as Algorithm 3 has them.

    Parameters
    ----------
    phi : DualIterate
    visits : Visits
        What is done at a term.
    """

    def __init__(self, phi: DualIterate, visits: Visits) -> None:
        self.phi = phi
        self.visits = visits

    def do(self, number: int, order: np.ndarray, clock: Clock) -> float:
        """Do pass ``number`` of an iteration, counted from 0, over the terms in ``order``.

        Returns
        -------
        float
            F after it.
        """
        self.phi.approximate_pass(self.visits.policy, order, clock)
        return self.phi.dual()

    @property
    def judged(self) -> bool:
        """Whether the rule that ends the passes is to be asked after the last one."""
        return True

    def end(self) -> None:
        """Do what is left to do after the last pass of an iteration."""

    def go_on(self, lam: float) -> None:
        """Begin with another λ."""


class SlopeRule:
    """The rule that ends approximate passes.

    Parameters
    ----------
    now, dual : float
        Clock and F at the start of the outer iteration.
    """

    def __init__(self, now: float, dual: float) -> None:
        self._start = now, dual

    def begin(self, now: float, dual: float) -> None:
        """Take note of clock and F before the first approximate pass."""
        self._last = now, dual

    def pays(self, now: float, dual: float) -> bool:
        """Tell whether the passes since the last time have paid; take note of where they end."""
        (start, dual_before), (before, last) = self._start, self._last
        self._last = now, dual
        # slopes, compared without dividing by what a coarse clock may call zero
        return (dual - last) * (now - start) > (dual - dual_before) * (now - before)
