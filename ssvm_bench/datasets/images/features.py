r"""The 649 features of a superpixel: three histograms over its pixels.

======  ===================================================================================
512     visual words of gradients: the SIFT descriptor at the pixel's nearest point of a grid
128     visual words of colour: the pixel's RGB value
9       the cell of a 3 × 3 division of the picture that the pixel lies in
======  ===================================================================================

A visual word is the nearest of the centres that k-means finds in a sample of all pictures. Since
every *pixel* votes, through the nearest grid point, no superpixel is without gradients, however
small or oddly shaped.

With :math:`c_{kb}` of the :math:`s_k` pixels of superpixel k in bin b, the feature is

.. math:: x_{kb} = \sqrt{c_{kb} / s_k},

so each block is non-negative and has Euclidean length 1. The root (Hellinger's kernel, instead of
the plain shares) makes a linear classifier under the strong regularisation λ = 1/n better, because
many rare words then say as much together as a frequent one. SIFT descriptors are compared in the
same way (RootSIFT: Arandjelović and Zisserman, CVPR 2012).

References
----------
D. Lowe: Distinctive image features from scale-invariant keypoints. IJCV 2004.
"""

from __future__ import annotations

import warnings

import numpy as np

from ssvm_bench.base.random import uniform
from ssvm_bench.datasets.images.superpixels import counts

N_GRADIENT_WORDS = 512
N_COLOUR_WORDS = 128
CELLS = 3
N_FEATURES = N_GRADIENT_WORDS + N_COLOUR_WORDS + CELLS**2

BATCH = 8192  # points whose distances to all words are computed at a time


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
        the columns alike; those beyond the last point belong to it.
    """
    import cv2

    rows, columns = (_grid(length, step) for length in rgb.shape[:2])
    points = [cv2.KeyPoint(float(x), float(y), diameter, 0.0) for y in rows for x in columns]
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    _, found = cv2.SIFT.create().compute(grey, points)
    return found.reshape(rows.size, columns.size, -1).astype(np.uint8)


def _grid(length: int, step: int) -> np.ndarray:
    points = np.arange(step // 2, length, step)
    return points if points.size else np.array([length // 2])


def rooted(descriptors: np.ndarray) -> np.ndarray:
    """Return RootSIFT: float32 of the same shape, of Euclidean length 1 (or 0) along the last axis.

    In a patch of one colour there are no gradients; its descriptor is and stays 0.
    """
    total = np.maximum(descriptors.sum(axis=-1, keepdims=True, dtype=np.float32), 1)
    return np.sqrt(descriptors / total)


def sample(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return ``count`` of the points (rows), drawn with replacement, the same for the same seed."""
    chosen = uniform((count,), np.random.PCG64(seed)) * len(points)
    return points[chosen.astype(np.int64)]


def vocabulary(points: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    """Return the visual words of a sample: centres of k-means.

    Parameters
    ----------
    points : ndarray, shape (m, p)
        The sample, m ≥ n_words.
    n_words : int
        Number of words. Of fewer distinct points, some words never occur.
    seed : int
        Of the start.

    Returns
    -------
    ndarray of float32, shape (n_words, p)
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # With several threads, the order of the sums would depend on their number. k-means++ would
    # take longer than all iterations, and gains nothing here.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(n_words, init="random", n_init=1, max_iter=20, random_state=seed)
        return means.fit(points.astype(np.float32)).cluster_centers_


def words(points: np.ndarray, vocabulary: np.ndarray) -> np.ndarray:
    """Return the nearest word of every point.

    Parameters
    ----------
    points : ndarray, shape (..., p)
        Points, of any shape in front.
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
