"""From a `Dataset` to the columns of a file, and back.

================  =============================================================================
column            what an example has in it, little-endian
================  =============================================================================
``split``         ``train``, or the name of the held-out examples that it belongs to
``y``             the labels of its parts
``x``             features of all parts, row by row; of the form ``rows`` the non-zeros only
``columns``       of each non-zero, its column
``nonzeros``      of each part, the number of its non-zeros
``edges``         pairs of neighbours in a graph
``fold``, …       a number: whatever else a `Dataset` has of each example
================  =============================================================================
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.streams.blocks import OF_PARTS, Block, Ragged, WrongRowsError, ends_of
from ssvm_bench.datasets.streams.features import Features, encoded, restored

_NOT_OF_EXAMPLES = {
    *("name", "source", "x", "y", "offsets", "n_labels", "structure"),
    *("edges", "edge_offsets", "held_out"),
}


def block_of(dataset: Dataset, features: Features) -> Block:
    """Return the examples of a dataset as they are kept."""
    offsets = dataset.offsets.astype(np.int64)
    block = {"y": Ragged(_little(dataset.y), offsets)}
    x = dataset.x
    if features.form == "rows":
        assert not isinstance(x, np.ndarray)
        ends = x.indptr.astype(np.int64)
        block["x"] = Ragged(encoded(x.data, features), ends[offsets])
        block["columns"] = Ragged(x.indices.astype(features.columns), ends[offsets])
        block["nonzeros"] = Ragged(np.diff(ends).astype("<i4"), offsets)
    else:
        full = x if isinstance(x, np.ndarray) else x.toarray()
        block["x"] = Ragged(encoded(full, features).ravel(), offsets * full.shape[1])
    if dataset.edges is not None and dataset.edge_offsets is not None:
        ends = 2 * dataset.edge_offsets.astype(np.int64)
        block["edges"] = Ragged(dataset.edges.astype("<i4").ravel(), ends)
    for name, values in of_examples(dataset).items():
        block[name] = Ragged(_little(values), np.arange(dataset.n + 1))
    return block


def of_examples(dataset: Dataset) -> dict[str, np.ndarray]:
    """Return what a dataset has of each example besides: its fold, for one."""
    found = {
        each.name: getattr(dataset, each.name)
        for each in fields(Dataset)
        if each.name not in _NOT_OF_EXAMPLES
    }
    return {name: values for name, values in found.items() if values is not None}


def _little(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def check(block: Block, features: Features, n_features: int) -> None:
    """Check that the entries of all columns fit together.

    Raises
    ------
    WrongRowsError
        An example has no parts, another number of features, or another number of entries of a
        column than it must have.
    """
    parts = np.diff(block["y"].ends)
    if not parts.all():
        raise WrongRowsError(f"example {int(np.argmin(parts))} has no parts")
    counts = {"x": parts * n_features}
    if features.form == "rows":
        nonzeros = block["nonzeros"].values.astype(np.int64)
        _compare(block, "nonzeros", parts)
        if nonzeros.min(initial=0) < 0:
            raise WrongRowsError("a part has a negative number of non-zeros")
        own = np.diff(ends_of(nonzeros)[block["y"].ends])
        counts = {"x": own, "columns": own}
    for name, count in counts.items():
        _compare(block, name, count)
    if "edges" in block and (np.diff(block["edges"].ends) % 2).any():
        raise WrongRowsError("an edge has one end")


def _compare(block: Block, name: str, expected: np.ndarray) -> None:
    found = np.diff(block[name].ends)
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        i = int(wrong[0])
        raise WrongRowsError(
            f"example {i} has {found[i]} entries of {name}, and its parts need {expected[i]}: the "
            "number of features changes"
        )


def fields_of(block: Block, features: Features, n_features: int) -> dict[str, Any]:
    """Return the fields of a `Dataset` that a block, which has been checked, fills."""
    y = block["y"]
    found: dict[str, Any] = {"y": y.values, "offsets": y.ends}
    entries = [block["x"].values]
    if features.form == "rows":
        entries += [block["columns"].values, ends_of(block["nonzeros"].values)]
    found["x"] = restored(features, (y.values.size, n_features), *entries)
    if "edges" in block:
        edges = block["edges"]
        found["edges"] = edges.values.astype(np.int32).reshape(-1, 2)
        found["edge_offsets"] = edges.ends // 2
    return found | {name: block[name].values for name in block if name not in OF_PARTS}


def nbytes(found: Any) -> int:
    """Return the bytes of arrays, sparse matrices, and whatever fields are made of them."""
    if isinstance(found, np.ndarray):
        return found.nbytes
    of_matrix = ("data", "indices", "indptr")
    arrays = found.values() if isinstance(found, dict) else [getattr(found, k) for k in of_matrix]
    return sum(map(nbytes, arrays))
