"""Workers in SLURM's queue: the elements of an array job, whose index is the worker's name.

SLURM sends a signal before the time limit; the worker then ends with a checkpoint, and its job is
requeued. On SIGTERM, as at a preemption, it also ends with a checkpoint; SLURM decides what
follows. The jobs stay in the queue when the program ends, and have the name of their call. So the
next call finds the runs that are still in the queue, and waits for them.

The states of jobs are those of SLURM's queue: not every cluster has an accounting database.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, shown
from ssvm_bench.jobs.backends import Backend, variables
from ssvm_bench.jobs.call import Call, calls, read, remove, shares_locks
from ssvm_bench.jobs.worker import REFUSED, End
from ssvm_bench.results import words

logger = logging.getLogger(__name__)

MINUTES = 60
"""Time limit of a job unless another one is given."""

LIVE = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD")
"""States of jobs that are waiting or at work."""

_NOTICE_SECONDS = 90
"""Largest time before the limit at which SLURM sends the signal."""

_REACH_SECONDS, _COMMAND_SECONDS = 5.0, 30.0

_ASK_SECONDS = 2.0, 15.0
"""Pauses between two queries of the queue: the first one, and the longest."""

_SCRIPT = """#!/bin/sh
{exports}
{command} $SLURM_ARRAY_TASK_ID &
trap 'kill $!; wait $!; exec scontrol requeue ${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID' USR2
trap : TERM  # the worker gets it, too
wait $!; wait $!
"""

_PROGRAM = """import sys
sys.path[:] = {path!r}
from ssvm_bench.jobs.worker import main
main(*sys.argv[1:])"""


class State(NamedTuple):
    """The state of a job: its number, SLURM's name of the state, the job's name, the reason."""

    number: str
    name: str
    job: str
    reason: str


GONE = State("", "", "", "")
"""The state of a job that SLURM does not know any more."""


class Slurm(Backend):
    """The queue of SLURM."""

    name = "submitit"
    outlives = True

    def open(self, runs: int) -> None:
        """Check that there is a SLURM that answers."""
        slurm("scontrol", "ping", seconds=_REACH_SECONDS)
        self.count = min(self.options.parallel or runs, runs)
        self.beside = self.count - 1
        self._queue: dict[str, State] = {}
        self._pause, self._next = _ASK_SECONDS[0], 0.0
        self._others: dict[int, str] | None = None

    def start(self, path: Path, names: Sequence[str]) -> None:
        """See `Backend`; the workers are one array job."""
        job = self._submit(path, ",".join(names))
        self._tasks |= {name: f"{job}_{name}" for name in names}
        self._pause, self._next = _ASK_SECONDS[0], 0.0
        self._log = path.with_suffix(".out")
        logger.info("SLURM has %s workers as job %s.", len(names), job)

    def _submit(self, path: Path, name: str) -> str:
        minutes = self.options.time_limit or MINUTES
        asked = {
            "array": name,
            "chdir": Path.cwd(),
            "cpus-per-task": 1,
            "job-name": _job_of(path),
            "mem": self.options.slurm_memory(),
            "open-mode": "append",
            "output": str(path.with_suffix(".out")).replace("%", "%%"),  # it is a pattern
            "partition": self.options.partition,
            "signal": f"B:USR2@{min(_NOTICE_SECONDS, 20 * minutes)}",
            "time": minutes,
        }
        options = [f"--{key}={value}" for key, value in asked.items() if value is not None]
        exports = [f"export {key}={shlex.quote(text)}" for key, text in variables().items()]
        program = [sys.executable, "-c", _PROGRAM.format(path=sys.path), str(path)]
        script = _SCRIPT.format(exports="\n".join(exports), command=shlex.join(program))
        said = slurm("sbatch", "--parsable", "--requeue", *options, script=script)
        return said.strip().partition(";")[0]

    def ended(self) -> Iterator[tuple[str, End]]:
        """See `Backend`; look at the queue less and less often while nothing ends."""
        if time.monotonic() < self._next:
            return
        self._queue = states()
        self._pause = min(1.2 * self._pause, _ASK_SECONDS[1])
        self._next = time.monotonic() + self._pause
        for ended in super().ended():
            self._pause = _ASK_SECONDS[0]
            yield ended

    def _end(self, task: str) -> End | None:
        job, state = task, self._queue.get(task, GONE)
        if state.name in LIVE:
            return None
        if state.name == "CANCELLED":
            self.count -= 1
            self.cancelled = (
                f"SLURM job {job}: it was cancelled; the same command submits it again."
            )
        said = ""
        with suppress(OSError):
            said = files.read(self._log).decode(errors="replace").strip().rpartition("\n")[2]
        if state.name == "FAILED" and said.startswith(REFUSED):
            return End(said.removeprefix(REFUSED), True)
        word = f"{state.name} ({state.reason})" if state.name else "nothing more"
        log = f"whose log is {self._log}"
        if state.name == "OUT_OF_MEMORY":
            log = "whose memory ran out; ask for more with --memory"
        elif not self._log.exists():
            log = "which has written no log: nodes may not see the results folder"
        return End(f"SLURM says {word} of job {job}, {log}.")

    def elsewhere(self, call: Call) -> set[int]:
        """Return the runs of a call that jobs of earlier calls will make."""
        if self._others is None:
            keys, self._others = {key: run for run, key in call.about["runs"].items()}, {}
            for path in sweep(call.path.parent):
                about = read(path) or {"runs": {}}
                found = keys.keys() & about["runs"].values()
                self._others |= {keys[key]: _job_of(path) for key in found}
            if self._others:
                logger.info(
                    "%s are in SLURM's queue from before; waiting for them.",
                    words.runs(len(self._others)),
                )
        live = {state.job for state in self._queue.values() if state.name in LIVE}
        return {run for run, job in self._others.items() if job in live}

    def interrupt(self) -> bool:
        """Leave the jobs in the queue, and say how to cancel them."""
        self.stays = True
        jobs = sorted({job.partition("_")[0] for job in self._tasks.values()})
        logger.info(
            "The jobs stay in SLURM's queue. The same command waits for their runs; with --status, "
            "it shows them. To cancel them: scancel %s",
            " ".join(jobs or {f"--name={name}" for name in (self._others or {}).values()}),
        )
        return False

    def close(self) -> None:
        """Cancel jobs that are not wanted any more."""
        if self._tasks and not self.stays:
            with suppress(RunFailedError):
                slurm("scancel", *self._tasks.values())
        super().close()


def _job_of(path: Path) -> str:
    """Return the name of the jobs of a call."""
    return f"ssvm-bench{path.stem.removeprefix('.call')}"


def sweep(folder: Path) -> dict[Path, list[State]]:
    """Return the jobs of each of the user's calls in a results folder; remove calls without jobs.

    SLURM is asked only if there are such calls. A call of another node counts only where its locks
    are seen: else it may be about to submit jobs.
    """
    here, shared = socket.gethostname(), shares_locks(folder)
    left = {
        path: files.is_held(path)
        for path, about in calls(folder).items()
        if about["outlives"] and path.stat().st_uid == os.getuid()
        if shared or about["node"] == here
    }
    if not left:
        return {}
    slurm("scontrol", "ping", seconds=_REACH_SECONDS)
    queue, found = states().values(), {}  # asked after it is known that nobody submits any more
    for path, led in left.items():
        jobs = [state for state in queue if state.job == _job_of(path)]
        if any(state.name in LIVE for state in jobs):
            found[path] = jobs
        elif not led:
            remove(path)
    return found


def lines(results_dir: Path) -> list[str]:
    """Return lines that describe the queue, one for each call in it."""
    text = []
    for jobs in sweep(results_dir.absolute()).values():
        counts = Counter(
            f"{state.name} ({state.reason})" if state.name == "PENDING" else state.name
            for state in jobs
        )
        listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        numbers = dict.fromkeys(state.number.partition("_")[0] for state in jobs)
        text.append(f"SLURM job {', '.join(numbers)}: {listed}")
    return text or ["SLURM has no jobs of these results."]


def states() -> dict[str, State]:
    """Return the states of this user's jobs, array elements separately: ``12_3`` → state.

    Jobs that have ended are still listed for some minutes.
    """
    form = "--format=%i|%T|%j|%r"
    text = slurm("squeue", "--me", "--noheader", "--array", "--states=all", form)
    rows = [line.strip().split("|", 3) for line in text.splitlines()]
    return {row[0]: State(*row) for row in rows if len(row) == 4}


def slurm(*command: str, seconds: float = _COMMAND_SECONDS, script: str = "") -> str:
    """Return what a command of SLURM prints.

    Raises
    ------
    RunFailedError
        If there is no SLURM here, its controller does not answer, or it refuses.
    """
    try:
        return subprocess.run(
            command, input=script, capture_output=True, text=True, timeout=seconds, check=True
        ).stdout
    except FileNotFoundError as error:
        raise RunFailedError(
            f"There is no SLURM here: the command {command[0]} is missing. Call this on a node "
            "from which jobs are submitted, or choose another --backend."
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
        what = shown(" ".join(str(said).split()), 300)
        if script:
            raise RunFailedError(f"SLURM refuses the jobs: {what}.") from error
        raise RunFailedError(
            f"SLURM's controller does not answer {' '.join(command[:2])} within {seconds:g} s "
            f"({what}). Jobs in its queue continue; the same command waits for them. Or choose "
            "another --backend."
        ) from error
