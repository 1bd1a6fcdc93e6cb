"""The dual iterates whose planes are sparse rows: returned by any oracle, or all given."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from ssvm_bench.base import state as states
from ssvm_bench.base.jit import kernel
from ssvm_bench.oracles.base import Constraints, Plane, Problem
from ssvm_bench.planes import given_rows, operations, rows
from ssvm_bench.planes.dual_iterate import DualIterate, Tally, approximate_pass, scale_term
from ssvm_bench.planes.given_rows import BETA, STRIDE, VIOLATION, FixedRows, LineRows
from ssvm_bench.planes.operations import exact_visit, gather, insert_truth
from ssvm_bench.planes.rows import Rows

# mypy: disable-error-code="no-untyped-def"


class RowIterate(DualIterate):
    """Planes are sparse rows of the outer layout; the oracle is called from Python."""

    _phi_i = rows.CHANGED

    def __init__(self, problem: Problem, N: int) -> None:
        super().__init__(problem, rows.allocate(problem.n, problem.d), N)
        self.blocks.n_planes[:] = N > 0  # of the ground truth's plane (Algorithm 3, line 3)

    @property
    def inner_d(self) -> int:
        """See `DualIterate`."""
        return self.problem.d

    def pack(self, w: np.ndarray) -> np.ndarray:
        """See `DualIterate`."""
        return w.copy()

    outer = pack

    def _answered_visits(self, policy: Any, asked: np.ndarray) -> tuple[int, float]:
        changed, seconds, terms, state = 0, 0.0, asked.tolist(), self.shared
        at = self.query if len(terms) < 2 else self.query.copy()
        planes = self.problem.oracle.best_planes(at, terms)
        for i in terms:
            start = perf_counter()
            plane, _ = next(planes)
            seconds += perf_counter() - start
            self.blocks = rows.put(self.blocks, i, plane)
            changed += _visit_candidate(policy, self.blocks, i, state)
        return changed, seconds

    def _scale_terms(self, policy: Any, scale: float) -> None:
        truth = Plane(np.zeros(0, np.int64), np.zeros(0), 0.0)
        for i in range(self.problem.n):
            self.blocks = rows.put(self.blocks, i, truth)
            scale_term(policy, self.blocks, i, scale, self._state.now)


@kernel
def _visit_candidate(policy, blocks, i, state):
    """Do an `exact_visit`, after ``gather``."""
    gather(blocks, state.w, i)
    return exact_visit(policy, blocks, i, state)


class GivenRows(DualIterate):
    """All planes, given as rows: `FixedRows` or `LineRows`."""

    @classmethod
    def of(cls, problem: Problem, constraints: Constraints) -> GivenRows:
        """Return φ with the planes that the oracle has listed."""
        line = given_rows.line_rows(constraints, problem.d)
        blocks = given_rows.fixed_rows(constraints, problem.d) if line is None else line
        return cls(problem, blocks, N=int(blocks.n_planes.max()))

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        before = policy.steps.sum()
        approximate_pass(policy, self.blocks, order, self.shared)
        return Tally(int(policy.steps.sum() - before), share=0.0, calls=order.size)

    def _scale_terms(self, policy: Any, scale: float) -> None:
        _scale_weights(policy, self.blocks, scale, self._state.now)


@kernel
def _scale_weights(policy, blocks, scale, now):
    """Scale all terms of a storage without φ^i, where only the policy has weights."""
    for i in range(blocks.n_planes.size):
        insert_truth(policy, blocks, i, scale, now)


# ---- the storages as arrays, and back (:mod:`.operations`) --------------------------------------


_COUNTS = ("n_planes", "term_offset", "size")


@states.of.register
def _(blocks: Rows) -> dict[str, np.ndarray]:
    slots = operations.entries(blocks.start, blocks.n_planes)
    nonzeros = operations.entries(blocks.begin[slots], blocks.length[slots])
    in_use = {
        ("offset", "active", "length"): slots,
        ("indices", "values"): nonzeros,
        ("support", "phi"): operations.entries(blocks.support_start, blocks.size),
    }
    return operations.lying(blocks, _COUNTS, in_use)


@states.like.register
def _(blocks: Rows, given: Any) -> Rows:
    found = operations.taken(states.of(blocks), given, *_COUNTS, support=blocks.w_here.size)
    n_planes, length, size = found["n_planes"], found["length"], found["size"]
    for count, name, of, *others in (
        (n_planes, "n_planes", "offset", "active", "length"),
        (size, "size", "phi", "support"),
        (length, "length", "values", "indices"),
    ):
        operations.check_below(count, found[of].size + 1, name)  # so that no sum overflows
        operations.check_sizes(found, int(count.sum()), of, *others)
    operations.check_below(
        found["indices"], np.repeat(np.repeat(size, n_planes), length), "indices"
    )
    operations.check_distinct(np.repeat(np.arange(size.size), size), found["support"], "support")

    room = n_planes + 1  # one for a candidate
    start = operations.starts_of(room)
    places = operations.entries(start, n_planes)
    found["begin"] = operations.starts_of(length)
    for name in rows.OF_SLOTS:
        flat, found[name] = found[name], np.zeros(room.sum(), found[name].dtype)
        found[name][places] = flat
    nonzeros = found["values"].size
    return blocks._replace(
        **found,
        start=start,
        room=room,
        width=size.copy(),
        support_start=operations.starts_of(size),
        used=np.array([room.sum(), found["phi"].size, nonzeros, nonzeros, 0]),
    )


@states.of.register
def _(blocks: LineRows) -> dict[str, np.ndarray]:
    numbers = blocks.numbers
    return {"beta": numbers[BETA::STRIDE], "violation": numbers[VIOLATION::STRIDE]}


@states.like.register
def _(blocks: LineRows, given: Any) -> LineRows:
    own = states.of(blocks)
    found = operations.taken(own, given, *own)
    operations.check_below(np.abs(found["beta"]), 1.0 + 1e-9, "beta")
    for name, numbers in own.items():
        numbers[:] = found[name]
    return blocks


@states.of.register
def _(blocks: FixedRows) -> dict[str, np.ndarray]:
    return {}  # all planes are given, and the solver keeps the weights


@states.like.register
def _(blocks: FixedRows, given: Any) -> FixedRows:
    operations.taken({}, given)
    return blocks
