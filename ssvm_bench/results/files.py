"""Files that appear at once or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ssvm_bench.errors import RunFailedError


def write(path: Path, content: bytes) -> Path:
    """Write a file at once, creating its folder; return its path.

    Raises
    ------
    RunFailedError
        If it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return path


def reason_of(error: Exception) -> str:
    """Return the first line of what an error says, to be continued."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def cannot_write(path: Path, error: OSError) -> RunFailedError:
    """Return the error that says so, and what to do."""
    return RunFailedError(
        f"Cannot write {path}: {error.strerror or error}. Make room there or make it writable, or "
        "choose another place (results_dir=…, --output), then draw again."
    )
