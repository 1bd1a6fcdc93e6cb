"""Block-coordinate Frank–Wolfe: BCFW and MP-BCFW, plain and averaged (MP-BCFW, Algorithm 3).

.. code-block:: text

    repeat                                                        one outer iteration
        for i in order: φ̂^i ← exact oracle;        step; add φ̂^i to W_i          exact pass
        up to M times:
            for i in order: φ̂^i ← argmax over W_i;  step; drop inactive planes    approximate pass

BCFW is N = M = 0: the same loop without working sets, so that times are comparable.

============  ==================================================================================
option        meaning
============  ==================================================================================
N             most planes of a working set W_i; over it, the longest inactive is dropped
M             most approximate passes of an outer iteration
T             planes not active during the last T outer iterations are dropped (approximate pass)
step          ``line_search``, or ``2n/(k+2n)`` with k the number of steps so far (BCFW, Alg. 4)
sampling      ``permutation``: one per outer iteration, shared by its passes; ``uniform``: n draws
              with replacement
average       report the interpolation, with the best dual, of the averages over exact and over
              approximate steps (section 3.5)
start         the planes at which the φ^i begin: :mod:`ssvm_bench.solvers.starts`
approx_order  ``same``: approximate passes share the order of their iteration; ``fresh``: each has
              one of its own
============  ==================================================================================

A solver is put together from an order of the terms (:mod:`ssvm_bench.solvers.orders`), what a visit
does (:mod:`~ssvm_bench.solvers.block.one_step`), averages (:mod:`ssvm_bench.solvers.averages`), and
approximate passes with the rule that ends them
(:mod:`~ssvm_bench.solvers.block.approximate_passes`). All work on one dual iterate
(:mod:`ssvm_bench.planes.dual_iterate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.validation import Count, Natural, one_of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes.dual_iterate import DualIterate, dual_iterate
from ssvm_bench.solvers.averages import Averages
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig
from ssvm_bench.solvers.block.approximate_passes import PlainPasses, SlopeRule
from ssvm_bench.solvers.block.one_step import OneStep
from ssvm_bench.solvers.block.visits import Visits
from ssvm_bench.solvers.fw import STEPS
from ssvm_bench.solvers.orders import APPROX_ORDERS, SAME, SAMPLING, Order
from ssvm_bench.solvers.starts import ORACLE, STARTS, TRUTH, begin_at_oracle

CODE_VERSION = 1

_REBUILD_EVERY = 10
"""Outer iterations between two recomputations of φ = Σ_i φ^i."""


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options of the block solvers; see the module's docstring."""

    follows_paths: ClassVar[bool] = True

    N: Natural = 1000
    M: Natural = 1000
    T: Count = 10
    step: Annotated[str, one_of(STEPS)] = "line_search"
    sampling: Annotated[str, one_of(SAMPLING)] = "permutation"
    average: bool = False
    start: Annotated[str, one_of(STARTS)] = TRUTH
    approx_order: Annotated[str, one_of(APPROX_ORDERS)] = SAME

    def __post_init__(self) -> None:
        """Check that steps towards cached planes ascend."""
        super().__post_init__()
        if self.step != "line_search" and self.N > 0 and self.M > 0:
            raise ConfigError(
                f"solver.step={self.step} is for exact steps only: a step of fixed length towards "
                "a cached plane can lower the dual. Set solver.M=0, or solver.step=line_search."
            )


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> MultiPlane:
    """Return the solver at φ^i = 0 for all i; `MultiPlane.begin` goes to its start."""
    phi = dual_iterate(problem, config.N)
    phi.set(line_search=config.step == "line_search")
    visits = Visits(OneStep(config.N, config.T))
    return MultiPlane(
        Parts(
            phi=phi,
            order=Order(problem.n, config.sampling, seed, config.approx_order),
            visits=visits,
            passes=PlainPasses(phi, visits),
            most_passes=config.M if config.N > 0 else 0,
            averages=Averages(phi, config.average),
            start=config.start,
        ),
        clock,
    )


@dataclass(frozen=True)
class Parts:
    """What a multi-plane solver is put together from.

    Attributes
    ----------
    phi : DualIterate
        φ, the φ^i and the W_i.
    order : Order
        The order of the terms.
    visits : Visits
        What is done at a term.
    passes : PlainPasses
        How approximate passes are done.
    most_passes : int
        Most of them in an outer iteration.
    averages : Averages
        What is reported.
    start : str
        One of ``STARTS``.
    refresh : int
        Every so many iterations, the exact pass follows the order as it is, and calls the oracle
        of every term, whatever ``order`` and ``visits`` would have it do.
    """

    phi: DualIterate
    order: Order
    visits: Visits
    passes: PlainPasses
    most_passes: int
    averages: Averages
    start: str = TRUTH
    refresh: int = 1


class MultiPlane(Solver):
    """The loop of Algorithm 3.

    Attributes
    ----------
    iteration : int
        Outer iterations so far.
    """

    alternates = True

    def __init__(self, parts: Parts, clock: Clock) -> None:
        super().__init__(parts.phi.problem, clock)
        self.parts = parts
        self.phi, self.visits, self.averages = parts.phi, parts.visits, parts.averages
        self.iteration = self._begun = 0

    def begin(self) -> None:
        """Go to the start."""
        if self.parts.start == ORACLE:
            begin_at_oracle(self.phi, self.clock)

    def iterate(self) -> None:
        """Do one exact pass and as many approximate passes as pay."""
        rule = SlopeRule(self.clock.now(), self.phi.dual())
        self.iteration += 1
        self.phi.set(now=self.iteration)
        if self.iteration % _REBUILD_EVERY == 0:
            self.phi.recompute()
        order = self.parts.order.next()
        self.approx_passes = 0
        optimal = self._exact_pass(order)
        self.converged = optimal and not self.averages.wanted  # an average is still on its way
        self.exact_pass_ended()
        if not optimal and self.parts.most_passes > 0:
            self._approximate_passes(order, rule)

    def _exact_pass(self, order: np.ndarray) -> bool:
        """Visit terms with their oracles; return whether that shows that φ is optimal."""
        whole = (self.iteration - self._begun - 1) % self.parts.refresh == 0
        visited, changed, skipped = [], 0, 0
        with self.averages.of_exact_steps():
            for part in [order] if whole else self.parts.order.parts(order):
                self.visits.prepare(self.phi.blocks.n_planes, part, whole)
                may_skip = self.visits.may_skip and not whole
                tally = self.phi.exact_pass(self.visits.policy, part, self.clock, may_skip)
                visited.append(part)
                changed, skipped = changed + tally.changed, skipped + tally.skipped
        if changed or skipped or not self.phi.state.line_search:
            return False
        return np.unique(np.concatenate(visited)).size == self.problem.n

    def _approximate_passes(self, order: np.ndarray, rule: SlopeRule) -> None:
        """Visit terms with their working sets, until that does not pay any more."""
        passes = self.parts.passes
        with self.averages.of_approximate_steps():
            rule.begin(self.clock.now(), self.phi.dual())
            while self.approx_passes < self.parts.most_passes:
                visited = self.parts.order.of_approximate_pass(order)
                if self.approx_passes > 0:
                    visited = self.visits.worth_visiting(visited)
                dual = passes.do(self.approx_passes, visited, self.clock)
                self.approx_passes += 1
                if passes.judged and not rule.pays(self.clock.now(), dual):
                    break
            passes.end()

    def go_on(self, lam: float, clock: Clock) -> None:
        """Go on with another λ from the best multiple of φ, with all working sets."""
        self.visits.go_on(self.phi.blocks.n_planes)
        self.phi.go_on(lam, self.visits.policy)
        self.parts.passes.go_on(lam)
        self.averages.restart()
        self.problem, self.clock = self.phi.problem, clock
        self._begun = self.iteration
        self.converged = False

    def update_latent(self, problem: Problem) -> bool:
        """See `Solver`: from the best multiple of φ, with all working sets."""
        changed = self.phi.update_latent(problem)
        if changed is None:
            return False
        self.phi.recompute()
        self.visits.renew(self.phi.blocks, changed)
        self.go_on(problem.lam, self.clock)
        return True

    def reported(self) -> Iterate:
        """Return φ, or the best interpolation of its averages."""
        return self.averages.reported()

    def working_set_mean(self) -> float:
        """Return the mean of |W_i|."""
        return self.phi.working_set_mean()

    def diagnostics(self) -> dict[str, float]:
        """Return the averages' own dual value."""
        return self.averages.diagnostics()
