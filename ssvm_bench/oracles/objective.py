"""What the runner may ask of a problem, of whatever family: the two contracts that it lives on.

A configuration's ``oracle`` builds the `Terms`: what an objective is made of but for the weight of
its regulariser. ``terms.problem(lam)`` is the `Objective`: the one place where the value of a point
is computed. A *point* is whatever a solver reports, and nobody but the objective looks into it:

=====================  =========================================  ===============================
family                 terms                                      a point
=====================  =========================================  ===============================
structural SVM         `ssvm_bench.oracles.base.Oracle`           w, shape (d,)
transduction           `…papers.transduction` (its oracle)         classifier W and labels y
=====================  =========================================  ===============================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.state import Stateful

if TYPE_CHECKING:
    from ssvm_bench.oracles.caller import Caller

STRUCTURAL_SVM, TRANSDUCTION = "structural SVM", "transduction"
"""The families of problems, as oracles and solvers name theirs."""


class Objective(Stateful, ABC):
    """A function to be minimised, and what there is to tell of a point.

    One whose answers depend on earlier ones has a state.

    Attributes
    ----------
    lam : float
        Weight of the regulariser: λ, or ν of transduction.
    name : str
        Tells objectives on the same data with the same weight from each other; empty where there
        is but one.
    """

    lam: float
    name: str = ""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of terms: examples, or points."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of weights."""

    @property
    def caller(self) -> Caller | None:
        """Who calls an oracle for the solver; None: there is none, or it calls itself."""
        return None

    @abstractmethod
    def measured(self, point: Any) -> tuple[float, dict[str, float]]:
        """Return the value of a point, and what else to log of it: trace column → number."""

    def upper_bound(self, point: Any, value: float) -> float:
        """Return a number that the value of a point is not above, whatever `measured` says.

        Parameters
        ----------
        point
        value : float
            What `measured` has returned.

        Raises
        ------
        ConfigError
            If no such number is known.
        """
        return value

    @abstractmethod
    def size(self, point: Any) -> float:
        """Return the norm of a point's weights."""

    @abstractmethod
    def losses(self, point: Any) -> dict[str, float]:
        """Return mean losses of a point's predictions, named ``train`` and the like."""

    @abstractmethod
    def arrays(self, point: Any) -> dict[str, np.ndarray]:
        """Return what is kept of the last point: the arrays of ``weights.npz``, ``w`` first."""

    def weights(self, point: Any) -> Any:
        """Return the point for the data as they are, for which `size` and `arrays` are asked.

        That is the point itself, unless solvers see the problem in other coordinates.
        """
        return point

    def latent(self) -> np.ndarray | None:
        """Return the latent values that are fixed in the problem, if any are.

        With others, it is another problem.
        """
        return None

    def update_latent(self, point: Any) -> tuple[Objective, int]:
        """Return the objective with latent values that are best at a point, and how many differ.

        Its value there is not higher.
        """
        return self, 0

    def with_latent(self, values: np.ndarray) -> Objective:
        """Return the objective with other latent values, which `latent` of one has returned.

        Raises
        ------
        StateError
            If they cannot be.
        """
        raise NotImplementedError(f"{type(self).__name__} does not take latent values")

    def check_point(self, point: Any) -> None:
        """Raise ``StateError`` if a point with the right arrays is none; here, never."""

    def radius(self) -> float:
        """Return the largest difference of features that labels make; NaN: none, or not known."""
        return math.nan

    def fresh(self) -> Objective:
        """Return the objective for one solver: itself, unless its answers depend on earlier ones.

        This one's may not, unless a subclass says so.
        """
        return self

    def check_bound(self, point: Any, earlier: Any, primal: float, dual: float) -> None:
        """Raise ``RunFailedError`` if a lower bound is above the value of a point; here, never.

        Parameters
        ----------
        point, earlier
            The last point that was measured, and the one before; None if there is none.
        primal, dual : float
            Its value, and the bound.
        """


class Terms(Stateful, ABC):
    """What an objective is made of, but for the weight of its regulariser.

    Attributes
    ----------
    n, d : int
        Numbers of terms and of weights.
    """

    n: int
    d: int

    @abstractmethod
    def problem(self, lam: float) -> Objective:
        """Return the objective, given the weight of its regulariser."""
