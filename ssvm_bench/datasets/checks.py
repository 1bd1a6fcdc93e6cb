"""The one door for foreign arrays, and checks of all in a dataset that kernels rely on.

`array` and `csr` look at arrays from elsewhere: their kind, shape and range; and the structure of a
sparse matrix, before scipy touches it.

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

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.datasets import reading
from ssvm_bench.datasets.reading import ContentError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_LABELS = 1 << 16
"""Labelings are kept in two bytes a label, or in one."""

_LABELS = np.dtype(np.uint8), np.dtype(np.uint16)

LARGEST = 1e100
"""Of a feature: ‖ϕ‖²/λ must not overflow in float64."""

REAL = (np.bool_, np.integer, np.floating)
"""Kinds of real numbers."""

_WORDS: dict[Any, str] = {
    np.integer: "an array of integers",
    np.bool_: "an array of bool",
    np.float64: "float64",
    REAL: "an array of numbers",
}

_ADMISSIBLE = {"segments": "Alphabet", "landmarks": "Boxes"}
"""Structure → what says which labelings there are."""


# ---- foreign arrays -----------------------------------------------------------------------------


def array(
    found: Any,
    name: str,
    kind: Any = np.integer,
    shape: tuple[int | None, ...] = (None,),
    low: float | None = None,
    high: float = LARGEST,
    row: str = "entry",
) -> np.ndarray:
    """Return an array from elsewhere, if it is what it should be.

    Parameters
    ----------
    found : object
    name : str
        What it is called in messages.
    kind : type, or tuple of types
        What its entries are, of numpy's types of numbers.
    shape : tuple
        Its shape; None: any size.
    low, high : float
        Its smallest and its largest entry; NaN is in no range. Without ``low``, there is no range.
    row : str
        What a row of it is called.

    Raises
    ------
    ContentError
        It is something else; the message says what, and which row is out of range.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    is_array = isinstance(found, np.ndarray)
    if not (
        is_array
        and any(np.issubdtype(found.dtype, each) for each in kinds)
        and len(shape) == found.ndim
        and all(size in (None, there) for size, there in zip(shape, found.shape, strict=True))
    ):
        sizes = ", ".join("…" if size is None else str(size) for size in shape)
        got = f"{found.dtype} of shape {found.shape}" if is_array else type(found).__name__
        comma = "," * (len(shape) == 1)
        raise ContentError(f"{name} must be {_WORDS[kind]} of shape ({sizes}{comma}), got {got}")
    if low is not None:
        good = (found >= low) & (found <= high)
        if not good.all():
            at = tuple(np.argwhere(~good)[0])
            least = "above 0" if 0 < low < 1 else f"at least {low:g}"
            raise ContentError(
                f"{name} of {row} {at[0]} is {found[at]:.12g}, and must be {least}, and at most "
                f"{high:.12g}"
            )
    return found


def offsets_of(found: Any, name: str, end: int, what: str, least: int) -> np.ndarray:
    """Return offsets, if they go from 0 to ``end`` in steps of at least so much."""
    offsets = array(found, name)
    if offsets.size < 2 or offsets[0] != 0:
        raise ContentError(
            f"{name} must begin with 0 and have an entry for the end of each example"
        )
    if offsets[-1] != end:
        raise ContentError(f"{name} end at {offsets[-1]}, and there are {end} {what}")
    steps = np.diff(offsets.astype(np.int64))
    if steps.min() < least:
        i = int(np.flatnonzero(steps < least)[0])
        how = "is empty" if steps[i] == 0 else f"ends before it begins ({name})"
        raise ContentError(f"example {i} {how}")
    return offsets


def csr(arrays: Mapping[str, np.ndarray], n_columns: int) -> csr_array:
    """Return the matrix of foreign ``data``, ``indices`` and ``indptr``, with narrow indices."""
    from scipy.sparse import csr_array

    data = array(arrays["data"], "the non-zeros of x", REAL)
    indptr = array(arrays["indptr"], "the row ends of x")
    shape = indptr.size - 1, n_columns
    _check_csr(data, arrays["indices"], indptr, shape, "row {} of x".format)
    if indptr[-1] < 1 << 31:  # else scipy would widen the columns, too
        indptr = indptr.astype(np.int32)
    return csr_array((data, arrays["indices"].astype(np.int32), indptr), shape=shape)


def _check_csr(
    data: np.ndarray, indices: Any, indptr: Any, shape: Any, row: Callable[[int], str]
) -> None:
    """Check where the non-zeros of a matrix are, of which ``row`` names a row."""
    indices = array(indices, "the columns of x")
    array(indptr, "the row ends of x", shape=(shape[0] + 1,))
    offsets_of(indptr, "the row ends of x", indices.size, "non-zeros", 0)
    if indices.size != data.size:
        raise ContentError(f"x has {indices.size} columns for {data.size} non-zeros")
    # a negative column is a large one where the sign is a bit
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= shape[1]:
        k = int(np.flatnonzero((indices < 0) | (indices >= shape[1]))[0])
        where = row(int(np.searchsorted(indptr, k, side="right")) - 1)
        raise ContentError(
            f"{where} has feature {indices[k]}, and features are 0 to {shape[1] - 1}"
        )


def _place(offsets: np.ndarray, part: int) -> str:
    """Say which part of which example is part ``part`` of all."""
    i = int(np.searchsorted(offsets, part, side="right")) - 1
    return f"part {part - int(offsets[i])} of example {i}"


# ---- types that kernels are compiled for --------------------------------------------------------


def label_type(n_labels: int) -> np.dtype:
    """Return the type in which labels are kept: of one byte, if it is enough."""
    return _LABELS[n_labels > 256]  # an instance: comparing with a class is slow


def normalised(x: Any) -> Any:
    """Return features in a type that kernels are compiled for: uint8, if it is enough, or float64.

    Parameters
    ----------
    x : ndarray or csr_array, shape (parts, f)
    """
    values = x if isinstance(x, np.ndarray) else x.data
    with np.errstate(invalid="ignore"):
        small = np.array_equal(values.astype(np.uint8), values)
    kind = np.uint8 if small else np.float64
    return np.ascontiguousarray(x, kind) if x is values else x.astype(kind)


# ---- datasets -----------------------------------------------------------------------------------


def explained(dataset: Any) -> AbstractContextManager[None]:
    """Add the dataset's name to a `ContentError` of a block, as a `RunFailedError`."""
    return reading.explained(
        f"The data of {dataset.name} cannot be used",
        "Correct the data, or the loader that made them.",
    )


def check(dataset: Any) -> None:
    """Check the fields of a `Dataset`.

    Raises
    ------
    RunFailedError
        If something is out of range; the message says what, and in which example.
    """
    with explained(dataset):
        _check(dataset)


def _check(dataset: Any) -> None:
    K, x = dataset.n_labels, dataset.x
    offsets = (_targets if dataset.structure == "regression" else _labels)(dataset)
    _features(x, np.arange(offsets.size) if dataset.structure == "landmarks" else offsets)
    n, parts = offsets.size - 1, int(offsets[-1])
    vocabulary, unseen = dataset.vocabulary, dataset.unseen
    for name, least in (("costs", np.nextafter(0.0, 1.0)), ("margins", 0.0)):
        if (values := getattr(dataset, name)) is not None:
            array(values, name, np.float64, (n,), least, row="example")
    if dataset.structure == "graph" or dataset.edges is not None:
        _edges(dataset, offsets)
    if dataset.structure == "latent" or dataset.windows is not None:
        _windows(dataset, offsets)
    if dataset.structure in _ADMISSIBLE or dataset.admissible is not None:
        _admissible(dataset, offsets)
    if dataset.fold is not None:
        array(dataset.fold, "fold", REAL, (n,))
    if vocabulary is not None and len(vocabulary.labels) != K:
        raise ContentError(
            f"there are names for {len(vocabulary.labels)} labels, and n_labels is {K}"
        )
    if unseen is not None:
        array(unseen.codes, "unseen", np.integer, (parts,), -1, len(unseen.names) - 1, "part")
    for name, other in dataset.held_out.items():
        if (other.n_labels, other.n_features) != (K, x.shape[1]):
            raise ContentError(
                f"the {name} examples have {other.n_labels} labels and {other.n_features} "
                f"features, those to train on {K} and {x.shape[1]}"
            )
        if other.windows != dataset.windows:
            raise ContentError(f"the {name} examples have other windows than those to train on")
        if other.admissible != dataset.admissible:
            raise ContentError(f"the {name} examples have other admissible labelings")


def _labels(dataset: Any) -> np.ndarray:
    """Check the labels of all parts; return the offsets of the examples."""
    K = dataset.n_labels
    if not isinstance(K, (int, np.integer)) or not 1 <= K <= MOST_LABELS:
        raise ContentError(f"there are 1 to {MOST_LABELS} labels, and n_labels is {K!r}")
    y = array(dataset.y, "y")
    offsets = offsets_of(dataset.offsets, "offsets", y.size, "labels", 1)
    low, high = (int(y.min()), int(y.max()))
    if low < 0 or high >= K:
        part = int(np.flatnonzero((y < 0) | (y >= K))[0])
        hint = ""
        if (low, high) == (1, K):
            hint = ": they seem to begin at 1"
        elif low == -1:
            hint = ": they seem to be −1 and 1"
        raise ContentError(
            f"the label of {_place(offsets, part)} is {y[part]}, and labels are 0 to {K - 1}{hint}"
        )
    return offsets


def _targets(dataset: Any) -> np.ndarray:
    """Check the targets of a regression; return the offsets of the examples."""
    if dataset.n_labels != 0:
        raise ContentError(f"a regression has no labels, and n_labels is {dataset.n_labels!r}")
    y = dataset.y
    offsets = offsets_of(dataset.offsets, "offsets", np.size(y), "targets", 1)
    if offsets.size - 1 != np.size(y):
        raise ContentError("the examples of a regression have one part each, and some have more")
    array(y, "y", np.float64, (offsets.size - 1,), -LARGEST, row="example")
    return offsets


def _features(x: Any, offsets: np.ndarray) -> None:
    """Check the features of all parts."""
    parts = int(offsets[-1])
    if len(getattr(x, "shape", ())) != 2:
        raise ContentError("x must be a matrix with a row for each part")
    if x.shape[0] != parts or x.shape[1] < 1:
        raise ContentError(f"x has the shape {x.shape}, and there are {parts} parts")
    if not isinstance(x, np.ndarray):
        _check_csr(x.data, x.indices, x.indptr, x.shape, partial(_place, offsets))
    if x.dtype.kind in "iub":
        return
    if x.dtype.kind != "f":
        raise ContentError(f"features must be real numbers, got {x.dtype}")
    values = x.ravel() if isinstance(x, np.ndarray) else x.data
    # one product tells whether all are finite and of moderate size, as nearly always
    with np.errstate(over="ignore", invalid="ignore"):
        if float(np.dot(values, values)) < LARGEST:
            return
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        indptr = np.arange(parts + 1) * x.shape[1] if isinstance(x, np.ndarray) else x.indptr
        row = np.searchsorted(indptr, k, "right") - 1
        large = np.isfinite(values[k])
        what = f"over {LARGEST:g}: scale the features" if large else "not finite"
        raise ContentError(f"a feature of {_place(offsets, int(row))} is {values[k]:g}, {what}")


def _edges(dataset: Any, offsets: np.ndarray) -> None:
    """Check the edges of all examples."""
    if dataset.edges is None or dataset.edge_offsets is None:
        raise ContentError("a graph needs edges and edge_offsets")
    edges = array(dataset.edges, "edges", shape=(None, 2))
    ends = offsets_of(dataset.edge_offsets, "edge_offsets", len(edges), "edges", 0)
    if ends.size != offsets.size:
        raise ContentError(
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
            raise ContentError(
                f"edge ({k[e]}, {l[e]}) of example {example[e]} {what.format(room[e])}"
            )
    codes = (offsets[example] + k) * int(room.max(initial=1)) + l
    if not (codes[1:] > codes[:-1]).all():  # else each is there once, as nearly always
        order = np.argsort(codes, kind="stable")
        same = codes[order[1:]] == codes[order[:-1]]
        if same.any():
            e = order[np.argmax(same)]
            raise ContentError(f"edge ({k[e]}, {l[e]}) of example {example[e]} is there twice")


def _windows(dataset: Any, offsets: np.ndarray) -> None:
    """Check the windows of all examples, and where their objects are."""
    windows, n = dataset.windows, offsets.size - 1
    if windows is None or dataset.n_labels != 2 or offsets[-1] != n:
        raise ContentError("a latent dataset needs windows, two labels, and one part an example")
    sizes = (*windows.canvas, *windows.size, windows.step)
    if not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise ContentError(f"the sizes of its windows must be integers above 0, got {sizes}")
    (H, W), (h, w) = windows.canvas, windows.size
    if h > H or w > W or dataset.x.shape[1] != H * W:
        raise ContentError(
            f"windows of {h} × {w} on canvases of {H} × {W} do not fit {dataset.x.shape[1]} pixels"
        )
    if dataset.places is not None:
        highest = windows.positions - 1
        array(dataset.places, "places", np.integer, (n,), 0, highest, "example")


def _admissible(dataset: Any, offsets: np.ndarray) -> None:
    """Check that the labels of all examples are admissible."""
    admissible = dataset.admissible
    what = _ADMISSIBLE.get(dataset.structure)
    if what is None or type(admissible).__name__ != what:
        raise ContentError(
            f"segments need an Alphabet that is admissible, landmarks need Boxes, and others "
            f"nothing; those of {dataset.structure} have {type(admissible).__name__}"
        )
    if (fault := admissible.fault(dataset.n_labels, dataset.n_features)) is not None:
        raise ContentError(fault)
    if (found := admissible.first_inadmissible(dataset.y, offsets)) is not None:
        part, why = found
        raise ContentError(f"{_place(offsets, part)} {why}")
