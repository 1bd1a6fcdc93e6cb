"""Where φ begins: every φ^i at the plane of some labeling (MP-BCFW, Algorithm 3, line 1).

==========  =====================================================================================
``truth``   the ground truth's, which is 0: w = 0 and F = 0
``oracle``  the one that the exact oracle finds at w = 0. Its n calls count, and so does their time
==========  =====================================================================================

It is the first plane of W_i, too (line 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import implements
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.operations import drop_plane, insert, move_term, set_direction
from ssvm_bench.planes.passes import exact_visit, visit_without_oracle

# mypy: disable-error-code="no-untyped-def"

STARTS = TRUTH, ORACLE = ("truth", "oracle")


class AtOracle(NamedTuple):
    """The policy of visits that move φ^i to the oracle's plane, and leave w where it is.

    Attributes
    ----------
    N : int
        Most planes of a working set.
    """

    N: int


@implements(visit_without_oracle, AtOracle)
def _visit_without_oracle(policy, blocks, i, state):
    return 0


@implements(exact_visit, AtOracle)
def _exact_visit(policy, blocks, i, state):
    p = blocks.n_planes[i]
    set_direction(blocks, i, p)
    move_term(blocks, i, 1.0)
    blocks.circ[i] = blocks.offset[blocks.start[i] + p]
    if policy.N > 0 and insert(blocks, i, state.now) > 0:
        drop_plane(blocks, i, 0)  # the ground truth's
    return True


def begin_at_oracle(phi: DualIterate, clock: Clock) -> None:
    """Move φ from the ground truths' planes to those that the oracle finds at w = 0."""
    phi.exact_pass(AtOracle(phi.N), np.arange(phi.problem.n), clock, still=True)
    phi.recompute()
