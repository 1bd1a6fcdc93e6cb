"""What is known of F, the dual, in closed form: the best point between two, and at another λ.

.. code-block:: text

    P(w) = λ/2 ‖w‖² + Σ_i H_i(w)            F(φ) = −‖φ⋆‖²/(2λ) + φ∘ = −λ/2 ‖w‖² + φ∘,  w = −φ⋆/λ

λ = 1/n unless set. P and F themselves are methods of :class:`ssvm_bench.oracles.base.Problem`. With
a Gaussian prior, w is what solvers see of it, ŵ (see :mod:`ssvm_bench.oracles.prior`).
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.linalg import line_search, rounded_once
from ssvm_bench.objective import Objective, Terms
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.prior import Prior

__all__ = ["Problem", "best_interpolation", "best_scale", "with_prior"]


def with_prior(terms: Terms, lam: float, prior: Prior) -> Objective:
    """Return the problem of ŵ for an oracle of w, λ, and a prior; other terms have no prior."""
    seen = prior.oracle(terms) if isinstance(terms, Oracle) else terms
    return seen.problem(lam / prior.scale)


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
