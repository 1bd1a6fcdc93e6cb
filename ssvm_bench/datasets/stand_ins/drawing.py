"""What the stand-ins' pictures are drawn with: noise, shapes and surfaces.

Only + − × / √ and comparisons on words of a ``PCG64`` decide about a pixel, element by element,
so that all machines draw the same picture. Lengths are in pixels, colours in 0 .. 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.random import bell, uniform

Colour = tuple[float, float, float]


@dataclass
class Canvas:
    """A picture that is being painted, layer over layer.

    Attributes
    ----------
    height, width : int
        Its size.
    bits : PCG64
        Where all its random numbers come from.
    rgb : ndarray, shape (h, w, 3)
        Colours so far, before light and camera.
    truth : ndarray of uint8, shape (h, w)
        Labels so far.
    x, y : ndarray, shape (h, w)
        Column and row of every pixel.
    """

    height: int
    width: int
    bits: np.random.PCG64
    rgb: np.ndarray = field(init=False)
    truth: np.ndarray = field(init=False)
    x: np.ndarray = field(init=False)
    y: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Start black, with label 0."""
        self.rgb = np.zeros((self.height, self.width, 3))
        self.truth = np.zeros((self.height, self.width), dtype=np.uint8)
        self.y, self.x = np.mgrid[: self.height, : self.width].astype(np.float64)

    def number(self, low: float, high: float) -> float:
        """Return a random number, uniform in [low, high)."""
        return low + (high - low) * float(uniform((1,), self.bits)[0])

    def chance(self, probability: float) -> bool:
        """Return true with the given probability."""
        return self.number(0, 1) < probability

    def choice(self, items: Sequence) -> Any:
        """Return one of the items."""
        return items[int(self.number(0, len(items)))]

    def noise(self, down: float, across: float) -> np.ndarray:
        """Return smooth noise, shape (h, w), of mean 0 and about unit size.

        Random values on a lattice with cells of the given height and width, interpolated.
        """
        rows, columns = int(self.height / down) + 3, int(self.width / across) + 3
        lattice = bell((rows, columns), self.bits)
        i, t = _steps(self.height, down, self.number(0, 1))
        j, s = _steps(self.width, across, self.number(0, 1))
        left_right = lattice[:, j] + s * (lattice[:, j + 1] - lattice[:, j])
        return left_right[i] + t[:, None] * (left_right[i + 1] - left_right[i])

    def paint(self, where: np.ndarray, label: int, surface: np.ndarray) -> None:
        """Put a surface (h, w, 3) and a label where the mask (h, w) says."""
        self.rgb[where] = surface[where]
        self.truth[where] = label

    def surface(self, colour: Colour, *roughness: tuple[float, float, float]) -> np.ndarray:
        """Return a surface (h, w, 3) of one colour, lighter and darker by noise.

        Parameters
        ----------
        colour : triple of float
            Its mean.
        *roughness : (amplitude, down, across)
            Layers of noise: relative size, height and width of a cell.
        """
        light = np.ones((self.height, self.width))
        for amplitude, down, across in roughness:
            light += amplitude * self.noise(down, across)
        return light[:, :, None] * np.array(colour)

    def tint(self, colour: Colour, spread: float) -> Colour:
        """Return a colour near the given one: another brightness, and a bit of another hue."""
        gain = 1 + spread * self.number(-1, 1)
        r, g, b = (part * gain * (1 + 0.15 * spread * self.number(-1, 1)) for part in colour)
        return r, g, b

    def capsule(self, a: tuple, b: tuple, ra: float, rb: float) -> np.ndarray:
        """Return the mask of a limb from a to b (x, y each), of radius ra there and rb here."""
        ex, ey = b[0] - a[0], b[1] - a[1]
        dx, dy = self.x - a[0], self.y - a[1]
        along = np.clip((dx * ex + dy * ey) / max(ex * ex + ey * ey, 1e-9), 0, 1)
        dx, dy = dx - along * ex, dy - along * ey
        radius = ra + along * (rb - ra)
        return dx * dx + dy * dy < radius * radius

    def box(self, left: float, top: float, right: float, bottom: float) -> np.ndarray:
        """Return the mask of an upright rectangle."""
        return (left <= self.x) & (self.x < right) & (top <= self.y) & (self.y < bottom)

    def blob(self, x: float, y: float, rx: float, ry: float, rough: float) -> np.ndarray:
        """Return the mask of an ellipse whose border is frayed by noise."""
        dx, dy = (self.x - x) / rx, (self.y - y) / ry
        return dx * dx + dy * dy < 1 + rough * self.noise(ry / 3 + 2, rx / 3 + 2)

    def below(self, height: float, wave: float, length: float) -> np.ndarray:
        """Return the mask of what is below a wavy line around the given y."""
        line = height + wave * self.noise(2.0 * self.height, length)[0]
        line += wave / 3 * self.noise(2.0 * self.height, length / 4)[0]
        return self.y > line

    def developed(self) -> Picture:
        """Return the picture as a camera gives it: uneven light, a little blur and grain."""
        gain = self.number(0.8, 1.15)
        tilt = [self.number(-0.2, 0.2) for _ in range(2)]
        light = gain * (
            1 + tilt[0] * (self.x / self.width - 0.5) + tilt[1] * (self.y / self.height - 0.5)
        )
        cast = np.array([self.number(0.94, 1.06) for _ in range(3)])
        rgb = np.pad(self.rgb * light[:, :, None] * cast, ((1, 1), (1, 1), (0, 0)), mode="edge")
        rgb = (rgb[:-2] + 2 * rgb[1:-1] + rgb[2:]) / 4
        rgb = (rgb[:, :-2] + 2 * rgb[:, 1:-1] + rgb[:, 2:]) / 4
        grain = self.number(2, 6) * bell(self.truth.shape, self.bits)
        rgb += grain[:, :, None]
        return Picture(np.round(np.clip(rgb, 0, 255)).astype(np.uint8), self.truth)


def _steps(length: int, cell: float, phase: float) -> tuple[np.ndarray, np.ndarray]:
    """Return each pixel's lattice cell, and how far into it, eased so that cells do not show."""
    place = np.arange(length) / cell + phase
    i = place.astype(np.int64)
    t = place - i
    return i, t * t * (3 - 2 * t)
