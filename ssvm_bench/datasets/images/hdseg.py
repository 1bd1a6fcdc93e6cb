"""The HDF5 file of HDSeg: superpixels with features, labels and neighbours, image by image.

Five arrays an image, NNNNNN from 000000:

=============================  ==================================================================
``superpixel_count_NNNNNN``    number L of superpixels
``edge_count_NNNNNN``          number of edges
``edge_structure_NNNNNN``      zero-based pairs of neighbours
``features_NNNNNN``            (L, 649): used as they are
``labels_NNNNNN``              (L,): 1 horse, 0 background
=============================  ==================================================================

The file is a stranger's: nothing in it is believed before it is looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.base.files import opened
from ssvm_bench.datasets.facts import Fact, fact
from ssvm_bench.datasets.images.features import N_FEATURES
from ssvm_bench.datasets.reading import ContentError

MOST_SUPERPIXELS, MOST_EDGES = 2000, 20_000
"""Of one image: the counts are numbers in the file, and memory is taken for as many."""

KINDS = ("superpixel_count", "edge_count", "edge_structure", "features", "labels")


class Image(NamedTuple):
    """One image.

    Attributes
    ----------
    x : csr_array, shape (L, 649)
        Features, as they are stored.
    y : ndarray of uint8, shape (L,)
        Labels.
    edges : ndarray of int32, shape (pairs, 2)
        Neighbours k < l, sorted, each pair once.
    repeated : int
        Edges that are stored more than once, in either direction.
    """

    x: Any
    y: np.ndarray
    edges: np.ndarray
    repeated: int


@contextmanager
def hdf5(path: Path) -> Iterator[Any]:
    """Open the file; turn whatever a damaged one makes h5py raise into `ContentError`."""
    import h5py

    opened(path).close()  # only regular files
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError) as error:  # h5py's, of a damaged file
        raise ContentError(f"it is not an HDF5 file, or a damaged one ({error})") from error


def size(file: Any) -> int:
    """Return the number of images: one more than the highest NNNNNN, and at least one."""
    matches = (re.fullmatch(rf"(?:{'|'.join(KINDS)})_(\d{{6}})", key) for key in _keys(file))
    return max((int(match[1]) + 1 for match in matches if match), default=1)


def missing(file: Any) -> list[str]:
    """Return the names of the arrays that are not there."""
    keys = _keys(file)
    wanted = (f"{kind}_{i:06d}" for i in range(size(file)) for kind in KINDS)
    return [key for key in wanted if key not in keys]


def count(file: Any) -> int:
    """Return the number of images; every one must have all its arrays."""
    for key in missing(file):
        raise ContentError(f"it has no {key}")
    return size(file)


def _keys(file: Any) -> set[str]:
    return set(map(str, file))  # names that are damaged come as bytes


def image(file: Any, i: int) -> Image:
    """Return one image.

    Raises
    ------
    ContentError
        Names the first array that does not fit the others.
    """
    from scipy.sparse import csr_array

    L = _integers(file, f"superpixel_count_{i:06d}", (1,)).item()
    E = _integers(file, f"edge_count_{i:06d}", (1,)).item()
    if not (1 <= L <= MOST_SUPERPIXELS and 0 <= E <= MOST_EDGES):
        raise ContentError(f"image {i:06d} has {L} superpixels and {E} edges")
    key = f"features_{i:06d}"
    x = _numbers(file, key, (L, N_FEATURES))
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if not np.isfinite(x).all():
        raise ContentError(f"{key} has entries that are not finite")
    key = f"labels_{i:06d}"
    y = _integers(file, key, (L,))
    if y.min() < 0 or y.max() > 1:
        raise ContentError(f"{key} has labels {y.min()} … {y.max()}, expected 0 and 1")
    key = f"edge_structure_{i:06d}"
    ends = np.sort(_integers(file, key, (E, 2)), axis=1)
    if E and (ends.min() < 0 or ends.max() >= L):
        raise ContentError(f"{key} has superpixels {ends.min()} … {ends.max()} of {L}")
    if (ends[:, 0] == ends[:, 1]).any():
        raise ContentError(f"{key} has an edge from a superpixel to itself")
    edges = np.unique(ends, axis=0).astype(np.int32)
    return Image(csr_array(x), y.astype(np.uint8), edges, len(ends) - len(edges))


def _numbers(file: Any, key: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that is stored in this shape, flat, or by MATLAB: with its axes reversed."""
    stored = _array(file, key)
    turned = len(shape) == 2 and stored.shape == shape[::-1]
    flat = stored.size == math.prod(shape) == max(stored.shape, default=1)
    if not (stored.shape == shape or turned or flat):
        expected = " × ".join(map(str, shape))
        raise ContentError(f"{key} has shape {stored.shape}, expected {expected} by the counts")
    found = np.asarray(stored)
    if found.shape == shape:
        return found
    return np.ascontiguousarray(found.T) if turned else found.reshape(shape)


def _array(file: Any, key: str) -> Any:
    """Return an array that lies in this very file, and takes no more memory than its shape says."""
    import h5py

    found = file[key]
    if not isinstance(found, h5py.Dataset) or found.dtype.kind not in "buif":
        raise ContentError(f"{key} is not made of numbers")
    if not isinstance(file.get(key, getlink=True), h5py.HardLink) or found.external:
        raise ContentError(f"{key} lies in another file")
    if found.is_virtual or math.prod(found.chunks or ()) > MOST_SUPERPIXELS * N_FEATURES:
        raise ContentError(f"{key} is stored in pieces that are far larger than itself")
    return found


def _integers(file: Any, key: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of whole numbers, whatever type they are stored in, as int64."""
    found = _numbers(file, key, shape).astype(np.float64)
    if not (np.abs(found) < 2**53).all() or (found % 1).any():
        raise ContentError(f"{key} has entries that are not whole numbers, or far too large")
    return found.astype(np.int64)


# ---- what a copy is like ----------------------------------------------------------------------


def facts(path: Path, n: int) -> Iterator[Fact]:
    """Yield what a file has, where ``n`` images of the genuine one are expected.

    Raises
    ------
    ContentError
        If it cannot be opened at all.
    """
    with hdf5(path) as file:
        lacking, others = missing(file), _keys(file)
        stored = size(file)
        others -= {f"{kind}_{i:06d}" for i in range(stored) for kind in KINDS}
        yield fact("images", stored, n)
        yield fact("arrays that are missing", _some(lacking), "none")
        yield Fact("arrays of other names", _some(sorted(others)))
        sums, refused = _Sums(), []
        absent = {key.rpartition("_")[2] for key in lacking}
        for i in range(stored):
            if f"{i:06d}" not in absent:
                try:
                    sums.add(image(file, i))
                except ContentError as error:
                    refused.append(str(error))
    yield fact("images that cannot be used", _some(refused, "; "), "none")
    if sums.lengths:
        yield from sums.facts()


class _Sums:
    """What is added up over images."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.pairs: list[int] = []
        self.repeated = self.alone = self.horses = self.nonzeros = 0
        self.low, self.high = math.inf, -math.inf
        self.types: set[str] = set()

    def add(self, one: Image) -> None:
        L = one.y.size
        self.lengths.append(L)
        self.pairs.append(len(one.edges))
        self.repeated += one.repeated
        self.alone += L - np.unique(one.edges).size
        self.horses += int(one.y.sum())
        self.nonzeros += one.x.nnz
        dense = one.x.nnz == one.x.shape[0] * one.x.shape[1]
        zero = () if dense else (0.0,)
        self.low = min(self.low, *zero, float(one.x.data.min(initial=np.inf)))
        self.high = max(self.high, *zero, float(one.x.data.max(initial=-np.inf)))
        self.types.add(str(one.x.dtype))

    def facts(self) -> Iterator[Fact]:
        parts = sum(self.lengths)
        yield Fact("superpixels an image", _span(self.lengths))
        yield Fact("pairs of neighbours an image", _span(self.pairs))
        yield Fact("edges that are stored twice", f"{self.repeated} (each pair counts once)")
        yield Fact("superpixels without a neighbour", str(self.alone))
        yield fact("features a superpixel", N_FEATURES, N_FEATURES)
        yield Fact("their type", ", ".join(sorted(self.types)))
        yield Fact("their values", f"{self.low:.6g} to {self.high:.6g}")
        yield Fact("of which are not zero", f"{self.nonzeros / parts / N_FEATURES:.1%}")
        yield Fact("superpixels that are horse", f"{self.horses / parts:.1%}")


def _some(names: Sequence[str], between: str = ", ") -> str:
    """Return the first of some names, and how many there are."""
    shown_names = between.join(shown(name) for name in names[:3])
    return f"{len(names)}: {shown_names}{between}…" if len(names) > 3 else shown_names or "none"


def _span(counts: Sequence[int]) -> str:
    return f"{min(counts)} to {max(counts)}, {sum(counts) / len(counts):.1f} on average"
