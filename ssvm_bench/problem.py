"""The problem that a solver solves: terms (dataset and oracle) and λ.

.. code-block:: text

    P(w) = λ/2 ‖w‖² + Σ_i H_i(w)            F(φ) = −‖φ⋆‖²/(2λ) + φ∘ = −λ/2 ‖w‖² + φ∘,  w = −φ⋆/λ

λ = 1/n unless set; H_i carries its 1/n (see :mod:`ssvm_bench.oracles.base`). With a Gaussian prior,
w is what solvers see of it, ŵ (see :mod:`ssvm_bench.oracles.prior`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.linalg import line_search, rounded_once
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Oracle, Risk
from ssvm_bench.oracles.prior import Prior


@dataclass(frozen=True)
class Problem:
    """The terms of one training problem and its λ.

    Attributes
    ----------
    oracle : Oracle
        The max-oracle of all terms.
    lam : float
        λ > 0.
    """

    oracle: Oracle
    lam: float

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.oracle.n

    @property
    def d(self) -> int:
        """Number of weights."""
        return self.oracle.d

    def primal(self, w: np.ndarray) -> float:
        """Return P(w), by n calls of the exact oracle."""
        return 0.5 * self.lam * float(w @ w) + self.risk(w, with_plane=False).value

    def risk(self, w: np.ndarray, **terms: Any) -> Risk:
        """Return what ``oracle.risk`` does, checked."""
        risk = self.oracle.risk(w, **terms)
        checks.check_risk(self.oracle, risk)
        return risk

    def dual(self, w: np.ndarray, circ: float) -> float:
        """Return F(φ) for φ⋆ = −λ w and φ∘ = ``circ``."""
        return circ - 0.5 * self.lam * float(w @ w)


def with_prior(oracle: Oracle, lam: float, prior: Prior) -> Problem:
    """Return the problem of ŵ for an oracle of w, λ, and a prior."""
    return Problem(prior.oracle(oracle), lam / prior.scale)


def best_interpolation(
    problem: Problem, one: tuple[np.ndarray, float], other: tuple[np.ndarray, float]
) -> tuple[np.ndarray, float]:
    """Return the point between two planes, as (w, φ∘), with the highest dual value.

    F is a concave parabola along the way, so that its maximum over [0, 1] has a closed form
    (Algorithm 1, step 5; MP-BCFW, section 3.5).
    """
    (w, circ), (w_other, circ_other) = one, other
    step, climb = w_other - w, circ_other - circ
    slope = climb - problem.lam * float(w @ step)
    curvature = problem.lam * float(step @ step)
    gamma = line_search(slope, curvature)
    return w + gamma * step, circ + gamma * climb


def best_scale(w: np.ndarray, circ: float, old: float, new: float) -> float:
    """Return the s in [0, 1] for which s φ has the highest dual value at a new λ.

    φ is given as ``w`` = −φ⋆/λ at the ``old`` λ, and ``circ`` = φ∘. All s φ are feasible: they lie
    between φ and the planes of the ground truth, which are 0. With the old λ's optimum, and a
    smaller λ, s w λ/λ_new is again about w.
    """
    return line_search(circ, old * old / new * rounded_once(w, w))
