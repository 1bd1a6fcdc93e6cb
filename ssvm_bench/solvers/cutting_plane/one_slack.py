"""The 1-slack cutting-plane method, with a cache of constraints (Joachims et al., MLJ 2009).

.. code-block:: text

    min_{w, ξ ≥ 0}  λ/2 ‖w‖² + ξ      ⟨a, w⟩ + b ≤ ξ  for the planes (a, b) found       Algorithm 3

A plane (a, b) is the sum of one plane of every term; its value at w is the risk if these are the
oracle's at w. The method is BMRM (:mod:`ssvm_bench.solvers.bundle.bmrm`) with the ground truths'
plane at the beginning. Each term caches the ``cache`` planes that it used last. Before the oracle
is called, the best cached planes are summed. If the sum exceeds ξ by more than a tenth of the
violation of the oracle's last plane, and by more than ε P, it is used in place of an oracle's plane
(as in the authors' program SVM-struct).

============  =================================================================================
option        meaning
============  =================================================================================
cache         planes that a term keeps; 0: none
epsilon       relative gap ε at which to stop, where ``budget.gap_tol`` is 0
drop          planes without weight in this many iterations are dropped; null: never
qp_steps      most steps of an inner QP
============  =================================================================================

An iteration is a pass of oracle calls, after as many passes over the caches as find such planes.
Without caches, that pass computes the risk, as in BMRM.
The minimiser and the value of the reduced problem are reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.base.linalg import squared_norm
from ssvm_bench.config.validation import Count, Natural, Share
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import operations
from ssvm_bench.planes.iterates import dual_iterate
from ssvm_bench.solvers.base import DualSolver, Iterate, SolverConfig, finer
from ssvm_bench.solvers.bundle.bmrm import QP_SHARE
from ssvm_bench.solvers.bundle.model import CuttingPlaneModel

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

_SHARE = 0.1
"""Least violation of a plane from the caches, as a share of that of the oracle's last plane."""


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options; see the module's docstring."""

    cache: Natural = 5
    epsilon: Share = 0.01
    drop: Count | None = None
    qp_steps: Count = 10_000_000


class OneSlack(DualSolver):
    """The 1-slack method, from w = 0; it makes no random choices.

    Attributes
    ----------
    phi : DualIterate
        Its w is the point at which the oracle is called next; its φ^i stay 0, and its working sets
        are the caches.
    lower : float
        The value of the reduced problem.
    epsilon : float
        ε; smaller than the option where the run asks for a smaller gap.
    """

    STATE = (
        *("phi", "model", "lower", "primal", "violation", "iteration", "epsilon", "_best"),
        *("collecting.star", "collecting.sums", "qp_time", "gram_time"),
    )

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(dual_iterate(problem, N=config.cache), clock)
        self.config = config
        self.collecting = Collecting(config.cache, np.zeros(self.phi.w.size), np.zeros(2))
        self.qp_time = self.gram_time = 0.0
        self._order = np.arange(problem.n)
        self._forget()

    def _forget(self) -> None:
        """Reset the model to what is known without calls: the risk is not negative."""
        self.model = CuttingPlaneModel(self.phi.w.size, 1, truth=True)
        self.lower = self.primal = self.violation = 0.0
        self.epsilon = self.config.epsilon
        self.iteration = 0
        self._best = np.inf, self.phi.w.copy()

    def iterate(self) -> None:
        """Add planes from the caches while they are violated enough, then one of the oracle."""
        self.begin_iteration()
        if self.iteration > 1 and self.config.cache > 0:
            self._use_caches()
        self._empty()
        if self.config.cache > 0:
            self.phi.exact_pass(self.collecting, self._order, self.clock, still=True)
        else:
            self._collect_risk()
        self.primal = self._collected()
        if self.primal < self._best[0]:
            self._best = self.primal, self.phi.w.copy()
        self.violation = self.primal - self.lower
        self.converged = self.violation <= self._tol()
        if not self.converged and not self.ended:
            self._solve()

    def refine(self) -> bool:
        """See `Solver`; the plane collected last is used after all."""
        self.epsilon = finer(self.epsilon, self.violation, self.primal)
        if self.epsilon > 0.0:
            self._solve()
        return self.epsilon > 0.0

    def follow_latent(self, changed: np.ndarray) -> None:
        """Continue with w and the caches, but drop the planes of the risk."""
        self._forget()

    def reported(self) -> Iterate:
        """Return the minimiser of the reduced problem, or the best w if a QP failed; the bound."""
        w = self._best[1] if self.ended else self.phi.w
        return Iterate(self.phi.outer(w), self.lower)

    def diagnostics(self) -> dict[str, float]:
        """Return the seconds spent on inner QPs, and on the Gram matrix."""
        return {"qp_time": self.qp_time, "gram_time": self.gram_time}

    def _use_caches(self) -> None:
        """Add planes from the caches while they are violated enough."""
        while not self.ended:
            self._empty()
            self.phi.approximate_pass(self.collecting, self._order, self.clock)
            self.approx_passes += 1
            if self._collected() - self.lower <= max(_SHARE * self.violation, self._tol()):
                return
            self._solve()

    def _collect_risk(self) -> None:
        """Collect the oracle's planes as one: without caches, nobody needs those of the terms."""
        n = self.problem.n
        with self.clock.exact(n):
            value, star, offset = self.problem.risk(self.phi.outer_w())
        self.collecting.star[:] = n * self.phi.pack(star)
        self.collecting.sums[:] = n * value, n * offset

    def _empty(self) -> None:
        self.collecting.star[:] = 0.0
        self.collecting.sums[:] = 0.0

    def _collected(self) -> float:
        """Return λ/2 ‖w‖² + the value at w of the collected plane."""
        norm2 = squared_norm(self.phi.w)
        return 0.5 * self.problem.lam * norm2 + float(self.collecting.sums[0]) / self.problem.n

    def _tol(self) -> float:
        return self.epsilon * self.primal

    def _solve(self) -> None:
        """Add the collected plane to the model, and move w to the new minimiser."""
        begin = self.clock.now()
        n, config = self.problem.n, self.config
        if config.drop is not None:
            self.model.drop(config.drop)
        self.model.add(self.collecting.star[None] / n, self.collecting.sums[1:] / n)
        added = self.clock.now()
        self.gram_time += added - begin
        tol = QP_SHARE * self._tol()
        found = self.model.minimise(self.problem.lam, 0.0, tol, config.qp_steps)
        self.phi.w[:] = found.w
        self.lower = max(self.lower, found.value)
        if found.gap > tol:
            self.ended = "qp_steps"
        self.qp_time += self.clock.now() - added


class Collecting(NamedTuple):
    """The policy: sum the planes of the visited terms; each term keeps those that it used last.

    φ^i does not change. Values are n times the paper's.

    Attributes
    ----------
    N : int
        Most planes that a term keeps.
    star : ndarray of float64, shape (D,)
        Sum of n φ̂⋆^i, in the layout of the storage.
    sums : ndarray of float64, shape (2,)
        Sums of ⟨n φ̂^i, [w 1]⟩ and of n φ̂∘^i.
    """

    N: int
    star: np.ndarray
    sums: np.ndarray


@implements(operations.exact_visit, Collecting)
def _collect(policy, blocks, i, state):
    _add(policy, blocks, i, blocks.n_planes[i])
    operations.insert_candidate(policy, blocks, i, state.now)
    return False


@implements(operations.approximate_visit, Collecting)
def _collect_best(policy, blocks, i, state):
    operations.gather(blocks, state.w, i)
    p = operations.best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = state.now
    _add(policy, blocks, i, p)
    return blocks.n_planes[i]


@kernel
def _add(policy, blocks, i, p):
    """Add plane p of term i to the sums."""
    policy.sums[0] += operations.set_direction(
        blocks, i, p
    )  # φ^i stays at the truth's plane, which is 0
    policy.sums[1] += blocks.offset[blocks.start[i] + p]
    operations.add_direction(blocks, i, 1.0, policy.star)


build = OneSlack
