"""Several runs at once, each in a process of its own that nothing disturbs but the other runs.

A worker is a child (:mod:`ssvm_bench.base.children`) that makes one run after the other, and keeps
the dataset and the oracle of the last one. It is pinned to one core where the system allows it, and
its libraries are told to use one thread before they are loaded; so times are those of one core.
That other runs went on beside it is part of a run's metadata: they share caches and memory.

Ctrl-C comes to this process alone, which asks every worker to end after its iteration, and hands a
second one on. A worker that dies loses the run it was making, and another one takes its place. If
this process dies, each worker ends after its iteration, with a partial trace.
"""

from __future__ import annotations

import itertools
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ssvm_bench.base import interrupts
from ssvm_bench.base.children import Child, DiedError
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.config import plug_ins
from ssvm_bench.results import words
from ssvm_bench.results.provenance import LOCAL, THREAD_VARIABLES
from ssvm_bench.runs.terminal import Silent

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs.outcome import Outcome

Ended: TypeAlias = "Outcome | RunFailedError"
"""What becomes of a run."""

_POLL_SECONDS = 0.2  # a signal does not end a wait


def make(
    runs: Mapping[int, RunConfig],
    jobs: int,
    started: Callable[[int], object],
    ended: Callable[[int, Ended], object],
    say: Callable[[str], object],
) -> bool:
    """Make runs, several at once.

    Parameters
    ----------
    runs : mapping
        The runs by number, in the order in which they are begun: seed by seed, and within a seed
        such that a worker gets the dataset that it has.
    jobs : int
        Number of runs at once.
    started, ended : callable
        Told the number of a run when it begins, and the number and what became of it at its end.
    say : callable
        Told what the runner of a run has to say.

    Returns
    -------
    bool
        False if it was interrupted; then some runs have not `ended`, or were not even started.

    Raises
    ------
    ConfigError
        If dataset, oracle and solver of a run do not fit together; the other runs are stopped.
    """
    waiting, held, patient = dict(runs), dict[int, "RunConfig"](), False
    jobs = min(jobs, len(waiting))
    available = _cores()
    if None not in available and jobs > len(available):
        say(f"{jobs} runs at once share {len(available)} cores: wall times will be longer.")
    cores = itertools.cycle(available)
    workers: list[Worker] = []
    asked_to_end = 0  # times
    with interrupts.deferred() as arrived:
        try:
            workers += [Worker(next(cores), jobs - 1) for _ in range(jobs)]
            while True:
                if held and not waiting and not any(worker.busy for worker in workers):
                    say(f"Others are at work on {words.runs(len(held))}; waiting for them.")
                    waiting, held, patient = held, {}, True
                for worker in workers:
                    if not worker.busy and waiting and not arrived.count:
                        number = _choose(waiting, worker, workers)
                        started(number)
                        worker.begin(number, waiting.pop(number), wait=patient)
                busy = [worker for worker in workers if worker.busy]
                if asked_to_end < min(arrived.count, 2):
                    arrived.answered = True
                    asked_to_end += 1
                    if busy and asked_to_end == 1:
                        say("Ending after the current iterations; Ctrl-C again ends at once.")
                    for worker in busy:
                        worker.child.process.terminate()
                if not busy:
                    return not asked_to_end
                ready = wait([worker.child.connection for worker in busy], _POLL_SECONDS)
                for worker in (worker for worker in busy if worker.child.connection in ready):
                    working_on, answer = worker.number, worker.receive()
                    if isinstance(answer, str):
                        say(answer)
                    elif isinstance(answer, _LostError) and asked_to_end:
                        pass  # in the middle of loading or compiling: there is no trace to keep
                    elif isinstance(answer, SsvmBenchError) and not isinstance(
                        answer, RunFailedError
                    ):
                        raise answer
                    elif not isinstance(answer, SsvmBenchError) and answer.status == "held":
                        assert working_on is not None
                        held[working_on] = runs[working_on]
                    else:
                        assert working_on is not None
                        ended(working_on, answer)
        finally:
            for worker in workers:
                worker.end()


def _cores() -> list[int | None]:
    """Return the cores to pin workers to; None stands for any."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return sorted(affinity(0)) if affinity else [None]


def _choose(waiting: Mapping[int, RunConfig], worker: Worker, workers: list[Worker]) -> int:
    """Return the number of the next run: its own dataset first, then one that nobody else has."""
    others = {other.dataset for other in workers if other is not worker}
    first = next(iter(waiting.values()))
    numbers = [number for number, config in waiting.items() if config.seed == first.seed]

    def distance(number: int) -> tuple[bool, bool]:
        dataset = waiting[number].dataset.name
        return dataset != worker.dataset, dataset in others

    return min(numbers, key=distance)


class _LostError(RunFailedError):
    """A worker has ended in the middle of its run."""


class Worker:
    """A process that makes runs.

    Parameters
    ----------
    core : int or None
        Where it is pinned to.
    concurrent_runs : int
        Number of runs that go on beside its own.

    Attributes
    ----------
    number : int or None
        Of the run that it is making.
    dataset : str or None
        Name of the dataset that it has loaded.
    """

    def __init__(self, core: int | None, concurrent_runs: int) -> None:
        self.core, self.concurrent_runs = core, concurrent_runs
        self.number: int | None = None
        self._start()

    def _start(self) -> None:
        self.dataset: str | None = None
        variables = dict.fromkeys(THREAD_VARIABLES, "1")
        folders = plug_ins.folders()
        self.child = Child(work, self.core, self.concurrent_runs, folders, variables=variables)

    @property
    def busy(self) -> bool:
        """Whether it is making a run."""
        return self.number is not None

    def begin(self, number: int, config: RunConfig, wait: bool) -> None:
        """Begin a run, and wait for it or not if another process is at it.

        A worker that died while it was idle is replaced.
        """
        self.number = number
        try:
            self.child.send((config, wait))
        except DiedError:
            self._start()
            self.child.send((config, wait))
        self.dataset = config.dataset.name

    def receive(self) -> str | Outcome | SsvmBenchError:
        """Return what the worker has to say, or what became of its run.

        A worker that died is replaced by a new one when there is another run to make.
        """
        try:
            answer = self.child.receive()
        except DiedError as error:
            answer = _LostError(_reason(str(error)))
            self.dataset = None
        if not isinstance(answer, str):
            self.number = None
        return answer

    def end(self) -> None:
        """End the process, at once if it is in the middle of a run."""
        self.child.end(now=self.busy)


def _reason(how: str) -> str:
    """Say why a worker has ended."""
    if how == f"signal {int(signal.SIGKILL)}":
        return (
            "its process was killed, as the system does when memory runs out. The same command "
            "makes this run again, with fewer --jobs if need be."
        )
    return f"its process ended ({how}). The same command makes this run again."


# ---- in the worker's process ------------------------------------------------------------------


class _Messages(Silent):
    """A display that passes on what is worth a line among those of other runs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def message(self, text: str) -> None:
        """Send the text."""
        with suppress(OSError):
            self.connection.send(text)


def work(
    connection: Connection,
    core: int | None,
    concurrent_runs: int,
    folders: tuple[Path, ...],
    engine: str = LOCAL,
) -> None:
    """Make the runs that come through a pipe until it is closed.

    Parameters
    ----------
    connection : Connection
        Where they come from.
    core : int or None
        The only core to use.
    concurrent_runs : int
        Number of runs that go on beside.
    folders : tuple of Path
        Where components are besides.
    engine : str
        For the metadata of the runs.
    """
    plug_ins.use(folders)
    if core is not None:
        os.sched_setaffinity(0, {core})
    display = _Messages(connection)
    while True:
        config, wait_for_others = connection.recv()
        from ssvm_bench.runs import runner

        answer: Outcome | SsvmBenchError
        try:
            answer = runner.run(config, display, concurrent_runs, wait_for_others, engine)
        except SsvmBenchError as error:
            answer = with_traceback(error)
        except Exception as error:
            answer = with_traceback(RunFailedError(f"{type(error).__name__}: {error}"))
        try:
            connection.send(answer)
        except OSError:  # nobody listens any more
            raise
        except Exception as error:  # it cannot be sent as it is
            connection.send(RunFailedError(f"{type(error).__name__}: {error}"))


def with_traceback(error: SsvmBenchError) -> SsvmBenchError:
    """Return an error that is being handled, so that its traceback gets to another process."""
    error.traceback = traceback.format_exc()
    return error
