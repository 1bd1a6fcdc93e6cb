"""Visits of dual coordinate descent where each term has one plane besides the ground truth's.

There are no pairs, and no choice: with g = ⟨n φ^{i1}, [w 1]⟩ and the tolerance ε, a visit is the
step of liblinear's solver for the hinge loss,

.. code-block:: text

    α ← clip( α + λ n g / ‖n φ^{i1}⋆‖² ) to [0, 1]         if |g| > ε and α can move that way

(Ramanan 2013, (25) and (26), with α_i = α_i1), or, where weights must not be negative, that of
:mod:`ssvm_bench.solvers.coordinate.nonnegative`. It costs O(non-zeros of the plane).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.jit import implements, kernel
from ssvm_bench.planes.lone_rows import ALPHA, OFFSET, SQUARE, STRIDE, VIOLATION, add_plane
from ssvm_bench.planes.passes import insert_truth, whole_visit
from ssvm_bench.solvers.coordinate.nonnegative import Cone, constrained_step
from ssvm_bench.solvers.coordinate.steps import exchanged
from ssvm_bench.solvers.coordinate.turns import SINGLE

# mypy: disable-error-code="no-untyped-def"


class Lone(NamedTuple):
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


@implements(whole_visit, Lone)
def _whole_visit(policy, blocks, i, state):
    numbers = blocks.numbers[STRIDE * i :]
    n = blocks.n_planes.size
    alpha = numbers[ALPHA]
    rest = 1.0 - alpha
    g = blocks.height[0]
    policy.met[0] += max(g, 0.0)
    violation = abs(g) if (rest if g > 0.0 else alpha) > 0.0 else 0.0
    numbers[VIOLATION] = violation
    if violation <= policy.epsilon:
        return False
    bounded = policy.cone.floor.size > 0
    if bounded:
        a = constrained_step(policy.cone, blocks, i, g, alpha, rest, state.lam * n, state.w)
    else:
        a = exchanged(state.lam * n * g, numbers[SQUARE], alpha, rest)
    numbers[ALPHA] = 1.0 if a == rest else alpha + a
    state.circ[0] += a * numbers[OFFSET] / n
    if not bounded:
        add_plane(blocks, i, -a / (state.lam * n), state.w)
    policy.steps[SINGLE] += 1
    return True


@implements(insert_truth, Lone)
def _insert_truth(policy, blocks, i, scale, now):
    blocks.numbers[STRIDE * i + ALPHA] *= scale


@kernel
def sum_of_planes(blocks, lam, w):
    """Recompute w from the weights of all planes, in place, and return φ∘."""
    n = blocks.n_planes.size
    w[:] = 0.0
    circ = 0.0
    for i in range(n):
        alpha = blocks.numbers[STRIDE * i + ALPHA]
        circ += alpha * blocks.numbers[STRIDE * i + OFFSET]
        add_plane(blocks, i, -alpha / (lam * n), w)
    return circ / n
