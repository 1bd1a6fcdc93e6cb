"""The n-slack cutting-plane method (Tsochantaridis et al. 2005; Joachims et al. 2009, Algorithm 1).

.. code-block:: text

    min_{w, ξ}  λ/2 ‖w‖² + Σ_i ξ_i        ⟨φ^{iy}, [w 1]⟩ ≤ ξ_i  for all planes of W_i

Repeat: call the oracle of each term; if its plane exceeds ξ_i by more than a tolerance, add it to
W_i; after every ``accumulate`` new planes, and after the last term, solve the QP over the W_i.

The QP's dual is the dual F over the planes of the W_i, on a product of n simplices. The pairwise
steps of :mod:`ssvm_bench.solvers.block.several_steps` ascend it, term by term, in passes that are
mostly accelerated, until the gap over the W_i is a tenth of the new planes' total violation, or of
the gap at which the method stops. Planes are never dropped.

============  =================================================================================
option        meaning
============  =================================================================================
accumulate    number of new planes after which the QP is solved again
epsilon       relative gap ε at which to stop, where ``budget.gap_tol`` is 0; half of it is the
              tolerance for each n ξ_i
qp_passes     most passes over the terms of an inner QP
============  =================================================================================

An iteration is a pass of oracle calls. If w has not moved meanwhile, the gap P(w) − F is known;
only then can the method stop.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import implements
from ssvm_bench.config.validation import Count, Share
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes.iterates import dual_iterate
from ssvm_bench.planes.operations import exact_visit, plane_value, set_direction
from ssvm_bench.solvers.base import DualSolver, SolverConfig, finer
from ssvm_bench.solvers.block.acceleration import AcceleratedPasses
from ssvm_bench.solvers.block.several_steps import SeveralStepVisits
from ssvm_bench.solvers.orders import Orders

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

_SHARE = 0.1
"""The gap over the W_i that a QP leaves, as a share of the tolerance, or of the new violations."""

_STEPS = 20
"""Most steps of one visit of a term."""

_ACCELERATED = 10
_KAPPA = 100.0
"""Accelerated passes after a plain one, and their κ/λ
(:mod:`ssvm_bench.solvers.block.acceleration`)."""


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options; see the module's docstring."""

    accumulate: Count = 100
    epsilon: Share = 0.01
    qp_passes: Count = 100_000


class CuttingPlanes(DualSolver):
    """The n-slack method, from φ^i = 0 for all i.

    Attributes
    ----------
    epsilon : float
        ε; smaller than the option where the run asks for a smaller gap.
    gap : float
        The gap when it was known last.
    """

    STATE = ("phi", "visits", "passes", "iteration", "qp_time", "epsilon", "gap", "_orders")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(dual_iterate(problem, N=sys.maxsize), clock)
        self.config = config
        self.visits = SeveralStepVisits(self.phi, sys.maxsize, sys.maxsize, "pairwise", _STEPS)
        self.passes = AcceleratedPasses(self.visits, _KAPPA)
        self.qp_time = 0.0
        self.epsilon, self.gap = config.epsilon, 0.0
        self._orders = Orders(problem.n, "permutation", seed)

    def iterate(self) -> None:
        """Call the oracle of every term, and solve QPs in between."""
        self.begin_iteration()
        order, count = next(self._orders), self.config.accumulate
        adding = Adding(0.5 * self._tol(), np.zeros(2))
        added, moved = 0, False
        for begin in range(0, order.size, count):
            asked = order[begin : begin + count]
            self.visits.prepare(asked, True, self.clock)
            added += self.phi.exact_pass(adding, asked, self.clock, still=True).changed
            if added >= count and begin + count < order.size and not self.ended:
                self._solve(order, adding)
                added, moved = 0, True
        if not moved:
            gap = float(adding.sums[0]) / self.problem.n
            self.converged = gap <= self.epsilon * (self.phi.dual() + gap)
            self.gap = gap
        if not self.converged and not self.ended:
            self._solve(order, adding)

    def refine(self) -> bool:
        """See `Solver`; the working sets are optimised to the finer tolerance."""
        self.epsilon = finer(self.epsilon, self.gap, self.phi.dual() + self.gap)
        if self.epsilon > 0.0:
            self._solve(np.arange(self.problem.n), Adding(0.0, np.zeros(2)))
        return self.epsilon > 0.0

    def follow_latent(self, changed: np.ndarray) -> None:
        """Continue with all planes."""
        self.epsilon = self.config.epsilon
        self.phi.recompute()
        self.visits.renew(changed)
        self.passes.warm_start(self.problem.lam)

    def diagnostics(self) -> dict[str, float]:
        """Return the seconds spent on QPs."""
        return {"qp_time": self.qp_time}

    def _tol(self) -> float:
        """Return the absolute gap to stop at, or a little less, as F ≤ P."""
        return self.epsilon * self.phi.dual()

    def _solve(self, order: np.ndarray, adding: Adding) -> None:
        """Ascend F over the W_i, until their gap is small relative to the new violations."""
        begin, passes = self.clock.now(), 0
        violation, adding.sums[1] = float(adding.sums[1]) / self.problem.n, 0.0
        while passes < self.config.qp_passes:
            done = self._round(order, _SHARE * max(violation, self._tol()))
            passes += done
            if done == 1:
                break
        else:
            self.ended = "qp_steps"
        self.approx_passes += passes
        self.qp_time += self.clock.now() - begin

    def _round(self, order: np.ndarray, tol: float) -> int:
        """Do a plain pass, and accelerated ones if its gap is over ``tol``; return their number."""
        for number in range(_ACCELERATED + 1):
            self.passes.do(number, order, self.clock)
            if self.passes.ended or (number == 0 and self.visits.gap() <= tol):
                break
        self.passes.end()
        return number + 1


class Adding(NamedTuple):
    """The policy: add a plane to W_i if it is violated by more than ``tol``, and take no step.

    φ^i does not change. Values are n times the paper's.

    Attributes
    ----------
    tol : float
        A plane is violated if it exceeds the slack, n ξ_i = max over W_i, by more than this.
    sums : ndarray of float64, shape (2,)
        The sum of ⟨n (φ̂^i − φ^i), [w 1]⟩ over the visited terms, and the sum of the added planes'
        violations.
    """

    tol: float
    sums: np.ndarray


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


build = CuttingPlanes
