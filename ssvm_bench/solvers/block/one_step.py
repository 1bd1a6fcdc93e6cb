"""The visits of BCFW and MP-BCFW: one step each (MP-BCFW, Algorithms 2 and 3)."""

from __future__ import annotations

from typing import NamedTuple

from ssvm_bench.base.jit import implements
from ssvm_bench.planes.operations import (
    best_plane,
    drop_inactive,
    gather,
    insert_candidate,
    set_direction,
)
from ssvm_bench.planes.passes import (
    approximate_visit,
    exact_visit,
    insert_truth,
    visit_without_oracle,
)
from ssvm_bench.solvers.block.steps import step_towards

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


@implements(visit_without_oracle, OneStep)
def _visit_without_oracle(policy, blocks, i, state):
    return 0


@implements(exact_visit, OneStep)
def _exact_visit(policy, blocks, i, state):
    p = blocks.n_planes[i]
    changed = step_towards(blocks, i, p, set_direction(blocks, i, p), state)
    insert_candidate(blocks, i, policy.N, state.now)
    return changed


@implements(approximate_visit, OneStep)
def _approximate_visit(policy, blocks, i, state):
    evaluated = blocks.n_planes[i]
    gather(blocks, state.w, i)
    p = best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = state.now
    step_towards(blocks, i, p, set_direction(blocks, i, p), state)
    drop_inactive(blocks, i, state.now - policy.T)
    return evaluated


@implements(insert_truth, OneStep)
def _insert_truth(policy, blocks, i, scale, now):
    insert_candidate(blocks, i, policy.N, now)
