"""Structural SVMs as estimators of scikit-learn, on matrices and on features with names."""

import gzip
import pickle
import re
import runpy
from pathlib import Path

import joblib
import numpy as np
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from program import call
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import ssvm_bench
from ssvm_bench import StructuredSVM, chunk_scores
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.datasets import conll2000
from ssvm_bench.datasets.own_files import columns, npz
from ssvm_bench.oracles.viterbi import Config as ViterbiConfig
from ssvm_bench.oracles.viterbi import build as viterbi
from ssvm_bench.runs import in_memory

ROOT = Path(__file__).parents[1]
RANKING = ROOT / "examples" / "ranking" / "ranking"
PLAIN = {"bias": 0.0, "solver": "bcfw", "gap_tol": 0.05}


def pieces(data, array):
    """Return rows of parts as a list, an array for each example."""
    return np.split(array, data.offsets[1:-1])


def named(sentence):
    """Return features with names of the words of a sentence."""
    return [{"word": word, "length": len(word), "first": k == 0} for k, word in enumerate(sentence)]


SENTENCES = [text.split() for text in ("a cat sat", "the dog ran", "a dog sat", "the cat ran")]
TAGS = [["D", "N", "V"]] * 4


def test_it_keeps_the_conventions_of_scikit_learn():
    check_estimator(StructuredSVM(solver="bcfw", max_iterations=200))


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
    X, y = data.x, data.y
    if structure != "multiclass":
        X, y = pieces(data, X), pieces(data, y)
    if structure == "graph":
        pairs = np.split(data.edges, data.edge_offsets[1:-1])
        X = [(x, each[::-1, ::-1]) for x, each in zip(X, pairs, strict=True)]
    model = StructuredSVM(structure, lam="5/n", random_state=3, potts=0.3, **PLAIN)
    model.set_params(options={"clock": "work"}).fit(X, y)
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
    words = [each for x in X for each in x]
    labels = [tag for tags in TAGS for tag in tags]
    assert StructuredSVM(**PLAIN).fit(words, labels).predict(words).tolist() == labels


def test_searches_and_pipelines_train_it_and_compile_once(monkeypatch):
    data = random_chains([3, 1, 4, 2] * 4, 3, 4)
    X, y = pieces(data, data.x), pieces(data, data.y)
    StructuredSVM("chain", **PLAIN).fit(X, y)
    monkeypatch.setattr(in_memory, "warm_up", lambda *_: pytest.fail("compiled again"))
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


def test_it_is_pickled_and_dumped_with_what_it_has_learned(tmp_path):
    X = [named(sentence) for sentence in SENTENCES]
    model = StructuredSVM("chain", **PLAIN).fit(X, TAGS)
    joblib.dump(model, tmp_path / "model.joblib")
    for other in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        assert [each.tolist() for each in other.predict(X)] == TAGS
        assert other.history_.equals(model.history_)


def test_an_oracle_of_the_users_is_named_or_made_by_a_callable():
    data = random_chains([3, 1, 4] * 3, 3, 4)
    X, y = pieces(data, data.x), pieces(data, data.y)
    mine = StructuredSVM(
        "chain", oracle=lambda made: viterbi(ViterbiConfig("v", "v"), made), **PLAIN
    )
    usual = StructuredSVM("chain", **PLAIN).fit(X, y)
    assert mine.fit(X, y).weights_.tolist() == usual.weights_.tolist()
    assert mine.score(X, y) == usual.score(X, y)

    model = StructuredSVM("queries", oracle="ranking", config_dirs=[RANKING], **PLAIN)
    rng = np.random.default_rng(0)
    relevant = [np.arange(6) % 3 == 0] * 8
    queries = [np.outer(y, [1.0, 2.0]) + rng.normal(size=(6, 2)) for y in relevant]
    model.fit(queries, relevant)
    assert model.score(queries, relevant) > 0.6  # 1 − share of swapped pairs
    assert len(model.predict(queries)) == 8  # no labels of documents
    with pytest.raises(ConfigError, match="say which oracle is for it"):
        StructuredSVM("queries").fit(queries, relevant)
    with pytest.raises(ConfigError, match="oracle=ranking has no class_weight"):
        model.set_params(class_weight="balanced").fit(queries, relevant)


def test_progress_and_warnings_come_when_they_are_asked_for(capsys):
    data = random_multiclass(30, 3, 4)
    StructuredSVM(**PLAIN).fit(data.x, data.y)
    assert capsys.readouterr() == ("", "")
    early = StructuredSVM(**{**PLAIN, "gap_tol": 1e-6}, max_iterations=1, verbose=True)
    with pytest.warns(ConvergenceWarning, match="max_iterations at a relative gap of"):
        early.fit(data.x, data.y)
    assert "bcfw on X" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("structure", "X", "y", "message"),
    [
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


def test_the_script_of_the_documentation_finds_chunks(tmp_path, monkeypatch, capsys):
    training, test = (conll2000.sentences(m, m).decode() for m in (300, 100))
    files = tmp_path / "train.txt.gz", tmp_path / "test.txt"
    files[0].write_bytes(gzip.compress("\n\n".join(training.split("\n\n")[:200]).encode()))
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
    with pytest.raises(ValueError, match="labels are not those of chunks: NN"):
        chunk_scores([["NN"]], [["NN"]])
