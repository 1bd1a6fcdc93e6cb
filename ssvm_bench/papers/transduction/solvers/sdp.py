"""A semidefinite relaxation of the labels: the baseline of section 4.1, by two losses.

That baseline is the relaxation of A. Joulin and F. Bach (*A convex relaxation for weakly supervised
classifiers*, ICML 2012): a program over the equivalence matrix M = Y Yᵀ of the labels
Y ∈ {0, 1}^{n×L}, for the softmax loss. F is the loss of the best classifier as a function of M
(:mod:`~ssvm_bench.papers.transduction.oracles.equivalence`): by the square loss for any number of
labels, by softmax for two.

.. code-block:: text

    min F(M)   M ∈ C = {M ⪰ 0, M 1 = n/L 1}: all labels have n/L points,
               M ∈ B = {0 ≤ M_ij ≤ 1, M_ii = 1, M_ij = [y_i = y_j] where both are observed}

The cone and the size are those of the baseline. It differs where balance is a constraint and not a
prior, in the classifier, which has no intercept, and, by softmax, in the relaxation of F, which is
ours. The program is solved by ADMM on two copies with scaled multiplier U, linearised where F is
curved (with a proximal term τ that is doubled until F is below its model; it is 0 for the square):

.. code-block:: text

    M ← Π_C(V + τ/(r + τ) (M − V))      V = N − U − ∇F(M)/r
    N ← Π_B(M + U)                      U ← U + M − N

Π_C needs the eigenvectors of a centred n × n matrix, the main cost of an iteration; Π_B is
entrywise. In the first iterations, r is adapted to balance the residuals; then it is kept.
``relaxed`` is F(M), ``residual`` is ‖M − N‖. With Z = r U and the tangent c + ⟨A, ·⟩ of F at M,
weak duality gives

.. code-block:: text

    ``relaxed_bound`` = c + min_{M ∈ C, tr M = n} ⟨A + Z, M⟩ − max_{N ∈ B} ⟨Z, N⟩

The energy's label step rounds N: the score of point i for label l is the mean of N_ij over the
observed points j with label l, or 0 if there are none. The classifier is that of these labels by
the square loss, and that of the multipliers of F(M) and these labels by softmax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.linalg

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import norm
from ssvm_bench.base.memory import check_room
from ssvm_bench.config.validation import Positive, one_of
from ssvm_bench.papers.transduction.oracles import equivalence
from ssvm_bench.papers.transduction.oracles.equivalence import Tangent
from ssvm_bench.papers.transduction.oracles.transduction import TransductiveProblem
from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 2

_MATRICES = 12
"""Number of n × n matrices in memory at a time."""

_ROUNDING = 1e-9
"""Share of F(M) by which F may be above its model: the error of its multipliers."""

_MOST_DOUBLINGS = 60
"""Doublings of τ in an iteration: M does not move any more then."""


@dataclass(frozen=True)
class Config(transductive.TransductiveConfig):
    """Options of ``sdp``.

    Attributes
    ----------
    loss : str
        ``square``, or ``softmax`` for two labels; ``oracle.loss`` counts for the objective alone.
    penalty : float
        First penalty r of ADMM, times n^{3/2}/‖∇F‖ at the first M.
    tol : float
        Residual, step of N and τ/r times that of M, relative to N, at which the run has converged.
    """

    loss: Annotated[str, one_of(equivalence.LOSSES)] = equivalence.SQUARE
    penalty: Positive = 10.0
    tol: Positive = 1e-3


class Relaxation(transductive.TransductiveSolver):
    """ADMM from M = N: 1 on the diagonal, known entries of observed pairs, and 1/L elsewhere.

    Raises
    ------
    ConfigError
        More points than n/L have the same observed label.
    RunFailedError
        The matrices do not fit into memory.

    Attributes
    ----------
    M, N, U : ndarrays, shape (n, n)
    r, curvature : float
        Penalty, and τ.
    alpha : ndarray, shape (n,)
        Multipliers of F(M).
    """

    STATE = (
        *transductive.TransductiveSolver.STATE,
        *("M", "N", "U", "r", "curvature", "alpha", "_done"),
    )

    def __init__(self, config: Config, problem: TransductiveProblem, clock: Clock) -> None:
        super().__init__(config, problem, clock)
        n, y = problem.n, problem.energy.observed
        self.labelled = np.flatnonzero(y >= 0)
        most = int(np.bincount(y[self.labelled]).max(initial=0))
        if most > n / problem.n_labels:
            raise ConfigError(
                f"solver={config.name} gives each label {n / problem.n_labels:g} points, and there "
                f"are {most} of one observed label: choose solver=dcadmm, or fewer labelled points."
            )
        what = f"{_MATRICES} matrices of {n:,} × {n:,} numbers"
        check_room(8.0 * _MATRICES * n * n, what, "Choose solver=dcadmm, or fewer points.")
        self.loss = equivalence.LOSSES[config.loss](problem)
        self.same = (y[self.labelled, None] == y[self.labelled]).astype(float)
        self.U = np.zeros((n, n))
        self.N = self._within(np.full((n, n), 1.0 / problem.n_labels))
        self.M = self._balanced(self.N)
        first = self.loss.tangent(self.M, self.loss.start)
        self.r = config.penalty / n**1.5 * (norm(first.slope) or 1.0)
        self.alpha, self.curvature, self._done = first.alpha, 0.0, 0

    def iterate(self) -> None:
        """Do an iteration of ADMM, and round."""
        here = self.loss.tangent(self.M, self.alpha)
        V = self.N - self.U - here.slope / self.r
        for _ in range(_MOST_DOUBLINGS):
            M = self._balanced(V + self.curvature / (self.r + self.curvature) * (self.M - V))
            self.clock.approximate(1, self.U.size)
            there = self.loss.tangent(M, here.alpha)
            model = here.at(M) + 0.5 * self.curvature * norm(M - self.M) ** 2
            if there.value <= model + _ROUNDING * abs(here.value):
                break
            self.curvature = max(2.0 * self.curvature, self.r)
        held = self.curvature / self.r * norm(M - self.M)
        self.M, self.alpha = M, there.alpha
        before, self.N = self.N, self._within(self.M + self.U)
        self.U += self.M - self.N
        residual, step = self.residual(), max(norm(self.N - before), held)
        self.converged = max(residual, step) <= self.config.tol * norm(self.N)
        self.curvature /= 1.5
        self._balance(residual, step)
        self._round()

    def residual(self) -> float:
        """Return ‖M − N‖."""
        return norm(self.M - self.N)

    def _balance(self, residual: float, step: float) -> None:
        """Adapt r, and the multiplier U, which is Z/r."""
        self._done += 1
        if not self.converged:
            factor = transductive.penalty_factor(self._done, residual, step)
            self.r *= factor
            self.U /= factor

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
        """Round N to labels, and find their classifier."""
        problem, observed = self.problem, self.problem.energy.observed[self.labelled]
        near = [self.N[:, self.labelled[observed == k]] for k in range(problem.n_labels)]
        near = [rows.sum(axis=1) / max(rows.shape[1], 1) for rows in near]
        self.relabel(-np.ascontiguousarray(np.array(near).T))
        self.W = self.loss.classifier(self.y, self.W, self.alpha)
        self.scores = problem.kernel.scores(self.W)

    def bound(self, tangent: Tangent) -> float:
        """Return the lower bound of the relaxation, by a tangent of F."""
        n, L = self.problem.n, self.problem.n_labels
        Z = self.r * self.U
        both = tangent.slope + Z
        above = 2.0 / n * (1.0 + norm(both))  # so 1 is not the lowest eigenvector
        centred = _centred(both) + above
        lowest = scipy.linalg.eigh(centred, eigvals_only=True, subset_by_index=[0, 0])[0]
        first = tangent.constant + (n - n / L) * lowest + both.sum() / L
        # where N_ij is not known, Z_ij N_ij is largest at N_ij = [Z_ij > 0]
        return float(first - (Z * self._within((Z > 0).astype(float))).sum())

    def diagnostics(self) -> dict[str, float]:
        """Return the common diagnostics, and the relaxation's value, bound and residual."""
        tangent = self.loss.tangent(self.M, self.alpha)
        return {
            **super().diagnostics(),
            "relaxed": tangent.value,
            "relaxed_bound": self.bound(tangent),
            "residual": self.residual(),
        }


def _centred(V: np.ndarray) -> np.ndarray:
    """Return V without its means by row and column."""
    means = V.mean(axis=0)
    return V - means - V.mean(axis=1)[:, None] + means.mean()


build = Relaxation.build
