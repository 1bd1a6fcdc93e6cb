"""Long vectors that are mostly 0, stored as their non-zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.base import state

_AT_A_TIME = 1 << 18


@dataclass(frozen=True)
class Nonzeros:
    """A vector stored as its non-zeros; numpy converts it to the whole array.

    Attributes
    ----------
    size : int
    places : ndarray of int64
        Ascending.
    values : ndarray of float64
    """

    size: int
    places: np.ndarray
    values: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the whole vector."""
        if copy is False:
            raise ValueError("the whole vector has to be made")
        whole = np.zeros(self.size, dtype)
        whole[self.places] = self.values
        return whole

    def write(self, file: Any) -> None:
        """Write the whole vector in numpy's file format, piece by piece."""
        header = {"descr": "<f8", "fortran_order": False, "shape": (self.size,)}
        np.lib.format.write_array_header_1_0(file, header)
        for begin in range(0, self.size, _AT_A_TIME):
            piece = np.zeros(min(_AT_A_TIME, self.size - begin), "<f8")
            here = slice(*np.searchsorted(self.places, (begin, begin + piece.size)))
            piece[self.places[here] - begin] = self.values[here]
            file.write(piece.data)


_FEW = 0.5
"""Share of non-zeros up to which their places and values take less memory than the whole."""


def compact(array: np.ndarray | Nonzeros) -> np.ndarray | Nonzeros:
    """Return a copy of an array, flat; as `Nonzeros` if most of it is 0."""
    if isinstance(array, Nonzeros):
        return array
    places = np.flatnonzero(array)
    if places.size <= _FEW * array.size:
        return Nonzeros(array.size, places, array.ravel()[places])
    return array.flatten()


_LIMITS = {
    "size": state.Limits(equals=lambda _, own: own.size),
    "places": state.Limits(size=..., below="size"),
    "ascending places": state.Limits(of=lambda found, _: np.diff(found["places"]), least=1),
    "values": state.Limits(size=lambda found, _: found["places"].size),
}


@state.like.register
def _(own: Nonzeros, given: Any) -> Nonzeros:
    return Nonzeros(**state.parts_like(vars(own), given, _LIMITS, own))
