"""What the cutting-plane methods do with a plane of the oracle: collect it, and take no step.

`Collecting` adds the planes of all terms up to one (1-slack), `Adding` puts those that are violated
into working sets (n-slack). φ^i is left alone. All values are n times the paper's, as in
:mod:`ssvm_bench.planes.operations`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements
from ssvm_bench.planes.operations import (
    add_direction,
    best_plane,
    gather,
    insert_candidate,
    plane_value,
    set_direction,
)
from ssvm_bench.planes.passes import approximate_visit, exact_visit, visit_without_oracle

# mypy: disable-error-code="no-untyped-def"


class Collecting(NamedTuple):
    """Sum the planes of the terms visited; each term keeps those that it used last.

    Attributes
    ----------
    N : int
        Number of planes that a term keeps.
    star : ndarray of float64, shape (D,)
        Sum of n φ̂⋆^i, in the layout of the storage.
    sums : ndarray of float64, shape (2,)
        Sums of ⟨n φ̂^i, [w 1]⟩ and of n φ̂∘^i.
    """

    N: int
    star: np.ndarray
    sums: np.ndarray


class Adding(NamedTuple):
    """Put a plane into W_i if it is violated by more than ``tol``.

    Attributes
    ----------
    tol : float
        By how much it must exceed the slack, n ξ_i = max over W_i.
    sums : ndarray of float64, shape (2,)
        Sums of ⟨n (φ̂^i − φ^i), [w 1]⟩ over the terms visited, and over the planes added of what
        they exceeded the slack.
    """

    tol: float
    sums: np.ndarray


@implements(visit_without_oracle, Adding)
@implements(visit_without_oracle, Collecting)
def _visit_without_oracle(policy, blocks, i, state):
    return 0


@implements(exact_visit, Collecting)
def _collect(policy, blocks, i, state):
    p = blocks.n_planes[i]
    policy.sums[0] += set_direction(blocks, i, p)  # φ^i stays at the truth's plane, which is 0
    policy.sums[1] += blocks.offset[blocks.start[i] + p]
    add_direction(blocks, i, 1.0, policy.star)
    insert_candidate(blocks, i, policy.N, state.now)
    return False


@implements(approximate_visit, Collecting)
def _collect_best(policy, blocks, i, state):
    gather(blocks, state.w, i)
    p = best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = state.now
    policy.sums[0] += set_direction(blocks, i, p)
    policy.sums[1] += blocks.offset[blocks.start[i] + p]
    add_direction(blocks, i, 1.0, policy.star)
    return blocks.n_planes[i]


@implements(exact_visit, Adding)
def _add(policy, blocks, i, state):
    candidate = blocks.n_planes[i]
    slack = plane_value(blocks, i, 0)
    for p in range(1, candidate):
        slack = max(slack, plane_value(blocks, i, p))
    policy.sums[0] += set_direction(blocks, i, candidate)
    violation = plane_value(blocks, i, candidate) - slack
    if violation <= policy.tol:
        return False
    policy.sums[1] += violation
    blocks.active[blocks.start[i] + candidate] = state.now
    blocks.n_planes[i] = candidate + 1
    return True
