"""Oracle calls by workers: processes on this machine, or those of a dask scheduler.

A worker builds the dataset's oracle once, from the data on its machine, and keeps it. It receives
terms, and sends back their labelings at the w of the batch, which is sent to the workers once. What
builds the oracle is sent as bytes (`dumped`), which a worker loads after it has searched the
folders of ``--config-dir``: nobody on the way needs the oracle's class.
Terms are sent when a worker is free, so that none waits for a slow call of another one except at
the end of a batch; `Chunks` decides how many at a time. If a worker dies, others repeat its calls.
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
    """The number of calls in a message to a worker.

    Few large messages cost little, and many small ones keep all workers busy until the end. Let P
    workers make N calls, whose seconds have the standard deviation σ, and let a message cost h
    seconds. The last worker is expected to end earliest with

    .. code-block:: text

        k = ( √2 N h / (σ P √(log P)) )^{2/3}        calls a message,  k ≤ N/P

    (C. Kruskal, A. Weiss: *Allocating independent subtasks on parallel processors*, IEEE
    Transactions on Software Engineering, 1985). σ is estimated from the messages so far: if one of
    k calls took T, (T − k μ)²/k has the expectation σ². Each worker gets as many messages as the
    others, with sizes that differ by at most one call. With sixteen calls, four workers and k = 3,
    each gets two messages of two calls: six messages would leave two workers idle for a third of
    the time.

    Parameters
    ----------
    workers : int
        P.
    overhead : float
        h, in seconds.
    """

    first = 4
    """Messages to each worker before any call has been timed."""

    def __init__(self, workers: int, overhead: float) -> None:
        self.workers, self.overhead = workers, overhead
        self._calls = self._messages = 0
        self._seconds = self._squares = 0.0

    def learn(self, calls: int, seconds: float) -> None:
        """Update the estimates with the seconds that the calls of a message took."""
        self._calls += calls
        self._messages += 1
        self._seconds += seconds
        self._squares += (seconds - calls * self._seconds / self._calls) ** 2 / calls

    def parts(self, calls: int) -> list[slice]:
        """Return the slice of N calls that goes into each message."""
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
    """Makes the calls by some workers.

    Attributes
    ----------
    build : callable
        Returns the oracle in a worker: a function of a module, or a `functools.partial` of one.
    workers : int
    overhead : float
        Seconds that a message costs, with its reply.
    """

    elsewhere = True
    overhead: ClassVar[float]

    build: Build
    workers: int
    _chunks: dict[float, Chunks] = field(default_factory=dict, init=False)  # for each delay

    def start(self, oracle: Oracle) -> None:
        """Let the workers build their oracles and kernels, by one call each, and wait for them."""
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
        """Return the index and the result of each task at one w, in any order."""
        raise NotImplementedError


def dumped(build: Any) -> bytes:
    """Return a function for `loaded`; classes of a script or notebook, and lambdas, by value."""
    import cloudpickle

    return bytes(cloudpickle.dumps(build))


def loaded(build: bytes) -> Any:
    """Return the function that `dumped` was given, in the process of a worker.

    Raises
    ------
    RunFailedError
        A module cannot be imported here, or lacks what is imported from it.
    """
    try:
        return pickle.loads(build)  # noqa: S301 - of the process that this one works for
    except SsvmBenchError:
        raise
    except Exception as error:  # imported modules may raise anything
        raise RunFailedError(
            f"A worker cannot load the oracle ({described(error)}). It needs the packages and the "
            "folders of --config-dir of the run; put the oracle's class into a module of theirs."
        ) from error


_lock = threading.Lock()
"""Kernels have scratch memory in the oracle, and a worker may have several threads."""


def call(oracle: Build, w: np.ndarray, *task: Any) -> Answer:
    """Make calls in the process of a worker; raise only errors that can be sent."""
    try:
        with _lock:
            return answer(oracle(), w, *task)
    except SsvmBenchError:
        raise
    except BaseException as error:  # some would end a worker of a cluster
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
        """Start the workers, and wait until their oracles are built."""
        self._w = SharedVector(oracle.inner_d)
        for _ in range(self.workers):
            child = Child(
                work,
                *(dumped(self.build), self._w.descriptor, oracle.inner_d, registry.folders()),
                variables=self.variables,
                descriptors=(self._w.descriptor,),
            )
            self._children.append(child)
        self._numbers = {child: k for k, child in enumerate(self._children, 1)}
        super().start(oracle)

    def close(self) -> None:
        """End the workers at once, even in the middle of a call."""
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
        """Continue without a worker that has died, if there are others."""
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
    """A vector of float64 that a process and its children share, in anonymous memory.

    The memory is freed when the last process that has it ends, in whatever way.

    Attributes
    ----------
    descriptor : int
        File descriptor that children inherit, and attach to.
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
        """Close the descriptor; the memory is freed with the last array on it."""
        os.close(self.descriptor)


def attached(descriptor: int, size: int) -> np.ndarray:
    """Return the vector behind a descriptor."""
    return np.frombuffer(mmap.mmap(descriptor, 0), np.float64, size)


def work(
    connection: Connection, build: bytes, descriptor: int, size: int, folders: Sequence[Path]
) -> None:
    """Make the calls that come through a pipe until it is closed, in the process of a worker.

    Parameters
    ----------
    connection : Connection
    build : bytes
        The function that builds the oracle, `dumped`; it may be a component of the ``folders``.
    descriptor, size : int
        Descriptor of w, and its length.
    folders : sequence of Path
        Folders of further components.
    """
    registry.use(folders)
    oracle = functools.cache(lambda: loaded(build)())
    answer_calls(connection, functools.partial(call, oracle, attached(descriptor, size)))


# ---- a cluster --------------------------------------------------------------------------------


@dataclass(eq=False)
class Cluster(WorkerCaller):
    """The workers of a dask scheduler, on any machines.

    The scheduler gives the tasks of a worker that dies to another one. The scheduler must have
    ``workers`` of them at the start; batches are divided for that number.

    Attributes
    ----------
    address : str
        As ``tcp://host:port``.
    """

    overhead = 2e-3
    _attempts = 3

    address: str
    _client: Any = field(default=None, init=False)
    _about: tuple[Any, ...] = field(default=(), init=False)
    _sent: Any = field(default=None, init=False)

    def start(self, oracle: Oracle) -> None:
        """Connect to the scheduler, and let its workers build their oracles."""
        self._client = scheduler.connect(self.address, self.workers)
        modules = tuple(registry.digests().items())
        self._about, self._sent = (dumped(self.build), registry.folders(), modules), None
        super().start(oracle)

    def close(self) -> None:
        """Disconnect from the scheduler, which keeps running."""
        if self._client is not None:
            self._client.close(timeout=scheduler.SECONDS)
            self._client = None

    def _answers(self, w: np.ndarray, tasks: Sequence[Task]) -> Iterable[tuple[int, Answer]]:
        for attempt in range(1, self._attempts + 1):
            try:
                return enumerate(self._gathered(w, tasks))
            except (SsvmBenchError, EndedEarlyError):
                raise
            except Exception as error:  # for example, the last worker that had w has died
                self._sent = None
                self._find_workers()
                if attempt == self._attempts:
                    raise RunFailedError(
                        f"The workers of the dask scheduler at {self.address} could not call the "
                        f"oracle, in {attempt} attempts: {described(error)}"
                    ) from error
                logger.warning("Workers have been lost; their oracle calls are repeated.")
        raise AssertionError  # not reached

    def _gathered(self, w: np.ndarray, tasks: Sequence[Task]) -> list[Answer]:
        """Return the results of all tasks, if enough workers survive."""
        import distributed

        client, how = self._client, {"broadcast": True, "hash": False}
        if self._sent is None:  # all examples, if they are in no file
            (self._sent,) = client.scatter([self._about], timeout=_SENDING_SECONDS, **how)
        (shared,) = client.scatter([w], timeout=scheduler.SECONDS, **how)
        sent = self._sent, shared
        futures = [client.submit(call_there, *sent, *task, pure=False) for task in tasks]
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
                    "resumes from the last checkpoint."
                )


_POLL_SECONDS = 0.2  # waits are short, as signals do not end them

_SENDING_SECONDS = 60.0  # at most, for what builds the oracle


def call_there(about: tuple[Any, ...], w: np.ndarray, *task: Any) -> Answer:
    """Make calls in a process of the cluster, which keeps one oracle."""
    return call(functools.partial(_built, *about), w, *task)


_served: list[tuple[Any, ...]] = []
"""Folders and modules of the run that this process works for, as a worker of a scheduler."""


@functools.lru_cache(maxsize=1)
def _built(build: bytes, folders: tuple[Path, ...], modules: tuple[tuple[str, str], ...]) -> Oracle:
    """Build the oracle of a run, in a process that may have worked for others.

    Raises
    ------
    RunFailedError
        It cannot be loaded, or one of its modules is not that of the run.
    """
    if _served and _served[0] != (folders, modules):  # modules of the same names may be others
        registry.forget()
    _served[:] = [(folders, modules)]
    registry.use(folders)
    function, here = loaded(build), registry.digests()
    for name, digest in modules:
        if here.get(name, digest) != digest:
            raise RunFailedError(
                f"A worker has another file of the module {name} than the run. Give all machines "
                "the same files."
            )
    return function()
