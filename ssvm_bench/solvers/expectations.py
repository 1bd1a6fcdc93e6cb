"""Options and constants of the solvers that need expectations over labelings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ssvm_bench.base.jit import is_implemented
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import LabelingOracle, expect
from ssvm_bench.solvers.base import SolverConfig

STEPS = ("search", "bound")

_GROWTH, _DECAY = 2.0, 0.9


@dataclass(frozen=True)
class ExpectationConfig(SolverConfig):
    """Options of a solver that needs expectations."""

    needs_expectations: ClassVar[bool] = True
    structures: ClassVar[tuple[str, ...]] = ("independent", "regression", "chain", "segments")

    def oracle_of(self, problem: Problem) -> LabelingOracle:
        """Return the oracle of a problem.

        Raises
        ------
        ConfigError
            If the oracle has no expectations.
        """
        oracle = problem.oracle
        known = isinstance(oracle, LabelingOracle) and is_implemented(expect, type(oracle.compiled))
        self.check_oracle(known)
        assert isinstance(oracle, LabelingOracle)
        return oracle


@dataclass
class Constant:
    """A constant that step sizes depend on: a theorem's bound, or less while that suffices.

    Attributes
    ----------
    value, bound : float
        The current value, and the theorem's bound.
    searched : bool
        Whether ``step=search``: if a step with ``value`` fails the theorem's condition, the value
        doubles, up to the bound; if the condition holds, the value falls by a tenth.
    """

    value: float
    bound: float
    searched: bool

    @classmethod
    def begin(cls, step: str, low: float, bound: float) -> Constant:
        """Return the constant at its bound, or at ``low`` if it is searched for."""
        searched = step == "search"
        return cls(low if searched else bound, bound, searched)

    def will_do(self, excess: float) -> bool:
        """Return whether to take a step with this excess over its condition; adapt ``value``."""
        if not self.searched:
            return True
        taken = excess <= 0.0 or self.value >= self.bound
        self.value = min((_DECAY if taken else _GROWTH) * self.value, self.bound)
        return taken
