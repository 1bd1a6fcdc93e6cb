"""From pictures to the arrays of a graph dataset, in pieces that survive an interruption.

==========  ==================================================================================
outlines    per picture: superpixels, neighbours, labels; samples of descriptors and of colours
vocabulary  over all samples: the visual words of gradients and of colour
features    per picture: the histograms, given its superpixels and the words
==========  ==================================================================================

Each worker process has one thread and works on one picture at a time. The result depends only on
the picture and, in the last stage, on the words. So the arrays are the same for any number of
workers, and finished pieces can be kept in files. A file stores the key of everything it depends
on; a file that is broken or has another key is made again.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.children import DiedError, map_in_order
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.extras import needed
from ssvm_bench.datasets.arrays import ends_of
from ssvm_bench.datasets.images import superpixels
from ssvm_bench.datasets.images.pictures import Picture, Pictures
from ssvm_bench.datasets.progress import shown
from ssvm_bench.datasets.reading import Arrays, ContentError, cached, ensure

VERSION = 2
"""To be raised when the same parameters begin to give other arrays."""


@dataclass(frozen=True)
class Parameters:
    """Everything that the arrays depend on, except the pictures.

    Attributes
    ----------
    n_segments, compactness : int, float
        Parameters of SLIC, chosen to give 100 to 250 superpixels on photographs of any size.
    grid_step, key_point : int, float
        Distance of neighbouring SIFT descriptors, and the diameter of their key points, in pixels.
    samples : int
        Number of descriptors, and of colours, from which the visual words are learned.
    seed : int
        Seed of the samples and of k-means.
    """

    n_segments: int = 200
    compactness: float = 20.0
    grid_step: int = 4
    key_point: float = 4.0
    samples: int = 60_000
    seed: int = 0


PARAMETERS = Parameters()


def key(parameters: Parameters | None = None) -> str:
    """Return the version and parameters that an up-to-date file of prepared arrays names."""
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
        An existing folder where finished pieces are kept. A preparation that was killed resumes
        from there; the caller removes the folder once the arrays are stored.
    title : str
        Name of the dataset, for the progress display.
    workers : int, optional
        Number of processes; by default the number of processors available to this one.
    parameters : Parameters, optional
        By default ``PARAMETERS``.

    Returns
    -------
    dict of str to ndarray
        For n pictures with ``parts`` superpixels in all: ``data`` float32, ``indices`` uint16,
        ``indptr`` int64 (features as CSR, 649 columns); ``y`` uint8 (parts,): majority label;
        ``edges`` int32 (edges, 2); ``offsets`` and ``edge_offsets`` int64 (n + 1,); ``segments``
        uint16: superpixel of every pixel, picture after picture, row by row, from 0 in each;
        ``shapes`` int32 (n, 2): height and width; ``names`` (n,): text.

    Raises
    ------
    ContentError
        Names the picture that cannot be decoded, is empty, or does not have one label per pixel.
    RunFailedError
        A worker process was killed.
    """
    ensure(len(pictures), "there are no pictures")
    use, n = parameters or PARAMETERS, len(pictures)
    tasks = [
        _Task(i, *of_picture, pictures.decode, use, -(-use.samples // n), work)
        for i, of_picture in enumerate(zip(pictures.names, pictures.encoded, strict=True))
    ]

    def stage(what: str, function: Callable[..., Arrays], *rest: np.ndarray) -> Arrays:
        results = _results([(function, task, *rest) for task in tasks], workers)
        found = [*shown(((1, result) for result in results), f"{title}: {what}", n)]
        return {name: np.concatenate([piece[name] for piece in found]) for name in found[0]}

    def learned(sample: np.ndarray, n_words: int) -> np.ndarray:
        """Return the visual words of a sample, from a file if it has them."""
        place, made_of = work / f"words-{n_words}.npz", f"{key(use)} {_digest(sample.tobytes())}"
        make = partial(superpixels.vocabulary, sample, n_words, use.seed)
        return cached(place, made_of, lambda: {"words": make()})["words"]

    outlines = stage("superpixels", _outlines)
    samples = (
        (superpixels.rooted(outlines.pop("descriptors")), superpixels.N_GRADIENT_WORDS),
        (outlines.pop("colours"), superpixels.N_COLOUR_WORDS),
    )
    words = ((1, learned(*sample)) for sample in samples)
    gradient_words, colour_words = shown(words, f"{title}: visual words", len(samples))
    rows = stage("features", _features, gradient_words, colour_words)
    return {
        "data": rows["data"],
        "indices": rows["indices"],
        "indptr": ends_of(rows["lengths"]),
        "offsets": ends_of(outlines.pop("n_parts")),
        "edge_offsets": ends_of(outlines.pop("n_edges")),
        "names": np.array(pictures.names),
        **outlines,
    }


class _Task(NamedTuple):
    """Picture i, as it is sent to a worker.

    ``samples`` is the number of descriptors, and of colours, that are sampled from it; ``work`` is
    the folder of finished pieces.
    """

    i: int
    name: str
    encoded: Any
    decode: Callable[[Any], Picture]
    parameters: Parameters
    samples: int
    work: Path

    def kept(self, stage: str, made_of: str, make: Callable[[Picture], Arrays]) -> Arrays:
        """Return the arrays of a stage, from their file or newly made."""

        def made() -> Arrays:
            try:
                return make(self.decode(self.encoded))
            except ContentError as error:
                raise ContentError(f"picture {self.name}: {error}") from error

        content = _digest(repr((self.i, self.name, self.encoded)).encode())
        place = self.work / f"{stage}-{self.i:05d}.npz"
        return cached(place, f"{made_of} {key(self.parameters)} {self.samples} {content}", made)


def _outlines(task: _Task) -> Arrays:
    """Return the arrays that depend on the picture alone."""
    use = task.parameters

    def outline(picture: Picture) -> Arrays:
        segments = superpixels.segment(picture.rgb, use.n_segments, use.compactness)
        y = superpixels.majority(segments, picture.truth)
        edges = superpixels.neighbours(segments)
        descriptors = superpixels.gradients(picture.rgb, use.grid_step, use.key_point)
        draw = partial(superpixels.sample, count=task.samples, seed=use.seed + task.i)
        return {
            "segments": segments.ravel(),
            "shapes": np.array([segments.shape], dtype=np.int32),
            "y": y,
            "n_parts": np.array([y.size]),
            "edges": edges,
            "n_edges": np.array([len(edges)]),
            "descriptors": draw(descriptors.reshape(-1, descriptors.shape[2])),
            "colours": draw(picture.rgb.reshape(-1, 3)),
        }

    return task.kept("outlines", "", outline)


def _features(task: _Task, gradient_words: np.ndarray, colour_words: np.ndarray) -> Arrays:
    """Return the features of a picture's superpixels as sparse rows."""
    outlines, use = _outlines(task), task.parameters

    def rows(picture: Picture) -> Arrays:
        descriptors = superpixels.gradients(picture.rgb, use.grid_step, use.key_point)
        x = superpixels.describe(
            outlines["segments"].reshape(outlines["shapes"][0]),
            superpixels.words(superpixels.rooted(descriptors), gradient_words),
            superpixels.words(picture.rgb, colour_words),
            use.grid_step,
        )
        k, b = np.nonzero(x)
        lengths = np.bincount(k, minlength=len(x))
        return {"data": x[k, b], "indices": b.astype(np.uint16), "lengths": lengths}

    return task.kept("features", _digest(gradient_words.tobytes() + colour_words.tobytes()), rows)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _results(calls: Sequence[tuple], workers: int | None) -> Iterator[Arrays]:
    """Yield the results of calls in order, computed by several processes."""
    import joblib

    count = min(workers or joblib.cpu_count(), len(calls))
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
    with needed("images", "Preparing pictures"):
        import cv2
    from threadpoolctl import threadpool_limits

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            return function(*arguments)
    finally:
        cv2.setNumThreads(before)
