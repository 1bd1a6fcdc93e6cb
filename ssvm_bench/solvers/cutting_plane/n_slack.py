"""The n-slack cutting-plane method (Tsochantaridis et al. 2005; Joachims et al. 2009, Algorithm 1).

.. code-block:: text

    min_{w, ξ}  λ/2 ‖w‖² + Σ_i ξ_i        ⟨φ^{iy}, [w 1]⟩ ≤ ξ_i  for all planes of W_i

repeat: ask the oracle of each term; if its plane exceeds ξ_i by more than a tolerance, add it to
W_i; after every ``accumulate`` new planes, and after the last term, solve the QP over the W_i.

Its dual is ours over the planes found, on a product of n simplices. The pairwise steps of
:mod:`ssvm_bench.solvers.block.multi_step_kernels` ascend it, term by term, in passes most of which
are accelerated, until the gap over the W_i is a tenth of what the new planes exceeded their ξ_i, or
of the tolerance. Planes are never dropped.

============  =================================================================================
option        meaning
============  =================================================================================
accumulate    number of new planes after which the QP is solved again
epsilon       relative gap at which to stop; half of it is the tolerance for each n ξ_i
qp_passes     most passes over the terms of an inner QP
============  =================================================================================

An iteration is a pass of the oracle. If w has not moved in it, the gap P(w) − F of the iterate is
known; only then does the method stop.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from ssvm_bench.clock import Clock
from ssvm_bench.config.validation import check_at_least, check_share
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.problem import Problem
from ssvm_bench.solvers.block import multi_step
from ssvm_bench.solvers.block.mpbcfw import BlockSolver
from ssvm_bench.solvers.block.multi_step import CachedLabelingSolver, CachedRowSolver, Caching
from ssvm_bench.solvers.cutting_plane.kernels import Adding

CODE_VERSION = 1

_SHARE = 0.1
"""The gap over the W_i that a QP leaves, as a share of the tolerance, or of the new violations."""

_STEPS = 20
"""Most steps of a visit of a term."""

_ACCELERATED = 10
_KAPPA = 100.0
"""Accelerated passes after a plain one, and their κ/λ
(:mod:`ssvm_bench.solvers.block.acceleration`)."""


@dataclass(frozen=True)
class Config:
    """Options; see the module's docstring."""

    name: str
    kind: str
    accumulate: int
    epsilon: float
    qp_passes: int

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("solver.accumulate", self.accumulate, 1)
        check_share("solver.epsilon", self.epsilon)
        check_at_least("solver.qp_passes", self.qp_passes, 1)


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> BlockSolver:
    """Return the solver at φ^i = 0 for all i."""
    if isinstance(problem.oracle, LabelingOracle):
        return CuttingPlanesOfLabels(config, problem, clock, seed)
    return CuttingPlanesOfRows(config, problem, clock, seed)


class _CuttingPlanes(Caching):
    """The method; working sets, their inner products and steps are those of the block solvers."""

    follows_paths = False

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        steps = multi_step.Config(
            name=config.name,
            kind="cached",
            N=sys.maxsize,
            M=1,
            T=sys.maxsize,
            steps="pairwise",
            inner_steps=_STEPS,
            sampling="permutation",
            refresh=1,
            share=None,
            shrink=0.0,
            kappa=_KAPPA,
            average=False,
        )
        super().__init__(steps, problem, clock, seed)
        self.n_slack = config
        self.qp_time = 0.0
        self._passes = 0

    def iterate(self) -> None:
        """Ask the oracle of every term, with QPs in between."""
        self.iteration += 1
        self._passes = 0
        order, count = next(self._orders), self.n_slack.accumulate
        adding = Adding(0.5 * self._tol(), np.zeros(2))
        added, moved = 0, False
        for begin in range(0, order.size, count):
            added += self._ask(order[begin : begin + count], adding)
            if added >= count and begin + count < order.size and not self.ended:
                self._solve(order, adding)
                added, moved = 0, True
        if not moved:
            gap = float(adding.sums[0]) / self.problem.n
            self.converged = gap <= self.n_slack.epsilon * (self._dual() + gap)
        if not self.converged and not self.ended:
            self._solve(order, adding)
        self.approx_passes = self._passes

    def diagnostics(self) -> dict[str, float]:
        """Return the seconds spent on QPs."""
        return {"qp_time": self.qp_time}

    def _tol(self) -> float:
        """Return the absolute gap to stop at, or a little less: F is no more than P."""
        return self.n_slack.epsilon * self._dual()

    def _ask(self, order: np.ndarray, adding: Adding) -> int:
        """Ask the oracle of some terms; return the number of planes added."""
        self._reserve(np.bincount(order, minlength=self.problem.n))
        stepping, self.policy = self.policy, adding  # type: ignore[assignment]
        with self.clock.exact(order.size) as count:
            tally = super(Caching, self)._exact_pass(order)  # type: ignore[safe-super]
            count.share = tally.share
        self.policy = stepping
        return tally.changed

    def _solve(self, order: np.ndarray, adding: Adding) -> None:
        """Ascend F over the W_i: a plain pass, which tells the gap, then accelerated ones."""
        begin, passes = self.clock.now(), 0
        violation, adding.sums[1] = float(adding.sums[1]) / self.problem.n, 0.0
        while passes < self.n_slack.qp_passes:
            self.approx_passes = 0
            for _ in range(_ACCELERATED + 1):
                before = self._dual()
                evaluated = self._approximate_pass(order)
                self.clock.approximate(order.size, evaluated)
                self.approx_passes += 1
                gain = self._dual() - before
                if self.approx_passes == 1:
                    gap = float(self.policy.planes_gaps.sum()) / self.problem.n
                    if gap <= _SHARE * max(violation, self._tol()):
                        break
                elif gain < 0 and not self._tries_again(gain):
                    break
            self._end_of_passes()
            passes += self.approx_passes
            if self.approx_passes == 1:
                break
        else:
            self.ended = "qp_steps"
        self._passes += passes
        self.qp_time += self.clock.now() - begin


class CuttingPlanesOfLabels(_CuttingPlanes, CachedLabelingSolver):
    """For compiled oracles over labels."""


class CuttingPlanesOfRows(_CuttingPlanes, CachedRowSolver):
    """For any oracle."""
