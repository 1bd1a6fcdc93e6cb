"""HorseSeg (Kolesnikov, Guillaumin, Ferrari, Lampert): horses, with superpixels and features.

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
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.datasets import sources, tables
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.facts import Fact
from ssvm_bench.datasets.images import hdseg
from ssvm_bench.datasets.images.picture_file import PictureFile
from ssvm_bench.datasets.images.pictures import Pictures
from ssvm_bench.datasets.raw_files import Content
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.synthetic import scenes

Config = SourceConfig

LABELS = ("background", "horse")
N_IMAGES = 2376


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

    with hdseg.hdf5(path) as file:
        images = [hdseg.image(file, i) for i in range(hdseg.count(file))]
    x = vstack([image.x for image in images], format="csr")
    offsets, edge_offsets = (
        np.cumsum([0, *(len(getattr(image, name)) for image in images)]) for name in ("y", "edges")
    )
    return {
        "data": x.data,
        "indices": x.indices.astype(np.uint16),
        "indptr": x.indptr.astype(np.int64),
        "y": np.concatenate([image.y for image in images]),
        "offsets": offsets,
        "edges": np.concatenate([image.edges for image in images]),
        "edge_offsets": edge_offsets,
    }


def _no_pictures(path: Path) -> Pictures:
    raise RunFailedError(
        f"There is nothing to show: {path.name} has superpixels and features, but no photographs. "
        "The stand-in has pictures: --source synthetic."
    )


class HorseSegFile(PictureFile):
    """The HDF5 file; the stand-in is made of pictures."""

    format: ClassVar[str] = "an HDF5 file"
    most: ClassVar[int] = 20_000_000_000

    def recognises(self, head: bytes) -> bool:
        """Tell HDF5."""
        return head.startswith(b"\x89HDF\r\n\x1a\n")

    def check(self, path: Path) -> None:
        """Look whether all arrays are there: no genuine file could be had to compute its digest."""
        with hdseg.hdf5(path) as file:
            tables.check_equal("images", hdseg.count(file), N_IMAGES)

    def read(self, path: Path) -> Content:
        """Read all images."""
        self.check(path)
        return Content({}, partial(parse, path))

    def facts(self, path: Path) -> Iterator[Fact]:
        """Yield what a copy is like, image by image."""
        yield from hdseg.facts(path, N_IMAGES)

    def unpack(self, came: Path) -> Path:
        """Extract the file from the archive that is at its home."""
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
