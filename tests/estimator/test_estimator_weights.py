"""Weights of examples, of labels and features in the estimator; warm starts; workers."""

import pickle
import re
from itertools import product

import numpy as np
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import ConfigError

TIGHT = {"solver": "bcfw", "gap_tol": 1e-3, "lam": "5/n"}


def chains(sizes=(3, 1, 4, 2) * 3, seed=0):
    """Return chains as X and y."""
    data = random_chains([*sizes], 3, 3, seed=seed)
    return np.split(data.x, data.offsets[1:-1]), np.split(data.y, data.offsets[1:-1])


def times(listed, counts):
    """Return examples, each so many times."""
    return [each for each, count in zip(listed, counts, strict=True) for _ in range(count)]


def last(model, *names):
    """Return values of the last row of a trace."""
    return model.history_.iloc[-1][[*names]].tolist()


@pytest.mark.parametrize("structure", ["chain", "graph"])
def test_integer_weights_are_repetitions(structure):
    X, y = chains()
    if structure == "graph":
        data = random_graphs([3, 1, 4, 2] * 3, 3, 3)
        rows, y = (np.split(array, data.offsets[1:-1]) for array in (data.x, data.y))
        X = [*zip(rows, np.split(data.edges, data.edge_offsets[1:-1]), strict=True)]
    counts = np.arange(12) % 4  # some are 0
    for class_weight in (None, "balanced"):
        weighted, repeated = (
            StructuredSVM(structure, class_weight=class_weight, **TIGHT) for _ in range(2)
        )
        weighted.fit(X, y, sample_weight=counts)
        repeated.fit(times(X, counts), times(y, counts))
        # P is strongly convex: λ/2 ‖w − w*‖² ≤ gap
        for model, other in ((weighted, repeated), (repeated, weighted)):
            assert last(model, "dual")[0] <= last(other, "primal")[0] + 1e-12
        gaps = [last(model, "gap")[0] for model in (weighted, repeated)]
        apart = np.linalg.norm(weighted.weights_ - repeated.weights_)
        assert apart <= np.sqrt(2 * counts.sum() / 5) * np.sqrt(gaps).sum()
        truth = repeated.predict(X)
        score = weighted.score(times(X, counts), times(truth, counts))
        assert weighted.score(X, truth, counts) == pytest.approx(score)
    again = StructuredSVM(structure, **TIGHT).fit(X, y, sample_weight=np.full(12, 1.0))
    assert again.weights_.tolist() == StructuredSVM(structure, **TIGHT).fit(X, y).weights_.tolist()


@pytest.mark.parametrize(
    ("labels", "keys"),
    [
        ([0, 1], [1, 1.0, True, np.int8(1), np.float32(1), np.bool_(True)]),
        ([0.0, 1.0], [1, 1.0, True, np.int64(1)]),
        ([False, True], [1, 1.0, True, np.True_]),
        (["0", "1"], ["1", np.str_("1")]),
        (np.array(["0", "1"], object), ["1"]),
        (np.array([0, 1], np.uint8), [1, 1.0]),
        ([-1, 2**53], [2**53, 2.0**53]),
    ],
)
def test_class_weights_compare_labels_as_scikit_learn_does(labels, keys):
    data = random_multiclass(40, 2, 4)
    of_costs = np.where(data.y == 1, 5.0, 1.0)
    costly = StructuredSVM(**{**TIGHT, "gap_tol": 1e-9, "lam": 5 / of_costs.sum()})
    expected = costly.fit(data.x, data.y, sample_weight=of_costs).coef_
    for key in keys:
        model = StructuredSVM(**{**TIGHT, "gap_tol": 1e-9}, class_weight={key: 5.0})
        found = model.fit(data.x, np.asarray(labels)[data.y]).coef_
        assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ([0, 1], "1"),
        (["0", "1"], 1),
        ([0, 1], 1.5),
        ([0, 1], None),
        ([0, 1], np.nan),
        ([False, True], "True"),
        (["a", "b"], ("a",)),
    ],
)
def test_a_class_weight_of_an_unknown_label_is_refused(labels, key):
    data = random_multiclass(8, 2, 4)
    message = f"class_weight has a weight for {re.escape(repr(key))}, and the labels of y are"
    for structure, X, y in (
        ("multiclass", data.x, np.asarray(labels)[data.y]),
        ("chain", [data.x], [np.asarray(labels)[data.y]]),
    ):
        with pytest.raises(ConfigError, match=message):
            StructuredSVM(structure, **TIGHT, class_weight={key: 5.0}).fit(X, y)


def test_a_weighted_fit_is_the_optimum_of_its_formula():
    data = random_multiclass(40, 3, 4)
    weights = np.random.default_rng(1).exponential(size=40)
    model = StructuredSVM(lam="5/n", bias=0.0, gap_tol=1e-8).fit(data.x, data.y, weights)

    def primal(w):
        scores = data.x @ w.reshape(3, 4).T
        losses = scores + 1 - scores[np.arange(40), data.y][:, None]
        losses[np.arange(40), data.y] = 0
        lam = 5 / weights.sum()
        return lam / 2 * w @ w + weights @ losses.max(axis=1) / weights.sum()

    w = model.coef_.ravel()
    assert primal(w) == pytest.approx(last(model, "primal")[0], rel=1e-12)
    found = minimize(primal, w, method="Powell", options={"maxiter": 20})  # knows no gradient
    assert primal(w) <= found.fun * (1 + 1e-8)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(12), "sample_weight is zero for every example"),
        *((each, "sample_weight") for each in (np.ones(11), -np.ones(12), np.full(12, np.nan))),
        ("heavy", "sample_weight"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM("chain", **TIGHT).fit(*chains(), sample_weight=weights)


def test_scores_have_the_shapes_and_signs_of_scikit_learn():
    data = random_multiclass(40, 3, 4)
    many = StructuredSVM().fit(data.x, data.y)
    scores = many.decision_function(data.x)
    assert scores.shape == (40, 3)
    assert scores.argmax(axis=1).tolist() == many.predict(data.x).tolist()
    assert scores == pytest.approx(data.x @ many.coef_.T + many.intercept_)
    two = np.where(data.y > 1, "yes", "no")
    for oracle in (None, "multiclass"):
        model = StructuredSVM(oracle=oracle).fit(data.x, two)
        scores = model.decision_function(data.x)
        assert (scores.shape, model.coef_.shape, model.intercept_.shape) == ((40,), (1, 4), (1,))
        assert np.where(scores > 0, "yes", "no").tolist() == model.predict(data.x).tolist()
    auc = make_scorer(roc_auc_score, response_method="decision_function")
    assert auc(model, data.x, two) > 0.5
    calibrated = CalibratedClassifierCV(StructuredSVM(), cv=2).fit(data.x, two)
    assert calibrated.predict_proba(data.x).shape == (40, 2)
    assert OneVsRestClassifier(StructuredSVM()).fit(data.x, data.y).score(data.x, data.y) > 0.5


def test_a_chain_s_scores_and_marginals_are_those_of_all_its_labelings():
    X, y = chains()
    model = StructuredSVM("chain", **TIGHT, bias=2.0).fit(X, y)
    unary, moves = model.decision_function(X), model.transitions_
    predicted, marginals = model.predict(X), model.predict_marginals(X, temperature=0.5)
    for scores, best, found in zip(unary, predicted, marginals, strict=True):
        L, K = scores.shape
        labelings = np.array([*product(range(K), repeat=L)])
        values = scores[np.arange(L), labelings].sum(axis=1)
        values += moves[labelings[:, :-1], labelings[:, 1:]].sum(axis=1)
        assert labelings[values.argmax()].tolist() == best.tolist()
        p = np.exp(values / 0.5 - logsumexp(values / 0.5))
        for part, label in product(range(L), range(K)):
            assert found[part, label] == pytest.approx(p[labelings[:, part] == label].sum())
    with pytest.raises(ValueError, match="temperature must be a number above 0, got 0"):
        model.predict_marginals(X, temperature=0)


def test_marginals_of_one_part_are_a_softmax():
    data = random_multiclass(20, 3, 4)
    model = StructuredSVM(lam=0.1).fit(data.x, data.y)
    scores = model.decision_function(data.x)
    assert model.predict_marginals(data.x) == pytest.approx(softmax(scores, axis=1))
    model.fit(data.x, data.y > 1)
    odds = 1 / (1 + np.exp(-model.decision_function(data.x)))
    assert model.predict_marginals(data.x)[:, 1] == pytest.approx(odds)


def test_what_an_oracle_does_not_have_is_no_attribute():
    X, y = chains()
    mine = StructuredSVM("mine", oracle=len)
    for name in ("decision_function", "predict_marginals", "top_features", "coef_"):
        assert not hasattr(mine, name)
    assert not hasattr(StructuredSVM("graph"), "predict_marginals")
    assert not hasattr(StructuredSVM("chain"), "coef_")  # before it is fitted
    assert not hasattr(StructuredSVM().fit(np.eye(3), [0, 1, 2]), "transitions_")
    model = StructuredSVM("chain", **TIGHT).fit(X, y).set_params(structure="graph", oracle=len)
    assert len(model.predict_marginals(X)) == len(X)  # that of the last fit


def test_the_largest_weights_have_names():
    words = [["cheap", "now"], ["meeting", "now"], ["cheap", "pills"], ["meeting", "notes"]]
    model = StructuredSVM(lam=0.1).fit(words, ["spam", "mail", "spam", "mail"])
    table = model.top_features(2)
    found = dict(zip(table["feature"], table["weight"], strict=True))  # as large as each other
    assert found == {"meeting": model.coef_[0, 2], "cheap": model.coef_[0, 0]}
    assert found["meeting"] < 0 < found["cheap"]
    assert abs(table["weight"][0]) >= abs(table["weight"][1])
    assert table["label"].tolist() == ["spam", "spam"]
    chain = StructuredSVM("chain", **TIGHT).fit(*chains()).top_features(1)
    assert chain["label"].tolist() == [0, 1, 2]
    assert set(chain["feature"]) <= {"x0", "x1", "x2"}


def test_a_warm_start_goes_on_from_the_last_fit():
    X, y = chains()
    model = StructuredSVM("chain", gap_tol=0.05, warm_start=True).fit(X, y)
    reached = last(model, "dual")[0]
    model = pickle.loads(pickle.dumps(model))
    model.set_params(gap_tol=0.02).fit(X, y)
    first = model.history_.iloc[0]
    assert first["dual"] >= reached - 1e-12
    assert first["gap"] / first["primal"] < 0.06
    assert model.stop_reason_ == "gap_tol"
    before = last(model, "dual")
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, [np.zeros_like(each) for each in y])
    assert model.set_params(lam=0.02).fit(X, y).history_["dual"].iloc[0] > 0
    with pytest.warns(UserWarning, match="Training begins anew"):
        model.fit(X[:-1], y[:-1])
    assert model.history_["dual"].iloc[0] == 0.0 != before
    cold = StructuredSVM("chain", gap_tol=0.02, lam=0.02).fit(X[:-1], y[:-1])
    assert cold.set_params(gap_tol=0.01).fit(X[:-1], y[:-1]).history_["dual"].iloc[0] == 0.0


def test_workers_make_the_model_that_one_process_makes():
    X, y = chains()
    weights = np.arange(12) + 1.0
    one = StructuredSVM("chain", solver="bcfw", options={"parallel.batch": 16}).fit(X, y, weights)
    two = StructuredSVM("chain", solver="bcfw", n_jobs=2).fit(X, y, weights)
    assert two.weights_.tolist() == one.weights_.tolist()
    assert two.history_["oracle_wait"].iloc[-1] > 0


def test_it_shows_itself_in_a_notebook():
    model = StructuredSVM("chain", lam="5/n")
    assert "StructuredSVM" in model._repr_html_()
    assert "Not fitted" in model._repr_html_()
    assert "Not fitted" not in model.fit(*chains())._repr_html_()
