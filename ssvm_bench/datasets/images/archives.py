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


def pairs(path: Path, first: str, second: str, name: str) -> dict[str, tuple[bytes, bytes]]:
    """Return the two files that an archive has of every picture.

    Parameters
    ----------
    path : Path
        A tar archive, compressed by gzip or not, which is read once from its beginning to its end.
    first, second : str
        How the paths of the two files end, with ``{}`` for the picture's name.
    name : str
        Regular expression for names.

    Returns
    -------
    dict of str to (bytes, bytes)
        Name → content of the two files, sorted by name.

    Raises
    ------
    ContentError
        The archive is damaged or cut short, or has a file twice, or only one of two.
    """
    patterns = [re.escape(kind).replace(r"\{\}", f"({name})") for kind in (first, second)]
    wanted = re.compile(f"(?:^|.*/)(?:{'|'.join(patterns)})")
    found: tuple[dict[str, bytes], dict[str, bytes]] = ({}, {})
    try:
        with _unpacked(path) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    match = wanted.fullmatch(member.name)
                    if not match or not member.isfile():
                        continue
                    side = 0 if match[1] is not None else 1
                    key = match[side + 1]
                    if key in found[side]:
                        raise ContentError(f"the archive has {member.name} twice")
                    content = archive.extractfile(member)
                    assert content is not None
                    found[side][key] = content.read()
            while stream.read(BLOCK):  # gzip's checksum is at the end, behind the last member
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ContentError(f"the archive is damaged or cut short ({error})") from error
    for lone in sorted(found[0].keys() ^ found[1].keys()):
        lacking = second if lone in found[0] else first
        raise ContentError(f"the archive has no {lacking.format(lone)}")
    return {key: (found[0][key], found[1][key]) for key in sorted(found[0])}


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
