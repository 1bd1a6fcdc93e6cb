"""Scores of predicted labels: accuracy, of each label, of each pair of labels, and of chunks.

Chunks in sequences of labels are counted as the CoNLL shared tasks do (conlleval), in the schemes
IOB1, IOB2, IOE1, IOE2, BIOES and BILOU, and mixtures of them. A label is a prefix and a type, which
the first hyphen separates, as ``B-NP``; or a prefix alone, as ``B``, if chunks have no types. ``O``
is outside of all chunks, and so is any other label without a type. A chunk begins

* at B, and at S or U (a chunk of one part);
* at any other prefix, where the part before is outside, of another type, or the end of a chunk: E,
  L, S or U; or where the sequence begins;

and ends before the next one begins, before a part outside, and with the sequence. It is found if a
predicted chunk has the same first and last part, and the same type:

.. code-block:: text

    precision = found / predicted    recall = found / true    F1 = 2 found / (predicted + true)

References
----------
E. Tjong Kim Sang, S. Buchholz: Introduction to the CoNLL-2000 shared task: chunking. 2000; its
script conlleval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import shown

_PREFIXES, _OPENING, _CLOSING = {*"BIELSU"}, {*"BSU"}, {*"ELSU"}
_ALL = "all"
_NAMES = {"": "(no type)", _ALL: f"({_ALL})"}  # of types of chunks that cannot have their own
_SHOWN = 12  # labels of a confusion matrix in a terminal, and unknown ones
_WHOLE = 1000  # labels of a confusion matrix that is written with its zeros


class Counts(NamedTuple):
    """Numbers of chunks, or of parts with a label: true ones, predicted ones, and both at once."""

    true: int
    predicted: int
    found: int

    @property
    def precision(self) -> float:
        """Share of the predicted ones that are right; 0 without any."""
        return self.found / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        """Share of the true ones that are found; 0 without any."""
        return self.found / max(self.true, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.found / max(self.predicted + self.true, 1)

    def as_dict(self) -> dict[str, float]:
        """Return counts and shares."""
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**self._asdict(), **shares}


@dataclass(frozen=True)
class Scores:
    """The counts of a comparison, from which all scores follow.

    Attributes
    ----------
    names : tuple of str
        Of the labels; those that training does not know are the last.
    n_known : int
        Number of labels that training knows.
    pairs : ndarray of int64, shape (pairs, 3)
        True label, predicted label, and number of parts, for each pair that occurs; sorted.
    chunks : mapping
        Type → counts of chunks, ``"all"``: of all types; empty if labels are not those of chunks.
    """

    names: tuple[str, ...]
    n_known: int
    pairs: np.ndarray
    chunks: dict[str, Counts]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return int(self.pairs[:, 2].sum())

    @property
    def accuracy(self) -> float:
        """Share of the parts with the right label."""
        return sum(of.found for of in self.labels) / self.parts

    @property
    def unseen(self) -> int:
        """Number of parts whose true label training does not know."""
        return sum(of.true for of in self.labels[self.n_known :])

    @cached_property
    def labels(self) -> list[Counts]:
        """Numbers of parts of each label: that have it, for which it was predicted, and both."""
        true, predicted, counts = self.pairs.T
        right = np.where(true == predicted, counts, 0)
        of_each = [
            np.bincount(labels, number, len(self.names)).astype(np.int64)
            for labels, number in ((true, counts), (predicted, counts), (true, right))
        ]
        return [Counts(*of) for of in np.array(of_each).T.tolist()]

    def confusion(self, labels: np.ndarray) -> np.ndarray:
        """Return the number of parts by true label (row) and predicted label (column).

        Parameters
        ----------
        labels : ndarray of integers
            The labels of rows and columns, in rising order.
        """
        true, predicted, counts = self.pairs[np.isin(self.pairs[:, :2], labels).all(axis=1)].T
        found = np.zeros((labels.size, labels.size), np.int64)
        found[np.searchsorted(labels, true), np.searchsorted(labels, predicted)] = counts
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for a JSON file.

        With more than 1000 labels, the confusions are ``pairs``: names of the true and the
        predicted label, and their count.
        """
        K = len(self.names)
        confusion: dict[str, Any] = {"labels": list(self.names)}
        if K <= _WHOLE:
            confusion["counts"] = self.confusion(np.arange(K)).tolist()
        else:
            confusion["pairs"] = [
                [self.names[true], self.names[predicted], count]
                for true, predicted, count in self.pairs.tolist()
            ]
        found = {
            "parts": self.parts,
            "accuracy": self.accuracy,
            "unseen_labels": self.unseen,
            "labels": dict(zip(self.names, (of.as_dict() for of in self.labels), strict=True)),
            "confusion": confusion,
        }
        if self.chunks:
            found["chunks"] = {kind: of.as_dict() for kind, of in self.chunks.items()}
        return found

    def lines(self) -> Iterator[str]:
        """Yield the lines to show in a terminal."""
        right = sum(of.found for of in self.labels)
        yield f"accuracy {self.accuracy:8.2%}  ({right} of {self.parts} parts)"
        if self.unseen:
            unknown = self.names[self.n_known :]
            others = ", ".join(unknown[:_SHOWN]) + ", …" * (len(unknown) > _SHOWN)
            yield (
                f"         {self.unseen} parts have labels that training does not know, and are "
                f"wrong: {others}"
            )
        if self.chunks:
            yield ""
            yield from _table("chunks", self.chunks)
        yield ""
        yield from _table("labels", dict(zip(self.names, self.labels, strict=True)))
        yield ""
        yield from self._confusions()

    def _confusions(self) -> Iterator[str]:
        """Yield the confusion matrix of the labels that are confused most."""
        true, predicted, right = np.array(self.labels).T
        sums = true + predicted
        order = np.argsort(2 * right - sums, kind="stable")
        some = np.sort(order[sums[order] > 0][:_SHOWN])
        left = np.count_nonzero(sums) - len(some)
        rest = f"; {left} labels that are confused least are left out" if left else ""
        yield f"confusion: true label by row, predicted by column{rest}"
        names = [self.names[k] for k in some]
        rows = [["", *names]]
        for name, counts in zip(names, self.confusion(some), strict=True):
            rows.append([name, *map(str, counts)])
        first, *others = ([*map(len, column)] for column in zip(*rows, strict=True))
        for name, *cells in rows:
            shown = (f"{cell:>{max(wide)}}" for cell, wide in zip(cells, others, strict=True))
            yield " ".join([f"{name:<{max(first)}}", *shown])


def _table(title: str, rows: dict[str, Counts]) -> Iterator[str]:
    """Yield a table of the chunks or labels whose counts are not all 0, and of all chunks."""
    rows = {name: row for name, row in rows.items() if any(row) or name == _ALL}
    wide = max(map(len, (title, *rows)))
    yield f"{title:<{wide}}  precision   recall       F1     true predicted    right"
    for name, row in rows.items():
        shares = f"{row.precision:9.2%} {row.recall:8.2%} {row.f1:8.2%}"
        yield f"{name:<{wide}}  {shares} {row.true:8} {row.predicted:9} {row.found:8}"


def compare(
    names: Sequence[str],
    n_known: int,
    truth: np.ndarray,
    predicted: np.ndarray,
    offsets: np.ndarray,
    chunks: bool | None = None,
) -> Scores:
    """Return the scores of predictions.

    Parameters
    ----------
    names : sequence of str
        Of the labels; those that training does not know are the last.
    n_known : int
        Number of labels that training knows.
    truth, predicted : ndarrays of integers, shape (parts,)
    offsets : ndarray of int64, shape (n + 1,)
        Example i has the parts ``offsets[i]:offsets[i + 1]``.
    chunks : bool, optional
        Whether labels are those of chunks; None: decided by `are_chunks`.
    """
    K = len(names)
    codes, counts = np.unique(truth.astype(np.int64) * K + predicted, return_counts=True)
    pairs = np.column_stack((*np.divmod(codes, K), counts))
    counted = are_chunks(names) if chunks is None else chunks
    found = count_chunks(names, truth, predicted, offsets) if counted else {}
    return Scores(tuple(names), n_known, pairs, found)


# ---- chunks -----------------------------------------------------------------------------------


def chunk_scores(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], chunks: bool = False
) -> Any:
    """Return the scores of predicted chunks: of each type and, as ``"all"``, of all.

    Parameters
    ----------
    truth, predicted : sequences of sequences of str
        Labels of the parts of each example: ``B-NP``, ``I-NP``, ``O``.
    chunks : bool
        Whether labels are those of chunks even if none looks like one.

    Returns
    -------
    DataFrame
        One row per type: ``true``, ``predicted`` and ``found`` chunks, ``precision``, ``recall``,
        ``f1``.

    Raises
    ------
    ValueError
        Labels are not texts, or no label but O has a prefix of chunks; or an example has different
        sizes in the two sequences.
    """
    import pandas as pd

    true, guessed = _texts(truth, "truth"), _texts(predicted, "predicted")
    sizes = [*map(len, true)]
    if sizes != [*map(len, guessed)]:
        raise ValueError("truth and predicted have examples of other sizes")
    numbers: dict[str, int] = {}
    codes = [
        np.array([numbers.setdefault(y, len(numbers)) for each in of for y in each], np.int64)
        for of in (true, guessed)
    ]
    names, offsets = [*numbers], np.cumsum([0, *sizes])
    others = sorted({*names} - {"O"})
    if others and not chunks and not any(_parsed(name)[0] in _PREFIXES for name in others):
        raise ValueError(f"labels are not those of chunks: {', '.join(map(shown, others[:10]))}")
    found = count_chunks(names, codes[0], codes[1], offsets)
    rows = [counts.as_dict() for counts in found.values()]
    return pd.DataFrame(rows, index=pd.Index([*found], dtype=object))


def _texts(found: Any, name: str) -> list[list[str]]:
    """Return the labels of all examples; raise ``ValueError`` unless all are texts."""
    examples = [
        _listed(each, f"{name}[{i}]", "the labels of an example")
        for i, each in enumerate(_listed(found, name, "examples"))
    ]
    for i, labels in enumerate(examples):
        for k, label in enumerate(labels):
            if not isinstance(label, str):
                raise ValueError(
                    f"{name}[{i}][{k}] is {shown(repr(label))}, and labels of chunks are texts, "
                    "such as 'B-NP' and 'O'"
                )
    return examples


def _listed(found: Any, name: str, of: str) -> list[Any]:
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ValueError(f"{name} must be a list of {of}, got {shown(repr(found))}")
    return list(found)


def are_chunks(names: Sequence[str]) -> bool:
    """Tell whether labels seem to be those of chunks.

    Either most of them, O aside, have a prefix of chunks and a type; besides, O occurs, or B, or a
    type with two prefixes. Or all are O and two or more prefixes without a type.

    >>> are_chunks(["B-NP", "I-NP", "O"]), are_chunks(["I-PER", "O"]), are_chunks(["B", "I", "O"])
    (True, True, True)
    >>> are_chunks(["NN", "O"]), are_chunks(["O"]), are_chunks(["A", "B", "O"])
    (False, False, False)
    """
    others = [_parsed(name) for name in names if name != "O"]
    typed = [kind for prefix, kind in others if prefix in _PREFIXES and kind]
    if not typed:
        return "O" in names and len(others) > 1 and {*names} <= {*_PREFIXES, "O"}
    likely = "O" in names or any(name.startswith("B-") for name in names)
    return (likely or len({*typed}) < len(typed)) and 2 * len(typed) > len(others)


def _parsed(name: str) -> tuple[str, str | None]:
    """Return the prefix and the type of a label; the type is None outside of chunks."""
    prefix, _, kind = name.partition("-")
    inside = prefix != "O" and (kind or prefix in {*_PREFIXES, "M"})  # M: the middle, in BMES
    return prefix, kind if inside else None


def count_chunks(
    names: Sequence[str], truth: np.ndarray, predicted: np.ndarray, offsets: np.ndarray
) -> dict[str, Counts]:
    """Return the counts of all chunks, as ``"all"``, and of each type, sorted.

    The parameters are those of `compare`.
    """
    parsed = [*map(_parsed, names)]
    types = sorted({kind for _, kind in parsed if kind is not None})
    number: dict[str | None, int] = {kind: k for k, kind in enumerate([None, *types])}
    about = [(p in _OPENING, p in _CLOSING, number[kind]) for p, kind in parsed]
    of_names = np.array(about, np.int64).reshape(-1, 3)
    true, guessed = (_chunks(of_names[y], offsets, len(number)) for y in (truth, predicted))
    sets = true, guessed, np.intersect1d(true, guessed, assume_unique=True)
    of_kinds = [np.bincount(codes % len(number), minlength=len(number)) for codes in sets]
    counts = np.stack(of_kinds, axis=1)
    counts[0] = counts.sum(axis=0)  # no chunk is outside
    rows = [_ALL, *(_NAMES.get(kind, kind) for kind in types)]
    found = {row: Counts(*of) for row, of in zip(rows, counts.tolist(), strict=True)}
    return {_ALL: found[_ALL]} if types == [""] else found


def _chunks(parts: np.ndarray, offsets: np.ndarray, kinds: int) -> np.ndarray:
    """Return one number per chunk, which encodes its first part, its last part and its type.

    A row of ``parts`` says whether the label of a part opens a chunk, whether it closes one, and
    which of the ``kinds`` its type is, 0 outside of chunks.
    """
    opens, closes, kind = parts.T
    size = kind.size
    fresh = np.ones(size + 1, bool)  # no chunk continues from the part before
    fresh[1:-1] = (closes[:-1] > 0) | (kind[1:] != kind[:-1])
    fresh[offsets] = True
    begins = (kind > 0) & ((opens > 0) | fresh[:-1])
    ends = (kind > 0) & np.append(begins[1:] | (kind[1:] == 0), True)[:size]
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    return (first * size + last) * kinds + kind[first]
