"""Checks of everything in a dataset that kernels rely on.

Kernels index memory by labels, columns, offsets and edges, without bounds checks: an index out of
range corrupts memory, or gives wrong numbers silently. So every `Dataset` is checked when it is
made, whether it comes from a file, a cache or a plug-in:

===============  ==================================================================================
``offsets``      integers that rise from 0 to the number of parts: no empty example
``y``            integers, one a part, in 0 … K − 1, K ≤ 65536; of a regression finite numbers,
                 float64, one an example of one part, K = 0
``x``            one row a part; a matrix of numbers, or a CSR matrix with columns in 0 … f − 1;
                 finite, and small enough for sums of squares
``edges``        integers within their example, k < l, no pair twice; offsets from 0 to their end
``costs``        finite numbers above 0, float64, one an example
``margins``      the same, 0 included
``windows``      of a latent dataset, of two labels and one part an example: no larger than the
                 canvas, whose pixels are the features
``places``       integers, one an example, each a position of a window
``admissible``   of segments an alphabet of K labels, which every example is a text of; of
                 landmarks boxes, in one of which each of them is, and an image of K pixels
``held_out``     with the same K, f, windows and admissible labelings
===============  ==================================================================================

A subclass, as points of which some are labelled, checks what it has beside these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ssvm_bench.base.errors import RunFailedError

MOST_LABELS = 1 << 16
"""Labelings are kept in two bytes a label, or in one."""

_LABELS = np.dtype(np.uint8), np.dtype(np.uint16)

LARGEST = 1e100
"""Of a feature: ‖ϕ‖²/λ must not overflow in float64."""


_ADMISSIBLE = {"segments": "Alphabet", "landmarks": "Boxes"}
"""Structure → what says which labelings there are."""


class WrongError(Exception):
    """The message says what is wrong, and where."""


def label_type(n_labels: int) -> np.dtype:
    """Return the type in which labels are kept: of one byte, if it is enough."""
    return _LABELS[n_labels > 256]  # an instance: comparing with a class is slow


def normalised(x: Any) -> Any:
    """Return features in a type that kernels are compiled for: uint8, if it is enough, or float64.

    Parameters
    ----------
    x : ndarray or csr_array, shape (parts, f)
    """
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x, _kind(x))
    return x.astype(_kind(x.data))


def _kind(values: np.ndarray) -> type:
    if values.dtype in (np.uint8, np.bool_):
        return np.uint8
    with np.errstate(invalid="ignore"):
        small = values.astype(np.uint8)
    return np.uint8 if np.array_equal(small, values) else np.float64


def check(dataset: Any) -> None:
    """Check the fields of a `Dataset`.

    Raises
    ------
    RunFailedError
        If something is out of range; the message says what, and in which example.
    """
    with explained(dataset):
        _check(dataset)


@contextmanager
def explained(dataset: Any) -> Iterator[None]:
    """Add the dataset's name to a `WrongError`, as a `RunFailedError`."""
    try:
        yield
    except WrongError as error:
        raise RunFailedError(
            f"The data of {dataset.name} cannot be used: {error}. Correct the data, or the loader "
            "that made them."
        ) from None


def _check(dataset: Any) -> None:
    offsets = (_targets if dataset.structure == "regression" else _labels)(dataset)
    _features(dataset.x, np.arange(offsets.size) if dataset.structure == "landmarks" else offsets)
    for name, least in (("costs", np.nextafter(0.0, 1.0)), ("margins", 0.0)):
        if (values := getattr(dataset, name)) is not None:
            _numbers(values, name, dataset.n, least)
    if dataset.structure == "graph" or dataset.edges is not None:
        _edges(dataset, offsets)
    if dataset.structure == "latent" or dataset.windows is not None:
        _windows(dataset, offsets)
    if dataset.structure in _ADMISSIBLE or dataset.admissible is not None:
        _admissible(dataset, offsets)
    if dataset.fold is not None and np.shape(dataset.fold) != (dataset.n,):
        raise WrongError(f"fold has the shape {np.shape(dataset.fold)}, not ({dataset.n},)")
    if dataset.vocabulary is not None and len(dataset.vocabulary.labels) != dataset.n_labels:
        raise WrongError(
            f"there are names for {len(dataset.vocabulary.labels)} labels, and n_labels is "
            f"{dataset.n_labels}"
        )
    if dataset.unseen is not None and dataset.unseen.codes.shape != (int(offsets[-1]),):
        raise WrongError(f"unseen is of {dataset.unseen.codes.size} parts, not {offsets[-1]}")
    for name, other in dataset.held_out.items():
        if (other.n_labels, other.n_features) != (dataset.n_labels, dataset.n_features):
            raise WrongError(
                f"the {name} examples have {other.n_labels} labels and {other.n_features} "
                f"features, those to train on {dataset.n_labels} and {dataset.n_features}"
            )
        if other.windows != dataset.windows:
            raise WrongError(f"the {name} examples have other windows than those to train on")
        if other.admissible != dataset.admissible:
            raise WrongError(f"the {name} examples have other admissible labelings")


def _labels(dataset: Any) -> np.ndarray:
    """Check the labels of all parts; return the offsets of the examples."""
    K = dataset.n_labels
    if not isinstance(K, (int, np.integer)) or not 1 <= K <= MOST_LABELS:
        raise WrongError(f"there are 1 to {MOST_LABELS} labels, and n_labels is {K!r}")
    y = integers(dataset.y, "y", 1)
    offsets = offsets_of(dataset.offsets, "offsets", y.size, "labels", 1)
    low, high = (int(y.min()), int(y.max()))
    if low < 0 or high >= K:
        part = int(np.flatnonzero((y < 0) | (y >= K))[0])
        hint = ""
        if (low, high) == (1, K):
            hint = ": they seem to begin at 1"
        elif low == -1:
            hint = ": they seem to be −1 and 1"
        raise WrongError(
            f"the label of {_place(offsets, part)} is {y[part]}, and labels are 0 to {K - 1}{hint}"
        )
    return offsets


def _targets(dataset: Any) -> np.ndarray:
    """Check the targets of a regression; return the offsets of the examples."""
    if dataset.n_labels != 0:
        raise WrongError(f"a regression has no labels, and n_labels is {dataset.n_labels!r}")
    y = dataset.y
    offsets = offsets_of(dataset.offsets, "offsets", np.size(y), "targets", 1)
    if offsets.size - 1 != np.size(y):
        raise WrongError("the examples of a regression have one part each, and some have more")
    _numbers(y, "y", offsets.size - 1, -LARGEST)
    return offsets


def _numbers(array: Any, name: str, n: int, least: float) -> None:
    """Check an array of one number an example, between ``least`` and `LARGEST`."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (n,):
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else array
        raise WrongError(f"{name} must be float64 of shape ({n},), got {found}")
    bad = ~((array >= least) & (array <= LARGEST))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        low = "above 0" if 0 < least < 1 else f"at least {least:g}"
        raise WrongError(
            f"{name} of example {i} is {array[i]:g}, and must be {low}, and at most {LARGEST:g}"
        )


def integers(array: Any, name: str, ndim: int) -> np.ndarray:
    """Return an array, if it is one of integers of so many dimensions."""
    if not isinstance(array, np.ndarray) or array.ndim != ndim or array.dtype.kind not in "iu":
        what = getattr(array, "dtype", type(array).__name__)
        raise WrongError(f"{name} must be an array of integers, of {ndim} dimension(s); got {what}")
    return array


def offsets_of(array: Any, name: str, end: int, what: str, least: int) -> np.ndarray:
    """Return offsets, if they go from 0 to ``end`` in steps of at least so much."""
    offsets = integers(array, name, 1)
    if offsets.size < 2 or offsets[0] != 0:
        raise WrongError(f"{name} must begin with 0 and have an entry for the end of each example")
    if offsets[-1] != end:
        raise WrongError(f"{name} end at {offsets[-1]}, and there are {end} {what}")
    steps = np.diff(offsets.astype(np.int64))
    if steps.min() < least:
        i = int(np.flatnonzero(steps < least)[0])
        found = "is empty" if steps[i] == 0 else f"ends before it begins ({name})"
        raise WrongError(f"example {i} {found}")
    return offsets


def _place(offsets: np.ndarray, part: int) -> str:
    """Say which part of which example is part ``part`` of all."""
    i = int(np.searchsorted(offsets, part, side="right")) - 1
    return f"part {part - int(offsets[i])} of example {i}"


def _features(x: Any, offsets: np.ndarray) -> None:
    """Check the features of all parts."""
    parts = int(offsets[-1])
    if len(getattr(x, "shape", ())) != 2:
        raise WrongError("x must be a matrix with a row for each part")
    if x.shape[0] != parts or x.shape[1] < 1:
        raise WrongError(f"x has the shape {x.shape}, and there are {parts} parts")
    if not isinstance(x, np.ndarray):
        indices, indptr = integers(x.indices, "the columns of x", 1), x.indptr
        offsets_of(indptr, "the row ends of x", indices.size, "non-zeros", 0)
        if indices.size != x.data.size:
            raise WrongError(f"x has {indices.size} columns for {x.data.size} non-zeros")
        # a negative column is a large one where the sign is a bit
        if indices.size and indices.view(f"u{indices.itemsize}").max() >= x.shape[1]:
            k = int(np.flatnonzero((indices < 0) | (indices >= x.shape[1]))[0])
            where = _place(offsets, int(np.searchsorted(indptr, k, side="right")) - 1)
            raise WrongError(
                f"{where} has feature {indices[k]}, and features are 0 to {x.shape[1] - 1}"
            )
    if x.dtype.kind in "iub":
        return
    if x.dtype.kind != "f":
        raise WrongError(f"features must be real numbers, got {x.dtype}")
    values = x.ravel() if isinstance(x, np.ndarray) else x.data
    # one product tells whether all are finite and of moderate size, as nearly always
    with np.errstate(over="ignore", invalid="ignore"):
        if float(np.dot(values, values)) < LARGEST:
            return
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        row = (
            k // x.shape[1]
            if isinstance(x, np.ndarray)
            else np.searchsorted(x.indptr, k, "right") - 1
        )
        what = (
            "not finite" if not np.isfinite(values[k]) else f"over {LARGEST:g}: scale the features"
        )
        raise WrongError(f"a feature of {_place(offsets, int(row))} is {values[k]:g}, {what}")


def _edges(dataset: Any, offsets: np.ndarray) -> None:
    """Check the edges of all examples."""
    if dataset.edges is None or dataset.edge_offsets is None:
        raise WrongError("a graph needs edges and edge_offsets")
    edges = integers(dataset.edges, "edges", 2)
    if edges.shape[1] != 2:
        raise WrongError(f"edges has the shape {edges.shape}, not (edges, 2)")
    ends = offsets_of(dataset.edge_offsets, "edge_offsets", len(edges), "edges", 0)
    if ends.size != offsets.size:
        raise WrongError(
            f"edge_offsets are of {ends.size - 1} examples, offsets of {offsets.size - 1}"
        )
    example = np.repeat(np.arange(offsets.size - 1), np.diff(ends))
    k, l = edges.T.astype(np.int64)
    room = np.diff(offsets)[example]
    for bad, what in (
        ((k < 0) | (l < 0) | (k >= room) | (l >= room), "leaves its {} parts"),
        (k == l, "is a loop"),
        (k > l, "must name the lower part first"),
    ):
        if bad.any():
            e = int(np.argmax(bad))
            raise WrongError(
                f"edge ({k[e]}, {l[e]}) of example {example[e]} {what.format(room[e])}"
            )
    codes = (offsets[example] + k) * int(room.max(initial=1)) + l
    if not (codes[1:] > codes[:-1]).all():  # else each is there once, as nearly always
        order = np.argsort(codes, kind="stable")
        same = codes[order[1:]] == codes[order[:-1]]
        if same.any():
            e = order[np.argmax(same)]
            raise WrongError(f"edge ({k[e]}, {l[e]}) of example {example[e]} is there twice")


def _windows(dataset: Any, offsets: np.ndarray) -> None:
    """Check the windows of all examples, and where their objects are."""
    windows, n = dataset.windows, offsets.size - 1
    if windows is None or dataset.n_labels != 2 or offsets[-1] != n:
        raise WrongError("a latent dataset needs windows, two labels, and one part an example")
    sizes = (*windows.canvas, *windows.size, windows.step)
    if not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise WrongError(f"the sizes of its windows must be integers above 0, got {sizes}")
    (H, W), (h, w) = windows.canvas, windows.size
    if h > H or w > W or dataset.x.shape[1] != H * W:
        raise WrongError(
            f"windows of {h} × {w} on canvases of {H} × {W} do not fit {dataset.x.shape[1]} pixels"
        )
    if dataset.places is not None:
        places = integers(dataset.places, "places", 1)
        if places.shape != (n,) or places.min() < 0 or places.max() >= windows.positions:
            raise WrongError(f"places must be {n} integers in 0 … {windows.positions - 1}")


def _admissible(dataset: Any, offsets: np.ndarray) -> None:
    """Check that the labels of all examples are admissible."""
    admissible = dataset.admissible
    what = _ADMISSIBLE.get(dataset.structure)
    if what is None or type(admissible).__name__ != what:
        raise WrongError(
            f"segments need an Alphabet that is admissible, landmarks need Boxes, and others "
            f"nothing; those of {dataset.structure} have {type(admissible).__name__}"
        )
    if (fault := admissible.fault(dataset.n_labels, dataset.n_features)) is not None:
        raise WrongError(fault)
    if (found := admissible.first_inadmissible(dataset.y, offsets)) is not None:
        part, why = found
        raise WrongError(f"{_place(offsets, part)} {why}")
