"""One process at a time compiles kernels; the others find them in numba's disk cache.

Numba reports when it begins to compile a function that is neither in memory nor in the disk cache.
Only then does a process take a lock (`in_turn`).
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

from numba.core import event

from ssvm_bench.base import files, jit
from ssvm_bench.base.errors import shown

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE, LONGEST = 30.0, 120.0
"""Seconds to wait for another process: since its last sign of life, and in total."""

_NOTICE = 2.0  # seconds until a message says what takes so long


class _HeldError(BaseException):  # no component catches it
    """Another process compiles."""


class _Turn(event.Listener):
    """Takes the lock when this thread first compiles; gives a sign of life at every function."""

    def __init__(self, lock: Path | None, what: str) -> None:
        self._lock, self._what, self._thread = lock, what, threading.get_ident()
        self.held, self._begun, self._descriptor = ExitStack(), False, -1

    def on_start(self, event: Any) -> None:
        """Take the lock, or raise `_HeldError`."""
        if threading.get_ident() != self._thread:
            return
        if not self._begun:
            if self._lock is not None:
                with suppress(OSError):  # no lock is possible there: continue without
                    self._descriptor = self.held.enter_context(_locked(self._lock))
            kept = "up to a minute, once for such data; they are cached"
            lasts = "minutes, in each process" if jit.CACHE_FOLDER is None else kept
            text = f"Compiling {self._what}: {lasts} …"
            notice = threading.Timer(_NOTICE, copy_context().run, [logger.warning, text])
            self.held.callback(notice.cancel)
            notice.start()
            self._begun = True
        with suppress(OSError):
            os.utime(self._descriptor)

    def on_end(self, event: Any) -> None:
        """Keep the lock: this function is not cached yet, so others would compile it again."""


_EXAMPLES = {"independent": "single labels", "chain": "chains", "graph": "graphs"}
"""Structure → what has it, in a message."""


def kernels_for(structure: str, of: str = "") -> str:
    """Return the kernels for examples of a structure, in words."""
    return f"kernels{of} for {_EXAMPLES.get(structure, f'{structure} labels')}"


def in_turn(work: Callable[[], T], what: str = "kernels") -> T:
    """Call a function that may compile kernels, while no other process compiles; return its result.

    Numba reports when it begins to compile a function that is neither in memory nor in the disk
    cache. Only then does a process take the lock, a file in the cache's folder, and hold it until
    all its kernels are ready. A process that finds the lock taken leaves numba, waits, and starts
    over: most kernels are then in the cache. It gives up once the holder has begun no function for
    `PATIENCE` seconds, or after `LONGEST`. Then it compiles without the lock, which only costs
    time.

    Parameters
    ----------
    work : callable
        Called again if another process was compiling what it needs.
    what : str
        What is compiled, for a message if this takes longer than two seconds.
    """
    lock = None if jit.CACHE_ROOT is None else jit.CACHE_ROOT / ".warm-up.lock"
    deadline = time.monotonic() + LONGEST
    while True:
        turn = _Turn(lock, what)
        try:
            with turn.held, event.install_listener("numba:compile", turn):
                return work()
        except _HeldError:
            assert lock is not None
            if not _waited(lock, deadline):
                lock = None


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold a lock and yield its descriptor; raise `_HeldError` if another process holds it."""
    try:
        with files.locked(path, seconds=0) as descriptor:
            text = f"{os.getpid()} on {platform.node()}, since {time.strftime('%H:%M:%S')}"
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(), 0)
            yield descriptor
    except files.HeldError:
        raise _HeldError from None


def _waited(lock: Path, deadline: float) -> bool:
    """Wait until a lock is free or waiting is pointless; return whether the lock is free."""
    tell = time.monotonic() + _NOTICE
    with suppress(OSError):
        while time.monotonic() < deadline:
            with suppress(_HeldError), _locked(lock):
                return True
            if time.time() - lock.stat().st_mtime > PATIENCE:
                break
            if time.monotonic() > tell:
                tell = deadline
                holder = shown(lock.read_text(errors="replace"), 100)
                logger.warning("Waiting for what another process compiles: process %s.", holder)
            time.sleep(0.1)
    return False
