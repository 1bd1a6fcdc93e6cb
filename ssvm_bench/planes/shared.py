"""What all visits of a pass share: φ, and what its steps enter.

=================  ========================================================================
symbol             name
=================  ========================================================================
φ = [φ⋆ φ∘]        ``State.w`` = −φ⋆/λ, ``State.offset``
λ                  ``State.lam``
Z, Z∘, k           ``Average``: φ̄ = φ − Z/W_k with W_k = k(k+1)/2, or k in a plain mean
=================  ========================================================================

The average of the iterates (MP-BCFW, section 3.5), φ̄^(k) = 2/(k(k+1)) Σ_t t φ^(t), is kept by
Z = Σ_t W_{t−1} (φ^(t) − φ^(t−1)): a change that comes after t averaged iterates enters Z with the
weight W_t. So an average costs one more sparse update per step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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


def no_average(size: int = 0, plain: bool = False) -> Average:
    """Return an average of no iterates; of size 0 for passes that are to be in none."""
    return Average(np.zeros(size), np.zeros(1), np.zeros(1, np.int64), plain)


def at_zero(D: int, lam: float) -> State:
    """Return φ = 0, with D weights in the storage's layout."""
    return State(np.zeros(D), np.zeros(1), np.zeros(1, np.int64), no_average(), lam)
