"""How good predicted labels are: accuracy, each label, each pair of labels, and chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.results import chunks
from ssvm_bench.results.chunks import Counts

_SHOWN = 12  # labels of a confusion matrix in a terminal


@dataclass(frozen=True)
class Scores:
    """The counts of a comparison, which everything follows from.

    Attributes
    ----------
    names : tuple of str
        Of the labels; those that training does not know are the last.
    n_known : int
        How many training knows.
    confusion : ndarray of int64, shape (labels, labels)
        Parts with the true label of the row for which that of the column was predicted.
    chunks : mapping
        Type → counts of chunks, ``""`` all; empty where labels are not those of chunks.
    """

    names: tuple[str, ...]
    n_known: int
    confusion: np.ndarray
    chunks: dict[str, Counts]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """Share of the parts with the right label."""
        return float(np.trace(self.confusion)) / self.parts

    @property
    def unseen(self) -> int:
        """Parts whose true label training does not know."""
        return int(self.confusion[self.n_known :].sum())

    def of_label(self, k: int) -> Counts:
        """Return how many parts have a label, how many were predicted to, and both."""
        return Counts(
            int(self.confusion[k].sum()), int(self.confusion[:, k].sum()), int(self.confusion[k, k])
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for a JSON file."""
        of_labels = {name: _plain(self.of_label(k)) for k, name in enumerate(self.names)}
        found = {
            "parts": self.parts,
            "accuracy": self.accuracy,
            "unseen_labels": self.unseen,
            "labels": of_labels,
            "confusion": {"labels": list(self.names), "counts": self.confusion.tolist()},
        }
        if self.chunks:
            named = {name or "all": _plain(each) for name, each in self.chunks.items()}
            found["chunks"] = named
        return found

    def lines(self) -> Iterator[str]:
        """Yield what is shown in a terminal."""
        yield f"accuracy {self.accuracy:8.2%}  ({np.trace(self.confusion)} of {self.parts} parts)"
        if self.unseen:
            others = ", ".join(self.names[self.n_known :])
            yield (
                f"         {self.unseen} parts have labels that training does not know, and are "
                f"wrong: {others}"
            )
        if self.chunks:
            yield ""
            named = {name or "all": row for name, row in self.chunks.items()}
            yield from _table("chunks", {name: row for name, row in named.items() if any(row)})
        yield ""
        counts = {name: self.of_label(k) for k, name in enumerate(self.names)}
        yield from _table("labels", {name: row for name, row in counts.items() if any(row)})
        yield ""
        yield from self._confusions()

    def _confusions(self) -> Iterator[str]:
        """Yield the confusion matrix of the labels that are confused most."""
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        order = np.argsort(-(wrong.sum(axis=0) + wrong.sum(axis=1)), kind="stable")
        there = self.confusion.sum(axis=0) + self.confusion.sum(axis=1) > 0
        some = np.sort([k for k in order if there[k]][:_SHOWN])
        left = int(np.count_nonzero(there)) - len(some)
        rest = f"; {left} labels that are confused least are left out" if left else ""
        yield f"confusion: true label by row, predicted by column{rest}"
        names = [self.names[k] for k in some]
        counts = self.confusion[np.ix_(some, some)]
        wide = [
            max(len(str(c)) for c in (name, *column))
            for name, column in zip(names, counts.T, strict=True)
        ]
        first = max(map(len, names))
        yield " ".join([" " * first, *(f"{n:>{w}}" for n, w in zip(names, wide, strict=True))])
        for name, row in zip(names, counts.tolist(), strict=True):
            yield " ".join(
                [f"{name:<{first}}", *(f"{c:>{w}}" for c, w in zip(row, wide, strict=True))]
            )


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
        How many training knows.
    truth, predicted : ndarrays of integers, shape (parts,)
    offsets : ndarray of int64, shape (n + 1,)
        Example i has the parts ``offsets[i]:offsets[i + 1]``.
    """
    K = len(names)
    pairs = truth.astype(np.int64) * K + predicted
    confusion = np.bincount(pairs, minlength=K * K).reshape(K, K)
    of_chunks = {}
    if chunks.are_chunks(names):
        of_chunks = chunks.scores(names, truth, predicted, offsets)
    return Scores(tuple(names), n_known, confusion, of_chunks)


def chunk_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Any:
    """Return how good predicted chunks are, of each type and, as ``"all"``, of all.

    Parameters
    ----------
    truth, predicted : sequences of sequences of str
        Labels of the parts of each example: ``B-NP``, ``I-NP``, ``O``.

    Returns
    -------
    DataFrame
        A row a type: ``true``, ``predicted`` and ``found`` chunks, ``precision``, ``recall``,
        ``f1``.

    Raises
    ------
    ValueError
        Labels are not those of chunks; or an example has other parts in both.
    """
    import pandas as pd

    sizes = [*map(len, truth)]
    if sizes != [*map(len, predicted)]:
        raise ValueError("truth and predicted have examples of other sizes")
    flat = [np.array([label for labels in each for label in labels]) for each in (truth, predicted)]
    names, codes = np.unique(np.concatenate(flat), return_inverse=True)
    if not chunks.are_chunks(names.tolist()):
        raise ValueError(f"labels are not those of chunks: {', '.join(names.tolist()[:10])}")
    true, guessed = np.split(codes, 2)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    found = chunks.scores(names.tolist(), true, guessed, offsets)
    return pd.DataFrame.from_dict(
        {name or "all": _plain(counts) for name, counts in found.items()}, orient="index"
    )


def _plain(counts: Counts) -> dict[str, float]:
    shares = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
    return {**counts._asdict(), **shares}


def _table(title: str, rows: dict[str, Counts]) -> Iterator[str]:
    wide = max(len(title), *map(len, rows))
    yield f"{title:<{wide}}  precision   recall       F1     true predicted    right"
    for name, row in rows.items():
        shares = f"{row.precision:9.2%} {row.recall:8.2%} {row.f1:8.2%}"
        yield f"{name:<{wide}}  {shares} {row.true:8} {row.predicted:9} {row.found:8}"
