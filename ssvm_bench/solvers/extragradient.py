"""Dual extragradient with Bregman projections (Taskar, Lacoste-Julien, Jordan, JMLR 2006).

Training is a saddle-point problem over w and a distribution α_i over the labelings of each term,

.. code-block:: text

    (1)  min_{‖w‖≤γ} max_α  ℒ(w, α) = λ/2 ‖w‖² + ⟨φ(α), [w 1]⟩,          φ(α) = Σ_i E_{α_i} φ^{iy}
    (2)  G(w, α) = ( λ w + φ⋆(α),  −⟨φ^{iy}, [w 1]⟩ )

The paper's regulariser is the ball, not λ/2 ‖w‖², so that its solution depends on γ. Our problem
keeps λ/2 ‖w‖² in ℒ, so that max_α ℒ = P, and γ = 1/√λ excludes no solution: λ ‖w*‖² ≤ P(0) ≤ 1, as
losses are at most 1. The ball is there because the theorem needs a bounded domain.

With B((w,α), (w',α')) = ρ/2 ‖w−w'‖² + 1/n Σ_i KL(α_i ‖ α'_i), and û = (0, uniform), an iteration is

.. code-block:: text

    (3)  v = argmax_u { ⟨s, u − û⟩ − B(u, û) }
    (4)  u = argmin_u { η ⟨G(v), u⟩ + B(u, v) }
    (5)  s ← s − η G(u)

Both projections have closed forms: w is scaled into the ball, and the α are Gibbs distributions
(notation of :mod:`ssvm_bench.oracles.gibbs`), α_v = α(z) and α_u = α(z + η [w_v 1]). Step (5) is
z ← z + η [w_u 1]. An iteration takes two expectations per term; z, s_w and two sums are kept.

**Reported** are w̄ and F(ᾱ), where w̄ and φ(ᾱ) are averages of all u, weighted with η. F(ᾱ) bounds
the optimum from below although w̄ ≠ −φ⋆(ᾱ)/λ. With v₊ the next v, for every u'

.. code-block:: text

    (6)  Σ η ⟨G(u), u − u'⟩ ≤ B(u', û)   if  η ⟨G(u) − G(v), u − v₊⟩ ≤ B(v₊, u) + B(u, v)  always
    (7)  max_α ℒ(w̄, α) − min_{‖w‖≤γ} ℒ(w, ᾱ) ≤ ( ρ/(2λ) + D ) / Σ η           D = 1/n Σ_i log |Y_i|

so (7) bounds the *saddle gap*. Its second value is F(ᾱ) if ‖φ⋆(ᾱ)‖ ≤ λγ, and larger otherwise; it
is a lower bound of the optimum, too. (7) is the guarantee in the BCFW poster's Table 1.

**Steps.** ⟨φ⋆(α)−φ⋆(α'), w−w'⟩ ≤ R ‖w−w'‖ √(2/n Σ_i KL_i) by Pinsker's inequality, with
R = max ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖. So G has the Lipschitz constant ℓ = λ/ρ + R/√ρ in the norm of which
B is half the square, and (6) holds for η = 1/ℓ. With ρ = 1, the paper's distance, the gap after
k iterations is at most (λ + R)(1/(2λ) + D)/k: within the table's O( nR log|Y| / (λε) ) calls. The
default, ``rho=null``, is ρ = 2λD, for which both parts of (7) are equal: O( nR √(D/λ) / ε ).

With ``step=search``, the default, η = 1/ℓ, and ℓ begins at λ/ρ + R/√(ρn), the constant of a single
term. The condition of (6) is tested, at no cost, as the divergences come with the expectations. If
it fails, the iteration is undone and ℓ doubles, up to its bound; else ℓ falls by 10 %. A trial
takes 2n calls, and the start n. ``step=bound`` uses the bound, without a test.

Before the first iteration, w = 0 and F = 0 are reported: the values at the true labelings. Trace
columns: ``eta``; ``saddle_dual``, the second value in (7); ``gap_bound``, the right side of (7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import rounded_once
from ssvm_bench.config.validation import Positive, one_of
from ssvm_bench.oracles import gibbs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.gibbs import Gibbs
from ssvm_bench.solvers.base import Iterate, Solver
from ssvm_bench.solvers.expectations import STEPS, Constant, ExpectationConfig

CODE_VERSION = 1

_ROUNDING = 1e-14
"""Relative rounding error of A, up to which the condition of (6) is tested."""


@dataclass(frozen=True)
class Config(ExpectationConfig):
    """Options of ``extragradient``.

    Attributes
    ----------
    step : str
        ``search``: the Lipschitz constant that steps meet; ``bound``: the theorem's.
    rho : float or None
        Weight of ‖w‖² beside the entropy; None: 2 λ mean log |Y|; 1: the paper's.
    """

    step: Annotated[str, one_of(STEPS)] = "search"
    rho: Positive | None = None


class PrimalDual(NamedTuple):
    """w in the ball, and α."""

    w: np.ndarray
    alpha: Gibbs


class Extragradient(Solver):
    """Dual extragradient; an iteration is 2n calls per trial.

    Attributes
    ----------
    v : PrimalDual
        v of (3); unknown before the first iteration.
    s : ndarray, shape (d,)
        s_w.
    w, alpha : ndarrays, shapes (d,), (d + 1,)
        w̄ and φ(ᾱ).
    weight : float
        Σ η.
    rho, gamma, D : float
    lipschitz : Constant
        ℓ = 1/η.
    """

    STATE = ("v", "s", "w", "alpha", "weight", "lipschitz")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.oracle, lam = config.oracle_of(problem), problem.lam
        self.D = gibbs.log_labelings(self.oracle)
        self.gamma = 1.0 / math.sqrt(lam)
        self.rho = config.rho or 2.0 * lam * (self.D or 1.0)
        own = lam / self.rho
        coupling = math.sqrt(self.oracle.features.squared_radius / self.rho)
        low = own + coupling / math.sqrt(problem.n)
        self.lipschitz = Constant.begin(config.step, low, own + coupling)
        self.v = PrimalDual(np.zeros(problem.d), Gibbs.unknown(problem.d))
        self.s, self.w = np.zeros(problem.d), np.zeros(problem.d)
        self.alpha, self.weight = np.zeros(problem.d + 1), 0.0

    def iterate(self) -> None:
        """Take a step that satisfies the condition of (6)."""
        v = self.v if self.weight else PrimalDual(self.s, self._at(np.zeros(self.problem.d + 1)))
        while True:
            eta = 1.0 / self.lipschitz.value
            u = self._from(v, self.rho * v.w, v, eta)
            after = self._from(v, self.s, u, eta)
            if self.lipschitz.will_do(self._excess(v, u, after, eta)):
                break
        self.v, self.s = after, self.s - eta * self._slope(u)
        self.weight += eta
        share = eta / self.weight
        self.w = self.w + share * (u.w - self.w)
        self.alpha = self.alpha + share * (u.alpha.phi - self.alpha)

    def _from(self, v: PrimalDual, s: np.ndarray, at: PrimalDual, eta: float) -> PrimalDual:
        """Return the projections of (4) and (3): from v along −η G(at), w from s/ρ."""
        w = (s - eta * self._slope(at)) / self.rho
        w *= min(1.0, self.gamma / max(math.sqrt(rounded_once(w, w)), self.gamma))
        return PrimalDual(w, self._at(v.alpha.z + eta * np.append(at.w, 1.0)))

    def _slope(self, at: PrimalDual) -> np.ndarray:
        """Return the part of G that belongs to w."""
        return self.problem.lam * at.w + at.alpha.phi[:-1]

    def _excess(self, v: PrimalDual, u: PrimalDual, after: PrimalDual, eta: float) -> float:
        """Return left minus right side of the condition of (6), less possible rounding errors."""
        left = rounded_once(self._slope(u) - self._slope(v), u.w - after.w)
        left -= rounded_once(u.w - v.w, (u.alpha.phi - after.alpha.phi)[:-1])
        right = self._divergence(after, u) + self._divergence(u, v)
        size = 1.0 + sum(abs(point.alpha.log_mean) for point in (v, u, after))
        return eta * left - right - _ROUNDING * size

    def _divergence(self, a: PrimalDual, b: PrimalDual) -> float:
        """Return B(a, b)."""
        step = a.w - b.w
        return 0.5 * self.rho * rounded_once(step, step) + a.alpha.divergence(b.alpha)

    def _at(self, z: np.ndarray) -> Gibbs:
        with self.clock.exact(self.problem.n):
            return gibbs.at(self.oracle, z)

    def reported(self) -> Iterate:
        """Return w̄ and F(ᾱ)."""
        return Iterate(self.w.copy(), self._dual(math.inf))

    def _dual(self, gamma: float) -> float:
        """Return min over ‖w‖ ≤ γ of ℒ(w, ᾱ)."""
        lam, star = self.problem.lam, self.alpha[:-1]
        norm = math.sqrt(rounded_once(star, star))
        length = min(norm / lam, gamma)
        return float(self.alpha[-1]) + 0.5 * lam * length * length - norm * length

    def diagnostics(self) -> dict[str, float]:
        """Return η, the second value in (7), and the right side of (7)."""
        bound = self.rho / (2.0 * self.problem.lam) + self.D
        return {
            "eta": 1.0 / self.lipschitz.value,
            "saddle_dual": self._dual(self.gamma),
            "gap_bound": bound / self.weight if self.weight else math.inf,
        }


build = Extragradient
