"""From pictures to the arrays of a graph dataset, in pieces that survive an interruption.

==========  ==================================================================================
outlines    per picture: superpixels, neighbours, labels; samples of descriptors and of colours
vocabulary  over all samples: the visual words of gradients and of colour
features    per picture: the histograms, given its superpixels and the words
==========  ==================================================================================

Processes of one thread each work on chunks of pictures of a fixed size. The result of a chunk
depends only on its pictures and, in the last stage, on the words. So the arrays are the same for
any number of workers, and a finished chunk can be kept in a file. A file carries the key of all
that went into it; one that is broken or has another key is made again.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.children import DiedError, map_in_order
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.datasets.cache import Arrays, cached
from ssvm_bench.datasets.images import superpixels
from ssvm_bench.datasets.images.pictures import Picture, Pictures
from ssvm_bench.datasets.images.progress import shown
from ssvm_bench.datasets.reading import ContentError

VERSION = 1
"""To be raised when the same parameters begin to give other arrays."""

CHUNK = 8  # pictures: some seconds of work, which is what an interruption can cost


@dataclass(frozen=True)
class Parameters:
    """All that the arrays depend on but the pictures.

    Attributes
    ----------
    n_segments, compactness : int, float
        Of SLIC: chosen to give 100 to 250 superpixels on photographs of any size.
    grid_step, key_point : int, float
        Distance of neighbouring SIFT descriptors, and the diameter of their key points, in pixels.
    samples : int
        Descriptors, and colours, from which the visual words are learned.
    seed : int
        Of the samples and of k-means.
    """

    n_segments: int = 200
    compactness: float = 20.0
    grid_step: int = 4
    key_point: float = 4.0
    samples: int = 60_000
    seed: int = 0


PARAMETERS = Parameters()


def key(parameters: Parameters | None = None) -> str:
    """Return what a file of prepared arrays must have been made with to be up to date."""
    return f"images v{VERSION} {parameters or PARAMETERS}"


def prepare(
    pictures: Pictures,
    work: Path,
    title: str,
    workers: int | None = None,
    parameters: Parameters | None = None,
) -> Arrays:
    """Return the superpixels, neighbours, labels and features of all pictures.

    Parameters
    ----------
    pictures : Pictures
        At least one.
    work : Path
        An existing folder where finished pieces are kept. A preparation that was killed goes on
        from there; the caller removes the folder once the arrays are stored.
    title : str
        Name of the dataset, for the progress display.
    workers : int, optional
        Number of processes; as many as there are processors for this one if not given.
    parameters : Parameters, optional
        ``PARAMETERS`` if not given.

    Returns
    -------
    dict of str to ndarray
        Of n pictures with ``parts`` superpixels in all: ``data`` float32, ``indices`` uint16,
        ``indptr`` int64 (features as CSR, 649 columns); ``y`` uint8 and ``sizes`` int32 (parts,):
        majority label and number of pixels; ``edges`` int32 (edges, 2); ``offsets`` and
        ``edge_offsets`` int64 (n + 1,); ``segments`` uint16: superpixel of every pixel, picture
        after picture, row by row, from 0 in each; ``shapes`` int32 (n, 2): height and width;
        ``names`` (n,): text.

    Raises
    ------
    ContentError
        Names the picture that cannot be decoded, is empty, or has not one label per pixel.
    RunFailedError
        A worker process was killed.
    """
    if not len(pictures):
        raise ContentError("there are no pictures")
    use = parameters or PARAMETERS
    per_picture = -(-use.samples // len(pictures))
    chunks = [
        _Chunk(first, pictures[first : first + CHUNK], use, per_picture, work)
        for first in range(0, len(pictures), CHUNK)
    ]

    def stage(what: str, function: Callable[..., Arrays], *rest: np.ndarray) -> Arrays:
        pieces = _each(function, chunks, workers, *rest)
        steps = ((len(chunk.pictures), piece) for chunk, piece in zip(chunks, pieces, strict=True))
        return _joined(shown(steps, f"{title}: {what}", len(pictures)))

    outlines = stage("superpixels", _outlines)
    samples = (
        (superpixels.rooted(outlines.pop("descriptors")), superpixels.N_GRADIENT_WORDS),
        (outlines.pop("colours"), superpixels.N_COLOUR_WORDS),
    )
    learned = ((1, _learn(points, n_words, work, use)) for points, n_words in samples)
    gradient_words, colour_words = shown(learned, f"{title}: visual words", len(samples))
    rows = stage("features", _features, gradient_words, colour_words)
    return {
        "data": rows["data"],
        "indices": rows["indices"],
        "indptr": _offsets(rows["lengths"]),
        "offsets": _offsets(outlines.pop("n_parts")),
        "edge_offsets": _offsets(outlines.pop("n_edges")),
        "names": np.array(pictures.names),
        **outlines,
    }


class _Chunk(NamedTuple):
    """Some consecutive pictures, as a worker gets them.

    Attributes
    ----------
    first : int
        Number of the first picture.
    pictures : Pictures
    parameters : Parameters
    samples : int
        Descriptors, and colours, to draw from each picture.
    work : Path
        Where finished pieces are kept.
    """

    first: int
    pictures: Pictures
    parameters: Parameters
    samples: int
    work: Path

    def kept(self, stage: str, made_of: str, make: Callable[[int, Picture], Arrays]) -> Arrays:
        """Return the arrays of a stage, from their file or made picture by picture."""
        content = pickle.dumps((self.first, self.pictures.names, self.pictures.encoded), 5)
        whole = f"{made_of} {key(self.parameters)} {self.samples} {_digest(content)}"
        place = self.work / f"{stage}-{self.first:05d}.npz"
        return cached(place, whole, lambda: _joined(self._each(make)))

    def _each(self, make: Callable[[int, Picture], Arrays]) -> Iterator[Arrays]:
        for i, name in enumerate(self.pictures.names):
            try:
                yield make(i, self.pictures[i])
            except ContentError as error:
                raise ContentError(f"picture {name}: {error}") from error


def _outlines(chunk: _Chunk) -> Arrays:
    """Return what follows from each picture alone."""
    use = chunk.parameters

    def outline(i: int, picture: Picture) -> Arrays:
        segments = superpixels.segment(picture.rgb, use.n_segments, use.compactness)
        y = superpixels.majority(segments, picture.truth)
        edges = superpixels.neighbours(segments)
        descriptors = superpixels.gradients(picture.rgb, use.grid_step, use.key_point)
        draw = partial(superpixels.sample, count=chunk.samples, seed=use.seed + chunk.first + i)
        return {
            "segments": segments.ravel(),
            "shapes": np.array([segments.shape], dtype=np.int32),
            "y": y,
            "sizes": superpixels.sizes(segments),
            "n_parts": np.array([y.size]),
            "edges": edges,
            "n_edges": np.array([len(edges)]),
            "descriptors": draw(descriptors.reshape(-1, descriptors.shape[2])),
            "colours": draw(picture.rgb.reshape(-1, 3)),
        }

    return chunk.kept("outlines", "", outline)


def _features(chunk: _Chunk, gradient_words: np.ndarray, colour_words: np.ndarray) -> Arrays:
    """Return the features of all superpixels as sparse rows."""
    outlines, use = _outlines(chunk), chunk.parameters
    shapes = outlines["shapes"]
    maps = np.split(outlines["segments"], np.cumsum(shapes.prod(axis=1))[:-1])

    def rows(i: int, picture: Picture) -> Arrays:
        descriptors = superpixels.gradients(picture.rgb, use.grid_step, use.key_point)
        x = superpixels.describe(
            maps[i].reshape(shapes[i]),
            superpixels.words(superpixels.rooted(descriptors), gradient_words),
            superpixels.words(picture.rgb, colour_words),
            use.grid_step,
        )
        k, b = np.nonzero(x)
        lengths = np.bincount(k, minlength=len(x))
        return {"data": x[k, b], "indices": b.astype(np.uint16), "lengths": lengths}

    vocabularies = _digest(gradient_words.tobytes() + colour_words.tobytes())
    return chunk.kept("features", vocabularies, rows)


def _learn(sample: np.ndarray, n_words: int, work: Path, parameters: Parameters) -> np.ndarray:
    """Return the visual words of a sample, from a file if it has them."""

    def learn() -> Arrays:
        return {"words": superpixels.vocabulary(sample, n_words, parameters.seed)}

    place = work / f"words-{n_words}.npz"
    return cached(place, f"{key(parameters)} {_digest(sample.tobytes())}", learn)["words"]


def _joined(pieces: Iterable[Arrays]) -> Arrays:
    """Concatenate arrays of the same name."""
    found = list(pieces)
    return {name: np.concatenate([piece[name] for piece in found]) for name in found[0]}


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _each(
    function: Callable[..., Arrays], chunks: list[_Chunk], workers: int | None, *rest: np.ndarray
) -> Iterator[Arrays]:
    """Call a function for every chunk, in processes of their own; yield the results in order."""
    import joblib

    count = min(workers or joblib.cpu_count(), len(chunks))
    calls = [(function, chunk, *rest) for chunk in chunks]
    if count == 1:
        yield from itertools.starmap(_call, calls)
        return
    try:
        yield from map_in_order(_call, calls, count)
    except DiedError as error:
        raise RunFailedError(
            "A worker process was killed, perhaps for lack of memory. Free some and try again: "
            "the pieces that are finished are kept."
        ) from error


def _call(function: Callable[..., Arrays], *arguments: object) -> Arrays:
    """Call a function with libraries limited to one thread: the workers share the processors."""
    import cv2
    from threadpoolctl import threadpool_limits

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            return function(*arguments)
    finally:
        cv2.setNumThreads(before)
