"""Runs by SLURM: one array job, submitted by submitit.

Each element of the array makes one run. Before the time limit, SLURM sends a signal that submitit
answers by `Task.checkpoint`; the job is then requeued, and goes on from the run's checkpoint. On
SIGTERM, as at a preemption, the run ends with a checkpoint, too, and SLURM decides on what follows.

What submitit writes, and ``jobs.json`` with the number of the array and the keys of its runs, are
in the ticket's folder. There the next call finds jobs that are still in the queue, and waits for
them rather than submit them again.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, shown
from ssvm_bench.engines import arrays, nodes, slurm
from ssvm_bench.engines.arrays import Array
from ssvm_bench.engines.contract import Job, LostError, Performed, Ticket
from ssvm_bench.engines.options import Options
from ssvm_bench.results import words

MINUTES = 60
"""Time limit of a job unless another one is given."""

_REQUEUES = 1000
"""So often may a job reach its limit: each time it has gone on."""

_NOTICE_SECONDS = 90
"""So long before the limit, at most, SLURM sends the signal."""

_ASK_SECONDS = 2.0, 15.0
"""Pauses between two looks at the queue: the first, and the longest."""

_RESULT_SECONDS = 20.0
"""So long may a result take from its node to here."""


@dataclass(frozen=True)
class Limits:
    """What is asked of SLURM for each run.

    Attributes
    ----------
    partition : str or None
        Its own choice by default.
    minutes : int
        Time limit, after which a job is requeued.
    gigabytes : float or None
        Memory.
    parallel : int or None
        Most runs at once.
    """

    partition: str | None = None
    minutes: int = MINUTES
    gigabytes: float | None = None
    parallel: int | None = None


class Task(submitit.helpers.Checkpointable):
    """What a job of SLURM does."""

    def __call__(self, job: Job) -> Performed:
        """Make the run."""
        performed = nodes.perform(job)
        answer = performed.answer
        if isinstance(answer, SsvmBenchError) or answer.status != "interrupted":
            return performed
        # SIGTERM to all processes of the job: no result, so that SLURM's state of it counts
        raise SystemExit(143)

    def checkpoint(self, job: Job) -> Any:
        """End the run with a checkpoint, and return what the requeued job does."""
        nodes.end_runs()
        return submitit.helpers.DelayedSubmission(self, job)


@dataclass
class _Watched:
    """A job that is waited for: its number here, and since when it is not in the queue."""

    number: int
    job: Any
    key: str
    gone: float | None = None


class Submitit:
    """An `Engine` of SLURM.

    Parameters
    ----------
    ticket : Ticket
        Its folder is where submitit works.
    say : callable
        Told the number of the job.
    limits : Limits
        Of each run.

    Raises
    ------
    RunFailedError
        If there is no SLURM, or its controller does not answer.
    """

    def __init__(self, ticket: Ticket, say: Callable[[str], object], limits: Limits) -> None:
        slurm.check_reachable()
        self._ticket, self._say, self._limits = ticket, say, limits
        self.at_once = limits.parallel or 1
        self.beside = (limits.parallel or 1 << 20) - 1
        self._watched: dict[str, _Watched] = {}
        self._pause, self._next = _ASK_SECONDS[0], 0.0
        self._ended: dict[str, Any] = {}

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Put those into the queue that are not in it; wait for the others, too."""
        live = arrays.live(self._ticket.folder.parent, slurm.states())
        new: dict[int, Job] = {}
        for number, job in jobs.items():
            before = self._ended.pop(job.key, None)
            if before is not None and slurm.requeue(before.job_id):
                self._watch(number, before, job.key)
            elif job.key in live:
                array, name = live[job.key]
                found = submitit.SlurmJob(folder=array.folder / "jobs", job_id=name)
                self._watch(number, found, job.key)
            else:
                new[number] = job
        attached = len(jobs) - len(new)
        if attached:
            self._say(f"{words.runs(attached)} are in SLURM's queue from before; waiting for them.")
        if new:
            self._submit(new)
        self._pause, self._next = _ASK_SECONDS[0], 0.0

    def _submit(self, jobs: Mapping[int, Job]) -> None:
        folder = self._ticket.folder / "jobs"
        limits, count = self._limits, len(jobs)
        executor = submitit.SlurmExecutor(folder=folder, max_num_timeout=_REQUEUES)
        asked = {
            "job_name": "ssvm-bench",
            "time": limits.minutes,
            "partition": limits.partition,
            "mem": limits.gigabytes and f"{round(1024 * limits.gigabytes)}M",
            "cpus_per_task": 1,
            "array_parallelism": limits.parallel or count,
            "signal_delay_s": min(_NOTICE_SECONDS, 20 * limits.minutes),
            "additional_parameters": {"requeue": True},
        }
        executor.update_parameters(**{key: val for key, val in asked.items() if val is not None})
        try:
            made = executor.map_array(Task(), list(jobs.values()))
        except (FailedSubmissionError, FailedJobError, OSError) as error:
            raise RunFailedError(
                f"SLURM does not take the jobs: {shown(' '.join(str(error).split()), 300)}."
            ) from error
        for (number, job), one in zip(jobs.items(), made, strict=True):
            self._watch(number, one, job.key)
        names = {job.key: one.job_id for job, one in zip(jobs.values(), made, strict=True)}
        arrays.write(Array(self._ticket.folder, names))
        self._say(f"SLURM has {words.runs(count)} as job {made[0].job_id.partition('_')[0]}.")

    def _watch(self, number: int, job: Any, key: str) -> None:
        self._watched[job.job_id] = _Watched(number, job, key)

    def wait(self, seconds: float) -> list[tuple[int, Performed]]:
        """Return jobs that have ended; the queue is asked more and more seldom."""
        now = time.monotonic()
        if now < self._next:
            time.sleep(min(seconds, self._next - now))
            return []
        queue = slurm.states()
        found = []
        for name, one in list(self._watched.items()):
            performed = self._look(one, queue.get(name))
            if performed is not None:
                del self._watched[name]
                found.append((one.number, performed))
        self._pause = _ASK_SECONDS[0] if found else min(1.2 * self._pause, _ASK_SECONDS[1])
        self._next = time.monotonic() + self._pause
        return found

    def _look(self, one: _Watched, state: slurm.State | None) -> Performed | None:
        """Return what became of a job, if that is known."""
        if state is not None and state.is_live:
            one.gone = None
            return None
        file = one.job.paths.result_pickle
        with suppress(FileNotFoundError, EOFError):
            kind, answer = pickle.loads(files.read(file))
            file.unlink()
            if kind == "success":
                assert isinstance(answer, Performed)
                return answer
            return Performed(_failed(one, "it ended in an error", str(answer)))
        if state is not None and state.name == "CANCELLED":
            return Performed(_failed(one, "it was cancelled; the same command submits it again"))
        if state is not None and state.name == "OUT_OF_MEMORY":
            return Performed(_failed(one, "memory ran out; ask for more with --memory"))
        one.gone = one.gone or time.monotonic()
        unsure = state is None or state.name == "COMPLETED"
        if unsure and time.monotonic() - one.gone < _RESULT_SECONDS:
            return None
        self._ended[one.key] = one.job
        word = "nothing more" if state is None else f"{state.name} ({state.reason})"
        error = LostError(f"SLURM says {word} of job {one.job.job_id}{_log(one)}.")
        error.traceback = _tail(one.job)
        return Performed(error)

    def leave(self) -> str:
        """Say how to cancel the jobs."""
        names = " ".join(self._roots())
        return (
            f"SLURM goes on with {words.runs(len(self._watched))}; the same command waits for them "
            f"again, with --status it shows them. To cancel them: scancel {names}"
        )

    def _roots(self) -> list[str]:
        return list(dict.fromkeys(name.partition("_")[0] for name in self._watched))

    def close(self, finished: bool) -> None:
        """Cancel what is not wanted any more, and forget arrays that have ended."""
        if not finished:
            with suppress(OSError):
                slurm.cancel(list(self._watched))
        with suppress(RunFailedError):
            arrays.sweep(self._ticket.folder.parent, slurm.states(), but=self._ticket.folder)


def opened(ticket: Ticket, say: Callable[[str], object], asked: Options) -> Submitit:
    """Return the engine for what the command line says."""
    minutes = asked.time_limit or MINUTES
    return Submitit(
        ticket, say, Limits(asked.partition, minutes, asked.gigabytes(), asked.parallel)
    )


def _failed(one: _Watched, why: str, traceback: str = "") -> RunFailedError:
    error = RunFailedError(f"SLURM job {one.job.job_id}: {why}.")
    error.traceback = traceback or _tail(one.job)
    return error


def _log(one: _Watched) -> str:
    """Say where its log is, or that there is none."""
    if one.job.paths.stderr.exists():
        return f", whose log is {one.job.paths.stderr}"
    return ", which has written no log: nodes may not see the results folder"


def _tail(job: Any, characters: int = 4000) -> str:
    """Return the end of what a job has written."""
    with suppress(OSError):
        return files.read(Path(job.paths.stderr)).decode(errors="replace")[-characters:]
    return ""
