"""The problem of a structural SVM: the terms of an oracle, and λ (see :mod:`.base`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.interrupts import interruptible
from ssvm_bench.base.linalg import inner
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.caller import Caller
from ssvm_bench.oracles.objective import Objective

Oracle = Any
"""The class of :mod:`ssvm_bench.oracles.base`, which imports this module."""

_ROUNDING = 1e-9
"""Rounding error of primal and dual values, sums over all examples, relative to their size."""


@dataclass(frozen=True)
class Problem(Objective):
    """The terms of one training problem and its λ; a point is w.

    Attributes
    ----------
    oracle : Oracle
        The max-oracle of all terms.
    lam : float
        λ > 0.
    """

    STATE = ("oracle",)

    oracle: Oracle
    lam: float

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.oracle.n

    @property
    def d(self) -> int:
        """Number of weights."""
        return self.oracle.d

    @property
    def name(self) -> str:  # type: ignore[override]
        """The oracle's name; see `Objective`."""
        return self.oracle.name

    @property
    def caller(self) -> Caller | None:
        """The caller of the oracle for the solver, if there is one."""
        return self.oracle.caller

    def primal(self, w: np.ndarray) -> float:
        """Return P(w), by n oracle calls."""
        return self._regulariser(w) + self.risk(w, with_plane=False).value

    def risk(self, w: np.ndarray, **options: Any) -> Any:
        """Return the result of ``oracle.risk``, checked."""
        risk = self.oracle.risk(w, **options)
        checks.check_risk(self.oracle, risk)
        return risk

    def dual(self, w: np.ndarray, offset: float) -> float:
        """Return F(φ) for φ⋆ = −λ w and φ∘ = ``offset``."""
        return offset - self._regulariser(w)

    def _regulariser(self, w: np.ndarray) -> float:
        return 0.5 * self.lam * inner(w, self.oracle.metric(w))

    def measured(self, point: np.ndarray) -> tuple[float, dict[str, float]]:
        """Return P(w), and the oracle's diagnostics of the calls that compute it."""
        self.oracle.diagnostics()  # drop those of earlier calls
        with self.oracle.without_delay():
            return self.primal(point), self.oracle.diagnostics()

    def upper_bound(self, point: np.ndarray, value: float) -> float:
        """Return an upper bound of P(w): P(w) itself if the oracle is exact."""
        if self.oracle.exact:
            return value
        bounds = (
            sum(part.upper_bound(point, i) for i in interruptible(range(part.n))) * part.n / self.n
            for _, part in self.oracle.chunks()
        )
        return self._regulariser(point) + sum(bounds)

    def weights(self, point: np.ndarray) -> np.ndarray:
        """Return the weights of the data's features."""
        return self.oracle.weights(point)

    def latent(self) -> np.ndarray | None:
        """Return the latent values of the terms, if there are any."""
        return self.oracle.latent()

    def update_latent(self, point: np.ndarray) -> tuple[Problem, int]:
        """Return the problem with the latent values that are best at w, and how many differ."""
        oracle, changes = self.oracle.update_latent(point)
        return replace(self, oracle=oracle), changes

    def with_latent(self, values: np.ndarray) -> Problem:
        """Return the problem with other latent values."""
        return replace(self, oracle=self.oracle.with_latent(values))

    def size(self, point: np.ndarray) -> float:
        """Return ‖w‖₂."""
        return math.sqrt(inner(point, self.oracle.metric(point)))

    def radius(self) -> float:
        """Return R, the largest difference of features."""
        return float(self.oracle.radius())

    def losses(self, point: np.ndarray) -> dict[str, float]:
        """Return the mean loss of the predictions for the examples."""
        return {"train": self.oracle.mean_loss(point)}

    def arrays(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Return w, and the other arrays that predictions need."""
        return {"w": point, **self.oracle.stored(point)}

    def fresh(self) -> Problem:
        """Return the problem with an oracle of its own."""
        return replace(self, oracle=self.oracle.fresh())

    def check_bound(
        self, point: np.ndarray, earlier: np.ndarray | None, primal: float, dual: float
    ) -> None:
        """Raise ``RunFailedError`` if an exact oracle has F(φ) > P(w), beyond rounding."""
        oracle = self.oracle
        if oracle.exact and dual - primal > _ROUNDING * max(abs(primal), abs(dual), 1.0):
            before = np.zeros(self.d) if earlier is None else np.asarray(earlier)
            found = checks.contradicted(oracle, np.asarray(point), before)
            where = "" if found is None else f", as it does not at example {found}"
            raise RunFailedError(
                f"the dual value {dual:.9g} is above the primal one, {primal:.9g}, which cannot be "
                f"where the oracle returns a best labeling of every example{where}. Test it "
                "against brute force; an approximate oracle says `exact = False`"
            )
