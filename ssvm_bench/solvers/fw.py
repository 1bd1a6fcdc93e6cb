"""Batch Frank–Wolfe on the dual (MP-BCFW, Algorithm 1).

.. code-block:: text

    φ̂ ← Σ_i argmax_y ⟨φ^{iy}, [w 1]⟩,    φ ← (1 − γ) φ + γ φ̂,    w = −φ⋆/λ

=====  =====================================================
γ      ``step``
=====  =====================================================
(1)    ``line_search``: argmax_γ F((1 − γ) φ + γ φ̂), closed
(2)    ``2n/(k+2n)``: 2/(k+2), as there is one block
=====  =====================================================

One iteration is n oracle calls. The state is (w, φ∘). The slope of F towards φ̂ is the duality gap
of φ: a certificate that costs nothing. With ``epsilon`` > 0 an iteration in which the gap is at
most ε P(w) takes no step; it is the last one, unless the run asks for a smaller gap. φ begins at 0,
or with ``start=oracle`` at φ̂ for w = 0, after n calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import best_scale, line_search, rounded_once
from ssvm_bench.config.validation import NotNegative, one_of
from ssvm_bench.oracles.base import Problem, Risk
from ssvm_bench.solvers.base import (
    ORACLE,
    STARTS,
    STEPS,
    TRUTH,
    Iterate,
    Solver,
    SolverConfig,
    finer,
)

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options of ``fw``.

    Attributes
    ----------
    step : str
        ``line_search``, or ``2n/(k+2n)``.
    epsilon : float
        Relative gap at which to stop, where ``budget.gap_tol`` is 0.
    start : str
        The planes at which the φ^i begin: ``truth`` or ``oracle``.
    """

    follows_paths: ClassVar[bool] = True

    step: Annotated[str, one_of(STEPS)] = "line_search"
    epsilon: NotNegative = 0.0
    start: Annotated[str, one_of(STARTS)] = TRUTH


class FrankWolfe(Solver):
    """Batch Frank–Wolfe, from w = 0; it makes no random choices."""

    STATE = ("w", "offset", "k", "epsilon", "gap", "primal")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int = 0) -> None:
        super().__init__(problem, clock)
        self.config = config
        self.w = np.zeros(problem.d)
        self.offset = 0.0
        self.k = 0
        self.epsilon, self.gap, self.primal = config.epsilon, 0.0, 0.0

    def begin(self) -> None:
        """Begin at the sum of the planes that the oracle returns at w = 0, if ``start=oracle``."""
        if self.config.start == ORACLE:
            risk = self._risk()
            self.w = -risk.star / self.problem.lam
            self.offset = risk.offset

    def iterate(self) -> None:
        """Call the oracle of every term, and step towards the sum of the returned planes."""
        lam = self.problem.lam
        risk = self._risk()
        step = -risk.star / lam - self.w
        climb = risk.offset - self.offset
        gap = climb - lam * rounded_once(self.w, step)
        if self.epsilon > 0.0:
            primal = self.offset - 0.5 * lam * rounded_once(self.w, self.w) + gap
            self.gap, self.primal = gap, primal
            self.converged = gap <= self.epsilon * primal
            if self.converged:
                return
        if self.config.step == "line_search":
            gamma = line_search(gap, lam * rounded_once(step, step))
            self.converged = gamma == 0.0
        else:
            gamma = 2.0 / (self.k + 2.0)
        self.w += gamma * step
        self.offset += gamma * climb
        self.k += 1

    def refine(self) -> bool:
        """See `Solver`; a step of length 0 is the last one."""
        self.epsilon = finer(self.epsilon, self.gap, self.primal)
        return self.epsilon > 0.0

    def warm_start(self, lam: float, clock: Clock) -> None:
        """Continue with another λ from the best multiple of φ."""
        scale = best_scale(rounded_once(self.w, self.w), self.offset, self.problem.lam, lam)
        self.w *= scale * self.problem.lam / lam
        self.offset *= scale
        self.k = 0
        self.epsilon = self.config.epsilon
        self.converged = False
        self.problem, self.clock = replace(self.problem, lam=lam), clock

    def reported(self) -> Iterate:
        """Return w and F."""
        return Iterate(self.w.copy(), self.problem.dual(self.w, self.offset))

    def _risk(self) -> Risk:
        """Call the oracle of every term at w."""
        with self.clock.exact(self.problem.n):
            return self.problem.risk(self.w)


build = FrankWolfe
