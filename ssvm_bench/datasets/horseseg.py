"""HorseSeg (Kolesnikov, Guillaumin, Ferrari, Lampert): horses, with superpixels and features.

The HDF5 file has five arrays an image, NNNNNN from 000000:

=============================  ==================================================================
``superpixel_count_NNNNNN``    number L of superpixels
``edge_count_NNNNNN``          number of edges
``edge_structure_NNNNNN``      zero-based pairs of neighbours
``features_NNNNNN``            (L, 649): used as they are
``labels_NNNNNN``              (L,): 1 horse, 0 background
=============================  ==================================================================

There are no photographs in it, so that nothing can be shown of the real data; the stand-in is made
of pictures.

References
----------
A. Kolesnikov, M. Guillaumin, V. Ferrari, C. H. Lampert: Closed-form approximate CRF training for
scalable image segmentation. ECCV 2014.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from ssvm_bench.datasets import content, sources
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.content import ContentError
from ssvm_bench.datasets.images import scenes
from ssvm_bench.datasets.images.features import N_FEATURES
from ssvm_bench.datasets.images.pictures import Pictures
from ssvm_bench.datasets.images.source import PictureFile
from ssvm_bench.errors import RunFailedError

Config = SourceConfig

LABELS = ("background", "horse")
N_IMAGES = 2376
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
    with _opened(path) as file:
        images = [_image(file, i) for i in range(_count(file))]
    x = vstack([image["x"] for image in images], format="csr")
    offsets, edge_offsets = (
        np.concatenate(([0], np.cumsum([len(image[name]) for image in images])))
        for name in ("y", "edges")
    )
    return {
        "data": x.data,
        "indices": x.indices.astype(np.uint16),
        "indptr": x.indptr.astype(np.int64),
        "y": np.concatenate([image["y"] for image in images]),
        "offsets": offsets,
        "edges": np.concatenate([image["edges"] for image in images]),
        "edge_offsets": edge_offsets,
    }


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as error:
        raise ContentError(f"it is not an HDF5 file, or cut short ({error})") from error


def _count(file: Any) -> int:
    """Return the number of images; every one must have all its arrays."""
    numbers = {
        int(name.rsplit("_", 1)[1])
        for name in file
        if name.rsplit("_", 1)[0] in KINDS and name.rsplit("_", 1)[1].isdigit()
    }
    if not numbers:
        raise ContentError("it has no superpixel_count_000000")
    for i in range(max(numbers) + 1):
        for kind in KINDS:
            if f"{kind}_{i:06d}" not in file:
                raise ContentError(f"it has no {kind}_{i:06d}")
    return max(numbers) + 1


def _image(file: Any, i: int) -> dict[str, Any]:
    """Return the features (CSR), labels and edges of one image."""
    n_superpixels, n_edges, structure, features, labels = (
        np.asarray(file[f"{kind}_{i:06d}"]) for kind in KINDS
    )
    L, E = int(n_superpixels.ravel()[0]), int(n_edges.ravel()[0])
    for kind, found, expected in (
        ("features", features, L * N_FEATURES),
        ("labels", labels, L),
        ("edge_structure", structure, 2 * E),
    ):
        if found.size != expected or L < 1:
            raise ContentError(
                f"{kind}_{i:06d} has {found.size} entries, expected {expected} for {L} "
                f"superpixels and {E} edges"
            )
    x = features.reshape(L, N_FEATURES)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if not np.isfinite(x).all():
        raise ContentError(f"features_{i:06d} has entries that are not finite")
    if not np.isin(labels, (0, 1)).all():
        raise ContentError(f"labels_{i:06d} has {np.unique(labels)}, expected 0 and 1")
    # two rows of ends, or a pair a row
    in_rows = structure.shape == (2, E) and E != 2
    pairs = structure.T if in_rows else structure.reshape(E, 2)
    ends = np.sort(pairs.astype(np.int64), axis=1)
    if E and (ends.min() < 0 or ends.max() >= L or (ends[:, 0] == ends[:, 1]).any()):
        raise ContentError(f"edge_structure_{i:06d} is not made of pairs in 0 … {L - 1}")
    edges = np.unique(ends, axis=0).astype(np.int32).reshape(-1, 2)
    return {"x": csr_array(x), "y": labels.ravel().astype(np.uint8), "edges": edges}


def _no_pictures(path: Path) -> Pictures:
    raise RunFailedError(
        f"There is nothing to show: {path.name} has superpixels and features, but no photographs. "
        "The stand-in has pictures: dataset.source=synthetic."
    )


class HorseSegFile(PictureFile):
    """The HDF5 file; the stand-in is made of pictures."""

    def check(self, path: Path) -> None:
        """Look whether all arrays are there."""
        with _opened(path) as file:
            content.check_equal("images", _count(file), N_IMAGES)

    def real(self, path: Path) -> Arrays:
        """Read all images."""
        self.check(path)
        return parse(path)

    def unpack(self, came: Path) -> Path:
        """Extract the file from the archive that is at its home."""
        if not tarfile.is_tarfile(came):
            raise ContentError("it is not a tar archive")
        with tarfile.open(came) as archive:
            for member in archive:
                packed = archive.extractfile(member)
                if packed is not None and Path(member.name).name == self.file:
                    path = came.with_name(self.file)
                    with path.open("wb") as file:
                        shutil.copyfileobj(packed, file)
                    return path
        raise ContentError(f"there is no {self.file} in it")


RAW = HorseSegFile(
    dataset="horseseg",
    folder="horseseg",
    file="horse-features.bin",
    url="https://pub.ist.ac.at/~akolesnikov/HDSeg/data.tar",
    n=N_IMAGES,
    version=1,
    labels=LABELS,
    open=_no_pictures,
    scenes=partial(scenes.figures, seed=3),
)
