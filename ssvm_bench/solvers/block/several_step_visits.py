"""The state of visits of several steps, beside φ and the working sets.

It has the weights and inner products of planes, the gaps of terms, and the centre of in-out
separation. The steps themselves are in :mod:`ssvm_bench.solvers.block.several_steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.state import Stateful, expect
from ssvm_bench.planes import simplex
from ssvm_bench.planes.dual_iterate import DualIterate, everywhere
from ssvm_bench.planes.shared import AT_W
from ssvm_bench.solvers.block.mpbcfw import Visits
from ssvm_bench.solvers.block.several_steps import STEPS, SeveralSteps

_FLOOR = 0.01
"""``floor`` of `SeveralSteps`, as a share of the mean gap (Osokin et al., ν)."""


class SeveralStepVisits(Visits):
    """Visits of several steps.

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
        super().__init__(phi, SeveralSteps(N, T, STEPS.index(steps), inner_steps, *numbers))

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        super().restore(state)
        numbers = simplex.fitted(self.policy.simplex, self.phi.blocks.n_planes)
        self.policy = self.policy._replace(simplex=numbers)

    def prepare(self, order: np.ndarray, whole: bool, clock: Clock) -> None:
        """Reserve space for a plane per visit, compute ``floor``, and move the centre."""
        if self.in_out > 0:
            query = self.centre.move()
            self.phi.set(query=AT_W if whole else query, in_out=self.in_out)
        policy, n_planes = self.policy, self.phi.blocks.n_planes
        if self.by_seconds and not whole:
            self.cache_hit_factor = clock.visit_share()
        if policy.N > 0:
            known = policy.gaps[np.isfinite(policy.gaps)]
            floor = 0.0 if self.by_seconds or not known.size else _FLOOR * float(known.mean())
            visits = np.bincount(order, minlength=n_planes.size)
            self.policy = policy._replace(
                simplex=simplex.reserve(policy.simplex, n_planes + visits + 1),
                cache_hit_factor=np.inf if whole else self.cache_hit_factor,
                floor=floor,
            )

    def worth_visiting(self, order: np.ndarray) -> np.ndarray:
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

    STATE = GROWS = ("centre",)

    def __init__(self, phi: DualIterate, share: float) -> None:
        self.phi, self.share = phi, share
        self._begin()

    def _begin(self) -> None:
        self._places = self.phi.indices if self.share > 0 else None
        self.centre = np.zeros_like(
            self.phi.w[everywhere(self._places)] if self.share > 0 else AT_W
        )

    def state(self) -> dict[str, Any]:
        """See `Stateful`."""
        self._follow()
        return super().state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        self._begin()
        size = self.centre.size
        super().restore(state)
        expect(self.centre.size == size, "has another size")

    def move(self) -> np.ndarray:
        """Move the centre towards w; return a new query."""
        self._follow()
        there = everywhere(self._places)
        w = self.phi.w[there]
        self.centre += 0.5 * (w - self.centre)
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
