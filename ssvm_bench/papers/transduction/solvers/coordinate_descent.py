"""Discrete-continuous coordinate descent on problem (5): labels and classifier in turn.

.. code-block:: text

    y ← argmin Σ_i ℓ(y_i; K_i α) + E(y),  unless (5) would rise;    α ← argmin (5) for these labels

Lloyd's algorithm alternates in the same way over clusters. The α-step trains a classifier
completely. The method ends at a local optimum, where no label changes. If it starts at α = 0, the
losses of the first label step are the same for all labels.
"""

from __future__ import annotations

from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 1


Config = transductive.TransductiveConfig


class CoordinateDescent(transductive.TransductiveSolver):
    """Coordinate descent over labels and classifier."""

    def iterate(self) -> None:
        """Train a classifier for the labels, then do a label step."""
        problem = self.problem
        self.W = transductive.train(problem, problem.kernel, self.y, self.W, self.clock)
        self.scores = problem.kernel.scores(self.W)
        self.relabel(problem.unaries(self.scores))
        self.converged = self.label_changes == 0


build = CoordinateDescent.build
