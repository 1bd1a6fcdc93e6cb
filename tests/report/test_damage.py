"""Damaged results: whatever is changed in a file, it is refused in one line, or reads the same."""

import datetime
import gzip
import io
import json
import random
import signal
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import USPS, call, put_odd, run_here
from test_report import run_of, store

from ssvm_bench.base import memory
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import checks, loading, optima, stored_traces, trace
from ssvm_bench.results.folder import SkippedFiles
from ssvm_bench.results.trace import read_run

FILES = ["trace.parquet", "summary.json", "config.yaml", "weights.npz"]


@pytest.fixture
def folder(tmp_path):
    return store(tmp_path, run_of("bcfw"))


def spoilt(content, rng):
    """Return other content: a bit flipped, cut short, a piece lost, replaced or doubled."""
    place, end, bit = rng.randrange(len(content)), rng.randrange(len(content)), rng.randrange(8)
    return rng.choice(
        [
            b"%b%c%b" % (content[:place], content[place] ^ 1 << bit, content[place + 1 :]),
            content[:place],
            content[: min(place, end)] + content[max(place, end) + 1 :],
            content[:place] + rng.randbytes(8) + content[place + 8 :],
            content + content[place:],
            rng.randbytes(100),
        ]
    )


def refused(read, *arguments):
    """Return the one message of a reader that refuses."""
    with pytest.raises(RunFailedError) as error:
        read(*arguments)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


def check_same(one, other):
    """Two traces are of one run: the spoilt bytes of a table may be some that nobody reads."""
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    assert (one.metadata, one.end) == (other.metadata, other.end)


@pytest.mark.parametrize("name", FILES)
def test_a_spoilt_file_of_a_run_is_refused_or_reads_the_same(folder, name):
    rng, whole = random.Random(name), trace.read_run(folder)
    content, passed = (folder / name).read_bytes(), 0
    for _ in range(60):
        (folder / name).write_bytes(other := spoilt(content, rng))
        if other == content or trace.is_whole(folder):
            passed += 1
            check_same(trace.read_run(folder), whole)
        else:
            assert str(folder) in refused(trace.read_run, folder)
    assert passed < (20 if name == "trace.parquet" else 4)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "missing"])
def test_what_is_no_file_is_refused_at_once(folder, name, kind):
    put_odd(folder / name, kind)
    signal.alarm(120)  # a pipe without a writer would hang
    try:
        assert name in refused(trace.read_run, folder)
        assert not trace.is_finished(folder)
    finally:
        signal.alarm(0)


@pytest.mark.parametrize(
    "text",
    [
        *("{}", '{"stop_reason": "interrupted"}'),
        *("", "[]", "1", "null", "{", '{"stop_reason": 1}', '{"stop_reason": null}', "\x00", "NaN"),
        *('{"stop_reason": "a", "best_primal": "1"}', '{"stop_reason": "a", "best_primal": NaN}'),
        *('{"stop_reason": "a", "gap": 1e999}', '{"stop_reason": "a", "x": ' + "9" * 5000 + "}"),
        *("[" * 100_000, '{"a":' * 100_000, '{"stop_reason": "\\ud800"}'),
        '{"stop_reason": "a", "x": ' + "[" * 50 + "]" * 50 + "}",
    ],
)
def test_a_summary_of_another_kind_is_refused(folder, text):
    (folder / "summary.json").write_text(text)
    assert "summary.json" in refused(trace.read_summary, folder)
    assert not trace.is_finished(folder)


ITEM, LARGE = "[[[]]],", 2_000_000
"""JSON that takes 34 times its bytes in memory, and bytes of what is small on the disk."""


@pytest.fixture
def unparsed(monkeypatch):
    """No long document is parsed, and no long text."""
    loads = json.loads

    def short(data, **how):
        return loads(data, **how) if len(data) < LARGE else pytest.fail("is parsed")

    monkeypatch.setattr(json, "loads", short)


def test_a_long_document_of_a_run_is_refused_unparsed(folder, unparsed):
    whole, long = trace.read_run(folder), [ITEM * (LARGE // len(ITEM))]
    summary = {**whole.end, "more": long}
    trace.write_run(folder, whole.frame, whole.metadata, {}, summary, [0.0, 0.0, 0.0])
    said = "it has 2.0 MB of JSON, far more than its kind has"
    assert f"summary.json: {said}" in refused(trace.read_summary, folder)
    assert not trace.is_finished(folder)
    metadata = {**whole.metadata, "more": long}
    trace.write_run(folder, whole.frame, metadata, {}, whole.end, [0.0, 0.0, 0.0])
    assert f"trace.parquet: {said}" in refused(trace.read_run, folder)
    best = folder / optima.FILE
    best.parent.mkdir(exist_ok=True)
    best.write_text('{"more": [' + ITEM * 3_000_000 + "0]}")
    skipped = SkippedFiles()
    optima.reference([run_of("bcfw")], folder, skipped)
    assert "it has 21.0 MB of JSON" in skipped.problems[0]


def test_names_need_room_for_what_is_parsed(folder, unparsed, monkeypatch):
    packed = gzip.compress(b'{"format": 1, "labels": [' + ITEM.encode() * 700_000 + b"0]}")
    assert len(packed) < 100_000
    path = folder / "names.json.gz"
    written = trace.read(folder)._replace(files={path.name: packed})
    monkeypatch.setattr(memory, "available", lambda: 100_000_000)
    with pytest.raises(
        RunFailedError, match=r"would take about \d+ MB, and 100 MB are free"
    ) as said:
        _ = written.vocabulary
    assert str(said.value).startswith(f"The names in {path} would take")


def test_weights_need_room_before_they_are_unpacked(folder, monkeypatch):
    packed = io.BytesIO()
    np.savez_compressed(packed, w=np.zeros(1_000_000))
    assert packed.tell() < 10_000
    path = folder / "weights.npz"
    written = trace.read(folder)._replace(files={path.name: packed.getvalue()})
    monkeypatch.setattr(memory, "available", lambda: 10_000_000)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda *_: pytest.fail("is unpacked"))
    for read in (lambda: written.weights, lambda: written.support(1), lambda: written.labels(1, 2)):
        said = refused(read)
        assert said.startswith(f"The arrays in {path} would take about 16 MB, and 10 MB are free")


@pytest.mark.parametrize("runs", [1, 40])
def test_long_texts_of_stored_traces_are_refused_unparsed(tmp_path, runs, unparsed):
    stored_traces.write([run_of("bcfw")], tmp_path, "some")
    (path,) = (tmp_path / "traces" / "some").glob("*")
    table = pq.read_table(path).replace_schema_metadata(None)  # without its checksum
    size = LARGE if runs == 1 else 600_000
    texts = [f'{{"format": 1, "more": [{ITEM * (size // len(ITEM))} {k}]}}' for k in range(runs)]
    table = table.take(np.zeros(runs, int))
    place = table.column_names.index("run")
    pq.write_table(table.set_column(place, "run", pa.array(texts)), path)
    assert path.stat().st_size < 3_000_000
    said = "it has 2.0 MB of JSON" if runs == 1 else "it would take about 840 MB"
    assert f"{said}, far more than its kind has" in refused(loading.stored, tmp_path, "some")


@pytest.mark.parametrize("spoil", [{"lam": None}, {"dataset": []}, {"config": 1}, {"started": "x"}])
def test_metadata_of_another_kind_are_refused(folder, spoil):
    whole = trace.read_run(folder)
    metadata = {**whole.metadata, **spoil}
    trace.write_run(folder, whole.frame, metadata, {}, whole.end, [0.0, 0.0, 0.0])
    assert next(iter(spoil)) in refused(trace.read_run, folder)


STORED = [
    {},
    {"row_group_size": 10_000},
    {"use_dictionary": False, "compression": "gzip"},
    {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"},
]
"""How the writer may be asked to store zeros."""


@pytest.fixture
def unread(monkeypatch):
    """No table is read, however large the memory is."""
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("is read"))


@pytest.mark.parametrize("how", STORED)
def test_a_small_trace_that_would_fill_the_memory_is_refused_unread(folder, how, unread):
    n, path = 3_000_000, folder / "trace.parquet"
    table = pq.ParquetFile(path)
    zeros = {field.name: np.zeros(n, field.type.to_pandas_dtype()) for field in table.schema_arrow}
    if "column_encoding" in how:
        whole = {name for name, column in zeros.items() if column.dtype.kind == "i"}
        how = how | {"column_encoding": dict.fromkeys(whole, how["column_encoding"])}
    pq.write_table(pa.table(zeros, schema=table.schema_arrow), path, **how)
    assert "trace.parquet: it would take about 312 MB, far more than" in refused(read_run, folder)


def test_a_trace_needs_room_for_its_rows(folder, unread, monkeypatch):
    path = folder / "trace.parquet"
    table = pq.ParquetFile(path)
    zeros = {f.name: np.zeros(100_000, f.type.to_pandas_dtype()) for f in table.schema_arrow}
    pq.write_table(pa.table(zeros, schema=table.schema_arrow), path)
    monkeypatch.setattr(memory, "available", lambda: 30_000_000)
    said = refused(read_run, folder)
    assert f"{path} would take about 31 MB, and 30 MB are free" in said


def test_a_text_of_stored_traces_counts_in_every_row(tmp_path, folder):
    stored_traces.write([read_run(folder)], tmp_path, "some")
    (path,) = (tmp_path / "traces" / "some").glob("*")
    table = pq.read_table(path).slice(0, 1)
    n, text = 20_000, " " * 20_000
    row = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([text]))
    columns = [
        row.cast(pa.string())
        if name == "run"
        else pa.array(np.zeros(n, table[name].type.to_pandas_dtype()))
        for name in table.column_names
    ]
    pq.write_table(pa.table(columns, names=table.column_names), path)
    assert path.stat().st_size < 100_000
    assert "it would take about 400 MB" in refused(loading.stored, tmp_path, "some")


def varint(number):
    """Return a whole number as Parquet's headers have it."""
    number, found = number << 1, []
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


@pytest.fixture
def forge(folder):
    """Return a function that writes a trace of some rows and replaces parts of its bytes."""
    path = folder / "trace.parquet"

    def forge(n, *replaced, **how):
        schema = pq.read_schema(path)
        rows = {f.name: np.arange(n).astype(f.type.to_pandas_dtype()) for f in schema}
        flat = pa.schema([f.with_nullable(False) for f in schema], schema.metadata)
        how = {
            "use_dictionary": False,
            "data_page_size": 1 << 30,
            "max_rows_per_page": 1 << 30,
            **how,
        }
        pq.write_table(pa.table(rows, schema=flat), path, **how)
        content = path.read_bytes()
        for old, new in replaced:
            assert len(old) == len(new)
            content = content.replace(old, new)
        path.write_bytes(content)
        return refused(read_run, folder)

    return forge


@pytest.mark.parametrize("larger", [801, 8000])
def test_a_page_is_no_larger_than_its_footer_says(forge, unread, larger):
    page = b"\x15\0\x15"  # its kind, before its size
    said = forge(100, (page + varint(800), page + varint(larger)))
    assert "trace.parquet: the sizes of its column iteration contradict each other" in said


@pytest.mark.parametrize("compression", ["ZSTD", "SNAPPY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_larger_than_their_rows_count_as_a_whole(forge, unread, compression, version):
    n, huge = 140_000, 60_000_000
    pages = [(varint(8 * n), varint(huge))]
    # in the footer, with the header of the page
    footer = [(varint(8 * n + k), varint(huge + k)) for k in range(20, 100)]
    how = {"compression": compression, "data_page_version": version}
    assert "contradict each other" in forge(n, *pages, **how)
    assert "would take about 780 MB, far more than its kind has" in forge(n, *pages, *footer, **how)


@pytest.mark.parametrize(
    "spoilt",
    [
        (b"\x15\0\x15" + varint(800), b"\x15\0\x15" + b"\xbf\x0c"),  # a negative size
        (b"\x15\0\x15" + varint(800), b"\x15\2\x15" + varint(800)),  # no such kind
        (b"\x15\0\x15" + varint(800), b"\x15\0\x15" + b"\xff\xff"),  # an integer without end
        (b"\x15\0\x15" + varint(800), b"\x1b\0\x15" + varint(800)),  # no such type
        (b"\x15\0\x15" + varint(800), b"\x15\0\x25" + varint(800)),  # no such field
        (
            b"\x15" + varint(800) + b"\x15" + varint(800),
            b"\x15" + varint(800) + b"\x15" + varint(8000),  # beyond its chunk
        ),
    ],
)
def test_pages_that_cannot_be_read_are_refused(forge, unread, spoilt):
    said = forge(100, spoilt, compression="NONE")
    assert "trace.parquet: the pages of its column iteration cannot be read" in said


def test_tables_of_other_writers_are_refused(forge, unread):
    said = forge(100, (b"parquet-cpp-arrow version", b"parquet-mr version 1.2.8 "))
    assert "trace.parquet: it was written by parquet-mr version 1.2.8 " in said


def test_texts_that_continue_others_count_as_a_whole_whatever_the_footer_says(
    tmp_path, monkeypatch
):
    stored_traces.write([run_of("bcfw")], tmp_path, "some")
    monkeypatch.setattr(checks, "LARGEST_TABLE", 1_000_000)
    (path,) = (tmp_path / "traces" / "some").glob("*")
    table = pq.read_table(path)
    table = table.take(np.zeros(2000, int))
    how = {"use_dictionary": False, "column_encoding": {"run": "DELTA_BYTE_ARRAY"}}
    pq.write_table(table, path, **how)
    content = path.read_bytes()
    of_footer, plain = b"\x06\x0e", b"\x06\0"  # two of a list of encodings
    assert of_footer in content
    path.write_bytes(content.replace(of_footer, plain))
    assert "far more than its kind has" in refused(loading.stored, tmp_path, "some")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0]]),
        pa.array([[[1.0], []]]),
        pa.array([{"a": {"b": 1.0}}]),
        pa.array([Decimal("1.5")]),
        pa.array(["1"]),
        pa.array([b"1"]),
        pa.array([None], pa.float64()),
        pa.array([None]),
        pa.array([True]),
        pa.array(["a"]).dictionary_encode(),
        pa.array([datetime.date(2000, 1, 1)]),
        pa.array([b"12"], pa.binary(2)),
    ],
    ids=lambda column: str(column.type),
)
def test_a_trace_has_columns_of_numbers_alone(folder, column):
    path = folder / "trace.parquet"
    table = pq.read_table(path)
    more = pa.concat_arrays([column] * table.num_rows)
    pq.write_table(table.append_column("more", more), path)
    assert "trace.parquet: its column more " in refused(read_run, folder)
    stored_traces.write([run_of("bcfw")], folder, "some")
    (path,) = (folder / "traces" / "some").glob("*")
    table = pq.read_table(path)
    more = pa.concat_arrays([column] * table.num_rows)
    pq.write_table(table.append_column("more", more), path)
    assert "its column more " in refused(loading.stored, folder, "some")


def test_spoilt_stored_traces_are_passed_over_and_left_alone(tmp_path, folder):
    runs = [trace.read_run(folder)]
    (stored,) = stored_traces.write(runs, tmp_path, "some")
    (path,) = (tmp_path / "traces" / "some").glob("*")
    content, rng = path.read_bytes(), random.Random(0)
    for _ in range(40):
        path.write_bytes(other := spoilt(content, rng))
        read, written = SkippedFiles(), SkippedFiles()
        for found in loading.stored(tmp_path, "some", read):
            check_same(found, stored)
        check_same(*stored_traces.write(runs, tmp_path, "some", written), stored)
        assert written.problems == read.problems
        if read.problems:
            (said,) = read.problems
            assert str(path) in said
            assert path.read_bytes() == other


def test_spoilt_best_values_are_passed_over_and_left_alone(tmp_path, folder):
    runs = [trace.read_run(folder)]
    best = optima.reference(runs, tmp_path)
    path, rng = tmp_path / optima.FILE, random.Random(0)
    content = path.read_bytes()
    for _ in range(40):
        path.write_bytes(other := spoilt(content, rng))
        skipped = SkippedFiles()
        assert optima.reference(runs, tmp_path, skipped) == best
        said = skipped.problems
        assert path.read_bytes() == other
        assert other == content or (len(said) == 1 and str(path) in said[0]) or same(other, content)


def same(one, other):
    """Tell whether two documents say the same: white space may differ."""
    try:
        return json.loads(one) == json.loads(other)
    except (ValueError, RecursionError):
        return False


def test_a_checksum_is_of_what_a_document_says():
    content = {"a": [1, 2.5, "é"], "b": None}
    data = checks.sealed(content)
    assert checks.opened(data) == content
    assert checks.opened(b'{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="not what was written"):
        checks.opened(data.replace(b"2.5", b"2.6"))


def test_the_report_names_what_it_passes_over(tmp_path, folder):
    bad = store(tmp_path, run_of("fw"))
    (bad / "trace.parquet").write_bytes(b"PAR1")
    result = call("report", f"results_dir={tmp_path}")
    assert result.exit_code == 0
    _, told = [line for line in result.stderr.splitlines() if not line.startswith("Page ")]
    assert told.startswith(f"Passed over: Cannot read the run {bad}: trace.parquet: ")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_run_is_missing_and_is_made_again(tmp_path, name):
    experiment = tmp_path / "one.yaml"
    experiment.write_text("grid: {solver: [fw]}\nfigures: {}\n")
    short = ("budget.max_iterations=2", "clock=work")
    options = (*USPS, *short, f"results_dir={tmp_path}")
    folder = run_here(tmp_path, "solver=fw", *short).folder
    before = trace.read_run(folder).frame
    (folder / name).write_bytes((folder / name).read_bytes()[:-5])
    result = call("experiment", experiment, "--status", *options)
    assert result.exit_code == 0
    assert "1 missing, of 1 runs" in result.stdout
    assert f"Passed over: Cannot read the run {folder}: {name}: " in result.stderr
    result = call("run", "solver=fw", *options)
    assert result.exit_code == 0
    assert "The run is repeated." in result.stderr
    columns = ["iteration", "primal", "dual"]
    pd.testing.assert_frame_equal(trace.read_run(folder).frame[columns], before[columns])
