"""Downloads with a progress display, which give up quickly without a connection."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from ssvm_bench.datasets.reading import too_large

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 30.0
BLOCK = 1 << 16  # bytes


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
    console = Console(stderr=True)
    columns = BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

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
    url: str, path: Path, answered: threading.Event, bar: Progress, most: int, secure: bool
) -> None:
    """Write the content of a URL to a file; set ``answered`` once the server has answered."""
    import requests

    limits, left = (CONNECT_SECONDS, SILENCE_SECONDS), most
    with requests.get(url, stream=True, timeout=limits) as answer, path.open("wb") as file:
        answered.set()
        answer.raise_for_status()
        insecure = [step.url for step in (*answer.history, answer) if step.url[:6] != "https:"]
        if secure and insecure:
            raise TransferError(f"{insecure[0]} is no https, and nothing else tells genuine data")
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
