"""The dual iterate φ = Σ_i φ^i of block solvers, its working sets W_i, and passes over the terms.

.. code-block:: text

    F(φ) = −λ/2 ‖w‖² + φ∘        w = −φ⋆/λ

A pass visits terms in some order. The *policy* of a solver defines what a visit does
(:mod:`ssvm_bench.planes.operations`). Solvers do not see how φ^i and the planes are stored
(:mod:`ssvm_bench.planes.iterates`).

=================  ========================================================================
symbol             name
=================  ========================================================================
φ = [φ⋆ φ∘]        ``PassState.w`` = −φ⋆/λ, ``PassState.offset``
φ^i, W_i           ``blocks``, a storage (:mod:`ssvm_bench.planes.operations`)
λ                  ``PassState.lam``, the λ of the iterate's problem
Z, Z∘, k           ``Average``: φ̄ = φ − Z/W_k with W_k = k(k+1)/2, or k in a plain mean
=================  ========================================================================

If the last weights must not be negative (`Oracle.nonnegative`), the constraint is one more block,
whose planes are rays. With its multipliers μ ≥ 0, w = (μ − φ⋆)/λ. The best μ for any φ,

.. code-block:: text

    μ = max(φ⋆, 0)        w = max(−φ⋆/λ, 0)        F(φ) = −λ/2 ‖w‖² + φ∘        on these weights

is set after every step (Ramanan 2013, equation 41). A step on φ^i keeps μ fixed. So it is a step of
the problem without the constraint, and F ascends; the step on μ ascends, too. As ⟨μ, w⟩ = 0, the
gap has the formula without the constraint, P(w) − F = Σ_i (H_i(w) − ⟨φ^i, [w 1]⟩).

The average of the iterates (MP-BCFW, section 3.5), φ̄^(k) = 2/(k(k+1)) Σ_t t φ^(t), is computed
from Z = Σ_t W_{t−1} (φ^(t) − φ^(t−1)): a change of φ after t averaged iterates is added to Z with
the weight W_t. So an average costs one more sparse update per step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import allocating_kernel, kernel
from ssvm_bench.base.linalg import best_scale, rounded_once, squared_norm
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import operations

# mypy: disable-error-code="no-untyped-def"


# ---- φ and its average, as all visits of a pass see and change them ------------------------------


class Average(NamedTuple):
    """An average of the iterates.

    Attributes
    ----------
    z : ndarray of float64, shape (D,)
        Z⋆ in the units of w, −Z⋆/λ; of shape (0,) if no average is kept.
    offset : ndarray of float64, shape (1,)
        Z∘.
    k : ndarray of int64, shape (1,)
        Number of averaged iterates.
    plain : bool
        Whether all iterates have the same weight; else the t-th has weight t.
    """

    z: np.ndarray
    offset: np.ndarray
    k: np.ndarray
    plain: bool = False


AT_W = np.zeros(0)


class PassState(NamedTuple):
    """φ, as all visits of a pass see and change it.

    Attributes
    ----------
    w : ndarray of float64, shape (D,)
        −φ⋆/λ, in the storage's layout.
    offset : ndarray of float64, shape (1,)
        φ∘.
    steps : ndarray of int64, shape (1,)
        Steps so far.
    average : Average
        The average that the steps of the pass update.
    lam : float
        λ.
    line_search : bool
        Whether steps use line search; else their length is 2n/(k + 2n) after k steps.
    now : int
        Number of the outer iteration.
    query : ndarray of float64, shape (D,)
        The w at which exact passes call the oracle, in the storage's layout: (1 − ``in_out``) w +
        ``in_out`` c with a centre c. Of shape (0,) if they call it at w itself.
    in_out : float
        Weight of the centre.
    multiplier : ndarray of float64, shape (weights that must not be negative,)
        μ, for the last weights.
    """

    w: np.ndarray
    offset: np.ndarray
    steps: np.ndarray
    average: Average
    lam: float
    line_search: bool = True
    now: int = 0
    query: np.ndarray = AT_W
    in_out: float = 0.0
    multiplier: np.ndarray = AT_W


def no_average(size: int = 0, plain: bool = False) -> Average:
    """Return an average of no iterates yet; of size 0 for passes that keep no average."""
    return Average(np.zeros(size), np.zeros(1), np.zeros(1, np.int64), plain)


def at_zero(D: int, lam: float, nonnegative: int = 0) -> PassState:
    """Return φ = 0, with D weights in the storage's layout, the last ``nonnegative`` ≥ 0."""
    zero = np.zeros(D), np.zeros(1), np.zeros(1, np.int64)
    return PassState(*zero, no_average(), lam, multiplier=np.zeros(nonnegative))


@kernel
def set_multiplier(state, weight):
    """Set μ to its best value, and w with it; the change enters the average with this weight."""
    mu, w, average = state.multiplier, state.w, state.average
    first = w.size - mu.size
    for k in range(mu.size):
        v = w[first + k] - mu[k] / state.lam
        change = max(v, 0.0) - w[first + k]
        w[first + k] = max(v, 0.0)
        mu[k] = max(-state.lam * v, 0.0)
        if average.z.size > 0:
            average.z[first + k] += weight * change
        if state.query.size > 0:  # a mean of two non-negative w, up to rounding
            moved = state.query[first + k] + (1.0 - state.in_out) * change
            state.query[first + k] = max(moved, 0.0)


# ---- passes, on any storage ----------------------------------------------------------------------


class Tally(NamedTuple):
    """What an exact pass has done.

    Attributes
    ----------
    changed : int
        Number of visits that changed something.
    share : float
        Share of the pass's time that counts as the oracle's: scores and maximisation.
    calls : int
        Calls of the exact oracle.
    skipped : int
        Visits without an oracle call.
    evaluated : int
        Planes evaluated in visits without an oracle call.
    last, fault : int
        The last term visited, and the fault of the oracle at this term, a constant of
        :mod:`ssvm_bench.oracles.checks`; a fault ends the pass.
    """

    changed: int
    share: float
    calls: int
    skipped: int = 0
    evaluated: int = 0
    last: int = -1
    fault: int = checks.NONE


# ---- passes, on any storage --------------------------------------------------------------------


@kernel
def visit_working_sets(policy, blocks, order, state):
    """Visit the terms in ``order``, maximising over their working sets (Algorithm 3, step 6).

    Returns
    -------
    int
        Number of planes evaluated.
    """
    evaluated = 0
    for k in range(order.size):
        i = order[k]
        # features are prefetched one visit before the weights that they index
        operations.prefetch_visit(policy, blocks, order, k + 1)
        operations.prefetch_weights(blocks, state.w, order, k)
        evaluated += operations.approximate_visit(policy, blocks, i, state)
    return evaluated


@allocating_kernel
def skip(policy, blocks, order, state):
    """Do a `visit_without_oracle` for every term.

    Returns
    -------
    ndarray of int64
        The terms whose oracle is to be called.
    evaluated : int
        Planes evaluated for the other terms.
    """
    asked = np.empty_like(order)
    count = 0
    evaluated = 0
    for i in order:
        seen = operations.visit_without_oracle(policy, blocks, i, state)
        evaluated += seen
        if seen == 0:
            asked[count] = i
            count += 1
    return asked[:count], evaluated


@kernel
def sum_of_terms(blocks, lam, w):
    """Recompute w = −Σ_i φ^i⋆/λ in place from the terms, and return φ∘ = Σ_i φ∘^i."""
    n = blocks.n_planes.size
    for k in range(w.size):
        if w[k] != 0.0:  # else its page may not be allocated yet, and need not be
            w[k] = 0.0
    offset = 0.0
    for i in range(n):
        operations.set_direction_from_truth(blocks, i)
        operations.add_direction(blocks, i, -1.0 / (lam * n), w)
        offset += blocks.term_offset[i]
    return offset / n


@kernel
def scale_term(policy, blocks, i, scale, now):
    """Multiply φ^i by ``scale``, in [0, 1]; the candidate is the ground truth's plane, 0."""
    operations.insert_truth(policy, blocks, i, scale, now)
    operations.set_direction_from_truth(blocks, i)
    operations.move_term(blocks, i, scale - 1.0)
    blocks.term_offset[i] *= scale


@kernel
def _squared_norm_at(w, indices):
    """Return ‖w‖², summed in order, of a vector that is 0 except at ``indices``."""
    total = 0.0
    for index in indices:
        total += w[index] * w[index]
    return total


def everywhere(indices: np.ndarray | None) -> Any:
    """Return indices in a form that numpy accepts; None means all entries."""
    return slice(None) if indices is None else indices


# ---- the iterate -------------------------------------------------------------------------------


class DualIterate(Stateful, ABC):
    """φ and the working sets W_i, in a storage.

    Parameters
    ----------
    problem : Problem
    blocks : Labelings, SparseRows, FixedRows or LineRows
        The storage; the ground truth's plane is the candidate of each term, or the first of W_i.
    N : int
        Largest size of a working set.

    Attributes
    ----------
    has_kernel : bool
        Whether ‖w‖² differs from the sum of the squares of the storage's w.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        *("_state.w", "_state.offset", "_state.steps", "_state.now", "_state.multiplier"),
        "blocks",
    )
    LIMITS: ClassVar[Mapping[str, Limits]] = {
        "blocks": Limits(of=lambda found, _: found["blocks"].n_planes, most="N")
    }
    has_kernel = False

    def __init__(self, problem: Problem, blocks: Any, N: int) -> None:
        self.problem = problem
        self.N = N
        self.blocks = blocks
        self._state = at_zero(self.inner_d, problem.lam, problem.oracle.nonnegative)

    @property
    def shared(self) -> PassState:
        """φ, as w and φ∘, at the problem's λ."""
        return self._state._replace(lam=self.problem.lam)

    @property
    def w(self) -> np.ndarray:
        """−φ⋆/λ, in the storage's layout."""
        return self._state.w

    def outer_w(self) -> np.ndarray:
        """Return −φ⋆/λ in the outer layout; a copy, shape (d,)."""
        return self.outer(self.w)

    def point(self) -> np.ndarray | Nonzeros:
        """Return −φ⋆/λ in the outer layout; as `Nonzeros` if it is long and mostly 0."""
        return self.outer_w()

    @property
    def inner_d(self) -> int:
        """Length of w in the storage's layout."""
        return self.problem.oracle.inner_d

    def pack(self, w: np.ndarray) -> np.ndarray:
        """Convert w from the outer layout, shape (d,), to the storage's layout; a copy."""
        return self.problem.oracle.pack(w)

    def outer(self, w: np.ndarray) -> np.ndarray:
        """Convert w from the storage's layout to the outer layout; a copy, shape (d,)."""
        return self.problem.oracle.unpack(w)

    @property
    def query(self) -> np.ndarray:
        """The w at which exact passes call the oracle, in the storage's layout."""
        return self._state.query if self._state.query.size > 0 else self.w

    @property
    def offset(self) -> float:
        """φ∘."""
        return float(self._state.offset[0])

    @property
    def indices(self) -> np.ndarray | None:
        """Sorted indices where w may be non-zero until the next exact pass; None: all."""
        return None

    def dual(self, norm2: float | None = None) -> float:
        """Return F(φ), in an order of summation that does not depend on the machine.

        Parameters
        ----------
        norm2 : float, optional
            ‖w‖², if it is known.
        """
        if norm2 is None:
            norm2 = self.squared_norm(self.w)
        return self.offset - 0.5 * self.problem.lam * norm2

    def squared_norm(self, w: np.ndarray) -> float:
        """Return ‖w‖² of a vector in the storage's layout that is 0 outside ``self.indices``."""
        indices = self.indices
        return float(squared_norm(w) if indices is None else _squared_norm_at(w, indices))

    def diagnostics(self) -> dict[str, float]:
        """Return the storage's diagnostics: trace column → value."""
        return {}

    def working_set_mean(self) -> float:
        """Return the mean of |W_i|."""
        return float(self.blocks.n_planes.mean())

    def set(self, **constants: Any) -> None:
        """Set fields of `PassState`, any except λ, for all visits of the coming passes."""
        self._state = self._state._replace(**constants)

    def reserve(self, visits: np.ndarray) -> None:
        """Have space for a new plane per visit of each term, int64, shape (n,).

        An exact pass does it itself. It copies arrays, which is better done while they are few.
        """

    def exact_pass(
        self,
        policy: Any,
        order: np.ndarray,
        clock: Clock,
        may_skip: bool = False,
        still: bool = False,
    ) -> Tally:
        """Visit terms with their exact oracle, and count the work on the clock.

        If a :class:`~ssvm_bench.oracles.caller.Caller` makes the oracle calls, it makes those of
        ``oracle.batch`` terms at one w, or of all terms if w is fixed. Visits are one by one.

        Parameters
        ----------
        policy : NamedTuple
            Defines what a visit does.
        order : ndarray of int64, shape (visits,)
            The terms.
        clock : Clock
        may_skip : bool
            Whether the policy may skip oracle calls.
        still : bool
            Whether no visit moves w.
        """
        batch = order.size if still else self.problem.oracle.batch
        with clock.exact(order.size) as count:
            tally = self._exact_pass(policy, order, may_skip, batch)
            count.calls, count.share = tally.calls, tally.share
        if tally.skipped:
            clock.approximate(tally.skipped, tally.evaluated)
        clock.kernel_values += self._new_values()
        return tally

    def approximate_pass(
        self, policy: Any, order: np.ndarray, clock: Clock, lam: float | None = None
    ) -> None:
        """Visit terms with their working sets, at ``lam`` if given; count the work on the clock."""
        lam = self.problem.lam if lam is None else lam
        state = self._state._replace(lam=lam, query=AT_W)
        clock.approximate(order.size, self._approximate_visits(policy, order, state))
        clock.kernel_values += self._new_values()

    def _approximate_visits(self, policy: Any, order: np.ndarray, state: PassState) -> int:
        """Visit terms with their working sets; return the number of planes evaluated."""
        return int(visit_working_sets(policy, self.blocks, order, state))

    def _new_values(self) -> int:
        """Return the number of kernel values computed since the last call of this method."""
        return 0

    def recompute(self) -> None:
        """Recompute φ from the terms, so that rounding errors do not accumulate."""
        self._state.offset[0] = sum_of_terms(self.blocks, self.problem.lam, self.w)
        if self._state.multiplier.size:
            self._state.multiplier[:] = 0.0
            set_multiplier(self.shared, 0.0)

    def warm_start(self, lam: float, policy: Any) -> None:
        """Change λ: scale φ by the best factor for the new λ, and keep all working sets."""
        state, old = self._state, self.problem.lam
        scale = best_scale(self._norm2_rounded_once(), self.offset, old, lam)
        self._scale_terms(policy, scale)
        state.w[:] *= scale * old / lam
        state.offset[0] *= scale
        state.multiplier[:] *= scale
        state.steps[0] = 0
        self.problem = replace(self.problem, lam=lam)

    def _norm2_rounded_once(self) -> float:
        """Return ‖w‖²."""
        return rounded_once(self.w, self.w)

    def update_latent(self, problem: Problem) -> np.ndarray | None:
        """Change to a problem with other true labelings; φ^i and all W_i keep their labelings.

        φ has to be recomputed afterwards.

        Returns
        -------
        ndarray of int64, or None
            The terms whose planes have changed; None if this is not possible: then nothing is
            changed. It is not possible for planes kept as rows.
        """
        return None

    def changing(self) -> list[np.ndarray]:
        """Return the arrays, except w, that approximate passes change if no plane is dropped."""
        phi_i = [getattr(self.blocks, name) for name in self._phi_i]
        shared = self._state
        return [*phi_i, shared.offset, shared.multiplier, *shared.average[:-1]]

    _phi_i: tuple[str, ...] = ()
    """Fields of the storage that hold φ^i."""

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        """Visit terms with planes of their exact oracle, called for ``batch`` terms at one w."""
        changed, calls, evaluated, waited, begin = 0, 0, 0, 0.0, perf_counter()
        for k in range(0, order.size, batch):
            asked = order[k : k + batch]
            if may_skip:
                asked, seen = skip(policy, self.blocks, asked, self.shared)
                evaluated += seen
            moved, seconds = self._answered_visits(policy, asked)
            changed, calls, waited = changed + moved, calls + asked.size, waited + seconds
        share = waited / max(perf_counter() - begin, 1e-9)
        return Tally(changed, share, calls, order.size - calls, evaluated)

    def _answered_visits(self, policy: Any, asked: np.ndarray) -> tuple[int, float]:
        """Call the oracle of some terms at one w, and visit the terms with its planes.

        Returns
        -------
        changed : int
            Number of visits that changed something.
        seconds : float
            Time spent waiting for the calls.
        """
        raise NotImplementedError

    @abstractmethod
    def _scale_terms(self, policy: Any, scale: float) -> None:
        """Multiply every φ^i by ``scale``, and insert the ground truths' planes into the W_i."""
