"""Downloads with a progress display that give up quickly without a connection.

What comes is checked by its digest, where that of the genuine file is known; where it is not, it
has to come by https all the way. A download never has more bytes than the file can have.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from ssvm_bench.base.files import temporary_folder
from ssvm_bench.datasets.raw_files import MissingDataError, RawFile
from ssvm_bench.datasets.reading import ContentError

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 30.0
BLOCK = 1 << 16  # bytes


class TransferError(Exception):
    """A file could not be downloaded; the message says why."""


def download(raw: RawFile, quiet: bool = False) -> Path:
    """Download the raw files that are not in the user's cache folder yet; return where they are.

    Each gets its final name only after its content has been checked.

    Raises
    ------
    MissingDataError
        No network, no connection within five seconds, a refusal, no place to write to, or
        something else came than the data.
    """
    target = raw.places()[-1]
    try:
        for part in raw.missing(target):
            if os.environ.get("SSVM_BENCH_OFFLINE", "0") not in ("", "0"):
                raise TransferError("SSVM_BENCH_OFFLINE=1 forbids to download it")
            with temporary_folder(part) as folder:
                secure = part.name not in raw.sha256
                came = transfer(raw.address(part), folder, quiet, raw.most, secure)
                try:
                    came = raw.unpack(came)
                    raw.check(came)
                except ContentError as error:  # a notice that the page moved, a log-in page, …
                    raise TransferError(
                        f"what {raw.address(part)} gives now is something else ({error})"
                    ) from error
                came.replace(part)
    except (TransferError, OSError) as error:
        looked = " or ".join(str(raw.first_missing(place)) for place in raw.places())
        preferred = raw.parts(raw.places()[0])[0].parent
        raise MissingDataError(
            f"The real {raw.dataset} data is missing: no {looked}, and {error}. "
            f"Put {raw.missing_names()} from {raw.url} into {preferred}."
        ) from error
    return target


def transfer(url: str, folder: Path, quiet: bool, most: int, secure: bool) -> Path:
    """Download a URL into a folder, ``most`` bytes of it; return the file's path.

    The transfer runs in a thread of its own, because a name look-up without network may hang
    for longer than any time limit of the connection. A thread that is given up dies with the
    process.

    Raises
    ------
    TransferError
        No connection within 5 s, a refusal of the server, a connection that breaks, more bytes
        than ``most``; or, if it has to be ``secure``, an address or a redirect without https.
    """
    if not quiet:
        print(f"Downloading {url}", file=sys.stderr, flush=True)
    path = folder / url.rsplit("/", 1)[-1]
    answered = threading.Event()
    failure: list[BaseException] = []
    console = Console(stderr=True)
    with Progress(
        *(BarColumn(), DownloadColumn(), TimeRemainingColumn()),
        console=console,
        disable=quiet or not console.is_terminal,
    ) as bar:

        def work() -> None:
            try:
                _receive(url, path, answered, bar, most, secure)
            except Exception as error:  # told to the caller's thread
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
    return path


def _receive(
    url: str, path: Path, answered: threading.Event, bar: Progress, most: int, secure: bool
) -> None:
    """Write what a URL gives to a file; set the event as soon as the server has answered."""
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
                raise TransferError(f"it has more than {most / 1e6:.0f} MB, far more than the data")
            file.write(block)
            bar.advance(task, len(block))


def _innermost(error: BaseException) -> str:
    """Return the one line that says what happened, from under the layers of the HTTP library."""
    reason: object = error
    while isinstance(reason, BaseException):
        inner = getattr(reason, "reason", None) or (reason.args[0] if reason.args else None)
        if not isinstance(inner, BaseException):
            break
        reason = inner
    return str(reason) or type(reason).__name__
