"""Ctrl-C, SIGTERM and SIGHUP: they end the program at once, or a run after its iteration.

A handler never raises: an exception that appears between any two steps of an interpreter is lost
in a library, or leaves compiled code half done. There are two states.

* Where nothing is lost that the next call would not make again (start, loading, compiling,
  drawing), the first signal ends the process with one message. Whatever was being written has a
  temporary name then, as after ``kill -9``, and children end with their parent.
* In a `deferred` block, signals are counted. With one, a run ends after its iteration and the
  evaluation; with more, it ends where it gets control next: after the compiled pass, or at the
  next `end_if_urgent` between two calls of an oracle in Python.

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
"""What queueing systems send to all processes of a job: one of them answers for its children."""

EXIT_STATUS = 1
"""Of a program that a signal ended."""

Item = TypeVar("Item")

_exit = os._exit
_SHOW_CURSOR = "\x1b[?25h"  # a live line or a bar may have hidden it


class EndedEarlyError(Exception):
    """Raised by `end_if_urgent`: the iteration is given up."""


@dataclass
class Arrived:
    """Signals that came in a `deferred` block.

    Attributes
    ----------
    count : int
        How many.
    last : int
        The number of the last one.
    answered : bool
        To be set by the block if it ends because of them.
    """

    count: int = 0
    last: int = 0
    answered: bool = False


_current: Arrived | None = None


def end_at_signals(message: str = "") -> None:
    """Let a signal end the process at once, with a message on stderr, from now on."""

    def handle(number: int, frame: FrameType | None) -> None:
        shown = _SHOW_CURSOR * os.isatty(2) + (f"{message}\n" if message else "")
        with suppress(OSError):
            if shown and select.select([], [2], [], 0)[1]:  # else its reader has stopped
                os.write(2, shown.encode())
        _exit(EXIT_STATUS)

    _handle(handle)


def refuse_exit() -> None:
    """Let ``os._exit`` and ``os.exec…`` raise `SystemExit` here, not in forks, from now on.

    A component that ended the process by them would leave no message, and the exit status of
    success.
    """
    process = os.getpid()

    def refusing(name: str, leave: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        def refuse(*arguments: Any) -> NoReturn:
            if os.getpid() != process:
                leave(*arguments)
            raise SystemExit(f"os.{name}({arguments[0]!r}) was called, which ends nothing here")

        return refuse

    for name in ("_exit", "execv", "execve"):  # of which all others are made
        refuse = refusing(name, getattr(posix, name))
        setattr(os, name, refuse)
        setattr(posix, name, refuse)


def ignore_signals(numbers: Iterable[int] = SIGNALS) -> None:
    """Let nothing disturb the last steps of the process, which are short; or be deaf to some."""
    _handle(signal.SIG_IGN, numbers)


@contextmanager
def deferred() -> Iterator[Arrived]:
    """Count the signals of the block; at its end, act on those that it has not answered.

    A block inside another one counts with it. Outside the main thread, where no signal comes,
    nothing is counted.
    """
    global _current
    if _current is not None or threading.current_thread() is not threading.main_thread():
        yield _current or Arrived()
        return
    _current = arrived = Arrived()

    def handle(number: int, frame: FrameType | None) -> None:
        arrived.count += 1
        arrived.last = number

    previous = _handle(handle)
    try:
        yield arrived
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _current = None
        if arrived.count and not arrived.answered:
            signal.raise_signal(arrived.last)


def end_if_urgent() -> None:
    """Raise `EndedEarlyError` if the run is to end at once; for loops over slow Python calls."""
    if _current is not None and _current.count > 1:
        raise EndedEarlyError


def interruptible(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, between which `end_if_urgent` is asked."""
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
