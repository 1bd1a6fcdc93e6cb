"""Runs by dask, ray and SLURM: the same as here, whoever of them dies in between.

What an engine makes is asked of a real one: a local cluster of dask or ray, SLURM on this machine.
Those that are not installed are skipped.
"""

import hashlib
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
from ssvm_bench.base.files import is_held
from ssvm_bench.base.messages import shown_by
from ssvm_bench.jobs import Options, backends, supervisor
from ssvm_bench.jobs import call as calls
from ssvm_bench.jobs import slurm as queue
from ssvm_bench.jobs import worker as workers
from ssvm_bench.jobs.backends import Backend, Local
from ssvm_bench.jobs.call import Call, Event, asked_for, shares_locks, sweep
from ssvm_bench.jobs.supervisor import Supervisor
from ssvm_bench.jobs.worker import End
from ssvm_bench.report.experiment_files import load
from ssvm_bench.results.run_folder import lock
from ssvm_bench.results.trace import COLUMNS, find_runs, read_metadata, read_trace
from ssvm_bench.runs import Outcome, recorder, runner
from ssvm_bench.runs.terminal import Display

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
    package = {"dask": "distributed", "ray": "ray"}.get(name)
    there = find_spec(package) is not None if package else slurm_cluster.is_installed()
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
        os.kill(int(pid if name == "submitit" else parent), signal.SIGKILL)
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
    assert not list(results.glob(".call-*"))


@pytest.mark.parametrize("name", ENGINES[:2])
def test_ctrl_c_ends_runs_after_their_iterations(name, tmp_path, arguments):
    words = (*arguments, *options(name), "seed=0,1,2", "budget.max_iterations=100")
    text = left_by_ctrl_c(tmp_path, words, 3)
    assert "Ending after the current iterations" in text
    assert "the same command resumes them" in text
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
    status = (*arguments, "--backend=submitit", "--status")
    wait_until(lambda: "SLURM has no jobs of these results." in call(*status).stdout)
    assert not list((tmp_path / "results").glob(".call-*"))  # whoever looked removed them


@pytest.mark.parametrize("name", ENGINES[2:])
def test_a_job_at_its_limit_is_requeued_and_one_cancelled_is_not(name, tmp_path, arguments):
    found, log = tmp_path / "marks", tmp_path / "log"
    (found / "slowly").touch()
    seldom = [*arguments, "checkpoint.every=600", "seed=0,1"]  # none but that at the limit
    with started(*seldom, *options(name), log=log, anew=True) as process:
        wait_until(lambda: marks(found, "0", 4) and marks(found, "1", 2), process)
        (job,) = re.findall(r"as job (\d+)", log.read_text())
        for element in (1, 2):
            asked = ["scancel", "--batch", "--signal=USR2", f"{job}_{element}"]
            subprocess.run(asked, check=True)
        assert process.wait(program.PATIENCE) == 0
    assert run_folders(tmp_path / "results") == ["seed=0", "seed=1"]
    about = {folder.name: read_metadata(folder) for folder in find_runs(tmp_path / "results")}
    assert about["seed=0"]["resumed"][0]["iteration"] >= 4
    assert max(len(marks(found, "0", k)) for k in range(12)) == 1
    longer = [*arguments, "budget.max_iterations=100", "seed=2"]
    with started(*longer, *options(name), log=log, anew=True) as process:
        wait_until(lambda: marks(found, "2", 2), process)
        (job,) = re.findall(r"as job (\d+)", log.read_text())
        subprocess.run(["scancel", job], check=True)
        assert process.wait(program.PATIENCE) == 1
    assert re.search(rf"seed=2 failed: SLURM job {job}_\d: it was cancelled", log.read_text())
    assert run_folders(tmp_path / "results") == ["seed=0", "seed=1", "seed=2.partial"]


def issued(tmp_path, *words, retries=3, **about):
    """Return a call of few runs that no supervisor has begun."""
    grid = tmp_path / "of-a-call.yaml"
    grid.write_text("grid: {dataset: usps, dataset.source: synthetic, dataset.n_samples: 30}\n")
    options = ["solver=fw", "budget.max_iterations=2", "clock=work", *words]
    found, options = load(str(grid)), [*options, f"results_dir={tmp_path / 'results'}"]
    configs = found.configs(options)
    about = {"backend": "local", "beside": 0, "outlives": False} | about
    asked = asked_for(found, options, (), None)
    return Call.issue(asked, configs, range(len(configs)), retries=retries, **about)


def test_jobs_are_known_by_the_names_of_their_calls(tmp_path, monkeypatch):
    results, found = tmp_path / "results", []
    for _ in range(2):
        one = issued(tmp_path, outlives=True)
        with one.led():
            found.append(one.path)
    job = f"ssvm-bench-{found[0].stem.removeprefix('.call-')}"
    states = {
        "5_1": queue.State("5_1", "COMPLETED", job, "None"),
        "5_2": queue.State("5_2", "PENDING", job, "Priority"),
        "6_1": queue.State("6_1", "RUNNING", "another", "None"),
    }
    monkeypatch.setattr(queue, "slurm", lambda *command, seconds: "")
    monkeypatch.setattr(queue, "states", lambda: states)
    with monkeypatch.context() as another:  # who does not see these jobs in the queue
        another.setattr("os.getuid", lambda: found[0].stat().st_uid + 1)
        assert queue.lines(results) == ["SLURM has no jobs of these results."]
        assert found[0].exists()
    assert queue.lines(results) == ["SLURM job 5: 1 COMPLETED, 1 PENDING (Priority)"]
    assert (found[0].exists(), found[1].exists()) == (True, False)
    sweep(results)
    assert found[0].exists()
    del states["5_2"]
    assert queue.lines(results) == ["SLURM has no jobs of these results."]
    assert not found[0].exists()


def test_calls_whose_jobs_ended_while_nobody_looked_are_removed_by_any_later_one(
    tmp_path, monkeypatch
):
    results, states = tmp_path / "results", {}
    grid = tmp_path / "grid.yaml"
    grid.write_text("grid: {dataset: usps, solver: fw}\n")
    words = (*program.USPS[1:], "budget.max_iterations=1", f"results_dir={results}")
    with (one := issued(tmp_path, outlives=True)).led():
        pass
    late = one.path.with_name(f".call-{'0' * 32}.out")  # of a job that began after its call
    late.touch()

    def left_after_another_call():
        assert call("experiment", grid, *words).exit_code == 0
        return {*results.glob(".call-*")}

    monkeypatch.setenv("PATH", str(tmp_path))
    assert left_after_another_call() == {one.path}  # no SLURM says that its jobs have ended
    monkeypatch.setattr(queue, "slurm", lambda *command, seconds: "")
    monkeypatch.setattr(queue, "states", lambda: states)
    states["5_1"] = queue.State("5_1", "PENDING", f"ssvm-bench-{one.path.stem[6:]}", "Priority")
    assert left_after_another_call() == {one.path}
    states.clear()
    assert not left_after_another_call()


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


@pytest.mark.parametrize("status", ["closing", "closed"])
def test_a_scheduler_that_ends_ends_the_command(status):
    backend = backends.Dask(Options())
    backend._client = SimpleNamespace(status=status)
    with pytest.raises(RunFailedError, match=r"scheduler has ended.*the same command resumes them"):
        next(backend.ended())


def test_how_a_task_of_dask_has_ended_is_how_its_worker_has():
    def failed(kind):
        error = type(kind, (Exception,), {})("It fell")
        return SimpleNamespace(done=lambda: True, status="error", exception=lambda: error)

    backend = backends.Dask(Options())
    backend._client = SimpleNamespace(status="running")
    backend._tasks = {
        "goes on": SimpleNamespace(done=lambda: False),
        "ended": SimpleNamespace(done=lambda: True, status="finished", result=lambda: End("Well.")),
        "cancelled": SimpleNamespace(done=lambda: True, status="cancelled"),
        "died": failed("KilledWorker"),
        "refused": failed("ImportError"),
    }
    ends = dict(backend.ended())
    assert (ends["ended"], [*backend._tasks]) == (End("Well."), ["goes on"])
    assert ends["cancelled"] == End("the dask scheduler has ended.")
    assert ends["died"] == End("dask says KilledWorker: It fell.")
    assert (ends["refused"].refused, "ImportError" in ends["refused"].how) == (True, True)


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


def test_a_call_is_wanted_while_its_process_holds_it(tmp_path):
    one = issued(tmp_path)
    with one.led():
        assert one.is_wanted()
        assert Call.load(one.path).configs == one.configs
        one.release()
        assert not one.is_wanted()
    calls.remove(one.path)
    with pytest.raises(calls.RefusedError, match="does not see the results folder"):
        Call.load(one.path)
    assert not list((tmp_path / "results").glob(".call-*"))


def changed(one, **about):
    """Return the file of a call with another content, which nobody holds."""
    other = Call({**one.about, **about}, one.configs)
    with other.led():
        return other.path


def test_a_node_that_differs_is_refused_with_one_sentence(tmp_path, monkeypatch):
    one = issued(tmp_path)
    other = changed(one, program="0" * 16, versions={"numpy": "0.1"})
    with pytest.raises(calls.RefusedError, match=r"numpy \S+ in place of 0\.1"):
        Call.load(other)
    with pytest.raises(calls.RefusedError, match="has other config files than"):
        Call.load(changed(one, runs={"0": "another"}))
    away = changed(one, node="elsewhere")
    with pytest.raises(calls.RefusedError, match=r"does not share the locks.*use --shard"):
        Call.load(away)  # nobody is seen to hold it
    outlives = changed(one, node="elsewhere", outlives=True)
    assert Call.load(outlives).configs == one.configs
    monkeypatch.setattr(calls, "shares_locks", lambda folder: False)
    with pytest.raises(calls.RefusedError, match=r"does not share the locks.*use --shard"):
        Call.load(outlives)
    with one.led():
        assert Call.load(one.path).configs == one.configs  # on one node all locks are seen


@pytest.mark.parametrize(
    ("options", "shared"),
    [
        ("nfs4 server:/x rw,vers=4.2,local_lock=none", True),
        ("nfs server:/x rw,vers=3,nolock,local_lock=all", False),
        ("nfs server:/x rw,local_lock=flock", False),
        ("lustre 10.0.0.1@tcp:/x rw,localflock,lazystatfs", False),
        ("lustre 10.0.0.1@tcp:/x rw,flock,lazystatfs", True),
    ],
)
def test_mounts_whose_locks_do_not_reach_others_are_known(tmp_path, monkeypatch, options, shared):
    device = tmp_path.stat().st_dev
    line = f"36 35 {os.major(device)}:{os.minor(device)} / /x rw,relatime shared:1 - {options}\n"
    other = "37 35 0:9999 / /y rw - nfs y:/ rw,nolock\n"
    monkeypatch.setattr(Path, "read_text", lambda path, **how: other + line)
    assert shares_locks(tmp_path) == shared


def test_what_is_not_what_a_call_wrote_decides_nothing(tmp_path):
    one = issued(tmp_path)
    with one.led():
        one.path.write_text(one.path.read_text().replace("solver=fw", "solver=bcfw"))
        with pytest.raises(calls.RefusedError, match="does not see"):
            Call.load(one.path)
    log = one.path.with_suffix(".log")
    log.write_bytes(
        b'nonsense\n["taken"]\n["finished", 9, "", ""]\n["finished", false, "", ""]\n'
        b'["finished", 0, 1, ""]\n["unknown", 0, "", ""]\n{}\n\xff\n["taken", 0, "half'
    )
    assert one.news({}) == []
    one.record("said", 0, "words")
    assert one.news({}) == [Event("said", 0, "words")]


@pytest.mark.parametrize(
    "text", [b"{}", b"[]", b"null", b'{"node": 5, "outlives": "no"}', b"[" * 200_000, b"\xff"]
)
def test_a_file_of_a_call_that_no_program_wrote_is_passed_over(tmp_path, text):
    path = tmp_path / f".call-{hashlib.sha256(text).hexdigest()[:32]}.json"
    path.write_bytes(text)
    calls.sweep(tmp_path)
    assert calls.calls(tmp_path) == {}
    assert path.exists()


def test_a_run_that_two_find_finished_has_finished_once(tmp_path):
    one = issued(tmp_path, "budget.max_iterations=1,2")
    with one.led():
        worker = Call(one.about, one.configs)
        (first,) = one.runs - one._later
        runner.run(one.configs[first], Display())
        one.record("finished", first, "synthetic", "finished")
        one.news({})
        run = worker.take("1", "usps")
        runner.run(one.configs[run], Display())
        assert one.free() == []  # it has been taken since the log was read
        worker.record("finished", run, "synthetic", "skipped")
        assert [event.kind for event in one.news({}) if event.run == run] == ["taken", "finished"]


def test_nobody_writes_a_log_whose_call_is_gone(tmp_path):
    one = issued(tmp_path)
    with one.led():
        worker = Call(one.about, one.configs)
        worker.news({})
        calls.remove(one.path)
        with pytest.raises(RunFailedError, match="Cannot write"):
            worker.record("said", 0, "words")
    assert not [*one.path.parent.glob(".call-*")]
    one.path.with_suffix(".log").write_text("left by a killed worker")
    calls.sweep(one.path.parent)
    assert not [*one.path.parent.glob(".call-*")]


def test_a_run_that_raises_or_whose_worker_dies_too_often_is_not_taken_again(tmp_path):
    one = issued(tmp_path, "seed=0,1", retries=1)
    with one.led():
        assert (one.take("1", ""), one.take("2", ""), one.take("1", "")) == (0, 1, None)
        one.record("failed", 0, "tired")
        assert one.take("1", "") is None
        one.news({"2": "it died."})
        assert one.take("1", "") == 1
        one.news({"1": "it died."})
        assert one.take("1", "") is None
        assert one.ended[1].text.startswith("it died. That happened 2 times")


def test_a_worker_takes_another_run_unless_it_met_a_mistake_or_a_signal(tmp_path, monkeypatch):
    one = issued(tmp_path, "seed=0,1,2,3,4")
    ends = [
        Outcome("finished", "converged", tmp_path, {"source": "synthetic"}),
        Outcome("held", "", tmp_path, {}),
        RunFailedError("It is tired."),
        ConfigError("It does not fit."),
        Outcome("interrupted", "interrupted", tmp_path, {"source": "synthetic"}),
    ]

    def made(config, *about):
        if isinstance(end := ends[config.seed], Exception):
            raise end
        return end

    monkeypatch.setattr(runner, "run", made)
    with one.led():
        assert [workers._make(one, run) for run in range(5)] == [True, True, True, False, False]
    (finished, held, failed, mistaken, interrupted) = one.news({})
    assert finished == Event("finished", 0, "synthetic", "finished")
    assert held == Event("held", 1, "", "held")
    assert failed[:3] == ("failed", 2, "It is tired.")
    assert "Traceback" in failed.more
    assert mistaken == Event("mistaken", 3, "It does not fit.")
    assert interrupted == Event("interrupted", 4, "synthetic", "interrupted")
    assert one.ended.keys() == {0, 2, 3}  # the others can be taken again


def test_with_force_a_run_is_made_once_per_call_and_the_longer_one_first(tmp_path):
    program.run_here(tmp_path / "results", "solver=fw", "budget.max_iterations=2", "clock=work")
    one = issued(tmp_path, "force=true", "budget.max_iterations=2,5,3")
    with one.led():
        assert one.free() == [1]
        assert (one.take("1", ""), one.take("2", "")) == (1, None)
        one.record("finished", 1, "synthetic", "finished")
        assert sorted((one.take("1", ""), one.take("2", ""))) == [0, 2]
        for run in (0, 2):
            one.record("finished", run, "synthetic", "finished")
        assert one.take("1", "") is None
    other = issued(tmp_path, "budget.max_iterations=2,5")
    with other.led():
        assert other.free() == [1]
        program.run_here(tmp_path / "results", "solver=fw", "budget.max_iterations=5", "clock=work")
        assert other.free() == []  # others have made the longer one, and with it the other one
        assert {(event.kind, event.more) for event in other.news({})} == {("finished", "skipped")}


def test_without_a_supervisor_a_worker_sees_that_another_has_died(tmp_path):
    one = issued(tmp_path, retries=1)
    with one.led():
        pass  # its file stays
    assert one.take("2", "") == 0
    with lock(one.configs[0].folder):
        assert one.take("1", "") is None
    assert one.take("1", "") == 0  # nobody is at work there, whatever was said
    one.news({"1": "its job was started again."})
    assert one.take("1", "") is None
    assert "That happened 2 times" in one.ended[0].text


def test_a_run_is_at_work_while_a_stage_of_its_path_is(tmp_path):
    (config,) = issued(tmp_path, "solver=bcfw", "path=[10/n]", "lam=1/n").configs
    stages = config.with_source("synthetic").path_steps()
    assert len(stages) == 2
    for stage in stages:
        assert not calls.is_at_work(config)
        with lock(stage.folder):
            assert calls.is_at_work(config)


def left_by_a_killed_process(tmp_path):
    """Return the file of a call whose process is dead."""
    one = issued(tmp_path)
    if (process := os.fork()) == 0:
        with one.led():
            one.take("1", "")
            os._exit(0)
    os.waitpid(process, 0)
    return one.path


def test_the_files_of_a_killed_call_are_removed_by_the_next_one(tmp_path, arguments):
    path, live = left_by_a_killed_process(tmp_path), issued(tmp_path)
    away = changed(live, node="elsewhere")
    notes = path.with_name(".call-notes.json")
    notes.write_text("mine")
    with live.led():
        assert (path.exists(), is_held(path), is_held(live.path)) == (True, False, True)
        assert call(*arguments, "budget.max_iterations=1").exit_code == 0
        assert {*path.parent.glob(".call-*")} == {live.path, away, notes}


class Unlucky(Local):
    """A backend whose workers die, all or the first few."""

    name, retries, deaths = "unlucky", 3, 0

    def _submit(self, path, name):
        self.deaths -= 1
        if self.deaths < 0:
            return super()._submit(path, name)
        Call.load(path).take(name, "")
        return None

    def _end(self, task):
        return End("it died.") if task is None else super()._end(task)


@pytest.mark.parametrize("deaths", [3, 4])
def test_a_run_is_begun_again_some_times(tmp_path, deaths):
    said, ended = [], {}
    backend, one = Unlucky(Options()), issued(tmp_path)
    backend.deaths = deaths
    backend.open(1)
    with shown_by(said.append), one.led():
        assert Supervisor(one, backend, lambda run: None, ended.__setitem__).supervise()
    assert sum("it died." in text for text in said) == 3
    if deaths == 3:
        assert ended[0].status == "finished"
    else:
        assert isinstance(ended[0], RunFailedError)
        assert "That happened 4 times" in str(ended[0])


class Useless(Backend):
    """A backend whose workers end before they take a run."""

    name = "useless"

    def open(self, runs):
        pass

    def _submit(self, path, name):
        return None

    def _end(self, task):
        return End("it has no memory.")


def test_workers_that_take_nothing_are_not_started_forever(tmp_path):
    one = issued(tmp_path)
    with one.led(), pytest.raises(RunFailedError, match=r"before they take a run: it has no mem"):
        Supervisor(one, Useless(Options()), pytest.fail, pytest.fail).supervise()


def test_workers_that_die_with_their_runs_have_not_ended_in_vain(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "_POLL_SECONDS", 0)
    backend, one, ended = Unlucky(Options()), issued(tmp_path, "seed=range(8)", retries=0), {}
    backend.deaths = 99
    backend.open(8)
    with one.led():
        assert Supervisor(one, backend, lambda run: None, ended.__setitem__).supervise()
    assert ended.keys() == one.runs
    assert {type(how) for how in ended.values()} == {RunFailedError}


class Cancelled(Useless):
    """A backend whose queue has cancelled all workers."""

    name = "cancelled"

    def open(self, runs):
        self.count, self.cancelled = 0, "it was cancelled."


def test_runs_whose_workers_are_cancelled_have_failed_with_those_contained_in_them(tmp_path):
    one, failed = issued(tmp_path, "budget.max_iterations=1,2", "seed=0,1"), {}
    backend = Cancelled(Options())
    backend.open(4)
    with one.led():
        assert Supervisor(one, backend, pytest.fail, failed.__setitem__).supervise()
    assert {str(error) for error in failed.values()} == {"it was cancelled."}
    assert failed.keys() == one.runs


class HalfCancelled(Useless):
    """A backend with two workers, of which one is cancelled; runs of later workers fail."""

    name = "half_cancelled"

    def open(self, runs):
        self.count = 2

    def start(self, path, names):
        super().start(path, names)
        one = Call.load(path)
        for name in {*names} - {"1", "2"}:
            one.record("failed", one.take(name, ""), "It is tired.")

    def ended(self):
        for name, end in super().ended():
            if name == "1":
                self.count, self.cancelled = 1, "it was cancelled."
            yield name, end


def test_while_not_all_workers_are_cancelled_runs_are_made(tmp_path):
    one, failed = issued(tmp_path, "seed=0,1"), {}
    backend = HalfCancelled(Options())
    backend.open(2)
    with one.led():
        assert Supervisor(one, backend, lambda run: None, failed.__setitem__).supervise()
    assert [str(failed[run]) for run in sorted(one.runs)] == ["It is tired."] * 2
