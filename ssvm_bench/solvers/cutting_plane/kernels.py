"""What an oracle call does in the cutting-plane methods: policies of :mod:`.block_kernels`.

They collect planes and take no step: `Collecting` adds the planes of all terms up to one (1-slack),
`Adding` puts those that are violated into working sets (n-slack). All values are n times the
paper's, as in :mod:`ssvm_bench.planes.blocks`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.jit import implements
from ssvm_bench.planes.blocks import aim, best_plane, load, remember, spread, value
from ssvm_bench.solvers.block.kernels import arrive, revisit, spares

# mypy: disable-error-code="no-untyped-def"


class Collecting(NamedTuple):
    """Sum the planes of the terms visited; each term keeps those that it used last.

    Attributes
    ----------
    N : int
        Number of planes that a term keeps.
    star : ndarray, shape (D,)
        Sum of n φ̂⋆^i, in the layout of the storage.
    sums : ndarray, shape (2,)
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
    sums : ndarray, shape (2,)
        Sums of ⟨n (φ̂^i − φ^i), [w 1]⟩ over the terms visited, and over the planes added of what
        they exceeded the slack.
    """

    tol: float
    sums: np.ndarray


@implements(spares, Adding)
@implements(spares, Collecting)
def _spares(policy, blocks, i, state, average, rule, now):
    return 0


@implements(arrive, Collecting)
def _arrive(policy, blocks, i, state, average, rule, now):
    p = blocks.n_planes[i]
    policy.sums[0] += aim(blocks, i, p)  # φ^i stays at the ground truth's plane, which is 0
    policy.sums[1] += blocks.offset[blocks.start[i] + p]
    spread(blocks, i, 1.0, policy.star)
    remember(blocks, i, policy.N, now)
    return False


@implements(revisit, Collecting)
def _revisit(policy, blocks, i, state, average, rule, now):
    load(blocks, state.w, i)
    p = best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = now
    policy.sums[0] += aim(blocks, i, p)
    policy.sums[1] += blocks.offset[blocks.start[i] + p]
    spread(blocks, i, 1.0, policy.star)
    return blocks.n_planes[i]


@implements(arrive, Adding)
def _add(policy, blocks, i, state, average, rule, now):
    candidate = blocks.n_planes[i]
    slack = value(blocks, i, 0)
    for p in range(1, candidate):
        slack = max(slack, value(blocks, i, p))
    policy.sums[0] += aim(blocks, i, candidate)
    violation = value(blocks, i, candidate) - slack
    if violation <= policy.tol:
        return False
    policy.sums[1] += violation
    blocks.active[blocks.start[i] + candidate] = now
    blocks.n_planes[i] = candidate + 1
    return True
