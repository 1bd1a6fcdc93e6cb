"""The file ``checkpoint`` beside a partial trace: what a run needs to go on where it was.

.. code-block:: text

    one line of JSON     whose state it is: what `identity` returns
    the state            ssvm_bench.runs.snapshot
    32 bytes             SHA-256 of all that comes before

A state means something only to the code that wrote it, so the program's own sources and the
versions of what it computes with belong to the identity. One of another identity, or one that is
not what was written, is not read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from ssvm_bench.base import files

NAME = "checkpoint"
FORMAT = "1"

_PACKAGES = ("numpy", "scipy", "numba")
_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 16


class UnusableError(Exception):
    """A checkpoint that no run can go on from; the message says why, as the end of a sentence."""


def identity(run: str, data: str) -> dict[str, str]:
    """Return what a checkpoint has to agree in with whoever reads it.

    Parameters
    ----------
    run : str
        Hash and seed of the configuration.
    data : str
        Fingerprint of the dataset.
    """
    return {"format": FORMAT, "program": program(), "run": run, "data": data}


@functools.cache
def program() -> str:
    """Return a digest of the program's sources, and of the versions of what they stand on."""
    package = Path(__file__).parents[1]
    versions = [platform.python_version(), *map(metadata.version, _PACKAGES)]
    digest = hashlib.sha256(" ".join(versions).encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def write(file: BinaryIO, whose: Mapping[str, str], dump: Callable[[BinaryIO], object]) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    file : binary file
    whose : mapping
        Its `identity`.
    dump : callable
        Writes the state to a file.
    """
    summed = _Summed(file)
    summed.write(json.dumps(dict(whose), sort_keys=True).encode() + b"\n")
    dump(summed)  # type: ignore[arg-type]  # all that a pickler needs of a file
    file.write(summed.digest.digest())


@contextmanager
def reading(folder: Path, whose: Mapping[str, str]) -> Iterator[BinaryIO]:
    """Yield the state of a folder's checkpoint, as a file to read on from.

    Raises
    ------
    UnusableError
        If it is damaged, or of another identity.
    FileNotFoundError
        If there is none.
    """
    with files.opened(folder / NAME) as file:
        line = file.readline(_LONGEST_LINE)
        size = os.fstat(file.fileno()).st_size - len(line) - hashlib.sha256().digest_size
        try:
            found = json.loads(line)
            if not isinstance(found, dict) or size < 0:
                raise ValueError
        except ValueError:
            raise UnusableError("it is damaged") from None
        for key, what in (
            ("format", "it was written by another version of the program"),
            ("program", "it was written by another version of the program"),
            ("run", "it is of another run"),
            ("data", "it is of a run on other data"),
        ):
            if found.get(key) != whose[key]:
                raise UnusableError(what)
        begin, digest = file.tell(), hashlib.sha256(line)
        while size > 0 and (content := file.read(min(size, _CHUNK))):
            digest.update(content)
            size -= len(content)
        if file.read() != digest.digest():
            raise UnusableError("it is damaged (checksum)")
        file.seek(begin)
        yield file


class _Summed:
    """A file that adds up what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Write, and add to the digest."""
        self.digest.update(content)
        return self.file.write(content)
