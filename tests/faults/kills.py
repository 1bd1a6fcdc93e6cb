"""Kills and signals at random moments of every command, alone and in bursts.

Afterwards no child may be left, no run be torn or falsely finished, no trace of Python be on the
terminal; and the same command, made again, must give what it gives undisturbed.
"""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ssvm_bench.base import jit
from ssvm_bench.results.trace import COLUMNS, find_runs, read_trace, read_weights
from tests.faults.case import Case

MARK = "SSVM_BENCH_FAULT"
"""Environment variable by which all processes of a case are known."""

DATA = ("dataset.source=synthetic", "dataset.n_samples=20", "clock=work")
RUN = ("dataset=usps", *DATA, "solver=mpbcfw")
EXPERIMENT = """
grid:
  seed: [0, 1, 2]
  dataset: usps
  solver: [bcfw, mpbcfw]
  clock: work
  dataset.source: synthetic
  dataset.n_samples: 20
  budget.max_iterations: 60
figures:
  suboptimality: [iteration]
"""
COUNTED = [name for name in COLUMNS if name not in ("cpu_time", "eval_time")]
LEFT_OVER_SECONDS = 3.0
SENT = {
    **{number.name: (number,) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)},
    "kill -9": (signal.SIGKILL,),
    "two signals": (signal.SIGINT, signal.SIGINT),
    "three signals": (signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
}


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Disturb commands for ever."""
    grid = folder / "grid.yaml"
    grid.write_text(EXPERIMENT)
    commands = {
        "run": ("run", *RUN, "budget.max_iterations=300"),
        "run -m": ("run", "-m", *RUN, "budget.max_iterations=40", "seed=range(5)"),
        "experiment": ("experiment", grid, "--jobs=2"),
        "plot": ("plot", grid),
        "report": ("report",),
        "data prepare": ("data", "prepare", "horseseg", "--source=synthetic"),
    }
    expected, length = {}, {}
    for name, command in commands.items():
        place = begun(name, folder, folder / f"undisturbed-{name}")
        begin = time.monotonic()
        status, text = outcome(start(command, place))
        if status != 0:
            raise RuntimeError(f"{name} does not work undisturbed: {text}")
        length[name] = time.monotonic() - begin
        expected[name] = traces(place / "results")
    for number in itertools.count(1):
        name, sent = rng.choice(sorted(commands)), rng.choice(sorted(SENT))
        seconds = rng.uniform(0.0, 1.1 * length[name])
        place = begun(name, folder, folder / f"case-{number}")
        failure = disturbed(commands[name], place, SENT[sent], seconds)
        status, text = outcome(start(commands[name], place))
        if not failure and status != 0:
            failure = f"made again: exit status {status}: {text}"
        if not failure and traces(place / "results") != expected[name]:
            failure = "made again, the traces are others"
        what = f"after {seconds:.2f} s of {commands[name]}"
        yield Case(f"{name}: {sent}", what, failure or litter(place))
        shutil.rmtree(place, ignore_errors=True)


def begun(name: str, folder: Path, place: Path) -> Path:
    """Make the folders of a case, with the results that a command draws; return its place."""
    (place / "tmp").mkdir(parents=True)
    if name in ("plot", "report"):
        shutil.copytree(folder / "undisturbed-experiment" / "results", place / "results")
    return place


def start(command: tuple, place: Path) -> subprocess.Popen:
    """Start a command with folders of its own."""
    results = () if command[0] == "data" else (f"results_dir={place / 'results'}",)
    words = [sys.executable, "-m", "ssvm_bench", *map(str, command), *results]
    folders = {"SSVM_BENCH_DATA": "data", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
    variables = {name: str(place / folder) for name, folder in folders.items()}
    variables |= {MARK: str(place), "SSVM_BENCH_OFFLINE": "1", "LOKY_MAX_CPU_COUNT": "2"}
    variables = {**os.environ, **variables, "NUMBA_CACHE_DIR": str(jit.CACHE_ROOT)}
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    return subprocess.Popen(words, env=variables, stderr=subprocess.PIPE, text=True, **nothing)


def outcome(process: subprocess.Popen) -> tuple[int, str]:
    """Return exit status and stderr of a program at its end."""
    _, text = process.communicate(timeout=600)
    return process.returncode, text


def disturbed(command: tuple, place: Path, numbers: tuple, seconds: float) -> str:
    """Send signals to a command after some seconds; return what did not hold."""
    process = start(command, place)
    while process.poll() is None and not catches(process.pid, signal.SIGHUP):
        pass  # before its first line, the interpreter dies in its own way
    time.sleep(seconds)
    allowed = {0} if process.poll() is not None else {0, 1}
    if signal.SIGKILL in numbers:
        allowed = {0, -int(signal.SIGKILL)}
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.002)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        return "goes on for 20 s"
    deadline = time.monotonic() + LEFT_OVER_SECONDS
    while (left := survivors(place)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    status, text = outcome(process)
    if left:
        return f"{len(left)} children are alive {LEFT_OVER_SECONDS:g} s later"
    if status not in allowed:
        return f"exit status {status}: {text}"
    if "Traceback" in text or "Exception ignored" in text:
        return text
    if status == 1 and "nterrupted" not in text:
        return f"no message: {text}"
    try:
        traces(place / "results")
    except Exception as error:
        return f"a torn run: {error}"
    return ""


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def survivors(place: Path) -> list[int]:
    """Return the processes that were started for a case and are alive."""
    mark, found = f"{MARK}={place}".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def traces(results: Path) -> dict[str, bytes]:
    """Return what is counted, and the weights, of every finished run."""
    found = {}
    for run in find_runs(results):
        trace, (w, end) = read_trace(run), read_weights(run)
        if end["iteration"] != trace["iteration"][-1]:
            raise ValueError(f"{run}: weights of another iteration")
        counted = np.ascontiguousarray(trace.frame[COUNTED].to_numpy(float))
        found[str(run.relative_to(results))] = counted.tobytes() + w.tobytes()
    return found


def litter(place: Path) -> str:
    """Return the temporary files that are still there after the command was made again."""
    left = [
        str(path.relative_to(place))
        for path in place.rglob("*")
        if (".tmp" in path.name or ".old-" in path.name or path.name.endswith(".partial"))
        or (path.parent == place / "tmp" and not path.name.startswith("numba"))
    ]
    return f"left behind: {', '.join(left)}" if left else ""
