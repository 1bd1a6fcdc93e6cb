"""Small datasets of every structure, on which contracts are checked; the same on every machine."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.windows import Windows
from ssvm_bench.random import bell, uniform

N_FEATURES = 3
_SIZES = (3, 1, 4, 2, 3)  # parts of the examples of structures


def small(structure: str, n_labels: int = 3) -> Dataset:
    """Return a few examples of a structure, whose features say much about their labels."""
    bits = np.random.PCG64(7)
    sizes = np.array(_SIZES if structure in ("chain", "graph") else (1,) * 8)
    parts = int(sizes.sum())
    y = np.arange(parts) % n_labels
    x = 2.0 * bell((n_labels, N_FEATURES), bits)[y] + 0.3 * bell((parts, N_FEATURES), bits)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    more: dict[str, Any] = {}
    if structure == "graph":
        pairs = [[*combinations(range(size), 2)] for size in sizes]
        kept = [[pair for k, pair in enumerate(each) if k % 3 < 2] for each in pairs]
        more["edges"] = np.array([pair for each in kept for pair in each], np.int32)
        more["edge_offsets"] = np.concatenate(([0], np.cumsum([len(each) for each in kept])))
    if structure == "regression":
        return _dataset(structure, x, bell((parts,), bits), offsets, 0)
    if structure == "latent":
        x, n_labels = uniform((parts, 16), bits), 2
        more |= {"windows": Windows((4, 4), (3, 3), 1), "places": np.arange(parts) % 4}
    return _dataset(structure, x, (y % n_labels).astype(np.uint8), offsets, n_labels, **more)


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
