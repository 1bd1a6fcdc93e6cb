"""Interactive segmentation: a picture of Weizmann or Stanford with scribbled figure and ground.

The points are the superpixels of the picture, with their features from the dataset of pictures. A
point is labelled if a scribble of its own label crosses it. Label 1 is the figure: the horse, or a
foreground object of a scene. A Potts energy favours equal labels of neighbours (:mod:`.scenes`).

**Scribbles** are the strokes that a user would draw to mark figure and ground. Here a stroke is a
part of the skeleton of the true mask (the middle line of its largest piece). It grows from a random
point of the skeleton in all directions until it covers a given share of the skeleton. So a stroke
is connected, and well inside the region that it marks.

The raw files, their synthetic data and the prepared arrays are those of the dataset of pictures.
With ``superpixels`` the picture is segmented anew into that many; the visual words of its features
are then learned from this picture only.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Annotated

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, needed
from ssvm_bench.base.random import uniform
from ssvm_bench.config.validation import Count, Natural, Share, one_of
from ssvm_bench.datasets import reading, stanford, weizmann
from ssvm_bench.datasets.arrays import csr
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import cached
from ssvm_bench.datasets.images import preparation
from ssvm_bench.datasets.images.pictures import Picture, Pictures
from ssvm_bench.datasets.images.preparation import N_FEATURES, counts
from ssvm_bench.datasets.reading import Arrays
from ssvm_bench.papers.transduction.datasets import points
from ssvm_bench.papers.transduction.datasets.scenes import Scene, contrast, given_features

PICTURES: dict[str, tuple[ModuleType, int]] = {
    "weizmann": (weizmann, weizmann.LABELS.index("horse")),
    "stanford": (stanford, stanford.LABELS.index("foreground object")),
}
"""Dataset of pictures → its module, and the label that is figure."""

LABELS = ("ground", "figure")

NOTHING = 255
"""The value of a pixel without a scribble in a map of scribbles."""


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of scribbles.

    Attributes
    ----------
    pictures : str
        One of ``PICTURES``.
    picture : int
        Number of the picture, as ``ssvm-bench data show`` counts them.
    draw : int
        Seed of the scribbles.
    length : float
        Share of the skeletons that is drawn.
    superpixels : int, optional
        Approximate number of superpixels; None: those of the dataset of pictures, some 190.
    features : Path, optional
        A file with features of the superpixels (:func:`.scenes.given_features`).
    """

    pictures: Annotated[str, one_of(PICTURES)] = "weizmann"
    picture: Natural = 0
    draw: Natural = 0
    length: Share = 0.5
    superpixels: Count | None = None
    features: Path | None = None


def drawn(config: Config, source: str) -> tuple[str, Picture, np.ndarray, np.ndarray]:
    """Return the first fields of a config's `Scene`; ``source`` is the source of the pictures.

    Returns
    -------
    name : str
    picture : Picture
        Its truth is 1 where a pixel is figure.
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.
    scribbles : ndarray of uint8, shape (h, w)
        See `scribbled`.
    """
    module, figure = PICTURES[config.pictures]
    pictures = module.RAW.pictures(source)
    rgb, truth = pictures[config.picture]
    picture = Picture(rgb, (truth == figure).astype(np.uint8))
    if config.superpixels is None:
        (segments,) = module.RAW.segments(source, [config.picture])
    else:
        segments = _prepared(config, source)["segments"].reshape(rgb.shape[:2])
    strokes = scribbled(picture.truth, config.length, config.draw)
    return pictures.names[config.picture], picture, segments, strokes


def _prepared(config: Config, source: str) -> Arrays:
    """Return the arrays of one picture with ``config.superpixels`` superpixels, kept in a file."""
    raw, i = PICTURES[config.pictures][0].RAW, config.picture
    pictures = raw.pictures(source)
    one = Pictures((pictures.names[i],), [pictures.encoded[i]], pictures.decode)
    parameters = replace(raw.parameters(source), n_segments=config.superpixels)
    content = hashlib.sha256(repr(one.encoded).encode()).hexdigest()
    name = f"{config.pictures}-{content[:16]}-{config.superpixels}.ssvm-bench.npz"

    def make() -> Arrays:
        place = Path(tempfile.gettempdir(), "ssvm-bench-preparing")
        with files.temporary_folder(place) as work:
            return preparation.prepare(one, work, one.names[0], 1, parameters)

    key = f"{preparation.key(parameters)} {content}"
    return cached(reading.user_folder() / "scribbles" / name, key, make)


def scene(config: Config, number: int) -> Scene:
    """Return a picture to be shown; raise as `load` does."""
    chosen = replace(config, picture=number, n_samples=None)
    dataset = load(chosen)
    return Scene(*drawn(chosen, dataset.source), dataset, np.arange(dataset.n))


def extra(config: Config) -> str:
    """Return the extra that draws scribbles."""
    return "images"


def load(config: Config) -> Dataset:
    """Return the superpixels of a picture as points.

    Raises
    ------
    ConfigError
        There is no such picture; figure or ground has no scribbled superpixel; or a file of
        features cannot be used.
    """
    module, _ = PICTURES[config.pictures]
    made = module.Config(config.pictures, config.pictures, config.source, trust=config.trust)
    whole = module.load(made)
    if config.picture >= whole.n:
        raise ConfigError(
            f"dataset.picture={config.picture}: {config.pictures} ({whole.source} data) has the "
            f"pictures 0 to {whole.n - 1}."
        )
    name, picture, segments, strokes = drawn(config, whole.source)
    pixels = counts(segments, picture.truth, len(LABELS))
    y = pixels.argmax(axis=1).astype(np.uint8)
    labeled = np.zeros(y.size, bool)
    labeled[segments[strokes == y[segments]]] = True
    lacking = [LABELS[l] for l in (0, 1) if not (labeled & (y == l)).any()]
    if lacking:
        raise ConfigError(
            f"dataset.picture={config.picture}: in {name} of {config.pictures}, no superpixel"
            f" that is mostly {lacking[0]} is scribbled. Choose another dataset.picture, or a "
            "larger dataset.length."
        )
    pairs, weights = contrast(picture.rgb, segments)
    if config.superpixels is None:
        x = whole.take(np.array([config.picture])).x
    else:
        x = csr(_prepared(config, whole.source), N_FEATURES)
    if config.features is not None:
        x = given_features(config.features, np.full(y.size, config.picture), np.arange(y.size))
    fields = {"labeled": labeled, "pairs": pairs, "weights": weights, "pixels": pixels}
    return points.made(config, whole.source, x, y, len(LABELS), **fields)


# ---- strokes ----------------------------------------------------------------------------------


def scribbled(truth: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return the map of scribbles, one stroke for each label that occurs.

    Parameters
    ----------
    truth : ndarray of uint8, shape (h, w)
        Label of every pixel.
    share : float
        Share of the length of a skeleton that is drawn, in (0, 1].
    seed : int

    Returns
    -------
    ndarray of uint8, shape (h, w)
        The label of the scribble on a pixel, or `NOTHING`.
    """
    bits = np.random.PCG64(seed)
    found = np.full(truth.shape, NOTHING, np.uint8)
    for label in np.unique(truth):
        found[stroke(truth == label, share, bits)] = label
    return found


def stroke(mask: np.ndarray, share: float, bits: np.random.PCG64) -> np.ndarray:
    """Return the mask of a stroke along the skeleton of a mask that is not empty."""
    from scipy.ndimage import binary_dilation, label

    with needed("images", "Drawing scribbles"):
        from skimage.morphology import skeletonize

    around = np.ones((3, 3), bool)
    # padded, so that the picture's border is a border of the mask, too
    thin = skeletonize(np.pad(mask, 1))[1:-1, 1:-1]
    pieces, _ = label(thin, around)
    line = pieces == 1 + np.bincount(pieces[thin] - 1).argmax()
    wanted = ceil(share * np.count_nonzero(line))
    rows, columns = np.nonzero(line)
    begin = int(uniform((1,), bits)[0] * rows.size)
    drawn = np.zeros_like(mask)
    drawn[rows[begin], columns[begin]] = True
    while np.count_nonzero(drawn) < wanted:
        drawn = binary_dilation(drawn, around, mask=line)
    return drawn
