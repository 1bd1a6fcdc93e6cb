"""Synthetic photographs: figures on textured ground, outdoor scenes, and a moving figure.

A picture is painted in layers of irregular shape, each of one colour, with a texture. Labels share
colours, so they can be learned, but not perfectly.

Pixels are computed from words of a ``PCG64`` by + − × / √ and comparisons only, element by element,
so all machines draw the same picture. Positions are fractions of the height and the width, cells of
noise are in pixels, colours in 0 .. 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.datasets.images.pictures import Picture, Pictures

VERSION = 3
"""To be raised when the same seeds begin to give other pictures."""

HEIGHT, WIDTH = 120, 160

SKY, TREE, ROAD, GRASS, WATER, BUILDING, MOUNTAIN, OBJECT, UNKNOWN = range(9)

COLOURS = {
    SKY: ((128, 168, 218), (204, 206, 208)),
    TREE: ((66, 86, 42), (92, 112, 56), (112, 92, 54)),
    ROAD: ((128, 126, 124), (104, 102, 104), (158, 144, 120)),
    GRASS: ((104, 128, 60), (122, 132, 74), (80, 102, 48)),
    WATER: ((96, 128, 164), (150, 158, 162), (84, 104, 96)),
    BUILDING: ((176, 160, 138), (150, 92, 74), (148, 148, 150)),
    MOUNTAIN: ((112, 124, 140), (110, 104, 90), (92, 108, 88)),
    OBJECT: ((176, 44, 40), (48, 70, 130), (90, 92, 92), (190, 160, 60)),
    UNKNOWN: ((120, 110, 100),),
}
COAT = ((112, 66, 38), (86, 52, 34), (64, 58, 50), (168, 156, 140))
GROUND = (*COLOURS[SKY], *COLOURS[TREE], *COLOURS[GRASS], *COLOURS[BUILDING])
TEXTURE = {TREE: 2.5, GRASS: 4.0, ROAD: 2.0}
"""Cell size of a label's texture, in pixels; 8 for the other labels."""


def _pictures(draw: Any, name: str, n: int, *key: int) -> Pictures:
    names = tuple(name.format(i) for i in range(n))
    return Pictures(names, [(*key[:1], i, *key[1:], VERSION) for i in range(n)], draw)


def figures(n: int, seed: int = 1) -> Pictures:
    """Return n pictures of one figure each: label 1, on ground of label 0.

    Another seed gives other pictures; the first ones do not depend on n.
    """
    return _pictures(draw_figure, "figure{:04d}", n, seed)


def layers(n: int, seed: int = 2) -> Pictures:
    """Return n layered scenes with the labels of Stanford Background, about as frequent as there.

    Another seed gives other pictures; the first ones do not depend on n.
    """
    return _pictures(draw_scene, "scene{:04d}", n, seed)


def moving(n: int, seed: int = 3) -> Pictures:
    """Return a sequence of n frames: a figure moves past, for a while behind a fixed object."""
    return _pictures(draw_frame, "{:05d}", n, seed, n)


def draw_figure(which: tuple[int, ...]) -> Picture:
    """Draw picture i of a seed: ground in patches, patches in colours of figures, one figure."""
    canvas = _Canvas(which)
    number, blob = canvas.number, canvas.blob
    canvas.paint(canvas.y >= 0, 0, GROUND)
    for colours in (GROUND, GROUND, COAT, COAT):
        canvas.paint(blob(number(0, 1), number(0.2, 1), number(0.01, 0.06)), 0, colours)
    share = number(0.03, 0.22) + number(0.03, 0.22)
    canvas.paint(blob(number(0.42, 0.58), number(0.42, 0.58), share), 1, COAT)
    return canvas.finished()


def draw_frame(which: tuple[int, ...]) -> Picture:
    """Draw frame i of n of a seed: only the figure's position changes from frame to frame."""
    seed, i, n, version = which
    canvas = _Canvas((seed, version))
    canvas.paint(canvas.y >= 0, 0, COLOURS[TREE])
    canvas.paint(canvas.below(0.6), 0, COLOURS[ROAD])
    canvas.paint(canvas.blob(0.2 + 0.6 * i / max(n - 1, 1), 0.55, 0.05), 1, COAT)
    canvas.paint(canvas.blob(0.55, 0.5, 0.06), 0, COLOURS[BUILDING])
    return canvas.finished()


def draw_scene(which: tuple[int, ...]) -> Picture:
    """Draw picture i of a seed: sky, two things in the distance, two grounds, and objects."""
    canvas = _Canvas(which)
    number, choice = canvas.number, canvas.choice
    canvas.paint(canvas.y >= 0, SKY)
    border = canvas.x < number(0.2, 0.8)
    for side in (border, ~border):
        label = choice((BUILDING,) * 17 + (TREE,) * 10 + (MOUNTAIN,))
        canvas.paint(side & canvas.below(number(0.0, 0.26)), label)
    horizon = number(0.46, 0.64)
    for start in (horizon, number(horizon, 1)):
        canvas.paint(canvas.below(start), choice((ROAD,) * 13 + (GRASS,) * 4 + (WATER,) * 2))
    for _ in range(int(number(1, 4))):
        canvas.paint(canvas.blob(number(0, 1), number(horizon, 0.95), number(0.02, 0.13)), OBJECT)
    if number(0, 1) < 0.2:
        canvas.paint(canvas.blob(number(0, 1), number(0, 1), number(0.02, 0.04)), UNKNOWN)
    return canvas.finished()


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

    def noise(self, cell: float) -> np.ndarray:
        """Return noise (h, w), smooth over cells of that size, of mean 0 and about unit size."""
        lattice = approx_normal((int(HEIGHT / cell) + 2, int(WIDTH / cell) + 2), self.bits)
        (i, t), (j, s) = (
            ((at := np.arange(length) / cell).astype(np.int64), at % 1)
            for length in (HEIGHT, WIDTH)
        )
        rows = lattice[:, j] + s * (lattice[:, j + 1] - lattice[:, j])
        return rows[i] + t[:, None] * (rows[i + 1] - rows[i])

    def below(self, height: float) -> np.ndarray:
        """Return the mask of the pixels below a wavy line around the given height."""
        return self.y >= height + 0.03 * self.noise(20)[0]

    def blob(self, x: float, y: float, share: float) -> np.ndarray:
        """Return the mask of an irregular shape around (x, y), of a given share of the picture."""
        size, wide = int(share * self.x.size), self.number(0.5, 1.0)
        rough = share * 0.25 * self.noise(sqrt(size) / 3 + 2)
        far = (wide * (self.x - x)) ** 2 + (self.y - y) ** 2 + rough
        return far <= np.partition(far.ravel(), size)[size]

    def paint(self, where: np.ndarray, label: int, colours: Sequence[Any] | None = None) -> None:
        """Paint a mask in one of some colours, by default the label's, and set its label."""
        texture = 0.12 * self.noise(TEXTURE.get(label, 8.0)) + 0.08 * self.noise(25)
        light = self.number(0.7, 1.3) * (1 + texture)
        colour = np.array(self.choice(colours or COLOURS[label]))
        self.rgb[where] = (light[:, :, None] * colour)[where]
        self.truth[where] = label

    def finished(self) -> Picture:
        """Return the picture under uneven light, with grain."""
        light = 1 + self.number(-0.2, 0.2) * (self.x - 0.5)
        grain = 4 * approx_normal(self.truth.shape, self.bits)
        rgb = self.rgb * light[:, :, None] + grain[:, :, None]
        return Picture(np.round(np.clip(rgb, 0, 255)).astype(np.uint8), self.truth)
