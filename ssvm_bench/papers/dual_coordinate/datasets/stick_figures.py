"""Stick figures in clutter: few positive images, many negative ones (Ramanan 2013, (10)–(12)).

The paper's solver was made for detectors of articulated figures, as Yang and Ramanan (2011) train:
a tree of parts whose places are known in the few positive images, and any of whose placements in
the many negative images is a false alarm. The paper has no data of its own. These images are
simulated:

.. code-block:: text

    positive    a torso; a head, two upper arms and two legs joined to it; two lower arms joined to
                the upper ones; angles are uniform in ranges
    negative    limbs of the same shapes, each turned and moved on its own
    both        further limbs as clutter, a background, noise

The parts alone do not tell the two apart; their arrangement does. Features of an image are
histograms of gradient directions: ``FEATURES`` directions for each cell of ``CELL`` × ``CELL``
pixels, relative to the contrast of the 3 × 3 cells around it, in steps of 1/255. A part is a window
of ``WINDOW`` × ``WINDOW`` cells around the middle of a limb. ``draw`` is the seed; there is no
file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import approx_normal, permutation, uniform
from ssvm_bench.config import SIMULATED
from ssvm_bench.config.validation import Count, Natural
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.arrays import array
from ssvm_bench.datasets.base import Dataset, SourceConfig, explained
from ssvm_bench.datasets.reading import ensure

FIGURES = "figures"
"""The structure of these datasets."""

CELLS, CELL, WINDOW, FEATURES = 28, 4, 4, 8
"""Rows and columns of cells, pixels of a cell's side, cells of a part's side, directions."""

PARTS = ("torso", "head", "upper_arm", "upper_arm", "lower_arm", "lower_arm", "leg", "leg")
PARENTS = (-1, 0, 0, 0, 2, 3, 0, 0)
LENGTHS, WIDTHS = (5.0, 1.2, 3.2, 3.2, 3.2, 3.2, 5.0, 5.0), (2.0, 2.2, 1.1, 1.1, 1.0, 1.0, 1.3, 1.3)
"""Lengths and widths of limbs, in cells."""

_CHUNK = 100
"""Images drawn at a time."""

_DIRECTIONS = np.array(
    [
        *([1.0, 0.0], [0.92388, 0.382683], [0.707107, 0.707107], [0.382683, 0.92388]),
        *([0.0, 1.0], [-0.382683, 0.92388], [-0.707107, 0.707107], [-0.92388, 0.382683]),
    ],
    np.float32,
)
"""Unit vectors of the directions, written out: the last bits of a cosine depend on the machine."""


class Tree(NamedTuple):
    """Where the parts of a figure may be.

    Attributes
    ----------
    parents : tuple of int
        The parent of each part, which comes before it; −1: the root, part 0.
    anchors : tuple of (row, column)
        The usual displacement of a part from its parent, in cells.
    reach : int
        By how many rows and columns a displacement may differ from it.
    cells, window, features : int
        Rows and columns of cells of an image, cells of a part's side, features of a cell.
    """

    parents: tuple[int, ...]
    anchors: tuple[tuple[int, int], ...]
    reach: int
    cells: int
    window: int
    features: int

    @property
    def side(self) -> int:
        """Rows, and columns, of positions: those of the first cell of a window."""
        return self.cells - self.window + 1

    def displacements(self, joints: np.ndarray) -> np.ndarray:
        """Return the displacements of parts from their parents, less the anchors.

        ``joints`` has shape (n, P), the result (n, P − 1, 2).
        """
        places = np.stack(np.divmod(joints, self.side), axis=-1)
        return places[:, 1:] - places[:, self.parents[1:]] - np.array(self.anchors[1:])


@dataclass(frozen=True, kw_only=True)
class Figures(Dataset):
    """Images that show a figure (label 1) or none (label 0).

    Attributes
    ----------
    joints : ndarray of int64, shape (n, P)
        The positions of the parts of each figure, row by row; meaningless for images without one.
    tree : Tree
        Which positions there are.
    """

    joints: np.ndarray
    tree: Tree

    def __post_init__(self) -> None:
        """Check everything that the oracle relies on.

        Raises
        ------
        RunFailedError
            If something is out of range; the message says what.
        """
        super().__post_init__()
        with explained(self):
            tree, P = self.tree, len(self.tree.parents)
            ensure(self.y.size == self.n and self.n_labels == 2, "an image has one label of two")
            ensure(self.n_features == tree.cells**2 * tree.features, "x has not a tree's cells")
            rising = all(0 <= parent < k for k, parent in enumerate(tree.parents) if k)
            ensure(rising and tree.parents[0] == -1, "a part comes before its parent")
            array(self.joints, "joints", shape=(self.n, P), low=0, high=tree.side**2 - 1)
            away = np.abs(tree.displacements(self.joints[self.y > 0])).max(initial=0)
            ensure(away <= tree.reach, f"a part is {away} cells from its anchor, over the reach")

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits over the dataset, the joints and the tree; equal for equal data."""
        digest = hashlib.sha256(super().fingerprint.encode())
        digest.update(f"{self.tree}".encode() + self.joints.astype(np.int64).tobytes())
        return digest.hexdigest()[:16]

    def take(self, examples: np.ndarray) -> Dataset:
        """Return the dataset of the given examples (indices), in that order."""
        return super().take(examples).derived(joints=self.joints[examples])


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of the stick figures.

    Attributes
    ----------
    draw : int
        Seed of the images.
    positives, negatives : int
        Number of images with and without a figure, to train on.
    held_out : int
        Number of images held out for the test, with the same share of figures.
    clutter : int
        Number of further limbs in every image.
    """

    draw: Natural = 0
    positives: Count = 60
    negatives: Count = 540
    held_out: Natural = 300
    clutter: Natural = 8

    def __post_init__(self) -> None:
        """Check the ranges; the source is ``"drawn"`` in any case."""
        if self.source == SIMULATED:  # as in stored configs
            object.__setattr__(self, "source", "auto")
        super().__post_init__()
        object.__setattr__(self, "source", SIMULATED)
        if self.clutter > 100:
            raise ConfigError("dataset.clutter must be ≤ 100, the limbs that an image can show.")


def load(config: Config) -> Figures:
    """Return the images in random order: x uint8 (600, 6272); those held out are ``"test"``.

    Raises
    ------
    ConfigError
        ``n_samples`` exceeds the number of images.
    """
    m = config.positives + config.negatives
    sources.check_n(config, m, "images")
    k = round(config.held_out * config.positives / m)
    pixels = (CELLS * CELL) ** 2
    check_room(
        float((m + config.held_out) * CELLS**2 * FEATURES + 200 * _CHUNK * pixels),
        f"{m + config.held_out} images",
        "Choose fewer.",
    )
    drawn = [
        _images(config, sizes, np.random.PCG64([config.draw, stream]))
        for stream, sizes in enumerate(
            ((config.positives, config.negatives), (k, config.held_out - k))
        )
    ]
    (x, y, joints), (x_test, y_test, joints_test) = drawn
    figures = np.concatenate((joints[y > 0], joints_test[y_test > 0]))
    tree = _tree(figures)
    held_out = {"test": _made(config, x_test, y_test, joints_test, tree)} if y_test.size else {}
    made = _made(config, x, y, joints, tree)
    return sources.first_samples(config, made.derived(held_out=held_out))  # type: ignore[return-value]


def _made(config: Config, x: np.ndarray, y: np.ndarray, joints: np.ndarray, tree: Tree) -> Figures:
    about: Any = {"source": config.source, "joints": joints, "tree": tree}
    return Figures(config.name, x, y, np.arange(y.size + 1), 2, FIGURES, **about)


def _tree(joints: np.ndarray) -> Tree:
    """Return the tree whose anchors are the middles of the displacements of some figures."""
    loose = Tree(PARENTS, ((0, 0),) * len(PARENTS), 0, CELLS, WINDOW, FEATURES)
    away = loose.displacements(joints)
    low, high = away.min(axis=0), away.max(axis=0)
    middle = (low + high) // 2
    anchors = ((0, 0), *((int(row), int(column)) for row, column in middle))
    reach = int(np.maximum(middle - low, high - middle).max())
    return loose._replace(anchors=anchors, reach=reach)


# ---- drawing ----------------------------------------------------------------------------------


def _images(
    config: Config, sizes: tuple[int, int], bits: np.random.PCG64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and joints of images with and without a figure, in random order."""
    m = sum(sizes)
    y = np.repeat(np.array([1, 0], np.uint8), sizes)[permutation(m, bits)]
    x = np.zeros((m, CELLS**2 * FEATURES), np.uint8)
    joints = np.zeros((m, len(PARTS)), np.int64)
    for begin in range(0, m, _CHUNK):
        here = slice(begin, min(begin + _CHUNK, m))
        count = here.stop - begin
        middles, axes = _poses(count, bits)
        side = CELLS - WINDOW
        places = np.clip(np.floor(middles - WINDOW / 2 + 0.5), 0, side).astype(np.int64)
        joints[here] = places[..., 0] * (side + 1) + places[..., 1]
        loose = y[here] == 0
        random = _loose((int(loose.sum()), len(PARTS)), bits)
        middles[loose], axes[loose] = random
        shapes = np.stack((LENGTHS, WIDTHS), axis=1)
        kind = (uniform((count, config.clutter), bits) * len(PARTS)).astype(np.int64)
        more = _loose((count, config.clutter), bits)
        middles = np.concatenate((more[0], middles), axis=1)
        axes = np.concatenate((more[1], axes), axis=1)
        sizes_of = np.concatenate((shapes[kind], np.tile(shapes, (count, 1, 1))), axis=1)
        x[here] = _features(_drawn(middles, axes, sizes_of, bits))
    return x, y, joints


def _loose(shape: tuple[int, int], bits: np.random.PCG64) -> tuple[np.ndarray, np.ndarray]:
    """Return middles (m, k, 2), in cells, and unit vectors of limbs that belong to no figure."""
    places = WINDOW / 2 + (CELLS - WINDOW) * uniform((*shape, 2), bits)
    return places, _unit(2 * np.pi * uniform(shape, bits))


def _unit(angle: np.ndarray) -> np.ndarray:
    """Return the direction (row, column) of an angle from the vertical, rounded."""
    return np.round(np.stack((np.cos(angle), np.sin(angle)), axis=-1), 6)


def _poses(m: int, bits: np.random.PCG64) -> tuple[np.ndarray, np.ndarray]:
    """Return middles (m, 8, 2), in cells, and unit vectors of the limbs of m figures."""
    u = uniform((9, m), bits)
    root = np.stack((10.0 + 9.0 * u[0], 8.5 + 11.0 * u[1]), axis=1)
    tilt = 0.5 * (u[2] - 0.5)
    down = _unit(tilt)
    across = np.stack((-down[:, 1], down[:, 0]), axis=1)
    shoulders, hips = root - 2.3 * down, root + 2.5 * down
    middles, axes = [root, root - 3.4 * down], [down, down]
    upper, lower, legs = [], [], []
    for k, side in enumerate((-1.0, 1.0)):
        angle = tilt + side * (0.3 + 1.9 * u[3 + k])
        one, other = _unit(angle), _unit(angle + side * 1.8 * (u[5 + k] - 0.3))
        joint = shoulders + 0.9 * side * across
        upper.append((joint + 1.6 * one, one))
        lower.append((joint + 3.2 * one + 1.6 * other, other))
        leg = _unit(tilt + side * (0.05 + 0.55 * u[7 + k]))
        legs.append((hips + 0.5 * side * across + 2.5 * leg, leg))
    for middle, axis in (*upper, *lower, *legs):
        middles.append(middle)
        axes.append(axis)
    return np.stack(middles, axis=1), np.stack(axes, axis=1)


def _drawn(
    middles: np.ndarray, axes: np.ndarray, sizes: np.ndarray, bits: np.random.PCG64
) -> np.ndarray:
    """Return images, float32 (m, 112, 112), of limbs drawn one over the other."""
    m, limbs, _ = middles.shape
    along = (np.arange(CELLS * CELL, dtype=np.float32) + 0.5) / CELL
    rows, columns = along[None, :, None], along[None, None, :]
    shade = approx_normal((3, m), bits).astype(np.float32)[..., None, None]
    image = 120 + 20 * shade[0] + shade[1] * (rows - CELLS / 2) + shade[2] * (columns - CELLS / 2)
    grey = image.mean(axis=(1, 2))[:, None] + np.where(uniform((m, 1), bits) < 0.5, -1.0, 1.0) * (
        35 + 30 * uniform((m, limbs), bits)
    )
    at, to, size = (each.astype(np.float32)[..., None, None] for each in (middles, axes, sizes))
    for k in range(limbs):
        dy, dx = rows - at[:, k, 0], columns - at[:, k, 1]
        u = np.abs(dy * to[:, k, 0] + dx * to[:, k, 1]) - size[:, k, 0] / 2
        v = np.abs(dx * to[:, k, 0] - dy * to[:, k, 1]) - size[:, k, 1] / 2
        mask = np.clip(0.5 - CELL * np.maximum(u, v), 0, 1)
        image += mask * (grey[:, k].astype(np.float32)[:, None, None] - image)
    return image + 6 * approx_normal(image.shape, bits).astype(np.float32)


def _features(image: np.ndarray) -> np.ndarray:
    """Return the histograms of gradient directions of images, uint8 (m, cells · FEATURES)."""
    m = len(image)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)), mode="edge")
    dy, dx = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1], padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    fit = np.abs(dy[..., None] * _DIRECTIONS[:, 0] + dx[..., None] * _DIRECTIONS[:, 1])
    nearest = fit.argmax(axis=-1)
    much = np.sqrt(dy * dy + dx * dx)
    made = np.zeros((m, CELLS, CELLS, FEATURES), np.float32)
    for f in range(FEATURES):
        of = np.where(nearest == f, much, 0).reshape(m, CELLS, CELL, CELLS, CELL)
        made[..., f] = of.sum(axis=(2, 4))
    energy = np.pad(made.sum(axis=-1), ((0, 0), (1, 1), (1, 1)))
    around = np.zeros((m, CELLS, CELLS), np.float32)
    for a, b in product(range(3), range(3)):
        around += energy[:, a : a + CELLS, b : b + CELLS]
    scaled = made / (around[..., None] / 9 + 100)
    return np.rint(np.clip(255 * scaled / 2, 0, 255)).astype(np.uint8).reshape(m, -1)
