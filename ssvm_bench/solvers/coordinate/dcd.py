"""Dual coordinate descent (Ramanan, *Dual coordinate solvers*, 2013, Algorithm 1).

.. code-block:: text

    LB = F(α) = −λ/2 ‖w‖² + φ∘             w = −φ⋆/λ,  φ = Σ_ip α_ip φ^{ip}                (34)
    UB = P(w)                                                                             (35)
    UB' = λ/2 ‖w‖² + 1/n Σ_i max(0, max_j g_ij),  each gradient g_ij as seen in a sweep   (36)

An iteration is a *sweep*: every term is visited, and each of its planes takes a turn
(`Coordinates`). These are all planes of the term or, if these are too
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
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import abstract, implements, kernel
from ssvm_bench.base.linalg import line_search, squared_norm
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.config.validation import Count, Natural, NotNegative, one_of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import operations, simplex
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.given_rows import (
    ABOVE,
    BELOW,
    BETA,
    SQUARE,
    STRIDE,
    VIOLATION,
    LineRows,
    term_offset,
)
from ssvm_bench.planes.iterates import dual_iterate, with_all_planes
from ssvm_bench.planes.operations import add_direction, gather, grown
from ssvm_bench.planes.simplex import Simplex, enter, forget
from ssvm_bench.solvers.base import DualSolver, finer
from ssvm_bench.solvers.block.mpbcfw import SlopeRule
from ssvm_bench.solvers.coordinate.nonnegative import (
    Cone,
    ConstrainedConfig,
    cone,
    constrained_step,
)
from ssvm_bench.solvers.orders import Orders

# mypy: disable-error-code="no-untyped-def"

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
    visits : CoordinateVisits
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
        self.visits: CoordinateVisits
        if isinstance(phi.blocks, LineRows):
            policy = Line(config.epsilon, limits, np.zeros(1), np.zeros(2, np.int64))
            self.visits = CoordinateVisits(phi, policy)
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
            visited = self.visits.not_shrunk(order, self.config.shrink)
            self.visits.prepare(visited, new=0)
            self.phi.approximate_pass(self.visits.policy, visited, self.clock)
            self.approx_passes += 1
            if not rule.continues(self.clock.now(), self.phi.dual()):
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


class CoordinateVisits(Stateful):
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
        state.offset[0] = sum_of_planes(self.policy, self.phi.blocks, state.lam, v)
        if cone.floor.size:
            np.maximum(v, cone.floor, out=state.w)

    def drop_idle(self, T: int) -> None:
        """Drop planes found that had no weight in the last T iterations."""

    def renew(self, changed: np.ndarray) -> None:
        """Get ready after planes of some terms have changed; their weights stay."""

    def not_shrunk(self, order: np.ndarray, shrink: float) -> np.ndarray:
        """Return the terms with a violation above ε, and above ``shrink`` times the mean."""
        selected = np.empty_like(order)
        size = select(self.violations, order, self.policy.epsilon, shrink, selected)
        return selected[:size]


class TurnVisits(CoordinateVisits):
    """Visits in which each plane takes a turn."""

    STATE = (*CoordinateVisits.STATE, "policy.simplex", "policy.violations", "_bits")
    LIMITS: ClassVar[Mapping[str, Limits]] = simplex.OF_SIMPLEX
    policy: Coordinates

    def __init__(self, phi: DualIterate, config: Config, limits: Cone, seed: int) -> None:
        self._bits = np.random.PCG64([seed, 2])
        n, room = phi.problem.n, phi.blocks.n_planes.copy()
        keeps = config.products != COMPUTE and not limits.floor.size
        if keeps:
            _check_products_fit(room)
        numbers, violations = simplex.allocate(n, room, with_gram=keeps), np.full(n, np.inf)
        shuffles = config.order == "random"
        follows = config.products != LENGTHS
        policy = coordinates(config.epsilon, shuffles, numbers, limits, violations, follows)
        super().__init__(phi, policy)

    @property
    def violations(self) -> np.ndarray:
        """See `CoordinateVisits`."""
        return self.policy.violations

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        super()._rebuild(found)
        numbers = simplex.reserve(self.policy.simplex, self.phi.blocks.n_planes + 1)
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
        """See `CoordinateVisits`."""
        drop_idle(self.policy, self.phi.blocks, self.phi.shared.now, T)


def _check_products_fit(room: np.ndarray) -> None:
    """Raise ``RunFailedError`` if inner products of ``room`` planes per term do not fit."""
    check_room(
        8.0 * float(np.square(room, dtype=np.float64).sum()),
        f"The inner products between the planes of {room.size} examples, up to {room.max()} each,",
        "Set solver.products=compute.",
    )


# ---- a visit: a turn for each plane of a term ----------------------------------------------------


SINGLE, PAIR = range(2)
"""Entries of ``Coordinates.steps``."""


class Coordinates(NamedTuple):
    """The policy of visits in which each plane of a term takes a turn (Algorithm 1).

    At a term, each plane j except the ground truth's takes a turn, in random or in storage order,
    with g_j = ⟨n φ^{ij}, [w 1]⟩ at the present w and the tolerance ε:

    .. code-block:: text

        g_j > ε and α_i0 = 0      a pair step with another plane k, drawn at random    (28), (29)
        |g_j| > ε otherwise       a single step                                        (25), (26)

    (α_i0 is the weight of the ground truth's plane, the paper's 1 − α_i). A pair with a slope
    |g_j − g_k| ≤ ε does not change.

    **Steps** (section 3). A step moves weight a from one plane of term i to another. The ground
    truth's plane is 0, and has the weight that the others leave: with it, Σ_p α_ip = 1, and

    .. code-block:: text

        F(α + a e_ij − a e_ik) = F(α) + a/n g − a²/(2 λ n²) h            −α_ij ≤ a ≤ α_ik
        g = ⟨n φ^{ij} − n φ^{ik}, [w 1]⟩         h = ‖n φ^{ij}⋆ − n φ^{ik}⋆‖²
        a* = clip( λ n g / h )

    A *single* step, (25), has the ground truth's plane for k. Its gradient is 0, and its weight is
    the paper's 1 − α_i. A *pair* step, (28), has another plane for k. The paper's further bounds,
    a ≤ 1 − α_ij and a ≥ α_ik − 1, follow from these.

    =============================  ==============================================================
    paper                          here
    =============================  ==============================================================
    C                              1/(λ n)
    x_ij, l_ij                     −C n φ^{ij}⋆ and C n φ^{ij}∘
    g_ij                           C ⟨n φ^{ij}, [w 1]⟩: a tolerance is in units of the loss, not C
    L(w), F(α)                     P(w)/λ and F/λ
    =============================  ==============================================================

    **Inner products** between planes of a term are either kept, as K of
    :mod:`ssvm_bench.planes.simplex`; then a visit reads w once and changes it once,

    .. code-block:: text

        g_q ← g_q − a/(λ n) (K[q, j] − K[q, k])

    or computed when a step needs them; then each step changes w, and the g_q are recomputed. Or
    they are kept, but used for h alone. Except for rounding, the results are the same. If some w_k
    must not be negative, w is not linear in α: steps are those of
    :mod:`ssvm_bench.solvers.coordinate.nonnegative`, and gradients are always recomputed.

    Attributes
    ----------
    epsilon : float
        ε, in units of the loss.
    shuffles : bool
        Whether the planes of a term take turns in random order.
    follows : bool
        Whether gradients are updated by K, if it is kept; else from w, after each step.
    simplex : Simplex
        α, and K if inner products are kept.
    cone : Cone
        Which weights must not be negative; if any, inner products are not used.
    words : ndarray of uint64
    drawn : ndarray of int64, shape (1,)
        Random words for a pass, one for each turn at terms with a choice; index of the next.
    met : ndarray of float64, shape (1,)
        Σ_i max(0, max_j g_j) over the visits so far, each g_j at its turn: the sum in UB', (36).
    violations : ndarray of float64, shape (n,)
        At the last visit of each term, max g_p − min over α_p > 0 of g_p: n times the term's gap
        is no larger, if nothing has moved in between.
    steps : ndarray of int64, shape (2,)
        Single steps so far, and pair steps.
    """

    epsilon: float
    shuffles: bool
    follows: bool
    simplex: Simplex
    cone: Cone
    words: np.ndarray
    drawn: np.ndarray
    met: np.ndarray
    violations: np.ndarray
    steps: np.ndarray


def coordinates(
    epsilon: float,
    shuffles: bool,
    simplex: Simplex,
    cone: Cone,
    violations: np.ndarray,
    follows: bool = True,
) -> Coordinates:
    """Return the policy of visits that begin with these weights and violations."""
    return Coordinates(
        epsilon,
        shuffles,
        follows,
        simplex,
        cone,
        words=np.zeros(0, np.uint64),
        drawn=np.zeros(1, np.int64),
        met=np.zeros(1),
        violations=violations,
        steps=np.zeros(2, np.int64),
    )


@implements(operations.exact_visit, Coordinates)
def _exact_visit(policy, blocks, i, state):
    of_truth, candidate = operations.plane_value(blocks, i, 0), blocks.n_planes[i]
    highest = operations.plane_value(blocks, i, candidate) - of_truth
    operations.insert(blocks, i, state.now)
    return _turns(policy, blocks, i, highest, state)


@implements(operations.approximate_visit, Coordinates)
def _approximate_visit(policy, blocks, i, state):
    operations.gather(blocks, state.w, i)
    _turns(policy, blocks, i, 0.0, state)
    return blocks.n_planes[i]


@implements(operations.insert_truth, Coordinates)
def _insert_truth(policy, blocks, i, scale, now):
    first = policy.simplex.start[i]
    for p in range(first, first + blocks.n_planes[i]):
        policy.simplex.alpha[p] *= scale
    policy.simplex.alpha[first] += 1.0 - scale


@kernel
def _turns(policy, blocks, i, highest, state):
    """Let each plane of term i take its turn, after ``gather``.

    Parameters
    ----------
    highest : float
        The largest g that is known already.

    Returns
    -------
    bool
        Whether weights have changed.
    """
    numbers = policy.simplex
    enter(numbers, blocks, i)
    m = blocks.n_planes[i]
    alpha = numbers.alpha[numbers.start[i] :]
    gram = numbers.gram[numbers.gram_start[i] :]
    bounded = policy.cone.floor.size > 0
    kept = numbers.gram.size > 0 and not bounded
    follow = kept and policy.follows
    room = numbers.room[i]
    g, change = numbers.values, numbers.change
    lam_n = state.lam * blocks.n_planes.size
    _gradients(blocks, i, g)
    change[:m] = 0.0
    lowest = 0.0 if alpha[0] > 0.0 else np.inf
    highest = max(highest, 0.0)
    order = numbers.order
    for p in range(1, m):
        order[p] = p
    moved = False

    for turn in range(1, m):
        partner = 0
        if m > 2:
            word = policy.words[policy.drawn[0]]
            policy.drawn[0] = (policy.drawn[0] + 1) % policy.words.size
            if policy.shuffles:
                pick = turn + below(word >> np.uint64(32), m - turn)
                order[turn], order[pick] = order[pick], order[turn]
            partner = 1 + below(word & np.uint64(0xFFFFFFFF), m - 2)
        j = order[turn]
        highest = max(highest, g[j])
        if alpha[j] > 0.0:
            lowest = min(lowest, g[j])
        k = 0
        kind = SINGLE
        if g[j] > policy.epsilon and alpha[0] == 0.0:
            if m == 2:
                continue
            k = partner + (1 if partner >= j else 0)
            kind = PAIR
        slope = g[j] - g[k]
        if abs(slope) <= policy.epsilon or (alpha[k] if slope > 0.0 else alpha[j]) == 0.0:
            continue

        if not follow:
            change[j], change[k] = 1.0, -1.0
            operations.set_direction_of_mixture(blocks, i, 0.0, change)
            change[j], change[k] = 0.0, 0.0
        if bounded:
            a = constrained_step(policy.cone, blocks, i, slope, alpha[j], alpha[k], lam_n, state.w)
        else:
            if kept:
                length = gram[j * room + j] + gram[k * room + k] - 2.0 * gram[j * room + k]
            else:
                length = operations.squared_length(blocks, i)
            a = exchanged(lam_n * slope, length, alpha[j], alpha[k])
        exchange(alpha, j, k, a)
        policy.steps[kind] += 1
        moved = True
        first = blocks.start[i]
        climb = a * (blocks.offset[first + j] - blocks.offset[first + k])
        state.offset[0] += climb / blocks.n_planes.size
        if follow:
            change[j] += a
            change[k] -= a
            if m > 2:
                scale = a / lam_n
                for q in range(1, m):
                    g[q] -= scale * (gram[j * room + q] - gram[k * room + q])
        else:
            if not bounded:
                operations.add_direction(blocks, i, -a / lam_n, state.w)
            if turn + 1 < m:
                operations.gather(blocks, state.w, i)
                _gradients(blocks, i, g)

    if moved and follow:
        operations.set_direction_of_mixture(blocks, i, 0.0, change)
        operations.add_direction(blocks, i, -1.0 / lam_n, state.w)
    policy.met[0] += highest
    policy.violations[i] = highest - min(lowest, highest)
    return moved


@kernel
def _gradients(blocks, i, g):
    """Compute g of all planes of term i, after ``gather``; that of the ground truth's is 0."""
    truth = operations.plane_value(blocks, i, 0)
    g[0] = 0.0
    for p in range(1, blocks.n_planes[i]):
        g[p] = operations.plane_value(blocks, i, p) - truth


@kernel
def below(half, size):
    """Return a number in 0 … size − 1 from 32 random bits; its bias is below size/2³²."""
    return np.int64((half * np.uint64(size)) >> np.uint64(32))


@kernel
def select(violations, order, epsilon, shrink, selected):
    """Select the terms with a violation above ε, and above a share of the mean; count them."""
    total = 0.0
    for violation in violations:
        total += violation
    least = max(epsilon, shrink * total / violations.size)
    size = 0
    for k in range(order.size):
        selected[size] = order[k]
        size += violations[order[k]] > least
    return size


@abstract
def sum_of_planes(policy, blocks, lam, w):
    """Recompute w from the weights of all planes, in place, and return φ∘."""


@implements(sum_of_planes, Coordinates)
def _sum_of_planes(policy, blocks, lam, w):
    numbers, n = policy.simplex, blocks.n_planes.size
    change = numbers.change
    w[:] = 0.0
    offset = 0.0
    for i in range(n):
        for p in range(blocks.n_planes[i]):
            change[p] = numbers.alpha[numbers.start[i] + p]
            offset += change[p] * blocks.offset[blocks.start[i] + p]
        change[0] -= 1.0  # coefficients add up to 0; the ground truth's plane is 0
        operations.set_direction_of_mixture(blocks, i, 0.0, change)
        operations.add_direction(blocks, i, -1.0 / (lam * n), w)
    return offset / n


@kernel
def drop_idle(policy, blocks, now, T):
    """Drop the planes that had no weight, and were not the oracle's, in the last T iterations."""
    for i in range(blocks.n_planes.size):
        first, alpha = blocks.start[i], policy.simplex.alpha[policy.simplex.start[i] :]
        for p in range(blocks.n_planes[i]):
            if p == 0 or alpha[p] > 0.0:  # the ground truth's stays, and stays the first
                blocks.active[first + p] = now
        operations.drop_inactive(policy, blocks, i, now - T)


@implements(operations.forget_plane, Coordinates)
def _forget_plane(policy, i, p):
    forget(policy.simplex, i, p)


@kernel
def exchanged(slope, curvature, taker, giver):
    """Return a*, the weight that goes from plane k to plane j.

    Parameters
    ----------
    slope, curvature : float
        λ n g and h, or both times one factor; a flat direction leads to a bound.
    taker, giver : float
        α_ij and α_ik.
    """
    if slope > 0.0:
        return line_search(slope, curvature, giver)
    return -line_search(-slope, curvature, taker)


@kernel
def exchange(alpha, j, k, a):
    """Add a to α_j, and subtract it from α_k; a weight that is moved completely becomes 0."""
    alpha[j] = 0.0 if a == -alpha[j] else alpha[j] + a
    alpha[k] = 0.0 if a == alpha[k] else alpha[k] - a


# ---- a visit where the planes of a term lie on one line ------------------------------------------


class Line(NamedTuple):
    """The policy of visits where the planes of each term lie along one line.

    With β of :mod:`ssvm_bench.planes.given_rows`, s = ⟨x, w⟩, g_1 = s + a, g_2 = −s + b, h = ‖x‖²
    and the tolerance ε, a visit is the step of liblinear's solvers for the hinge and the
    ε-insensitive loss: if a plane violates optimality by more than ε, β becomes the best one,

    .. code-block:: text

        β ←  min( 1, (λ n g_1 + β h)/h )      if λ n g_1 + β h > 0
        β ← −min( 1, (λ n g_2 − β h)/h )      if λ n g_2 − β h > 0,  which excludes the first
        β ←  0                                otherwise

    Single steps, (25) and (26), and pair steps, (28), of both planes in turn would lead to the same
    β (Ramanan 2013). A visit counts as a pair step if weight goes from one plane to the other. If
    weights w_k must not be negative, a visit is a single step of
    :mod:`ssvm_bench.solvers.coordinate.nonnegative`. A visit costs O(non-zeros of x). The weights
    are in the storage.

    Attributes
    ----------
    epsilon : float
        ε, in units of the loss.
    cone : Cone
        Which weights must not be negative.
    met : ndarray of float64, shape (1,)
    steps : ndarray of int64, shape (2,)
        As in `Coordinates`.
    """

    epsilon: float
    cone: Cone
    met: np.ndarray
    steps: np.ndarray


@implements(operations.approximate_visit, Line)
def _visit_line(policy, blocks, i, state):
    gather(blocks, state.w, i)
    numbers, n_planes = blocks.numbers[STRIDE * i :], blocks.n_planes[i]
    lam_n, beta = state.lam * blocks.n_planes.size, numbers[BETA]
    above, below = blocks.height[0] + numbers[ABOVE], -blocks.height[0] + numbers[BELOW]
    highest = max(above, below, 0.0)
    policy.met[0] += highest
    lowest = 0.0 if abs(beta) < 1.0 else highest
    if beta != 0.0:
        lowest = min(lowest, above if beta > 0.0 else below)
    numbers[VIOLATION] = highest - lowest
    if highest - lowest <= policy.epsilon:
        return n_planes

    if policy.cone.floor.size > 0:  # a step of the plane with weight, or else of the higher one
        slope, taker, giver = above, beta, 1.0 - beta
        if beta < 0.0 or (beta == 0.0 and above <= below):
            slope, taker, giver = -below, 1.0 + beta, -beta
        best = beta + constrained_step(policy.cone, blocks, i, slope, taker, giver, lam_n, state.w)
    else:
        rise, square = lam_n * above + beta * numbers[SQUARE], numbers[SQUARE]
        if rise > 0.0:
            best = line_search(rise, square)
        else:
            best = 0.0 - line_search(lam_n * below - beta * square, square)
        add_direction(blocks, i, (beta - best) / lam_n, state.w)
    numbers[BETA] = best
    climb = term_offset(numbers, best) - term_offset(numbers, beta)
    state.offset[0] += climb / blocks.n_planes.size
    policy.steps[PAIR if beta * best < 0.0 else SINGLE] += 1
    return n_planes


@implements(operations.insert_truth, Line)
def _scale_line(policy, blocks, i, scale, now):
    blocks.numbers[STRIDE * i + BETA] *= scale


@implements(sum_of_planes, Line)
def _sum_of_lines(policy, blocks, lam, w):
    n = blocks.n_planes.size
    w[:] = 0.0
    total = 0.0
    for i in range(n):
        numbers = blocks.numbers[STRIDE * i :]
        total += term_offset(numbers, numbers[BETA])
        add_direction(blocks, i, -numbers[BETA] / (lam * n), w)
    return total / n


build = DCD
