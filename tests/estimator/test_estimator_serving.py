"""A fitted model that answers one question after another: from threads, after it was loaded."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import random_multiclass

from ssvm_bench import StructuredSVM
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import joint_features

K, SENTENCES, WORDS, NAMES = 4, 25, 4, 200
"""K labels times all names are more weights than have a dense layout."""


def sentences():
    """Return words with many names, of which one says the label."""
    y = np.random.default_rng(0).integers(K, size=(SENTENCES, WORDS))
    X = [
        [
            [f"label={label}", *(f"{i} {l} {k}" for k in range(NAMES))]
            for l, label in enumerate(row.tolist())
        ]
        for i, row in enumerate(y)
    ]
    return X, y.tolist()


@pytest.fixture(scope="module")
def trained():
    X, y = sentences()
    return StructuredSVM("chain", bias=0.0).fit(X, y), X, y


def listed(predicted):
    return [labels.tolist() for labels in predicted]


def test_weights_are_packed_by_the_first_prediction_alone(trained, monkeypatch):
    model, X, y = trained
    calls, packed = [], joint_features.packed
    monkeypatch.setattr(joint_features, "packed", lambda *of: calls.append(of) or packed(*of))
    model = pickle.loads(pickle.dumps(model))
    for sentence, labels in zip(X, y, strict=True):
        assert listed(model.predict([sentence])) == [labels]
    assert listed(copy.copy(model).predict(X)) == y
    assert model.score(X, y) == 1.0 == 1.0 - model.mean_loss(X, y)
    marginals = model.predict_marginals(X[:2], temperature=0.1)
    assert [each.argmax(axis=1).tolist() for each in marginals] == y[:2]
    assert len(calls) == 1


def test_a_pickle_has_no_weights_that_are_0_and_the_names_once(trained):
    model, X, y = trained
    stored, names = pickle.dumps(model), model.vectorizer_.get_feature_names_out()
    assert len(stored) < 12 * np.count_nonzero(model.weights_) + 12 * names.size + 20_000
    for other in (pickle.loads(stored), copy.deepcopy(model), copy.copy(model)):
        np.testing.assert_array_equal(other.weights_, model.weights_)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert other.vectorizer_.vocabulary_ == model.vectorizer_.vocabulary_
        assert other.vectorizer_.get_feature_names_out().tolist() == names.tolist()
        assert listed(other.predict(X)) == y
    mixed = StructuredSVM().fit([{1: 1.0, "a\ud800\n": "b"}, {2: 1.0}], ["x", "y"])
    again = pickle.loads(pickle.dumps(mixed))
    assert again.vectorizer_.vocabulary_ == mixed.vectorizer_.vocabulary_


def test_a_fit_imports_nothing_of_files_and_scores():
    script = (
        "import sys; from ssvm_bench import StructuredSVM\n"
        "print({'pyarrow.parquet', 'sklearn.metrics'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "set()", found.stderr


def test_a_fit_computes_no_fingerprint_unless_a_warm_start_compares_it(trained, monkeypatch):
    _, X, y = trained
    asked = []
    monkeypatch.setattr(Dataset, "fingerprint", property(lambda data: asked.append(data) or "same"))
    StructuredSVM("chain").fit(X, y)
    assert not asked
    StructuredSVM("chain", warm_start=True).fit(X, y)
    assert len(asked) == 1


def test_threads_that_predict_with_one_model_get_their_own_answers(trained):
    model, X, y = trained
    loaded = pickle.loads(pickle.dumps(model))  # nothing is prepared yet
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(loaded.predict, [[sentence] for sentence in X] * 4))
    assert [listed(each)[0] for each in found] == y * 4


def test_weights_are_replaced_and_never_changed_in_place():
    data = random_multiclass(40, 3, 4)
    model = StructuredSVM().fit(data.x, data.y)
    model.predict(data.x)
    with pytest.raises(ValueError, match="read-only"):
        model.weights_[0] = 1.0
    model.weights_ = -model.weights_
    expected = (data.x @ model.coef_.T + model.intercept_).argmax(axis=1)
    assert model.predict(data.x).tolist() == expected.tolist()
    for wrong, why in (
        (np.append(model.weights_, 0.0), r"weights_ must have 15 numbers, .* got 16"),
        (model.weights_ * np.nan, "weights_ contains NaN"),
        (model.weights_ * 1j, "Complex data"),
        (model.weights_.reshape(3, -1), "1d array"),
        (None, "weights_"),
    ):
        with pytest.raises((ValueError, TypeError), match=why):
            model.weights_ = wrong
    assert model.predict(data.x).tolist() == expected.tolist()
    with pytest.raises(AttributeError, match="call fit first"):
        _ = StructuredSVM().weights_


@pytest.mark.parametrize("case", ["names", "warm start", "graph"])
def test_skops_writes_a_model_without_a_pickle(case):
    io = pytest.importorskip("skops.io")
    X, y = sentences()
    x = [np.array([[label, k] for k, label in enumerate(row)], float) for row in y]
    model, given = {
        "names": (StructuredSVM("chain", class_weight="balanced"), X),
        "warm start": (StructuredSVM("chain", kernel="rbf", gamma=1.0, warm_start=True), x),
        "graph": (StructuredSVM("graph"), [(row, [(0, 1), (1, 2)]) for row in x]),
    }[case]
    model.fit(given, y)
    stored = io.dumps(model)
    trusted = ["ssvm_bench.estimator.svm.StructuredSVM"]
    trusted += ["ssvm_bench.estimator.model.EdgeFeatures"] if case == "graph" else []
    assert set(io.get_untrusted_types(data=stored)) == {*trusted}
    loaded = io.loads(stored, trusted=trusted)
    assert listed(loaded.predict(given)) == listed(model.predict(given))
    assert loaded.history_.equals(model.history_)
    assert loaded.get_params() == model.get_params()
    if case == "warm start":
        again = [each.fit(given, y).history_[["oracle_calls", "gap"]] for each in (loaded, model)]
        assert again[0].equals(again[1])
        assert again[0]["gap"].iloc[0] < 0.01  # where the fit before had ended
