"""A step of the block-coordinate methods (MP-BCFW, Algorithm 2 and section 3.2, step 7).

One step on term i towards a plane φ̂, in the units of :mod:`ssvm_bench.planes.operations`, which are
n times the paper's: with δ = n (φ̂ − φ^i), g = ⟨δ, [w 1]⟩ (n times the block gap) and w = −φ⋆/λ,

.. code-block:: text

    γ = clip( λ n g / ‖δ⋆‖², 0, 1 )      φ^i += γ δ/n      w −= γ/(λ n) δ⋆      φ∘ += γ/n δ∘

======  ===================
symbol  name
======  ===================
γ       ``gamma``
g       ``gap``
n φ∘^i  ``blocks.circ[i]``
φ∘      ``state.circ[0]``
======  ===================
"""

from __future__ import annotations

from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import line_search
from ssvm_bench.planes.operations import (
    add_direction,
    add_direction_to_both,
    move_term,
    squared_length,
)

# mypy: disable-error-code="no-untyped-def"


@kernel
def step_towards(blocks, i, p, gap, state):
    """Move φ^i towards plane p of term i.

    Parameters
    ----------
    blocks : Labelings or Rows
    i, p : int
        Term and plane.
    gap : float
        What ``set_direction(blocks, i, p)`` has returned.
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
            gamma = line_search(state.lam * n * gap, squared_length(blocks, i))
    else:
        gamma = 2.0 * n / (state.steps[0] + 2.0 * n)
    delta_circ = gamma * (blocks.offset[blocks.start[i] + p] - blocks.circ[i])
    return move(blocks, i, gamma, delta_circ, state)


@kernel
def move(blocks, i, gamma, delta_circ, state):
    """Move φ^i by γ δ, n φ∘^i by ``delta_circ``, and φ with them; count one iterate to average.

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
    state.circ[0] += delta_circ / n
    if average.z.size > 0:
        weight = 0.5 * k * (k + 1.0)
        add_direction_to_both(blocks, i, scale, state.w, weight * scale, average.z)
        average.circ[0] += weight * (delta_circ / n)
    else:
        add_direction(blocks, i, scale, state.w)
    move_term(blocks, i, gamma)
    blocks.circ[i] += delta_circ
    return True
