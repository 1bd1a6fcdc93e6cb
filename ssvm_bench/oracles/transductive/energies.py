"""Energies of labelings, and the label step (Laude et al., (14)).

.. code-block:: text

    y ← argmin over y of  Σ_i u_{i,y_i} + E(y)

Points whose label is told keep it in every step. Of the rest there may be

================  =====================================================  =======================
energy            E(y)                                                   the step
================  =====================================================  =======================
`Separate`        0                                                      each point by itself
`Counts`          0 if every clique C has L_C^j ≤ |{i ∈ C: y_i = j}|     :mod:`.counts`
                  ≤ U_C^j, else ∞
`Potts`           Σ_{k∼l} c_kl [y_k ≠ y_l]                               :mod:`.potts`
================  =====================================================  =======================

Of several labels of the same u, the lowest is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class Energy(ABC):
    """An energy of the labelings of n points.

    Parameters
    ----------
    told : ndarray of int64, shape (n,)
        The label of a point, −1 where it is not told.
    n_labels : int
    """

    def __init__(self, told: np.ndarray, n_labels: int) -> None:
        self.told, self.n_labels = told, n_labels
        self.free = np.flatnonzero(told < 0)

    @abstractmethod
    def value(self, y: np.ndarray) -> float:
        """Return E(y) of a labeling that keeps what is told; ∞ where it is not allowed."""

    @abstractmethod
    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Return a labeling of low Σ_i u_{i,y_i} + E(y).

        Parameters
        ----------
        u : ndarray of float64, shape (n, L)
        y : ndarray of int64, shape (n,), or None
            The labeling so far, where a step may begin.
        """

    def nearest(self, u: np.ndarray) -> np.ndarray:
        """Return the labeling with every point by itself."""
        y = u.argmin(axis=1)
        known = self.told >= 0
        y[known] = self.told[known]
        return y


class Separate(Energy):
    """Labels that are told, and nothing else."""

    def value(self, y: np.ndarray) -> float:
        """Return 0."""
        return 0.0

    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Return the best label of each point."""
        return self.nearest(u)


def sum_of(u: np.ndarray, y: np.ndarray) -> float:
    """Return Σ_i u_{i,y_i}."""
    return float(u[np.arange(y.size), y].sum())
