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

Errors in X and y raise ``ValueError``, as in numpy and scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.datasets.arrays import LARGEST_WHOLE, REAL, array, label_type, normalised, sparse
from ssvm_bench.datasets.base import Dataset, DatasetConfig, described
from ssvm_bench.datasets.checks import edge_features
from ssvm_bench.datasets.reading import ensure, parsing
from ssvm_bench.datasets.vocabulary import PYTHON, Vocabulary


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
        A list has named features.
    offsets : ndarray of int64, shape (n + 1,)
        Example i has the parts ``offsets[i]:offsets[i + 1]``.
    edges, edge_offsets, edge_x : ndarray or None
        As in a `Dataset`.
    """

    features: Any
    offsets: np.ndarray
    edges: np.ndarray | None = None
    edge_offsets: np.ndarray | None = None
    edge_x: np.ndarray | None = None

    @property
    def n_edge_features(self) -> int:
        """Number of features of an edge; 0 if edges have none."""
        return 0 if self.edge_x is None else int(self.edge_x.shape[1])


def are_named(parts: Any) -> bool:
    """Return whether the features of parts are named, judged by the first part that has any."""
    if not isinstance(parts, list | tuple):
        return False
    first = next((each for each in parts if not isinstance(each, list | tuple) or each), None)
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
        return sparse(X, name)
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array: fill in what is masked, or leave it out")
    return list(X) if getattr(X, "ndim", 0) == 1 else X


def parts_of(X: Any, structure: str) -> Parts:
    """Return the parts of all examples.

    Raises
    ------
    ValueError
        X does not have the form that the module's docstring describes.
    """
    if structure == "independent":
        return Parts(X, np.arange((X.shape[0] if hasattr(X, "shape") else len(X)) + 1))
    listed = _listed(X, "X")
    ensure(listed, "X has 0 examples")
    X, of_graph = _features_and_edges(listed) if structure == "graph" else (listed, {})
    if are_named(X[0]):
        for i, each in enumerate(X):
            if not isinstance(each, list | tuple):
                raise ValueError(f"X[{i}] must be a list of features with names, as X[0] is")
        sizes, joined = [*map(len, X)], list(chain.from_iterable(X))
    else:
        rows = [looked_at(each, f"X[{i}]") for i, each in enumerate(X)]
        rows = [
            each if hasattr(each, "tocsr") else _array(each, f"X[{i}]")
            for i, each in enumerate(rows)
        ]
        for i, each in enumerate(rows):
            if each.dtype.kind not in "biufO":
                raise ValueError(f"X[{i}] has entries of type {each.dtype}; expected numbers")
            if each.ndim != 2 or each.shape[1:] != rows[0].shape[1:]:
                columns = f"{rows[0].shape[1]} features" if rows[0].ndim == 2 else "features"
                raise ValueError(
                    f"X[{i}] has the shape {each.shape}; expected a row of {columns} for each part"
                )
        sizes, joined = [each.shape[0] for each in rows], _stacked(rows)
    if 0 in sizes:
        raise ValueError(f"X[{sizes.index(0)}] has no parts")
    return Parts(joined, np.cumsum([0, *sizes]), **of_graph)


def labels_of(y: Any, offsets: np.ndarray, single: bool = False) -> np.ndarray:
    """Return the labels of all parts; y has one per example if ``single``, else a list of them.

    Raises
    ------
    ValueError
        An example has more or fewer labels than parts, or labels are neither texts nor integers.
    """
    sizes, rows = np.diff(offsets), _listed(y, "y")
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
    """Return the examples as a `Dataset` for solvers.

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
    else:
        x = csr_array(x, dtype=np.float64)  # sums of small integers may not fit their type
        x.sum_duplicates()
    x = normalised(x)
    y = np.zeros(x.shape[0], np.int64) if codes is None else codes
    names = tuple(map(str, classes.tolist()))
    fields = {**parts._asdict(), "x": x, "y": y.astype(label_type(len(names)))}
    del fields["features"]
    return described("X", Vocabulary(names, PYTHON, structure, int(x.shape[1])), bias, fields)


def numbered(features: Sequence[Any], vectorizer: Any, fits: bool) -> Any:
    """Return named features as a sparse matrix.

    Parameters
    ----------
    features : sequence
        The features of each part.
    vectorizer : DictVectorizer
        Numbers the features.
    fits : bool
        Whether the vectorizer learns the features first.

    Raises
    ------
    ValueError
        Features do not have the form that the module's docstring describes.
    """
    named = []
    for each in features:
        if not isinstance(each, Mapping):
            is_list = isinstance(each, list | tuple | set | frozenset)
            if not is_list or not all(isinstance(name, str) for name in each):
                raise ValueError(
                    "features with names of a part must be a mapping or a list of texts, got "
                    f"{shown(repr(each))}"
                )
            # the order of a set varies from run to run
            ordered = sorted(each) if isinstance(each, set | frozenset) else each
            each = dict.fromkeys(ordered, 1.0)
        named.append(each)
    with parsing("X has features that are neither numbers nor texts"):
        return vectorizer.fit_transform(named) if fits else vectorizer.transform(named)


def _listed(found: Any, name: str) -> list[Any]:
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
    features, edges, edge_xs = [], [], list[np.ndarray]()
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
        shape = getattr(example[0], "shape", ()) or (len(_listed(example[0], f"X[{i}]")),)
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
        edge_x = edge_features(_array(example[2], name), name, len(pairs))
        if edge_xs and edge_x.shape[1] != edge_xs[0].shape[1]:
            raise ValueError(
                f"{name} has {edge_x.shape[1]} columns, that of X[0] {edge_xs[0].shape[1]}"
            )
        edge_xs.append(edge_x[first])
        if not np.array_equal(edge_xs[-1][of.ravel()], edge_x):
            raise ValueError(f"X[{i}] has an edge twice, with different features")
    of_graph = {"edges": np.concatenate(edges), "edge_offsets": np.cumsum([0, *map(len, edges)])}
    return features, of_graph | ({"edge_x": np.concatenate(edge_xs)} if edge_xs else {})


def _stacked(rows: Sequence[Any]) -> Any:
    if all(isinstance(each, np.ndarray) for each in rows):
        kind = np.result_type(*{each.dtype for each in rows})
        if kind.kind in REAL:  # it may not represent all integers of some examples
            some = (None, None)
            rows = [array(x, f"X[{i}]", REAL, some, dtype=kind) for i, x in enumerate(rows)]
        return np.concatenate(rows)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(rows, format="csr"))
