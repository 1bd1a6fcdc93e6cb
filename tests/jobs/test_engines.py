"""Runs by dask, ray and SLURM: the same as here, whoever of them dies in between.

What an engine makes is asked of a real one: a local cluster of dask or ray, SLURM on this machine.
Those that are not installed are skipped.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import program
import pytest
import slurm_cluster
from program import call, marks, run_folders, started, wait_until

import ssvm_bench
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.jobs import Options, processes, submitit, tokens
from ssvm_bench.jobs.dispatch import Dispatcher, Executor, Job, JobResult, LostError
from ssvm_bench.jobs.tokens import CancelToken, RefusedError
from ssvm_bench.results.trace import COLUMNS, find_runs, read_metadata, read_trace
from ssvm_bench.runs import Outcome, recorder

COUNTED = [name for name in COLUMNS if name not in ("cpu_time", "eval_time")]
GRID = """
grid:
  seed: [0, 1]
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 30
  solver: troubled
  clock: work
  checkpoint.every: 0
  budget.max_iterations: 12
"""


def engine(name):
    """Return what a test with an engine is marked by."""
    there = slurm_cluster.is_installed() if name == "submitit" else True
    package = {"dask": "distributed", "ray": "ray", "submitit": "submitit"}[name]
    there = there and find_spec(package) is not None
    marks = [pytest.mark.skipif(not there, reason=f"no {name}")]
    return pytest.param(name, marks=[*marks, pytest.mark.slurm] if name == "submitit" else marks)


ENGINES = [engine("dask"), engine("ray"), engine("submitit")]
needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="no dask")


@pytest.fixture(scope="module")
def slurm():
    with slurm_cluster.cluster() as variables:
        yield variables


@pytest.fixture
def arguments(request, tmp_path, monkeypatch):
    """Return the arguments of an experiment whose solver is troubled."""
    monkeypatch.setenv("SSVM_BENCH_MARKS", str(tmp_path / "marks"))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setattr(recorder, "KEEP_SECONDS", 0.0)  # as `TROUBLED` leaves it
    if request.node.get_closest_marker("slurm"):
        for key, text in request.getfixturevalue("slurm").items():
            monkeypatch.setenv(key, text)
    for folder in ("marks", "solver"):
        (tmp_path / folder).mkdir()
    (tmp_path / "solver" / "troubled.py").write_text(program.TROUBLED)
    (tmp_path / "solver" / "troubled.yaml").write_text("# troubled\nstep: line_search\n")
    (tmp_path / "grid.yaml").write_text(GRID)
    folder = f"--config-dir={tmp_path}"
    return ("experiment", tmp_path / "grid.yaml", folder, f"results_dir={tmp_path / 'results'}")


def options(name):
    """Return the options of an engine with two runs at once."""
    slurm = ("--parallel=2", "--time-limit=5", "--memory=500M", "--partition=all")
    return (f"--backend={name}", *(slurm if name == "submitit" else ("--jobs=2",)))


def counted(results):
    """Return what is counted of every run, by its name."""
    return {folder.name: read_trace(folder).frame[COUNTED] for folder in find_runs(results)}


def left_by_ctrl_c(tmp_path, words, k):
    """Make slow runs, end the command after some iterations of one; return its log."""
    (tmp_path / "marks" / "slowly").touch()
    with started(*words, log=tmp_path / "log", anew=True) as process:
        wait_until(lambda: marks(tmp_path / "marks", k=k), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(program.PATIENCE) == 1
    return (tmp_path / "log").read_text()


@pytest.mark.parametrize("name", ENGINES)
def test_an_experiment_whose_worker_is_killed_is_that_of_one_process(name, tmp_path, arguments):
    """Two runs, of one of which the worker is killed, and one that fails."""
    undisturbed = call(*arguments, f"results_dir={tmp_path / 'here'}")
    assert undisturbed.exit_code == 0, undisturbed.output
    folder, log, results = tmp_path / "marks", tmp_path / "log", tmp_path / "results"
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "slowly").touch()
    words = (*arguments, *options(name), "seed=0,1,9", "--debug")
    with started(*words, log=log, anew=True) as process:
        wait_until(lambda: marks(folder, k=4), process)
        mark = marks(folder, k=4)[0]
        seed, _, pid = mark.name.split("-")
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        os.kill(int(parent), signal.SIGKILL)
        wait_until(lambda: not program.is_alive(int(pid)), process)  # else it may get to its end
        (folder / "slowly").unlink()
        assert process.wait(program.PATIENCE) == 1, log.read_text()
    assert "troubled seed=9 failed: The run failed in iteration" in log.read_text()
    assert 'raise RuntimeError("tired")' in log.read_text()
    assert run_folders(results) == ["seed=0", "seed=1", "seed=9.partial"]
    here, there = counted(tmp_path / "here"), counted(results)
    assert here.keys() == there.keys()
    assert all(here[key].equals(there[key]) for key in here)
    about = {run.name: read_metadata(run) for run in find_runs(results)}
    for one in about.values():
        assert (one["engine"], {*one["threads"].values()}) == (name, {"1"})
        assert re.fullmatch(r"\d+ cores?, \d+ GB", one["node"])
    (again,) = about[f"seed={seed}"]["resumed"]
    assert again["iteration"] >= 4
    # no iteration was computed twice but that in which the worker died
    assert sum(len(marks(folder, seed, k)) > 1 for k in range(12)) <= 1
    assert not list((results / ".engines").glob("*"))


@pytest.mark.parametrize("name", ENGINES[:2])
def test_ctrl_c_ends_runs_after_their_iterations(name, tmp_path, arguments):
    words = (*arguments, *options(name), "seed=0,1,2", "budget.max_iterations=100")
    text = left_by_ctrl_c(tmp_path, words, 3)
    assert "Ending after the current iterations" in text
    assert "the same command goes on" in text
    assert "Traceback" not in text
    left = run_folders(tmp_path / "results")
    assert 1 <= len(left) <= 2
    assert all(each.endswith(".partial") for each in left)


@pytest.mark.parametrize("name", ENGINES[2:])
def test_jobs_stay_in_the_queue_when_the_command_is_left(name, tmp_path, arguments):
    arguments = (*arguments, "budget.max_iterations=100")
    text = left_by_ctrl_c(tmp_path, (*arguments, *options(name)), 2)
    (job,) = re.findall(r"To cancel them: scancel (\d+)", text)
    status = call(*arguments, "--backend=submitit", "--status")
    assert re.search(rf"SLURM job {job}: .*RUNNING", status.stdout)
    again = call(*arguments, *options(name))
    assert again.exit_code == 0, again.output
    assert "in SLURM's queue from before; waiting for them" in again.stderr
    assert "as job" not in again.stderr
    assert run_folders(tmp_path / "results") == ["seed=0", "seed=1"]
    assert len(marks(tmp_path / "marks", "0", 2)) == 1
    status = call(*arguments, "--backend=submitit", "--status")
    assert "SLURM has no jobs of these results." in status.stdout


@pytest.mark.parametrize("name", ENGINES[2:])
def test_a_job_at_its_limit_is_requeued_and_one_cancelled_is_not(name, tmp_path, arguments):
    (tmp_path / "marks" / "slowly").touch()
    log = tmp_path / "log"
    seldom = [*arguments, "checkpoint.every=600", "seed=0,1"]  # none but that at the limit
    with started(*seldom, *options(name), log=log, anew=True) as process:
        found = tmp_path / "marks"
        wait_until(lambda: marks(found, "0", 4) and marks(found, "1", 2), process)
        (job,) = re.findall(r"as job (\d+)", log.read_text())
        subprocess.run(["scancel", "--signal=USR2", f"{job}_0"], check=True)
        subprocess.run(["scancel", f"{job}_1"], check=True)
        assert process.wait(program.PATIENCE) == 1
    assert f"seed=1 failed: SLURM job {job}_1: it was cancelled" in log.read_text()
    assert run_folders(tmp_path / "results") == ["seed=0", "seed=1.partial"]
    (folder,) = find_runs(tmp_path / "results")
    (again,) = read_metadata(folder)["resumed"]
    assert again["iteration"] >= 4
    assert max(len(marks(tmp_path / "marks", "0", k)) for k in range(12)) == 1


def test_arrays_are_known_by_their_folders(tmp_path, monkeypatch):
    for name, jobs in (("a", {"k1": "5_0", "k2": "5_1"}), ("b", {"k1": "6_0"})):
        (tmp_path / ".engines" / name).mkdir(parents=True)
        (tmp_path / ".engines" / name / "jobs.json").write_text(json.dumps(jobs))
    (tmp_path / ".engines" / "c").mkdir()
    done, waits = submitit.State("COMPLETED", "None"), submitit.State("PENDING", "Priority")
    states = {"5_0": done, "5_1": waits}
    monkeypatch.setattr(submitit, "slurm", lambda *command, seconds: "")
    monkeypatch.setattr(submitit, "states", lambda: states)
    assert submitit.lines(tmp_path) == ["SLURM job 5: 1 COMPLETED, 1 PENDING (Priority)"]
    del states["5_1"]
    assert submitit.lines(tmp_path) == ["SLURM has no jobs of these results."]


def test_a_job_of_slurm_says_as_json_what_became_of_it():
    summary = {"gap": 0.5, "n": 3, "dual": -1e-320}
    outcome = Outcome("finished", "gap_tol", Path("/results/x"), summary)
    for answer in (outcome, LostError("its process died"), ConfigError("no such option")):
        if answer is not outcome:
            answer.traceback = "Traceback …"
        found = submitit.result_of(submitit.written(JobResult(answer, ("one", "two"))).encode())
        assert found.messages == ("one", "two")
        assert (type(found.answer), str(found.answer)) == (type(answer), str(answer))
        assert found.answer == answer if answer is outcome else found.answer.traceback


@pytest.mark.parametrize(
    ("backend", "asked", "message"),
    [
        ("local", {"address": "x"}, "it is for --backend dask or --backend ray"),
        ("submitit", {"jobs": 2}, "--jobs means nothing to --backend submitit"),
        ("dask", {"time_limit": 5}, "whose options are --jobs, --address"),
        ("dask", {"jobs": 2, "address": "x"}, "Leave one of them out"),
        ("submitit", {"memory": "much"}, "such as 500M or 4G, got much"),
    ],
)
def test_options_are_those_of_the_backend(backend, asked, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Options(**asked).check(backend)
    assert Options(memory="4G").slurm_memory() == "4096M"
    assert Options(memory="512m").slurm_memory() == "512M"


@pytest.fixture
def silent():
    """Return the address of somebody who listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("name", ENGINES[:2])
def test_a_scheduler_that_does_not_answer_is_told_soon(name, arguments, silent, monkeypatch):
    monkeypatch.setattr("ssvm_bench.base.scheduler.SECONDS", 1)
    result = call(*arguments, f"--backend={name}", f"--address={silent}")
    assert (result.exit_code, f"answers at {silent}" in result.stderr) == (1, True)


def test_slurm_that_is_not_there_is_told(tmp_path, arguments, monkeypatch):
    if find_spec("submitit") is None:
        pytest.skip("no submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = call(*arguments, "--backend=submitit")
    assert (result.exit_code, "command scontrol is missing" in result.stderr) == (1, True)


@pytest.fixture
def scheduler():
    """Return the address of a dask scheduler without workers."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        yield cluster.scheduler_address


def with_worker(arguments, address, *before, folder, **changes):
    """Make an experiment by a scheduler with one worker, which is started by a command."""
    command = [*before, sys.executable, "-m", "distributed.cli.dask_worker", address]
    command += ["--nthreads=1", "--no-nanny", "--no-dashboard"]
    how = {"env": program.environment(**changes), "cwd": folder, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **how) as worker:
        try:
            return call(*arguments, "--backend=dask", f"--address={address}")
        finally:
            worker.terminate()


@needs_dask
def test_a_node_with_another_version_is_refused(tmp_path, arguments, scheduler, monkeypatch):
    with monkeypatch.context() as changed:
        changed.setattr("ssvm_bench.base.scheduler.SECONDS", 1)
        result = call(*arguments, "--backend=dask", f"--address={scheduler}", "seed=0")
    assert result.exit_code == 1
    assert "has 0 of 1 workers" in result.stderr
    other = tmp_path / "other"
    shutil.copytree(Path(ssvm_bench.__file__).parent, other / "ssvm_bench")
    (other / "ssvm_bench" / "clock.py").write_text("# another version\n")
    result = with_worker(arguments, scheduler, folder=tmp_path, PYTHONPATH=other)
    assert result.exit_code == 1
    assert "has another version of the program: other sources of ssvm-bench" in result.stderr
    assert run_folders(tmp_path / "results") == []


@needs_dask
@pytest.mark.parametrize("status", ["closing", "closed"])
def test_a_scheduler_that_ends_ends_the_command(status):
    from ssvm_bench.jobs.dask import Dask

    executor = Dask.__new__(Dask)
    executor._client = SimpleNamespace(status=status)
    with pytest.raises(RunFailedError, match=r"scheduler has ended.*the same command goes on"):
        executor.wait(0.0)


def can_unshare():
    found = shutil.which("unshare")
    return found and not subprocess.run([found, "-m", "true"]).returncode


@needs_dask
@pytest.mark.skipif(not can_unshare(), reason="mounts cannot be made")
def test_a_node_that_does_not_see_the_results_is_refused(tmp_path, arguments, scheduler):
    (tmp_path / "results").mkdir()
    hidden = f'mount -t tmpfs none {tmp_path / "results"} && exec "$@"'
    before = ("unshare", "-m", "sh", "-c", hidden, "sh")
    result = with_worker(arguments, scheduler, *before, folder=tmp_path)
    assert result.exit_code == 1
    assert f"does not see the results folder {tmp_path / 'results'}" in result.stderr


def test_a_token_is_valid_until_it_is_cancelled(tmp_path):
    token, _ = CancelToken.issue(tmp_path)
    assert token.problem() is None
    other = CancelToken(token.folder, "another", {"numpy": "0.1"})
    assert "numpy" in str(other.problem())
    token.cancel()
    assert isinstance(token.problem(), RefusedError)
    assert not token.folder.exists()


def left_by_a_killed_process(tmp_path):
    """Return the folder of a token whose process is dead."""
    if (process := os.fork()) == 0:
        CancelToken.issue(tmp_path)
        os._exit(0)
    os.waitpid(process, 0)
    (folder,) = (tmp_path / ".engines").glob("*")
    return folder


def test_the_token_of_a_killed_process_is_removed_by_the_next_call(tmp_path, arguments):
    results = tmp_path / "results"
    folder = left_by_a_killed_process(results)
    token, held = CancelToken.issue(results)
    assert call(*arguments, "budget.max_iterations=1").exit_code == 0
    assert not folder.exists()
    assert token.is_valid()
    os.close(held)  # as if it were dead
    assert call(*arguments, "budget.max_iterations=1").exit_code == 0  # all had finished before
    assert not list((results / ".engines").glob("*"))


@pytest.mark.parametrize("name", ["jobs.json", "node"])
def test_a_token_of_jobs_in_a_queue_or_of_another_node_stays(tmp_path, name):
    folder = left_by_a_killed_process(tmp_path)
    (folder / name).write_text("{}")
    tokens.sweep(tmp_path)
    assert (folder / "token").exists()
    for left in ("token", "node", "jobs.json"):  # what a removal has left goes
        (folder / left).unlink(missing_ok=True)
    (folder / "jobs").mkdir()
    (folder / "jobs" / "12_0_log.out").touch()
    tokens.sweep(tmp_path)
    assert not folder.exists()


class Unlucky(Executor):
    """An executor whose processes die, all or the first few."""

    def __init__(self, deaths):
        self.deaths, self.waiting = deaths, []

    def submit(self, jobs):
        assert all(isinstance(job, Job) for job in jobs.values())
        self.waiting += jobs.items()

    def wait(self, seconds):
        number, job = self.waiting.pop(0)
        self.deaths -= 1
        if self.deaths >= 0:
            return [(number, JobResult(LostError("it died.")))]
        return [(number, processes.perform(job))]

    def close(self, finished):
        pass


@pytest.mark.parametrize("deaths", [3, 4])
def test_a_run_is_begun_again_some_times(tmp_path, arguments, deaths):
    config = program.config_of(tmp_path, "solver=fw", "budget.max_iterations=2", "clock=work")
    said, ended = [], {}
    dispatcher = Dispatcher("unlucky", lambda token: Unlucky(deaths))
    with shown_by(said.append):
        assert dispatcher.make({5: config}, pytest.fail, ended.__setitem__)
    assert sum("it died." in text for text in said) == 3
    if deaths == 3:
        assert ended[5].status == "finished"
    else:
        assert isinstance(ended[5], RunFailedError)
        assert "That happened 4 times" in str(ended[5])
