"""Columns of text, as in CoNLL's shared tasks: a line per part, an empty line after a sequence.

.. code-block:: text

    He        PRP  B-NP
    reckons   VBZ  B-VP

Columns are separated by any number of blanks or tabs, or by one character of `SEPARATORS`; then
entries may have blanks or be empty. Every line has the same number of columns.
The last column is the label. Templates in CRF++'s notation turn the others into features:
``%x[r,c]`` is the entry of column c, counted from 0, r lines below the part's line (r < 0: above).
A template is a text with such references; filled in for a part, it names a feature of that part:

=======================  ===========================================================================
``%x[-1,0]/%x[0,1]``     the word before and the tag of this one; named ``%x[-1,0]/%x[0,1]=He/VBZ``
``U05:%x[-1,0]``         with an identifier: named as CRF++ does, ``U05:He``; templates with the
                         same identifier share features
=======================  ===========================================================================

``boundary`` decides what a reference beyond the ends of a sequence becomes:

=========  ========================================================================================
``marks``  ``_B-1``, ``_B-2``, … before it, and ``_B+1``, … after it, as in CRF++
``ends``   nothing: the template makes no feature; but the first part has the feature ``__BOS__``,
           and the last ``__EOS__``, as in CRFsuite's examples
=========  ========================================================================================

Label bigrams need no template: they are the transitions. A template without a reference, ``U99:``,
is a feature of every part. References: T. Kudo: CRF++, yet another
CRF toolkit. N. Okazaki: CRFsuite, a fast implementation of conditional random fields, 2007.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise, starmap
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.datasets.arrays import csr, names, normalised
from ssvm_bench.datasets.own_files.svmlight import NUMBER
from ssvm_bench.datasets.reading import ContentError, check_room_of_lines, ensure
from ssvm_bench.datasets.vocabulary import (
    BLANKS,
    OPTION,
    SEPARATORS,
    Template,
    Vocabulary,
    parse_template,
)

FORMAT = "columns"
NAMES = (".conll", ".iob", ".bio")
"""Ends of the names of such files."""

PARSING = ("separator",)
"""Options that decide how a file is parsed; a `Vocabulary` remembers them for later files."""

OPTIONS = (*PARSING, "templates", "boundary", "min_count")
OPTION_OF_SEPARATOR = "dataset.separator"
ENDS = ("__BOS__", "__EOS__")

MOST_COLUMNS = 10_000
"""A template refers to a column by up to four digits."""

_MOST_OBSERVED = 83
"""Largest number of observed columns whose default templates are within `MOST_TEMPLATES`."""

_BYTES_OF_FEATURE = 24
"""Least memory per part and template while templates are applied."""

_LONGEST = 100
"""Most parts of a sequence on average, unless something else speaks for columns."""

_FEW = 3
"""Lines of which the first is not taken for the head of a table."""

_SHARE = 0.8
"""Share of the entries that decides what a column has: one odd entry does not change it."""

_LABELS_REPEAT = 4
"""Parts for each label, at least, where a label that occurs once is remarkable."""

_NAME_OF_COLUMN = re.compile(
    "(sentence|sent|document|doc|id|idx|index|word|token|text|form|lemma|stem|[uxc]?pos|tag|chunk|"
    "ner?|entity|feature|feat|label|class|category|target|gold|y|iob|bio)s?"
)
"""One of the words of which names of columns consist."""

_CONLL_U = 10  # columns
_INTEGER = re.compile(rb"[+-]?\d+")
_DECIMAL = re.compile(rb"(" + NUMBER.pattern + rb"|[+-]?\d*,\d+)%?")
_MISSING = re.compile(rb"\?|-|[+-]?(inf|infinity|nan)|n/?a|null|none", re.IGNORECASE)
_QUOTED = re.compile(rb'".+"')
_PAIR = re.compile(rb".+:" + NUMBER.pattern)
_COLONS = "|".join(":：﹕∶").encode()
_NAMED = re.compile(rb".*?[^:](%b)+(?!//)[^:].*" % _COLONS)
_MARKED = re.compile(rb"[\[{,;|].*|.*[\]},;:]|__label__.*")
_JOINED = re.compile(rb".*[,;].*|[^=]+=.*|.+/.+")


def _entries(line: bytes, separator: str, most: int = -1) -> list[bytes]:
    """Return the entries of a line, at most so many and a rest; none if it separates sequences."""
    mark = SEPARATORS[separator]
    if mark is None:
        return line.split(None, most)
    return line.rstrip(b"\n").split(mark, most) if line.strip(mark + b" \t\n") else []


class TextColumn(NamedTuple):
    """One column: the entry of part p is ``values[codes[p]]``."""

    codes: np.ndarray
    values: list[str]


class Columns(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    columns : list of TextColumn
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i has the parts ``offsets[i]:offsets[i + 1]``.
    lines : ndarray of int64, shape (parts,)
        The line of each part, from 1.
    """

    columns: list[TextColumn]
    offsets: np.ndarray
    lines: np.ndarray


def objection(
    lines: Sequence[bytes], stated: bool = False, separator: str = BLANKS
) -> tuple[int, str] | None:
    """Return the first line (from 1) that speaks against columns, and why; None if nothing does.

    Any table with as many fields in each line could be one sequence. For columns speaks that empty
    lines separate sequences, that entries are words, and that labels occur again.

    Parameters
    ----------
    lines : sequence of bytes
        The first lines of a file, not all of them blank.
    stated : bool
        Whether the name of the file, or an option, says that it has columns. A lack of evidence
        then does not matter, but another format does, and so does one long sequence: neither says
        where a sequence ends.
    separator : str
        One of `SEPARATORS`.
    """
    split = (_entries(line, separator) for line in lines)
    rows = [(k, fields) for k, fields in enumerate(split, 1) if fields]
    if not rows:
        return 1, f"nothing but separators ({OPTION_OF_SEPARATOR}={separator})"
    first, width = rows[0][0], len(rows[0][1])
    for k, fields in rows:
        if len(fields) != width:
            return k, f"{len(fields)} columns, and line {first} has {width}"
    if width == 1:
        return first, "one column, expected two or more, the last one for the labels"
    pairs = [(k, field) for k, fields in rows for field in fields if _PAIR.fullmatch(field)]
    if 2 * len({k for k, _ in pairs}) > len(rows):
        k, field = pairs[0]
        return k, _is_pair(field)
    columns = [*zip(*(fields for _, fields in rows), strict=True)]
    sequences = _sequences(rows)
    no_evidence = _too_long if stated else _no_evidence
    why = _other_table(columns) or no_evidence(columns, sequences)
    return (first, why) if why else None


def other_separator(lines: Sequence[bytes], stated: bool, separator: str) -> str:
    """Return what another separator makes of lines that this one does not split into columns.

    It is a sentence, or empty. The parameters are those of `objection`.
    """
    if _width(lines, separator) > 1:
        return ""
    others = [other for other in SEPARATORS if other != separator]
    # an option that says blanks says no more than the default
    for other in others:
        if not objection(lines, stated and other != BLANKS, other):
            return f"{OPTION_OF_SEPARATOR}={other} would read it."
    for other in () if is_table_of_numbers(lines) else others:
        width, found = _width(lines, other), objection(lines, True, other)
        if found and other != BLANKS and width > 1:
            return f"{OPTION_OF_SEPARATOR}={other} finds {width} columns, but {found[1]}."
    return ""


def _width(lines: Sequence[bytes], separator: str) -> int:
    """Return the number of columns of all lines; 0 if it differs."""
    widths = {len(fields) for line in lines if (fields := _entries(line, separator))}
    return widths.pop() if len(widths) == 1 else 0


def has_quotes(lines: Sequence[bytes]) -> bool:
    """Whether lines are CSV whose quotes keep separators in entries, or surround a whole column."""
    texts = [line.decode(errors="replace") for line in lines]
    for mark in filter(None, SEPARATORS.values()):
        try:
            rows = [row for row in csv.reader(texts, delimiter=mark.decode(), strict=True) if row]
        except csv.Error:  # a quote that is a character like others
            continue
        if len(rows) < 2 or {len(row) for row in rows} == {1} or len({*map(len, rows)}) > 1:
            continue
        plain = [fields for line in lines if (fields := line.rstrip(b"\n").split(mark)) != [b""]]
        if any(len(fields) != len(rows[0]) for fields in plain):
            return True
        if any(_typical(_QUOTED, column) for column in zip(*plain, strict=True)):
            return True
    return False


def _is_pair(field: bytes) -> str:
    return f"{_quoted([field])} is a feature and its value"


def is_table_of_numbers(lines: Sequence[bytes]) -> bool:
    """Whether a separator splits lines into columns of which all but the last have numbers."""
    for separator in SEPARATORS:
        rows = [fields for line in lines if (fields := _entries(line, separator))]
        if len(rows) > 1 and {len(fields) for fields in rows} == {len(rows[0])} != {1}:
            return all(
                map(_numbers, [*zip(*rows[1:], strict=True)][:-1])
            )  # the first may be a head
    return False


def _sequences(rows: Sequence[tuple[int, list[bytes]]]) -> int:
    """Return the number of sequences; a line alone at the top is none, as it may be a head."""
    numbers = [k for k, _ in rows]
    ends = [before + 1 < k for before, k in pairwise(numbers)]
    return 1 + sum(ends[1:])


def _typical(pattern: re.Pattern[bytes], entries: Sequence[bytes]) -> bytes | None:
    """Return the first entry that matches, if most do; the head of a table need not."""
    below = entries[len(entries) > _FEW :]
    most = below and sum(map(bool, map(pattern.fullmatch, below))) >= _SHARE * len(below)
    return next(filter(pattern.fullmatch, entries)) if most else None


def _other_table(columns: Sequence[tuple[bytes, ...]]) -> str:
    """Return what in most lines belongs to a table of another format; empty if nothing does."""
    labels = columns[-1]
    for entries in columns:
        if entry := _typical(_MARKED, entries):
            return f"{_quoted([entry])} has a separator, as its whole column"
    if (entry := _typical(_JOINED, labels)) and not _typical(_NAMED, labels):
        return f"{_quoted([entry])} joins several entries, as its whole column"
    if len(columns) == _CONLL_U and b"_" in labels:
        return f"it may be CoNLL-U, whose {_CONLL_U} columns do not end with a label"
    if (kind := _numbers(labels)) and kind.decimal:
        return f"the last column has numbers, as {_quoted([kind.decimal])}, and not labels"
    return ""


class _Numbers(NamedTuple):
    """A column of numbers: its first number that is no integer, if it has one."""

    decimal: bytes | None


def _numbers(entries: Sequence[bytes]) -> _Numbers | None:
    """Return what numbers a column has, beside missing ones; None if it does not have numbers."""
    there = [entry for entry in entries if not _MISSING.fullmatch(entry)]
    if not _typical(_DECIMAL, there):
        return None
    decimals = (each for each in there if _DECIMAL.fullmatch(each) and not _INTEGER.fullmatch(each))
    return _Numbers(next(decimals, None))


def _no_evidence(columns: Sequence[tuple[bytes, ...]], sequences: int) -> str:
    """Return what is missing to distinguish columns from another table; empty: nothing.

    Several sequences are evidence, unless they are very long.
    """
    lines, labels = len(columns[0]), len({*columns[-1]})
    separate = sequences > 1 and lines <= _LONGEST * sequences
    named = [entry for entries in columns if (entry := _typical(_NAMED, entries))]
    if len(named) > separate:
        return _is_pair(named[0])
    *observed, of_labels = map(_numbers, columns)
    all_numbers, decimals = all(observed), any(each and each.decimal for each in observed)
    if separate:
        is_table = all_numbers and (decimals or of_labels)
    else:
        few = not any(observed) and labels <= max(2, lines / 4)
        is_table = all_numbers or decimals or (of_labels and not few)
    if is_table:
        return "it may be a table of numbers, which comes as .npz"
    if labels > 10 + lines / 2:
        return f"the last column has {labels} different labels in {lines} lines"
    if why := _too_long(columns, sequences):
        return why
    for head, *below in [] if separate or lines <= _FEW else columns:
        if not _DECIMAL.fullmatch(head) and all(map(_DECIMAL.fullmatch, below)):
            return f"{_quoted([head])} is the head of a column of numbers"
    return ""


def _too_long(columns: Sequence[tuple[bytes, ...]], sequences: int) -> str:
    """Return what speaks for sequences that the file does not separate; empty: nothing."""
    lines = len(columns[0])
    if lines <= _LONGEST * sequences:
        return ""
    if sequences > 1:
        return f"its {sequences} sequences have {lines} lines"
    why = f"no empty line ends a sequence in {lines} lines"
    for k, (_, *entries) in enumerate(columns[:-1], 1):  # the first line may be a head
        runs = [(entry, len([*run])) for entry, run in groupby(entries)]
        named = {entry for entry, _ in runs} - {b""}
        ends_at_names = len(runs) <= 2 * len(named) if b"" in entries else len(runs) == len(named)
        if ends_at_names and lines / _LONGEST < len(named) <= lines / 2:
            return (
                f"{why}. Column {k} seems to number the sequences: write an empty line where it "
                "changes, without this column, and without a head"
            )
    return why


def parse(raw: bytes, separator: str = BLANKS) -> Columns:
    """Return the columns of an unpacked file.

    Parameters
    ----------
    raw : bytes
    separator : str
        One of `SEPARATORS`.

    Raises
    ------
    ContentError
        The file is empty, or is no text; or names the first line that has another number of
        columns than the first one.
    RunFailedError
        Its lines do not fit into memory.
    """
    import pandas as pd

    check_room_of_lines(raw)
    # each distinct line is split only once
    of, texts = pd.factorize(np.array(raw.splitlines(), object))
    different = [_entries(text, separator, MOST_COLUMNS) for text in texts]
    counts = np.fromiter(map(len, different), np.int64, len(different))
    at = np.flatnonzero(counts[of]) + 1
    ensure(at.size, "the file is empty")
    if counts[k := int(counts.argmax())] > MOST_COLUMNS:
        line = int(np.argmax(of == k)) + 1
        raise ContentError(
            f"line {line}: more than {MOST_COLUMNS} columns: {_quoted(different[k])}"
        )
    of = of[at - 1]
    first, wrong = counts[of[0]], np.flatnonzero(counts[of] != counts[of[0]])
    if wrong.size:
        fields = different[of[wrong[0]]]
        raise ContentError(
            f"line {at[wrong[0]]}: {len(fields)} columns, and line {at[0]} has {first} "
            f"({OPTION_OF_SEPARATOR}={separator}): {_quoted(fields)}"
        )
    of = (np.cumsum(counts > 0) - 1)[of]
    rows = zip(*filter(None, different), strict=True)
    columns = [_column(column, of, k, at) for k, column in enumerate(rows, 1)]
    ends = np.flatnonzero(np.diff(at) > 1) + 1
    return Columns(columns, np.concatenate(([0], ends, [at.size])), at)


def _column(
    entries: tuple[bytes, ...], of: np.ndarray, number: int, lines: np.ndarray
) -> TextColumn:
    """Return the column whose part p, in ``lines[p]``, is ``entries[of[p]]``."""
    import pandas as pd

    array = np.empty(len(entries), object)
    array[:] = entries
    codes, values = pd.factorize(array)
    codes = codes[of]
    texts = [value.decode(errors="replace") for value in values]
    for k, (value, text) in enumerate(zip(values, texts, strict=True)):
        if b"\0" in value or text.encode() != value:
            line = lines[np.argmax(codes == k)]
            raise ContentError(
                f"line {line}, column {number}: {_quoted([value])} is no text in UTF-8"
            )
    return TextColumn(codes.astype(np.int64), texts)


def _quoted(fields: list[bytes]) -> str:
    return shown(repr(b" ".join(field[:60] for field in fields[:8]).decode(errors="replace")), 80)


# ---- templates ----------------------------------------------------------------------------------


def default_templates(columns: int) -> list[Template]:
    """Return the default templates of observed columns; for two, CRFsuite's for chunking.

    They are entries up to two lines away and pairs of neighbours. All columns except the first,
    which has too many words, also get the other pairs, and the triples, in a window of five.
    """
    rows = [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]
    more = [(-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2)]
    more += [(-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
    return [
        parse_template("/".join(f"%x[{row},{column}]" for row in shape))
        for column in range(columns)
        for shape in (more if column else rows)
    ]


def apply_templates(
    used: Sequence[Template],
    columns: Sequence[Any],
    offsets: np.ndarray,
    boundary: str,
    known: Mapping[str, int] | None = None,
) -> tuple[list[str], np.ndarray]:
    """Return the names of all features of the parts, and the features of each part.

    Parameters
    ----------
    used : sequence of Template
    columns : sequence of TextColumn
        The observed columns.
    offsets : ndarray of int64, shape (n + 1,)
    boundary : str
        See the module's docstring.
    known : mapping, optional
        Name of each known feature → its number; other features are ignored.

    Returns
    -------
    names : list of str
        In order of first occurrence, template by template; empty if ``known`` is given.
    indices : ndarray of int64, shape (parts, templates) or more
        Numbers of the features of a part, −1 for none.

    Raises
    ------
    ConfigError
        A template points outside the columns.
    """
    import pandas as pd

    check_room(
        float(offsets[-1]) * len(used) * _BYTES_OF_FEATURE,
        f"{len(used)} features of each of {offsets[-1]} parts",
        f"Use fewer templates ({OPTION}) or examples.",
    )
    parts, lengths, number = np.arange(offsets[-1]), np.diff(offsets), dict[str, int]()
    begin, end = np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)

    def numbered(names: Iterable[str]) -> list[int]:
        if known is None:
            return [number.setdefault(name, len(number)) for name in names]
        return [known.get(name, -1) for name in names]

    def applied(template: Template) -> np.ndarray:
        """Return the number of the feature that a template gives each part."""
        combined, inside = np.zeros(parts.size, np.int64), np.ones(parts.size, bool)
        of_references = []
        for row, column in template.references:
            if column >= len(columns):
                raise ConfigError(
                    f"{OPTION}: {shown(template.text)} refers to column {column}, and what is "
                    f"observed are the columns 0 to {len(columns) - 1} (the label is the last "
                    "column)."
                )
            of, at = columns[column], parts + row
            before, behind = begin - at, at - end + 1  # how far beyond the ends
            marks = _marks(row)
            mark = len(of.values) - 1 + np.where(before > 0, before, abs(row) + behind)
            here = (before <= 0) & (behind <= 0)
            codes = np.where(here, of.codes[at.clip(0, parts.size - 1)], mark)
            inside &= here
            of_references.append((codes, [*of.values, *marks]))
            combined, _ = pd.factorize(combined * (len(of.values) + len(marks)) + codes)
        # the first part with each feature: written from the last to the first, the first stays
        first = np.zeros(int(combined.max()) + 1, np.int64)
        first[combined[::-1]] = parts[::-1]
        kept = np.flatnonzero(inside[first]) if boundary == "ends" else np.arange(first.size)
        seen = [
            np.array(values, object)[codes[first[kept]]].tolist() for codes, values in of_references
        ]
        numbers = np.full(first.size, -1)
        entries = zip(*seen, strict=True) if seen else [()]  # without references, one for all
        numbers[kept] = numbered(starmap(template.format.format, entries))
        return numbers[combined]

    found = [applied(template) for template in used]
    if boundary == "ends":
        for name, its_parts in zip(ENDS, (offsets[:-1], offsets[1:] - 1), strict=True):
            found.append(np.full(offsets[-1], -1))
            found[-1][its_parts] = numbered([name])[0]
    return list(number), np.column_stack(found)


def _marks(row: int) -> list[str]:
    """Return what a reference to a row finds before and behind a sequence, from the ends on."""
    return [f"_B{sign}{k}" for sign in "-+" for k in range(1, abs(row) + 1)]


# ---- features -----------------------------------------------------------------------------------


def learned(
    found: Columns,
    templates: Sequence[str] | None,
    boundary: str,
    min_count: int,
    labels: tuple[str, ...] | None = None,
    separator: str = BLANKS,
) -> tuple[Vocabulary, dict[str, Any]]:
    """Return the vocabulary of a training file, and its `fields`.

    Labels and features are numbered in order of first occurrence.

    Parameters
    ----------
    found : Columns
        The last column has the labels.
    templates : sequence of str, optional
        By default those of `default_templates`.
    boundary : str
        One of `vocabulary.BOUNDARIES`.
    min_count : int
        Features that occur in fewer parts are left out.
    labels : tuple of str, optional
        The labels, if they are known.
    separator : str
        By which the file was parsed, and later ones are.

    Raises
    ------
    ContentError
        There is only one column, or no feature; or too many columns for the default templates.
    ConfigError
        A template points outside the columns.
    """
    n_columns = len(found.columns)
    if n_columns < 2:
        raise ContentError(
            f"line 1: one column, expected two or more ({OPTION_OF_SEPARATOR}={separator}): what "
            "is observed, and in the last the label. For tables of numbers there are svmlight and "
            "npz"
        )
    if templates is None and n_columns - 1 > _MOST_OBSERVED:
        raise ContentError(
            f"it has {n_columns} columns, too many for the usual templates: say by {OPTION} what "
            "makes features"
        )
    used = default_templates(n_columns - 1)
    if templates is not None:
        used = [*map(parse_template, templates)]
    names, indices = apply_templates(used, found.columns[:-1], found.offsets, boundary)
    if min_count > 1:
        kept = np.bincount(indices[indices >= 0], minlength=len(names)) >= min_count
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        names = [name for name, keep in zip(names, kept, strict=True) if keep]
        indices = np.where(indices >= 0, number[indices], -1)
    ensure(names, f"no feature is there {min_count} times (dataset.min_count)")
    labels = labels or tuple(found.columns[-1].values)
    vocabulary = vocabulary_of(labels, names, n_columns, used, boundary, separator)
    return vocabulary, _fields(found, vocabulary, indices)


def vocabulary_of(
    labels: tuple[str, ...],
    names: Sequence[str],
    n_columns: int,
    used: Any,
    boundary: str,
    separator: str = BLANKS,
) -> Vocabulary:
    """Return the vocabulary of labels and features with these names; see `learned`."""
    templates = tuple(each.text for each in used)
    about = FORMAT, "chain", len(names), tuple(names), n_columns, templates, boundary
    return Vocabulary(labels, *about, separator=separator)


def fields(found: Columns, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the fields of a `Dataset`; without labels if the file has no column of labels.

    Features that the vocabulary does not have are ignored.

    Raises
    ------
    ContentError
        The number of columns does not fit the vocabulary, or a column of features is missing.
    """
    ensure(vocabulary.templates, "what was trained on had no columns, and so no templates")
    n_columns = len(found.columns)
    if n_columns not in (vocabulary.columns, vocabulary.columns - 1):
        raise ContentError(
            f"line {found.lines[0]}: {n_columns} columns, and the file trained on had "
            f"{vocabulary.columns}, the labels among them"
        )
    if n_columns < vocabulary.columns:
        _check_labels_missing(found, vocabulary)
    used = [parse_template(text) for text in vocabulary.templates]
    observed, known = found.columns[: vocabulary.columns - 1], vocabulary.number_of_feature
    _, indices = apply_templates(used, observed, found.offsets, vocabulary.boundary, known)
    return _fields(found, vocabulary, indices)


def _fields(found: Columns, vocabulary: Vocabulary, indices: np.ndarray) -> dict[str, Any]:
    """Return the fields; x counts how often each part has each feature."""
    there = indices >= 0
    kind = np.uint8 if indices.shape[1] < 256 else np.float64  # a part may have a feature so often
    arrays = {
        "data": np.ones(np.count_nonzero(there), kind),
        "indices": indices[there],
        "indptr": np.cumsum([0, *there.sum(axis=1)]),
    }
    x = csr(arrays, vocabulary.n_features)
    x.sum_duplicates()
    made: dict[str, Any] = {"x": normalised(x), "offsets": found.offsets}
    if len(found.columns) == vocabulary.columns:
        labels = found.columns[-1]
        place = lambda k: f"line {found.lines[k]}, column {vocabulary.columns}"  # noqa: E731
        made |= vocabulary.fields(names(labels.values, "labels"), labels.codes, place)
    return made


# ---- another file than the one trained on -------------------------------------------------------


def check_head(found: Columns) -> None:
    """Raise `ContentError` if the first line of a training file consists of names of columns."""
    if (head := _head(found)) and head.certain:
        line = f"line {found.lines[0]}"
        error = ContentError(
            f"{line}, {head.text}, is a head: its entries are names of columns, and the label "
            f"{shown(found.columns[-1].values[0])} is in no other line"
        )
        error.advice = f"Leave {line} out, or say by dataset.format=columns that it is a part."
        raise error


class _Head(NamedTuple):
    """The first line, if it may be a head; whether its entries are known names of columns."""

    text: str
    certain: bool


def _head(found: Columns) -> _Head | None:
    """Return the first line if it, or copies of it alone, have the entry of the last column.

    That is a label, or in a file without labels, what is observed. If the names of columns are not
    known, no entry is elsewhere, and labels are otherwise repeated.
    """
    first = np.array([column.codes == column.codes[0] for column in found.columns])
    copies = first.all(axis=0)
    *_, labels = found.columns
    if copies.all() or np.any(first[-1] & ~copies):
        return None
    entries = [column.values[column.codes[0]] for column in found.columns]
    known = [*map(_is_name_of_column, entries)]
    text = shown(repr(" ".join(entries)), 80)
    if known[-1] and sum(known) >= min(2, len(known)):
        return _Head(text, True)
    few = _LABELS_REPEAT * (len(labels.values) - 1) <= copies.size - copies.sum()
    alone = not np.any(first & ~copies)
    others = np.delete(labels.codes, np.flatnonzero(copies))
    if few and alone and np.all(np.unique(others, return_counts=True)[1] > 1):
        return _Head(text, False)
    return None


def _is_name_of_column(entry: str) -> bool:
    """Whether an entry consists of words that name columns, as ``POS_tag`` or ``#labels``."""
    words = re.findall("[a-z]+", entry.lower())
    return bool(words) and all(map(_NAME_OF_COLUMN.fullmatch, words))


def notes(found: Columns, vocabulary: Vocabulary) -> list[str]:
    """Return what a user should know of how the columns are used."""
    said = []
    if head := _head(found):
        said.append(
            f"line {found.lines[0]}, {head.text}, looks like a head, and is read as a part. If it "
            "is a head, leave it out."
        )
    strange = [
        str(number + 1)
        for number, column in enumerate(found.columns[: vocabulary.columns - 1])
        if (known := _known(number, vocabulary)) and not any(map(known, column.values))
    ]
    of = f"column{'s' * (len(strange) > 1)} {', '.join(strange)}"
    return [*said, f"none of the entries of its {of} was trained on."] if strange else said


def _known(number: int, vocabulary: Vocabulary) -> Callable[[str], bool] | None:
    """Return the test whether an observed column had an entry in training.

    It asks the templates of this entry alone; None if none of these saw an entry in training.
    """
    used = [parse_template(text) for text in vocabulary.templates]
    alone = [each for each in used if [of for _, of in each.references] == [number]]
    features = vocabulary.number_of_feature
    if not any(_saw_entry(each, features) for each in alone):
        return None
    return lambda entry: any(each.format.format(entry) in features for each in alone)


def _saw_entry(template: Template, features: Iterable[str]) -> bool:
    """Whether a template with one reference made a feature of an entry: others are of marks."""
    before, behind = template.format.format("\n").split("\n")  # no name has a line end
    marks = {template.format.format(mark) for mark in _marks(template.references[0][0])}
    return any(
        name.startswith(before) and name.endswith(behind) and name not in marks for name in features
    )


def _check_labels_missing(found: Columns, vocabulary: Vocabulary) -> None:
    """Raise `ContentError` if of the columns trained on, not the labels but others are missing."""
    *before, last = found.columns
    observed = vocabulary.columns - 1

    def share(column: TextColumn, known: Callable[[str], bool] | None) -> float:
        """Return the share of the parts whose entry is known."""
        there = np.array([known is not None and known(value) for value in column.values])
        return float(there[column.codes].mean())

    def fits(missing: int) -> float:
        kept = [_known(number, vocabulary) for number in range(observed) if number != missing]
        return sum(map(share, before, kept))

    of_labels = share(last, {*vocabulary.labels}.__contains__)
    if of_labels > max(share(last, _known(observed - 1, vocabulary)), 0.5):
        raise ContentError(
            f"line {found.lines[0]}: {len(found.columns)} columns, the last of them with labels, "
            f"and {vocabulary.columns} were trained on: column "
            f"{max(reversed(range(observed)), key=fits) + 1} is missing"
        )
