"""A solver that a callable of a Python program makes from the problem: its own class, say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, described, shown
from ssvm_bench.oracles.objective import Objective
from ssvm_bench.solvers.base import Solver, SolverConfig

CODE_VERSION = 1

FACTS = (
    *("has_dual", "follows_paths", "needs_expectations", "takes_kernels", "keeps_nonnegative"),
    *("at_one_w", "structures"),
)
"""What the class of a solver may say as the `SolverConfig` of a module does."""


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options.

    Attributes
    ----------
    make : callable
        Problem, clock and seed → solver. Its attributes named in ``FACTS`` are those of the config.
    """

    make: Any = field(hash=False)  # some callables have no hash

    def __post_init__(self) -> None:
        """Have the facts that the callable has."""
        for name in FACTS:
            if hasattr(self.make, name):
                object.__setattr__(self, name, getattr(self.make, name))


def build(config: Config, problem: Objective, clock: Clock, seed: int) -> Solver:
    """Return the solver.

    Raises
    ------
    RunFailedError
        If the callable raises anything, or does not return a solver.
    """
    what = f"The solver {shown(repr(config.make))}"
    try:
        made = config.make(problem, clock, seed)
    except SsvmBenchError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise RunFailedError(f"{what} cannot be made: {described(error)}. Correct it.") from error
    if not isinstance(made, Solver):
        raise RunFailedError(
            f"{what} made {shown(repr(made))}. Derive its class from Solver: see "
            "ssvm_bench/solvers/base.py."
        )
    return made
