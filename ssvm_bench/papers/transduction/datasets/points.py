"""Points for transduction: some labels are observed, and constraints or energies bind the others.

Each point is an example of one part, and ``structure`` is ``points``. In addition to features and
labels (:mod:`ssvm_bench.datasets.base`) a dataset has

===========  ==============================================  =====================================
field        what                                            what is checked
===========  ==============================================  =====================================
``labeled``  whether a point's label is observed; the other  one per point; if any label is
             true labels only score the labels found         observed, each label is
``cliques``  sets of points, with bounds on the number of    points exist, none twice in a
             points that have each label                     clique; bounds with 0 ≤ low ≤ high
``pairs``    pairs of points, with the cost of different     points exist, k < l, no pair twice;
             labels as weights                               weights finite and ≥ 0
``pixels``   if points are superpixels, the number of their  each ≥ 0, and at least one pixel
             pixels with each true label                     per point
``frame``    the number of a superpixel's picture in a       one per point, ≥ 0
             sequence
===========  ==============================================  =====================================
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.datasets import sources
from ssvm_bench.datasets.arrays import BOOL, REAL, array, offsets_of
from ssvm_bench.datasets.base import Dataset, SourceConfig, explained
from ssvm_bench.datasets.reading import ensure

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
        The least and the largest number of points of a clique with each label.
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
    """Return an empty set of cliques."""
    none = np.zeros((0, n_labels), np.int64)
    return Cliques(np.zeros(1, np.int64), np.zeros(0, np.int64), none, none)


@dataclass(frozen=True, kw_only=True)
class Points(Dataset):
    """Points, some of them labeled.

    Attributes
    ----------
    labeled : ndarray of bool, shape (n,)
        The points whose label is observed.
    cliques : Cliques, optional
        Sets of points with bounds on counts.
    pairs : ndarray of int64, shape (E, 2), optional
        Pairs of points k < l that should have the same label, each pair once.
    weights : ndarray of float64, shape (E,), optional
        The cost of different labels for each pair, ≥ 0.
    pixels : ndarray of int64, shape (n, L), optional
        Number of pixels of each true label in each point, only for scoring.
    frame : ndarray of int64, shape (n,), optional
        The picture of each point, from 0; None: all points are of one picture.
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
            If something is out of range; the message says what and where.
        """
        super().__post_init__()
        with explained(self):
            ensure(self.n == self.y.size, "a point has one part, and some examples have several")
            array(self.labeled, "labeled", BOOL, (self.n,))
            check_labelled(self)
            if self.cliques is not None:
                _check_cliques(self.cliques, self.n, self.n_labels)
            if self.pairs is not None or self.weights is not None:
                _check_pairs(self.pairs, self.weights, self.n)
            if self.pixels is not None:
                pixels = array(self.pixels, "pixels", shape=(self.n, self.n_labels), low=0)
                ensure(pixels.any(axis=1).all(), "a point has no pixels")
            if self.frame is not None:
                array(self.frame, "frame", shape=(self.n,), low=0, row="point")

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits over the dataset and all fields of points; equal for equal data."""
        digest = hashlib.sha256(super().fingerprint.encode())
        known = (self.labeled, *(self.cliques or ()), self.pairs, self.weights)
        for each in (*known, self.pixels, self.frame):
            if each is not None:
                digest.update(f"{each.dtype.str}{each.shape}".encode())
                digest.update(np.ascontiguousarray(each).data)
        return digest.hexdigest()[:16]

    def head(self, size: int) -> Dataset:
        """Return the first points, unlabeled, with a pair if there are any, to compile kernels."""
        few = super().head(size)
        few = few.derived(labeled=np.zeros(few.n, bool), cliques=None)
        if self.pairs is None or few.n < 2:
            return few.derived(pairs=None, weights=None)
        return few.derived(pairs=np.array([[0, 1]]), weights=np.ones(1))

    def take(self, examples: np.ndarray) -> Dataset:
        """Return the dataset of some points, with the cliques and pairs that it fully contains."""
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


def made(
    config: SourceConfig, source: str, x: Any, y: np.ndarray, n_labels: int, **fields: Any
) -> Dataset:
    """Return a dataset of points, or its subset of ``config.n_samples`` points."""
    fields |= {"name": config.name, "source": source, "n_labels": n_labels}
    dataset = Points(x=x, y=y, offsets=np.arange(y.size + 1), structure=POINTS, **fields)
    return dataset if config.n_samples is None else sources.subset(dataset, config.n_samples)


# ---- checks -----------------------------------------------------------------------------------


def check_labelled(dataset: Points) -> None:
    """Check that a point of each class is labeled, or no point; raise as `Points` does."""
    observed = np.bincount(dataset.y[dataset.labeled], minlength=dataset.n_labels)
    why = (
        f"no labeled point has the label {int(np.argmin(observed))}, of which a classifier would "
        "never learn. Label a point of every class, or none at all (dataset.n_samples may have "
        "left some out)"
    )
    with explained(dataset):
        ensure(observed.all() or not observed.any(), why)


def _check_cliques(cliques: Any, n: int, K: int) -> None:
    """Check sets of points and the bounds on the counts of labels in them."""
    members = array(cliques.members, "the members of cliques")
    if not len(cliques.low) and not members.size:
        return
    offsets = offsets_of(cliques.offsets, "the offsets of cliques", members.size, "members", 1)
    low, high = (
        array(of, "the bounds of cliques", shape=(offsets.size - 1, K), low=0, row="clique")
        for of in (cliques.low, cliques.high)
    )
    for c in range(len(low)):
        points = members[offsets[c] : offsets[c + 1]]
        ends = points.min(), points.max()
        why = f"clique {c} has points from {ends[0]} to {ends[1]}, and there are 0 to {n - 1}"
        ensure(ends[0] >= 0 and ends[1] < n, why)
        ensure(np.unique(points).size == points.size, f"clique {c} has a point twice")
        why = f"the bounds of clique {c} contradict each other: {low[c]}, {high[c]}"
        ensure((low[c] <= high[c]).all(), why)


def _check_pairs(pairs: Any, weights: Any, n: int) -> None:
    """Check pairs of points and their weights."""
    pairs = array(pairs, "pairs", shape=(None, 2))
    array(weights, "weights", REAL, (len(pairs),), low=0, row="pair")
    if not len(pairs):
        return
    right = pairs.min() >= 0 and pairs.max() < n and (pairs[:, 0] < pairs[:, 1]).all()
    ensure(right, f"pairs must be k < l of the points 0 to {n - 1}")
    codes = pairs[:, 0].astype(np.int64) * n + pairs[:, 1]
    ensure(np.unique(codes).size == len(pairs), "a pair is there twice")
