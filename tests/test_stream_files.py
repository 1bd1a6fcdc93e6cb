"""Files of examples that are none, are damaged, or lie; and what a call with them can get wrong."""

import errno
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from program import call, config_of, error_of, run_here
from scipy.sparse import csr_array

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import stream
from ssvm_bench.datasets.streams import data_stream, export, header, memory
from ssvm_bench.datasets.streams.blocks import Ragged
from ssvm_bench.datasets.streams.data_stream import DataStream
from ssvm_bench.errors import ConfigError, RunFailedError
from ssvm_bench.results.trace import read_trace

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


# ---- what is no file of examples ----------------------------------------------------------------


def test_what_is_no_such_file_is_told(tmp_path):
    path = tmp_path / "b.parquet"
    assert "No such file" in failure(path)
    path.write_bytes(b"label,pixel\n" * 100)
    assert "it is not a Parquet file" in failure(path)
    path.write_bytes(b"")
    assert "it is not a Parquet file" in failure(path)
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    assert "no Parquet file that can be read" in failure(path)
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
        assert "it is cut short: its end is missing" in failure(path)


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
    table, written = pq.read_table(path), DataStream(path).header

    def put(content, checksum=None):
        metadata = {**header.Header.metadata(written), header.KEY: content}
        metadata[header.CHECKSUM_KEY] = (checksum or sha256(content)).encode()
        pq.write_table(table.replace_schema_metadata(metadata), path, row_group_size=ROWS)

    content = written.metadata()[header.KEY]
    put(content)
    assert next(DataStream(path).chunks(N)).n == N
    put(content, "0" * 64)
    assert "its metadata have changed" in failure(path)
    put(content.replace(b'"format": 1', b'"format": 2'))
    assert "its layout has version 2; this program reads 1" in failure(path)
    for before, after in (
        (b'"n_labels": 3', b'"n_labels": 300'),
        (b'"n_labels": 3', b'"n_labels": "3"'),
        (b'"n_features": 4', b'"n_features": 0'),
        (b'"form": "dense"', b'"form": "filled"'),
        (b'"stored": "<f8"', b'"stored": "<f2"'),
        (b'"train"', b'"test"'),
        (b'"d": 21', b'"e": 21'),
        (b"{", b"["),
    ):
        assert before in content
        put(content.replace(before, after))
        assert "not as this program writes them" in failure(path)
    pq.write_table(table.replace_schema_metadata(written.metadata()), path, row_group_size=ROWS + 1)
    assert "it has other row groups than were written" in failure(path)
    pq.write_table(
        table.drop(["y"]).replace_schema_metadata(written.metadata()), path, row_group_size=ROWS
    )
    assert "it has no column y" in failure(path)


def sha256(content):
    return header.hashlib.sha256(content).hexdigest()


# ---- files whose digests are right, and whose examples are not ----------------------------------


def crafted(monkeypatch, path, data, change):
    """Write a file in whose second row group something has been changed before it was sealed."""
    block_of, fields_of, made = export.block_of, export.fields_of, []

    def changed(dataset, features):
        made.append(block_of(dataset, features))
        return made[-1] if len(made) != 2 else {**made[-1], **change(made[-1])}

    monkeypatch.setattr(export, "block_of", changed)
    monkeypatch.setattr(export, "fields_of", lambda _, *rest: fields_of(made[-1], *rest))
    export.write(data, path, export.Export(), rows=ROWS, **ABOUT)
    monkeypatch.undo()


def entries(name, function):
    """Return the change of the entries of a column."""

    def change(block):
        values = block[name].values.copy()
        return {name: Ragged(function(values), block[name].ends)}

    return change


def put(place, value):
    def function(values):
        values[place] = value
        return values

    return function


def narrower(block):
    """Return features with one column less."""
    x = block["x"].values.reshape(-1, 4)[:, :3]
    return {"x": Ragged(x.ravel(), block["y"].ends * 3)}


def no_parts(block):
    """Return a last example that is empty."""
    ends = {name: np.append(block[name].ends[:-1], block[name].ends[-2]) for name in ("x", "y")}
    return {name: Ragged(block[name].values[: end[-1]], end) for name, end in ends.items()}


SPARSE = random_multiclass(N, 3, 4)
SPARSE = SPARSE.derived(x=csr_array(np.where(SPARSE.x > 0, SPARSE.x, 0)))
GRAPHS = random_graphs([3] * N, 2, 4)


@pytest.mark.parametrize(
    ("data", "change", "message"),
    [
        (CHAINS, narrower, "row group 1 is damaged: example 0 has 9 entries of x, and its parts"),
        (CHAINS, entries("y", put(5, 3)), "label of part 2 of example 5 is 3, and labels are 0"),
        (CHAINS, entries("x", put(0, np.nan)), "of example 4 is nan, not finite"),
        (CHAINS, entries("x", put(0, 1e200)), "of example 4 is 1e+200, over 1e+100"),
        (SPARSE, entries("columns", put(0, 4)), "has feature 4, and features are 0 to 3"),
        (SPARSE, entries("nonzeros", put(0, -1)), "row group 1 is damaged: a part has a negative"),
        (SPARSE, entries("nonzeros", put(0, 9)), "row group 1 is damaged: example 0 has"),
        (GRAPHS, entries("edges", put(0, 7)), "of example 4"),
        (CHAINS, no_parts, "row group 1 is damaged: example 3 has no parts"),
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


def test_cells_that_are_empty_or_cut_short_are_told(path):
    table, metadata = pq.read_table(path), DataStream(path).header.metadata()
    for k, cell, message in (
        (6, None, "row group 1 is damaged: an example has no x"),
        (9, bytes(95), "row group 2 is damaged: an entry of x is cut short"),
        (9, bytes(96), "row group 2 is not what was written"),
    ):
        cells = table["x"].to_pylist()
        cells[k] = cell
        place = table.schema.get_field_index("x")
        changed = table.set_column(place, "x", pa.array(cells, pa.binary()))
        pq.write_table(changed.replace_schema_metadata(metadata), path, row_group_size=ROWS)
        assert message in failure(path)


# ---- while it is read ---------------------------------------------------------------------------


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
        with path.open("ab") as file:
            file.write(b"PAR1")
    expected = "deleted" if what == "deleted" else "replaced or changed"
    with pytest.raises(RunFailedError, match=f"it was {expected} while it was read"):
        next(chunks)
    expected = "No such file" if what == "deleted" else "replaced or changed|cannot|can be read"
    with pytest.raises(RunFailedError, match=expected):
        next(found.chunks(1))


def test_a_chunk_has_an_example(path):
    with pytest.raises(ValueError, match="at least one"):
        DataStream(path).chunks(0)


# ---- writing ------------------------------------------------------------------------------------


def test_a_full_disk_leaves_nothing_behind_and_spares_what_was_there(path, monkeypatch):
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(RunFailedError, match=r"Cannot write .*a\.parquet: No space left"):
            export.write(CHAINS, path, export.Export(), **ABOUT)
    monkeypatch.setattr(
        export.shutil, "disk_usage", lambda _: export.shutil._ntuple_diskusage(9, 9, 0)
    )
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
    file = tmp_path / "a.parquet"
    call_ = ("--source", "synthetic", "dataset.n_samples=3")
    assert "Did you mean usps?" in error_of(call("data", "export", "upsp", file), 2)
    message = error_of(call("data", "export", "ocr", file, *call_, "--jitter", "shift=1"), 2)
    assert "--jitter deforms images, and the examples of ocr are none" in message
    assert "one of: mnist, usps" in message
    for name in ("a.npz", "a", "folder.parquet"):
        (tmp_path / "folder.parquet").mkdir(exist_ok=True)
        message = error_of(call("data", "export", *USPS[:1], tmp_path / name, *USPS[1:]), 2)
        assert "must be a file whose name ends in .parquet" in message


# ---- as a dataset of a run ----------------------------------------------------------------------


def test_a_run_on_a_stream_is_the_run_on_the_dataset(tmp_path):
    for data, solver in ((USPS, "bcfw"), (("ocr", *USPS[1:3], "dataset.n_samples=20"), "mpbcfw")):
        path = tmp_path / f"{data[0]}.parquet"
        result = call("data", "export", data[0], path, *data[1:])
        assert result.exit_code == 0, result.stderr
        assert f"{path}: {data[0]} (synthetic data), " in result.stdout
        assert " to train on examples in 1 row groups\n" in result.stdout
        words = (f"solver={solver}", "clock=work", "budget.max_iterations=3")
        ours = (f"dataset={data[0]}", "dataset.source=synthetic", data[-1])
        theirs = ("dataset=stream", f"dataset.path={path}")
        runs = [run_here(tmp_path / "r", *words, data=each) for each in (ours, theirs)]
        direct, streamed = [read_trace(run.folder) for run in runs]
        for column in ("primal", "dual", "time", "w_norm", "oracle_calls"):
            assert np.array_equal(direct.frame[column], streamed.frame[column]), column
        about, of_stream, found = direct.metadata, streamed.metadata, DataStream(path)
        assert of_stream["config"]["oracle"] == about["config"]["oracle"]
        assert of_stream["dataset"]["d"] == about["dataset"]["d"] == found.d
        assert of_stream["dataset"]["fingerprint"] == found.fingerprint
        assert run_here(tmp_path / "r", *words, data=theirs).status == "skipped"


def test_the_file_brings_its_oracle_and_an_explicit_one_wins(path):
    (config,) = compose_runs(["dataset=stream", f"dataset.path={path}"])
    assert config.oracle.name == "viterbi"
    (config,) = compose_runs(["dataset=stream", f"dataset.path={path}", "oracle=multiclass"])
    assert config.oracle.name == "multiclass"
    with pytest.raises(ConfigError, match="it handles independent labels"):
        run_here(
            path.parent / "r", "oracle=multiclass", data=(f"dataset.path={path}", "dataset=stream")
        )


def test_a_run_is_known_by_its_examples_not_by_their_place(path, tmp_path):
    def digest(place, *words):
        (config,) = compose_runs(["dataset=stream", f"dataset.path={place}", *words])
        return config.with_source("synthetic").hash()

    moved, found = tmp_path / "b.parquet", digest(path)
    pinned = f"dataset.fingerprint={DataStream(path).fingerprint}"
    moved.write_bytes(path.read_bytes())
    assert digest(moved) == digest(path, "dataset.max_memory=100") == found
    assert digest(tmp_path / "nowhere.parquet", pinned, "oracle=viterbi") == found
    assert digest(path, "dataset.n_samples=3") != found
    export.write(CHAINS, moved, export.Export(order="shuffled"), **ABOUT)
    assert digest(moved) != found


def test_what_cannot_be_loaded_is_told_before_any_work(path, monkeypatch, tmp_path):
    def message(*words, status=1):
        result = call("run", "dataset=stream", f"results_dir={tmp_path / 'r'}", *words)
        return error_of(result, status)

    here = f"dataset.path={path}"
    assert "dataset=stream needs dataset.path=FILE.parquet" in message(status=2)
    assert "No such file or directory" in message(f"dataset.path={tmp_path / 'b.parquet'}")
    assert "must be ≤ 12, the number of examples in" in message(
        here, "dataset.n_samples=13", status=2
    )
    assert "was made of synthetic data, and dataset.source=real" in message(
        here, "dataset.source=real"
    )
    assert f"the fingerprint {DataStream(path).fingerprint}" in message(
        here, "dataset.fingerprint=a0"
    )
    said = message(here, "dataset.max_memory=0.002")
    assert f"The 12 examples in {path} take about 0 MB as a whole, and 0 MB are free" in said
    assert "dataset.n_samples=" in said
    monkeypatch.setattr(stream, "available", lambda: 1000)
    assert "a solver that reads them in chunks" in message(here)
    assert not (tmp_path / "r").exists()
    export.write(CHAINS.derived(source="real (altered)"), path, export.Export(), **ABOUT)
    monkeypatch.undo()
    assert "dataset.trust=true uses it" in message(here)
    config = config_of(tmp_path, data=("dataset=stream", here, "dataset.trust=true"))
    assert stream.load(config.dataset).source == "real (altered)"


def test_free_memory_is_that_of_machine_and_container(tmp_path, monkeypatch):
    assert memory.available() is None or memory.available() > 1 << 20
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert memory.available() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8 kB\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory.available() == 8192
    (tmp_path / "memory.max").write_text("3000\n")
    assert memory.available() == 2000


def test_status_is_of_datasets_with_raw_files():
    assert "stream" not in call("data", "status").stdout
    assert "'stream' has no raw file" in error_of(call("data", "status", "stream"), 2)
    assert data_stream.first_of("a", 1) != data_stream.first_of("a", 2)
