"""What solvers with distributions over labelings share: they need expectations, and constants."""

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
            If it has no expectations.
        """
        oracle = problem.oracle
        known = isinstance(oracle, LabelingOracle) and is_implemented(expect, type(oracle.compiled))
        self.check_oracle(known)
        assert isinstance(oracle, LabelingOracle)
        return oracle


@dataclass
class Constant:
    """A constant of a theorem that steps depend on: its bound, or less for as long as that will do.

    Attributes
    ----------
    value, bound : float
        What to take now, and what the theorem takes.
    searched : bool
        ``step=search``: where steps with ``value`` do not do what the theorem needs, it doubles up
        to the bound; where they do, it falls by a tenth.
    """

    value: float
    bound: float
    searched: bool

    @classmethod
    def begin(cls, step: str, low: float, bound: float) -> Constant:
        """Return it at its bound, or, if it is to be searched for, at ``low``."""
        searched = step == "search"
        return cls(low if searched else bound, bound, searched)

    def will_do(self, excess: float) -> bool:
        """Tell whether to take a step that misses what is needed by ``excess``; then change."""
        if not self.searched:
            return True
        taken = excess <= 0.0 or self.value >= self.bound
        self.value = min((_DECAY if taken else _GROWTH) * self.value, self.bound)
        return taken
