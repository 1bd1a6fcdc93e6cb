"""Compiled passes over the terms, and what a visit of a term may be.

A pass visits terms in some order. What happens there is the *policy* of a solver: a ``NamedTuple``
whose type implements the visits declared here.

=================  ========================================================================
symbol             name
=================  ========================================================================
φ = [φ⋆ φ∘]        ``State.w`` = −φ⋆/λ, ``State.circ``
φ^i, W_i           ``blocks``, a storage (:mod:`ssvm_bench.planes.operations`)
λ                  ``State.lam``
Z, Z∘, k           ``Average``: φ̄ = φ − Z/W_k with W_k = k(k+1)/2
=================  ========================================================================

The average of the iterates (MP-BCFW, section 3.5), φ̄^(k) = 2/(k(k+1)) Σ_t t φ^(t), is kept by
Z = Σ_t W_{t−1} (φ^(t) − φ^(t−1)): a change that comes after t averaged iterates enters Z with the
weight W_t. So an average costs one more sparse update per step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import abstract, allocating_kernel, kernel, nanoseconds
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.labeling import judged, maximise
from ssvm_bench.oracles.scoring import longest, unary_scores
from ssvm_bench.planes import rows
from ssvm_bench.planes.labeling_steps import gather_from
from ssvm_bench.planes.labelings import set_candidate
from ssvm_bench.planes.operations import (
    add_direction,
    gather,
    insert,
    insert_candidate,
    move_term,
    prefetch_start,
    prefetch_term,
    set_direction_from_truth,
)

# mypy: disable-error-code="no-untyped-def"


_AHEAD = 4
"""Visits between prefetching a short row and reading it, and once more as many before that."""


class Average(NamedTuple):
    """An average of the iterates.

    Attributes
    ----------
    z : ndarray of float64, shape (D,)
        Z⋆ in the units of w, −Z⋆/λ; of shape (0,) where no average is wanted.
    circ : ndarray of float64, shape (1,)
        Z∘.
    k : ndarray of int64, shape (1,)
        Number of averaged iterates.
    """

    z: np.ndarray
    circ: np.ndarray
    k: np.ndarray


class State(NamedTuple):
    """φ, as all visits of a pass see and change it.

    Attributes
    ----------
    w : ndarray of float64, shape (D,)
        −φ⋆/λ, in the storage's layout.
    circ : ndarray of float64, shape (1,)
        φ∘.
    steps : ndarray of int64, shape (1,)
        Steps so far.
    average : Average
        What the steps of the pass enter.
    lam : float
        λ.
    line_search : bool
        Whether steps have the best length; else 2n/(k + 2n) after k steps.
    now : int
        Number of the outer iteration.
    """

    w: np.ndarray
    circ: np.ndarray
    steps: np.ndarray
    average: Average
    lam: float
    line_search: bool
    now: int


@abstract
def visit_without_oracle(policy, blocks, i, state):
    """Visit term i without its exact oracle, if the policy finds that its planes will do.

    Returns
    -------
    int
        Number of planes evaluated; 0 if the oracle is to be called.
    """


@abstract
def exact_visit(policy, blocks, i, state):
    """Do what is due when the oracle's plane is the candidate of term i; after ``gather``.

    Returns
    -------
    bool
        Whether anything has changed.
    """


@abstract
def approximate_visit(policy, blocks, i, state):
    """Do what is due with the planes of W_i alone; return |W_i| before."""


@abstract
def whole_visit(policy, blocks, i, state):
    """Do what is due at a term whose W_i holds all planes that there are; after ``gather``.

    Returns
    -------
    bool
        Whether anything has changed.
    """


@abstract
def insert_truth(policy, blocks, i, scale, now):
    """Put the candidate, the ground truth's plane, into W_i; n φ^i is about to be scaled.

    Where all planes are known, it is there.
    """


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
    skipped : int
        Visits that did without.
    evaluated : int
        Planes evaluated in these.
    last, fault : int
        The last term visited, and what is wrong with the oracle there, of
        :mod:`ssvm_bench.oracles.checks`; the pass has ended there.
    """

    changed: int
    share: float
    calls: int
    skipped: int
    evaluated: int
    last: int
    fault: int


@allocating_kernel
def exact_pass(policy, oracle, exact, blocks, order, state, may_skip):
    """Visit terms with a compiled oracle (Algorithm 3, step 5).

    Parameters
    ----------
    policy : NamedTuple
    oracle : NamedTuple
        As :func:`ssvm_bench.oracles.labeling.maximise` takes it.
    exact : bool
        Whether it says that it finds a maximiser.
    blocks : Labelings
    order : ndarray of int64, shape (visits,)
        The terms.
    state : State
    may_skip : bool
        Whether the policy may do without the oracle.

    Returns
    -------
    Tally
    """
    most = longest(oracle.features)
    y = np.zeros(most, oracle.features.truth.dtype)
    theta = np.zeros((most, oracle.features.stride))
    timespec = np.zeros(2, np.int64)
    changed = 0
    skipped = 0
    evaluated = 0
    oracle_time = 0
    i, fault = 0, checks.NONE
    begin = nanoseconds(timespec)
    for k in range(order.size):
        i = order[k]
        prefetch_term(blocks, order[min(k + 1, order.size - 1)])
        if may_skip:
            seen = visit_without_oracle(policy, blocks, i, state)
            if seen > 0:
                skipped += 1
                evaluated += seen
                continue
        start = nanoseconds(timespec)
        unary_scores(oracle.features, state.w, i, theta)
        maximise(oracle, state.w, i, theta, 1.0, y)
        oracle_time += nanoseconds(timespec) - start
        _, _, fault = judged(oracle.features, exact, state.w, i, theta, 1.0, y)
        if fault != checks.NONE:
            break
        set_candidate(blocks, i, y)
        gather_from(blocks, state.w, i, theta)
        changed += exact_visit(policy, blocks, i, state)
    share = oracle_time / max(nanoseconds(timespec) - begin, 1)
    return Tally(changed, share, order.size - skipped, skipped, evaluated, i, fault)


@kernel
def approximate_pass(policy, blocks, order, state):
    """Visit the terms in ``order``, maximising over their working sets (Algorithm 3, step 6).

    Returns
    -------
    int
        Number of planes evaluated.
    """
    evaluated = 0
    for k in range(order.size):
        i = order[k]
        prefetch_term(blocks, order[min(k + 1, order.size - 1)])
        evaluated += approximate_visit(policy, blocks, i, state)
    return evaluated


# ---- where all planes are known ----------------------------------------------------------------


@kernel
def whole_pass(policy, blocks, order, state):
    """Visit the terms in ``order``, whose planes are all in their W_i.

    Returns
    -------
    int
        Number of visits that changed something.
    """
    changed = 0
    last = order.size - 1
    for k in range(order.size):
        prefetch_start(blocks, order[min(k + 2 * _AHEAD, last)])
        prefetch_term(blocks, order[min(k + _AHEAD, last)])
        i = order[k]
        gather(blocks, state.w, i)
        changed += whole_visit(policy, blocks, i, state)
    return changed


@allocating_kernel
def whole_pass_of_labels(policy, blocks, order, state):
    """Do a `whole_pass` where planes are labels: one look at the features gives all scores."""
    features = blocks.features
    theta = np.zeros((longest(features), features.stride))
    changed = 0
    for k in range(order.size):
        i = order[k]
        prefetch_term(blocks, order[min(k + 1, order.size - 1)])
        unary_scores(features, state.w, i, theta)
        gather_from(blocks, state.w, i, theta)
        changed += whole_visit(policy, blocks, i, state)
    return changed


@allocating_kernel
def insert_all_labels(blocks, now):
    """Put all labels of the only part of every term into its W_i, behind what is there."""
    y = np.zeros(1, blocks.features.truth.dtype)
    for i in range(blocks.n_planes.size):
        for label in range(blocks.features.n_labels):
            y[0] = label
            set_candidate(blocks, i, y)
            insert(blocks, i, now)


# ---- for oracles that are called from Python --------------------------------------------------


@kernel
def visit_with_row(policy, blocks, i, indices, values, offset, state):
    """Do an `exact_visit` with the plane that an oracle has returned, scaled by 1/n.

    Returns
    -------
    changed : bool
        Whether anything has changed.
    size, nonzeros : int
        Zeros; or nothing has been done, and `rows.make_room` must make room for so much first.
    """
    size, nonzeros = rows.set_candidate(blocks, i, indices, values, offset)
    if size > 0:
        return False, size, nonzeros
    gather(blocks, state.w, i)
    return exact_visit(policy, blocks, i, state), 0, 0


@allocating_kernel
def skip(policy, blocks, order, state):
    """Do a `visit_without_oracle` at every term.

    Returns
    -------
    ndarray of int64
        The terms whose oracle is to be called.
    skipped, evaluated : int
        Visits that did without, and planes evaluated in these.
    """
    asked = np.empty_like(order)
    count = 0
    evaluated = 0
    for i in order:
        seen = visit_without_oracle(policy, blocks, i, state)
        evaluated += seen
        if seen == 0:
            asked[count] = i
            count += 1
    return asked[:count], order.size - count, evaluated


# ---- sums, truths and multiples ---------------------------------------------------------------


@kernel
def sum_of_terms(blocks, lam, w):
    """Recompute w = −Σ_i φ^i⋆/λ in place from the terms, and return φ∘ = Σ_i φ∘^i."""
    n = blocks.n_planes.size
    w[:] = 0.0
    circ = 0.0
    for i in range(n):
        set_direction_from_truth(blocks, i)
        add_direction(blocks, i, -1.0 / (lam * n), w)
        circ += blocks.circ[i]
    return circ / n


@kernel
def begin_at_candidates(blocks, N, now):
    """Let every W_i be {the candidate}, the ground truth's plane (Algorithm 3, line 3)."""
    for i in range(blocks.n_planes.size):
        insert_candidate(blocks, i, N, now)


@kernel
def scale_term(policy, blocks, i, scale, now):
    """Multiply φ^i by ``scale``, in [0, 1]; the candidate is the truth's plane, which is 0."""
    insert_truth(policy, blocks, i, scale, now)
    set_direction_from_truth(blocks, i)
    move_term(blocks, i, scale - 1.0)
    blocks.circ[i] *= scale


@kernel
def scale_labelings(policy, blocks, scale, now):
    """Do `scale_term` for all terms of a storage of labelings that has room for candidates."""
    features = blocks.features
    for i in range(blocks.n_planes.size):
        set_candidate(blocks, i, features.truth[features.offsets[i] : features.offsets[i + 1]])
        scale_term(policy, blocks, i, scale, now)


@kernel
def scale_weights(policy, blocks, scale, now):
    """Do `scale_term` for all terms of a storage that has no φ^i: only the policy has weights."""
    for i in range(blocks.n_planes.size):
        insert_truth(policy, blocks, i, scale, now)


@kernel
def scale_row(policy, blocks, i, indices, values, offset, scale, now):
    """Do `scale_term` with the truth's plane of a storage of rows; return as `set_candidate`."""
    size, nonzeros = rows.set_candidate(blocks, i, indices, values, offset)
    if size == 0:
        scale_term(policy, blocks, i, scale, now)
    return size, nonzeros
