"""Block-coordinate Frank–Wolfe: BCFW and MP-BCFW, plain and averaged (MP-BCFW, Algorithm 3).

.. code-block:: text

    repeat                                                        one outer iteration
        for i in order: φ̂^i ← exact oracle;        step; add φ̂^i to W_i          exact pass
        up to M times:
            for i in order: φ̂^i ← argmax over W_i;  step; drop inactive planes    approximate pass

BCFW is N = M = 0: the same loop without working sets, so that times are comparable.

===========  ==================================================================================
option       meaning
===========  ==================================================================================
N            most planes of a working set W_i; over it, the longest inactive is dropped
M            most approximate passes of an outer iteration
T            planes not active during the last T outer iterations are dropped (approximate pass)
step         ``line_search``, or ``2n/(k+2n)`` with k the number of steps so far (BCFW, Alg. 4)
sampling     ``permutation``: one per outer iteration, shared by its passes; ``uniform``: n draws
             with replacement
average      report the interpolation, with the best dual, of the averages over exact and over
             approximate steps (section 3.5)
===========  ==================================================================================

Number of approximate passes (section 3.4): after each, its increase of F per second is compared
with that of the iteration so far, from the start of the exact pass; lower ends the iteration.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from ssvm_bench import random
from ssvm_bench.clock import Clock
from ssvm_bench.config.validation import check_at_least, check_choice
from ssvm_bench.errors import ConfigError
from ssvm_bench.jit import kernel
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import Plane
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.planes import labelings, rows
from ssvm_bench.problem import Problem, best_interpolation, best_scale
from ssvm_bench.solvers.base import Iterate, Solver
from ssvm_bench.solvers.block import kernels
from ssvm_bench.solvers.fw import STEPS

CODE_VERSION = 1

SAMPLING = ("permutation", "uniform")

_REBUILD_EVERY = 10
"""Outer iterations between two recomputations of φ = Σ_i φ^i."""


@dataclass(frozen=True)
class Config:
    """Options of the block solvers; see the module's docstring."""

    name: str
    kind: str
    N: int
    M: int
    T: int
    step: str
    sampling: str
    average: bool

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("solver.N", self.N, 0)
        check_at_least("solver.M", self.M, 0)
        check_at_least("solver.T", self.T, 1)
        check_choice("solver.step", self.step, STEPS)
        check_choice("solver.sampling", self.sampling, SAMPLING)
        if self.step != "line_search" and self.N > 0 and self.M > 0:
            raise ConfigError(
                f"solver.step={self.step} is for exact steps only: a step of fixed length towards "
                "a cached plane can lower the dual. Set solver.M=0, or solver.step=line_search."
            )


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> BlockSolver:
    """Return the solver at φ^i = 0 for all i."""
    if isinstance(problem.oracle, LabelingOracle):
        return LabelingSolver(config, problem, clock, seed)
    return RowSolver(config, problem, clock, seed)


class BlockSolver(Solver):
    """The loop of Algorithm 3; the storage of the planes is the subclass's.

    Attributes
    ----------
    blocks : NamedTuple
        φ^i and W_i, see :mod:`ssvm_bench.planes.blocks`.
    state : State
        φ, as w and φ∘.
    policy : NamedTuple
        What a visit does, see :mod:`ssvm_bench.solvers.block.kernels`.
    most_planes : int
        Most planes that a working set has after a pass.
    sparing : bool
        Whether the policy ever does without the exact oracle.
    """

    blocks: labelings.Labelings | rows.Rows
    sparing: bool = False
    follows_paths = True

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int, D: int) -> None:
        super().__init__(problem, clock)
        self.config = config
        self.iteration = 0
        self.rule = kernels.Rule(problem.lam, config.step == "line_search")
        self.policy: Any = kernels.WorkingSets(config.N, config.T)
        self.most_planes = config.N
        self.state = kernels.State(np.zeros(D), np.zeros(1), np.zeros(1, np.int64))
        self.exact_average = self._new_average()
        self.approximate_average = self._new_average()
        self._orders = orders(problem.n, config.sampling, seed)

    def iterate(self) -> None:
        """Do one exact pass and as many approximate passes as pay."""
        start, dual_before = self.clock.now(), self._dual()
        self.iteration += 1
        if self.iteration % _REBUILD_EVERY == 0:
            self.state.circ[0] = kernels.sum_of_planes(self.blocks, self.rule.lam, self.state.w)
        order = next(self._orders)
        self.approx_passes = 0

        phi = self._copy_of_phi()
        with self.clock.exact(order.size) as count:
            tally = self._exact_pass(order)
            count.calls, count.share = tally.calls, tally.share
        if tally.spared:
            self.clock.approximate(tally.spared, tally.evaluated)
        self._shift(self.approximate_average, *phi)
        all_asked = tally.spared == 0 and self._visits_every_term()
        optimal = tally.changed == 0 and all_asked and self.rule.line_search
        self.converged = optimal and not self.config.average  # an average is still on its way
        if self.config.N == 0 or self.config.M == 0 or optimal:
            return

        phi = self._copy_of_phi()
        before, dual = self.clock.now(), self._dual()
        while self.approx_passes < self.config.M:
            visited = self._worth_visiting(order)
            evaluated = self._approximate_pass(visited)
            self.clock.approximate(visited.size, evaluated)
            self.approx_passes += 1
            now, new_dual = self.clock.now(), self._dual()
            # slopes, compared without dividing by what a coarse clock may call zero
            pays = (new_dual - dual) * (now - start) > (new_dual - dual_before) * (now - before)
            if not pays and not self._tries_again(new_dual - dual):
                break
            before, dual = now, new_dual
        self._end_of_passes()
        self._shift(self.exact_average, *phi)

    def go_on(self, lam: float, clock: Clock) -> None:
        """Go on with another λ from the best multiple of φ, with all working sets."""
        state = self.state
        scale = best_scale(state.w, float(state.circ[0]), self.rule.lam, lam)
        self._scale_terms(scale)
        state.w[:] *= scale * self.rule.lam / lam
        state.circ[0] *= scale
        state.steps[0] = 0
        self.rule = self.rule._replace(lam=lam)
        self.exact_average = self._new_average()
        self.approximate_average = self._new_average()
        self.problem, self.clock = replace(self.problem, lam=lam), clock
        self.converged = False

    def reported(self) -> Iterate:
        """Return φ, or the best interpolation of its averages."""
        w, circ = self.state.w, float(self.state.circ[0])
        if self.config.average:
            averages = [
                (self._outer(w - average.z / weight), circ - float(average.circ[0]) / weight)
                for average in (self.exact_average, self.approximate_average)
                if (weight := 0.5 * average.k[0] * (average.k[0] + 1.0)) > 0
            ]
            if averages:
                best, circ = best_interpolation(self.problem, averages[0], averages[-1])
                return Iterate(best, self.problem.dual(best, circ))
        w = self._outer(w)
        return Iterate(w, self.problem.dual(w, circ))

    def working_set_mean(self) -> float:
        """Return the mean of |W_i|."""
        return float(self.blocks.n_planes.mean())

    def _visits_every_term(self) -> bool:
        """Tell whether the exact pass of this iteration visits every term."""
        return self.config.sampling == "permutation"

    def _worth_visiting(self, order: np.ndarray) -> np.ndarray:
        """Return the terms that the next approximate pass visits."""
        return order

    def _approximate_pass(self, order: np.ndarray) -> int:
        """Do an approximate pass; return the number of planes evaluated."""
        return kernels.approximate_pass(
            self.policy,
            self.blocks,
            order,
            self.state,
            self.approximate_average,
            self.rule,
            self.iteration,
        )

    def _tries_again(self, gain: float) -> bool:
        """Tell whether to go on after an approximate pass that did not pay, and gained so much."""
        return False

    def _end_of_passes(self) -> None:
        """Do what is left to do after the last approximate pass of an iteration."""

    @abstractmethod
    def _exact_pass(self, order: np.ndarray) -> kernels.Tally:
        """Do the exact pass."""

    @abstractmethod
    def _scale_terms(self, scale: float) -> None:
        """Multiply every φ^i by ``scale``, and have the ground truths' planes in the W_i."""

    @abstractmethod
    def _outer(self, w: np.ndarray) -> np.ndarray:
        """Return w in the outer layout, as a copy."""

    def _dual(self) -> float:
        """Return F(φ), in an order of summation that does not depend on the machine."""
        norm2 = kernels.squared_norm(self.state.w)
        return float(self.state.circ[0]) - 0.5 * self.problem.lam * norm2

    def _new_average(self) -> kernels.Average:
        size = self.state.w.size if self.config.average else 0
        return kernels.Average(np.zeros(size), np.zeros(1), np.zeros(1, np.int64))

    def _copy_of_phi(self) -> tuple[np.ndarray | None, float]:
        w = self.state.w.copy() if self.config.average else None
        return w, float(self.state.circ[0])

    def _shift(self, average: kernels.Average, w: np.ndarray | None, circ: float) -> None:
        """Let Z know of the steps of a pass of the other kind, which all have the same weight."""
        if w is not None:
            weight = 0.5 * average.k[0] * (average.k[0] + 1.0)
            average.z[:] += weight * (self.state.w - w)
            average.circ[0] += weight * (self.state.circ[0] - circ)


class LabelingSolver(BlockSolver):
    """For compiled oracles over labels: a whole pass is one compiled call."""

    blocks: labelings.Labelings

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        self.oracle: LabelingOracle = problem.oracle  # type: ignore[assignment]
        self.features = self.oracle.features
        super().__init__(
            config, problem, clock, seed, joint_features.inner_dimension(self.features)
        )
        self.blocks = labelings.allocate(self.features)
        kernels.remember_truth(self.blocks, config.N, 0)

    def _exact_pass(self, order: np.ndarray) -> kernels.Tally:
        visits = np.bincount(order, minlength=self.problem.n)
        self.blocks = labelings.reserve(self.blocks, visits, self.most_planes)
        return kernels.exact_pass(
            self.policy,
            self.oracle.compiled,
            self.blocks,
            order,
            self.state,
            self.exact_average,
            self.rule,
            self.iteration,
        )

    def _scale_terms(self, scale: float) -> None:
        visits = np.ones(self.problem.n, np.int64)
        self.blocks = labelings.reserve(self.blocks, visits, self.most_planes)
        kernels.scale_labelings(self.policy, self.blocks, scale, self.iteration)

    def _outer(self, w: np.ndarray) -> np.ndarray:
        return joint_features.unpack(self.features, w)


class RowSolver(BlockSolver):
    """For any oracle: called from Python, its planes kept as rows."""

    blocks: rows.Rows

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(config, problem, clock, seed, problem.d)
        self.blocks = rows.allocate(problem.n, problem.d)
        kernels.remember_truth(self.blocks, config.N, 0)

    def _exact_pass(self, order: np.ndarray) -> kernels.Tally:
        oracle, changed, oracle_time, begin = self.problem.oracle, 0, 0.0, perf_counter()
        spared = evaluated = 0
        for i in order.tolist():
            if self.sparing:
                seen = self._spare_step(i)
                if seen > 0:
                    spared, evaluated = spared + 1, evaluated + seen
                    continue
            start = perf_counter()
            plane = oracle.plane(i, oracle.argmax(self.state.w, i))
            oracle_time += perf_counter() - start
            moved, *room = self._step(i, plane)
            if any(room):
                self.blocks = rows.make_room(self.blocks, i, *room)
                moved, *_ = self._step(i, plane)
            changed += moved
        share = oracle_time / (perf_counter() - begin)
        return kernels.Tally(changed, share, order.size - spared, spared, evaluated)

    def _step(self, i: int, plane: Plane) -> tuple[bool, int, int]:
        return kernels.exact_step(
            self.policy,
            self.blocks,
            i,
            *plane,
            self.state,
            self.exact_average,
            self.rule,
            self.iteration,
        )

    def _spare_step(self, i: int) -> int:
        return kernels.spare_step(
            self.policy,
            self.blocks,
            i,
            self.state,
            self.exact_average,
            self.rule,
            self.iteration,
        )

    def _scale_terms(self, scale: float) -> None:
        nothing = Plane(np.zeros(0, np.int64), np.zeros(0), 0.0)
        for i in range(self.problem.n):
            room = self._scale_term(i, nothing, scale)
            if any(room):
                self.blocks = rows.make_room(self.blocks, i, *room)
                self._scale_term(i, nothing, scale)

    def _scale_term(self, i: int, truth: Plane, scale: float) -> tuple[int, int]:
        return kernels.scale_row(self.policy, self.blocks, i, *truth, scale, self.iteration)

    def _outer(self, w: np.ndarray) -> np.ndarray:
        return w.copy()


def orders(n: int, sampling: str, seed: int) -> Iterator[np.ndarray]:
    """Yield the order of the terms in each outer iteration, int64, shape (n,).

    The stream depends on the seed only: repeat r gives every solver the same orders.
    """
    bits = np.random.PCG64(seed)
    while True:
        raw = bits.random_raw(n)
        if sampling == "permutation":
            order = np.arange(n)
            _swap(order, random.swap_targets(raw))
            yield order
        else:
            yield (((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)


_swap = kernel(random.swap)
