"""What is said of files that cannot be written, or read."""

from __future__ import annotations

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
