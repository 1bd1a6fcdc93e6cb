"""Approximate passes on nearby problems that are easier, with extrapolation (Catalyst).

Passes slow down where λ is small against the curvature of the terms: each step of one block undoes
some of the others'. Adding a quadratic around a centre z,

.. code-block:: text

    P_z(w) = P(w) + κ/2 ‖w − z‖²        w̃ = argmin over w for fixed φ = (λ w + κ z)/(λ + κ)

makes a problem with the same planes, whose block steps are those of
:mod:`ssvm_bench.solvers.block.steps` at w̃ and λ + κ. One pass on P_z replaces one on P; then the
centre moves on beyond the new w̃, as in accelerated proximal point methods, with q = λ/(λ + κ):

.. code-block:: text

    z ← w̃ + β (w̃ − w̃ of the pass before)        β = (1 − √q)/(1 + √q)

F still belongs to P. A pass on P_z can lower it: then the extrapolation begins anew and κ is
halved, and by and by it grows back. The passes of an iteration that have lowered F all in all are
undone.

Sources: Lin, Mairal and Harchaoui, *A universal catalyst for first-order optimization*, NeurIPS
2015, Algorithm 1; Shalev-Shwartz and Zhang, *Accelerated proximal stochastic dual coordinate
ascent for regularized loss minimization*, ICML 2014, for dual block steps; O'Donoghue and Candès,
*Adaptive restart for accelerated gradient schemes*, 2015, for beginning anew.
"""

from __future__ import annotations

import math

import numpy as np

from ssvm_bench.clock import Clock
from ssvm_bench.jit import kernel
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.solvers.block.approximate_passes import PlainPasses
from ssvm_bench.solvers.block.visits import SeveralStepVisits

# mypy: disable-error-code="no-untyped-def"

_GROWTH = 1.2

_LEAST_KAPPA = 0.01
"""Below so many λ, passes that lower F are not accelerated ones gone astray, but at their end."""


class Acceleration:
    """κ, z and the last w̃.

    Parameters
    ----------
    lam : float
        λ.
    most : float
        Largest κ/λ; 0 stands for no acceleration at all.

    Attributes
    ----------
    kappa : float
        κ.
    """

    def __init__(self, lam: float, most: float) -> None:
        self.lam = lam
        self.most = most * lam
        self.kappa = self.most
        self._failed = False
        self._centre, self._last = np.zeros(0), np.zeros(0)
        nothing = np.zeros(0)  # kernels that the one approximate pass of a warm-up does not reach
        self.enter(nothing)
        self.leave(nothing)

    def begin(self, w: np.ndarray) -> None:
        """Begin an iteration's passes at w."""
        if not self._failed:
            self.kappa = min(self.most, _GROWTH * self.kappa)
        self._failed = False
        self._anew(w)

    def fail(self, w: np.ndarray) -> None:
        """Begin anew at w, with half of κ."""
        self._failed = True
        self.kappa /= 2.0
        self._anew(w)

    def enter(self, w: np.ndarray) -> float:
        """Turn w into w̃, in place, and return λ + κ."""
        _enter(w, self._centre, self.lam, self.kappa)
        return self.lam + self.kappa

    def leave(self, w: np.ndarray) -> None:
        """Turn w̃ back into w, in place, and let the centre move on."""
        root = math.sqrt(self.lam / (self.lam + self.kappa))
        beta = (1.0 - root) / (1.0 + root)
        _leave(w, self._centre, self._last, self.lam, self.kappa, beta)

    def end(self) -> None:
        """End an iteration's passes: nothing of them is needed any more, and it takes memory."""
        self._centre, self._last = np.zeros(0), np.zeros(0)

    def _anew(self, w: np.ndarray) -> None:
        self._centre, self._last = w.copy(), w.copy()


@kernel
def _enter(w, centre, lam, kappa):
    """Let w be w̃; all in one go, since with many features vectors are larger than caches."""
    for k in range(w.size):
        w[k] = (w[k] * lam + kappa * centre[k]) / (lam + kappa)


@kernel
def _leave(w, centre, last, lam, kappa, beta):
    """Let w̃ be w again, the centre move on, and w̃ be the last one."""
    for k in range(w.size):
        tilde = w[k]
        w[k] = (tilde * (lam + kappa) - kappa * centre[k]) / lam
        centre[k] = tilde + beta * (tilde - last[k])
        last[k] = tilde


class AcceleratedPasses(PlainPasses):
    """Approximate passes, accelerated but for the first of an iteration.

    Parameters
    ----------
    phi : DualIterate
    visits : SeveralStepVisits
    kappa : float
        Largest κ/λ.
    """

    def __init__(self, phi: DualIterate, visits: SeveralStepVisits, kappa: float) -> None:
        super().__init__(phi, visits)
        self.visits: SeveralStepVisits = visits
        self.acceleration = Acceleration(phi.problem.lam, kappa)
        self._most = kappa
        self._saved: list[np.ndarray] = []
        self._saved_dual = -math.inf

    def do(self, number: int, order: np.ndarray, clock: Clock) -> None:
        """Do pass ``number`` of an iteration, counted from 0, over the terms in ``order``."""
        if number == 0:
            super().do(number, order, clock)
            return
        state = self.phi.state
        w, average = state.w, state.average
        if number == 1:
            self.acceleration.begin(w)
            self._saved = [array.copy() for array in self._changing()]
            self._saved_dual = self.phi.dual()
        z = average.z.copy()
        lam = self.acceleration.enter(w)
        # what has been saved must stay, so that no plane is dropped
        self.phi.approximate_pass(self.visits.without_drops(), order, clock, lam)
        self.acceleration.leave(w)
        average.z[:] = z + (lam / state.lam) * (average.z - z)  # in units of w, not of w̃

    def tries_again(self, gain: float) -> bool:
        """Begin anew after an accelerated pass that lowered F; tell whether that makes sense."""
        if gain >= 0 or self.acceleration.kappa < _LEAST_KAPPA * self.phi.problem.lam:
            return False
        self.acceleration.fail(self.phi.state.w)
        return True

    def end(self) -> None:
        """Undo the accelerated passes of an iteration if they have lowered F all in all."""
        if self._saved and self.phi.dual() < self._saved_dual:
            for array, saved in zip(self._changing(), self._saved, strict=True):
                array[:] = saved
        self._saved = []
        self.acceleration.end()

    def go_on(self, lam: float) -> None:
        """Begin with another λ."""
        self.acceleration = Acceleration(lam, self._most)

    def _changing(self) -> list[np.ndarray]:
        return [*self.phi.changing(), *self.visits.changing()]
