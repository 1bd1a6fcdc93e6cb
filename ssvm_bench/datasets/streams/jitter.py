"""Deformed images: shifts, rotations and elastic deformations (Simard et al. 2003).

The pixel at (r, c) of a deformed image has the value of the original image at

.. code-block:: text

    m + R(θ) ((r, c) − m) − s + E(r, c)        m: the middle; s, θ uniform in ±shift, ±rotation

by bilinear interpolation, with the background outside. Each component of the elastic field E is
``elastic`` times white noise smoothed by a Gaussian of ``sigma`` pixels, G_r N G_cᵀ, where the
rows of G_r and G_c have norm 1. So ``elastic`` is the standard deviation of E in pixels at every
pixel. The noise is uniform, as in the paper; its best values σ = 4, α = 34 correspond to
``elastic=1.4``.

The deformation of image t is computed from the words at a position of its own in one stream. So it
does not depend on the order in which images are deformed, nor on how many at a time.

References
----------
P. Y. Simard, D. Steinkraus, J. C. Platt: Best practices for convolutional neural networks applied
to visual document analysis. ICDAR 2003, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import floor, sqrt
from typing import ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.base.jit import allocating_kernel, kernel
from ssvm_bench.base.random import unit, words_at
from ssvm_bench.config.validation import NotNegative, Options, Positive, build
from ssvm_bench.datasets.base import Images

# mypy: disable-error-code="no-untyped-def"

POSE = 4
"""Words for the pose: shift down, shift right, rotation, and one to spare."""

STEP = 4
"""Terms that `_product` adds at a time."""

_DECIMALS = 12  # the last bits of cosines and exponentials are not the same on every machine


@dataclass(frozen=True)
class Jitter(Options):
    """How strongly images are deformed; 0 means not at all.

    Attributes
    ----------
    shift : float
        Largest shift along each axis, in pixels.
    rotation : float
        Largest rotation, in degrees.
    elastic : float
        Standard deviation of the elastic displacement along each axis, in pixels.
    sigma : float
        Smoothness of the elastic displacement, in pixels.
    """

    section: ClassVar[str] = "--jitter"

    shift: NotNegative = 0.0
    rotation: NotNegative = 0.0
    elastic: NotNegative = 0.0
    sigma: Positive = 4.0

    @classmethod
    def read(cls, text: str) -> Jitter:
        """Parse a text such as ``shift=1,rotation=10``.

        Raises
        ------
        ConfigError
            If the text cannot be parsed.
        """
        known = [field.name for field in fields(cls)]
        values: dict[str, float] = {}
        for word in text.split(","):
            name, _, number = (part.strip() for part in word.partition("="))
            if name not in known:
                raise ConfigError(f"--jitter has no {shown(repr(name))}. {nearest(name, known)}")
            try:
                values[name] = float(number)
            except ValueError:
                raise ConfigError(
                    f"--jitter {shown(word)}: write the strength as a number, as in {name}=1."
                ) from None
        return build(cls, values, cls.section)


def deformed(
    codes: np.ndarray, images: Images, background: float, jitter: Jitter, t: np.ndarray, seed: int
) -> np.ndarray:
    """Return deformed images, of the same shape and type; integers are rounded.

    Parameters
    ----------
    codes : ndarray, shape (m, height * width)
        The images, row by row.
    images : Images
        Their size.
    background : float
        The code of a pixel outside the images.
    jitter : Jitter
        How strongly images are deformed.
    t : ndarray of int64, shape (m,)
        The number of each deformation, which determines nothing except its random words.
    seed : int
        Seed of the stream of words.
    """
    height, width = images.cell
    noise_words = -(-height * width // 2)  # two fields of numbers of 16 bits
    count = POSE + (noise_words if jitter.elastic else 0)
    words = words_at(t * (POSE + noise_words), count, np.random.PCG64([seed, 1]))
    pose = 2 * unit(words[:, :3]) - 1
    angle = np.deg2rad(jitter.rotation) * pose[:, 2]
    motion = np.column_stack((
        jitter.shift * pose[:, :2],
        np.round(np.cos(angle), _DECIMALS),
        np.round(np.sin(angle), _DECIMALS),
    ))  # fmt: skip
    noise = words[:, POSE:].astype("<u8", copy=False).view("<u2").astype(np.uint16, copy=False)
    out = np.empty_like(codes)
    _deform(
        codes, height, width, float(background), motion, noise,
        np.float32(jitter.elastic), _smoothing(height, jitter.sigma),
        np.ascontiguousarray(_smoothing(width, jitter.sigma).T), codes.dtype.kind in "iu", out,
    )  # fmt: skip
    return out


def _smoothing(size: int, sigma: float) -> np.ndarray:
    """Return the matrix (float32) whose rows are Gaussians of norm 1, cut off at the ends.

    Columns of zeros are appended until their number is a multiple of `STEP`.
    """
    distance = np.subtract.outer(np.arange(size), np.arange(size)) / sigma
    weights = np.round(np.exp(-0.5 * distance**2), _DECIMALS)
    rows = weights / np.sqrt((weights**2).sum(axis=1, keepdims=True))
    return np.pad(rows, ((0, 0), (0, -size % STEP))).astype(np.float32)


@allocating_kernel
def _deform(
    images, height, width, background, motion, noise, elastic, down, across, rounded, out
):  # fmt: skip
    framed = np.full((height + 2, width + 2), background)
    white = np.zeros((down.shape[1], width), np.float32)
    half = np.zeros((height, across.shape[0]), np.float32)
    field = np.zeros((2, height, width), np.float32)
    middle_r, middle_c = (height - 1) / 2, (width - 1) / 2
    for e in range(len(images)):
        for r in range(height):
            for c in range(width):
                framed[r + 1, c + 1] = images[e, r * width + c]
        for axis in range(2 if elastic > 0 else 0):
            _noise(noise[e], axis * height * width, elastic, white[:height])
            _product(down, white, half[:, :width])
            _product(half, across, field[axis])
        cos, sin = motion[e, 2], motion[e, 3]
        for r in range(height):
            for c in range(width):
                y, x = r - middle_r, c - middle_c
                at_r = middle_r + cos * y - sin * x - motion[e, 0] + field[0, r, c]
                at_c = middle_c + sin * y + cos * x - motion[e, 1] + field[1, r, c]
                value = _between(framed, at_r + 1, at_c + 1, background)
                out[e, r * width + c] = floor(value + 0.5) if rounded else value


@kernel
def _noise(words, begin, size, out):
    """Fill a field with uniform noise of standard deviation ``size``, from words of 16 bits."""
    scale = np.float32(size * sqrt(3.0) * 2.0**-15)
    height, width = out.shape
    for r in range(height):
        for c in range(width):
            out[r, c] = scale * (np.float32(words[begin + r * width + c]) - np.float32(32767.5))


@kernel
def _product(left, right, out):
    """Multiply two matrices; the inner dimension is a multiple of `STEP`."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for k in range(0, right.shape[0], 4):
            a, b, c, d = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
            for j in range(out.shape[1]):
                here = a * right[k, j] + b * right[k + 1, j]
                out[i, j] += here + (c * right[k + 2, j] + d * right[k + 3, j])


@kernel
def _between(framed, r, c, background):
    """Return the value of a framed image at a point, interpolated from four pixels around it."""
    if not (0 <= r < framed.shape[0] - 1 and 0 <= c < framed.shape[1] - 1):
        return background
    i, j = int(r), int(c)
    b, a = r - i, c - j
    above = (1 - a) * framed[i, j] + a * framed[i, j + 1]
    below = (1 - a) * framed[i + 1, j] + a * framed[i + 1, j + 1]
    return (1 - b) * above + b * below
