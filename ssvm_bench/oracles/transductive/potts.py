"""Potts pairs: the label step by a minimum cut for two labels, by α-expansion for more.

.. code-block:: text

    E(y) = Σ_{k∼l} c_kl [y_k ≠ y_l],      c ≥ 0

Energies are rounded to integers with the largest power of two for which no sum overflows, as in
:mod:`ssvm_bench.oracles.graph`, of which this has a copy for one graph with weights. Points whose
label is told are decided before anything is cut. The step by α-expansion begins at the better of
the labeling so far and each point by itself, and ends where no expansion lowers the energy.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.jit import kernel
from ssvm_bench.oracles.cut import OPEN, Graphs, Minimiser, decide, one_graph
from ssvm_bench.oracles.transductive.energies import Energy, sum_of

# mypy: disable-error-code="no-untyped-def"

_BITS = 60


class Potts(Energy):
    """Pairs that like to have the same label."""

    def __init__(
        self, told: np.ndarray, n_labels: int, pairs: np.ndarray, weights: np.ndarray
    ) -> None:
        super().__init__(told, n_labels)
        self.pairs, self.weights = pairs, weights
        self.graphs: Graphs = one_graph(told.size, pairs)
        self.minimiser = Minimiser(self.graphs)

    def value(self, y: np.ndarray) -> float:
        """Return the weight of the pairs with different labels."""
        return float(self.weights[y[self.pairs[:, 0]] != y[self.pairs[:, 1]]].sum())

    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Return the minimiser of two labels; of more, what no expansion improves."""
        unary, capacity = self._integers(u)
        if self.n_labels == 2:
            start = np.where(self.told > 0, 1, 0)
            self._expand(unary, capacity, start, 1)
            return start
        starts = [self.nearest(u)] + ([] if y is None else [y])
        best = min(starts, key=lambda start: sum_of(u, start) + self.value(start)).copy()
        alpha = failures = 0
        while failures < self.n_labels:
            failures = 0 if self._expand(unary, capacity, best, alpha) else failures + 1
            alpha = (alpha + 1) % self.n_labels
        return best

    def _integers(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u and the weights times a power of two that makes halves of weights whole."""
        u = u - u.min(axis=1)[:, None]
        total = float(u.max(axis=1).sum() + self.weights.sum())
        if not np.isfinite(total):
            raise RunFailedError("The scores of a point are not finite; has the run diverged?")
        scale = 2.0 ** (_BITS - 2 - np.frexp(max(total, 1e-300))[1])
        return np.rint(scale * u).astype(np.int64), 2 * np.rint(0.5 * scale * self.weights).astype(
            np.int64
        )

    def _expand(self, u: np.ndarray, capacity: np.ndarray, y: np.ndarray, alpha: int) -> bool:
        """Let points of y take α, the best of all such moves; return whether one does."""
        of = self.minimiser.energy
        self.minimiser.cut(*_expansion(self.graphs, u, capacity, alpha, self.told, y, of))
        taken = (of.x[: y.size] == 1) & (y != alpha)
        y[taken] = alpha
        return bool(taken.any())


@kernel
def _expansion(graphs, u, capacity, alpha, told, y, of):
    """Set up the energy of an expansion, as in α-expansion of images; told points keep theirs."""
    for l in range(y.size):
        if y[l] == alpha:
            of.x[l] = 1
        else:
            of.x[l] = OPEN if told[l] < 0 else 0
        of.d[l] = u[l, alpha] - u[l, y[l]]
    for e in range(capacity.size):
        k, l = graphs.tail[e], graphs.head[e]
        if y[k] == y[l] or y[k] == alpha or y[l] == alpha:
            of.capacity[e] = capacity[e]
        else:
            half = capacity[e] // 2
            of.capacity[e] = half
            of.d[k] -= half
            of.d[l] -= half
    return decide(graphs, 0, of)
