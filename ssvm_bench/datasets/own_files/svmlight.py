"""The text format of LIBSVM: one line per example, ``label index:value index:value …``.

Indices begin at 1 and rise; features that are not written are 0. Lines may be blank, and may end in
a comment after ``#``. scikit-learn parses the format, but does not say in which line it fails, and
accepts values that are not finite. In users' files, labels are integers of two or more classes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssvm_bench.datasets.arrays import LARGEST_WHOLE, normalised
from ssvm_bench.datasets.reading import ContentError, check_room_of_lines, ensure
from ssvm_bench.datasets.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FORMAT = "svmlight"


class Rows(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    x : csr_array of float64, shape (n, n_features)
    y : ndarray of float64, shape (n,)
        The labels as written.
    lines : sequence of int
        The line of each row, from 1.
    """

    x: csr_array
    y: np.ndarray
    lines: Sequence[int] | np.ndarray = ()


def parse(raw: bytes, n_features: int | None = None) -> Rows:
    """Return the rows of an unpacked file.

    Parameters
    ----------
    raw : bytes
    n_features : int, optional
        Number of features, which no index exceeds; by default the largest index.

    Raises
    ------
    ContentError
        The file has no rows; or names the first line that is no row, and why.
    RunFailedError
        The rows do not fit into memory.
    """
    from scipy.sparse import csr_array

    check_room_of_lines(raw)
    if b"#" in raw:
        raw = b"\n".join(line.partition(b"#")[0] for line in raw.split(b"\n"))
    lines = np.flatnonzero(np.fromiter(map(bool, map(bytes.strip, io.BytesIO(raw))), bool)) + 1
    ensure(lines.size, "the file is empty")
    try:
        x, y = _loaded(raw)
    except (ValueError, OverflowError):
        raise _first_wrong(raw) from None
    f = int(x.indices.max(initial=0)) + 1 if n_features is None else n_features
    row = np.repeat(np.arange(y.size), np.diff(x.indptr))
    for wrong, rows_of, what in (
        (~np.isfinite(y), np.arange(y.size), "a label that is not a finite number"),
        (np.abs(y) > LARGEST_WHOLE, np.arange(y.size), "a label that float64 may not tell apart"),
        (~np.isfinite(x.data), row, "a value that is not a finite number"),
        (x.indices >= f, row, f"an index above {f}, the number of features"),
    ):
        if wrong.any():
            raise ContentError(f"line {lines[rows_of[np.argmax(wrong)]]}: {what}")
    return Rows(csr_array((x.data, x.indices, x.indptr), shape=(y.size, f)), y, lines)


def _loaded(text: bytes) -> tuple[csr_array, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    ensure(b"qid" not in text, "it has a query")
    ensure(b"_" not in text, "a number has no _ in it")
    x, y = load_svmlight_file(io.BytesIO(text), zero_based=False)
    return x, y


def _first_wrong(raw: bytes) -> ContentError:
    """Return the error for the first line that cannot be parsed by itself."""
    for k, line in enumerate(io.BytesIO(raw), 1):
        try:
            _loaded(line.strip() or b"0")
        except (ValueError, OverflowError) as error:
            reason = str(error).removesuffix(".").replace(" in SVMlight/LibSVM data file", "")
            return ContentError(f"line {k} is no row, label index:value … ({reason})")
    return ContentError("it is no file in LIBSVM's format")


def learned(found: Rows) -> tuple[Vocabulary, dict[str, Any]]:
    """Return the vocabulary of a training file, and its `fields`; labels are in ascending order.

    Raises
    ------
    ContentError
        A label is no integer; or all labels are the same.
    """
    wrong = found.y != np.rint(found.y)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ContentError(
            f"line {found.lines[k]}: label {found.y[k]:g}, and classes are called by integers (a "
            "regression comes as .npz, with structure='regression')"
        )
    labels, f = np.unique(found.y), int(found.x.shape[1])
    ensure(labels.size > 1, f"all rows have the label {labels[0]:g}: there is nothing to learn")
    vocabulary = Vocabulary(tuple(map(_name, labels)), FORMAT, "independent", f)
    return vocabulary, fields(found, vocabulary)


def fields(found: Rows, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the fields of a `Dataset`; features beyond those of the vocabulary are ignored."""
    x = found.x[:, : vocabulary.n_features]
    x.resize(found.y.size, vocabulary.n_features)
    names, codes = np.unique(found.y, return_inverse=True)
    return {
        "x": normalised(x),
        "offsets": np.arange(found.y.size + 1),
        **vocabulary.fields([*map(_name, names)], codes),
    }


def _name(label: float) -> str:
    return f"{label:.17g}"
