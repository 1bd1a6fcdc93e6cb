"""Discrete-continuous coordinate descent on problem (5): labels and classifier in turn.

.. code-block:: text

    y ← argmin Σ_i ℓ(y_i; K_i α) + E(y),  unless (5) would rise;    α ← argmin (5) for these labels

As Lloyd's algorithm does with clusters. The α-step is the whole training of a classifier. It ends
where no label changes: a local optimum, and where it begins at α = 0 all labelings are as good as
each other in the first step.
"""

from __future__ import annotations

from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 1


Config = transductive.TransductiveConfig


class CoordinateDescent(transductive.TransductiveSolver):
    """The method."""

    def iterate(self) -> None:
        """Train a classifier for the labels, then find the labels again."""
        problem = self.problem
        self.W = transductive.train(problem, problem.kernel, self.y, self.W, self.clock)
        self.scores = problem.kernel.scores(self.W)
        self.relabel(problem.unaries(self.scores))
        self.converged = self.label_changes == 0


build = CoordinateDescent.build
