"""Files of a results folder: written at once, swept, and skipped with a message if damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, shown
from ssvm_bench.results.folder import ResultsFolder, plain


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
    """Return in one short line what an error says, to be continued."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = f"no {text}" if isinstance(error, KeyError) else text
    return shown((text.splitlines() or [type(error).__name__])[0].rstrip("."), 120)


def cannot_write(path: Path, error: OSError) -> RunFailedError:
    """Return the error that says so, and what to do."""
    return RunFailedError(
        f"Cannot write {path}: {error.strerror or error}. Make room there or make it writable, or "
        "choose another place (results_dir=…, --output), then draw again."
    )


def sweep(results_dir: Path | ResultsFolder) -> None:
    """Remove what writers that died have left anywhere in a results folder."""
    for place in plain(results_dir).read:
        files.sweep(place)
        for pattern in ("reference", "figures/*", "traces/*", "runs/*/*/*"):
            for folder in place.glob(pattern):
                files.sweep(folder)


SHOWN = 4


class SkippedFiles:
    """Told of every damaged run or file, it says a line of each of the first, and sums up the rest.

    Parameters
    ----------
    say : callable
        Told each line; the last one when the ``with`` block ends.

    Attributes
    ----------
    problems : list of str
        All that it was told of, each once.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self.problems: list[str] = []

    def __call__(self, problem: object) -> None:
        """Note what cannot be read, and why."""
        text = str(problem)
        if text not in self.problems:
            self.problems.append(text)
            if len(self.problems) <= SHOWN:
                self._say(f"Passed over: {text}")

    def __enter__(self) -> SkippedFiles:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Say how many more there were."""
        more = len(self.problems) - SHOWN
        if more > 0:
            self._say(f"Passed over: {more} more that cannot be read.")
