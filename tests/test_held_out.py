"""Held-out examples: which they are, and the losses that a run tells of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import random_multiclass
from program import OCR, USPS, call, config_of, error_of, run_here

from ssvm_bench.datasets import ocr
from ssvm_bench.datasets.ocr import WORDS_PER_FOLD
from ssvm_bench.report import page
from ssvm_bench.results import stored_traces
from ssvm_bench.results.reading import read_trace

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

    plain, every = of(), of("dataset.folds=[9,8,7,6,5,4,3,2,1,0]")
    one, two, turned = (of(f"dataset.folds=[{text}]") for text in ("1", "1,2", "2,1"))
    assert len({plain.hash(), one.hash(), two.hash()}) == 3
    assert (every.hash(), turned.hash()) == (plain.hash(), two.hash())
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


def test_a_run_its_stored_trace_and_the_report_tell_the_loss_of_its_last_w(tmp_path):
    outcome = run_here(tmp_path, *FEW, "dataset.folds=[1,2,3,4,5,6,7,8,9]", data=OCR)
    summary = json.loads((outcome.folder / "summary.json").read_text())
    loss = summary["test_loss"]
    w = np.load(outcome.folder / "weights.npz")["w"]
    assert loss == pytest.approx(mean_hamming(words((0,)), w), abs=1e-12)
    assert 0.05 < loss < 0.9
    assert loss != summary["train_loss"]
    (stored,) = stored_traces.write([read_trace(outcome.folder)], tmp_path / "kept", "some")
    assert stored.summary["test_loss"] == outcome.summary["test_loss"] == loss
    text = page.build(tmp_path).read_text(encoding="utf-8")
    assert ">test loss<" in text
    assert f">{loss:.4g}<" in text


def test_without_held_out_examples_nothing_is_said_of_them(tmp_path):
    made = run_here(tmp_path, *FEW, data=USPS)
    assert [name for name in made.summary if name.endswith("_loss")] == ["train_loss"]
    text = page.build(tmp_path).read_text(encoding="utf-8")
    assert ">training loss<" in text
    assert "test loss" not in text
