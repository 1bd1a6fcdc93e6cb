"""A visit of dual coordinate descent: a turn for each plane of a term (Ramanan 2013, Algorithm 1).

At a term, each plane j except the ground truth's takes a turn, in random or in storage order, with
g_j = ⟨n φ^{ij}, [w 1]⟩ at the present w and the tolerance ε:

.. code-block:: text

    g_j > ε and α_i0 = 0        a pair step with another plane k, drawn at random      (28), (29)
    |g_j| > ε otherwise         a single step                                          (25), (26)

(α_i0 is the weight of the ground truth's plane, the paper's 1 − α_i). A pair with a slope
|g_j − g_k| ≤ ε does not change.

**Steps** (section 3). A step moves weight a from one plane of term i to another. The ground truth's
plane is 0, and has the weight that the others leave: with it, Σ_p α_ip = 1, and

.. code-block:: text

    F(α + a e_ij − a e_ik) = F(α) + a/n g − a²/(2 λ n²) h            −α_ij ≤ a ≤ α_ik
    g = ⟨n φ^{ij} − n φ^{ik}, [w 1]⟩         h = ‖n φ^{ij}⋆ − n φ^{ik}⋆‖²
    a* = clip( λ n g / h )

A *single* step, (25), has the ground truth's plane for k. Its gradient is 0, and its weight is the
paper's 1 − α_i. A *pair* step, (28), has another plane for k. The paper's further bounds,
a ≤ 1 − α_ij and a ≥ α_ik − 1, follow from these.

=============================  ==================================================================
paper                          here
=============================  ==================================================================
C                              1/(λ n)
x_ij, l_ij                     −C n φ^{ij}⋆ and C n φ^{ij}∘
g_ij                           C ⟨n φ^{ij}, [w 1]⟩: a tolerance is in units of the loss here, not C
L(w), F(α)                     P(w)/λ and F/λ
=============================  ==================================================================

**Inner products** between planes of a term are either kept, as K of
:mod:`ssvm_bench.planes.simplex`; then a visit reads w once and changes it once,

.. code-block:: text

    g_q ← g_q − a/(λ n) (K[q, j] − K[q, k])

or computed when a step needs them; then each step changes w, and the g_q are recomputed. Or they
are kept, but used for h alone. Except for rounding, the results are the same. If some w_k must not
be negative, w is not linear in α: steps are those of
:mod:`ssvm_bench.solvers.coordinate.nonnegative`, and gradients are always recomputed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import abstract, implements, kernel
from ssvm_bench.base.linalg import line_search
from ssvm_bench.planes import operations
from ssvm_bench.planes.simplex import Simplex, enter, forget
from ssvm_bench.solvers.coordinate.nonnegative import Cone, constrained_step

# mypy: disable-error-code="no-untyped-def"

SINGLE, PAIR = range(2)
"""Entries of ``Coordinates.steps``."""


class Coordinates(NamedTuple):
    """The policy of these visits.

    Attributes
    ----------
    epsilon : float
        ε, in units of the loss.
    shuffles : bool
        Whether the planes of a term take turns in random order.
    follows : bool
        Whether gradients are updated by K, if it is kept; else from w, after each step.
    simplex : Simplex
        α, and K if inner products are kept.
    cone : Cone
        Which weights must not be negative; if any, inner products are not used.
    words : ndarray of uint64
    drawn : ndarray of int64, shape (1,)
        Random words for a pass, one for each turn at terms with a choice; index of the next.
    met : ndarray of float64, shape (1,)
        Σ_i max(0, max_j g_j) over the visits so far, each g_j at its turn: the sum in UB', (36).
    violations : ndarray of float64, shape (n,)
        At the last visit of each term, max g_p − min over α_p > 0 of g_p: n times the term's gap
        is no larger, if nothing has moved in between.
    steps : ndarray of int64, shape (2,)
        Single steps so far, and pair steps.
    """

    epsilon: float
    shuffles: bool
    follows: bool
    simplex: Simplex
    cone: Cone
    words: np.ndarray
    drawn: np.ndarray
    met: np.ndarray
    violations: np.ndarray
    steps: np.ndarray


def coordinates(
    epsilon: float,
    shuffles: bool,
    simplex: Simplex,
    cone: Cone,
    violations: np.ndarray,
    follows: bool = True,
) -> Coordinates:
    """Return the policy of visits that begin with these weights and violations."""
    return Coordinates(
        epsilon,
        shuffles,
        follows,
        simplex,
        cone,
        words=np.zeros(0, np.uint64),
        drawn=np.zeros(1, np.int64),
        met=np.zeros(1),
        violations=violations,
        steps=np.zeros(2, np.int64),
    )


@implements(operations.exact_visit, Coordinates)
def _exact_visit(policy, blocks, i, state):
    of_truth, candidate = operations.plane_value(blocks, i, 0), blocks.n_planes[i]
    highest = operations.plane_value(blocks, i, candidate) - of_truth
    operations.insert(blocks, i, state.now)
    return _turns(policy, blocks, i, highest, state)


@implements(operations.approximate_visit, Coordinates)
def _approximate_visit(policy, blocks, i, state):
    operations.gather(blocks, state.w, i)
    _turns(policy, blocks, i, 0.0, state)
    return blocks.n_planes[i]


@implements(operations.insert_truth, Coordinates)
def _insert_truth(policy, blocks, i, scale, now):
    first = policy.simplex.start[i]
    for p in range(first, first + blocks.n_planes[i]):
        policy.simplex.alpha[p] *= scale
    policy.simplex.alpha[first] += 1.0 - scale


@kernel
def _turns(policy, blocks, i, highest, state):
    """Let each plane of term i take its turn, after ``gather``.

    Parameters
    ----------
    highest : float
        The largest g that is known already.

    Returns
    -------
    bool
        Whether weights have changed.
    """
    numbers = policy.simplex
    enter(numbers, blocks, i)
    m = blocks.n_planes[i]
    alpha = numbers.alpha[numbers.start[i] :]
    gram = numbers.gram[numbers.gram_start[i] :]
    bounded = policy.cone.floor.size > 0
    kept = numbers.gram.size > 0 and not bounded
    follow = kept and policy.follows
    room = numbers.room[i]
    g, change = numbers.values, numbers.change
    lam_n = state.lam * blocks.n_planes.size
    _gradients(blocks, i, g)
    change[:m] = 0.0
    lowest = 0.0 if alpha[0] > 0.0 else np.inf
    highest = max(highest, 0.0)
    order = numbers.order
    for p in range(1, m):
        order[p] = p
    moved = False

    for turn in range(1, m):
        partner = 0
        if m > 2:
            word = policy.words[policy.drawn[0]]
            policy.drawn[0] = (policy.drawn[0] + 1) % policy.words.size
            if policy.shuffles:
                pick = turn + below(word >> np.uint64(32), m - turn)
                order[turn], order[pick] = order[pick], order[turn]
            partner = 1 + below(word & np.uint64(0xFFFFFFFF), m - 2)
        j = order[turn]
        highest = max(highest, g[j])
        if alpha[j] > 0.0:
            lowest = min(lowest, g[j])
        k = 0
        kind = SINGLE
        if g[j] > policy.epsilon and alpha[0] == 0.0:
            if m == 2:
                continue
            k = partner + (1 if partner >= j else 0)
            kind = PAIR
        slope = g[j] - g[k]
        if abs(slope) <= policy.epsilon or (alpha[k] if slope > 0.0 else alpha[j]) == 0.0:
            continue

        if not follow:
            change[j], change[k] = 1.0, -1.0
            operations.set_direction_of_mixture(blocks, i, 0.0, change)
            change[j], change[k] = 0.0, 0.0
        if bounded:
            a = constrained_step(policy.cone, blocks, i, slope, alpha[j], alpha[k], lam_n, state.w)
        else:
            if kept:
                length = gram[j * room + j] + gram[k * room + k] - 2.0 * gram[j * room + k]
            else:
                length = operations.squared_length(blocks, i)
            a = exchanged(lam_n * slope, length, alpha[j], alpha[k])
        exchange(alpha, j, k, a)
        policy.steps[kind] += 1
        moved = True
        first = blocks.start[i]
        climb = a * (blocks.offset[first + j] - blocks.offset[first + k])
        state.offset[0] += climb / blocks.n_planes.size
        if follow:
            change[j] += a
            change[k] -= a
            if m > 2:
                scale = a / lam_n
                for q in range(1, m):
                    g[q] -= scale * (gram[j * room + q] - gram[k * room + q])
        else:
            if not bounded:
                operations.add_direction(blocks, i, -a / lam_n, state.w)
            if turn + 1 < m:
                operations.gather(blocks, state.w, i)
                _gradients(blocks, i, g)

    if moved and follow:
        operations.set_direction_of_mixture(blocks, i, 0.0, change)
        operations.add_direction(blocks, i, -1.0 / lam_n, state.w)
    policy.met[0] += highest
    policy.violations[i] = highest - min(lowest, highest)
    return moved


@kernel
def _gradients(blocks, i, g):
    """Compute g of all planes of term i, after ``gather``; that of the ground truth's is 0."""
    truth = operations.plane_value(blocks, i, 0)
    g[0] = 0.0
    for p in range(1, blocks.n_planes[i]):
        g[p] = operations.plane_value(blocks, i, p) - truth


@kernel
def below(half, size):
    """Return a number in 0 … size − 1 from 32 random bits; its bias is below size/2³²."""
    return np.int64((half * np.uint64(size)) >> np.uint64(32))


@kernel
def select(violations, order, epsilon, shrink, selected):
    """Select the terms with a violation above ε, and above a share of the mean; count them."""
    total = 0.0
    for violation in violations:
        total += violation
    least = max(epsilon, shrink * total / violations.size)
    size = 0
    for k in range(order.size):
        selected[size] = order[k]
        size += violations[order[k]] > least
    return size


@abstract
def sum_of_planes(policy, blocks, lam, w):
    """Recompute w from the weights of all planes, in place, and return φ∘."""


@implements(sum_of_planes, Coordinates)
def _sum_of_planes(policy, blocks, lam, w):
    numbers, n = policy.simplex, blocks.n_planes.size
    change = numbers.change
    w[:] = 0.0
    offset = 0.0
    for i in range(n):
        for p in range(blocks.n_planes[i]):
            change[p] = numbers.alpha[numbers.start[i] + p]
            offset += change[p] * blocks.offset[blocks.start[i] + p]
        change[0] -= 1.0  # coefficients add up to 0; the ground truth's plane is 0
        operations.set_direction_of_mixture(blocks, i, 0.0, change)
        operations.add_direction(blocks, i, -1.0 / (lam * n), w)
    return offset / n


@kernel
def drop_idle(policy, blocks, now, T):
    """Drop the planes that had no weight, and were not the oracle's, in the last T iterations."""
    for i in range(blocks.n_planes.size):
        first, alpha = blocks.start[i], policy.simplex.alpha[policy.simplex.start[i] :]
        for p in range(blocks.n_planes[i]):
            if p == 0 or alpha[p] > 0.0:  # the ground truth's stays, and stays the first
                blocks.active[first + p] = now
        operations.drop_inactive(policy, blocks, i, now - T)


@implements(operations.forget_plane, Coordinates)
def _forget_plane(policy, i, p):
    forget(policy.simplex, i, p)


@kernel
def exchanged(slope, curvature, taker, giver):
    """Return a*, the weight that goes from plane k to plane j.

    Parameters
    ----------
    slope, curvature : float
        λ n g and h, or both times one factor; a flat direction leads to a bound.
    taker, giver : float
        α_ij and α_ik.
    """
    if slope > 0.0:
        return line_search(slope, curvature, giver)
    return -line_search(-slope, curvature, taker)


@kernel
def exchange(alpha, j, k, a):
    """Add a to α_j, and subtract it from α_k; a weight that is moved completely becomes 0."""
    alpha[j] = 0.0 if a == -alpha[j] else alpha[j] + a
    alpha[k] = 0.0 if a == alpha[k] else alpha[k] - a
