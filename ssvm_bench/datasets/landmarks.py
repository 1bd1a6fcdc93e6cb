"""Landmarks of faces: eight points of an image, joined by a tree (Uřičář and Franc 2012, 4.2).

A part is a landmark; its label is the pixel of the landmark. The features of an image are its local
binary patterns (:mod:`ssvm_bench.datasets.structures`). The search box of a landmark is the
smallest one that contains it in all training images, enlarged by ``margin`` pixels on every side
within the image. The report's images are not public. The built-in ones are simulated: 7000 for
training, and 1000 each for validation and test. A simulated face is small, as if cut out by a
detector, and consists of a few shaded shapes in front of a background: head, hair, brows, eyes,
nose, mouth, sometimes glasses or a beard. Each face has its own pose (turned, tilted, shifted, near
or far), shape, expression, light, occlusion, blur and noise. A landmark is the pixel that contains
its point of the face. All random choices use words of a ``PCG64``.

A user's folder contains images of one size and the table ``landmarks.csv``
(:mod:`ssvm_bench.datasets.picture_table`). Its columns are ``image,split``, followed by the column
and the row of each landmark in the order of ``NAMES``, in pixels from the upper left one, 0, as
``centre_x,centre_y,right_inner_x,…``. The landmarks are the centre of the face, the inner corners
of the right and the left eye, the tip of the nose, the right and the left corner of the mouth, and
the outer corners of the right and the left eye. Right is the face's own right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.config.validation import Natural
from ssvm_bench.datasets import arrays, picture_table
from ssvm_bench.datasets.base import LANDMARKS, Dataset
from ssvm_bench.datasets.reading import Arrays, ContentError, ensure
from ssvm_bench.datasets.structures import Boxes, pattern_maps

SIDE = 40
"""Rows and columns of an image."""

NAMES = (
    *("centre", "right_inner", "left_inner", "nose", "right_mouth", "left_mouth"),
    *("right_outer", "left_outer"),
)
"""The landmarks: right is the face's own right, on the left of the image."""

PARENTS = (-1, 0, 0, 0, 0, 0, 1, 2)
UPPER, LOWER = (1, 2, 6, 7), (4, 5)
"""Landmarks at the corners of the eyes, and of the mouth."""

_BYTES = 16
"""Bytes of memory that a pixel takes while its patterns are found."""

_CHUNK = 500
"""Faces simulated at a time."""

TABLE = "landmarks.csv"
COLUMNS = tuple(f"{name}_{axis}" for name in NAMES for axis in "xy")
N_TRAINING, N_HELD_OUT = 7000, 2000
VERSION = 1


@dataclass(frozen=True)
class Config(picture_table.TableConfig):
    """Options of the landmarks.

    Attributes
    ----------
    margin : int
        Pixels by which the search boxes of the training set are enlarged on every side.
    """

    TABLES: ClassVar[tuple[str, ...]] = (TABLE,)

    margin: Natural = 1


def extra(config: Config) -> str:
    """Return the extra that finds patterns, unless they are kept."""
    return "" if picture_table.is_kept(config, VERSION) else "images"


def load(config: Config) -> Dataset:
    """Return the faces: x uint8 (n, patterns), eight parts each.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``.
    RunFailedError
        The folder's content cannot be used, or a held-out landmark is outside its search box.
    """
    return picture_table.split(config, with_images(config)[0])


def with_images(config: Config) -> tuple[Dataset, list[np.ndarray]]:
    """Return all faces, held-out ones included, and their images: uint8 (H, W) each."""
    found = picture_table.arrays(config, VERSION, partial(simulated, N_TRAINING, N_HELD_OUT), _read)
    positions, (_, H, W) = found["positions"], found["pixels"].shape
    boxes = search_boxes(positions[found["fold"] == 0], (H, W), config.margin)
    y = (positions @ np.array([W, 1])).ravel().astype(arrays.label_type(H * W))
    offsets = len(NAMES) * np.arange(len(positions) + 1)
    about: Any = {"source": config.source, "fold": found["fold"], "admissible": boxes}
    dataset = Dataset(config.name, found["patterns"], y, offsets, H * W, LANDMARKS, **about)
    return dataset, list(found["pixels"])


def search_boxes(positions: np.ndarray, image: tuple[int, int], margin: int) -> Boxes:
    """Return the smallest boxes that contain landmarks (n, 8, 2), enlarged by a margin."""
    low = np.maximum(positions.min(axis=0) - margin, 0)
    high = np.minimum(positions.max(axis=0) + margin, np.array(image) - 1)
    corners, sizes = (tuple(map(tuple, of.tolist())) for of in (low, high - low + 1))
    return Boxes(NAMES, PARENTS, corners, sizes, image, UPPER, LOWER)


def _read(folder: Path) -> Arrays:
    """Return the faces of a folder; raise `ContentError` if its files contradict each other."""
    table = picture_table.lines(folder, TABLE, (*picture_table.HEAD, *COLUMNS))
    fold = picture_table.folds(table)
    pixels = picture_table.images(folder, table, _BYTES)
    for line, seen in zip(table, pixels, strict=True):
        (h, w), (H, W) = seen.shape, pixels[0].shape
        name, first = line["image"], table[0]["image"]
        ensure((h, w) == (H, W), f"{name} has {h} × {w} pixels, and {first} {H} × {W}")
    images = np.stack(pixels)
    return {
        "pixels": images,
        "positions": np.array([_positions(line, images.shape[1:]) for line in table]),
        "fold": fold,
        "patterns": pattern_maps(images),
    }


def _positions(line: dict[str, str], image: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the row and the column of each landmark in a line of the table."""
    found = []
    for name in NAMES:
        texts = line[f"{name}_y"], line[f"{name}_x"]
        try:
            at = [float(text) for text in texts]
            row, column = (int(np.floor(value + 0.5)) for value in at)
        except (ValueError, OverflowError):
            raise ContentError(
                f"{name} of {shown(line['image'])} is at {shown(texts)}, which are no numbers"
            ) from None
        if not (0 <= row < image[0] and 0 <= column < image[1]):
            raise ContentError(
                f"{name} of {shown(line['image'])} is at row {at[0]:g}, column {at[1]:g}, outside "
                f"the image of {image[0]} × {image[1]} pixels"
            )
        found.append((row, column))
    return found


# ---- simulated faces ----------------------------------------------------------------------------


def simulated(n_training: int, n_held_out: int) -> Arrays:
    """Return training faces and held-out faces; every second held-out one is for the test.

    ``pixels`` uint8 (n, 40, 40), ``positions`` int64 (n, 8, 2): row and column; ``fold``;
    ``patterns``, the maps of the pixels.
    """
    bits = np.random.PCG64(1859)
    m = n_training + n_held_out
    found = [draw(min(_CHUNK, m - k), bits) for k in range(0, m, _CHUNK)]
    pixels, positions = (np.concatenate(each) for each in zip(*found, strict=True))
    fold = np.concatenate((np.zeros(n_training, np.int64), np.arange(n_held_out) % 2 + 1))
    patterns = pattern_maps(pixels)
    return {"pixels": pixels, "positions": positions, "fold": fold, "patterns": patterns}


class _FaceCanvas:
    """Images of m faces, float32 (m, 40, 40)."""

    def __init__(self, m: int) -> None:
        along = np.arange(SIDE, dtype=np.float32) + 0.5
        self.rows, self.columns = along[None, :, None], along[None, None, :]
        self.image = np.zeros((m, along.size, along.size), np.float32)

    def mask(self, at: np.ndarray, axis: np.ndarray, size: Any, soft: float) -> np.ndarray:
        """Return the mask of ellipses with these centres, unit vectors (m, 2) and half axes."""
        dy, dx = self.rows - _wide(at[:, 0]), self.columns - _wide(at[:, 1])
        u = dy * _wide(axis[:, 0]) + dx * _wide(axis[:, 1])
        v = dx * _wide(axis[:, 0]) - dy * _wide(axis[:, 1])
        a, b = (_wide(np.maximum(half, 0.2)) for half in size)
        far = np.sqrt((u / a) ** 2 + (v / b) ** 2)
        return np.clip((1.0 - far) * np.minimum(a, b) / soft + 0.5, 0.0, 1.0)

    def paint(self, mask: np.ndarray, grey: np.ndarray, much: np.ndarray | float = 1.0) -> None:
        """Blend grey values (m,) into the images under a mask, with opacity ``much``."""
        self.image += mask * _wide(much) * (_wide(grey) - self.image)

    def ellipse(
        self, at: np.ndarray, axis: np.ndarray, size: Any, soft: float, grey: Any, much: Any = 1.0
    ) -> None:
        """Paint ellipses (see `mask`)."""
        self.paint(self.mask(at, axis, size, soft), grey, much)


def _wide(values: np.ndarray | float) -> np.ndarray:
    return np.asarray(values, np.float32)[..., None, None]


def draw(m: int, bits: np.random.PCG64) -> tuple[np.ndarray, np.ndarray]:
    """Return the images uint8 (m, 40, 40) and landmarks int64 (m, 8, 2) of m faces."""
    normal, chance = approx_normal((36, m), bits), uniform((16, m), bits)
    scale = 11.5 * (1.0 + 0.09 * normal[0])
    tilt, turn, nod = 0.16 * normal[1], 0.30 * normal[2], 0.12 * normal[3]
    middle = SIDE / 2 + np.stack((0.9 * normal[4] + 0.4, 0.9 * normal[5]), axis=1)
    down = np.stack((1.0 - tilt**2 / 2, -tilt), axis=1)  # the face's own axes, in the image
    across = np.stack((tilt, 1.0 - tilt**2 / 2), axis=1)

    def place(u: np.ndarray | float, v: np.ndarray | float, depth: float = 0.0) -> np.ndarray:
        """Return the image positions (m, 2) of the point u across and v down each face."""
        x = (np.asarray(u) * (1.0 - turn**2 / 2) + depth * turn) * scale
        y = (np.asarray(v) * (1.0 - nod**2 / 2) + depth * nod) * scale
        return middle + y[:, None] * down + x[:, None] * across

    eyes_at, apart = -0.32 + 0.05 * normal[6], 0.47 + 0.045 * normal[7]
    eye_long, eye_tall = 0.20 + 0.025 * normal[8], np.abs(0.075 + 0.035 * normal[9]) + 0.01
    nose_at, mouth_at = 0.22 + 0.06 * normal[10], 0.66 + 0.06 * normal[11]
    mouth_long, smile = 0.34 + 0.07 * normal[12], 0.07 * normal[13]
    opened = np.maximum(0.16 * normal[14] - 0.04, 0.015)
    points = {
        "centre": place(0.0, (eyes_at + mouth_at) / 2, 0.25),
        "nose": place(0.02 * normal[15], nose_at, 0.42),
    }
    for side, name in ((-1.0, "right"), (1.0, "left")):
        points[f"{name}_inner"] = place(side * (apart - eye_long), eyes_at, 0.12)
        points[f"{name}_outer"] = place(side * (apart + eye_long), eyes_at - 0.02, 0.0)
        points[f"{name}_mouth"] = place(side * mouth_long, mouth_at - smile, 0.12)

    canvas = _FaceCanvas(m)
    ellipse = canvas.ellipse
    skin = 150 + 32 * normal[16]
    dark = skin - (62 + 18 * normal[17])
    _background(canvas, normal[18:22], chance[0:3])
    hair = np.clip(70 + 45 * normal[22], 5, 220)
    long = (1.22 + 0.06 * normal[23]) * scale
    ellipse(place(0.0, -0.28, -0.3), down, (1.42 * scale, 1.10 * scale), 1.5, hair)
    ellipse(place(0.0, 0.10, -0.05), down, (long, 0.90 * scale), 1.5, skin)
    beard = np.where(chance[3] < 0.15, 0.7, 0.0)
    ellipse(place(0.0, 0.85, 0.0), across, (0.6 * scale, 0.42 * scale), 3.0, dark, beard)
    for side, name in ((-1.0, "right"), (1.0, "left")):
        at, axis, half = _between(points[f"{name}_inner"], points[f"{name}_outer"])
        ellipse(at, axis, (1.5 * half, 0.24 * scale), 2.0, dark, 0.35)
        ellipse(at, axis, (1.08 * half, eye_tall * scale + 0.35), 0.8, dark)
        ellipse(at, axis, (0.9 * half, eye_tall * scale), 0.8, skin + 55, 0.8)
        gaze = at + (0.25 * normal[24] * half)[:, None] * axis
        round_ = np.minimum(0.10 * scale, eye_tall * scale + 0.2)
        ellipse(gaze, axis, (round_, round_), 0.8, dark - 50)
        brow = at - ((0.20 + 0.05 * normal[25]) * scale)[:, None] * down
        lift = axis + (side * 0.15 * normal[26])[:, None] * down
        ellipse(brow, lift, (0.27 * scale, 0.05 * scale + 0.2), 0.8, hair * 0.8, 0.8)
    nose, bridge = points["nose"], place(0.0, eyes_at, 0.15)
    at, axis, half = _between(bridge, nose)
    ellipse(at, axis, (half, 0.07 * scale), 1.2, skin + 25, 0.6)
    for side in (-1.0, 1.0):
        nostril = nose + 0.09 * side * scale[:, None] * across + 0.06 * scale[:, None] * down
        ellipse(nostril, across, (0.07 * scale, 0.045 * scale), 0.8, dark - 10, 0.8)
    at, axis, half = _between(points["right_mouth"], points["left_mouth"])
    at = at + ((smile + 0.3 * opened) * scale)[:, None] * down
    lips = np.stack((0.9 * smile + 0.02, 0.4 * opened + 0.05), axis=0)
    ellipse(at, axis, (half, (np.abs(lips).sum(axis=0)) * scale), 1.0, dark + 12, 0.8)
    ellipse(at, axis, (0.85 * half, opened * scale), 0.8, dark - 55)
    _cover(canvas, points, scale, chance[4:10], normal[27:29])
    image = _lit(canvas, normal[29:33], bits)
    order = np.stack([points[name] for name in NAMES], axis=1)
    return image, np.clip(np.floor(order), 0, SIDE - 1).astype(np.int64)


def _between(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return midpoints (m, 2), unit vectors from one point to the other, and half distances."""
    way = other - one
    length = np.maximum(np.sqrt((way**2).sum(axis=1)), 1e-3)
    return (one + other) / 2, way / length[:, None], length / 2


def _background(canvas: _FaceCanvas, normal: np.ndarray, chance: np.ndarray) -> None:
    """Paint a gradient of grey values, and two blobs."""
    m = len(canvas.image)
    rows, columns = canvas.rows - SIDE / 2, canvas.columns - SIDE / 2
    canvas.image += _wide(120 + 45 * normal[0]) + _wide(2 * normal[1]) * columns
    canvas.image += _wide(1.5 * normal[2]) * rows
    upright = np.tile([1.0, 0.0], (m, 1))
    for side, share in ((0.08, chance[0]), (0.92, chance[1])):
        at = np.stack((SIDE * share, np.full(m, SIDE * side)), axis=1)
        canvas.ellipse(at, upright, (3 + 9 * share, 2 + 5 * chance[2]), 1.5, 255 * share)


def _cover(
    canvas: _FaceCanvas,
    points: dict[str, np.ndarray],
    scale: np.ndarray,
    chance: np.ndarray,
    normal: np.ndarray,
) -> None:
    """Paint glasses on some faces, and an occluder (hand, scarf, microphone) over some."""
    worn = 0.8 * (chance[0] < 0.2)
    for name in ("right", "left"):
        at, axis, half = _between(points[f"{name}_inner"], points[f"{name}_outer"])
        outer = canvas.mask(at, axis, (half + 0.12 * scale, 0.27 * scale), 0.8)
        inner = canvas.mask(at, axis, (half + 0.03 * scale, 0.19 * scale), 0.8)
        canvas.paint(np.clip(outer - inner, 0.0, 1.0), 60 + 40 * normal[0], worn)
    there = np.where(chance[1] < 0.35, 1.0, 0.0)
    at = SIDE * (0.1 + 0.8 * np.stack((chance[2], chance[3]), axis=1))
    axis = np.stack((2 * chance[4] - 1, np.ones_like(there)), axis=1)
    axis /= np.sqrt((axis**2).sum(axis=1))[:, None]
    size = 3 + 7 * chance[5], 1.5 + 3 * chance[4]
    canvas.ellipse(at, axis, size, 1.0, 120 + 60 * normal[1], there)


def _lit(canvas: _FaceCanvas, normal: np.ndarray, bits: np.random.PCG64) -> np.ndarray:
    """Return the images after light from a side, blur and noise."""
    from scipy.ndimage import gaussian_filter1d

    rows, columns = canvas.rows - SIDE / 2, canvas.columns - SIDE / 2
    light = 1.0 + _wide(0.016 * normal[0]) * columns + _wide(0.01 * normal[1]) * rows
    gain = _wide(np.clip(0.85 + 0.2 * normal[2], 0.3, 1.3))
    image = canvas.image * np.maximum(light, 0.15) * gain
    for axis in (1, 2):
        image = gaussian_filter1d(image, 0.6, axis=axis)
    image = image + (3 + 4 * np.abs(normal[3]))[:, None, None] * approx_normal(image.shape, bits)
    return np.rint(np.clip(image, 0, 255)).astype(np.uint8)
