"""The text format of SVMlight and LIBSVM, a line per example: ``label index:value index:value …``.

Indices rise; features that are not written are 0. Lines may be blank, may have the number of a
query after the label, ``qid:3``, which is not used, and may end in a comment after ``#``.
Programs count features from 1 or from 0. As in scikit-learn, an index 0 anywhere means that
counting begins at 0. scikit-learn parses the format, but does not say in which line it fails, and
accepts values that are not finite. In users' files, labels are integers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.datasets.arrays import LARGEST_WHOLE, csr, normalised
from ssvm_bench.datasets.reading import ContentError, check_room_of_lines, ensure
from ssvm_bench.datasets.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FORMAT = "svmlight"
NAMES = (".svm", ".svmlight", ".libsvm")
"""Ends of the names of such files."""

PARSING = ()
OPTIONS = ("zero_based",)
AUTO, FROM_0, FROM_1 = BASES = ("auto", "true", "false")

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_VALUE = re.compile(rb"[+-]?(inf|infinity|nan)|" + NUMBER.pattern, re.IGNORECASE)
_ENTRY = re.compile(rb"\d+:(%b)" % _VALUE.pattern, re.IGNORECASE)
_QUERY = re.compile(rb"qid:\d{1,18}")
_NO_QUERY = re.compile(rb"qid(?!:\d{1,18}(\s|$))")
_HOW = " (where they begin at 0, train with dataset.zero_based=true)"
_LARGEST_INDEX = (1 << 31) - 1


class SvmlightRows(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    x : csr_array of float64, shape (n, largest index + 1)
        Column j has the values of index j; column 0 is empty where counting begins at 1.
    y : ndarray of float64, shape (n,)
        The labels as written.
    lines : sequence of int
        The line of each row, from 1.
    queries : bool
        Whether rows have numbers of queries.
    """

    x: csr_array
    y: np.ndarray
    lines: Sequence[int] | np.ndarray = ()
    queries: bool = False


def objection(lines: Sequence[bytes]) -> tuple[int, str] | None:
    """Return the first line (from 1) that is no row, and why; None if lines are of this format.

    Without any ``index:value``, the format looks like a column of numbers.
    """
    for k, line in enumerate(lines, 1):
        if why := _why_no_row(line):
            return k, why
    if not any(b":" in line.partition(b"#")[0] for line in lines):
        return 1, "no line has an index:value"
    return None


def resembles(lines: Sequence[bytes]) -> bool:
    """Whether half of the lines or more have an ``index:value`` behind every label they have."""
    rows = [fields for line in lines if (fields := line.partition(b"#")[0].split())]
    alike = [entries and all(map(_ENTRY.fullmatch, entries)) for _, *entries in rows]
    return 2 * sum(map(bool, alike)) >= max(len(rows), 1)


def _why_no_row(line: bytes) -> str:
    """Return why a line is no row; empty if it is one, or blank."""
    label, *entries = line.partition(b"#")[0].split() or [b"0"]
    if not _VALUE.fullmatch(label):
        if all(map(NUMBER.fullmatch, label.split(b","))):
            if not entries:
                return "tables with commas are not supported"
            return f"several labels for one example, {_text(label)}, are not supported"
        if b":" in label:
            return f"it begins with {_text(label)}, and not with a label"
        return f"the label {_text(label)} is no number"
    if entries and _QUERY.fullmatch(entries[0]):
        entries.pop(0)
    last = -1
    for entry in entries:
        index, _, value = entry.partition(b":")
        if not index.isdigit() or not _VALUE.fullmatch(value):
            return f"{_text(entry)} is no index:value"
        if len(index) > 10 or int(index) > _LARGEST_INDEX:
            return f"the index {_text(index)} is too large"
        if int(index) <= last:
            return f"the index {int(index)} comes after {last}, and indices rise"
        last = int(index)
    return ""


def _text(field: bytes) -> str:
    return shown(field[:100].decode(errors="backslashreplace"), 40)


def parse(raw: bytes) -> SvmlightRows:
    """Return the rows of an unpacked file.

    Raises
    ------
    ContentError
        The file has no rows; or names the first line that is no row, and why.
    RunFailedError
        The rows do not fit into memory.
    """
    from sklearn.datasets import load_svmlight_file

    check_room_of_lines(raw)
    if b"#" in raw:
        raw = b"\n".join(line.partition(b"#")[0] for line in raw.split(b"\n"))
    lines = np.flatnonzero(np.fromiter(map(bool, map(bytes.strip, io.BytesIO(raw))), bool)) + 1
    ensure(lines.size, "the file is empty")
    try:
        # scikit-learn reads 1_000 as a number, and does not look at queries
        ensure(b"_" not in raw and not _NO_QUERY.search(raw), "see `objection`")
        x, y = load_svmlight_file(io.BytesIO(raw), zero_based=True)
    except (ValueError, OverflowError) as error:
        k, why = objection(raw.split(b"\n")) or (0, f"it is no file of this format ({error})")
        raise ContentError(f"line {k} is no row, label index:value … ({why})") from None
    row = np.repeat(np.arange(y.size), np.diff(x.indptr))
    for wrong, rows_of, what in (
        (~np.isfinite(y), np.arange(y.size), "a label that is not a finite number"),
        (np.abs(y) > LARGEST_WHOLE, np.arange(y.size), "a label that float64 may not tell apart"),
        (~np.isfinite(x.data), row, "a value that is not a finite number"),
    ):
        if wrong.any():
            raise ContentError(f"line {lines[rows_of[np.argmax(wrong)]]}: {what}")
    return SvmlightRows(x, y, lines, b"qid:" in raw)


def counted(found: SvmlightRows, zero_based: bool, n_features: int | None = None) -> csr_array:
    """Return the features of rows whose indices begin at 0 or at 1.

    Parameters
    ----------
    found : SvmlightRows
    zero_based : bool
    n_features : int, optional
        Number of features, which no index exceeds; by default given by the largest index.

    Raises
    ------
    ContentError
        Names the first line with an index out of range.
    """
    x, first = found.x, 0 if zero_based else 1
    f = max(x.shape[1] - first, 1) if n_features is None else n_features
    ensure(
        f <= _LARGEST_INDEX, f"an index is {_LARGEST_INDEX}, and counting begins at 0: too large"
    )
    for wrong, what in (
        (x.indices < first, f"an index 0, and features are counted from 1{_HOW}"),
        (x.indices - first >= f, f"an index above {f - 1 + first}, the last one of {f} features"),
    ):
        if wrong.any():
            row = int(np.searchsorted(x.indptr, np.argmax(wrong), "right")) - 1
            raise ContentError(f"line {found.lines[row]}: {what}")
    return csr({"data": x.data, "indices": x.indices - first, "indptr": x.indptr}, f)


def learned(found: SvmlightRows, zero_based: str) -> tuple[Vocabulary, dict[str, Any]]:
    """Return the vocabulary of a training file, and its `fields`; labels are in ascending order.

    Parameters
    ----------
    found : SvmlightRows
    zero_based : str
        Whether indices begin at 0; ``"auto"``: if there is an index 0.

    Raises
    ------
    ContentError
        A label is no integer; there are no features; or an index is 0, and they begin at 1.
    """
    wrong = found.y != np.rint(found.y)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ContentError(
            f"line {found.lines[k]}: label {found.y[k]:g}, and classes are called by integers (a "
            "regression comes as .npz, with structure='regression')"
        )
    ensure(found.x.nnz, "no line has an index:value")
    from_0 = zero_based == FROM_0 or (zero_based == AUTO and not found.x.indices.all())
    f = counted(found, from_0).shape[1]
    labels = tuple(map(_name, np.unique(found.y)))
    vocabulary = Vocabulary(labels, FORMAT, "independent", f, zero_based=from_0)
    return vocabulary, fields(found, vocabulary)


def fields(found: SvmlightRows, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the fields of a `Dataset`; features beyond those of the vocabulary are ignored.

    Raises
    ------
    ContentError
        The structure of the vocabulary is another one; or there is an index 0, and those that the
        vocabulary was learned from begin at 1.
    """
    if vocabulary.structure != "independent":
        raise ContentError(
            f"its rows are examples by themselves, and the structure trained on is "
            f"{vocabulary.structure}"
        )
    x = counted(found, vocabulary.zero_based)[:, : vocabulary.n_features]
    x.resize(found.y.size, vocabulary.n_features)
    names, codes = np.unique(found.y, return_inverse=True)
    return {
        "x": normalised(x),
        "offsets": np.arange(found.y.size + 1),
        **vocabulary.fields([*map(_name, names)], codes, lambda k: f"line {found.lines[k]}"),
    }


def notes(found: SvmlightRows, vocabulary: Vocabulary) -> list[str]:
    """Return what a user should know of how the rows are used."""
    said = []
    if found.queries:
        said.append("its queries (qid:…) are not used; every row is an example by itself.")
    if found.x.nnz and found.x.indices.min() - (not vocabulary.zero_based) >= vocabulary.n_features:
        said.append("none of its features was trained on.")
    return said


def _name(label: float) -> str:
    return f"{label:.17g}"
