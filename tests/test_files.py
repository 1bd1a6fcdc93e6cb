"""Files that appear at once: what a dead writer leaves is swept, what a live one holds is not."""

import signal
import subprocess
import sys

import pytest
from program import put_odd

from ssvm_bench.base import files
from ssvm_bench.results.folder import sweep

WRITER = """
import os, signal, sys, time
from pathlib import Path
from ssvm_bench.base import files

def fill(file):
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(60)

if sys.argv[1] == "file":
    files.write(Path(sys.argv[2]), fill)
with files.temporary_folder(Path(sys.argv[2])) as folder:
    (folder / "part").write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


def start(kind, path):
    command = [sys.executable, "-c", WRITER, kind, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    process.stdout.close()
    return process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_leaves_is_swept_and_a_live_one_is_left_alone(tmp_path, kind):
    dead, live = (start(kind, tmp_path / name) for name in ("dead", "live"))
    try:
        dead.kill()
        dead.wait()
        assert len(list(tmp_path.iterdir())) == 2
        files.write(tmp_path / "other", b"")
        left, other = sorted(path.name for path in tmp_path.iterdir())
        assert left.startswith(".live.tmp-ssvm-bench-")
        assert other == "other"
    finally:
        live.kill()
        live.wait()


@pytest.mark.parametrize("place", [".", "reference", "figures/x", "traces/x", "runs/a/b/c"])
def test_every_folder_of_results_is_swept(tmp_path, place):
    left = tmp_path / place / f".a{files.MARK}1"
    left.mkdir(parents=True)
    (left / "part").write_bytes(b"half")
    sweep(tmp_path)
    assert not left.exists()


def test_a_write_that_fails_leaves_nothing_and_spares_what_was_there(tmp_path):
    path = tmp_path / "below" / "file"
    files.write(path, b"old")

    def fill(file):
        file.write(b"new")
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        files.write(path, fill)
    assert [file.read_bytes() for file in path.parent.iterdir()] == [b"old"]


def test_a_name_that_a_sweeper_took_is_replaced_by_another(tmp_path, monkeypatch):
    names = iter(["taken", "free"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    lock = files.fcntl.flock

    def swept(descriptor, how):
        monkeypatch.setattr(files.fcntl, "flock", lock)
        files.sweep(tmp_path)
        lock(descriptor, how)

    monkeypatch.setattr(files.fcntl, "flock", swept)
    files.write(tmp_path / "file", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_only_regular_files_are_read(tmp_path):
    signal.alarm(120)  # a pipe without a writer would hang
    try:
        for kind in ("pipe", "loop", "endless", "missing", "folder"):
            put_odd(tmp_path / kind, kind)
            with pytest.raises(OSError):  # noqa: PT011
                files.read(tmp_path / kind)
    finally:
        signal.alarm(0)
    files.write(tmp_path / "file", b"12345")
    assert files.read(tmp_path / "file") == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        files.read(tmp_path / "file", limit=4)
