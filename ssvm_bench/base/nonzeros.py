"""Long vectors that are mostly 0, stored as their non-zeros."""

from __future__ import annotations

from collections.abc import Mapping
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


@state.like.register
def _(own: Nonzeros, given: Any) -> Nonzeros:
    names = {"size", "places", "values"}
    state.expect(isinstance(given, Mapping) and given.keys() == names, "has other names")
    places = state.array(np.zeros(0, np.int64), given["places"])
    ascend = bool((np.diff(places) > 0).all())
    state.expect(given["size"] == own.size and ascend, "has other places")
    state.expect(places.max(initial=0) < own.size, "has a place that is out of range")
    return Nonzeros(own.size, places, state.array(own.values, given["values"], places.shape))
