"""Files that appear at once: what a dead writer leaves is swept, what a live one holds is not."""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from program import put_odd

from ssvm_bench.base import files
from ssvm_bench.results.folder import sweep
from ssvm_bench.results.run_folder import OWN

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


@pytest.mark.parametrize("through_link", [False, True])
def test_a_pipe_or_a_folder_is_never_replaced(tmp_path, through_link):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        path = tmp_path / name
        if through_link:
            path = tmp_path / f"to_{name}"
            path.symlink_to(name)
        before = path.lstat()
        with pytest.raises(OSError, match=f"{path.name} is not a regular file"):
            files.write(path, b"content")
        assert os.path.samestat(path.lstat(), before)
    assert not [*tmp_path.glob(".*")]


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


# ---- deleting ----------------------------------------------------------------------------------

SPOILS = {
    "another file": lambda folder: (folder / "notes.txt").write_text("mine"),
    "a hidden file": lambda folder: (folder / ".notes").write_text("mine"),
    "a name that goes on": lambda folder: (folder / "trace.parquet.bak").write_text("mine"),
    "a folder": lambda folder: (folder / "trace.parquet").mkdir(),
    "a folder of its names": lambda folder: files.write(folder / "old" / "trace.parquet", b"mine"),
    "a link": lambda folder: (folder / "trace.parquet").symlink_to("/etc/passwd"),
    "a dangling link": lambda folder: (folder / "trace.parquet").symlink_to("nowhere"),
    "a pipe": lambda folder: os.mkfifo(folder / "trace.parquet"),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_folder_with_anything_else_is_not_deleted(tmp_path, caplog, spoil):
    folder = tmp_path / "seed=0"
    files.write(folder / "summary.json", b"{}")
    assert files.remove(folder, OWN)
    assert list(tmp_path.iterdir()) == []
    files.write(folder / "summary.json", b"{}")
    spoil(folder)
    before = sorted(folder.rglob("*"))
    assert not files.remove(folder, OWN)
    assert sorted(folder.rglob("*")) == before
    assert f"{folder} is not deleted" in caplog.text


def test_only_a_name_of_the_program_is_deleted(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "trace.parquet").write_text("mine")
    (tmp_path / "seed=0").symlink_to("elsewhere")
    (tmp_path / "trace.parquet").symlink_to("elsewhere/trace.parquet")
    (tmp_path / "notes.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    for name in ("seed=0", "trace.parquet", "notes.txt"):
        assert not files.remove(tmp_path / name, OWN)
    assert sorted(tmp_path.rglob("*")) == before
    assert files.remove(tmp_path / "missing", OWN)


def test_a_sweep_follows_no_link_and_spares_names_of_others(tmp_path):
    outside = tmp_path / "outside"
    (outside / "work").mkdir(parents=True)
    place = tmp_path / "place"
    spared = (f"x{files.MARK}1", f".x{files.MARK}1-notes", f".x{files.MARK}")
    for name in spared:
        files.write(place / name, b"mine")
    (place / f".link{files.MARK}1").symlink_to(outside)
    left = place / f".a{files.MARK}1"
    left.mkdir()
    (left / "link").symlink_to(outside)
    files.sweep(place)
    assert not left.exists()
    assert {path.name for path in place.iterdir()} == {*spared, f".link{files.MARK}1"}
    assert (outside / "work").is_dir()


def test_a_lock_is_a_regular_file_and_nothing_is_written_to_it(tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    for kind in ("link", "pipe", "folder"):
        path = tmp_path / f"{kind}.lock"
        path.symlink_to(other) if kind == "link" else put_odd(path, kind)
        with pytest.raises(OSError, match=r"link\.lock is a link to .*other|regular|director"):
            files.locked(path).__enter__()
    assert other.read_text() == "mine"
    with files.locked(other), pytest.raises(files.HeldError):
        files.locked(other, seconds=0).__enter__()
    with files.locked(other, seconds=0):
        assert other.read_text() == "mine"


# ---- the table of SECURITY.md ------------------------------------------------------------------

ROOT = Path(files.__file__).parents[2]
TOUCHES = {
    *("rmtree", "unlink", "rmdir", "removedirs", "renames", "copy2", "copyfile", "copytree"),
    *("mkdir", "makedirs", "symlink_to", "hardlink_to", "write_bytes", "ftruncate", "utime"),
    *("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "chmod"),
}
OF_MODULES = {
    *("os.remove", "os.open", "os.link", "os.symlink", "os.truncate", "os.mkfifo", "os.rename"),
    *("os.replace", "shutil.move", "shutil.copy", "shutil.chown"),
}


def touches(call):
    """Tell whether a call deletes, renames or writes in a file system, or opens a descriptor."""
    whole, name = ast.unparse(call.func), ast.unparse(call.func).rpartition(".")[2]
    constants = [arg.value if isinstance(arg, ast.Constant) else None for arg in call.args]
    constants += [key.value.value for key in call.keywords if isinstance(key.value, ast.Constant)]
    if name == "open":
        modes = constants[:1] if "." in whole else constants
        return whole == "os.open" or any(
            isinstance(mode, str) and re.fullmatch("(?=.*[wax+])[rwaxbt+]{1,3}", mode)
            for mode in (constants if whole.startswith(("gzip.", "io.", "bz2.")) else modes)
        )
    if name in ("replace", "rename"):  # of a path, not of a text, a dataclass or a table
        return ("." in whole and len(call.args) == 1 and not call.keywords) or whole in OF_MODULES
    if name in ("touch", "write_text"):
        return "." in whole and whole != "formatter.write_text"  # of click
    return name in TOUCHES or whole in OF_MODULES


def found(module):
    """Yield the functions of a module with such calls."""
    functions = [
        node
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.Module)
    ]
    within = {}
    for node in functions:  # the innermost comes last
        for inner in ast.walk(node):
            within[inner] = getattr(node, "name", "")
    return {
        function
        for node, function in within.items()
        if isinstance(node, ast.Call) and touches(node)
    }


def test_all_that_touches_files_is_in_the_table_of_security():
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    told = {
        (module, function)
        for row in rows
        for module, functions in re.findall(r"`([\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", row)
        for function in re.findall(r"\w+", functions)
    }
    package = ROOT / "ssvm_bench"
    there = {
        (module.relative_to(package).as_posix(), function)
        for module in package.rglob("*.py")
        for function in found(module)
    }
    assert there == told


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        *((line, True) for line in ("shutil.rmtree(a)", "path.unlink()", "a.replace(b)")),
        *((line, True) for line in ("os.replace(a, b)", "open(a, 'w')", "a.open('xb')")),
        *((line, True) for line in ("open(a, mode='a')", "a.touch()", "gzip.open(a, 'wt')")),
        *((line, False) for line in ("a.replace('b', 'c')", "replace(a, b=1)", "a.open()")),
        *((line, False) for line in ("open(a)", "open(a, 'rb')", "table.rename(columns={})")),
    ],
)
def test_the_table_would_miss_no_call(line, seen):
    assert touches(ast.parse(line, mode="eval").body) == seen
