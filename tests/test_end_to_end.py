"""The program as a user meets it, right calls and wrong ones, with everything behind it at work."""

import errno
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from program import (
    OCR,
    USPS,
    call,
    completed,
    end,
    environment,
    error_of,
    install_solver,
    path_with,
    real_data,
    run_folders,
    run_here,
    started,
    wait_until,
)

from ssvm_bench.datasets import cache
from ssvm_bench.results.reading import find_runs, read_trace
from ssvm_bench.runs import components, runner
from ssvm_bench.solvers.fw import FrankWolfe

QUICK = ("solver=fw", "budget.max_iterations=2")


@pytest.fixture
def empty_machine(tmp_path, monkeypatch):
    """Return a data folder, empty like the user's cache folder; datasets are loaded anew."""
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(cache, "user_folder", lambda: tmp_path / "user")
    components.load_dataset.cache_clear()
    yield tmp_path / "data"
    components.load_dataset.cache_clear()


# ---- a run --------------------------------------------------------------------------------------


def test_a_run_says_what_it_does_and_where_its_files_are(tmp_path):
    result = call(
        "run", *OCR, "solver=mpbcfw", "budget.max_iterations=3", f"results_dir={tmp_path}"
    )
    assert result.exit_code == 0, result.output
    heading, *lines = result.stderr.splitlines()[-6:]
    assert heading.startswith("mpbcfw on ocr (synthetic data), seed 0: n = 20, d = 4,004")
    assert [line.split()[0] for line in lines] == ["iteration", "0", "1", "2", "3"]
    (folder,) = find_runs(tmp_path)
    assert result.stdout.splitlines()[-1] == f"files: {folder}"
    assert "max_iterations" in result.stdout
    again = call("run", *OCR, "solver=mpbcfw", "budget.max_iterations=3", f"results_dir={tmp_path}")
    assert again.exit_code == 0
    assert "This run has finished before" in again.stderr
    assert "force=true" in again.stderr


def test_a_sweep_makes_every_run(tmp_path):
    options = (*USPS, "budget.max_iterations=2", f"results_dir={tmp_path}")
    result = call("run", "-m", "seed=range(3)", "solver=bcfw,mpbcfw", *options)
    assert result.exit_code == 0, result.output
    assert run_folders(tmp_path) == [f"seed={k}" for k in (0, 0, 1, 1, 2, 2)]
    assert result.stdout.splitlines()[-1] == f"files: {tmp_path / 'runs' / 'usps'}"
    assert result.stdout.count("max_iterations") == 6
    shutil.rmtree(find_runs(tmp_path)[0])
    again = call("run", "-m", "seed=range(3)", "solver=bcfw,mpbcfw", *options)
    assert again.stdout.count("(finished before)") == 5


def test_a_run_goes_on_when_nobody_reads_its_status(tmp_path):
    command = ["run", *USPS, "solver=fw", "budget.max_iterations=300", f"results_dir={tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ssvm_bench", *command],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert any("fw on usps" in line for line in process.stderr)
        process.stderr.close()
        assert "max_iterations" in process.stdout.read()
    assert process.returncode == 0
    assert len(find_runs(tmp_path)) == 1


@pytest.fixture
def odd(monkeypatch):
    """Let iterations of ``fw`` fail with λ = 0.5."""
    iterate = FrankWolfe.iterate

    def fail(self):
        if self.problem.lam == 0.5:
            raise ZeroDivisionError("odd")
        iterate(self)

    monkeypatch.setattr(FrankWolfe, "iterate", fail)


def test_a_failed_run_does_not_stop_a_sweep(tmp_path, odd):
    result = call("run", "-m", "lam=0.1,0.5,1.0", *USPS, *QUICK, f"results_dir={tmp_path}")
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    assert "ZeroDivisionError: odd" in result.stderr
    assert "1 of 3 runs did not finish" in result.stderr
    assert run_folders(tmp_path) == ["seed=0", "seed=0", "seed=0.partial"]


def test_the_work_of_a_component_of_another_package(tmp_path):
    """A package with an entry point and a config file adds a solver; nothing here is changed."""
    lazy = install_solver(
        tmp_path,
        "lazy",
        "from ssvm_bench.solvers.fw import Config, FrankWolfe\n"
        "CODE_VERSION = 1\n"
        "def build(config, problem, clock, seed):\n"
        "    return Lazy(config, problem, clock)\n"
        "class Lazy(FrankWolfe):\n"
        "    def iterate(self):\n"
        "        if self.problem.n > 2 and self.k == 2:\n"
        "            raise RuntimeError('tired')\n"
        "        super().iterate()\n",
    )
    path, results, log = path_with(tmp_path), tmp_path / "results", tmp_path / "log"
    options = (*lazy, *USPS, f"results_dir={results}")
    failed = completed(log, "run", *options, PYTHONPATH=path)
    assert "RuntimeError: tired" in error_of(failed, 1)
    (partial,) = results.glob("runs/usps/lazy/*/seed=0.partial")
    assert "in iterate" in (partial / "traceback.txt").read_text()
    done = completed(log, "run", *options, "budget.max_iterations=2", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert len(find_runs(results, solver="lazy")) == 1


# ---- mistakes in the call: exit status 2 --------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("solver=mpbcwf", ["solver=mpbcwf", "Did you mean mpbcfw?"]),
        ("budget=none", ["budget=none", "Valid: default"]),
        ("solver.TT=3", ["solver.TT", "Did you mean solver.T?"]),
        ("solver", ["'solver'", "option=value"]),
        ("seed=1,2", ["seed=1,2", "-m"]),
        ("lam=abc", ["lam must be a number", "'abc'"]),
        ("solver.N=1.5", ["solver.N must be an integer", "1.5"]),
        ("solver.step=newton", ["solver.step=newton", "line_search"]),
        ("budget.max_seconds=0", ["budget.max_seconds must be a positive number"]),
        ("clock=sun", ["clock=sun", "cpu, wall, work"]),
        ("dataset.n_samples=7292", ["dataset.n_samples must be ≤ 7291", "7292"]),
        ("dataset.source=internet", ["dataset.source", "synthetic", "internet"]),
        ("oracle=viterbi", ["oracle=viterbi does not fit dataset=usps", "Leave the oracle option"]),
    ],
)
def test_a_mistake_in_the_call(tmp_path, override, parts):
    options = ("dataset=usps", "dataset.source=synthetic", f"results_dir={tmp_path}")
    message = error_of(call("run", *options, override), 2)
    assert all(part in message for part in parts), message
    assert run_folders(tmp_path, hidden=True) == []


# ---- data that is not as it should be: exit status 1 --------------------------------------------

GREY = " ".join(["-1.0"] * 254 + ["0.5", "1.0"])
RAW = ("run", "dataset=usps", "dataset.source=real", *QUICK)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (gzip.compress(f"6.0000 {GREY}\n".encode() * 100)[:-9], "cut short"),
        (b"", "the file is empty"),
        (b"<html>moved</html>", "1 columns, expected 257"),
        (f"6.0000 {GREY}\n".encode(), "that of the genuine file is"),
        (f"12.0000 {GREY}\n".encode(), "line 1: label 12"),
    ],
)
@pytest.mark.parametrize("source", ["real", "auto"])
def test_a_broken_raw_file_is_never_replaced(tmp_path, empty_machine, content, part, source):
    file = empty_machine / "usps" / "zip.train.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    results = tmp_path / "results"
    result = call(*RAW, f"dataset.source={source}", f"results_dir={results}")
    message = error_of(result, 1)
    assert part in message
    assert str(file) in message
    assert "Delete the file" in message
    assert "WARNING" not in result.stderr
    assert not results.exists()


def test_without_data(tmp_path, empty_machine):
    results = f"results_dir={tmp_path / 'results'}"
    message = error_of(call(*RAW, results), 1)
    for part in ("zip.train.gz", str(empty_machine), "https://", "dataset.source=synthetic"):
        assert part in message
    assert "missing" in call("data", "status", "usps").stdout
    assert "SSVM_BENCH_OFFLINE" in error_of(call("data", "fetch", "usps"), 1)
    result = call(*RAW, results, "dataset.source=auto", "dataset.n_samples=20")
    assert result.exit_code == 0
    assert "WARNING: NOT THE REAL USPS DATA" in result.stderr
    assert "synthetic" in result.stdout
    (folder,) = find_runs(tmp_path / "results")
    assert read_trace(folder).metadata["dataset"]["source"] == "synthetic"
    assert read_trace(folder).summary["source"] == "synthetic"


@real_data("usps/zip.train.gz")
def test_with_data_there_is_no_warning(tmp_path):
    options = ("dataset=usps", "dataset.n_samples=20", *QUICK, f"results_dir={tmp_path}")
    result = call("run", *options)
    assert result.exit_code == 0
    assert "WARNING" not in result.stderr
    assert "usps (real)" in result.stdout
    assert call("run", *options, "dataset.source=real").stdout.count("(finished before)") == 1
    # the stand-in is another run, with a folder of its own
    assert call("run", *options, "dataset.source=synthetic").stdout.count("(finished") == 0
    assert len(find_runs(tmp_path)) == 2


# ---- folders and files that are not as they should be: exit status 1 ----------------------------


def test_results_that_cannot_be_written(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("not a folder")
    places = [file, file / "below"]
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        places.append(tmp_path / "locked")
    for place in places:
        message = error_of(call("run", *USPS, *QUICK, f"results_dir={place}"), 1)
        assert str(place) in message
        assert "results_dir=" in message
    assert file.read_text() == "not a folder"


def test_a_full_disk(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    results = tmp_path / "results"
    monkeypatch.setattr(os, "fsync", full)
    message = error_of(call("run", *USPS, *QUICK, f"results_dir={results}"), 1)
    assert "No space left" in message
    assert "results_dir=" in message
    assert run_folders(results, hidden=True) == []
    monkeypatch.undo()
    assert call("run", *USPS, *QUICK, f"results_dir={results}").exit_code == 0


@pytest.mark.parametrize("damage", ["cut short", "another version", "no summary"])
def test_a_damaged_trace(tmp_path, damage, blank):
    experiment = tmp_path / "one.yaml"
    experiment.write_text("grid: {solver: [fw]}\nfigures: {suboptimality: [iteration]}\n")
    options = (*USPS, "budget.max_iterations=2", f"results_dir={tmp_path}")
    assert call("experiment", experiment, *options).exit_code == 0
    (folder,) = find_runs(tmp_path)
    file = folder / "trace.parquet"
    if damage == "cut short":
        file.write_bytes(file.read_bytes()[:-20])
    elif damage == "another version":
        table = pq.read_table(file)
        header = json.dumps({"format": 99}).encode()
        pq.write_table(table.replace_schema_metadata({b"ssvm_bench": header}), file)
    else:  # without it, the run counts as one that has not finished
        (folder / "summary.json").unlink()
    if damage == "no summary":
        assert call("plot", experiment, *options).exit_code == 0  # from what is stored of it
        shutil.rmtree(tmp_path / "traces")
    message = error_of(call("plot", experiment, *options), 1)
    if damage == "no summary":
        assert "No run of the experiment one has finished" in message
        assert call("run", "solver=fw", *options).exit_code == 0
    else:
        assert str(folder) in message
        assert "force=true" in message
        assert call("run", "solver=fw", *options, "force=true").exit_code == 0
    assert call("plot", experiment, *options).exit_code == 0


# ---- experiments --------------------------------------------------------------------------------

# Counted time: of two repeats timed on a busy machine, one may end before the other begins.
TINY = (
    *("dataset.source=synthetic", "dataset.n_samples=30", "budget.max_iterations=3"),
    *("clock=work", "seed=0,1"),
)
DRAWN = sorted(
    f"{axis}-synthetic.{suffix}"
    for axis in ("iterations", "time")
    for suffix in ("csv", "pdf", "png")
)
ORIGIN = "provenance-synthetic.json"


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """Make the quick-start experiment, small; return its results folder and what was printed."""
    folder = tmp_path_factory.mktemp("quickstart")
    return folder, call("experiment", "quickstart", *TINY, f"results_dir={folder}")


def test_the_quick_start_makes_its_runs_and_figures(quickstart):
    folder, result = quickstart
    assert result.exit_code == 0, result.output
    assert "run 8/8 ocr mpbcfw_avg seed=1" in result.stderr
    assert len(find_runs(folder, "ocr")) == 8
    figures = folder / "figures" / "quickstart"
    assert sorted(path.name for path in figures.iterdir()) == sorted([*DRAWN, ORIGIN])
    for name in DRAWN:
        assert f"figure: {figures / name}" in result.stdout
        assert (figures / name).stat().st_size > 1000
    assert (figures / "time-synthetic.png").read_bytes().startswith(b"\x89PNG")
    assert (figures / "time-synthetic.pdf").read_bytes().startswith(b"%PDF")


def test_the_quick_start_goes_on_where_it_stopped(quickstart):
    folder, _ = quickstart
    lost = find_runs(folder)[3]
    kept = {run: run.stat().st_mtime_ns for run in find_runs(folder) if run != lost}
    shutil.rmtree(lost)
    result = call("experiment", "quickstart", *TINY, f"results_dir={folder}")
    assert result.exit_code == 0
    assert result.stdout.count("(finished before)") == 7
    assert lost in find_runs(folder)
    assert all(run.stat().st_mtime_ns == moment for run, moment in kept.items())


def test_figures_are_drawn_again_from_stored_runs(quickstart, monkeypatch):
    folder, _ = quickstart
    figures = folder / "figures" / "quickstart"
    before = {path.name: path.read_bytes() for path in figures.iterdir()}
    shutil.rmtree(figures)
    monkeypatch.setattr(runner, "run", lambda *_: pytest.fail("a figure never runs anything"))
    formats = ("--format", "png", "--format", "svg")
    result = call("plot", "quickstart", *TINY, *formats, f"results_dir={folder}")
    assert result.exit_code == 0, result.output
    after = {path.name: path.read_bytes() for path in figures.iterdir()}
    assert sorted(after) == sorted([ORIGIN, *(name.replace(".pdf", ".svg") for name in DRAWN)])
    assert all(after[name] == before[name] for name in after if not name.endswith("svg"))


def test_the_plotted_numbers_are_those_of_the_traces(quickstart):
    """The CSV against the definitions, computed from the parquet files alone."""
    folder, _ = quickstart
    frames = {}
    for run in folder.glob("runs/ocr/*/*/seed=*"):
        frames.setdefault(run.parents[1].name, []).append(pd.read_parquet(run / "trace.parquet"))
    everything = pd.concat([frame for group in frames.values() for frame in group])
    best_primal, best_dual = everything["primal"].min(), everything["dual"].max()
    curves = {
        "primal suboptimality": lambda frame: frame["primal"] - best_dual,
        # of averages, their own
        "dual suboptimality": lambda frame: (
            best_primal - frame.get("dual_of_average", frame["dual"])
        ),
        "duality gap": lambda frame: frame["primal"] - frame["dual"],
    }
    for axis, column in (("iterations", "iteration"), ("time", "time")):
        table = pd.read_csv(folder / "figures" / "quickstart" / f"{axis}-synthetic.csv")
        assert set(table["solver"]) == {"bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg"}
        assert (set(table["source"]), set(table["n"])) == ({"synthetic"}, {30})
        for (solver, quantity), shown in table.groupby(["solver", "quantity"]):
            repeats = frames[solver]
            x = shown["x"].to_numpy()
            if axis == "iterations":
                assert list(x) == [0, 1, 2, 3]
            else:
                # of two repeats, both are drawn or none
                first = max(frame["time"].iloc[0] for frame in repeats)
                last = min(frame["time"].iloc[-1] for frame in repeats)
                np.testing.assert_allclose(x, np.linspace(first, last, x.size), rtol=1e-5)
                x = np.linspace(first, last, x.size)[1:-1]
                shown = shown.iloc[1:-1]
            y = np.exp(
                [
                    np.interp(x, frame[column], np.log(curves[quantity](frame)), np.nan, np.nan)
                    for frame in repeats
                ]
            )
            expected = {
                "median": np.nanmedian(y, axis=0),
                "min": np.nanmin(y, axis=0),
                "max": np.nanmax(y, axis=0),
                "repeats": (~np.isnan(y)).sum(axis=0),
            }
            for name, values in expected.items():
                np.testing.assert_allclose(
                    shown[name], values, rtol=1e-5, err_msg=f"{solver} {name}"
                )


def test_partial_runs_are_not_plotted(tmp_path, blank):
    """An experiment that is stopped leaves a partial trace; only the finished runs are drawn."""
    options = (*OCR, "solver=bcfw", "seed=0,1", f"results_dir={tmp_path / 'results'}")
    log = tmp_path / "log"
    endless = ("budget.max_iterations=1000000000", "eval.every=100")
    with started("experiment", "quickstart", *options, *endless, log=log) as process:
        wait_until(lambda: len(log.read_text().splitlines()) > 5, process)
        assert end(process, signal.SIGINT) == 1
    assert "Interrupted; 2 of 2 runs missing: the same command goes on." in log.read_text()
    assert run_folders(tmp_path / "results") == ["seed=0.partial"]
    message = error_of(call("plot", "quickstart", *options, *endless), 1)
    assert "No run of the experiment quickstart has finished" in message
    run_here(tmp_path / "results", "solver=bcfw", "budget.max_iterations=3", data=OCR)
    result = call("plot", "quickstart", *options, "budget.max_iterations=3")
    assert result.exit_code == 0
    assert "1 of 2 runs are missing: ocr bcfw seed=1." in result.stderr


def test_an_experiment_in_which_a_run_fails_is_drawn_and_fails(tmp_path, odd, blank):
    options = ("solver=fw", "lam=0.1,0.5", "seed=0", *TINY[:3], f"results_dir={tmp_path}")
    result = call("experiment", "quickstart", *options)
    assert result.exit_code == 1
    assert "ZeroDivisionError: odd" in result.stderr
    table = pd.read_csv(tmp_path / "figures" / "quickstart" / "time-synthetic.csv")
    assert set(table["lam"]) == {0.1}
