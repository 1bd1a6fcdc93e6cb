"""HorseSeg (Kolesnikov, Guillaumin, Ferrari, Lampert): horses, with superpixels and features.

The HDF5 file has five arrays per image; NNNNNN counts from 000000:

=============================  ==================================================================
``superpixel_count_NNNNNN``    number L of superpixels
``edge_count_NNNNNN``          number of edges
``edge_structure_NNNNNN``      zero-based pairs of neighbours
``features_NNNNNN``            (L, 649): used unchanged
``labels_NNNNNN``              (L,): 1 horse, 0 background
=============================  ==================================================================

The file has no photographs, so only the synthetic data can be shown. Nothing in the file is
trusted: everything is checked before it is used.

References
----------
A. Kolesnikov, M. Guillaumin, V. Ferrari, C. H. Lampert: Closed-form approximate CRF training for
scalable image segmentation. ECCV 2014.
"""

from __future__ import annotations

import math
import re
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import RunFailedError, needed, shown
from ssvm_bench.base.files import opened
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.arrays import REAL, array
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.images import scenes
from ssvm_bench.datasets.images.pictures import Pictures
from ssvm_bench.datasets.images.preparation import N_FEATURES, PictureFile
from ssvm_bench.datasets.reading import Arrays, ContentError, check_equal, ensure, parsing
from ssvm_bench.datasets.sources import Content, Property, home

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Config = SourceConfig

LABELS = ("background", "horse")
N_IMAGES = 2376

MOST_SUPERPIXELS, MOST_EDGES = 2000, 20_000
"""Limits for one image: memory is allocated according to the counts in the file."""

KINDS = ("superpixel_count", "edge_count", "edge_structure", "features", "labels")


def load(config: Config) -> Dataset:
    """Return the superpixels of 2376 images, labels background and horse."""
    return sources.load(config, RAW, structure="graph", n_labels=len(LABELS))


def parse(path: Path) -> Arrays:
    """Return the prepared arrays of a file in this format, of any length.

    Raises
    ------
    ContentError
        Names the first array that is missing, or does not fit the others of its image.
    """
    from scipy.sparse import vstack

    with hdf5(path) as file:
        images = [image(file, i) for i in range(count(file))]
    xs, ys, edges, _ = zip(*images, strict=True)
    x = vstack(xs, format="csr")
    return {
        "data": x.data,
        "indices": x.indices.astype(np.uint16),
        "indptr": x.indptr.astype(np.int64),
        "y": np.concatenate(ys),
        "offsets": np.cumsum([0, *map(len, ys)]),
        "edges": np.concatenate(edges),
        "edge_offsets": np.cumsum([0, *map(len, edges)]),
    }


@contextmanager
def hdf5(path: Path) -> Iterator[Any]:
    """Open the file; turn any error of h5py about a damaged file into `ContentError`."""
    with needed("horseseg", "The file of HorseSeg"):
        import h5py

    opened(path).close()  # only regular files
    with parsing("it is not an HDF5 file, or a damaged one"), h5py.File(path, "r") as file:
        yield file


def contents(file: Any) -> tuple[int, list[str], list[str]]:
    """Return the number of images, the names of missing arrays, and those of unknown arrays.

    The number is one more than the highest NNNNNN, and at least one.
    """
    keys = set(map(str, file))  # h5py returns damaged names as bytes
    matches = (re.fullmatch(rf"(?:{'|'.join(KINDS)})_(\d{{6}})", key) for key in keys)
    n = max((int(match[1]) + 1 for match in matches if match), default=1)
    wanted = [f"{kind}_{i:06d}" for i in range(n) for kind in KINDS]
    return n, [key for key in wanted if key not in keys], sorted(keys - set(wanted))


def count(file: Any) -> int:
    """Return the number of images; every one must have all its arrays."""
    n, missing, _ = contents(file)
    if missing:
        raise ContentError(f"it has no {missing[0]}")
    return n


def image(file: Any, i: int) -> tuple[csr_array, np.ndarray, np.ndarray, int]:
    """Return one image.

    Returns
    -------
    x : csr_array, shape (L, 649)
        Features as stored.
    y : ndarray of uint8, shape (L,)
        Labels.
    edges : ndarray of int32, shape (pairs, 2)
        Neighbours k < l, sorted, each pair once.
    repeated : int
        Number of surplus edges: copies of others, in either direction.

    Raises
    ------
    ContentError
        Names the first array that does not fit the others.
    """
    from scipy.sparse import csr_array

    def integers(kind: str, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
        """Return an array of whole numbers, stored in any numeric type, as int64."""
        found = _numbers(file, f"{kind}_{i:06d}", shape)
        return array(found, f"{kind}_{i:06d}", REAL, shape, low, high, dtype=np.int64)

    L = integers("superpixel_count", (1,), 1, MOST_SUPERPIXELS).item()
    E = integers("edge_count", (1,), 0, MOST_EDGES).item()
    key = f"features_{i:06d}"
    x = _numbers(file, key, (L, N_FEATURES))
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    ensure(np.isfinite(x).all(), f"{key} has entries that are not finite")
    y = integers("labels", (L,), 0, 1)
    ends = np.sort(integers("edge_structure", (E, 2), 0, L - 1), axis=1)
    if (ends[:, 0] == ends[:, 1]).any():
        raise ContentError(f"edge_structure_{i:06d} has an edge from a superpixel to itself")
    edges = np.unique(ends, axis=0).astype(np.int32)
    return csr_array(x), y.astype(np.uint8), edges, len(ends) - len(edges)


def _numbers(file: Any, key: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that is stored in this shape, flat, or with reversed axes, as by MATLAB.

    It must be stored in this file itself, and in chunks that take no excessive memory.
    """
    import h5py

    stored = file[key]
    if not isinstance(stored, h5py.Dataset) or stored.dtype.kind not in "buif":
        raise ContentError(f"{key} is not made of numbers")
    if not isinstance(file.get(key, getlink=True), h5py.HardLink) or stored.external:
        raise ContentError(f"{key} lies in another file")
    if stored.is_virtual or math.prod(stored.chunks or ()) > MOST_SUPERPIXELS * N_FEATURES:
        raise ContentError(f"{key} is stored in pieces that are far larger than itself")
    turned = len(shape) == 2 and stored.shape == shape[::-1]
    flat = stored.size == math.prod(shape) == max(stored.shape, default=1)
    if not (stored.shape == shape or turned or flat):
        expected = " × ".join(map(str, shape))
        raise ContentError(f"{key} has shape {stored.shape}, expected {expected} by the counts")
    found = np.asarray(stored)
    if found.shape == shape:
        return found
    return np.ascontiguousarray(found.T) if turned else found.reshape(shape)


def _some(names: Sequence[str], between: str = ", ") -> str:
    """Return the first of some names, and their number if they are many."""
    first = between.join(shown(name) for name in names[:3])
    return f"{len(names)}: {first}{between}…" if len(names) > 3 else first or "none"


def _span(arrays: Sequence[np.ndarray]) -> str:
    sizes = np.array([len(array) for array in arrays])
    return f"{sizes.min()} to {sizes.max()}, {sizes.mean():.1f} on average"


def _no_pictures(path: Path) -> Pictures:
    raise RunFailedError(
        f"There is nothing to show: {path.name} has superpixels and features, but no photographs. "
        "The synthetic data have pictures: --source synthetic."
    )


class HorseSegFile(PictureFile):
    """The HDF5 file."""

    format: ClassVar[str] = "an HDF5 file"

    def extra(self, source: str) -> str:
        """See `RawFile`."""
        return super().extra(source) if source == "synthetic" else "horseseg"

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins like HDF5."""
        return head.startswith(b"\x89HDF\r\n\x1a\n")

    def check(self, path: Path) -> None:
        """Check that all arrays exist; without a genuine file, no digest is known."""
        with hdf5(path) as file:
            check_equal("images", count(file), N_IMAGES)

    def read(self, path: Path) -> Content:
        """Check the file; return its images, which are parsed on demand."""
        self.check(path)
        return Content({}, partial(parse, path))

    def integrity_report(self, path: Path) -> Iterator[Property]:
        """Yield findings about a copy of the genuine file, collected image by image.

        Raises
        ------
        ContentError
            If the copy cannot be opened at all.
        """
        with hdf5(path) as file:
            stored, missing, others = contents(file)
            absent = {key.rpartition("_")[2] for key in missing}
            images, refused = [], []
            for i in range(stored):
                if f"{i:06d}" not in absent:
                    try:
                        images.append(image(file, i))
                    except ContentError as error:
                        refused.append(str(error))
        yield Property.compared("images", stored, N_IMAGES)
        yield Property.compared("arrays that are missing", _some(missing), "none")
        yield Property("arrays of other names", _some(others))
        yield Property.compared("images that cannot be used", _some(refused, "; "), "none")
        if not images:
            return
        xs, ys, edges, repeated = zip(*images, strict=True)
        n = sum(map(len, ys))
        yield Property("superpixels an image", _span(ys))
        yield Property("pairs of neighbours an image", _span(edges))
        yield Property("edges that are stored twice", f"{sum(repeated)} (each pair counts once)")
        alone = n - sum(np.unique(pairs).size for pairs in edges)
        yield Property("superpixels without a neighbour", str(alone))
        yield Property.compared("features a superpixel", N_FEATURES, N_FEATURES)
        yield Property("their type", ", ".join(sorted({str(x.dtype) for x in xs})))
        low, high = min(x.min() for x in xs), max(x.max() for x in xs)
        yield Property("their values", f"{low:.6g} to {high:.6g}")
        yield Property("of which are not zero", f"{sum(x.nnz for x in xs) / n / N_FEATURES:.1%}")
        yield Property("superpixels that are horse", f"{sum(int(y.sum()) for y in ys) / n:.1%}")

    def unpack(self, came: Path) -> Path:
        """Extract the file from the archive that its home page offers."""
        try:
            with tarfile.open(came) as archive:
                for member in archive:
                    packed = archive.extractfile(member)
                    if member.size > self.most:
                        raise ContentError(f"{member.name} has {member.size} bytes: too many")
                    if packed is not None and Path(member.name).name == self.file:
                        path = came.with_name(self.file)
                        with path.open("wb") as file:
                            shutil.copyfileobj(packed, file)
                        return path
        except (tarfile.TarError, EOFError) as error:
            raise ContentError("it is not a tar archive, or cut short") from error
        raise ContentError(f"there is no {self.file} in it")


RAW = HorseSegFile(
    **home("horseseg"),
    n=N_IMAGES,
    version=1,
    most=20_000_000_000,
    labels=LABELS,
    open=_no_pictures,
    scenes=partial(scenes.figures, seed=3),
)
