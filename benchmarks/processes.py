"""What only whole processes show: start-up, overhead, peak memory, compilation and checkpoints.

A checkpoint is that at the end of a run whose working sets have reached their size, as a share of
the time between two of them. To resume from it takes the wall time of a process that makes one more
iteration, but for solving and evaluating, less that of a fresh start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import launcher
from benchmarks.report import (
    CHECKPOINT,
    HELP,
    IMPORT,
    MEMORY,
    OVERHEAD,
    RESTART,
    SECOND,
    TINY,
    Measurement,
    from_samples,
)
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.compose import compose_runs

REPEATS = 3
SHORT, LONG = 3, 25
"""Iterations of a run; the working sets of a long one have reached their size."""


class Finished(NamedTuple):
    """A process that has ended: its wall and CPU seconds, and its peak memory in bytes."""

    wall: float
    cpu: float
    peak: int


def measure_processes(calls: Mapping[str, Sequence[str]], cold: bool) -> Iterator[Measurement]:
    """Measure start-up and runs.

    Parameters
    ----------
    calls : mapping
        Dataset → overrides that choose it.
    cold : bool
        Also measure the start with an empty cache of compiled code.
    """
    helps = [launch("--help").wall for _ in range(REPEATS + 2)]
    yield from_samples("program", "", HELP, helps, unit="s")
    using = [sys.executable, "-c", "from ssvm_bench import StructuredSVM"]
    imports = [launched(using).cpu for _ in range(REPEATS + 1)][1:]
    yield from_samples("program", "", IMPORT, imports, unit="s", note="CPU")
    for name, call in calls.items():
        _say(f"{name}: whole runs")
        if cold:
            yield from _compilation(name, call)
        _run(call, 1)  # fills the caches
        short = [_run(call, SHORT) for _ in range(REPEATS)]
        subject = (name, short[0][1]["source"])
        wall = [ended.wall - result["time"] - result["eval_time"] for ended, result in short]
        cpu = [ended.cpu - result["cpu_time"] - result["eval_time"] for ended, result in short]
        note = f"warm cache; {median(cpu):.2g} s of CPU"
        yield from_samples(*subject, f"mpbcfw: {OVERHEAD}", wall, unit="s", note=note)
        yield from _checkpoints(call, subject, median(wall))
        for solver in ("mpbcfw", "mpbcfw_fast"):
            ended, summary = _run(call, LONG, solver)
            note = f"{LONG} iterations, {summary['working_set_mean']:.1f} planes a term"
            what, memory = f"{solver}: {MEMORY}", [ended.peak / 1e6]
            yield from_samples(*subject, what, memory, unit="MB", note=note)


def _checkpoints(
    call: Sequence[str], subject: tuple[str, str], fresh: float
) -> Iterator[Measurement]:
    """Measure a checkpoint, and a run that resumes from it; ``fresh`` are a fresh one's seconds."""
    every = compose_runs(call)[0].checkpoint.every
    writing, starting = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            keeping = (*call, "checkpoint.keep=true")
            _, before = _run_in(Path(folder), keeping, LONG)
            ended, after = _run_in(Path(folder), keeping, LONG + 1)
        solving = sum(after[name] - before[name] for name in ("time", "eval_time"))
        writing.append(100.0 * before["checkpoint_time"] / every)
        starting.append(ended.wall - solving - fresh)
    note = f"{median(writing) * every / 100.0:.2g} s every {every:g} s"
    yield from_samples(*subject, f"mpbcfw: {CHECKPOINT}", writing, unit="%", note=note)
    yield from_samples(*subject, f"mpbcfw: {RESTART}", starting, unit="s")


def _compilation(name: str, call: Sequence[str]) -> Iterator[Measurement]:
    """Measure tiny runs: empty cache of compiled code, full one, then another structure."""
    tiny = (*call, "dataset.n_samples=10")
    _run(tiny, 1)  # fills the cache of the data
    with tempfile.TemporaryDirectory() as folder:
        for state in ("empty", "full"):
            ended, summary = _run(tiny, 1, NUMBA_CACHE_DIR=folder)
            subject = name, summary["source"]
            yield from_samples(*subject, TINY.format(state), [ended.wall], unit="s")
        other = "usps" if name == "ocr" else "ocr"
        second = (f"dataset={other}", "dataset.source=synthetic", "dataset.n_samples=10")
        ended, _ = _run(second, 1, NUMBA_CACHE_DIR=folder)
        yield from_samples(*subject, SECOND, [ended.wall], unit="s", note=other)


def _run(
    call: Sequence[str], iterations: int, solver: str = "mpbcfw", **environment: str
) -> tuple[Finished, dict[str, Any]]:
    """Return a run, and its ``summary.json``."""
    with tempfile.TemporaryDirectory() as folder:
        return _run_in(Path(folder), call, iterations, solver, **environment)


def _run_in(
    folder: Path, call: Sequence[str], iterations: int, solver: str = "mpbcfw", **environment: str
) -> tuple[Finished, dict[str, Any]]:
    """Do `_run` with a results folder that has no run of other options."""
    budget = f"budget.max_iterations={iterations}"
    options = (*call, budget, f"results_dir={folder}", f"solver={solver}", "clock=wall")
    ended = launch("run", "quiet=true", *options, **environment)
    summary = next(folder.rglob("summary.json"))
    return ended, json.loads(summary.read_bytes())


def launch(*arguments: str, **environment: str) -> Finished:
    """Run ``ssvm-bench`` in a process of its own.

    Raises
    ------
    RunFailedError
        If it fails; with what it said last.
    """
    return launched([sys.executable, "-m", "ssvm_bench", *arguments], environment)


def launched(command: Sequence[str], environment: Mapping[str, str] = {}) -> Finished:
    """Run a command in a process of its own; as `launch`."""
    took, status, told = ended(command, environment)
    if status != 0:
        raise RunFailedError(f"{' '.join(command[1:])} failed: {told}")
    return took


def ended(
    command: Sequence[str], environment: Mapping[str, str] = {}, folder: Path | None = None
) -> tuple[Finished, int, str]:
    """Run a command in a process of its own, in a folder.

    Returns
    -------
    took : Finished
    status : int
        Its exit status; of a process that a signal ended, the signal's number times −1.
    told : str
        The last line that it wrote on stderr.
    """
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary, "told.json")
        process = subprocess.run(
            [sys.executable, "-S", "-E", launcher.__file__, str(out), *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            cwd=folder,
            check=True,
        )
        found = json.loads(out.read_bytes())
    last = process.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return Finished(found["wall"], found["cpu"], found["peak"]), found["status"], " ".join(last)


def peak_of_run(*options: str) -> float:
    """Return the peak memory of a run, in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        return launch("run", *options, f"results_dir={folder}", "quiet=true").peak / 1e6


def _say(text: str) -> None:
    print(text, "…", file=sys.stderr, flush=True)
