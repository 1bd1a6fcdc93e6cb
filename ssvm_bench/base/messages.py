"""What the program says: its log messages, and standard output and error that never raise.

Each module logs to the logger of its name, below ``ssvm_bench``. The command line shows messages on
stderr; a run shows them in its display (:mod:`ssvm_bench.runs.terminal`). A Python program sees
warnings on stderr, and what takes long for no visible reason is one. It sees the other messages if
it enables logging as for any library: ``logging.basicConfig(level="INFO")``.

Status goes to stderr. Text is dropped if stderr is closed (``2>&-``), full (``2>/dev/full``, a disk
of logs) or without a reader. Results go to stdout; if some are lost, because it is full or closed,
this is reported at the end, with exit status 1. Characters that the encoding lacks are escaped. An
exception that cannot be caught is reported in one line.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ssvm_bench.base.errors import described, readable

_LOGGER = logging.getLogger("ssvm_bench")
_show: ContextVar[Callable[[str], object] | None] = ContextVar("show", default=None)
_lowest: ContextVar[int] = ContextVar("lowest", default=logging.INFO)


def show_details() -> None:
    """Show debug messages, too, until the block of `shown_by` ends (``-v``)."""
    _lowest.set(logging.DEBUG)
    _LOGGER.setLevel(logging.DEBUG)


class _Handler(logging.Handler):
    """Passes messages to the function that shows them in this context; else warnings to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        show = _show.get()
        if show is None and record.levelno >= logging.WARNING:
            show = to_stderr
        if show is not None:
            show(record.getMessage())


_LOGGER.addHandler(_Handler())


@contextmanager
def shown_by(show: Callable[[str], object]) -> Iterator[None]:
    """Let a function show the messages of the block, instead of the one outside the block."""
    token, level, lowest = _show.set(show), _LOGGER.level, _lowest.get()
    _LOGGER.setLevel(_lowest.get())
    try:
        yield
    finally:
        _lowest.set(lowest)
        _LOGGER.setLevel(level)
        _show.reset(token)


def to_stderr(text: str) -> None:
    """Print a message to stderr, on one line."""
    print(readable(text), file=sys.stderr, flush=True)


# ---- standard output and error -------------------------------------------------------------------


class _Raw(io.FileIO):
    """A file descriptor that drops what cannot be written, and keeps the first error."""

    lost: OSError | None = None
    closed_before = False
    """Whether the descriptor was closed when the process was started."""

    def write(self, data: Any) -> int:
        """Write all data; return its size, as if all were written, also after an error."""
        content = memoryview(data).cast("B")
        done = 0
        try:
            if self.closed_before:
                raise OSError(errno.EBADF, "it is closed")
            while done < len(content):
                written = super().write(content[done:])
                if written is None:  # another program has made the terminal non-blocking
                    select.select([], [self], [])
                done += written or 0
        except OSError as error:
            self.lost = self.lost or error
        return len(content)


class _Text(io.TextIOWrapper):
    """Text over `_Raw`, without a ``buffer``: click would always write UTF-8 to that."""

    buffer: Any = None

    def write(self, text: str | bytes) -> int:
        """Write a text, or one that click has encoded for a shell."""
        return super().write(text if isinstance(text, str) else bytes(text).decode())


def protect() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr``, and open closed ones as ``/dev/null``."""
    closed = []
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # else a file would get its number
        os.set_inheritable(descriptor, True)
        closed.append(descriptor)
    os.close(descriptor)
    sys.stdout, sys.stderr = _stream(1, sys.stdout), _stream(2, sys.stderr)
    sys.stdout.raw.closed_before = 1 in closed  # type: ignore[attr-defined]
    if "--debug" not in sys.argv:
        sys.unraisablehook = threading.excepthook = _tell


def _tell(failed: Any) -> None:
    """Report what a component has raised in a thread, or at the end of the process."""
    text = f"ssvm-bench: ignored: {described(failed.exc_value)}"
    print(readable(text), file=sys.stderr, flush=True)


def _stream(descriptor: int, replaced: Any) -> _Text:
    raw = _Raw(descriptor, "w", closefd=False)
    stream = _Text(
        io.BufferedWriter(raw),
        encoding=replaced.encoding if replaced is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=descriptor == 2 or raw.isatty(),
    )
    stream.raw = raw  # type: ignore[attr-defined]
    return stream


def lost_results() -> OSError | None:
    """Return the error that lost text printed on stdout; None if all was written."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "raw", None)
    return None if raw is None else raw.lost
