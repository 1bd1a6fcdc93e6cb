"""Orders in which the terms are visited.

===============  ==================================================================================
``permutation``  one fresh permutation per outer iteration, shared by its passes
``uniform``      n draws with replacement
``runs``         a fresh permutation of runs of 8 consecutive terms: terms that are stored together
                 are visited together
``sequential``   0, 1, …, n − 1, in every iteration
``gap``          exact passes draw terms in proportion to their gaps (Osokin et al., ICML 2016);
                 approximate passes follow a permutation
===============  ==================================================================================

Approximate passes share the order of their iteration (``same``), or each has its own (``fresh``):
Algorithm 3 of the MP-BCFW paper says "in random order" of both kinds of passes.

Random streams depend on the seed only: repeat r gives every solver the same permutations. Fresh
orders of approximate passes have a separate stream, so that those of exact passes do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.base import random
from ssvm_bench.base.jit import kernel
from ssvm_bench.base.state import Stateful

SAMPLING = ("permutation", "uniform")
APPROX_ORDERS = SAME, FRESH = ("same", "fresh")

_RUN = 8
"""Terms of a run: one number of 8 bytes for each fills a cache line."""

_DRAWS = 10
"""Parts of an exact pass whose terms are drawn; the gaps are read again for each part."""

_swap = kernel(random.swap)


def permutation(n: int, bits: np.random.PCG64) -> np.ndarray:
    """Return a uniform permutation of 0 … n − 1, int64, from the next n random words; compiled."""
    order = np.arange(n)
    _swap(order, random.swap_targets(bits.random_raw(n)))
    return order


class Orders(Stateful, Iterator[np.ndarray]):
    """An endless iterator over orders of the terms, one per outer iteration: int64, shape (n,).

    Parameters
    ----------
    n : int
        Number of terms.
    sampling : str
        ``"permutation"``, ``"runs"``, ``"uniform"`` or ``"sequential"``.
    seed : int, or list of int
    approx_order : str
        One of ``APPROX_ORDERS``.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_bits", "_fresh")

    def __init__(self, n: int, sampling: str, seed: Any, approx_order: str = SAME) -> None:
        self._n, self._sampling, self._bits = n, sampling, np.random.PCG64(seed)
        self._fresh = None
        if approx_order == FRESH:
            self._fresh = Orders(n, sampling, [seed, 2])

    def __next__(self) -> np.ndarray:
        """Return the order of the next iteration."""
        n = self._n
        if self._sampling == "sequential":
            return np.arange(n)
        if self._sampling == "permutation":
            return permutation(n, self._bits)
        if self._sampling == "runs":
            runs = permutation(-(-n // _RUN), self._bits)
            order = (runs[:, None] * _RUN + np.arange(_RUN)).ravel()
            return order[order < n]
        raw = self._bits.random_raw(n)
        return (((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)

    def of_approximate_pass(self, order: np.ndarray) -> np.ndarray:
        """Return the order of the next approximate pass of an iteration with ``order``."""
        return order if self._fresh is None else next(self._fresh)

    def parts(self, order: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the terms that the exact pass of an iteration visits, in parts."""
        yield order


class GapOrders(Orders):
    """Permutations, except that exact passes draw terms with replacement, in proportion to gaps.

    Parameters
    ----------
    n, seed, approx_order
        As for `Orders`.
    gaps : callable
        Returns the last known gaps, float64 of shape (n,): not negative, ∞ where none is known yet.
    """

    STATE = (*Orders.STATE, "_draws")

    def __init__(
        self, n: int, seed: int, gaps: Callable[[], np.ndarray], approx_order: str = SAME
    ) -> None:
        super().__init__(n, "permutation", seed, approx_order)
        self._gaps = gaps
        self._draws = np.random.PCG64([seed, 1])

    def parts(self, order: np.ndarray) -> Iterator[np.ndarray]:
        """Yield as many terms as ``order`` has, drawn by the gaps that are known at each part."""
        for size in np.diff(np.linspace(0, order.size, _DRAWS + 1).astype(int)):
            if size:
                yield self.drawn(size)

    def drawn(self, size: int) -> np.ndarray:
        """Draw terms; without replacement while a gap is unknown, or none is positive."""
        n, total = self._n, np.cumsum(self._gaps())
        if not 0.0 < total[-1] < np.inf:
            return random.permutation(n, self._draws)[:size]
        drawn = random.uniform((size,), self._draws) * total[-1]
        return np.minimum(np.searchsorted(total, drawn, side="right"), n - 1)
