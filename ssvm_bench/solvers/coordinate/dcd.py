"""Dual coordinate descent (Ramanan, *Dual coordinate solvers*, 2013, Algorithm 1).

.. code-block:: text

    LB = F(α) = −λ/2 ‖w‖² + φ∘             w = −φ⋆/λ,  φ = Σ_ip α_ip φ^{ip}                (34)
    UB = P(w)                                                                             (35)
    UB' = λ/2 ‖w‖² + 1/n Σ_i max(0, max_j g_ij),  each gradient g_ij as seen in a sweep   (36)

An iteration is a *sweep*: every term is visited, and each of its planes takes a turn
(:mod:`ssvm_bench.solvers.coordinate.turns`). These are all planes of the term or, if these are too
many, the planes found so far and the one that the oracle returns at the visit. In between, up to M
sweeps over the known planes visit the terms whose last visit has shown that there is something to
gain, for as long as that pays (the rule of MP-BCFW, section 3.4).

If no weight has changed in a sweep, UB' = UB. Else UB costs as much as a sweep: with
``bound=tracked`` it is computed only when UB' − LB ≤ tol UB'. The run ends when UB − LB ≤ tol UB,
or when a sweep has shown that there is no step over ε: no two planes of a term between which weight
can move have gradients that differ by more than 2 ε, and so UB − LB ≤ 2 ε.

===========  ==================================================================================
option       meaning
===========  ==================================================================================
planes       ``all``, ``found``, or ``auto``: all if the oracle lists them as rows; where planes are
             labels, the found ones are fewer, and sweeps over them cheaper
order        of terms, and of planes at a term: ``random``, fresh ones each sweep, or ``sequential``
products     inner products between planes of a term: ``keep``, ``compute`` when needed, or keep
             for the ``lengths`` of steps, with gradients from w; never kept where weights must not
             be negative
bound        ``tracked``, or ``true``: UB is computed after every sweep
tol          relative gap at which the solver is done, where ``budget.gap_tol`` is 0; if a smaller
             gap is asked for, tol and ε become smaller when they are reached
epsilon      gradients up to this size call for no step, in units of the loss
M            most sweeps over known planes in an iteration
shrink       those sweeps leave out terms whose violation is less than this share of the mean
T            found planes are dropped if they had no weight, and were not the oracle's, in the last
             T iterations
nonnegative  weights that must not be negative: ``none``, ``all``, or ranges in brackets
             (:class:`~ssvm_bench.solvers.coordinate.nonnegative.ConstrainedConfig`)
===========  ==================================================================================

Units are those of P; the paper's L is P/λ. At another λ, `DCD.warm_start` continues from the best
multiple of the weights.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import squared_norm
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.state import Stateful
from ssvm_bench.config.validation import Count, Natural, NotNegative, one_of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import simplex
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.given_rows import STRIDE, VIOLATION, LineRows
from ssvm_bench.planes.iterates import dual_iterate, with_all_planes
from ssvm_bench.planes.operations import grown
from ssvm_bench.solvers.base import DualSolver, finer
from ssvm_bench.solvers.block.mpbcfw import SlopeRule
from ssvm_bench.solvers.coordinate import line, turns
from ssvm_bench.solvers.coordinate.nonnegative import Cone, ConstrainedConfig, cone
from ssvm_bench.solvers.coordinate.turns import PAIR, SINGLE
from ssvm_bench.solvers.orders import Orders

CODE_VERSION = 1

PLANES = AUTO, ALL, FOUND = ("auto", "all", "found")
ORDERS = {"random": "permutation", "sequential": "sequential"}
PRODUCTS = KEEP, COMPUTE, LENGTHS = ("keep", "compute", "lengths")
BOUNDS = TRACKED, TRUE = ("tracked", "true")

_REBUILD_EVERY = 10
"""Iterations between two recomputations of φ from the weights."""


@dataclass(frozen=True)
class Config(ConstrainedConfig):
    """Options; see the module's docstring."""

    follows_paths: ClassVar[bool] = True
    keeps_nonnegative: ClassVar[bool] = True
    at_one_w: ClassVar[str] = "batch"

    planes: Annotated[str, one_of(PLANES)] = "auto"
    order: Annotated[str, one_of(ORDERS)] = "random"
    products: Annotated[str, one_of(PRODUCTS)] = "keep"
    bound: Annotated[str, one_of(BOUNDS)] = "tracked"
    tol: NotNegative = 1e-6
    epsilon: NotNegative = 1e-9
    M: Natural = 1000
    shrink: NotNegative = 0.1
    T: Count = 10


class DCD(DualSolver):
    """Dual coordinate descent from α = 0, where ground truths' planes have all the weight.

    Attributes
    ----------
    phi : DualIterate
        w and the planes; its φ^i stay 0, as the weights determine them.
    visits : Visits
        The visits, with the weights.
    upper, tracked : float
        UB, NaN if the last sweep has not computed it, and UB'.
    tol : float
        The tolerance; smaller than the option where the run asks for a smaller gap.
    """

    STATE = ("phi", "visits", "iteration", "upper", "tracked", "tol", "_orders")
    alternates = True

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        self.config = config
        floor = config.floor(problem.d)
        if problem.oracle.nonnegative:
            floor = floor if floor.size else np.full(problem.d, -np.inf)
            floor[-problem.oracle.nonnegative :] = 0.0
        every = None
        if config.planes != FOUND:
            every = with_all_planes(problem, labels=config.planes == ALL)
        if every is None and config.planes == ALL:
            raise ConfigError(
                "solver.planes=all needs terms with few planes, as those of examples with one "
                "label each, which the oracle can list. Set solver.planes=found."
            )
        self.finds = every is None
        phi = every or dual_iterate(problem, N=sys.maxsize)
        super().__init__(phi, clock)
        limits = cone(phi.pack(floor) if floor.size else floor)
        self.visits: Visits
        if isinstance(phi.blocks, LineRows):
            policy = line.Line(config.epsilon, limits, np.zeros(1), np.zeros(2, np.int64))
            self.visits = Visits(phi, policy)
        else:
            self.visits = TurnVisits(phi, config, limits, seed)
        self.upper = self.tracked = math.nan
        self.tol = config.tol
        self._orders = Orders(problem.n, ORDERS[config.order], seed)

    def iterate(self) -> None:
        """Do one sweep over all terms, and as many over the known planes as pay."""
        start = self.clock.now(), self.phi.dual()
        self.begin_iteration()
        if self.iteration % _REBUILD_EVERY == 0:
            self.visits.recompute()
        order = next(self._orders)
        self.visits.prepare(order, new=int(self.finds))
        changed = self.phi.exact_pass(self.visits.policy, order, self.clock).changed
        self.exact_pass_ended()
        self._judge(changed > 0)
        if changed and not self.converged and self.config.M > 0:
            self._approximate_passes(order, start)
        if self.finds:
            self.visits.drop_idle(self.config.T)

    def _judge(self, changed: bool) -> None:
        """Compute the bounds after a sweep over all terms, and whether the run is done."""
        config, policy, lower = self.config, self.visits.policy, self.phi.dual()
        half_norm = 0.5 * self.problem.lam * squared_norm(self.phi.w)
        self.tracked = half_norm + float(policy.met[0]) / self.problem.n
        self.upper = math.nan
        if not changed:
            self.upper = self.tracked
        elif config.bound == TRUE or self.tracked - lower <= self.tol * self.tracked:
            with self.clock.exact(self.problem.n):
                self.upper = self.problem.primal(self.phi.outer_w())
        least = 2.0 * policy.epsilon  # one gradient may be ε, and another one −ε
        no_step_left = not changed and float(self.visits.violations.max()) <= least
        self.converged = no_step_left or self.upper - lower <= self.tol * self.upper

    def refine(self) -> bool:
        """See `Solver`; where no step is left, the gap is at most 2 ε."""
        policy, gap = self.visits.policy, self.upper - self.phi.dual()
        before = self.tol, policy.epsilon
        now = finer(self.tol, gap, self.upper), finer(policy.epsilon, 0.5 * gap, 1.0)
        self.tol, self.visits.policy = now[0], policy._replace(epsilon=now[1])
        return now[1] > 0.0 and now != before

    def _approximate_passes(self, order: np.ndarray, start: tuple[float, float]) -> None:
        """Sweep over the known planes, until that does not pay any more."""
        rule = SlopeRule(start, (self.clock.now(), self.phi.dual()))
        while self.approx_passes < self.config.M:
            visited = self.visits.worth_visiting(order, self.config.shrink)
            self.visits.prepare(visited, new=0)
            self.phi.approximate_pass(self.visits.policy, visited, self.clock)
            self.approx_passes += 1
            if not rule.pays(self.clock.now(), self.phi.dual()):
                break

    def warm_start(self, lam: float, clock: Clock) -> None:
        """Continue with another λ from the best multiple of the weights."""
        self.phi.warm_start(lam, self.visits.policy)
        if self.visits.policy.cone.floor.size:
            self.visits.recompute()
        self.clock = clock
        self.converged = False
        self.tol = self.config.tol
        self.visits.policy = self.visits.policy._replace(epsilon=self.config.epsilon)
        self.upper = self.tracked = math.nan

    def follow_latent(self, changed: np.ndarray) -> None:
        """Continue from the best multiple of the weights, with all planes."""
        self.visits.renew(changed)
        self.visits.recompute()
        self.warm_start(self.problem.lam, self.clock)

    def diagnostics(self) -> dict[str, float]:
        """Return UB and UB' after the last sweep over all terms, and the numbers of steps."""
        steps = self.visits.policy.steps
        return {
            "upper_bound": self.upper,
            "tracked_bound": self.tracked,
            "single_steps": float(steps[SINGLE]),
            "pair_steps": float(steps[PAIR]),
        }


class Visits(Stateful):
    """The visits of a solver, and what happens around sweeps, if each term's planes lie on a line.

    Attributes
    ----------
    phi : DualIterate
        The iterate, restored before its visits.
    policy : NamedTuple
        What a visit does, for the kernels.
    """

    STATE: ClassVar[tuple[str, ...]] = ("policy.steps", "policy.cone.v", "policy.epsilon")

    def __init__(self, phi: DualIterate, policy: Any) -> None:
        self.phi = phi
        self.policy = policy

    @property
    def violations(self) -> np.ndarray:
        """By how much each term violated optimality at its last visit, float64, shape (n,)."""
        return self.phi.blocks.numbers[VIOLATION::STRIDE]

    def prepare(self, order: np.ndarray, new: int) -> None:
        """Get ready for a sweep, in which ``new`` planes may enter each W_i.

        Parameters
        ----------
        order : ndarray of int64
            The terms that the sweep will visit, none twice.
        new : int
            0 or 1.
        """
        self.policy.met[0] = 0.0

    def recompute(self) -> None:
        """Recompute w and φ∘ from the weights, so that rounding errors do not add up."""
        state, cone = self.phi.shared, self.policy.cone
        v = cone.v if cone.floor.size else state.w
        state.offset[0] = turns.sum_of_planes(self.policy, self.phi.blocks, state.lam, v)
        if cone.floor.size:
            np.maximum(v, cone.floor, out=state.w)

    def drop_idle(self, T: int) -> None:
        """Drop planes found that had no weight in the last T iterations."""

    def renew(self, changed: np.ndarray) -> None:
        """Get ready after planes of some terms have changed; their weights stay."""

    def worth_visiting(self, order: np.ndarray, shrink: float) -> np.ndarray:
        """Return the terms with a violation above ε, and above ``shrink`` times the mean."""
        worth = np.empty_like(order)
        size = turns.select(self.violations, order, self.policy.epsilon, shrink, worth)
        return worth[:size]


class TurnVisits(Visits):
    """Visits in which each plane takes a turn."""

    STATE = (*Visits.STATE, "policy.simplex", "policy.violations", "_bits")
    policy: turns.Coordinates

    def __init__(self, phi: DualIterate, config: Config, limits: Cone, seed: int) -> None:
        self._bits = np.random.PCG64([seed, 2])
        n, room = phi.problem.n, phi.blocks.n_planes.copy()
        keeps = config.products != COMPUTE and not limits.floor.size
        if keeps:
            _check_products_fit(room)
        numbers, violations = simplex.allocate(n, room, with_gram=keeps), np.full(n, np.inf)
        shuffles = config.order == "random"
        follows = config.products != LENGTHS
        policy = turns.coordinates(config.epsilon, shuffles, numbers, limits, violations, follows)
        super().__init__(phi, policy)

    @property
    def violations(self) -> np.ndarray:
        """See `Visits`."""
        return self.policy.violations

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        super().restore(state)
        numbers = simplex.fitted(self.policy.simplex, self.phi.blocks.n_planes)
        self.policy = self.policy._replace(simplex=numbers)

    def prepare(self, order: np.ndarray, new: int) -> None:
        """Reserve space for weights and inner products, and draw random words."""
        super().prepare(order, new)
        policy, n_planes = self.policy, self.phi.blocks.n_planes
        room = grown(policy.simplex.room, n_planes + new)
        if policy.simplex.gram.size and not np.array_equal(room, policy.simplex.room):
            _check_products_fit(room)
        numbers = simplex.reserve(policy.simplex, n_planes + new)
        of_terms = n_planes[order] + (new - 1)
        words = self._bits.random_raw(int(of_terms[of_terms > 1].sum()))
        policy.drawn[0] = 0
        self.policy = policy._replace(simplex=numbers, words=words)

    def renew(self, changed: np.ndarray) -> None:
        """Recompute the inner products of these terms' planes, if inner products are kept."""
        if self.policy.simplex.gram.size:
            simplex.renew(self.policy.simplex, self.phi.blocks, changed)

    def drop_idle(self, T: int) -> None:
        """See `Visits`."""
        turns.drop_idle(self.policy, self.phi.blocks, self.phi.shared.now, T)


def _check_products_fit(room: np.ndarray) -> None:
    """Raise ``RunFailedError`` if inner products of ``room`` planes per term do not fit."""
    check_room(
        8.0 * float(np.square(room, dtype=np.float64).sum()),
        f"The inner products between the planes of {room.size} examples, up to {room.max()} each,",
        "Set solver.products=compute.",
    )


build = DCD
