"""Detection of a digit of one class somewhere on a canvas; its position is latent.

A canvas shows an image of MNIST (:mod:`ssvm_bench.datasets.mnist`) on black: a digit of the class
to detect (label 1), or another one (label 0). Its position is uniformly random among the windows of
its size. ``clutter`` adds that many digits of other classes to every canvas; where two overlap, the
brighter pixel is shown. The brightest window then need not be the one with the object. Images are
sampled without replacement until all have been used, and then repeat. ``places`` of the `Dataset`
holds the positions of the digits; training does not use it.

Training canvases are made from the training images of MNIST. Those held out for validation and test
are made from its held-out images, with the same share of positives. If MNIST is not available, its
synthetic digits replace it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import permutation, uniform
from ssvm_bench.config.validation import Count, Natural, at_least
from ssvm_bench.datasets import mnist, sources
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.structures import Windows

CELL = mnist.CELL

_INK, _NONZERO, _WEIGHT = 100, 8.0, 32.0
"""Least pixels of a digit on average; bytes of such a pixel, and of a pixel's weight in a run."""


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of the canvases.

    Attributes
    ----------
    digit : int
        The class to detect, 0 to 9.
    canvas : int
        Height and width of a canvas, in pixels.
    step : int
        Pixels from one position to the next.
    positives, negatives : int
        Number of canvases with and without a digit of the class, to train on.
    held_out : int
        Number of canvases held out for validation, and as many for the test.
    clutter : int
        Number of additional digits of other classes on every canvas.
    seed : int
        Seed of the random numbers.
    """

    digit: Natural = 3
    canvas: Annotated[int, at_least(CELL)] = 40
    step: Count = 1
    positives: Count = 1000
    negatives: Count = 2000
    held_out: Natural = 1000
    clutter: Natural = 0
    seed: Natural = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        if self.digit > 9:
            raise ConfigError(f"dataset.digit must be 0 to 9, got {self.digit}.")

    @property
    def windows(self) -> Windows:
        """Windows where a digit may be."""
        return Windows((self.canvas, self.canvas), (CELL, CELL), self.step)


def load(config: Config) -> Dataset:
    """Return the canvases: x sparse, float32 (3000, 1600), in random order.

    The held-out sets are ``"validation"`` and ``"test"``.

    Raises
    ------
    ConfigError
        ``n_samples`` exceeds the number of canvases.
    RunFailedError
        MNIST is broken, or missing and ``source=real``; or has no digit of the class.
    """
    n = config.positives + config.negatives
    sources.check_n(config, n, "canvases")
    count, pixels = n + 2 * config.held_out, config.canvas**2
    check_room(
        _NONZERO * count * min(_INK * (1 + config.clutter), pixels) + _WEIGHT * pixels,
        f"{count} canvases of {config.canvas} × {config.canvas} pixels",
        "Choose fewer, or smaller ones.",
    )
    digits = mnist.load(mnist.Config(config.name, "mnist", config.source, trust=config.trust))
    k = round(config.held_out * config.positives / n)
    held_out = {
        name: _canvases(config, digits.held_out[name], (k, config.held_out - k), stream)
        for stream, name in enumerate(("validation", "test"), 1)
        if config.held_out > 0
    }
    made = _canvases(config, digits, (config.positives, config.negatives), 0)
    return sources.first_samples(config, made.derived(held_out=held_out))


def _canvases(config: Config, digits: Dataset, sizes: tuple[int, int], stream: int) -> Dataset:
    """Return canvases with and without the class, drawn from a random stream of their own."""
    bits, windows, m = np.random.PCG64([config.seed, stream]), config.windows, sum(sizes)
    of_class, others = (np.flatnonzero((digits.y == config.digit) == is_) for is_ in (True, False))
    if not of_class.size or not others.size:
        raise RunFailedError(
            f"The digits of {digits.name} ({digits.source} data) must include class {config.digit} "
            "and others. Choose another dataset.digit."
        )

    def sampled(images: np.ndarray, count: int) -> np.ndarray:
        """Return ``count`` images; none repeats before all have been sampled."""
        return np.resize(images[permutation(images.size, bits)], count)

    def positions() -> np.ndarray:
        return (uniform((m,), bits) * windows.positions).astype(np.int64)

    chosen = np.concatenate((sampled(of_class, sizes[0]), sampled(others, sizes[1])))
    order, places = permutation(m, bits), positions()
    x = _placed(digits.x, chosen[order], windows, places)
    for _ in range(config.clutter):
        x = x.maximum(_placed(digits.x, sampled(others, m), windows, positions()))
        x.sort_indices()
    y = np.repeat(np.array([1, 0], np.uint8), sizes)[order]
    about: Any = {"source": digits.source, "windows": windows, "places": places}
    return Dataset(config.name, x, y, np.arange(m + 1), 2, "latent", **about)


def _placed(images: Any, chosen: np.ndarray, windows: Windows, places: np.ndarray) -> Any:
    """Return canvases with one image each at ``places``, as sparse rows of pixels."""
    from scipy.sparse import csr_array

    rows = csr_array(images[chosen])
    counts = np.diff(rows.indptr)
    top, left = (np.repeat(corner, counts) for corner in windows.corners(places))
    height, width = windows.canvas
    down, across = np.divmod(rows.indices, windows.size[1])
    pixels = ((top + down) * width + left + across).astype(np.int32)
    return csr_array((rows.data, pixels, rows.indptr), shape=(chosen.size, height * width))
