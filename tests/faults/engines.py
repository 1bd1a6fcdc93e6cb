"""Engines of dask whose scheduler, worker or program is killed in the middle.

The command ends, with one message if not all was made. The same command, given again without an
engine, makes the runs that it makes undisturbed, and leaves nothing behind. A worker of another
version, or one that cannot write the results, is told before or instead of any run.
"""

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path

import click
from distributed.cli import dask_scheduler, dask_worker

import ssvm_bench
from ssvm_bench.cli.commands import main
from ssvm_bench.jobs import dask  # noqa: F401 — loaded once, for all processes
from ssvm_bench.runs import runner  # noqa: F401
from tests.faults.case import Case
from tests.faults.kills import litter, traces

FILE = """
grid:
  seed: [0, 1]
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 20
  solver: mpbcfw
  clock: work
  checkpoint.every: 0
  budget.max_iterations: 100
"""
SECONDS = 180
KINDS = {
    "scheduler killed": 5,
    "worker killed": 5,
    "program killed": 5,
    "another version": 1,
    "worker that cannot write": 1,
}
"""How often each is made: the last two start programs of their own, which takes long."""
FORK = multiprocessing.get_context("fork")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Disturb engines for ever."""
    file = folder / "some.yaml"
    file.write_text(FILE)
    assert _ended(_experiment(file, folder / "whole")) == 0
    expected = traces(folder / "whole" / "results")
    other = folder / "other"
    shutil.copytree(Path(ssvm_bench.__file__).parent, other / "ssvm_bench")
    with (other / "ssvm_bench" / "api.py").open("a") as source:
        source.write("# another version\n")
    kinds = dict(KINDS)
    if not shutil.which("unshare"):
        del kinds["worker that cannot write"]
    number = 0
    while True:
        number += 1
        place = folder / f"case-{number}"
        (place / "results").mkdir(parents=True)
        (kind,) = rng.choices([*kinds], [*kinds.values()])
        seconds = rng.uniform(0.0, 6.0)
        failure = _disturbed(kind, seconds, file, place, other)
        status = _ended(_experiment(file, place))
        if status != 0 and not failure:
            failure = f"made again: {status}: {(place / 'log').read_text()}"
        if not failure and traces(place / "results") != expected:
            failure = "made again, the traces are others"
        left = [path.name for path in (place / "results" / ".engines").glob("*")]
        failure = failure or litter(place) or (f"left behind: {left}" if left else "")
        yield Case(kind, f"after {seconds:.1f} s", failure)
        shutil.rmtree(place)


def _copy(log: Path, program: click.Command, *arguments: object) -> ForkProcess:
    """Call a program in a copy of this process, in the folder of its log."""

    def work() -> None:
        os.chdir(log.parent)
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        program([str(argument) for argument in arguments])

    process = FORK.Process(target=work)
    process.start()
    return process


def _ended(process: ForkProcess) -> int | None:
    """Return the exit status of a process, below 0 a signal's, or None if it had to be killed."""
    process.join(SECONDS)
    status = process.exitcode
    process.kill()
    process.join()
    return status


def _experiment(file: Path, place: Path, *more: str) -> ForkProcess:
    """Start the program; what it says goes to ``log``."""
    place.mkdir(exist_ok=True)
    where = f"results_dir={place / 'results'}"
    return _copy(place / "log", main, "experiment", file, *more, where)


def _disturbed(kind: str, seconds: float, file: Path, place: Path, other: Path) -> str:
    """Make an experiment by an engine that is disturbed; return what did not hold."""
    about, results = place / "scheduler.json", place / "results"
    at = ("--scheduler-file", about, "--no-dashboard")
    start = (place / "scheduler.log", dask_scheduler.main, "--host", "127.0.0.1", "--port", 0, *at)
    worker = (place / "worker.log", dask_worker.main, *at, "--nthreads", "1", "--no-nanny")
    begin = time.monotonic()
    started = [_copy(*start)]
    apart = None
    try:
        while not about.exists():
            if time.monotonic() > begin + SECONDS:
                return "the scheduler does not start"
            time.sleep(0.05)
        if kind in ("another version", "worker that cannot write"):
            apart = _worker_apart(kind, [str(word) for word in worker[2:]], results, other)
        else:
            started.append(_copy(*worker))
        address = json.loads(about.read_text())["address"]
        program = _experiment(file, place, "--backend=dask", f"--address={address}")
        started.append(program)
        time.sleep(seconds)
        if kind == "scheduler killed":
            started[0].kill()
        elif kind == "worker killed":  # another one takes its place
            started[1].kill()
            started.append(_copy(*worker))
        elif kind == "program killed":
            program.kill()
        status = _ended(program)
    finally:
        for process in started:
            process.kill()
            process.join()
        if apart is not None:
            apart.kill()
            apart.wait()
    said = (place / "log").read_text()
    if status is None:
        return f"it did not end: {said}"
    if "Traceback" in said or status not in (0, 1, -signal.SIGKILL):
        return f"status {status}: {said}"
    if status == -signal.SIGKILL and kind != "program killed":
        return "it was killed"
    wanted = {"another version": "another version", "worker that cannot write": "annot write"}
    if wanted.get(kind, "") not in said:
        return f"it is not told: {said}"
    errors = [line for line in said.splitlines() if "error:" in line or "failed" in line]
    return "" if status != 1 or errors else f"no message: {said}"


def _worker_apart(kind: str, arguments: list[str], results: Path, other: Path) -> subprocess.Popen:
    """Start a worker of another version, or one that cannot write the results."""
    variables, before = dict(os.environ), list[str]()
    if kind == "another version":
        variables["PYTHONPATH"] = str(other)
    else:
        hide = f"mount --bind {results} {results} && mount -o remount,ro,bind {results}"
        before = ["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh"]
    command = [*before, sys.executable, "-m", "distributed.cli.dask_worker", *arguments]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        command, env=variables, stderr=nowhere, stdout=nowhere, cwd=results.parent
    )
