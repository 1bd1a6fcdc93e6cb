"""Small datasets of every structure, on which contracts are checked; the same on every machine."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.datasets import local_patterns
from ssvm_bench.datasets.alphabet import Alphabet
from ssvm_bench.datasets.base import LANDMARKS, SEGMENTS, Dataset
from ssvm_bench.datasets.boxes import Boxes
from ssvm_bench.datasets.windows import Windows

N_FEATURES = 3
_SIZES = (3, 1, 4, 2, 3)  # parts of the examples of structures


def small(structure: str, n_labels: int = 3) -> Dataset:
    """Return a few examples of a structure, whose features say much about their labels."""
    bits = np.random.PCG64(7)
    if structure == LANDMARKS:
        return _landmarks(bits)
    if structure == SEGMENTS:
        return _segments(bits)
    sizes = np.array(_SIZES if structure in ("chain", "graph") else (1,) * 8)
    parts = int(sizes.sum())
    y = np.arange(parts) % n_labels
    x = 2.0 * approx_normal((n_labels, N_FEATURES), bits)[y] + 0.3 * approx_normal(
        (parts, N_FEATURES), bits
    )
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    more: dict[str, Any] = {}
    if structure == "graph":
        pairs = [[*combinations(range(size), 2)] for size in sizes]
        kept = [[pair for k, pair in enumerate(each) if k % 3 < 2] for each in pairs]
        more["edges"] = np.array([pair for each in kept for pair in each], np.int32)
        more["edge_offsets"] = np.concatenate(([0], np.cumsum([len(each) for each in kept])))
    if structure == "regression":
        return _dataset(structure, x, approx_normal((parts,), bits), offsets, 0)
    if structure == "latent":
        x, n_labels = uniform((parts, 16), bits), 2
        more |= {"windows": Windows((4, 4), (3, 3), 1), "places": np.arange(parts) % 4}
    return _dataset(structure, x, (y % n_labels).astype(np.uint8), offsets, n_labels, **more)


def _segments(bits: np.random.PCG64) -> Dataset:
    """Return texts of two characters, of one column and of two."""
    alphabet = Alphabet(("i", "o"), (1, 2))
    texts = [(1,) * (size // 2) + (0,) * (size % 2) for size in _SIZES]
    y = np.concatenate([alphabet.columns(text) for text in texts]).astype(np.uint8)
    x = 2.0 * approx_normal((alphabet.n_labels, N_FEATURES), bits)[y]
    x += 0.3 * approx_normal((y.size, N_FEATURES), bits)
    offsets = np.cumsum([0, *_SIZES])
    return _dataset(SEGMENTS, x, y, offsets, alphabet.n_labels, admissible=alphabet)


def _landmarks(bits: np.random.PCG64) -> Dataset:
    """Return images of noise, with three landmarks in boxes of 2 × 3 positions."""
    n, image = 4, (7, 8)
    corners = ((0, 0), (2, 4), (4, 1))
    boxes = Boxes(("a", "b", "c"), (-1, 0, 0), corners, ((2, 3),) * 3, image, (0, 1), (2,))
    at = np.array(corners) + (uniform((n, 3, 2), bits) * (2, 3)).astype(np.int64)
    y = (at @ np.array([image[1], 1])).ravel().astype(np.uint8)
    maps = local_patterns.maps((256 * uniform((n, *image), bits)).astype(np.uint8))
    return _dataset(LANDMARKS, maps, y, 3 * np.arange(n + 1), 56, admissible=boxes)


def _dataset(
    structure: str, x: np.ndarray, y: np.ndarray, offsets: np.ndarray, n_labels: int, **more: Any
) -> Dataset:
    return Dataset(
        name=f"small {structure}",
        source="synthetic",
        x=x,
        y=y,
        offsets=offsets,
        n_labels=n_labels,
        structure=structure,
        **more,
    )
