"""Beyond the papers: MP-BCFW with several steps a visit, gap sampling, and oracles called by need.

The loop and its options N, M, T and average are those of
:mod:`ssvm_bench.solvers.block.mpbcfw`. With

===========  ==================================================================================
option       meaning
===========  ==================================================================================
steps        ``fw``, ``away`` or ``pairwise``: directions of the steps; for the last two, planes
             with weight are never dropped
inner_steps  most steps of a visit, exact or approximate, over the planes of its term
sampling     ``permutation``, or ``gap``: terms of an exact pass are drawn in proportion to their
             gap at their last exact call
refresh      every so many iterations, the exact pass calls the oracle of every term once
share        a term's planes will do without its oracle, if their gap is at least this share of
             that of its last exact call, and a hundredth of the mean; null: every visit of an
             exact pass calls the oracle
shrink       approximate passes, but for the first of an iteration, leave out the terms whose
             planes had less than this share of the mean gap when they were last visited; 0: none
kappa        approximate passes, but for the first of an iteration, are accelerated: the largest
             κ/λ of :mod:`ssvm_bench.solvers.block.acceleration`; 0: none
===========  ==================================================================================

``steps=fw inner_steps=1 sampling=permutation share=null shrink=0 kappa=0`` is MP-BCFW itself, but
for rounding. The steps are derived, and the sources of all options named, in
:mod:`ssvm_bench.solvers.block.multi_step_kernels`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from ssvm_bench import random
from ssvm_bench.clock import Clock
from ssvm_bench.config.validation import check_at_least, check_choice
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.planes import (
    labeling_products,  # noqa: F401
    labelings,
    row_products,  # noqa: F401
    rows,
    simplex,
)
from ssvm_bench.problem import Problem
from ssvm_bench.solvers.block import kernels, mpbcfw
from ssvm_bench.solvers.block.acceleration import Acceleration
from ssvm_bench.solvers.block.mpbcfw import BlockSolver, LabelingSolver, RowSolver
from ssvm_bench.solvers.block.multi_step_kernels import AWAY, FW, PAIRWISE, Cached

CODE_VERSION = 1

STEPS = {"fw": FW, "away": AWAY, "pairwise": PAIRWISE}
SAMPLING = ("permutation", "gap")

_DRAWS = 10
"""Parts of an exact pass under gap sampling; between them, gaps are looked at anew."""

_LEAST_KAPPA = 0.01
"""Below so many λ, passes that lower F are not accelerated ones gone astray, but at their end."""

_FLOOR = 0.01
"""The planes of a term must also have this share of the mean gap (Osokin et al., ν)."""


@dataclass(frozen=True)
class Config:
    """Options; see the module's docstring."""

    name: str
    kind: str
    N: int
    M: int
    T: int
    steps: str
    inner_steps: int
    sampling: str
    refresh: int
    share: float | None
    shrink: float
    kappa: float
    average: bool

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("solver.N", self.N, 0)
        check_at_least("solver.M", self.M, 0)
        check_at_least("solver.T", self.T, 1)
        check_choice("solver.steps", self.steps, tuple(STEPS))
        check_at_least("solver.inner_steps", self.inner_steps, 1)
        check_choice("solver.sampling", self.sampling, SAMPLING)
        check_at_least("solver.refresh", self.refresh, 1)
        check_at_least("solver.shrink", self.shrink, 0)
        check_at_least("solver.kappa", self.kappa, 0)
        if self.share is not None:
            check_at_least("solver.share", self.share, 0)


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> BlockSolver:
    """Return the solver at φ^i = 0 for all i."""
    if isinstance(problem.oracle, LabelingOracle):
        return CachedLabelingSolver(config, problem, clock, seed)
    return CachedRowSolver(config, problem, clock, seed)


class Caching(BlockSolver):
    """What the options change of the loop, whatever the storage."""

    policy: Cached
    storage: ModuleType

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        of_block = mpbcfw.Config(
            name=config.name,
            kind="block",
            N=config.N,
            M=config.M,
            T=config.T,
            step="line_search",
            sampling="permutation",
            average=config.average,
        )
        super().__init__(of_block, problem, clock, seed)  # type: ignore[call-arg]
        self.options = config
        self.sparing = config.share is not None and config.N > 0
        self.share = np.inf if config.share is None else float(config.share)
        self.policy = Cached(
            N=config.N,
            T=config.T,
            steps=STEPS[config.steps],
            inner_steps=config.inner_steps,
            share=self.share,
            floor=0.0,
            simplex=simplex.allocate(problem.n),
            gaps=np.full(problem.n, np.inf),
            planes_gaps=np.zeros(problem.n),
            drops=np.zeros(1, np.int64),
        )
        if config.N > 0:
            self.most_planes = sys.maxsize  # those with weight stay
        self.acceleration = Acceleration(problem.lam, config.kappa)
        self._saved: list[np.ndarray] = []
        self._saved_dual = -np.inf
        self._begin = 0
        self._bits = np.random.PCG64([seed, 1])

    def go_on(self, lam: float, clock: Clock) -> None:
        """Go on with another λ; what is known of gaps belongs to the old one."""
        if self.config.N > 0:
            self._reserve(np.ones(self.problem.n, np.int64))
        super().go_on(lam, clock)
        self.policy.gaps[:] = np.inf
        self.acceleration = Acceleration(lam, self.options.kappa)
        self._begin = self.iteration

    def _exact_pass(self, order: np.ndarray) -> kernels.Tally:
        """Do the exact pass, in parts if its terms are drawn."""
        if self._refreshes():
            return self._part(order, np.inf)
        if self.options.sampling == "permutation":
            return self._part(order, self.share)
        n = self.problem.n
        sizes = np.diff(np.linspace(0, n, _DRAWS + 1).astype(int))
        parts = [self._part(self._drawn(size), self.share) for size in sizes if size]
        calls = sum(part.calls for part in parts)
        return kernels.Tally(
            changed=sum(part.changed for part in parts),
            share=sum(part.share * part.calls for part in parts) / max(calls, 1),
            calls=calls,
            spared=sum(part.spared for part in parts),
            evaluated=sum(part.evaluated for part in parts),
        )

    def _visits_every_term(self) -> bool:
        """Tell whether the exact pass of this iteration is a permutation."""
        return self.options.sampling == "permutation" or self._refreshes()

    def _refreshes(self) -> bool:
        """Tell whether the exact pass of this iteration calls the oracle of every term."""
        return (self.iteration - self._begin - 1) % self.options.refresh == 0

    def _worth_visiting(self, order: np.ndarray) -> np.ndarray:
        """Leave out the terms with little to gain, but in the first approximate pass."""
        if self.approx_passes == 0 or self.options.shrink == 0:
            return order
        gaps = self.policy.planes_gaps
        return order[gaps[order] > self.options.shrink * gaps.mean()]

    def _approximate_pass(self, order: np.ndarray) -> int:
        """Do an approximate pass, accelerated but for the first."""
        if self.options.kappa == 0 or self.approx_passes == 0:
            return super()._approximate_pass(order)
        w, average = self.state.w, self.approximate_average
        if self.approx_passes == 1:
            self.acceleration.begin(w)
            self._saved = [array.copy() for array in self._current()]
            self._saved_dual = self._dual()
        z = average.z.copy()
        lam = self.acceleration.enter(w)
        evaluated = kernels.approximate_pass(
            self.policy._replace(T=sys.maxsize),  # what has been saved must stay
            self.blocks,
            order,
            self.state,
            average,
            self.rule._replace(lam=lam),
            self.iteration,
        )
        self.acceleration.leave(w)
        average.z[:] = z + (lam / self.rule.lam) * (average.z - z)  # in units of w, not of w̃
        return evaluated

    def _tries_again(self, gain: float) -> bool:
        """After an accelerated pass that lowered F, begin anew."""
        if gain >= 0 or self.acceleration.kappa < _LEAST_KAPPA * self.rule.lam:
            return False
        self.acceleration.fail(self.state.w)
        return True

    def _end_of_passes(self) -> None:
        """Undo the accelerated passes of an iteration if they have lowered F all in all."""
        if self._saved and self._dual() < self._saved_dual:
            for array, saved in zip(self._current(), self._saved, strict=True):
                array[:] = saved
        self._saved = []

    def _current(self) -> list[np.ndarray]:
        """Return what approximate passes change, as long as no plane is dropped."""
        kept = (
            (self.blocks, self.storage.CHANGED),
            (self.policy.simplex, simplex.CHANGED),
            (self.state, ("w", "circ")),
            (self.approximate_average, ("z", "circ", "k")),
        )
        return [getattr(owner, name) for owner, names in kept for name in names]

    def _part(self, order: np.ndarray, share: float) -> kernels.Tally:
        """Visit terms, with room for a new plane at every visit."""
        if self.config.N > 0:
            self._reserve(np.bincount(order, minlength=self.problem.n))
            known = self.policy.gaps[np.isfinite(self.policy.gaps)]
            floor = _FLOOR * float(known.mean()) if known.size else 0.0
            self.policy = self.policy._replace(share=share, floor=floor)
        return super()._exact_pass(order)  # type: ignore[safe-super]

    def _reserve(self, visits: np.ndarray) -> None:
        """Make room for a new plane per visit of each term."""
        grown = simplex.reserve(self.policy.simplex, self.blocks.n_planes + visits + 1)
        self.policy = self.policy._replace(simplex=grown)

    def _drawn(self, size: int) -> np.ndarray:
        """Draw terms in proportion to their last known gaps, with replacement."""
        total = np.cumsum(self.policy.gaps)
        if not 0.0 < total[-1] < np.inf:
            return random.permutation(self.problem.n, self._bits)[:size]
        drawn = random.uniform((size,), self._bits) * total[-1]
        return np.minimum(np.searchsorted(total, drawn, side="right"), self.problem.n - 1)


class CachedLabelingSolver(Caching, LabelingSolver):
    """For compiled oracles over labels."""

    storage = labelings


class CachedRowSolver(Caching, RowSolver):
    """For any oracle."""

    storage = rows
