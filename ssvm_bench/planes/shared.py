"""The state that all visits of a pass share: φ, and the average of iterates.

=================  ========================================================================
symbol             name
=================  ========================================================================
φ = [φ⋆ φ∘]        ``State.w`` = −φ⋆/λ, ``State.offset``
λ                  ``State.lam``
Z, Z∘, k           ``Average``: φ̄ = φ − Z/W_k with W_k = k(k+1)/2, or k in a plain mean
=================  ========================================================================

If the last weights must not be negative (`Oracle.nonnegative`), the constraint is one more block,
whose planes are rays. With its multipliers μ ≥ 0, w = (μ − φ⋆)/λ. The best μ for any φ,

.. code-block:: text

    μ = max(φ⋆, 0)        w = max(−φ⋆/λ, 0)        F(φ) = −λ/2 ‖w‖² + φ∘        on these weights

is set after every step (Ramanan 2013, equation 41). A step on φ^i keeps μ fixed. So it is a step of
the problem without the constraint, and F ascends; the step on μ ascends, too. As ⟨μ, w⟩ = 0, the
gap has the formula without the constraint, P(w) − F = Σ_i (H_i(w) − ⟨φ^i, [w 1]⟩).

The average of the iterates (MP-BCFW, section 3.5), φ̄^(k) = 2/(k(k+1)) Σ_t t φ^(t), is computed
from Z = Σ_t W_{t−1} (φ^(t) − φ^(t−1)): a change of φ after t averaged iterates is added to Z with
the weight W_t. So an average costs one more sparse update per step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import kernel

# mypy: disable-error-code="no-untyped-def"


class Average(NamedTuple):
    """An average of the iterates.

    Attributes
    ----------
    z : ndarray of float64, shape (D,)
        Z⋆ in the units of w, −Z⋆/λ; of shape (0,) if no average is kept.
    offset : ndarray of float64, shape (1,)
        Z∘.
    k : ndarray of int64, shape (1,)
        Number of averaged iterates.
    plain : bool
        Whether all iterates have the same weight; else the t-th has weight t.
    """

    z: np.ndarray
    offset: np.ndarray
    k: np.ndarray
    plain: bool = False


AT_W = np.zeros(0)


class State(NamedTuple):
    """φ, as all visits of a pass see and change it.

    Attributes
    ----------
    w : ndarray of float64, shape (D,)
        −φ⋆/λ, in the storage's layout.
    offset : ndarray of float64, shape (1,)
        φ∘.
    steps : ndarray of int64, shape (1,)
        Steps so far.
    average : Average
        The average that the steps of the pass update.
    lam : float
        λ.
    line_search : bool
        Whether steps use line search; else their length is 2n/(k + 2n) after k steps.
    now : int
        Number of the outer iteration.
    query : ndarray of float64, shape (D,)
        The w at which exact passes call the oracle, in the storage's layout: (1 − ``in_out``) w +
        ``in_out`` c with a centre c. Of shape (0,) if they call it at w itself.
    in_out : float
        Weight of the centre.
    multiplier : ndarray of float64, shape (weights that must not be negative,)
        μ, for the last weights.
    """

    w: np.ndarray
    offset: np.ndarray
    steps: np.ndarray
    average: Average
    lam: float
    line_search: bool = True
    now: int = 0
    query: np.ndarray = AT_W
    in_out: float = 0.0
    multiplier: np.ndarray = AT_W


def no_average(size: int = 0, plain: bool = False) -> Average:
    """Return an average of no iterates yet; of size 0 for passes that keep no average."""
    return Average(np.zeros(size), np.zeros(1), np.zeros(1, np.int64), plain)


def at_zero(D: int, lam: float, nonnegative: int = 0) -> State:
    """Return φ = 0, with D weights in the storage's layout, the last ``nonnegative`` ≥ 0."""
    zero = np.zeros(D), np.zeros(1), np.zeros(1, np.int64)
    return State(*zero, no_average(), lam, multiplier=np.zeros(nonnegative))


@kernel
def set_multiplier(state, weight):
    """Set μ to its best value, and w with it; the change enters the average with this weight."""
    mu, w, average = state.multiplier, state.w, state.average
    first = w.size - mu.size
    for k in range(mu.size):
        v = w[first + k] - mu[k] / state.lam
        change = max(v, 0.0) - w[first + k]
        w[first + k] = max(v, 0.0)
        mu[k] = max(-state.lam * v, 0.0)
        if average.z.size > 0:
            average.z[first + k] += weight * change
        if state.query.size > 0:  # a mean of two non-negative w, up to rounding
            moved = state.query[first + k] + (1.0 - state.in_out) * change
            state.query[first + k] = max(moved, 0.0)
