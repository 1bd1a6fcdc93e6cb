"""Landmarks of faces: eight points of an image, joined by a tree (Uřičář and Franc 2012, 4.2).

A part is a landmark, and its label the pixel that it is at. Features of an image are its local
binary patterns (:mod:`ssvm_bench.datasets.local_patterns`). The search box of a landmark is the
smallest that contains it in all training images, and ``margin`` pixels more on every side, within
the image. The report's images are not public: those built in are simulated
(:mod:`ssvm_bench.datasets.synthetic.faces`), 7000 to train on, and 1000 each for validation and
test.

A folder of one's own has, beside the images, all of one size, the table ``landmarks.csv``
(:mod:`ssvm_bench.datasets.picture_table`). Its columns are ``image,split`` and then, of each
landmark in the order of ``faces.NAMES``, its column and row in pixels from the upper left one, 0,
as ``centre_x,centre_y,right_inner_x,…``: the centre of the face, the inner corners of the right and
the left eye, the tip of the nose, the right and the left corner of the mouth, and the outer corners
of the right and the left eye. Right is the face's own right.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ssvm_bench.config.validation import Natural
from ssvm_bench.datasets import local_patterns, picture_table
from ssvm_bench.datasets.arrays import label_type
from ssvm_bench.datasets.base import LANDMARKS, Dataset
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.picture_table import TableConfig
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.structures import Boxes
from ssvm_bench.datasets.synthetic import faces

TABLE = "landmarks.csv"
COLUMNS = tuple(f"{name}_{axis}" for name in faces.NAMES for axis in "xy")
N_TRAINING, N_HELD_OUT = 7000, 2000
VERSION = 1


@dataclass(frozen=True)
class Config(TableConfig):
    """Options of the landmarks.

    Attributes
    ----------
    margin : int
        What is added to the search boxes that the training set needs, in pixels.
    """

    TABLES: ClassVar[tuple[str, ...]] = (TABLE,)

    margin: Natural = 1


def load(config: Config) -> Dataset:
    """Return the faces: x uint8 (n, patterns), eight parts each.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``.
    RunFailedError
        What is in the folder cannot be used, or a landmark that is held out is outside its box.
    """
    return picture_table.split(config, with_images(config)[0])


def with_images(config: Config) -> tuple[Dataset, list[np.ndarray]]:
    """Return all faces, those held out as well, and their images: uint8 (H, W) each."""
    found = picture_table.arrays(config, VERSION, _synthetic, _read)
    positions, (_, H, W) = found["positions"], found["pixels"].shape
    boxes = search_boxes(positions[found["fold"] == 0], (H, W), config.margin)
    dataset = Dataset(
        name=config.name,
        source=config.source,
        x=found["patterns"],
        y=(positions @ np.array([W, 1])).ravel().astype(label_type(H * W)),
        offsets=len(faces.NAMES) * np.arange(len(positions) + 1),
        n_labels=H * W,
        structure=LANDMARKS,
        fold=found["fold"],
        admissible=boxes,
    )
    return dataset, list(found["pixels"])


def search_boxes(positions: np.ndarray, image: tuple[int, int], margin: int) -> Boxes:
    """Return the search boxes that landmarks (n, 8, 2) need, and a margin more."""
    low = np.maximum(positions.min(axis=0) - margin, 0)
    high = np.minimum(positions.max(axis=0) + margin, np.array(image) - 1)
    corners, sizes = (tuple(map(tuple, of.tolist())) for of in (low, high - low + 1))
    return Boxes(faces.NAMES, faces.PARENTS, corners, sizes, image, faces.UPPER, faces.LOWER)


def _synthetic() -> Arrays:
    found = faces.arrays(N_TRAINING, N_HELD_OUT)
    return {**found, "patterns": local_patterns.maps(found["pixels"])}


def _read(folder: Path) -> Arrays:
    """Return the faces of a folder; raise `ContentError` where they contradict each other."""
    table = picture_table.lines(folder, TABLE, (*picture_table.HEAD, *COLUMNS))
    fold = picture_table.folds(table)
    pixels = []
    for line in table:
        pixels.append(picture_table.image(folder, line["image"]))
        if pixels[-1].shape != pixels[0].shape:
            (h, w), (H, W) = pixels[-1].shape, pixels[0].shape
            raise ContentError(
                f"{line['image']} has {h} × {w} pixels, and {table[0]['image']} {H} × {W}"
            )
    images = np.stack(pixels)
    return {
        "pixels": images,
        "positions": np.array([_positions(line, images.shape[1:]) for line in table]),
        "fold": fold,
        "patterns": local_patterns.maps(images),
    }


def _positions(line: dict[str, str], image: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return row and column of the landmarks in a line of the table."""
    found = []
    for name in faces.NAMES:
        texts = line[f"{name}_y"], line[f"{name}_x"]
        try:
            at = [float(text) for text in texts]
            row, column = (int(np.floor(value + 0.5)) for value in at)
        except (ValueError, OverflowError):
            raise ContentError(
                f"{name} of {line['image']} is at {texts}, which are no numbers"
            ) from None
        if not (0 <= row < image[0] and 0 <= column < image[1]):
            raise ContentError(
                f"{name} of {line['image']} is at row {at[0]:g}, column {at[1]:g}, outside the "
                f"image of {image[0]} × {image[1]} pixels"
            )
        found.append((row, column))
    return found
