"""Whether points with and without labels are what kernels take them for.

Beside the fields of every dataset (:mod:`ssvm_bench.datasets.checks`):

===========  ======================================================================================
``labeled``  one a point; if there are any, some of every label
``cliques``  points that exist, none twice in a clique; bounds with 0 ≤ low ≤ high
``pairs``    points that exist, k < l, no pair twice; a weight each, finite and ≥ 0
``pixels``   0 or more of each label in each point, and in each point one at least
``frame``    0 or more, one a point
===========  ======================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.datasets.checks import WrongError, explained, integers, offsets_of


def check(dataset: Any) -> None:
    """Check what `Points` have beside the fields of every `Dataset`.

    Raises
    ------
    RunFailedError
        If something is out of range; the message says what, and where.
    """
    with explained(dataset):
        if dataset.n != dataset.y.size:
            raise WrongError("a point has one part, and some examples have several")
        labeled = dataset.labeled
        if not isinstance(labeled, np.ndarray) or labeled.dtype != bool:
            raise WrongError("labeled must be an array of bool")
        if labeled.shape != (dataset.n,):
            raise WrongError(f"labeled has the shape {labeled.shape}, not ({dataset.n},)")
        _told(dataset)
        if dataset.cliques is not None:
            _cliques(dataset.cliques, dataset.n, dataset.n_labels)
        if dataset.pairs is not None or dataset.weights is not None:
            _pairs(dataset.pairs, dataset.weights, dataset.n)
        if dataset.pixels is not None:
            _pixels(dataset.pixels, dataset.n, dataset.n_labels)
        if dataset.frame is not None:
            frame = integers(dataset.frame, "frame", 1)
            if frame.shape != (dataset.n,) or frame.min() < 0:
                raise WrongError("frame must have a number of 0 or more for each point")


def check_told(dataset: Any) -> None:
    """Check that of every class a point is labeled, or none at all; raises as `check` does."""
    with explained(dataset):
        _told(dataset)


def _told(dataset: Any) -> None:
    told = np.bincount(dataset.y[dataset.labeled], minlength=dataset.n_labels)
    if told.any() and not told.all():
        raise WrongError(
            f"no labeled point has the label {int(np.argmin(told))}, of which a classifier would "
            "never learn. Label a point of every class, or none at all (dataset.n_samples may "
            "have left some out)"
        )


def _pixels(pixels: Any, n: int, K: int) -> None:
    """Check the numbers of pixels."""
    pixels = integers(pixels, "pixels", 2)
    if pixels.shape != (n, K):
        raise WrongError(f"pixels has the shape {pixels.shape}, not ({n}, {K})")
    if pixels.min() < 0 or not pixels.any(axis=1).all():
        raise WrongError("a point has a negative number of pixels, or none")


def _cliques(cliques: Any, n: int, K: int) -> None:
    """Check sets of points and the bounds on the counts of labels in them."""
    members = integers(cliques.members, "the members of cliques", 1)
    low, high = (integers(b, "the bounds of cliques", 2) for b in (cliques.low, cliques.high))
    if not len(low) and not members.size:
        return
    offsets = offsets_of(cliques.offsets, "the offsets of cliques", members.size, "members", 1)
    if low.shape != (offsets.size - 1, K) or high.shape != low.shape:
        raise WrongError(
            f"the bounds of cliques have the shapes {low.shape} and {high.shape}, and there are "
            f"{offsets.size - 1} cliques and {K} labels"
        )
    for c in range(len(low)):
        points = members[offsets[c] : offsets[c + 1]]
        if points.min() < 0 or points.max() >= n:
            raise WrongError(
                f"clique {c} has points from {points.min()} to {points.max()}, and there are 0 "
                f"to {n - 1}"
            )
        if np.unique(points).size < points.size:
            raise WrongError(f"clique {c} has a point twice")
        if low[c].min() < 0 or (low[c] > high[c]).any():
            raise WrongError(f"the bounds of clique {c} contradict each other: {low[c]}, {high[c]}")


def _pairs(pairs: Any, weights: Any, n: int) -> None:
    """Check pairs of points and their weights."""
    pairs = integers(pairs, "pairs", 2)
    if pairs.shape[1] != 2 or np.shape(weights) != (len(pairs),):
        raise WrongError("pairs must be an array of shape (E, 2), with E weights")
    if not (np.isfinite(weights).all() and (np.asarray(weights) >= 0).all()):
        raise WrongError("a pair has a weight that is negative, or no finite number")
    if not len(pairs):
        return
    if pairs.min() < 0 or pairs.max() >= n or (pairs[:, 0] >= pairs[:, 1]).any():
        raise WrongError(f"pairs must be k < l of the points 0 to {n - 1}")
    if np.unique(pairs[:, 0].astype(np.int64) * n + pairs[:, 1]).size < len(pairs):
        raise WrongError("a pair is there twice")
