"""Engines of dask whose scheduler, worker or program is killed in the middle.

The command ends, with one message if not all was made. The same command, given again without an
engine, makes the runs that it makes undisturbed, and leaves nothing behind. A worker of another
version, or one that cannot write the results, is told before or instead of any run.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ssvm_bench
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
  budget.max_iterations: 200
"""
SECONDS = 180
DASK = (sys.executable, "-m", "distributed.cli.dask_")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Disturb engines for ever."""
    file = folder / "some.yaml"
    file.write_text(FILE)
    assert _experiment(file, folder / "whole").wait() == 0
    expected = traces(folder / "whole" / "results")
    other = folder / "other"
    shutil.copytree(Path(ssvm_bench.__file__).parent, other / "ssvm_bench")
    with (other / "ssvm_bench" / "api.py").open("a") as source:
        source.write("# another version\n")
    number = 0
    while True:
        number += 1
        place = folder / f"case-{number}"
        (place / "results").mkdir(parents=True)
        kinds = ["scheduler killed", "worker killed", "program killed", "another version"]
        if shutil.which("unshare"):
            kinds.append("worker that cannot write")
        kind, seconds = rng.choice(kinds), rng.uniform(0.0, 8.0)
        failure = _disturbed(kind, seconds, file, place, other)
        again = _experiment(file, place)
        if again.wait(SECONDS) != 0 and not failure:
            failure = f"made again: {(place / 'log').read_text()}"
        if not failure and traces(place / "results") != expected:
            failure = "made again, the traces are others"
        left = [path.name for path in (place / "results" / ".engines").glob("*")]
        failure = failure or litter(place) or (f"left behind: {left}" if left else "")
        yield Case(kind, f"after {seconds:.1f} s", failure)


def _experiment(file: Path, place: Path, *more: str) -> subprocess.Popen:
    """Start the program; what it says goes to ``log``."""
    place.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "ssvm_bench", "experiment", str(file), *more]
    with (place / "log").open("w") as log:
        where = f"results_dir={place / 'results'}"
        return subprocess.Popen([*command, where], stderr=log, stdout=subprocess.DEVNULL)


def _disturbed(kind: str, seconds: float, file: Path, place: Path, other: Path) -> str:
    """Make an experiment by an engine that is disturbed; return what did not hold."""
    about, nowhere = place / "scheduler.json", subprocess.DEVNULL
    at = ("--scheduler-file", str(about), "--no-dashboard")
    variables, before = dict(os.environ), list[str]()
    if kind == "another version":
        variables["PYTHONPATH"] = str(other)
    if kind == "worker that cannot write":
        results = place / "results"
        hide = f"mount --bind {results} {results} && mount -o remount,ro,bind {results}"
        before = ["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh"]
    scheduler = [*DASK[:2], f"{DASK[2]}scheduler", "--host", "127.0.0.1", "--port", "0", *at]
    worker = [*DASK[:2], f"{DASK[2]}worker", *at, "--nthreads", "1", "--no-nanny"]
    started = [subprocess.Popen(scheduler, stderr=nowhere, stdout=nowhere, cwd=place)]
    try:
        while not about.exists():
            time.sleep(0.1)
        started.append(
            subprocess.Popen(
                [*before, *worker], env=variables, stderr=nowhere, stdout=nowhere, cwd=place
            )
        )
        address = json.loads(about.read_text())["address"]
        program = _experiment(file, place, "--backend=dask", f"--address={address}")
        victims = {"scheduler killed": started[0], "worker killed": started[1]}
        time.sleep(seconds)
        victim = victims.get(kind, program if kind == "program killed" else None)
        if victim is not None:
            victim.kill()
        if kind == "worker killed":  # another one takes its place
            started.append(subprocess.Popen(worker, stderr=nowhere, stdout=nowhere, cwd=place))
        try:
            status = program.wait(SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            return "it did not end"
    finally:
        for process in started:
            process.kill()
            process.wait()
    said = (place / "log").read_text()
    if "Traceback" in said or status not in (0, 1, -signal.SIGKILL):
        return f"status {status}: {said}"
    if status == -signal.SIGKILL and kind != "program killed":
        return "it was killed"
    wanted = {"another version": "another version", "worker that cannot write": "annot write"}
    if wanted.get(kind, "") not in said:
        return f"it is not told: {said}"
    errors = [line for line in said.splitlines() if "error:" in line or "failed" in line]
    return "" if status != 1 or errors else f"no message: {said}"
