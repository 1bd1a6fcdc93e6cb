"""Chunks in sequences of labels, as the CoNLL shared tasks count them (conlleval).

A label is a prefix and a type, ``B-NP``, or ``O``, of no chunk. A chunk begins

* at B-, and at S- or U- (a chunk of one part);
* at any other label but O, where the part before is O, of another type, or the end of a chunk:
  E-, L-, S- or U-; or where the sequence begins;

and ends before the next one begins, before an O, and with the sequence. It is found if a predicted
chunk has the same first and last part, and the same type:

.. code-block:: text

    precision = found / predicted    recall = found / true    F1 = 2 found / (predicted + true)

References
----------
E. Tjong Kim Sang, S. Buchholz: Introduction to the CoNLL-2000 shared task: chunking. 2000; its
script conlleval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_BEGINS, _ENDS = "BSU", "ELSU"
_PREFIXES = {*"BIELSU"}


class Counts(NamedTuple):
    """How many chunks there are, were predicted, and were found."""

    true: int
    predicted: int
    found: int

    @property
    def precision(self) -> float:
        """Share of the predicted chunks that are right; 0 without any."""
        return self.found / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        """Share of the true chunks that are found; 0 without any."""
        return self.found / max(self.true, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.found / max(self.predicted + self.true, 1)


def are_chunks(names: Sequence[str]) -> bool:
    """Tell whether labels are those of chunks: O, and others with a prefix, B- among them.

    >>> are_chunks(["B-NP", "I-NP", "O"]), are_chunks(["NN", "O"]), are_chunks(["O"])
    (True, False, False)
    """
    others = [name for name in names if name != "O"]
    return any(name.startswith("B-") for name in others) and all(
        name[:1] in _PREFIXES and name[1:2] == "-" and name[2:] for name in others
    )


def scores(
    names: Sequence[str], truth: np.ndarray, predicted: np.ndarray, offsets: np.ndarray
) -> dict[str, Counts]:
    """Return the counts of each type of chunk, sorted, and those of all as ``""``.

    Parameters
    ----------
    names : sequence of str
        Of the labels.
    truth, predicted : ndarrays of integers, shape (parts,)
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i has the parts ``offsets[i]:offsets[i + 1]``.
    """
    types = sorted({name[2:] for name in names if name != "O"})
    true, guessed = (_chunks(names, types, labels, offsets) for labels in (truth, predicted))
    of_both = [np.bincount(chunks[2], minlength=len(types)) for chunks in (true, guessed)]
    # a chunk is known by its first part: those that begin together are compared
    _, here, there = np.intersect1d(true[0], guessed[0], assume_unique=True, return_indices=True)
    same = (true[1:, here] == guessed[1:, there]).all(axis=0)
    found = np.bincount(true[2, here[same]], minlength=len(types))
    counts = np.stack((*of_both, found), axis=1)
    of_type = {name: Counts(*row) for name, row in zip(types, counts.tolist(), strict=True)}
    return {"": Counts(*counts.sum(axis=0).tolist()), **of_type}


def _chunks(
    names: Sequence[str], types: Sequence[str], labels: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Return first part, last part and type of all chunks, shape (3, chunks)."""
    number = {name: k for k, name in enumerate(types)}
    kind = np.array([number.get(name[2:], -1) if name != "O" else -1 for name in names])[labels]
    begins, ends = (
        np.array([name[:1] in letters and name != "O" for name in names])[labels]
        for letters in (_BEGINS, _ENDS)
    )
    fresh = np.zeros(labels.size, bool)  # no chunk goes on from the part before
    fresh[offsets[:-1]] = True
    fresh[1:] |= ends[:-1] | (kind[1:] != kind[:-1])
    inside = kind >= 0
    first = np.flatnonzero(inside & (begins | fresh))
    stops = np.flatnonzero(~inside | begins | fresh)  # every chunk's end is before the next of them
    after = np.append(stops, labels.size)[np.searchsorted(stops, first, side="right")]
    return np.stack((first, after - 1, kind[first]))
