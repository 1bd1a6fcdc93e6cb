"""Block-coordinate Frank–Wolfe: BCFW and MP-BCFW, plain and averaged (MP-BCFW, Algorithm 3).

.. code-block:: text

    repeat                                                        one outer iteration
        for i in order: φ̂^i ← exact oracle;        step; add φ̂^i to W_i          exact pass
        up to M times:
            for i in order: φ̂^i ← argmax over W_i;  step; drop inactive planes    approximate pass

BCFW is N = M = 0: the same loop without working sets, so that times are comparable.

============  ==================================================================================
option        meaning
============  ==================================================================================
N             most planes of a working set W_i; above, the longest inactive one is dropped
M             most approximate passes of an outer iteration
rule          what ends approximate passes: ``slope``, the rule below; ``fixed``: always M passes
T             planes not active during the last T outer iterations are dropped (approximate pass)
step          ``line_search``, or ``2n/(k+2n)`` with k the number of steps so far (BCFW, Alg. 4)
sampling      ``permutation``: one per outer iteration, shared by its passes; ``uniform``: n draws
              with replacement
average       report the interpolation, with the best dual, of the averages over exact and over
              approximate steps (section 3.5)
averaging     ``weighted``, or ``tail``: the mean over the second half of the passes
start         the plane at which each φ^i begins, also the first of W_i (lines 1 and 3): ``truth``,
              the ground truth's, which is 0; ``oracle``, the exact oracle's at w = 0, whose n calls
              and their time count
approx_order  ``same``: approximate passes share the order of their iteration; ``fresh``: each has
              one of its own
============  ==================================================================================

**Averages** (section 3.5), φ̄^(k+1) = k/(k+2) φ̄^(k) + 2/(k+2) φ^(k+1). There is one over the
iterates after exact steps, and one over those after approximate steps. The point between the two
with the highest dual value is reported. The latest iterate's dual value may be higher still: both
bound the optimum from below, and the larger one is reported. With ``averaging=tail``, both averages
are plain means over the second half of the passes, as in the figures of Lacoste-Julien et al. 2013.
:mod:`ssvm_bench.solvers.block.averages` keeps them.

**The rule** that ends approximate passes (section 3.4): after each, its increase of F per second is
compared with that of the iteration so far, from the start of the exact pass. Unless it is higher,
the iteration ends.

**A step** (Algorithm 2) moves φ^i towards a plane φ̂ of term i. In the units of
:mod:`ssvm_bench.planes.operations`, n times the paper's, with δ = n (φ̂ − φ^i), g = ⟨δ, [w 1]⟩
(n times the block gap) and w = −φ⋆/λ,

.. code-block:: text

    γ = clip( λ n g / ‖δ⋆‖², 0, 1 )      φ^i += γ δ/n      w −= γ/(λ n) δ⋆      φ∘ += γ/n δ∘

:func:`ssvm_bench.base.linalg.line_search` computes and clips γ.

======  =========================  =======  =========================
symbol  name                       symbol   name
======  =========================  =======  =========================
γ       ``gamma``                  n φ∘^i   ``blocks.term_offset[i]``
g       ``gap``                    φ∘       ``state.offset[0]``
======  =========================  =======  =========================

A solver is composed of orders of the terms (:mod:`ssvm_bench.solvers.orders`), visits of a term,
averages, and approximate passes. All of them work on one dual iterate
(:mod:`ssvm_bench.planes.dual_iterate`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import implements, kernel, shared_kernel
from ssvm_bench.base.linalg import line_search
from ssvm_bench.base.state import Stateful
from ssvm_bench.config.validation import Count, Natural, one_of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import operations
from ssvm_bench.planes.dual_iterate import AT_W, DualIterate, set_multiplier
from ssvm_bench.planes.iterates import dual_iterate
from ssvm_bench.solvers.base import ORACLE, STARTS, STEPS, TRUTH, DualSolver, Iterate, SolverConfig
from ssvm_bench.solvers.block.averages import AVERAGING, TAIL, Averages
from ssvm_bench.solvers.orders import APPROX_ORDERS, SAME, SAMPLING, Orders

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

RULES = SLOPE, FIXED = ("slope", "fixed")

_REBUILD_EVERY = 10
"""Outer iterations between two recomputations of φ = Σ_i φ^i."""


@dataclass(frozen=True)
class BlockConfig(SolverConfig):
    """Options that MP-BCFW and the methods beyond it share; see the modules' docstrings."""

    follows_paths: ClassVar[bool] = True
    takes_kernels: ClassVar[bool] = True
    keeps_nonnegative: ClassVar[bool] = True
    at_one_w: ClassVar[str] = "batch"

    N: Natural = 1000
    M: Natural = 1000
    T: Count = 10
    rule: Annotated[str, one_of(RULES)] = SLOPE
    average: bool = False
    averaging: Annotated[str, one_of(AVERAGING)] = AVERAGING[0]
    start: Annotated[str, one_of(STARTS)] = TRUTH
    approx_order: Annotated[str, one_of(APPROX_ORDERS)] = SAME


@dataclass(frozen=True)
class Config(BlockConfig):
    """Options of BCFW and MP-BCFW."""

    step: Annotated[str, one_of(STEPS)] = "line_search"
    sampling: Annotated[str, one_of(SAMPLING)] = "permutation"

    def __post_init__(self) -> None:
        """Check that steps towards cached planes ascend."""
        super().__post_init__()
        if self.step != "line_search" and self.N > 0 and self.M > 0:
            raise ConfigError(
                f"solver.step={self.step} is for exact steps only: a step of fixed length towards "
                "a cached plane can lower the dual. Set solver.M=0, or solver.step=line_search."
            )


def build(
    config: Config, problem: Problem, clock: Clock, seed: int, kind: type[MultiPlane] | None = None
) -> MultiPlane:
    """Return the solver at φ^i = 0 for all i; `MultiPlane.begin` goes to its start."""
    phi = dual_iterate(problem, config.N, own_rows=True)
    phi.set(line_search=config.step == "line_search")
    passes = PlainPasses(Visits(phi, OneStep(config.N, config.T)))
    order = Orders(problem.n, config.sampling, seed, config.approx_order)
    return (kind or MultiPlane)(config, passes, order, clock)


class MultiPlane(DualSolver):
    """The loop of Algorithm 3.

    Parameters
    ----------
    config : BlockConfig
    passes : PlainPasses
        The approximate passes, with the visits and their iterate.
    order : Orders
        The orders of the terms.
    clock : Clock
    refresh : int
        Every ``refresh`` iterations, 1 being all of them, the exact pass calls the oracle of each
        term once, in the iteration's order. In the others, ``order`` may draw terms more or less
        often, and the visits' policy may skip calls.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        *("phi", "visits", "passes", "order", "averages", "iteration", "_begun"),
    )
    alternates = True

    def __init__(
        self,
        config: BlockConfig,
        passes: PlainPasses,
        order: Orders,
        clock: Clock,
        refresh: int = 1,
    ) -> None:
        super().__init__(passes.visits.phi, clock)
        self.config = config
        self.passes, self.visits, self.order = passes, passes.visits, order
        self.averages = Averages(self.phi, config.average, config.averaging == TAIL)
        self.most_passes = config.M if config.N > 0 else 0
        self.refresh = refresh
        self._begun = 0

    def begin(self) -> None:
        """Move φ to its start."""
        if self.config.start == ORACLE:
            order = np.arange(self.problem.n)
            self.phi.exact_pass(AtOracle(self.phi.N), order, self.clock, still=True)
            self.phi.recompute()

    def iterate(self) -> None:
        """Do one exact pass and as many approximate passes as pay."""
        start = self.clock.now(), self.phi.dual()
        self.begin_iteration()
        if self.iteration % _REBUILD_EVERY == 0:
            self.phi.recompute()
        order = next(self.order)
        optimal = self._exact_pass(order)
        self.converged = optimal and not self.averages.wanted  # an average lags behind φ
        self.exact_pass_ended()
        if not optimal and self.most_passes > 0:
            self._approximate_passes(order, start)
        self.averages.end_of_pass()

    def _exact_pass(self, order: np.ndarray) -> bool:
        """Visit terms with their oracles; return whether that shows that φ is optimal."""
        whole = (self.iteration - self._begun - 1) % self.refresh == 0
        visited, changed, skipped = [], 0, 0
        with self.averages.of_steps(exact=True):
            for part in [order] if whole else self.order.parts(order):
                self.visits.prepare(part, whole, self.clock)
                may_skip = self.visits.may_skip and not whole
                tally = self.phi.exact_pass(self.visits.policy, part, self.clock, may_skip)
                visited.append(part)
                changed, skipped = changed + tally.changed, skipped + tally.skipped
        at_w = self.phi.shared.query.size == 0  # no centre
        self.phi.set(query=AT_W)  # a query is as large as w
        if changed or skipped or not (at_w and self.phi.shared.line_search):
            return False
        return np.unique(np.concatenate(visited)).size == self.problem.n

    def _approximate_passes(self, order: np.ndarray, start: tuple[float, float]) -> None:
        """Do approximate passes, until they do not pay any more."""
        with self.averages.of_steps(exact=False):
            rule = SlopeRule(start, (self.clock.now(), self.phi.dual()))
            while self.approx_passes < self.most_passes:
                visited = self.order.of_approximate_pass(order)
                if self.approx_passes > 0:
                    visited = self.visits.not_shrunk(visited)
                dual = self.passes.do(self.approx_passes, visited, self.clock)
                self.approx_passes += 1
                by_rule = self.config.rule == SLOPE and self.passes.rule_applies
                if by_rule and not rule.continues(self.clock.now(), dual):
                    break
            self.passes.end()

    def warm_start(self, lam: float, clock: Clock) -> None:
        """Continue with another λ from the best multiple of φ, with all working sets."""
        self.visits.warm_start(clock)
        self.phi.warm_start(lam, self.visits.policy)
        self.passes.warm_start(lam)
        self.averages.restart()
        self.clock = clock
        self._begun = self.iteration
        self.converged = False

    def follow_latent(self, changed: np.ndarray) -> None:
        """Continue from the best multiple of φ, with all working sets."""
        self.phi.recompute()
        self.visits.renew(changed)
        self.warm_start(self.problem.lam, self.clock)

    def reported(self) -> Iterate:
        """Return w of φ, or of the best interpolation of its averages, and the best bound."""
        latest = super().reported()
        if not self.averages.wanted:
            return latest
        w, offset = self.averages.best()
        constrained = w[w.size - self.problem.oracle.nonnegative :]
        np.maximum(constrained, 0.0, out=constrained)  # negative only by rounding
        return Iterate(w, max(self.problem.dual(w, offset), latest.dual))

    def diagnostics(self) -> dict[str, float]:
        """Return the diagnostics of φ, and F of the reported point and of each average, if any."""
        of_planes = self.phi.diagnostics()
        if not self.averages.wanted:
            return of_planes
        each = self.averages.each()
        found = {"": self.averages.best(), "exact_": each.get("exact")}
        found["approximate_"] = each.get("approximate")
        return of_planes | {
            f"dual_of_{steps}average": self.problem.dual(*average) if average else math.nan
            for steps, average in found.items()
        }


class Visits(Stateful):
    """The visits of a solver: a policy for the kernels, and what happens around passes.

    Attributes
    ----------
    phi : DualIterate
        The iterate, restored before its visits.
    policy : NamedTuple
        What a visit does, for the kernels.
    may_skip : bool
        Whether a visit of an exact pass may skip the oracle.
    """

    may_skip: bool = False

    def __init__(self, phi: DualIterate, policy: Any) -> None:
        self.phi = phi
        self.policy = policy

    def prepare(self, order: np.ndarray, whole: bool, clock: Clock) -> None:
        """Get ready for an exact pass.

        Parameters
        ----------
        order : ndarray of int64
            The terms that the pass will visit.
        whole : bool
            Whether the pass has to call the oracle at every visit.
        clock : Clock
            It knows the time of visits and calls so far.
        """

    def not_shrunk(self, order: np.ndarray) -> np.ndarray:
        """Return the terms that an approximate pass visits, if it is not the first (shrinking)."""
        return order

    def warm_start(self, clock: Clock) -> None:
        """Get ready for another λ."""

    def renew(self, changed: np.ndarray) -> None:
        """Get ready after planes of some terms have changed."""


class PlainPasses(Stateful):
    """Passes over the working sets, as in Algorithm 3.

    Parameters
    ----------
    visits : Visits
        The visits of the passes.
    """

    def __init__(self, visits: Visits) -> None:
        self.phi, self.visits = visits.phi, visits

    def do(self, number: int, order: np.ndarray, clock: Clock) -> float:
        """Do pass ``number`` of an iteration, counted from 0, over the terms in ``order``.

        Returns
        -------
        float
            F after the pass.
        """
        self.phi.approximate_pass(self.visits.policy, order, clock)
        return self.phi.dual()

    @property
    def rule_applies(self) -> bool:
        """Whether to apply the rule that ends the passes after the last one."""
        return True

    def end(self) -> None:
        """Finish the passes of an iteration, after the last one."""

    def warm_start(self, lam: float) -> None:
        """Begin with another λ."""


class SlopeRule:
    """The rule that ends approximate passes.

    Parameters
    ----------
    start, last : pairs of floats
        Clock and F at the start of the outer iteration, and before the first approximate pass.
    """

    def __init__(self, start: tuple[float, float], last: tuple[float, float]) -> None:
        self._start, self._last = start, last

    def continues(self, now: float, dual: float) -> bool:
        """Return whether F rose faster since the last call than in the iteration so far."""
        (start, dual_at_start), (before, dual_before) = self._start, self._last
        self._last = now, dual
        # compare slopes without a division: on a coarse clock, no time may have passed
        return (dual - dual_before) * (now - start) > (dual - dual_at_start) * (now - before)


# ---- visits of one step (Algorithms 2 and 3, and section 3.2, step 7) ----------------------------


class OneStep(NamedTuple):
    """The policy of one step a visit.

    Attributes
    ----------
    N : int
        Most planes of a working set.
    T : int
        Planes that were not active in the last T outer iterations are dropped.
    """

    N: int
    T: int


class AtOracle(NamedTuple):
    """The policy of visits that move φ^i to the oracle's plane, and do not move w.

    Attributes
    ----------
    N : int
        Most planes of a working set.
    """

    N: int


@implements(operations.exact_visit, OneStep)
def _exact_visit(policy, blocks, i, state):
    p = blocks.n_planes[i]
    changed = step_towards(blocks, i, p, operations.set_direction(blocks, i, p), state)
    operations.insert_candidate(policy, blocks, i, state.now)
    return changed


@implements(operations.approximate_visit, OneStep)
def _approximate_visit(policy, blocks, i, state):
    evaluated = blocks.n_planes[i]
    operations.gather(blocks, state.w, i)
    p = operations.best_plane(blocks, i)
    blocks.active[blocks.start[i] + p] = state.now
    step_towards(blocks, i, p, operations.set_direction(blocks, i, p), state)
    operations.drop_inactive(policy, blocks, i, state.now - policy.T)
    return evaluated


@implements(operations.insert_truth, OneStep)
def _insert_truth(policy, blocks, i, scale, now):
    operations.insert_candidate(policy, blocks, i, now)


@implements(operations.exact_visit, AtOracle)
def _exact_visit_at_start(policy, blocks, i, state):
    p = blocks.n_planes[i]
    operations.set_direction(blocks, i, p)
    operations.move_term(blocks, i, 1.0)
    blocks.term_offset[i] = blocks.offset[blocks.start[i] + p]
    if policy.N > 0 and operations.insert(blocks, i, state.now) > 0:
        operations.drop_plane(policy, blocks, i, 0)  # the ground truth's
    return True


@shared_kernel
def step_towards(blocks, i, p, gap, state):
    """Move φ^i towards plane p of term i.

    Parameters
    ----------
    blocks : Labelings or SparseRows
    i, p : int
        Term and plane.
    gap : float
        The value that ``set_direction(blocks, i, p)`` returned.
    state : PassState

    Returns
    -------
    bool
        Whether φ^i has moved.
    """
    n = blocks.n_planes.size
    if state.line_search:
        gamma = 0.0
        if gap > 0.0:
            gamma = line_search(state.lam * n * gap, operations.squared_length(blocks, i))
    else:
        gamma = 2.0 * n / (state.steps[0] + 2.0 * n)
    delta_offset = gamma * (blocks.offset[blocks.start[i] + p] - blocks.term_offset[i])
    return move(blocks, i, gamma, delta_offset, state)


@kernel
def move(blocks, i, gamma, delta_offset, state):
    """Move φ^i by γ δ, n φ∘^i by ``delta_offset``, and φ with them; count one iterate to average.

    Returns
    -------
    bool
        Whether γ is not 0.
    """
    n = blocks.n_planes.size
    state.steps[0] += 1
    average = state.average
    k = average.k[0]
    average.k[0] = k + 1
    if gamma == 0.0:
        return False

    scale = -gamma / (state.lam * n)
    state.offset[0] += delta_offset / n
    weight = float(k) if average.plain else 0.5 * k * (k + 1.0)  # W_k
    if average.z.size > 0:
        operations.add_direction_to_both(blocks, i, scale, state.w, weight * scale, average.z)
        average.offset[0] += weight * (delta_offset / n)
    else:
        operations.add_direction(blocks, i, scale, state.w)
    if state.query.size > 0:
        operations.add_direction(blocks, i, (1.0 - state.in_out) * scale, state.query)
    set_multiplier(state, weight)
    operations.move_term(blocks, i, gamma)
    blocks.term_offset[i] += delta_offset
    return True
