"""Lists of all planes of all terms, for solvers that work on a fixed finite set of planes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.memory import check_room

_BYTES = 64
"""Bytes per non-zero while planes are listed: its value, row and column, and their copies."""


class Constraints(NamedTuple):
    """All planes φ^{iy} of all terms, scaled by 1/n, except those of ground truths, which are 0.

    Attributes
    ----------
    term_start : ndarray of integers, shape (n + 1,)
        Term i has the planes ``term_start[i]:term_start[i + 1]``, in the order of their labels.
    indptr, indices, values : ndarrays of integers, integers and floats
        φ⋆ of every plane: rows of a CSR matrix of shape (planes, d), without repeated indices.
    offset : ndarray of floats, shape (planes,)
        φ∘.
    """

    term_start: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    offset: np.ndarray

    def star(self, d: int) -> csr_array:
        """Return φ⋆ of every plane; no copy."""
        return csr_array((self.values, self.indices, self.indptr), shape=(self.offset.size, d))

    @classmethod
    def of(cls, term_start: np.ndarray, star: csr_array, offset: np.ndarray) -> Constraints:
        """Return planes whose φ⋆ are the rows of a matrix."""
        return cls(term_start, star.indptr, star.indices, star.data, offset)

    @staticmethod
    def check_fit(planes: int, entries: float) -> None:
        """Raise ``RunFailedError`` if planes with so many entries in all take too much memory.

        Call this before the planes are listed.
        """
        check_room(
            _BYTES * entries,
            f"A list of all {planes} planes",
            "Set solver.planes=found, or use fewer examples.",
        )

    def check(self, n: int, d: int) -> None:
        """Raise ``ValueError`` unless planes are the finite rows of a CSR matrix, term after term.

        Parameters
        ----------
        n, d : int
            Numbers of terms and of weights.
        """
        ends, kinds = self.term_start, "".join(array.dtype.kind for array in self)
        right = kinds.replace("u", "i") == "iiiff" and ends.shape == (n + 1,)
        right = right and ends[0] == 0 and ends[-1] == self.offset.size
        try:
            star = self.star(d)
            star.check_format(full_check=True)
        except ValueError:
            right = False
        if right and not star.has_canonical_format:  # indices that do not rise, or repeat
            star = star.copy()
            star.sum_duplicates()
        if not (right and np.diff(ends).min(initial=0) >= 0 and star.nnz == self.indices.size):
            raise ValueError(
                "the oracle's constraints are not the rows of a CSR matrix, term after term"
            )
        if not (np.isfinite(self.values).all() and np.isfinite(self.offset).all()):
            raise ValueError("the oracle's constraints are not finite")


def of_wrong_labels(truth: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return term and label of each plane, in the planes' order, for terms with one label each.

    Parameters
    ----------
    truth : ndarray of uint8, shape (n,)
        y_i.
    n_labels : int
        K.
    """
    label = np.arange(n_labels - 1)
    wrong = label + (label >= truth[:, None])
    return np.repeat(np.arange(truth.size), label.size), wrong.ravel()
