"""Scores of labels of sequences: scikit-learn's on concatenated labels, also as scorers."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

from ssvm_bench import StructuredSVM
from ssvm_bench.estimator.metrics import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    sequence_accuracy_score,
)

TRUTH = [["D", "N", "V"], ["N"], [], ["N", "V", "N", "X"]]
FOUND = [["D", "V", "V"], ["N"], [], ["N", "V", "D", "D"]]
FLAT = [[label for row in rows for label in row] for rows in (TRUTH, FOUND)]
WEIGHTS = np.array([1.0, 2.0, 5.0, 0.5])
OF_PARTS = {"sample_weight": WEIGHTS.repeat([3, 1, 0, 4])}
KINDS = (list, tuple, np.array, pd.Series)


@pytest.mark.parametrize("kind", KINDS)
def test_flat_scores_are_those_of_scikit_learn_on_concatenated_labels(kind):
    truth, found = ([kind(row) for row in rows] for rows in (TRUTH, FOUND))
    assert flat_accuracy_score(truth, found) == 5 / 8
    weighted = metrics.accuracy_score(*FLAT, **OF_PARTS)
    assert flat_accuracy_score(truth, found, sample_weight=WEIGHTS) == weighted
    for options in ({"average": "weighted"}, {"average": "macro", "labels": ["N", "V"]}):
        assert flat_f1_score(truth, found, **options) == metrics.f1_score(*FLAT, **options)
        expected = metrics.f1_score(*FLAT, **options, **OF_PARTS)
        assert flat_f1_score(truth, found, WEIGHTS, **options) == expected
    alone = flat_f1_score(truth, found, average=None).tolist()
    assert alone == metrics.f1_score(*FLAT, average=None).tolist()
    for options in ({"labels": ["N", "V"]}, {"output_dict": True}):
        expected = metrics.classification_report(*FLAT, zero_division=0.0, **options)
        assert flat_classification_report(truth, found, zero_division=0.0, **options) == expected


def test_sequences_are_right_if_all_their_labels_are():
    assert sequence_accuracy_score(TRUTH, FOUND) == 2 / 4
    assert sequence_accuracy_score(TRUTH, FOUND, WEIGHTS) == 7.0 / 8.5
    assert sequence_accuracy_score([np.array([0, 1])], [[0, 1]]) == 1.0


@pytest.mark.parametrize("score", [flat_accuracy_score, flat_f1_score, flat_classification_report])
@pytest.mark.parametrize(
    ("truth", "found", "message"),
    [
        (TRUTH, FOUND[:2], "y_true has 4 examples, and y_pred has 2$"),
        ([["N"], ["N", "V"]], [["N"], ["N"]], r"y_true\[1\] has 2 labels, and y_pred\[1\] has 1$"),
        (["N", "V"], ["N", "V"], r"y_true\[0\] must be a list of the labels of .*, got 'N'; sklea"),
        ([["N"]], np.array(["N"]), r"y_pred\[0\] must be a list of the labels of an example, got"),
        (["N"], None, r"y_true\[0\] must be a list"),
        ([[["N"]]], [[["N"]]], r"y_true\[0\] must be a list of the labels of an example, got \[\["),
        ([["N"]], None, "y_pred must be a list of examples, got None"),
        ([], [], "y_true has no examples: there is nothing to score"),
    ],
)
def test_labels_of_other_examples_are_refused(score, truth, found, message):
    for each in (score, sequence_accuracy_score):
        with pytest.raises(ValueError, match=message):
            each(truth, found)


def test_there_must_be_something_to_score():
    with pytest.raises(ValueError, match="y_true has no labels: there is nothing to score"):
        flat_accuracy_score([[], []], [[], []])
    with pytest.raises(ValueError, match="sample_weight"):
        flat_accuracy_score(TRUTH, FOUND, sample_weight=WEIGHTS[:2])


def test_searches_over_chains_have_scorers():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 4)) for size in rng.integers(1, 5, size=30)]
    y = [np.array(["N", "V", "X"])[(x @ rng.normal(size=(4, 3))).argmax(axis=1)] for x in X]
    model = StructuredSVM("chain", solver="bcfw", gap_tol=0.1)
    flat = cross_val_score(model, X, y, scoring=make_scorer(flat_accuracy_score), cv=3)
    assert flat.tolist() == cross_val_score(model, X, y, cv=3).tolist()  # that of `score`
    scoring = {
        "f1": make_scorer(flat_f1_score, average="macro"),
        "whole": make_scorer(sequence_accuracy_score),
    }
    search = GridSearchCV(model, {"lam": [0.1, 1.0]}, scoring=scoring, refit="f1", cv=3)
    found = search.fit(X, y).cv_results_
    assert (found["mean_test_f1"] > 0).all()
    assert (found["mean_test_whole"] <= 1).all()
