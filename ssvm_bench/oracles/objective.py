"""The two contracts through which the runner uses a problem of any family.

A configuration's ``oracle`` builds the `Terms`: an objective without the weight of its regulariser.
``terms.problem(lam)`` is the `Objective`, the only place where the value of a point is computed. A
*point* is whatever a solver reports; only the objective looks into it:

=====================  =========================================  ===============================
family                 terms                                      a point
=====================  =========================================  ===============================
structural SVM         `ssvm_bench.oracles.base.Oracle`           w, shape (d,)
transduction           `…papers.transduction` (its oracle)        classifier W and labels y
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
"""The families of problems, by the names that oracles and solvers use."""


class Objective(Stateful, ABC):
    """A function to be minimised, and what is measured at a point.

    An objective whose results depend on earlier calls has a state.

    Attributes
    ----------
    lam : float
        Weight of the regulariser: λ, or ν of transduction.
    name : str
        Distinguishes objectives on the same data with the same weight; empty where there is only
        one.
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
        """The caller of an oracle for the solver; None: no oracle, or it makes its own calls."""
        return None

    @abstractmethod
    def measured(self, point: Any) -> tuple[float, dict[str, float]]:
        """Return the value of a point, and what else to log of it: trace column → number."""

    def upper_bound(self, point: Any, value: float) -> float:
        """Return an upper bound of the value of a point, even if `measured` is below that value.

        Parameters
        ----------
        point
        value : float
            The value that `measured` returned.

        Raises
        ------
        ConfigError
            If no bound is known.
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
        """Return the arrays of the last point that ``weights.npz`` keeps, ``w`` first."""

    def weights(self, point: Any) -> Any:
        """Return the point in the coordinates of the data, as `size` and `arrays` take it.

        That is the point itself, unless solvers see the problem in other coordinates.
        """
        return point

    def latent(self) -> np.ndarray | None:
        """Return the latent values that are fixed in the problem; None: there are none.

        Other latent values make another problem.
        """
        return None

    def update_latent(self, point: Any) -> tuple[Objective, int]:
        """Return the objective with the latent values best at a point, and how many changed.

        The value of the point does not rise.
        """
        return self, 0

    def with_latent(self, values: np.ndarray) -> Objective:
        """Return the objective with other latent values, which some `latent` has returned.

        Raises
        ------
        StateError
            If such values are impossible here.
        """
        raise NotImplementedError(f"{type(self).__name__} does not take latent values")

    def check_point(self, point: Any) -> None:
        """Raise ``StateError`` if a point is invalid although its arrays are right; here, never."""

    def radius(self) -> float:
        """Return R, the largest difference of features by labels; NaN: none, or not known."""
        return math.nan

    def fresh(self) -> Objective:
        """Return the objective for one solver: itself, unless results depend on earlier calls.

        Subclasses with such results override this.
        """
        return self

    def check_bound(self, point: Any, earlier: Any, primal: float, dual: float) -> None:
        """Raise ``RunFailedError`` if a lower bound is above the value of a point; here, never.

        Parameters
        ----------
        point, earlier
            The last point that was measured, and the one before; None if there is none.
        primal, dual : float
            The value of ``point``, and the bound.
        """


class Terms(Stateful, ABC):
    """An objective without the weight of its regulariser.

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
