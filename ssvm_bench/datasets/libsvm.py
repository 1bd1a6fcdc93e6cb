"""The text format of LIBSVM: a line an example, ``label index:value index:value …``.

Indices begin at 1 and rise; what is not written is 0. It is parsed by scikit-learn, which says
neither in which line it fails, nor anything of values that are not finite, and of blank lines.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ssvm_bench.datasets.reading import ContentError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Rows(NamedTuple):
    """What is in a file.

    Attributes
    ----------
    x : csr_array of float64, shape (n, n_features)
    y : ndarray of float64, shape (n,)
        The labels as they are written.
    """

    x: csr_array
    y: np.ndarray


def parse(raw: bytes, n_features: int | None = None, comments: bool = False) -> Rows:
    """Return the rows of an unpacked file.

    Parameters
    ----------
    raw : bytes
    n_features : int, optional
        Number of features, which no index exceeds; by default the largest index.
    comments : bool
        Whether lines may be blank, and end in a comment behind ``#``.

    Raises
    ------
    ContentError
        It has no lines; or the first line that is no row, and why.
    """
    from scipy.sparse import csr_array

    lines = rows_in(raw) if comments else [*enumerate(raw.rstrip().split(b"\n"), 1)]
    if not lines or lines == [(1, b"")]:
        raise ContentError("the file is empty")
    for k, line in lines:
        if not line.strip() or b"#" in line or b"qid" in line:
            what = "it has a comment or a query" if line.strip() else "it is blank"
            raise ContentError(f"line {k} is no row, label index:value … ({what})")
    try:
        x, y = _rows(b"\n".join(line for _, line in lines))
    except (ValueError, OverflowError):
        raise _first_wrong(lines) from None
    if not np.isfinite(y).all():
        k = int(np.argmin(np.isfinite(y)))
        raise ContentError(f"line {lines[k][0]}: label {y[k]:g}, expected a finite number")
    row = np.repeat(np.arange(y.size), np.diff(x.indptr))
    f = int(x.indices.max(initial=0)) + 1 if n_features is None else n_features
    for wrong, what in (
        (~np.isfinite(x.data), "a value that is not a finite number"),
        (x.indices >= f, f"an index above {f}, the number of features"),
    ):
        if wrong.any():
            raise ContentError(f"line {lines[row[np.argmax(wrong)]][0]}: {what}")
    return Rows(csr_array((x.data, x.indices, x.indptr), shape=(y.size, f)), y)


def rows_in(raw: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are rows, without their comments, and their numbers."""
    lines = ((k, line.partition(b"#")[0]) for k, line in enumerate(raw.split(b"\n"), 1))
    return [(k, line) for k, line in lines if line.strip()]


def _rows(text: bytes) -> tuple[csr_array, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(io.BytesIO(text), zero_based=False)
    return x, y


def _first_wrong(lines: Sequence[tuple[int, bytes]]) -> ContentError:
    """Return the error for the first line that is no row by itself."""
    for k, line in lines:
        try:
            _rows(line)
        except (ValueError, OverflowError) as error:
            reason = str(error).removesuffix(".").replace(" in SVMlight/LibSVM data file", "")
            return ContentError(f"line {k} is no row, label index:value … ({reason})")
    return ContentError("it is no file in LIBSVM's format")
