"""Processes of this program that work for another one, and end with it.

A child is started, never forked: a new interpreter calls a function of this package with one end
of a connection. It is in a session of its own, so that it hears nothing of the terminal: whoever
started it decides what Ctrl-C means. It ends when its work is done, when the connection is closed
while it waits for work, and when its parent dies in any way, ``kill -9`` included: the other end
of a pipe that only the parent holds is closed then. That is a SIGTERM to itself
(:mod:`ssvm_bench.base.interrupts`): a run keeps the rows that it has, all else ends at once.

There are neither semaphores, named shared memory nor trackers of them, which could stay behind.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from ssvm_bench.base import interrupts, outputs

PROGRAM = """import sys
sys.path[:] = {path!r}
from ssvm_bench.base.children import serve
serve({lifeline}, {descriptor})"""
"""What a child executes."""


class DiedError(Exception):
    """A child has ended in the middle of its work; the message says how."""


class Child:
    """A process that calls a function with a connection to this one.

    Parameters
    ----------
    work : callable
        Function of a module, called as ``work(connection, *arguments)``.
    arguments
        For it.
    variables : mapping of str to str
        Environment variables of the process.
    descriptors : tuple of int
        Open files that it has, too, under the same numbers.
    """

    def __init__(
        self,
        work: Callable[..., None],
        *arguments: Any,
        variables: Mapping[str, str] | None = None,
        descriptors: tuple[int, ...] = (),
    ) -> None:
        self.connection, theirs = Pipe()
        lifeline, own = _lifeline(), theirs.fileno()
        program = PROGRAM.format(path=sys.path, lifeline=lifeline, descriptor=own)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **(variables or {})},
            pass_fds=(lifeline, own, *descriptors),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.send((work, arguments))

    def receive(self) -> Any:
        """Return what the child has sent.

        Raises
        ------
        DiedError
            It has ended.
        """
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise DiedError(self._end()) from None

    def send(self, what: Any) -> None:
        """Send something to the child. Raises as `receive` does."""
        try:
            self.connection.send(what)
        except OSError:
            raise DiedError(self._end()) from None

    def _end(self) -> str:
        status = self.process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"

    def end(self, now: bool) -> None:
        """End the process: at once, or when it has nothing to do."""
        self.connection.close()
        if now:
            self.process.kill()
        self.process.wait()


def map_in_order(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], count: int
) -> Iterator[Any]:
    """Call a function of a module with each tuple of arguments, by several children at once.

    Yields
    ------
    Any
        The results, in order.

    Raises
    ------
    DiedError
        A child has ended.
    """
    children = [Child(_answer, function) for _ in range(min(count, len(calls)))]
    numbers: dict[Child, int] = {}
    done: dict[int, Any] = {}
    begun = 0
    try:
        for k in range(len(calls)):
            while k not in done:
                for child in children:
                    if child not in numbers and begun < len(calls):
                        child.send(calls[begun])
                        numbers[child], begun = begun, begun + 1
                ready = wait([child.connection for child in numbers])
                for child in [child for child in numbers if child.connection in ready]:
                    result, error = child.receive()
                    if error is not None:
                        raise error
                    done[numbers.pop(child)] = result
            yield done.pop(k)
    finally:
        for child in children:
            child.end(now=True)


@functools.cache
def _lifeline() -> int:
    """Return the end to read of a pipe whose other end nobody but this process ever has."""
    return os.pipe()[0]


# ---- in the child -----------------------------------------------------------------------------


def serve(lifeline: int, descriptor: int) -> None:
    """Do what comes through a connection, no longer than the parent lives."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # in case that somebody up there ignores it
    interrupts.end_at_signals()
    interrupts.ignore_signals(interrupts.OF_QUEUES)
    outputs.protect()
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    connection = Connection(descriptor)
    try:
        work, arguments = connection.recv()
        work(connection, *arguments)
    except (EOFError, ConnectionError):  # there is nobody to work for
        pass


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # returns when the parent has died
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)  # type: ignore[arg-type]


def _answer(connection: Connection, function: Callable[..., Any]) -> None:
    """Send the result of every call, or what it raised."""
    while True:
        arguments = connection.recv()
        try:
            answer = pickle.dumps((function(*arguments), None))
        except BaseException as error:  # ours, which are made of their message
            answer = pickle.dumps((None, error))
        connection.send_bytes(answer)
