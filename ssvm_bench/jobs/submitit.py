"""Executes runs by SLURM: one array job, submitted by submitit.

Each element of the array executes one run. Before the time limit, SLURM sends a signal that
submitit handles by `Task.checkpoint`: the job is requeued, and resumes the run from its checkpoint.
On SIGTERM, as at a preemption, the run also ends with a checkpoint; SLURM decides what follows.

The files of submitit, and ``jobs.json`` (key of a run → SLURM's name of its job, ``12_3``), are in
the token's folder. There the next call finds jobs that are still in the queue, and waits for them
instead of submitting them again. The outcome of a job is a JSON file beside submitit's own pickle.
That pickle is never read here: others may write to a results folder.

The states of jobs are queried by SLURM's own commands: submitit queries the accounting database,
which not every cluster has.
"""

from __future__ import annotations

import json
import logging
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.jobs import Options, processes
from ssvm_bench.jobs.dispatch import Executor, Job, JobResult, LostError
from ssvm_bench.jobs.tokens import QUEUED, CancelToken, RefusedError, discard, folders
from ssvm_bench.results import checks, words
from ssvm_bench.runs import Outcome

logger = logging.getLogger(__name__)

MINUTES = 60
"""Time limit of a job unless another one is given."""

REACH_SECONDS = 5
_COMMAND_SECONDS = 30

_REQUEUES = 1000
"""How often a job may reach its time limit; it has made progress each time."""

_NOTICE_SECONDS = 90
"""Largest time before the limit at which SLURM sends the signal."""

_ASK_SECONDS = 2.0, 15.0
"""Pauses between two queries of the queue: the first one, and the longest."""

_RESULT_SECONDS = 20.0
"""Longest time that a result may take from its node to this one."""

_ENDED = {
    "CANCELLED": "it was cancelled; the same command submits it again",
    "OUT_OF_MEMORY": "memory ran out; ask for more with --memory",
}
"""SLURM's word for the end of a job → what it means."""


class Task:
    """What a job of SLURM executes."""

    def __call__(self, job: Job) -> None:
        """Execute the run, and write its outcome."""
        from submitit import JobEnvironment

        try:
            result = processes.perform(job)
        except Exception as error:
            result = JobResult.failed(error, "The job")
        if isinstance(result.answer, Outcome) and result.answer.status == "interrupted":
            # SIGTERM to all processes of the job: no result, so that SLURM's state of it counts
            raise SystemExit(143)
        files.write(_result_file(JobEnvironment()), written(result).encode())

    def checkpoint(self, job: Job) -> Any:
        """End the run with a checkpoint, and return what the requeued job executes."""
        from submitit.helpers import DelayedSubmission

        processes.end_runs()
        return DelayedSubmission(self, job)


@dataclass
class _Watched:
    """A job to wait for: the number of its run, and since when the job is not in the queue."""

    number: int
    job: Any
    gone: float | None = None


class Submitit(Executor):
    """The executor of SLURM; its jobs stay in the queue when the program is interrupted.

    Raises
    ------
    RunFailedError
        If there is no SLURM, or its controller does not answer.
    """

    def __init__(self, options: Options, token: CancelToken) -> None:
        slurm("scontrol", "ping", seconds=REACH_SECONDS)
        super().__init__(token)
        self._options = options
        self.at_once = options.parallel or 1
        self.beside = (options.parallel or 1 << 20) - 1
        self._watched: dict[str, _Watched] = {}
        self._pause, self._next = _ASK_SECONDS[0], 0.0

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Submit the jobs that are not in the queue yet; wait for the others, too."""
        import submitit

        queue, new = states(), dict[int, Job]()
        live = {
            key: (folder, name)
            for folder, names in _arrays(self.token.folder.parents[1]).items()
            for key, name in names.items()
            if _is_live(name, queue)
        }
        for number, job in jobs.items():
            if job.key in live:
                folder, name = live[job.key]
                there = submitit.SlurmJob(folder=folder / "jobs", job_id=name)
                self._watched[there.job_id] = _Watched(number, there)
            else:
                new[number] = job
        attached = len(jobs) - len(new)
        if attached:
            logger.info(
                "%s are in SLURM's queue from before; waiting for them.", words.runs(attached)
            )
        if new:
            self._submit(new)
        self._pause, self._next = _ASK_SECONDS[0], 0.0

    def _submit(self, jobs: Mapping[int, Job]) -> None:
        import submitit
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        options, minutes = self._options, self._options.time_limit or MINUTES
        folder = self.token.folder
        executor = submitit.SlurmExecutor(folder=folder / "jobs", max_num_timeout=_REQUEUES)
        asked = {
            "job_name": "ssvm-bench",
            "time": minutes,
            "partition": options.partition,
            "mem": options.slurm_memory(),
            "cpus_per_task": 1,
            "array_parallelism": options.parallel or len(jobs),
            "signal_delay_s": min(_NOTICE_SECONDS, 20 * minutes),
            "additional_parameters": {"requeue": True},
        }
        executor.update_parameters(**{key: val for key, val in asked.items() if val is not None})
        try:
            made = executor.map_array(Task(), list(jobs.values()))
        except (FailedSubmissionError, FailedJobError, OSError) as error:
            raise RunFailedError(
                f"SLURM does not take the jobs: {shown(' '.join(str(error).split()), 300)}."
            ) from error
        names = _names(folder)
        for (number, job), one in zip(jobs.items(), made, strict=True):
            self._watched[one.job_id] = _Watched(number, one)
            names[job.key] = one.job_id
        files.write(folder / QUEUED, json.dumps(names).encode())
        (array,) = _roots([made[0].job_id])
        logger.info("SLURM has %s as job %s.", words.runs(len(jobs)), array)

    def wait(self, seconds: float) -> list[tuple[int, JobResult]]:
        """Return jobs that have ended; query the queue less and less often."""
        now = time.monotonic()
        if now < self._next:
            time.sleep(min(seconds, self._next - now))
            return []
        queue, found = states(), []
        for name, one in list(self._watched.items()):
            result = self._look(one, queue.get(name, GONE))
            if result is not None:
                del self._watched[name]
                found.append((one.number, result))
        self._pause = _ASK_SECONDS[0] if found else min(1.2 * self._pause, _ASK_SECONDS[1])
        self._next = time.monotonic() + self._pause
        return found

    def _look(self, one: _Watched, state: State) -> JobResult | None:
        """Return the result of a job; None if it is not known yet."""
        if state.name in LIVE:
            one.gone = None
            return None
        with suppress(FileNotFoundError):
            content = files.read(_result_file(one.job))
            files.remove(_result_file(one.job), r"\w+\.json")
            try:
                return result_of(content)
            except (ValueError, TypeError, KeyError, AttributeError):
                return _failed(one, "what it says of its run cannot be read")
        if one.job.paths.result_pickle.exists():  # written after the JSON file
            return _failed(one, "it ended in an error")
        if state.name in _ENDED:
            return _failed(one, _ENDED[state.name])
        one.gone = one.gone or time.monotonic()
        unsure = state == GONE or state.name == "COMPLETED"
        if unsure and time.monotonic() - one.gone < _RESULT_SECONDS:
            return None
        word = "nothing more" if state == GONE else f"{state.name} ({state.reason})"
        log = f"whose log is {one.job.paths.stderr}"
        if not one.job.paths.stderr.exists():
            log = "which has written no log: nodes may not see the results folder"
        error = LostError(f"SLURM says {word} of job {one.job.job_id}, {log}.")
        error.traceback = _tail(one.job)
        return JobResult(error)

    def interrupt(self, count: int) -> str:
        """Leave the jobs in the queue; return a text that says how to cancel them."""
        return (
            f"SLURM goes on with {words.runs(len(self._watched))}; the same command waits for them "
            "again, with --status it shows them. To cancel them: scancel "
            f"{' '.join(_roots(self._watched))}"
        )

    def close(self, finished: bool) -> None:
        """Cancel jobs that are not wanted any more; remove the folders of ended arrays."""
        if not finished and self._watched:
            with suppress(RunFailedError):
                slurm("scancel", *self._watched)
        with suppress(RunFailedError):
            queue = states()
            for folder, names in _arrays(self.token.folder.parents[1]).items():
                live = any(_is_live(name, queue) for name in names.values())
                if not live and folder != self.token.folder:
                    discard(folder)


def _failed(one: _Watched, why: str) -> JobResult:
    error = RunFailedError(f"SLURM job {one.job.job_id}: {why}.")
    error.traceback = _tail(one.job)
    return JobResult(error)


def _result_file(job: Any) -> Path:
    """Return the file of a job's outcome, which the job writes and this program reads."""
    return Path(job.paths.result_pickle).with_suffix(".json")


_ERRORS = {kind.__name__: kind for kind in (ConfigError, RunFailedError, LostError, RefusedError)}


def written(result: JobResult) -> str:
    """Return the result of a job as JSON."""
    answer, messages = result.answer, list(result.messages)
    if isinstance(answer, Outcome):
        found = {**vars(answer), "folder": str(answer.folder)}
    else:
        about = type(answer).__name__, str(answer), answer.traceback
        found = dict(zip(("error", "text", "traceback"), about, strict=True))
    return json.dumps({"messages": messages, **found}, default=float)


def result_of(content: bytes) -> JobResult:
    """Return the result of a job from its JSON.

    Raises
    ------
    ValueError, TypeError, KeyError, AttributeError
        If the content is not what `written` has returned.
    """
    found = json.loads(content)
    messages = tuple(map(str, found.pop("messages")))
    if "error" in found:
        error = _ERRORS.get(found["error"], RunFailedError)(str(found["text"]))
        error.traceback = str(found["traceback"])
        return JobResult(error, messages)
    checks.check(found, _OUTCOME)
    return JobResult(Outcome(**{**found, "folder": Path(found["folder"])}), messages)


_OUTCOME: checks.Shape = {
    **dict.fromkeys(("status", "stop_reason", "folder"), checks.TEXT),
    "summary": checks.MAPPING,
}


def _tail(job: Any, characters: int = 4000) -> str:
    """Return the end of what a job has written to stderr."""
    with suppress(OSError):
        return files.read(Path(job.paths.stderr)).decode(errors="replace")[-characters:]
    return ""


# ---- the jobs that a results folder has in the queue ------------------------------------------


def _names(folder: Path) -> dict[str, str]:
    """Return the jobs of a token's folder: key of a run → name."""
    with suppress(OSError, ValueError):
        names = json.loads(files.read(folder / QUEUED, within=folder))
        if isinstance(names, dict):
            return {str(key): str(name) for key, name in names.items()}
    return {}


def _arrays(results_dir: Path) -> dict[Path, dict[str, str]]:
    """Return the jobs of each token's folder, whether they have ended or not."""
    found = {path: _names(path) for path in folders(results_dir)}
    return {path: names for path, names in found.items() if names}


def _roots(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("_")[0] for name in names))


def lines(results_dir: Path) -> list[str]:
    """Return lines that describe the queue, one for each array in it."""
    slurm("scontrol", "ping", seconds=REACH_SECONDS)
    queue, text = states(), []
    for names in _arrays(results_dir).values():
        found = [queue[name] for name in names.values() if name in queue]
        if any(_is_live(name, queue) for name in names.values()):
            counts = Counter(
                f"{state.name} ({state.reason})" if state.name == "PENDING" else state.name
                for state in found
            )
            listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            text.append(f"SLURM job {', '.join(_roots(names.values()))}: {listed}")
    return text or ["SLURM has no jobs of these results."]


# ---- the queue --------------------------------------------------------------------------------

LIVE = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD")
"""States of jobs that are waiting or at work."""


class State(NamedTuple):
    """The state of a job: SLURM's name for it, and its reason."""

    name: str
    reason: str


GONE = State("", "")
"""The state of a job that SLURM does not know any more."""


def states() -> dict[str, State]:
    """Return the states of this user's jobs, array elements separately: ``12_3`` → state.

    Jobs that have ended are still listed for some minutes.
    """
    text = slurm("squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%T|%r")
    rows = [line.strip().split("|", 2) for line in text.splitlines()]
    return {row[0]: State(row[1], row[2]) for row in rows if len(row) == 3}


def _is_live(name: str, queue: Mapping[str, State]) -> bool:
    """Tell whether a job is waiting or at work."""
    return queue.get(name, GONE).name in LIVE


def slurm(*command: str, seconds: float = _COMMAND_SECONDS) -> str:
    """Return what a command of SLURM prints.

    Raises
    ------
    RunFailedError
        If there is no SLURM here, or its controller does not answer.
    """
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=True
        ).stdout
    except FileNotFoundError as error:
        raise RunFailedError(
            f"There is no SLURM here: the command {command[0]} is missing. Call this on a node "
            "from which jobs are submitted, or choose another --backend."
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
        raise RunFailedError(
            f"SLURM's controller does not answer {' '.join(command[:2])} within {seconds:g} s "
            f"({shown(' '.join(str(said).split()), 200)}). Jobs that are in its queue go on; the "
            "same command waits for them again. Or choose another --backend."
        ) from error
