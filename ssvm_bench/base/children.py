"""Child processes of this program, which work for their parent and end with it.

A child is started, never forked: a new interpreter calls a function of this package with one end
of a connection. It has a session of its own, so that signals of the terminal do not reach it: its
parent decides what Ctrl-C means. It ends when its work is done, when the connection is closed
while it waits for work, and when its parent dies in any way, ``kill -9`` included. Then a pipe is
closed whose other end only the parent holds, and the child sends itself a SIGTERM
(:mod:`ssvm_bench.base.interrupts`): a run keeps the rows that it has, all else ends at once.

Semaphores, named shared memory and trackers of them are not used, because they could stay behind.
"""

from __future__ import annotations

import functools
import os
import pickle  # noqa: S403 - messages between our own processes
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

from ssvm_bench.base import interrupts, messages

PROGRAM = """import sys
sys.path[:] = {path!r}
from ssvm_bench.base.children import serve
serve({lifeline}, {descriptor})"""
"""What a child executes."""

_POLL_SECONDS = 0.2  # a signal does not interrupt a wait


class DiedError(Exception):
    """A child has ended in the middle of its work; the message says how."""


class Child:
    """A process that calls a function with a connection to this one.

    Parameters
    ----------
    work : callable
        Function of a module, called as ``work(connection, *arguments)``.
    arguments
        Further arguments of ``work``.
    variables : mapping of str to str
        Environment variables of the process.
    descriptors : tuple of int
        Open files that the child inherits, under the same numbers.
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
            The child has ended.
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
        """End the process: at once with ``now``, else when it waits for work."""
        self.connection.close()
        if now:
            self.process.kill()
        self.process.wait()


def hand_out(
    children: list[Child],
    tasks: Sequence[Any],
    lost: Callable[[Child, DiedError], object] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Give each task to a child when it is free; yield a task's index and result as they arrive.

    Parameters
    ----------
    children : list of Child
        Each sends a result for every task, as by `answer_calls`. One that dies is removed.
    tasks : sequence
        What is sent to the children.
    lost : callable, optional
        Called with a child that has died, and the error. If it raises nothing, another child does
        the task. By default, the error is raised.

    Raises
    ------
    DiedError
        A child has died.
    Exception
        A child has sent this exception as its result. Other children may still be busy then.
    """
    waiting, busy = list(range(len(tasks)))[::-1], dict[Child, int]()
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.connection, selectors.EVENT_READ, child)
        while waiting or busy:
            for child in [one for one in children if one not in busy][: len(waiting)]:
                busy[child] = waiting.pop()
                with suppress(DiedError):  # then `receive` raises it below
                    child.send(tasks[busy[child]])
            for key, _ in selector.select(_POLL_SECONDS):
                child = key.data
                try:
                    answer = child.receive()
                except DiedError as error:
                    selector.unregister(child.connection)
                    children.remove(child)
                    child.end(now=True)
                    if lost is None:
                        raise
                    lost(child, error)
                    waiting += [busy.pop(child)] if child in busy else []
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                yield busy.pop(child), answer
            interrupts.end_if_urgent()


def map_in_order(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], count: int
) -> Iterator[Any]:
    """Call a function of a module with each tuple of arguments, in several children at once.

    Yields
    ------
    Any
        The results, in order. Errors are those of `hand_out`.
    """
    children = [Child(answer_calls, function) for _ in range(min(count, len(calls)))]
    answers, done = hand_out(children, calls), dict[int, Any]()
    try:
        for k in range(len(calls)):
            while k not in done:
                number, answer = next(answers)
                done[number] = answer
            yield done.pop(k)
    finally:
        for child in children:
            child.end(now=True)


@functools.cache
def _lifeline() -> int:
    """Return the read end of a pipe whose write end only this process ever holds."""
    return os.pipe()[0]


# ---- in the child -----------------------------------------------------------------------------


def serve(lifeline: int, descriptor: int) -> None:
    """Do the work received through a connection, for as long as the parent lives."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # in case that an ancestor ignores it
    interrupts.end_at_signals()
    interrupts.ignore_signals(interrupts.OF_QUEUES)
    interrupts.refuse_exit()
    messages.protect()
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    connection = Connection(descriptor)
    try:
        work, arguments = connection.recv()
        work(connection, *arguments)
    except (EOFError, ConnectionError):  # the parent has closed the connection, or died
        pass


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # returns when the parent has died
    interrupts.end_main_thread()


def answer_calls(connection: Connection, function: Callable[..., Any]) -> None:
    """Send the result of every call, or what it raised, until the connection is closed."""
    while True:
        arguments = connection.recv()
        try:
            answer = pickle.dumps(function(*arguments))
        except BaseException as error:  # our errors have only a message, and can be pickled
            answer = pickle.dumps(error)
        connection.send_bytes(answer)
