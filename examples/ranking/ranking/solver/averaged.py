"""The subgradient method for a strongly convex function, with a weighted average of its iterates.

.. code-block:: text

    w ← w − 2/(λ (k+2)) (λ w + Σ_i φ⋆)        w̄ ← (1 − 2/(k+3)) w̄ + 2/(k+3) w

References
----------
S. Lacoste-Julien, M. Schmidt, F. Bach: A simpler approach to obtaining an O(1/t) convergence rate
for the projected stochastic subgradient method. arXiv:1212.2002, 2012.
"""

from dataclasses import dataclass
from math import nan
from typing import ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.oracles.base import Problem
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options: which iterate is reported."""

    has_dual: ClassVar[bool] = False

    averaging: bool


class Averaged(Solver):
    """The solver: the last iterate, and the average.

    Iterations change what ``STATE`` names, and nothing else. So an interrupted run resumes from a
    checkpoint, with a new solver that takes it over. `Solver.state` returns it as a mapping, and
    `Solver.restore` takes one that has the same names, kinds and shapes; a solver with arrays that
    grow, or that hold indices, states their bounds in ``LIMITS``.
    """

    STATE = ("w", "average", "k")

    def __init__(self, config: Config, problem: Problem, clock: Clock) -> None:
        super().__init__(problem, clock)
        self.averaging = config.averaging
        self.w, self.average, self.k = np.zeros(problem.d), np.zeros(problem.d), 0

    def iterate(self) -> None:
        """Make a step, for which the oracle is asked once for each term."""
        with self.clock.exact(self.problem.n):
            risk = self.problem.risk(self.w)
        step = 2.0 / (self.k + 2)
        self.w = (1.0 - step) * self.w - step / self.problem.lam * risk.star
        share = 2.0 / (self.k + 3)
        self.average = (1.0 - share) * self.average + share * self.w
        self.k += 1

    def reported(self) -> Iterate:
        """Return the iterate, and that there is no dual value."""
        return Iterate(self.average if self.averaging else self.w, nan)


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> Averaged:
    """Return the solver at w = 0; it makes no random choices."""
    return Averaged(config, problem, clock)
