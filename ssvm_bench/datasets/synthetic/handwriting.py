"""Handwriting for the stand-ins: a skeleton font, distorted and drawn with a pen.

Every sample of a glyph wobbles the skeleton's control points, slants it, fits it into the cell
and is drawn as the distance of each pixel's centre to the nearest stroke. Only IEEE arithmetic
(+ − × / √) on words of a ``PCG64`` is used, so all machines draw the same pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np

from ssvm_bench.base.random import approx_normal

Stroke = tuple[bool, np.ndarray]  # is it a curve? and its control points, shape (p, 2)
Form = list[Stroke]

CHUNK = 256  # samples drawn at a time: the temporaries stay in the processor's cache


@dataclass(frozen=True)
class Style:
    """How each of m samples is written; arrays of shape (m,), lengths in pixels.

    Attributes
    ----------
    slant : ndarray
        Shift to the right per unit of height.
    aspect : ndarray
        Height over width, relative to the skeleton's.
    size : ndarray
        Share of the cell that is filled, in (0, 1].
    shift : ndarray, shape (m, 2)
        Displacement (x, y) from the middle of the cell.
    wobble : ndarray
        Standard deviation of a control point, in units of the font.
    """

    slant: np.ndarray
    aspect: np.ndarray
    size: np.ndarray
    shift: np.ndarray
    wobble: np.ndarray


def font() -> dict[str, list[Form]]:
    """Return the forms of every character of the bundled font."""
    forms: dict[str, list[Form]] = {}
    for line in resources.files(__package__).joinpath("glyphs.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            form = [("~" in stroke, _points(stroke)) for stroke in line[1:].split("|")]
            forms.setdefault(line[0], []).append(form)
    return forms


def _points(stroke: str) -> np.ndarray:
    return np.array([point.split(",") for point in stroke.replace("~", "").split()], np.float64)


def distances(
    characters: str,
    y: np.ndarray,
    habit: np.ndarray,
    style: Style,
    cell: tuple[int, int],
    bits: np.random.PCG64,
) -> np.ndarray:
    """Return the distance of every pixel to the nearest stroke, for m samples.

    Parameters
    ----------
    characters : str
        What the labels mean.
    y : ndarray of int, shape (m,)
        The label of each sample.
    habit : ndarray, shape (m,)
        Numbers in [0, 1) that choose among the forms of the character.
    style : Style
        How each sample is written.
    cell : (height, width)
        Size of the cell in pixels.
    bits : PCG64
        Where the wobble comes from.

    Returns
    -------
    ndarray of float32, shape (m, height * width)
        Distances in pixels, row-major.
    """
    forms = font()
    out = np.empty((y.size, cell[0] * cell[1]), dtype=np.float32)
    for label, character in enumerate(characters):
        form_of = (habit * len(forms[character])).astype(np.int64)
        for k, form in enumerate(forms[character]):
            members = np.flatnonzero((y == label) & (form_of == k))
            for lo in range(0, members.size, CHUNK):
                part = members[lo : lo + CHUNK]
                out[part] = _distance_to_segments(*_segments(form, part, style, cell, bits), cell)
    return out


def _segments(
    form: Form,
    part: np.ndarray,
    style: Style,
    cell: tuple[int, int],
    bits: np.random.PCG64,
) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of all line segments, float32 of shape (segments, 2, samples)."""
    paths = []
    for curved, skeleton in form:
        noise = approx_normal((*skeleton.shape, part.size), bits)
        points = skeleton[:, :, None] + style.wobble[part] * noise
        if curved:
            points = _cut_corners(_cut_corners(points))
        points[:, 0] -= style.slant[part] * points[:, 1]
        paths.append(points)
    everything = np.concatenate(paths)
    low, high = everything.min(axis=0), everything.max(axis=0)
    extent, stretch = np.maximum(high - low, 1e-3), style.aspect[part]
    room = np.array([cell[1] - 1.0, cell[0] - 1.0])
    scale = np.minimum(room[0] / extent[0], room[1] / (extent[1] * stretch)) * style.size[part]
    factor = np.stack([scale, scale * stretch])
    middle = (room / 2)[:, None] + style.shift[part].T
    paths = [((path - (low + high) / 2) * factor + middle).astype(np.float32) for path in paths]
    starts, ends = [path[:-1] for path in paths], [path[1:] for path in paths]
    return np.concatenate(starts), np.concatenate(ends)


def _cut_corners(points: np.ndarray) -> np.ndarray:
    """One step of Chaikin's corner cutting along axis 0; the end points stay."""
    a, b = points[:-1], points[1:]
    cut = np.empty((2 * a.shape[0], *points.shape[1:]))
    cut[0::2] = 0.75 * a + 0.25 * b
    cut[1::2] = 0.25 * a + 0.75 * b
    cut[0], cut[-1] = points[0], points[-1]
    return cut


def _distance_to_segments(
    starts: np.ndarray, ends: np.ndarray, cell: tuple[int, int]
) -> np.ndarray:
    """Return the distance of every pixel's centre to the nearest segment, shape (samples, hw)."""
    height, width = cell
    px = np.tile(np.arange(width, dtype=np.float32), height)
    py = np.repeat(np.arange(height, dtype=np.float32), width)
    nearest = np.full((starts.shape[2], px.size), np.inf, dtype=np.float32)
    for (ax, ay), (bx, by) in zip(starts[..., None], ends[..., None], strict=True):
        ex, ey = bx - ax, by - ay
        squared_length = np.maximum(ex * ex + ey * ey, np.float32(1e-6))
        dx, dy = px - ax, py - ay
        along = np.clip(dx * (ex / squared_length) + dy * (ey / squared_length), 0, 1)
        dx, dy = dx - along * ex, dy - along * ey
        np.minimum(nearest, dx * dx + dy * dy, out=nearest)
    return np.sqrt(nearest)
