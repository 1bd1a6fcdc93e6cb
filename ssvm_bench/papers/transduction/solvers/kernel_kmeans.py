"""Kernel k-means with an energy in its assignment: the Chan–Vese baseline (Tang et al., ICCV 2015).

.. code-block:: text

    min over y, M of  Σ_i ‖G_i − M_{y_i}‖² + E(y)

The method alternates M_l ← the mean of the points with label l, and y ← the label step of
u_il = ‖G_i − M_l‖². The energies are those of problem (5) and include observed labels. There is no
classifier: the run reports W = M, and ``primal`` is the value of (5) at W. The method does not
minimise (5); its own objective is ``kmeans_objective``. A label without points keeps its mean. With
``start=inductive`` the first means are those of the points whose label is observed.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.oracles.kernels import KernelPoints
from ssvm_bench.papers.transduction.oracles.energies import sum_of
from ssvm_bench.papers.transduction.oracles.transduction import TransductiveProblem
from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 1


Config = transductive.TransductiveConfig


class KernelKMeans(transductive.TransductiveSolver):
    """Kernel k-means with an energy."""

    def __init__(self, config: Config, problem: TransductiveProblem, clock: Clock) -> None:
        super().__init__(config, problem, clock)
        self._squares = KernelPoints.of(problem.kernel.G).squares

    def begin(self) -> None:
        """Find the first labels."""
        observed = self.problem.energy.observed
        if self.start == transductive.INDUCTIVE and (observed >= 0).any():
            self._move(observed)
            with self.clock.exact(1):
                self.y = self.problem.label_step(self._distances(), None)
        else:
            super().begin()

    def iterate(self) -> None:
        """Move the means, and assign the points to them."""
        self._move(self.y)
        self.relabel(self._distances())
        self.converged = self.label_changes == 0

    def _move(self, y: np.ndarray) -> None:
        """Set W to the mean of the points of each label; points with y < 0 have no label."""
        labels = np.arange(self.problem.n_labels)
        of = (y[:, None] == labels).astype(float)
        counts = of.sum(axis=0)
        means = np.asarray(self.problem.kernel.G.T @ of) / np.maximum(counts, 1.0)
        self.W = np.where(counts > 0, means, self.W)
        self.clock.approximate(1, self.scores.size)

    def _distances(self) -> np.ndarray:
        """Return ‖G_i − M_l‖², shape (n, L)."""
        self.scores = self.problem.kernel.scores(self.W)
        return self._squares[:, None] - 2.0 * self.scores + np.square(self.W).sum(axis=0)

    def diagnostics(self) -> dict[str, float]:
        """Return the method's own objective, then the common diagnostics."""
        value = sum_of(self._distances(), self.y) + self.problem.energy.value(self.y)
        return {"kmeans_objective": value, **super().diagnostics()}


build = KernelKMeans.build
