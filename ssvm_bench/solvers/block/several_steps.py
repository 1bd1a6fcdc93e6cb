"""Visits of several steps over a working set, with inner products that are computed once.

For term i with the planes p of W_i, let s[p] = ⟨n φ^{ip}, [w 1]⟩ and h = ⟨n φ^i, [w 1]⟩. A step
moves φ^i by γ δ/n along one of the directions

.. code-block:: text

                δ                    g = ⟨δ, [w 1]⟩   γ ≤            b = argmax s,
    fw          n (φ^{ib} − φ^i)     s[b] − h         1              a = argmin of s where α > 0
    away        n (φ^i − φ^{ia})     h − s[a]         α[a]/(1−α[a])
    pairwise    n (φ^{ib} − φ^{ia})  s[b] − s[a]      α[a]

(``away`` takes the steeper of the first two). With r[p] = ⟨n φ^{ip}⋆, δ⋆⟩, e = ⟨n φ^i⋆, δ⋆⟩
and l = ‖δ⋆‖², all from the numbers of :mod:`ssvm_bench.planes.simplex`, in O(|W_i|) operations,

.. code-block:: text

    γ = clip( λ n g / l )       s ← s − γ/(λ n) r      h ← h + γ g − γ/(λ n) (e + γ l)
                                v ← v + γ r            u ← u + 2 γ e + γ² l

After the last step, w and φ^i move once, by the sum of all steps. A step along away or pairwise
directions that takes all the weight of a plane is a *drop step*.

======  ===============================================  ======  ============================
symbol  name                                             symbol  name
======  ===============================================  ======  ============================
s       ``values``                                       α       ``alpha``
δ       ``to_best``, ``from_worst``, ``from_own``: the   v       ``product``
        coefficients of φ^{ib}, φ^{ia} and φ^i           u       ``square``
b, a    ``best``, ``worst``                              γ       ``gamma``, at most ``limit``
e, l    ``across``, ``length``                           g       ``slope``
======  ===============================================  ======  ============================

Sources: Lacoste-Julien and Jaggi, *On the global linear convergence of Frank-Wolfe optimization
variants*, NeurIPS 2015, Algorithms 1 and 2 (away and pairwise steps); Osokin et al., *Minding the
gaps for block Frank-Wolfe optimization of structured SVMs*, ICML 2016, sections 3.2 (away and
pairwise steps in blocks) and 3.3 (planes of a term in place of its oracle); Shah et al. 2015,
section 5 (cached inner products).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base import memory
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import implements, kernel, prefetch_range, shared_kernel
from ssvm_bench.base.linalg import line_search
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.planes import operations, simplex
from ssvm_bench.planes.dual_iterate import AT_W, DualIterate, everywhere
from ssvm_bench.planes.simplex import Simplex, complete, forget
from ssvm_bench.solvers.block.mpbcfw import Visits, move, step_towards

# mypy: disable-error-code="no-untyped-def"

STEPS = ("fw", "away", "pairwise")
FW, AWAY, PAIRWISE = range(3)
_ALMOST_ALL = 1.0 - 1e-9
"""Largest weight of a plane in away steps, which may be as long as α/(1 − α)."""
_NOISE = 1e-14
"""Slopes below this, relative to their terms, are rounding."""

_FLOOR = 0.01
"""``floor`` of `SeveralSteps`, as a share of the mean gap (Osokin et al., ν)."""


class SeveralSteps(NamedTuple):
    """The policy of visits of several steps.

    Attributes
    ----------
    N, T : int
        As for MP-BCFW; planes with weight are never dropped (away and pairwise steps).
    steps : int
        ``FW``, ``AWAY`` or ``PAIRWISE``.
    inner_steps : int
        Most steps of a visit.
    simplex : Simplex
        Weights and inner products of the planes.
    gaps : ndarray of float64, shape (n,)
        n times the block gap at the last exact call of each term; ∞ before the first.
    planes_gaps : ndarray of float64, shape (n,)
        n times the gap over W_i at the last approximate visit of each term, before its steps.
    cache_hit_factor, floor : float
        A visit uses the planes of a term instead of its oracle if their gap is above
        ``cache_hit_factor`` times the term's last exact gap, and above ``floor``; ∞: it always
        calls the oracle.
    """

    N: int
    T: int
    steps: int
    inner_steps: int
    simplex: Simplex
    gaps: np.ndarray
    planes_gaps: np.ndarray
    cache_hit_factor: float = np.inf
    floor: float = 0.0


class SkippingSteps(SeveralSteps):
    """The same, for a solver that skips oracle calls: else its visits need not be compiled."""


@implements(operations.visit_without_oracle, SkippingSteps)
def _visit_without_oracle(policy, blocks, i, state):
    if policy.cache_hit_factor == np.inf or policy.gaps[i] == np.inf:
        return 0
    operations.gather(blocks, state.w, i)
    evaluated = blocks.n_planes[i]
    least = max(policy.cache_hit_factor * policy.gaps[i], policy.floor)
    gap, _ = _ascend(policy, blocks, i, state, least, True)
    return evaluated if gap > least else 0


@implements(operations.prefetch_visit, SeveralSteps)
def _prefetch_visit(policy, blocks, order, k):
    i = order[min(k + 1, order.size - 1)]
    if _is_sure(policy, blocks, i):
        return
    operations.prefetch_term(blocks, order, k)
    numbers = policy.simplex
    m = blocks.n_planes[i]
    prefetch_range(numbers.alpha, numbers.start[i], numbers.start[i] + m)
    prefetch_range(numbers.product, numbers.start[i], numbers.start[i] + m)
    begin = numbers.gram_start[i]
    prefetch_range(numbers.gram, begin, begin + m * numbers.room[i])


@kernel
def _is_sure(policy, blocks, i):
    """Return whether φ^i is the only plane of W_i, so that no step over W_i can change it."""
    return blocks.n_planes[i] == 1 and policy.simplex.known[i] == 1 and policy.steps != FW


@implements(operations.exact_visit, SeveralSteps)
def _exact_visit(policy, blocks, i, state):
    p = blocks.n_planes[i]
    gap = operations.set_direction(blocks, i, p)
    policy.gaps[i] = max(gap, 0.0)
    if policy.N == 0:
        return step_towards(blocks, i, p, gap, state)
    operations.insert(blocks, i, state.now)
    # inactive planes, too, are dropped here, as there may be no approximate passes to do it
    _, changed = _ascend(policy, blocks, i, state, -np.inf, policy.steps != FW)
    operations.drop_longest_inactive(policy, blocks, i)
    return changed


@implements(operations.approximate_visit, SeveralSteps)
def _approximate_visit(policy, blocks, i, state):
    evaluated = blocks.n_planes[i]
    if _is_sure(policy, blocks, i):
        policy.planes_gaps[i] = 0.0
        blocks.active[blocks.start[i]] = state.now
        move(blocks, i, 0.0, 0.0, state)
        return evaluated
    operations.gather(blocks, state.w, i)
    policy.planes_gaps[i], _ = _ascend(policy, blocks, i, state, -np.inf, True)
    return evaluated


@implements(operations.insert_truth, SeveralSteps)
def _insert_truth(policy, blocks, i, scale, now):
    if policy.N == 0:
        return
    numbers = policy.simplex
    truth = operations.insert(blocks, i, now)
    complete(numbers, blocks, i)
    first = numbers.start[i]
    for p in range(first, first + blocks.n_planes[i]):
        numbers.alpha[p] *= scale
        numbers.product[p] *= scale
    numbers.alpha[first + truth] += 1.0 - scale
    numbers.square[i] *= scale * scale
    operations.drop_longest_inactive(policy, blocks, i)


@shared_kernel
def _ascend(policy, blocks, i, state, least, drops):
    """Do the steps of a visit, after ``gather``, if the gap over W_i is above ``least``.

    With ``drops``, the planes that were not active in the last T outer iterations are dropped.

    Returns
    -------
    gap : float
        n times the gap over W_i before the steps.
    changed : bool
        Whether the steps have changed anything.
    """
    best, gap = _look(policy, blocks, i)
    if gap <= least:
        return gap, False
    changed = _steps(policy, blocks, i, best, gap, state)
    if drops:
        _drop_inactive(policy, blocks, i, state)
    return gap, changed


@kernel
def _drop_inactive(policy, blocks, i, state):
    """Drop the planes that were not active in the last T outer iterations."""
    if operations.drop_inactive(policy, blocks, i, state.now - policy.T) and policy.steps != FW:
        operations.shrink_term(blocks, i)


@kernel
def _look(policy, blocks, i):
    """Compute s; return its argmax, the oldest if tied, and n times the gap over W_i."""
    numbers = policy.simplex
    complete(numbers, blocks, i)
    s = numbers.values
    m = blocks.n_planes[i]
    for p in range(m):
        s[p] = operations.plane_value(blocks, i, p)
    best = _highest(s, m)
    if policy.steps == FW:  # a plane with weight may have been dropped
        return best, s[best] - operations.present_value(blocks, i)
    gap = 0.0
    for p in range(m):
        gap += numbers.alpha[numbers.start[i] + p] * (s[best] - s[p])
    return best, gap


@kernel
def _highest(s, m):
    """Return the argmax of the first m entries, the first if tied."""
    best = 0
    for p in range(1, m):
        if s[p] > s[best]:
            best = p
    return best


@kernel
def _steps(policy, blocks, i, best, gap, state):
    """Do the steps of a visit, after ``_look``; return whether anything has changed."""
    numbers = policy.simplex
    m = blocks.n_planes[i]
    lam_n = state.lam * blocks.n_planes.size
    s = numbers.values
    change = numbers.change
    alpha = numbers.alpha[numbers.start[i] :]
    v = numbers.product[numbers.start[i] :]
    room = numbers.room[i]
    gram = numbers.gram[numbers.gram_start[i] :]
    u = numbers.square[i]
    h = s[best] - gap
    change[:m] = 0.0
    own = 0.0

    for _ in range(policy.inner_steps):
        # δ = to_best · n φ^{ib} + from_worst · n φ^{ia} + from_own · n φ^i
        to_best, from_worst, from_own, limit = 1.0, 0.0, -1.0, 1.0
        slope = s[best] - h
        worst = 0
        if policy.steps != FW:
            worst = -1
            for p in range(m):
                if alpha[p] > 0.0 and (worst < 0 or s[p] < s[worst]):
                    worst = p
        if policy.steps == PAIRWISE:
            slope = s[best] - s[worst]
            to_best, from_worst, from_own, limit = 1.0, -1.0, 0.0, alpha[worst]
        elif policy.steps == AWAY and h - s[worst] > slope and alpha[worst] < _ALMOST_ALL:
            slope = h - s[worst]
            to_best, from_worst, from_own = 0.0, -1.0, 1.0
            limit = alpha[worst] / (1.0 - alpha[worst])
        blocks.active[blocks.start[i] + best] = state.now
        if slope <= _NOISE * (abs(s[best]) + abs(h)):
            break

        across = to_best * v[best] + from_worst * v[worst] + from_own * u
        length = (
            to_best * gram[best * room + best]
            + gram[worst * room + worst] * abs(from_worst)
            + abs(from_own) * u
            + 2.0
            * (
                to_best * from_worst * gram[best * room + worst]
                + to_best * from_own * v[best]
                + from_worst * from_own * v[worst]
            )
        )
        gamma = line_search(lam_n * slope, length, limit)
        scale = gamma / lam_n
        h += gamma * slope - scale * (across + gamma * length)
        u += gamma * (2.0 * across + gamma * length)
        shrink = 1.0 + gamma * from_own
        for p in range(m):
            r = (
                to_best * gram[best * room + p]
                + from_worst * gram[worst * room + p]
                + from_own * v[p]
            )
            s[p] -= scale * r
            v[p] += gamma * r
            if from_own != 0.0:
                alpha[p] *= shrink
                change[p] *= shrink
        if from_own != 0.0:
            own = (1.0 + own) * shrink - 1.0
        alpha[best] += gamma * to_best
        change[best] += gamma * to_best
        alpha[worst] += gamma * from_worst
        change[worst] += gamma * from_worst
        if from_worst != 0.0 and gamma == limit:
            alpha[worst] = 0.0
        best = _highest(s, m)

    numbers.square[i] = u
    delta_offset = own * blocks.term_offset[i]
    moved = own
    for p in range(m):
        moved += abs(change[p])
        delta_offset += change[p] * blocks.offset[blocks.start[i] + p]
    if moved == 0.0 and own == 0.0:
        return move(blocks, i, 0.0, 0.0, state)
    operations.set_direction_of_mixture(blocks, i, own, change)
    return move(blocks, i, 1.0, delta_offset, state)


@implements(operations.must_stay, SeveralSteps)
def _must_stay(policy, i, p):
    return policy.steps != FW and policy.simplex.alpha[policy.simplex.start[i] + p] != 0.0


@implements(operations.forget_plane, SeveralSteps)
def _forget_plane(policy, i, p):
    forget(policy.simplex, i, p)


# ---- what happens around passes ------------------------------------------------------------------


class SeveralStepVisits(Visits):
    """Visits of several steps, with the weights and inner products of planes, and terms' gaps.

    Parameters
    ----------
    phi : DualIterate
    N, T, inner_steps, cache_hit_factor
        As in `SeveralSteps`.
    steps : str
        One of ``STEPS``.
    shrink : float
        Approximate passes leave out terms whose gap was at most this share of the mean.
    in_out : float
        Share of the centre in the point where the oracle is called; 0: it is called at w.
    by_seconds : bool
        Whether ``cache_hit_factor`` is the mean seconds of a visit without oracle over those of a
        visit with it, in the run so far, and ``floor`` is 0.
    """

    STATE = ("policy.simplex", "policy.gaps", "policy.planes_gaps", "centre")
    LIMITS: ClassVar[Mapping[str, Limits]] = simplex.OF_SIMPLEX
    policy: SeveralSteps

    def __init__(
        self,
        phi: DualIterate,
        N: int,
        T: int,
        steps: str,
        inner_steps: int,
        cache_hit_factor: float = np.inf,
        shrink: float = 0.0,
        in_out: float = 0.0,
        by_seconds: bool = False,
    ) -> None:
        self.cache_hit_factor = cache_hit_factor if N > 0 else np.inf
        self.by_seconds = by_seconds and N > 0
        self.may_skip = self.cache_hit_factor < np.inf or self.by_seconds
        self.shrink, self.in_out = shrink, in_out
        self.centre = Centre(phi, in_out)
        n = phi.problem.n
        numbers = simplex.allocate(n), np.full(n, np.inf), np.zeros(n)
        kind = SkippingSteps if self.may_skip else SeveralSteps
        super().__init__(phi, kind(N, T, STEPS.index(steps), inner_steps, *numbers))

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        super()._rebuild(found)
        numbers = simplex.reserve(self.policy.simplex, self.phi.blocks.n_planes + 1)
        self.policy = self.policy._replace(simplex=numbers)

    def prepare(self, order: np.ndarray, whole: bool, clock: Clock) -> None:
        """Reserve space for a plane per visit, compute ``floor``, and move the centre."""
        policy, n_planes = self.policy, self.phi.blocks.n_planes
        visits = np.bincount(order, minlength=n_planes.size)
        if self.by_seconds and not whole:
            self.cache_hit_factor = clock.visit_share()
        if policy.N > 0:
            known = policy.gaps[np.isfinite(policy.gaps)]
            floor = 0.0 if self.by_seconds or not known.size else _FLOOR * float(known.mean())
            self.policy = policy._replace(
                simplex=simplex.reserve(policy.simplex, n_planes + visits + 1),
                cache_hit_factor=np.inf if whole else self.cache_hit_factor,
                floor=floor,
            )
        self.phi.reserve(visits)  # before there is a query, which is as large as w
        if self.in_out > 0:
            query = self.centre.move()
            self.phi.set(query=AT_W if whole else query, in_out=self.in_out)

    def not_shrunk(self, order: np.ndarray) -> np.ndarray:
        """Return the terms, without those with little to gain."""
        if self.shrink == 0:
            return order
        gaps = self.policy.planes_gaps
        return order[gaps[order] > self.shrink * gaps.mean()]

    def warm_start(self, clock: Clock) -> None:
        """Reserve space for the ground truths' planes, and reset the gaps."""
        self.prepare(np.arange(self.policy.gaps.size), True, clock)
        self.policy.gaps[:] = np.inf

    def renew(self, changed: np.ndarray) -> None:
        """Recompute the inner products of the terms that have changed, and reset the gaps."""
        self.policy.gaps[:] = np.inf
        simplex.renew(self.policy.simplex, self.phi.blocks, changed)

    def gap(self) -> float:
        """Return the gap over the working sets, as of the last approximate visits."""
        return float(self.policy.planes_gaps.sum()) / self.policy.gaps.size

    def changing(self) -> list[np.ndarray]:
        """Return the arrays that approximate passes change, as long as no plane is dropped."""
        return [getattr(self.policy.simplex, name) for name in simplex.CHANGED]


class Centre(Stateful):
    """The centre c of in-out separation, and the point between it and w where oracles are called.

    .. code-block:: text

        c ← c + (w − c)/2        query = (1 − s) w + s c

    Both are 0 where w has to be 0. The centre is stored only at the indices where w may be
    non-zero, whose number may grow during a run.

    Parameters
    ----------
    phi : DualIterate
        Restored before its centre.
    share : float
        s; 0: there is no centre and no query.
    """

    STATE = ("centre",)

    def __init__(self, phi: DualIterate, share: float) -> None:
        self.phi, self.share = phi, share
        self._places = phi.indices if share > 0 else None
        self.centre = np.zeros_like(phi.w[everywhere(self._places)] if share > 0 else AT_W)

    def _stored(self) -> dict[str, Any]:
        self._follow()
        return super()._stored()

    def move(self) -> np.ndarray:
        """Move the centre towards w; return a new query."""
        self._follow()
        there = everywhere(self._places)
        w = self.phi.w[there]
        self.centre += 0.5 * (w - self.centre)
        memory.trim(self.phi.w.size)
        query = np.zeros(self.phi.w.size)
        query[there] = (1.0 - self.share) * w + self.share * self.centre
        return query

    def _follow(self) -> None:
        """Store the centre at the indices where w may be non-zero now."""
        before, now, centre = self._places, self.phi.indices, self.centre
        if now is before or self.share == 0:
            return
        if before is None:
            self.centre = centre[now]
        else:
            self.centre = np.zeros(self.phi.w[everywhere(now)].size)
            self.centre[before if now is None else np.searchsorted(now, before)] = centre
        self._places = now
