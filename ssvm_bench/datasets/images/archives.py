"""Members of a tar archive, and pictures from their bytes."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from ssvm_bench.datasets.tables import ContentError

BLOCK = 1 << 20


def members(path: Path, pattern: str) -> dict[tuple[str, ...], bytes]:
    """Return the wanted members of a tar archive, compressed by gzip or not.

    Parameters
    ----------
    path : Path
        The archive, which is read once from its beginning to its end.
    pattern : str
        Regular expression for the end of a member's path, behind a slash or at its beginning.

    Returns
    -------
    dict of tuple of str to bytes
        Groups of the pattern → content.

    Raises
    ------
    ContentError
        The archive is damaged or cut short, or two of its members have the same groups.
    """
    wanted = re.compile(f"(?:^|.*/){pattern}")
    found: dict[tuple[str, ...], bytes] = {}
    try:
        with _unpacked(path) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    match = wanted.fullmatch(member.name)
                    if not match or not member.isfile():
                        continue
                    if match.groups() in found:
                        raise ContentError(f"the archive has {member.name} twice")
                    content = archive.extractfile(member)
                    assert content is not None
                    found[match.groups()] = content.read()
            while stream.read(BLOCK):  # gzip's checksum is at the end, behind the last member
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ContentError(f"the archive is damaged or cut short ({error})") from error
    return found


def _unpacked(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open an archive that some servers and browsers unpack on the way."""
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if compressed else path.open("rb")


def decoded(content: bytes, colour: bool, what: str) -> np.ndarray:
    """Return the pixels of a JPEG or PNG file.

    Parameters
    ----------
    content : bytes
        The file.
    colour : bool
        RGB, shape (h, w, 3); else grey, shape (h, w).
    what : str
        What the file is, for the message.

    Raises
    ------
    ContentError
        It is no picture.
    """
    import cv2

    # pixels as they are stored: the labels know nothing of a camera that was held upright
    flag = cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE
    flag |= cv2.IMREAD_IGNORE_ORIENTATION
    pixels = None
    with suppress(cv2.error):  # raised for no bytes, and for sizes beyond all reason
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), flag)
    if pixels is None:
        raise ContentError(f"the {what} cannot be decoded")
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB) if colour else pixels
