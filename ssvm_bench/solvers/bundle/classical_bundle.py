"""The classical bundle method on the whole objective, with proximity control (a baseline of BMRM).

Its planes are those of F = λ/2 ‖w‖² + R: the regulariser is linearised as well (Uřičář and Franc
2012, section 2, equation 8). With a subgradient a_j of R at w_j, and R(w_j) = ⟨a_j, w_j⟩ + b_j,

.. code-block:: text

    F̂_t(w) = max_j ⟨a_j + λ w_j, w⟩ + b_j − λ/2 ‖w_j‖²
    w_{t+1} = argmin F̂_t(w) + α ‖w − w⁺‖²                  δ = F(w⁺) − F̂_t(w_{t+1})
    serious step:  F(w⁺) − F(w_{t+1}) ≥ γ = δ/10           w⁺ = w_{t+1}
    null step:     otherwise                               w⁺ unchanged

The report leaves γ and α to the literature. Both are those of Kiwiel, *Proximity control in bundle
methods*, Math. Programming 46, 1990, Procedure 2.2, whose u is 2α. F is interpolated between w⁺ and
w_{t+1}; the new α for its minimum there is 2α (1 − (F(w⁺) − F(w_{t+1}))/δ). The first α is
‖F'(w_1)‖/2.

The method stops where the other bundle methods would with the same oracle calls, at F(w⁺) − min F_t
≤ ε F(w⁺). F_t(w) = λ/2 ‖w‖² + R_t(w) is BMRM's model; minimising it is one more QP per iteration.

============  =================================================================================
option        meaning
============  =================================================================================
alpha         α/λ, for a constant α; null: Kiwiel's rule
epsilon       relative gap ε at which to stop, where ``budget.gap_tol`` is 0
qp_steps      most steps of an inner QP
============  =================================================================================

An iteration is a pass of oracle calls. The method starts at w_1 = 0, and reports w⁺.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import inner, squared_norm
from ssvm_bench.config.validation import Count, Positive, Share
from ssvm_bench.oracles.base import Problem
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig, finer
from ssvm_bench.solvers.bundle.bmrm import QP_SHARE
from ssvm_bench.solvers.bundle.model import CuttingPlaneModel, Reduced

CODE_VERSION = 1

_SERIOUS, _GOOD = 0.1, 0.5
"""Shares of δ that a serious step lowers F by, and one after which α may fall at once."""

_MOST_CHANGE = 10.0
_STREAK = 3
"""α is halved, or grows, only after more than so many serious, or null, steps in a row."""


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options; see the module's docstring."""

    alpha: Positive | None = None
    epsilon: Share = 0.01
    qp_steps: Count = 10_000_000


class ClassicalBundle(Solver):
    """The classical bundle method.

    Attributes
    ----------
    w, point : ndarray, shape (d,)
        w⁺, with its ``primal`` value, and w_{t+1}.
    risk, model : CuttingPlaneModel
        Planes of R and of F.
    lower : float
        The best lower bound.
    alpha : float
        α.
    predicted : float
        δ.
    serious_streak, null_streak : int
        The latest serious steps in a row with this α, and null steps; one number is 0.
    epsilon : float
        ε; smaller than the option where the run asks for a smaller gap.
    variation : float
        Kiwiel's ε_v: an estimate of the variation of F around w⁺.
    """

    STATE = (
        *("w", "point", "primal", "risk", "model", "lower", "alpha", "predicted"),
        *("serious_streak", "null_streak", "variation", "epsilon"),
        *("qps", "serious_steps", "qp_time", "gram_time"),
    )

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.config = config
        self.risk, self.model = (CuttingPlaneModel(problem.d, 1, truth=False) for _ in range(2))
        self.w = self.point = np.zeros(problem.d)
        self.primal = self.variation = math.inf
        self.epsilon = config.epsilon
        self.lower = self.alpha = self.predicted = 0.0
        self.serious_streak = self.null_streak = 0
        self.qp_time = self.gram_time = 0.0
        self.qps = self.serious_steps = 0

    def iterate(self) -> None:
        """Do a pass of the oracle at w_{t+1}, choose w⁺ and α, and find the next w_{t+1}."""
        problem, point = self.problem, self.point
        with self.clock.exact(problem.n):
            risk = problem.risk(point)
        begin = self.clock.now()
        half_norm = 0.5 * problem.lam * squared_norm(point)
        slope = risk.star + problem.lam * point
        self.risk.add(risk.star[None], np.array([risk.offset]))
        self.model.add(slope[None], np.array([risk.offset - half_norm]))
        added = self.clock.now()
        self._judge(half_norm + risk.value, slope)
        if self.config.alpha is not None:
            self.alpha = self.config.alpha * problem.lam
        self._bound()
        if not self.converged and not self.ended:
            self._next()
        self.gram_time += added - begin
        self.qp_time += self.clock.now() - added

    def _judge(self, value: float, slope: np.ndarray) -> None:
        """Do a serious or a null step, depending on F(w_{t+1}); choose α by Kiwiel's rule."""
        if math.isinf(self.primal):
            self.alpha = 0.5 * math.sqrt(squared_norm(slope))
            self.primal = value
            return
        gained, alpha = self.primal - value, self.alpha
        interpolated = 2.0 * alpha * (1.0 - gained / self.predicted)
        if gained >= _SERIOUS * self.predicted:
            if gained >= _GOOD * self.predicted and self.serious_streak > 0:
                self.alpha = interpolated
            elif self.serious_streak > _STREAK:
                self.alpha = 0.5 * alpha
            self.alpha = max(self.alpha, alpha / _MOST_CHANGE)
            self.variation = max(self.variation, 2.0 * self.predicted)
            self.serious_streak = 1 + self.serious_streak * (self.alpha == alpha)
            self.null_streak = 0
            self.w, self.primal = self.point, value
            self.model.move_center(self.w)
            self.serious_steps += 1
            return
        step = self.w - self.point
        norm = 2.0 * alpha * math.sqrt(squared_norm(step))
        self.variation = min(self.variation, norm + self.predicted - norm * norm / (2.0 * alpha))
        error = gained - inner(slope, step)
        if error > max(self.variation, 10.0 * self.predicted) and self.null_streak > _STREAK:
            self.alpha = min(interpolated, _MOST_CHANGE * alpha)
        self.null_streak = 1 + self.null_streak * (self.alpha == alpha)
        self.serious_streak = 0

    def _bound(self) -> None:
        """Bound F from below by BMRM's model, and compare F(w⁺) with the bound."""
        self.lower = max(self.lower, self._solve(self.risk, self.problem.lam, 0.0).value)
        self.converged = self.primal - self.lower <= self.epsilon * abs(self.primal)

    def refine(self) -> bool:
        """See `Solver`."""
        self.epsilon = finer(self.epsilon, self.primal - self.lower, self.primal)
        if self.epsilon > 0.0:
            self._next()
        return self.epsilon > 0.0

    def _next(self) -> None:
        """Find the next w_{t+1}."""
        found = self._solve(self.model, 0.0, self.alpha)
        moved = self.alpha * squared_norm(found.w - self.w)
        self.predicted = max(self.primal - (found.value - moved), found.gap)
        self.point = found.w

    def _solve(self, model: CuttingPlaneModel, lam: float, alpha: float) -> Reduced:
        tol = QP_SHARE * self.epsilon * abs(self.primal)
        found = model.minimise(lam, alpha, tol, self.config.qp_steps)
        self.qps += 1
        if found.gap > tol:
            self.ended = "qp_steps"
        return found

    def reported(self) -> Iterate:
        """Return w⁺ and the lower bound."""
        return Iterate(self.w.copy(), self.lower)

    def working_set_mean(self) -> float:
        """Return the number of planes; there is only one block."""
        return float(self.model.size)

    def diagnostics(self) -> dict[str, float]:
        """Return the seconds of QPs and Gram matrices, and the numbers of QPs and serious steps."""
        seconds = {"qp_time": self.qp_time, "gram_time": self.gram_time}
        return {**seconds, "qps": float(self.qps), "serious_steps": float(self.serious_steps)}


build = ClassicalBundle
