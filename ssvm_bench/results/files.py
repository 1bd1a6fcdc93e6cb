"""Files of a results folder: written at once, and skipped with a message if damaged."""

from __future__ import annotations

import logging
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, shown


def write(path: Path, content: bytes) -> Path:
    """Write a file at once, creating its folder; return its path.

    Raises
    ------
    RunFailedError
        If it cannot be written.
    """
    try:
        return files.write(path, content)
    except OSError as error:
        raise cannot_write(path, error) from error


def reason_of(error: Exception) -> str:
    """Return the message of an error as one short line without a full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = f"no {text}" if isinstance(error, KeyError) else text
    return shown((text.splitlines() or [type(error).__name__])[0].rstrip("."), 120)


def cannot_write(path: Path, error: OSError) -> RunFailedError:
    """Return the error that says that a file cannot be written, and what to do."""
    return RunFailedError(
        f"Cannot write {path}: {error.strerror or error}. Make room there or make it writable, or "
        "choose another place (results_dir=…, --output), then draw again."
    )


SHOWN = 4

logger = logging.getLogger(__name__)


class SkippedFiles:
    """Logs damaged runs and files: a message for each of the first, and one for the rest.

    The last message comes when the ``with`` block ends.

    Attributes
    ----------
    problems : list of str
        Why each cannot be read, without repetition.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, problem: object) -> None:
        """Note what cannot be read, and why."""
        text = str(problem)
        if text not in self.problems:
            self.problems.append(text)
            if len(self.problems) <= SHOWN:
                logger.warning("Passed over: %s", text)

    def __enter__(self) -> SkippedFiles:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Say how many more were skipped."""
        more = len(self.problems) - SHOWN
        if more > 0:
            logger.warning("Passed over: %s more that cannot be read.", more)
