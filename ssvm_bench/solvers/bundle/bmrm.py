"""Bundle methods on the primal: BMRM, P-BMRM, Prox-BMRM, Prox-P-BMRM (Uřičář and Franc 2012).

With F the primal objective, F_t its model (:mod:`ssvm_bench.solvers.bundle.model`) after t oracle
passes,

.. code-block:: text

    BMRM (Algorithm 1)          w_{t+1} = argmin F_t(w)           until F(w) − min F_t ≤ ε |F(w)|

    Prox-BMRM (Algorithm 2)     w^α = argmin F_t(w) + α ‖w − w_t‖²
        if F(w_t) − F(w^α) ≥ γ:     w_{t+1} = w^α                 α, γ unchanged
        else:                       w_{t+1} = w^α̂, α̂ the smallest of 0, 1, 2, 4, … (times 1/n) with
                                    ‖w^α̂ − w_t‖ ≤ K;  α ← α̂;  γ ← F(w_{t+1})/T − min F_t/(T(1 − ε))

K is 0.01 ‖w₁‖ by default. The search for α̂ begins at the previous α; it alone computes min F_t
(α = 0), and so it alone decides on the stop (section 3.1). After T steps that each lower F by at
least γ, F is at most min F_t/(1 − ε).

As printed, F_t has planes at w_1, …, w_t (equations 6 and 12). A w^α that is not accepted is none
of these, although the pass there has computed its plane, too.

============  =================================================================================
option        meaning
============  =================================================================================
P             number of risks, each with its own model: terms in P ranges of equal size
prox          Algorithm 2 in place of 1
T, K          constants of Algorithm 2; K relative to ‖w₁‖
accept        ``printed``: the plane at a w^α that is not accepted never enters the model;
              ``sufficient``: it does, before the search for α̂; ``always``: a w^α that improves F by
              less than γ becomes w_{t+1} all the same, and the search for α̂ begins there, which
              saves a pass
epsilon       relative gap ε at which to stop, where ``budget.gap_tol`` is 0; a run that asks for a
              smaller gap continues with a tenth of ε, and so on
init          w₁: ``zero``; ``sgd``: the w with the lowest F among those after each of 10 passes of
              ``ssg``, whose 10 evaluations count as oracle passes (the report has SGD-QN, with a
              diagonal of second order; here SGD is plain, with steps 1/(λ t)); ``reuse``: the
              solution at the previous, larger λ of ``path``; the first λ has w₁ = 0
drop          planes without weight in this many iterations are dropped; null: never
qp_steps      most steps of an inner QP
============  =================================================================================

An iteration is a pass of oracle calls. It adds P planes, with ``accept=printed`` only if its point
is accepted: at once, or if the search returns to the α of that point, as w^α̂ is then known. With
w₁ = 0, K would be 0: the method is then BMRM. The dual value is the best lower bound so far, at
least 0. The newest w_t is reported, before its F is known. During the passes of init=sgd, and after
a QP that has not converged, the best w so far is reported instead.

The scale: the report's risk is a sum, ours a mean; its λ and α are n times ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import squared_norm
from ssvm_bench.base.state import Limits
from ssvm_bench.config.validation import Count, Positive, Share, one_of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.solvers import ssg
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig, finer
from ssvm_bench.solvers.bundle.model import CuttingPlaneModel, Reduced

CODE_VERSION = 1

ACCEPT = ("sufficient", "always", "printed")
INITS = ("zero", "sgd", "reuse")

_LOGGED = ("qp_time", "gram_time", "qps", "rejected")

_SGD_PASSES = 10
QP_SHARE = 0.01
"""An inner QP is solved to this share of the gap at which the method stops."""
_MOST_DOUBLINGS = 60


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options; see the module's docstring."""

    follows_paths: ClassVar[bool] = True

    P: Count = 1
    prox: bool = False
    T: Count = 100
    K: Positive = 0.01
    accept: Annotated[str, one_of(ACCEPT)] = "sufficient"
    epsilon: Share = 0.01
    init: Annotated[str, one_of(INITS)] = "zero"
    drop: Count | None = None
    qp_steps: Count = 10_000_000

    def __post_init__(self) -> None:
        """Check that the proximal term has a w₁ ≠ 0."""
        super().__post_init__()
        if self.prox and self.init == "zero":
            raise ConfigError(
                "solver.prox needs w₁ ≠ 0, for it keeps steps within K ‖w₁‖: set solver.init=sgd, "
                "or solver.init=reuse with a path."
            )

    @property
    def needs_path(self) -> bool:
        """Whether w₁ is the solution of another λ."""
        return self.init == "reuse"

    @property
    def least_n(self) -> int:
        """Minimum number of terms: one per risk."""
        return self.P

    def check_path(self, follows: bool) -> None:
        """Raise ``ConfigError`` unless a path and ``init=reuse`` come together."""
        if follows and self.init != "reuse":
            raise ConfigError(
                f"solver.init={self.init} does not begin at the solution of the λ before: "
                "set solver.init=reuse, or leave path empty."
            )
        super().check_path(follows)

    def check_data(self, n: int, structure: str) -> None:
        """Raise ``ConfigError`` unless there is an example for each risk."""
        if n < self.P:
            raise ConfigError(
                f"solver.P must be at most the number of examples, {n}, got {self.P}."
            )


class BestIterate(NamedTuple):
    """The best iterate so far; during pretraining, also the planes of the risks there."""

    primal: float
    w: np.ndarray
    stars: np.ndarray
    offsets: np.ndarray


class BundleMethod(Solver):
    """The bundle methods.

    Attributes
    ----------
    w : ndarray, shape (d,)
        w_t, and its ``primal`` value.
    point : ndarray, shape (d,)
        Where the oracle is called next.
    due : bool
        Whether the point becomes w_{t+1} regardless of its value.
    lower : float
        The best lower bound.
    alpha, gamma, reach : float
        α, γ, and K: the longest step that a search for α̂ allows.
    epsilon : float
        ε; smaller than the option where the run asks for a smaller gap.
    heights : ndarray
        Values at the point of the planes from which it was computed; empty: unknown.
    qps, rejected : int
        Number of reduced problems that were solved, and of points that Algorithm 2 did not accept.
    """

    STATE = (
        *("model", "w", "primal", "point", "due", "lower", "proximal", "alpha", "gamma", "reach"),
        *("epsilon", "heights", "_best", "qps", "rejected", "qp_time", "gram_time"),
        *("_pretrains", "_sgd"),
    )
    LIMITS: ClassVar[Mapping[str, Limits]] = {
        "heights": Limits(size=..., of=lambda found, _: found["heights"].size, most="model.size")
    }

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.config = config
        self.bounds = np.linspace(0, problem.n, config.P + 1).astype(int).tolist()
        self.qp_time = self.gram_time = 0.0
        self.qps = self.rejected = 0
        self._sgd: ssg.SubgradientMethod | None = None
        self._pretrains = config.init == "sgd"
        if config.init == "sgd":
            of_ssg = ssg.Config(name="ssg", kind="ssg", sampling="permutation", average="none")
            self._sgd = ssg.SubgradientMethod(of_ssg, problem, clock, seed)
        self.heights = np.zeros(0)
        self._begin(np.zeros(problem.d))

    def _begin(self, w: np.ndarray) -> None:
        """Begin at w as w₁, with an empty model."""
        self.model = CuttingPlaneModel(self.problem.d, self.config.P, truth=False)
        self.w = self.point = w
        self.primal = math.inf
        self.due = True
        self.lower = 0.0
        self.proximal = self.config.prox and bool(w.any())
        self.alpha, self.gamma = 0.0, math.inf
        self.epsilon = self.config.epsilon
        self.reach = self.config.K * math.sqrt(squared_norm(w))
        self.heights = np.zeros(0)
        P, d = (self.config.P if self._sgd is not None else 0), self.problem.d
        self._best = BestIterate(math.inf, w, np.zeros((P, d)), np.zeros(P))

    def iterate(self) -> None:
        """Do a pass of the oracle at the point, and find the next point."""
        if self._pretrains and self._sgd is not None:
            self._pretrain(self._sgd)
            return
        self.learn(*self.sample(self.point))

    def refine(self) -> bool:
        """See `Solver`; Algorithm 2 searches α̂ again, and then has a new γ."""
        while self.converged and self.epsilon > 0.0 and not self.ended:
            self.epsilon = finer(self.epsilon, self.primal - self.lower, self.primal)
            if self.epsilon > 0.0:
                self.converged = False
                if self.proximal:
                    self._tune()
                else:
                    self._next(self._solve(self.alpha), due=True)
        return not self.converged

    def warm_start(self, lam: float, clock: Clock) -> None:
        """Begin anew with another λ, at the solution so far."""
        self.clock = clock
        self.qp_time = self.gram_time = 0.0
        self.qps = self.rejected = 0
        self._begin_with(replace(self.problem, lam=lam))

    def update_latent(self, problem: Problem) -> bool:
        """See `Solver`: begin anew, at the solution so far."""
        self._begin_with(problem)
        return True

    def _begin_with(self, problem: Problem) -> None:
        w = self.reported().w
        self.problem, self._pretrains = problem, False
        self.converged, self.ended = False, None
        self._begin(w)

    def reported(self) -> Iterate:
        """Return w_t, or the best iterate if the run ends early, and the lower bound."""
        if self._pretrains or self.ended:
            return Iterate(self._best.w.copy(), self.lower)
        return Iterate((self.point if self.due else self.w).copy(), self.lower)

    def working_set_mean(self) -> float:
        """Return the mean number of planes of a term, which are those of its risk."""
        return self.model.size / self.config.P

    def diagnostics(self) -> dict[str, float]:
        """Return the seconds of inner QPs and of the Gram matrix, and the counts."""
        return {name: float(getattr(self, name)) for name in _LOGGED}

    def _pretrain(self, sgd: ssg.SubgradientMethod) -> None:
        """Do a pass of stochastic subgradient steps, and evaluate F; at last, begin at the best w.

        The evaluation is a pass of oracle calls, so it returns the planes of the risks at w, too.
        """
        sgd.iterate()
        w = sgd.reported().w
        primal, planes = self.sample(w)
        if primal < self._best.primal:
            self._best = BestIterate(primal, w, *planes)
        if sgd.passes == _SGD_PASSES:
            best, self._pretrains = self._best, False
            self._begin(best.w)
            self.learn(best.primal, (best.stars, best.offsets))

    def sample(self, w: np.ndarray) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
        """Return F(w), and a plane of each of the P risks at w."""
        with self.clock.exact(self.problem.n):
            risks = [
                self.problem.risk(w, terms=range(begin, end))
                for begin, end in zip(self.bounds[:-1], self.bounds[1:], strict=True)
            ]
        value = sum(risk.value for risk in risks)
        planes = np.array([risk.star for risk in risks]), np.array([risk.offset for risk in risks])
        return 0.5 * self.problem.lam * squared_norm(w) + value, planes

    def learn(self, primal: float, planes: tuple[np.ndarray, np.ndarray]) -> None:
        """Add the oracle's planes at the point, decide on the point, and find the next one."""
        begin = self.clock.now()
        if self.config.drop is not None and self.model.drop(self.config.drop):
            self.heights = np.zeros(0)
        accepted = self.due or self.primal - primal >= self.gamma
        if accepted or self.config.accept != "printed":
            self.model.add(*planes)
        added = self.clock.now()
        self.gram_time += added - begin
        if primal < self._best.primal:
            self._best = self._best._replace(primal=primal, w=self.point)
        if accepted:
            self._accept(primal)
        elif self.config.accept == "always":
            self._move(primal)
            self._tune()
        else:
            self._reject(primal, planes)
        self.qp_time += self.clock.now() - added

    def _accept(self, primal: float) -> None:
        """Accept the point as w_{t+1}, and find the next one."""
        first = math.isinf(self.primal)
        self._move(primal)
        if self.proximal and self.due and not first:
            bound = self.lower / (1.0 - self.epsilon)
            self.gamma = (primal - bound) / self.config.T  # equation 11
        if self._certified():
            return
        if self.proximal and first:
            self._tune()
            return
        self._next(self._solve(self.alpha), due=not self.proximal)

    def _reject(self, primal: float, planes: tuple[np.ndarray, np.ndarray]) -> None:
        """Find the point that replaces one that gains too little."""
        rejected, heights, alpha = self.point, self.heights, self.alpha
        self._tune()
        if self.config.accept == "printed" and self.due and self.alpha == alpha:
            # the model and α are those of the point: it is the nearest one itself, and known
            self.point, self.heights = rejected, heights
            self.model.add(*planes)
            self._accept(primal)
        else:
            self.rejected += 1

    def _move(self, primal: float) -> None:
        """Move w_t to the point."""
        self.w, self.primal = self.point, primal
        if self.proximal:
            self.model.move_center(self.w, self.heights)

    def _tune(self) -> None:
        """Find the point of the smallest α that is near enough to w_t (Algorithm 2, line 7)."""
        found = self._solve(0.0)
        if self._certified():
            self.due = False
            return
        if not self._near(found):
            unit = 1.0 / self.problem.n
            found = self._solve(max(self.alpha, unit))
            if self._near(found):
                while found.alpha > unit:
                    nearer = self._solve(0.5 * found.alpha)
                    if not self._near(nearer):
                        break
                    found = nearer
            for _ in range(_MOST_DOUBLINGS):
                if self._near(found):
                    break
                found = self._solve(2.0 * found.alpha)
        self.alpha = found.alpha
        self._next(found, due=True)

    def _near(self, found: Reduced) -> bool:
        return squared_norm(found.w - self.w) <= self.reach * self.reach

    def _next(self, found: Reduced, due: bool) -> None:
        self.point, self.heights, self.due = found.w, found.heights, due

    def _solve(self, alpha: float) -> Reduced:
        """Solve the reduced problem; with α = 0, its value bounds F from below."""
        config, lam = self.config, self.problem.lam
        tol = QP_SHARE * self.epsilon * abs(self.primal)
        found = self.model.minimise(lam, alpha, tol, config.qp_steps)
        self.qps += 1
        if alpha == 0.0:
            self.lower = max(self.lower, found.value)
        if found.gap > tol:
            self.ended = "qp_steps"
        return found

    def _certified(self) -> bool:
        """Return whether w_t is ε-optimal (Algorithm 2, line 10)."""
        self.converged = self.primal - self.lower <= self.epsilon * abs(self.primal)
        return self.converged


build = BundleMethod
