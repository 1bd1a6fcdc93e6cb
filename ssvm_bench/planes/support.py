"""Where w may differ from 0, of labelings of many sparse features.

A labeling changes w only at the features of its parts, and there at its labels and the true ones.
So with hundreds of thousands of features, as of words, all but a few per cent of w are 0, and stay
it until the oracle finds other labels: what is done with whole vectors, such as a norm, need only
look at the rest. The places are sorted: a sum over them is the same, to the bit, as one over w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.jit import kernel
from ssvm_bench.oracles.scoring import label_index, label_size
from ssvm_bench.planes.labelings import Labelings

# mypy: disable-error-code="no-untyped-def"

_LEAST = 1 << 18
"""Shorter vectors are in the caches: looking at all of them is as fast."""

_LARGEST_SHARE = 0.25
"""With more of w than this, going from place to place is no faster than reading all of it."""


class Support:
    """The places of w that planes of any term have touched so far.

    Parameters
    ----------
    D : int
        Number of weights in the storage's layout.

    Attributes
    ----------
    places : ndarray of uint32, or None
        Sorted; None stands for all of w.
    """

    def __init__(self, D: int) -> None:
        self.D = D
        self.forget()

    def forget(self) -> None:
        """Begin anew, where other planes may have taken the place of the former ones."""
        self.places: np.ndarray | None = None
        self._wide = not _LEAST <= self.D < 1 << 32
        self._known = np.zeros(0, np.int64)
        self._marks = np.zeros(0, bool)

    def __getstate__(self) -> dict[str, Any]:
        """Leave to a checkpoint the planes, from which all of it is found again."""
        return {"D": self.D}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew."""
        self.D = state["D"]
        self.forget()

    def update(self, blocks: Labelings) -> None:
        """Take in the labels that have been seen since the last time."""
        if self._wide:
            return
        if self._known.size == 0:
            self._known, self._marks = np.ones_like(blocks.seen_count), np.zeros(self.D, bool)
            self._marks[blocks.features.n_features * blocks.features.columns[1] :] = True
            self.places = np.flatnonzero(self._marks).astype(np.uint32)
        if _mark(blocks, self._known, self._marks):
            self.places = np.flatnonzero(self._marks).astype(np.uint32)
        if self.places is not None and self.places.size > _LARGEST_SHARE * self.D:
            self.forget()  # there will only be more
            self._wide = True


@kernel
def _mark(blocks, known, marks):
    """Mark where w may change at the parts whose labels have become more; tell if there are any."""
    features = blocks.features
    found = False
    for q in range(known.size):
        count = blocks.seen_count[q]
        if count > known[q]:
            known[q] = count
            found = True
            for k in range(label_size(features, q)):
                for c in range(count):
                    marks[label_index(features, q, k, blocks.seen[q, c])] = True
    return found


@kernel
def squared_norm_at(w, places):
    """Return ‖w‖² of a vector that is 0 elsewhere, summed in order."""
    total = 0.0
    for place in places:
        total += w[place] * w[place]
    return total
