"""`ssvm-bench publish`: what it writes, what another machine reads, and what it never touches."""

import getpass
import json
import os
import re
import shutil
import socket
from pathlib import Path

import pandas as pd
import pytest
from program import USPS, call, error_of, run_here
from traces import make_trace

from ssvm_bench.report import publishing
from ssvm_bench.report.contents import file_of
from ssvm_bench.results import stored_traces
from ssvm_bench.results.folder import MARKER, OWN

PNG = b"\x89PNG\r\n\x1a\nnot much of a picture"


def trace(solver, seed=0, factor=1, **more):
    """Return a run whose calls are those of another one, times a factor."""
    calls = [factor * count for count in (0, 20, 40, 60)]
    made = make_trace(
        *([1.0, 1.0, 1.0, 1.0], [0.0, 0.5, 0.95, 0.995]),
        **{"oracle_calls": calls, "time": calls, "solver": solver, "seed": seed, **more},
    )
    made.end.update(iteration=3, primal=1.0, dual=0.995, best_primal=1.0, best_dual=0.995)
    return made


@pytest.fixture
def results(tmp_path):
    """A results folder with the runs of two experiments, one of them drawn."""
    folder = tmp_path / "results"
    both = [trace(solver, seed) for solver in ("bcfw", "mpbcfw") for seed in (0, 1)]
    stored_traces.write(both, folder, "mine")
    stored_traces.write(both[:2], folder, "other/seed=0+1")
    for name in ("mine", "nothing"):
        (folder / "figures" / name).mkdir(parents=True)
        (folder / "figures" / name / "iterations.png").write_bytes(PNG)
    return folder


def publish(folder, results, *words):
    done = call("publish", folder, f"results_dir={results}", *words)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"published: {folder / 'index.html'}\n"
    return done


def content(folder):
    """Return what is in a folder: names, contents, links."""
    return {
        path.relative_to(folder).as_posix(): path.readlink()
        if path.is_symlink()
        else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def ratio(*words):
    """Return the first ratio of calls of a comparison."""
    done = call("compare", *words, "--format", "svg")
    assert done.exit_code == 0, done.output
    (csv,) = (line for line in done.stdout.splitlines() if line.endswith(".csv"))
    return pd.read_csv(csv.removeprefix("file: "))["calls"].iloc[0]


def test_another_machine_compares_its_runs_with_those_published(results, tmp_path, monkeypatch):
    publish(tmp_path / "public", results)
    shutil.rmtree(results)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(tmp_path / "public", elsewhere / "theirs")
    stored_traces.write([trace("bcfw", 1, factor=3)], elsewhere / "results", "something")
    monkeypatch.chdir(elsewhere)
    assert ratio("theirs", "mine") == ratio("theirs", "results") == 3.0
    assert ratio("bcfw", "mpbcfw", "results_dir=theirs") == 1.0


def test_a_folder_is_whole_without_anything_else(results, tmp_path):
    folder = tmp_path / "public"
    publish(folder, results)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        *(".nojekyll", "index.html", "mine.html", "provenance.json", "published.json"),
        file_of("other/seed=0+1"),
        *("reference/optima.json", "traces/mine/toy-bcfw.parquet"),
        *("traces/mine/toy-mpbcfw.parquet", "traces/other/seed=0+1/toy-bcfw.parquet"),
    }
    told = json.loads((folder / "provenance.json").read_text())["experiments"]
    assert {name: of["runs"] for name, of in told.items()} == {"mine": 4, "other/seed=0+1": 2}
    for page in folder.glob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            assert link.startswith("data:") or (folder / link).is_file(), link


def test_runs_that_no_experiment_has_stored_have_a_page(tmp_path):
    results, folder = tmp_path / "results", tmp_path / "public"
    run_here(results, "solver=bcfw", "budget.max_iterations=3", data=USPS)
    publish(folder, results)
    assert "<h1>Single runs</h1>" in (folder / "single_runs.html").read_text()
    (stored,) = stored_traces.read_file(
        folder / "traces/single_runs/usps-bcfw-synthetic.parquet", folder
    )
    assert stored["iteration"].tolist() == [0, 1, 2, 3]
    assert call("verify", f"results_dir={folder}").exit_code == 0


def test_a_second_call_changes_nothing_and_a_later_one_what_is_new(results, tmp_path):
    folder = tmp_path / "public"
    publish(folder, results)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert "has all of it already" in publish(folder, results).stderr
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    (folder / ".git").mkdir()
    (folder / "CNAME").write_text("of mine")
    shutil.rmtree(results / "traces" / "mine")
    stored_traces.write([trace("fw")], results, "third")
    publish(folder, results, "--replace")
    assert (folder / "CNAME").read_text() == "of mine"
    assert not (folder / "mine.html").exists()
    assert not [*folder.glob("traces/mine/*")]
    assert (folder / "third.html").is_file()
    fresh = tmp_path / "fresh"
    publish(fresh, results)
    written = ({name for name, of in content(place).items() if of} for place in (folder, fresh))
    assert next(written) - {"CNAME"} == next(written)


def test_published_runs_are_deleted_only_on_request(results, tmp_path):
    """The runs of another results folder were deleted without a word."""
    folder, others = tmp_path / "public", tmp_path / "others"
    publish(folder, results)
    stored_traces.write([trace("fw")], others, "mine")
    before = content(folder)
    message = error_of(call("publish", folder, f"results_dir={others}"), 2)
    assert "has 4 runs that are not among those to publish, as toy/bcfw/hash/seed=0." in message
    assert "Choose another folder, or add --replace to delete them there." in message
    assert content(folder) == before
    # a run that another experiment has stored meanwhile is still there
    shutil.move(results / "traces" / "mine", results / "traces" / "renamed")
    publish(folder, results)
    assert not (folder / "mine.html").exists()
    publish(folder, others, "--replace")
    assert [path.name for path in folder.rglob("*.parquet")] == ["toy-fw.parquet"]


def test_runs_are_called_what_they_are(results, tmp_path, monkeypatch):
    """Nobody has committed what was published or unpacked somewhere."""
    folder = tmp_path / "public"
    publish(folder, results)
    (results / MARKER).touch()
    (results / "own").mkdir()
    for place, word in ((folder, "published"), (results, "stored"), (results, "committed")):
        if word == "committed":
            (tmp_path / ".git").mkdir()
        monkeypatch.chdir(place.parent)
        where = f"results_dir={place}"
        done = call("compare", "bcfw", "mpbcfw", where, "--format", "svg")
        assert f"Only {word} runs are compared." in done.stdout
        assert f"What is {word} there" in error_of(call("report", where), 1)
        said = done.output.replace("runs=committed", "") + call("report", where, "--all").output
        said += (place / "report" / "index.html").read_text()
        assert ("committed" in said.lower()) == (word == "committed")


def test_nothing_of_the_machine_is_published(tmp_path):
    """Neither a folder, nor an address, nor a name of user or computer."""
    results, data = tmp_path / "a secret place", tmp_path / "my data"
    options = {"dataset": {"name": "toy", "path": str(data / "train.txt"), "test": "~me/test.txt"}}
    options |= {"parallel": {"address": "tcp://10.0.0.7:8786"}, "results_dir": str(results)}
    options |= {"oracle": {"name": "x", "kind": "multiclass", "loss": f"{data}/loss.txt"}}
    runs = [trace("bcfw", config=options, options={"step": "2n/(k+2n)", "a": ["/root/x", 1]})]
    stored_traces.write(runs, results, "mine")
    publish(tmp_path / "public", results)
    (stored,) = stored_traces.read_file(
        tmp_path / "public/traces/mine/toy-bcfw.parquet", tmp_path / "public"
    )
    told = stored.options
    assert told["dataset.path"] == "train.txt"
    assert told["dataset.test"] == "test.txt"
    assert told["oracle.loss"] == "loss.txt"
    assert told["parallel.address"] is None
    assert told["solver.step"] == "2n/(k+2n)"
    assert told["solver.a"] == ["x", 1]
    texts = [json.dumps([stored.metadata, stored.end])]
    texts += [
        path.read_text()
        for path in (tmp_path / "public").rglob("*")
        if path.is_file() and path.suffix != ".parquet"
    ]
    names = {socket.gethostname(), getpass.getuser()} - {"root"}  # which is a word of options, too
    for secret in (str(tmp_path), "a secret place", "my data", "10.0.0.7", *names):
        assert not [text for text in texts if re.search(rf"\b{re.escape(secret)}\b", text)], secret


def test_pictures_of_pages_come_along(tmp_path):
    committed = Path(__file__).parents[2] / "results"
    name = "dcadmm_solves"
    if not (committed / "traces" / name).is_dir():
        pytest.skip("no committed results")
    words = (f"results_dir={committed}", "--experiment", name, "--runs", "committed")
    done = call("publish", tmp_path / "public", *words)
    assert done.exit_code == 0, done.output
    linked = set()
    for page in (tmp_path / "public").glob("*.html"):
        linked |= set(re.findall(r'<img src="([^"]+)"', page.read_text()))
    there = {path.relative_to(tmp_path / "public") for path in tmp_path.glob("public/figures/*/*")}
    assert {Path(link) for link in linked} == there


def test_whose_runs_and_which(results, tmp_path):
    folder = tmp_path / "public"
    assert "has no results that came with it" in error_of(
        call("publish", folder, f"results_dir={results}", "--runs", "committed"), 2
    )
    (results / MARKER).touch()
    stored_traces.write([trace("fw")], results / OWN, "own_one")
    assert "These are your own runs;" in publish(folder, results).stderr
    assert sorted(path.name for path in folder.glob("traces/*")) == ["own_one"]
    publish(folder, results, "--runs", "committed", "--replace")
    assert sorted(path.name for path in folder.glob("traces/*/*.parquet")) == [
        "toy-bcfw.parquet",
        "toy-mpbcfw.parquet",
    ]
    words = (f"results_dir={results}", "--experiment", "quickstart")
    assert "no finished runs of quickstart in" in error_of(call("publish", folder, *words), 1)
    words = (f"results_dir={results}", "--experiment", "quikstart")
    assert "Did you mean quickstart" in error_of(call("publish", folder, *words), 2)


@pytest.mark.parametrize(
    ("make", "status", "message"),
    [
        (lambda folder, _: folder.write_text("mine"), 2, "is a file"),
        (lambda folder, _: (folder.mkdir(), (folder / "a").touch()), 2, "as a. Choose"),
        (lambda folder, results: folder.symlink_to(results), 2, "is a link"),
        (lambda folder, _: folder.symlink_to("nowhere"), 2, "is a link"),
        (lambda folder, _: os.mkfifo(folder), 2, "is a file"),
    ],
)
def test_a_folder_that_is_not_ours_is_left_alone(results, tmp_path, make, status, message):
    folder = tmp_path / "public"
    make(folder, results)
    before = content(tmp_path) if not folder.is_fifo() else None
    assert message in error_of(call("publish", folder, f"results_dir={results}"), status)
    assert before is None or content(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder, _: (folder / "index.html").write_text("mine"), "is not as publish has"),
        (lambda folder, _: (folder / "third.html").write_text("mine"), "is not as publish has"),
        (lambda folder, _: (folder / "third.html").mkdir(), "is not a file of publish"),
        (lambda folder, _: (folder / publishing.PUBLISHED).write_text("{}"), "is not known as"),
        (
            lambda folder, out: _replaced(folder / publishing.PUBLISHED, out / "a"),
            "is not known as",
        ),
        (lambda folder, out: _replaced(folder / "index.html", out / "a"), "is a link"),
        (lambda folder, out: _replaced(folder / "traces", out), "is a link"),
        (lambda folder, out: _replaced(folder / "traces" / "mine", out), "is a link"),
        (lambda folder, _: _listed(folder, "../results/x"), "no file of a published folder"),
        (lambda folder, _: _listed(folder, "/etc/passwd"), "no file of a published folder"),
    ],
)
def test_what_was_changed_in_a_published_folder_stays(results, tmp_path, change, message):
    folder, outside = tmp_path / "public", tmp_path / "outside"
    publish(folder, results)
    outside.mkdir()
    (outside / "a").write_text("mine")
    change(folder, outside)
    shutil.rmtree(results / "traces" / "mine")
    stored_traces.write([trace("fw")], results, "third")
    before = content(tmp_path)
    assert message in error_of(call("publish", folder, f"results_dir={results}"), 2)
    assert content(tmp_path) == before


def _replaced(path, to):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(to)


def _listed(folder, path):
    made = publishing._listed({path: ["0" * 64]})
    (folder / publishing.PUBLISHED).write_bytes(made)


def test_a_call_that_died_half_way_is_repeated(results, tmp_path, monkeypatch):
    folder, write = tmp_path / "public", publishing.files.write
    folder.mkdir()
    left_over = folder / f".{publishing.PUBLISHED}{publishing.files.MARK}0"
    left_over.touch()
    publish(folder, results)
    assert not left_over.exists()
    stored_traces.write([trace("fw")], results, "third")
    for count in (1, 2, 4):
        left = [count]

        def dies(path, content, within=None, left=left):
            if folder in path.parents:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
            return write(path, content, within)

        monkeypatch.setattr(publishing.files, "write", dies)
        assert call("publish", folder, f"results_dir={results}").exit_code != 0
        monkeypatch.setattr(publishing.files, "write", write)
        stored_traces.write([trace("fw", seed=count)], results, "third")
    publish(folder, results)
    assert "has all of it already" in publish(folder, results).stderr


def test_messages(results, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    message = error_of(call("publish", tmp_path / "public", f"results_dir={empty}"), 1)
    assert f"There are no finished runs in {empty}" in message
    assert not (tmp_path / "public").exists()
    for folder in (results, results / "public", results / "figures" / "new"):
        message = error_of(call("publish", folder, f"results_dir={results}"), 2)
        assert "is in the results folder" in message
    assert "before results_dir=" in error_of(call("publish", f"results_dir={results}"), 2)
    assert "Missing argument 'FOLDER'" in error_of(call("publish"), 2)
    (tmp_path / "file").touch()
    message = error_of(call("publish", tmp_path / "file" / "public", f"results_dir={results}"), 1)
    assert "Cannot publish to" in message
    damaged = results / "traces/mine/toy-bcfw.parquet"
    damaged.write_bytes(b"PAR1 cut short")
    assert "Passed over: Cannot read the stored" in publish(tmp_path / "public", results).stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written(results, tmp_path):
    place = tmp_path / "mine"
    place.mkdir(0o500)
    message = error_of(call("publish", place / "public", f"results_dir={results}"), 1)
    assert "Permission denied" in message
