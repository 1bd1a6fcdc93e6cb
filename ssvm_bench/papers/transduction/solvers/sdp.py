"""A semidefinite relaxation of the labels, run to compare its time and memory.

The baseline of section 4.1 is the relaxation of A. Joulin and F. Bach (*A convex relaxation for
weakly supervised classifiers*, ICML 2012): a program over the equivalence matrix M = Y Yᵀ of the
labels Y ∈ {0, 1}^{n×L}, for the softmax loss. Here the loss is the square, as in its predecessor
(F. Bach, Z. Harchaoui: *DIFFRAC*, NIPS 2007): W is minimised out, and the objective is linear in M.

.. code-block:: text

    min_W ‖Y − G W‖² + ν ‖W‖² = ⟨A, Y Yᵀ⟩       A = I − G (GᵀG + ν I)⁻¹ Gᵀ

    min ⟨A, M⟩   M ∈ C = {M ⪰ 0, M 1 = n/L 1}: all labels have n/L points,
                 M ∈ B = {0 ≤ M_ij ≤ 1, M_ii = 1, M_ij = [y_i = y_j] where both are observed}

The cone and the size are those of the baseline; the inner maximisation of the softmax is missing.
The program is solved by ADMM on two copies, with scaled multiplier U and r = ``penalty`` / n:

.. code-block:: text

    M ← Π_C(N − U − A/r)      N ← Π_B(M + U)      U ← U + M − N

Π_C needs the eigenvectors of a centred n × n matrix, the main cost of an iteration; Π_B is
entrywise. ``relaxed`` is ⟨A, N⟩, ``residual`` is ‖M − N‖. With Z = r U, weak duality gives

.. code-block:: text

    ``relaxed_bound`` = min_{M ∈ C, tr M = n} ⟨A + Z, M⟩ − max_{N ∈ B} ⟨Z, N⟩

The energy's label step rounds N: the score of point i for label l is the mean of N_ij over the
observed points j with label l, or 0 if there are none. Then W is fitted to these labels by least
squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import inner, norm
from ssvm_bench.base.memory import check_room
from ssvm_bench.config.validation import Positive
from ssvm_bench.papers.transduction.oracles import kernels
from ssvm_bench.papers.transduction.oracles.transduction import TransductiveProblem
from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 1

_MATRICES = 8
"""Number of n × n matrices in memory at a time."""


@dataclass(frozen=True)
class Config(transductive.TransductiveConfig):
    """Options of ``sdp``.

    Attributes
    ----------
    penalty : float
        Penalty of ADMM, times n.
    tol : float
        Residual and step, relative to N, at which the run has converged.
    """

    penalty: Positive = 10.0
    tol: Positive = 1e-3


class Relaxation(transductive.TransductiveSolver):
    """ADMM from M = N: 1 on the diagonal, known entries of observed pairs, and 1/L elsewhere.

    Attributes
    ----------
    A, M, N, U : ndarrays, shape (n, n)
    """

    STATE = (*transductive.TransductiveSolver.STATE, "M", "N", "U")

    def __init__(self, config: Config, problem: TransductiveProblem, clock: Clock) -> None:
        super().__init__(config, problem, clock)
        n, y = problem.n, problem.energy.observed
        self.labelled = np.flatnonzero(y >= 0)
        what = f"{_MATRICES} matrices of {n:,} × {n:,} numbers"
        check_room(8.0 * _MATRICES * n * n, what, "Choose solver=dcadmm, or fewer points.")
        G = kernels.dense(problem.kernel.G)
        factor = scipy.linalg.cho_factor(G.T @ G + problem.lam * np.eye(G.shape[1]))
        self.A = np.eye(n) - G @ scipy.linalg.cho_solve(factor, G.T)
        self.same = (y[self.labelled, None] == y[self.labelled]).astype(float)
        self.U = np.zeros((n, n))
        self.N = self._within(np.full((n, n), 1.0 / problem.n_labels))
        self.M = self.N

    def iterate(self) -> None:
        """Do an iteration of ADMM, and round."""
        r = self.config.penalty / self.problem.n
        self.M = self._balanced(self.N - self.U - self.A / r)
        before, self.N = self.N, self._within(self.M + self.U)
        self.U += self.M - self.N
        self.clock.approximate(1, self.U.size)
        size = self.config.tol * norm(self.N)
        step = norm(self.N - before)
        self.converged = max(self.residual(), step) <= size
        self._round()

    def residual(self) -> float:
        """Return ‖M − N‖."""
        return norm(self.M - self.N)

    def _balanced(self, V: np.ndarray) -> np.ndarray:
        """Return Π_C(V)."""
        options = {"overwrite_a": True, "check_finite": False, "driver": "evd"}  # the fastest
        values, vectors = scipy.linalg.eigh(_centred(V), **options)
        above = values > 0
        part = vectors[:, above] * np.sqrt(values[above])
        return part @ part.T + 1.0 / self.problem.n_labels

    def _within(self, V: np.ndarray) -> np.ndarray:
        """Return Π_B(V)."""
        V = np.clip(V, 0.0, 1.0)
        np.fill_diagonal(V, 1.0)
        V[np.ix_(self.labelled, self.labelled)] = self.same
        return V

    def _round(self) -> None:
        """Round N to labels, and fit W to them."""
        problem, observed = self.problem, self.problem.energy.observed[self.labelled]
        labels = np.arange(problem.n_labels)
        near = [self.N[:, self.labelled[observed == label]] for label in labels]
        near = [rows.sum(axis=1) / max(rows.shape[1], 1) for rows in near]
        self.relabel(-np.ascontiguousarray(np.array(near).T))
        target = (self.y[:, None] == labels).astype(float)
        self.W = problem.kernel.fit(target, 0.5 * problem.lam, 1.0, self.W)
        self.scores = problem.kernel.scores(self.W)

    def bound(self) -> float:
        """Return the lower bound of the relaxation."""
        n, L = self.problem.n, self.problem.n_labels
        Z = self.config.penalty / n * self.U
        above = 2.0 / n * (1.0 + norm(Z))  # so 1 is not the lowest eigenvector
        centred = _centred(self.A + Z) + above
        lowest = scipy.linalg.eigh(centred, eigvals_only=True, subset_by_index=[0, 0])[0]
        first = (n - n / L) * lowest + (self.A + Z).sum() / L
        # where N_ij is not known, Z_ij N_ij is largest at N_ij = [Z_ij > 0]
        return float(first - (Z * self._within((Z > 0).astype(float))).sum())

    def diagnostics(self) -> dict[str, float]:
        """Return the common diagnostics, and the relaxation's value, bound and residual."""
        return {
            **super().diagnostics(),
            "relaxed": inner(self.A, self.N),
            "relaxed_bound": self.bound(),
            "residual": self.residual(),
        }


def _centred(V: np.ndarray) -> np.ndarray:
    """Return V without its means by row and column."""
    means = V.mean(axis=0)
    return V - means - V.mean(axis=1)[:, None] + means.mean()


build = Relaxation.build
