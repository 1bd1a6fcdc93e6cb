"""Links of a user in the folders that the program writes to: nothing behind them is changed."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from program import GRID, call, error_of, python, started, wait_until

from ssvm_bench.base import files
from ssvm_bench.figures import drawing
from ssvm_bench.results import trace
from ssvm_bench.results.trace import find_runs, read_trace

NAME = "lines"
SECRET = "of another file"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with an experiment, and with its results."""
    folder = tmp_path_factory.mktemp("made")
    (folder / f"{NAME}.yaml").write_text(GRID)
    result = call("experiment", folder / f"{NAME}.yaml", f"results_dir={folder / 'results'}")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Let pictures be drawn at once."""
    monkeypatch.setattr(drawing, "rendered", lambda figure, end: b"picture")


@pytest.fixture
def results(made, tmp_path):
    """Return a copy of the results."""
    return Path(shutil.copytree(made / "results", tmp_path / "results"))


@pytest.fixture
def outside(tmp_path):
    """Return a folder with what a program might take for its own left-overs."""
    folder = tmp_path / "outside"
    token = folder / "0123456789ab"
    for place in (folder / "work", token, folder / "seed=0", folder / f".seed=0{files.MARK}0"):
        place.mkdir(parents=True)
        for name in ("notes.txt", "token", "trace.parquet", f".a{files.MARK}0"):
            (place / name).write_text(SECRET)
    (folder / "text").write_text(SECRET)
    return folder


def content(folder):
    """Return what is in a folder: names, contents, links."""
    return {
        str(path.relative_to(folder)): path.readlink()
        if path.is_symlink()
        else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def replaced(path, to):
    """Put a link in the place of a file or folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def place(results, text):
    """Return a path in a results folder; ``RUN`` is the folder of a run, ``HASH`` that one's."""
    run = find_runs(results)[0].relative_to(results)
    return results / text.replace("RUN", str(run)).replace("HASH", str(run.parent))


FOLDERS = (
    "own",
    "reference",
    "runs/usps",
    "runs/usps/bcfw",
    "RUN",
    "RUN.partial",
    "HASH",
    f"figures/{NAME}",
    f"traces/{NAME}",
)
FILES = (
    f".call-{'0' * 32}.json",
    f".call-{'0' * 32}.log",
    f"runs/.running-{socket.gethostname()}-0.lock",
    "RUN/trace.parquet",
    "RUN/summary.json",
    "RUN/traceback.txt",
    "HASH/.seed=0.lock",
    "reference/optima.json",
    "reference/.optima.json.lock",
    f"figures/{NAME}/iterations-synthetic.png",
    f"traces/{NAME}/usps-bcfw-synthetic.parquet",
    "report.html",
    f"report/{NAME}.html",
)


def commands(made, results):
    """Return calls that write to a results folder."""
    into = f"results_dir={results}"
    grid = made / f"{NAME}.yaml"
    options = ("dataset.source=synthetic", "dataset.n_samples=30", "clock=work")
    return (
        ("experiment", grid, into),
        (
            "run",
            "dataset=usps",
            "solver=bcfw",
            *options,
            "budget.max_iterations=4",
            "force=true",
            into,
        ),
        ("report", into),
        ("report", "--experiment", grid, into),
        ("merge", made / "results", "--into", results),
        ("publish", results.with_name("public"), into),
        ("verify", into),
        ("experiment", grid, "--status", into),
    )


@pytest.mark.parametrize(
    ("where", "to"),
    [
        *((where, "") for where in FOLDERS),
        *((where, "text") for where in FILES),
        *((where, "nowhere") for where in (*FOLDERS, *FILES)[::3]),
    ],
)
def test_nothing_behind_a_link_is_changed(made, results, outside, where, to):
    link = place(results, where)
    replaced(link, outside / to)
    before = content(outside)
    for command in commands(made, results):
        result = call(*command)
        assert result.exit_code in (0, 1, 2), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.stderr
        assert content(outside) == before, command
        links = [path.readlink() for path in results.rglob("*") if path.is_symlink()]
        assert links == [outside / to], command  # perhaps beside a run that was made again


@pytest.mark.parametrize("where", ["runs/usps", "RUN", f"figures/{NAME}", f"traces/{NAME}"])
def test_a_link_in_the_way_is_named(made, results, outside, where):
    link = place(results, where)
    replaced(link, outside)
    result = call(*commands(made, results)[0])
    assert result.exit_code == 1
    assert f"{link} is a link to {outside}" in result.stderr


@pytest.mark.parametrize("name", files.LINKED)
def test_folders_of_results_may_be_links(made, results, tmp_path, name):
    """People keep runs on another disk; what is there already stays."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "work").mkdir(parents=True)
    (elsewhere / "work" / "notes.txt").write_text(SECRET)
    replaced(results / name, elsewhere)
    for command in commands(made, results)[:5]:
        assert call(*command).exit_code == 0
    assert (results / name).is_symlink()
    assert content(elsewhere)["work/notes.txt"] == SECRET.encode()
    assert len(content(elsewhere)) > 2
    nowhere = tmp_path / "nowhere"
    replaced(results / name, nowhere)
    said = [call(*command) for command in commands(made, results)[:5]]
    assert any(f"{name} is a link to {nowhere}" in each.stderr for each in said)
    assert not nowhere.exists()


def test_the_results_folder_may_be_a_link(made, results, tmp_path):
    (tmp_path / "link").symlink_to(results)
    for command in commands(made, tmp_path / "link"):
        assert call(*command).exit_code == 0


def test_files_that_are_not_of_a_run_outlive_it(made, results):
    run = find_runs(results)[0]
    (run / "notes.txt").write_text(SECRET)
    (run / "more").mkdir()
    result = call(*commands(made, results)[1])
    assert result.exit_code == 0
    assert find_runs(results)[0] == run
    (kept,) = run.parent.glob(".seed=0.kept-*")
    assert (kept / "notes.txt").read_text() == SECRET
    assert str(kept) in result.stderr
    call(*commands(made, results)[1])
    assert (kept / "notes.txt").read_text() == SECRET


def test_no_text_behind_a_link_is_in_the_report(results, outside):
    run = find_runs(results)[0]
    partial = run.with_name("seed=7.partial")
    whole = read_trace(run)
    rows = whole.frame.to_dict("records")
    summary = {**whole.end, "stop_reason": "error"}
    trace.write_partial(run.with_name("seed=7"), rows, whole.metadata, summary)
    for name in ("traceback.txt", "log"):
        (partial / name).symlink_to(outside / "text")
    assert call("report", f"results_dir={results}").exit_code == 0
    page = (results / "report.html").read_text()
    assert "seed=7.partial" in page
    assert SECRET not in page


# ---- new, and the temporary folder -------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from ssvm_bench.cli import new
writes = int(sys.argv[1])
def count(event, details):
    global writes
    if event in ("open", "os.rename", "os.mkdir") and "mine" in str(details[0]):
        writes -= 1
        if writes == 0:
            os.kill(os.getpid(), 9)
sys.addaudithook(count)
new.write(sys.argv[2], "mine", Path(), [])
"""


@pytest.mark.parametrize("kind", ["solver", "oracle"])
def test_new_killed_at_any_moment_can_be_called_again(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    for number in (1, 3, 6, 9):
        process = os.fork()
        if not process:
            exec(KILLED.replace("sys.argv[1]", str(number)).replace("sys.argv[2]", repr(kind)), {})
            os._exit(0)
        os.waitpid(process, 0)
        if not Path("mine").exists():
            assert call("new", kind, "mine").exit_code == 0
        assert len([path for path in Path("mine").rglob("*") if path.is_file()]) == (
            4 if kind == "oracle" else 2
        )
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
        shutil.rmtree("mine")


@pytest.mark.parametrize("link", ["there", "nowhere"])
def test_new_writes_through_no_link(tmp_path, monkeypatch, link):
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("mine").symlink_to(link)
    assert "mine is there already" in error_of(call("new", "solver", "mine"), 2)
    assert content(tmp_path / "there") == {}


def test_a_signal_while_compiling_without_a_home_leaves_nothing(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    nowhere = {"HOME": None, "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None}
    command = ("run", "dataset=usps", "dataset.source=synthetic", f"results_dir={tmp_path / 'r'}")
    log = tmp_path / "log"
    with started(*command, log=log, anew=True, TMPDIR=temporary, **nowhere) as process:
        wait_until(lambda: list(temporary.glob(f".*{files.MARK}*")))
        process.terminate()
        assert process.wait() == 1
    assert [path for path in temporary.iterdir() if path.name.startswith(".ssvm")] == []


# ---- kernels -----------------------------------------------------------------------------------

OLD = [f"kernels-{digit * 16}" for digit in "0123456"]


def kernels(folder, **changes):
    """Let the program choose its folder of kernels; return it, and what was said."""
    code = "from ssvm_bench.base import messages, jit; print(jit.CACHE_FOLDER)"
    done = python("-c", code, NUMBA_CACHE_DIR=folder, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_of_old_kernels_only_those_of_the_program_are_deleted(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"a-{'0' * 24}").write_text("kernel")
    root = tmp_path / "cache"
    for name in ("kernels-mine", "kernels-2024", "kernels-0123456789abcdeF", *OLD):
        (root / name).mkdir(parents=True)
        (root / name / f"a.b-{'0' * 24}").write_text("kernel")
    (root / OLD[0] / "notes.txt").write_text(SECRET)
    (root / OLD[1] / "empty").mkdir()
    (root / OLD[2] / f"link-{'0' * 24}").symlink_to(elsewhere)
    (root / f"kernels-{'f' * 16}").symlink_to(elsewhere)
    (root / f"kernels-{'e' * 16}").symlink_to("nowhere")
    for age, name in enumerate(OLD):
        os.utime(root / name, (age, age))
    folder, said = kernels(root)
    assert Path(folder).parent == root
    left = {path.name for path in root.glob("kernels-*")} - {Path(folder).name}
    assert {OLD[0], OLD[1], OLD[2]} <= left
    assert {"kernels-mine", "kernels-2024", "kernels-0123456789abcdeF"} <= left
    assert {f"kernels-{'f' * 16}", f"kernels-{'e' * 16}"} <= left
    assert OLD[3] not in left
    assert len(list(elsewhere.iterdir())) == 1
    assert f"{root / OLD[0]} is not deleted: notes.txt" in said


@pytest.mark.parametrize("to", ["nowhere", "elsewhere"])
def test_a_link_in_the_place_of_the_kernels_is_told(tmp_path, to):
    root = tmp_path / "cache"
    root.mkdir()
    name = Path(kernels(root)[0]).name
    (tmp_path / "elsewhere").mkdir()
    replaced(root / name, tmp_path / to)
    folder, said = kernels(root, TMPDIR=tmp_path)
    assert Path(folder).parent != root
    assert f"{name} is a link to {tmp_path / to}" in said
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_kernels_that_others_may_write_are_not_read(tmp_path, mode):
    folder, said = kernels(tmp_path)
    assert said == ""
    assert Path(folder).stat().st_mode & 0o022 == 0
    Path(folder).chmod(mode)
    other, said = kernels(tmp_path)
    assert other != folder
    assert "others may write to it" in said
