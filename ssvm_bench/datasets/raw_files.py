"""Raw data as its home gives it: which files, where they are looked for, how they are read.

A raw file is looked for in ``$SSVM_BENCH_DATA/<folder>/<file>``, then in the user's cache folder.
Several files of one dataset are looked for together, in one folder, whose path is then that of the
raw data: a folder in which one of them is missing is no place where the data is.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.datasets import cache
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.tables import ContentError
from ssvm_bench.errors import RunFailedError

Names = Collection[str] | None

GZIP = b"\x1f\x8b"


class MissingDataError(RunFailedError):
    """The raw file is nowhere, and its home does not give it."""


@dataclass(frozen=True, kw_only=True)
class RawFile(ABC):
    """One dataset's raw file, how it is read, and what stands in for it.

    Attributes
    ----------
    dataset, folder, file, url : str
        The dataset's name; where the file is under the data folder; its home page. Without a
        ``file``, it is the folder itself that is looked for.
    n, n_made : int
        Number of examples, without those that are held out: of the real data; of the stand-in, if
        that is another one.
    version : int
        To be raised when what is read, or the stand-in, changes.
    """

    dataset: str
    folder: str
    file: str = ""
    url: str
    n: int
    n_made: int | None = None
    version: int

    only: ClassVar[Names] = None
    """Arrays that a `Dataset` is made from; None: all."""

    format: ClassVar[str] = "a gzip file"

    prepared: ClassVar[bool] = False
    """Whether making the arrays takes so long that the user should know."""

    @abstractmethod
    def real(self, path: Path) -> Arrays:
        """Return the arrays of the raw data; raise `ContentError` where they are broken."""

    @abstractmethod
    def stand_in_arrays(self) -> Arrays:
        """Return the arrays of the stand-in."""

    def check(self, part: Path) -> None:
        """Raise `ContentError` if a file is not the real data; need not find every fault."""
        self.real(part)

    @property
    def n_stand_in(self) -> int:
        """Number of examples of the stand-in."""
        return self.n if self.n_made is None else self.n_made

    def recognises(self, head: bytes) -> bool:
        """Tell whether a file that begins like this may be the raw file."""
        return head.startswith(GZIP)

    def key(self, source: str) -> str:
        """Return what changes when the arrays of a source must be made again."""
        return f"{self.dataset} {'' if source == 'real' else 'stand-in '}v{self.version}"

    def fields(self, arrays: Arrays) -> dict[str, Any]:
        """Return the fields of a `Dataset` that the arrays fill."""
        return arrays

    def kept(
        self, places: list[Path], key: str, source: str, make: Callable[[], Arrays], only: Names
    ) -> Arrays:
        """Return some arrays of a source, from their cache file or made and stored."""
        return cache.cached(places, key, make, only)

    def unpack(self, came: Path) -> Path:
        """Return the raw file that has been downloaded, or is in what has been."""
        return came

    def parts(self, path: Path) -> list[Path]:
        """Return the files of the raw data at a path, whether they are there or not."""
        return [path]

    def address(self, part: Path) -> str:
        """Return where to download a file from."""
        return self.url

    def places(self) -> list[Path]:
        """Return where the raw data may be, the preferred place first."""
        roots = [cache.user_folder()]
        if os.environ.get("SSVM_BENCH_DATA"):
            roots.insert(0, Path(os.environ["SSVM_BENCH_DATA"]).expanduser())
        return [root / self.folder / self.file for root in roots]

    def missing(self, path: Path) -> list[Path]:
        """Return the files that are not there; a broken link counts as being there."""
        return [part for part in self.parts(path) if not os.path.lexists(part)]

    def first_missing(self, path: Path) -> Path:
        """Return the first file that is not there, or was not before another process got it."""
        return next(iter(self.missing(path)), self.parts(path)[0])

    def find(self) -> Path | None:
        """Return the first place where the raw data is whole."""
        return next((place for place in self.places() if not self.missing(place)), None)

    def cache_places(self, source: str, path: Path | None = None) -> list[Path]:
        """Return where the arrays of a source may be kept, the preferred place first."""
        first = self.parts(self.places()[-1])[0]
        name = f"{first.name if source == 'real' else 'stand-in'}.ssvm-bench.npz"
        places = [first.with_name(name)]
        return places if path is None else [self.parts(path)[0].with_name(name), *places]

    def missing_names(self) -> str:
        """Return the names of the files that are not at the preferred place."""
        return ", ".join(part.name for part in self.missing(self.places()[0]))

    def repair(self) -> str:
        """Return the sentence that says what to do about a broken file."""
        places = " then ".join(map(str, self.places()))
        return (
            f"Delete the file and it is downloaded again from {self.url}, or let SSVM_BENCH_DATA "
            f"name another folder (looked for: {places})."
        )

    @contextmanager
    def explained(self, path: Path) -> Iterator[Path]:
        """Turn whatever is wrong with the raw file, in the block, into a `RunFailedError`."""
        try:
            yield path
        except (ContentError, OSError) as error:
            raise RunFailedError(
                f"{path} cannot be used as the {self.dataset} data: {error}. {self.repair()}"
            ) from error


@dataclass(frozen=True, kw_only=True)
class TableFile(RawFile):
    """A raw file that is small enough to be parsed whole.

    Attributes
    ----------
    parse : callable
        From the bytes of a file in this format, of any length, to arrays ``x, y, offsets`` (and
        ``fold``); raises `ContentError`.
    identify : callable
        Raises `ContentError` where the counts in such arrays are not those of the real data.
    stand_in : callable
        Returns the same arrays, as many examples, made from a fixed seed.
    """

    parse: Callable[[bytes], Arrays]
    identify: Callable[[Arrays], None]
    stand_in: Callable[[], Arrays]

    def recognises(self, head: bytes) -> bool:
        """Tell gzip, or a table that was unpacked on the way."""
        return head.startswith(GZIP) or (head[:2].isascii() and head[:1].isdigit())

    def read(self, content: bytes) -> Arrays:
        """Return the arrays of the original file's bytes, after every check."""
        arrays = self.parse(content)
        self.identify(arrays)
        return arrays

    def real(self, path: Path) -> Arrays:
        """Parse it."""
        return self.read(path.read_bytes())

    def stand_in_arrays(self) -> Arrays:
        """Make them."""
        return self.stand_in()


@dataclass(frozen=True, kw_only=True)
class FileSet(RawFile):
    """Several raw files, small enough to be parsed whole; ``url`` is the folder at their home.

    Attributes
    ----------
    members : mapping
        Name of each file → what makes an array of its bytes; raises `ContentError`.
    combine : callable
        From these arrays, in the order of ``members``, to those that are kept.
    stand_in : callable
        Returns arrays like those that are kept, made from a fixed seed.
    """

    members: Mapping[str, Callable[[bytes], np.ndarray]]
    combine: Callable[..., Arrays]
    stand_in: Callable[[], Arrays]

    def parts(self, path: Path) -> list[Path]:
        """Return all files."""
        return [path / name for name in self.members]

    def address(self, part: Path) -> str:
        """Return the file's address in the folder at their home."""
        return f"{self.url.rstrip('/')}/{part.name}"

    def check(self, part: Path) -> None:
        """Parse the file."""
        self._array(part)

    def real(self, path: Path) -> Arrays:
        """Parse all files."""
        return self.combine(*map(self._array, self.parts(path)))

    def stand_in_arrays(self) -> Arrays:
        """Make them."""
        return self.stand_in()

    def _array(self, part: Path) -> np.ndarray:
        """Return the array of one file; a `ContentError` says which one."""
        try:
            return self.members[part.name](part.read_bytes())
        except ContentError as error:
            raise ContentError(f"{part.name}: {error}") from error
