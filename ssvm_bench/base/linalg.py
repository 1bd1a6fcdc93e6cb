"""Inner products that give the same bits on every machine, and the line search.

Each sums in an order of its own: numbers stored since must come out again.
"""

from __future__ import annotations

import math

import numpy as np

from ssvm_bench.base.jit import kernel

# mypy: disable-error-code="no-untyped-def"


@kernel
def line_search(slope, curvature, limit=1.0):
    """Return argmax over γ in [0, limit] of γ · slope − γ²/2 · curvature; ``limit`` if it is flat.

    Parameters
    ----------
    slope, curvature : float
        Both may be scaled by the same factor. A slope that is not positive gives 0. A curvature
        that has overflowed gives NaN: a step of length 0 would look like an optimum.
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
