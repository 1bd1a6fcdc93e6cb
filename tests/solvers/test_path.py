"""Several λ, each from where the last one ended."""

import os
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
from helpers import TINY as DATA
from helpers import Plain, iterated, oracle, problem, random_multiclass, solver, working_sets
from helpers import Table as Terms
from program import OCR, USPS, call, config_of, run_folders, run_here

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import best_scale
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.trace import read_summary, read_trace
from ssvm_bench.solvers.fw import FrankWolfe

SOLVERS = ("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg")
SOLVERS += ("mpbcfw_pairwise", "mpbcfw_fast", "mpbcfw_newton")
SHORT = ("solver=bcfw", "clock=work", "budget.max_iterations=3")


def test_the_best_multiple_of_phi():
    rng = np.random.default_rng(0)
    for _ in range(20):
        w, circ, old, new = rng.normal(size=3), rng.uniform(0, 2), *rng.uniform(0.1, 1, 2)
        posed = Problem(oracle(random_multiclass(2, 2, 1)), new)
        scales = np.linspace(0, 1, 1001)
        duals = [posed.dual(s * w * old / new, s * circ) for s in scales]
        best = scales[np.argmax(duals)]
        assert best_scale(w @ w, circ, old, new) == pytest.approx(best, abs=6e-4)
    assert best_scale(0.0, 0.0, 1.0, 0.1) == 0.0


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_phi_stays_feasible_and_all_planes_stay(data, name, rows):
    kept = rows and data.structure != "graph"  # those of graphs are kept as rows anyway
    posed = Problem(Plain(oracle(data)), 0.5) if kept else problem(data, 0.5)
    table = Terms(data)
    made = solver(posed, name)
    for lam in (0.1, 0.02):
        iterated(made, 4)
        w = made.reported().w
        before = working_sets(made, table) if name != "fw" else []
        clock = Clock("work")
        made.warm_start(lam, clock)
        assert made.clock is clock
        now = made.reported()
        assert 0 <= now.dual <= made.problem.primal(np.zeros(posed.d))
        assert now.dual <= made.problem.primal(now.w)
        if not name.endswith("_avg"):  # between φ and the ground truth's planes, which are 0
            assert abs(now.w @ w) == pytest.approx(np.linalg.norm(now.w) * np.linalg.norm(w))
        if name == "fw":
            continue
        for i, (old, new) in enumerate(zip(before, working_sets(made, table), strict=True)):
            # what N = 0 remembers is nothing
            assert set(new) == ({*old, table.truth[i]} if made.visits.policy.N else set())


@pytest.mark.parametrize("name", ["bcfw", "mpbcfw", "mpbcfw_pairwise", "mpbcfw_fast"])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_a_path_ends_where_a_direct_run_does(data, name):
    lam = 0.02
    direct, along = solver(problem(data, lam), name), solver(problem(data, 0.5), name)
    for larger in (0.1, lam):
        iterated(along, 20)
        along.warm_start(larger, along.clock)
    for made in (direct, along):
        iterated(made, 300)
        assert made.problem.lam == lam
    gap = direct.problem.primal(direct.reported().w) - direct.reported().dual
    assert along.reported().dual == pytest.approx(direct.reported().dual, abs=max(gap, 1e-9))


@pytest.mark.parametrize("data", [OCR, USPS], ids=["ocr", "usps"])
def test_every_lambda_has_a_run_of_its_own(tmp_path, data):
    options = ("solver=mpbcfw_fast", "clock=work", "budget.max_iterations=6")
    last = run_here(tmp_path, *options, "path=[0.5,0.1]", "lam=0.02", data=data)
    assert (last.status, last.stop_reason) == ("finished", "max_iterations")
    for words, lam in ((("lam=0.5",), 0.5), (("lam=0.1", "path=[0.5]"), 0.1)):
        config = config_of(tmp_path, *options, *words, data=data)
        trace = read_trace(config.folder)
        assert trace.metadata["lam"] == lam
        assert trace["oracle_calls"][0] == trace["time"][0] == 0
        assert trace.frame["iteration"].tolist() == list(range(7))
        assert (np.diff(trace.frame["dual"]) >= -1e-12).all()
    assert read_summary(last.folder)["seed"] == 0
    warm = read_trace(last.folder).frame
    cold = run_here(tmp_path, *options, "lam=0.02", data=data)
    assert cold.folder != last.folder
    assert warm["dual"].iloc[0] > read_trace(cold.folder).frame["dual"].iloc[0]
    again = run_here(tmp_path, *options, "path=[0.5,0.1]", "lam=0.02", data=data)
    assert again.status == "skipped"


def test_a_run_that_had_finished_is_a_start_but_not_written_again(tmp_path):
    alone = run_here(tmp_path, *SHORT, "lam=0.5")
    written = (alone.folder / "trace.parquet").stat().st_mtime_ns
    along = run_here(tmp_path, *SHORT, "path=[0.5]", "lam=0.1")
    assert along.status == "finished"
    assert (alone.folder / "trace.parquet").stat().st_mtime_ns == written


def test_a_path_in_units_of_one_over_n(tmp_path):
    last = run_here(tmp_path, *SHORT, "path=[100/n,10/n]")
    config = config_of(tmp_path, *SHORT, "path=[100/n,10/n]").with_source("synthetic")
    traces = [read_trace(stage.folder) for stage in config.path_steps()]
    assert traces[-1].folder == last.folder
    assert [trace.metadata["lam"] for trace in traces] == [100 / 30, 10 / 30, 1 / 30]
    assert [trace.metadata["config"]["lam"] for trace in traces] == ["100/n", "10/n", None]


def test_a_path_of_which_a_run_is_missing_is_not_finished(tmp_path):
    options = (*SHORT, "path=[0.5]", "lam=0.1")
    stages = config_of(tmp_path, *options).with_source("synthetic").path_steps()
    first, last = (stage.folder / "trace.parquet" for stage in stages)
    run_here(tmp_path, *options)
    shutil.rmtree(first.parent)
    written = last.stat().st_mtime_ns
    assert run_here(tmp_path, *options).status == "finished"
    assert first.is_file()
    assert last.stat().st_mtime_ns == written


EXPERIMENT = """
grid:
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 30
  solver: [fw, bcfw]
  clock: work
  budget.max_iterations: 3
  path: "[100/n,10/n]"
  lam: [1/n, 0.5/n]
figures:
  suboptimality: [calls]
"""


def test_an_experiment_knows_every_lambda_of_its_paths(tmp_path, blank):
    file, results = tmp_path / "along.yaml", tmp_path / "results"
    file.write_text(EXPERIMENT)
    words = ("experiment", file, f"results_dir={results}", "quiet=true")
    assert "8 missing, of 8 runs" in call(*words, "--status").stdout  # two begin as the others do
    made = call(*words)
    assert made.exit_code == 0, made.stderr
    assert len(run_folders(results)) == 8
    table = results / "figures/along/oracle_calls-synthetic.csv"
    curves = pd.read_csv(table)
    assert (curves["lam"] * 30).round(2).unique().tolist() == [100, 10, 1, 0.5]
    for _, panel in curves.groupby("lam"):  # the path is no part of a curve's name
        assert panel["solver"].unique().tolist() == ["fw", "bcfw"]
    assert set(curves["repeats"]) <= {0, 1}
    assert "8 done, of 8 runs" in call(*words, "--status").stdout
    assert "4 of 4 runs had finished before" in call(*words).stderr
    before = table.read_bytes()
    shutil.rmtree(results / "runs")
    table.unlink()
    drawn = call("plot", file, "--format=svg", f"results_dir={results}")
    assert drawn.exit_code == 0, drawn.stderr
    assert "missing" not in drawn.stderr
    assert table.read_bytes() == before


def test_a_path_that_does_not_lead_to_lam_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"path with lam at its end .* 0\.5, 0\.6"):
        run_here(tmp_path, "path=[0.5]", "lam=0.6")


def test_an_interrupted_path_keeps_what_is_done(tmp_path, monkeypatch):
    iterate = FrankWolfe.iterate

    def interrupted(self):
        iterate(self)
        if self.problem.lam == 0.1 and self.k == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(FrankWolfe, "iterate", interrupted)
    outcome = run_here(tmp_path, "solver=fw", "path=[0.5,0.1]", "lam=0.02")
    assert (outcome.status, outcome.stop_reason) == ("interrupted", "interrupted")
    assert run_folders(tmp_path) == ["seed=0", "seed=0.partial"]
