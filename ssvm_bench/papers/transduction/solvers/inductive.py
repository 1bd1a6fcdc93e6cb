"""The inductive baseline: a classifier trained on the annotated points only, then one label step.

.. code-block:: text

    α = argmin Σ_{i annotated} ℓ(y_i; K_i α) + ν ⟨α, Kα⟩,      y = argmin Σ_i ℓ(y_i; K_i α) + E(y)

A run has one iteration, which does what ``start=inductive`` does in the other solvers.
"""

from __future__ import annotations

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.papers.transduction.oracles.transduction import TransductiveProblem
from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 1


Config = transductive.TransductiveConfig


class Inductive(transductive.TransductiveSolver):
    """The inductive baseline."""

    def __init__(
        self, config: transductive.TransductiveConfig, problem: TransductiveProblem, clock: Clock
    ) -> None:
        if config.start != transductive.ZERO:
            raise ConfigError(
                f"solver.start={config.start} is what solver={config.name} does itself."
            )
        super().__init__(config, problem, clock)

    def iterate(self) -> None:
        """Train on the annotated points, and label the others."""
        self.start = transductive.INDUCTIVE
        before = self.y
        super().begin()
        self.label_changes = int((self.y != before).sum())
        self.converged = True


build = Inductive.build
