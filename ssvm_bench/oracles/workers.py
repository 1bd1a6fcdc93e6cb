"""Oracle calls by workers: processes on this machine, or those of a dask scheduler.

A worker builds the dataset's oracle once, from the data that it finds where it is, and keeps it. It
gets terms, and sends back their labelings at the w of the batch, which goes to the workers once.
Terms are handed out as workers get free, so that nobody waits for a slow call but at the end of a
batch; `Chunks` decides how many at a time. When a worker dies, others make its calls again.
"""

from __future__ import annotations

import functools
import logging
import math
import mmap
import os
import pickle  # noqa: S403 - messages to our own processes
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ssvm_bench.base import scheduler
from ssvm_bench.base.children import Child, DiedError, answer_calls, hand_out
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, described
from ssvm_bench.base.interrupts import EndedEarlyError, end_if_urgent
from ssvm_bench.config import registry
from ssvm_bench.oracles.caller import Answer, Caller, Oracle, answer

logger = logging.getLogger(__name__)

Build: TypeAlias = Callable[[], Oracle]
Task: TypeAlias = tuple[np.ndarray, float, float]
"""Terms, the weight of Δ and the delay of each call."""


class Chunks:
    """How many calls to ask a worker for at a time.

    Few large messages cost little, and many small ones keep all workers busy until the end. Of N
    calls whose seconds have the standard deviation σ, to be made by P workers where a message costs
    h, the last worker is expected to end earliest with

    .. code-block:: text

        k = ( √2 N h / (σ P √(log P)) )^{2/3}        calls a message,  k ≤ N/P

    (C. Kruskal, A. Weiss: *Allocating independent subtasks on parallel processors*, IEEE
    Transactions on Software Engineering, 1985). σ is estimated from the messages so far: one of k
    calls took T, and (T − k μ)²/k has the expectation σ². Every worker gets as many messages as the
    others, of the same size but for one call: with sixteen calls, four workers and k = 3, two of
    two calls, since six messages would leave two workers idle for a third of the time.

    Parameters
    ----------
    workers : int
        P.
    overhead : float
        h, in seconds.
    """

    first = 4
    """Messages to each worker as long as nothing is known."""

    def __init__(self, workers: int, overhead: float) -> None:
        self.workers, self.overhead = workers, overhead
        self._calls = self._messages = 0
        self._seconds = self._squares = 0.0

    def learn(self, calls: int, seconds: float) -> None:
        """Take in what the calls of a message took."""
        self._calls += calls
        self._messages += 1
        self._seconds += seconds
        self._squares += (seconds - calls * self._seconds / self._calls) ** 2 / calls

    def parts(self, calls: int) -> list[slice]:
        """Return which of N calls go into each message."""
        rounds = -(-calls // (self.workers * self._size(calls)))
        count = min(calls, self.workers * rounds)
        bounds = [k * calls // count for k in range(count + 1)]
        return [slice(begin, end) for begin, end in pairwise(bounds)]

    def _size(self, calls: int) -> int:
        """Return k for N calls."""
        share = -(-calls // self.workers)
        if self.workers == 1:
            return share
        if self._messages == 0:
            return -(-share // self.first)
        sigma = math.sqrt(self._squares / self._messages)
        spread = sigma * self.workers * math.sqrt(math.log(self.workers))
        if spread == 0.0:
            return share
        best = (math.sqrt(2.0) * calls * self.overhead / spread) ** (2.0 / 3.0)
        return max(1, min(share, round(best)))


@dataclass(eq=False)
class WorkerCaller(Caller):
    """Calls by some workers.

    Attributes
    ----------
    build : callable
        Returns the oracle in a worker: a function of a module, or a `functools.partial` of one.
    workers : int
    overhead : float
        Seconds that a message costs, with its answer.
    """

    overhead: ClassVar[float]

    build: Build
    workers: int
    _chunks: dict[float, Chunks] = field(default_factory=dict, init=False)  # for each delay

    def start(self, oracle: Oracle) -> None:
        """Get hold of the workers, and wait until their oracles are there, with their kernels."""
        for _ in self._answers(
            np.zeros(oracle.inner_d), [(np.zeros(1, np.int64), 1.0, 0.0)] * self.workers
        ):
            pass

    def _ask(
        self, oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float, delay: float
    ) -> Answer:
        chunks = self._chunks.setdefault(delay, Chunks(self.workers, self.overhead))
        parts = chunks.parts(terms.size)
        found: list[list[np.ndarray]] = [[] for _ in parts]
        seconds = 0.0
        for k, (labelings, took) in self._answers(
            w, [(terms[part], loss, delay) for part in parts]
        ):
            found[k] = labelings
            chunks.learn(len(labelings), took)
            seconds += took
        return list(chain.from_iterable(found)), seconds

    def _answers(self, w: np.ndarray, tasks: Sequence[Task]) -> Iterable[tuple[int, Answer]]:
        """Return numbers and answers of tasks at one w, in any order."""
        raise NotImplementedError


_lock = threading.Lock()
"""Kernels have scratch memory in the oracle, and a worker may have several threads."""


def call(oracle: Build, w: np.ndarray, *task: Any) -> Answer:
    """Make calls in the process of a worker; errors are those that can be sent."""
    try:
        with _lock:
            return answer(oracle(), w, *task)
    except SsvmBenchError:
        raise
    except BaseException as error:  # a worker of a cluster would end by some
        raise RunFailedError(described(error)) from None  # a cause of its own would be a circle


# ---- processes on this machine ----------------------------------------------------------------


@dataclass(eq=False)
class Pool(WorkerCaller):
    """Processes on this machine (:mod:`ssvm_bench.base.children`), which share w in memory.

    Attributes
    ----------
    variables : mapping of str to str
        Environment variables of the workers.
    """

    overhead = 2e-4

    variables: Mapping[str, str] = field(default_factory=dict)
    _children: list[Child] = field(default_factory=list, init=False)
    _w: SharedVector | None = field(default=None, init=False)

    def start(self, oracle: Oracle) -> None:
        """Start the workers, and wait until their oracles are there."""
        self._w = SharedVector(oracle.inner_d)
        for _ in range(self.workers):
            child = Child(
                work,
                *(pickle.dumps(self.build), self._w.descriptor, oracle.inner_d, registry.folders()),
                variables=self.variables,
                descriptors=(self._w.descriptor,),
            )
            self._children.append(child)
        self._numbers = {child: k for k, child in enumerate(self._children, 1)}
        super().start(oracle)

    def close(self) -> None:
        """End the workers, whatever they do."""
        for child in self._children:
            child.end(now=True)
        self._children = []
        if self._w is not None:
            self._w.close()
            self._w = None

    def _answers(self, w: np.ndarray, tasks: Sequence[Task]) -> Iterable[tuple[int, Answer]]:
        if self._w is None:
            raise RunFailedError("The workers that call the oracle have not been started.")
        self._w.values[:] = w
        try:
            yield from hand_out(self._children, tasks, self._lost)
        except BaseException:
            self.close()  # some may still be calling
            raise

    def _lost(self, child: Child, how: DiedError) -> None:
        """Go on without a worker, if there are others."""
        if not self._children:
            raise RunFailedError(
                f"None of the {self.workers} workers that call the oracle is left; the last one "
                f"has ended by {how}. Try fewer of them, with parallel.workers, if memory ran out"
            )
        logger.warning(
            "Worker %s of %s has ended (%s). The others make its oracle calls again.",
            *(self._numbers[child], self.workers, how),
        )


class SharedVector:
    """A vector of float64 that a process and its children see, in memory that has no name.

    It is gone with the last process that has it, however that ends.

    Attributes
    ----------
    descriptor : int
        What children inherit, and attach to.
    values : ndarray of float64, shape (size,)
    """

    def __init__(self, size: int) -> None:
        if hasattr(os, "memfd_create"):  # Linux
            self.descriptor = os.memfd_create("w")
        else:
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())
        os.ftruncate(self.descriptor, max(size, 1) * np.dtype(np.float64).itemsize)
        self.values = attached(self.descriptor, size)

    def close(self) -> None:
        """Give the descriptor back; the memory goes with the last array on it."""
        os.close(self.descriptor)


def attached(descriptor: int, size: int) -> np.ndarray:
    """Return the vector behind a descriptor."""
    return np.frombuffer(mmap.mmap(descriptor, 0), np.float64, size)


def work(
    connection: Connection, build: bytes, descriptor: int, size: int, folders: Sequence[Path]
) -> None:
    """Answer what comes through a pipe until it is closed, in the process of a worker.

    Parameters
    ----------
    connection : Connection
    build : bytes
        Pickle of the function that builds the oracle, which may be one of the ``folders``.
    descriptor, size : int
        Where w is, and its length.
    folders : sequence of Path
        Where components are besides.
    """
    registry.use(folders)
    oracle = functools.cache(
        lambda: pickle.loads(build)()  # noqa: S301 - of the parent, through its pipe
    )
    answer_calls(connection, functools.partial(call, oracle, attached(descriptor, size)))


# ---- a cluster --------------------------------------------------------------------------------


@dataclass(eq=False)
class Cluster(WorkerCaller):
    """The workers of a dask scheduler, on whatever machines they are.

    What a worker that dies was doing, the scheduler gives to another one. A batch is called for in
    as many parts at once as there are ``workers``, which must be there.

    Attributes
    ----------
    address : str
        As ``tcp://host:port``.
    """

    overhead = 2e-3
    _attempts = 3

    address: str
    _client: Any = field(default=None, init=False)

    def start(self, oracle: Oracle) -> None:
        """Find the scheduler and its workers, and let them build their oracles."""
        self._client = scheduler.connect(self.address, self.workers)
        super().start(oracle)

    def close(self) -> None:
        """Leave the scheduler alone."""
        if self._client is not None:
            self._client.close(timeout=scheduler.SECONDS)
            self._client = None

    def _answers(self, w: np.ndarray, tasks: Sequence[Task]) -> Iterable[tuple[int, Answer]]:
        for attempt in range(1, self._attempts + 1):
            try:
                return enumerate(self._gathered(w, tasks))
            except (SsvmBenchError, EndedEarlyError):
                raise
            except Exception as error:  # as when the last worker that had w has died
                self._find_workers()
                if attempt == self._attempts:
                    raise RunFailedError(
                        f"The workers of the dask scheduler at {self.address} could not call the "
                        f"oracle, in {attempt} attempts: {described(error)}"
                    ) from error
                logger.warning("Workers have been lost; their oracle calls are made again.")
        raise AssertionError  # not reached

    def _gathered(self, w: np.ndarray, tasks: Sequence[Task]) -> list[Answer]:
        """Return the answers, if enough workers live that long."""
        import distributed

        client, about = self._client, (self.build, registry.folders())
        (shared,) = client.scatter([w], broadcast=True, hash=False, timeout=scheduler.SECONDS)
        futures = [client.submit(call_there, *about, shared, *task, pure=False) for task in tasks]
        while True:
            end_if_urgent()
            try:
                with client.as_current():
                    distributed.wait(futures, timeout=_POLL_SECONDS)
                answers: list[Answer] = client.gather(futures)
                return answers
            except TimeoutError:
                self._find_workers()

    def _find_workers(self) -> None:
        """Wait until there is a worker. Raise ``RunFailedError`` if none comes."""
        begin = monotonic()
        while self._client.status != "running" or scheduler.count(self._client) == 0:
            end_if_urgent()
            sleep(_POLL_SECONDS)
            if monotonic() - begin > scheduler.SECONDS:
                raise RunFailedError(
                    f"None of the workers of the dask scheduler at {self.address} is left to call "
                    "the oracle, or the scheduler has ended. Start them again; the same command "
                    "goes on from the last checkpoint"
                )


_POLL_SECONDS = 0.2  # a signal does not end a wait


def call_there(build: Any, folders: Sequence[Path], w: np.ndarray, *task: Any) -> Answer:
    """Make calls in a process of the cluster, which keeps one oracle."""
    registry.use(folders)
    return call(functools.partial(_built, build.func, *build.args), w, *task)


@functools.lru_cache(maxsize=1)
def _built(function: Callable[..., Oracle], *arguments: Any) -> Oracle:
    return function(*arguments)
