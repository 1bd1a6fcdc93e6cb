"""Standard output and error that never raise: a closed or full terminal costs nothing but its text.

Status goes to stderr. What cannot be written there is dropped: closed (``2>&-``), full
(``2>/dev/full``, a disk of logs), without a reader. Results go to stdout; that some of them are
lost is reported at the end, with exit status 1. Characters that the encoding lacks are escaped.
What is raised where nobody can catch it is told in a line.
"""

from __future__ import annotations

import io
import os
import select
import sys
import threading
from typing import Any

from ssvm_bench.base.errors import described, readable


class _Raw(io.FileIO):
    """A file descriptor that swallows what cannot be written, and keeps the first reason."""

    lost: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all, or take it for written."""
        content = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(content):
                written = super().write(content[done:])
                if written is None:  # another program has made the terminal non-blocking
                    select.select([], [self], [])
                done += written or 0
        except OSError as error:
            self.lost = self.lost or error
        return len(content)


class _Text(io.TextIOWrapper):
    """Text over it. Without a ``buffer``, into which click would write UTF-8 whatever is set."""

    buffer: Any = None

    def write(self, text: str | bytes) -> int:
        """Write a text, or one that click has encoded for a shell."""
        return super().write(text if isinstance(text, str) else bytes(text).decode())


def protect() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr``, and open what is closed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # else a file would get its number
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout, sys.stderr = _stream(1, sys.stdout), _stream(2, sys.stderr)
    if "--debug" not in sys.argv:
        sys.unraisablehook = threading.excepthook = _tell


def _tell(failed: Any) -> None:
    """Say what a component has raised in a thread, or when the process ends."""
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
    """Return why something that was printed on stdout is lost; None if all has arrived."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "raw", None)
    return None if raw is None else raw.lost
