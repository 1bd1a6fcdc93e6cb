"""Calls by the workers of a dask scheduler, on whatever machines they are.

Each worker builds the oracle of a dataset once, from the data that it finds on its machine, and
keeps it. w goes to them once for a batch. What a worker that dies was doing, the scheduler gives to
another one.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError, described
from ssvm_bench.base.interrupts import EndedEarlyError, checkpoint
from ssvm_bench.config import plug_ins
from ssvm_bench.oracles.calls.caller import Answer, Caller, Oracle, answer
from ssvm_bench.oracles.calls.chunks import Chunks
from ssvm_bench.oracles.calls.pool import Build, as_ours

PATIENCE = 5.0
"""Seconds in which a scheduler has to answer, and to have enough workers."""

TASK_SECONDS = 2e-3
"""What a task costs the scheduler and the network."""

_ATTEMPTS = 3
_TIMEOUTS = TimeoutError, asyncio.TimeoutError  # the same from Python 3.11 on
_POLL_SECONDS = 0.2  # a signal does not end a wait


class Cluster(Caller):
    """The workers of a scheduler.

    Parameters
    ----------
    address : str
        As ``tcp://host:port``.
    build : callable
        Returns the oracle in a worker: a function of a module, or a `functools.partial` of one.
    workers : int
        How many parts of a batch are called for at once; so many workers must be there.
    batch, delay
        As for `Caller`.
    """

    def __init__(
        self, address: str, build: Build, workers: int, batch: int = 1, delay: float = 0.0
    ) -> None:
        super().__init__(batch, delay)
        self.address, self.build, self.workers = address, build, workers
        self._client: Any = None
        self._chunks: dict[float, Chunks] = {}  # for each delay

    def start(self, oracle: Oracle, say: Callable[[str], object]) -> None:
        """Find the scheduler and its workers, and let them build their oracles."""
        self._say = say
        try:
            import distributed
        except ImportError:
            raise ConfigError(
                f"parallel.address={self.address} needs dask, which is not installed: "
                "pip install 'ssvm-bench[dask]'."
            ) from None
        try:
            self._client = distributed.Client(
                self.address, timeout=PATIENCE, set_as_default=False, name="ssvm-bench"
            )
            self._client.wait_for_workers(self.workers, timeout=PATIENCE)
        except ValueError as error:
            raise ConfigError(
                f"parallel.address={self.address} is no address of a scheduler: {error}."
            ) from None
        except (OSError, *_TIMEOUTS):
            missing = "nobody answers"
            if self._client is not None:
                missing = f"there are {self._count()} of {self.workers} workers (parallel.workers)"
            self.close()
            raise RunFailedError(
                f"The dask scheduler at {self.address} cannot be used: within {PATIENCE:g} s, "
                f"{missing}. Start it with `dask scheduler`, its workers with `dask worker`."
            ) from None
        self.labelings(oracle, np.zeros(oracle.inner_d), np.zeros(self.workers, np.int64))

    def close(self) -> None:
        """Leave the scheduler alone."""
        if self._client is not None:
            self._client.close(timeout=PATIENCE)
            self._client = None

    def _count(self) -> int:
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def _ask(
        self, oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float, delay: float
    ) -> Answer:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._called(w, terms, loss, delay)
            except (SsvmBenchError, EndedEarlyError):
                raise
            except Exception as error:  # as when the last worker that had w has died
                self._find_workers()
                if attempt == _ATTEMPTS:
                    raise RunFailedError(
                        f"The workers of the dask scheduler at {self.address} could not call the "
                        f"oracle, in {_ATTEMPTS} attempts: {described(error)}"
                    ) from error
                self._say("Workers have been lost; their oracle calls are made again.")
        raise AssertionError  # not reached

    def _called(self, w: np.ndarray, terms: np.ndarray, loss: float, delay: float) -> Answer:
        """Make the calls, if enough workers live that long."""
        (shared,) = self._client.scatter([w], broadcast=True, hash=False, timeout=PATIENCE)
        chunks = self._chunks.setdefault(delay, Chunks(self.workers, TASK_SECONDS))
        folders = plug_ins.folders()
        tasks = [
            self._client.submit(
                work, self.build, folders, shared, terms[part], loss, delay, pure=False
            )
            for part in chunks.parts(terms.size)
        ]
        self._wait(tasks)
        answers = self._client.gather(tasks)
        for found, seconds in answers:
            chunks.learn(len(found), seconds)
        labelings = [y for found, _ in answers for y in found]
        return labelings, sum(seconds for _, seconds in answers)

    def _wait(self, tasks: Sequence[Any]) -> None:
        """Wait for tasks, as long as there is somebody to work on them."""
        import distributed

        while True:
            checkpoint()
            try:
                with self._client.as_current():
                    distributed.wait(tasks, timeout=_POLL_SECONDS)
                return
            except _TIMEOUTS:
                self._find_workers()

    def _find_workers(self) -> None:
        """Wait until there is a worker. Raise ``RunFailedError`` if none comes."""
        begin = monotonic()
        while self._client.status != "running" or self._count() == 0:
            checkpoint()
            sleep(_POLL_SECONDS)
            if monotonic() - begin > PATIENCE:
                raise RunFailedError(
                    f"None of the workers of the dask scheduler at {self.address} is left to call "
                    "the oracle, or the scheduler has ended. Start them again; the same command "
                    "goes on from the last checkpoint"
                )


# ---- in a worker's process --------------------------------------------------------------------

_lock = threading.Lock()
"""Kernels have scratch memory in the oracle, and a worker may have several threads."""


def work(
    build: Build,
    folders: Sequence[Path],
    w: np.ndarray,
    terms: np.ndarray,
    loss: float,
    delay: float,
) -> Answer:
    """Make calls, with the oracle that this process has."""
    with _lock:
        plug_ins.use(tuple(folders))
        try:
            oracle = _built(build.func, *build.args)  # type: ignore[attr-defined]
            return answer(oracle, w, terms, loss, delay)
        except Exception as error:
            raise as_ours(error) from None  # a cause of its own would be a circle


@functools.lru_cache(maxsize=1)
def _built(function: Callable[..., Oracle], *arguments: Any) -> Oracle:
    return function(*arguments)
