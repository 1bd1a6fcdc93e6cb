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
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import SOURCES
from ssvm_bench.config.validation import NotNegative, Options, one_of
from ssvm_bench.datasets import checks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ssvm_bench.datasets.structures import Alphabet, Boxes, Windows
    from ssvm_bench.datasets.vocabulary import UnknownLabels, Vocabulary


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
            If something is out of range (:mod:`ssvm_bench.datasets.checks`).
        """
        with checks.explained(self):
            vars(self).update(checks.check(self))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits, equal for equal training examples, wherever they come from."""
        digest = hashlib.sha256()
        x: Any = self.x
        features = [x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]
        features[1:] = [places.astype(np.int64) for places in features[1:]]
        graph = [self.edges, self.edge_offsets, self.edge_x]
        for array in (*features, self.y, self.offsets, *graph):
            if array is not None:
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
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
        ``"auto"``: the real data, or synthetic ones with a warning; ``"real"``; ``"synthetic"``.
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
