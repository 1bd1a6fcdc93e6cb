"""Examples that a Python program has, as matrices or as features with names.

===============  =======================================  =========================================
structure        X                                        y
===============  =======================================  =========================================
``independent``  a matrix, a row an example; or a list    a label an example
                 of features with names
``graph``        a pair an example: features of the       a list of labels an example
                 parts, and edges, shape (E, 2)
``chain``, …     an example is what the parts have:       a list of labels an example
                 a matrix, or a list of features with
                 names
===============  =======================================  =========================================

Features with names of a part are a mapping, ``{"word": "He", "length": 2}``, of which a text is the
feature ``word=He`` of value 1; or a list of texts, each a feature of value 1. An edge is a pair of
parts of the example, counted from 0, in either order.

Whatever is wrong with X and y is a ``ValueError``, as for numpy and scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.datasets.base import Dataset, DatasetConfig, described
from ssvm_bench.datasets.checks import array, label_type, normalised
from ssvm_bench.datasets.vocabulary import Vocabulary

FORMAT = "python"
"""Of their vocabulary, which no file is read with."""


@dataclass(frozen=True, eq=False)
class Config(DatasetConfig):
    """Options: the examples themselves."""

    dataset: Dataset


def load(config: Config) -> Dataset:
    """Return the examples."""
    return config.dataset


class Parts(NamedTuple):
    """What all examples have, one after the other.

    Attributes
    ----------
    features : matrix of shape (parts, f), or list
        With names in the latter.
    offsets : ndarray of int64, shape (n + 1,)
        Example i has the parts ``offsets[i]:offsets[i + 1]``.
    edges, edge_offsets : ndarray or None
        As of a `Dataset`.
    """

    features: Any
    offsets: np.ndarray
    edges: np.ndarray | None = None
    edge_offsets: np.ndarray | None = None


def are_named(parts: Any) -> bool:
    """Tell whether the features of parts have names, as those of the first one do."""
    if hasattr(parts, "shape") or not isinstance(parts, Sequence) or not parts:
        return False
    first = parts[0]
    if isinstance(first, Mapping | set | frozenset):
        return True
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], str)


def parts_of(X: Any, structure: str) -> Parts:
    """Return the parts of all examples.

    Raises
    ------
    ValueError
        X is not as the module's docstring says.
    """
    if structure == "independent":
        return Parts(X, np.arange((X.shape[0] if hasattr(X, "shape") else len(X)) + 1))
    X, edges = _features_and_edges(X) if structure == "graph" else (list(X), None)
    if not X:
        raise ValueError("X has 0 examples")
    if are_named(X[0]):
        sizes, joined = [*map(len, X)], list(chain.from_iterable(X))
    else:
        rows = [each if hasattr(each, "tocsr") else np.asarray(each) for each in X]
        for i, each in enumerate(rows):
            if each.ndim != 2 or each.shape[1] != rows[0].shape[1]:
                raise ValueError(
                    f"X[{i}] has the shape {each.shape}; expected a row of {rows[0].shape[-1]} "
                    "features for each part"
                )
        sizes, joined = [each.shape[0] for each in rows], _stacked(rows)
    if 0 in sizes:
        raise ValueError(f"X[{sizes.index(0)}] has no parts")
    parts = Parts(joined, np.cumsum([0, *sizes]))
    if edges is None:
        return parts
    return parts._replace(
        edges=np.concatenate(edges), edge_offsets=np.cumsum([0, *map(len, edges)])
    )


def labels_of(y: Any, offsets: np.ndarray) -> np.ndarray:
    """Return the labels of all parts.

    Raises
    ------
    ValueError
        An example has more or fewer labels than parts.
    """
    sizes = np.diff(offsets)
    if len(y) != sizes.size:
        raise ValueError(f"X has {sizes.size} examples, and y has {len(y)}")
    rows = [np.asarray(each) for each in y]
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if row.shape != (size,):
            raise ValueError(f"y[{i}] has the shape {row.shape}, and X[{i}] has {size} parts")
    return np.concatenate(rows)


def dataset(
    parts: Parts,
    structure: str,
    classes: np.ndarray,
    codes: np.ndarray | None,
    bias: float,
) -> Dataset:
    """Return the examples as solvers see them.

    Parameters
    ----------
    parts : Parts
        Whose features are a matrix of numbers.
    structure : str
    classes : ndarray, shape (K,)
        The labels themselves.
    codes : ndarray of integers, shape (parts,), optional
        The number of each part's label; None: not known.
    bias : float
        Another feature, the last one; 0: none.
    """
    from scipy.sparse import csr_array

    x = normalised(parts.features)
    if not isinstance(x, np.ndarray):
        x = csr_array(x)
        x.sum_duplicates()
    y = np.zeros(x.shape[0], np.int64) if codes is None else codes
    names = tuple(map(str, classes.tolist()))
    fields = {**parts._asdict(), "x": x, "y": y.astype(label_type(len(names)))}
    del fields["features"]
    return described("X", Vocabulary(names, FORMAT, structure, int(x.shape[1])), bias, fields)


def mappings(features: Iterable[Any]) -> list[Mapping[str, Any]]:
    """Return features with names as mappings; those of sets in an order that is always the same."""
    ordered = (sorted(each) if isinstance(each, set | frozenset) else each for each in features)
    return [each if isinstance(each, Mapping) else dict.fromkeys(each, 1.0) for each in ordered]


def _features_and_edges(X: Any) -> tuple[list[Any], list[np.ndarray]]:
    features, edges = [], []
    for i, example in enumerate(X):
        if not isinstance(example, list | tuple) or len(example) != 2:
            raise ValueError(f"X[{i}] must be a pair: features of the parts, and edges")
        size = example[0].shape[0] if hasattr(example[0], "shape") else len(example[0])
        pairs = np.asarray(example[1])
        pairs = pairs if pairs.size else np.zeros((0, 2), np.int64)
        array(pairs, f"edges of X[{i}]", shape=(None, 2))
        wrong = (pairs < 0).any(axis=1) | (pairs >= size).any(axis=1)
        wrong |= pairs[:, 0] == pairs[:, 1]
        if wrong.any():
            pair = tuple(pairs[np.argmax(wrong)].tolist())
            raise ValueError(f"the edge {pair} of X[{i}] joins no two of its {size} parts")
        features.append(example[0])
        edges.append(np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int32))
    return features, edges


def _stacked(rows: Sequence[Any]) -> Any:
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(rows, format="csr"))
