"""Columns of text, as of CoNLL's shared tasks: a line a part, an empty line behind a sequence.

.. code-block:: text

    He        PRP  B-NP
    reckons   VBZ  B-VP

Columns are separated by blanks or tabs, any number of them; every line has the same number of
columns. The last one is the label, the others are what `templates` make features of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.datasets.own_files import templates
from ssvm_bench.datasets.own_files.templates import Template
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.vocabulary import Vocabulary

FORM = "columns"

_BOM = b"\xef\xbb\xbf"


class Column(NamedTuple):
    """One column: the entry of part p is ``values[codes[p]]``."""

    codes: np.ndarray
    values: list[str]


class Columns(NamedTuple):
    """What is in a file.

    Attributes
    ----------
    columns : list of Column
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i has the parts ``offsets[i]:offsets[i + 1]``.
    lines : ndarray of int64, shape (parts,)
        The line of each part, from 1.
    """

    columns: list[Column]
    offsets: np.ndarray
    lines: np.ndarray


def parse(raw: bytes) -> Columns:
    """Return the columns of an unpacked file.

    Raises
    ------
    ContentError
        There is nothing in it, or it is no text; or names the first line that has another number
        of columns than the first one.
    """
    lines = [line.split() for line in raw.removeprefix(_BOM).splitlines()]
    counts = np.fromiter(map(len, lines), np.int64, len(lines))
    places = np.flatnonzero(counts)
    if not places.size:
        raise ContentError("the file is empty")
    wrong = places[counts[places] != counts[places[0]]]
    if wrong.size:
        k = int(wrong[0])
        raise ContentError(
            f"line {k + 1}: {counts[k]} columns, and line {places[0] + 1} has {counts[places[0]]} "
            f"(blanks and tabs separate columns): {_quoted(lines[k])}"
        )
    rows = [lines[k] for k in places]
    columns = [
        _column(column, k, places + 1) for k, column in enumerate(zip(*rows, strict=True), 1)
    ]
    ends = np.flatnonzero(np.diff(places) > 1) + 1
    return Columns(columns, np.concatenate(([0], ends, [places.size])), places + 1)


def _column(entries: tuple[bytes, ...], number: int, lines: np.ndarray) -> Column:
    import pandas as pd

    array = np.empty(len(entries), object)
    array[:] = entries
    codes, values = pd.factorize(array)
    texts = []
    for k, value in enumerate(values):
        try:
            if b"\0" in value:
                raise ValueError
            texts.append(value.decode())
        except ValueError:
            line = lines[np.argmax(codes == k)]
            raise ContentError(
                f"line {line}, column {number}: {_quoted([value])} is no text in UTF-8"
            ) from None
    return Column(codes.astype(np.int64), texts)


def _quoted(fields: list[bytes]) -> str:
    return shown(repr(b" ".join(field[:60] for field in fields[:8]).decode(errors="replace")), 80)


def learned(
    found: Columns, chosen: list[Template] | None, boundary: str, min_count: int
) -> tuple[Vocabulary, np.ndarray]:
    """Return the vocabulary of a file to train on, and the features of its parts.

    Parameters
    ----------
    found : Columns
        The last one is that of the labels.
    chosen : list of Template, optional
        By default those of `templates.default`.
    boundary : str
        One of `templates.BOUNDARIES`.
    min_count : int
        Features that fewer parts have are left out.

    Returns
    -------
    vocabulary : Vocabulary
        Labels and features are numbered in the order in which they come.
    places : ndarray of int64, shape (parts, templates)
        The features of each part, −1 for none.

    Raises
    ------
    ContentError
        There is one column only.
    ConfigError
        A template points outside the columns.
    """
    n_columns = len(found.columns)
    if n_columns < 2:
        raise ContentError(
            "line 1: one column, expected two or more: what is observed, and in the last the label"
        )
    used = templates.default(n_columns - 1) if chosen is None else chosen
    names, places = templates.applied(used, found.columns[:-1], found.offsets, boundary)
    if min_count > 1:
        kept = np.bincount(places[places >= 0], minlength=len(names)) >= min_count
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        names = [name for name, keep in zip(names, kept, strict=True) if keep]
        places = np.where(places >= 0, number[places], -1)
    if not names:
        raise ContentError(f"no feature is there {min_count} times (dataset.min_count)")
    vocabulary = Vocabulary(
        labels=tuple(found.columns[-1].values),
        form=FORM,
        structure="chain",
        n_features=len(names),
        features=tuple(names),
        columns=n_columns,
        templates=tuple(each.text for each in used),
        boundary=boundary,
    )
    return vocabulary, places


def fields(found: Columns, vocabulary: Vocabulary, places: np.ndarray | None = None) -> Any:
    """Return the fields of a `Dataset`; without labels if their column is not there.

    Parameters
    ----------
    found : Columns
    vocabulary : Vocabulary
        Of the file trained on. Features that it does not have are passed over.
    places : ndarray, optional
        The features of the parts, if they are known already.

    Raises
    ------
    ContentError
        The file has another number of columns.
    """
    n_columns = len(found.columns)
    if n_columns not in (vocabulary.columns, vocabulary.columns - 1):
        raise ContentError(
            f"line {found.lines[0]}: {n_columns} columns, and the file trained on had "
            f"{vocabulary.columns}, the labels among them"
        )
    if places is None:
        used = [templates.parse(text) for text in vocabulary.templates]
        observed = found.columns[: vocabulary.columns - 1]
        _, places = templates.applied(
            used, observed, found.offsets, vocabulary.boundary, vocabulary.number_of_feature
        )
    x = templates.rows(places, vocabulary.n_features)
    made: dict[str, Any] = {"x": x, "offsets": found.offsets}
    if n_columns == vocabulary.columns:
        labels = found.columns[-1]
        made |= vocabulary.fields(labels.values, labels.codes)
    return made
