"""One process at a time compiles: what it compiles, the others load.

Numba says when it begins to compile a function that is neither in memory nor in the disk cache.
Only then a process takes the lock, which lies in the folder of the cache, until all its kernels are
there. One that finds the lock taken waits, outside of numba, and begins anew: then most of them are
in the cache. It waits for `PATIENCE` since the other one has last begun to compile a function, and
never over `LONGEST`; then it compiles alone, which costs time only.
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
"""Seconds to wait for another process: since its last sign of life, and in all."""

_NOTICE = 2.0  # seconds after which a user hears what takes so long


class _HeldError(BaseException):  # which no component catches
    """Another process compiles."""


class _Turn(event.Listener):
    """Takes the lock when this thread begins to compile, and gives a sign of life each time."""

    def __init__(self, lock: Path | None) -> None:
        self._lock, self._thread = lock, threading.get_ident()
        self.held, self._begun, self._descriptor = ExitStack(), False, -1

    def on_start(self, event: Any) -> None:
        """Take the lock, or raise `_HeldError`."""
        if threading.get_ident() != self._thread:
            return
        if not self._begun:
            if self._lock is not None:
                with suppress(OSError):  # no lock can be had there: then without
                    self._descriptor = self.held.enter_context(_locked(self._lock))
            text = "Compiling, once on this machine …"
            notice = threading.Timer(_NOTICE, copy_context().run, [logger.info, text])
            self.held.callback(notice.cancel)
            notice.start()
            self._begun = True
        with suppress(OSError):
            os.utime(self._descriptor)

    def on_end(self, event: Any) -> None:
        """Do nothing: a function that is not in the cache yet would be compiled again."""


def in_turn(work: Callable[[], None]) -> None:
    """Do what may compile functions, while no other process does so.

    Parameters
    ----------
    work : callable
        Is called again if another process was compiling what it needs.
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
    """Hold a lock in the block, which gets its descriptor; raise `_HeldError` if another does."""
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
    """Wait until a lock is free; return whether it is."""
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
