"""Files of examples that are none, are damaged, or lie; and what a call with them can get wrong."""

import dataclasses
import errno
import hashlib
import json
import os
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from program import call, error_of
from scipy.sparse import csr_array

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.datasets import export, stream
from ssvm_bench.datasets.stream import DataStream, Entries

N, ROWS = 12, 4
CHAINS = random_chains([3] * N, 3, 4)
ABOUT = {"oracle": "viterbi", "d": 21}


@pytest.fixture
def path(tmp_path):
    """Return a file of twelve chains in three row groups."""
    made = tmp_path / "a.parquet"
    export.write(CHAINS, made, export.Export(), rows=ROWS, **ABOUT)
    return made


def failure(path, rows=N):
    """Return the message that reading a file ends with."""
    with pytest.raises(RunFailedError) as caught:
        list(DataStream(path).chunks(rows))
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_what_is_no_such_file_is_told(tmp_path):
    path = tmp_path / "b.parquet"
    assert "No such file" in failure(path)
    for content in (b"label,pixel\n" * 100, b"", b"PAR1" + bytes(100) + b"PAR1"):
        path.write_bytes(content)
        assert "it is no Parquet file, or is cut short" in failure(path)
    pq.write_table(pa.table({"x": [1, 2]}), path)
    assert "not one that `ssvm-bench data export` wrote" in failure(path)
    path.unlink()
    path.mkdir()
    assert "not a regular file" in failure(path)
    path.rmdir()
    os.mkfifo(path)
    assert "not a regular file" in failure(path)  # and it is not waited for


def test_a_file_that_is_cut_anywhere_is_told(path):
    content = path.read_bytes()
    for length in (4, 10, len(content) // 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert "it is no Parquet file, or is cut short" in failure(path)


def test_a_byte_that_changed_is_told_or_changes_nothing(path):
    content = path.read_bytes()
    (expected,) = DataStream(path).chunks(N)
    told = []
    for place in np.linspace(4, len(content) - 1, 150).astype(int):
        changed = bytearray(content)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        try:
            (found,) = DataStream(path).chunks(N)
        except RunFailedError as error:
            told.append(str(error))
        else:
            assert found.fingerprint == expected.fingerprint
    assert len(told) > 100
    assert all("Export it again" in message for message in told)


def test_metadata_that_changed_or_are_of_another_version_are_told(path):
    table, written = pq.read_table(path), DataStream(path).header.metadata()
    content = written[stream.KEY]

    def put(content, checksum=None, table=table, rows=ROWS):
        checksum = checksum or stream.hashlib.sha256(content).hexdigest()
        about = {stream.KEY: content, stream.CHECKSUM_KEY: checksum.encode()}
        pq.write_table(table.replace_schema_metadata(about), path, row_group_size=rows)

    put(content)
    assert next(DataStream(path).chunks(N)).n == N
    put(content, "0" * 64)
    assert "its metadata have changed" in failure(path)
    put(content.replace(b'"format": 3', b'"format": 2'))
    said = failure(path)
    assert "its layout has version 2; this program reads 3. Export it again" in said
    for before, after in (
        (b'"n_labels": 3', b'"n_labels": 65537'),
        (b'"n_labels": 3', b'"n_labels": "3"'),
        (b'"n_features": 4', b'"n_features": 0'),
        (b'"form": "dense"', b'"form": "bits"'),
        (b'"stored": "<f8"', b'"stored": "<f2"'),
        (b'"train"', b'"test"'),
        (b'"d": 21', b'"e": 21'),
        (b"{", b"["),
    ):
        assert before in content
        put(content.replace(before, after))
        assert "not as this program writes them" in failure(path)
    put(content, rows=N - 1)
    assert "it has other row groups than were written" in failure(path)
    put(content, table=table.drop(["y"]))
    assert "it has other columns than were written" in failure(path)


def test_cells_that_are_empty_or_cut_short_are_told(path):
    table, metadata = pq.read_table(path), DataStream(path).header.metadata()
    place = table.schema.get_field_index("x")
    for k, cell, message in (
        (6, None, "it has other columns than were written"),
        (9, bytes(95), "a cell of example 9 is cut short"),
    ):
        cells = table["x"].to_pylist()
        cells[k] = cell
        field = table.schema.field("x").with_nullable(cell is None)
        changed = table.set_column(place, field, pa.array(cells, field.type))
        pq.write_table(changed.replace_schema_metadata(metadata), path, row_group_size=ROWS)
        assert message in failure(path)


def replaced(path, change=lambda content: content, columns=None, splits=None, **how):
    """Write other rows, with a header that fits their number and says what ``change`` makes of it.

    ``columns`` are arrays by name; all others repeat their first cell.
    """
    table, header = pq.read_table(path), DataStream(path).header
    n = len(next(iter(columns.values()))) if columns else table.num_rows
    groups = splits or [n]
    content = json.loads(header.metadata()[stream.KEY])
    content["splits"] = {"train": [len(groups), n, content["splits"]["train"][2]]}
    content = json.dumps(change(content)).encode()
    about = {stream.KEY: content, stream.CHECKSUM_KEY: hashlib.sha256(content).hexdigest()}
    arrays = {}
    for field in table.schema:
        one = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(n, np.int32)), table[field.name].chunk(0).slice(0, 1)
        )
        arrays[field.name] = (columns or {}).get(field.name, one.cast(field.type))
    made = pa.table(arrays, schema=table.schema).replace_schema_metadata(about)
    pq.write_table(made, path, row_group_size=groups[0], **how)


def repeated(cell, n):
    """Return a column of equal cells."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n, np.int32)), pa.array([cell], pa.binary())
    ).cast(pa.binary())


STORED = {
    "dictionary": {"compression": "zstd"},
    "compressed": {"compression": "zstd", "use_dictionary": False},
    "continued": {
        "use_dictionary": False,
        "column_encoding": dict.fromkeys(("x", "y", "split"), "DELTA_BYTE_ARRAY"),
    },
}


@pytest.mark.parametrize("how", STORED)
def test_a_small_file_that_would_fill_the_memory_is_refused_unread(how, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    export.write(CHAINS, path, export.Export(), rows=N, **ABOUT)
    cell, n = bytes(32 * 1000), 1000
    replaced(path, lambda header: header | {"splits": {"train": [1, n, 1]}},
             {"x": repeated(cell, n)}, **STORED[how])  # fmt: skip
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(stream, "_LARGEST_ROW_GROUP", 30_000_000)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *_, **__: pytest.fail("is read"))
    said = failure(path)
    assert "its row group 0 would take about " in said
    config = stream.Config(name="stream", kind="stream", path=path)
    with pytest.raises(RunFailedError, match="would take about"):
        stream.load(config)
    monkeypatch.undo()
    with pytest.raises(RunFailedError, match="as a whole, and 30 MB are free"):
        stream.load(dataclasses.replace(config, max_memory=30))


@pytest.mark.parametrize(
    "dtype",
    [
        "<U100000",
        "|S9",
        "|V8",
        "<f16",
        "<c16",
        ">f8",
        "float64",
        "",
        8,
        "<m8",
        "|O",
        "?",
        ["<f8"],
        None,
    ],
)
@pytest.mark.parametrize("where", ["dtype", "columns", "y"])
def test_entries_are_of_the_types_of_a_dataset(where, dtype, path):
    def change(header):
        inside = header["dtypes" if where in header["dtypes"] else "encoding"]
        inside[where] = dtype
        return header

    replaced(path, change)
    assert "its metadata are not as this program writes them" in failure(path)


def crafted(monkeypatch, path, data, change):
    """Write a file in whose second row group something is wrong."""
    entries_of, made = export.entries_of, []

    def changed(*arguments):
        made.append(entries_of(*arguments))  # first for the header
        return made[-1] if len(made) != 3 else {**made[-1], **change(made[-1])}

    monkeypatch.setattr(export, "entries_of", changed)
    export.write(data, path, export.Export(), rows=ROWS, **ABOUT)
    monkeypatch.undo()


def entry(name, place, value):
    """Return the change of one entry of a column."""

    def change(block):
        values = block[name].values.copy()
        values[place] = value
        return {name: Entries(values, block[name].lengths)}

    return change


def narrower(block):
    """Return features with one column less."""
    x = block["x"].values.reshape(-1, 4)[:, :3]
    return {"x": Entries(x.ravel(), block["y"].lengths * 3)}


def fewer_edge_x(block):
    """Return features of edges of which half are missing."""
    x, lengths = block["edge_x"]
    return {"edge_x": Entries(x[: x.size // 2], lengths // 2)}


def no_parts(block):
    """Return a last example that is empty."""
    lengths = {name: np.append(block[name].lengths[:-1], 0) for name in ("x", "y")}
    return {k: Entries(block[k].values[: each.sum()], each) for k, each in lengths.items()}


def cut(block):
    """Return features of which the first example has half a number less."""
    x, lengths = block["x"].values.view("<u4"), 2 * block["x"].lengths
    return {"x": Entries(x, lengths + np.array([-1, 1, 0, 0]))}


SPARSE = random_multiclass(N, 3, 4)
SPARSE = SPARSE.derived(x=csr_array(np.where(SPARSE.x > 0, SPARSE.x, 0)))
THIN = SPARSE.derived(x=csr_array(0.3 * np.eye(N, 40)))
GRAPHS = random_graphs([3] * N, 2, 4)
WITH_EDGE_X = GRAPHS.derived(edge_x=np.ones((len(GRAPHS.edges), 2)))


@pytest.mark.parametrize(
    ("data", "change", "message"),
    [
        (CHAINS, narrower, "it is damaged: example 4 has 9 entries of x, and needs 12"),
        (CHAINS, entry("y", 5, 3), "label of part 2 of example 5 is 3, and labels are 0"),
        (CHAINS, entry("x", 0, np.nan), "of example 4 is nan, not finite"),
        (CHAINS, entry("x", 0, 1e200), "of example 4 is 1e+200, over 1e+100"),
        (THIN, entry("columns", 0, 40), "has feature 40, and features are 0 to 39"),
        (THIN, entry("nonzeros", 0, -1), "is -1, and must be at least 0"),
        (THIN, entry("nonzeros", 0, 9), "it is damaged: example 4 has"),
        (CHAINS, cut, "it is damaged: a cell of example 4 is cut short"),
        (GRAPHS, entry("edges", 0, 7), "of example 4"),
        (WITH_EDGE_X, entry("edge_x", 0, -1.0), "is -1, and must be at least 0"),
        (WITH_EDGE_X, fewer_edge_x, "it is damaged: example 4 has"),
        (CHAINS, no_parts, "example 7 is empty"),
    ],
)  # fmt: skip
def test_nothing_wrong_becomes_a_dataset(data, change, message, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    crafted(monkeypatch, path, data, change)
    assert message in failure(path)
    chunks = DataStream(path).chunks(ROWS)
    assert next(chunks).n == ROWS  # what comes before is as it should be
    with pytest.raises(RunFailedError, match=r"a\.parquet"):
        next(chunks)


@pytest.mark.parametrize("what", ["deleted", "replaced", "changed"])
def test_a_file_that_is_not_the_same_any_more_is_told(what, path):
    found = DataStream(path)
    chunks = found.chunks(ROWS)
    next(chunks)
    if what == "deleted":
        path.unlink()
    elif what == "replaced":
        export.write(CHAINS, path, export.Export(), rows=ROWS, **ABOUT)
    else:
        path.write_bytes(path.read_bytes() + b"PAR1")
    expected = "deleted" if what == "deleted" else "replaced or changed"
    with pytest.raises(RunFailedError, match=f"it was {expected} while it was read"):
        next(chunks)
    expected = "No such file" if what == "deleted" else "replaced or changed|no Parquet file"
    with pytest.raises(RunFailedError, match=expected):
        next(found.chunks(1))


def test_a_chunk_has_an_example(path):
    with pytest.raises(ValueError, match="at least one"):
        DataStream(path).chunks(0)


def test_a_full_disk_leaves_nothing_behind_and_spares_what_was_there(path, monkeypatch):
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(RunFailedError, match=r"Cannot write .*a\.parquet: No space left"):
            export.write(CHAINS, path, export.Export(), **ABOUT)
    monkeypatch.setattr(export.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(RunFailedError, match="it will have about 0 MB, and 0 MB are free"):
        export.write(CHAINS, path, export.Export(), **ABOUT)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


USPS = ("usps", "--source", "synthetic", "dataset.n_samples=30")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--repeat", "0"], 2, "0 is not in the range x>=1"),
        (["--jitter", "shft=1"], 2, "Did you mean shift?"),
        (["--order", "random"], 2, "'random' is not one of"),
        (["lam=1"], 2, "options of the dataset alone"),
        (["dataset.n_sample=3"], 2, "Did you mean dataset.n_samples?"),
    ],
)
def test_a_mistake_in_the_call_of_export(words, status, message, tmp_path):
    result = call("data", "export", USPS[0], tmp_path / "a.parquet", *USPS[1:], *words)
    assert message in error_of(result, status)
    assert not list(tmp_path.iterdir())


def test_an_export_needs_a_dataset_images_and_a_file(tmp_path):
    def message(name, file, *words):
        return error_of(call("data", "export", name, tmp_path / file, *words), 2)

    assert "Did you mean usps?" in message("upsp", "a.parquet")
    said = message("ocr", "a.parquet", *USPS[1:], "--jitter", "shift=1")
    assert "--jitter deforms images, and the examples of ocr are not images" in said
    assert "one of: mnist, optdigits, usps" in said
    (tmp_path / "folder.parquet").mkdir()
    for name in ("a.csv", "a", "folder.parquet"):
        assert "must be a file whose name ends in .parquet or .npz" in message(USPS[0], name)
