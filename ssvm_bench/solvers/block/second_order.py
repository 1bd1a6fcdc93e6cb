"""MP-BCFW with second-order steps on the weights of all planes at once.

The loop, its passes and their options are those of :mod:`ssvm_bench.solvers.block.mpbcfw_beyond`.
After the approximate passes of an iteration, a step sets the weights of all planes in use to those
that maximise F (:mod:`ssvm_bench.solvers.block.interior_point`), if that is expected to pay. Planes
with weight and planes above φ^i are in use, of the terms that have several of them.

.. code-block:: text

    G = 1/n Σ_i max_p ⟨n φ^{ip} − n φ^i, [w 1]⟩          the gap over the working sets
    it pays if      G/20 / seconds of the step  >  increase of F per second in this iteration

The seconds of a step of m planes are estimated, not measured: m(m + 1)/2 inner products, of all
pairs of planes, each as long as the run has taken per evaluated plane so far, without the time of
oracles. The same number of planes is counted as evaluated.

**A limit.** With ``newton_share``, the seconds of all steps are at most that share of the run's
other seconds, on its clock. Where calls of the oracle are cheap, passes gain as much as steps, and
the limit bounds what is lost; where they are dear, no time of a step is noticed. Then the factors
count, too, as m³/2000 planes, and looking at all planes, for G and m, is part of a step; neither is
done if looking alone would not pay, by the gaps of the last visits. Nor is it done in the first
second of a run: that is what compiling the kernels takes, off the clock.

The step goes from α to the best weights, as far as a line search says: all the way, except for
rounding. So F rises from row to row of the trace, and all certificates stay valid. The factors are
LAPACK's, so that the last bits depend on the machine, even with ``clock=work``.

Features of kernels have no rows, and ``steps=fw`` keeps no weights. Then there are no steps; with
``newton_share=null``, such options are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import applied, inner, line_search
from ssvm_bench.config.validation import Count, NotNegative
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import operations
from ssvm_bench.planes.simplex import Simplex, complete
from ssvm_bench.solvers.block import mpbcfw_beyond
from ssvm_bench.solvers.block.interior_point import Weights, maximise
from ssvm_bench.solvers.block.mpbcfw import MultiPlane, PlainPasses, move
from ssvm_bench.solvers.block.several_steps import SeveralStepVisits

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

_SHARE = 0.05
"""Share of the gap over the W_i that a step gains: 0.01 to 0.06 where steps begin to pay."""

_ACCURACY = 1e-10
"""Share of the gap over the working sets that a step leaves."""

_FACTORS = 2000
"""A factor of m planes takes as long as m³ planes are evaluated in, divided by this."""

_EARLIEST = 1.0
"""Seconds of a run, on its clock, before steps are considered if they have a limit."""

_NOISE = 1e-15
"""Changes of F and gaps below this, relative to F, are rounding."""

_SPARSE = 0.02
"""Rows with a smaller share of non-zeros are multiplied as sparse matrices."""

_COLUMNS = 1024
"""Number of columns that are made dense at a time."""


@dataclass(frozen=True)
class Config(mpbcfw_beyond.Config):
    """Options; see the module's docstring.

    Attributes
    ----------
    newton_planes : int
        Most planes of a step, m, besides one of each term; with more, there is no step. A step
        takes 24 m² bytes.
    newton_share : float, optional
        Most time of steps, as a share of the run's other time, on its clock; null: no limit.
    """

    newton_planes: Count = 6000
    newton_share: NotNegative | None = None

    @property
    def takes_kernels(self) -> bool:  # type: ignore[override]
        """Whether it can do without steps, which features of kernels do not have."""
        return self.newton_share is not None

    @property
    def may_step(self) -> bool:
        """Whether planes have weights, and there are passes after which to step."""
        return self.steps != "fw" and min(self.N, self.M) > 0

    def __post_init__(self) -> None:
        """Check that steps without a limit are possible."""
        super().__post_init__()
        if self.newton_share is None and not self.may_step:
            raise ConfigError(
                f"solver={self.name} needs the weights of planes: set solver.steps to pairwise or "
                "away, and neither solver.N nor solver.M to 0."
            )


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> MultiPlane:
    """Return the solver at φ^i = 0 for all i; `MultiPlane.begin` goes to its start."""
    solver = mpbcfw_beyond.build(config, problem, clock, seed)
    if config.may_step and not solver.phi.has_kernel:
        share = math.inf if config.newton_share is None else config.newton_share
        solver.passes = PassesAndStep(solver.passes, config.newton_planes, share)
    return solver


class PassesAndStep(PlainPasses):
    """Approximate passes; those of an iteration end with a second-order step if it pays.

    Parameters
    ----------
    passes : PlainPasses
    most : int
        Most planes besides bases.
    share : float
        Most seconds of steps, as a share of all others.
    """

    STATE = ("passes", "_before", "_spent")

    visits: SeveralStepVisits

    def __init__(self, passes: PlainPasses, most: int, share: float) -> None:
        super().__init__(passes.visits)
        self.passes, self.most, self.share = passes, most, share
        self._before = (0.0, 0.0)  # clock and F at the end of the last iteration
        self._spent = 0.0  # seconds of steps
        self._clock: Clock | None = None
        self._compiled: set[str] = set()

    def do(self, number: int, order: np.ndarray, clock: Clock) -> float:
        """Do pass ``number`` of an iteration, counted from 0, over the terms in ``order``."""
        self._clock = clock
        return self.passes.do(number, order, clock)

    @property
    def rule_applies(self) -> bool:
        """Whether to apply the rule that ends the passes after the last one."""
        return self.passes.rule_applies

    def end(self) -> None:
        """Finish the passes of an iteration, and do a second-order step if it pays."""
        self.passes.end()
        clock, phi = self._clock, self.phi
        assert clock is not None
        n_planes, start = phi.blocks.n_planes, (clock.now(), phi.dual())
        terms = np.flatnonzero(n_planes > 1)
        seen, limited = int(n_planes[terms].sum()), math.isfinite(self.share)
        late = start[0] >= _EARLIEST
        if not limited or (late and self._pays(clock, seen, self.visits.gap(), start)):
            self._once(clock, self._compile_look)
            found = self._look(terms, seen)
            clock.approximate(terms.size, seen)
            n, gap, noise = phi.problem.n, found.gap() / phi.problem.n, _NOISE * abs(start[1])
            found = found.of_use()
            m = found.others.size
            work = m * (m + 1) // 2 + (m**3 // _FACTORS if limited else 0)
            if gap > noise and m <= self.most and self._pays(clock, work, gap, start):
                self._once(clock, self._compile_step)
                self._step(found, n * max(_ACCURACY * gap, 0.1 * noise), n * noise)
                clock.approximate(found.lo.size, work)
            self._spent += clock.now() - start[0]
        self._before = clock.now(), phi.dual()

    def _pays(self, clock: Clock, planes: int, gap: float, start: tuple[float, float]) -> bool:
        """Return whether so much work, from the start of a step, pays by a share of a gap."""
        (now, dual), (then, before) = start, self._before
        seconds = planes * (now - clock.oracle_time) / max(clock.plane_evaluations, 1)
        quicker = _SHARE * gap * (now - then) > (dual - before) * seconds
        return quicker and self._spent + seconds <= self.share * (now - self._spent)

    def warm_start(self, lam: float) -> None:
        """Begin with another λ, and a clock of its own."""
        self.passes.warm_start(lam)
        self._before, self._spent = (0.0, 0.0), 0.0

    def _once(self, clock: Clock, compile_: Callable[[], None]) -> None:
        """Compile kernels off the clock, unless it has been done."""
        if compile_.__name__ not in self._compiled:
            with clock.paused():
                compile_()
            self._compiled.add(compile_.__name__)

    def _compile_look(self) -> None:
        self._look(np.zeros(0, np.int64), 0)

    def _compile_step(self) -> None:
        none = np.zeros(0, np.int64)
        nothing = self._look(none, 0)
        self._rows(nothing)
        applied(np.zeros((1, 1)), np.zeros(1))
        numbers = nothing, none, np.zeros(0)
        _shift(self.visits.policy, self.phi.blocks, *numbers, self.phi.shared)

    @property
    def _numbers(self) -> Simplex:
        return self.visits.policy.simplex

    def _look(self, terms: np.ndarray, M: int) -> Weights:
        """Return the M planes of some terms."""
        found = Weights(np.empty(M, np.int64), np.empty(M, np.int64), np.empty(M), np.empty(M))
        _look(self._numbers, self.phi.blocks, terms, self.phi.w, found)
        return found.take(np.lexsort((-found.alpha, found.term)))

    def _step(self, found: Weights, tol: float, noise: float) -> None:
        """Maximise n F over the weights of some planes, until at most ``tol`` is left to gain."""
        phi, others = self.phi, found.others
        R = products(self._rows(found))
        R /= phi.problem.lam * phi.problem.n
        delta = maximise(R, found, tol) - found.alpha
        curvature = inner(delta[others], applied(R, delta[others]))
        slope = inner(delta, found.slope)
        # the slope of F may be rounding while the gap is not: the step is then a full one
        gamma = 1.0 if abs(slope) <= noise else line_search(slope, curvature)
        if gamma > 0:
            _shift(self.visits.policy, phi.blocks, found, found.lo, gamma * delta, phi.shared)

    def _rows(self, found: Weights) -> Any:
        """Return n (φ^{ip}⋆ − φ^{ib}⋆) of all planes except bases as sparse rows, shape (m, D)."""
        D, others = self.phi.w.size, found.others
        scratch = np.zeros(D, bool), np.zeros(D, np.int64), np.zeros(D)
        ends, none = np.zeros(others.size + 1, np.int64), np.zeros(0, np.int64)
        of = found.term[others], found.plane[others], found.plane[found.base]
        given = self.phi.blocks, self._numbers.change, *of, *scratch, ends
        _set_rows(*given, none, np.zeros(0))
        indices, values = np.empty(ends[-1], np.int64), np.empty(ends[-1])
        _set_rows(*given, indices, values)
        return scipy.sparse.csr_matrix((values, indices, ends), shape=(others.size, D))


def products(rows: Any) -> np.ndarray:
    """Return the inner products of all pairs of rows."""
    m, D = rows.shape
    if rows.nnz < _SPARSE * m * D:
        return np.asarray((rows @ rows.T).toarray())
    product, columns = np.zeros((m, m)), rows.tocsc()
    for k in range(0, D, _COLUMNS):
        dense = columns[:, k : k + _COLUMNS].toarray()
        product += dense @ dense.T
    return product


# ---- on any storage ------------------------------------------------------------------------------


@kernel
def _look(numbers, blocks, terms, w, found):
    """Write α and s of all planes of some terms into ``found``."""
    m = 0
    for i in terms:
        complete(numbers, blocks, i)
        operations.gather(blocks, w, i)
        for p in range(blocks.n_planes[i]):
            found.term[m] = i
            found.plane[m] = p
            found.alpha[m] = numbers.alpha[numbers.start[i] + p]
            found.slope[m] = operations.plane_value(blocks, i, p)
            m += 1


@kernel
def _set_rows(blocks, change, terms, planes, bases, listed, indices, dense, ends, found, values):
    """Count the non-zeros of rows, and write them if ``found`` has space."""
    end = 0
    for m in range(terms.size):
        i = terms[m]
        change[: blocks.n_planes[i]] = 0.0
        change[planes[m]] = 1.0
        change[bases[m]] = -1.0
        operations.set_direction_of_mixture(blocks, i, 0.0, change)
        size = operations.direction_indices(blocks, i, listed, indices)
        operations.add_direction(blocks, i, 1.0, dense)
        for k in range(size):
            index = indices[k]
            if found.size > 0:
                found[end + k] = index
                values[end + k] = dense[index]
            listed[index] = False
            dense[index] = 0.0
        end += size
        ends[m + 1] = end


@kernel
def _shift(policy, blocks, found, lo, delta, state):
    """Change the weights of planes, and φ^i, φ, v and u with them."""
    numbers = policy.simplex
    change = numbers.change
    for t in range(lo.size):
        i = found.term[lo[t]]
        m = blocks.n_planes[i]
        alpha = numbers.alpha[numbers.start[i] :]
        v = numbers.product[numbers.start[i] :]
        gram = numbers.gram[numbers.gram_start[i] :]
        room = numbers.room[i]
        change[:m] = 0.0
        end = lo[t + 1] if t + 1 < lo.size else found.term.size
        for k in range(lo[t], end):
            change[found.plane[k]] = delta[k]
        delta_offset = 0.0
        for p in range(m):
            alpha[p] += change[p]
            delta_offset += change[p] * blocks.offset[blocks.start[i] + p]
            if alpha[p] > 0.0:
                blocks.active[blocks.start[i] + p] = state.now
        u = 0.0
        for p in range(m):
            v[p] = 0.0
            for q in range(m):
                v[p] += gram[p * room + q] * alpha[q]
            u += alpha[p] * v[p]
        numbers.square[i] = u
        operations.set_direction_of_mixture(blocks, i, 0.0, change)
        move(blocks, i, 1.0, delta_offset, state)
