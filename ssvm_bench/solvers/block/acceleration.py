"""Accelerated approximate passes: on easier nearby problems, with extrapolation (Catalyst).

Passes converge slowly if λ is small relative to the curvature of the terms: a step of one block
undoes part of the others' steps. Adding a quadratic around a centre z,

.. code-block:: text

    P_z(w) = P(w) + κ/2 ‖w − z‖²        w̃ = argmin over w for fixed φ = (λ w + κ z)/(λ + κ)

gives a problem with the same planes. Its block steps are those of
:mod:`ssvm_bench.solvers.block.mpbcfw` at w̃ and λ + κ. One pass on P_z replaces one on P. Then the
centre moves beyond the new w̃, as in accelerated proximal point methods, with q = λ/(λ + κ):

.. code-block:: text

    z ← w̃ + β (w̃ − w̃ of the pass before)        β = (1 − √q)/(1 + √q)

F is still the dual of P, at w = ((λ + κ) w̃ − κ z)/λ. A pass on P_z can lower F. Then the
extrapolation restarts and κ is halved; κ grows back in later iterations. The accelerated passes of
an iteration are undone if, in total, they have lowered F.

Sources: Lin, Mairal and Harchaoui, *A universal catalyst for first-order optimization*, NeurIPS
2015, Algorithm 1; Shalev-Shwartz and Zhang, *Accelerated proximal stochastic dual coordinate
ascent for regularized loss minimization*, ICML 2014, for dual block steps; O'Donoghue and Candès,
*Adaptive restart for accelerated gradient schemes*, 2015, for restarts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import kernel, prefetch
from ssvm_bench.base.nonzeros import Nonzeros, compact
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.planes.dual_iterate import everywhere, set_multiplier
from ssvm_bench.solvers.block.mpbcfw import PlainPasses
from ssvm_bench.solvers.block.several_steps import SeveralStepVisits

# mypy: disable-error-code="no-untyped-def"

_GROWTH = 1.2

_AHEAD = 32
"""Number of indices between the one prefetched and the one at which w changes."""

_LEAST_KAPPA = 0.01
"""κ/λ below which a pass that lowers F is the last: the acceleration is not the reason."""


_LARGE = 1 << 21
"""Numbers from which a copy takes more time than a search for those that are not 0."""


class Acceleration(Stateful):
    """κ, the centre z and the last w̃.

    Parameters
    ----------
    lam : float
        λ.
    most : float
        Largest κ/λ; 0: no acceleration.

    Attributes
    ----------
    kappa : float
        κ.
    """

    STATE = ("kappa", "_failed")  # between iterations
    LIMITS: ClassVar[Mapping[str, Limits]] = {"kappa": Limits(least=0.0, most="most")}

    def __init__(self, lam: float, most: float) -> None:
        self.lam = lam
        self.most = most * lam
        self.kappa = self.most
        self._failed = False
        nothing = np.zeros(0)
        self._begin(nothing, None)
        # compile the kernels that the one approximate pass of a warm-up does not call
        self.turn(nothing)
        self.leave(nothing)

    @property
    def tilde(self) -> float:
        """λ + κ, which takes the place of λ in a pass on w̃."""
        return self.lam + self.kappa

    def begin(self, w: np.ndarray, indices: np.ndarray | None = None) -> None:
        """Begin an iteration's passes at w, the first w̃, which stays 0 except at the indices.

        Parameters
        ----------
        w : ndarray of float64, shape (D,)
        indices : ndarray of uint32, or None
            Sorted; None: all.
        """
        if not self._failed:
            self.kappa = min(self.most, _GROWTH * self.kappa)
        self._failed = False
        self._begin(w, indices)

    def turn(self, w: np.ndarray) -> float:
        """After a pass on w̃, move the centre, and replace w by the next w̃, in place.

        Returns
        -------
        float
            ‖w‖² after the pass, of w, not of w̃.
        """
        root = math.sqrt(self.lam / self.tilde)
        beta = (1.0 - root) / (1.0 + root)
        indices, lam, kappa = _listed(self._indices), self.lam, self.kappa
        return float(_turn(w, indices, self._centre, self._last, lam, kappa, beta))

    def leave(self, w: np.ndarray) -> None:
        """Turn w̃ back into w, in place."""
        _leave(w, _listed(self._indices), self._centre, self.lam, self.kappa)

    def fail(self, w: np.ndarray) -> None:
        """Turn w̃ back into w, in place, and restart there with half of κ."""
        self.leave(w)
        self._failed = True
        self.kappa /= 2.0
        self._begin(w, self._indices)

    def end(self, w: np.ndarray) -> None:
        """End an iteration's passes: turn w̃ back into w, and free the memory."""
        self.leave(w)
        self._begin(np.zeros(0), None)

    def _begin(self, w: np.ndarray, indices: np.ndarray | None) -> None:
        """Set the centre and the last w̃ to w, at its indices."""
        self._indices = indices
        self._centre, self._last = at(w, indices), at(w, indices)


def at(w: np.ndarray, indices: np.ndarray | None) -> np.ndarray:
    """Return a copy of w at some indices, or all of it."""
    return w.copy() if indices is None else w[indices]


def _copied(array: np.ndarray) -> np.ndarray | Nonzeros:
    """Return a copy, flat; compact if it is large."""
    return array.flatten() if array.size < _LARGE else compact(array)


def _listed(indices: np.ndarray | None) -> np.ndarray:
    """Return the indices as an array; kernels do not read it if the centre is as large as w."""
    return np.zeros(0, np.uint32) if indices is None else indices


@kernel
def _turn(w, indices, centre, last, lam, kappa, beta):
    """Do `Acceleration.turn` in one loop: with many features, vectors are larger than caches."""
    norm2 = 0.0
    everywhere = centre.size == w.size
    last_place = centre.size - 1
    for s in range(centre.size):
        if not everywhere:
            prefetch(w, np.int64(indices[min(s + _AHEAD, last_place)]))
        k = s if everywhere else np.int64(indices[s])
        tilde = w[k]
        value = (tilde * (lam + kappa) - kappa * centre[s]) / lam
        norm2 += value * value
        centre[s] = tilde + beta * (tilde - last[s])
        last[s] = tilde
        w[k] = (value * lam + kappa * centre[s]) / (lam + kappa)
    return norm2


@kernel
def _leave(w, indices, centre, lam, kappa):
    everywhere = centre.size == w.size
    for s in range(centre.size):
        k = s if everywhere else np.int64(indices[s])
        w[k] = (w[k] * (lam + kappa) - kappa * centre[s]) / lam


class AcceleratedPasses(PlainPasses):
    """Approximate passes, accelerated except the first of an iteration.

    Between accelerated passes ``phi.shared.w`` is w̃, until `end`.

    Parameters
    ----------
    visits : SeveralStepVisits
    kappa : float
        Largest κ/λ.
    window : int
        Number of accelerated passes that are judged together: after a restart, an extrapolation
        takes some passes to become effective.

    Attributes
    ----------
    ended : bool
        Whether the last pass lowered F and another one would not help.
    """

    STATE = ("acceleration",)  # between iterations

    def __init__(self, visits: SeveralStepVisits, kappa: float, window: int = 1) -> None:
        super().__init__(visits)
        self.visits: SeveralStepVisits = visits
        self.acceleration = Acceleration(self.phi.problem.lam, kappa)
        self.ended = False
        self._most, self._window, self._since = kappa, window, 0
        self._dual = self._saved_dual = -math.inf
        self._saved: list[np.ndarray | Nonzeros] = []

    def do(self, number: int, order: np.ndarray, clock: Clock) -> float:
        """Do pass ``number`` of an iteration, counted from 0, over the terms in ``order``."""
        if number == 0:
            self.ended, self._since = False, self._window
            self._dual = super().do(number, order, clock)
            return self._dual
        state = self.phi.shared
        w, average = state.w, state.average
        if number == 1:
            self.acceleration.begin(w, self.phi.indices)
            self._saved = [at(w, self.phi.indices), *map(_copied, self._changing())]
            self._saved_dual = self._dual
        z = average.z.copy()
        lam = self.acceleration.tilde
        # no plane is dropped, so that what has been saved stays valid
        self.phi.approximate_pass(self.visits.policy._replace(T=sys.maxsize), order, clock, lam)
        norm2 = self.acceleration.turn(w)
        if self.phi.has_kernel:
            left = w.copy()
            self.acceleration.leave(left)
            norm2 = self.phi.squared_norm(left)
        dual = self.phi.dual(norm2)
        average.z[:] = z + (lam / state.lam) * (average.z - z)  # in units of w, not of w̃
        self._since = 1 if self.rule_applies else self._since + 1
        if dual < self._dual:
            self.ended = self.acceleration.kappa < _LEAST_KAPPA * state.lam
            if not self.ended:
                self.acceleration.fail(w)
                self._since = 0
        self._dual = dual
        return dual

    @property
    def rule_applies(self) -> bool:
        """Whether the gain of the last passes is to be judged now."""
        return self.ended or self._since >= self._window

    def end(self) -> None:
        """Undo the accelerated passes of an iteration if, in total, they have lowered F."""
        if self._saved:
            w, indices = self.phi.shared.w, self.phi.indices
            self.acceleration.end(w)
            k = float(self.phi.shared.average.k[0])
            plain = self.phi.shared.average.plain
            set_multiplier(self.phi.shared, k if plain else 0.5 * k * (k + 1.0))
            if self.phi.dual() < self._saved_dual:
                w[everywhere(indices)], *saved = self._saved
                for array, before in zip(self._changing(), saved, strict=True):
                    array.ravel()[:] = before
        self._saved = []

    def warm_start(self, lam: float) -> None:
        """Begin with another λ."""
        self.acceleration = Acceleration(lam, self._most)

    def _changing(self) -> list[np.ndarray]:
        return [*self.phi.changing(), *self.visits.changing()]
