"""Block-coordinate Frank–Wolfe: a term at a time, with a dual value after every step.

.. code-block:: text

    w = −φ⋆/λ,  φ = Σ_i φ^i             F(φ) = −‖φ⋆‖²/(2λ) + φ∘
    φ̂^i = the best plane of term i at w
    γ    = (⟨φ⋆^i − φ̂⋆^i, φ⋆⟩ − λ (φ∘^i − φ̂∘^i)) / ‖φ⋆^i − φ̂⋆^i‖², clipped to [0, 1]
    φ^i ← (1 − γ) φ^i + γ φ̂^i

References
----------
S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher: Block-coordinate Frank–Wolfe optimization for
structural SVMs. ICML 2013, Algorithm 4. In these letters: N. Shah, V. Kolmogorov, C. H. Lampert: A
multi-plane block-coordinate Frank–Wolfe algorithm …, CVPR 2015, Algorithm 2.
"""

from dataclasses import dataclass

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.random import permutation
from ssvm_bench.oracles.base import Problem
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options: those of every solver. A field here is an option, with its default."""


class PlainBcfw(Solver):
    """The solver; row i of ``planes`` is φ⋆^i, which takes n · d numbers of memory.

    ``STATE`` names what iterations change, so that an interrupted run resumes from a checkpoint.
    """

    STATE = ("planes", "offsets", "star", "offset", "bits")

    def __init__(self, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.planes, self.offsets = np.zeros((problem.n, problem.d)), np.zeros(problem.n)
        self.star, self.offset = np.zeros(problem.d), 0.0  # φ⋆ and φ∘, their sums
        self.bits = np.random.PCG64(seed)

    def iterate(self) -> None:
        """Visit every term once, in random order."""
        for i in permutation(self.problem.n, self.bits).tolist():
            self.visit(i)

    def visit(self, i: int) -> None:
        """Ask the oracle for a plane of term i, and make the step with the best dual value."""
        lam = self.problem.lam
        with self.clock.exact(1):  # one call, counted and timed
            plane, _ = self.problem.oracle.best_plane(-self.star / lam, i)
        move, rise = -self.planes[i], plane.offset - self.offsets[i]
        move[plane.indices] += plane.values  # φ̂⋆^i − φ⋆^i
        slope, curvature = lam * rise - move @ self.star, move @ move
        step = np.clip(slope / curvature, 0.0, 1.0) if curvature > 0 else float(slope > 0)
        self.planes[i] += step * move
        self.offsets[i] += step * rise
        self.star += step * move
        self.offset += float(step * rise)

    def reported(self) -> Iterate:
        """Return w and F(φ)."""
        w = -self.star / self.problem.lam
        return Iterate(w, self.problem.dual(w, self.offset))


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> PlainBcfw:
    """Return the solver at φ = 0, the planes of the true labelings."""
    return PlainBcfw(problem, clock, seed)
