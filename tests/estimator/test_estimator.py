"""Structural SVMs as estimators of scikit-learn, on matrices and on features with names."""

import gzip
import pickle
import re
import runpy
import threading
import time
import warnings
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import get_type_hints

import joblib
import numpy as np
import pandas as pd
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from program import call, python
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    check_cv,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import ssvm_bench
from ssvm_bench import StructuredSVM, chunk_scores
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.datasets import conll2000, given
from ssvm_bench.datasets.own_files import columns, npz
from ssvm_bench.estimator.svm import Parameters
from ssvm_bench.oracles import viterbi
from ssvm_bench.runs import runner
from ssvm_bench.solvers.base import Iterate

ROOT = Path(__file__).parents[2]
RANKING = ROOT / "examples" / "ranking" / "ranking"
EQUIVALENCES = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
"""Checks that integer weights are repetitions, in the decision function."""
PLAIN = {"bias": 0.0, "solver": "bcfw", "gap_tol": 0.05}


LOCK = threading.Lock()  # cannot be pickled


def pieces(data):
    """Return features and labels as lists, an array for each example."""
    return np.split(data.x, data.offsets[1:-1]), np.split(data.y, data.offsets[1:-1])


def with_pairs(data):
    """Return features and edges of each graph, and its labels."""
    X, y = pieces(data)
    return [*zip(X, np.split(data.edges, data.edge_offsets[1:-1]), strict=True)], y


def own_viterbi(made):
    """Make the usual oracle of chains, as a user's callable."""
    return viterbi.build(viterbi.Config("v", "v"), made)


def named(sentence):
    """Return features with names of the words of a sentence."""
    return [{"word": word, "length": len(word), "first": k == 0} for k, word in enumerate(sentence)]


SENTENCES = [text.split() for text in ("a cat sat", "the dog ran", "a dog sat", "the cat ran")]
TAGS = [["D", "N", "V"]] * 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_keeps_the_conventions_of_scikit_learn():
    why = "two paths to a gap of 1 % do not end at the same seven digits"
    check_estimator(StructuredSVM(), expected_failed_checks=dict.fromkeys(EQUIVALENCES, why))
    for name in EQUIVALENCES:
        getattr(estimator_checks, name)("StructuredSVM", StructuredSVM(gap_tol=1e-10))


def test_type_checkers_know_the_parameters_that_there_are():
    hints, (_, *names) = get_type_hints(StructuredSVM), signature(StructuredSVM).parameters
    assert get_type_hints(Parameters) == {name: hints[name] for name in names}


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_a_seed_makes_one_model_however_slow_the_machine_is(monkeypatch, structure):
    chains, data = random_chains([3] * 20, 3, 4), random_multiclass(60, 3, 4)
    X, y = pieces(chains) if structure == "chain" else (data.x, data.y)
    models = [StructuredSVM(structure, random_state=1).fit(X, y)]
    slow = iter(np.cumsum(np.random.default_rng(0).exponential(size=10**5)))
    monkeypatch.setattr("ssvm_bench.base.clock.time.perf_counter", lambda: next(slow))
    models += [StructuredSVM(structure, random_state=1).fit(X, y) for _ in range(2)]
    for model in models[1:]:
        assert model.weights_.tobytes() == models[0].weights_.tobytes()
        assert model.history_["time"].tolist() == models[0].history_["time"].tolist()
    assert models[0].history_["approx_calls"].iloc[-1] > 0  # by what the clock says


def test_a_limit_of_seconds_is_one_of_the_wall_clock():
    data = random_multiclass(60, 3, 4)
    model = StructuredSVM(gap_tol=0.0, max_iterations=None, max_seconds=1e-4, bias=0.0)
    begin = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model.fit(data.x, data.y)
    assert model.history_["time"].iloc[-1] <= time.monotonic() - begin


def state(model):
    """Return all that a model has, as text."""
    with np.printoptions(threshold=10**6, floatmode="unique"):
        return {name: repr(each) for name, each in vars(model).items()}


class Interruption(BaseException):
    """As ``KeyboardInterrupt``, which would end pytest."""


@pytest.mark.parametrize(
    ("changes", "X", "y"),
    [
        ({"lam": -1}, None, ["x", "y", "z"] * 20),
        ({"solver": "nope"}, None, None),
        ({"structure": "chain"}, None, None),
        ({"oracle": lambda made: 1 / 0}, None, None),
        ({"oracle": lambda made: (_ for _ in ()).throw(Interruption)}, None, ["x", "y"] * 30),
        ({}, np.full((60, 7), np.nan), None),
        ({}, np.ones((60, 7)), ["x"] * 60),
        ({}, [{"a": 1.0}] * 60, ["x"] * 59),
        ({}, [{"a": object()}] * 60, None),
        ({"max_iterations": 1, "gap_tol": 1e-9}, None, None),
    ],
)
def test_a_fit_is_all_or_nothing(changes, X, y):
    data = random_multiclass(60, 3, 4)
    model = StructuredSVM(**PLAIN).fit(data.x, data.y)
    before, predicted = state(model), model.predict(data.x)
    model.set_params(**changes)
    X, y = data.x if X is None else X, data.y if y is None else y
    warnings.simplefilter("error", ConvergenceWarning)  # until pytest resets it
    with pytest.raises((Exception, Interruption)):
        model.fit(X, y)
    model.set_params(**{name: getattr(StructuredSVM(**PLAIN), name) for name in changes})
    assert state(model) == before
    assert model.predict(data.x).tolist() == predicted.tolist()
    again = np.array(["b", "a"])[data.y % 2]
    assert set(model.fit(data.x[:, :2], again).predict(data.x[:, :2])) <= {"a", "b"}
    assert model.n_features_in_ == 2


def test_a_model_predicts_with_what_it_was_trained_with():
    X, y = pieces(random_chains([3, 1, 4] * 5, 3, 4))
    model = StructuredSVM("chain", **{**PLAIN, "bias": 1.0}).fit(X, y)
    before = np.concatenate(model.predict(X)).tolist()
    model.set_params(structure="multiclass", bias=7.0, oracle="nope", config_dirs=["nowhere"])
    assert np.concatenate(model.predict(X)).tolist() == before
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_one_thread_fits_while_another_predicts():
    data = random_multiclass(60, 3, 4)
    model = StructuredSVM(**PLAIN).fit(data.x, data.y)
    labels = np.array(["a", "b", "c", "d"])
    right = {tuple(model.predict(data.x[:9])), tuple(map(str, labels[model.predict(data.x[:9])]))}
    found, done = set(), threading.Event()

    def predict():
        while not done.is_set():
            found.add(tuple(model.predict(data.x[:9])))

    thread = threading.Thread(target=predict)
    thread.start()
    for k in range(6):
        model.fit(data.x, labels[data.y] if k % 2 == 0 else data.y)
    done.set()
    thread.join()
    assert found <= right


@pytest.mark.parametrize("structure", ["multiclass", "chain", "graph"])
def test_fit_is_the_run_of_the_command_line(tmp_path, structure):
    data = {
        "multiclass": lambda: random_multiclass(30, 3, 4),
        "chain": lambda: random_chains([3, 1, 4] * 5, 3, 4),
        "graph": lambda: random_graphs([3, 1, 4] * 3, 2, 3),
    }[structure]()
    path = npz.write(data, tmp_path / "mine.npz")
    words = [f"dataset.path={path}", "solver=bcfw", "lam=5/n", "budget.gap_tol=0.05", "clock=work"]
    words += ["oracle=mincut", "oracle.potts=0.3"] if structure == "graph" else []
    made = ssvm_bench.run("dataset=file", *words, results_dir=tmp_path, seed=3)
    X, y = (data.x, data.y) if structure == "multiclass" else pieces(data)
    if structure == "graph":
        X = [(x, pairs[::-1, ::-1]) for x, pairs in with_pairs(data)[0]]
    model = StructuredSVM(structure, lam="5/n", random_state=3, potts=0.3, **PLAIN)
    model.fit(X, y)
    assert model.weights_.tolist() == made.weights.tolist()
    assert model.history_["dual"].tolist() == made.trace["dual"].tolist()
    assert (model.n_iter_, model.stop_reason_) == (made.trace["iteration"].iloc[-1], "gap_tol")
    assert model.classes_.tolist() == list(range(data.n_labels))

    predicted = model.predict(X)
    told = call("predict", made.folder, "--data", path).stdout.split()
    assert [str(label) for label in np.concatenate([np.atleast_1d(p) for p in predicted])] == told
    assert model.score(X, y) == pytest.approx(np.mean(np.array(told, int) == data.y))


def test_features_with_names_are_numbered_and_those_that_are_unknown_passed_over():
    X = [named(sentence) for sentence in SENTENCES]
    model = StructuredSVM("chain", **PLAIN).fit(X, TAGS)
    assert model.vectorizer_.vocabulary_["word=cat"] < model.n_features_in_ == 8
    (found,) = model.predict([named(["a", "bird", "sat"])])
    assert found.tolist() == ["D", "N", "V"]
    assert model.score(X, TAGS) == 1.0
    # a label that training has not seen counts as wrong
    assert model.score(X[:1], [["D", "X", "V"]]) == pytest.approx(2 / 3)
    texts = [[sorted(f"{key}={value}" for key, value in each.items()) for each in x] for x in X]
    assert StructuredSVM("chain", **PLAIN).fit(texts, TAGS).score(texts, TAGS) == 1.0
    words, labels = ([*chain.from_iterable(each)] for each in (X, TAGS))
    assert StructuredSVM(**PLAIN).fit(words, labels).predict(words).tolist() == labels


def test_searches_and_pipelines_train_it_and_compile_once(monkeypatch):
    X, y = pieces(random_chains([3, 1, 4, 2] * 4, 3, 4))
    StructuredSVM("chain", **PLAIN).fit(X, y)
    monkeypatch.setattr(runner, "warm_up", lambda *_: pytest.fail("compiled again"))
    search = GridSearchCV(StructuredSVM("chain", **PLAIN), {"lam": [0.5, "2/n"]}, cv=2)
    assert search.fit(X, y).best_params_["lam"] in (0.5, "2/n")
    assert len(search.predict(X)) == len(X)
    doubled = FunctionTransformer(lambda X: [2 * x for x in X])
    assert make_pipeline(doubled, StructuredSVM("chain", **PLAIN)).fit(X, y).score(X, y) > 0.5


def test_a_pipeline_of_one_label_an_example_searches_by_folds_of_its_classes():
    data = random_multiclass(40, 3, 4)
    made = make_pipeline(StandardScaler(), StructuredSVM(**PLAIN))
    search = GridSearchCV(made, {"structuredsvm__lam": [0.1, 0.01]}, cv=3).fit(data.x, data.y)
    assert search.best_score_ > 0.5
    frames = make_pipeline(StandardScaler(), StructuredSVM(**PLAIN)).set_output(transform="pandas")
    assert frames.fit(data.x, data.y)[-1].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    assert (frames.predict(data.x) == made.fit(data.x, data.y).predict(data.x)).all()


def test_scores_are_calibrated_and_predictions_cross_validated():
    data = random_multiclass(60, 3, 4)
    for y in (np.array(["a", "b", "c", "d"])[data.y], data.y > 1):
        calibrated = CalibratedClassifierCV(StructuredSVM(**PLAIN), cv=3).fit(data.x, y)
        probabilities = calibrated.predict_proba(data.x)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        assert np.mean(calibrated.predict(data.x) == y) > 0.5
        predicted = cross_val_predict(StructuredSVM(**PLAIN), data.x, y, cv=3)
        assert predicted.shape == y.shape
        assert set(predicted) <= set(y)


def test_lists_of_labels_are_not_classes_for_scikit_learn():
    """A fold of examples of different sizes has no array: docs/coming_from/scikit_learn.md."""
    X, y = pieces(random_chains([3, 1, 4, 2] * 4, 3, 4))
    model = StructuredSVM("chain", **PLAIN)
    assert is_classifier(StructuredSVM())
    assert not is_classifier(model)
    assert isinstance(check_cv(3, y, classifier=is_classifier(model)), KFold)
    with pytest.raises(ValueError, match="inhomogeneous"):
        cross_val_predict(model, X, y, cv=2)
    with pytest.warns(UserWarning, match="Scoring failed"):
        assert np.isnan(cross_val_score(model, X, y, cv=2, scoring="accuracy")).all()
    assert not np.isnan(cross_val_score(model, X, y, cv=2)).any()


def test_it_is_pickled_and_dumped_with_what_it_has_learned(tmp_path):
    X = [named(sentence) for sentence in SENTENCES]
    model = StructuredSVM("chain", **PLAIN).fit(X, TAGS)
    joblib.dump(model, tmp_path / "model.joblib")
    for other in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        assert [each.tolist() for each in other.predict(X)] == TAGS
        assert other.history_.equals(model.history_)


def test_an_oracle_of_the_users_is_named_or_made_by_a_callable():
    X, y = pieces(random_chains([3, 1, 4] * 3, 3, 4))
    mine = StructuredSVM("chain", oracle=own_viterbi, **PLAIN)
    usual = StructuredSVM("chain", **PLAIN).fit(X, y)
    assert mine.fit(X, y).weights_.tolist() == usual.weights_.tolist()
    assert mine.score(X, y) == usual.score(X, y)
    message = r"The oracle <built-in function len> cannot be made: TypeError: .* has no len\(\)"
    with pytest.raises(RunFailedError, match=message):
        StructuredSVM(oracle=len).fit(np.eye(4), [0, 1, 0, 1])

    model = StructuredSVM("queries", oracle="ranking", config_dirs=[RANKING], **PLAIN)
    rng, relevant = np.random.default_rng(0), [np.arange(6) % 3 == 0] * 8
    queries = [np.outer(y, [1.0, 2.0]) + rng.normal(size=(6, 2)) for y in relevant]
    model.fit(queries, relevant)
    assert model.score(queries, relevant) > 0.6  # 1 − share of swapped pairs
    assert len(model.predict(queries)) == 8  # no labels of documents
    with pytest.raises(ConfigError, match="structure='queries' is unknown"):
        StructuredSVM("queries").fit(queries, relevant)
    with pytest.raises(ConfigError, match="oracle=ranking has no class_weight"):
        model.set_params(class_weight="balanced").fit(queries, relevant)


PlainBcfw = runpy.run_path(str(ROOT / "examples/bcfw/solver/plain_bcfw.py"))["PlainBcfw"]


class WithoutDual(PlainBcfw):
    has_dual = False

    def reported(self):
        return Iterate(super().reported().w, np.nan)


class Broken(PlainBcfw):
    def iterate(self):
        raise ZeroDivisionError("in my solver")


def test_a_solver_of_the_users_is_made_by_a_callable():
    data = random_multiclass(40, 3, 4)
    named = StructuredSVM(**PLAIN | {"solver": "plain_bcfw"}, config_dirs=[ROOT / "examples/bcfw"])
    named.fit(data.x, data.y)
    for make in (PlainBcfw, lambda problem, clock, seed: PlainBcfw(problem, clock, seed)):
        mine = StructuredSVM(**PLAIN | {"solver": make}).fit(data.x, data.y)
        assert mine.weights_.tolist() == named.weights_.tolist()
        assert mine.stop_reason_ == "gap_tol"
    X, y = pieces(random_chains([3, 1, 4] * 3, 3, 4))
    both = StructuredSVM("chain", oracle=own_viterbi, **PLAIN | {"solver": PlainBcfw}).fit(X, y)
    assert clone(both).fit(X, y).history_["dual"].tolist() == both.history_["dual"].tolist()
    search = GridSearchCV(StructuredSVM(**PLAIN), {"solver": ["bcfw", PlainBcfw]}, cv=2)
    assert search.fit(data.x, data.y).best_score_ > 0.5
    model = StructuredSVM(**PLAIN | {"solver": WithoutDual}, max_iterations=3)
    assert model.fit(data.x, data.y).stop_reason_ == "max_iterations"
    assert np.isnan(model.history_["gap"]).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"solver": len}, RunFailedError, "<built-in function len> cannot be made: TypeError"),
        ({"solver": lambda *of: 3}, RunFailedError, r"made 3\. Derive its class from .*Solver"),
        ({"solver": Broken}, ZeroDivisionError, "in my solver"),
        ({"solver": PlainBcfw, "warm_start": True}, ConfigError, "solver=given has no warm_start"),
        ({"solver": PlainBcfw, "kernel": "rbf", "gamma": 1}, ConfigError, "solver=given needs wei"),
        ({"solver": PlainBcfw, "options": {"solver.T": 3}}, ConfigError, "no option solver.T"),
        ({"solver": 3}, ConfigError, "solver must be a name or a callable, got 3"),
    ],
)
def test_a_solver_of_the_users_that_does_not_fit_is_told(parameters, error, message):
    data = random_multiclass(20, 3, 4)
    with pytest.raises(error, match=message):
        StructuredSVM(**parameters).fit(data.x, data.y)


SCRIPT = """
import sys, types
import numpy as np
from ssvm_bench import StructuredSVM
from ssvm_bench.oracles import viterbi
from ssvm_bench.oracles.base import Oracle

SIGN = 1.0

class Parts(Oracle):  # labels of parts, each alone
    def __init__(self, dataset):
        self.n, self.d = dataset.n, dataset.n_features
        ends = dataset.offsets[1:-1]
        self.x, self.y = np.split(dataset.x, ends), np.split(dataset.y, ends)
    def truth(self, i):
        return self.y[i]
    def argmax(self, w, i):
        return (SIGN * self.x[i] @ w + 1.0 - 2.0 * self.y[i] > 0).astype(np.uint8)
    def predict(self, w, i):
        return (self.x[i] @ w > 0).astype(np.uint8)
    def loss(self, i, y):
        return float(np.mean(y != self.y[i]))
    def joint_feature(self, i, y):
        return np.arange(self.d), y @ self.x[i] / y.size

def local():
    class Inner(Parts):
        pass
    return Inner

nowhere = types.ModuleType("nowhere")
vars(nowhere)["Parts"] = Parts
exec("def make(dataset): return Parts(dataset)", vars(nowhere))
sys.modules["nowhere"] = nowhere  # which no other process can import

rng = np.random.default_rng(0)
X = [rng.normal(size=(4, 3)) for _ in range(20)]
y = [(x[:, 0] > 0).astype(int) for x in X]
FEW = {"solver": "bcfw", "bias": 0, "gap_tol": 0.2}
expected = StructuredSVM("mine", oracle=Parts, options={"parallel.batch": 16}, **FEW).fit(X, y)
for oracle in (Parts, local(), lambda made: Parts(made), lambda made: local()(made)):
    model = StructuredSVM("mine", oracle=oracle, n_jobs=2, **FEW).fit(X, y)
    assert model.weights_.tolist() == expected.weights_.tolist()
    assert model.history_["oracle_wait"].iloc[-1] > 0
try:
    StructuredSVM("mine", oracle=nowhere.make, n_jobs=2, **FEW).fit(X, y)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_workers_call_an_oracle_of_a_script_itself(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = python("-W", "ignore", tmp_path / "script.py")
    assert done.returncode == 0, done.stderr
    assert "RunFailedError" in done.stdout
    assert "put the oracle's class into a module" in done.stdout
    assert "Traceback" not in done.stderr


def test_progress_and_warnings_come_when_they_are_asked_for(capsys):
    data = random_multiclass(30, 3, 4)
    StructuredSVM(**PLAIN).fit(data.x, data.y)
    capsys.readouterr()  # it may be the first one that needs its kernels
    StructuredSVM(**PLAIN).fit(data.x, data.y).predict(data.x)
    assert capsys.readouterr() == ("", "")
    early = StructuredSVM(**{**PLAIN, "gap_tol": 1e-6}, max_iterations=1, verbose=True)
    with pytest.warns(ConvergenceWarning, match="max_iterations at a relative gap of"):
        early.fit(data.x, data.y)
    assert "bcfw on X" in capsys.readouterr().err


def test_a_plug_in_s_model_predicts_in_a_process_that_has_not_trained_it(tmp_path):
    model = StructuredSVM("queries", oracle="ranking", config_dirs=[RANKING], **PLAIN)
    relevant = [np.arange(6) % 3 == 0] * 8
    queries = [np.outer(y, [1.0, 2.0]) + k for k, y in enumerate(relevant)]
    joblib.dump((model.fit(queries, relevant), queries), tmp_path / "model.joblib")
    code = "import joblib, sys; m, X = joblib.load(sys.argv[1]); print(m.predict(X)[0].tolist())"
    told = python("-c", code, tmp_path / "model.joblib").stdout
    assert told.strip() == str(model.predict(queries)[0].tolist())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"structure": "crf"}, "'crf' is unknown.* Valid: .*multiclass. Any other needs"),
        ({"structure": "chian"}, "'chian' is unknown. Did you mean chain?"),
        ({"structure": None}, "structure must be a name, got None"),
        ({"class_weight": 3}, "class_weight must be 'balanced', a dict or None, got 3"),
        ({"class_weight": {0: "x"}}, "class_weight of 0 must be a number of usual size, got 'x'"),
        ({"class_weight": {0: 10**400}}, "class_weight of 0 must be a number of usual size"),
        ({"loss": 3}, "loss must be a name, a path, or a matrix of numbers, got 3"),
        ({"loss": [[0, 1], [1]]}, "loss must be a name, a path, or a matrix of numbers"),
        ({"loss": [[0, np.nan], [1, 0]]}, "row 1, column 2: a loss must be a number ≥ 0, got nan"),
        ({"loss": np.ones((7, 7)) - np.eye(7)}, "oracle.loss is a matrix for 7 labels, and X has"),
        ({"loss": "hinge"}, "oracle.loss=hinge is neither zero_one nor absolute, and a file of"),
        ({"loss": "absolute", "oracle": len}, "oracle=given has no loss matrix"),
        ({"options": {"oracle.loss": "x"}}, "options: oracle.loss is the parameter loss"),
        ({"oracle": 3}, "oracle must be a name, a callable or None, got 3"),
        ({"oracle": ""}, "oracle= is not known"),
        ({"lam": np.nan}, "lam must be a number or K/n"),
        ({"bias": np.nan}, "bias must be a number of usual size, got nan"),
        ({"bias": "1"}, "bias must be a number of usual size, got '1'"),
        ({"potts": None}, "potts must be a number of usual size, or 'learned', got None"),
        ({"potts": np.timedelta64(1)}, "potts must be a number of usual size, or 'learned', got "),
        ({"verbose": np.array([])}, "verbose must be true or false"),
        ({"max_seconds": np.array(-1)}, "budget.max_seconds must be a positive number"),
        ({"max_iterations": 2.5}, "budget.max_iterations must be an integer or null, got 2.5"),
        ({"random_state": -1}, "seed must be ≥ 0"),
        ({"config_dirs": "here"}, "config_dirs must be a list in brackets, got 'here'"),
        ({"config_dirs": ["\0"]}, "config_dirs must be a list in brackets"),
        ({"options": "clock=cpu"}, "options must be a dict or None"),
        ({"options": {"dataset": "ocr"}}, "options: dataset is X and y"),
        ({"options": {" dataset.n_samples": 3}}, "Cannot read ' dataset.n_samples=3'"),
        ({"options": {"dataset.n_samples": 3}}, "options: dataset.n_samples is X and y"),
        ({"options": {"results_dir": "x"}}, "options: results_dir is for files"),
        ({"options": {"lam": 1}}, "options: lam is the parameter lam"),
        ({"options": {"oracle.potts": 1}}, "options: oracle.potts is the parameter potts"),
        ({"options": {"oracle.potts": 1}, "oracle": len}, "oracle.potts is the parameter potts"),
        ({"options": {"oracle.x": 1}, "oracle": len}, "There is no option oracle.x"),
        ({"options": {"lam=3 ": 1}}, "lam"),
        ({"options": {"clock": "work,cpu"}}, "clock=work,cpu is not known"),
        ({"options": {"parallel.workers": 2}}, "parallel.workers is the parameter n_jobs"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads, −1 for one a core, or None, got 0"),
        ({"n_jobs": "all"}, "n_jobs must be a number of threads, −1 for one a core, or None"),
        (
            {"n_jobs": 2, "oracle": lambda made, lock=LOCK: None},
            "other processes cannot make the o",
        ),
        ({"warm_start": True, "solver": "ssg"}, "solver=ssg has no warm_start"),
    ],
)
def test_a_mistake_in_a_parameter_is_named(parameters, message):
    data = random_multiclass(30, 3, 4)
    with pytest.raises(ConfigError, match=message):
        StructuredSVM(**parameters).fit(data.x, data.y)


def test_a_number_of_threads_is_checked_for_predictions_too():
    data = random_multiclass(30, 3, 4)
    model = StructuredSVM(**PLAIN).fit(data.x, data.y)
    for wrong in (0, 0.5, "all"):
        with pytest.raises(ConfigError, match=f"n_jobs must be .*, got {wrong!r}"):
            model.set_params(n_jobs=wrong).predict(data.x)


def test_options_reach_oracles_of_all_kinds():
    X, y = with_pairs(random_graphs([3, 1, 4] * 3, 2, 3))
    found = [
        StructuredSVM("graph", potts=potts, oracle=oracle, **PLAIN).fit(X, y).weights_.tolist()
        for potts in (0.1, 5.0)
        for oracle in (None, "mincut")
    ]
    assert found[0] == found[1] != found[2] == found[3]

    X, y = pieces(random_chains([3, 1, 4] * 3, 3, 4))
    options = {"options": {"oracle.cost_call": 2.0}, "max_iterations": 1}
    for oracle in (None, own_viterbi):
        with pytest.warns(ConvergenceWarning):
            model = StructuredSVM("chain", oracle=oracle, **{**PLAIN, **options}).fit(X, y)
        assert model.history_["time"].iloc[-1] >= 2.0 * len(X)


@pytest.mark.parametrize(
    ("structure", "X", "y", "message"),
    [
        ("chain", [1, 2], [0, 1], r"X\[0\] has the shape \(\)"),
        ("chain", "text", [0, 1], "X must be a list of examples, got 'text'"),
        ("chain", np.array(1), [0], "X is no list of examples"),
        ("chain", [np.zeros((2, 3), "V8")], [[0, 1]], r"X\[0\] has entries of type .*V8"),
        ("chain", None, None, "X must be a list of examples, got None"),
        ("chain", ["He", "is"], [[0, 1]] * 2, r"X\[0\] is 'He'; an example is a list of parts"),
        ("chain", [[["a"], "He"]], [[0, 1]], "must be a mapping or a list of texts, got 'He'"),
        ("chain", [[["a"]], 3], [[0], [1]], r"X\[1\] must be a list of features with names"),
        ("chain", [[{"a": None}] * 2], [[0, 1]], "NaN"),
        ("chain", [[{"a": 10**400}]], [[0]], "X has features that are neither numbers nor texts"),
        ("chain", [np.ones((2, 3))], 3, "y must be a list of examples, got 3"),
        ("chain", [np.ones((2, 3))], [["a", 1]], "the label 1 would become '1'"),
        ("chain", [np.ones((2, 3))], [["a", "a\0"]], r"the label 'a\\x00' would become 'a'"),
        ("chain", [np.ones((2, 3))], [[-1, 2**63 + 1]], "the label 9223372036854775809 would bec"),
        ("chain", [np.ones((2, 3))], [[0.5, 1.0]], "labels must be texts or integers"),
        ("chain", [np.ones((2, 3))], [[None, 1.0]], "labels must be texts or integers"),
        ("chain", [np.ones((2, 3))], [[[1], [1, 2]]], r"y\[0\] is no array"),
        ("chain", [[[1], [1, 2]]], [[0, 1]], r"X\[0\] is no array"),
        ("multiclass", [{"a": 1.0}] * 3, ["a", "b"], "X has 3 examples, and y has 2"),
        ("multiclass", [{"a": 1.0}] * 3, None, "y must be a list of examples, got None"),
        ("multiclass", np.ones((2, 3)), ["a", 1], "the label 1 would become '1'"),
        ("multiclass", np.ones((2, 3)), [0, True], "the label True would become 1"),
        ("chain", [np.ones((2, 3))], [[0, True]], "the label True would become 1"),
        ("multiclass", np.ones((2, 3)), [0, 1 << 63], "integers of 64 bits: float64 does not tell"),
        ("chain", [np.ones((2, 3))], [[0, 1 << 63]], "integers of 64 bits: float64 does not tell"),
        ("multiclass", np.ones((2, 3)), np.array(["a", b""], object), "of one type; there are by"),
        ("graph", [(3, [])], [[0]], r"X\[0\] must be a list of examples, got 3"),
        ("graph", [([[1.0]], [[0], [1, 2]])], [[0]], r"half of X\[0\], its edges, is no array"),
        ("chain", [np.ones((2, 3)), np.ones((2, 4))], [[0, 1]] * 2, r"X\[1\] has the shape"),
        ("chain", [np.ones((2, 3)), np.ones((0, 3))], [[0, 1], []], r"X\[1\] has no parts"),
        ("chain", [np.ones((2, 3))], [[0, 1, 1]], r"y\[0\] has the shape .* X\[0\] has 2 parts"),
        ("chain", [np.ones((2, 3))], [], "X has 1 examples, and y has 0"),
        ("chain", [np.full((2, 3), np.nan)], [[0, 1]], "NaN"),
        ("graph", [(np.ones((2, 3)), [(0, 2)])], [[0, 1]], r"edge \(0, 2\) of X\[0\] joins no two"),
        ("graph", [np.ones((2, 3))], [[0, 1]], r"X\[0\] must be a pair"),
        ("multiclass", np.ones((3, 2)), ["a"] * 3, "one class only"),
    ],
)
def test_examples_that_are_none_are_refused(structure, X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(structure, **PLAIN).fit(X, y)


def test_other_features_than_those_of_training_are_refused():
    X = [csr_array(np.eye(3)), csr_array(np.eye(3))]
    model = StructuredSVM("chain", **PLAIN).fit(X, [[0, 1, 1], [1, 0, 1]])
    with pytest.raises(ValueError, match="X has 4 features a part, and 3 were trained with"):
        model.predict([np.ones((1, 4))])
    with pytest.raises(ValueError, match="X have names, and those of training had none"):
        model.predict([[{"a": 1.0}]])
    mixed = [csr_array(np.eye(3)), np.eye(3)]
    assert len(model.predict(mixed)) == 2
    words = StructuredSVM(**PLAIN).fit([{"a": 1.0}, {"b": 1.0}], [0, 1])
    with pytest.raises(ValueError, match="X have no names, and those of training had some"):
        words.predict(np.ones((1, 2)))
    assert words.predict([{"a": 1.0}]).tolist() == [0]
    for rows in (pd.Series, lambda listed: np.array(listed, object)):
        again = StructuredSVM(**PLAIN).fit(rows([{"a": 1.0}, {"b": 1.0}]), pd.Series([0, 1]))
        assert again.weights_.tolist() == words.weights_.tolist()
        assert again.predict(rows([{"a": 1.0}])).tolist() == [0]
    # the first part has no features, which is no matter
    X, y = [[[], ["a"]], [["a"], []]], [["x", "y"], ["y", "x"]]
    texts = StructuredSVM("chain", **PLAIN).fit(X, y)
    assert [each.tolist() for each in texts.predict([[["a"], []]])] == [["y", "x"]]
    # labels of another kind than those of training are wrong
    assert texts.score([[["a"], []]], [[0, 1]]) == 0.0


def test_the_script_of_the_documentation_finds_chunks(tmp_path, monkeypatch, capsys):
    training, test = (conll2000.sentences(m, m).decode() for m in (300, 100))
    files = tmp_path / "train.txt.gz", tmp_path / "test.txt"
    files[0].write_bytes(gzip.compress("\n\n".join(training.split("\n\n")[:55]).encode()))
    files[1].write_text("\n\n".join(test.split("\n\n")[:50]))
    monkeypatch.setattr("sys.argv", ["chunking.py", *map(str, files)])
    found = runpy.run_path(str(ROOT / "docs" / "chunking.py"))
    (told,) = re.findall(r"^F1 (\d+\.\d\d)%$", capsys.readouterr().out, re.MULTILINE)
    assert float(told) / 100 == pytest.approx(found["found"].loc["all", "f1"], abs=1e-4)
    assert float(told) > 75
    # its features are those of the default templates, by other names
    parsed = columns.parse(gzip.decompress(files[0].read_bytes()))
    vocabulary, _ = columns.learned(parsed, None, "ends", 1)
    assert len(vocabulary.features) == found["model"].n_features_in_


def test_chunk_scores_are_those_of_chunks():
    truth = [["B-NP", "I-NP", "O"], ["B-VP"]]
    found = chunk_scores(truth, [["B-NP", "O", "O"], ["B-VP"]])
    assert found.loc["all", ["true", "predicted", "found"]].tolist() == [2, 2, 1]
    assert found.loc["VP", "f1"] == 1.0
    with pytest.raises(ValueError, match="examples of other sizes"):
        chunk_scores(truth, [["O"], ["O"]])
    for labels in ([["O"], []], [[]], [], np.array([["O", "O"]])):
        assert chunk_scores(labels, labels).loc["all", "true"] == 0
    assert chunk_scores([["NN"]], [["NN"]], chunks=True).loc["all", "true"] == 0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["NN"]], "labels are not those of chunks: NN"),
        ([["B-NP", None]], r"truth\[0\]\[1\] is None, and labels of chunks are texts"),
        ([[], [1, 2]], r"truth\[1\]\[0\] is 1, and labels of chunks are texts"),
        ([np.array([1.5])], r"truth\[0\]\[0\] is np.float64\(1.5\), and labels of chunks are"),
        (["B-NP", "O"], r"truth\[0\] must be a list of the labels of an example, got 'B-NP'"),
        ([None], r"truth\[0\] must be a list of the labels of an example, got None"),
        ("B-NP", "truth must be a list of examples, got 'B-NP'"),
        (None, "truth must be a list of examples, got None"),
    ],
)
def test_labels_that_are_not_those_of_chunks_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        chunk_scores(labels, labels)


def spoilt(kind, name, place, value):
    """Return a sparse matrix of a format with one of its arrays changed behind scipy's back."""
    x = getattr(sparse, f"{kind}_array")(np.eye(6))
    getattr(x, name)[place] = value
    return x


@pytest.mark.parametrize(
    "x",
    [
        spoilt("csr", "indices", 3, 10**6),
        spoilt("csr", "indptr", slice(1, None, 2), 6),
        spoilt("csr", "indptr", slice(None), [0, 6, 0, 6, 0, 6, 0]),
        spoilt("csc", "indices", 3, -1),
        spoilt("csc", "indptr", -1, 10**6),
        spoilt("coo", "row", 3, 10**6),
        spoilt("bsr", "indices", 3, 10**6),
        spoilt("lil", "rows", 3, [10**6]),
        spoilt("lil", "rows", 3, [1, 2]),
        sparse.csr_array(np.eye(6)) * 1j,
        np.ma.masked_equal(np.eye(6), 1),
        np.eye(6).astype("m8[s]"),
    ],
)
def test_a_matrix_is_looked_at_before_scipy_does(x):
    for structure, X, y in (("multiclass", x, [0, 1] * 3), ("chain", [x], [[0, 1] * 3])):
        with pytest.raises(ValueError, match=r".."):
            StructuredSVM(structure).fit(X, y)


def test_small_integers_at_one_place_are_added_up():
    ends = np.array([0, 2, 2])
    x = sparse.csr_array((np.array([100, 100], np.int8), np.zeros(2, int), ends), shape=(2, 1))
    parts = given.parts_of(x, "independent")
    data = given.dataset(parts, "independent", np.arange(2), None, 0.0)
    assert data.x.toarray()[0].tolist() == [200]


@pytest.mark.parametrize("odd", [None, b"a", 1])
def test_scores_are_of_labels_of_one_type(odd):
    x = np.eye(4)
    model = StructuredSVM("multiclass", max_iterations=1).fit(x, ["a", "b", "a", "b"])
    with pytest.raises(ValueError, match="labels must be of one type; there are"):
        model.score(x, np.array(["a", "b", "a", odd], object))
