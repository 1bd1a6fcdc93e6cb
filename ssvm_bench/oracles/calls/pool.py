"""Calls by several processes on this machine.

A worker is a child (:mod:`ssvm_bench.base.children`) that builds the dataset's oracle once, and
then answers: it is told terms, finds their labelings at the w in shared memory, and sends them
back. That w is written once for a batch, before the first of its messages, and not again until the
last answer is there.

Terms are handed out as workers get free, so that nobody waits for a slow call but at the end of a
batch; how many at a time, :mod:`~ssvm_bench.oracles.calls.chunks` decides. A
worker that dies is not replaced: the others make its calls again.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from ssvm_bench.base.children import Child, DiedError
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, described
from ssvm_bench.base.interrupts import checkpoint
from ssvm_bench.config import plug_ins
from ssvm_bench.oracles.calls.caller import Answer, Caller, Oracle, answer
from ssvm_bench.oracles.calls.chunks import Chunks
from ssvm_bench.oracles.calls.shared import SharedVector, attached

Build = Callable[[], Oracle]

MESSAGE_SECONDS = 2e-4
"""What a message costs, with its answer."""

_POLL_SECONDS = 0.2  # a signal does not end a wait


class Pool(Caller):
    """Workers on this machine.

    Parameters
    ----------
    build : callable
        Returns the oracle in a worker: a function of a module, or a `functools.partial` of one.
    workers : int
    batch, delay
        As for `Caller`.
    variables : mapping of str to str
        Environment variables of the workers.
    """

    def __init__(
        self,
        build: Build,
        workers: int,
        batch: int = 1,
        delay: float = 0.0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(batch, delay)
        self.build, self.workers, self.variables = build, workers, dict(variables or {})
        self._children: dict[Child, str] = {}
        self._w: SharedVector | None = None
        self._chunks: dict[float, Chunks] = {}  # for each delay

    def start(self, oracle: Oracle, say: Callable[[str], object]) -> None:
        """Start the workers, and wait until their oracles are there."""
        self._say = say
        self._w = SharedVector(oracle.inner_d)
        self._selector = selectors.DefaultSelector()
        about = self._w.descriptor, oracle.inner_d, plug_ins.folders()
        with self._ended_on_failure():
            for number in range(self.workers):
                child = Child(
                    work, *about, variables=self.variables, descriptors=(self._w.descriptor,)
                )
                self._children[child] = f"Worker {number + 1} of {self.workers}"
                self._selector.register(child.connection, selectors.EVENT_READ, child)
            waiting = {child for child in list(self._children) if self._sent(child, self.build)}
            while waiting:
                for child in self._ready():
                    self._received(child)
                    waiting.discard(child)

    def close(self) -> None:
        """End the workers, whatever they do."""
        if self._w is None:
            return
        for child in self._children:
            child.end(now=True)
        self._children = {}
        self._selector.close()
        self._w.close()
        self._w = None

    def _ask(
        self, oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float, delay: float
    ) -> Answer:
        if self._w is None:
            raise RunFailedError("The workers that call the oracle have not been started.")
        self._w.values[:] = w
        chunks = self._chunks.setdefault(delay, Chunks(self.workers, MESSAGE_SECONDS))
        waiting = chunks.parts(terms.size)[::-1]
        labelings: list[np.ndarray | None] = [None] * terms.size
        busy: dict[Child, slice] = {}
        seconds = 0.0
        with self._ended_on_failure():
            while waiting or busy:
                for child in [one for one in self._children if one not in busy][: len(waiting)]:
                    part = waiting.pop()
                    if self._sent(child, (terms[part], loss, delay)):
                        busy[child] = part
                    else:
                        waiting.append(part)
                for child in self._ready() if busy else ():
                    found = self._received(child)
                    if found is not None:
                        part = busy.pop(child)
                        labelings[part], took = found
                        chunks.learn(len(found[0]), took)
                        seconds += took
                    elif child in busy:  # not so if it died while it had nothing to do
                        waiting.append(busy.pop(child))
        return labelings, seconds  # type: ignore[return-value]

    def _ready(self) -> list[Child]:
        """Return the workers that have sent something, or have died; wait for one."""
        while not (found := self._selector.select(_POLL_SECONDS)):
            checkpoint()
        return [key.data for key, _ in found]

    def _sent(self, child: Child, message: object) -> bool:
        """Send a message; return False if the worker has died."""
        try:
            child.send(message)
        except DiedError as error:
            self._lose(child, str(error))
            return False
        return True

    def _received(self, child: Child) -> Answer | None:
        """Return what a worker has sent; None if it has died."""
        try:
            found = child.receive()
        except DiedError as error:
            self._lose(child, str(error))
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def _lose(self, child: Child, how: str) -> None:
        """Go on without a worker, if there are others."""
        self._selector.unregister(child.connection)
        name = self._children.pop(child)
        child.end(now=True)
        if not self._children:
            raise RunFailedError(
                f"None of the {self.workers} workers that call the oracle is left; the last one "
                f"has ended by {how}. Try fewer of them, with parallel.workers, if memory ran out"
            )
        self._say(f"{name} has ended ({how}). The others make its oracle calls again.")

    @contextmanager
    def _ended_on_failure(self) -> Iterator[None]:
        """Leave no workers behind a block that fails: some may still be calling."""
        try:
            yield
        except BaseException:
            self.close()
            raise


# ---- in the worker's process ------------------------------------------------------------------


def work(connection: Connection, descriptor: int, size: int, folders: Sequence[Path]) -> None:
    """Build an oracle, and answer what comes through a pipe until it is closed.

    Parameters
    ----------
    connection : Connection
        Where it comes from; first the function that builds the oracle.
    descriptor, size : int
        Where w is, and its length.
    folders : sequence of Path
        Where components are besides.
    """
    plug_ins.use(tuple(folders))
    try:
        oracle, w = connection.recv()(), attached(descriptor, size)
        nothing = answer(oracle, w, np.zeros(1, np.int64), 1.0, 0.0)  # its kernels are loaded
    except Exception as error:
        connection.send(as_ours(error))
        return
    connection.send(nothing)
    while True:
        terms, loss, delay = connection.recv()
        try:
            found: object = answer(oracle, w, terms, loss, delay)
        except Exception as error:
            found = as_ours(error)
        connection.send(found)


def as_ours(error: Exception) -> SsvmBenchError:
    """Return an error that can be sent."""
    return error if isinstance(error, SsvmBenchError) else RunFailedError(described(error))
