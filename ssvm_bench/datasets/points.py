"""Points of which some labels are known, and what else is known of the others' (transduction).

Each point is an example of one part, and ``structure`` is ``points``. Beside features and labels
there are

=============  ====================================================================================
``labeled``    the points whose label is told; the other true labels only score what is found
``cliques``    sets of points, with bounds on how many of each have each label
``pairs``      points that like to have the same label, with weights
``pixels``     if points are superpixels, the pixels of each true label in each
``frame``      the picture of a sequence that a superpixel is of
=============  ====================================================================================
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ssvm_bench.datasets import point_checks
from ssvm_bench.datasets.base import Dataset

POINTS = "points"
"""The structure of these datasets."""


class Cliques(NamedTuple):
    """Sets of points, possibly overlapping, and bounds on the counts of labels in them.

    Attributes
    ----------
    offsets : ndarray of int64, shape (C + 1,)
        Clique c has the points ``members[offsets[c]:offsets[c + 1]]``.
    members : ndarray of int64
    low, high : ndarrays of int64, shape (C, L)
        At least, and at most, so many points of a clique have a label.
    """

    offsets: np.ndarray
    members: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __len__(self) -> int:
        """Return the number of cliques."""
        return len(self.low)

    def points(self, c: int) -> np.ndarray:
        """Return the points of a clique."""
        return self.members[self.offsets[c] : self.offsets[c + 1]]


def no_cliques(n_labels: int) -> Cliques:
    """Return no clique at all."""
    none = np.zeros((0, n_labels), np.int64)
    return Cliques(np.zeros(1, np.int64), np.zeros(0, np.int64), none, none)


@dataclass(frozen=True, kw_only=True)
class Points(Dataset):
    """Points, some of them labeled.

    Attributes
    ----------
    labeled : ndarray of bool, shape (n,)
        The points whose label is told.
    cliques : Cliques, optional
        Sets of points with bounds on counts.
    pairs : ndarray of int64, shape (E, 2), optional
        Points k < l that like to have the same label, no pair twice.
    weights : ndarray of float64, shape (E,), optional
        How much: what it costs a pair to have different labels, ≥ 0.
    pixels : ndarray of int64, shape (n, L), optional
        Pixels of each true label in each point, for scoring alone.
    frame : ndarray of int64, shape (n,), optional
        The picture of each point, from 0; without it, all are of one.
    """

    labeled: np.ndarray
    cliques: Cliques | None = None
    pairs: np.ndarray | None = None
    weights: np.ndarray | None = None
    pixels: np.ndarray | None = None
    frame: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check everything that kernels and label steps rely on.

        Raises
        ------
        RunFailedError
            If something is out of range (:mod:`ssvm_bench.datasets.point_checks`).
        """
        super().__post_init__()
        point_checks.check(self)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits that are equal for equal points, labels told, cliques and pairs."""
        digest = hashlib.sha256(super().fingerprint.encode())
        known = (self.labeled, *(self.cliques or ()), self.pairs, self.weights)
        for array in (*known, self.pixels, self.frame):
            if array is not None:
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def head(self, size: int) -> Dataset:
        """Return the first points, to compile kernels on: nothing told, a pair if there are any."""
        few = super().head(size)
        few = few.derived(labeled=np.zeros(few.n, bool), cliques=None)
        if self.pairs is None or few.n < 2:
            return few.derived(pairs=None, weights=None)
        return few.derived(pairs=np.array([[0, 1]]), weights=np.ones(1))

    def take(self, examples: np.ndarray) -> Dataset:
        """Return the dataset of the given points, the cliques and pairs that are whole in it."""
        place = np.full(self.n, -1)
        place[examples] = np.arange(len(examples))
        cliques, pairs, weights = self.cliques, self.pairs, self.weights
        if cliques is not None:
            inside = [place[cliques.points(c)] for c in range(len(cliques))]
            whole = [c for c, points in enumerate(inside) if (points >= 0).all()]
            kept = [inside[c] for c in whole]
            cliques = Cliques(
                np.concatenate(([0], np.cumsum([points.size for points in kept]))).astype(np.int64),
                np.concatenate([np.zeros(0, np.int64), *kept]),
                cliques.low[whole],
                cliques.high[whole],
            )
        if pairs is not None and weights is not None:
            moved = np.sort(place[pairs], axis=1)
            whole_pairs = (moved >= 0).all(axis=1)
            pairs, weights = moved[whole_pairs], weights[whole_pairs]
        taken = super().take(examples)
        return taken.derived(
            cliques=cliques,
            pairs=pairs,
            weights=weights,
            **{
                name: array[examples]
                for name in ("labeled", "pixels", "frame")
                if (array := getattr(self, name)) is not None
            },
        )
