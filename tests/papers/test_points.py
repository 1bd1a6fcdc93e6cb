"""Sets of points: the SSL benchmark, the moons, bad input, and runs from the command line."""

import functools
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from points import cliques, clouds, points, posed
from program import USPS, call, error_of, real_data
from scipy.io import savemat

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import registry, validation
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import export
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.papers.transduction.datasets import moons, ssl
from ssvm_bench.results.trace import read_run

SETS = ("ssl_digit1", "ssl_usps", "ssl_bci", "ssl_g241c", "ssl_g241n")
DIGITS = ("dataset=ssl_digit1", "dataset.source=synthetic")
OURS = "solver=dcadmm"


pytestmark = pytest.mark.usefixtures("own_cache")


@functools.cache
def load(name, source="synthetic", **options):
    module = registry.module("dataset", name)
    return module.load(module.Config(name, name, source, **options))


@pytest.mark.parametrize("name", SETS)
def test_stand_ins_have_the_sizes_and_classes_of_the_real_sets(name):
    data = load(name)
    assert data.n == registry.module("dataset", name).RAW.n
    assert data.x.shape[1] == (117 if name == "ssl_bci" else 241)
    assert data.structure == "points"
    assert data.y.mean() == pytest.approx(0.2 if name == "ssl_usps" else 0.5, abs=0.01)


def test_splits_are_different_points_of_both_classes():
    splits = [(labeled, split) for labeled in (10, 100) for split in (0, 5, 11)]
    made = [load("ssl_g241c", labeled=labeled, split=split) for labeled, split in splits]
    for data, (labeled, _) in zip(made, splits, strict=True):
        assert data.labeled.sum() == labeled
        assert set(data.y[data.labeled]) == {0, 1}
    assert len({data.fingerprint for data in made}) == 6  # what is told is part of the data


@pytest.mark.parametrize(("option", "value"), [("labeled", 50), ("split", 12), ("split", -1)])
def test_splits_that_there_are_not(option, value):
    with pytest.raises(ConfigError, match=rf"dataset\.{option}"):
        load("ssl_bci", **{option: value})


def matlab(**arrays):
    file = io.BytesIO()
    savemat(file, arrays)
    return file.getvalue()


def test_files_of_the_benchmark_are_parsed_and_put_into_a_fixed_order():
    x, y = np.arange(24.0).reshape(8, 3), np.array([[-1], [1]] * 4, np.int16)
    np.testing.assert_array_equal(ssl.parse(matlab(X=x, y=y)), np.hstack((x, y)))
    assert ssl.parse(matlab(idxLabs=np.array([[1, 8]], np.uint16))).tolist() == [[1, 8]]
    for content in (b"MATLAB 5.0 MAT-file, but no more", matlab(X=x)):
        with pytest.raises(ContentError, match="not a MATLAB file"):
            ssl.parse(content)
    # the classes of g241c are sorted in its file, which must not be seen in the dataset
    sorted_ = np.diff(load("ssl_g241c").y.astype(int))
    assert np.count_nonzero(sorted_) > 500


ONES = {"ssl_digit1": 734, "ssl_usps": 300, "ssl_bci": 200, "ssl_g241c": 750, "ssl_g241n": 748}


@real_data("ssl/SSL,set=1,data.mat")
@pytest.mark.parametrize("name", SETS)
def test_real_sets(name):
    data = load(name, "real", labeled=100, split=3)
    assert (data.source, data.labeled.sum(), data.y.sum()) == ("real", 100, ONES[name])
    assert np.count_nonzero(np.diff(data.y.astype(int))) > data.n / 5
    as_in_file = load(name, "real", labeled=100, split=3, order="file")
    assert as_in_file.y.sum() == ONES[name]
    assert as_in_file.x[as_in_file.labeled].sum() == pytest.approx(data.x[data.labeled].sum())
    assert (np.count_nonzero(np.diff(as_in_file.y.astype(int))) == 1) == (name == "ssl_g241c")


def test_moons():
    made = [moons.load(moons.Config("moons", "moons", draw=draw)) for draw in (0, 0, 1)]
    assert made[0].fingerprint == made[1].fingerprint != made[2].fingerprint
    data = made[0]
    assert np.bincount(data.y).tolist() == [150] * 4
    assert not data.labeled.any()
    assert len(data.cliques) == 25
    assert posed(data).energy.value(data.y.astype(int)) == 0
    for c in range(25):
        of = data.cliques.points(c)
        counts = np.bincount(data.y[of], minlength=4)
        assert of.size == np.unique(of).size == 25
        assert (data.cliques.high[c] - counts == 3).all()
        assert (counts - data.cliques.low[c] == np.minimum(counts, 3)).all()


@pytest.mark.parametrize("asked", ["auto", "real", "synthetic"])
def test_moons_are_drawn_whatever_is_asked_for(asked):
    (config,) = compose_runs(["dataset=moons", OURS, f"dataset.source={asked}"])
    assert config.sources() == (moons.load(config.dataset).source,) == ("drawn",)
    assert config.with_source("drawn") == config
    stored = validation.build(moons.Config, config.resolved()["dataset"], "dataset")
    assert stored == config.dataset


def test_other_sources_are_refused():
    message = r"source=sun is not known.* Valid: auto, real, synthetic"
    with pytest.raises(ConfigError, match=message):
        moons.Config("moons", "moons", "sun")
    with pytest.raises(ConfigError, match="source=drawn is not known"):  # real data exist
        ssl.SplitConfig("ssl_digit1", "ssl_digit1", "drawn")


def test_points_are_not_exported(tmp_path):
    message = "tiny cannot be exported: files of examples do not record labeled, cliques"
    with pytest.raises(ConfigError, match=message):
        export.write(clouds(6), tmp_path / "tiny.parquet", export.Export())
    assert not any(tmp_path.iterdir())


def test_taking_points_keeps_the_cliques_and_pairs_that_are_whole():
    more = {"cliques": cliques([[0, 2, 4], [1, 3]], [[1, 0], [0, 1]], [[3, 3], [2, 2]])}
    more |= {"pairs": np.array([[0, 1], [2, 4], [3, 5]]), "weights": np.array([1.0, 2.0, 3.0])}
    data = points(np.arange(6.0)[:, None], [0, 1, 0, 1, 0, 1], [0, 1], **more)
    taken = data.take(np.array([4, 2, 0]))
    assert taken.labeled.tolist() == [False, False, True]
    assert taken.cliques.points(0).tolist() == [2, 1, 0]
    assert taken.cliques.low.tolist() == [[1, 0]]
    assert (taken.pairs.tolist(), taken.weights.tolist()) == ([[0, 1]], [2.0])
    head = data.head(2)
    assert not head.labeled.any()
    assert (head.cliques, len(head.pairs)) == (None, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"labeled": np.ones(3, bool)}, r"labeled must be .* \(4,\), got bool of shape \(3,\)"),
        ({"labeled": np.ones(4)}, "labeled must be an array of bool"),
        ({"labeled": np.array([True, False, True, False])}, "no labeled point has the label 1"),
        ({"x": np.array([[0.0], [np.nan], [0.0], [0.0]])}, "a feature .* is nan"),
        ({"cliques": cliques([[0, 4]], [[0, 0]], [[2, 2]])}, "clique 0 has points from 0 to 4"),
        ({"cliques": cliques([[1, 1]], [[0, 0]], [[2, 2]])}, "a point twice"),
        ({"cliques": cliques([[0, 1]], [[2, 0]], [[1, 2]])}, "contradict each other"),
        ({"cliques": cliques([[0, 1]], [[0]], [[2]])}, r"must be .* of shape \(1, 2\), got"),
        ({"pairs": np.array([[1, 0]]), "weights": np.ones(1)}, "k < l"),
        ({"pairs": np.array([[0, 1]]), "weights": -np.ones(1)}, "weights of pair 0 is -1, and"),
        ({"pairs": np.array([[0, 1], [0, 1]]), "weights": np.ones(2)}, "twice"),
        ({"pairs": np.array([[0, 1]]), "weights": np.ones(2)}, r"weights must be .* shape \(1,\)"),
    ],
)
def test_points_that_contradict_themselves_are_refused(wrong, message):
    data = points(np.zeros((4, 1)), [0, 1, 0, 1])
    with pytest.raises(RunFailedError, match=message):
        replace(data, **wrong)


def test_a_subset_without_a_labeled_point_of_a_class_is_refused():
    data = clouds(10)
    with pytest.raises(RunFailedError, match=r"no labeled point has the label .*n_samples"):
        posed(data.take(np.array([0, 4, 5, 6])))


def test_a_run_keeps_accuracy_labels_and_columns(tmp_path):
    options = ("budget.max_iterations=3", "clock=work", f"results_dir={tmp_path}")
    assert call("run", *DIGITS, OURS, *options).exit_code == 0
    (folder,) = tmp_path.rglob("seed=0")
    trace = read_run(folder)
    assert list(trace.frame)[13:] == [
        *("accuracy", "accuracy_all", "augmented_lagrangian", "residual", "rho", "condition_18"),
        *("label_changes", "label_time", "supervised_gap"),
    ]
    assert trace.frame[["dual", "gap"]].isna().all(axis=None)
    assert trace.frame["oracle_calls"].tolist() == [1, 2, 3, 4]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["accuracy"] == trace["accuracy"][-1]
    assert summary["test_loss"] == pytest.approx(1 - summary["accuracy"])
    assert trace.metadata["lam"] == 0.05
    assert trace.metadata["objective"] == "softmax, linear, scaling none, balance 0.1"
    data = load("ssl_digit1")
    with np.load(folder / "weights.npz") as stored:
        assert stored["w"].shape == (2 * 241,)
        right = (stored["y"] == data.y)[~data.labeled]
    assert right.mean() == pytest.approx(summary["accuracy"])
    assert summary["accuracy_all"] == pytest.approx((right.sum() + 10) / data.n)
    # under counted work, a second run is the same
    call("run", *DIGITS, OURS, *options, "force=true")
    again, timed = read_run(folder).frame, ["cpu_time", "eval_time"]
    assert again.drop(columns=timed).equals(trace.frame.drop(columns=timed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*DIGITS, OURS, "lam=0.1"), "lam, path and prior mean nothing .* oracle.nu"),
        ((*DIGITS, "solver=bcfw"), "solver=bcfw solves problems of the family structural SVM"),
        ((*USPS, OURS), "oracle=multiclass makes one of the family structural SVM"),
        ((*USPS, OURS, "oracle=transduction"), "points labels"),
        ((*DIGITS, "oracle=mincut", "solver=bcfw"), "handles graph labels"),
        ((*DIGITS, OURS, "oracle.loss=hinge"), "oracle.loss=hinge is not known"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(tmp_path, options, message):
    result = call("run", *options, f"results_dir={tmp_path}")
    assert re.search(message, error_of(result, 2))
