"""Inner products that give the same bits on every machine, and line searches.

Each sums in an order of its own: numbers stored since must come out again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ssvm_bench.base.jit import kernel

# mypy: disable-error-code="no-untyped-def"


@kernel
def line_search(slope, curvature, limit=1.0):
    """Return argmax over γ in [0, limit] of γ · slope − γ²/2 · curvature.

    Parameters
    ----------
    slope, curvature : float
        Both may be scaled by the same factor. A slope that is not positive gives 0, a curvature of
        0 ``limit``. A curvature that has overflowed gives NaN: a step of length 0 would look like
        an optimum.
    limit : float
        Longest step.
    """
    if slope <= 0.0:
        return 0.0
    if not curvature < np.inf:
        return np.nan
    return limit if slope >= limit * curvature else slope / curvature


@kernel
def dot(a, b, size):
    """Return ⟨a, b⟩ over the first ``size`` entries of two vectors, in four interleaved sums."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k + 4 <= size:
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        k += 4
    while k < size:
        s0 += a[k] * b[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@kernel
def dot_at(values, places, w):
    """Return Σ_k values[k] · w[places[k]], in four interleaved sums: the same bits everywhere."""
    k = 0
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    while k + 4 <= values.size:
        t0 += values[k] * w[places[k]]
        t1 += values[k + 1] * w[places[k + 1]]
        t2 += values[k + 2] * w[places[k + 2]]
        t3 += values[k + 3] * w[places[k + 3]]
        k += 4
    while k < values.size:
        t0 += values[k] * w[places[k]]
        k += 1
    return (t0 + t1) + (t2 + t3)


@kernel
def squared_norm(w):
    """Return ‖w‖² of a vector, summed in order."""
    total = 0.0
    for value in w:
        total += value * value
    return total


def rounded_once(a: np.ndarray, b: np.ndarray) -> float:
    """Return ⟨a, b⟩, rounded once."""
    return math.fsum(a * b)


Point: TypeAlias = tuple[np.ndarray, float]
"""A plane φ as (w, φ∘), w = −φ⋆/λ."""


def best_interpolation(
    lam: float, one: Point, other: Point, metric: Callable[[np.ndarray], np.ndarray] = lambda w: w
) -> Point:
    """Return the point between two planes, as (w, φ∘), with the highest dual value.

    The inner product of v and w is ⟨v, ``metric`` w⟩. F is a concave parabola along the way, so
    that its maximum over [0, 1] has a closed form (Algorithm 1, step 5; MP-BCFW, section 3.5).
    """
    (w, offset), (w_other, offset_other) = one, other
    step, climb = w_other - w, offset_other - offset
    of_step = metric(step)
    slope = climb - lam * float(w @ of_step)
    curvature = lam * float(step @ of_step)
    gamma = line_search(slope, curvature)
    return w + gamma * step, offset + gamma * climb


def best_scale(norm2: float, offset: float, old: float, new: float) -> float:
    """Return the s in [0, 1] for which s φ has the highest dual value at a new λ.

    φ is given by ‖w‖², w = −φ⋆/λ at the ``old`` λ, and as ``offset`` = φ∘. All s φ are feasible:
    they lie between φ and the planes of the ground truth, which are 0. With the old λ's optimum,
    and a smaller λ, s w λ/λ_new is again about w.
    """
    return line_search(offset, old * old / new * norm2)
