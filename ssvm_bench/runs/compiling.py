"""One process at a time compiles kernels; the others load them from the disk cache.

Numba reports when it begins to compile a function that is neither in memory nor in the disk cache.
Only then does a process take the lock, a file in the cache's folder, and hold it until all its
kernels are ready. A process that finds the lock taken leaves numba, waits, and starts over: most
kernels are then in the cache. It gives up once the holder has begun no function for `PATIENCE`
seconds, or after `LONGEST`. Then it compiles without the lock, which only costs time.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any

from numba.core import event

from ssvm_bench.base import jit
from ssvm_bench.base.errors import shown

logger = logging.getLogger(__name__)

PATIENCE, LONGEST = 30.0, 120.0
"""Seconds to wait for another process: since its last sign of life, and in total."""

_NOTICE = 2.0  # seconds until the user is told what takes so long


class _HeldError(BaseException):  # no component catches it
    """Another process compiles."""


class _Turn(event.Listener):
    """Takes the lock when this thread first compiles; gives a sign of life at every function."""

    def __init__(self, lock: Path | None) -> None:
        self._lock, self._thread = lock, threading.get_ident()
        self.held, self._begun, self._descriptor = ExitStack(), False, -1

    def on_start(self, event: Any) -> None:
        """Take the lock, or raise `_HeldError`."""
        if threading.get_ident() != self._thread:
            return
        if not self._begun:
            if self._lock is not None:
                with suppress(OSError):  # no lock is possible there: go on without
                    self._descriptor = self.held.enter_context(_locked(self._lock))
            text = "Compiling, once on this machine …"
            notice = threading.Timer(_NOTICE, copy_context().run, [logger.info, text])
            self.held.callback(notice.cancel)
            notice.start()
            self._begun = True
        with suppress(OSError):
            os.utime(self._descriptor)

    def on_end(self, event: Any) -> None:
        """Keep the lock: this function is not cached yet, so others would compile it again."""


def in_turn(work: Callable[[], None]) -> None:
    """Call a function that may compile kernels, while no other process compiles.

    Parameters
    ----------
    work : callable
        Called again if another process was compiling what it needs.
    """
    lock = None if jit.CACHE_ROOT is None else jit.CACHE_ROOT / ".warm-up.lock"
    deadline = time.monotonic() + LONGEST
    while True:
        turn = _Turn(lock)
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
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = f"{os.getpid()} on {platform.node()}, since {time.strftime('%H:%M:%S')}"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
        yield descriptor
    except BlockingIOError:
        raise _HeldError from None
    finally:
        os.close(descriptor)


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
                logger.info("Waiting for what another process compiles: process %s.", holder)
            time.sleep(0.1)
    return False
