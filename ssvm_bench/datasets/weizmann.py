"""Weizmann horses (Borenstein): photographs of horses, figure against ground.

A picture is a photograph ``rgb/horseNNN.jpg`` and a mask ``figure_ground/horseNNN.jpg`` of another
size; the photograph is resized to the size of the mask. The mask is a JPEG of a black and white
drawing; pixels lighter than 127 are horse. The photograph of horse318 is black, and is left out.

HorseSeg, the dataset of the MP-BCFW paper, has 2376 pictures. With ``views=8``, there are eight of
each photograph, 2616 in all, each a picture of its own: the whole, and its parts at the upper left,
the upper right and the middle below, of three quarters of the height and of the width; then the
mirror images of these four. They are made from Weizmann's photographs, so they look more alike than
as many photographs would.

References
----------
E. Borenstein, S. Ullman: Class-specific, top-down segmentation. ECCV 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images import scenes
from ssvm_bench.datasets.images.pictures import Picture, Pictures, decoded, pairs
from ssvm_bench.datasets.images.preparation import PictureConfig, PictureFile
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.sources import Content, home

VIEWS = 8
"""Number of views of a photograph."""


def _check_views(name: str, value: int) -> None:
    if value not in (1, VIEWS):
        raise ConfigError(f"{name} must be 1, the photographs, or {VIEWS}, got {value}.")


@dataclass(frozen=True)
class Config(PictureConfig):
    """Options of the horses.

    Attributes
    ----------
    views : int
        Pictures of a photograph: 1, the photograph; or 8, also mirrored and cropped.
    """

    views: Annotated[int, _check_views] = 1


LABELS = ("background", "horse")
N_PHOTOGRAPHS = 328
BLACK = "318"


def load(config: Config) -> Dataset:
    """Return the superpixels of 327 photographs, or of their views; labels background and horse."""
    raw = RAW if config.views == 1 else RAW_VIEWS
    return sources.load(config, raw, "graph", len(LABELS), config.prepare)


def parse(path: Path) -> Pictures:
    """Return the pictures of an archive in this format, in the order of their numbers.

    Raises
    ------
    ContentError
        The archive is damaged, or a photograph has no mask, or a mask no photograph.
    """
    found = pairs(path, "rgb/horse{}.jpg", "figure_ground/horse{}.jpg", r"\d+")
    kept = sorted(found.keys() - {BLACK}, key=int)
    names = tuple(f"horse{number}" for number in kept)
    return Pictures(names, [found[number] for number in kept], decode)


def decode(encoded: tuple[bytes, bytes]) -> Picture:
    """Decode a photograph and its mask; raise `ContentError` if they do not fit together."""
    photograph = decoded(encoded[0], colour=True, what="photograph rgb")
    mask = decoded(encoded[1], colour=False, what="mask figure_ground")
    import cv2  # which is there, as pictures are decoded by it

    height, width = mask.shape
    h, w = photograph.shape[:2]
    # sizes are rounded to whole pixels, which changes the aspect ratio of small pictures
    if abs(h * width - w * height) > 0.01 * h * width + max(height, width, h, w):
        raise ContentError(
            f"the mask has another shape ({width} × {height}) than the photograph ({w} × {h})"
        )
    shrinks = h > height
    rgb = cv2.resize(
        photograph, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    )
    return Picture(rgb, (mask > 127).astype(np.uint8))


RAW = PictureFile(
    **home("weizmann"),
    n=N_PHOTOGRAPHS - 1,
    version=1,
    labels=LABELS,
    open=parse,
    scenes=scenes.figures,
)


# ---- mirrored and cropped -----------------------------------------------------------------------


def viewed(pictures: Pictures) -> Pictures:
    """Return the views of pictures: the first view of each, then the second, and so on."""
    which = [(view, i) for view in range(VIEWS) for i in range(len(pictures))]
    names = tuple(f"{pictures.names[i]} view {view}" for view, i in which)
    encoded = [(view, pictures.encoded[i]) for view, i in which]
    return Pictures(names, encoded, partial(decode_view, pictures.decode))


def decode_view(decode: Callable[[Any], Picture], encoded: tuple[int, Any]) -> Picture:
    """Decode a picture, and return its view of a number from 0 to 7; raises as ``decode``."""
    view, picture = encoded
    rgb, truth = decode(picture)
    h, w = truth.shape
    height, width = h - h // 4, w - w // 4
    corners = ((0, 0), (0, w - width), (h - height, (w - width) // 2))
    if view % 4:
        y, x = corners[view % 4 - 1]
        rgb, truth = (a[y : y + height, x : x + width] for a in (rgb, truth))
    if view >= VIEWS // 2:
        rgb, truth = rgb[:, ::-1], truth[:, ::-1]
    return Picture(np.ascontiguousarray(rgb), np.ascontiguousarray(truth))


@dataclass(frozen=True, kw_only=True)
class _Views(PictureFile):
    """The archive of the photographs, from which their views are made."""

    def read(self, path: Path) -> Content:
        """See `PictureFile`; the digest is that of the photographs and masks."""
        pictures = self.open(path)
        return Content(RAW.read(path).sha256, lambda: self._prepared("real", pictures))

    def key(self, source: str) -> str:
        """See `PictureFile`."""
        return f"{super().key(source)} {VIEWS} views"

    def cache_place(self, source: str) -> Path:
        """See `RawFile`: the photographs' own arrays are another file."""
        place = super().cache_place(source)
        return place.with_name(f"views-{place.name}")


RAW_VIEWS = _Views(
    **home("weizmann"),
    n=VIEWS * RAW.n,
    version=1,
    labels=LABELS,
    open=lambda path: viewed(parse(path)),
    scenes=lambda n: viewed(scenes.figures(-(-n // VIEWS))),
)
