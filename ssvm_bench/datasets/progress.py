"""Progress of a preparation: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0

_silent: ContextVar[bool] = ContextVar("silent", default=False)

T = TypeVar("T")


@contextmanager
def silence(wanted: bool = True) -> Iterator[None]:
    """Show no progress in the block (``quiet=true``), if ``wanted``."""
    token = _silent.set(wanted)
    try:
        yield
    finally:
        _silent.reset(token)


def shown(steps: Iterable[tuple[int, T]], what: str, total: int) -> Iterator[T]:
    """Yield the results of steps, and show their progress on stderr.

    Parameters
    ----------
    steps : iterable of (int, T)
        For each finished step, its share of the total, and its result.
    what : str
        What is being done, in a few words.
    total : int
        The amount of work in all.

    Yields
    ------
    T
        The results.
    """
    console, quiet = Console(stderr=True), _silent.get()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    lines = not quiet and not console.is_terminal
    done, shown = 0, time.monotonic()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=quiet or not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        for amount, result in steps:
            done += amount
            bar.advance(task, amount)
            if lines and (done == total or time.monotonic() - shown > SECONDS_BETWEEN_LINES):
                shown = time.monotonic()
                print(f"{what} {done}/{total}", file=sys.stderr, flush=True)
            yield result
