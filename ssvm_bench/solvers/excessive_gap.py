"""Excessive gap reduction with Bregman projections (Zhang, Saha, Vishwanathan 2011).

Nesterov's technique (SIAM J. Optim. 2005) keeps w and a distribution α_i over the labelings of each
term for which a smoothed primal value is *below* the dual one. With d(α) = 1/n Σ_i KL(α_i ‖ unif.),
its conjugate A and its bound D, as in :mod:`ssvm_bench.oracles.gibbs`,

.. code-block:: text

    (1)  P_μ(w) = λ/2 ‖w‖² + max_α { Σ_i E_{α_i} ⟨φ^{iy}, [w 1]⟩ − μ d(α) }
                = λ/2 ‖w‖² + μ A([w 1]/μ)                              P_μ ≤ P ≤ P_μ + μ D
    (2)  P_μ(w) ≤ F(α)   ⇒   P(w) − F(α) ≤ μ D

The maximiser in (1) is the Gibbs distribution α(z), z = [w 1]/μ. A step with 0 < τ < 1 is

.. code-block:: text

    (3)  α̂ = (1−τ) α + τ α([w 1]/μ)
    (4)  w ← (1−τ) w + τ w(α̂),       μ ← (1−τ) μ,       w(α) = −φ⋆(α)/λ
    (5)  α ← (1−τ) α + τ α([w 1]/μ)

The paper's Bregman projection, from α([w 1]/μ) along ∇F(α̂) by τ/((1−τ)μ), multiplies the weights by
exp( n ⟨φ^{iy}, [w(α̂) 1]⟩ τ/((1−τ)μ) ). The result is the Gibbs distribution of (5), with which the
next step begins. So an iteration computes one expectation per term. As everything is linear in
φ(α), only w and two sums of planes are kept.

**Steps.** F is a parabola: F(α') ≥ F(α) + ⟨∇F(α), α'−α⟩ − ‖φ⋆(α'−α)‖²/(2λ), and by Pinsker's
inequality, with R = max ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖,

.. code-block:: text

    (6)  ‖φ⋆(α'−α)‖² ≤ ( R/n Σ_i ‖α'_i−α_i‖₁ )² ≤ R²/n Σ_i ‖α'_i−α_i‖₁² ≤ 2R²/n Σ_i KL(α'_i ‖ α_i)

so its curvature is at most L = R²/λ. (2) holds at μ = L for w = w(uniform), α = α([w 1]/μ), and a
step preserves it if τ²/(1−τ) ≤ μ/L: the largest such τ is taken. μ then falls like 4L/k², hence
P − F ≤ ε after n k = O( n R √(D/(λε)) ) expectations: the order in the BCFW poster's Table 1.

This L is the worst case over all α' − α, in which all terms move in one direction. It is up to n
times the curvature that steps meet, on sequences more. So with ``step=search``, the default, L
starts at R²/(λn), the curvature of a single term. A step then tests (2) itself, at no cost, as A
comes with the expectations. If (2) does not hold after it, the step is undone and L is doubled, up
to R²/λ; else L falls by 10 %. Each trial takes n calls. ``step=bound`` uses L = R²/λ, without a
test. The certificate (2) is the same.

Before the first iteration, w = 0 and F = 0 are reported: the values at the true labelings. The
first iteration finds a start for (2). Trace columns: ``mu``, and ``gap_bound`` = μ D ≥ P − F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import rounded_once
from ssvm_bench.config.validation import one_of
from ssvm_bench.oracles import gibbs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.gibbs import Gibbs
from ssvm_bench.solvers.base import Iterate, Solver
from ssvm_bench.solvers.expectations import STEPS, Constant, ExpectationConfig

CODE_VERSION = 1

_ROUNDING = 1e-13
"""Relative rounding error of P_μ and F, up to which (2) is tested."""


@dataclass(frozen=True)
class Config(ExpectationConfig):
    """Options of ``excessive_gap``.

    Attributes
    ----------
    step : str
        ``search``: the curvature that steps meet; ``bound``: the theorem's, R²/λ.
    """

    step: Annotated[str, one_of(STEPS)] = "search"


class ExcessiveGap(Solver):
    """Excessive gap reduction; an iteration is a step, of n calls per trial.

    Attributes
    ----------
    w : ndarray, shape (d,)
    alpha : ndarray, shape (d + 1,)
        φ(α).
    smoothed : Gibbs
        α([w 1]/μ); unknown before the first iteration.
    mu, D : float
        μ is ∞ before the first iteration.
    L : Constant
    """

    STATE = ("w", "alpha", "smoothed", "mu", "L")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.oracle = config.oracle_of(problem)
        self.D = gibbs.log_labelings(self.oracle)
        curvature = (self.oracle.features.squared_radius or 1.0) / problem.lam
        self.L = Constant.begin(config.step, curvature / problem.n, curvature)
        self.w, self.alpha = np.zeros(problem.d), np.zeros(problem.d + 1)
        self.smoothed = Gibbs.unknown(problem.d)
        self.mu = math.inf

    def iterate(self) -> None:
        """Take a step that preserves (2)."""
        smoothed = self.smoothed
        if math.isinf(self.mu):
            smoothed = self._at(np.zeros(self.problem.d + 1))
        while True:
            tau = _longest_step(self.mu / self.L.value)
            w, alpha, mu, trial = self._step(smoothed, tau)
            if self.L.will_do(self._excess(w, alpha, mu, trial)):
                break
        self.w, self.alpha, self.mu, self.smoothed = w, alpha, mu, trial
        self.converged = self.mu * self.D <= _ROUNDING * abs(self._dual(self.alpha))

    def _step(self, smoothed: Gibbs, tau: float) -> tuple[np.ndarray, np.ndarray, float, Gibbs]:
        """Return w, φ(α), μ and α([w 1]/μ) after (3) to (5), or at the start of (2)."""
        if math.isinf(self.mu):
            w, mu = self._of(smoothed.phi), self.L.value
        else:
            hat = (1.0 - tau) * self.alpha + tau * smoothed.phi
            w, mu = (1.0 - tau) * self.w + tau * self._of(hat), (1.0 - tau) * self.mu
        trial = self._at(np.append(w, 1.0) / mu)
        return w, (1.0 - tau) * self.alpha + tau * trial.phi, mu, trial

    def _excess(self, w: np.ndarray, alpha: np.ndarray, mu: float, trial: Gibbs) -> float:
        """Return P_μ(w) − F(α), less the possible rounding error."""
        square = 0.5 * self.problem.lam * rounded_once(w, w)
        primal, dual = square + mu * trial.log_mean, self._dual(alpha)
        return primal - dual - _ROUNDING * (square + abs(primal) + abs(dual))

    def _at(self, z: np.ndarray) -> Gibbs:
        with self.clock.exact(self.problem.n):
            return gibbs.at(self.oracle, z)

    def _of(self, phi: np.ndarray) -> np.ndarray:
        return -phi[:-1] / self.problem.lam

    def _dual(self, phi: np.ndarray) -> float:
        w = self._of(phi)
        return float(phi[-1]) - 0.5 * self.problem.lam * rounded_once(w, w)

    def reported(self) -> Iterate:
        """Return w and F(α)."""
        return Iterate(self.w.copy(), self._dual(self.alpha))

    def diagnostics(self) -> dict[str, float]:
        """Return μ and μ D."""
        return {"mu": self.mu, "gap_bound": self.mu * self.D}


def _longest_step(q: float) -> float:
    """Return the largest τ ≤ 1 with τ²/(1−τ) ≤ q."""
    return 1.0 if math.isinf(q) else 2.0 * q / (q + math.sqrt(q * q + 4.0 * q))


build = ExcessiveGap
