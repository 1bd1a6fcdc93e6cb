"""The runner: why a run ends, what its trace says, what is left of one that does not end."""

import dataclasses
import functools
import json
import os
import posix
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import program
import pyarrow.parquet as pq
import pytest
import yaml
from program import FILES, OCR, USPS, config_of, run_folders, run_here
from threadpoolctl import threadpool_info, threadpool_limits

from ssvm_bench.base import clock as base_clock
from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.config.schema import Eval
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.run_folder import lock, partial_folder
from ssvm_bench.results.trace import find_runs, is_finished, is_whole, read_trace
from ssvm_bench.runs import components, recorder, runner
from ssvm_bench.runs.resolved import resolve
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.fw import FrankWolfe

EXACT, APPROXIMATE = 2.0**-10, 2.0**-14  # powers of two: sums of them are exact
COSTS = ("clock=work", f"oracle.cost_call={EXACT}", f"oracle.cost_plane={APPROXIMATE}")
MEASURED = ["cpu_time", "eval_time"]


def frame_of(outcome):
    return read_trace(outcome.folder).frame


@pytest.fixture
def sabotage(monkeypatch):
    """Let something happen in the given iteration of ``fw``, of the run but not its warm-up."""

    def arrange(iteration, act):
        iterate = FrankWolfe.iterate

        def sabotaged(self):
            iterate(self)
            if self.problem.n > 2 and self.k == iteration:
                act(self)

        monkeypatch.setattr(FrankWolfe, "iterate", sabotaged)

    return arrange


def test_a_run_has_one_thread_for_linear_algebra(tmp_path, sabotage):
    """Others wait by spinning, which ``clock=cpu`` would count."""
    seen = []
    sabotage(2, lambda solver: seen.extend(threadpool_info()))
    with threadpool_limits(2):
        run_here(tmp_path, "solver=fw", "budget.max_iterations=2")
        after = threadpool_info()
    assert {pool["num_threads"] for pool in seen} == {1}
    assert 2 in {pool["num_threads"] for pool in after}


def test_no_iteration_gives_the_start(tmp_path):
    none = "budget.max_iterations=0"
    outcome = run_here(tmp_path, "solver=mpbcfw", none, "clock=work", data=OCR)
    assert outcome.stop_reason == "max_iterations"
    (row,) = frame_of(outcome).to_dict("records")
    assert (row["iteration"], row["oracle_calls"], row["time"], row["w_norm"]) == (0, 0, 0, 0)
    assert row["primal"] == pytest.approx(1)  # every letter can be wrong
    assert row["dual"] == 0
    with np.load(outcome.folder / "weights.npz") as weights:
        assert not weights["w"].any()


def test_max_seconds_are_those_of_the_clock(tmp_path):
    # 30 calls of one second an iteration
    config = ("solver=bcfw", "clock=work", "oracle.cost_call=1", "budget.max_seconds=80")
    outcome = run_here(tmp_path, *config)
    assert outcome.stop_reason == "max_seconds"
    assert list(frame_of(outcome)["time"]) == [0, 30, 60, 90]


def test_gap_tol_is_relative(tmp_path):
    outcome = run_here(tmp_path, "solver=mpbcfw", "budget.gap_tol=0.5", "clock=work")
    assert outcome.stop_reason == "gap_tol"
    *before, last = frame_of(outcome).eval("gap / primal")
    assert last <= 0.5 < min(before)


def test_converged(tmp_path, sabotage):
    sabotage(3, lambda solver: setattr(solver, "converged", True))
    outcome = run_here(tmp_path, "solver=fw", "eval.every=2")
    assert (outcome.status, outcome.stop_reason) == ("finished", "converged")
    assert list(frame_of(outcome)["iteration"]) == [0, 2, 3]


def test_diverged(tmp_path, sabotage):
    sabotage(3, lambda solver: solver.w.fill(np.nan))
    config = config_of(tmp_path, "solver=fw")
    with pytest.raises(RunFailedError, match=r"diverged in iteration 3.*; try a larger lam"):
        runner.run(config, Display())
    assert read_trace(partial_folder(config.folder)).summary["stop_reason"] == "diverged"
    assert not is_finished(config.folder)


def test_a_dual_that_does_not_exist_is_no_divergence(tmp_path):
    outcome = run_here(tmp_path, "solver=ssg", "budget.max_iterations=2", "budget.gap_tol=0.9")
    assert outcome.stop_reason == "max_iterations"
    assert frame_of(outcome)[["dual", "gap"]].isna().all(axis=None)
    assert json.loads((outcome.folder / "summary.json").read_text())["best_dual"] is None


@pytest.mark.parametrize(
    ("error", "text"),
    [(ZeroDivisionError("odd"), "ZeroDivisionError: odd"), (ConfigError("no such"), " no such")],
)
def test_an_error_keeps_what_was_measured(tmp_path, sabotage, error, text):
    def fail(solver):
        raise error

    sabotage(3, fail)
    config = config_of(tmp_path, "solver=fw")
    with pytest.raises(RunFailedError, match=r"failed in iteration 3") as caught:
        runner.run(config, Display())
    partial = partial_folder(config.folder)
    assert text in str(caught.value)
    assert str(partial) in str(caught.value)
    trace = read_trace(partial)
    assert (trace.end["stop_reason"], [*trace.frame["iteration"]]) == ("error", [0, 1, 2])
    assert "in fail" in (partial / "traceback.txt").read_text()
    assert not is_finished(config.folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_after_the_iteration(tmp_path, sabotage, number):
    before = signal.getsignal(number)
    sabotage(3, lambda solver: os.kill(os.getpid(), number))
    outcome = run_here(tmp_path, "solver=fw", "eval.every=10")
    assert (outcome.status, outcome.stop_reason) == ("interrupted", "interrupted")
    assert outcome.folder.name == "seed=0.partial"
    assert list(frame_of(outcome)["iteration"]) == [0, 3]
    assert find_runs(tmp_path) == []
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("k", [0, 2])
def test_after_an_interrupt_during_an_evaluation_no_iteration_begins(tmp_path, monkeypatch, k):
    """Of a slow oracle, these were two evaluations and an iteration without a word."""
    words = ("solver=mpbcfw", "budget.max_iterations=4", *COSTS)
    whole = frame_of(run_here(tmp_path / "whole", *words))
    evaluate = recorder.Recorder.evaluate

    def interrupted(self, solver, iteration):
        if iteration == k:
            os.kill(os.getpid(), signal.SIGINT)
        return evaluate(self, solver, iteration)

    with monkeypatch.context() as patch:
        patch.setattr(recorder.Recorder, "evaluate", interrupted)
        outcome = run_here(tmp_path, *words)
    assert (outcome.status, len(frame_of(outcome))) == ("interrupted", k + 1)
    resumed = frame_of(run_here(tmp_path, *words))
    pd.testing.assert_frame_equal(resumed.drop(columns=MEASURED), whole.drop(columns=MEASURED))


def test_a_second_interrupt_does_not_wait_for_the_evaluation(tmp_path, sabotage):
    def twice(solver):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    sabotage(3, twice)
    outcome = run_here(tmp_path, "solver=fw")
    assert outcome.status == "interrupted"
    assert list(frame_of(outcome)["iteration"]) == [0, 1, 2]


class _OfItsOwnError(BaseException):
    """That a component may have."""


@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, EOFError, GeneratorExit, _OfItsOwnError]
)
def test_a_component_cannot_end_the_program(tmp_path, sabotage, monkeypatch, error):
    def fail(*_, **__):
        raise error

    def is_told(what):
        with pytest.raises(RunFailedError, match=f"{what}: {error.__name__}"):
            run_here(tmp_path, "solver=fw")

    for module, step in ((components, "load_dataset"), (runner, "warm_up")):
        with monkeypatch.context() as patch:
            patch.setattr(module, step, fail)
            is_told("The run failed")
    sabotage(3, fail)
    is_told("failed in iteration 3")
    assert run_folders(tmp_path) == ["seed=0.partial"]


LEAVES = {
    r"_exit\(0\)": lambda: os._exit(0),
    r"_exit\(3\)": lambda: posix._exit(3),
    r"execv\('/bin/true'\)": lambda: os.execl("/bin/true", "true"),
    r"execve\('/bin/true'\)": lambda: os.execvpe("/bin/true", ["true"], {}),
}


@pytest.mark.parametrize("call", LEAVES)
def test_a_component_that_leaves_by_exit_has_failed(tmp_path, sabotage, monkeypatch, call):
    for module, name in product((os, posix), ("_exit", "execv", "execve")):
        monkeypatch.setattr(module, name, getattr(module, name))
    interrupts.refuse_exit()
    sabotage(3, lambda solver: LEAVES[call]())
    with pytest.raises(RunFailedError, match=rf"failed in iteration 3: .*os\.{call} was called"):
        run_here(tmp_path, "solver=fw")
    assert run_folders(tmp_path) == ["seed=0.partial"]
    if (process := os.fork()) == 0:
        os._exit(7)  # of a fork: it may
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7


AT_THE_END = """
import atexit, os, threading
from ssvm_bench.solvers.fw import Config, FrankWolfe
CODE_VERSION = 1
thread = threading.Thread(target=lambda: [][1])
def build(config, problem, clock, seed):
    if thread.ident is None:
        thread.start()
    return FrankWolfe(config, problem, clock, seed)
atexit.register(os._exit, 3)
atexit.register(lambda: [][1])
"""


def test_what_a_component_does_at_the_end_changes_no_status(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "last.yaml").write_text("# ends the program\n")
    (tmp_path / "solver" / "last.py").write_text(AT_THE_END)
    words = ("run", "--config-dir", tmp_path, *USPS, "solver=last", "budget.max_iterations=2")
    words += (f"results_dir={tmp_path}", "quiet=true")
    for more, status in (((), 0), (("solver.step=nosuch",), 2)):
        done = program.python("-m", "ssvm_bench", *words, *more)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        assert "ignored: SystemExit: os._exit(3) was called" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        *(("x", value, "x must be a number") for value in ("3", None, [1.0], 1j, {}, np.ones(2))),
        *(("x", value, "x must be a number") for value in (b"3", pd.NaT, np.array("3"), Exception)),
        *(("x", value, "x must be a number of 64 bits") for value in (10**400, 10**9999, 1 << 63)),
        ("approx_calls", 1.0, "approx_calls, a column of every trace"),
        *((name, 1.0, "is no name of a column") for name in ("a\nb", "\ud800", 5, None, "\0")),
        ("primal", 1.0, "primal, a column of every trace"),
    ],
    ids=lambda value: "large" if isinstance(value, int) and value > 9 else str(value),
)
def test_what_is_no_number_is_no_diagnostic(tmp_path, monkeypatch, name, value, text):
    monkeypatch.setattr(
        FrankWolfe, "diagnostics", lambda self: {name: value} if self.k > 1 else {}, raising=False
    )
    with pytest.raises(RunFailedError, match=r"failed in iteration 2") as caught:
        run_here(tmp_path, "solver=fw", "budget.max_iterations=3")
    assert text in str(caught.value)
    (partial,) = tmp_path.rglob("seed=0.partial")
    assert list(read_trace(partial).frame["iteration"]) == [0, 1]


@pytest.mark.parametrize(
    ("of", "method", "value", "what"),
    [
        *((FrankWolfe, "working_set_mean", each, " be a number") for each in ("2", None, [])),
        *(
            (FrankWolfe, "diagnostics", each, " return numbers by name")
            for each in (5, "text", [1], None, ["a"], [("a", 1.0)], {"a"})
        ),
        *((Problem, "radius", each, "radius is not a number") for each in ("far", [], 1j)),
    ],
)
def test_other_answers_that_are_no_numbers_fail_the_run(
    tmp_path, monkeypatch, of, method, value, what
):
    monkeypatch.setattr(of, method, lambda self: value)
    if of is FrankWolfe:
        what = f"failed in iteration 0: {method}.* must{what}"
    with pytest.raises(RunFailedError, match=what):
        run_here(tmp_path, "solver=fw", "budget.max_iterations=3")


@pytest.mark.parametrize(
    ("spacing", "evaluated"),
    [
        (["eval.every=3"], [0, 3, 6, 7]),
        (["eval.growth=1.5"], [0, 1, 2, 3, 5, 7]),
        (["eval.every=2", "eval.growth=1.5"], [0, 2, 4, 6, 7]),
    ],
)
def test_evaluations_are_spaced_and_the_last_iteration_has_one(tmp_path, spacing, evaluated):
    options = ("solver=mpbcfw", *COSTS, "budget.max_iterations=7")
    every, some = (
        frame_of(run_here(tmp_path, *options, *more)).drop(columns=MEASURED)
        for more in ((), spacing)
    )
    assert list(some["iteration"]) == evaluated
    same = every[every["iteration"].isin(evaluated)].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, same, check_exact=True)


def test_long_runs_are_evaluated_a_logarithmic_number_of_times():
    spacing, iteration, count = Eval(every=1, growth=1.1), 0, 0
    while iteration < 1000:
        following = spacing.after(iteration)
        assert iteration < following <= max(iteration + 1, 1.1 * iteration + 1)
        iteration, count = following, count + 1
    assert count < 70
    assert Eval(every=1, growth=1.1).after(10) == 11
    assert Eval(every=1, growth=1.1).after(100) == 110


INTEGERS = ("iteration", "oracle_calls", "approx_calls", "approx_passes")
REALS = ("time", "oracle_time", "cpu_time", "eval_time", "primal", "dual", "gap")
REALS += ("working_set_mean", "w_norm")
CONTRACT = dict.fromkeys(INTEGERS, "int64") | dict.fromkeys(REALS, "double")


@pytest.mark.parametrize(("name", "source", "n"), [("usps", "synthetic", 30), ("ocr", "real", 40)])
def test_the_files_are_those_of_the_contract(tmp_path, name, source, n):
    words = ("solver=mpbcfw", "budget.max_iterations=3", "seed=5", f"dataset={name}")
    words += (f"dataset.source={source}", f"dataset.n_samples={n}")
    config = config_of(tmp_path, *words, data=())
    folder = tmp_path / "runs" / name / "mpbcfw" / config.hash() / "seed=5"
    assert runner.run(config, Display()).folder == folder
    assert sorted(path.name for path in folder.iterdir()) == FILES

    schema = pq.read_schema(folder / "trace.parquet")
    assert {field.name: str(field.type) for field in schema} == CONTRACT
    metadata = json.loads(schema.metadata[b"ssvm_bench"])
    known = {"config", "dataset", "lam", "seed", "clock", "versions", "git", "cpu", "started"}
    assert known <= metadata.keys()
    about = metadata["dataset"]
    assert about.keys() == {"name", "source", "n", "d", "radius", "fingerprint"}
    assert (about["radius"] or 1) > 0  # null where the oracle does not know
    assert (about["name"], about["source"]) == (name, source)
    assert (metadata["seed"], metadata["clock"], metadata["lam"]) == (5, "wall", 1 / n)
    assert {"python", "numpy", "numba", "ssvm-bench"} <= metadata["versions"].keys()
    assert metadata["started"].endswith("+00:00")
    assert metadata["config"] == yaml.safe_load((folder / "config.yaml").read_text())
    assert metadata["config"] == config.resolved()

    frame = pd.read_parquet(folder / "trace.parquet")
    summary = json.loads((folder / "summary.json").read_text())
    assert {key: summary[key] for key in CONTRACT} == frame.iloc[-1].to_dict()
    assert summary["stop_reason"] == "max_iterations"
    assert summary["best_primal"] == frame["primal"].min()
    assert summary["best_dual"] == frame["dual"].max()
    assert summary["primal_rises"] == np.mean(np.diff(frame["primal"]) > 0)
    assert summary["wall_time"] > frame[["time", "eval_time"]].iloc[-1].sum()

    w = np.load(folder / "weights.npz")["w"]
    d = {"usps": 10 * 256, "ocr": 26 * 128 + 26 * 26}[name]
    assert (w.dtype, w.shape, about["d"]) == (np.float64, (d,), d)
    assert np.linalg.norm(w) == pytest.approx(summary["w_norm"], rel=1e-12)
    found = primal(components.load_dataset(config.dataset), w, 1 / n)
    assert found == pytest.approx(summary["primal"], rel=1e-10)


def primal(data, w, lam):
    """Return P(w) from its definition, w in the layout of the contract; chains by brute force."""
    K, f = data.n_labels, data.n_features
    unary, pairs = w[: K * f].reshape(K, f), w[K * f :].reshape(-1, K)
    total = 0.0
    for begin, end_ in pairwise(data.offsets):
        x, truth = data.x[begin:end_].astype(float), data.y[begin:end_].astype(int)
        scores = x @ unary.T
        true_score = scores[np.arange(len(x)), truth].sum()
        true_score += sum(pairs[a, b] for a, b in pairwise(truth))
        scores += (np.arange(K) != truth[:, None]) / len(x)
        best = scores[0]
        for row in scores[1:]:
            best = (best[:, None] + pairs).max(axis=0) + row
        total += best.max() - true_score
    return lam / 2 * (w @ w) + total / data.n


@pytest.mark.parametrize("seconds", [0.05, 0.7, 3.0, 6.0, 100.0])
def test_no_row_is_in_memory_alone_for_more_than_ten_seconds(seconds):
    """Rows come every so many seconds; each is written in time, and seldom more often."""
    now, kept, rows = 0.0, [0], []
    keeper = recorder.TraceFlusher(lambda columns: kept.append(columns["time"].size), lambda: now)
    while now < 40 * max(seconds, 1.0):
        now += seconds
        rows.append({"time": now})
        keeper.look(rows)
        assert kept[-1] == len(rows) or now + seconds - rows[kept[-1]]["time"] <= 10
    assert len(kept) - 1 == len(rows) if seconds > 5 else len(kept) < 20


def test_a_run_that_goes_on_is_on_disk(tmp_path, sabotage, monkeypatch):
    seen = []
    monkeypatch.setattr(recorder, "KEEP_SECONDS", 0.0)
    sabotage(3, lambda solver: seen.append(read_trace(*tmp_path.glob("runs/*/*/*/*.partial"))))
    whole = read_trace(run_here(tmp_path, "solver=fw", "budget.max_iterations=5").folder)
    assert seen[0].frame.equals(whole.frame[:3])
    assert seen[0].summary["stop_reason"] == "interrupted"
    assert seen[0].metadata == whole.metadata
    assert run_folders(tmp_path, hidden=True) == ["seed=0"]


def test_rows_that_cannot_be_kept_do_not_end_the_run(tmp_path, monkeypatch):
    def fail(*_):
        raise RunFailedError("no room")

    said = []
    monkeypatch.setattr(recorder, "KEEP_SECONDS", 0.0)
    monkeypatch.setattr(runner, "write_partial", fail)
    config = config_of(tmp_path, "solver=fw", "budget.max_iterations=2")
    with shown_by(said.append):
        assert runner.run(config, Display()).status == "finished"
    assert said == ["What was measured so far is not on disk: no room"] * 2


PASSES = ("solver.M=2", "solver.T=1000", "budget.max_iterations=6")


@pytest.mark.parametrize("solver", ["bcfw", "mpbcfw", "mpbcfw_avg", "fw"])
def test_counters_and_working_time(tmp_path, solver):
    """Under ``clock=work``, time is the counted work and nothing else."""
    n, is_multi = 30, solver.startswith("mp")
    frame = frame_of(run_here(tmp_path, f"solver={solver}", *COSTS, *PASSES * is_multi))
    assert (frame["oracle_calls"] == n * frame["iteration"]).all()
    assert (frame["approx_calls"] == n * frame["approx_passes"].cumsum()).all()
    # no plane is dropped here: an approximate pass evaluates all that are there
    evaluated = n * frame["working_set_mean"] * frame["approx_passes"]
    exact = frame["oracle_calls"] * EXACT
    assert (frame["oracle_time"] == exact).all()
    assert (frame["time"] == exact + evaluated.round().cumsum() * APPROXIMATE).all()
    assert (frame["gap"] == frame["primal"] - frame["dual"]).all()
    assert (np.diff(frame["cpu_time"]) >= 0).all()
    assert (frame["working_set_mean"] > 0).all() == is_multi
    assert (frame["approx_passes"].iloc[1:] > 0).all() == is_multi


@pytest.mark.parametrize("solver", ["bcfw", "mpbcfw", "mpbcfw_need"])
def test_the_cost_of_visits_adds_to_the_time_and_leaves_the_oracle_s_alone(tmp_path, solver):
    visit = 2.0**-8
    options = (f"solver={solver}", *COSTS, *PASSES * (solver != "bcfw"), "force=true")
    cheap, dear, again = (
        frame_of(run_here(tmp_path, *options, *more))
        for more in ((), *((f"oracle.cost_visit={visit}",),) * 2)
    )
    visits = dear["oracle_calls"] + dear["approx_calls"]
    planes = (dear["time"] - visits * visit - dear["oracle_calls"] * EXACT) / APPROXIMATE
    assert (planes == planes.round()).all()
    assert (dear["oracle_time"] == dear["oracle_calls"] * EXACT).all()
    assert (dear["time"] == again["time"]).all()
    if solver == "bcfw":
        assert (dear["time"] == cheap["time"] + visits * visit).all()


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_evaluation_does_not_count_as_time(tmp_path, monkeypatch, clock):
    """By a clock that moves a second with each look at it, and a day while a row is evaluated."""
    evaluate, seconds = Problem.primal, [0.0]

    def look():
        seconds[0] += 1
        return seconds[0]

    def slow(self, w):
        seconds[0] += 86400
        return evaluate(self, w)

    for module in (base_clock, recorder):
        times = SimpleNamespace(perf_counter=look, process_time=look, monotonic=time.monotonic)
        monkeypatch.setattr(module, "time", times)
    monkeypatch.setattr(Problem, "primal", slow)
    outcome = run_here(tmp_path, "solver=bcfw", f"clock={clock}", "budget.max_iterations=3")
    last = frame_of(outcome).iloc[-1]
    assert last["eval_time"] >= 4 * 86400
    assert 0 < last["oracle_time"] <= last["time"] < 86400
    assert 0 < last["cpu_time"] < 86400


def test_the_seed_decides_and_nothing_else(tmp_path):
    def curve(*overrides):
        outcome = run_here(tmp_path, "solver=mpbcfw_avg", *COSTS, "force=true", *overrides)
        w = np.load(outcome.folder / "weights.npz")["w"]
        return frame_of(outcome).drop(columns=MEASURED), w

    (one, w), (again, w_again), (other, _) = curve(), curve(), curve("seed=1")
    pd.testing.assert_frame_equal(one, again, check_exact=True)
    assert w.tobytes() == w_again.tobytes()
    assert (one["primal"] != other["primal"]).any()


def short_run(folder, *overrides):
    return run_here(folder, "solver=fw", "budget.max_iterations=2", *overrides)


def test_runs_of_several_threads_do_not_share_an_oracle_s_scratch(tmp_path):
    """Kernels release the interpreter's lock: two passes may be inside the oracle at a time."""
    options = ("solver=bcfw", "clock=work", "budget.max_iterations=30")
    config = config_of(tmp_path, *options, data=OCR)
    with ThreadPoolExecutor(2) as pool:
        oracles = [*pool.map(lambda _: (time.sleep(0.2), resolve(config)[0].terms)[1], range(2))]
    mine, other = (oracle.compiled.v for oracle in oracles)
    assert not np.shares_memory(mine, other)


def test_a_finished_run_is_skipped_unless_forced(tmp_path):
    run = functools.partial(short_run, tmp_path)

    folder = run().folder
    trace = folder / "trace.parquet"
    moment = trace.stat().st_mtime_ns
    again = run("quiet=true")
    assert (again.status, again.stop_reason, again.folder) == ("skipped", "max_iterations", folder)
    assert again.summary == json.loads((folder / "summary.json").read_text())
    assert trace.stat().st_mtime_ns == moment
    assert run("seed=1").status == run("lam=0.5").status == "finished"
    forced = run("force=true")
    assert (forced.status, forced.folder) == ("finished", folder)
    assert trace.stat().st_mtime_ns > moment


def test_a_run_on_other_data_is_not_taken_for_this_one(tmp_path, monkeypatch):
    run = functools.partial(short_run, tmp_path)
    trace, load = run().folder / "trace.parquet", components.load_dataset
    before = trace.read_bytes()

    def altered(*config):
        dataset = load(*config)
        return dataclasses.replace(dataset, y=(dataset.y + 1) % dataset.n_labels)

    monkeypatch.setattr(components, "load_dataset", altered)
    with pytest.raises(RunFailedError, match=r"on other data.*results_dir.*force=true"):
        run()
    assert trace.read_bytes() == before
    assert run("force=true").status == "finished"
    assert run().status == "skipped"


def test_programs_that_wait_for_each_other_make_one_run(tmp_path):
    options = ("solver=bcfw", "budget.max_iterations=5", f"results_dir={tmp_path}")
    config = config_of(tmp_path, *options)
    logs = [tmp_path / "one", tmp_path / "two"]
    waits = "Another process works"
    with ExitStack() as programs:
        with lock(config.folder):
            begun = [program.started("run", *USPS, *options, log=log) for log in logs]
            both = [programs.enter_context(each) for each in begun]
            for process, log in zip(both, logs, strict=True):
                program.wait_until(lambda log=log: waits in log.read_text(), process)
            assert run_folders(tmp_path, hidden=True) == []
        assert [process.wait() for process in both] == [0, 0]
        tables = sorted("(finished before)" in process.stdout.read() for process in both)
    assert tables == [False, True]
    assert run_folders(tmp_path, hidden=True) == ["seed=0"]
    assert is_whole(config.folder)
