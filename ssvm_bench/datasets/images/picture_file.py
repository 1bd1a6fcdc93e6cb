"""Raw files that are archives of pictures, whose arrays are prepared once and cached.

While one process prepares a dataset, another one that needs it waits. Finished pieces of a
preparation stay in the user's cache folder until the arrays are stored, even if it is killed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import filelock
import numpy as np

from ssvm_bench.config.validation import one_of
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.images import preparation
from ssvm_bench.datasets.images.pictures import MOST, Pictures
from ssvm_bench.datasets.images.superpixels import N_FEATURES
from ssvm_bench.datasets.raw_files import CSR, Content, Names, RawFile, sha256
from ssvm_bench.datasets.reading import GZIP, Arrays

N_SYNTHETIC = 120
"""Number of synthetic pictures of a dataset; preparing them takes well below a minute."""


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

    def pictures(self, source: str) -> Pictures:
        """Return the pictures of a source; `MissingDataError` if the real file is not there."""
        if source == "synthetic":
            return self.scenes(self.n_synthetic)
        path = self.get()
        with self.explained(path):
            return self.open(path)

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
        return f"{super().key(source)}{made} {preparation.key(self.parameters(source))}"

    def parameters(self, source: str) -> preparation.Parameters:
        """Return the parameters with which the arrays of a source are prepared."""
        return preparation.PARAMETERS

    def segments(self, source: str, numbers: Sequence[int]) -> list[np.ndarray]:
        """Return superpixel maps (h, w) of some pictures."""
        _, arrays = sources.arrays(self, source, ("segments", "shapes"))
        shapes = arrays["shapes"]
        maps = np.split(arrays["segments"], np.cumsum(shapes.prod(axis=1))[:-1])
        return [maps[i].reshape(shapes[i]) for i in numbers]

    def kept(self, place: Path, key: str, source: str, make: reading.Make, only: Names) -> Arrays:
        """Return some arrays of a source, from their cache file or newly prepared and stored."""
        found = reading.stored(place, key, only)
        if found is not None:
            return found
        with self._alone(source):
            arrays = reading.cached(place, key, make, only)
            if reading.stored_key(place) != key:
                print(
                    f"{place} cannot be written: the next run prepares it again.", file=sys.stderr
                )
            shutil.rmtree(self._work(source), ignore_errors=True)
            return arrays

    def _prepared(self, source: str, pictures: Pictures) -> Arrays:
        title = self.dataset if source == "real" else f"synthetic {self.dataset}"
        work, parameters = self._work(source), self.parameters(source)
        with suppress(OSError):
            work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as other:  # if pieces cannot be kept
            place = work if work.is_dir() else Path(other)
            return preparation.prepare(pictures, place, title, parameters=parameters)

    def _work(self, source: str) -> Path:
        return self.places()[-1].with_name(f"preparing-{source}")

    @contextmanager
    def _alone(self, source: str) -> Iterator[None]:
        """Keep other processes from preparing the same source; wait for one that does."""
        lock = filelock.FileLock(self._work(source).with_suffix(".lock"))
        # without a writable cache folder, continue without the lock
        with suppress(OSError):
            Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(blocking=False)
            except filelock.Timeout:
                waits = f"Another process is preparing {self.dataset}; waiting for it."
                print(waits, file=sys.stderr, flush=True)
                lock.acquire()
        try:
            yield
        finally:
            lock.release()
