"""Scores of predicted labels: accuracy, of each label, of each pair of labels, and of chunks.

Chunks in sequences of labels are counted as the CoNLL shared tasks do (conlleval). A label is a
prefix and a type, as ``B-NP``, or ``O`` outside of all chunks. A chunk begins

* at B-, and at S- or U- (a chunk of one part);
* at any other label except O, where the part before is O, of another type, or the end of a
  chunk: E-, L-, S- or U-; or where the sequence begins;

and ends before the next one begins, before an O, and with the sequence. It is found if a predicted
chunk has the same first and last part, and the same type:

.. code-block:: text

    precision = found / predicted    recall = found / true    F1 = 2 found / (predicted + true)

References
----------
E. Tjong Kim Sang, S. Buchholz: Introduction to the CoNLL-2000 shared task: chunking. 2000; its
script conlleval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

_PREFIXES = {*"BIELSU"}
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
        Type → counts of chunks, ``""``: of all types; empty if labels are not those of chunks.
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
            found["chunks"] = {kind or "all": of.as_dict() for kind, of in self.chunks.items()}
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
            yield from _table("chunks", {kind or "all": of for kind, of in self.chunks.items()})
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
    """Yield a table of the chunks or labels whose counts are not all 0."""
    rows = {name: row for name, row in rows.items() if any(row)}
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
    """
    K = len(names)
    codes, counts = np.unique(truth.astype(np.int64) * K + predicted, return_counts=True)
    pairs = np.column_stack((*np.divmod(codes, K), counts))
    chunks = count_chunks(names, truth, predicted, offsets) if are_chunks(names) else {}
    return Scores(tuple(names), n_known, pairs, chunks)


# ---- chunks -----------------------------------------------------------------------------------


def chunk_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Any:
    """Return the scores of predicted chunks: of each type and, as ``"all"``, of all.

    Parameters
    ----------
    truth, predicted : sequences of sequences of str
        Labels of the parts of each example: ``B-NP``, ``I-NP``, ``O``.

    Returns
    -------
    DataFrame
        One row per type: ``true``, ``predicted`` and ``found`` chunks, ``precision``, ``recall``,
        ``f1``.

    Raises
    ------
    ValueError
        Labels are not those of chunks; or an example has different sizes in the two sequences.
    """
    import pandas as pd

    sizes = [*map(len, truth)]
    if sizes != [*map(len, predicted)]:
        raise ValueError("truth and predicted have examples of other sizes")
    flat = [np.array([label for labels in each for label in labels]) for each in (truth, predicted)]
    names, codes = np.unique(np.concatenate(flat), return_inverse=True)
    if not are_chunks(names.tolist()):
        raise ValueError(f"labels are not those of chunks: {', '.join(names.tolist()[:10])}")
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    true, guessed = np.split(codes, 2)
    found = count_chunks(names.tolist(), true, guessed, offsets)
    rows = {kind or "all": counts.as_dict() for kind, counts in found.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def are_chunks(names: Sequence[str]) -> bool:
    """Tell whether labels are those of chunks: O, and others with a prefix, B- among them.

    >>> are_chunks(["B-NP", "I-NP", "O"]), are_chunks(["NN", "O"]), are_chunks(["O"])
    (True, False, False)
    """
    others = [name for name in names if name != "O"]
    return any(name.startswith("B-") for name in others) and all(
        name[:1] in _PREFIXES and name[1:2] == "-" and name[2:] for name in others
    )


def count_chunks(
    names: Sequence[str], truth: np.ndarray, predicted: np.ndarray, offsets: np.ndarray
) -> dict[str, Counts]:
    """Return the counts of each type of chunk, sorted, and those of all as ``""``.

    The parameters are those of `compare`.
    """
    kinds = ["", *sorted({name[2:] for name in names} - {""})]  # the first is that of O
    true, guessed = (_chunks(names, kinds, labels, offsets) for labels in (truth, predicted))
    sets = true, guessed, np.intersect1d(true, guessed, assume_unique=True)
    of_kinds = [np.bincount(codes % len(kinds), minlength=len(kinds)) for codes in sets]
    counts = np.stack(of_kinds, axis=1)
    counts[0] = counts.sum(axis=0)  # no chunk is of O
    return {kind: Counts(*row) for kind, row in zip(kinds, counts.tolist(), strict=True)}


def _chunks(
    names: Sequence[str], kinds: Sequence[str], labels: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Return one number per chunk, which encodes its first part, its last part and its type."""
    number = {kind: k for k, kind in enumerate(kinds)}
    kind = np.array([number[name[2:]] for name in names])[labels]
    first = np.array([name[:1] for name in names])[labels]
    opens, closes = (np.isin(first, [*letters]) for letters in ("BSU", "ELSU"))
    fresh = np.ones(labels.size, bool)  # no chunk continues from the part before
    fresh[1:] = closes[:-1] | (kind[1:] != kind[:-1])
    fresh[offsets[:-1]] = True
    begins = (kind > 0) & (opens | fresh)
    ends = (kind > 0) & np.append(begins[1:] | (kind[1:] == 0), True)[: labels.size]
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    return (first * labels.size + last) * len(kinds) + kind[first]
