"""The dual iterate of problems with a kernel: it keeps as many rows of K as fit into memory.

A step needs the rows of K at the parts that it moves. A compiled pass runs until a step has moved a
part whose row is not kept. Then one matrix product computes this row, and rows that coming visits
will probably need; S is completed, and the pass resumes. So every visit sees the scores of the
current w, whichever rows are kept. Kept rows only reduce the number of kernel values computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import matrix_product
from ssvm_bench.base.state import Limits
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.kernel_features import KernelFeatures, KernelOracle
from ssvm_bench.oracles.scoring import label_loss, parts, waits
from ssvm_bench.planes.dual_iterate import PassState, Tally
from ssvm_bench.planes.labeling_iterates import LabelingIterate, Support
from ssvm_bench.planes.operations import approximate_visit, prefetch_term

# mypy: disable-error-code="no-untyped-def"

_BLOCK = 64
"""Most rows of K that one matrix product computes."""

_AHEAD = 4096
"""Coming visits that are searched for parts that will need their rows."""


class KernelIterate(LabelingIterate):
    """φ with β and S in place of w (:mod:`ssvm_bench.oracles.kernel_features`).

    Raises
    ------
    ConfigError
        If no row of K fits into the memory for them.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        *LabelingIterate.STATE,
        *("evaluations", "_uncounted", "_owner", "features.used", "features.now"),
    )
    LIMITS: ClassVar[Mapping[str, Limits]] = {
        **LabelingIterate.LIMITS,
        "_owner": Limits(
            of=lambda found, _: found["_owner"][found["_owner"] >= 0],
            below="features.slot.size",
            distinct=True,
        ),
    }
    has_kernel = True

    def __init__(self, problem: Problem, N: int) -> None:
        oracle = problem.oracle
        assert isinstance(oracle, KernelOracle)
        super().__init__(problem, oracle, N)
        self._support = Support(0)
        self._kernel, self._points = oracle.kernel, oracle.points
        parts = oracle.features.truth.size
        kept = self._kernel.rows_kept(parts)
        self.features: KernelFeatures = oracle.features._replace(
            rows=np.empty((kept, parts)),
            slot=np.full(parts, -1),
            used=np.zeros(kept, np.int64),
            now=np.zeros(2, np.int64),
        )
        self.blocks = self.blocks._replace(features=self.features)
        self._owner = np.full(kept, -1)
        self.evaluations = self._uncounted = 0
        matrix_product(np.zeros((1, 1)), np.zeros((1, 1)))  # compile, off the clock

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        """Recompute the rows that were kept, too, without counting kernel values."""
        super()._rebuild(found)
        self.blocks = self.blocks._replace(features=self.features)
        (kept,) = np.nonzero(self._owner >= 0)
        self.features.slot[:] = -1
        self.features.slot[self._owner[kept]] = kept
        for begin in range(0, kept.size, _BLOCK):
            block = kept[begin : begin + _BLOCK]
            self.features.rows[block] = self._values(self._owner[block])

    def squared_norm(self, w: np.ndarray) -> float:
        """Return ‖w‖²."""
        return self.features.squared_norm(w)

    def _norm2_rounded_once(self) -> float:
        return self.squared_norm(self.w)

    def diagnostics(self) -> dict[str, float]:
        """Return the numbers of kernel values computed, parts in the support, and rows kept."""
        return {
            "kernel_evaluations": float(self.evaluations),
            "support": float(self.features.coefficients(self.w).any(axis=1).sum()),
            "kernel_rows": float((self._owner >= 0).sum()),
        }

    def recompute(self) -> None:
        """Recompute β from the terms, and S by matrix products."""
        slots = self.features.slot.copy()
        self.features.slot[:] = -1  # so the sum over the terms does not change S
        super().recompute()
        self.features.slot[:] = slots
        self._complete()

    def _approximate_visits(self, policy: Any, order: np.ndarray, state: PassState) -> int:
        evaluated = visits = 0
        while visits < order.size:
            done, found = _visit_until_waiting(policy, self.blocks, order[visits:], state)
            visits, evaluated = visits + done, evaluated + found
            self._complete(order[visits:])
        return evaluated

    def _new_values(self) -> int:
        new, self._uncounted = self._uncounted, 0
        return new

    def _visit(
        self, oracle: Any, policy: Any, order: np.ndarray, may_skip: bool, exact: bool
    ) -> Tally:
        changed = skipped = evaluated = visits = 0
        of_oracle, begin = 0.0, perf_counter()
        while visits < order.size:
            start = perf_counter()
            tally = super()._visit(oracle, policy, order[visits:], may_skip, exact)
            of_oracle += tally.share * (perf_counter() - start)
            changed, skipped = changed + tally.changed, skipped + tally.skipped
            evaluated, visits = evaluated + tally.evaluated, visits + tally.calls + tally.skipped
            self._complete(order[visits:])
        share = of_oracle / max(perf_counter() - begin, 1e-9)
        return Tally(changed, share, visits - skipped, skipped, evaluated)

    def _complete(self, coming: np.ndarray | None = None) -> None:
        """Add D, the part of β that is not in S yet, to S; compute rows for coming visits, too."""
        features, state = self.features, self._state
        features.now[0] += 1
        if not waits(features):
            return
        features.now[1] = 0
        vectors = [v for v in (state.w, state.average.z, state.query) if v.size]
        waiting = np.any([features.waiting(v).any(axis=1) for v in vectors], axis=0)
        (parts,) = np.nonzero(waiting)
        there = features.slot[parts] >= 0
        for begin in range(0, parts[there].size, _BLOCK):
            block = parts[there][begin : begin + _BLOCK]
            _enter(features, vectors, block, features.rows[features.slot[block]])
        absent = parts[~there]
        if coming is not None and absent.size < _BLOCK:
            room = min(_BLOCK, features.used.size // 2) - absent.size
            likely = np.empty(max(room, 0), np.int64)
            count = _find_likely(self.blocks, coming[:_AHEAD], state.w, absent, likely)
            ahead = likely[:count]
        else:
            ahead = absent[:0]
        for begin in range(0, absent.size, _BLOCK):
            block = absent[begin : begin + _BLOCK]
            rows = self._computed(np.concatenate((block, ahead)))
            ahead = ahead[:0]
            _enter(features, vectors, block, rows[: block.size])

    def _computed(self, parts: np.ndarray) -> np.ndarray:
        """Compute and return the rows of K of some parts; they replace the least recently used."""
        features = self.features
        rows = self._values(parts)
        self.evaluations += rows.size
        self._uncounted += rows.size
        kept = min(parts.size, features.used.size)
        slots = np.argpartition(features.used, kept - 1)[:kept]
        former = self._owner[slots]
        features.slot[former[former >= 0]] = -1
        features.rows[slots] = rows[:kept]
        features.slot[parts[:kept]] = slots
        features.used[slots] = features.now[0]
        self._owner[slots] = parts[:kept]
        return rows

    def _values(self, parts: np.ndarray) -> np.ndarray:
        return self._kernel.values(self._points.take(parts), self._points)


def _enter(
    features: KernelFeatures, vectors: list[np.ndarray], parts: np.ndarray, rows: np.ndarray
) -> None:
    """Add D of some parts, whose rows of K are given, to S of some vectors."""
    for v in vectors:
        waiting = features.waiting(v)
        features.scores(v)[:] += matrix_product(waiting[parts].T, rows)
        waiting[parts] = 0.0


@kernel
def _visit_until_waiting(policy, blocks, order, state):
    """Do approximate visits until S has to be completed; return numbers of visits and planes."""
    visits = 0
    evaluated = 0
    while visits < order.size and not waits(blocks.features):
        prefetch_term(blocks, order, visits)
        evaluated += approximate_visit(policy, blocks, order[visits], state)
        visits += 1
    return visits, evaluated


@kernel
def _find_likely(blocks, order, w, absent, found):
    """List parts without a row that a visit will probably move, and return their number.

    There, φ^i has weight on a wrong label, or a label has a higher loss-augmented score than the
    true one.
    """
    features = blocks.features
    count = 0
    for i in order:
        first, L = parts(features, i)
        for q in range(first, first + L):
            if count == found.size:
                return count
            if features.slot[q] >= 0 or _is_among(absent, q) or _is_among(found[:count], q):
                continue
            moves = blocks.mu[q, 0] != 1.0
            S = w[2 * features.basis * features.stride + q :]
            P = features.truth.size
            threshold = features.costs[q] * S[np.int64(features.truth[q]) * P]
            for c in range(features.n_labels):
                loss = label_loss(features, q, c) / L
                moves = moves or features.costs[q] * S[c * P] + loss > threshold
            if moves:
                found[count] = q
                count += 1
    return count


@kernel
def _is_among(parts, q):
    for part in parts:
        if part == q:
            return True
    return False
