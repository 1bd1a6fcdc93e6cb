r"""Superpixels: the parts of a picture, their neighbours, their labels and their features.

SLIC (Achanta et al., PAMI 2012) groups the pixels by position and colour into about the requested
number of compact pieces. A piece is connected, and so is the picture; hence the graph of the pieces
that share a border is connected, too.

Features are three histograms over the pixels of a superpixel, 649 numbers:

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

import numpy as np

from ssvm_bench.base.errors import needed
from ssvm_bench.base.random import uniform
from ssvm_bench.datasets.reading import ContentError, ensure

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
