"""Held-out examples: which they are, and the losses that a run tells of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import random_multiclass
from program import OCR, USPS, call, config_of, error_of, run_here

from ssvm_bench.base.clock import Clock
from ssvm_bench.datasets import ocr
from ssvm_bench.datasets.ocr import WORDS_PER_FOLD
from ssvm_bench.oracles import multiclass
from ssvm_bench.oracles.base import Problem
from ssvm_bench.report import page
from ssvm_bench.results import stored_traces
from ssvm_bench.results.reading import read_trace
from ssvm_bench.runs import loop
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Silent
from ssvm_bench.solvers.fw import FrankWolfe

FEW = ("solver=bcfw", "budget.max_iterations=2")


def words(folds=None, n_samples=None):
    return ocr.load(ocr.Config("ocr", "ocr", "synthetic", n_samples, folds=folds))


def test_taking_examples_leaves_the_others_held_out():
    whole, test = random_multiclass(6, 3, 2), random_multiclass(4, 3, 2, seed=1)
    assert not whole.held_out
    both = replace(whole, held_out={"test": test})
    assert both.take(np.array([1, 5])).held_out["test"] is test
    assert both.fingerprint == whole.fingerprint != test.fingerprint


@pytest.mark.parametrize("folds", [(0,), (9, 1, 4), tuple(range(1, 10))])
def test_folds_that_are_not_chosen_are_the_test_set(folds):
    whole, dataset = words(), words(folds)
    assert not whole.held_out
    (test,) = dataset.held_out.values()
    assert (dataset.n, test.n) == (WORDS_PER_FOLD[list(folds)].sum(), whole.n - dataset.n)
    assert set(dataset.fold) == set(folds)
    assert set(test.fold) == set(range(10)) - set(folds)
    starts = whole.offsets[:-1][np.isin(whole.fold, folds)]
    assert np.array_equal(dataset.x[dataset.offsets[:-1]], whole.x[starts])
    assert dataset.held_out.keys() == {"test"}


def test_n_samples_are_taken_of_the_chosen_folds():
    some = words((3, 0), 50)
    assert (some.n, set(some.fold)) == (50, {0, 3})
    assert some.held_out["test"].n == 6877 - 626 - 698
    result = call("run", "dataset.source=synthetic", "dataset.folds=[0]", "dataset.n_samples=627")
    assert "dataset.n_samples must be ≤ 626, the number of examples to" in error_of(result, 2)


@pytest.mark.parametrize("folds", ["[]", "[0,0]", "[10]", "[-1]", "0", "[a]", "[0.5]", "[true]"])
def test_bad_folds_are_one_message(folds):
    assert "dataset.folds must be" in error_of(call("run", f"dataset.folds={folds}"), 2)


def test_folds_change_the_hash_but_not_without_them(tmp_path):
    def of(*overrides):
        return config_of(tmp_path, *overrides, data=OCR)

    plain = of()
    every = of("dataset.folds=[9,8,7,6,5,4,3,2,1,0]")
    assert every.hash() == plain.hash()
    one, two, turned = (of(f"dataset.folds=[{text}]") for text in ("1", "1,2", "2,1"))
    assert len({plain.hash(), one.hash(), two.hash()}) == 3
    assert turned.hash() == two.hash()
    assert two.resolved()["dataset"]["folds"] == [1, 2]


def mean_hamming(data, w):
    """Return the mean share of wrong letters, by a plain Viterbi recursion."""
    K, f = data.n_labels, data.n_features
    unary, pairs = w[: K * f].reshape(K, f), w[K * f :].reshape(K, K)
    shares = []
    for i in range(data.n):
        part = slice(data.offsets[i], data.offsets[i + 1])
        scores = data.x[part].astype(float) @ unary.T
        back = np.zeros(scores.shape, int)
        for l in range(1, len(scores)):
            arriving = scores[l - 1][:, None] + pairs
            back[l] = arriving.argmax(axis=0)
            scores[l] += arriving.max(axis=0)
        y = [scores[-1].argmax()]
        for l in range(len(scores) - 1, 0, -1):
            y.append(back[l, y[-1]])
        shares.append(np.mean(y[::-1] != data.y[part]))
    return np.mean(shares)


@pytest.fixture
def outcome(tmp_path):
    return run_here(tmp_path, *FEW, "dataset.folds=[1,2,3,4,5,6,7,8,9]", data=OCR)


def test_a_run_tells_the_loss_of_its_last_w(outcome):
    summary = json.loads((outcome.folder / "summary.json").read_text())
    w = np.load(outcome.folder / "weights.npz")["w"]
    test = words((0,))
    assert summary["test_loss"] == pytest.approx(mean_hamming(test, w), abs=1e-12)
    assert 0.05 < summary["test_loss"] < 0.9
    assert summary["test_loss"] != summary["train_loss"]


def test_stored_traces_and_the_report_keep_the_losses(outcome, tmp_path):
    trace = read_trace(outcome.folder)
    (stored,) = stored_traces.write([trace], tmp_path / "kept", "some")
    assert stored.summary["test_loss"] == trace.summary["test_loss"] == outcome.summary["test_loss"]
    text = page.build(tmp_path).read_text(encoding="utf-8")
    for part in (">test loss<", f">{outcome.summary['test_loss']:.4g}<"):
        assert part in text


def test_without_held_out_examples_nothing_is_said_of_them(tmp_path):
    made = run_here(tmp_path, *FEW, data=USPS)
    assert [name for name in made.summary if name.endswith("_loss")] == ["train_loss"]
    text = page.build(tmp_path).read_text(encoding="utf-8")
    assert ">training loss<" in text
    assert "test loss" not in text


def test_their_oracles_are_built_at_the_end_and_only_there(tmp_path):
    config = config_of(tmp_path, "solver=fw", "budget.max_iterations=2")
    train, built = random_multiclass(6, 3, 2), []
    problem = Problem(multiclass.build(config.oracle, train), 0.1)

    def of(seed):
        built.append(seed)
        return multiclass.build(config.oracle, random_multiclass(5, 3, 2, seed))

    held_out = {"validation": lambda w: of(1).mean_loss(w), "test": lambda w: of(2).mean_loss(w)}
    recorder = Recorder(problem, Silent(), held_out)
    made = FrankWolfe(config.solver, problem, Clock("work"), 0)
    recorder.evaluate(made, 0)
    assert built == []
    early = recorder.summary()
    assert all(np.isnan(early[f"{name}_loss"]) for name in ("train", "validation", "test"))
    loop.loop(config, made, recorder)
    assert built == [1, 2]
    for name, seed in (("train", 0), ("validation", 1), ("test", 2)):
        data = random_multiclass(6 if name == "train" else 5, 3, 2, seed)
        wrong = (data.x @ recorder.w.reshape(3, 2).T).argmax(axis=1) != data.y
        assert recorder.summary()[f"{name}_loss"] == pytest.approx(wrong.mean(), abs=1e-15)
