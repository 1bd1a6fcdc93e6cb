"""Discrete-continuous ADMM (Laude et al., CVPR 2018, Algorithm 1).

.. code-block:: text

    L_ρ(α, β, λ, y) = Σ_i ℓ(y_i; β_i) + ν ⟨α, Kα⟩ + E(y) + ⟨λ, Kα − β⟩ + ρ/2 ‖Kα − β‖²      (8)

    table     B_il = argmin_β ℓ(l; β) + ρ/2 ‖β − K_i α − λ_i/ρ‖²,  u_il the minimum         (13)
    labels    y ← argmin Σ_i u_{i,y_i} + E(y), unless L_ρ falls by less than δ              (14, 16)
              β_i ← B_{i,y_i}                                                               (15)
    weights   α ← argmin ν ⟨α, Kα⟩ + ρ/2 ‖Kα − β + λ/ρ‖²                                    (17)
    then      λ ← λ + ρ (Kα − β);   ρ ← min(ρ_max, τρ) as long as (18) does not hold

================  ==================================================================
symbol            name
================  ==================================================================
W = Gᵀα, Kα       ``W``, ``scores``
λ                 ``multipliers`` (λ is the weight of a structural SVM elsewhere)
ρ_0, τ, ρ_max     ``rho``, ``tau``, ``rho_max``
δ                 ``delta``
================  ==================================================================

**(18)** has f(α) = ν ⟨α, Kα⟩, whose gradient has the modulus L = 2ν σ_max, and m = 0. It reads
ρ > ρ* = 8^{1/2} ν σ_max/σ_min², where σ are the eigenvalues of K. ``condition_18`` is ρ/ρ*, so the
condition holds where this is above 1. It never holds if K is singular, e.g. with fewer features
than points.

**The effect of ρ.** From (32), α = −λ/(2ν), so in the mode of K with eigenvalue σ, the scores
respond to the multipliers by σ/(2ν). While ρ is below 2ν/σ, this is too little against 1/ρ to hold
a label, and labels oscillate; once ρ is above 2ν/σ, the mode takes part. So ρ_0 ≈ 2ν/σ_max and a
slow τ find the labels from coarse to fine; with a far larger ρ_0, all modes take part at once.

**The gap to (27)**, the supervised problem for the labels found, is bounded without solving (27);
in the limit, α solves it if δ > 0 (Proposition 2). The table's step makes μ = ρ (c − β), with c its
centre, a subgradient of the losses at β. So ℓ*(μ_i) = ⟨μ_i, β_i⟩ − ℓ(y_i; β_i), and weak duality
bounds how far the objective of α is above the optimum:

.. code-block:: text

    supervised_gap = Σ_i ℓ(y_i; K_i α) + ν ⟨α, Kα⟩ − [Σ_i ℓ(y_i; β_i) − ⟨μ, β⟩ − ‖Gᵀμ‖²/(4ν)]

**Conjugate gradients.** If they solve (17), ``cg_iterations`` counts their iterations so far.

**Stopping.** The run has converged when no label has changed for ``patience`` iterations, and the
residual and the last step are small:

.. code-block:: text

    ‖Kα − β‖, ‖Kα − Kα_before‖ ≤ tol max(‖Kα‖, ‖β‖)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import inner, norm
from ssvm_bench.config.validation import Count, NotNegative, Positive, at_least
from ssvm_bench.papers.transduction.oracles import losses
from ssvm_bench.papers.transduction.oracles.transduction import TransductiveProblem
from ssvm_bench.papers.transduction.solvers import transductive

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(transductive.TransductiveConfig):
    """Options of ``dcadmm``.

    Attributes
    ----------
    rho : float
        ρ_0, the first ρ.
    tau : float
        Factor of ρ in every iteration, as long as (18) does not hold.
    rho_max : float or None
        Largest ρ; None: ρ grows until (18) holds.
    delta : float
        δ of (16): labels change only if the augmented Lagrangian falls by at least δ.
    tol : float
        Residual and step, relative to Kα, at which the run has converged.
    patience : int
        Iterations without a change of labels before a run can converge.
    """

    rho: Positive = 1e-3
    tau: Annotated[float, at_least(1)] = 1.003
    rho_max: Positive | None = None
    delta: NotNegative = 0.0
    tol: Positive = 1e-3
    patience: Count = 20


class DCADMM(transductive.TransductiveSolver):
    """Algorithm 1, discrete-continuous ADMM."""

    STATE = (
        *transductive.TransductiveSolver.STATE,
        *("rho", "_used", "multipliers", "beta", "_slopes", "_guess", "_unchanged"),
        "cg_iterations",
    )

    def __init__(self, config: Config, problem: TransductiveProblem, clock: Clock) -> None:
        super().__init__(config, problem, clock)
        n, L = self.scores.shape
        self.rho = self._used = config.rho
        self.multipliers = np.zeros((n, L))
        self.beta, self._slopes = np.zeros((n, L)), np.full((n, L), np.nan)
        self.B, self.u = np.zeros((n, L, L)), np.zeros((n, L))
        self._guess = np.full((n, L), -np.inf)
        self._unchanged = 0
        self.cg_iterations = 0
        smallest, largest = problem.kernel.extremes
        bound = math.sqrt(8.0) * problem.lam * largest
        self.enough = bound / smallest**2 if smallest > 0 else math.inf

    def begin(self) -> None:
        """Find the first classifier and labels; β starts at their scores."""
        super().begin()
        self.beta = self.scores.copy()

    def iterate(self) -> None:
        """Do one iteration of Algorithm 1."""
        problem, rho = self.problem, self.rho
        centre = self.scores + self.multipliers / rho
        losses.table(problem.loss, centre, rho, self.B, self.u, self._guess)
        self.relabel(self.u, self.config.delta)
        self.beta = self.B[np.arange(problem.n), self.y]
        self._slopes = rho * (centre - self.beta)
        target = rho * self.beta - self.multipliers
        known = problem.kernel.cg_iterations
        self.W = problem.kernel.fit(target, problem.lam, rho, self.W)
        self.cg_iterations += problem.kernel.cg_iterations - known
        before, self.scores = self.scores, problem.kernel.scores(self.W)
        self.multipliers += rho * (self.scores - self.beta)
        self.clock.approximate(1, self.u.size)
        self._used = rho
        if rho <= self.enough:
            self.rho = min(self.config.rho_max or math.inf, self.config.tau * rho)
        self._unchanged = 0 if self.label_changes else self._unchanged + 1
        if self._unchanged >= self.config.patience:
            size = self.config.tol * max(norm(self.scores), norm(self.beta))
            self.converged = max(self.residual(), norm(self.scores - before)) <= size

    def residual(self) -> float:
        """Return ‖Kα − β‖."""
        return norm(self.scores - self.beta)

    def augmented_lagrangian(self) -> float:
        """Return L_ρ of the iterates, with the ρ of the last iteration."""
        problem, difference = self.problem, self.scores - self.beta
        return (
            losses.total(problem.loss, self.y, self.beta)
            + problem.lam * inner(self.W, self.W)
            + problem.energy.value(self.y)
            + inner(self.multipliers, difference)
            + 0.5 * self._used * inner(difference, difference)
        )

    def supervised_gap(self) -> float:
        """Return a bound on how far α's value is above the optimum of (27); NaN at first."""
        problem, slopes, nu = self.problem, self._slopes, self.problem.lam
        primal = losses.total(problem.loss, self.y, self.scores)
        primal += nu * inner(self.W, self.W)
        gradient = problem.kernel.gradient(slopes)
        dual = losses.total(problem.loss, self.y, self.beta) - inner(slopes, self.beta)
        dual -= inner(gradient, gradient) / (4.0 * nu)
        return primal - dual

    def diagnostics(self) -> dict[str, float]:
        """Return L_ρ, residual, ρ, ρ/ρ*, the common diagnostics, gap to (27), and CG iterations."""
        counted = {"cg_iterations": self.cg_iterations}
        return {
            "augmented_lagrangian": self.augmented_lagrangian(),
            "residual": self.residual(),
            "rho": self._used,
            "condition_18": self._used / self.enough,
            **super().diagnostics(),
            "supervised_gap": self.supervised_gap(),
            **(counted if self.problem.kernel.spectrum is None else {}),
        }


build = DCADMM.build
