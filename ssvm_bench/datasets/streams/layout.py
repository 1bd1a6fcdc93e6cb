"""From a `Dataset` to the columns of a file, and back.

================  =============================================================================
column            what an example has in it, little-endian
================  =============================================================================
``split``         ``train``, or the name of the held-out examples that it belongs to
``y``             the labels of its parts
``x``             features of all parts, row by row; of sparse ones the non-zeros only
``columns``       of each non-zero, its column
``nonzeros``      of each part, the number of its non-zeros
``bits``          of each part, a bit for every feature: whether it is a non-zero; the first feature
                  is the lowest bit of the first byte
``edges``         pairs of neighbours in a graph
``fold``, …       a number: whatever else a `Dataset` has of each example
================  =============================================================================
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.streams.blocks import OF_PARTS, Block, Ragged, WrongRowsError, ends_of
from ssvm_bench.datasets.streams.features import (
    Features,
    bits_of,
    columns_of,
    encoded,
    restored,
    row_ends,
    width,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_NOT_OF_EXAMPLES = {
    *("name", "source", "x", "y", "offsets", "n_labels", "structure"),
    *("edges", "edge_offsets", "windows", "held_out"),
}


def block_of(dataset: Dataset, features: Features, codes: np.ndarray | None = None) -> Block:
    """Return the examples of a dataset as they are kept.

    Parameters
    ----------
    dataset : Dataset
    features : Features
        How their features are kept.
    codes : ndarray, shape (parts, f), optional
        Features, encoded and with their zeros, in place of the dataset's.
    """
    offsets, x = dataset.offsets.astype(np.int64), dataset.x
    block = {"y": Ragged(_little(dataset.y), offsets)}
    if isinstance(x, np.ndarray):
        full = encoded(x, features) if codes is None else codes
        block["x"] = Ragged(full.ravel(), offsets * full.shape[1])
    elif features.form == "rows":
        ends = x.indptr.astype(np.int64)
        block["x"] = Ragged(encoded(x.data, features), ends[offsets])
        block["columns"] = Ragged(x.indices.astype(features.columns), ends[offsets])
        block["nonzeros"] = Ragged(np.diff(ends).astype("<i4"), offsets)
    else:
        mask = _non_zeros(x) if codes is None else codes != 0
        values = encoded(x.data, features) if codes is None else codes[mask]
        bits = bits_of(mask)
        block["x"] = Ragged(values, row_ends(bits)[offsets])
        block["bits"] = Ragged(bits.ravel(), offsets * bits.shape[1])
    if dataset.edges is not None and dataset.edge_offsets is not None:
        ends = 2 * dataset.edge_offsets.astype(np.int64)
        block["edges"] = Ragged(dataset.edges.astype("<i4").ravel(), ends)
    for name, values in of_examples(dataset).items():
        block[name] = Ragged(_little(values), np.arange(dataset.n + 1))
    return block


def _non_zeros(x: csr_array) -> np.ndarray:
    """Return whether there is an entry, shape (parts, f)."""
    mask = np.zeros(x.shape, bool)
    mask[np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices] = True
    return mask


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
    if features.form == "dense":
        _compare(block, "x", parts * n_features)
    else:
        of_places = {"rows": ("nonzeros", parts), "bits": ("bits", parts * width(n_features))}
        _compare(block, *of_places[features.form])
        indptr = _row_ends(block, features, n_features)
        if np.diff(indptr).min(initial=0) < 0:
            raise WrongRowsError("a part has a negative number of non-zeros")
        own = np.diff(indptr[block["y"].ends])
        for name in {"x", "columns"} & block.keys():
            _compare(block, name, own)
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


def _row_ends(block: Block, features: Features, n_features: int) -> np.ndarray:
    """Return where the non-zeros of each part begin, and the last ones end."""
    if features.form == "rows":
        return ends_of(block["nonzeros"].values)
    return row_ends(block["bits"].values.reshape(-1, width(n_features)))


def fields_of(block: Block, features: Features, n_features: int) -> dict[str, Any]:
    """Return the fields of a `Dataset` that a block, which has been checked, fills."""
    y = block["y"]
    found: dict[str, Any] = {"y": y.values, "offsets": y.ends}
    shape, codes = (y.values.size, n_features), block["x"].values
    if features.form == "dense":
        found["x"] = restored(features, shape, codes)
    else:
        indptr = _row_ends(block, features, n_features)
        if features.form == "rows":
            columns = block["columns"].values
        else:
            columns = columns_of(block["bits"].values.reshape(-1, width(n_features)), indptr)
        found["x"] = restored(features, shape, codes, columns, indptr)
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
