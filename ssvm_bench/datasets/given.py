"""Examples that a Python program passes, as matrices or as named features.

===============  ========================================  ==============================
structure        X                                         y
===============  ========================================  ==============================
``independent``  a matrix, one row per example; or a list  one label per example
                 of named features
``graph``        one tuple per example: features of the    a list of labels per example
                 parts, edges, shape (E, 2), and
                 optionally features of the edges, ≥ 0,
                 shape (E, k)
``chain``, …     the features of the parts per example: a  a list of labels per example
                 matrix, or a list of named features
===============  ========================================  ==============================

The named features of a part are a mapping, such as ``{"word": "He", "length": 2}``, where a text
becomes the feature ``word=He`` of value 1; or a list of texts, each a feature of value 1. An edge
is a pair of parts of the example, numbered from 0, in either order; a repeated edge counts once.
An example may be empty, but not in training.

Errors in X and y raise ``ValueError``, as in numpy and scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.datasets.arrays import (
    LARGEST,
    LARGEST_WHOLE,
    REAL,
    array,
    ends_of,
    label_type,
    normalised,
    sparse,
)
from ssvm_bench.datasets.base import Dataset, DatasetConfig, described, edge_features, out_of_range
from ssvm_bench.datasets.reading import ensure, parsing
from ssvm_bench.datasets.vocabulary import PYTHON, Vocabulary

_PART = "a mapping of features, a list of texts or a row of numbers"

_SEQUENCES = "for sequences there is structure='chain'"

_INSIDE = Mapping, list, tuple
"""What a part that is a list cannot begin with."""


@dataclass(frozen=True, eq=False)
class Config(DatasetConfig):
    """Options: the examples themselves."""

    dataset: Dataset


def load(config: Config) -> Dataset:
    """Return the examples."""
    return config.dataset


class Parts(NamedTuple):
    """Features and edges of all examples, concatenated.

    Attributes
    ----------
    features : matrix of shape (parts, f), or list
        The list of the features of each part, if they have names.
    offsets : ndarray of int64, shape (n + 1,)
        Example i has the parts ``offsets[i]:offsets[i + 1]``.
    edges, edge_offsets, edge_x : ndarray or None
        As in a `Dataset`.
    named : bool
        Whether features have names.
    """

    features: Any
    offsets: np.ndarray
    edges: np.ndarray | None = None
    edge_offsets: np.ndarray | None = None
    edge_x: np.ndarray | None = None
    named: bool = False

    @property
    def sizes(self) -> np.ndarray:
        """Number of parts of each example."""
        return np.diff(self.offsets)

    def place(self, part: int) -> str:
        """Name a part by its example, and its number there if an example has several."""
        i = int(np.searchsorted(self.offsets, part, "right")) - 1
        if self.offsets.size == self.offsets[-1] + 1:
            return f"example {i}"
        return f"part {part - int(self.offsets[i])} of example {i}"

    @property
    def n_edge_features(self) -> int:
        """Number of features of an edge; 0 if edges have none."""
        return 0 if self.edge_x is None else int(self.edge_x.shape[1])


def are_named(parts: Any, otherwise: bool = False) -> bool:
    """Return whether the features of parts are named, judged by the first part that has any.

    If no part of a list has any, return ``otherwise``.
    """
    if not isinstance(parts, list | tuple):
        return False
    first = next((each for each in parts if not isinstance(each, list | tuple) or each), None)
    if first is None:
        return otherwise
    if isinstance(first, Mapping | set | frozenset):
        return True
    return isinstance(first, list | tuple) and isinstance(first[0], str)


def looked_at(X: Any, name: str = "X") -> Any:
    """Return features in a form for scikit-learn and scipy: sparse as CSR, one axis as a list.

    Raises
    ------
    ValueError
        A sparse matrix has entries outside its shape, or that are no numbers; or X is masked.
    """
    if hasattr(X, "tocsr"):
        return sparse(X, name) if count(X) else np.zeros(X.shape)
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array: fill in what is masked, or leave it out")
    return list(X) if getattr(X, "ndim", 0) == 1 else X


def check_single(X: Any, y: Any = None) -> None:
    """Raise ``ValueError`` if an example of one part is a text, or a list of parts or labels."""
    for i, each in enumerate(X if isinstance(X, list | tuple) else ()):
        if isinstance(each, str):
            raise ValueError(f"X[{i}] is the text {shown(repr(each))}; an example is {_PART}")
        first = each[0] if isinstance(each, list | tuple) and each else None
        if isinstance(first, Mapping | list | tuple | np.ndarray) or getattr(each, "ndim", 0) > 1:
            raise ValueError(f"X[{i}] has several parts; an example is {_PART}, and {_SEQUENCES}")
    for i, each in enumerate(y if isinstance(y, list | tuple) else ()):
        if isinstance(each, list | tuple | np.ndarray) and np.size(each) != 1:
            raise ValueError(f"y[{i}] has {len(each)} labels; an example has one, and {_SEQUENCES}")


def parts_of(X: Any, structure: str, named: bool = False) -> Parts:
    """Return the parts of all examples.

    Parameters
    ----------
    X : examples
    structure : str
    named : bool
        Whether features are named if no part has any.

    Raises
    ------
    ValueError
        X does not have the form that the module's docstring describes.
    """
    if structure == "independent":
        return Parts(X, np.arange(count(X) + 1), named=are_named(X, named))
    X = listed(X, "X")
    X, of_graph = _features_and_edges(X) if structure == "graph" else (X, {})
    X = [looked_at(each, f"X[{i}]") for i, each in enumerate(X)]
    sizes = [_size(each, i) for i, each in enumerate(X)]
    offsets = ends_of(np.array(sizes, np.int64))
    if any(are_named(each, named) for each in X):
        for i, each in enumerate(X):
            if sizes[i] and not isinstance(each, list | tuple):
                raise ValueError(f"X[{i}] must be a list of features with names, as others are")
        filled = (each for each, size in zip(X, sizes, strict=True) if size)
        return Parts([*chain.from_iterable(filled)], offsets, **of_graph, named=True)
    rows = {
        f"X[{i}]": each if hasattr(each, "tocsr") else _array(each, f"X[{i}]")
        for i, each in enumerate(X)
        if sizes[i] or getattr(each, "ndim", 0) == 2  # a matrix without rows has columns
    }
    first = next((each for each in rows.values() if each.ndim == 2), np.zeros((0, 0)))
    for name, each in rows.items():
        if each.dtype.kind not in "biufO":
            raise ValueError(f"{name} has entries of type {each.dtype}; expected numbers")
        if each.ndim != 2 or each.shape[1] != first.shape[1]:
            columns = f"{first.shape[1]} features" if first.size else "features"
            raise ValueError(
                f"{name} has the shape {each.shape}; expected a row of {columns} for each part"
            )
    some = {name: each for name, each in rows.items() if each.shape[0]}
    return Parts(_stacked(some) if some else first[:0], offsets, **of_graph)


def _size(example: Any, i: int) -> int:
    """Return the number of parts of example i; 1 if it can have none, which its shape shows later.

    Raises
    ------
    ValueError
        It is a text or a part itself; or its first part with features is a text, or has parts.
    """
    if isinstance(example, str | Mapping):
        what = f"X[{i}] is {shown(repr(example))}"
        raise ValueError(f"{what}; an example is a list of parts, each {_PART}")
    if not isinstance(example, list | tuple):
        return count(example)
    for j, part in enumerate(example):
        is_list = isinstance(part, list | tuple)
        if is_list and not part:
            continue
        if isinstance(part[0] if is_list else part, _INSIDE if is_list else str):
            raise ValueError(f"X[{i}][{j}] is {shown(repr(part))}; a part is {_PART}")
        break
    return len(example)


def count(X: Any) -> int:
    """Return the length of a list or the number of rows of a matrix; of anything else, 1."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0]) if shape else 1
    return len(X) if isinstance(X, list | tuple) else 1


def check_filled(parts: Parts) -> None:
    """Raise ``ValueError`` if there are no examples, or one of them is empty."""
    ensure(parts.sizes.size, "X has 0 examples")
    if not parts.sizes.all():
        i = int(np.argmin(parts.sizes))
        raise ValueError(f"example {i} is empty: X[{i}] has no parts. Leave it out of X and y")


def labels_of(y: Any, offsets: np.ndarray, single: bool = False) -> np.ndarray:
    """Return the labels of all parts; y has one per example if ``single``, else a list of them.

    Raises
    ------
    ValueError
        An example has more or fewer labels than parts, or labels are neither texts nor integers.
    """
    sizes, rows = np.diff(offsets), listed(y, "y")
    ensure(len(rows) == sizes.size, f"X has {sizes.size} examples, and y has {len(rows)}")
    if not single:
        for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            if (shape := _array(row, f"y[{i}]").shape) != (size,):
                raise ValueError(f"y[{i}] has the shape {shape}, and X[{i}] has {size} parts")
        lists = (row.tolist() if isinstance(row, np.ndarray) else row for row in rows)
        rows = list(chain.from_iterable(lists))
    labels = _array(rows, "y")
    whole = labels.dtype.kind != "f" or (np.isfinite(labels) & (labels == labels.round())).all()
    if labels.ndim != 1 or labels.dtype.kind not in "biufU" or not whole:
        raise ValueError("labels must be texts or integers")
    check_labels(rows, labels)
    return labels


def weights_of(found: Any, n: int) -> np.ndarray:
    """Return the weights of n examples, shape (n,); None: all are 1, a number: of all examples.

    Raises
    ------
    ValueError
        The weights are not n numbers ≥ 0, or all are zero.
    """
    if found is None:
        return np.ones(n)
    weights = _array(found, name := "sample_weight")
    weights = array(np.full(n, weights) if weights.ndim == 0 else weights, name, REAL, (n,), 0.0)
    ensure(weights.any(), "sample_weight is zero for every example: there is nothing to learn")
    return weights.astype(np.float64)


def weighted(dataset: Dataset, weights: np.ndarray) -> tuple[Dataset, float]:
    """Return the examples with weights s_i above 0, and S = Σ_i s_i.

    Their costs are C_i = n s_i / S for the n examples returned, so that 1/n Σ_i C_i … equals
    1/S Σ_i s_i …; if all their weights are equal, the dataset has no costs.
    """
    total = float(weights.sum())
    kept = np.flatnonzero(weights / total)
    costs = kept.size * (weights[kept] / total)
    same = (weights[kept] == weights[kept[0]]).all()
    return dataset.take(kept).derived(costs=None if same else costs), total


def check_labels(y: Any, labels: np.ndarray) -> None:
    """Raise ``ValueError`` if labels have several types, or if numpy changed those of a list y.

    Numpy turns numbers beside texts into texts, cuts NUL off the end of a text, and rounds
    integers of more than 64 bits.
    """
    types = {type(label).__name__ for label in labels.ravel()} if labels.dtype == object else ()
    ensure(len(types) < 2, f"labels must be of one type; there are {', '.join(sorted(types))}")
    is_list, truths = isinstance(y, list | tuple), (bool, np.bool_)
    mixed = is_list and labels.dtype.kind != "b" and not {*map(type, y)}.isdisjoint(truths)
    if mixed or (is_list and labels.tolist() != list(y)):
        p = next(p for p in range(len(y)) if labels[p].item() != y[p] or type(y[p]) in truths)
        raise ValueError(
            f"the label {shown(repr(y[p]))} would become {shown(repr(labels[p].item()))}: labels "
            "must all be texts, or all be integers of 64 bits"
        )
    if labels.dtype.kind == "f" and not (np.abs(labels) <= np.float64(LARGEST_WHOLE)).all():
        raise ValueError(
            "labels must be texts, or integers of 64 bits: float64 does not tell larger ones apart"
        )


def are_equal(labels: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which labels are equal; a text never equals a number."""
    if (labels.dtype.kind == "U") != (others.dtype.kind == "U"):
        return np.zeros(labels.shape, bool)
    return labels == others


def codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class numbers of labels; that of a label that is no class is arbitrary."""
    if (labels.dtype.kind == "U") != (classes.dtype.kind == "U"):
        return np.zeros(labels.shape, np.int64)
    return np.searchsorted(classes, labels).clip(max=classes.size - 1)


def dataset(
    parts: Parts, structure: str, classes: np.ndarray, codes: np.ndarray | None, bias: float
) -> Dataset:
    """Return the examples as a `Dataset` for solvers, without those that are empty.

    Parameters
    ----------
    parts : Parts
        Their features must be a matrix of numbers.
    structure : str
    classes : ndarray, shape (K,)
        The labels themselves.
    codes : ndarray of integers, shape (parts,), optional
        The number of each part's label; None: not known.
    bias : float
        Value of an additional last feature; 0: none.
    """
    from scipy.sparse import csr_array

    x = parts.features
    if isinstance(x, np.ndarray):
        x = array(x, "X", REAL, (None, None))
    elif x.dtype != np.uint8 or not x.has_canonical_format:
        x = csr_array(x, dtype=np.float64)  # sums of small integers may not fit their type
        x.sum_duplicates()
    x = normalised(x)
    y = np.zeros(x.shape[0], np.int64) if codes is None else codes
    names = tuple(map(str, classes.tolist()))
    filled = np.append(True, parts.sizes > 0)
    fields = {**parts._asdict(), "x": x, "y": y.astype(label_type(len(names)))}
    for ends in ("offsets", "edge_offsets"):
        fields[ends] = None if fields[ends] is None else fields[ends][filled]
    del fields["features"], fields["named"]
    return described("X", Vocabulary(names, PYTHON, structure, int(x.shape[1])), bias, fields)


def with_numbers(parts: Parts, name: Callable[[int], object]) -> Parts:
    """Return the parts, whose features are a matrix, with finite numbers in it.

    Raises
    ------
    ValueError
        An entry is no number, not finite, or too large; ``name`` returns the name of its column.
    """
    x, found = parts.features, None
    ensure(x.shape[1], "X has no features")
    if isinstance(x, np.ndarray) and x.dtype == object:
        try:
            x = x.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            found = next((*at, each) for at, each in np.ndenumerate(x) if not _is_float(each))
    found = found or out_of_range(x)
    if found is None:
        return parts._replace(features=x)
    row, column, value = found
    text, why = shown(repr(value)), "expected a number"
    if isinstance(value, str):
        why += ". Words are features of dictionaries: a frame's to_dict('records') makes them"
    if isinstance(value, float | np.floating):
        text = "NaN" if np.isnan(value) else f"{value:g}"
        why = f"over {LARGEST:g}: scale the features" if np.isfinite(value) else "not finite"
    raise ValueError(f"feature {shown(name(column))} of {parts.place(row)} is {text}, {why}")


def _is_float(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def listed(found: Any, name: str) -> list[Any]:
    """Return the examples as a list; raise ``ValueError`` if they are no list."""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise ValueError(f"{name} must be a list of examples, got {shown(repr(found))}")
    with parsing(f"{name} is no list of examples"):
        return list(found)


def _array(found: Any, name: str) -> np.ndarray:
    with parsing(f"{name} is no array"):
        return np.asarray(found)


def _features_and_edges(X: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the features of the parts, and the further fields of `Parts` for graphs."""
    features, edges, edge_xs = [], [], dict[int, np.ndarray]()
    for i, example in enumerate(X):
        if not isinstance(example, list | tuple) or len(example) not in (2, 3):
            raise ValueError(
                f"X[{i}] must be a pair: features of the parts, and edges; or these and features "
                "of the edges"
            )
        if len(example) != len(X[0]):
            raise ValueError(
                f"X[{i}] has {len(example)} entries, and X[0] has {len(X[0])}: give features of "
                "edges, which come third, for all examples or for none"
            )
        shape = getattr(example[0], "shape", ()) or (len(listed(example[0], f"X[{i}]")),)
        pairs = _array(example[1], f"the second half of X[{i}], its edges,")
        pairs = pairs if pairs.size else np.zeros((0, 2), np.int64)
        array(pairs, f"edges of X[{i}]", shape=(None, 2))
        wrong = (pairs < 0).any(axis=1) | (pairs >= shape[0]).any(axis=1)
        wrong |= pairs[:, 0] == pairs[:, 1]
        if wrong.any():
            pair = tuple(pairs[np.argmax(wrong)].tolist())
            raise ValueError(f"the edge {pair} of X[{i}] joins no two of its {shape[0]} parts")
        features.append(example[0])
        distinct, first, of = np.unique(
            np.sort(pairs, axis=1), axis=0, return_index=True, return_inverse=True
        )
        edges.append(distinct.astype(np.int32))
        if len(example) == 2:
            continue
        name = f"edge_x, the third entry of X[{i}],"
        edge_x = _array(example[2], name)
        if edge_x.size == len(pairs) == 0:
            continue  # the number of columns is open
        edge_x = edge_features(edge_x, name, len(pairs))
        of_first, width = next(((j, x.shape[1]) for j, x in edge_xs.items()), (i, edge_x.shape[1]))
        if edge_x.shape[1] != width:
            raise ValueError(f"{name} has {edge_x.shape[1]} columns, that of X[{of_first}] {width}")
        edge_xs[i] = edge_x[first]
        if not np.array_equal(edge_xs[i][of.ravel()], edge_x):
            raise ValueError(f"X[{i}] has an edge twice, with different features")
    of_graph = {
        "edges": np.concatenate([np.zeros((0, 2), np.int32), *edges]),
        "edge_offsets": ends_of(np.array([*map(len, edges)])),
    }
    return features, of_graph | ({"edge_x": np.concatenate([*edge_xs.values()])} if edge_xs else {})


def _stacked(rows: Mapping[str, Any]) -> Any:
    """Return the rows of all examples; the keys name the examples."""
    if all(isinstance(each, np.ndarray) for each in rows.values()):
        kind = np.result_type(*{each.dtype for each in rows.values()})
        if kind.kind in REAL:  # it may not represent all integers of some examples
            some = (None, None)
            rows = {name: array(x, name, REAL, some, dtype=kind) for name, x in rows.items()}
        return np.concatenate([*rows.values()])
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([*rows.values()], format="csr"))
