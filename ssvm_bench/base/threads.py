"""Threads that share one piece of work: calls at one w, whose results are added up in order.

Kernels release the interpreter's lock, so threads that do nothing but call kernels work at the same
time. A `Team` keeps its threads from one piece of work to the next. A piece of work is ``count``
items, which are taken in parts. Two functions do a part:

========  ==========================================================================
``call``  in any thread, in any order, several parts at a time
``add``   in any thread, but in the order of the parts, one part at a time
========  ==========================================================================

What ``add`` sums up has thus the same bits with any number of threads. It takes no turn of its own:
while one thread adds, the others call, so that P threads are P times as fast as long as adding
takes no more than 1/P of the time.

**Parts** get smaller towards the end, so that all threads end at about the same time. Each is a
fixed share of what is left for a thread (guided self-scheduling: C. Polychronopoulos, D. Kuck,
IEEE Transactions on Computers, 1987), but not too short for what a part costs the interpreter. The
first part shows how long an item takes; if all of them are not worth the other threads, the thread
that asks does them alone.

The team of a thread (`current`) is one of its context: code below finds it without being handed it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from queue import SimpleQueue
from time import perf_counter
from typing import TypeAlias

from ssvm_bench.base.interrupts import deferred, end_if_urgent

Call: TypeAlias = Callable[[int, int, int], object]
"""Called with the number of the thread, from 0, and the first and the end of the items."""

Add: TypeAlias = Callable[[int, int], object]

_PARTS = 4
"""Parts in which a thread's share of the rest would be done."""

_LEAST_SECONDS = 2e-4
"""Shortest part: the interpreter takes about a tenth of that to call a kernel."""

_LEAST_ITEM = 5e-5
"""Shortest item that Python begins: with shorter ones, threads wait for the interpreter."""

_FIRST = 16
"""The first part is this share of the share of a thread."""


def available() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def usual() -> int:
    """Return how many threads work where no number is given: one a core, or ``OMP_NUM_THREADS``.

    Of a list, as OpenMP reads it for nested regions, the first number counts.
    """
    most = available()
    with suppress(KeyError, ValueError):
        most = min(most, max(int(os.environ["OMP_NUM_THREADS"].split(",")[0]), 1))
    return most


class Team:
    """Some threads: the one that asks, and others that wait for work until the team is closed.

    The others are started when they are first needed. If the system allows fewer of them, fewer
    work.

    Attributes
    ----------
    size : int
        Number of threads, at most.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._queues: list[SimpleQueue[_Work | None]] = []

    def share(self, count: int, call: Call, add: Add | None = None, by_item: bool = False) -> float:
        """Do some items; return the seconds that ``call`` took, summed over the threads.

        Parameters
        ----------
        count : int
        call, add : callable
            See the module's docstring.
        by_item : bool
            Whether ``call`` calls a kernel for each item, and not one for all of its items.

        Raises
        ------
        Exception
            What a part has raised; of several, what the first part in order has. Then no part
            begins any more, and those that have begun are ended.
        """
        if self.size == 1:
            start = perf_counter()
            call(0, 0, count)
            seconds = perf_counter() - start
            if add is not None:
                add(0, count)
            return seconds
        work = _Work(count, self.size, call, add)
        with deferred(), ALONE.working():  # no signal leaves a part unfinished
            work.do_part(0)
            if work.pays(by_item):
                if not self._queues:
                    self._start()
                for queue in self._queues:
                    queue.put(work)
            work.take_part(0)
            work.ended.wait()
        if work.errors:
            raise work.errors[min(work.errors)]
        return work.seconds

    def close(self) -> None:
        """Let the other threads end."""
        for queue in self._queues:
            queue.put(None)
        self._queues = []

    def __enter__(self) -> Team:
        """Return the team, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Let the team be the current one of this thread in the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def _start(self) -> None:
        for number in range(1, self.size):
            queue: SimpleQueue[_Work | None] = SimpleQueue()
            thread = threading.Thread(target=_serve, args=(queue, number), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the limit of the user, or of the container, is reached
                return
            self._queues.append(queue)


ALONE = Team(1)
"""The team of a thread that works alone."""

_current: ContextVar[Team] = ContextVar("team", default=ALONE)


def current() -> Team:
    """Return the team that works for this thread now."""
    return _current.get()


def _serve(queue: SimpleQueue[_Work | None], number: int) -> None:
    """Take part in every piece of work that comes, as a thread of a team."""
    while (work := queue.get()) is not None:
        work.take_part(number)
        del work  # and its arrays, while this thread waits


class _Work:
    """A piece of work, as its threads see it; ``_lock`` guards all that they change.

    Attributes
    ----------
    errors : dict of int to BaseException
        Number of a part → what it has raised.
    ended : threading.Event
        No part is left, and none is being done.
    seconds : float
        Time that ``call`` took so far, summed over the threads.
    """

    def __init__(self, count: int, size: int, call: Call, add: Add | None) -> None:
        self._count, self._size, self._call, self._add = count, size, call, add
        self._lock = threading.Lock()
        self._parts: list[tuple[int, int]] = []  # that have begun, in order
        self._called: list[bool] = []
        self._taken = self._added = self._busy = 0
        self._adding = False
        self._least = 1
        self.errors: dict[int, BaseException] = {}
        self.ended = threading.Event()
        self.seconds = 0.0

    def pays(self, by_item: bool) -> bool:
        """Tell whether what is left after the first part is worth other threads; size the parts."""
        each = max(self.seconds / max(self._taken, 1), 1e-9)
        self._least = max(int(_LEAST_SECONDS / each), 1)
        pays = (self._count - self._taken) * each > 2 * _LEAST_SECONDS
        if not pays or (by_item and each < _LEAST_ITEM):
            self._least = self._count  # one thread does the rest in one part
            return False
        return True

    def take_part(self, number: int) -> None:
        """Do parts until none is left, in one of the threads."""
        while self.do_part(number):
            pass

    def do_part(self, number: int) -> bool:
        """Do the next part; return whether there was one."""
        part = self._begin()
        if part is None:
            return False
        start = perf_counter()
        error = _raised(lambda: self._call(number, *self._parts[part]))
        seconds = perf_counter() - start
        with self._lock:
            self.seconds += seconds
            self._called[part] = True
            if error is not None:
                self.errors[part] = error
            adds = not self._adding and self._adds()
            self._adding |= adds
        while adds:
            adds = self._add_next()
        with self._lock:
            self._busy -= 1
            self._look()
        return True

    def _begin(self) -> int | None:
        """Take the next part; return its number, or None if there is no other one."""
        with self._lock:
            left = self._count - self._taken
            if left == 0 or self.errors:
                self._look()
                return None
            share = left // (self._size * (_PARTS if self._parts else _FIRST))
            items = min(max(share, self._least), left)
            self._parts.append((self._taken, self._taken + items))
            self._called.append(False)
            self._taken += items
            self._busy += 1
            return len(self._parts) - 1

    def _adds(self) -> bool:
        """Tell whether there is a part to add now: the next one, and no error came before it."""
        k = self._added
        return k < len(self._parts) and self._called[k] and all(k < part for part in self.errors)

    def _add_next(self) -> bool:
        """Add a part, in the thread whose turn it is; return whether it has another one to add."""
        part, add = self._added, self._add
        error = None if add is None else _raised(lambda: add(*self._parts[part]))
        with self._lock:
            if error is not None:
                self.errors[part] = error
            self._added += 1
            self._adding = self._adds()
            return self._adding

    def _look(self) -> None:
        """Note it if the work has ended."""
        if self._busy == 0 and (self.errors or self._taken == self._count):
            self.ended.set()


def _raised(step: Callable[[], object]) -> BaseException | None:
    """Return what a step raises, to be raised again in the thread that asked; None: nothing."""
    try:
        end_if_urgent()
        step()
    except BaseException as error:
        return error
    return None
