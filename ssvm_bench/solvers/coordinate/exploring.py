"""How dual coordinate descent visits new examples (Ramanan 2013, Algorithm 2, lines 3 to 11).

At an example, its oracle returns the plane with the largest gradient, g = n H_i(w). If g > ε, the
plane enters the cache with α = 0, and

.. code-block:: text

    UB ← UB + 1/n (g − max(0, the largest gradient of a plane of i that is cached already))

The schedule, a `Plan`, says what happens next: whether the example takes a step at once, how many
cached ones take theirs, and how large the online gap UB − LB may become, relative to an estimate of
P(w) for the whole problem from the examples met so far,

.. code-block:: text

    P̂ = λ/2 ‖w‖² + mean of n H_i(w),  each at the w with which it was met

(at first, UB is far below P̂, as most examples are still to come). A pass over a chunk stops where
something is due that is not done here (`ROOM`, `FULL`, `WORDS`, `GAP`), and then resumes. So what
happens at an example does not depend on where chunks end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import allocating_kernel, kernel, nanoseconds
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.labeling import ask
from ssvm_bench.oracles.scoring import difference_row, scratch
from ssvm_bench.planes import cache as caches
from ssvm_bench.planes.operations import approximate_visit, gather, plane_value
from ssvm_bench.solvers.coordinate.turns import below

# mypy: disable-error-code="no-untyped-def"

NOTHING, ROOM, FULL, WORDS, GAP = range(5)
"""Why a pass stops: its end; no space for a row; a full cache; no random words; a large gap."""

LOWER, UPPER, HALF_NORM = range(3)
"""Entries of ``Seen.bounds``."""

SLACK, EXAMPLES = range(2)
"""Entries of ``Seen.met``."""

VISITS, EVALUATED, ENTERED = range(3)
"""Entries of ``Seen.tally``."""


class Plan(NamedTuple):
    """What happens at an example, and between examples.

    Attributes
    ----------
    steps : bool
        Whether an example takes a step when it is met, if it is in the cache then.
    revisits : int
        How many cached examples, drawn at random, then take a step.
    by_gap : bool
        Whether the cache is optimised when the online gap is too large.
    optimises : bool
        Whether it is optimised when it is full, and at the end of a pass.
    tol : float
        Largest (UB − LB)/max(UB, P̂) with which a pass continues, if ``by_gap``.
    capacity : int
        Most planes of the cache.
    n : int
        Number of examples of the problem.
    """

    steps: bool = False
    revisits: int = 0
    by_gap: bool = False
    optimises: bool = False
    tol: float = 0.0
    capacity: int = 0
    n: int = 0


class Seen(NamedTuple):
    """What a pass records.

    Attributes
    ----------
    begin : int
        Index of the first example of the chunk.
    terms : ndarray of int64, shape (examples of the chunk,)
        Index of each example in the cache; −1: it is not there.
    bounds : ndarray of float64, shape (3,)
        LB, UB and λ/2 ‖w‖², without the steps since they were computed.
    met : ndarray of float64, shape (2,)
        Σ_i n H_i(w), each at the w with which it was met in this pass, and their number.
    tally : ndarray of int64, shape (3,)
        Visits of cached examples, planes evaluated there, and planes that have entered the cache.
    needed : ndarray of int64, shape (2,)
        Numbers of planes and non-zeros for which there was no space.
    """

    begin: int
    terms: np.ndarray
    bounds: np.ndarray
    met: np.ndarray
    tally: np.ndarray
    needed: np.ndarray


@kernel
def _consider(cache, policy, state, plan, seen, i, g, count, offset):
    """Process example i of the chunk, whose best plane is in the cache's scratch.

    Returns
    -------
    int
        `WORDS`, `ROOM` or `FULL`: nothing has been done; `GAP` or `NOTHING`: all is done.
    """
    most = (plan.steps + plan.revisits) * (1 + cache.blocks.height.size)
    if policy.words.size - policy.drawn[0] <= most:
        return WORDS
    if g > policy.epsilon:
        reason = _enter(cache, state, plan, seen, i, g, count, offset)
        if reason != NOTHING:
            return reason
    if plan.steps and seen.terms[i] >= 0:
        _visit(cache, policy, state, seen, seen.terms[i])
    if cache.used[caches.TERMS] > 0:
        for _ in range(plan.revisits):
            word = policy.words[policy.drawn[0]]
            policy.drawn[0] += 1
            t = below(word >> np.uint64(32), cache.used[caches.TERMS])
            _visit(cache, policy, state, seen, t)
    seen.met[SLACK] += max(g, 0.0)
    seen.met[EXAMPLES] += 1.0
    bounds = seen.bounds
    estimate = bounds[HALF_NORM] + seen.met[SLACK] / seen.met[EXAMPLES]
    large = bounds[UPPER] - bounds[LOWER] > plan.tol * max(bounds[UPPER], estimate)
    return GAP if plan.by_gap and large else NOTHING


@kernel
def _enter(cache, state, plan, seen, i, g, count, offset):
    """Add the plane to the cache, unless it is there; return a reason to stop."""
    blocks, t = cache.blocks, seen.terms[i]
    highest = 0.0
    planes, nonzeros = 2, count
    if t >= 0:
        if caches.find_candidate(cache, t, count, offset) > 0:
            return NOTHING
        gather(blocks, state.w, t)
        for p in range(1, blocks.n_planes[t]):
            highest = max(highest, plane_value(blocks, t, p))
        first, planes = blocks.start[t], blocks.n_planes[t] + 1
        nonzeros += blocks.begin[first + planes - 1] - blocks.begin[first]
    if cache.used[caches.PLANES] >= plan.capacity:
        return FULL
    if not caches.has_room(cache, planes, nonzeros):
        seen.needed[0], seen.needed[1] = planes, nonzeros
        return ROOM
    t = caches.moved_behind(cache, t) if t >= 0 else caches.open_term(cache, seen.begin + i, planes)
    caches.add_candidate(cache, t, count, offset)
    seen.terms[i] = t
    seen.tally[ENTERED] += 1
    seen.bounds[UPPER] += max(0.0, g - highest) / plan.n
    return NOTHING


@kernel
def _visit(cache, policy, state, seen, t):
    """Let a cached example take its step; remove it if its planes have no weight then."""
    if cache.example[t] < 0:
        return
    seen.tally[VISITS] += 1
    seen.tally[EVALUATED] += approximate_visit(policy, cache.blocks, t, state)
    first = cache.blocks.start[t]
    for slot in range(first + 1, first + cache.blocks.n_planes[t]):
        if cache.numbers.alpha[slot] > 0.0:
            return
    i = cache.example[t] - seen.begin
    if 0 <= i < seen.terms.size:
        seen.terms[i] = -1
    caches.close(cache, t)


@allocating_kernel
def explore(oracle, exact, cache, policy, state, plan, seen, order, position, most):
    """Process the examples of a chunk with a compiled oracle, from a position in their order.

    No example has more than ``most`` parts.

    Returns
    -------
    position, reason : int
        Where to resume, and why the pass has stopped.
    share : float
        Share of the time that the oracle took.
    fault : int
        What is wrong with the oracle at example ``order[position]``.
    """
    features = oracle.features
    theta, y, labels, timespec = scratch(features, most)
    signs = np.array([1.0, -1.0])
    oracle_time = 0
    reason, fault = NOTHING, checks.NONE
    begin = nanoseconds(timespec)
    while position < order.size and reason == NOTHING:
        i = order[position]
        loss, score, fault, took = ask(oracle, exact, state.w, i, theta, 1.0, y, timespec)
        oracle_time += took
        if fault != checks.NONE:
            break
        count = 0
        if loss + score > policy.epsilon:
            count = difference_row(
                features, i, y, labels, signs, cache.blocks.dense, cache.indices, cache.values
            )
        reason = _consider(cache, policy, state, plan, seen, i, loss + score, count, loss)
        if reason in (NOTHING, GAP):
            position += 1
    share = oracle_time / max(nanoseconds(timespec) - begin, 1)
    return position, reason, share, fault


@kernel
def consider_row(indices, values, offset, g, cache, policy, state, plan, seen, i):
    """Do `_consider` with a plane that an oracle has returned, all values times n."""
    for k in range(indices.size):
        cache.indices[k], cache.values[k] = indices[k], values[k]
    return _consider(cache, policy, state, plan, seen, i, g, indices.size, offset)
