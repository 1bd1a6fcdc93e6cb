"""Characters of fixed widths, of which images of text are put together without gaps.

.. code-block:: text

    k(s_1) = 0,   k(s_i) = k(s_{i−1}) + ω(a_{i−1}),   W = k(s_L) + ω(a_L)

(Uřičář and Franc 2012, equation 15) for characters a_i with the widths ω(a_i) at the columns
k(s_i). The label of a column is a pair, the character and the column in it; pairs are numbered
character by character. A sequence of labels is *admissible* if it is such a segmentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Alphabet(NamedTuple):
    """The characters, in the order of their labels.

    Attributes
    ----------
    names : tuple of str
    widths : tuple of int
        ω ≥ 1, in columns.
    """

    names: tuple[str, ...]
    widths: tuple[int, ...]

    @property
    def n_labels(self) -> int:
        """Number of pairs of a character and a column in it."""
        return sum(self.widths)

    @property
    def starts(self) -> np.ndarray:
        """Label of the first column of each character, int64."""
        return np.cumsum([0, *self.widths[:-1]])

    @property
    def labels(self) -> list[str]:
        """What the labels are called: character and column."""
        pairs = zip(self.names, self.widths, strict=True)
        return [f"{name}.{j}" for name, width in pairs for j in range(width)]

    def columns(self, characters: Sequence[int]) -> np.ndarray:
        """Return the labels (int64) of the columns of a text, given by places in ``names``."""
        starts = self.starts
        pieces = [starts[a] + np.arange(self.widths[a]) for a in characters]
        return np.concatenate(pieces)

    def segments(self, y: np.ndarray) -> list[tuple[int, int]]:
        """Return the (character, first column) pairs of an admissible sequence of labels."""
        of_label = np.repeat(np.arange(len(self.widths)), self.widths)
        found, k = [], 0
        while k < len(y):
            found.append((int(of_label[y[k]]), k))
            k += self.widths[found[-1][0]]
        return found

    def fault(self, n_labels: int, n_features: int) -> str | None:
        """Return what is wrong with it for data of so many labels and features."""
        if len(self.names) != len(self.widths):
            return f"it has {len(self.names)} characters and {len(self.widths)} widths"
        for name, width in zip(self.names, self.widths, strict=True):
            if width < 1:
                return f"the width of character {name!r} is {width}, and widths are 1 or more"
        if self.n_labels != n_labels:
            return f"its characters have {self.n_labels} columns, and there are {n_labels} labels"
        return None

    def first_inadmissible(self, y: np.ndarray, offsets: np.ndarray) -> tuple[int, str] | None:
        """Return the first part whose label cannot be where it is, and why; None if all can.

        Parameters
        ----------
        y : ndarray of integers, shape (parts,)
        offsets : ndarray of int64, shape (n + 1,)
        """
        y = y.astype(np.int64)
        starts, stops = np.zeros((2, self.n_labels), bool)
        starts[self.starts], stops[self.starts + np.array(self.widths) - 1] = True, True
        begins, ends = np.zeros((2, y.size), bool)
        begins[offsets[:-1]], ends[offsets[1:] - 1] = True, True
        after = np.concatenate(([True], stops[y[:-1]])) | begins
        follows = np.concatenate(([False], y[1:] == y[:-1] + 1)) & ~begins
        wrong = np.where(after, ~starts[y], ~follows) | (ends & ~stops[y])
        if not wrong.any():
            return None
        part = int(np.argmax(wrong))
        return part, (
            f"has the label {self.labels[y[part]]}, where no sequence of whole characters can have "
            "it: they follow each other without gaps and overlaps, and fill an image"
        )
