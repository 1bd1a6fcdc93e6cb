"""Raw data as its home gives it: which files, where they are looked for, how they are read.

A raw file is looked for in ``$SSVM_BENCH_DATA/<folder>/<file>``, then in the user's cache folder.
Several files of one dataset are looked for together, in one folder, whose path is then that of the
raw data: a folder in which one of them is missing is no place where the data is.

Whether they are the genuine ones is told by the sha256 of what is in them, since copies are packed
in different ways. Others may be read, by those who trust them, but never go by the name of the real
data.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import ALTERED
from ssvm_bench.datasets import cache, reading
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.reading import GZIP, ContentError

Names = Collection[str] | None


class MissingDataError(RunFailedError):
    """The raw file is nowhere, and its home does not give it."""


class AlteredError(ContentError):
    """A raw file that can be read is not the genuine one; the message says how it is accepted."""


class Finding(NamedTuple):
    """What a copy of raw data has.

    Attributes
    ----------
    what, found : str
    expected : str
        What the genuine data have; empty where that is the same, or not known.
    """

    what: str
    found: str
    expected: str = ""

    @classmethod
    def compared(cls, what: str, found: object, expected: object) -> Finding:
        """Return a finding of which is known what the genuine data have."""
        return cls(what, str(found), "" if found == expected else str(expected))


class Content(NamedTuple):
    """What is in raw data.

    Attributes
    ----------
    sha256 : mapping
        Name of each file → hexadecimal digest of what is in it.
    arrays : callable
        Makes the arrays, which may take minutes.
    """

    sha256: Mapping[str, str]
    arrays: Callable[[], Arrays]


@dataclass(frozen=True, kw_only=True)
class RawFile(ABC):
    """One dataset's raw file, how it is read, and what stands in for it.

    Attributes
    ----------
    dataset, folder, file, url : str
        The dataset's name; where the file is under the data folder, by default that name; its home
        page. Without a ``file``, it is the folder itself that is looked for.
    n, synthetic_size : int
        Number of examples, without those held out: of the real data; of the synthetic ones, if
        that is another one.
    version : int
        To be raised when what is read or simulated changes.
    sha256 : mapping
        Name of each file → hexadecimal digest of what is in the genuine one; empty where no genuine
        file could be had to compute it.
    heads : tuple of bytes
        How a file may begin, packed or unpacked on the way.
    """

    dataset: str
    folder: str = ""
    file: str = ""
    url: str
    n: int
    synthetic_size: int | None = None
    version: int
    sha256: Mapping[str, str] = field(default_factory=dict)
    heads: tuple[bytes, ...] = (GZIP,)

    only: ClassVar[Names] = None
    """Arrays that a `Dataset` is made from; None: all."""

    format: ClassVar[str] = "a gzip file"

    most: ClassVar[int] = reading.MOST
    """Bytes that a file can have, packed or not."""

    prepared: ClassVar[bool] = False
    """Whether making the arrays takes so long that the user should know."""

    @abstractmethod
    def read(self, path: Path) -> Content:
        """Return what is in the raw data; raise `ContentError` where they are broken."""

    @abstractmethod
    def synthetic_arrays(self) -> Arrays:
        """Return the arrays of the synthetic data."""

    def check(self, part: Path) -> None:
        """Raise `ContentError` if a file is broken or, as `AlteredError`, not the genuine one."""
        self.compare(self.read(part).sha256)

    def compare(self, found: Mapping[str, str]) -> None:
        """Raise `AlteredError` unless the files with these digests are the genuine ones."""
        for name, digest in found.items():
            known = self.sha256.get(name, digest)
            if digest != known:
                raise AlteredError(
                    f"what is in {name} has the sha256 {digest[:16]}…, that of the genuine file is "
                    f"{known[:16]}… (dataset.trust=true uses it, as source `{ALTERED}`)"
                )

    def integrity_report(self, path: Path) -> Iterator[Finding]:
        """Yield what is known of the genuine data, and what is there.

        Raises
        ------
        ContentError
            If it cannot be read.
        """
        for name, digest in self.read(path).sha256.items():
            known = self.sha256.get(name, digest)
            yield Finding.compared(f"sha256 of what is in {name}", digest, known)

    @property
    def n_synthetic(self) -> int:
        """Number of synthetic examples."""
        return self.n if self.synthetic_size is None else self.synthetic_size

    def recognises(self, head: bytes) -> bool:
        """Tell whether a file that begins like this may be the raw file."""
        return head.startswith(self.heads)

    def key(self, source: str) -> str:
        """Return what changes when the arrays of a source must be made again."""
        return f"{self.dataset} {'stand-in ' if source == 'synthetic' else ''}v{self.version}"

    def fields(self, arrays: Arrays) -> dict[str, Any]:
        """Return the fields of a `Dataset` that the arrays fill."""
        return arrays

    def kept(
        self, place: Path, key: str, source: str, make: Callable[[], Arrays], only: Names
    ) -> Arrays:
        """Return some arrays of a source, from their cache file or made and stored."""
        return cache.cached(place, key, make, only)

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
        return [root / (self.folder or self.dataset) / self.file for root in roots]

    def missing(self, path: Path) -> list[Path]:
        """Return the files that are not there; a broken link counts as being there."""
        return [part for part in self.parts(path) if not os.path.lexists(part)]

    def first_missing(self, path: Path) -> Path:
        """Return the first file that is not there, or was not before another process got it."""
        return next(iter(self.missing(path)), self.parts(path)[0])

    def find(self) -> Path | None:
        """Return the first place where the raw data is whole."""
        return next((place for place in self.places() if not self.missing(place)), None)

    def cache_place(self, source: str) -> Path:
        """Return where the arrays of a source are kept: never beside the raw data."""
        first = self.parts(self.places()[-1])[0]
        name = "stand-in" if source == "synthetic" else first.name
        return first.with_name(f"{name}.ssvm-bench.npz")

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
    synthetic : callable
        Returns the same arrays, as many examples, made from a fixed seed.
    identity : callable, optional
        From the bytes that can be parsed to those whose digest tells whether they are genuine.
    """

    parse: Callable[[bytes], Arrays]
    synthetic: Callable[[], Arrays]
    identity: Callable[[bytes], bytes] = bytes
    heads: tuple[bytes, ...] = (GZIP, *(b"%d" % digit for digit in range(10)))

    def read(self, path: Path) -> Content:
        """Parse it."""
        content = reading.content(path)
        arrays = self.parse(content)
        return Content({self.file: sha256(self.identity(content))}, lambda: arrays)

    def synthetic_arrays(self) -> Arrays:
        """Make them."""
        return self.synthetic()


@dataclass(frozen=True, kw_only=True)
class FileSet(RawFile):
    """Several raw files, small enough to be parsed whole; ``url`` is the folder at their home.

    Attributes
    ----------
    sha256 : mapping
        As of every `RawFile`; its keys say which files there are.
    parse : callable
        Makes an array, or whatever ``combine`` takes, of the unpacked bytes of a file; raises
        `ContentError`.
    combine : callable
        From these, in the order of the files, to the arrays that are kept; raises `ContentError`.
    synthetic : callable
        Returns arrays like those that are kept, made from a fixed seed.
    to_fields : callable
        From the arrays that are kept to the fields of a `Dataset`.
    """

    most: ClassVar[int] = 1 << 26

    parse: Callable[[bytes], Any]
    combine: Callable[..., Arrays]
    synthetic: Callable[[], Arrays]
    to_fields: Callable[[Arrays], dict[str, Any]] = dict

    def fields(self, arrays: Arrays) -> dict[str, Any]:
        """Return the fields that the arrays fill."""
        return self.to_fields(arrays)

    def parts(self, path: Path) -> list[Path]:
        """Return all files."""
        return [path / name for name in self.sha256]

    def address(self, part: Path) -> str:
        """Return the file's address in the folder at their home."""
        return f"{self.url.rstrip('/')}/{part.name}"

    def check(self, part: Path) -> None:
        """Look at this file alone."""
        self.compare({part.name: self._parsed(part)[0]})

    def read(self, path: Path) -> Content:
        """Parse all files."""
        found = {part.name: self._parsed(part) for part in self.parts(path)}
        arrays = [array for _, array in found.values()]
        digests = {name: digest for name, (digest, _) in found.items()}
        return Content(digests, lambda: self.combine(*arrays))

    def synthetic_arrays(self) -> Arrays:
        """Make them."""
        return self.synthetic()

    def _parsed(self, part: Path) -> tuple[str, Any]:
        """Return digest and array of one file; a `ContentError` says which one."""
        try:
            content = reading.content(part, self.most)
            return sha256(content), self.parse(content)
        except ContentError as error:
            raise ContentError(f"{part.name}: {error}") from error


def sha256(content: bytes) -> str:
    """Return the digest of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
