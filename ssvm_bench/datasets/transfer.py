"""Downloads with a progress display that give up quickly without a connection."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from ssvm_bench.datasets.raw_files import MissingDataError, RawFile
from ssvm_bench.datasets.tables import ContentError

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 30.0


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
            part.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                prefix=".download-", dir=part.parent, ignore_cleanup_errors=True
            ) as folder:
                came = transfer(raw.address(part), Path(folder), quiet)
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


def transfer(url: str, folder: Path, quiet: bool = False) -> Path:
    """Download a URL into a folder; return the file's path.

    The transfer runs in a thread of its own, because a name look-up without network may hang
    for longer than any time limit of the connection. A thread that is given up dies with the
    process.

    Raises
    ------
    TransferError
        No connection within 5 s, a refusal of the server, or a connection that breaks.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")  # it would ask for a checksum, which is not known
    if not quiet:
        print(f"Downloading {url}", file=sys.stderr, flush=True)
    name = url.rsplit("/", 1)[-1]
    failure: list[BaseException] = []

    with _Display(quiet) as display:

        def work() -> None:
            downloader = pooch.HTTPDownloader(
                progressbar=display, timeout=(CONNECT_SECONDS, SILENCE_SECONDS)
            )
            try:
                pooch.retrieve(url, None, fname=name, path=folder, downloader=downloader)
            except Exception as error:  # told to the caller's thread
                failure.append(error)
            finally:
                display.started.set()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        if not display.started.wait(CONNECT_SECONDS):
            raise TransferError(f"{url} did not answer within {CONNECT_SECONDS:g} s")
        thread.join()
    if failure:
        raise TransferError(f"downloading {url} failed: {_innermost(failure[0])}")
    return folder / name


def _innermost(error: BaseException) -> str:
    """Return the one line that says what happened, from under the layers of the HTTP library."""
    reason: object = error
    while isinstance(reason, BaseException):
        inner = getattr(reason, "reason", None) or (reason.args[0] if reason.args else None)
        if not isinstance(inner, BaseException):
            break
        reason = inner
    return str(reason) or type(reason).__name__


class _Display:
    """What pooch reports its progress to: it sets ``total`` when the server has answered."""

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)
        self.started = threading.Event()

    def __enter__(self) -> _Display:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    @property
    def total(self) -> float | None:
        """Bytes that the server announced."""
        return self._progress.tasks[0].total

    @total.setter
    def total(self, n_bytes: int) -> None:
        self._progress.update(self._task, total=n_bytes or None)
        self.started.set()

    def update(self, n_bytes: int) -> None:
        """Count bytes that have arrived."""
        self._progress.advance(self._task, n_bytes)

    def reset(self) -> None:
        """Start counting at zero; pooch does so before its last update."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Nothing: the display ends with the ``with`` block."""
