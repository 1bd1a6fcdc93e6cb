"""Weights of examples, for oracles without them: every plane of term i is multiplied by s_i.

.. code-block:: text

    H_i(w) = s_i/n max_y { Δ(y_i,y) + Θ_i(y) − Θ_i(y_i) + ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ },   s_i > 0

The maximiser does not depend on s_i; the oracle without weights finds it. The s_i are the ``costs``
of the dataset. Planes are kept as sparse rows, and oracle calls are made one by one from Python.
Oracles of examples of one part have compiled costs instead (:mod:`ssvm_bench.oracles.options`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.config import registry
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle, Plane
from ssvm_bench.oracles.options import OracleConfig

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options.

    Attributes
    ----------
    inner : OracleConfig
        Options of the oracle without weights.
    """

    takes_costs: ClassVar[bool] = True
    has_expectations: ClassVar[bool] = False

    inner: Any = field()

    @property
    def needs_nonnegative(self) -> bool:
        """See `OracleConfig`."""
        return bool(self.inner.needs_nonnegative)

    def largest_cost(self, dataset: Dataset) -> float:
        """Return the largest factor by which features or losses of an example are multiplied."""
        inner = self.inner.largest_cost(dataset.derived(costs=None))
        return super().largest_cost(dataset) * float(inner)


def of(inner: OracleConfig) -> Config:
    """Return the options of an oracle with weights."""
    spent = {name: getattr(inner, name) for name in ("cost_call", "cost_plane", "cost_visit")}
    return Config(inner.name, "weighted", inner, **spent, delay=inner.delay)


def inner_of(config: OracleConfig) -> OracleConfig:
    """Return the options of the oracle without weights."""
    return config.inner if isinstance(config, Config) else config


def build(config: Config, dataset: Dataset) -> Oracle:
    """Return the oracle of a dataset whose examples have weights."""
    inner = registry.module("oracle", config.inner.kind)
    assert dataset.costs is not None
    return Weighted(inner.build(config.inner, dataset.derived(costs=None)), dataset.costs)


class Weighted(Oracle):
    """An oracle whose terms are multiplied by weights.

    Parameters
    ----------
    inner : Oracle
        The oracle of the terms without weights, which checks what it returns.
    weights : ndarray of float64, shape (n,)
        s_i.
    """

    STATE = ("inner",)

    def __init__(self, inner: Oracle, weights: np.ndarray) -> None:
        self.inner, self.factors = inner, weights.tolist()
        self.n, self.d, self.exact = inner.n, inner.d, inner.exact
        self.nonnegative = inner.nonnegative

    @property
    def takes_threads(self) -> bool:
        """See `Oracle`."""
        return self.inner.takes_threads

    @property
    def calls_by_term(self) -> bool:
        """See `Oracle`."""
        return self.inner.calls_by_term

    def apart(self) -> Weighted:
        """See `Oracle`."""
        made = copy.copy(self)
        made.inner = self.inner.apart()
        return made

    def rejoin(self, other: Oracle) -> None:
        """See `Oracle`."""
        assert isinstance(other, Weighted)
        self.inner.rejoin(other.inner)

    def truth(self, i: int) -> np.ndarray:
        """Return y_i."""
        return self.inner.truth(i)

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the best labeling, which does not depend on s_i."""
        return self.inner.argmax(w, i)

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the prediction."""
        return self.inner.predict(w, i)

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return s_i Δ(y_i, y)."""
        return self.factors[i] * self.inner.loss(i, y)

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return s_i ϕ(x_i, y)."""
        indices, values = self.inner.joint_feature(i, y)
        return indices, self.factors[i] * values

    def fixed_score(self, i: int, y: np.ndarray) -> float:
        """Return s_i Θ_i(y)."""
        return self.factors[i] * self.inner.fixed_score(i, y)

    def plane(self, i: int, y: np.ndarray) -> Plane:
        """Return s_i times the plane."""
        return self._times(i, self.inner.plane(i, y))

    def plane_at(self, w: np.ndarray, i: int, y: np.ndarray) -> tuple[Plane, float]:
        """Return the plane of y, which `argmax` returned at w, and its value."""
        plane, value = self.inner.plane_at(w, i, y)
        return self._times(i, plane), self.factors[i] * value

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Return the best plane at w, and its value."""
        plane, value = self.inner.best_plane(w, i)
        return self._times(i, plane), self.factors[i] * value

    def upper_bound(self, w: np.ndarray, i: int) -> float:
        """Return s_i times the upper bound."""
        return self.factors[i] * self.inner.upper_bound(w, i)

    def fresh(self) -> Oracle:
        """Return the oracle for one solver; see `Oracle`."""
        inner = self.inner.fresh()
        return self if inner is self.inner else Weighted(inner, np.array(self.factors))

    def diagnostics(self) -> dict[str, float]:
        """Return the diagnostics of the oracle without weights."""
        return self.inner.diagnostics()

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions, without weights."""
        return self.inner.mean_loss(w)

    def _times(self, i: int, plane: Plane) -> Plane:
        indices, values, offset = plane
        return Plane(indices, self.factors[i] * values, self.factors[i] * offset)
