"""Weizmann horses (Borenstein): photographs of horses, figure against ground.

A picture is a photograph ``rgb/horseNNN.jpg`` and a mask ``figure_ground/horseNNN.jpg`` of another
size; the photograph is resized to the size of the mask. The mask is a JPEG of a black and white
drawing; pixels lighter than 127 are horse. The photograph of horse318 is black, and is left out.

References
----------
E. Borenstein, S. Ullman: Class-specific, top-down segmentation. ECCV 2002.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images import scenes
from ssvm_bench.datasets.images.pictures import Picture, Pictures, decoded, pairs
from ssvm_bench.datasets.images.preparation import PictureConfig, PictureFile
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.sources import home

Config = PictureConfig

LABELS = ("background", "horse")
N_PHOTOGRAPHS = 328
BLACK = "318"


def load(config: Config) -> Dataset:
    """Return the superpixels of 327 photographs, labels background and horse."""
    return sources.load(config, RAW, "graph", len(LABELS), config.prepare)


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
