"""The text format of LIBSVM: a line an example, ``label index:value index:value …``.

Indices begin at 1 and rise; what is not written is 0. It is parsed by scikit-learn, which says
neither in which line it fails, nor anything of values that are not finite, and of blank lines.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.tables import check_lines

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


def parse(raw: bytes, n_features: int) -> Rows:
    """Return the rows of an unpacked file.

    Raises
    ------
    ContentError
        It has no lines; or the first line that is no row, and why.
    """
    from scipy.sparse import csr_array

    lines = raw.rstrip().split(b"\n")
    if lines == [b""]:
        raise ContentError("the file is empty")
    for k, line in enumerate(lines, 1):
        if not line.strip() or b"#" in line or b"qid" in line:
            what = "it has a comment or a query" if line.strip() else "it is blank"
            raise ContentError(f"line {k} is no row, label index:value … ({what})")
    try:
        x, y = _rows(b"\n".join(lines))
    except (ValueError, OverflowError):
        raise _first_wrong(lines) from None
    check_lines(np.isfinite(y), lambda k: f"label {y[k]:g}, expected a finite number")
    row = np.repeat(np.arange(y.size), np.diff(x.indptr))
    for wrong, what in (
        (~np.isfinite(x.data), "a value that is not a finite number"),
        (x.indices >= n_features, f"an index above {n_features}, the number of features"),
    ):
        if wrong.any():
            raise ContentError(f"line {row[np.argmax(wrong)] + 1}: {what}")
    return Rows(csr_array((x.data, x.indices, x.indptr), shape=(y.size, n_features)), y)


def _rows(text: bytes) -> tuple[csr_array, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(io.BytesIO(text), zero_based=False)
    return x, y


def _first_wrong(lines: list[bytes]) -> ContentError:
    """Return the error for the first line that is no row by itself."""
    for k, line in enumerate(lines, 1):
        try:
            _rows(line)
        except (ValueError, OverflowError) as error:
            reason = str(error).removesuffix(".").replace(" in SVMlight/LibSVM data file", "")
            return ContentError(f"line {k} is no row, label index:value … ({reason})")
    return ContentError("it is no file in LIBSVM's format")
