"""What all visits of a pass share: φ, and what its steps enter.

=================  ========================================================================
symbol             name
=================  ========================================================================
φ = [φ⋆ φ∘]        ``State.w`` = −φ⋆/λ, ``State.offset``
λ                  ``State.lam``
Z, Z∘, k           ``Average``: φ̄ = φ − Z/W_k with W_k = k(k+1)/2, or k in a plain mean
=================  ========================================================================

Where the last weights must not be negative (`Oracle.nonnegative`), the constraint is one more
block, whose planes are rays: its multipliers μ ≥ 0 make w = (μ − φ⋆)/λ. Their best value for any φ,

.. code-block:: text

    μ = max(φ⋆, 0)        w = max(−φ⋆/λ, 0)        F(φ) = −λ/2 ‖w‖² + φ∘        on these weights

is set after every step (Ramanan 2013, equation 41). A step on φ^i keeps μ as it is, so that it is
that of the problem without the constraint, and ascends; so does the one on μ. As ⟨μ, w⟩ = 0, the
gap is what it is without the constraint, P(w) − F = Σ_i (H_i(w) − ⟨φ^i, [w 1]⟩).

The average of the iterates (MP-BCFW, section 3.5), φ̄^(k) = 2/(k(k+1)) Σ_t t φ^(t), is kept by
Z = Σ_t W_{t−1} (φ^(t) − φ^(t−1)): a change that comes after t averaged iterates enters Z with the
weight W_t. So an average costs one more sparse update per step.
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
        Z⋆ in the units of w, −Z⋆/λ; of shape (0,) where no average is wanted.
    offset : ndarray of float64, shape (1,)
        Z∘.
    k : ndarray of int64, shape (1,)
        Number of averaged iterates.
    plain : bool
        Whether all weigh the same; else the t-th weighs t.
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
        What the steps of the pass enter.
    lam : float
        λ.
    line_search : bool
        Whether steps have the best length; else 2n/(k + 2n) after k steps.
    now : int
        Number of the outer iteration.
    query : ndarray of float64, shape (D,)
        Where exact passes call the oracle, in the storage's layout: (1 − ``in_out``) w +
        ``in_out`` c with a centre c; of shape (0,): at w.
    in_out : float
        Share of the centre.
    multiplier : ndarray of float64, shape (weights that must not be negative,)
        μ; these weights are the last ones.
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
    """Return an average of no iterates; of size 0 for passes that are to be in none."""
    return Average(np.zeros(size), np.zeros(1), np.zeros(1, np.int64), plain)


def at_zero(D: int, lam: float, nonnegative: int = 0) -> State:
    """Return φ = 0, with D weights in the storage's layout, of which the last are constrained."""
    zero = np.zeros(D), np.zeros(1), np.zeros(1, np.int64)
    return State(*zero, no_average(), lam, multiplier=np.zeros(nonnegative))


@kernel
def set_multiplier(state, weight):
    """Set μ to its best value, and change w with it; the change has this weight in the average."""
    mu, w, average = state.multiplier, state.w, state.average
    first = w.size - mu.size
    for k in range(mu.size):
        v = w[first + k] - mu[k] / state.lam
        change = max(v, 0.0) - w[first + k]
        w[first + k] = max(v, 0.0)
        mu[k] = max(-state.lam * v, 0.0)
        if average.z.size > 0:
            average.z[first + k] += weight * change
        if state.query.size > 0:  # between two w that are not negative, but for rounding
            moved = state.query[first + k] + (1.0 - state.in_out) * change
            state.query[first + k] = max(moved, 0.0)
