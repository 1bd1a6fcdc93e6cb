"""The file ``checkpoint`` beside a partial trace: the state that a run resumes from.

It is an uncompressed npz file of numpy: the arrays of the state under their names, as
``solver/phi/w``, and ``about``, the text of a JSON document,

.. code-block:: text

    {"whose": what `identity` returns, "state": the state, {"npy": name} in place of an array}

Only the code that wrote a state can interpret it. So the identity covers the program's own sources
and the versions of the packages that it computes with. A checkpoint of another identity, or one
that is not what was written, is not read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ssvm_bench.base import files

NAME = "checkpoint"
FORMAT = "2"

_PACKAGES = ("numpy", "scipy", "numba")
_ABOUT = "about"
_LARGEST_ABOUT = 1 << 26


class UnusableError(Exception):
    """A checkpoint that no run can resume from; the message says why, as the end of a sentence."""


def identity(run: str, data: str) -> dict[str, str]:
    """Return the identity of a checkpoint, which must be equal where it is read.

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
    """Return a digest of the program's sources and of the versions of Python and its packages."""
    package = Path(__file__).parents[1]
    versions = [platform.python_version(), *map(metadata.version, _PACKAGES)]
    digest = hashlib.sha256(" ".join(versions).encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def write(file: BinaryIO, whose: Mapping[str, str], state: Mapping[str, Any]) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    file : binary file
    whose : mapping
        Its `identity`.
    state : mapping
        Arrays, plain values, and mappings of these.

    Raises
    ------
    TypeError
        If the state contains anything else.
    """
    arrays: dict[str, np.ndarray] = {}
    about = json.dumps({"whose": dict(whose), "state": _without_arrays(state, (), arrays)})
    members: dict[str, Any] = {_ABOUT: np.frombuffer(about.encode(), np.uint8), **arrays}
    np.savez(file, **members)


def _without_arrays(value: Any, path: tuple[str, ...], arrays: dict[str, np.ndarray]) -> Any:
    """Return a state without its arrays; add them to ``arrays`` under their full names."""
    if isinstance(value, Mapping):
        return {key: _without_arrays(part, (*path, key), arrays) for key, part in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    name = "/".join(path)
    if value.dtype.hasobject or name in arrays:
        raise TypeError(f"{name} is an array of objects, or there are two")
    arrays[name] = value
    return {"npy": name}


def _with_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"npy"}:
        return arrays[value["npy"]]
    return {key: _with_arrays(part, arrays) for key, part in value.items()}


def read(folder: Path, whose: Mapping[str, str]) -> dict[str, Any]:
    """Return the state in a folder's checkpoint: arrays, plain values, and mappings of these.

    Raises
    ------
    UnusableError
        If it is damaged, or of another identity.
    FileNotFoundError
        If there is none.
    """
    with files.opened(folder / NAME, folder) as file:
        if file.read(1) == b"{":
            raise UnusableError("it was written by another version of the program")
        try:
            return _read(file, whose)
        except UnusableError:
            raise
        except Exception as error:  # zipfile, numpy and json may raise anything
            raise UnusableError("it is damaged") from error


def _read(file: BinaryIO, whose: Mapping[str, str]) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        size = os.fstat(file.fileno()).st_size
        if sum(info.file_size for info in archive.infolist()) > size:  # it would unpack to more
            raise UnusableError("it is damaged")
        if members[_ABOUT].file_size > _LARGEST_ABOUT:
            raise UnusableError("it is damaged")
        about = json.loads(_array(archive, members.pop(_ABOUT)).tobytes())
        for key, what in (
            ("format", "it was written by another version of the program"),
            ("program", "it was written by another version of the program"),
            ("run", "it is of another run"),
            ("data", "it is of a run on other data"),
        ):
            if about["whose"].get(key) != whose[key]:
                raise UnusableError(what)
        arrays = {name: _array(archive, member) for name, member in members.items()}
    return dict(_with_arrays(about["state"], arrays))


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return an array whose checksum is right; it is contiguous and writable."""
    with archive.open(member) as stream:
        found = np.lib.format.read_array(stream, allow_pickle=False)
        if stream.read(1):  # the checksum is checked at the end of the member
            raise UnusableError("it is damaged")
    return np.ascontiguousarray(found)
