"""Members of a tar archive, and pictures from their bytes."""

from __future__ import annotations

import re
import tarfile
import zlib
from pathlib import Path

import numpy as np

from ssvm_bench.datasets.content import ContentError


def members(path: Path, pattern: str) -> dict[tuple[str, ...], bytes]:
    """Return the wanted members of a tar archive, compressed or not.

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
        The archive is damaged or cut short.
    """
    wanted = re.compile(f"(?:^|.*/){pattern}")
    found = {}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                match = wanted.fullmatch(member.name)
                if match and member.isfile():
                    content = archive.extractfile(member)
                    assert content is not None
                    found[match.groups()] = content.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ContentError(f"the archive is damaged or cut short ({error})") from error
    return found


def decoded(content: bytes, colour: bool) -> np.ndarray:
    """Return the pixels of a JPEG or PNG file.

    Parameters
    ----------
    content : bytes
        The file.
    colour : bool
        RGB, shape (h, w, 3); else grey, shape (h, w).

    Raises
    ------
    ContentError
        It is no picture.
    """
    import cv2

    flag = cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE
    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), flag) if content else None
    if pixels is None:
        raise ContentError("the file is not a picture")
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB) if colour else pixels
