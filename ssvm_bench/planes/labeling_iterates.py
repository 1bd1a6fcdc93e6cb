"""The dual iterates whose planes are labelings: a whole pass is one compiled call."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.base.jit import allocating_kernel, kernel, nanoseconds
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.base.state import Limits
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.joint_features import (
    DenseFeatures,
    JointFeatures,
    WideFeatures,
    nonzeros,
    transition_base,
    with_rows,
    with_zeros,
)
from ssvm_bench.oracles.labeling import Answered, LabelingOracle, ask
from ssvm_bench.oracles.scoring import label_index, label_size, scratch, waits
from ssvm_bench.planes import labelings, operations
from ssvm_bench.planes.dual_iterate import DualIterate, Tally, scale_term
from ssvm_bench.planes.labelings import Labelings, gather_from, set_candidate

# mypy: disable-error-code="no-untyped-def"

_LEAST = 1 << 18
"""Shorter vectors fit into the processor's caches: operations on all of them are as fast."""

_LARGEST_SHARE = 0.25
"""If the support has a larger share of w, a sum over it is no faster than one over all of w."""


_SINCE_1_0 = {
    "by_label": False,
    "indices": np.zeros(0, np.uint32),
    "touched": np.zeros(0, np.int64),
}
"""Parts that the states in pickled estimators of version 1.0 lack."""


def _weights_stored(found: Mapping[str, Any], phi: LabelingIterate) -> int:
    """Return how many weights a state has: those of touched features, and those of transitions."""
    if not phi._own_rows:
        return phi.w.size
    features = phi.oracle.features
    return found["touched"].size * features.stride + phi.w.size - transition_base(features)


def _without_row(found: Mapping[str, Any], phi: LabelingIterate) -> np.ndarray:
    """Return, for each feature of a part with several labels, whether a state has no row of it."""
    if not phi._own_rows:
        return np.zeros(0, bool)
    features = phi.oracle.features
    read = np.repeat(found["blocks"].seen_count > 1, np.diff(features.indptr))
    return np.isin(features.indices[read], found["touched"], invert=True)


class LabelingIterate(DualIterate):
    """Planes are labelings; a whole pass is one compiled call.

    Its state has the indices of the support, and says how w is laid out: by label or not; if only
    touched features have rows, it has their weights alone, and the features in the order of rows.
    """

    LIMITS: ClassVar[Mapping[str, Limits]] = {
        **DualIterate.LIMITS,
        "by_label": Limits(equals=lambda _, phi: isinstance(phi.oracle.features, DenseFeatures)),
        "indices": Limits(size=..., below="w.size"),
        "touched": Limits(size=..., below="oracle.features.n_features", distinct=True),
        "_state.w": Limits(size=_weights_stored),
        "features without a row": Limits(of=_without_row, most=0),
    }
    _phi_i = labelings.CHANGED

    def __init__(self, problem: Problem, oracle: LabelingOracle, N: int) -> None:
        self.oracle = oracle
        super().__init__(problem, labelings.allocate(oracle.features), N)
        self._support = Support(oracle.inner_d)
        own = oracle.features is not getattr(problem.oracle, "features", None)
        self._own_rows = own and isinstance(oracle.features, WideFeatures)
        self.blocks.n_planes[:] = N > 0  # of the ground truth's plane (Algorithm 3, line 3)
        self._support.update(self.blocks)

    def outer(self, w: np.ndarray) -> np.ndarray:
        """See `DualIterate`."""
        return self.oracle.unpack(w)

    def point(self) -> np.ndarray | Nonzeros:
        """See `DualIterate`."""
        if not self._own_rows or self.indices is None:
            return self.outer_w()
        return nonzeros(self.oracle.features, self.w)

    def _stored(self) -> dict[str, Any]:
        features, touched, w = self.oracle.features, np.zeros(0, np.int64), self.w
        if self._own_rows:
            used, base = features.used[0], transition_base(features)
            touched = np.argsort(features.rows, kind="stable")[:used]
            w = np.concatenate((w[: used * features.stride], w[base:]))
        return {
            **super()._stored(),
            "_state.w": w,
            "touched": touched,
            "by_label": isinstance(features, DenseFeatures),
            "indices": np.zeros(0, np.uint32) if self.indices is None else self.indices,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        super().restore({**_SINCE_1_0, **state})

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        features, touched, w = self.oracle.features, found["touched"], found["_state.w"]
        if self._own_rows:
            made, count = with_rows(features, touched), touched.size * features.stride
            features.rows[:], features.used[:] = made.rows, made.used
            w = np.zeros_like(self.w)
            w[:count], w[transition_base(features) :] = np.split(found["_state.w"], [count])
        super()._rebuild({**found, "_state.w": w})
        self._support.forget()
        self._support.update(self.blocks, found["indices"])
        self.reserve(np.ones(self.problem.n, np.int64))

    @property
    def indices(self) -> np.ndarray | None:
        """Sorted indices where w may be non-zero: those that any plane has touched; None: all."""
        return self._support.indices

    def update_latent(self, problem: Problem) -> np.ndarray | None:
        """Replace the true labels in place, unless an example may have any label.

        In that case, a new true label may already be the label of another plane.
        """
        assert isinstance(problem.oracle, LabelingOracle)
        if problem.oracle.any_label:
            return None
        self.problem, self.oracle = problem, problem.oracle
        self.blocks = self.blocks._replace(features=self.oracle.features)
        self._state.steps[0] = 0
        self._support.forget()
        return labelings.follow_truth(self.blocks)

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        self.reserve(np.bincount(order, minlength=self.problem.n))
        if self.oracle.caller is not None:
            tally = super()._exact_pass(policy, order, may_skip, batch)
        else:
            tally = self._visit(self.oracle.compiled, policy, order, may_skip, self.oracle.exact)
        self._support.update(self.blocks)
        return tally

    def _answered_visits(self, policy: Any, asked: np.ndarray) -> tuple[int, float]:
        caller, oracle = self.oracle.caller, self.problem.oracle
        assert caller is not None
        assert isinstance(oracle, LabelingOracle)
        before, query = caller.waited, self.query
        if isinstance(self.oracle.features, DenseFeatures):
            query = self.pack(self.outer(query))
        answered = oracle.answering(query, asked)._replace(features=self.oracle.features)
        # the first visit may move w; labelings from the former w need not beat the truth there
        exact = self.oracle.exact and asked.size == 1
        tally = self._visit(answered, policy, asked, False, exact)
        return tally.changed, caller.waited - before

    def _visit(
        self, oracle: Any, policy: Any, order: np.ndarray, may_skip: bool, exact: bool
    ) -> Tally:
        """Visit terms with a compiled oracle, and raise its faults."""
        tally = visit_with_oracle(policy, oracle, exact, self.blocks, order, self.shared, may_skip)
        checks.check_fault(self.oracle, tally.last, tally.fault)
        return tally

    def _scale_terms(self, policy: Any, scale: float) -> None:
        self.reserve(np.ones(self.problem.n, np.int64))
        _scale_labelings(policy, self.blocks, scale, self._state.now)

    def reserve(self, visits: np.ndarray) -> None:
        """See `DualIterate`."""
        self.blocks = labelings.reserve(self.blocks, visits, self.N)


@allocating_kernel
def visit_with_oracle(policy, oracle, exact, blocks, order, state, may_skip):
    """Visit terms with a compiled oracle (Algorithm 3, step 5).

    Parameters
    ----------
    policy : NamedTuple
    oracle : NamedTuple
        The first argument of :func:`ssvm_bench.oracles.labeling.maximise`.
    exact : bool
        Whether the oracle claims to return a maximiser.
    blocks : Labelings
    order : ndarray of int64, shape (visits,)
        The terms.
    state : PassState
    may_skip : bool
        Whether the policy may skip oracle calls.

    Returns
    -------
    Tally
        Of all visits; or, if one leaves features that have to be completed before the next
        (`scoring.waits`), of the visits up to that one.
    """
    theta, y, _, timespec = scratch(oracle.features, blocks.theta.shape[0])
    changed = 0
    skipped = 0
    evaluated = 0
    oracle_time = 0
    i, fault = 0, checks.NONE
    at_w = state.query.size == 0
    query = state.w if at_w else state.query
    visits = 0
    begin = nanoseconds(timespec)
    for k in range(order.size):
        if waits(blocks.features):
            break
        visits = k + 1
        i = order[k]
        operations.prefetch_term(blocks, order, k)
        if may_skip:
            seen = operations.visit_without_oracle(policy, blocks, i, state)
            if seen > 0:
                skipped += 1
                evaluated += seen
                continue
        _, _, fault, took = ask(oracle, exact, query, i, theta, 1.0, y, timespec)
        oracle_time += took
        if fault != checks.NONE:
            break
        set_candidate(blocks, i, y)
        if at_w:
            gather_from(blocks, state.w, i, theta)
        else:
            operations.gather(blocks, state.w, i)
        changed += operations.exact_visit(policy, blocks, i, state)
    share = oracle_time / (nanoseconds(timespec) - begin + 1)
    return Tally(changed, share, visits - skipped, skipped, evaluated, i, fault)


@kernel
def _scale_labelings(policy, blocks, scale, now):
    """Do `scale_term` for all terms of a storage that has space for candidates."""
    features = blocks.features
    for i in range(blocks.n_planes.size):
        set_candidate(blocks, i, features.truth[features.offsets[i] : features.offsets[i + 1]])
        scale_term(policy, blocks, i, scale, now)


# ---- where w may differ from 0 ----------------------------------------------------------------


class Support:
    """The indices of w that planes of any term have touched so far.

    A labeling changes w only at the features of its parts, and there only for its labels and the
    true ones. So with hundreds of thousands of features, such as words, w is 0 except at a few per
    cent of its entries until the oracle returns other labels. Operations on whole vectors, such as
    a norm, need only these. As the indices are sorted, a sum over them equals one over w exactly.

    Parameters
    ----------
    D : int
        Number of weights in the storage's layout.

    Attributes
    ----------
    indices : ndarray of uint32, or None
        Sorted; None means all of w.
    """

    def __init__(self, D: int) -> None:
        self.D = D
        self.forget()

    def forget(self) -> None:
        """Discard the indices, because other planes may have replaced the former ones."""
        self.indices: np.ndarray | None = None
        self._wide = not _LEAST <= self.D < 1 << 32
        self._marks = np.zeros(0, bool)

    def update(self, blocks: Labelings, before: Sequence[int] | np.ndarray = ()) -> None:
        """Add the labels seen since the last call; at the first, also the indices ``before``."""
        if self._wide:
            return
        if self._marks.size == 0:
            self._marks = np.zeros(self.D, bool)
            self._marks[transition_base(blocks.features) :] = True
            self._marks[np.asarray(before, np.int64)] = True
            self.indices = np.flatnonzero(self._marks).astype(np.uint32)
            blocks.is_new[:] = blocks.seen_count > 1
        if _mark(blocks, self._marks):
            self.indices = np.flatnonzero(self._marks).astype(np.uint32)
        if self.indices is not None and self.indices.size > _LARGEST_SHARE * self.D:
            self.forget()  # the support only grows
            self._wide = True


@kernel
def _mark(blocks, marks):
    """Mark where w may change at parts with new labels; return whether there are any."""
    features = blocks.features
    found = False
    for q in range(blocks.is_new.size):
        if blocks.is_new[q]:
            blocks.is_new[q] = False
            count = blocks.seen_count[q]
            found |= count > 1
            for k in range(label_size(features, q)):
                for c in range(count if count > 1 else 0):
                    marks[label_index(features, q, k, blocks.seen[q, c])] = True
    return found


def with_own_layout(oracle: LabelingOracle, rows: bool, zeros: bool) -> LabelingOracle:
    """Return the oracle with another layout of w; itself if none fits, or if true labels change.

    Parameters
    ----------
    rows : bool
        With many features, each gets a row of w when it is first touched; not with a caller.
    zeros : bool
        With features that have few zeros, zeros are stored, too, and w is stored label by label.
    """
    features = oracle.features
    if isinstance(features, WideFeatures):
        if rows and oracle.caller is None:
            features = with_rows(features, np.zeros(0, np.int64))
    elif zeros and isinstance(features, JointFeatures):
        features = with_zeros(features)
    if features is oracle.features or oracle.latent() is not None:
        return oracle
    made = copy.copy(oracle)
    made.features = features
    made.compiled = oracle.compiled._replace(features=features)
    return made


# ---- all planes from the beginning -------------------------------------------------------------


class AllLabels(LabelingIterate):
    """W_i has all labels of example i, which is of one part."""

    def __init__(self, problem: Problem, oracle: LabelingOracle) -> None:
        K = oracle.features.n_labels
        super().__init__(problem, oracle, N=K)
        self.reserve(np.full(problem.n, K))
        _insert_all_labels(self.blocks)
        self._support.update(self.blocks)

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        # an oracle that returns the truth's plane, which is in W_i: it computes all scores at once
        known = Answered(self.oracle.features, self.oracle.features.truth)
        tally = self._visit(known, policy, order, False, exact=False)
        return tally._replace(share=0.0)  # no time was spent in an oracle: none was called


@allocating_kernel
def _insert_all_labels(blocks):
    """Insert all labels of every term's only part into W_i, behind the planes already in it."""
    y = np.zeros(1, blocks.features.truth.dtype)
    for i in range(blocks.n_planes.size):
        for label in range(blocks.features.n_labels):
            y[0] = label
            set_candidate(blocks, i, y)
            operations.insert(blocks, i, 0)
