"""Datasets that are exported to a file and read in chunks: nothing is lost, added or reordered."""

import dataclasses
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from scipy.sparse import csr_array

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import ORDERS
from ssvm_bench.datasets.base import Dataset, Images
from ssvm_bench.datasets.export import Export, Jitter, write
from ssvm_bench.datasets.stream import DataStream

N, ROWS = 23, 5  # examples, and those of a row group: the last one is short
LENGTHS = [1 + (7 * i) % 4 for i in range(N)]


def with_x(data, x):
    return replace(data, x=x)


def sparse(data, values=None):
    """Return the dataset with features of which two thirds are zero."""
    rng = np.random.default_rng(1)
    x = data.x if values is None else rng.choice(values, data.x.shape)
    return with_x(data, csr_array(np.where(rng.random(x.shape) < 1 / 3, x, 0).astype(x.dtype)))


def grey(data):
    bytes_ = np.random.default_rng(1).integers(0, 256, data.x.shape).astype(np.float32)
    return with_x(data, bytes_ / np.float32(255))


def with_others(data):
    """Return the dataset with folds, and two kinds of held-out examples."""
    data = replace(data, fold=np.arange(data.n) % 3)
    held_out = {"validation": data.take(np.arange(7)), "test": data.take(np.arange(4, 6))}
    return data.derived(held_out=held_out)


CHAINS, GRAPHS = random_chains(LENGTHS, 3, 4), random_graphs(LENGTHS, 4, 3)
DIGITS = random_multiclass(N, 3, 6)
DATA = {
    "digits": DIGITS,
    "chains": CHAINS,
    "graphs": GRAPHS,
    "edge features": GRAPHS.derived(edge_x=np.random.default_rng(0).random((len(GRAPHS.edges), 2))),
    "others": with_others(CHAINS),
    "graphs with others": with_others(sparse(GRAPHS)),
    "single": with_x(DIGITS, DIGITS.x.astype(np.float32)),
    "bytes": with_x(DIGITS, (DIGITS.x > 0).astype(np.uint8)),
    "grey": grey(DIGITS),
    "sparse grey": sparse(grey(DIGITS)),
    "sparse bytes": sparse(DIGITS, np.arange(256, dtype=np.uint8)),
    "larger grey": sparse(grey(random_multiclass(N, 3, 28))),
    "decimals": with_x(DIGITS, np.round(np.tanh(DIGITS.x), 3)),
    "sparse": sparse(CHAINS),
    "thin": with_x(CHAINS, csr_array(0.3337 * np.eye(CHAINS.y.size, 75)[::-1])),
    "few": with_x(DIGITS, csr_array(np.eye(N, 40))),
    "wide": with_x(DIGITS, csr_array((np.ones(N), ([*range(N)], [70000] * N)), (N, 70001))),
}
STORED = {"digits": ("<f8", "dense"), "single": ("<f4", "dense"), "decimals": ("<i2", "dense")}
STORED |= {"sparse": ("<f8", "bits"), "thin": ("<f8", "rows")}
STORED |= dict.fromkeys(("bytes", "grey"), ("|u1", "dense"))
STORED |= dict.fromkeys(("sparse grey", "sparse bytes", "larger grey"), ("|u1", "bits"))
STORED |= dict.fromkeys(("few", "wide"), ("|u1", "rows"))


def exported(data, path, rows=ROWS, images=None, **options):
    d = data.n_labels * data.n_features
    made = {"by": "a test"}
    write(data, path, Export(**options), images, rows=rows, oracle="multiclass", d=d, made=made)
    return DataStream(path)


def joined(chunks):
    """Return all examples of some chunks: their rows of features, labels and edges by example."""
    found = []
    for chunk in chunks:
        x = chunk.x if isinstance(chunk.x, np.ndarray) else chunk.x.toarray()
        for i in range(chunk.n):
            here = slice(*chunk.offsets[i : i + 2])
            of = slice(None) if chunk.edges is None else slice(*chunk.edge_offsets[i : i + 2])
            arrays = (chunk.edges, chunk.edge_x)
            edges = [None if array is None else array[of].tolist() for array in arrays]
            fold = None if chunk.fold is None else int(chunk.fold[i])
            found.append((x[here].tobytes(), chunk.y[here].tolist(), edges, fold))
    return found


def assert_same(found, data):
    """Check that two datasets have the same arrays of the same types."""
    for field in dataclasses.fields(Dataset):
        ours, theirs = getattr(found, field.name), getattr(data, field.name)
        if field.name == "x" and not isinstance(theirs, np.ndarray):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            for name in ("data", "indices", "indptr"):
                assert np.array_equal(getattr(ours, name), getattr(theirs, name))
        elif isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)
        elif field.name not in ("name", "held_out"):
            assert ours == theirs
    assert found.fingerprint == data.fingerprint


@pytest.mark.parametrize("name", DATA)
def test_what_is_exported_comes_back(name, tmp_path, monkeypatch):
    data = DATA[name]
    stream = exported(data, tmp_path / "a.parquet")
    with monkeypatch.context() as patched:  # all of this is known before a row is read
        patched.setattr(pq.ParquetFile, "read_row_group", None)
        assert (stream.n, stream.n_labels, stream.n_features) == (N, data.n_labels, data.x.shape[1])
        assert (stream.structure, stream.source) == (data.structure, "synthetic")
        assert stream.d == data.n_labels * data.n_features
        assert stream.header.oracle == "multiclass"
        made = stream.header.made
        assert (made["by"], made["fingerprint"], made["repeat"]) == ("a test", data.fingerprint, 1)
        assert len(stream.fingerprint) == 16
    (whole,) = stream.chunks(N)
    assert_same(whole, data)
    assert list(stream.held_out) == list(data.held_out)
    for split, examples in data.held_out.items():
        assert_same(stream.held_out[split], examples)
    encoding = stream.header.encoding
    assert (encoding.stored, encoding.form) == STORED.get(name, (encoding.stored, encoding.form))


@pytest.mark.parametrize("name", ["sparse grey", "graphs with others", "thin", "chains"])
@pytest.mark.parametrize("rows", [1, 2, 7, N, 100])
def test_chunks_of_any_size_have_the_same_examples_in_the_same_order(name, rows, tmp_path):
    data = DATA[name]
    chunks = list(exported(data, tmp_path / "a.parquet").chunks(rows))
    sizes = [min(rows, N - begin) for begin in range(0, N, rows)]
    assert [chunk.n for chunk in chunks] == sizes
    assert joined(chunks) == joined([data])
    assert joined(chunks) == joined(data.chunks(rows))


def test_numbers_of_three_decimals_take_two_bytes_whatever_the_sign_of_0(tmp_path):
    x = np.round(np.tanh(DIGITS.x), 3)
    x[:3] = -0.0
    stream = exported(with_x(DIGITS, x), tmp_path / "a.parquet")
    assert (stream.header.encoding.stored, stream.header.encoding.scale) == ("<i2", 1000)
    assert np.array_equal(next(stream.chunks(N)).x, x)


def test_the_first_examples_are_those_of_the_file(tmp_path):
    data, path = DATA["others"], tmp_path / "a.parquet"
    whole = exported(data, path)
    for n in (1, ROWS, ROWS + 1, N):
        first, again = (DataStream(path, n_samples=n) for _ in range(2))
        assert joined(first.chunks(3)) == joined([data])[:n]
        assert first.fingerprint == again.fingerprint
        assert (first.fingerprint == whole.fingerprint) == (n == N)
        assert first.held_out.keys() == data.held_out.keys()


def test_the_fingerprint_is_that_of_the_examples(tmp_path):
    path, data = tmp_path / "a.parquet", DATA["sparse grey"]
    prints = {exported(data, path, rows).fingerprint for rows in (1, 5, N)}
    assert len(prints) == 1
    other = data.x.copy()
    other.data[-1] = 1 - other.data[-1]
    codes = csr_array(np.rint(255 * data.x))  # the same ones
    labels = np.where(np.arange(N) == N - 1, 2 - data.y, data.y).astype(np.uint8)
    changed = [with_x(data, x) for x in (other, data.x.toarray(), codes)]
    prints |= {exported(each, path).fingerprint for each in (*changed, replace(data, y=labels))}
    prints.add(exported(data, path, order="shuffled").fingerprint)
    assert len(prints) == 6


def test_repeats_come_in_the_order_that_is_asked_for(tmp_path):
    data, path = with_x(DIGITS, np.arange(N * 6.0).reshape(N, 6)), tmp_path / "a.parquet"
    each = joined([data])

    def examples(order, seed=0):
        stream = exported(data, path, order=order, repeat=3, seed=seed)
        assert stream.n == 3 * N
        return joined(stream.chunks(4))

    assert examples("dataset") == each * 3
    assert examples("neighbours") == [example for example in each for _ in range(3)]
    shuffled = examples("shuffled")
    for r in range(3):  # each of them once, before any comes again
        assert sorted(shuffled[r * N : (r + 1) * N]) == sorted(each)
    assert shuffled[:N] != shuffled[N : 2 * N] != each
    assert examples("shuffled") == shuffled != examples("shuffled", seed=1)


@pytest.mark.parametrize("order", ORDERS)
def test_deformations_do_not_depend_on_order_or_row_groups(order, tmp_path):
    data, path = DATA["sparse grey"], tmp_path / "a.parquet"
    options = {"images": Images((2, 3), 0.0), "jitter": Jitter(shift=1, elastic=0.5), "repeat": 4}

    def examples(rows, **others):
        return joined(exported(data, path, rows, **options, **others).chunks(N))

    found = examples(ROWS, order=order)
    assert found == examples(7, order=order)
    assert sorted(found) == sorted(examples(ROWS))
    assert len(set(map(str, found))) > 3.5 * N  # nearly all are different
    assert found != examples(ROWS, order=order, seed=1)
    options["jitter"] = Jitter()
    assert sorted(examples(ROWS, order=order)) == sorted(4 * joined([data]))


def test_deformed_images_have_the_type_and_the_values_of_the_others(tmp_path):
    for name in ("decimals", "sparse grey", "grey", "digits", "sparse bytes"):
        data = with_others(DATA[name])
        options = {"images": Images((2, 3), 0.0), "jitter": Jitter(shift=0.7, rotation=20)}
        stream = exported(data, tmp_path / "a.parquet", **options)
        (chunk,) = stream.chunks(N)
        assert (chunk.x.dtype, type(chunk.x)) == (data.x.dtype, type(data.x))
        assert np.array_equal(chunk.y, data.y)
        assert_same(stream.held_out["test"], data.held_out["test"])  # as it was
        values = chunk.x if isinstance(chunk.x, np.ndarray) else chunk.x.data
        if steps := {"decimals": 1000, "sparse grey": 255, "grey": 255}.get(name):
            step = data.x.dtype.type(steps)
            assert np.array_equal(values, np.rint(values * step) / step)
    with pytest.raises(ConfigError, match="sparse, and no k or k/255"):
        exported(sparse(DIGITS), tmp_path / "a.parquet", **options)


def peak(stream, rows):
    """Return the most bytes that Arrow has while a stream is read; check that chunks are let go."""
    before, most, chunks = pa.total_allocated_bytes(), 0, []
    for chunk in stream.chunks(rows):
        chunks.append(weakref.ref(chunk))
        most = max(most, pa.total_allocated_bytes() - before)
        assert sum(each() is not None for each in chunks) <= 2  # the last one, while this is read
    return most


def test_memory_does_not_grow_with_the_length(tmp_path):
    data = sparse(grey(random_multiclass(200, 3, 500)))
    short = exported(data, tmp_path / "short.parquet", 100, repeat=5)
    long = exported(data, tmp_path / "long.parquet", 100, repeat=40)
    for rows in (30, 250):
        assert 100 * 500 / 3 < peak(long, rows) < 1.05 * peak(short, rows) + 20000


def test_a_file_is_read_with_pandas(tmp_path):
    data = DATA["graphs with others"]
    about = exported(data, tmp_path / "a.parquet").header
    frame = pd.read_parquet(tmp_path / "a.parquet")
    frame = frame[frame["split"] == "train"]
    read = {k: [np.frombuffer(cell, about.dtypes[k]) for cell in frame[k]] for k in ("x", "y")}
    assert np.array_equal(np.concatenate(read["x"]), data.x.data)
    assert np.array_equal(np.concatenate(read["y"]), data.y)
    assert frame["fold"].tolist() == data.fold.tolist()
