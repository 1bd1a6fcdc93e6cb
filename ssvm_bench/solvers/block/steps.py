"""Visits of one step: BCFW and MP-BCFW (MP-BCFW, Algorithms 2 and 3, and section 3.2, step 7).

A step moves φ^i towards a plane φ̂ of term i. In the units of :mod:`ssvm_bench.planes.operations`,
n times the paper's, with δ = n (φ̂ − φ^i), g = ⟨δ, [w 1]⟩ (n times the block gap) and w = −φ⋆/λ,

.. code-block:: text

    γ = clip( λ n g / ‖δ⋆‖², 0, 1 )      φ^i += γ δ/n      w −= γ/(λ n) δ⋆      φ∘ += γ/n δ∘

:func:`ssvm_bench.base.linalg.line_search` computes and clips γ. Without line search,
γ = 2n/(k + 2n) after k steps. :mod:`ssvm_bench.planes.shared` has w, φ∘ and the averages.

======  ===================
symbol  name
======  ===================
γ       ``gamma``
g       ``gap``
n φ∘^i  ``blocks.term_offset[i]``
φ∘      ``state.offset[0]``
======  ===================
"""

from __future__ import annotations

from typing import NamedTuple

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.base.linalg import line_search
from ssvm_bench.planes import operations
from ssvm_bench.planes.shared import set_multiplier

# mypy: disable-error-code="no-untyped-def"


class OneStep(NamedTuple):
    """The policy of one step a visit.

    Attributes
    ----------
    N : int
        Most planes of a working set.
    T : int
        Planes that were not active in the last T outer iterations are dropped.
    """

    N: int
    T: int


class AtOracle(NamedTuple):
    """The policy of visits that move φ^i to the oracle's plane, and do not move w.

    Attributes
    ----------
    N : int
        Most planes of a working set.
    """

    N: int


@implements(operations.exact_visit, OneStep)
def _exact_visit(policy, blocks, i, state):
    p = blocks.n_planes[i]
    changed = step_towards(blocks, i, p, operations.set_direction(blocks, i, p), state)
    operations.insert_candidate(policy, blocks, i, state.now)
    return changed


@implements(operations.approximate_visit, OneStep)
def _approximate_visit(policy, blocks, i, state):
    evaluated = blocks.n_planes[i]
    operations.gather(blocks, state.w, i)
    p = operations.best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = state.now
    step_towards(blocks, i, p, operations.set_direction(blocks, i, p), state)
    operations.drop_inactive(policy, blocks, i, state.now - policy.T)
    return evaluated


@implements(operations.insert_truth, OneStep)
def _insert_truth(policy, blocks, i, scale, now):
    operations.insert_candidate(policy, blocks, i, now)


@implements(operations.exact_visit, AtOracle)
def _exact_visit_at_start(policy, blocks, i, state):
    p = blocks.n_planes[i]
    operations.set_direction(blocks, i, p)
    operations.move_term(blocks, i, 1.0)
    blocks.term_offset[i] = blocks.offset[blocks.start[i] + p]
    if policy.N > 0 and operations.insert(blocks, i, state.now) > 0:
        operations.drop_plane(policy, blocks, i, 0)  # the ground truth's
    return True


@kernel
def step_towards(blocks, i, p, gap, state):
    """Move φ^i towards plane p of term i.

    Parameters
    ----------
    blocks : Labelings or Rows
    i, p : int
        Term and plane.
    gap : float
        The value that ``set_direction(blocks, i, p)`` returned.
    state : State

    Returns
    -------
    bool
        Whether φ^i has moved.
    """
    n = blocks.n_planes.size
    if state.line_search:
        gamma = 0.0
        if gap > 0.0:
            gamma = line_search(state.lam * n * gap, operations.squared_length(blocks, i))
    else:
        gamma = 2.0 * n / (state.steps[0] + 2.0 * n)
    delta_offset = gamma * (blocks.offset[blocks.start[i] + p] - blocks.term_offset[i])
    return move(blocks, i, gamma, delta_offset, state)


@kernel
def move(blocks, i, gamma, delta_offset, state):
    """Move φ^i by γ δ, n φ∘^i by ``delta_offset``, and φ with them; count one iterate to average.

    Returns
    -------
    bool
        Whether γ is not 0.
    """
    n = blocks.n_planes.size
    state.steps[0] += 1
    average = state.average
    k = average.k[0]
    average.k[0] = k + 1
    if gamma == 0.0:
        return False

    scale = -gamma / (state.lam * n)
    state.offset[0] += delta_offset / n
    weight = float(k) if average.plain else 0.5 * k * (k + 1.0)  # W_k
    if average.z.size > 0:
        operations.add_direction_to_both(blocks, i, scale, state.w, weight * scale, average.z)
        average.offset[0] += weight * (delta_offset / n)
    else:
        operations.add_direction(blocks, i, scale, state.w)
    if state.query.size > 0:
        operations.add_direction(blocks, i, (1.0 - state.in_out) * scale, state.query)
    set_multiplier(state, weight)
    operations.move_term(blocks, i, gamma)
    blocks.term_offset[i] += delta_offset
    return True
