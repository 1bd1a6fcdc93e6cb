"""Ctrl-C, SIGTERM and SIGHUP: they end the program at once, or a run after its iteration.

A handler never raises: an exception between two arbitrary steps of the interpreter could get lost
in a library, or leave compiled code unfinished. There are two states.

* During work that the next call can repeat (start, loading, compiling, drawing), the first signal
  ends the process with one message. Files being written have a temporary name then, as after
  ``kill -9``, and children end with their parent.
* In a `deferred` block, signals are counted. At the first one, the program says at once what
  happens next; its children are silent. After one signal, a run ends after its iteration and the
  evaluation, or after the evaluation that is being made. After more, it ends as soon as it has
  control: after the compiled pass, or at the next `end_if_urgent` between two calls of an oracle
  in Python.

Signals that are ignored (``nohup``) stay ignored.
"""

from __future__ import annotations

import os
import posix
import select
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn, TypeVar

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

OF_TERMINAL = (signal.SIGINT,)

OF_QUEUES = (signal.SIGUSR1, signal.SIGUSR2)
"""Sent by queueing systems to all processes of a job: children ignore them, the parent reacts."""

EXIT_STATUS = 1
"""Exit status of a program that a signal has ended."""

Item = TypeVar("Item")

_exit = os._exit
_last_steps: list[tuple[int, Callable[[], object]]] = []
_SHOW_CURSOR = "\x1b[?25h"  # a live line or a bar may have hidden it


class EndedEarlyError(Exception):
    """Raised by `end_if_urgent`: the iteration is abandoned."""


@dataclass
class Arrived:
    """Signals that came in a `deferred` block.

    Attributes
    ----------
    count : int
        Their number.
    last : int
        The number of the last one.
    answered : bool
        To be set by the block if it ends because of them.
    """

    count: int = 0
    last: int = 0
    answered: bool = False


_current: Arrived | None = None


_speaks = False
"""Whether this process says what a signal does: the program does, its children do not."""


def end_at_signals(message: str = "") -> None:
    """From now on, let a signal end the process at once, with a message on stderr.

    A process without a message is silent in a `deferred` block, too.
    """
    global _speaks
    _speaks = bool(message)

    def handle(number: int, frame: FrameType | None) -> None:
        _write(_SHOW_CURSOR * os.isatty(2) + (f"{message}\n" if message else ""))
        for process, step in _last_steps:
            if process == os.getpid():
                with suppress(Exception):
                    step()
        _exit(EXIT_STATUS)

    _handle(handle)


def _write(text: str) -> None:
    """Write a text to stderr from a handler: whole, or not at all if its reader has stopped."""
    with suppress(OSError):
        if text and select.select([], [2], [], 0)[1]:
            os.write(2, text.encode())


def before_exit(step: Callable[[], object]) -> None:
    """Call a short function before a signal ends this process; its forks do not call it."""
    _last_steps.append((os.getpid(), step))


def refuse_exit() -> None:
    """From now on, let ``os._exit`` and ``os.exec…`` raise `SystemExit` here, but not in forks.

    If a component ended the process with them, there would be no message, and the exit status
    would be that of success.
    """
    process = os.getpid()

    def refusing(name: str, leave: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        def refuse(*arguments: Any) -> NoReturn:
            if os.getpid() != process:
                leave(*arguments)
            raise SystemExit(f"os.{name}({arguments[0]!r}) was called, which ends nothing here")

        return refuse

    for name in ("_exit", "execv", "execve"):  # all others call these
        refuse = refusing(name, getattr(posix, name))
        setattr(os, name, refuse)
        setattr(posix, name, refuse)


def ignore_signals(numbers: Iterable[int] = SIGNALS) -> None:
    """Ignore some signals from now on; by default all, for the short last steps of the process."""
    _handle(signal.SIG_IGN, numbers)


@contextmanager
def deferred(said: str = "") -> Iterator[Arrived]:
    """Count the signals in the block; at its end, raise the last again unless it was answered.

    ``said`` is written to stderr at the first signal, on a line of its own: on a terminal, ``^C``
    or a live line may be before it. A block inside another one shares its count. Outside the main
    thread, which receives no signals, nothing is counted.
    """
    global _current
    if _current is not None or threading.current_thread() is not threading.main_thread():
        yield _current or Arrived()
        return
    _current = arrived = Arrived()

    def handle(number: int, frame: FrameType | None) -> None:
        arrived.count += 1
        arrived.last = number
        if arrived.count == 1 and said and _speaks:
            _write("\n" * os.isatty(2) + f"{said}\n")

    previous = _handle(handle)
    try:
        yield arrived
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _current = None
        if arrived.count and not arrived.answered:
            signal.raise_signal(arrived.last)


def end_main_thread() -> None:
    """Send SIGTERM to the main thread; only once, however many threads find a reason to.

    A second signal would mean that the run is to end at once, without a checkpoint.
    """
    if _ended.acquire(blocking=False):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)  # type: ignore[arg-type]


_ended = threading.Lock()


def end_if_urgent() -> None:
    """Raise `EndedEarlyError` if the run is to end at once; for loops over slow Python calls."""
    if _current is not None and _current.count > 1:
        raise EndedEarlyError


def interruptible(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, with a call of `end_if_urgent` before each."""
    for item in items:
        end_if_urgent()
        yield item


def _handle(handler: Any, numbers: Iterable[int] = SIGNALS) -> dict[int, Any]:
    """Set the handler of signals that are not ignored; return the previous ones."""
    return {
        number: signal.signal(number, handler)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }
