"""Stand-ins for photographs: figures on textured ground, and layered outdoor scenes.

A picture is painted in layers of irregular shape, each with a surface of one colour and one
texture. Those of the labels overlap, within a picture and between pictures, so that the labels can
be learned, but not perfectly. The pictures are then treated like photographs.

Only + − × / √ and comparisons on words of a ``PCG64`` decide about a pixel, element by element, so
that all machines draw the same picture. Places are shares of the height and of the width, cells of
noise are in pixels, colours in 0 .. 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.datasets.images.pictures import Picture, Pictures

VERSION = 2
"""To be raised when the same numbers begin to give other pictures."""

HEIGHT, WIDTH = 120, 160

SKY, TREE, ROAD, GRASS, WATER, BUILDING, MOUNTAIN, OBJECT, UNKNOWN = range(9)


class Surface(NamedTuple):
    """One of some colours, and its texture: amplitude, height and width of a cell, windows."""

    colours: tuple[tuple[int, int, int], ...]
    rough: float
    down: float
    across: float
    windows: bool = False


SURFACES = {
    SKY: Surface(((128, 168, 218), (204, 206, 208)), 0.06, 14, 50),
    TREE: Surface(((66, 86, 42), (52, 70, 40), (92, 112, 56), (112, 92, 54)), 0.2, 2.5, 2.5),
    ROAD: Surface(((128, 126, 124), (104, 102, 104), (158, 144, 120)), 0.06, 2, 3),
    GRASS: Surface(((104, 128, 60), (122, 132, 74), (80, 102, 48), (146, 136, 92)), 0.13, 4, 2),
    WATER: Surface(((96, 128, 164), (150, 158, 162), (84, 104, 96)), 0.09, 2, 14),
    BUILDING: Surface(((176, 160, 138), (150, 92, 74), (148, 148, 150)), 0.05, 3, 8, True),
    MOUNTAIN: Surface(((112, 124, 140), (110, 104, 90), (92, 108, 88)), 0.12, 8, 12),
    OBJECT: Surface(((176, 44, 40), (48, 70, 130), (90, 92, 92), (190, 160, 60)), 0.1, 5, 9),
    UNKNOWN: Surface(((120, 110, 100),), 0.2, 3, 3),
}
COAT = Surface(((112, 66, 38), (86, 52, 34), (64, 58, 50), (168, 156, 140)), 0.1, 4, 4)
BACKS = tuple(SURFACES[label] for label in (SKY, TREE, TREE, BUILDING))
FRONTS = tuple(SURFACES[label] for label in (GRASS, GRASS, ROAD, MOUNTAIN))


def figures(n: int, seed: int = 1) -> Pictures:
    """Return n pictures of one figure each: label 1, on ground of label 0.

    Those of another seed are others; the first ones do not depend on n.
    """
    names = tuple(f"figure{i:04d}" for i in range(n))
    return Pictures(names, [(seed, i, VERSION) for i in range(n)], draw_figure)


def layers(n: int, seed: int = 2) -> Pictures:
    """Return n layered scenes with the labels of Stanford Background, about as frequent as there.

    Those of another seed are others; the first ones do not depend on n.
    """
    names = tuple(f"scene{i:04d}" for i in range(n))
    return Pictures(names, [(seed, i, VERSION) for i in range(n)], draw_scene)


def moving(n: int, seed: int = 3) -> Pictures:
    """Return a sequence of n frames: a figure goes behind a thing of its own colours, and on."""
    names = tuple(f"{i:05d}" for i in range(n))
    return Pictures(names, [(seed, i, n, VERSION) for i in range(n)], draw_frame)


def draw_figure(which: tuple[int, ...]) -> Picture:
    """Draw picture i of a seed: a back, a front, what might be a part of a figure, and one."""
    canvas = _Canvas(which)
    number, choice = canvas.number, canvas.choice
    canvas.paint(canvas.below(0, 0), 0, choice(BACKS))
    canvas.paint(canvas.below(number(0.1, 0.75), 0.04), 0, choice(FRONTS))
    for _ in range(int(number(0, 6))):
        canvas.paint(canvas.blob(number(0, 1), number(0.2, 1), number(0.01, 0.06)), 0, COAT)
    share = number(0.03, 0.22) + number(0.03, 0.22)
    canvas.paint(canvas.blob(number(0.42, 0.58), number(0.42, 0.58), share), 1, COAT)
    return canvas.developed()


def draw_frame(which: tuple[int, ...]) -> Picture:
    """Draw frame i of n of a seed: only the figure's place changes from frame to frame."""
    seed, i, n, version = which
    canvas = _Canvas((seed, version))
    canvas.paint(canvas.below(0, 0), 0, SURFACES[TREE])
    canvas.paint(canvas.below(0.6, 0.03), 0, SURFACES[ROAD])
    canvas.paint(canvas.blob(0.2 + 0.6 * i / max(n - 1, 1), 0.55, 0.05), 1, COAT)
    canvas.paint(canvas.blob(0.55, 0.5, 0.06), 0, SURFACES[BUILDING])
    return canvas.developed()


def draw_scene(which: tuple[int, ...]) -> Picture:
    """Draw picture i of a seed: sky, two things in the distance, two grounds, and objects."""
    canvas = _Canvas(which)
    number, choice = canvas.number, canvas.choice

    def paint(where: np.ndarray, label: int) -> None:
        canvas.paint(where, label, SURFACES[label])

    paint(canvas.below(0, 0), SKY)
    border = canvas.x < number(0.2, 0.8)
    for side in (border, ~border):
        label = choice((BUILDING,) * 17 + (TREE,) * 10 + (MOUNTAIN,))
        paint(side & canvas.below(number(0.0, 0.26), 0.05, label == BUILDING), label)
    horizon = number(0.46, 0.64)
    for start in (horizon, number(horizon, 1)):
        label = choice((ROAD,) * 13 + (GRASS,) * 4 + (WATER,) * 2)
        paint(canvas.below(start, 0.01), label)
    for _ in range(int(number(1, 4))):
        paint(canvas.blob(number(0, 1), number(horizon, 0.95), number(0.02, 0.13)), OBJECT)
    if number(0, 1) < 0.2:
        paint(canvas.blob(number(0, 1), number(0, 1), number(0.02, 0.04)), UNKNOWN)
    return canvas.developed()


class _Canvas:
    """A picture that is being painted, layer over layer; x and y of its pixels are in [0, 1]."""

    def __init__(self, which: tuple[int, ...]) -> None:
        self.bits = np.random.PCG64(list(which))
        self.rgb = np.zeros((HEIGHT, WIDTH, 3))
        self.truth = np.zeros((HEIGHT, WIDTH), np.uint8)
        self.y, self.x = np.mgrid[:HEIGHT, :WIDTH] / np.array([HEIGHT, WIDTH])[:, None, None]

    def number(self, low: float, high: float) -> float:
        """Return a random number, uniform in [low, high)."""
        return low + (high - low) * float(uniform((1,), self.bits)[0])

    def choice(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        return items[int(self.number(0, len(items)))]

    def noise(self, down: float, across: float) -> np.ndarray:
        """Return noise (h, w), smooth over cells of that size, of mean 0 and about unit size."""
        lattice = approx_normal((int(HEIGHT / down) + 3, int(WIDTH / across) + 3), self.bits)
        i, t = _steps(HEIGHT, down, self.number(0, 1))
        j, s = _steps(WIDTH, across, self.number(0, 1))
        rows = lattice[:, j] + s * (lattice[:, j + 1] - lattice[:, j])
        return rows[i] + t[:, None] * (rows[i + 1] - rows[i])

    def below(self, height: float, wave: float, boxes: bool = False) -> np.ndarray:
        """Return the mask of what is below a wavy line, or one of boxes, around the given y."""
        line = height + wave * (self.noise(HEIGHT, 40) + self.noise(HEIGHT, 10) / 3)[0]
        return self.y >= (line[np.arange(WIDTH) // 20 * 20] if boxes else line)

    def blob(self, x: float, y: float, share: float) -> np.ndarray:
        """Return the mask of an irregular shape around (x, y), of a given share of the picture."""
        size, wide = int(share * self.x.size), self.number(0.5, 1.0)
        cell = sqrt(size) / 3 + 2
        rough = 0.22 * self.noise(cell, cell) + 0.08 * self.noise(cell / 4, cell / 4)
        far = (wide * (self.x - x)) ** 2 + (self.y - y) ** 2 + share * rough
        return far <= np.partition(far.ravel(), size)[size]

    def paint(self, where: np.ndarray, label: int, surface: Surface) -> None:
        """Cover a mask with a surface, and give it a label."""
        hue = [self.number(0.88, 1.12) for _ in range(3)]
        fine, coarse = self.noise(surface.down, surface.across), self.noise(20, 30)
        light = self.number(0.7, 1.3) * (1 + surface.rough * fine + 0.08 * coarse)
        if surface.windows:
            down, across = self.number(8, 15), self.number(7, 14)
            frame = (self.y * HEIGHT % down < 0.5 * down) | (self.x * WIDTH % across < 0.5 * across)
            light *= np.where(frame, 1, self.number(0.4, 0.9))
        colour = np.array(self.choice(surface.colours)) * hue
        self.rgb[where] = (light[:, :, None] * colour)[where]
        self.truth[where] = label

    def developed(self) -> Picture:
        """Return the picture as a camera gives it: under uneven light, and with grain."""
        light = self.number(0.8, 1.15) + self.number(-0.2, 0.2) * (self.x - 0.5)
        grain = self.number(2, 6) * approx_normal(self.truth.shape, self.bits)
        rgb = self.rgb * light[:, :, None] + grain[:, :, None]
        return Picture(np.round(np.clip(rgb, 0, 255)).astype(np.uint8), self.truth)


def _steps(length: int, cell: float, phase: float) -> tuple[np.ndarray, np.ndarray]:
    """Return each pixel's lattice cell, and how far into it, eased so that cells do not show."""
    place = np.arange(length) / cell + phase
    i = place.astype(np.int64)
    t = place - i
    return i, t * t * (3 - 2 * t)
