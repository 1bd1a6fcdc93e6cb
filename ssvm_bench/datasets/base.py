"""Datasets: examples made of labeled parts.

Example i of n owns the parts ``offsets[i]:offsets[i+1]``. A part (a letter, a digit, a superpixel)
has one row of ``x`` and one label of ``y``. A multiclass problem has one part per example. The
labels of an example may depend on each other:

===============  =================================================================================
``structure``    which pairs of parts of an example are neighbours
===============  =================================================================================
``independent``  none
``regression``   none; an example has one part, and a real number instead of a label
``chain``        l and l + 1
``graph``        ``edges[edge_offsets[i]:edge_offsets[i + 1]]``
``latent``       none; an example has one part, a canvas, and the label 1 if the canvas shows an
                 object, which is at one of the positions of ``windows``
``segments``     l and l + 1, by constraints only: the labels of an example form a sequence of
                 characters of fixed widths from the alphabet ``admissible``
``landmarks``    the edges of a tree; parts are landmarks of an image, which has one row of ``x``;
                 labels are pixels in the search boxes ``admissible``
===============  =================================================================================

Held-out examples are datasets of their own; a run reports the loss of its final w on them.

**Checks of everything that kernels rely on.** Kernels index memory by labels, columns, offsets and
edges, without bounds checks. An index out of range corrupts memory or silently gives wrong numbers.
So every `Dataset` is checked when it is created, whether it comes from a file, a cache or a
plug-in:

===============  ==================================================================================
``offsets``      integers that rise from 0 to the number of parts: no empty example
``y``            integers, one per part, in 0 … K − 1, K ≤ 65536; for a regression, finite float64
                 numbers, one per example, which has one part, and K = 0
``x``            one row per part (landmarks: per example); a matrix of numbers, or a CSR matrix
                 with columns in 0 … f − 1; finite, and small enough for sums of squares
``edges``        integers within their example, k < l, no pair twice; offsets from 0 to their end
``edge_x``       of a graph, one row per edge: finite numbers ≥ 0, float64
``costs``        finite numbers above 0, float64, one per example
``margins``      finite numbers ≥ 0, float64, one per example
``windows``      of a latent dataset with two labels and one part per example: no larger than the
                 canvas, whose pixels are the features
``places``       integers, one per example, each a position of a window
``admissible``   for segments, an alphabet of K labels in which every example is a text; for
                 landmarks, boxes that contain them, in an image of K pixels
``held_out``     the same K, f, features of edges, windows and admissible labelings
===============  ==================================================================================

A subclass, such as points of which some are labeled, checks its further fields itself. Arrays of
another type are converted to the types that `Dataset` documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.memory import check_room
from ssvm_bench.config import SOURCES
from ssvm_bench.config.validation import NotNegative, Options, one_of
from ssvm_bench.datasets import arrays, reading
from ssvm_bench.datasets.arrays import INTEGERS, LARGEST, MOST_LABELS, REAL, array
from ssvm_bench.datasets.reading import ContentError, ensure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ssvm_bench.datasets.structures import Alphabet, Boxes, Windows
    from ssvm_bench.datasets.vocabulary import UnknownLabels, Vocabulary

_FEATURES = np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64)

_PLACES = {np.dtype(np.int32)}, {np.dtype(np.int64)}
"""Types of the columns and row ends of a matrix that scipy's routines take: both the same."""

_MANY = 1 << 20
"""Number of features up to which memory is not checked."""

_ADMISSIBLE = {"segments": "Alphabet", "landmarks": "Boxes"}
"""Structure → class of its ``admissible``."""


def _place(offsets: np.ndarray, part: int) -> str:
    """Name part number ``part`` of the dataset by its example and its number there."""
    i = int(np.searchsorted(offsets, part, side="right")) - 1
    return f"part {part - int(offsets[i])} of example {i}"


# ---- What kernels rely on ----------------------------------------------------------------------


def explained(dataset: Any) -> AbstractContextManager[None]:
    """Turn a `ContentError` in a block into a `RunFailedError` that names the dataset."""
    return reading.explained(
        f"The data of {dataset.name} cannot be used",
        "Correct the data, or the loader that made them.",
    )


def check(dataset: Any) -> dict[str, Any]:
    """Check the fields of a `Dataset`; return its arrays in the types that it documents.

    Raises
    ------
    ContentError
        If something is out of range; the message says what, and in which example.
    """
    K, made = dataset.n_labels, dict[str, Any]()
    made["y"], offsets = (_targets if dataset.structure == "regression" else _labels)(dataset)
    made["offsets"] = offsets
    rows = np.arange(offsets.size) if dataset.structure == "landmarks" else offsets
    made["x"] = x = _features(dataset.x, rows)
    n, parts = offsets.size - 1, int(offsets[-1])
    vocabulary, unseen = dataset.vocabulary, dataset.unseen
    for name, least in (("costs", np.nextafter(0.0, 1.0)), ("margins", 0.0)):
        if (values := getattr(dataset, name)) is not None:
            made[name] = array(values, name, REAL, (n,), least, row="example", dtype=np.float64)
    if dataset.structure == "graph" or dataset.edges is not None:
        made["edges"], made["edge_offsets"] = _edges(dataset, offsets)
    if dataset.edge_x is not None:
        ensure(dataset.edges is not None, "edge_x has features of edges, and there are no edges")
        made["edge_x"] = edge_features(dataset.edge_x, "edge_x", len(made["edges"]))
    if dataset.structure == "latent" or dataset.windows is not None:
        made |= _windows(dataset, offsets)
    if dataset.structure in _ADMISSIBLE or dataset.admissible is not None:
        _admissible(dataset, made["y"], offsets)
    if dataset.fold is not None:
        made["fold"] = array(dataset.fold, "fold", REAL, (n,))
    if vocabulary is not None:
        count = len(vocabulary.labels)
        ensure(count == K, f"there are names for {count} labels, and n_labels is {K}")
        if vocabulary.of_files:
            arrays.names(list(vocabulary.labels), "the labels")
    if unseen is not None:
        array(unseen.codes, "unseen", INTEGERS, (parts,), -1, len(unseen.names) - 1, "part")
    for name, other in dataset.held_out.items():
        if (other.n_labels, other.n_features) != (K, x.shape[1]):
            raise ContentError(
                f"the {name} examples have {other.n_labels} labels and {other.n_features} "
                f"features, those to train on {K} and {x.shape[1]}"
            )
        if other.n_edge_features != dataset.n_edge_features:
            raise ContentError(
                f"edge_x of the {name} examples has {other.n_edge_features} features an edge, that "
                f"of the examples to train on {dataset.n_edge_features}"
            )
        if other.windows != dataset.windows:
            raise ContentError(f"the {name} examples have other windows than those to train on")
        if other.admissible != dataset.admissible:
            raise ContentError(f"the {name} examples have other admissible labelings")
    return made


def _labels(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of all parts, checked, and the offsets of the examples."""
    K = dataset.n_labels
    if not isinstance(K, (int, np.integer)) or not 1 <= K <= MOST_LABELS:
        raise ContentError(f"there are 1 to {MOST_LABELS} labels, and n_labels is {K!r}")
    y = array(dataset.y, "y")
    offsets = arrays.offsets_of(dataset.offsets, "offsets", y.size, "labels", 1)
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
    return y, offsets


def _targets(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets of a regression, checked, and the offsets of the examples."""
    y, K, n = dataset.y, dataset.n_labels, np.size(dataset.y)
    ensure(K == 0, f"a regression has no labels, and n_labels is {K!r}")
    offsets = arrays.offsets_of(dataset.offsets, "offsets", n, "targets", 1)
    why = "the examples of a regression have one part each, and some have more"
    ensure(offsets.size - 1 == n, why)
    return array(y, "y", REAL, (n,), -LARGEST, row="example", dtype=np.float64), offsets


def _features(x: Any, offsets: np.ndarray) -> Any:
    """Return the features of all parts, checked."""
    parts = int(offsets[-1])
    ensure(len(getattr(x, "shape", ())) == 2, "x must be a matrix with a row for each part")
    if x.shape[0] != parts or x.shape[1] < 1:
        hint = ""
        if x.shape[0] == offsets.size - 1:
            hint = (
                ", each with a row of its own; if all parts of an example have the same features, "
                "repeat its row, as np.repeat(x, np.diff(offsets), axis=0) does"
            )
        raise ContentError(f"x has the shape {x.shape}, and there are {parts} parts{hint}")
    if x.shape[1] > _MANY:
        check_room(
            32.0 * x.shape[1],  # w, and a solver's vectors of the same size
            f"Weights of {x.shape[1]} features",
            "One index that is too large is enough for so many: correct it, or use fewer features.",
        )
    if isinstance(x, np.ndarray):
        x = np.ascontiguousarray(array(x, "x", REAL, (None, None)))
    elif getattr(x, "format", None) != "csr":
        raise ContentError(f"x must be an ndarray or a csr_array, got {type(x).__name__}")
    else:
        x = _csr_features(x, partial(_place, offsets))
    if x.dtype not in _FEATURES:
        x = arrays.normalised(x)
    if (found := out_of_range(x)) is not None:
        row, _, value = found
        what = f"over {LARGEST:g}: scale the features" if np.isfinite(value) else "not finite"
        raise ContentError(f"a feature of {_place(offsets, row)} is {value:g}, {what}")
    return x


def out_of_range(x: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first feature that is not finite or too large, if any."""
    values = x.ravel() if isinstance(x, np.ndarray) else x.data
    if values.dtype.kind != "f":
        return None
    # the usual case: a moderate sum of squares shows that all are finite and of moderate size
    with np.errstate(over="ignore", invalid="ignore"):
        if float(np.dot(values, values)) < LARGEST:
            return None
    bad = ~(np.abs(values) <= LARGEST)
    if not bad.any():
        return None
    k = int(np.flatnonzero(bad)[0])
    if isinstance(x, np.ndarray):
        return *divmod(k, x.shape[1]), values[k]
    return int(np.searchsorted(x.indptr, k, "right")) - 1, int(x.indices[k]), values[k]


def _csr_features(x: Any, row: Callable[[int], str]) -> Any:
    """Check a CSR matrix; return it with repeated entries added up."""
    data = array(x.data, "the non-zeros of x", REAL)
    arrays.check_csr(data.size, x.indices, x.indptr, x.shape, row)
    if {x.indices.dtype, x.indptr.dtype} not in _PLACES:
        x = arrays.csr({"data": data, "indices": x.indices, "indptr": x.indptr}, x.shape[1])
    if not x.has_canonical_format:
        wide = arrays.normalised(x).astype(np.float64)
        wide.sum_duplicates()
        if wide.nnz < x.nnz:
            return arrays.normalised(wide)
    return x


def _edges(dataset: Any, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of all examples, checked, and their offsets."""
    if dataset.edges is None or dataset.edge_offsets is None:
        raise ContentError("a graph needs edges and edge_offsets")
    edges = array(dataset.edges, "edges", shape=(None, 2))
    ends = arrays.offsets_of(dataset.edge_offsets, "edge_offsets", len(edges), "edges", 0)
    its, n = ends.size - 1, offsets.size - 1
    ensure(its == n, f"edge_offsets are of {its} examples, offsets of {n}")
    check_room(64.0 * len(edges), f"Looking at {len(edges)} edges", "Use fewer examples.")
    example = np.repeat(np.arange(n), np.diff(ends))
    k, l = edges.T.astype(np.int64)  # beyond int64 it becomes negative: out of range, too
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
    if not (codes[1:] > codes[:-1]).all():  # rising codes, the usual case, have no repeats
        order = np.argsort(codes, kind="stable")
        same = codes[order[1:]] == codes[order[:-1]]
        if same.any():
            e = order[np.argmax(same)]
            raise ContentError(f"edge ({k[e]}, {l[e]}) of example {example[e]} is there twice")
    return edges.astype(np.int32, copy=False), ends


def edge_features(found: Any, name: str, edges: int) -> np.ndarray:
    """Return the features of ``edges`` edges, checked."""
    x = array(found, name, REAL, (edges, None), 0.0, row="edge", dtype=np.float64)
    ensure(x.shape[1] != 0, f"{name} has the shape {x.shape}, and no features: leave it out")
    return np.ascontiguousarray(x)


def _windows(dataset: Any, offsets: np.ndarray) -> dict[str, np.ndarray]:
    """Check the windows of all examples; return the positions of their objects, if known."""
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
    if dataset.places is None:
        return {}
    highest = windows.positions - 1
    places = array(dataset.places, "places", INTEGERS, (n,), 0, highest, "example", np.int64)
    return {"places": places}


def _admissible(dataset: Any, y: np.ndarray, offsets: np.ndarray) -> None:
    """Check that the labels of all examples are admissible."""
    admissible = dataset.admissible
    what = _ADMISSIBLE.get(dataset.structure)
    if what is None or type(admissible).__name__ != what:
        raise ContentError(
            f"segments need an Alphabet that is admissible, landmarks need Boxes, and others "
            f"nothing; those of {dataset.structure} have {type(admissible).__name__}"
        )
    if (fault := admissible.fault(dataset.n_labels)) is not None:
        raise ContentError(fault)
    if (found := admissible.first_inadmissible(y, offsets)) is not None:
        part, why = found
        raise ContentError(f"{_place(offsets, part)} {why}")


# ---- Datasets ---------------------------------------------------------------------------------

SEGMENTS, LANDMARKS = "segments", "landmarks"
"""Structures whose labelings are restricted by ``admissible``."""

OF_EXAMPLES = ("fold", "costs", "margins", "places")
"""Fields of a dataset with a number for each example."""


class Images(NamedTuple):
    """Layout of the pixels of an image in the features of a part.

    Attributes
    ----------
    cell : (height, width)
        Size in pixels. The features are these pixels, row by row.
    background : float
        The feature of a pixel outside the image.
    """

    cell: tuple[int, int]
    background: float


@dataclass(frozen=True)
class Dataset:
    """Examples made of labeled parts.

    Attributes
    ----------
    name : str
        The dataset's name on the command line.
    source : str
        ``"real"``; ``"drawn"``, simulated by intention; ``"real (altered)"``; or ``"synthetic"``,
        in place of real ones. The first two are never mixed with the others.
    x : ndarray or csr_array, shape (parts, f), uint8, float32 or float64
        Features of the parts; for landmarks, of shape (n, f). An ndarray is C-contiguous.
    y : ndarray of integers, shape (parts,)
        Ground-truth labels, in ``0 .. n_labels - 1``. For a regression, the targets, float64.
    offsets : ndarray of int64, shape (n + 1,)
        Example i owns the parts ``offsets[i]:offsets[i + 1]``.
    n_labels : int
        Number of labels K of a part; 0 for a regression.
    structure : str
        ``"independent"``, ``"regression"``, ``"chain"``, ``"graph"``, ``"latent"``,
        ``"segments"`` or ``"landmarks"``; an oracle declares which it can handle.
    edges : ndarray of int32, shape (edges, 2), optional
        Neighbours k < l in a graph, numbered from the first part of their example; no pair twice.
    edge_offsets : ndarray of int64, shape (n + 1,), optional
        Example i owns the edges ``edge_offsets[i]:edge_offsets[i + 1]``.
    edge_x : ndarray of float64, shape (edges, k), optional
        Features of the edges, ≥ 0; C-contiguous.
    fold : ndarray of int64, shape (n,), optional
        The fold of each example, where the original data has folds.
    costs, margins : ndarrays of float64, shape (n,), optional
        C_i > 0 weights the loss of example i. m_i ≥ 0 is the margin by which its labeling shall
        score higher than one that is wrong in every part. By default, both are 1. Neither enters
        the mean losses that a run reports at its end.
    windows : Windows, optional
        Positions where the object of an example may be, if its position is latent.
    places : ndarray of int64, shape (n,), optional
        The position of each object, if known; meaningless for examples without an object.
    admissible : Alphabet or Boxes, optional
        The admissible labelings of segments and of landmarks.
    vocabulary : Vocabulary, optional
        Names of labels and features, if they have any, and how to read files that use them.
    unseen : UnknownLabels, optional
        Labels of held-out examples that do not occur in training. They are 0 in ``y``, and any
        prediction for them is wrong.
    held_out : mapping
        Name (``"validation"``, ``"test"``) → examples of the same kind that are not trained on.
        :meth:`take` keeps all of them.

    Datasets that :meth:`take` and :meth:`derived` return are not checked again.
    """

    name: str
    source: str = field(default="real", kw_only=True)
    x: np.ndarray | csr_array
    y: np.ndarray
    offsets: np.ndarray
    n_labels: int
    structure: str
    edges: np.ndarray | None = None
    edge_offsets: np.ndarray | None = None
    edge_x: np.ndarray | None = None
    fold: np.ndarray | None = None
    costs: np.ndarray | None = None
    margins: np.ndarray | None = None
    windows: Windows | None = None
    places: np.ndarray | None = None
    admissible: Alphabet | Boxes | None = None
    vocabulary: Vocabulary | None = None
    unseen: UnknownLabels | None = None
    held_out: Mapping[str, Dataset] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything that kernels rely on, and convert arrays to the types above.

        Raises
        ------
        RunFailedError
            If something is out of range (:mod:`ssvm_bench.datasets.base`).
        """
        with explained(self):
            vars(self).update(check(self))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits, equal for equal training examples, wherever they come from."""
        digest = hashlib.sha256()
        x: Any = self.x
        features = [x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]
        features[1:] = [places.astype(np.int64) for places in features[1:]]
        graph = [self.edges, self.edge_offsets, self.edge_x]
        for values in (*features, self.y, self.offsets, *graph):
            if values is not None:
                digest.update(f"{values.dtype.str}{values.shape}".encode())
                digest.update(np.ascontiguousarray(values).data)
        if self.windows is not None:
            digest.update(f"windows{self.windows}".encode())
        if self.admissible is not None:
            digest.update(f"admissible{self.admissible}".encode())
        for name in OF_EXAMPLES[1:]:
            if (array := getattr(self, name)) is not None:
                digest.update(f"{name}{array.shape}".encode() + array.tobytes())
        return digest.hexdigest()[:16]

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.offsets.size - 1

    @property
    def n_features(self) -> int:
        """Number of features f of a part."""
        return int(self.x.shape[1])

    @property
    def n_edge_features(self) -> int:
        """Number of features k of an edge; 0 if edges have none."""
        return 0 if self.edge_x is None else int(self.edge_x.shape[1])

    @property
    def label_names(self) -> Sequence[str]:
        """Names of the labels 0, …, K − 1."""
        if self.vocabulary is not None:
            return self.vocabulary.labels
        if self.admissible is not None:
            return self.admissible.labels
        return [str(label) for label in range(self.n_labels)]

    def derived(self, **changes: Any) -> Dataset:
        """Return a copy with some fields replaced, unchecked: derive them from checked ones."""
        copy = object.__new__(type(self))
        vars(copy).update({each.name: getattr(self, each.name) for each in fields(self)}, **changes)
        return copy

    def head(self, size: int) -> Dataset:
        """Return the first ``size`` examples, for instance to compile kernels on."""
        return self.take(np.arange(min(size, self.n)))

    def take(self, examples: np.ndarray) -> Dataset:
        """Return the dataset of the given examples (indices), in that order."""
        parts, offsets = _rows(self.offsets, examples)
        rows = dict.fromkeys(OF_EXAMPLES, examples)
        rows |= {"x": examples if self.structure == LANDMARKS else parts, "y": parts}
        changes: dict[str, Any] = {"offsets": offsets}
        if self.edges is not None and self.edge_offsets is not None:
            rows["edges"], changes["edge_offsets"] = _rows(self.edge_offsets, examples)
            rows["edge_x"] = rows["edges"]
        if self.unseen is not None:
            unseen = self.unseen._replace(codes=self.unseen.codes[parts])
            changes["unseen"] = unseen if unseen.mask.any() else None
        for name, kept in rows.items():
            if (array := getattr(self, name)) is not None:
                changes[name] = array[kept]
        return self.derived(**changes)

    def chunks(self, rows: int) -> Iterator[Dataset]:
        """Yield the examples in order, ``rows`` at a time; the last chunk may have fewer."""
        for begin in range(0, self.n, rows):
            yield self.take(np.arange(begin, min(begin + rows, self.n)))


def split_by_fold(dataset: Dataset, *names: str) -> Dataset:
    """Return the examples of fold 0, with those of fold k, if any, held out as the k-th name."""
    assert dataset.fold is not None
    parts = {
        name: dataset.take(rows)
        for k, name in enumerate(("train", *names))
        if (rows := np.flatnonzero(dataset.fold == k)).size
    }
    return parts.pop("train").derived(held_out=parts)


def with_bias(dataset: Dataset, bias: float) -> Dataset:
    """Append a constant feature ``bias``, unless it is 0, and record it in the vocabulary."""
    if bias == 0.0:
        return dataset
    x, vocabulary = dataset.x, dataset.vocabulary
    column = np.full((x.shape[0], 1), float(bias))
    with np.errstate(invalid="ignore"):  # the bias may exceed the type
        narrow = column.astype(x.dtype)
    if np.array_equal(column, narrow):
        column = narrow
    if vocabulary is not None:
        vocabulary = replace(vocabulary, bias=bias)
    if isinstance(x, np.ndarray):
        return dataset.derived(x=np.hstack((x, column)), vocabulary=vocabulary)
    from scipy.sparse import csr_array, hstack

    wider = csr_array(hstack((x, csr_array(column)), format="csr"))
    return dataset.derived(x=wider, vocabulary=vocabulary)


def described(name: str, vocabulary: Vocabulary, bias: float, fields: dict[str, Any]) -> Dataset:
    """Return the real examples with these fields that a vocabulary describes, with a bias."""
    about: Any = {"n_labels": len(vocabulary.labels), "structure": vocabulary.structure}
    made = Dataset(name=name, vocabulary=vocabulary, **about, **fields)
    return with_bias(made, bias)


def _rows(offsets: np.ndarray, examples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that the examples own, example by example, and their new offsets."""
    lengths = np.diff(offsets)[examples]
    taken = np.concatenate(([0], np.cumsum(lengths)))
    return np.arange(taken[-1]) + np.repeat(offsets[examples] - taken[:-1], lengths), taken


@dataclass(frozen=True)
class DatasetConfig(Options):
    """Options of every dataset.

    Attributes
    ----------
    name, kind : str
        The dataset's name, and the module that loads it.
    """

    section: ClassVar[str] = "dataset"

    name: str
    kind: str

    def read_files(self) -> DatasetConfig:
        """Return the config, completed by options that depend on the content of its files."""
        return self

    def default_oracles(self) -> tuple[str, ...]:
        """Return the oracles that fit the content of the files; none: use the YAML file's.

        The first that has the options of the call is chosen, else the first. It may raise what
        reading the files raises.
        """
        return ()

    def oracle_options(self) -> dict[str, Any]:
        """Return the defaults of those options of the oracle for which the examples have others.

        An oracle that lacks an option passes it over. It may raise what reading the files raises.
        """
        return {}


def _check_samples(option: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise ConfigError(f"{option} must be null or an integer ≥ 1, got {value!r}.")


@dataclass(frozen=True)
class SourceConfig(DatasetConfig):
    """Options of a dataset that has real and synthetic data.

    Attributes
    ----------
    source : str
        ``"auto"``: the real data or, where these are neither here nor on board, synthetic ones with
        a warning; ``"real"``; ``"synthetic"``.
    n_samples : int, optional
        Use only this many examples: the first of a fixed permutation, the same for every seed.
    trust : bool
        Accept raw files that are not the known ones; the source is then ``"real (altered)"``.
    """

    source: Annotated[str, one_of(SOURCES)] = "auto"
    n_samples: Annotated[int, _check_samples] | None = None
    trust: bool = False


@dataclass(frozen=True)
class FileConfig(SourceConfig):
    """Options of a dataset in the user's own files, which is identified by their content.

    Attributes
    ----------
    path : Path, optional
        Where the files are.
    fingerprint : str, optional
        Fingerprint that the content of the files must have; None: any content is accepted.
    """

    path: Path | None = None
    fingerprint: str | None = None

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("path",)

    def found(self) -> str | None:
        """Return the fingerprint of the files' content; None if they cannot be read."""
        raise NotImplementedError

    def read_files(self) -> Any:
        """Return the config with the fingerprint of its files, if they can be read."""
        if self.path is None or self.fingerprint is not None:
            return self
        return replace(self, fingerprint=self.found())

    def check_fingerprint(self, there: str | None) -> None:
        """Raise ``RunFailedError`` unless the fingerprint found is the requested one, if any."""
        if self.fingerprint not in (None, there):
            raise RunFailedError(
                f"What is in {self.path} has the fingerprint {there}, and dataset.fingerprint is "
                f"{self.fingerprint}. Name the data that have it, or leave the option out."
            )


@dataclass(frozen=True)
class BiasConfig(SourceConfig):
    """Options of a dataset with a bias, which is regularised like all weights.

    Attributes
    ----------
    bias : float
        The value of a constant feature, the last one, of all examples; 0: none. The larger, the
        less the bias is regularised.
    """

    bias: NotNegative = 0.0
