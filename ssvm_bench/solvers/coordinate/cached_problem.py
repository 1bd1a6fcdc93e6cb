"""The problem of the examples in a cache, which dual coordinate descent optimises (Algorithm 2).

Of n examples, those of A are cached, with the planes found so far. Those of B have left the cache
with fixed weights, and contribute φ^B = Σ_{i∈B} φ^i. The others contribute 0:

.. code-block:: text

    LB = F(φ)                  φ = φ^A + φ^B
    UB = λ/2 ‖w‖² + ⟨φ^B, [w 1]⟩ + 1/n Σ_{i∈A} max(0, max_p g_ip)

φ is feasible for the problem of all n, so that LB is below its optimum; UB is above that of the
cached problem only. UB − LB = 1/n Σ_{i∈A} ( max(0, max_p g_ip) − Σ_p α_ip g_ip ) ≥ 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.interrupts import interruptible
from ssvm_bench.base.linalg import dot, squared_norm
from ssvm_bench.base.state import Stateful, expect
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import cache as caches
from ssvm_bench.planes import dual_iterate
from ssvm_bench.planes.cache import PLANES, TERMS
from ssvm_bench.planes.shared import at_zero
from ssvm_bench.solvers.coordinate.nonnegative import cone
from ssvm_bench.solvers.coordinate.turns import coordinates
from ssvm_bench.solvers.orders import permutation

_BETWEEN = 4
"""Number of sweeps over some examples between two over all."""

_SHRINK = 0.1
"""Sweeps over some examples leave out violations of less than this share of the mean."""

_WORDS = 1 << 14
"""Least number of random words that are drawn at once."""


class CachedProblem(Stateful):
    """The cache, its weights, and w.

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
    state : State
        w, and φ∘ in the units of the cache (:mod:`ssvm_bench.planes.cache`).
    fixed : int
        |B|.
    """

    STATE = (
        *("cache", "fixed", "_fixed_w", "_fixed_offset", "_bits", "_orders"),
        *("policy.words", "policy.drawn", "policy.steps", "policy.violations", "policy.cone.v"),
        *("policy.epsilon", "shared.w", "shared.offset"),
    )
    GROWS = ("policy.words",)

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

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        super().restore(state)
        policy, example = self.policy, self.cache.example
        expect(bool((example < self.n).all()), "has an example that there is not")
        expect(int(policy.drawn[0]) <= policy.words.size, "has drawn words that are not there")
        self.policy = policy._replace(simplex=self.cache.numbers)

    @property
    def planes(self) -> int:
        """Number of cached planes, those of the ground truths not counted."""
        return int(self.cache.used[PLANES])

    @property
    def terms(self) -> int:
        """Number of cached examples, including those closed since the last compaction."""
        return int(self.cache.used[TERMS])

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
        evaluated = dual_iterate.approximate_pass(self.policy, cached, order, self.shared)
        clock.approximate(order.size, evaluated)

    def begin_anew(self) -> None:
        """Give all weight of the cached examples back to their ground truths: α = 0."""
        blocks, used = self.cache.blocks, self.cache.used
        self.cache.numbers.alpha[:] = 0.0
        self.cache.numbers.alpha[blocks.start[: used[TERMS]]] = 1.0
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
        order = np.argsort(-self._lowest[: used[TERMS]], kind="stable")
        order = order[cache.example[order] >= 0]
        planes = cache.blocks.n_planes[order] - 1
        leaving = order[np.cumsum(planes) - planes < used[PLANES] - most]
        scale = -1.0 / (self.lam * self.n)
        self._fixed_offset += caches.add_terms(cache, leaving, scale, self._fixed_w) / self.n
        self.fixed += leaving.size
        cache.blocks.n_planes[leaving], cache.example[leaving] = 0, -1
        caches.compact(cache, True)

    def recompute(self) -> None:
        """Recompute w and φ∘ from the weights, so that rounding errors do not add up."""
        w, limits, terms = self.shared.w, self.policy.cone, np.arange(self.cache.used[TERMS])
        v = limits.v if limits.floor.size else w
        v[:] = self._fixed_w
        offset = caches.add_terms(self.cache, terms, -1.0 / (self.lam * self.n), v) / self.n
        if limits.floor.size:
            np.maximum(v, limits.floor, out=w)
        self.shared.offset[0] = (self._fixed_offset + offset) / self._unit
