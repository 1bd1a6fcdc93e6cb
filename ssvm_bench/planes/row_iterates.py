"""The dual iterates whose planes are sparse rows: found by any oracle, or all given."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import ssvm_bench.planes.stored_rows  # noqa: F401  it tells how these storages are kept
from ssvm_bench.base.jit import kernel
from ssvm_bench.oracles.base import Plane, Problem
from ssvm_bench.oracles.constraints import Constraints
from ssvm_bench.planes import given_rows, rows
from ssvm_bench.planes.dual_iterate import DualIterate, Tally, begin_at_candidates, scale_term
from ssvm_bench.planes.operations import exact_visit, gather, insert_truth

# mypy: disable-error-code="no-untyped-def"


class RowIterate(DualIterate):
    """Planes are sparse rows; the oracle is called from Python, term by term."""

    _phi_i = rows.CHANGED

    def __init__(self, problem: Problem, N: int) -> None:
        super().__init__(problem, rows.allocate(problem.n, problem.d), N)
        begin_at_candidates(self.blocks, N)

    def _answered_visits(self, policy: Any, asked: np.ndarray) -> tuple[int, float]:
        changed, seconds, terms, state = 0, 0.0, asked.tolist(), self.shared
        at = state.w if len(terms) < 2 else state.w.copy()
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
        """Return φ with the planes that are listed."""
        line = given_rows.line_rows(constraints, problem.d)
        blocks = given_rows.fixed_rows(constraints, problem.d) if line is None else line
        return cls(problem, blocks, N=int(blocks.n_planes.max()))

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        before = policy.steps.sum()
        self._approximate_pass(policy, order, self.shared)
        return Tally(int(policy.steps.sum() - before), share=0.0, calls=order.size)

    def _scale_terms(self, policy: Any, scale: float) -> None:
        _scale_weights(policy, self.blocks, scale, self._state.now)


@kernel
def _scale_weights(policy, blocks, scale, now):
    """Do `scale_term` for all terms of a storage that has no φ^i: only the policy has weights."""
    for i in range(blocks.n_planes.size):
        insert_truth(policy, blocks, i, scale, now)
