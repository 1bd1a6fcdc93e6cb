"""Held-out examples: which they are, and the losses that a run tells of them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import random_multiclass
from program import OCR, USPS, call, config_of, error_of, run_here

from ssvm_bench.datasets import ocr
from ssvm_bench.datasets.ocr import WORDS_PER_FOLD
from ssvm_bench.report import pages
from ssvm_bench.results import stored_traces
from ssvm_bench.results.trace import find_runs, read_trace
from ssvm_bench.runs import terminal

FEW = ("solver=bcfw", "budget.max_iterations=2")


def words(folds=None, n_samples=None):
    return ocr.load(ocr.Config("ocr", "ocr", "real", n_samples, folds=folds))


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
    text = pages.report(tmp_path).path.read_text(encoding="utf-8")
    assert ">test loss<" in text
    assert f">{loss:.4g}<" in text


def test_without_held_out_examples_nothing_is_said_of_them(tmp_path):
    made = run_here(tmp_path, *FEW, data=USPS)
    assert [name for name in made.summary if name.endswith("_loss")] == ["train_loss"]
    text = pages.report(tmp_path).path.read_text(encoding="utf-8")
    assert ">training loss<" in text
    assert "test loss" not in text


def test_a_sweep_shows_held_out_losses_and_the_best_options(tmp_path):
    sweep = ("run", "-m", "lam=1/n,100/n", "solver=bcfw,mpbcfw", "seed=0,1", *FEW, *OCR)
    where = f"results_dir={tmp_path}"
    done = call(*sweep, "dataset.folds=[0]", where)
    assert done.exit_code == 0, done.stderr
    *table, best, _ = done.stdout.splitlines()
    assert "| test loss |" in table[0]
    losses = {}
    for path in find_runs(tmp_path):
        run = read_trace(path)
        lam = run.config["lam"] or "1/n"
        losses.setdefault((run.solver, lam), []).append(run.end["test_loss"])
    for of in losses.values():
        assert all(f"{loss:.5g}" in done.stdout for loss in of)
    (solver, lam), of = min(losses.items(), key=lambda item: np.mean(item[1]))
    assert best == (
        f"best on ocr (real): {solver} lam={lam}, test loss {np.mean(of):.5g} (mean of 2 seeds)"
    )
    one = call("run", "solver=bcfw", *FEW, *OCR, "dataset.folds=[0]", where).stdout
    assert "test loss" in one
    assert "best" not in one
    assert "loss" not in call("run", "-m", "seed=0,1", *FEW, *USPS, where).stdout


def test_options_are_chosen_by_validation_examples_if_there_are_any():
    config = config_of("results", data=OCR)
    losses = ((0.3, 0.1), (0.2, 0.4), (None, 0.0))
    runs = [
        (
            replace(config, lam=lam),
            "finished",
            {"validation_loss": validation, "test_loss": test, "train_loss": 0.0},
        )
        for lam, (validation, test) in zip((0.1, 0.2, 0.3), losses, strict=True)
    ]
    (line,) = terminal.best_lines(runs)
    assert line == "best on ocr (real): mpbcfw lam=0.2, validation loss 0.2"
    assert list(terminal.best_lines(runs[:1])) == []  # there is nothing to choose
    other = config_of("results", "dataset.n_samples=30", data=("dataset=usps",))
    beside = [*runs, (other, "finished", {"source": "real", "test_loss": 0.0})]
    assert [*terminal.best_lines(beside)] == [line]  # losses on other data are others
    # without validation examples anywhere, the test examples decide
    tested = [(config, status, {"test_loss": of["test_loss"]}) for config, status, of in runs]
    assert [*terminal.best_lines(tested)] == ["best on ocr (real): mpbcfw lam=0.3, test loss 0"]


def test_several_runs_are_scored_in_one_call(tmp_path):
    where = f"results_dir={tmp_path / 'tune'}"
    options = (*FEW, *OCR, "dataset.folds=[0]", "lam=1/n,100/n,1e3/n", where)
    assert call("run", "-m", *options).exit_code == 0
    out = tmp_path / "scores.json"
    done = call("score", tmp_path / "tune", "--out", out)
    assert done.exit_code == 0, done.stderr
    heading, *lines, best = done.stdout.splitlines()
    assert re.fullmatch(r"the test examples of ocr \(\d+\):", heading)
    named = [["ocr", "bcfw", f"lam={rule}"] for rule in ("1/n", "100/n", "1000/n")]
    assert [line.split()[:3] for line in lines] == named
    numbers = json.loads(out.read_text())
    assert [of["run"] for of in numbers] == list(map(str, find_runs(tmp_path / "tune")))
    highest = max(numbers, key=lambda of: of["accuracy"])
    assert best.startswith(f"best on {heading} ocr bcfw lam=")
    assert best.endswith(f"accuracy {highest['accuracy']:.5g}: {highest['run']}")
    alone = call("score", highest["run"])
    assert f"accuracy {highest['accuracy']:8.2%}" in alone.stdout
    assert "`ssvm-bench score` compares them" in error_of(call("predict", tmp_path / "tune"), 2)
    assert "--data - can be read once" in error_of(
        call("score", tmp_path / "tune", "--data", "-"), 2
    )
    # a file that is missing is named once
    missing = call("score", tmp_path / "tune", "--data", tmp_path / "nix")
    assert error_of(missing, 2).endswith("nix: there is no such file or folder.")
    # one that is damaged is named, and the others are scored
    (find_runs(tmp_path / "tune")[0] / "weights.npz").write_bytes(b"")
    done = call("score", tmp_path / "tune")
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == 1 + 2 + 1
    assert str(find_runs(tmp_path / "tune")[0]) in done.stderr


# ---- the best is chosen among losses of the same examples --------------------------------------


@pytest.fixture
def two_files(tmp_path):
    """Return two files of 30 examples with other features."""
    rng = np.random.default_rng(0)
    files = []
    for name in ("a", "b"):
        rows = (f"{k % 2} 1:{rng.normal() + k % 2:.3f} 2:1" for k in range(30))
        files.append(tmp_path / f"{name}.svm")
        files[-1].write_text("\n".join(rows) + "\n")
    return files


def test_a_sweep_names_a_best_run_for_each_set_of_held_out_examples(tmp_path, two_files):
    data = ("dataset=file", f"dataset.path={two_files[0]}", f"results_dir={tmp_path / 'r'}")
    sweep = ("run", "-m", "lam=0.1,1", "solver=bcfw", *FEW, *data)
    done = call(*sweep, "dataset.validation=0.2,0.4")
    assert done.exit_code == 0, done.stderr
    best = [line for line in done.stdout.splitlines() if line.startswith("best on ")]
    assert [re.findall(r"dataset.validation=(\S+) lam=", line) for line in best] == [
        ["0.2"],
        ["0.4"],
    ]
    assert "fingerprint" not in done.stdout
    # another number of training examples has the same held-out ones
    done = call(*sweep, "dataset.validation=0.2", "dataset.n_samples=10,20")
    assert sum(line.startswith("best on ") for line in done.stdout.splitlines()) == 1


def test_scores_are_ranked_on_the_same_examples_alone(tmp_path, two_files):
    where = f"results_dir={tmp_path / 'r'}"
    for options in (
        ("dataset.test=0.2",),
        ("dataset.validation=0.3",),
        (),
        (f"dataset.test={two_files[0]}", "dataset.min_count=1"),
    ):
        data = (f"dataset.path={two_files[0]}", *options, where)
        assert call("run", "-m", "lam=0.1,1", *FEW, "dataset=file", *data).exit_code == 0
    data = (f"dataset.path={two_files[1]}", "dataset.test=0.2", where)
    assert call("run", "lam=0.1", *FEW, "dataset=file", *data).exit_code == 0
    lines = call("score", tmp_path / "r").stdout.splitlines()
    headings = [line for line in lines if line.endswith(":")]
    assert sorted(headings) == [
        "the examples of file that were trained on (30):",
        "the test examples of file (30):",
        "the test examples of file (6):",  # one of each file
        "the test examples of file (6):",
        "the validation examples of file (9):",
    ]
    best = [line for line in lines if line.startswith("best on ")]
    assert len(best) == 4  # one run of the other file is the best of nothing
    assert all(any(line.startswith(f"best on {on}") for line in best) for on in headings)
    assert "fingerprint" not in "".join(lines)
    given = call("score", tmp_path / "r", "--data", two_files[1]).stdout.splitlines()
    assert given[0] == f"{two_files[1]} (30):"
    assert sum(line.startswith("best on ") for line in given) == 1
