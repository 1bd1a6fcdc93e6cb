"""Scores of labels of sequences, under the names that users of sklearn-crfsuite know.

A ``flat_…`` score is that of scikit-learn, on the labels of all parts one after another. As a
scorer, ``make_scorer(flat_f1_score, average="weighted")`` stands in for ``scoring="f1_weighted"``:
scikit-learn's own scorers refuse lists of labels, and a search then has NaN for each of its folds.

True labels and predictions are lists of examples, and each example is a list of labels; graphs are
scored alike. Chunks have scores of their own: `ssvm_bench.chunk_scores`.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from sklearn import metrics

from ssvm_bench.base.errors import shown
from ssvm_bench.datasets import given as examples

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "sequence_accuracy_score",
]


def flat_accuracy_score(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the share of correct labels.

    Parameters
    ----------
    y_true, y_pred : lists of examples
    sample_weight : array of shape (n,), optional
        Of the examples.

    Raises
    ------
    ValueError
        The labels are not those of the same examples, or there are none; or as scikit-learn.
    """
    true, predicted, weights = _flat(y_true, y_pred, sample_weight)
    return float(metrics.accuracy_score(true, predicted, sample_weight=weights))


def flat_f1_score(y_true: Any, y_pred: Any, sample_weight: Any = None, **options: Any) -> Any:
    """Return the F1 score of labels: a number, or one for each label with ``average=None``.

    Parameters
    ----------
    y_true, y_pred : lists of examples
    sample_weight : array of shape (n,), optional
        Of the examples.
    **options
        Those of `sklearn.metrics.f1_score`. More than two labels need an ``average``, as
        ``"weighted"``; ``labels`` names those that count, as all but ``"O"``.

    Raises
    ------
    ValueError
        As `flat_accuracy_score`.
    """
    true, predicted, weights = _flat(y_true, y_pred, sample_weight)
    return metrics.f1_score(true, predicted, sample_weight=weights, **options)


def flat_classification_report(
    y_true: Any, y_pred: Any, labels: Any = None, sample_weight: Any = None, **options: Any
) -> Any:
    """Return a text with precision, recall and F1 of each label; a dict with ``output_dict=True``.

    Parameters
    ----------
    y_true, y_pred : lists of examples
    labels : list, optional
        The labels to report, in this order.
    sample_weight : array of shape (n,), optional
        Of the examples.
    **options
        Those of `sklearn.metrics.classification_report`.

    Raises
    ------
    ValueError
        As `flat_accuracy_score`.
    """
    true, predicted, weights = _flat(y_true, y_pred, sample_weight)
    return metrics.classification_report(
        true, predicted, labels=labels, sample_weight=weights, **options
    )


def sequence_accuracy_score(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the share of the examples without a wrong label.

    Parameters
    ----------
    y_true, y_pred : lists of examples
    sample_weight : array of shape (n,), optional
        Of the examples.

    Raises
    ------
    ValueError
        The labels are not those of the same examples, or there are no examples.
    """
    right = [true == predicted for true, predicted in _rows(y_true, y_pred)]
    return float(np.average(right, weights=examples.weights_of(sample_weight, len(right))))


def _flat(
    y_true: Any, y_pred: Any, sample_weight: Any
) -> tuple[list[Any], list[Any], np.ndarray | None]:
    """Return the true and the predicted labels of all parts, and the weights of parts, if given.

    Raises
    ------
    ValueError
        See `flat_accuracy_score`.
    """
    rows, weights = _rows(y_true, y_pred), None
    true, predicted = ([*chain.from_iterable(labels)] for labels in zip(*rows, strict=True))
    if not true:
        raise ValueError("y_true has no labels: there is nothing to score")
    if sample_weight is not None:
        sizes = [len(labels) for labels, _ in rows]
        weights = np.repeat(examples.weights_of(sample_weight, len(rows)), sizes)
    return true, predicted, weights


def _rows(y_true: Any, y_pred: Any) -> list[tuple[list[Any], list[Any]]]:
    """Return the true and the predicted labels of each example.

    Raises
    ------
    ValueError
        Examples or labels are not as many, or there are no examples.
    """
    true, predicted = _listed(y_true, "y_true"), _listed(y_pred, "y_pred")
    if not true:
        raise ValueError("y_true has no examples: there is nothing to score")
    if len(true) != len(predicted):
        raise ValueError(f"y_true has {len(true)} examples, and y_pred has {len(predicted)}")
    rows = [*zip(true, predicted, strict=True)]
    for i, (one, other) in enumerate(rows):
        if len(one) != len(other):
            raise ValueError(f"y_true[{i}] has {len(one)} labels, and y_pred[{i}] has {len(other)}")
    return rows


def _listed(y: Any, name: str) -> list[list[Any]]:
    """Return the labels of each example as a list; raise ``ValueError`` if they are none."""
    listed = []
    for i, row in enumerate(examples.listed(y, name)):
        labels = row.tolist() if hasattr(row, "tolist") else row
        if not isinstance(labels, list | tuple) or any(isinstance(a, list | tuple) for a in labels):
            raise ValueError(
                f"{name}[{i}] must be a list of the labels of an example, got {shown(repr(row))}; "
                "sklearn.metrics has the scores of one label an example"
            )
        listed.append([*labels])
    return listed
