"""The visits of dual coordinate descent, as a solver holds them.

What happens at a term is compiled (:mod:`~ssvm_bench.solvers.coordinate.turns`, and where
planes lie along one line :mod:`~ssvm_bench.solvers.coordinate.line`); what that needs before and
between sweeps is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ssvm_bench.base.memory import check_room
from ssvm_bench.planes import simplex
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.line_rows import BETA, STRIDE, VIOLATION, LineRows
from ssvm_bench.solvers.coordinate import line, turns
from ssvm_bench.solvers.coordinate.nonnegative import Cone, cone


def visits_of(
    phi: DualIterate, seed: int, epsilon: float, shuffles: bool, keeps: bool, floor: np.ndarray
) -> Visits:
    """Return the visits that fit the storage, at α = 0: all weight is the ground truths'.

    Parameters
    ----------
    phi : DualIterate
    seed : int
        Of the partners of pairs, and of the order of turns.
    epsilon : float
        The tolerance ε.
    shuffles, keeps : bool
        Whether planes take turns in random order, and whether inner products are kept.
    floor : ndarray of float64, shape (d,) or (0,)
        0 for weights that must not be negative, −∞ for others; empty if all are such.
    """
    limits = cone(phi.inner(floor) if floor.size else floor)
    if isinstance(phi.blocks, LineRows):
        return LineVisits(phi, epsilon, limits)
    return TurnVisits(phi, seed, epsilon, shuffles, keeps and not floor.size, limits)


class Visits(ABC):
    """What a solver does at each term, and what that needs around sweeps.

    Attributes
    ----------
    phi : DualIterate
    policy : NamedTuple
        For the kernels.
    """

    def __init__(self, phi: DualIterate, policy: Any) -> None:
        self.phi = phi
        self.policy = policy

    def prepare(self, order: np.ndarray, new: int) -> None:
        """Get ready for a sweep, in which ``new`` planes may come into each W_i.

        Parameters
        ----------
        order : ndarray of int64
            The terms that it will visit, none twice.
        new : int
            0 or 1.
        """
        self.policy.met[0] = 0.0

    @property
    @abstractmethod
    def violations(self) -> np.ndarray:
        """By how much each term violated optimality at its last visit, shape (n,)."""

    @abstractmethod
    def weights(self, i: int) -> np.ndarray:
        """Return the weights of the planes of W_i, the ground truth's first; a copy."""

    def recompute(self) -> None:
        """Sum w and φ∘ anew from the weights, to keep roundings from adding up."""
        state, limits = self.phi.state, self.policy.cone
        if not limits.floor.size:
            state.circ[0] = self._sum_of_planes(state.w)
            return
        state.circ[0] = self._sum_of_planes(limits.v)
        np.maximum(limits.v, limits.floor, out=state.w)

    @abstractmethod
    def _sum_of_planes(self, v: np.ndarray) -> float:
        """Let v be −φ⋆/λ, and return φ∘."""

    def drop_idle(self, T: int) -> None:  # noqa: B027 - where all planes are known, none is dropped
        """Drop planes found that had no weight in the last T iterations."""

    def renew(self, changed: np.ndarray) -> None:  # noqa: B027 - where all planes are known, they stay
        """Get ready for other planes of some terms, with the weights that these have."""

    def worth_visiting(self, order: np.ndarray, shrink: float) -> np.ndarray:
        """Return the terms with a violation above ε, and above a share of the mean one."""
        worth = np.empty_like(order)
        size = turns.select(self.violations, order, self.policy.epsilon, shrink, worth)
        return worth[:size]


class TurnVisits(Visits):
    """A turn for each plane; see `visits_of`."""

    policy: turns.Coordinates

    def __init__(
        self,
        phi: DualIterate,
        seed: int,
        epsilon: float,
        shuffles: bool,
        keeps: bool,
        limits: Cone,
    ) -> None:
        self._bits = np.random.PCG64([seed, 2])
        n, room = phi.problem.n, phi.blocks.n_planes.copy()
        if keeps:
            _check_products_fit(room)
        numbers = simplex.allocate(n, room, with_gram=keeps)
        policy = turns.Coordinates(
            epsilon=epsilon,
            shuffles=shuffles,
            simplex=numbers,
            cone=limits,
            words=np.zeros(0, np.uint64),
            drawn=np.zeros(1, np.int64),
            places=np.zeros(numbers.values.size, np.int64),
            met=np.zeros(1),
            violations=np.full(n, np.inf),
            steps=np.zeros(2, np.int64),
        )
        super().__init__(phi, policy)

    @property
    def violations(self) -> np.ndarray:
        """See `Visits`."""
        return self.policy.violations

    def weights(self, i: int) -> np.ndarray:
        """See `Visits`."""
        numbers, first = self.policy.simplex, self.policy.simplex.start[i]
        return numbers.alpha[first : first + self.phi.blocks.n_planes[i]].copy()

    def prepare(self, order: np.ndarray, new: int) -> None:
        """Make room for weights and inner products, and draw random words."""
        super().prepare(order, new)
        policy, n_planes = self.policy, self.phi.blocks.n_planes
        room = simplex.room_for(policy.simplex, n_planes + new)
        if policy.simplex.gram.size and not np.array_equal(room, policy.simplex.room):
            _check_products_fit(room)
        numbers = simplex.reserve(policy.simplex, n_planes + new)
        places = policy.places
        if numbers.values.size > places.size:
            places = np.zeros(numbers.values.size, np.int64)
        of_terms = n_planes[order] + (new - 1)
        words = self._bits.random_raw(int(of_terms[of_terms > 1].sum()))
        policy.drawn[0] = 0
        self.policy = policy._replace(simplex=numbers, places=places, words=words)

    def _sum_of_planes(self, v: np.ndarray) -> float:
        blocks, lam = self.phi.blocks, self.phi.state.lam
        return float(turns.sum_of_planes(self.policy, blocks, lam, v))

    def renew(self, changed: np.ndarray) -> None:
        """Compute their inner products anew, if these are kept."""
        if self.policy.simplex.gram.size:
            simplex.renew(self.policy.simplex, self.phi.blocks, changed)

    def drop_idle(self, T: int) -> None:
        """See `Visits`."""
        turns.drop_idle(self.policy, self.phi.blocks, self.phi.state.now, T)


class LineVisits(Visits):
    """All planes of a term along one line; see `visits_of`."""

    def __init__(self, phi: DualIterate, epsilon: float, limits: Cone) -> None:
        super().__init__(phi, line.Line(epsilon, limits, np.zeros(1), np.zeros(2, np.int64)))

    @property
    def violations(self) -> np.ndarray:
        """See `Visits`."""
        return self.phi.blocks.numbers[VIOLATION::STRIDE]

    def weights(self, i: int) -> np.ndarray:
        """See `Visits`."""
        beta = self.phi.blocks.numbers[STRIDE * i + BETA]
        return np.array([1.0 - abs(beta), max(beta, 0.0), max(-beta, 0.0)])[
            : self.phi.blocks.n_planes[i]
        ]

    def _sum_of_planes(self, v: np.ndarray) -> float:
        return float(line.sum_of_planes(self.phi.blocks, self.phi.state.lam, v))


def _check_products_fit(room: np.ndarray) -> None:
    """Raise ``RunFailedError`` if inner products of so many planes a term take too much memory."""
    check_room(
        8.0 * float(np.square(room, dtype=np.float64).sum()),
        f"The inner products between the planes of {room.size} examples, up to {room.max()} each,",
        "Set solver.products=compute.",
    )
