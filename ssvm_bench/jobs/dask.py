"""Executes runs by the workers of a dask scheduler: an existing one, or one of its own.

If a worker dies, the scheduler moves its jobs to others, as often as ``allowed-failures`` says (3).
Each thread of a worker executes one run at a time.
"""

from __future__ import annotations

import logging
import queue
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import distributed

from ssvm_bench.base import interrupts, scheduler
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.jobs import Options
from ssvm_bench.jobs.dispatch import Executor, Job, JobResult, LostError
from ssvm_bench.jobs.processes import perform
from ssvm_bench.jobs.tokens import CancelToken


class Dask(Executor):
    """The executor of dask: the scheduler at an address, or else a cluster of its own."""

    def __init__(self, options: Options, token: CancelToken) -> None:
        super().__init__(token)
        for name in ("distributed", "distributed.client"):  # the client's has its own level
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._cluster: Any = None
        if options.address is not None:
            self._client = scheduler.connect(options.address, 1)
        else:
            self._cluster = distributed.LocalCluster(
                n_workers=options.jobs or 1,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,  # none for workers: their children hold the data
                silence_logs=logging.CRITICAL,
            )
            self._client = distributed.Client(self._cluster)
        self._numbers: dict[Any, int] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def problems(self) -> Mapping[str, object]:
        """Check on every worker whether it can execute runs."""
        if self._cluster is not None:
            self._client.register_plugin(_DeafToTerminal())
        hosts: Counter[str] = Counter()
        for worker, count in self._client.nthreads().items():
            hosts[urlsplit(worker).hostname or worker] += count
        self.at_once, self.beside = hosts.total(), max(hosts.values()) - 1
        return dict(self._client.run(CancelToken.problem, self.token, on_error="return"))

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Submit jobs to the scheduler."""
        for number, job in jobs.items():
            future = self._client.submit(perform, job, pure=False)
            self._numbers[future] = number
            future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> list[tuple[int, JobResult]]:
        """Return a job that has ended; raise ``RunFailedError`` if the scheduler has ended."""
        if self._client.status in ("closing", "closed"):  # it has tried to reconnect
            raise RunFailedError(
                "The dask scheduler has ended. Runs that it had begun end after their iteration; "
                "start it again, or leave out --backend: the same command goes on with them."
            )
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            return []
        if future.status == "finished":
            result = future.result()
        elif future.status == "cancelled":
            result = JobResult(LostError("the dask scheduler has ended."))
        else:
            result = JobResult.failed(future.exception(), "dask")
        return [(self._numbers.pop(future), result)]

    def close(self, finished: bool) -> None:
        """Leave the scheduler, which then drops the jobs; shut down a cluster of its own."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


class _DeafToTerminal(distributed.WorkerPlugin):
    """Lets workers ignore Ctrl-C of the terminal: it is for the program, not for its cluster."""

    def setup(self, worker: Any) -> None:
        """Ignore the signal in the process of a worker."""
        interrupts.ignore_signals(interrupts.OF_TERMINAL)
