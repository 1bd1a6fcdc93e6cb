"""Examples as named arrays in an ``.npz``, the format that programs write.

===============================  =================================================================
array                            content
===============================  =================================================================
``x``                            features, one row per part; or, for a CSR matrix, ``data``,
                                 ``indices``, ``indptr`` and ``shape``, as `scipy.sparse.save_npz`
                                 writes it, with or without its ``format``
``y``                            the labels of the parts: texts or integers; for a regression,
                                 numbers
``offsets``                      example i has the parts ``offsets[i]:offsets[i + 1]``; without
                                 it, every part is an example
``edges``, ``edge_offsets``      for graphs, as in a `Dataset`
``edge_x``                       features of edges, ≥ 0, one row per edge; for all examples or none
``structure``                    as in a `Dataset`; by default ``graph`` if there are edges,
                                 ``chain`` if an example has several parts, else ``independent``
``labels``                       names of the labels 0, 1, … of a ``y`` of integers
``features``                     names of the columns of ``x``
``costs``, ``margins``           as in a `Dataset`
``test.x``, ``test.y``, …        the same arrays of held-out examples; also ``validation.…``
===============================  =================================================================

Pickled objects are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import nearest, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.datasets import reading
from ssvm_bench.datasets.arrays import MOST_LABELS, REAL, array, csr, normalised
from ssvm_bench.datasets.arrays import names as checked_names
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.reading import ContentError, ensure
from ssvm_bench.datasets.vocabulary import Vocabulary

FORMAT = "npz"
NAMES = (".npz",)
PARSING = ()
OPTIONS = ()
HELD_OUT = ("validation", "test")
BIAS = "__BIAS__"
STRUCTURES = ("independent", "regression", "chain", "graph")

_SPARSE = ("data", "indices", "indptr", "shape")
_OF_EXAMPLES = ("offsets", "edges", "edge_offsets", "edge_x", "costs", "margins")
_OF_DATASET = ("structure", "labels", "features")
_MOST = np.iinfo(np.int32).max
_FEWER = "Store fewer examples."
_KNOWN = ("x", *_SPARSE, "y", *_OF_EXAMPLES, *_OF_DATASET)
_OF_SCIPY = ("format", "_is_array")
"""What `scipy.sparse.save_npz` writes besides."""

Arrays = Mapping[str, np.ndarray]


def parse(raw: bytes) -> dict[str, Arrays]:
    """Return the arrays of a file: name of a split (empty: training) → its arrays.

    Raises
    ------
    ContentError
        It is no ``.npz``, or has arrays of unknown names, or of objects.
    RunFailedError
        Its arrays do not fit into memory.
    """
    arrays, found = dict(reading.npz(raw)), dict[str, dict[str, np.ndarray]]()
    for name, values in arrays.items():
        if name.rpartition(".")[2] == "format":
            kind = values.tolist()
            kind = kind.decode("latin-1") if isinstance(kind, bytes) else kind
            if kind != "csr":
                raise ContentError(
                    f"its matrix has scipy's format {shown(kind)}: save x.tocsr() instead"
                )
    for name, values in arrays.items():
        split, _, key = name.rpartition(".")
        if key not in (*_KNOWN, *_OF_SCIPY) or split not in ("", *HELD_OUT):
            hint = nearest(key.lower(), _KNOWN).rstrip(".")
            raise ContentError(
                f"it has an array {shown(name)!r}, which is not a known name. {hint}"
            )
        found.setdefault(split, {})[key] = values
    ensure("" in found, "it has no array x, the features of the parts")
    whole = {key: found[""][key] for key in _OF_DATASET if key in found[""]}
    return {split: {**whole, **arrays} for split, arrays in found.items()}


def learned(found: Arrays) -> tuple[Vocabulary, dict[str, Any]]:
    """Return the vocabulary of the training examples, and their `fields`.

    Labels are numbered as in ``labels`` or, by default, in ascending order.

    Raises
    ------
    ContentError
        An array is missing, or of the wrong kind.
    """
    ensure("y" in found, "it has no array y, the labels of the parts")
    ensure(found["y"].size, "its y has no labels: there is nothing to learn")
    structure = _structure(found)
    labels = () if structure == "regression" else tuple(_labels(found)[0])
    x, features = _features(found)
    about: Any = {"features": features, "edge_features": _edge_features(found)}
    vocabulary = Vocabulary(labels, FORMAT, structure, int(x.shape[1]), **about)
    return vocabulary, fields(found, vocabulary)


def fields(found: Arrays, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the fields of a `Dataset`, which checks their ranges; without ``y`` if there is none.

    Named features may come in another order: missing ones are 0, and unknown ones are ignored.

    Raises
    ------
    ContentError
        The number of unnamed features, or of features of edges, or the structure does not fit.
    """
    if (structure := _structure(found, vocabulary.structure)) != vocabulary.structure:
        raise ContentError(
            f"its structure is {structure}, and that of the examples trained on is "
            f"{vocabulary.structure}"
        )
    if (of_edges := _edge_features(found)) != vocabulary.edge_features:
        raise ContentError(
            f"edge_x has {of_edges} features an edge, and {vocabulary.edge_features} were trained "
            "on"
        )
    made: dict[str, Any] = {"x": normalised(_in_order(found, vocabulary))}
    check_room(16.0 * made["x"].shape[0], "Where each part begins", _FEWER)
    made["offsets"] = np.arange(made["x"].shape[0] + 1)
    made |= {name: found[name] for name in _OF_EXAMPLES if name in found}
    if "y" in found and structure == "regression":
        made["y"] = found["y"]
    elif "y" in found:
        made |= vocabulary.fields(*_labels(found))
    return made


def notes(found: Arrays, vocabulary: Vocabulary) -> list[str]:
    """Return nothing: `fields` refuses features of which none was trained on."""
    return []


def _structure(found: Arrays, trained: str = "") -> str:
    """Return the structure that a file states, or else the one that its arrays imply.

    Chains of one part each are chains if a file of them was ``trained`` on.
    """
    if "structure" in found:
        structure = str(found["structure"])
        if structure not in STRUCTURES:
            raise ContentError(f"its structure is {structure!r}, not {', '.join(STRUCTURES)}")
        return structure
    if "edges" in found:
        return "graph"
    if "offsets" not in found:
        return "independent"
    offsets = array(found["offsets"], "offsets", dtype=np.int64)
    return "chain" if trained == "chain" or (np.diff(offsets) > 1).any() else "independent"


def _edge_features(found: Arrays) -> int:
    """Return the number of features of an edge; 0 if edges have none."""
    if "edge_x" not in found:
        return 0
    return int(array(found["edge_x"], "edge_x", REAL, (None, None)).shape[1])


def _features(found: Arrays) -> tuple[Any, tuple[str, ...]]:
    """Return the features as stored, and the names of their columns, if they have any."""
    sparse = [name for name in _SPARSE if name in found]
    if "x" in found:
        if sparse:
            raise ContentError(
                f"it has features twice: x, and {', '.join(sparse)} of a CSR matrix. Leave one out"
            )
        x = array(found["x"], "x", REAL, (None, None))
        ensure(x.shape[1], f"x has the shape {x.shape}, and no features")
    elif len(sparse) == len(_SPARSE):
        rows, columns = array(found["shape"], "shape", shape=(2,), low=0, high=_MOST).tolist()
        ensure(columns, f"its CSR matrix has the shape ({rows}, 0), and no features")
        x = csr(found, columns)
        ensure(x.shape[0] == rows, f"its CSR matrix has {x.shape[0]} rows, and its shape {rows}")
    else:
        raise ContentError("it has no array x, and no data, indices, indptr and shape")
    names = found.get("features", np.zeros(0, "U"))
    if names.size not in (0, x.shape[1]):
        raise ContentError(f"it has {names.size} names of features for {x.shape[1]} columns of x")
    return x, tuple(_texts(names, "features"))


def _in_order(found: Arrays, vocabulary: Vocabulary) -> Any:
    """Return the features in the order of a vocabulary."""
    (x, names), n_features = _features(found), vocabulary.n_features
    if not vocabulary.features or not names:
        if x.shape[1] != n_features:
            raise ContentError(f"x has {x.shape[1]} columns, and {n_features} were trained on")
        return x
    if names == vocabulary.features:
        return x
    place = np.array([vocabulary.number_of_feature.get(name, -1) for name in names])
    known = place >= 0
    ensure(known.any(), f"no name of its features, as {shown(names[0])}, was trained on")
    if isinstance(x, np.ndarray):
        check_room(float(len(x)) * n_features * x.itemsize, "The features trained on", _FEWER)
        wanted = np.zeros((len(x), n_features), x.dtype)
        wanted[:, place[known]] = x[:, known]
        return wanted
    kept = known[x.indices]
    ends = np.concatenate(([0], np.cumsum(kept)))[x.indptr]
    return csr(
        {"data": x.data[kept], "indices": place[x.indices[kept]], "indptr": ends}, n_features
    )


def _labels(found: Arrays) -> tuple[list[str], np.ndarray]:
    """Return the names of the labels, and the index of each part's label."""
    y = found["y"]
    ensure(y.ndim == 1, f"y must be one label a part, and has the shape {y.shape}")
    check_room(16.0 * y.size + y.nbytes, "Finding the labels in y", _FEWER)
    if y.dtype.kind not in "US":
        try:
            y = array(y, "y", REAL, row="part", dtype=np.int64)
        except ContentError as error:
            raise ContentError(
                f"y must be texts or integers (numbers to predict: structure='regression'): {error}"
            ) from error
        if "labels" in found:
            names = _texts(found["labels"], "labels")
            return names, array(y, "y", low=0, high=len(names) - 1, row="part")
    values = np.unique(y)
    return _texts(values, "y"), np.searchsorted(values, y)


def _texts(array: np.ndarray, name: str) -> list[str]:
    """Return an array of texts, or of integers that serve as names, as a list of names."""
    if name != "features" and array.size > MOST_LABELS:
        raise ContentError(f"{name} has {array.size} different labels, over {MOST_LABELS}")
    is_list, dtype = array.ndim == 1 and array.dtype.kind in "USiu", array.dtype
    ensure(is_list, f"{name} must be a list of texts, and is {dtype} of shape {array.shape}")
    if array.dtype.kind != "S":
        return checked_names([str(value) for value in array.tolist()], name)
    with reading.parsing(f"{name} has bytes that are no text in UTF-8"):
        return checked_names([value.decode() for value in array.tolist()], name)


def write(dataset: Dataset, path: Path) -> Path:
    """Write a dataset with its held-out examples; return the path.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    arrays: dict[str, np.ndarray] = {"structure": np.array(dataset.structure)}
    if dataset.structure != "regression":
        arrays["labels"] = np.array(dataset.label_names, np.str_)
    if dataset.vocabulary is not None and dataset.vocabulary.features:
        bias = [BIAS] * (dataset.vocabulary.bias != 0.0)
        arrays["features"] = np.array([*dataset.vocabulary.features, *bias], np.str_)
    for split, examples in {"": dataset, **dataset.held_out}.items():
        sparse = not isinstance(examples.x, np.ndarray)
        found = {name: np.asarray(getattr(examples.x, name)) for name in _SPARSE if sparse}
        for name in (*["x"] * (not sparse), "y", *_OF_EXAMPLES):
            if (values := getattr(examples, name)) is not None:
                found[name] = values
        arrays |= {f"{split}.{name}".lstrip("."): values for name, values in found.items()}

    def put(file: BinaryIO) -> None:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    return files.write(path, put)
