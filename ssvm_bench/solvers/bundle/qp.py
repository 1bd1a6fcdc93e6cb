"""The inner QP of the bundle methods: a concave quadratic over a product of simplices.

.. code-block:: text

    max_β  D(β) = qᵀβ − βᵀGβ/(2μ)      β ≥ 0,  Σ_{j in block p} β_j = 1 for p = 1 … P

(Uřičář and Franc, equation 13; P > 1: section 3.3). With the gradient g = q − Gβ/μ, the gap

.. code-block:: text

    Σ_p ( max_{j in p} g_j − Σ_{j in p} β_j g_j )  ≥  D(β*) − D(β)

ends the search. Few β are positive, so work is on a *working set*: these, and in every block the
planes with the largest gradient. Two kinds of steps take turns on it:

- Pairs of a block exchange weight: j = argmax g, and the k with β_k > 0 that gains most,
  (g_j − g_k)² μ/(2 l) with l = G_jj + G_kk − 2 G_jk, by t = min((g_j − g_k) μ/l, β_k) (sequential
  minimal optimisation with second-order selection; Fan, Chen, Lin, JMLR 2005). They find out which
  β are positive, but converge slowly where planes are nearly dependent.
- A Newton step over the positive β, that keeps the sums of the blocks, as far as it rises and no β
  falls below 0; again, if it ended because one did (`newton`).

Then the gradient is computed for all planes, and a new working set is chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import allocating_kernel, kernel
from ssvm_bench.solvers.bundle.newton import TINY, newton_steps

# mypy: disable-error-code="no-untyped-def"

_ENTER = 16
"""Most planes of a block that enter the working set in a round."""

_SHARE = 0.1
"""A round ends where the gap on its working set is this share of the whole gap before."""

_FLAT = 1e-12
"""Curvatures below this, relative to their terms, are taken for rounding."""

_TURNS = 2
"""Exchanges in a turn, per plane of the working set, before Newton steps."""


class Solution(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    value : float
        D(β).
    gap : float
        Upper bound of D(β*) − D(β).
    gradient : ndarray, shape (m,)
        g at β.
    """

    value: float
    gap: float
    gradient: np.ndarray


def maximise(
    gram: np.ndarray,
    block: np.ndarray,
    q: np.ndarray,
    mu: float,
    beta: np.ndarray,
    tol: float,
    most_steps: int,
) -> Solution:
    """Improve ``beta`` in place until the gap is at most ``tol``.

    It also ends, with a larger gap, after ``most_steps``, or where no step is left that is more
    than rounding.

    Parameters
    ----------
    gram : ndarray, shape (≥ m, ≥ m)
        G in its first m rows and columns.
    block : ndarray of int64, shape (m,)
        The block of each variable, 0 … P − 1; none is empty.
    q : ndarray, shape (m,)
    mu : float
        μ > 0.
    beta : ndarray, shape (m,)
        A feasible start.
    tol : float
        Largest gap, > 0.
    most_steps : int
        Number of exchanges and Newton steps after which no other turn begins.
    """
    gradient = np.empty(q.size)
    value, gap = _maximise(gram, block, q, mu, beta, tol, most_steps, gradient)
    return Solution(value, gap, gradient)


@allocating_kernel
def _maximise(gram, block, q, mu, beta, tol, most_steps, g):
    m = q.size
    P = block.max() + 1
    members = np.empty(m, np.int64)
    chosen = np.zeros(m, np.bool_)
    top = np.empty(P)
    ends = np.empty(P + 1, np.int64)
    steps = 0
    while True:
        gap, value = _gradient(gram, block, q, mu, beta, g, top)
        if gap <= tol or steps >= most_steps:
            return value, gap
        size = _choose(block, beta, g, chosen, members, ends)
        small = np.empty((size, size))
        weights = np.empty(size)
        slopes = np.empty(size)
        for a in range(size):
            weights[a] = beta[members[a]]
            slopes[a] = g[members[a]]
            row = gram[members[a]]
            for b in range(size):
                small[a, b] = row[members[b]]
        target = max(0.5 * tol, _SHARE * gap)
        before = steps
        scratch = (
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(size),
            np.empty(size),
            np.empty(size),
            np.empty((size, size)),
            np.empty((4, size)),
        )
        while steps < most_steps:
            most = min(_TURNS * size, most_steps - steps)
            done, left = _exchange(small, ends, mu, weights, slopes, target, most)
            steps += done
            if left <= target or done == 0:
                break
            steps += newton_steps(small, ends, mu, weights, slopes, scratch)
        if steps == before:  # slopes are down to rounding
            return value, gap
        for p in range(P):
            total = weights[ends[p] : ends[p + 1]].sum()
            for a in range(ends[p], ends[p + 1]):
                beta[members[a]] = weights[a] / total


@kernel
def _gradient(gram, block, q, mu, beta, g, top):
    """Compute g; return the gap and D(β)."""
    m = q.size
    for j in range(m):
        g[j] = q[j]
    for j in range(m):
        if beta[j] > 0.0:
            factor = beta[j] / mu
            row = gram[j]
            for k in range(m):
                g[k] -= factor * row[k]
    top[:] = -np.inf
    inside = 0.0
    value = 0.0
    for j in range(m):
        top[block[j]] = max(top[block[j]], g[j])
        if beta[j] > 0.0:
            inside += beta[j] * g[j]
            value += 0.5 * beta[j] * (q[j] + g[j])
    return top.sum() - inside, value


@allocating_kernel
def _choose(block, beta, g, chosen, members, ends):
    """Write the working set, block after block, into ``members``; return its size."""
    m = block.size
    size = 0
    chosen[:] = False
    for p in range(ends.size - 1):
        ends[p] = size
        best = np.full(_ENTER, -1)
        for j in range(m):
            if block[j] != p:
                continue
            if beta[j] > 0.0:
                members[size] = j
                size += 1
                continue
            place = _ENTER - 1
            if best[place] >= 0 and g[j] <= g[best[place]]:
                continue
            while place > 0 and (best[place - 1] < 0 or g[j] > g[best[place - 1]]):
                best[place] = best[place - 1]
                place -= 1
            best[place] = j
        for j in best:
            if j >= 0:
                members[size] = j
                size += 1
    ends[-1] = size
    return size


@kernel
def _exchange(gram, ends, mu, beta, g, tol, most_steps):
    """Exchange weight within blocks until the gap is at most ``tol``; return the steps, the gap."""
    steps = 0
    while True:
        gap = 0.0
        before = steps
        for p in range(ends.size - 1):
            first, last = ends[p], ends[p + 1]
            best = first
            for j in range(first + 1, last):
                if g[j] > g[best]:
                    best = j
            worst = -1
            gain = 0.0
            for k in range(first, last):
                slope = g[best] - g[k]
                if beta[k] > 0.0 and slope > 0.0:
                    gap += beta[k] * slope
                    gained = slope * slope / _length2(gram, best, k)
                    if gained > gain:
                        gain = gained
                        worst = k
            if worst < 0:
                continue
            wanted = (g[best] - g[worst]) * mu / _length2(gram, best, worst)
            step = min(wanted, beta[worst])
            beta[worst] = 0.0 if step == beta[worst] else beta[worst] - step
            beta[best] += step
            up, down = gram[best], gram[worst]
            for k in range(g.size):
                g[k] -= step / mu * (up[k] - down[k])
            steps += 1
        if gap <= tol or steps == before or steps >= most_steps:
            return steps, gap


@kernel
def _length2(gram, j, k):
    """Return ‖a_j − a_k‖², or what is above 0 for certain."""
    total = gram[j, j] + gram[k, k]
    return max(total - 2.0 * gram[j, k], _FLAT * total) + TINY
