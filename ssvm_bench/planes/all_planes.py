"""Dual iterates whose working sets have all planes from the beginning: their solvers ask no oracle.

An exact pass visits the terms with `passes.whole_visit`, in the place of one that calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.oracles.scoring import longest
from ssvm_bench.oracles.signed_features import SignedOracle
from ssvm_bench.planes import fixed_rows, line_rows, passes
from ssvm_bench.planes.dual_iterate import DualIterate, LabelingIterate
from ssvm_bench.planes.passes import State, Tally


def with_all_planes(problem: Problem, labels: bool) -> DualIterate | None:
    """Return φ with all planes of term i in W_i, the ground truth's first; None if it cannot be.

    It can where the oracle lists its planes, and, if ``labels`` are wanted, too, where a plane is
    the label of an example. φ^i stays at the ground truth's plane: solvers of this kind keep the
    weights of the planes.
    """
    oracle = problem.oracle
    if (
        isinstance(oracle, LabelingOracle)
        and not isinstance(oracle, SignedOracle)
        and oracle.any_label
        and longest(oracle.features) == 1
    ):
        return _AllLabels(problem, oracle) if labels else None
    constraints = oracle.constraints()
    if constraints is None:
        return None
    constraints.check(problem.n, problem.d)
    line = line_rows.allocate(constraints, problem.d)
    blocks = fixed_rows.allocate(constraints, problem.d) if line is None else line
    return _GivenRows(problem, blocks)


class _AllLabels(LabelingIterate):
    """All labels of examples of one part."""

    def __init__(self, problem: Problem, oracle: LabelingOracle) -> None:
        K = oracle.features.n_labels
        super().__init__(problem, oracle, N=K)
        self._reserve(np.full(problem.n, K))
        passes.insert_all_labels(self.blocks, 0)

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        return _whole(passes.whole_pass_of_labels, policy, self.blocks, order, self.state)


class _GivenRows(DualIterate):
    """All planes, given as rows: `FixedRows` or `LineRows`."""

    def __init__(self, problem: Problem, blocks: Any) -> None:
        super().__init__(problem, blocks, problem.d, N=int(blocks.n_planes.max()))

    @property
    def _phi_i(self) -> tuple[str, ...]:
        return ()

    def outer(self, w: np.ndarray) -> np.ndarray:
        return w.copy()

    def inner(self, w: np.ndarray) -> np.ndarray:
        return w.copy()

    def approximate_pass(
        self, policy: Any, order: np.ndarray, clock: Clock, lam: float | None = None
    ) -> None:
        state = self.state if lam is None else self.state._replace(lam=lam)
        passes.whole_pass(policy, self.blocks, order, state)
        clock.approximate(order.size, int(self.blocks.n_planes[order].sum()))

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        return _whole(passes.whole_pass, policy, self.blocks, order, self.state)

    def _scale_terms(self, policy: Any, scale: float) -> None:
        passes.scale_weights(policy, self.blocks, scale, self.state.now)


def _whole(pass_: Any, policy: Any, blocks: Any, order: np.ndarray, state: State) -> Tally:
    """Do a pass over all planes; that takes the calls' time, but nobody has been asked."""
    changed = pass_(policy, blocks, order, state)
    return Tally(changed, 0.0, calls=order.size, skipped=0, evaluated=0, last=-1, fault=checks.NONE)
