"""The base of the solvers of transduction: the first labels, and training for given labels.

The state is a point (W, y) with W = Gᵀα, and the scores Kα = G W. In the traces of all solvers, an
oracle call is a label step; its seconds are ``oracle_time``, and also ``label_time``. An
``approx_call`` is a solution of (17), or the step that a solver takes instead; under ``clock=work``
it costs ``cost_plane`` for each proximal step (of a point and a label) that it is based on.

**Ties.** A run warns if labels are chosen by the order of the points and not by their features: if
K ≈ I (`NO_KERNEL`), or if more than half of the label costs are equal in the first label step that
has a classifier (`TransductiveProblem.tied`). At α = 0 all costs are equal in any problem.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.interrupts import end_if_urgent
from ssvm_bench.base.linalg import norm
from ssvm_bench.base.state import Limits
from ssvm_bench.config.validation import one_of
from ssvm_bench.oracles.objective import TRANSDUCTION
from ssvm_bench.papers.transduction.oracles import losses
from ssvm_bench.papers.transduction.oracles.kernels import NO_KERNEL, FeatureMap
from ssvm_bench.papers.transduction.oracles.transduction import (
    TransductivePoint,
    TransductiveProblem,
)
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig

logger = logging.getLogger(__name__)

ZERO, INDUCTIVE = "zero", "inductive"
STARTS = (ZERO, INDUCTIVE)

TRAINED = 1e-6
"""Training for given labels ends when its relative residuals are at most this."""

_MOST_STEPS = 5000
_BALANCE, _EVERY, _BALANCED = 5.0, 10, 500
"""If the residuals differ by more than the factor ``_BALANCE``, ρ is doubled or halved, at every
``_EVERY``-th of the first ``_BALANCED`` steps."""


@dataclass(frozen=True)
class TransductiveConfig(SolverConfig):
    """Options of all solvers of transduction.

    Attributes
    ----------
    start : str
        ``zero``: α = 0, and labels of lowest index that the energy allows; ``inductive``: the
        classifier of the points whose label is observed, and its labels.
    """

    has_dual: ClassVar[bool] = False
    structures: ClassVar[tuple[str, ...]] = ("points",)
    family: ClassVar[str] = TRANSDUCTION

    start: Annotated[str, one_of(STARTS)] = ZERO


class TransductiveSolver(Solver):
    """A solver of problem (5).

    Attributes
    ----------
    W, scores : ndarrays of float64, shapes (m, L) and (n, L)
        The classifier, and Kα.
    y : ndarray of int64, shape (n,)
        The labels.
    label_changes : int
        Number of labels that the last iteration changed.
    """

    STATE: ClassVar[tuple[str, ...]] = ("W", "scores", "y", "label_changes")
    LIMITS: ClassVar[Mapping[str, Limits]] = {"y": Limits(below="problem.n_labels")}

    problem: TransductiveProblem

    def __init__(self, config: Any, problem: TransductiveProblem, clock: Clock) -> None:
        super().__init__(problem, clock)
        self.config, self.start = config, config.start
        self.W = np.zeros((problem.kernel.m, problem.n_labels))
        self.scores = np.zeros((problem.n, problem.n_labels))
        self.y = np.zeros(problem.n, np.int64)
        self.label_changes = 0
        self._looked = False

    @classmethod
    def build(
        cls, config: Any, problem: TransductiveProblem, clock: Clock, seed: int
    ) -> TransductiveSolver:
        """Return the solver at α = 0; it makes no random choices."""
        return cls(config, problem, clock)

    def begin(self) -> None:
        """Find the first classifier and labels."""
        problem = self.problem
        observed = np.flatnonzero(problem.energy.observed >= 0)
        if self.start == INDUCTIVE and observed.size:
            labels = problem.energy.observed[observed]
            self.W = train(problem, problem.kernel.take(observed), labels, self.W, self.clock)
            self.scores = problem.kernel.scores(self.W)
        u = problem.unaries(self.scores)
        self._warn_of_ties(u)
        with self.clock.exact(1):
            self.y = problem.label_step(u, None)

    def _warn_of_ties(self, u: np.ndarray) -> None:
        """Warn once, at the first classifier, if labels of these costs are not learned."""
        if self._looked or not self.W.any():
            return
        self._looked = True
        mean = self.problem.kernel.off_diagonal
        if mean < NO_KERNEL:
            why = f"the kernel is the identity, with a mean of {mean:.1g} beside its diagonal"
        elif self.problem.tied(u):
            why = "most points have the same label costs in the first label step"
        else:
            return
        logger.warning(
            "The labels are ties, not learned: %s. They depend on the order of the points. Choose "
            "another oracle.sigma or oracle.scaling.",
            why,
        )

    @abstractmethod
    def iterate(self) -> None:
        """Do one iteration: a label step, and the solver's other steps."""

    def relabel(self, u: np.ndarray, delta: float = 0.0) -> None:
        """Do the label step of u, and count the changes."""
        self._warn_of_ties(u)
        with self.clock.exact(1):
            y = self.problem.label_step(u, self.y, delta)
        self.label_changes = int(np.count_nonzero(y != self.y))
        self.y = y

    def reported(self) -> Iterate:
        """Return (W, y); there is no dual value."""
        return Iterate(TransductivePoint(self.W.copy(), self.y.copy()), np.nan)

    def diagnostics(self) -> dict[str, float]:
        """Return the label changes of the last iteration, and the seconds of all label steps."""
        return {"label_changes": self.label_changes, "label_time": self.clock.oracle_time}


def train(
    problem: TransductiveProblem, kernel: FeatureMap, y: np.ndarray, W: np.ndarray, clock: Clock
) -> np.ndarray:
    """Return the W that minimises Σ_i ℓ(y_i; G_i W) + ν ‖W‖² for given labels y.

    The problem is convex, and is solved by ADMM from the scores of W. In the first steps, ρ is
    adapted (`penalty_factor`).

    Parameters
    ----------
    problem : TransductiveProblem
        The problem whose loss and ν are used.
    kernel : FeatureMap
        The kernel of the k training points.
    y : ndarray of int64, shape (k,)
    W : ndarray, shape (m, L)
    clock : Clock
        Counts every step.
    """
    scores = kernel.scores(W)
    multipliers, beta = np.zeros_like(scores), np.empty_like(scores)
    guess, rho = np.full(y.size, -np.inf), 1.0
    for step in range(_MOST_STEPS):
        end_if_urgent()
        losses.steps(problem.loss, y, scores + multipliers / rho, rho, beta, guess)
        W = kernel.fit(rho * beta - multipliers, problem.lam, rho, W)
        before, scores = scores, kernel.scores(W)
        multipliers += rho * (scores - beta)
        clock.approximate(1, y.size)
        primal = _ratio(scores - beta, max(norm(scores), norm(beta)))
        dual = rho * _ratio(scores - before, norm(multipliers))
        if max(primal, dual) <= TRAINED:
            break
        rho *= penalty_factor(step, primal, dual)
    return W


def penalty_factor(step: int, primal: float, dual: float) -> float:
    """Return by what to multiply a penalty of ADMM after a step, to balance the residuals.

    Later it is kept (Boyd et al.: Distributed optimization and statistical learning via ADMM, 2011,
    section 3.4.1).
    """
    if step % _EVERY or step >= _BALANCED:
        return 1.0
    return 2.0 if primal > _BALANCE * dual else 0.5 if dual > _BALANCE * primal else 1.0


def _ratio(difference: np.ndarray, size: float) -> float:
    """Return the norm of a difference, relative to a size; 0/0 is 0."""
    return norm(difference) / max(size, 1e-300)
