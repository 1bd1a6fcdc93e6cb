"""Runs by the workers of a dask scheduler, one that is there or one of its own.

The scheduler gives the jobs of a worker that died to others, as often as its ``allowed-failures``
says (3). Each thread of a worker makes one run at a time.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import distributed
import distributed.comm

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import RunFailedError, described, shown
from ssvm_bench.engines import tickets
from ssvm_bench.engines.contract import Job, LostError, Performed, RefusedError, Ticket
from ssvm_bench.engines.nodes import perform
from ssvm_bench.engines.options import Options
from ssvm_bench.engines.remote import failed

REACH_SECONDS = 5


class Dask:
    """An `Engine` of dask.

    Parameters
    ----------
    ticket : Ticket
        Every worker is asked whether it agrees.
    say : callable
        Told who makes the runs.
    address : str or None
        Of a scheduler, ``tcp://host:8786``.
    jobs : int
        Number of workers of a cluster of its own, where there is no address.

    Raises
    ------
    RunFailedError
        If the scheduler does not answer, or has no workers.
    RefusedError
        If a worker cannot make runs.
    """

    def __init__(
        self, ticket: Ticket, say: Callable[[str], object], address: str | None, jobs: int
    ) -> None:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._cluster: Any = None
        self._client = self._connected(address, jobs)
        try:
            self._await_workers(address)
            self._check(ticket)
            threads = self._client.nthreads()
        except BaseException:
            self.close(finished=False)
            raise
        hosts: Counter[str] = Counter()
        for worker, count in threads.items():
            hosts[urlsplit(worker).hostname or worker] += count
        self.at_once, self.beside = hosts.total(), max(hosts.values()) - 1
        self._numbers: dict[Any, int] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        say(f"dask makes the runs, {self.at_once} at once.")

    def _connected(self, address: str | None, jobs: int) -> Any:
        if address is None:
            self._cluster = distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,  # of the workers, whose children have the data
                silence_logs=logging.CRITICAL,
            )
            client = distributed.Client(self._cluster)
            client.register_plugin(_Deaf())
            return client
        try:
            asyncio.run(_greet(address))  # a client itself waits for ever for what says nothing
            return distributed.Client(address, timeout=REACH_SECONDS, set_as_default=False)
        except Exception as error:  # also of what answers in another language
            raise RunFailedError(
                f"No dask scheduler answers at {shown(address)} within {REACH_SECONDS} s "
                f"({described(error)}). Start one with `dask scheduler`, or give the address "
                "that it prints, such as tcp://127.0.0.1:8786."
            ) from error

    def _await_workers(self, address: str | None) -> None:
        """Wait until there is somebody to make runs."""
        try:
            self._client.wait_for_workers(1, timeout=REACH_SECONDS)
        except TimeoutError as error:
            raise RunFailedError(
                f"The dask scheduler at {shown(address)} has no workers. Start some with `dask "
                f"worker {shown(address)} --nthreads 1`, in this program's environment."
            ) from error

    def _check(self, ticket: Ticket) -> None:
        """Ask every worker whether it can make runs."""
        answers = self._client.run(tickets.problem, ticket, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, RefusedError):
                raise answer
            if isinstance(answer, BaseException):
                raise RefusedError(
                    f"The dask worker {worker} cannot run this program: "
                    f"{type(answer).__name__}: {shown(answer, 300)}. Install the same version "
                    "there, and start it again."
                )

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Give jobs to the scheduler."""
        for number, job in jobs.items():
            future = self._client.submit(perform, job, pure=False)
            self._numbers[future] = number
            future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> list[tuple[int, Performed]]:
        """Return jobs that have ended."""
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            return []
        number = self._numbers.pop(future)
        if future.status == "finished":
            return [(number, future.result())]
        if future.status == "cancelled":
            return [(number, Performed(LostError("the dask scheduler has ended.")))]
        return [(number, Performed(failed(future.exception(), "dask")))]

    def leave(self) -> str:
        """Say nothing: without its client, a scheduler forgets a job."""
        return ""

    def close(self, finished: bool) -> None:
        """Leave the scheduler, or end the own one."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def opened(ticket: Ticket, say: Callable[[str], object], asked: Options) -> Dask:
    """Return the engine for what the command line says."""
    return Dask(ticket, say, asked.address, asked.jobs or 1)


async def _greet(address: str) -> None:
    """Exchange the first words with a scheduler, or raise an error."""
    comm = await asyncio.wait_for(distributed.comm.connect(address), REACH_SECONDS)
    await comm.close()


class _Deaf(distributed.WorkerPlugin):
    """Ctrl-C of the terminal is for the program, not for the workers of its cluster."""

    def setup(self, worker: Any) -> None:
        """Change what the process of a worker does."""
        interrupts.ignore_signals(interrupts.OF_TERMINAL)
