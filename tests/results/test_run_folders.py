"""Run folders that were changed after the run are refused by all that reads them."""

import gzip
import io
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import call, error_of, run_here
from raw_data import TEXT, written
from traces import sealed, with_metadata

import ssvm_bench
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import stored_traces, trace
from ssvm_bench.results.trace import NAMES, SUMMARY, WEIGHTS


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the results folder of a run on a file, the run in it, and a file to predict."""
    folder = tmp_path_factory.mktemp("whole")
    path = written(folder, (TEXT + "\n") * 4, "train.txt")
    data = ("dataset=file", f"dataset.path={path}")
    run = run_here(folder / "r", "solver=mpbcfw", "budget.max_iterations=5", data=data).folder
    return folder / "r", run.relative_to(folder / "r"), written(folder, TEXT, "test.txt")


@pytest.fixture
def copy(whole, tmp_path):
    """Return a copy of the run's folder, and the file."""
    shutil.copytree(whole[0], tmp_path / "r")
    return tmp_path / "r" / whole[1], whole[2]


def predicted(folder, data):
    return call("predict", folder, "--data", data)


def refusal(folder, data):
    """Return the message that a prediction ends with."""
    return error_of(predicted(folder, data), 1)


def saved(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def names(folder, **changes):
    """Return the content of ``names.json.gz`` with some changes; None takes an entry out."""
    values = json.loads(gzip.decompress((folder / NAMES).read_bytes())) | changes
    text = json.dumps({name: value for name, value in values.items() if value is not None})
    return gzip.compress(text.encode())


def reversed_weights(folder):
    with np.load(folder / WEIGHTS) as stored:
        return {WEIGHTS: saved(w=stored["w"][::-1])}


def swapped_labels(folder):
    return {NAMES: names(folder, labels=trace.read(folder).vocabulary.labels[::-1])}


def other_templates(folder):
    return {NAMES: names(folder, templates=trace.read(folder).vocabulary.templates[::-1])}


def other_iteration(folder):
    summary = json.loads((folder / SUMMARY).read_text())
    return {SUMMARY: json.dumps({**summary, "iteration": 99}).encode()}


@pytest.mark.parametrize(
    "change", [reversed_weights, swapped_labels, other_templates, other_iteration]
)
def test_what_was_changed_after_the_run_is_refused_by_all(copy, change):
    folder, data = copy
    for name, content in change(folder).items():
        (folder / name).write_bytes(content)
    for command in (("predict", folder, "--data", data), ("score", folder), ("predict", folder)):
        said = error_of(call(*command), 1)
        assert f"Cannot read the run {folder}: " in said
        assert "it is not what was written (checksum). Delete that folder and run again" in said
    readers = (
        *(trace.read_metadata, trace.read_summary, trace.read_weights, trace.read_run),
        lambda _: ssvm_bench.load_runs(folder.parents[4])[0].trace,
    )
    for reader in readers:
        with pytest.raises(RunFailedError, match="checksum"):
            reader(folder)


def test_names_that_are_gone_or_came_later_are_refused(copy):
    folder, data = copy
    content = (folder / NAMES).read_bytes()
    (folder / NAMES).unlink()
    assert f"{NAMES}: No such file" in refusal(folder, data)
    (folder / NAMES).write_bytes(content)
    result = predicted(folder, data)
    assert result.exit_code == 0, result.stderr
    (folder / "traceback.txt").write_text("of nobody")
    assert "traceback.txt: the run was written without it" in refusal(folder, data)


def test_weights_are_those_that_were_read_with_the_trace(copy):
    folder, _ = copy
    (run,) = ssvm_bench.load_runs(folder.parents[4])
    for name, content in reversed_weights(folder).items():
        (folder / name).write_bytes(content)
    with pytest.raises(RunFailedError, match="checksum"):
        _ = run.weights


def test_weights_are_those_after_the_iterations_that_were_read(tmp_path):
    few = ("dataset.n_samples=20", "clock=work")
    folder = run_here(tmp_path, *few, "budget.max_iterations=2").folder
    (loaded,) = ssvm_bench.load_runs(tmp_path)
    (stored,) = stored_traces.write([trace.read_run(folder)], tmp_path, "e")
    np.testing.assert_array_equal(stored.weights, loaded.weights)
    assert run_here(tmp_path, *few, "budget.max_iterations=4").folder == folder
    for run in (loaded, stored):
        with pytest.raises(RunFailedError, match="after 4 iterations, not those after 2"):
            _ = run.weights
    (loaded,) = ssvm_bench.load_runs(tmp_path)
    shutil.copytree(folder, same := tmp_path / "same")
    few = (*few, "budget.max_iterations=4", "seed=1")
    other = run_here(tmp_path / "o", *few).folder
    shutil.rmtree(folder)
    shutil.copytree(other, folder)
    with pytest.raises(RunFailedError, match=r"was replaced since it was loaded\. Load it again"):
        _ = loaded.weights
    shutil.rmtree(folder)
    shutil.copytree(same, folder)  # made anew, as it was
    assert loaded.weights.any()
    shutil.rmtree(folder)
    with pytest.raises(RunFailedError, match=r"Only the trace .* is stored, not its weights"):
        _ = stored.weights


def test_columns_are_those_of_the_run_that_was_loaded(tmp_path):
    few = ("dataset.n_samples=20", "budget.max_iterations=2")
    folder = run_here(tmp_path, *few).folder
    (before,) = ssvm_bench.load_runs(tmp_path)
    run_here(tmp_path, *few, "force=true")
    with pytest.raises(RunFailedError, match=r"was replaced since it was loaded\. Load it again"):
        _ = before["primal"]
    (now,) = ssvm_bench.load_runs(tmp_path)
    assert now["primal"].tolist() == trace.read_run(folder)["primal"].tolist()


def test_a_run_that_is_replaced_while_it_is_loaded_is_read_again(copy, tmp_path, monkeypatch):
    folder, _ = copy
    other = run_here(tmp_path / "o", "dataset.n_samples=20", "budget.max_iterations=2").folder
    expected = trace.read_run(other).end

    def replaced_between(of):
        if other.exists():
            shutil.rmtree(folder)
            other.rename(folder)
        return checksums(of)

    checksums = trace._checksums
    monkeypatch.setattr(trace, "_checksums", replaced_between)
    assert trace.read_when_asked(folder).end == expected


WRONG_NAMES = [
    *({"labels": labels} for labels in (5, "abc", [], {}, None, [1, 2], [["O"]], ["O", "O"])),
    *({"labels": labels} for labels in (["\ud800", "O"], [None], ["O"] * 70000, True)),
    *({"labels": [odd, *"abc"]} for odd in ("", " ", "a\nb", "\r", "\0", "\u200b", "\x1b[31m")),
    *({"n_features": value} for value in (-1, 0, 1.5, "7", None, True, 10**30, 3, [7])),
    *({"features": value} for value in (5, "x", [], ["a"], [1], {}, ["a", "a"], [["a"]])),
    *({"templates": value} for value in (5, [], [1], {}, "%x[0,0]", [["%x[0,0]"]], ["%y[0,0]"])),
    *({"templates": value} for value in (["%x[0,2]"], ["B:%x[0,0]"], [""], ["%x[0,0]"] * 1001)),
    *({"columns": value} for value in (-1, 0, 1, "3", 2.5, True, 10**20, [])),
    *({"bias": value} for value in ("x", [], float("nan"), float("inf"), 1e300, True, {})),
    *({"boundary": value} for value in ("x", 5, [], "")),
    *({"structure": value} for value in (5, [], {}, "regression")),
    *({"form": value} for value in (5, [], "npz", "x")),
    *({"format": value} for value in (9, "1", None, [])),
    *({"more": 1}, {"labels": "O" * 10**6}),
]


@pytest.mark.parametrize("bias", [10**18, 10**30, 1e30])
def test_a_bias_that_the_weights_have_none_for_is_refused(copy, bias):
    folder, data = copy
    sealed(folder, {NAMES: names(folder, bias=bias)})
    assert f"{folder} has 580 weights" in refusal(folder, data)


@pytest.mark.parametrize("change", WRONG_NAMES, ids=lambda change: str(change)[:40])
def test_wrong_names_are_refused_in_one_message(copy, change):
    folder, data = copy
    sealed(folder, {NAMES: names(folder, **change)})
    said = refusal(folder, data)
    assert f"{folder}: {NAMES}: " in said or f"trained on {change['form']}" in said
    assert len(said) < 800


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"x", b"[]", b"5", b"null", b"{}", b'"x"', b"[" * 100_000, b'{"format": 1}'),
        *(b'{"format": 1, "labels": ' + b"9" * 5000 + b"}", b"\x1f\x8b", b"\x1f\x8b" + bytes(99)),
        gzip.compress(b"[" * 100_000, mtime=0),
        gzip.compress(gzip.compress(b'{"format": 1}', mtime=0), mtime=0),
        gzip.compress(bytes(1 << 22), mtime=0)[:-4],
    ],
)
def test_what_is_no_vocabulary_is_refused(copy, content):
    folder, data = copy
    sealed(folder, {NAMES: content})
    assert f"{folder}: {NAMES}: " in refusal(folder, data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "weights.npz: ") for content in (b"", b"PK")),
        (saved(v=np.ones(3)), "it has no array w"),
        *(
            (saved(w=w), "no vector of finite numbers")
            for w in (np.ones(3, "f4"), np.ones((3, 3)), np.array([np.nan, 1.0]), np.array(["x"]))
        ),
        (saved(w=np.array([{}])), "weights.npz: "),  # an object: never unpickled
        (saved(w=np.ones(7)), "features, and there are 7 weights"),
    ],
)
def test_other_weights_are_refused(copy, content, message):
    folder, data = copy
    sealed(folder, {WEIGHTS: content})
    assert message in refusal(folder, data)


@pytest.mark.parametrize(
    "config",
    [
        *({"dataset": value} for value in (None, {}, 5, [], {"name": 5, "kind": "file"})),
        *({"oracle": value} for value in (None, {}, 5, {"name": "viterbi"})),
        *({"oracle": {"name": "x", "kind": kind}} for kind in ("x", "../x", "", "_own", "os")),
        {"oracle": {"name": "viterbi", "kind": "viterbi", "more": 1}},
        {"oracle": {"name": "binary", "kind": "binary"}},
        {"solver": {"name": 7}},
    ],
    ids=str,
)
def test_options_of_another_kind_are_refused(copy, config):
    folder, data = copy
    with_metadata(folder, lambda found: {**found, "config": {**found["config"], **config}})
    result = predicted(folder, data)
    assert result.exit_code in (1, 2)
    assert "--debug" not in error_of(result, result.exit_code)


def test_a_run_without_checksums_is_read_if_types_are_right(copy):
    folder, data = copy
    right = predicted(folder, data).stdout
    path = folder / "trace.parquet"
    table = pq.read_table(pa.BufferReader(path.read_bytes()))
    about = {key: value for key, value in table.schema.metadata.items() if b"sums" not in key}
    pq.write_table(table.replace_schema_metadata(about), path)
    assert predicted(folder, data).stdout == right
    content = (folder / NAMES).read_bytes()
    for change, message in (
        ({"labels": 5}, "its labels are no list of texts"),
        ({"labels": ["a\nb", *"cde"]}, "in its labels is no name"),
        ({"templates": ["%x[0,0"]}, "is no template"),
    ):
        (folder / NAMES).write_bytes(content)
        (folder / NAMES).write_bytes(names(folder, **change))
        for command in ("predict", "score"):
            said = error_of(call(command, folder, "--data", data), 1)
            assert f"{folder}: {NAMES}: " in said
            assert message in said
