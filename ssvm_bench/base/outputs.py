"""Standard output and error that never raise: if they are closed or full, only text is lost.

Status goes to stderr. Text is dropped if stderr is closed (``2>&-``), full (``2>/dev/full``, a disk
of logs) or without a reader. Results go to stdout; if some are lost, because it is full or closed,
this is reported at the end, with exit status 1. Characters that the encoding lacks are escaped. An
exception that cannot be caught is reported in one line.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import threading
from typing import Any

from ssvm_bench.base.errors import described, readable


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
