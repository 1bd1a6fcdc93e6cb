"""Messages of the program while it works: its loggers, and the functions that show the messages.

Each module logs to the logger of its name, below ``ssvm_bench``. The command line shows messages on
stderr; a run shows them in its display (:mod:`ssvm_bench.runs.terminal`). A Python program sees
warnings on stderr, and what takes long for no visible reason is one. It sees the other messages if
it enables logging as for any library: ``logging.basicConfig(level="INFO")``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ssvm_bench.base.errors import readable

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
