"""The option ``nonnegative``: which weights a solver keeps from being negative."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ssvm_bench.config import ranges
from ssvm_bench.solvers.base import SolverConfig

_OPTION = "solver.nonnegative"


@dataclass(frozen=True)
class ConstrainedConfig(SolverConfig):
    """Options of a solver with the steps of :mod:`ssvm_bench.solvers.coordinate.nonnegative`.

    Attributes
    ----------
    nonnegative : str or tuple
        ``none``, ``all``, or ranges (:mod:`ssvm_bench.config.ranges`), written in one way.
    """

    nonnegative: ranges.Given = field(default=ranges.NONE, kw_only=True)

    def __post_init__(self) -> None:
        """Check the options, and write ranges of weights in one way."""
        super().__post_init__()
        object.__setattr__(self, "nonnegative", ranges.canonical(_OPTION, self.nonnegative))

    @property
    def constraint(self) -> str:
        """See the base class."""
        weights = ranges.text(ranges.parse(_OPTION, self.nonnegative))
        return {"": "", "0-": "w ≥ 0"}.get(weights, f"w[{weights}] ≥ 0")

    def floor(self, d: int) -> np.ndarray:
        """Return the least value of each of d weights, or an empty array if all may be negative.

        Raises
        ------
        ConfigError
            If there are not as many weights.
        """
        if self.nonnegative == ranges.NONE:
            return np.zeros(0)
        given = ranges.parse(_OPTION, self.nonnegative)
        return np.where(ranges.chosen(_OPTION, given, d), 0.0, -np.inf)
