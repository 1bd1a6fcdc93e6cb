"""The inner QP of the bundle methods: a concave quadratic over a product of simplices.

.. code-block:: text

    max_β  D(β) = qᵀβ − βᵀGβ/(2μ)      β ≥ 0,  Σ_{j in block p} β_j = 1 for p = 1 … P

(Uřičář and Franc, equation 13; P > 1: section 3.3). With the gradient g = q − Gβ/μ, the gap

.. code-block:: text

    Σ_p ( max_{j in p} g_j − Σ_{j in p} β_j g_j )  ≥  D(β*) − D(β)

decides when the search ends. Few β are positive, so steps use a *working set*: the planes with
β > 0, and in every block those with the largest gradients. Two kinds of steps alternate on it:

- Pairs of a block exchange weight: j = argmax g, and the k with β_k > 0 that gains most,
  (g_j − g_k)² μ/(2 l) with l = G_jj + G_kk − 2 G_jk, by t = min((g_j − g_k) μ/l, β_k) (sequential
  minimal optimisation with second-order selection; Fan, Chen, Lin, JMLR 2005). Exchanges discover
  which β are positive, but converge slowly if planes are nearly dependent.
- A Newton step over the positive β keeps the sums of the blocks. It goes as far as D rises and no
  β falls below 0. If a β falls to 0, another Newton step follows.

Then the gradient is computed for all planes, and a new working set is chosen.

The Newton step d solves

.. code-block:: text

    K d = b,  b_j = g_j − g_r,  K_jk = ⟨a_j − a_r, a_k − a_r'⟩/μ

The free variables are the positive β, except the largest of each block, its *root*, which keeps the
block's sum: r and r' are the roots of the blocks of j and k. K is factorised once. A variable that
falls to 0 is removed from the factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import allocating_kernel, kernel

# mypy: disable-error-code="no-untyped-def"

_ENTER = 16
"""Most planes of a block that enter the working set in a round."""

_SHARE = 0.1
"""A round ends when the gap on its working set is this share of the whole gap before."""

_FLAT = 1e-12
"""Curvatures below this, relative to their terms, are treated as rounding."""

_TURNS = 2
"""Exchanges in a turn, per plane of the working set, before Newton steps."""

_RIDGE = 1e-10
"""Share of its diagonal that is added to a Newton step's matrix, for dependent planes."""

_PANEL = 4

_TINY = 1e-300
"""Avoids divisions by 0."""


class Solution(NamedTuple):
    """The result of a search.

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


@allocating_kernel
def maximise(gram, block, q, mu, beta, tol, most_steps):
    """Improve ``beta`` in place until the gap is at most ``tol``.

    It also ends, with a larger gap, after ``most_steps``, or if only rounding would change β.

    Parameters
    ----------
    gram : ndarray, shape (≥ m, ≥ m)
        G in its first m rows and columns.
    block : ndarray of int64, shape (m,)
        The block of each variable, 0 … P − 1; no block is empty.
    q : ndarray, shape (m,)
    mu : float
        μ > 0.
    beta : ndarray, shape (m,)
        A feasible start.
    tol : float
        Largest gap, > 0.
    most_steps : int
        Number of exchanges and Newton steps after which no new turn begins.
    """
    m = q.size
    g = np.empty(m)
    P = block.max() + 1
    members = np.empty(m, np.int64)
    top = np.empty(P)
    ends = np.empty(P + 1, np.int64)
    steps = 0
    while True:
        gap, value = _gradient(gram, block, q, mu, beta, g, top)
        if gap <= tol or steps >= most_steps:
            return Solution(value, gap, g)
        size = _choose(block, beta, g, members, ends)
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
        variables, vectors = np.empty((2, size), np.int64), np.empty((3, size))
        scratch = variables, vectors, np.empty((size, size)), np.empty((_PANEL, size))
        while steps < most_steps:
            most = min(_TURNS * size, most_steps - steps)
            done, left = _exchange(small, ends, mu, weights, slopes, target, most)
            steps += done
            if left <= target or done == 0:
                break
            steps += _newton_steps(small, ends, mu, weights, slopes, scratch)
        if steps == before:  # slopes are down to rounding
            return Solution(value, gap, g)
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
def _choose(block, beta, g, members, ends):
    """Write the working set, block after block, into ``members``; return its size."""
    m = block.size
    size = 0
    for p in range(ends.size - 1):
        ends[p] = size
        best = np.full(_ENTER + 1, -1)  # the last entry does not enter
        for j in range(m):
            if block[j] != p:
                continue
            if beta[j] > 0.0:
                members[size] = j
                size += 1
                continue
            place = _ENTER
            while place > 0 and (best[place - 1] < 0 or g[j] > g[best[place - 1]]):
                best[place] = best[place - 1]
                place -= 1
            best[place] = j
        for j in best[:_ENTER]:
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
    """Return ‖a_j − a_k‖², or a bound of its rounding error, which is above 0."""
    total = gram[j, j] + gram[k, k]
    return max(total - 2.0 * gram[j, k], _FLAT * total) + _TINY


# ---- Newton steps over the variables that are positive -----------------------------------------


@kernel
def _newton_steps(gram, ends, mu, beta, g, scratch):
    """Do Newton steps over the positive β until one makes none of them 0; return their number."""
    variables, vectors, L, columns = scratch
    at, root = variables[0], variables[1]
    delta, change, d = vectors[0], vectors[1], vectors[2]
    steps, free = 0, 0
    while True:
        if free == 0:
            free = _free(ends, beta, at, root)
            if free == 0:
                return steps
            _factorise(gram, mu, at, root, free, L, columns)
        for a in range(free):
            d[a] = g[at[a]] - g[root[a]]
        _solve(L, d, free)
        step, blocked = _line(gram, mu, beta, g, at, root, free, d, delta, change)
        if step == 0.0:
            return steps
        for j in range(beta.size):
            beta[j] = max(beta[j] + step * delta[j], 0.0)
            g[j] -= step * change[j]
        steps += 1
        if blocked < 0:
            return steps
        beta[blocked] = 0.0
        free = _leave(L, at, root, free, blocked, delta, change)


@kernel
def _line(gram, mu, beta, g, at, root, free, d, delta, change):
    """Return the best step along d, and the first β that falls to 0 in it, or −1.

    ``delta`` becomes the change of all β, ``change`` that of −g, for a step of 1.
    """
    delta[:] = 0.0
    change[:] = 0.0
    for a in range(free):
        delta[at[a]] += d[a]
        delta[root[a]] -= d[a]
    slope = 0.0
    limit = np.inf
    blocked = -1
    for j in range(beta.size):
        if delta[j] != 0.0:
            slope += delta[j] * g[j]
            factor = delta[j] / mu
            row = gram[j]
            for k in range(beta.size):
                change[k] += factor * row[k]
            if delta[j] < 0.0 and beta[j] < -delta[j] * limit:
                limit = beta[j] / -delta[j]
                blocked = j
    curvature = 0.0
    for j in range(beta.size):
        curvature += delta[j] * change[j]
    if not slope > 0.0 or (limit == np.inf and curvature <= 0.0):
        return 0.0, -1  # down to rounding
    if slope < limit * curvature:
        return slope / curvature, -1
    return limit, blocked


@kernel
def _free(ends, beta, at, root):
    """List the positive β except each block's root, and their roots; return their number."""
    free = 0
    for p in range(ends.size - 1):
        heaviest = ends[p]
        for j in range(ends[p] + 1, ends[p + 1]):
            if beta[j] > beta[heaviest]:
                heaviest = j
        for j in range(ends[p], ends[p + 1]):
            if beta[j] > 0.0 and j != heaviest:
                at[free] = j
                root[free] = heaviest
                free += 1
    return free


@kernel
def _factorise(gram, mu, at, root, free, L, columns):
    """Compute the Cholesky factor L of K with a small ridge; only its lower half is written.

    Four columns are done at a time: the entries right of them are loaded and stored once for all
    four. ``columns``, shape (4, ≥ free), stores each of the four contiguously.
    """
    for a in range(free):
        j, r = at[a], root[a]
        for b in range(a + 1):
            k, s = at[b], root[b]
            L[a, b] = ((gram[j, k] - gram[j, s]) - (gram[r, k] - gram[r, s])) / mu
        L[a, a] += _RIDGE * L[a, a] + _TINY
    for k in range(0, free, _PANEL):
        end = min(k + _PANEL, free)
        for c in range(k, end):
            column = columns[c - k]
            L[c, c] = np.sqrt(max(L[c, c], _TINY))
            for i in range(c + 1, free):
                L[i, c] /= L[c, c]
                column[i] = L[i, c]
                for j in range(c + 1, min(end, i + 1)):
                    L[i, j] -= L[i, c] * L[j, c]
        if end < k + _PANEL:
            return
        c0, c1, c2, c3 = columns[0], columns[1], columns[2], columns[3]
        for i in range(end, free):
            row = L[i]
            f0, f1, f2, f3 = c0[i], c1[i], c2[i], c3[i]
            for j in range(end, i + 1):
                row[j] = (((row[j] - f0 * c0[j]) - f1 * c1[j]) - f2 * c2[j]) - f3 * c3[j]


@kernel
def _solve(L, d, free):
    """Replace d by K⁻¹ d."""
    for k in range(free):
        row = L[k]
        total = d[k]
        for i in range(k):
            total -= row[i] * d[i]
        d[k] = total / row[k]
    for k in range(free - 1, -1, -1):
        row = L[k]
        d[k] /= row[k]
        for i in range(k):
            d[i] -= row[i] * d[k]


@kernel
def _leave(L, at, root, free, blocked, cosines, sines):
    """Remove a variable from the factor; return how many are left, or 0 if it was a root.

    The rows below the removed one move up, and rotations of neighbouring columns make the factor
    triangular again.
    """
    place = 0
    while place < free and at[place] != blocked:
        place += 1
    if place == free:
        return 0
    for i in range(place, free - 1):
        at[i] = at[i + 1]
        root[i] = root[i + 1]
        row, below = L[i], L[i + 1]
        for k in range(i + 2):
            row[k] = below[k]
        for k in range(place, i):
            x, y = row[k], row[k + 1]
            row[k] = cosines[k] * x + sines[k] * y
            row[k + 1] = cosines[k] * y - sines[k] * x
        length = np.sqrt(row[i] * row[i] + row[i + 1] * row[i + 1])
        cosines[i] = row[i] / length
        sines[i] = row[i + 1] / length
        row[i] = length
    return free - 1
