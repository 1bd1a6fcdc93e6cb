"""Long work with its progress on stderr: preparations, and downloads.

A preparation shows a bar on a terminal, an occasional line elsewhere. A download gives up quickly
without a connection.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from rich import progress as bars
from rich.console import Console

from ssvm_bench.datasets.reading import too_large

SECONDS_BETWEEN_LINES = 10.0

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 30.0
BLOCK = 1 << 16  # bytes

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
    quiet, count = _silent.get(), bars.MofNCompleteColumn()
    bar = _bar(bars.TextColumn("{task.description}"), bars.BarColumn(), count, quiet=quiet)
    lines = not quiet and not bar.console.is_terminal
    done, shown = 0, time.monotonic()
    with bar:
        task = bar.add_task(what, total=total)
        for amount, result in steps:
            done += amount
            bar.advance(task, amount)
            if lines and (done == total or time.monotonic() - shown > SECONDS_BETWEEN_LINES):
                shown = time.monotonic()
                print(f"{what} {done}/{total}", file=sys.stderr, flush=True)
            yield result


def _bar(*columns: bars.ProgressColumn, quiet: bool = False) -> bars.Progress:
    """Return a bar on stderr, which is shown on a terminal unless ``quiet``."""
    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return bars.Progress(*columns, bars.TimeRemainingColumn(), console=console, disable=hidden)


# ---- downloads -----------------------------------------------------------------------------------


class TransferError(Exception):
    """A file could not be downloaded; the message says why."""


def transfer(url: str, path: Path, most: int, secure: bool) -> None:
    """Download a URL to a file, of at most ``most`` bytes.

    The transfer runs in a thread of its own, because a name look-up without network may hang
    for longer than any time limit of the connection. An abandoned thread ends with the process.

    Raises
    ------
    TransferError
        No connection within 5 s, a refusal by the server, a broken connection, more bytes than
        ``most``; or, if ``secure`` (for data without a known digest), an address or a redirect
        without https.
    """
    print(f"Downloading {url}", file=sys.stderr, flush=True)
    answered = threading.Event()
    failure: list[BaseException] = []
    with _bar(bars.BarColumn(), bars.DownloadColumn()) as bar:

        def work() -> None:
            try:
                _receive(url, path, answered, bar, most, secure)
            except Exception as error:  # raised in the caller's thread
                failure.append(error)
            finally:
                answered.set()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        if not answered.wait(CONNECT_SECONDS):
            raise TransferError(f"{url} did not answer within {CONNECT_SECONDS:g} s")
        thread.join()
    if failure:
        raise TransferError(f"downloading {url} failed: {_innermost(failure[0])}")


def _receive(
    url: str, path: Path, answered: threading.Event, bar: bars.Progress, most: int, secure: bool
) -> None:
    """Write the content of a URL to a file; set ``answered`` once the server has answered."""
    import requests

    limits, left = (CONNECT_SECONDS, SILENCE_SECONDS), most
    with requests.get(url, stream=True, timeout=limits) as answer, path.open("wb") as file:
        answered.set()
        answer.raise_for_status()
        insecure = [step.url for step in (*answer.history, answer) if step.url[:6] != "https:"]
        if secure and insecure:
            raise TransferError(f"{insecure[0]} is no https, and the data have no known digest")
        task = bar.add_task("", total=int(answer.headers.get("content-length", 0)) or None)
        for block in answer.iter_content(BLOCK):
            left -= len(block)
            if left < 0:
                raise too_large(most)
            file.write(block)
            bar.advance(task, len(block))


def _innermost(error: BaseException) -> str:
    """Return the innermost message of an error that the HTTP library has wrapped."""
    inner = getattr(error, "reason", None) or (error.args[0] if error.args else None)
    if isinstance(inner, BaseException):
        return _innermost(inner)
    return str(error) or type(error).__name__
