r"""From archives of pictures to the arrays of graph datasets, which are prepared once and cached.

==========  ==================================================================================
outlines    per picture: superpixels, neighbours, labels; samples of descriptors and of colours
vocabulary  over all samples: the visual words of gradients and of colour
features    per picture: the histograms, given its superpixels and the words
==========  ==================================================================================

Each worker process has one thread and works on one picture at a time. The result depends only on
the picture and, in the last stage, on the words. So the arrays are the same for any number of
workers, and finished pieces can be kept in files. A file stores the key of everything it depends
on; a file that is broken or has another key is replaced.

While one process prepares a dataset, another one that needs it waits. Finished pieces stay in the
user's cache folder until the arrays are stored, even if the process is killed.

**Superpixels**, the parts of a picture. SLIC (Achanta et al., PAMI 2012) groups the pixels by
position and colour into about the requested number of compact pieces. A piece is connected, and so
is the picture; hence the graph of the pieces that share a border is connected, too.

**Features** are three histograms over the pixels of a superpixel, 649 numbers:

======  ===================================================================================
512     visual words of gradients: the SIFT descriptor at the pixel's nearest point of a grid
128     visual words of colour: the pixel's RGB value
9       the cell of a 3 × 3 division of the picture that contains the pixel
======  ===================================================================================

A visual word is the nearest of the centres that k-means finds in a sample of all pictures. Since
every *pixel* votes, through the nearest grid point, no superpixel is without gradients, however
small or oddly shaped.

With :math:`c_{kb}` of the :math:`s_k` pixels of superpixel k in bin b, the feature is

.. math:: x_{kb} = \sqrt{c_{kb} / s_k},

so each block is non-negative and has Euclidean length 1. Compared with the plain shares, the root
(Hellinger's kernel) improves a linear classifier under the strong regularisation λ = 1/n: many rare
words together then count as much as a frequent one. SIFT descriptors are compared in the same way
(RootSIFT: Arandjelović and Zisserman, CVPR 2012).

**The same on every machine.** Libraries choose code by the processor, and each version rounds sums
in its own order; k-means amplifies such differences. So OpenCV runs the code that all x86
processors support, Lab colours are rounded before SLIC compares them, and descriptors and words are
integers, so small that their matrix product in float32 is exact in any order.

References
----------
D. Lowe: Distinctive image features from scale-invariant keypoints. IJCV 2004.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.children import DiedError, map_in_order
from ssvm_bench.base.errors import RunFailedError, needed
from ssvm_bench.base.random import uniform
from ssvm_bench.config.validation import one_of
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.arrays import ends_of
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Make, cached, stored, stored_key
from ssvm_bench.datasets.images.pictures import MOST, Picture, Pictures
from ssvm_bench.datasets.progress import shown
from ssvm_bench.datasets.reading import GZIP, Arrays, ContentError, ensure
from ssvm_bench.datasets.sources import CSR, Content, Names, RawFile, sha256

N_GRADIENT_WORDS = 512
N_COLOUR_WORDS = 128
CELLS = 3
N_FEATURES = N_GRADIENT_WORDS + N_COLOUR_WORDS + CELLS**2

LENGTH = 1024  # of a descriptor before it is rounded: sums of products stay below 2²⁴
ITERATIONS = 20  # of k-means
BATCH = 8192  # points whose distances to all words are computed at a time


def segment(rgb: np.ndarray, n_segments: int, compactness: float) -> np.ndarray:
    """Return the superpixel of every pixel.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
        The picture.
    n_segments : int
        Approximate number of superpixels. Pictures of fewer than a thousand pixels may have
        anything from one superpixel to one per pixel.
    compactness : float
        Weight of distance on the picture against distance of colour: the larger, the rounder.

    Returns
    -------
    ndarray of uint16, shape (h, w)
        Numbers 0 .. L - 1, each of which occurs.

    Raises
    ------
    ContentError
        The picture has no pixels, or is no array of colours.
    """
    with needed("images", "Preparing pictures"):
        from skimage.color import rgb2lab
        from skimage.segmentation import slic

    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise ContentError(f"expected h × w × 3 bytes, found {rgb.dtype} of shape {rgb.shape}")
    ensure(rgb.size != 0, f"the picture is empty ({rgb.shape[1]} × {rgb.shape[0]} pixels)")
    lowest, highest = int(rgb.min()), int(rgb.max())
    lab = np.round(32.0 * rgb2lab((rgb - lowest) / max(highest - lowest, 1))) / 32.0
    found = slic(
        lab,
        n_segments=n_segments,
        compactness=compactness / (np.ptp(lab) or 1.0),  # slic divides its input by its range
        convert2lab=False,
        start_label=0,
        enforce_connectivity=True,
    )
    _, dense = np.unique(found, return_inverse=True)
    return dense.reshape(found.shape).astype(np.uint16)


def borders(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of superpixels with adjacent pixels (left/right, up/down), and how many.

    Parameters
    ----------
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.

    Returns
    -------
    pairs : ndarray of int32, shape (edges, 2)
        Pairs k < l in lexicographic order, none twice.
    lengths : ndarray of int64, shape (edges,)
        Number of pairs of pixels at each border.
    """
    k = np.concatenate((segments[:, :-1].ravel(), segments[:-1].ravel())).astype(np.int64)
    l = np.concatenate((segments[:, 1:].ravel(), segments[1:].ravel())).astype(np.int64)
    border = k != l
    low, high = np.minimum(k, l)[border], np.maximum(k, l)[border]
    n = int(segments.max()) + 1
    pairs, lengths = np.unique(low * n + high, return_counts=True)
    return np.stack((pairs // n, pairs % n), axis=1).astype(np.int32), lengths


def majority(segments: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the most frequent label of every superpixel; ties go to the lowest label.

    Parameters
    ----------
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.
    truth : ndarray of uint8, shape (h, w)
        Label of every pixel.

    Returns
    -------
    ndarray of uint8, shape (L,)

    Raises
    ------
    ContentError
        There is not one label per pixel.
    """
    if truth.shape != segments.shape or truth.dtype != np.uint8:
        raise ContentError(
            f"expected {segments.shape[0]} × {segments.shape[1]} labels (bytes), "
            f"found {truth.dtype} of shape {truth.shape}"
        )
    return counts(segments, truth, int(truth.max()) + 1).argmax(axis=1).astype(np.uint8)


def counts(segments: np.ndarray, values: np.ndarray, n_values: int) -> np.ndarray:
    """Return how often each value occurs in each superpixel.

    Parameters
    ----------
    segments, values : ndarray of int, shape (h, w)
        The superpixel and the value of every pixel; values in ``0 .. n_values - 1``.
    n_values : int
        Number of possible values.

    Returns
    -------
    ndarray of int64, shape (L, n_values)
        Numbers of pixels.
    """
    n = int(segments.max()) + 1
    pairs = segments.ravel().astype(np.int64) * n_values + values.ravel()
    return np.bincount(pairs, minlength=n * n_values).reshape(n, n_values)


def gradients(rgb: np.ndarray, step: int, diameter: float) -> np.ndarray:
    """Return the SIFT descriptors on a regular grid, all of one size and upright.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
        The picture.
    step : int
        Distance of neighbouring grid points in pixels.
    diameter : float
        Size of a key point in pixels; its descriptor sees a window 6 times as wide.

    Returns
    -------
    ndarray of uint8, shape (rows, columns, 128)
        Grid point (i, j) is nearest to the pixels of rows ``i * step .. (i + 1) * step - 1`` and
        of columns likewise; pixels beyond the last point belong to it.
    """
    with needed("images", "Preparing pictures"):
        import cv2

    rows, columns = (_grid(length, step) for length in rgb.shape[:2])
    points = [cv2.KeyPoint(float(x), float(y), diameter, 0.0) for y in rows for x in columns]
    before = cv2.useOptimized()
    cv2.setUseOptimized(False)
    try:
        _, found = cv2.SIFT.create().compute(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), points)
    finally:
        cv2.setUseOptimized(before)
    return found.reshape(rows.size, columns.size, -1).astype(np.uint8)


def _grid(length: int, step: int) -> np.ndarray:
    points = np.arange(step // 2, length, step)
    return points if points.size else np.array([length // 2])


def rooted(descriptors: np.ndarray) -> np.ndarray:
    """Return RootSIFT descriptors of length `LENGTH`, rounded to integers, float32, same shape.

    A patch of one colour has no gradients; its descriptor is 0 and stays 0.
    """
    total = np.maximum(descriptors.sum(axis=-1, keepdims=True, dtype=np.float32), 1)
    return np.rint(LENGTH * np.sqrt(descriptors / total))


def sample(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return ``count`` points (rows) sampled with replacement, the same for the same seed."""
    chosen = uniform((count,), np.random.PCG64(seed)) * len(points)
    return points[chosen.astype(np.int64)]


def vocabulary(points: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    """Return the visual words of a sample: centres of k-means (Lloyd's), rounded.

    Parameters
    ----------
    points : ndarray, shape (m, p)
        The sample, of whole numbers, m ≥ n_words.
    n_words : int
        Number of words. With fewer distinct points, some words never occur.
    seed : int
        Seed of the choice of points as initial centres.

    Returns
    -------
    ndarray of float32, shape (n_words, p)
        Whole numbers.
    """
    points = points.astype(np.float32)
    order = np.argsort(uniform((len(points),), np.random.PCG64(seed)))
    centres = points[order[:n_words]]
    for _ in range(ITERATIONS):
        nearest = words(points, centres)
        there, begin = np.unique(np.sort(nearest), return_index=True)
        members = points[np.argsort(nearest, kind="stable")].astype(float)
        sizes = np.diff(begin, append=len(points))
        centres[there] = np.rint(np.add.reduceat(members, begin) / sizes[:, None])
    return centres


def words(points: np.ndarray, vocabulary: np.ndarray) -> np.ndarray:
    """Return the nearest word of every point.

    Parameters
    ----------
    points : ndarray, shape (..., p)
        Points, with any leading axes.
    vocabulary : ndarray of float32, shape (n_words, p)
        The words.

    Returns
    -------
    ndarray of int64, shape (...)
    """
    flat = points.reshape(-1, points.shape[-1]).astype(np.float32)
    half = (vocabulary * vocabulary).sum(axis=1) / 2
    nearest = [
        (flat[lo : lo + BATCH] @ vocabulary.T - half).argmax(axis=1)
        for lo in range(0, len(flat), BATCH)
    ]
    return np.concatenate(nearest).reshape(points.shape[:-1])


def describe(
    segments: np.ndarray, gradient_words: np.ndarray, colour_words: np.ndarray, step: int
) -> np.ndarray:
    """Return the features of one picture's superpixels.

    Parameters
    ----------
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.
    gradient_words : ndarray of int, shape (rows, columns)
        Words of the grid that `gradients` describes.
    colour_words : ndarray of int, shape (h, w)
        Words of the pixels.
    step : int
        Distance of neighbouring grid points.

    Returns
    -------
    ndarray of float32, shape (L, 649)
    """
    height, width = segments.shape
    rows, columns = (
        np.minimum(np.arange(length) // step, points - 1)
        for length, points in zip(segments.shape, gradient_words.shape, strict=True)
    )
    down, across = np.arange(height) * CELLS // height, np.arange(width) * CELLS // width
    histograms = (
        counts(segments, gradient_words[np.ix_(rows, columns)], N_GRADIENT_WORDS),
        counts(segments, colour_words, N_COLOUR_WORDS),
        counts(segments, CELLS * down[:, None] + across, CELLS**2),
    )
    pixels = histograms[2].sum(axis=1, keepdims=True)
    return np.sqrt(np.hstack(histograms) / pixels).astype(np.float32)


# ---- Preparation ------------------------------------------------------------------------------

_PIECES = r"(outlines|words|features)-\d+\.npz"
"""Names of the files of finished pieces."""

VERSION = 2
"""To be raised when the same parameters begin to give other arrays."""

N_SYNTHETIC = 120
"""Number of synthetic pictures of a dataset; preparing them takes well below a minute."""


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
        place, made_of = work / f"words-{n_words}.npz", f"{key(use)} {sha256(sample.tobytes())}"
        make = partial(vocabulary, sample, n_words, use.seed)
        return cached(place, made_of, lambda: {"words": make()})["words"]

    outlines = stage("superpixels", _outlines)
    samples = (
        (rooted(outlines.pop("descriptors")), N_GRADIENT_WORDS),
        (outlines.pop("colours"), N_COLOUR_WORDS),
    )
    words = ((1, learned(*sample)) for sample in samples)
    gradient_words, colour_words = shown(words, f"{title}: visual words", len(samples))
    rows = stage("features", _features, gradient_words, colour_words)
    return {
        "indptr": ends_of(rows.pop("lengths")),
        **rows,
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

        content = sha256(repr((self.i, self.name, self.encoded)).encode())
        place = self.work / f"{stage}-{self.i:05d}.npz"
        return cached(place, f"{made_of} {key(self.parameters)} {self.samples} {content}", made)


def _outlines(task: _Task) -> Arrays:
    """Return the arrays that depend on the picture alone."""
    use = task.parameters

    def outline(picture: Picture) -> Arrays:
        segments = segment(picture.rgb, use.n_segments, use.compactness)
        y = majority(segments, picture.truth)
        edges, _ = borders(segments)
        descriptors = gradients(picture.rgb, use.grid_step, use.key_point)
        draw = partial(sample, count=task.samples, seed=use.seed + task.i)
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
        descriptors = gradients(picture.rgb, use.grid_step, use.key_point)
        x = describe(
            outlines["segments"].reshape(outlines["shapes"][0]),
            words(rooted(descriptors), gradient_words),
            words(picture.rgb, colour_words),
            use.grid_step,
        )
        k, b = np.nonzero(x)
        lengths = np.bincount(k, minlength=len(x))
        return {"data": x[k, b], "indices": b.astype(np.uint16), "lengths": lengths}

    return task.kept("features", sha256(gradient_words.tobytes() + colour_words.tobytes()), rows)


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


# ---- archives -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PictureConfig(SourceConfig):
    """Options of pictures.

    Attributes
    ----------
    histograms : str
        Features from shares c/s of a superpixel's pixels: ``"root"``, √(c/s); or ``"shares"``,
        c/s, which are smaller relative to the fixed weight of the Potts term.
    """

    histograms: Annotated[str, one_of(("root", "shares"))] = "root"

    def prepare(self, pictures: Dataset) -> Dataset:
        """Return the pictures with the requested features; the stored ones are roots."""
        if self.histograms == "root":
            return pictures
        x: Any = pictures.x.copy()
        x.data **= 2
        return pictures.derived(x=x)


@lru_cache(maxsize=1)
def _opened(by: Callable[[Path], Pictures], path: Path, _: tuple[int, int]) -> Pictures:
    """Return the pictures of an archive, from which several datasets may be drawn in turn.

    The last argument distinguishes contents of the file: when it was changed, and its size.
    """
    return by(path)


@dataclass(frozen=True, kw_only=True)
class PictureFile(RawFile):
    """An archive of pictures with a label per pixel.

    Attributes
    ----------
    labels : tuple of str
        Names of the labels 0 .. K − 1.
    open : callable
        Returns the pictures of an archive, given its path; raises `ContentError`.
    scenes : callable
        Returns synthetic pictures, given their number. Their ``encoded`` must change when the
        pictures do.
    """

    labels: tuple[str, ...]
    open: Callable[[Path], Pictures]
    scenes: Callable[[int], Pictures]
    most: int = MOST
    n_features: int | None = N_FEATURES

    only: ClassVar[Names] = (*CSR, "y", "offsets", "edges", "edge_offsets")
    format: ClassVar[str] = "a tar archive"
    prepared: ClassVar[bool] = True

    @property
    def n_synthetic(self) -> int:
        """Number of synthetic pictures."""
        return N_SYNTHETIC

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins like a tar archive, compressed by gzip or not."""
        return head.startswith(GZIP) or head[257:262] == b"ustar"

    def extra(self, source: str) -> str:
        """See `RawFile`."""
        return "images"

    def pictures(self, source: str) -> Pictures:
        """Return the pictures of a source; `MissingDataError` if the real file is not there."""
        if source == "synthetic":
            return self.scenes(self.n_synthetic)
        path = self.get()
        with self.explained(path):
            about = path.stat()
            return _opened(self.open, path, (about.st_mtime_ns, about.st_size))

    def read(self, path: Path) -> Content:
        """Return the digest of the files that are read from the archive, and their preparation."""
        pictures = self.open(path)
        pairs = zip(pictures.names, pictures.encoded, strict=True)
        lines = (f"{name} {' '.join(map(sha256, files))}\n" for name, files in pairs)
        digest = sha256("".join(lines).encode())
        return Content({self.file: digest}, lambda: self._prepared("real", pictures))

    def synthetic_arrays(self) -> Arrays:
        """Prepare the synthetic pictures."""
        return self._prepared("synthetic", self.scenes(self.n_synthetic))

    def key(self, source: str) -> str:
        """Return a text that changes when the arrays of a source must be prepared again."""
        made = f" {self.scenes(1).encoded} n={self.n_synthetic}" if source == "synthetic" else ""
        return f"{super().key(source)}{made} {key(self.parameters(source))}"

    def parameters(self, source: str) -> Parameters:
        """Return the parameters with which the arrays of a source are prepared."""
        return PARAMETERS

    def segments(self, source: str, numbers: Sequence[int]) -> list[np.ndarray]:
        """Return superpixel maps (h, w) of some pictures."""
        _, arrays = sources.arrays(self, source, ("segments", "shapes"))
        shapes = arrays["shapes"]
        maps = np.split(arrays["segments"], np.cumsum(shapes.prod(axis=1))[:-1])
        return [maps[i].reshape(shapes[i]) for i in numbers]

    def kept(self, place: Path, key: str, source: str, make: Make, only: Names) -> Arrays:
        """Return some arrays of a source, from their cache file or newly prepared and stored."""
        found = stored(place, key, only)
        if found is not None:
            return found
        with self._alone(source):
            arrays = cached(place, key, make, only)
            if stored_key(place) != key:
                again = f"{place} cannot be written: the next run prepares it again."
                print(again, file=sys.stderr)
            files.remove(self._work(source), _PIECES)
            return arrays

    def _prepared(self, source: str, pictures: Pictures) -> Arrays:
        title = self.dataset if source == "real" else f"synthetic {self.dataset}"
        work, parameters = self._work(source), self.parameters(source)
        with ExitStack() as held:
            try:
                files.make(work, work.parent)
            except OSError:  # pieces cannot be kept
                place = Path(tempfile.gettempdir(), "ssvm-bench-preparing")
                work = held.enter_context(files.temporary_folder(place))
            return prepare(pictures, work, title, parameters=parameters)

    def _work(self, source: str) -> Path:
        return self.places()[-1].with_name(f"preparing-{source}")

    @contextmanager
    def _alone(self, source: str) -> Iterator[None]:
        """Keep other processes from preparing the same source; wait for one that does."""
        lock = self._work(source).with_suffix(".lock")
        with ExitStack() as held:
            # without a writable cache folder, continue without the lock
            with suppress(OSError):
                files.make(lock.parent)
                try:
                    held.enter_context(files.locked(lock, seconds=0))
                except files.HeldError:
                    waits = f"Another process is preparing {self.dataset}; waiting for it."
                    print(waits, file=sys.stderr, flush=True)
                    held.enter_context(files.locked(lock))
            yield
