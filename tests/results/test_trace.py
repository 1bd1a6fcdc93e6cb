"""Run folders: complete or absent, whatever happens to their writer."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from program import python, wait_until

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import provenance, run_folder, trace
from ssvm_bench.results.folder import sweep

METADATA = {
    "config": {"solver": {"name": "bcfw"}, "seed": 0},
    "dataset": {"name": "toy", "source": "synthetic", "n": 5, "d": 3, "fingerprint": "f00"},
    "lam": 0.2,
    "seed": 0,
    "clock": "work",
}
SUMMARY = {"stop_reason": "max_iterations", "best_primal": 0.5, "best_dual": 0.25}
INTERRUPTED = {"stop_reason": "interrupted"}


def rows(count=3, **extra):
    zero = {name: 0 if column.dtype == "int64" else 0.5 for name, column in trace.COLUMNS.items()}
    return [{**zero, "iteration": k, **extra} for k in range(count)]


def write(folder, count=3, w=(1.0, 2.0, 3.0), **summary):
    config = {"seed": 0, "results_dir": Path("here"), "lam": None}
    content = {**SUMMARY, **summary}
    trace.write_run(folder, rows(count), METADATA, config, content, np.array(w))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs" / "toy" / "bcfw" / "0123456789ab" / "seed=0"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("r/runs/toy/bcfw/hash/seed=0", "r"),
        ("runs/toy/bcfw/hash/seed=0", "."),
        ("r/else/toy/bcfw/hash/seed=0", "r/else/toy/bcfw/hash"),
        ("seed=0", "."),
    ],
)
def test_the_results_folder_of_a_run_is_above_runs_or_the_folder_it_is_in(place, expected):
    assert run_folder.results_of(Path(place)) == Path(expected)


def hidden(folder):
    return [path.name for path in folder.parent.glob(".*") if path.suffix != ".lock"]


def test_what_is_written_is_read_back(folder, tmp_path):
    table = rows(4, oracle_flips=0.25)
    table[2]["dual"] = float("nan")
    summary = {**SUMMARY, "gap": np.float64("nan"), "iteration": np.int64(3)}
    trace.write_run(folder, table, METADATA, {"lam": 0.2}, summary, np.arange(3.0))
    assert trace.is_finished(folder)
    assert trace.find_runs(tmp_path) == [folder]
    assert trace.find_runs(tmp_path, dataset="other") == []
    run = trace.read_trace(folder)
    pd.testing.assert_frame_equal(run.frame, pd.DataFrame(table), check_dtype=False)
    assert run.metadata == {"format": trace.FORMAT, **METADATA}
    assert run.end == {**SUMMARY, "gap": None, "iteration": 3}
    assert yaml.safe_load((folder / "config.yaml").read_text()) == {"lam": 0.2}
    w = np.load(folder / "weights.npz")["w"]
    assert (w.dtype, w.tolist()) == (np.float64, [0, 1, 2])
    assert hidden(folder) == []


def test_a_partial_trace_is_never_a_finished_run(folder, tmp_path):
    summary = {"stop_reason": "error"}
    partial = trace.write_partial(folder, rows(2), METADATA, summary, traceback="Boom")
    assert partial.name == "seed=0.partial"
    assert not trace.is_finished(folder)
    assert not trace.is_finished(partial)
    assert trace.find_runs(tmp_path) == []
    assert len(trace.read_trace(partial).frame) == 2
    assert (partial / "traceback.txt").read_text() == "Boom"
    trace.write_partial(folder, [], METADATA, INTERRUPTED)
    assert json.loads((partial / "summary.json").read_text()) == INTERRUPTED
    write(folder)
    assert not partial.exists()
    with pytest.raises(ValueError, match="stop_reason"):
        trace.write_partial(folder, rows(2), METADATA, SUMMARY)


def test_a_partial_trace_that_is_replaced_while_it_is_read_is_read_again(folder, monkeypatch):
    def write_partial(count):
        summary = {**INTERRUPTED, "iteration": count}
        return trace.write_partial(folder, rows(count), METADATA, summary)

    read, left = trace.files.read, [3, 4]

    def read_slowly(path, **how):
        content = read(path, **how)
        if path.name == "trace.parquet" and left:
            write_partial(left.pop(0))
        return content

    partial = write_partial(2)
    monkeypatch.setattr(trace.files, "read", read_slowly)
    found = trace.read_trace(partial)
    assert (len(found.frame), found.summary["iteration"]) == (4, 4)
    (partial / "summary.json").write_text("{}")
    with pytest.raises(RunFailedError, match="not what was written"):
        trace.read_trace(partial)


def refused(folder, match):
    with pytest.raises(RunFailedError, match=match) as error:
        trace.read_trace(folder)
    message = str(error.value)
    assert str(folder) in message
    assert "force=true" in message
    assert "\n" not in message


def test_other_damage_is_refused(folder):
    def header(**changes):
        return {"ssvm_bench": json.dumps({"format": trace.FORMAT, **changes})}

    for change, metadata, match in (
        (lambda table: table, {}, "no 'ssvm_bench' metadata"),
        (lambda table: table, {"ssvm_bench": "[1]"}, "format version None"),
        (lambda table: table, header(format=99), "format version 99"),
        (lambda table: table.drop_columns(["gap"]), header(), "columns gap"),
        (lambda table: table.slice(0, 0), header(), "no rows"),
    ):
        write(folder)
        table = change(pq.read_table(folder / "trace.parquet"))
        pq.write_table(table.replace_schema_metadata(metadata), folder / "trace.parquet")
        refused(folder, match)
    write(folder)
    (folder / "summary.json").write_text("{")
    refused(folder, "Cannot read the run")
    refused(folder.with_name("seed=9"), "Cannot read the run")


def test_a_full_disk_leaves_nothing_behind_and_spares_the_old_run(folder, monkeypatch):
    write(folder, count=2)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunFailedError, match=r"No space left.*results_dir") as error:
            write(folder, count=3)
        with pytest.raises(RunFailedError, match="No space left"):
            trace.write_partial(folder, rows(), METADATA, INTERRUPTED)
    assert str(folder) in str(error.value)
    assert [path.name for path in folder.parent.iterdir()] == ["seed=0"]
    assert len(trace.read_trace(folder).frame) == 2


def test_a_results_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def is_refused(folder, match):
        with pytest.raises(RunFailedError, match=match):
            write(folder)
        with pytest.raises(RunFailedError, match=match), run_folder.lock(folder):
            pass

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "file").write_text("not a folder")
    is_refused(tmp_path / "file" / "runs" / "seed=0", "results_dir")
    monkeypatch.setattr(Path, "mkdir", forbidden)
    is_refused(tmp_path / "seed=0", "Permission denied")


@contextmanager
def writer(folder):
    """Let a copy of this process write three runs in turn; it is killed in the end."""
    if (process := os.fork()) == 0:
        try:
            for k in itertools.count():
                run = folder / f"seed={k % 3}"
                with run_folder.lock(run):
                    table, w = rows(200), np.full(20_000, float(k))
                    trace.write_partial(run, table, METADATA, INTERRUPTED)
                    trace.write_run(run, table, METADATA, {"k": k}, {**SUMMARY, "k": k}, w)
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the writer failed"


def check_complete(folder):
    """The four files of a run belong to the same moment, and all of them are whole."""
    k = trace.read_trace(folder).summary["k"]
    assert len(trace.read_trace(folder).frame) == 200
    assert yaml.safe_load((folder / "config.yaml").read_text()) == {"k": k}
    assert np.array_equal(np.load(folder / "weights.npz")["w"], np.full(20_000, float(k)))


def test_kill_9_at_random_moments_leaves_no_half_written_run(tmp_path):
    random, finished = np.random.default_rng(0), 0
    folders = [tmp_path / f"seed={seed}" for seed in range(3)]
    for _ in range(6):
        with writer(tmp_path):
            wait_until(lambda: list(tmp_path.glob("seed=?")))
            time.sleep(random.uniform(0.0, 0.1))
        for folder in folders:
            assert trace.is_finished(folder) == folder.exists()
            if folder.exists():
                check_complete(folder)
                finished += 1
    assert finished > 0
    for folder in folders:  # the next to take the lock tidies up, and loses no run
        before = folder.exists()
        with run_folder.lock(folder):
            assert trace.is_finished(folder) >= before
    assert [path for path in tmp_path.glob(".*") if path.suffix != ".lock"] == []


CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "exchange")


def killed_while_replacing(folder, number, exchanges):
    """Replace a run in a process that is killed before a change of its files; None: it was not."""
    if (process := os.fork()) == 0:
        left, exchange = number, run_folder._exchange

        def count(event, details):
            nonlocal left
            makes = event == "open" and (details[2] or 0) & os.O_CREAT
            if makes or event in CHANGES:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        def counted(one, other):
            sys.audit("exchange")
            return exchanges and exchange(one, other)

        run_folder._exchange = counted
        sys.addaudithook(count)
        with run_folder.lock(folder):
            write(folder, count=3)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1]) or None


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_run_that_is_replaced_is_there_at_any_moment(folder, tmp_path, exchanges, monkeypatch):
    """Its path is relative, as with the default results folder."""
    monkeypatch.chdir(tmp_path)
    folder, number = folder.relative_to(tmp_path), 1
    write(folder, count=2)
    trace.write_partial(folder, rows(3), METADATA, INTERRUPTED)
    while killed_while_replacing(folder, number, exchanges):
        if exchanges:
            assert trace.is_whole(folder)
        assert trace.find_runs(Path()) == [folder]
        there = len(trace.read_run(folder).frame)
        assert there in (2, 3)
        with run_folder.lock(folder):  # as the same command does when it is given again
            trace.remove_superseded(folder)
            partial = run_folder.partial_folder(folder)
            assert partial.exists() == (there == 2)
            assert hidden(folder) == []
            write(folder, count=2)
        trace.write_partial(folder, rows(3), METADATA, INTERRUPTED)
        number += 1
    assert number > 12


def test_a_partial_trace_that_is_worth_something_is_kept(folder, tmp_path):
    old, new = ({**METADATA, "started": f"2026-01-0{day}T00:00:00+00:00"} for day in (1, 2))
    for rows_, metadata, summary, kept in (
        (2, old, INTERRUPTED, False),
        (3, old, INTERRUPTED, False),
        (4, old, INTERRUPTED, True),  # of an extension
        (2, new, INTERRUPTED, True),  # made by force
        (2, old, {"stop_reason": "error"}, True),
    ):
        trace.write_run(folder, rows(3), {**old}, {}, SUMMARY, np.ones(3))
        partial = trace.write_partial(folder, rows(rows_), metadata, summary)
        sweep(tmp_path)
        assert partial.exists() == kept
    (partial / "trace.parquet").unlink()
    (partial / "checkpoint").write_bytes(b"x")
    sweep(tmp_path)
    assert not partial.exists()


def test_two_processes_may_write_the_same_runs(tmp_path):
    with writer(tmp_path), writer(tmp_path):
        wait_until(lambda: len(list(tmp_path.glob("seed=?"))) == 3)
        time.sleep(0.5)  # they replace what is there
    for seed in range(3):
        check_complete(tmp_path / f"seed={seed}")


def test_provenance_names_versions_but_no_person_and_no_machine(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("socket.gethostname", lambda: "name-of-a-machine")
    monkeypatch.setattr("platform.node", lambda: "name-of-a-machine")
    known = provenance.provenance()
    assert {"python", "numpy", "numba", "ssvm-bench"} <= known["versions"].keys()
    assert known["threads"]["OMP_NUM_THREADS"] == "1"
    assert known["cores"] >= 1
    assert known["cpu"]
    assert json.loads(json.dumps(known)) == known
    assert not {"user", "host", "hostname"} & known.keys()
    assert "name-of-a-machine" not in json.dumps(known)
    assert known["node"].startswith(f"{os.cpu_count()} core")


def test_the_commit_is_that_of_the_checkout_only(tmp_path, monkeypatch):
    commit_of = provenance._source_commit.__wrapped__
    assert commit_of(tmp_path) == (None, None)
    for folder in ("ssvm_bench", "results", ".venv/lib"):
        (tmp_path / folder).mkdir(parents=True)
    file = tmp_path / "ssvm_bench" / "a.py"
    file.write_text("a = 1\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    commit, dirty = commit_of(tmp_path)
    assert (len(commit), dirty) == (40, False)
    (tmp_path / "results" / "new").write_text("results do not make the code dirty")
    assert commit_of(tmp_path) == (commit, False)
    file.write_text("a = 2\n")
    assert commit_of(tmp_path) == (commit, True)
    assert commit_of(tmp_path / ".venv" / "lib") == (None, None)


def test_reading_starts_no_threads(folder):
    """Of Arrow: a process that ends while they start is aborted."""
    code = (
        "import os, pathlib, sys\n"
        "from ssvm_bench.results import trace\n"
        "begun = len(os.listdir('/proc/self/task'))\n"
        "trace.read_trace(pathlib.Path(sys.argv[1]))\n"
        "print(len(os.listdir('/proc/self/task')) - begun)"
    )
    write(folder)
    assert python("-c", code, folder).stdout == "0\n"
