"""Superpixels: the parts of a picture, their neighbours and their labels.

SLIC (Achanta et al., PAMI 2012) groups the pixels by place and colour into about as many compact
pieces as it is asked for. A piece is connected, and so is the picture; hence the graph of the
pieces that share a border is connected, too.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.datasets.reading import ContentError


def segment(rgb: np.ndarray, n_segments: int, compactness: float) -> np.ndarray:
    """Return the superpixel of every pixel.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
        The picture.
    n_segments : int
        About how many superpixels there shall be. Pictures of fewer than a thousand pixels may
        give anything from one to the number of their pixels.
    compactness : float
        How much a distance on the picture counts against one of colour: the larger, the rounder.

    Returns
    -------
    ndarray of uint16, shape (h, w)
        Numbers 0 .. L - 1, each of which occurs.

    Raises
    ------
    ContentError
        The picture has no pixels, or is no array of colours.
    """
    from skimage.segmentation import slic

    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise ContentError(f"expected h × w × 3 bytes, found {rgb.dtype} of shape {rgb.shape}")
    if rgb.size == 0:
        raise ContentError(f"the picture is empty ({rgb.shape[1]} × {rgb.shape[0]} pixels)")
    found = slic(
        rgb,
        n_segments=n_segments,
        compactness=compactness,
        start_label=0,
        enforce_connectivity=True,
    )
    _, dense = np.unique(found, return_inverse=True)
    return dense.reshape(found.shape).astype(np.uint16)


def neighbours(segments: np.ndarray) -> np.ndarray:
    """Return the pairs of superpixels that share a border: the first that `borders` returns."""
    return borders(segments)[0]


def borders(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of superpixels of which two pixels are neighbours (left/right, up/down).

    Parameters
    ----------
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.

    Returns
    -------
    pairs : ndarray of int32, shape (edges, 2)
        Pairs k < l in lexicographic order, none twice.
    lengths : ndarray of int64, shape (edges,)
        Pairs of pixels at each border.
    """
    k = np.concatenate((segments[:, :-1].ravel(), segments[:-1].ravel())).astype(np.int64)
    l = np.concatenate((segments[:, 1:].ravel(), segments[1:].ravel())).astype(np.int64)
    border = k != l
    low, high = np.minimum(k, l)[border], np.maximum(k, l)[border]
    n = int(segments.max()) + 1
    pairs, lengths = np.unique(low * n + high, return_counts=True)
    return np.stack((pairs // n, pairs % n), axis=1).astype(np.int32), lengths


def sizes(segments: np.ndarray) -> np.ndarray:
    """Return the number of pixels (int32, shape (L,)) of every superpixel."""
    return np.bincount(segments.ravel()).astype(np.int32)


def majority(segments: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the most frequent label of every superpixel; of equally frequent ones, the lowest.

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
        Pixels.
    """
    n = int(segments.max()) + 1
    pairs = segments.ravel().astype(np.int64) * n_values + values.ravel()
    return np.bincount(pairs, minlength=n * n_values).reshape(n, n_values)
