"""Pictures with a label per pixel, kept encoded until they are needed, and read from tar archives.

Hundreds of decoded photographs would fill the memory, and are slow to send to worker processes. So
pictures are kept and sent in the form that `Pictures.decode` takes: the bytes of their files, or
the seed of a synthetic picture.

Limits apply to the unpacked size of an archive, to the number and size of its members, and to the
size of a picture. They are far above those of our archives, and are checked before anything is read
or decoded. Every picture is opened by `picture_in`, also those of users.
"""

from __future__ import annotations

import io
import re
import tarfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import needed
from ssvm_bench.base.files import opened
from ssvm_bench.datasets.reading import ContentError, ensure, parsing, unpacked

if TYPE_CHECKING:
    from PIL import Image

MOST = 700_000_000
"""Largest unpacked archive, in bytes."""

MOST_KEPT = 1 << 28
"""Largest total size of the members that are read, in bytes."""

MOST_MEMBERS = 30_000

LARGEST = 1 << 22
"""Largest member that is read, or data of a header (such as a long name), in bytes."""

MOST_PIXELS = 1 << 22
"""Largest picture; its descriptors take thirty times as many bytes."""

FORMATS = ("JPEG", "PNG")
"""Formats of the pictures in archives."""

FORMATS_OF_USERS = (*FORMATS, "BMP", "GIF", "PPM")
"""Formats of which the header states how much is decoded, and that no other program decodes."""

MOST_PIXELS_OF_USERS = 1 << 25
"""Largest picture of a user, from any camera; decoded, it takes up to four bytes a pixel."""


class Picture(NamedTuple):
    """One picture of h × w pixels.

    Attributes
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
        Colours.
    truth : ndarray of uint8, shape (h, w)
        The label of every pixel, in ``0 .. K - 1``.
    """

    rgb: np.ndarray
    truth: np.ndarray


@dataclass(frozen=True)
class Pictures:
    """A sequence of pictures that are decoded one at a time.

    Attributes
    ----------
    names : tuple of str
        One name per picture, for messages and files.
    encoded : sequence
        One small picklable object per picture, whose ``repr`` identifies it.
    decode : callable
        A module-level function (so that it can be pickled) that turns an item of ``encoded`` into
        a `Picture`; raises `ContentError` if the item is no picture.
    """

    names: tuple[str, ...]
    encoded: Sequence[Any]
    decode: Callable[[Any], Picture]

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.names)

    def __getitem__(self, i: int) -> Picture:
        """Decode picture i."""
        return self.decode(self.encoded[i])


class _Member(tarfile.TarInfo):
    """A header, which states how many bytes are to be read for it, for instance of a name."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Any:
        """Refuse a header with more bytes than any name or comment needs."""
        member = super().frombuf(buf, encoding, errors)
        if member.type not in tarfile.REGULAR_TYPES and member.size > LARGEST:
            raise ContentError(f"the archive has a header of {member.size} bytes")
        return member


def pairs(path: Path, first: str, second: str, name: str) -> dict[str, tuple[bytes, bytes]]:
    """Return the two files of every picture in an archive.

    Parameters
    ----------
    path : Path
        A tar archive, compressed by gzip or not, which is read once from beginning to end.
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
        The archive is damaged or cut short, has a file twice, or lacks one of a picture's files.
    """
    patterns = [re.escape(kind).replace(r"\{\}", f"({name})") for kind in (first, second)]
    wanted = re.compile(f"(?:^|.*/)(?:{'|'.join(patterns)})")
    found: tuple[dict[str, bytes], dict[str, bytes]] = ({}, {})
    for match, content in _members(path, wanted):
        side = 0 if match[1] is not None else 1
        key = match[side + 1]
        ensure(key not in found[side], f"the archive has {match[0]} twice")
        found[side][key] = content
    for lone in sorted(found[0].keys() ^ found[1].keys()):
        lacking = second if lone in found[0] else first
        raise ContentError(f"the archive has no {lacking.format(lone)}")
    return {key: (found[0][key], found[1][key]) for key in sorted(found[0])}


def _members(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield the match of the name, and the content, of each wanted file in an archive."""
    kept, damaged = 0, "the archive is damaged or cut short"
    stream: Any
    with opened(path) as file, unpacked(file, MOST, damaged) as stream:
        archive: Any
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:
            for count, member in enumerate(archive):
                archive.members.clear()  # else the list grows with the archive
                ensure(count < MOST_MEMBERS, f"the archive has more than {MOST_MEMBERS} members")
                match = wanted.fullmatch(member.name)
                if not match or not member.isfile():
                    continue
                kept += member.size
                if member.size > LARGEST or kept > MOST_KEPT:
                    raise ContentError(f"{member.name} has {member.size} bytes: too many")
                content = archive.extractfile(member)
                assert content is not None
                yield match, content.read()
        for _ in stream:  # gzip's checksum is at the end, behind the last member
            pass


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
        It is no picture, or one of absurd size.
    """
    with needed("images", "Reading pictures"):
        import cv2

    with picture_in(content, f"the {what}"):  # its header says how large it is
        pass

    # the labels are for the pixels as stored, without rotation by the camera's orientation
    flag = cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE
    flag |= cv2.IMREAD_IGNORE_ORIENTATION
    pixels: Any = None
    with suppress(cv2.error):  # raised for no bytes, and for absurd sizes
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), flag)
    ensure(pixels is not None, f"the {what} cannot be decoded")
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB) if colour else pixels


@contextmanager
def picture_in(
    content: bytes, what: str, formats: tuple[str, ...] = FORMATS, most: int = MOST_PIXELS
) -> Iterator[Image.Image]:
    """Open a picture, of which nothing is decoded before the block asks for its pixels.

    By default, Pillow tries all its formats, and starts Ghostscript for one of them.

    Parameters
    ----------
    content : bytes
        The file.
    what : str
        What the file is, for the message.
    formats : tuple of str
        Pillow's names of the formats that it may have.
    most : int
        The most pixels that it may have.

    Raises
    ------
    ContentError
        It is no picture, or has more pixels; or the block cannot decode it.
    """
    from PIL import Image

    with parsing(f"{what} cannot be decoded"), warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            opened_picture = Image.open(io.BytesIO(content), formats=formats)
        except Image.UnidentifiedImageError:
            raise ContentError(
                f"{what} cannot be decoded: its format is not one of {', '.join(formats)}"
            ) from None
        with opened_picture as picture:
            width, height = picture.size
            small = width * height <= most
            ensure(small, f"{what} is too large ({width} × {height} pixels)")
            yield picture
