"""Newton steps of the inner QP over the variables that are positive.

.. code-block:: text

    K d = b,  b_j = g_j − g_r,  K_jk = ⟨a_j − a_r, a_k − a_r'⟩/μ

The free variables are the positive β but for the largest of each block, its *root*, which takes
what keeps the sum of its block: r and r' are the roots of the blocks of j and k. K is factorised
once; a variable that falls to 0 leaves the factor.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.jit import kernel

# mypy: disable-error-code="no-untyped-def"

_RIDGE = 1e-10
"""Of the diagonal of a Newton step's matrix, for planes that depend on each other."""

_PANEL = 4

TINY = 1e-300
"""Keeps from dividing by 0."""


@kernel
def newton_steps(gram, ends, mu, beta, g, scratch):
    """Do Newton steps over the positive β until none of them falls to 0; return their number."""
    at, root, delta, change, d, L, columns = scratch
    steps = 0
    free = 0
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
    for k in range(beta.size):
        delta[k] = 0.0
        change[k] = 0.0
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
    """List the positive β but for each block's root, and their roots; return their number."""
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
    """Let L be Cholesky's factor of K, a little ridge added; only its lower half is written.

    Four columns at a time: what is right of them is loaded and stored once for all of them. They
    are kept in ``columns``, shape (4, ≥ free), where each lies side by side.
    """
    for a in range(free):
        j, r = at[a], root[a]
        for b in range(a + 1):
            k, s = at[b], root[b]
            L[a, b] = ((gram[j, k] - gram[j, s]) - (gram[r, k] - gram[r, s])) / mu
        L[a, a] += _RIDGE * L[a, a] + TINY
    for k in range(0, free, _PANEL):
        end = min(k + _PANEL, free)
        for c in range(k, end):
            column = columns[c - k]
            L[c, c] = np.sqrt(max(L[c, c], TINY))
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
    """Let d ← K⁻¹ d."""
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
    """Take a variable out of the factor; return how many are left, or 0 if it was a root.

    The rows below its own move up, and rotations of neighbouring columns make them triangular.
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
