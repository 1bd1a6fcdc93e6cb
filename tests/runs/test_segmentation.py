"""Whole runs on images: what the traces say, and that the two methods compare as in the paper."""

from dataclasses import replace

import numpy as np
import pytest
from program import call, error_of, real_data, run_here

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import weizmann
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import components

N_PICTURES = 40
pytestmark = pytest.mark.usefixtures("few_pictures")
SMALL = ("dataset.source=synthetic", "dataset.n_samples=12", "budget.max_iterations=3")
DATASETS = {"weizmann": "mincut", "horseseg": "mincut", "stanford": "alpha_expansion"}


def frame_of(tmp_path, *overrides, data):
    outcome = run_here(tmp_path, *overrides, data=data)
    return read_trace(outcome.folder).frame, outcome


def stand_in(name):
    return (f"dataset={name}", *SMALL)


@pytest.mark.parametrize("name", DATASETS)
def test_a_run_on_images(tmp_path, name):
    frame, outcome = frame_of(tmp_path, data=stand_in(name))
    (config,) = compose_runs(stand_in(name))
    assert config.oracle.name == DATASETS[name]
    assert frame["dual"].is_monotonic_increasing
    # α-expansion is not exact: the primal may be too low, but not before anything is learned
    rows = frame if name != "stanford" else frame.iloc[:2]
    assert (rows["gap"] > 0).all()
    assert frame["oracle_calls"].tolist() == [0, 12, 24, 36]
    assert not {"fixed_share"} & set(frame)

    dataset = components.load_dataset(config.dataset)
    oracle = components.build_oracle(config.oracle, config.dataset)
    w = np.load(outcome.folder / "weights.npz")["w"]
    assert w.shape == (649 * dataset.n_labels,)
    wrong = [np.mean(oracle.predict(w, i) != oracle.truth(i)) for i in range(dataset.n)]
    assert outcome.summary["train_loss"] == pytest.approx(np.mean(wrong), abs=1e-12)
    # at w = 0 all costs are the loss and the cut edges of the ground truths
    cuts = [-oracle.fixed_score(i, oracle.truth(i)) for i in range(dataset.n)]
    assert np.mean(cuts) < frame["primal"][0] <= 1 + np.mean(cuts)


def test_histograms_are_shares_or_their_roots():
    def x(histograms):
        overrides = (*stand_in("weizmann"), f"dataset.histograms={histograms}")
        return components.load_dataset(compose_runs(overrides)[0].dataset).x

    root, shares = x("root"), x("shares")
    np.testing.assert_array_equal(root.data**2, shares.data)
    np.testing.assert_allclose(shares.sum(axis=1), 3.0, rtol=1e-5)  # of three histograms


def test_the_share_of_fixed_labels_is_a_column_of_the_trace(tmp_path):
    option = "oracle.partial_optimality=true"
    frame, outcome = frame_of(tmp_path, option, data=stand_in("stanford"))
    assert list(frame)[-1] == "fixed_share"
    assert frame["fixed_share"].between(0, 1).all()
    # at w = 0 it is only the loss that tells labels apart, and neighbours outweigh it
    assert frame["fixed_share"][0] == 0 < frame["fixed_share"].iloc[-1]
    assert outcome.summary["fixed_share"] == frame["fixed_share"].iloc[-1]


def test_a_warm_started_oracle_is_another_one_in_every_run(tmp_path):
    options, data = ("oracle.warm_start=true", "clock=work"), stand_in("stanford")
    first, again = (frame_of(tmp_path / name, *options, data=data)[0] for name in "12")
    assert first["primal"].tolist() == again["primal"].tolist()


def ahead(tmp_path, data, iterations):
    """Check that MP-BCFW is ahead of BCFW after as many calls, and after as much time."""
    data = (*data, "clock=work", f"budget.max_iterations={iterations}")
    solvers = ("solver=bcfw", "solver=mpbcfw")
    plain, multi = (frame_of(tmp_path, name, data=data)[0] for name in solvers)
    assert multi["oracle_calls"].tolist() == plain["oracle_calls"].tolist()
    assert (multi["dual"][1:] > plain["dual"][1:]).all()
    assert multi["gap"].iloc[-1] < 0.5 * plain["gap"].iloc[-1]
    # what BCFW has reached at its end, MP-BCFW has reached before, on the clock of counted work
    earlier = multi["time"] <= plain["time"].iloc[-1]
    assert multi["dual"][earlier].max() > plain["dual"].iloc[-1]


@pytest.mark.parametrize("name", DATASETS)
def test_mpbcfw_is_ahead_on_the_stand_ins(tmp_path, name):
    ahead(tmp_path, (f"dataset={name}", "dataset.source=synthetic"), 8)


@real_data("weizmann/weizmann_horse_db.tar.gz")
def test_mpbcfw_is_ahead_on_the_real_horses(tmp_path, monkeypatch):
    """On the first of them: to prepare all takes a minute."""

    def first(path):
        found = weizmann.parse(path)
        return replace(found, names=found.names[:40], encoded=found.encoded[:40])

    monkeypatch.setattr(weizmann, "RAW", replace(weizmann.RAW, open=first, sha256={}, n=40))
    ahead(tmp_path, ("dataset=weizmann", "dataset.source=real"), 12)


def test_an_oracle_for_two_labels_refuses_nine(tmp_path):
    result = call("run", *stand_in("stanford"), "oracle=mincut", f"results_dir={tmp_path}")
    said = error_of(result, 2)
    assert "oracle=mincut does not fit dataset=stanford: it handles two labels" in said
