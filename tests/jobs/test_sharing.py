"""Work on one results folder by many processes, and on many folders that become one."""

import gc
import os
import re
import shutil
import subprocess
import sys
import weakref
from contextlib import ExitStack
from itertools import chain, product

import program
import pytest
from program import FILES, call, config_of, error_of, run_folders, run_here
from traces import with_metadata

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.experiment import Shard
from ssvm_bench.results import merging
from ssvm_bench.results.run_folder import lock
from ssvm_bench.results.trace import find_runs, is_whole, read_trace, write_partial
from ssvm_bench.runs import runner
from ssvm_bench.runs.terminal import Display


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_others_make_is_passed_over_and_looked_at_in_the_end(tmp_path, grid, jobs):
    """The first run is held until the others are there."""
    results, log = tmp_path / "results", tmp_path / "log"
    first = config_of(results, "solver=bcfw", "clock=work", "budget.max_iterations=4")
    words = ("experiment", grid, f"results_dir={results}", f"--jobs={jobs}", "solver=bcfw")
    with ExitStack() as other:
        other.enter_context(lock(first.folder))
        with program.started(*words, log=log) as process:
            program.wait_until(lambda: "at work on 1 run; waiting" in log.read_text())
            assert len(find_runs(results)) == 1
            assert process.poll() is None
            other.close()  # without having made it
            assert process.wait() == 0
    assert len(find_runs(results)) == 2


def test_a_copy_of_this_process_does_not_collect_its_garbage(tmp_path, monkeypatch):
    """It waited for a LaTeX of matplotlib's to end, whose input this process still held."""

    class Ring:
        pass

    ring, collected = Ring(), tmp_path / "collected"
    ring.itself = ring
    weakref.finalize(ring, collected.touch)
    monkeypatch.setattr(program, "start", lambda: sys.exit(0 * gc.collect()))
    gc.disable()
    try:
        del ring
        program.completed(tmp_path / "log")
        assert not collected.exists()
        gc.collect()
    finally:
        gc.enable()
    assert collected.exists()


def test_the_lock_of_a_dead_process_does_not_block(tmp_path):
    config = config_of(tmp_path, "solver=bcfw", "budget.max_iterations=1")
    code = (
        "import pathlib, sys, time\n"
        "from ssvm_bench.results.run_folder import lock\n"
        "with lock(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code, str(config.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=program.environment()) as process:
        assert process.stdout.readline() == b"held\n"
        assert runner.run(config, Display(), wait=False).status == "held"
        process.kill()
        process.wait()
    assert runner.run(config, Display(), wait=False).status == "finished"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_shards_are_parts_of_all_runs_and_alike(count):
    runs_of_a_seed = list(product(["usps", "ocr"], ["bcfw", "mpbcfw"]))
    runs = [(seed, *run) for seed in range(6) for run in runs_of_a_seed]
    shards = [Shard(number, count).of(runs) for number in range(1, count + 1)]
    assert sorted(chain.from_iterable(shards)) == sorted(runs)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    if count == 2:
        assert all({run[1:] for run in shard} == set(runs_of_a_seed) for shard in shards)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "a/b", "1/2/3", "-1/2", ""])
def test_a_shard_out_of_range_is_told(grid, text):
    message = error_of(call("experiment", grid, f"--shard={text}"), 2)
    assert "--shard must be I/K, the I-th of K parts with 1 ≤ I ≤ K, got" in message


def test_shards_merged_are_the_experiment(tmp_path, grid, blank):
    parts = [tmp_path / f"part-{k}" for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        result = call("experiment", grid, f"results_dir={part}", f"--shard={k}/2")
        assert result.exit_code == 0, result.output
        assert f"This was shard {k}/2." in result.stderr
        assert not (part / "figures").exists()
        assert len(find_runs(part)) == 2
    result = call("merge", *parts, "--into", tmp_path / "all")
    assert result.output.endswith(f"4 runs copied to {tmp_path / 'all'}, 0 as good there.\n")
    drawn = call("plot", grid, f"results_dir={tmp_path / 'all'}")
    assert drawn.exit_code == 0, drawn.output
    assert "missing" not in drawn.stderr
    # runs that nobody offered are not counted
    again = call("merge", parts[0], "--into", tmp_path / "all")
    assert again.output == f"0 runs copied to {tmp_path / 'all'}, 2 as good there.\n"


RUN = ("solver=fw", "clock=work", "budget.max_iterations=3")


@pytest.fixture
def two(tmp_path):
    """Return two results folders with the same run, and where it is in both."""
    a, b = tmp_path / "a", tmp_path / "b"
    return a, b, [run_here(folder, *RUN).folder for folder in (a, b)]


def left_after(folder, rows):
    """Let a finished run be one that was left after some rows."""
    trace = read_trace(folder)
    unfinished = {**trace.end, "stop_reason": "interrupted"}
    write_partial(folder, trace.frame[:rows], trace.metadata, unfinished)
    shutil.rmtree(folder)


def test_the_finished_run_goes_before_the_longer_one(tmp_path, two):
    a, b, (in_a, _) = two
    left_after(in_a, 4)
    merged = merging.merge([a, b], tmp_path / "c")
    assert merged == merging.Merged(copied=1, there=0, damaged=0)
    assert run_folders(tmp_path / "c") == ["seed=0"]
    assert is_whole(*find_runs(tmp_path / "c"))


def test_of_unfinished_runs_the_longer_one_goes(tmp_path, two):
    a, b, (in_a, in_b) = two
    left_after(in_a, 2)
    left_after(in_b, 3)
    merging.merge([a, b], tmp_path / "c")
    (partial,) = (tmp_path / "c").glob("runs/*/*/*/seed=0.partial")
    assert len(read_trace(partial).frame) == 3
    # and makes way for a finished one
    run_here(tmp_path / "d", *RUN)
    merging.merge([tmp_path / "d"], tmp_path / "c")
    assert run_folders(tmp_path / "c") == ["seed=0"]


def of_dataset(folder, **changes):
    """Change what the metadata of a run say of its dataset."""
    with_metadata(folder, lambda found: found | {"dataset": found["dataset"] | changes})


def test_the_same_run_on_different_data_is_refused(tmp_path, two):
    a, b, (_, in_b) = two
    of_dataset(in_b, fingerprint="another")
    with pytest.raises(RunFailedError, match="are the same run on different data"):
        merging.merge([a, b], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_real_data_and_their_stand_in_are_not_merged(tmp_path, two):
    a, b, (_, in_b) = two
    in_b.parent.rename(in_b.parent.with_name("0123456789ab"))
    in_b = in_b.parent.with_name("0123456789ab") / in_b.name
    of_dataset(in_b, source="real")
    with pytest.raises(RunFailedError, match=r"real and of synthetic data.*--source=real"):
        merging.merge([a, b], tmp_path / "c")
    assert merging.merge([a, b], tmp_path / "c", source="real").copied == 1


def test_a_damaged_run_is_told_and_left(tmp_path, two):
    a, b, (in_a, _) = two
    (in_a / "summary.json").write_text("{}")
    result = call("merge", a, b, "--into", tmp_path / "c")
    assert result.exit_code == 0
    assert re.search("1 run copied.*1 could not be read", result.output)
    assert str(in_a) in result.stderr


def test_mistakes_of_merge(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    merged = call("merge", empty, "--into", tmp_path / "c")
    assert f"There are no runs in {empty}" in error_of(merged, 2)
    assert "Name the results folders" in error_of(call("merge", "--into", tmp_path / "c"), 2)
    assert "--into" in error_of(call("merge", empty), 2)
    (empty / "runs").mkdir()
    itself = call("merge", empty, "--into", tmp_path / "c" / ".." / "empty")
    assert "cannot be merged into itself" in error_of(itself, 2)


@pytest.mark.parametrize("there", [False, True])
def test_a_merge_of_which_nothing_can_be_read_has_failed(tmp_path, two, there):
    a, b, (in_a, in_b) = two
    if there:  # what is in the target already was not asked for
        assert call("merge", a, "--into", tmp_path / "c").exit_code == 0
    before = run_folders(tmp_path / "c")
    for run in (in_a, in_b):
        (run / "summary.json").write_text("{}")
    said = error_of(call("merge", a, b, "--into", tmp_path / "c"), 1)
    assert f"None of the runs in {a}, {b} can be read" in said
    assert run_folders(tmp_path / "c") == before


def test_a_merge_of_which_some_can_be_read_says_how_many_cannot(tmp_path, two):
    a, b, (in_a, _) = two
    (in_a / "summary.json").write_text("{}")
    result = call("merge", a, b, "--into", tmp_path / "c")
    assert result.exit_code == 0
    assert "1 run copied" in result.output
    assert "1 could not be read" in result.output


def link(path, to="/etc/passwd"):
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def moved(path):
    path.rename(path.with_name("there"))
    path.symlink_to("there")


@pytest.mark.parametrize(
    "spoil",
    [
        *(lambda run, put=put: put(run / "zzz") for put in (link, os.mkfifo, os.mkdir)),
        *(lambda run, put=put: put(run / "checkpoint") for put in (link, os.mkfifo, os.mkdir)),
        lambda run: (run / "..zzz").write_text("x"),
        lambda run: (run / "checkpoint").write_text("x"),
        lambda run: (run.parent / "seed=0.bak").mkdir(),
    ],
)
def test_of_a_run_its_own_files_are_merged_and_nothing_else(tmp_path, two, spoil):
    a, _, (in_a, _) = two
    spoil(in_a)
    result = call("merge", a, "--into", tmp_path / "c")
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.stderr
    (folder,) = find_runs(tmp_path / "c")
    assert is_whole(folder)
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert run_folders(tmp_path / "c") == ["seed=0"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: link(run / "weights.npz"),
        lambda run: moved(run / "weights.npz"),
        lambda run: moved(run / "trace.parquet"),
        lambda run: program.put_odd(run / "summary.json", "pipe"),
        lambda run: link(run / "traceback.txt"),
        lambda run: (run / "traceback.txt").write_text("x"),
        lambda run: (run / "names.json.gz").mkdir(),
        *(lambda run, up=up: moved([run, *run.parents][up]) for up in range(5)),
        lambda run: run.rename(run.with_name("seed=1")),
        lambda run: run.rename(run.with_name("seed=0.partial")),
        lambda run: run.parent.rename(run.parent.with_name("x y")),
        lambda run: run.parents[1].rename(run.parents[1].with_name("bcfw")),
    ],
)
def test_what_is_not_the_run_of_its_place_is_not_merged(tmp_path, two, spoil):
    a, b, (in_a, _) = two
    spoil(in_a)
    result = call("merge", a, "--into", tmp_path / "c")
    if result.exit_code == 0:  # there is nothing that looks like a run
        assert "0 runs copied" in result.output
        assert not result.stderr
    else:
        assert f"None of the runs in {a} can be read" in error_of(result, 1)
        assert len(result.stderr.splitlines()) > 1
    assert find_runs(tmp_path / "c") == []
    assert call("merge", a, b, "--into", tmp_path / "c").output.count("1 run copied") == 1


def test_a_merge_brings_checkpoints_that_a_run_can_go_on_from(tmp_path):
    options = ("solver=mpbcfw", "clock=work", "checkpoint.keep=true")
    run_here(tmp_path / "a", *options, "budget.max_iterations=3")
    merging.merge([tmp_path / "a"], tmp_path / "c")
    outcome = run_here(tmp_path / "c", *options, "budget.max_iterations=5")
    assert read_trace(outcome.folder).metadata["resumed"][0]["iteration"] == 3


def test_a_finished_run_leaves_the_state_of_an_extension(tmp_path, two):
    a = two[0]
    merging.merge([a], tmp_path / "c")
    (folder,) = find_runs(tmp_path / "c")
    trace = read_trace(folder)
    further = trace.frame.assign(iteration=trace.frame["iteration"] + 7)
    write_partial(folder, further, trace.metadata, {**trace.end, "stop_reason": "interrupted"})
    shutil.rmtree(folder)
    merging.merge([a], tmp_path / "c")
    assert sorted(run_folders(tmp_path / "c")) == ["seed=0", "seed=0.partial"]


def test_a_merge_removes_what_a_killed_one_has_left(tmp_path, two):
    a, _, (in_a, _) = two
    merging.merge([a], tmp_path / "c")
    (folder,) = find_runs(tmp_path / "c")
    shutil.copytree(in_a, folder.with_name(".seed=0.tmp-ssvm-bench-0123456789ab"))
    merging.merge([a], tmp_path / "c")
    assert run_folders(tmp_path / "c", hidden=True) == ["seed=0"]
