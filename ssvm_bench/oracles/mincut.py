"""Two labels on a graph: the oracle is a minimum cut (MP-BCFW, equation 10).

With x = y, the energy of :mod:`ssvm_bench.oracles.graph` is, up to a constant,

.. code-block:: text

    Σ_l (u[l,1] − u[l,0]) x_l + Σ_{k∼l} p_{kl} [x_k ≠ x_l]

The oracle is exact; of several best labelings, it returns the lexicographically lowest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import implements, shared_kernel
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.cut import OPEN, Energy, minimise, set_capacities
from ssvm_bench.oracles.graph import (
    GraphConfig,
    GraphOracle,
    Writing,
    edges_cost,
    exponent,
    set_potts,
    write_plane_of,
)
from ssvm_bench.oracles.joint_features import inner_dimension
from ssvm_bench.oracles.labeling import write_plane
from ssvm_bench.oracles.scoring import label_loss, label_score, longest, parts

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1


Config = GraphConfig


def build(config: Config, dataset: Dataset) -> MinCut:
    """Return the oracle of a dataset of graphs with two labels.

    Raises
    ------
    ConfigError
        If the labels form no graph, or there are more than two.
    """
    config.check_structure(dataset)
    if dataset.n_labels != 2:
        raise ConfigError(
            f"oracle={config.name} does not fit dataset={dataset.name}: it handles two labels, and "
            f"{dataset.name} has {dataset.n_labels}. Try oracle=alpha_expansion."
        )
    return MinCut(dataset, config)


class CompiledMinCut(NamedTuple):
    """The oracle for `write_plane`: what a plane needs, and what `_minimise` does."""

    given: Writing
    difference: np.ndarray
    theta: np.ndarray
    zeros: np.ndarray
    of: Energy


class MinCut(GraphOracle):
    """The exact oracle for two labels."""

    def _make_room(self) -> None:
        """See `GraphOracle`."""
        super()._make_room()
        parts = longest(self.features)
        self._zeros = np.zeros(parts, np.uint8)
        difference = np.zeros(inner_dimension(self.features))
        self._own_scratch = difference, np.zeros(parts), self._zeros

    def writing(self) -> CompiledMinCut | None:
        """See `Oracle`."""
        if type(self) is not MinCut or not self.minimiser.compiled:
            return None
        return CompiledMinCut(self._writing(), *self._own_scratch, self.minimiser.energy)

    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return the labeling of lowest energy."""
        potts = self.potts_at(w)
        of, scratch = self.minimiser.energy, self._own_scratch
        s, left = _minimise(*self._problem, w, i, float(augmented), potts, *scratch, of)
        self.check_scale(i, s)
        if left:
            self.minimiser.cut(i, self._zeros)
        return of.x[: self.truth(i).size].astype(np.uint8)


@implements(write_plane, CompiledMinCut, shared=True)
def _write_plane(oracle, w, i, indices, values):
    given, of = oracle.given, oracle.of
    if not set_potts(given, w):
        return 0, 0.0, False
    scratch = oracle.difference, oracle.theta, oracle.zeros
    s, _ = _minimise(given.features, given.graphs, w, i, 1.0, given.potts, *scratch, of)
    if s == 0:
        return 0, 0.0, False
    for l in range(parts(given.features, i)[1]):
        given.y[l] = of.x[l]
    return write_plane_of(given, w, i, True, indices, values)


@shared_kernel
def _minimise(features, graphs, w, i, loss, potts, difference, theta, zeros, of):
    """Minimise the energy times 2^s; return s, and whether nodes are left to `Minimiser.cut`.

    Only differences of scores matter, so that one inner product per part with w_1 − w_0 is enough.
    """
    first, L = parts(features, i)
    for j in range(features.n_features):
        difference[j * features.stride] = w[features.n_features + j] - w[j]
    total = 0.0
    for l in range(L):
        theta[l] = label_score(features, difference, first + l, 0)
        more = label_loss(features, first + l, 1) - label_loss(features, first + l, 0)
        theta[l] += loss * more / L
        total += abs(theta[l])
    s = exponent(edges_cost(graphs, i, potts), total)
    if s == 0:
        return s, False
    scale = 2.0**s
    set_capacities(graphs, i, potts, s, of)
    for l in range(L):
        of.d[l] = np.int64(np.rint(-scale * theta[l]))
        of.x[l] = 0 if of.d[l] >= of.most[l] else 1 if of.d[l] < -of.most[l] else OPEN
    return s, minimise(graphs, i, of, zeros, 1)
