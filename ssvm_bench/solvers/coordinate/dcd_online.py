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
(`CachedProblem`). A pass over all examples at one w computes a bound for all, P(w): a further pass
(``verify``), or one in which no step was due.

================  =============================================================================
``schedule``      what happens between new examples
================  =============================================================================
``gap``           Algorithm 2
``one_pass``      an example that enters the cache takes its step, once
``larank``        the same, and for each new example ten cached ones, drawn at random, take theirs
``mining``        examples enter the cache until it is full; then it is optimised
================  =============================================================================

**A new example** (lines 3 to 11). The plane with g > ε enters the cache with α = 0, and

.. code-block:: text

    UB ← UB + 1/n (g − max(0, the largest gradient of a plane of i that is cached already))

The schedule, a `Plan`, says what happens next: whether the example takes a step at once, how many
cached ones take theirs, and how large the online gap UB − LB may become, relative to an estimate of
P(w) for the whole problem from the examples met so far,

.. code-block:: text

    P̂ = λ/2 ‖w‖² + mean of n H_i(w),  each at the w with which it was met

(at first, UB is far below P̂, as most examples are still to come). A pass over a chunk stops where
something is due that is not done in it (`ROOM`, `FULL`, `WORDS`, `GAP`), and then resumes. So what
happens at an example does not depend on where chunks end. Optimising ends at half of ``tol``;
otherwise the next example would restart it.

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
absolute     whether ``tol`` is a difference UB − LB instead, as the paper's: in the units of its
             objective, P/λ
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
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.interrupts import end_if_urgent, interruptible
from ssvm_bench.base.jit import allocating_kernel, kernel, nanoseconds
from ssvm_bench.base.linalg import dot, squared_norm
from ssvm_bench.base.random import uniform
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.config.validation import Count, Natural, NotNegative, at_least, one_of
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.labeling import Answered, LabelingOracle, ask
from ssvm_bench.oracles.scoring import difference_row, longest, scratch
from ssvm_bench.planes import cache as caches
from ssvm_bench.planes import dual_iterate
from ssvm_bench.planes.dual_iterate import at_zero
from ssvm_bench.planes.operations import approximate_visit, gather, plane_value
from ssvm_bench.solvers.base import Iterate, Solver, finer
from ssvm_bench.solvers.coordinate.dcd import PAIR, SINGLE, below, coordinates
from ssvm_bench.solvers.coordinate.nonnegative import ConstrainedConfig, cone
from ssvm_bench.solvers.orders import permutation

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

ORDERS = SEQUENTIAL, RANDOM = ("sequential", "random")
PLANES = LARGEST, RANDOM = ("largest", "random")

_GOAL = 0.5
"""Share of ``tol`` at which optimising ends."""

_KEPT = 0.5
"""Share of a full cache that stays in it."""

_BETWEEN = 4
"""Number of sweeps over some examples between two over all."""

_SHRINK = 0.1
"""Sweeps over some examples leave out violations of less than this share of the mean."""

_WORDS = 1 << 14
"""Least number of random words that are drawn at once."""

NOTHING, ROOM, FULL, WORDS, GAP = range(5)
"""Why a pass stops: its end; no space for a row; a full cache; no random words; a large gap."""

LOWER, UPPER, HALF_NORM = range(3)
"""Entries of ``Seen.bounds``."""

SLACK, EXAMPLES = range(2)
"""Entries of ``Seen.met``."""

VISITS, EVALUATED, ENTERED = range(3)
"""Entries of ``Seen.tally``."""


class Plan(NamedTuple):
    """What happens at an example, and between examples.

    Attributes
    ----------
    steps : bool
        Whether an example takes a step when it is met, if it is in the cache then.
    revisits : int
        How many cached examples, drawn at random, then take a step.
    by_gap : bool
        Whether the cache is optimised when the online gap is too large.
    optimises : bool
        Whether it is optimised when it is full, and at the end of a pass.
    tol : float
        Largest (UB − LB)/scale with which a pass continues, if ``by_gap``.
    scale : float
        λ: ``tol`` is a difference in units of P/λ; 0: it is relative to max(UB, P̂).
    capacity : int
        Most planes of the cache.
    n : int
        Number of examples of the problem.
    """

    steps: bool = False
    revisits: int = 0
    by_gap: bool = False
    optimises: bool = False
    tol: float = 0.0
    scale: float = 0.0
    capacity: int = 0
    n: int = 0


SCHEDULES: Mapping[str, Plan] = {
    "gap": Plan(by_gap=True, optimises=True),
    "one_pass": Plan(steps=True),
    "larank": Plan(steps=True, revisits=10),
    "mining": Plan(optimises=True),
}


@dataclass(frozen=True)
class Config(ConstrainedConfig):
    """Options; see the module's docstring."""

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("chunk",)
    at_one_w: ClassVar[str] = "one"

    schedule: Annotated[str, one_of(SCHEDULES)] = "gap"
    plane: Annotated[str, one_of(PLANES)] = LARGEST
    tol: NotNegative = 0.01
    absolute: bool = False
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
            tol=config.tol,
            scale=problem.lam if config.absolute else 0.0,
            capacity=config.cache,
            n=problem.n,
        )
        self.seen = Seen(
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
        seen.met[:] = seen.tally[ENTERED] = 0
        for begin, part in self.problem.oracle.chunks():
            self._meet(begin, part)
        self.tracked = cached.half_norm() + float(seen.met[SLACK]) / self.problem.n
        changed = cached.steps > before or self.config.plane == RANDOM
        self.upper = math.nan if changed else self.tracked
        self.converged = self._is_close() or not (changed or seen.tally[ENTERED])
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
        position, answer = 0, None
        while position < part.n:
            terms = caches.terms_of(self.cached.cache, begin, part.n)
            seen = self.seen._replace(begin=begin, terms=terms)
            position, reason, answer = self._explore(part, seen, order, position, drawn, answer)
            if reason == ROOM:
                self.cached.reserve(*seen.needed.tolist())
            elif reason == WORDS:
                visits = self.plan.steps + self.plan.revisits
                self.cached.draw(visits * (1 + self.cached.cache.blocks.height.size))
            elif reason == FULL:
                self._make_room()
            elif reason == GAP:
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
        seen: Seen,
        order: np.ndarray,
        position: int,
        drawn: Answered | None,
        answer: Any,
    ) -> tuple[int, int, Any]:
        """Process examples until something is due.

        Returns
        -------
        position, reason : int
            Where to resume, and why it stopped.
        answer : object
            What the oracle has answered at this w for the example at which to resume, or None.
        """
        end_if_urgent()
        seen.tally[:ENTERED] = 0
        parts = self.cached.cache, self.cached.policy, self.cached.shared, self.plan, seen
        with self.clock.exact(0) as made:
            if drawn is not None:
                most = longest(drawn.features)
                found = explore(drawn, False, *parts, order, position, most)
            elif isinstance(part, LabelingOracle) and part.caller is None:
                most = longest(part.features)
                found = explore(part.compiled, part.exact, *parts, order, position, most)
            else:
                *found, answer = _ask_one_by_one(part, parts, order, position, answer)
            end, reason, made.share, fault = found
            made.calls = end - position
        if fault != checks.NONE:
            checks.check_fault(part, int(order[end]), fault)
        self.clock.approximate(int(seen.tally[VISITS]), int(seen.tally[EVALUATED]))
        return end, reason, answer

    def _optimise(self) -> None:
        """Optimise over the cache, and drop planes with α = 0."""
        _, upper, half_norm = self.seen.bounds
        slack, met = self.seen.met
        estimate = half_norm + slack / max(met, 1.0)
        self._reduce_gap(_GOAL * self._most(max(upper, estimate)))
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
        if self.plan.optimises and upper - lower > self._most(upper):
            self._reduce_gap(self._most(upper))
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
        return self.upper - self.cached.lower() <= self._most(self.upper)

    def _most(self, primal: float) -> float:
        """Return the largest gap within the tolerance where P is so large."""
        return self.plan.tol * (self.plan.scale or primal)

    def refine(self) -> bool:
        """See `Solver`; where no step is left, the gap is at most 2 ε."""
        plan, policy, gap = self.plan, self.cached.policy, self.upper - self.cached.lower()
        before = plan.tol, policy.epsilon
        scale = plan.scale or self.upper
        now = finer(plan.tol, gap, scale), finer(policy.epsilon, 0.5 * gap, 1.0)
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
            "cached_bound": float(self.seen.bounds[UPPER]),
            "cache_size": float(self.cached.planes),
            "fixed_examples": float(self.cached.fixed),
        }


def _ask_one_by_one(
    oracle: Oracle, parts: Any, order: np.ndarray, position: int, answer: Any
) -> tuple[int, int, float, int, Any]:
    """Do `explore` with an oracle that a caller or Python code calls, one example at a time.

    An example for which there was no space has its ``answer`` already: the call may take long.
    """
    n, (cache, policy, state, plan, seen) = oracle.n, parts
    reason, fault, seconds, begin = NOTHING, checks.NONE, 0.0, perf_counter()
    while position < order.size and reason == NOTHING and fault == checks.NONE:
        end_if_urgent()
        asked, start = order[position : position + 1], perf_counter()
        if isinstance(oracle, LabelingOracle):
            answer = answer or oracle.answering(state.w, asked)
            seconds += perf_counter() - start
            met = cache, policy, state, plan, seen, order[: position + 1], position
            most = longest(oracle.features)
            position, reason, _, fault = explore(answer, oracle.exact, *met, most)
        else:
            answer = answer or next(iter(oracle.best_planes(state.w, asked.tolist())))
            seconds += perf_counter() - start
            (indices, values, offset), value = answer
            row = indices, n * values, n * offset, n * value
            reason = consider_row(*row, cache, policy, state, plan, seen, int(asked[0]))
            position += reason in (NOTHING, GAP)
        if reason not in (ROOM, WORDS):
            answer = None
    share = seconds / max(perf_counter() - begin, 1e-9)
    return position, reason, share, fault, answer


# ---- a pass over new examples (lines 3 to 11) ----------------------------------------------------


class Seen(NamedTuple):
    """What a pass records.

    Attributes
    ----------
    begin : int
        Index of the first example of the chunk.
    terms : ndarray of int64, shape (examples of the chunk,)
        Index of each example in the cache; −1: it is not there.
    bounds : ndarray of float64, shape (3,)
        LB, UB and λ/2 ‖w‖², without the steps since they were computed.
    met : ndarray of float64, shape (2,)
        Σ_i n H_i(w), each at the w with which it was met in this pass, and their number.
    tally : ndarray of int64, shape (3,)
        Visits of cached examples, planes evaluated there, and planes that have entered the cache.
    needed : ndarray of int64, shape (2,)
        Numbers of planes and non-zeros for which there was no space.
    """

    begin: int
    terms: np.ndarray
    bounds: np.ndarray
    met: np.ndarray
    tally: np.ndarray
    needed: np.ndarray


@kernel
def _consider(cache, policy, state, plan, seen, i, g, count, offset):
    """Process example i of the chunk, whose best plane is in the cache's scratch.

    Returns
    -------
    int
        `WORDS`, `ROOM` or `FULL`: nothing has been done; `GAP` or `NOTHING`: all is done.
    """
    most = (plan.steps + plan.revisits) * (1 + cache.blocks.height.size)
    if policy.words.size - policy.drawn[0] <= most:
        return WORDS
    if g > policy.epsilon:
        reason = _enter(cache, state, plan, seen, i, g, count, offset)
        if reason != NOTHING:
            return reason
    if plan.steps and seen.terms[i] >= 0:
        _visit(cache, policy, state, seen, seen.terms[i])
    if cache.used[caches.TERMS] > 0:
        for _ in range(plan.revisits):
            word = policy.words[policy.drawn[0]]
            policy.drawn[0] += 1
            t = below(word >> np.uint64(32), cache.used[caches.TERMS])
            _visit(cache, policy, state, seen, t)
    seen.met[SLACK] += max(g, 0.0)
    seen.met[EXAMPLES] += 1.0
    bounds = seen.bounds
    estimate = bounds[HALF_NORM] + seen.met[SLACK] / seen.met[EXAMPLES]
    scale = plan.scale if plan.scale > 0.0 else max(bounds[UPPER], estimate)
    large = bounds[UPPER] - bounds[LOWER] > plan.tol * scale
    return GAP if plan.by_gap and large else NOTHING


@kernel
def _enter(cache, state, plan, seen, i, g, count, offset):
    """Add the plane to the cache, unless it is there; return a reason to stop."""
    blocks, t = cache.blocks, seen.terms[i]
    highest = 0.0
    planes, nonzeros = 2, count
    if t >= 0:
        if caches.find_candidate(cache, t, count, offset) > 0:
            return NOTHING
        gather(blocks, state.w, t)
        for p in range(1, blocks.n_planes[t]):
            highest = max(highest, plane_value(blocks, t, p))
        first, planes = blocks.start[t], blocks.n_planes[t] + 1
        nonzeros += blocks.begin[first + planes - 1] - blocks.begin[first]
    if cache.used[caches.PLANES] >= plan.capacity:
        return FULL
    if not caches.has_room(cache, planes, nonzeros):
        seen.needed[0], seen.needed[1] = planes, nonzeros
        return ROOM
    t = caches.moved_behind(cache, t) if t >= 0 else caches.open_term(cache, seen.begin + i, planes)
    caches.add_candidate(cache, t, count, offset)
    seen.terms[i] = t
    seen.tally[ENTERED] += 1
    seen.bounds[UPPER] += max(0.0, g - highest) / plan.n
    return NOTHING


@kernel
def _visit(cache, policy, state, seen, t):
    """Let a cached example take its step; remove it if its planes have no weight then."""
    if cache.example[t] < 0:
        return
    seen.tally[VISITS] += 1
    seen.tally[EVALUATED] += approximate_visit(policy, cache.blocks, t, state)
    first = cache.blocks.start[t]
    for slot in range(first + 1, first + cache.blocks.n_planes[t]):
        if cache.numbers.alpha[slot] > 0.0:
            return
    i = cache.example[t] - seen.begin
    if 0 <= i < seen.terms.size:
        seen.terms[i] = -1
    caches.close(cache, t)


@allocating_kernel
def explore(oracle, exact, cache, policy, state, plan, seen, order, position, most):
    """Process the examples of a chunk with a compiled oracle, from a position in their order.

    No example has more than ``most`` parts.

    Returns
    -------
    position, reason : int
        Where to resume, and why the pass has stopped.
    share : float
        Share of the time that the oracle took.
    fault : int
        What is wrong with the oracle at example ``order[position]``.
    """
    features = oracle.features
    theta, y, labels, timespec = scratch(features, most)
    signs = np.array([1.0, -1.0])
    oracle_time = 0
    reason, fault = NOTHING, checks.NONE
    begin = nanoseconds(timespec)
    while position < order.size and reason == NOTHING:
        i = order[position]
        loss, score, fault, took = ask(oracle, exact, state.w, i, theta, 1.0, y, timespec)
        oracle_time += took
        if fault != checks.NONE:
            break
        count = 0
        if loss + score > policy.epsilon:
            count = difference_row(
                features, i, y, labels, signs, cache.blocks.dense, cache.indices, cache.values
            )
        reason = _consider(cache, policy, state, plan, seen, i, loss + score, count, loss)
        if reason in (NOTHING, GAP):
            position += 1
    share = oracle_time / max(nanoseconds(timespec) - begin, 1)
    return position, reason, share, fault


@kernel
def consider_row(indices, values, offset, g, cache, policy, state, plan, seen, i):
    """Do `_consider` with a plane that an oracle has returned, all values times n."""
    for k in range(indices.size):
        cache.indices[k], cache.values[k] = indices[k], values[k]
    return _consider(cache, policy, state, plan, seen, i, g, indices.size, offset)


# ---- optimising over the cached examples ---------------------------------------------------------


class CachedProblem(Stateful):
    """The problem of the examples in the cache, which dual coordinate descent optimises.

    Of n examples, those of A are cached, with the planes found so far. Those of B have left the
    cache with fixed weights, and contribute φ^B = Σ_{i∈B} φ^i. The others contribute 0:

    .. code-block:: text

        LB = F(φ)                  φ = φ^A + φ^B
        UB = λ/2 ‖w‖² + ⟨φ^B, [w 1]⟩ + 1/n Σ_{i∈A} max(0, max_p g_ip)

    φ is feasible for the problem of all n, so that LB is below its optimum; UB is above that of the
    cached problem only. UB − LB = 1/n Σ_{i∈A} ( max(0, max_p g_ip) − Σ_p α_ip g_ip ) ≥ 0.

    Parameters
    ----------
    problem : Problem
        The problem of all examples.
    capacity : int
        Most planes of the cache.
    epsilon : float
        Gradients up to this size call for no step, in units of the loss.
    floor : ndarray of float64, shape (d,) or (0,)
        0 for weights that must not be negative, −∞ for others; empty if all may be negative.
    seed : int

    Attributes
    ----------
    cache : Cache
    policy : Coordinates
        The policy of the steps.
    state : PassState
        w, and φ∘ in the units of the cache (:mod:`ssvm_bench.planes.cache`).
    fixed : int
        |B|.
    """

    STATE = (
        *("cache", "fixed", "_fixed_w", "_fixed_offset", "_bits", "_orders"),
        *("policy.words", "policy.drawn", "policy.steps", "policy.violations", "policy.cone.v"),
        *("policy.epsilon", "shared.w", "shared.offset"),
    )
    LIMITS: ClassVar[Mapping[str, Limits]] = {
        "policy.words": Limits(size=...),
        "policy.drawn": Limits(most=lambda found, _: found["policy.words"].size),
        "cache": Limits(of=lambda found, _: found["cache"].example, below="n"),
    }

    def __init__(
        self, problem: Problem, capacity: int, epsilon: float, floor: np.ndarray, seed: int
    ) -> None:
        head, self.n, self.lam = problem.oracle.head, problem.n, problem.lam
        D, limits = head.inner_d, cone(head.pack(floor) if floor.size else floor)
        self.cache = caches.allocate(capacity, D)
        terms = self.cache.example.size
        self._unit = terms / self.n
        self._bits = np.random.PCG64([seed, 2])
        self._orders = np.random.PCG64([seed, 3])
        self.policy = coordinates(epsilon, True, self.cache.numbers, limits, np.zeros(terms))
        self.shared = at_zero(D, self.lam / self._unit)
        self.fixed = 0
        self._fixed_w, self._fixed_offset = np.zeros(D), 0.0
        self._lowest = np.zeros(terms)
        self.fix(capacity)  # compiles its kernels before any example is there

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        super()._rebuild(found)
        self.policy = self.policy._replace(simplex=self.cache.numbers)

    @property
    def planes(self) -> int:
        """Number of cached planes, those of the ground truths not counted."""
        return int(self.cache.used[caches.PLANES])

    @property
    def terms(self) -> int:
        """Number of cached examples, including those closed since the last compaction."""
        return int(self.cache.used[caches.TERMS])

    @property
    def offset(self) -> float:
        """φ∘."""
        return self._unit * float(self.shared.offset[0])

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return int(self.policy.steps.sum())

    def half_norm(self) -> float:
        """Return λ/2 ‖w‖²."""
        return 0.5 * self.lam * float(squared_norm(self.shared.w))

    def lower(self) -> float:
        """Return LB."""
        return self.offset - self.half_norm()

    def upper(self) -> float:
        """Return UB, by evaluating all cached planes."""
        return self._bound(caches.look(self.cache, self.shared.w, self._lowest))

    def _bound(self, slack: float) -> float:
        """Return UB, given the sum in it over the cached examples."""
        w, v = self.shared.w, self._fixed_w
        of_fixed = self._fixed_offset - self.lam * dot(v, w, w.size)
        return self.half_norm() + of_fixed + slack / self.n

    def optimise(self, gap: float, most: int, clock: Clock) -> None:
        """Sweep over the cached examples, in random order, until UB − LB ≤ gap.

        UB is computed only if UB', from the gradients that a sweep has met, is that close to LB.
        Sweeps also end when no step is left, or after ``most`` sweeps over all examples. Between
        two of these, some sweeps go over the examples that violate optimality most.
        """
        (live,) = np.nonzero(self.cache.example[: self.terms] >= 0)
        for _ in interruptible(range(most)):
            steps = self.steps
            self._sweep(live, clock)
            if self.steps == steps:
                return
            lower, tracked = self.lower(), self._bound(float(self.policy.met[0]))
            if tracked - lower <= gap:
                upper = self.upper()
                clock.approximate(live.size, self.planes)
                if upper - lower <= gap:
                    return
            for _ in range(_BETWEEN):
                violations = self.policy.violations[live]
                least = max(self.policy.epsilon, _SHRINK * float(violations.mean()))
                self._sweep(live[violations > least], clock)

    def _sweep(self, terms: np.ndarray, clock: Clock) -> None:
        """Let some cached examples take their steps, in random order."""
        planes = self.cache.blocks.n_planes
        self.draw(int(planes[terms].sum()))
        self.policy.met[0] = 0.0
        order = terms[permutation(terms.size, self._orders)]
        cached = self.cache.blocks
        evaluated = dual_iterate.visit_working_sets(self.policy, cached, order, self.shared)
        clock.approximate(order.size, evaluated)

    def begin_anew(self) -> None:
        """Give all weight of the cached examples back to their ground truths: α = 0."""
        blocks, used = self.cache.blocks, self.cache.used
        self.cache.numbers.alpha[:] = 0.0
        self.cache.numbers.alpha[blocks.start[: used[caches.TERMS]]] = 1.0
        self.recompute()

    def reserve(self, planes: int, nonzeros: int) -> None:
        """Reserve space for a term; see :func:`ssvm_bench.planes.cache.reserve`."""
        self.cache = caches.reserve(self.cache, planes, nonzeros)
        self.policy = self.policy._replace(simplex=self.cache.numbers)

    def draw(self, words: int) -> None:
        """Make more than ``words`` random words available; those that are left come first."""
        policy = self.policy
        left = policy.words[policy.drawn[0] :]
        if left.size <= words:
            new = self._bits.random_raw(max(words + 1, _WORDS))
            self.policy = policy._replace(words=np.concatenate((left, new)))
            policy.drawn[0] = 0

    def drop_idle(self) -> None:
        """Drop planes with α = 0, and examples that then have no planes."""
        caches.compact(self.cache, False)

    def fix(self, most: int) -> None:
        """Remove examples, with their weights fixed, until at most ``most`` planes stay.

        Examples whose planes with weight have the largest gradients leave first: they are the
        farthest beyond the margin, and their weights would change last.
        """
        cache, used = self.cache, self.cache.used
        caches.look(cache, self.shared.w, self._lowest)
        order = np.argsort(-self._lowest[: used[caches.TERMS]], kind="stable")
        order = order[cache.example[order] >= 0]
        planes = cache.blocks.n_planes[order] - 1
        leaving = order[np.cumsum(planes) - planes < used[caches.PLANES] - most]
        scale = -1.0 / (self.lam * self.n)
        self._fixed_offset += caches.add_terms(cache, leaving, scale, self._fixed_w) / self.n
        self.fixed += leaving.size
        cache.blocks.n_planes[leaving], cache.example[leaving] = 0, -1
        caches.compact(cache, True)

    def recompute(self) -> None:
        """Recompute w and φ∘ from the weights, so that rounding errors do not add up."""
        w, limits, terms = self.shared.w, self.policy.cone, np.arange(self.cache.used[caches.TERMS])
        v = limits.v if limits.floor.size else w
        v[:] = self._fixed_w
        offset = caches.add_terms(self.cache, terms, -1.0 / (self.lam * self.n), v) / self.n
        if limits.floor.size:
            np.maximum(v, limits.floor, out=w)
        self.shared.offset[0] = (self._fixed_offset + offset) / self._unit


build = DCDOnline
