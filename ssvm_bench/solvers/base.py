"""The contract of a solver: a state and one outer iteration; the loop is the runner's.

A solver sees a :class:`~ssvm_bench.problem.Problem` and a :class:`~ssvm_bench.clock.Clock`. It
knows neither the dataset, nor the file system, nor what kind of clock it is. To add one, derive
from :class:`Solver` and put ``Config``, ``CODE_VERSION`` and ``build`` beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ssvm_bench.clock import Clock
from ssvm_bench.problem import Problem


class Iterate(NamedTuple):
    """What a solver reports: its w (outer layout, shape (d,)) and the dual value F (or NaN)."""

    w: np.ndarray
    dual: float


class Solver(ABC):
    """A training algorithm.

    Attributes
    ----------
    converged : bool
        The last iteration has proved that the iterate is optimal, to the solver's own precision if
        it has one.
    ended : str or None
        Another reason to end the run, of those that :mod:`ssvm_bench.runs.runner` names.
    approx_passes : int
        Approximate passes of the last iteration.
    follows_paths : bool
        Whether `go_on` is there.
    needs_path : bool
        Whether the run must have a path of λ.
    """

    converged: bool = False
    ended: str | None = None
    approx_passes: int = 0
    follows_paths: bool = False
    needs_path: bool = False

    def __init__(self, problem: Problem, clock: Clock) -> None:
        self.problem = problem
        self.clock = clock

    @abstractmethod
    def iterate(self) -> None:
        """Do one outer iteration (batch methods: one pass of the exact oracle)."""

    def go_on(self, lam: float, clock: Clock) -> None:
        """Go on with another λ, from all that is known so far, and with a new clock."""
        raise NotImplementedError

    @abstractmethod
    def reported(self) -> Iterate:
        """Return the iterate to report; called while the clock is paused."""

    def working_set_mean(self) -> float:
        """Return the mean number of cached planes per term."""
        return 0.0

    def diagnostics(self) -> dict[str, float]:
        """Return what else to log of the solver's state: trace column → value."""
        return {}
