"""Visits of dual coordinate descent where the planes of each term lie along one line.

With β of :mod:`ssvm_bench.planes.given_rows`, s = ⟨x, w⟩, g_1 = s + a, g_2 = −s + b, h = ‖x‖² and
the tolerance ε, a visit is the step of liblinear's solvers for the hinge and the ε-insensitive
loss: if a plane violates optimality by more than ε, β becomes the best one,

.. code-block:: text

    β ←  min( 1, (λ n g_1 + β h)/h )      if λ n g_1 + β h > 0
    β ← −min( 1, (λ n g_2 − β h)/h )      if λ n g_2 − β h > 0,  which excludes the first
    β ←  0                                otherwise

Single steps, (25) and (26), and pair steps, (28), of both planes in turn would lead to the same β
(Ramanan 2013). A visit counts as a pair step if weight goes from one plane to the other. If weights
w_k must not be negative, a visit is a single step of
:mod:`ssvm_bench.solvers.coordinate.nonnegative`. A visit costs O(non-zeros of x).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements
from ssvm_bench.base.linalg import line_search
from ssvm_bench.planes.given_rows import ABOVE, BELOW, BETA, SQUARE, STRIDE, VIOLATION, term_offset
from ssvm_bench.planes.operations import add_direction, approximate_visit, gather, insert_truth
from ssvm_bench.solvers.coordinate.nonnegative import Cone, constrained_step
from ssvm_bench.solvers.coordinate.turns import PAIR, SINGLE, sum_of_planes

# mypy: disable-error-code="no-untyped-def"


class Line(NamedTuple):
    """The policy of these visits; the weights are in the storage.

    Attributes
    ----------
    epsilon : float
        ε, in units of the loss.
    cone : Cone
        Which weights must not be negative.
    met : ndarray of float64, shape (1,)
    steps : ndarray of int64, shape (2,)
        As in :class:`ssvm_bench.solvers.coordinate.turns.Coordinates`.
    """

    epsilon: float
    cone: Cone
    met: np.ndarray
    steps: np.ndarray


@implements(approximate_visit, Line)
def _approximate_visit(policy, blocks, i, state):
    gather(blocks, state.w, i)
    numbers, n_planes = blocks.numbers[STRIDE * i :], blocks.n_planes[i]
    lam_n, beta = state.lam * blocks.n_planes.size, numbers[BETA]
    above, below = blocks.height[0] + numbers[ABOVE], -blocks.height[0] + numbers[BELOW]
    highest = max(above, below, 0.0)
    policy.met[0] += highest
    lowest = 0.0 if abs(beta) < 1.0 else highest
    if beta != 0.0:
        lowest = min(lowest, above if beta > 0.0 else below)
    numbers[VIOLATION] = highest - lowest
    if highest - lowest <= policy.epsilon:
        return n_planes

    if policy.cone.floor.size > 0:  # a step of the plane with weight, or else of the higher one
        slope, taker, giver = above, beta, 1.0 - beta
        if beta < 0.0 or (beta == 0.0 and above <= below):
            slope, taker, giver = -below, 1.0 + beta, -beta
        best = beta + constrained_step(policy.cone, blocks, i, slope, taker, giver, lam_n, state.w)
    else:
        rise, square = lam_n * above + beta * numbers[SQUARE], numbers[SQUARE]
        if rise > 0.0:
            best = line_search(rise, square)
        else:
            best = 0.0 - line_search(lam_n * below - beta * square, square)
        add_direction(blocks, i, (beta - best) / lam_n, state.w)
    numbers[BETA] = best
    climb = term_offset(numbers, best) - term_offset(numbers, beta)
    state.offset[0] += climb / blocks.n_planes.size
    policy.steps[PAIR if beta * best < 0.0 else SINGLE] += 1
    return n_planes


@implements(insert_truth, Line)
def _insert_truth(policy, blocks, i, scale, now):
    blocks.numbers[STRIDE * i + BETA] *= scale


@implements(sum_of_planes, Line)
def _sum_of_planes(policy, blocks, lam, w):
    n = blocks.n_planes.size
    w[:] = 0.0
    total = 0.0
    for i in range(n):
        numbers = blocks.numbers[STRIDE * i :]
        total += term_offset(numbers, numbers[BETA])
        add_direction(blocks, i, -numbers[BETA] / (lam * n), w)
    return total / n
