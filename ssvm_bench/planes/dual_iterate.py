"""The dual iterate φ = Σ_i φ^i, its working sets W_i, and their storage: what block solvers hold.

.. code-block:: text

    F(φ) = −λ/2 ‖w‖² + φ∘        w = −φ⋆/λ

A solver says what a visit of a term does, by a policy (:mod:`ssvm_bench.planes.passes`), and in
which order terms are visited; how planes are stored, it does not see. There are two storages, and
the oracle decides which: labelings, where whole passes are compiled, and rows, for any oracle.

Where a term has few planes, a solver may have all of them from the beginning, and asks no oracle:
:mod:`ssvm_bench.planes.all_planes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.linalg import squared_norm
from ssvm_bench.oracles import checks, joint_features
from ssvm_bench.oracles.base import Plane, Problem, best_scale
from ssvm_bench.oracles.caller import Caller
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.planes import labelings, passes, rows
from ssvm_bench.planes.passes import Average, State, Tally
from ssvm_bench.planes.support import Support, squared_norm_at


def dual_iterate(problem: Problem, N: int) -> DualIterate:
    """Return φ^i = 0 for all i, with the ground truth's plane in every W_i of up to N planes."""
    if isinstance(problem.oracle, LabelingOracle):
        return LabelingIterate(problem, problem.oracle, N)
    return _Rows(problem, N)


def no_average() -> Average:
    """Return the average of a pass that is to be in none."""
    return Average(np.zeros(0), np.zeros(1), np.zeros(1, np.int64))


class DualIterate(ABC):
    """φ, the W_i and how they are stored.

    Parameters
    ----------
    problem : Problem
    blocks : Labelings, Rows, FixedRows or LineRows
        The storage; the ground truth's planes are its candidates, or the first of every W_i.
    D : int
        Number of weights in the storage's layout.
    N : int
        Most planes of a working set.

    Attributes
    ----------
    state : State
        φ, as w and φ∘.
    """

    def __init__(self, problem: Problem, blocks: Any, D: int, N: int) -> None:
        self.problem = problem
        self.N = N
        self.blocks = blocks
        self.state = State(
            w=np.zeros(D),
            circ=np.zeros(1),
            steps=np.zeros(1, np.int64),
            average=no_average(),
            lam=problem.lam,
            line_search=True,
            now=0,
        )

    @property
    def circ(self) -> float:
        """φ∘."""
        return float(self.state.circ[0])

    @property
    def places(self) -> np.ndarray | None:
        """Sorted places where w may not be 0, now and until the next exact pass; None: all."""
        return None

    def dual(self, norm2: float | None = None) -> float:
        """Return F(φ), in an order of summation that does not depend on the machine.

        Parameters
        ----------
        norm2 : float, optional
            ‖w‖², if it is known.
        """
        if norm2 is None:
            w, places = self.state.w, self.places
            norm2 = squared_norm(w) if places is None else squared_norm_at(w, places)
        return self.circ - 0.5 * self.problem.lam * norm2

    def working_set_mean(self) -> float:
        """Return the mean of |W_i|."""
        return float(self.blocks.n_planes.mean())

    def set(self, **constants: Any) -> None:
        """Change what all visits of the coming passes share: fields of `State`."""
        self.state = self.state._replace(**constants)

    def exact_pass(
        self,
        policy: Any,
        order: np.ndarray,
        clock: Clock,
        may_skip: bool = False,
        still: bool = False,
    ) -> Tally:
        """Visit terms with their exact oracle, and tell the clock.

        Where others call the oracle, its planes of ``oracle.batch`` terms are those at one w, of
        all terms if no visit moves w; the visits come one after the other, as they always do.

        Parameters
        ----------
        policy : NamedTuple
            What a visit does.
        order : ndarray of int64, shape (visits,)
            The terms.
        clock : Clock
        may_skip : bool
            Whether the policy may do without the oracle.
        still : bool
            Whether no visit moves w.
        """
        batch = order.size if still else self.problem.oracle.batch
        with clock.exact(order.size) as count:
            tally = self._exact_pass(policy, order, may_skip, batch)
            count.calls, count.share = tally.calls, tally.share
        if tally.skipped:
            clock.approximate(tally.skipped, tally.evaluated)
        return tally

    def approximate_pass(
        self, policy: Any, order: np.ndarray, clock: Clock, lam: float | None = None
    ) -> None:
        """Visit terms with their working sets, as at another λ if one is given; tell the clock."""
        state = self.state if lam is None else self.state._replace(lam=lam)
        evaluated = passes.approximate_pass(policy, self.blocks, order, state)
        clock.approximate(order.size, evaluated)

    def recompute(self) -> None:
        """Sum φ anew from the terms, to keep roundings from adding up."""
        state = self.state
        state.circ[0] = passes.sum_of_terms(self.blocks, state.lam, state.w)

    def go_on(self, lam: float, policy: Any) -> None:
        """Go to another λ, at the best multiple of φ for it, with all working sets."""
        state = self.state
        scale = best_scale(state.w, self.circ, state.lam, lam)
        self._scale_terms(policy, scale)
        state.w[:] *= scale * state.lam / lam
        state.circ[0] *= scale
        state.steps[0] = 0
        self.set(lam=lam)
        self.problem = replace(self.problem, lam=lam)

    def update_latent(self, problem: Problem) -> np.ndarray | None:
        """Go to a problem with other true labelings, and the same labelings in φ^i and all W_i.

        φ is to be summed anew.

        Returns
        -------
        ndarray of int64, or None
            The terms whose planes have changed; None where planes are kept as rows: nothing is
            done then.
        """
        return None

    def changing(self) -> list[np.ndarray]:
        """Return the arrays but w that approximate passes change, while no plane is dropped."""
        phi_i = [getattr(self.blocks, name) for name in self._phi_i]
        return [*phi_i, self.state.circ, *self.state.average]

    @property
    @abstractmethod
    def _phi_i(self) -> tuple[str, ...]:
        """Fields of the storage that hold φ^i."""

    @abstractmethod
    def outer(self, w: np.ndarray) -> np.ndarray:
        """Return w, given in the storage's layout, in the outer one; a copy, shape (d,)."""

    @abstractmethod
    def inner(self, w: np.ndarray) -> np.ndarray:
        """Return w, given in the outer layout, in the storage's; a copy, shape (D,)."""

    @abstractmethod
    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        """Visit terms with their exact oracle; others call it for ``batch`` terms at one w."""

    @abstractmethod
    def _scale_terms(self, policy: Any, scale: float) -> None:
        """Multiply every φ^i by ``scale``, and have the ground truths' planes in the W_i."""


class LabelingIterate(DualIterate):
    """Planes are labelings; a whole pass is one compiled call."""

    _phi_i = labelings.CHANGED

    def __init__(self, problem: Problem, oracle: LabelingOracle, N: int) -> None:
        self.oracle = oracle
        blocks = labelings.allocate(oracle.features)
        D = joint_features.inner_dimension(oracle.features)
        super().__init__(problem, blocks, D, N)
        self._support = Support(D)
        passes.begin_at_candidates(blocks, N, 0)

    @property
    def places(self) -> np.ndarray | None:
        """Sorted places where w may not be 0: what a plane of any term has touched; None: all."""
        return self._support.places

    def outer(self, w: np.ndarray) -> np.ndarray:
        """Return w with the features of a label side by side."""
        return joint_features.unpack(self.oracle.features, w)

    def inner(self, w: np.ndarray) -> np.ndarray:
        """Return w with the labels of a feature side by side."""
        return joint_features.pack(self.oracle.features, w)

    def update_latent(self, problem: Problem) -> np.ndarray | None:
        """Compare the labelings with other truths, in place."""
        assert isinstance(problem.oracle, LabelingOracle)
        self.problem, self.oracle = problem, problem.oracle
        self.blocks = self.blocks._replace(features=self.oracle.features)
        self.state.steps[0] = 0
        self._support.forget()
        return labelings.follow_truth(self.blocks)

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        self._reserve(np.bincount(order, minlength=self.problem.n))
        if self.oracle.caller is not None:
            tally = self._called(policy, order, may_skip, batch, self.oracle.caller)
        else:
            tally = self._visit(self.oracle.compiled, policy, order, may_skip, self.oracle.exact)
        self._support.update(self.blocks)
        return tally

    def _called(
        self, policy: Any, order: np.ndarray, may_skip: bool, batch: int, caller: Caller
    ) -> Tally:
        """Visit terms with what a caller of the oracle has found for them, batch by batch."""
        tallies, waited, begin = [], caller.waited, perf_counter()
        for k in range(0, order.size, batch):
            asked, skipped, evaluated = order[k : k + batch], 0, 0
            if may_skip:
                asked, skipped, evaluated = passes.skip(policy, self.blocks, asked, self.state)
            answered = self.oracle.answering(self.state.w, asked)
            # that it is no worse than the truth was seen at the w where it was asked
            exact = self.oracle.exact and asked.size == 1
            tally = self._visit(answered, policy, asked, False, exact)
            tallies.append(tally._replace(skipped=skipped, evaluated=evaluated))
        changed, _, calls, skipped, evaluated, *_ = map(sum, zip(*tallies, strict=True))
        share = (caller.waited - waited) / max(perf_counter() - begin, 1e-9)
        return Tally(changed, share, calls, skipped, evaluated, last=-1, fault=checks.NONE)

    def _visit(
        self, oracle: Any, policy: Any, order: np.ndarray, may_skip: bool, exact: bool
    ) -> Tally:
        """Visit terms with a compiled oracle."""
        tally = passes.exact_pass(policy, oracle, exact, self.blocks, order, self.state, may_skip)
        checks.check_fault(self.oracle, tally.last, tally.fault)
        return tally

    def _scale_terms(self, policy: Any, scale: float) -> None:
        self._reserve(np.ones(self.problem.n, np.int64))
        passes.scale_labelings(policy, self.blocks, scale, self.state.now)

    def _reserve(self, visits: np.ndarray) -> None:
        self.blocks = labelings.reserve(self.blocks, visits, self.N)


class _Rows(DualIterate):
    """Planes are sparse rows; the oracle is called from Python, term by term."""

    _phi_i = rows.CHANGED

    def __init__(self, problem: Problem, N: int) -> None:
        super().__init__(problem, rows.allocate(problem.n, problem.d), problem.d, N)
        passes.begin_at_candidates(self.blocks, N, 0)

    def outer(self, w: np.ndarray) -> np.ndarray:
        return w.copy()

    def inner(self, w: np.ndarray) -> np.ndarray:
        return w.copy()

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        oracle, state = self.problem.oracle, self.state
        changed, oracle_time, begin = 0, 0.0, perf_counter()
        skipped = evaluated = 0
        for k in range(0, order.size, batch):
            asked = order[k : k + batch]
            if may_skip:
                asked, without, seen = passes.skip(policy, self.blocks, asked, state)
                skipped, evaluated = skipped + without, evaluated + seen
            terms = asked.tolist()
            planes = oracle.best_planes(state.w if len(terms) < 2 else state.w.copy(), terms)
            for i in terms:
                start = perf_counter()
                plane, _ = next(planes)
                oracle_time += perf_counter() - start
                moved, *room = passes.visit_with_row(policy, self.blocks, i, *plane, state)
                if any(room):
                    self.blocks = rows.make_room(self.blocks, i, *room)
                    moved, *_ = passes.visit_with_row(policy, self.blocks, i, *plane, state)
                changed += moved
        share = oracle_time / (perf_counter() - begin)
        return Tally(
            changed, share, order.size - skipped, skipped, evaluated, last=-1, fault=checks.NONE
        )

    def _scale_terms(self, policy: Any, scale: float) -> None:
        nothing, now = Plane(np.zeros(0, np.int64), np.zeros(0), 0.0), self.state.now
        for i in range(self.problem.n):
            room = passes.scale_row(policy, self.blocks, i, *nothing, scale, now)
            if any(room):
                self.blocks = rows.make_room(self.blocks, i, *room)
                passes.scale_row(policy, self.blocks, i, *nothing, scale, now)
