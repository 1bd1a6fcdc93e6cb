"""Sequences of DAVIS 2016 as points: superpixels of all frames, labelled in the first frame.

An archive has ``JPEGImages/480p/NAME/00000.jpg`` and ``Annotations/480p/NAME/00000.png`` for each
frame. A mask is black and white and has the size of its frame; white is label 1, the object. A
frame has about 6000 superpixels, or 300 in the smaller synthetic data, with the same features as
all pictures. Superpixels of one frame that share a border are pairs (:mod:`.scenes`); no pair joins
different frames. ``KINDS`` is the table of the sequences; each sequence is its own kind.

References
----------
F. Perazzi et al.: A benchmark dataset and evaluation methodology for video object segmentation.
CVPR 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.validation import at_least, one_of
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.images import preparation
from ssvm_bench.datasets.images import scenes as synthetic
from ssvm_bench.datasets.images.pictures import Picture, Pictures, decoded, pairs
from ssvm_bench.datasets.images.preparation import PictureFile, counts
from ssvm_bench.datasets.reading import Arrays, ContentError
from ssvm_bench.datasets.sources import Names
from ssvm_bench.papers.transduction.datasets import scenes
from ssvm_bench.papers.transduction.datasets.points import POINTS, Points
from ssvm_bench.papers.transduction.datasets.scenes import given_features

LABELS = ("background", "object")
N_SEGMENTS = {"real": 6000, "synthetic": 300}
MOST_MADE = 20
"""Largest number of synthetic frames."""


@dataclass(frozen=True)
class SequenceConfig(SourceConfig):
    """Options of a sequence.

    Attributes
    ----------
    frames : int, optional
        Number of frames to use, the first ones; None: all.
    annotated : str
        Annotated frames: ``first``, or ``all``, so that a classifier shows if they are separable.
    features : Path, optional
        A file with features of the superpixels (:func:`.scenes.given_features`).
    """

    frames: Annotated[int, at_least(2)] | None = None
    annotated: Annotated[str, one_of(("first", "all"))] = "first"
    features: Path | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        if self.n_samples is not None:
            raise ConfigError(
                "dataset.n_samples would tear the frames of a sequence apart: take the first ones "
                "with dataset.frames."
            )


@dataclass(frozen=True, kw_only=True)
class SequenceFile(PictureFile):
    """The archive of a sequence."""

    only: ClassVar[Names] = (*(PictureFile.only or ()), "pixels", "weights")

    @property
    def n_synthetic(self) -> int:
        """Number of synthetic frames."""
        return min(MOST_MADE, preparation.N_SYNTHETIC)

    def parameters(self, source: str) -> preparation.Parameters:
        """Return the parameters of all pictures, with the paper's number of superpixels."""
        n_segments = N_SEGMENTS["synthetic" if source == "synthetic" else "real"]
        return replace(preparation.PARAMETERS, n_segments=n_segments)

    def cache_place(self, source: str) -> Path:
        """Return the path of a source's arrays; all sequences share a folder."""
        place = super().cache_place(source)
        return place.with_name(f"{self.dataset}-{place.name}") if source == "synthetic" else place

    def _work(self, source: str) -> Path:
        return super()._work(f"{self.dataset}-{source}")

    def _prepared(self, source: str, pictures: Pictures) -> Arrays:
        """Add the pixels of each label in each superpixel, and the weights of the edges."""
        arrays = super()._prepared(source, pictures)
        shapes, pixels, weights = arrays["shapes"], [], []
        maps = np.split(arrays["segments"], np.cumsum(shapes.prod(axis=1))[:-1])
        for i, flat in enumerate(maps):
            segments, picture = flat.reshape(shapes[i]), pictures[i]
            pixels.append(counts(segments, picture.truth, len(LABELS)))
            weights.append(scenes.contrast(picture.rgb, segments)[1])
        return {**arrays, "pixels": np.concatenate(pixels), "weights": np.concatenate(weights)}


def parse(path: Path, name: str) -> Pictures:
    """Return the frames of an archive in this format, sorted by name.

    Raises
    ------
    ContentError
        The archive is damaged, or a frame has no mask, or a mask has no frame.
    """
    first, second = f"JPEGImages/480p/{name}/{{}}.jpg", f"Annotations/480p/{name}/{{}}.png"
    found = pairs(path, first, second, r"\d+")
    return Pictures(tuple(found), list(found.values()), decode)


def decode(encoded: tuple[bytes, bytes]) -> Picture:
    """Return the picture of a frame and its mask; raise `ContentError` if they do not fit."""
    frame = decoded(encoded[0], colour=True, what="frame")
    mask = decoded(encoded[1], colour=False, what="mask")
    if mask.shape != frame.shape[:2]:
        sizes = [" × ".join(map(str, shape[1::-1])) for shape in (mask.shape, frame.shape)]
        raise ContentError(f"the mask has another size ({sizes[0]}) than the frame ({sizes[1]})")
    return Picture(frame, (mask > 127).astype(np.uint8))


def load(raw: SequenceFile, config: SequenceConfig) -> Dataset:
    """Return the superpixels of all frames as points.

    Raises
    ------
    ConfigError
        There are fewer frames than ``frames``, or a file of features cannot be used.
    """

    def make(
        offsets: np.ndarray, edges: np.ndarray, edge_offsets: np.ndarray, **fields: Any
    ) -> Dataset:
        n_frames = offsets.size - 1
        if config.frames is not None and config.frames > n_frames:
            raise ConfigError(
                f"dataset.frames must be ≤ {n_frames}, the number of frames of {config.name}, "
                f"got {config.frames}."
            )
        frame = np.repeat(np.arange(n_frames), np.diff(offsets))
        first = np.repeat(offsets[:-1], np.diff(edge_offsets))
        points = Points(
            labeled=(frame == 0) | (config.annotated == "all"),
            frame=frame,
            pairs=edges.astype(np.int64) + first[:, None],
            offsets=np.arange(frame.size + 1),
            **fields,
        )
        wanted = np.flatnonzero(frame < (config.frames or n_frames))
        taken = points if wanted.size == points.n else points.take(wanted)
        if config.features is None:
            return taken
        superpixel = wanted - offsets[frame[wanted]]
        return taken.derived(x=given_features(config.features, frame[wanted], superpixel))

    return sources.load(config, raw, POINTS, len(LABELS), make=make)


def scene(raw: SequenceFile, config: SequenceConfig, number: int) -> scenes.Scene:
    """Return a frame to be shown.

    Raises
    ------
    ConfigError
        There is no such frame, or `load` raises it.
    """
    dataset = load(raw, config)
    assert isinstance(dataset, Points)
    assert dataset.frame is not None
    last = int(dataset.frame[-1])
    if not 0 <= number <= last:
        raise ConfigError(
            f"There is no frame {number}: {config.name} ({dataset.source} data) has 0 to {last}."
        )
    pictures = raw.pictures(dataset.source)
    (segments,) = raw.segments(dataset.source, [number])
    points = np.flatnonzero(dataset.frame == number)
    title = f"frame {pictures.names[number]}"
    return scenes.Scene(title, pictures[number], segments, None, dataset, points)


def _sequence(name: str, n: int, sha256: str) -> SimpleNamespace:
    """Return a namespace that the registry uses as the module of a sequence of n frames."""
    file = f"davis2016-480p-{name}.tar.gz"
    raw = SequenceFile(
        dataset=f"davis_{name.replace('-', '_')}",
        folder="davis",
        file=file,
        licence="not verified: read it at its home page before passing the data on",
        url="https://davischallenge.org/davis2016/code.html",
        n=n,
        version=1,
        labels=LABELS,
        open=partial(parse, name=name),
        sha256={file: sha256},
        scenes=synthetic.moving,
    )
    made = {"load": partial(load, raw), "scene": partial(scene, raw)}
    return SimpleNamespace(RAW=raw, Config=SequenceConfig, LABELS=LABELS, **made)


_SEQUENCES = (
    _sequence("bmx-trees", 80, "2fe30becabd6c693db06b0b7cb7f1dac936dd05e6ab17502e1bc78d9ae638a99"),
    _sequence("car-shadow", 40, "39b676eed756321dfc6e189b8751e08c6c824e940ad62b66ea2711adb67b2dec"),
)
KINDS = {each.RAW.dataset: each for each in _SEQUENCES}
"""Kind → the namespace of its sequence."""
