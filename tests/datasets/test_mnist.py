"""MNIST: the idx format, what is kept, and the held-out halves."""

import gzip

import numpy as np
import pytest
from program import config_of, real_data, run_here
from raw_data import put_files

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.datasets import mnist
from ssvm_bench.datasets.reading import ContentError

SYNTHETIC = ("dataset=mnist", "dataset.source=synthetic", "dataset.n_samples=200")


pytestmark = pytest.mark.usefixtures("own_cache")


def load(source="synthetic", **options):
    return mnist.load(mnist.Config("mnist", "mnist", source, **options))


def idx(array):
    """Return the bytes of an idx file, written down from its definition."""
    header = bytes([0, 0, 8, array.ndim])
    return header + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


def digits(n, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 28, 28)) * (rng.random((n, 28, 28)) < 0.2)
    return images.astype(np.uint8), rng.integers(0, 10, n).astype(np.uint8)


def test_idx_files_are_parsed():
    images, labels = digits(3)
    for array in (images, labels, images[:0], np.zeros((2, 3, 1, 2), np.uint8)):
        assert np.array_equal(mnist.parse(idx(array)), array)
        assert mnist.parse(idx(array)).shape == array.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: b"", "not an idx file of bytes: it begins with b''"),
        (lambda raw: b"<html>" + raw, "not an idx file of bytes: it begins with b'<htm'"),
        (lambda raw: b"\0\0\x0d" + raw[3:], "not an idx file of bytes"),
        (lambda raw: raw[:3], "not an idx file of bytes"),
        (lambda raw: raw[:10], "not an idx file of bytes"),
        (lambda raw: raw[:-1], "number of entries: found 2351, expected 2352"),
        (lambda raw: raw + b"1", "number of entries: found 2353, expected 2352"),
        (lambda raw: raw[:4] + b"\xff" * 12, "number of entries: found 0, expected 792281"),
    ],
)
def test_what_is_no_idx_file_is_refused(change, message):
    with pytest.raises(ContentError, match=message):
        mnist.parse(change(idx(digits(3)[0])))


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Files in the data folder with 6 digits to train on and 5 held out; return all images."""
    arrays = [*digits(6), *digits(5, 1)]
    put_files(tmp_path, monkeypatch, mnist, map(idx, arrays), 6)
    return np.concatenate(arrays[::2]).reshape(11, 784), np.concatenate(arrays[1::2])


@pytest.mark.parametrize("pixels", ["unit", "raw"])
def test_digits_to_train_on_and_two_halves_to_test_with(small, pixels):
    x, y = small
    dataset = load("real", pixels=pixels)
    assert (dataset.structure, dataset.n_labels) == ("independent", 10)
    parts = {"train": slice(6), "test": slice(6, None, 2), "validation": slice(7, None, 2)}
    assert dataset.held_out.keys() == {"test", "validation"}
    expected = x / np.float32(255) if pixels == "unit" else x
    for name, data in {"train": dataset, **dataset.held_out}.items():
        assert np.array_equal(data.y, y[parts[name]])
        assert data.x.dtype == expected.dtype
        assert np.array_equal(data.x.toarray(), expected[parts[name]])
        assert data.x.nnz == np.count_nonzero(x[parts[name]])  # zeros are not kept
    fewer = load("real", pixels=pixels, n_samples=4)
    assert (fewer.n, fewer.held_out["validation"].n, fewer.held_out["test"].n) == (4, 2, 3)


def test_another_file_is_one_message(small, tmp_path):
    path = tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    raw = gzip.decompress(path.read_bytes())
    path.write_bytes(raw)  # as a browser leaves it
    assert load("auto").source == "real"
    path.write_bytes(raw[:-1] + bytes([(raw[-1] + 1) % 10]))
    with pytest.raises(RunFailedError, match=f"what is in {path.name} has the sha256") as failure:
        load("auto")
    assert f"{path.parent} cannot be used as the mnist data" in str(failure.value)
    assert load("auto", trust=True).source == "real (altered)"
    path.write_bytes((path.parent / "train-labels-idx1-ubyte.gz").read_bytes())
    with pytest.raises(RunFailedError, match="the test files have arrays of shapes"):
        load("auto", trust=True)


def test_a_run_learns_and_tells_all_losses(tmp_path):
    outcome = run_here(tmp_path, "solver=bcfw", "budget.max_iterations=5", data=SYNTHETIC)
    raw = config_of(tmp_path, "solver=bcfw", "dataset.pixels=raw", data=SYNTHETIC)
    assert raw.with_source("synthetic").folder.parent != outcome.folder.parent  # another problem
    w = np.load(outcome.folder / "weights.npz")["w"]
    assert w.shape == (7840,)
    dataset = load(n_samples=200)
    for name, data in {"train": dataset, **dataset.held_out}.items():
        wrong = np.mean((data.x @ w.reshape(10, 784).T).argmax(axis=1) != data.y)
        assert outcome.summary[f"{name}_loss"] == pytest.approx(wrong, abs=1e-12)
    assert outcome.summary["train_loss"] < outcome.summary["test_loss"] < 0.5  # 0.9 by chance


@real_data("mnist/train-images-idx3-ubyte.gz")
def test_real_mnist():
    dataset = load("real", pixels="raw")
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(dataset.y).tolist() == counts
    assert dataset.y[:5].tolist() == [5, 0, 4, 1, 9]
    validation, test = dataset.held_out["validation"], dataset.held_out["test"]
    assert (validation.n, test.n) == (5000, 5000)
    assert test.y[:5].tolist() == [7, 1, 4, 4, 5]
    assert validation.y[:5].tolist() == [2, 0, 1, 9, 9]
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(np.concatenate((validation.y, test.y))).tolist() == counts
    assert dataset.x.nnz == np.count_nonzero(dataset.x.data) < 0.2 * 60000 * 784
