"""Approximate passes on nearby problems that are easier, with extrapolation (Catalyst).

Passes slow down where λ is small against the curvature of the terms: each step of one block undoes
some of the others'. Adding a quadratic around a centre z,

.. code-block:: text

    P_z(w) = P(w) + κ/2 ‖w − z‖²        w̃ = argmin over w for fixed φ = (λ w + κ z)/(λ + κ)

makes a problem with the same planes, whose block steps are those of
:mod:`ssvm_bench.solvers.block.kernels` at w̃ and λ + κ. One pass on P_z replaces one on P; then the
centre moves on beyond the new w̃, as in accelerated proximal point methods, with q = λ/(λ + κ):

.. code-block:: text

    z ← w̃ + β (w̃ − w̃ of the pass before)        β = (1 − √q)/(1 + √q)

F still belongs to P. A pass on P_z can lower it: then the extrapolation begins anew and κ is
halved, and by and by it grows back.

Sources: Lin, Mairal and Harchaoui, *A universal catalyst for first-order optimization*, NeurIPS
2015, Algorithm 1; Shalev-Shwartz and Zhang, *Accelerated proximal stochastic dual coordinate
ascent for regularized loss minimization*, ICML 2014, for dual block steps; O'Donoghue and Candès,
*Adaptive restart for accelerated gradient schemes*, 2015, for beginning anew.
"""

from __future__ import annotations

import math

import numpy as np

_GROWTH = 1.2


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
        self._centre = self._last = np.zeros(0)

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
        w *= self.lam
        w += self.kappa * self._centre
        w /= self.lam + self.kappa
        return self.lam + self.kappa

    def leave(self, w: np.ndarray) -> None:
        """Turn w̃ back into w, in place, and let the centre move on."""
        root = math.sqrt(self.lam / (self.lam + self.kappa))
        beta = (1.0 - root) / (1.0 + root)
        tilde = w.copy()
        w *= self.lam + self.kappa
        w -= self.kappa * self._centre
        w /= self.lam
        self._centre = tilde + beta * (tilde - self._last)
        self._last = tilde

    def _anew(self, w: np.ndarray) -> None:
        self._centre = self._last = w.copy()
