"""Dual coordinate descent from a stream (Ramanan, *Dual coordinate solvers*, 2013, Algorithm 2).

.. code-block:: text

    for each example i, in the order of the stream:
        the oracle's plane has the gradient g = n H_i(w)
        if g > ε:   it enters the cache with α = 0, and UB ← UB + g/n
        if UB − LB > tol P̂:   optimise over the cache, and drop the planes with α = 0

An iteration is a pass over the examples. Further passes keep the cache: the cyclic variant.
Examples are in memory chunk by chunk (`Oracle.chunks`). Between chunks, only the cache and w are
kept, regardless of the length of the stream.

LB bounds the optimum of all examples from below. UB is a bound for the cached examples only
(:mod:`~ssvm_bench.solvers.coordinate.cached_problem`). A pass over all examples at one w computes a
bound for all, P(w): a further pass (``verify``), or one in which no step was due.

================  =============================================================================
``schedule``      what happens between new examples
================  =============================================================================
``gap``           Algorithm 2
``one_pass``      an example that enters the cache takes its step, once
``larank``        the same, and for each new example ten cached ones, drawn at random, take theirs
``mining``        examples enter the cache until it is full; then it is optimised
================  =============================================================================

Optimising ends at half of ``tol``; otherwise the next example would restart it.

If the cache is full of planes with weight, half of it is emptied: examples leave with their weights
fixed. The next pass would count them twice, so the run ends after this one.

===========  ==================================================================================
option       meaning
===========  ==================================================================================
schedule     what happens between new examples, see above: ``gap``, ``one_pass``, ``larank`` or
             ``mining``
plane        of a new example: ``largest``, the oracle's, with the largest gradient; ``random``,
             that of a wrong label, drawn anew in each pass: it counts as a call, and the planes
             give no bound on P(w), only ``verify`` computes one
tol          relative gap, as in ``dcd``
verify       whether an iteration ends with a pass that computes P(w)
order        ``sequential``: as the examples come; ``random``: a fresh order each pass, of
             examples in memory
cache        most planes in the cache
chunk        examples of a stream that are in memory at a time
epsilon      gradients up to this size call for no step, in units of the loss
M            most sweeps over the cache in an optimisation
hot          whether an optimisation continues from the current weights: else it begins at α = 0,
             which shows the benefit of continuing
nonnegative  weights that must not be negative: ``none``, ``all``, or ranges in brackets
             (:class:`~ssvm_bench.solvers.coordinate.nonnegative.ConstrainedConfig`)
===========  ==================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.interrupts import end_if_urgent
from ssvm_bench.base.random import uniform
from ssvm_bench.config.validation import Count, Natural, NotNegative, at_least, one_of
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.labeling import Answered, LabelingOracle
from ssvm_bench.oracles.scoring import longest
from ssvm_bench.planes.cache import terms_of
from ssvm_bench.solvers.base import Iterate, Solver, finer
from ssvm_bench.solvers.coordinate import exploring
from ssvm_bench.solvers.coordinate.cached_problem import CachedProblem
from ssvm_bench.solvers.coordinate.nonnegative import ConstrainedConfig
from ssvm_bench.solvers.coordinate.turns import PAIR, SINGLE
from ssvm_bench.solvers.orders import permutation

CODE_VERSION = 1

ORDERS = SEQUENTIAL, RANDOM = ("sequential", "random")
PLANES = LARGEST, RANDOM = ("largest", "random")

_GOAL = 0.5
"""Share of ``tol`` at which optimising ends."""

_KEPT = 0.5
"""Share of a full cache that stays in it."""


SCHEDULES: Mapping[str, exploring.Plan] = {
    "gap": exploring.Plan(by_gap=True, optimises=True),
    "one_pass": exploring.Plan(steps=True),
    "larank": exploring.Plan(steps=True, revisits=10),
    "mining": exploring.Plan(optimises=True),
}


@dataclass(frozen=True)
class Config(ConstrainedConfig):
    """Options; see the module's docstring."""

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("chunk",)
    at_one_w: ClassVar[str] = "one"

    schedule: Annotated[str, one_of(SCHEDULES)] = "gap"
    plane: Annotated[str, one_of(PLANES)] = LARGEST
    tol: NotNegative = 0.01
    verify: bool = False
    order: Annotated[str, one_of(ORDERS)] = "sequential"
    cache: Annotated[int, at_least(2)] = 20_000
    chunk: Count = 4096
    epsilon: NotNegative = 1e-9
    M: Natural = 1000
    hot: bool = True

    @property
    def chunk_rows(self) -> int:
        """See `SolverConfig`."""
        return self.chunk

    def check_data(self, n: int, structure: str) -> None:
        """Raise ``ConfigError`` if wrong labels of structured examples are to be drawn."""
        super().check_data(n, structure)
        if self.plane == RANDOM and structure != "independent":
            raise ConfigError(
                "solver.plane=random draws a wrong label, and these examples have several labels "
                "each. Set solver.plane=largest."
            )

    def check_chunks(self) -> None:
        """Raise ``ConfigError`` if a stream is to be read in random order."""
        if self.order == RANDOM:
            raise ConfigError(
                "solver.order=random needs the examples in memory, and those of a stream are read "
                "as they come. Set solver.order=sequential: it is `ssvm-bench data export` that "
                "shuffles them."
            )


class DCDOnline(Solver):
    """Online dual coordinate descent, from an empty cache and w = 0.

    Attributes
    ----------
    cached : CachedProblem
        The cache, and w.
    seen : Seen
        What the pass records.
    upper : float
        P(w), if it is known, else NaN.
    tracked : float
        λ/2 ‖w‖² + Σ_i H_i, each H_i at the w with which the last pass met example i.
    """

    STATE = ("cached", "plan.tol", "seen", "upper", "tracked", "_bits")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.config = config
        floor = config.floor(problem.d)
        self.cached = CachedProblem(problem, config.cache, config.epsilon, floor, seed)
        self.plan = SCHEDULES[config.schedule]._replace(
            tol=config.tol, capacity=config.cache, n=problem.n
        )
        self.seen = exploring.Seen(
            begin=0,
            terms=np.zeros(0, np.int64),
            bounds=np.zeros(3),
            met=np.zeros(2),
            tally=np.zeros(3, np.int64),
            needed=np.zeros(2, np.int64),
        )
        self.upper = self.tracked = math.nan
        self._bits = np.random.PCG64(seed)

    def iterate(self) -> None:
        """Do one pass over the examples."""
        cached, seen = self.cached, self.seen
        before = cached.steps
        seen.met[:] = seen.tally[exploring.ENTERED] = 0
        for begin, part in self.problem.oracle.chunks():
            self._meet(begin, part)
        self.tracked = cached.half_norm() + float(seen.met[exploring.SLACK]) / self.problem.n
        changed = cached.steps > before or self.config.plane == RANDOM
        self.upper = math.nan if changed else self.tracked
        self.converged = self._is_close() or not (changed or seen.tally[exploring.ENTERED])
        if not self.converged:
            self._finish()
        if cached.fixed:
            self.ended = "cache_full"

    def _meet(self, begin: int, part: Oracle) -> None:
        """Process the examples of a chunk."""
        order = np.arange(part.n)
        if self.config.order == RANDOM:
            order = permutation(part.n, self._bits)
        drawn = self._drawn(part) if self.config.plane == RANDOM else None
        position, reason = 0, exploring.NOTHING
        while position < part.n:
            terms = terms_of(self.cached.cache, begin, part.n)
            seen = self.seen._replace(begin=begin, terms=terms)
            position, reason = self._explore(part, seen, order, position, drawn)
            if reason == exploring.ROOM:
                self.cached.reserve(*seen.needed.tolist())
            elif reason == exploring.WORDS:
                visits = self.plan.steps + self.plan.revisits
                self.cached.draw(visits * (1 + self.cached.cache.blocks.height.size))
            elif reason == exploring.FULL:
                self._make_room()
            elif reason == exploring.GAP:
                self._optimise()

    def _drawn(self, part: Oracle) -> Answered:
        """Return an oracle that returns wrong labels, drawn at random."""
        if not isinstance(part, LabelingOracle):
            raise ConfigError("solver.plane=random needs an oracle over labels.")
        features = part.features
        wrong = 1 + (uniform((part.n,), self._bits) * (features.n_labels - 1)).astype(np.int64)
        labels = (features.truth + wrong) % features.n_labels
        return Answered(features, labels.astype(features.truth.dtype))

    def _explore(
        self,
        part: Oracle,
        seen: exploring.Seen,
        order: np.ndarray,
        position: int,
        drawn: Answered | None = None,
    ) -> tuple[int, int]:
        """Process examples until something is due; return where to resume, and why it stopped."""
        end_if_urgent()
        seen.tally[: exploring.ENTERED] = 0
        parts = self.cached.cache, self.cached.policy, self.cached.shared, self.plan, seen
        with self.clock.exact(0) as made:
            if drawn is not None:
                most = longest(drawn.features)
                found = exploring.explore(drawn, False, *parts, order, position, most)
            elif isinstance(part, LabelingOracle) and part.caller is None:
                most = longest(part.features)
                found = exploring.explore(part.compiled, part.exact, *parts, order, position, most)
            else:
                found = _ask_one_by_one(part, parts, order, position)
            end, reason, made.share, fault = found
            made.calls = end - position
        if fault != checks.NONE:
            checks.check_fault(part, int(order[end]), fault)
        self.clock.approximate(
            int(seen.tally[exploring.VISITS]), int(seen.tally[exploring.EVALUATED])
        )
        return end, reason

    def _optimise(self) -> None:
        """Optimise over the cache, and drop planes with α = 0."""
        _, upper, half_norm = self.seen.bounds
        slack, met = self.seen.met
        scale = max(upper, half_norm + slack / max(met, 1.0))
        self._reduce_gap(_GOAL * self.plan.tol * scale)
        self.cached.drop_idle()
        self._look()

    def _reduce_gap(self, gap: float) -> None:
        """Optimise over the cache until its gap is at most ``gap``."""
        if not self.config.hot:
            self.cached.begin_anew()
        self.cached.optimise(gap, self.config.M, self.clock)

    def _make_room(self) -> None:
        """Free space for planes in a full cache."""
        if self.plan.optimises:
            self._optimise()
        most = int(_KEPT * self.config.cache)
        if self.cached.planes > most:
            self.cached.fix(most)
            self._look()

    def _look(self) -> None:
        """Compute LB and UB."""
        cached = self.cached
        self.seen.bounds[:] = cached.lower(), cached.upper(), cached.half_norm()
        self.clock.approximate(self.cached.terms, self.cached.planes)

    def _finish(self) -> None:
        """Do what is due at the end of a pass."""
        cached, steps = self.cached, self.cached.steps
        lower, upper, _ = self.seen.bounds
        if self.plan.optimises and upper - lower > self.plan.tol * upper:
            self._reduce_gap(self.plan.tol * upper)
        cached.drop_idle()
        cached.recompute()
        self._look()
        if cached.steps > steps:
            self.upper = math.nan
        if self.config.verify:
            with self.clock.exact(self.problem.n):
                self.upper = self.problem.primal(self.problem.oracle.head.unpack(cached.shared.w))
            self.converged = self._is_close()

    def _is_close(self) -> bool:
        """Return whether P(w) is known, and close to LB."""
        return self.upper - self.cached.lower() <= self.plan.tol * self.upper

    def refine(self) -> bool:
        """See `Solver`; where no step is left, the gap is at most 2 ε."""
        plan, policy, gap = self.plan, self.cached.policy, self.upper - self.cached.lower()
        before = plan.tol, policy.epsilon
        now = finer(plan.tol, gap, self.upper), finer(policy.epsilon, 0.5 * gap, 1.0)
        self.plan, self.cached.policy = plan._replace(tol=now[0]), policy._replace(epsilon=now[1])
        return now[1] > 0.0 and now != before

    def reported(self) -> Iterate:
        """Return w and LB."""
        w = self.problem.oracle.head.unpack(self.cached.shared.w)
        return Iterate(w, self.problem.dual(w, self.cached.offset))

    def working_set_mean(self) -> float:
        """Return the mean number of cached planes of a term, those of ground truths not counted."""
        return self.cached.planes / self.problem.n

    def diagnostics(self) -> dict[str, float]:
        """Return bounds after the last pass, the size of the cache, and the numbers of steps."""
        steps = self.cached.policy.steps
        return {
            "upper_bound": self.upper,
            "tracked_bound": self.tracked,
            "single_steps": float(steps[SINGLE]),
            "pair_steps": float(steps[PAIR]),
            "cached_bound": float(self.seen.bounds[exploring.UPPER]),
            "cache_size": float(self.cached.planes),
            "fixed_examples": float(self.cached.fixed),
        }


def _ask_one_by_one(
    oracle: Oracle, parts: Any, order: np.ndarray, position: int
) -> tuple[int, int, float, int]:
    """Do `explore` with an oracle that a caller or Python code calls, one example at a time."""
    n, (cache, policy, state, plan, seen) = oracle.n, parts
    reason, fault, seconds, begin = exploring.NOTHING, checks.NONE, 0.0, perf_counter()
    while position < order.size and reason == exploring.NOTHING and fault == checks.NONE:
        end_if_urgent()
        asked, start = order[position : position + 1], perf_counter()
        if isinstance(oracle, LabelingOracle):
            answered = oracle.answering(state.w, asked)
            seconds += perf_counter() - start
            met = cache, policy, state, plan, seen, order[: position + 1], position
            most = longest(oracle.features)
            position, reason, _, fault = exploring.explore(answered, oracle.exact, *met, most)
        else:
            (((indices, values, offset), value),) = oracle.best_planes(state.w, asked.tolist())
            seconds += perf_counter() - start
            row = indices, n * values, n * offset, n * value
            reason = exploring.consider_row(*row, cache, policy, state, plan, seen, int(asked[0]))
            position += reason in (exploring.NOTHING, exploring.GAP)
    return position, reason, seconds / max(perf_counter() - begin, 1e-9), fault


build = DCDOnline
