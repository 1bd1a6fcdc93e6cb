"""Visits of dual coordinate descent where the planes of each term lie along one line.

With β of :mod:`ssvm_bench.planes.given_rows`, s = ⟨x, w⟩, g_1 = s + a, g_2 = −s + b, h = ‖x‖² and
the tolerance ε, a visit is the step of liblinear's solvers for the hinge and the ε-insensitive
loss: if a plane violates optimality by more than ε, the best β there is,

.. code-block:: text

    β ←  min( 1, (λ n g_1 + β h)/h )      if λ n g_1 + β h > 0
    β ← −min( 1, (λ n g_2 − β h)/h )      if λ n g_2 − β h > 0,  which excludes the first
    β ←  0                                otherwise

That is where single steps, (25) and (26), and pair steps, (28), of both planes in turn would lead
(Ramanan 2013). It is a pair step if weight goes from one plane to the other. Where weights must not
be negative, a visit is a single step of :mod:`ssvm_bench.solvers.coordinate.nonnegative`. It costs
O(non-zeros of x).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.base.linalg import line_search
from ssvm_bench.planes.given_rows import (
    ABOVE,
    BELOW,
    BETA,
    SQUARE,
    STRIDE,
    VIOLATION,
    term_offset,
)
from ssvm_bench.planes.operations import add_direction, approximate_visit, gather, insert_truth
from ssvm_bench.solvers.coordinate.nonnegative import Cone, constrained_step
from ssvm_bench.solvers.coordinate.turns import PAIR, SINGLE, sum_of_planes

# mypy: disable-error-code="no-untyped-def"


class Line(NamedTuple):
    """The policy of visits of that kind; the weights are in the storage.

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
    _step(policy, blocks, i, state)
    return blocks.n_planes[i]


@kernel
def _step(policy, blocks, i, state):
    numbers = blocks.numbers[STRIDE * i :]
    lam_n = state.lam * blocks.n_planes.size
    beta = numbers[BETA]
    above, below = blocks.height[0] + numbers[ABOVE], -blocks.height[0] + numbers[BELOW]
    highest = max(above, below, 0.0)
    policy.met[0] += highest
    lowest = 0.0 if abs(beta) < 1.0 else highest
    if beta != 0.0:
        lowest = min(lowest, above if beta > 0.0 else below)
    numbers[VIOLATION] = highest - lowest
    if highest - lowest <= policy.epsilon:
        return
    if policy.cone.floor.size > 0:
        best = beta + _constrained(policy.cone, blocks, i, above, below, beta, lam_n, state.w)
    else:
        best = _best(lam_n * above, lam_n * below, numbers[SQUARE], beta)
        add_direction(blocks, i, (beta - best) / lam_n, state.w)
    numbers[BETA] = best
    climb = term_offset(numbers, best) - term_offset(numbers, beta)
    state.offset[0] += climb / blocks.n_planes.size
    policy.steps[PAIR if beta * best < 0.0 else SINGLE] += 1


@kernel
def _best(above, below, square, beta):
    """Return the best β, with λ n g_1, λ n g_2 and h."""
    if above + beta * square > 0.0:
        return line_search(above + beta * square, square)
    return 0.0 - line_search(below - beta * square, square)


@kernel
def _constrained(cone, blocks, i, above, below, beta, lam_n, w):
    """Do a single step, of the plane with weight or else the higher one; return how β changes."""
    if beta > 0.0 or (beta == 0.0 and above > below):
        return constrained_step(cone, blocks, i, above, beta, 1.0 - beta, lam_n, w)
    return constrained_step(cone, blocks, i, -below, 1.0 + beta, -beta, lam_n, w)


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
