"""What version 1.0.0 wrote is read: pickled estimators, run folders; or refused: checkpoints.

``made_by_1_0`` has its files, on simulated data. (`test_hashes` reads its stored traces.)
"""

import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from program import run_here

from ssvm_bench import load_runs
from ssvm_bench.results.trace import read_trace

MADE = Path(__file__).with_name("made_by_1_0")
DATA = ("dataset=file", f"dataset.path={MADE / 'examples.svmlight'}", "solver=mpbcfw", "clock=work")
LIMIT = "budget.max_iterations=6"


@pytest.fixture
def results(tmp_path):
    """Return a results folder with its runs: one has finished, one was interrupted."""
    shutil.copytree(MADE / "runs", tmp_path / "results" / "runs")
    return tmp_path / "results"


def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other versions of scikit-learn
        return pickle.loads((MADE / "models.pickle").read_bytes())


@pytest.mark.parametrize("name", ["chain", "names", "kernel"])
def test_a_pickled_estimator_predicts_the_same(name):
    model, X, _, expected = models()[name]
    for one, other in zip(model.predict(X), expected, strict=True):
        assert_array_equal(one, other)
    assert np.isfinite(model.history_["primal"]).all()


def test_a_pickled_estimator_trains_on_from_where_it_was():
    model, X, y, _ = models()["chain"]
    before = model.history_["dual"].iloc[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as that it begins anew
        model.set_params(gap_tol=0.01).fit(X, y)
    assert model.history_["dual"].iloc[0] == pytest.approx(before)


def test_a_finished_run_is_found_again(results):
    outcome = run_here(results, LIMIT, data=DATA)
    assert outcome.status == "skipped"
    assert len(load_runs(results)) == 1
    assert read_trace(outcome.folder).frame["iteration"].iloc[-1] == 6
    shorter = run_here(results, "budget.max_iterations=3", data=DATA)
    assert (shorter.status, shorter.summary["iteration"]) == ("skipped", 3)


def test_an_interrupted_run_says_that_it_begins_anew_and_ends_the_same(results, tmp_path, caplog):
    outcome = run_here(results, LIMIT, "seed=1", data=DATA)
    assert "is left aside: it was written by another version of the program." in caplog.text
    again = read_trace(outcome.folder).frame
    other = read_trace(run_here(tmp_path / "other", LIMIT, "seed=1", data=DATA).folder).frame
    for column in ("iteration", "primal", "dual", "oracle_calls", "approx_calls"):
        assert_array_equal(again[column], other[column])
    assert not outcome.folder.with_name("seed=1.partial").exists()
