"""Interactive segmentation: one picture of Weizmann or Stanford, scribbles, and the rest to find.

The points are the superpixels of the picture, with the features that they have in the dataset of
pictures; told are those that a scribble of their own label crosses
(:mod:`ssvm_bench.datasets.images.scribbles`). Label 1 is the figure: the horse, or a foreground
object of a scene. Neighbours like to have the same label
(:mod:`ssvm_bench.datasets.images.interactive`).

The files, their stand-ins and what is prepared of them are those of the dataset of pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Annotated

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.validation import Natural, Share, one_of
from ssvm_bench.datasets import stanford, weizmann
from ssvm_bench.datasets.base import SourceConfig
from ssvm_bench.datasets.images import given_features
from ssvm_bench.datasets.images.interactive import contrast
from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.datasets.images.scene import Scene
from ssvm_bench.datasets.images.scribbles import scribbled
from ssvm_bench.datasets.images.superpixels import counts
from ssvm_bench.datasets.points import POINTS, Points
from ssvm_bench.datasets.sources import subset

PICTURES: dict[str, tuple[ModuleType, int]] = {
    "weizmann": (weizmann, weizmann.LABELS.index("horse")),
    "stanford": (stanford, stanford.LABELS.index("foreground object")),
}
"""Datasets of pictures, and the label of what is figure in them."""

LABELS = ("ground", "figure")


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of scribbles.

    Attributes
    ----------
    pictures : str
        One of ``PICTURES``.
    picture : int
        Which, as ``ssvm-bench data show`` counts them.
    draw : int
        Seed of the scribbles.
    length : float
        Share of the skeletons that is drawn.
    features : Path, optional
        A file with features of the superpixels (:mod:`.images.given_features`).
    """

    pictures: Annotated[str, one_of(PICTURES)] = "weizmann"
    picture: Natural = 0
    draw: Natural = 0
    length: Share = 0.5
    features: Path | None = None


@dataclass(frozen=True)
class Scribbled:
    """One picture with scribbles.

    Attributes
    ----------
    name : str
    picture : Picture
        Its truth is 1 where there is figure.
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.
    scribbles : ndarray of uint8, shape (h, w)
        See :func:`ssvm_bench.datasets.images.scribbles.scribbled`.
    """

    name: str
    picture: Picture
    segments: np.ndarray
    scribbles: np.ndarray


def drawn(config: Config, source: str) -> Scribbled:
    """Return the picture of a config with its scribbles; ``source`` is where it comes from."""
    module, figure = PICTURES[config.pictures]
    pictures = module.RAW.pictures(source)
    rgb, truth = pictures[config.picture]
    picture = Picture(rgb, (truth == figure).astype(np.uint8))
    (segments,) = module.RAW.segments(source, [config.picture])
    scribbles = scribbled(picture.truth, config.length, config.draw)
    return Scribbled(pictures.names[config.picture], picture, segments, scribbles)


def scene(config: Config, number: int) -> Scene:
    """Return a picture as it is shown. Raises as `load` does."""
    chosen = replace(config, picture=number, n_samples=None)
    dataset = load(chosen)
    found = drawn(chosen, dataset.source)
    return Scene(
        found.name, found.picture, found.segments, found.scribbles, dataset, np.arange(dataset.n)
    )


def load(config: Config) -> Points:
    """Return the superpixels of a picture as points.

    Raises
    ------
    ConfigError
        There is no such picture, or no superpixel of it is figure, or ground, and scribbled; or
        a file of features cannot be used.
    """
    module, _ = PICTURES[config.pictures]
    whole = module.load(
        module.Config(config.pictures, config.pictures, config.source, trust=config.trust)
    )
    if config.picture >= whole.n:
        raise ConfigError(
            f"dataset.picture={config.picture}: {config.pictures} ({whole.source} data) has the "
            f"pictures 0 to {whole.n - 1}."
        )
    found = drawn(config, whole.source)
    pixels = counts(found.segments, found.picture.truth, len(LABELS))
    y = pixels.argmax(axis=1).astype(np.uint8)
    crossed = found.scribbles == y[found.segments]
    labeled = np.zeros(y.size, bool)
    labeled[found.segments[crossed]] = True
    lacking = [LABELS[l] for l in (0, 1) if not (labeled & (y == l)).any()]
    if lacking:
        raise ConfigError(
            f"dataset.picture={config.picture}: in {found.name} of {config.pictures}, no superpixel"
            f" that is mostly {lacking[0]} is scribbled. Choose another dataset.picture, or a "
            "larger dataset.length."
        )
    pairs, weights = contrast(found.picture.rgb, found.segments)
    x = whole.take(np.array([config.picture])).x
    if config.features is not None:
        x = given_features.read(config.features, np.full(y.size, config.picture), np.arange(y.size))
    dataset = Points(
        name=config.name,
        source=whole.source,
        x=x,
        y=y,
        offsets=np.arange(y.size + 1),
        n_labels=len(LABELS),
        structure=POINTS,
        labeled=labeled,
        pairs=pairs,
        weights=weights,
        pixels=pixels,
    )
    if config.n_samples is None:
        return dataset
    few = subset(dataset, config.n_samples)
    assert isinstance(few, Points)
    return few
