"""``kill -9`` of any process of an experiment with several workers, on each backend that is here.

That is a worker, the supervisor, a scheduler, or whatever else a backend starts. Afterwards no
worker may be left and no run be torn; the same command, called again, must make the runs that are
missing and no others, and leave nothing but what an undisturbed one does.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from ssvm_bench.results.trace import find_runs
from tests import slurm_cluster
from tests.faults.case import Case
from tests.faults.kills import EXPERIMENT, begun, litter, outcome, start, survivors, traces

END_SECONDS = 120.0
"""How long what is disturbed may go on: a scheduler is given some time to come back."""

OPTIONS = {"submitit": ("--parallel=2", "--time-limit=5", "--memory=500M")}


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Kill processes for ever."""
    grid = folder / "grid.yaml"
    grid.write_text(EXPERIMENT)
    backends = ["local", *(["dask"] if find_spec("distributed") else [])]
    backends += [name for name in ("ray",) if find_spec(name)]
    with ExitStack() as held:
        if slurm_cluster.is_installed():
            os.environ.update(held.enter_context(slurm_cluster.cluster()))
            backends.append("submitit")
        os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": "/tmp"}  # short paths of sockets
        length, expected = {}, {}
        for name in backends:
            place, begin = begun(name, folder, folder / f"undisturbed-{name}"), time.monotonic()
            status, text = outcome(start(command(grid, name), place))
            if status != 0:
                raise RuntimeError(f"{name} does not work undisturbed: {text}")
            length[name] = time.monotonic() - begin
            expected = expected or traces(place / "results")
        while True:
            name, others = rng.choice(backends), rng.random() < 0.7
            seconds, count = rng.uniform(0.2, length[name]), rng.choice((1, 1, 2))
            place = begun(name, folder, folder / f"case-{rng.getrandbits(32):08x}")
            failure = disturbed(command(grid, name), place, rng, seconds, count if others else 0)
            before = stamps(place)
            again = () if failure else (command(grid, name), command(grid, "local"))
            for words in again:
                status, text = outcome(start(words, place))
                failure = failure or f"again: exit status {status}: {text}" * (status != 0)
            if not failure and traces(place / "results") != expected:
                failure = "called again, the traces are others"
            if not failure and before.items() - stamps(place).items():
                failure = "a finished run was made again"
            left = sorted(path.name for path in (place / "results").glob(".call-*"))
            failure = failure or litter(place / "results") or f"left behind: {left}" * bool(left)
            victim = f"{count} of its processes" if others else "the supervisor"
            yield Case(f"{name}: {victim}", f"after {seconds:.2f} s, {place.name}", failure)
            shutil.rmtree(place, ignore_errors=True)


def command(grid: Path, name: str) -> tuple:
    """Return the experiment with two workers of a backend."""
    return "experiment", grid, f"--backend={name}", *OPTIONS.get(name, ("--jobs=2",))


def stamps(place: Path) -> dict[Path, int]:
    """Return when each finished run was written."""
    return {run: run.stat().st_mtime_ns for run in find_runs(place / "results")}


def disturbed(words: tuple, place: Path, rng: random.Random, seconds: float, count: int) -> str:
    """Kill so many processes of a command, or the supervisor; return what did not hold."""
    process = start(words, place)
    time.sleep(seconds)
    others = sorted({*survivors(place)} - {process.pid})
    for pid in rng.sample(others, min(count, len(others))) if count else [process.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    try:
        _, text = process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"goes on for {END_SECONDS:g} s: {process.communicate()[1]}"
    outlive = "--backend=submitit" in words
    deadline = time.monotonic() + END_SECONDS / 2
    while (left := survivors(place)) and time.monotonic() < deadline and not outlive:
        time.sleep(0.1)
    workers = [pid for pid in left if b"ssvm_bench.base.children" in line_of(pid)]
    if workers and not outlive:
        return f"{len(workers)} workers are alive"
    for pid in left if not outlive else ():  # of a cluster that has lost its head
        os.kill(pid, signal.SIGKILL)
    if "ssvm_bench/" in text and "Traceback" in text:
        return text
    try:
        traces(place / "results")
    except Exception as error:
        return f"a torn run: {error}"
    return ""


def line_of(pid: int) -> bytes:
    """Return the command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
