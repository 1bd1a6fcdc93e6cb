"""Compiled steps and passes of the block-coordinate methods (MP-BCFW, Algorithms 2 and 3).

One step on term i towards a plane φ̂ (section 3.2, step 7), in the units of
:mod:`ssvm_bench.planes.blocks`, which are n times the paper's: with δ = n (φ̂ − φ^i),
g = ⟨δ, [w 1]⟩ (n times the block gap) and w = −φ⋆/λ,

.. code-block:: text

    γ = clip( λ n g / ‖δ⋆‖², 0, 1 )      φ^i += γ δ/n      w −= γ/(λ n) δ⋆      φ∘ += γ/n δ∘

The average of the iterates (section 3.5), φ̄^(k) = 2/(k(k+1)) Σ_t t φ^(t), is kept as
φ̄ = φ − Z/W_k with W_k = k(k+1)/2 and Z = Σ_t W_{t−1} (φ^(t) − φ^(t−1)): a change that comes after
t averaged iterates enters Z with the weight W_t. So an average costs one more sparse update per
step. Z is kept in the units of w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.jit import allocating_kernel, generic, implements, kernel, nanoseconds
from ssvm_bench.oracles.joint_features import longest, unary_scores
from ssvm_bench.oracles.labeling import maximise
from ssvm_bench.planes import rows
from ssvm_bench.planes.blocks import (
    advance,
    aim,
    aim_from_truth,
    best_plane,
    drop_inactive,
    fetch,
    length2,
    load,
    remember,
    spread,
    spread_twice,
)
from ssvm_bench.planes.labeling_steps import load_from
from ssvm_bench.planes.labelings import put

# mypy: disable-error-code="no-untyped-def"


class State(NamedTuple):
    """φ = [φ⋆ φ∘] and the number of steps so far; ``w`` in the layout of its storage."""

    w: np.ndarray
    circ: np.ndarray  # shape (1,)
    steps: np.ndarray  # int64, shape (1,)


class Average(NamedTuple):
    """Z and its offset, and the number k of averaged iterates; ``z`` is empty if not wanted."""

    z: np.ndarray
    circ: np.ndarray  # shape (1,)
    k: np.ndarray  # int64, shape (1,)


class Rule(NamedTuple):
    """Constants of a step."""

    lam: float
    line_search: bool


class WorkingSets(NamedTuple):
    """The policy of MP-BCFW: one step a visit; planes are kept for the last T iterations."""

    N: int
    T: int


@generic
def spares(policy, blocks, i, state, average, rule, now):
    """Visit term i without its exact oracle, if the policy finds that its planes will do.

    Returns
    -------
    int
        Number of planes evaluated; 0 if the oracle is to be called.
    """


@generic
def arrive(policy, blocks, i, state, average, rule, now):
    """Step towards the candidate of term i, and remember it; after ``load``.

    Returns
    -------
    bool
        Whether anything has changed.
    """


@generic
def revisit(policy, blocks, i, state, average, rule, now):
    """Step towards the best planes of W_i, and drop the inactive ones; return |W_i| before."""


@generic
def keep_truth(policy, blocks, i, scale, now):
    """Remember the candidate, the ground truth's plane; n φ^i is about to be scaled."""


@implements(spares, WorkingSets)
def _spares(policy, blocks, i, state, average, rule, now):
    return 0


@implements(arrive, WorkingSets)
def _arrive(policy, blocks, i, state, average, rule, now):
    p = blocks.n_planes[i]
    changed = take_step(blocks, i, p, aim(blocks, i, p), state, average, rule)
    remember(blocks, i, policy.N, now)
    return changed


@implements(revisit, WorkingSets)
def _revisit(policy, blocks, i, state, average, rule, now):
    evaluated = blocks.n_planes[i]
    load(blocks, state.w, i)
    p = best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = now
    take_step(blocks, i, p, aim(blocks, i, p), state, average, rule)
    drop_inactive(blocks, i, now - policy.T)
    return evaluated


@implements(keep_truth, WorkingSets)
def _keep_truth(policy, blocks, i, scale, now):
    remember(blocks, i, policy.N, now)


@kernel
def take_step(blocks, i, p, climb, state, average, rule):
    """Move φ^i towards plane p of term i, after ``climb = aim(…)``; return whether it has moved."""
    n = blocks.n_planes.size
    if rule.line_search:
        gamma = 0.0
        if climb > 0.0:
            numerator = rule.lam * n * climb
            denominator = length2(blocks, i)
            gamma = 1.0 if numerator >= denominator else numerator / denominator
    else:
        gamma = 2.0 * n / (state.steps[0] + 2.0 * n)
    delta_circ = gamma * (blocks.offset[blocks.start[i] + p] - blocks.circ[i])
    return move(blocks, i, gamma, delta_circ, state, average, rule)


@kernel
def move(blocks, i, gamma, delta_circ, state, average, rule):
    """Move φ^i by γ δ and its offset by ``delta_circ``, and φ with it; one iterate to average."""
    n = blocks.n_planes.size
    state.steps[0] += 1
    k = average.k[0]
    average.k[0] = k + 1
    if gamma == 0.0:
        return False

    scale = -gamma / (rule.lam * n)
    state.circ[0] += delta_circ / n
    if average.z.size > 0:
        weight = 0.5 * k * (k + 1.0)
        spread_twice(blocks, i, scale, state.w, weight * scale, average.z)
        average.circ[0] += weight * (delta_circ / n)
    else:
        spread(blocks, i, scale, state.w)
    advance(blocks, i, gamma)
    blocks.circ[i] += delta_circ
    return True


@kernel
def exact_step(policy, blocks, i, indices, values, offset, state, average, rule, now):
    """Step towards a plane that a Python oracle has returned, and remember it.

    Returns
    -------
    changed : bool
        Whether φ^i has changed.
    size, nonzeros : int
        Zeros; or nothing has been done, and `rows.make_room` must make room for so much first.
    """
    size, nonzeros = rows.put(blocks, i, indices, values, offset)
    if size > 0:
        return False, size, nonzeros
    load(blocks, state.w, i)
    return arrive(policy, blocks, i, state, average, rule, now), 0, 0


@kernel
def spare_step(policy, blocks, i, state, average, rule, now):
    """Do what `spares` does, for a solver that calls its oracle from Python."""
    return spares(policy, blocks, i, state, average, rule, now)


class Tally(NamedTuple):
    """What an exact pass has done.

    Attributes
    ----------
    changed : int
        Number of visits that changed something.
    share : float
        Share of the time that the oracle took: its scores, and the maximisation.
    calls : int
        Calls of the exact oracle.
    spared : int
        Visits that did without.
    evaluated : int
        Planes evaluated in these.
    """

    changed: int
    share: float
    calls: int
    spared: int
    evaluated: int


@allocating_kernel
def exact_pass(policy, oracle, blocks, order, state, average, rule, now):
    """Visit terms, with a compiled oracle (Algorithm 3, step 5); return a `Tally`."""
    most = longest(oracle.features)
    y = np.zeros(most, np.uint8)
    theta = np.zeros((most, oracle.features.stride))
    timespec = np.zeros(2, np.int64)
    changed = 0
    spared = 0
    evaluated = 0
    oracle_time = 0
    begin = nanoseconds(timespec)
    for k in range(order.size):
        i = order[k]
        fetch(blocks, order[min(k + 1, order.size - 1)])
        seen = spares(policy, blocks, i, state, average, rule, now)
        if seen > 0:
            spared += 1
            evaluated += seen
            continue
        start = nanoseconds(timespec)
        unary_scores(oracle.features, state.w, i, theta)
        maximise(oracle, state.w, i, theta, 1.0, y)
        oracle_time += nanoseconds(timespec) - start
        put(blocks, i, y)
        load_from(blocks, state.w, i, theta)
        changed += arrive(policy, blocks, i, state, average, rule, now)
    share = oracle_time / max(nanoseconds(timespec) - begin, 1)
    return Tally(changed, share, order.size - spared, spared, evaluated)


@kernel
def approximate_pass(policy, blocks, order, state, average, rule, now):
    """Visit the terms in ``order``, maximising over their working sets (Algorithm 3, step 6).

    Returns
    -------
    int
        Number of planes evaluated.
    """
    evaluated = 0
    for k in range(order.size):
        i = order[k]
        fetch(blocks, order[min(k + 1, order.size - 1)])
        evaluated += revisit(policy, blocks, i, state, average, rule, now)
    return evaluated


@kernel
def sum_of_planes(blocks, lam, w):
    """Recompute w = −Σ_i φ^i⋆/λ in place from the terms, and return φ∘ = Σ_i φ∘^i."""
    n = blocks.n_planes.size
    w[:] = 0.0
    circ = 0.0
    for i in range(n):
        aim_from_truth(blocks, i)
        spread(blocks, i, -1.0 / (lam * n), w)
        circ += blocks.circ[i]
    return circ / n


@kernel
def remember_truth(blocks, N, now):
    """Let every W_i be {the ground truth's plane} (Algorithm 3, line 3); it is the candidate."""
    for i in range(blocks.n_planes.size):
        remember(blocks, i, N, now)


@kernel
def scale_term(policy, blocks, i, scale, now):
    """Multiply φ^i by ``scale``, in [0, 1]; the candidate is the truth's plane, which is 0."""
    keep_truth(policy, blocks, i, scale, now)
    aim_from_truth(blocks, i)
    advance(blocks, i, scale - 1.0)
    blocks.circ[i] *= scale


@kernel
def scale_labelings(policy, blocks, scale, now):
    """Do `scale_term` for all terms of a storage of labelings that has room for candidates."""
    features = blocks.features
    for i in range(blocks.n_planes.size):
        put(blocks, i, features.truth[features.offsets[i] : features.offsets[i + 1]])
        scale_term(policy, blocks, i, scale, now)


@kernel
def scale_row(policy, blocks, i, indices, values, offset, scale, now):
    """Do `scale_term` with the ground truth's plane of a storage of rows; return as `rows.put`."""
    size, nonzeros = rows.put(blocks, i, indices, values, offset)
    if size == 0:
        scale_term(policy, blocks, i, scale, now)
    return size, nonzeros


@kernel
def squared_norm(w):
    """Return ‖w‖², summed in order: the same bits on every machine."""
    total = 0.0
    for value in w:
        total += value * value
    return total
