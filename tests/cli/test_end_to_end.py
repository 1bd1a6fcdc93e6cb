"""The program as a user meets it, right calls and wrong ones, with everything behind it at work."""

import shutil

import numpy as np
import pandas as pd
import pytest
from program import OCR, USPS, call, real_data, run_folders

from ssvm_bench.results.trace import find_runs

QUICK = ("solver=fw", "budget.max_iterations=2")
FORMATS = ("csv", "pdf", "png")


def test_a_run_says_what_it_does_and_where_its_files_are(tmp_path):
    words = ("run", *OCR, "solver=mpbcfw", "budget.max_iterations=3", f"results_dir={tmp_path}")
    result = call(*words)
    assert result.exit_code == 0, result.output
    heading, *lines = result.stderr.splitlines()[-6:]
    assert heading.startswith("mpbcfw on ocr (real data), seed 0: n = 20, d = 4,004")
    assert [line.split()[0] for line in lines] == ["iteration", "0", "1", "2", "3"]
    (folder,) = find_runs(tmp_path)
    assert result.stdout.splitlines()[-1] == f"files: {folder}"
    assert "max_iterations" in result.stdout
    again = call(*words)
    assert again.exit_code == 0
    assert "This run has finished before" in again.stderr
    assert "force=true" in again.stderr


def test_a_sweep_makes_every_run(tmp_path):
    options = (*USPS, "budget.max_iterations=2", f"results_dir={tmp_path}")
    words = ("run", "-m", "seed=range(3)", "solver=bcfw,mpbcfw", *options)
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert run_folders(tmp_path) == [f"seed={k}" for k in (0, 0, 1, 1, 2, 2)]
    assert result.stdout.splitlines()[-1] == f"files: {tmp_path / 'runs' / 'usps'}"
    assert "run 6 of 6" in result.stderr
    counts = [result.stdout.count(word) for word in ("max_iterations", "solver", "options")]
    assert counts == [6, 1, 0]
    shutil.rmtree(find_runs(tmp_path)[0])
    assert call(*words).stdout.count("(finished before)") == 5


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


# Counted time: of two repeats timed on a busy machine, one may end before the other begins.
TINY = ("dataset.source=synthetic", "dataset.n_samples=30", "budget.max_iterations=3")
TINY += ("clock=work", "seed=0,1")
FIGURES = "figures/quickstart/budget.max_iterations=3,clock=work,dataset.n_samples=30,seed=0+1"
DRAWN = {f"{a}-synthetic.{suffix}" for a in ("iterations", "time") for suffix in FORMATS}


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
    figures = folder / FIGURES
    drawn = {path.name for path in figures.iterdir()}
    assert drawn == {*DRAWN, "provenance-synthetic.json"}
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
        "primal suboptimality": lambda run: run["primal"] - best_dual,
        # of averages, their own
        "dual suboptimality": lambda run: best_primal - run.get("dual_of_average", run["dual"]),
        "duality gap": lambda run: run["primal"] - run["dual"],
    }
    statistics = {"median": np.nanmedian, "min": np.nanmin, "max": np.nanmax}
    for axis, column in (("iterations", "iteration"), ("time", "time")):
        table = pd.read_csv(folder / FIGURES / f"{axis}-synthetic.csv")
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
            logs = (np.log(curves[quantity](frame)) for frame in repeats)
            y = np.exp(
                [
                    np.interp(x, frame[column], log, np.nan, np.nan)
                    for frame, log in zip(repeats, logs, strict=True)
                ]
            )
            for name, statistic in statistics.items():
                what = f"{solver} {name}"
                np.testing.assert_allclose(shown[name], statistic(y, axis=0), 1e-5, err_msg=what)
            assert (shown["repeats"] == (~np.isnan(y)).sum(axis=0)).all()
