"""Processes that execute runs: several on this machine, or one per job of another executor.

Such a process is a child (:mod:`ssvm_bench.base.children`) that executes one run after the other,
and keeps dataset and oracle of the last one. Its libraries are set to one thread before they are
loaded. The metadata of a run contain the number of concurrent runs: they share caches and memory.

On this machine a child is pinned to one core where the system allows it, so times are those of one
core. Only the parent receives Ctrl-C. It asks every child to end after its iteration, and forwards
a second Ctrl-C. A child that dies loses its current run, and another one replaces it.

Other executors execute jobs in threads of processes with their own settings, and kill these. There
a child ends when its job is cancelled, or when it has been idle for a while. In any case, a child
whose parent dies ends after its iteration, with a partial trace and a checkpoint.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from ssvm_bench.base import messages
from ssvm_bench.base.children import Child, DiedError
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.config import registry
from ssvm_bench.jobs import Options
from ssvm_bench.jobs.dispatch import Executor, Job, JobResult, LostError, Setting
from ssvm_bench.jobs.tokens import CancelToken, RefusedError
from ssvm_bench.runs import Outcome
from ssvm_bench.runs.terminal import Display

logger = logging.getLogger(__name__)

IDLE_SECONDS = 20.0
"""How long a child of another executor waits for its next job."""

_LOOK_SECONDS = 1.0
"""How often such a child checks whether its job has been cancelled."""


@dataclass(eq=False)
class Worker:
    """A child that executes runs; it is started when it gets the first one.

    Attributes
    ----------
    core : int or None
        The core to which it is pinned; None: it is not pinned.
    number : int or None
        Number of the job that it works on; None: it is idle.
    dataset : str
        Name of the dataset that it has loaded.
    """

    core: int | None = None
    number: int | None = None
    dataset: str = ""
    setting: Setting | None = None
    child: Child | None = None

    def begin(self, number: int, job: Job) -> None:
        """Begin a run; a child that died while it was idle is replaced."""
        child = self.child
        if child is None or child.process.poll() is not None:
            child = Child(work, job.setting, self.core, variables=dict(job.setting.variables))
        with suppress(OSError):  # then `receive` reports how the child died
            child.connection.send_bytes(job.payload)
        self.child, self.setting = child, job.setting
        self.number, self.dataset = number, job.dataset

    def receive(self) -> JobResult | str:
        """Return the child's next message, or the result of its run."""
        assert self.child is not None
        try:
            answer = self.child.receive()
        except DiedError as error:
            how = f"its process ended ({error})."
            if str(error) == f"signal {int(signal.SIGKILL)}":
                how = (
                    "its process was killed, as the system does when memory runs out. Make fewer "
                    "runs at once if need be."
                )
            answer, self.child, self.dataset = LostError(how), None, ""
        if isinstance(answer, str):
            return answer
        self.number = None
        return JobResult(answer)

    def end(self, ask: bool = False) -> None:
        """End the child: after its iteration if ``ask``, else at once, unless it is idle."""
        if self.child is not None:
            if ask:
                self.child.process.terminate()
            self.child.end(now=self.number is not None and not ask)


class Processes(Executor):
    """Processes of this machine; a run whose process died has failed."""

    retries = 0

    def __init__(self, options: Options, token: None) -> None:
        self.at_once = options.jobs or 1
        self.beside = self.at_once - 1
        self._workers: list[Worker] = []
        self._waiting: dict[int, Job] = {}
        self._events: list[tuple[int, JobResult | str | None]] = []

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Take jobs. They begin seed by seed, if possible in a child that has their dataset."""
        self._waiting |= jobs
        affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
        cores = sorted(affinity(0)) if affinity else [None]
        count = min(self.at_once, len(self._waiting))
        if affinity and len(self._workers) < count > len(cores):
            logger.warning(
                "%s runs at once share %s cores: wall times will be longer.", count, len(cores)
            )
        for k in range(len(self._workers), count):
            self._workers.append(Worker(cores[k % len(cores)]))

    def wait(self, seconds: float) -> list[tuple[int, JobResult | str | None]]:
        """Begin jobs on idle workers; return the events since the last call."""
        for worker in self._workers:
            if worker.number is None and self._waiting:
                number = choose(self._waiting, worker, self._workers)
                worker.begin(number, self._waiting.pop(number))
                self._events.append((number, None))
        busy = {one.child.connection: one for one in self._busy() if one.child is not None}
        for ready in wait(list(busy), 0 if self._events else seconds):
            worker = busy[ready]  # type: ignore[index]
            assert worker.number is not None
            self._events.append((worker.number, worker.receive()))
        events, self._events = self._events, []
        return events

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.number is not None]

    def interrupt(self, count: int) -> None:
        """Let children end after their iterations, the second time at once; cancel waiting jobs."""
        for worker in self._busy():
            assert worker.child is not None
            worker.child.process.terminate()
        cancelled = JobResult(RefusedError("It was cancelled."))
        self._events += [(number, cancelled) for number in self._waiting]
        self._waiting = {}

    def close(self, finished: bool) -> None:
        """End all children, at once if they are in the middle of a run."""
        for worker in self._workers:
            worker.end()


def choose(waiting: Mapping[int, Job], worker: Worker, workers: list[Worker]) -> int:
    """Return the number of the next run: on the worker's dataset, else on one that no other has."""
    others = {other.dataset for other in workers if other is not worker}
    first = next(iter(waiting.values()))
    numbers = [number for number, job in waiting.items() if job.seed == first.seed]

    def distance(number: int) -> tuple[bool, bool]:
        dataset = waiting[number].dataset
        return dataset != worker.dataset, dataset in others

    return min(numbers, key=distance)


# ---- on a node of another executor ------------------------------------------------------------

_workers: list[Worker] = []
_lock = threading.Lock()


def perform(job: Job) -> JobResult:
    """Execute the run of a job, unless this node cannot; resume it where another one stopped."""
    assert job.setting.token is not None
    if refused := job.setting.token.problem():
        return JobResult(refused)
    with _lock:
        idle = [one for one in _workers if one.number is None]
        ended = [one for one in idle if one.child is None or one.child.process.poll() is not None]
        worker = next((one for one in idle if one.setting == job.setting), Worker())
        worker.begin(0, job)
        _workers[:] = {*_workers, worker} - ({*ended} - {worker})
    said = []
    while isinstance(result := worker.receive(), str):
        said.append(result)
    return JobResult(result.answer, tuple(said))


def end_runs() -> None:
    """End the runs of this process after their iterations; return when they have checkpoints.

    A signal handler may call it: it reads no connection that `perform` may be reading.
    """
    for worker in list(_workers):
        if worker.number is not None:
            worker.end(ask=True)


# ---- in the child -----------------------------------------------------------------------------


def work(connection: Connection, setting: Setting, core: int | None) -> None:
    """Execute the runs that arrive on a pipe until it is closed; send results and messages."""

    def send(text: str) -> None:
        with suppress(OSError):
            connection.send(text)

    if setting.place.is_dir():
        os.chdir(setting.place)
    registry.use(setting.folders)
    if core is not None:
        os.sched_setaffinity(0, {core})
    if setting.token is not None:
        threading.Thread(target=_end_when_cancelled, args=(setting.token,), daemon=True).start()
    while setting.token is None or connection.poll(IDLE_SECONDS):
        config, wait_for_others = connection.recv()
        from ssvm_bench.runs import runner

        answer: Outcome | SsvmBenchError
        about = setting.beside, wait_for_others, setting.backend
        try:
            with messages.shown_by(send):
                answer = runner.run(config, Display(), *about)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            answer = error if isinstance(error, SsvmBenchError) else RunFailedError(what)
            answer.traceback = traceback.format_exc()
        try:
            connection.send(answer)
        except OSError:  # the parent is gone
            raise
        except Exception as error:  # the answer cannot be pickled
            connection.send(RunFailedError(f"{type(error).__name__}: {error}"))


def _end_when_cancelled(token: CancelToken) -> None:
    while token.is_valid():
        time.sleep(_LOOK_SECONDS)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)  # type: ignore[arg-type]
