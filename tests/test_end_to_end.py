"""The program as a user meets it, right calls and wrong ones, with everything behind it at work."""

import gzip
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from program import (
    OCR,
    USPS,
    call,
    completed,
    environment,
    error_of,
    install_solver,
    path_with,
    real_data,
    run_folders,
)

from ssvm_bench.datasets import cache
from ssvm_bench.results.reading import find_runs, read_trace
from ssvm_bench.runs import components

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
        ("solver.TT=3", ["solver.TT", "Did you mean solver.T?"]),
        ("dataset.n_samples=7292", ["dataset.n_samples must be ≤ 7291", "7292"]),
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


@pytest.mark.parametrize("source", ["real", "auto"])
def test_a_broken_raw_file_is_never_replaced(tmp_path, empty_machine, source):
    file = empty_machine / "usps" / "zip.train.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress(f"6.0000 {GREY}\n".encode() * 100)[:-9])
    results = tmp_path / "results"
    result = call(*RAW, f"dataset.source={source}", f"results_dir={results}")
    message = error_of(result, 1)
    assert "cut short" in message
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
