"""Several runs at once: the same traces as one after the other, and what goes wrong stays apart."""

import os
import signal
from pathlib import Path

import program
import pytest
from program import call, end, marks, run_folders, wait_until

from ssvm_bench.jobs.call import Call, asked_for
from ssvm_bench.report.experiment_files import load
from ssvm_bench.results import run_folder
from ssvm_bench.results.trace import COLUMNS, find_runs, read_metadata, read_summary, read_trace
from ssvm_bench.runs import recorder


@pytest.fixture
def troubled(tmp_path, monkeypatch):
    """Install the troubled solver; return its options."""
    monkeypatch.setenv("SSVM_BENCH_MARKS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", program.path_with(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(recorder, "KEEP_SECONDS", 0.0)  # as `TROUBLED` leaves it
    return program.install_solver(tmp_path, "troubled", program.TROUBLED)


def experiment(grid, results, *options):
    return call("experiment", grid, f"results_dir={results}", *options)


def test_the_traces_are_those_of_one_run_after_the_other(tmp_path, grid):
    """Some of them have finished before, and are not made again."""
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    for results, *options in ((alone,), (beside, "seed=0"), (beside, "--jobs=2")):
        before = {folder: folder.stat().st_mtime_ns for folder in find_runs(results)}
        result = experiment(grid, results, *options)
        assert result.exit_code == 0, result.output
        assert before == {folder: folder.stat().st_mtime_ns for folder in before}
    assert "2 of 4 runs had finished before." in result.stderr
    assert "bcfw seed=0 …" not in result.stderr
    folders = find_runs(alone)
    assert len(folders) == 4
    # times are counted under clock=work, so they are the same as well
    compared = [name for name in COLUMNS if name not in ("cpu_time", "eval_time")]
    for folder in folders:
        one, other = read_trace(folder), read_trace(beside / folder.relative_to(alone))
        assert one.frame[compared].equals(other.frame[compared])
        is_beside = folder.name == "seed=1"
        runs = [trace.metadata["concurrent_runs"] for trace in (one, other)]
        assert runs == [0, is_beside]
        if is_beside:
            assert set(other.metadata["threads"].values()) == {"1"}
            assert other.metadata["cores"] == 1 or not hasattr(os, "sched_getaffinity")
    picture = Path("figures", "grid", "iterations-synthetic.png")
    assert (alone / picture).read_bytes() == (beside / picture).read_bytes()


def test_the_other_runs_on_a_node_are_counted_whoever_makes_them(tmp_path):
    (tmp_path / "results" / "runs").mkdir(parents=True)
    with run_folder.counted(tmp_path / "results") as others:
        assert others() == 0
        outcome = program.run_here(tmp_path / "results", "solver=bcfw", "budget.max_iterations=1")
        with run_folder.counted(tmp_path / "results"):
            assert others() == 1
    assert read_metadata(outcome.folder)["concurrent_runs"] == 1


def test_runs_that_fail_or_die_leave_the_others_alone(tmp_path, grid, troubled, blank):
    options = (*troubled, "seed=0,9,8,7,6,3", "--jobs=2")
    result = experiment(grid, tmp_path / "results", *options)
    assert result.exit_code == 1
    for said in (
        *("troubled seed=9 failed: The run failed in iteration", "RuntimeError: tired"),
        "troubled seed=8 failed: its process was killed",
        *("troubled seed=7 failed: The run failed in iteration", "os._exit(0) was called"),
        *("troubled seed=6 failed: its process ended (exit status 0)", "4 runs failed"),
    ):
        assert said in result.stderr
    partial = [f"seed={seed}.partial" for seed in (6, 7, 8, 9)]
    assert run_folders(tmp_path / "results") == ["seed=0", "seed=3", *partial]
    again = experiment(grid, tmp_path / "results", *options)
    assert "2 of 6 runs had finished before" in again.stderr
    finished = ["seed=0", "seed=3", *partial[:2], "seed=8", partial[3]]
    assert run_folders(tmp_path / "results") == finished
    status = experiment(grid, tmp_path / "results", *options, "--status")
    assert "3 done, 2 failed, 1 missing, of 6 runs" in status.stdout
    assert "seed=9.partial" in status.stdout


def test_an_interrupt_keeps_what_the_runs_have_measured(tmp_path, grid, troubled):
    results, log = tmp_path / "results", tmp_path / "log"
    (tmp_path / "slowly").touch()
    options = (f"results_dir={results}", *troubled, "seed=10,11,12", "budget.max_iterations=2000")
    words = ("experiment", grid, *options, "--jobs=2")
    with program.started(*words, log=log, PYTHONPATH=os.environ["PYTHONPATH"]) as process:
        locks = results / "runs" / "usps" / "troubled"
        wait_until(lambda: len(list(locks.glob("*/.seed=1?.lock"))) == 2, process)
        status = call("experiment", grid, *options, "--status")
        assert "2 running, 1 missing" in status.stdout
        wait_until(lambda: len(marks(tmp_path, k=2)) == 2, process)
        assert end(process, signal.SIGINT) == 1
    text = log.read_text()
    assert "Interrupted; 3 of 3 runs missing" in text
    assert "Ctrl-C again ends at once" in text
    assert "Traceback" not in text
    assert run_folders(results) == ["seed=10.partial", "seed=11.partial"]
    (partial, _) = sorted(locks.glob("*/seed=*.partial"))
    assert read_summary(partial)["stop_reason"] == "interrupted"
    assert len(read_trace(partial).frame) > 1


def test_a_mistake_ends_the_experiment_with_one_message(tmp_path, grid):
    result = experiment(grid, tmp_path, "--jobs=2", "oracle=viterbi")
    assert result.exit_code == 2
    assert "oracle=viterbi does not fit dataset=usps" in result.stderr
    assert run_folders(tmp_path) == []


def issued(tmp_path, *words, retries=0, **about):
    """Return a call that no supervisor has begun."""
    grid = tmp_path / "of-a-call.yaml"
    grid.write_text("grid: {dataset.source: synthetic}\n")
    found, words = load(str(grid)), [*words, f"results_dir={tmp_path / 'results'}"]
    configs = found.configs(words)
    about = {"backend": "local", "beside": 0, "outlives": False} | about
    asked = asked_for(found, words, (), None)
    return Call.issue(asked, configs, range(len(configs)), retries=retries, **about)


def test_a_worker_keeps_its_dataset_and_seeds_come_in_order(tmp_path):
    call = issued(tmp_path, "seed=0,1", "dataset=usps,ocr,weizmann", "solver=bcfw,fw")
    order = []
    with call.led():
        taken = call.take("other", "")
        dataset = "ocr"
        while (run := call.take("here", dataset)) is not None:
            dataset = call.configs[run].dataset.name
            order.append((call.configs[run].seed, dataset))
            call.record("finished", run, "synthetic", "finished")
    assert call.configs[taken].dataset.name == "usps"
    assert [seed for seed, _ in order] == [0] * 5 + [1] * 6
    assert [name for _, name in order[:5]] == ["ocr"] * 2 + ["weizmann"] * 2 + ["usps"]
