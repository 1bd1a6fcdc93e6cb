"""Adult and abalone: their formats, what is kept, and runs on them."""

from dataclasses import replace

import numpy as np
import pytest
from linear import random_binary
from program import call, real_data, run_here
from raw_data import put_files

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.datasets import abalone, adult
from ssvm_bench.datasets.own_files import svmlight
from ssvm_bench.datasets.reading import ContentError

SOME = b"-1 3:1 11:1 \n+1 1:1 123:1 \n"
PEOPLE = SOME + b"-1 \n"
SNAILS = b"M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15\nI,0.1,0.2,0,0.4,0.5,0.6,0.7,7\n"


pytestmark = pytest.mark.usefixtures("own_cache")


def load(module, source="synthetic", **options):
    name = module.RAW.dataset
    return module.load(module.Config(name, name, source, **options))


def libsvm(raw):
    """Return the features of rows, counted from 1 to 4, and their labels."""
    rows = svmlight.parse(raw)
    return svmlight.counted(rows, zero_based=False, n_features=4), rows.y


def test_libsvm_rows_are_parsed():
    x, y = libsvm(b"3.5 1:2 4:-1e-3\n-2\n0 2:7 \r\n")
    assert y.tolist() == [3.5, -2.0, 0.0]
    assert x.toarray().tolist() == [[2.0, 0, 0, -0.001], [0, 0, 0, 0], [0, 7.0, 0, 0]]
    x, y = libsvm(b"1E+00 qid:7 1:.5 # qid:x\n+1 qid:7 2:1.e1#\n-.5 3:1\n")
    assert y.tolist() == [1.0, 1.0, -0.5]
    assert x.toarray().tolist() == [[0.5, 0, 0, 0], [0, 10.0, 0, 0], [0, 0, 1.0, 0]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1 0:1", "an index 0, and features are counted from 1"),
        (b"1 -2:1", "no row.*-2:1 is no index:value"),
        (b"1 2:1 1:1", "no row.*the index 1 comes after 2, and indices rise"),
        (b"1 2:1 2:1", "no row.*the index 2 comes after 2"),
        *((b"1 2:" + text, "a value that is not a finite") for text in (b"nan", b"inf", b"1e999")),
        (b"nan 2:1", "a label that is not a finite number"),
        (b"1 5:1", "an index above 4, the last one of 4 features"),
        (b"2:1", "no row.*it begins with 2:1, and not with a label"),
        (b"one 2:1", "no row.*the label one is no number"),
        (b"1,3 2:1", "no row.*several labels for one example, 1,3, are not supported"),
        (b"1,3", "no row.*tables with commas are not supported"),
        *((b"1 " + each + b" 2:1", "no row") for each in (b"qid:", b"qid:1.5", b"qid:x", b"qid")),
        (b"1 2:1 qid:3", "no row.*qid:3 is no index:value"),
        (b"1 " + b"9" * 20 + b":1", "no row.*the index 9+ is too large"),
        (b"1 2147483648:1", "no row.*the index 2147483648 is too large"),
        (b"1 2 : 0.5", "no row.*2 is no index:value"),
        (b"1 f1:0.5", "no row.*f1:0.5 is no index:value"),
        *((b"1 " + each, "no row") for each in (b"2", b"2:", b"a:1", b"2:1:1", b"1_0:1", b"1:1_0")),
        *((row, "no row") for row in (b"<html>", b"\xff\x00", b"1_0 1:1", b"0x1 1:1")),
    ],
)
def test_what_is_no_libsvm_row_is_named_with_its_line(line, message):
    with pytest.raises(ContentError, match=f"line 2.*{message}"):
        libsvm(b"1 1:1 2:1\n" + line + b"\n-1 3:1\n")
    with pytest.raises(ContentError, match="the file is empty"):
        libsvm(b"\n")


@pytest.mark.parametrize(
    ("module", "line", "message"),
    [
        (adult, b"2 1:1", "line 2: label 2, expected −1 or 1"),
        (adult, b"0 1:1", "line 2: label 0, expected −1 or 1"),
        (adult, b"1 1:0.5", "line 2: a value that is not 1"),
        (adult, b"1 124:1", "line 2: an index above 123"),
        (abalone, b"X,1,1,1,1,1,1,1,5", "line 2: sex 'X', expected M, F or I"),
        (abalone, b"M,1,1,1,1,1,1,1", "line 2: 8 columns, expected 9"),
        (abalone, b"M,1,,1,1,1,1,1,5", "line 2: 8 columns, expected 9"),
        (abalone, b"M,1,-1,1,1,1,1,1,5", "line 2: a measure below 0"),
        (abalone, b"M,1,nan,1,1,1,1,1,5", "line 2: nan in column 3, expected a number"),
        (abalone, b"M,1,1,1,1,1,1,1,5.5", "line 2: 5.5 rings, expected a whole number"),
        (abalone, b"M,1,1,1,1,1,1,1,0", "line 2: 0 rings, expected a whole number"),
    ],
)
def test_what_is_no_person_or_snail_is_named_with_its_line(module, line, message):
    whole = b"-1 1:1" if module is adult else SNAILS.split(b"\n")[0]
    with pytest.raises(ContentError, match=message):
        module.parse(b"\n".join((whole, line, whole, b"")))


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Files in the data folder with 3 people to train on and 2 held out."""
    return put_files(tmp_path, monkeypatch, adult, (PEOPLE, SOME), 3)


def test_people_to_train_on_and_held_out(people):
    dataset = load(adult, "real")
    expected = np.zeros((3, 123), np.uint8)
    expected[0, [2, 10]] = expected[1, [0, 122]] = 1
    assert (dataset.structure, dataset.n_labels, dataset.x.dtype) == ("independent", 2, np.uint8)
    (test,) = dataset.held_out.values()
    for data, n in ((dataset, 3), (test, 2)):
        assert np.array_equal(data.x.toarray(), expected[:n])
        assert data.y.tolist() == [0, 1, 0][:n]


@pytest.mark.parametrize(("bias", "dtype"), [(1.0, np.uint8), (0.5, np.float64)])
def test_a_bias_is_one_more_feature_of_all_examples(people, bias, dtype):
    plain, dataset = load(adult, "real"), load(adult, "real", bias=bias)
    for one, other in ((plain, dataset), (plain.held_out["test"], dataset.held_out["test"])):
        assert (other.n_features, other.x.dtype) == (124, dtype)
        assert np.array_equal(other.x.toarray()[:, :123], one.x.toarray())
        assert other.x.toarray()[:, 123].tolist() == [bias] * other.n
    snails = load(abalone, bias=2.0)
    assert snails.x.shape == (4177, 11)
    assert set(snails.x[:, -1]) == {2.0}
    with pytest.raises(ConfigError, match=r"dataset\.bias must be ≥ 0"):
        adult.Config("adult", "adult", bias=-1.0)


def test_a_broken_file_is_one_message(people):
    (people / "a9a.t.gz").write_bytes(b"-1 3:1\n+1 2:1 1:1\n")
    with pytest.raises(
        RunFailedError, match=r"a9a\.t\.gz: line 2 is no row.*indices rise"
    ) as failure:
        load(adult, "real")
    assert str(people) in str(failure.value)
    (people / "a9a.t.gz").write_bytes(b"-1 3:1\n+1 2:1\n")
    with pytest.raises(RunFailedError, match=r"what is in a9a\.t\.gz has the sha256"):
        load(adult, "real")
    assert load(adult, "real", trust=True).source == "real (altered)"
    part = adult.RAW.parts(adult.RAW.places()[0])[1]
    assert adult.RAW.address(part).endswith("/libsvmtools/datasets/binary/a9a.t")  # unpacked


def test_snails_are_parsed_and_scaled():
    arrays = abalone.parse(SNAILS)
    assert (arrays["x"].shape, arrays["x"][:, :3].tolist()) == ((2, 10), [[1, 0, 0], [0, 0, 1]])
    assert arrays["x"][:, 3:].tolist() == [[1, 1, 1, 1, -1, -1, -1], [-1, -1, -1, -1, 1, 1, 1]]
    assert arrays["y"].tolist() == [15.0, 7.0]
    same = abalone.parse(SNAILS[: SNAILS.index(b"\n")])  # nothing to scale by
    assert np.isfinite(same["x"]).all()


def run_on(name, tmp_path, *words):
    data = (f"dataset={name}", "dataset.source=synthetic", "dataset.n_samples=300")
    return run_here(tmp_path, *words, data=data)


def test_a_run_on_adult_tells_shares_of_wrong_signs(tmp_path):
    words = ("solver=mpbcfw_fast", "budget.gap_tol=0.01", "clock=work", "dataset.bias=1")
    outcome = run_on("adult", tmp_path, *words)
    w = np.load(outcome.folder / "weights.npz")["w"]
    assert w.shape == (124,)
    test = load(adult, bias=1.0).held_out["test"]
    wrong = np.mean((test.x @ w > 0) != test.y)
    assert outcome.summary["test_loss"] == pytest.approx(wrong, abs=1e-12)
    assert outcome.summary["test_loss"] < 0.22  # 0.24 have the rarer label


def test_the_larger_the_constant_the_larger_the_bias(tmp_path):
    biases = []
    for constant in (1.0, 100.0):
        until = ("budget.max_iterations=2000", "solver.tol=0.001", "clock=work", "lam=0.1")
        run = run_on("adult", tmp_path, "solver=dcd", f"dataset.bias={constant}", *until)
        assert run.summary["stop_reason"] == "converged"
        biases.append(abs(constant * np.load(run.folder / "weights.npz")["w"][-1]))
    assert biases[1] > 1.5 * biases[0]


def test_a_run_on_abalone_tells_mean_absolute_errors(tmp_path):
    outcome = run_on("abalone", tmp_path, "solver=bcfw", "budget.max_iterations=10")
    w = np.load(outcome.folder / "weights.npz")["w"]
    snails = load(abalone, n_samples=300)
    error = np.abs(snails.y - snails.x @ w).mean()
    assert outcome.summary["train_loss"] == pytest.approx(error, abs=1e-12)
    assert error < np.abs(snails.y - np.median(snails.y)).mean()


def test_prepare_describes_labels_and_targets(monkeypatch):
    monkeypatch.delenv("SSVM_BENCH_DATA", raising=False)
    for name, line in (("adult", "labels: -1 76.0%, 1 24.0%"), ("abalone", "targets: ")):
        result = call("data", "prepare", name, "--source", "synthetic")
        assert result.exit_code == 0, result.stderr
        assert line in result.stdout


def test_costs_and_margins_follow_their_examples_and_make_another_problem():
    plain, costs = random_binary(3, 2), np.array([1.0, 2.0, 3.0])
    data = replace(plain, costs=costs, margins=costs - 1)
    some = data.take(np.array([2, 0]))
    assert (some.costs.tolist(), some.margins.tolist()) == ([3.0, 1.0], [2.0, 0.0])
    variants = [plain, replace(plain, costs=costs), replace(plain, margins=costs), data]
    assert len({each.fingerprint for each in variants}) == 4


@real_data("adult/a9a.gz")
def test_real_adult():
    dataset = load(adult, "real")
    (test,) = dataset.held_out.values()
    expected = (32561, 7841, 451592), (16281, 3846, 225731)
    for data, (n, positive, nonzeros) in zip((dataset, test), expected, strict=True):
        assert (data.n, data.n_features, data.y.sum()) == (n, 123, positive)
        assert data.x.nnz == data.x.sum() == nonzeros
    assert np.flatnonzero(dataset.x[[0]].toarray()).tolist()[:3] == [2, 10, 13]


@real_data("abalone/abalone.data")
def test_real_abalone():
    dataset = load(abalone, "real")
    assert dataset.x.shape == (4177, 10)
    assert dataset.x[:, :3].sum(axis=0).tolist() == [1528, 1307, 1342]
    assert (dataset.y.min(), dataset.y.max()) == (1, 29)
    assert dataset.y.mean() == pytest.approx(9.934, abs=5e-4)
    assert (dataset.x[:, 5] == -1).sum() == 2  # of height 0
