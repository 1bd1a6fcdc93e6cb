"""Where a dataset's numbers come from: raw files, a download, or the built-in stand-in.

A raw file is looked for in ``$SSVM_BENCH_DATA/<folder>/<file>``, then in the user's cache folder,
then downloaded there from its home page. Several files of one dataset are looked for together, in
one folder, whose path is then that of the raw data (see `fileset.FileSet`). Only data that *cannot
be had* is replaced by the stand-in, and only under ``source=auto``; data that is there but broken
never is.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.config.registry import kinds, module
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Arrays, cached, stored_key, user_folder
from ssvm_bench.datasets.tables import ContentError
from ssvm_bench.errors import ConfigError, RunFailedError
from ssvm_bench.random import permutation

Names = Collection[str] | None

SUBSET_SEED = 0  # of the fixed permutation behind n_samples
GZIP = b"\x1f\x8b"


class MissingDataError(RunFailedError):
    """The raw file is nowhere, and its home does not give it."""


@dataclass(frozen=True)
class RawFile(ABC):
    """One dataset's raw file, how it is read, and what stands in for it.

    Attributes
    ----------
    dataset, folder, file, url : str
        The dataset's name; where the file is under the data folder; its home page.
    n : int
        Number of examples of the real data, without those that are held out.
    version : int
        To be raised when what is read, or the stand-in, changes.
    """

    dataset: str
    folder: str
    file: str
    url: str
    n: int
    version: int

    only: ClassVar[Names] = None
    """Arrays that a `Dataset` is made from; None: all."""

    format: ClassVar[str] = "a gzip file"

    prepared: ClassVar[bool] = False
    """Whether making the arrays takes so long that the user should know."""

    @property
    def n_stand_in(self) -> int:
        """Number of examples of the stand-in."""
        return self.n

    def recognises(self, head: bytes) -> bool:
        """Tell whether a file that begins like this may be the raw file."""
        return head.startswith(GZIP)

    @abstractmethod
    def check(self, path: Path) -> None:
        """Raise `ContentError` if a file is not the real data; need not find every fault."""

    @abstractmethod
    def real(self, path: Path) -> Arrays:
        """Return the arrays of the raw data; raise `ContentError` where they are broken."""

    @abstractmethod
    def stand_in_arrays(self) -> Arrays:
        """Return the arrays of the stand-in."""

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
        return cached(places, key, make, only)

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
        roots = [user_folder()]
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

    def what_to_do(self) -> str:
        """Return the sentence that says where to put the files."""
        place = self.places()[0]
        names = ", ".join(part.name for part in self.missing(place))
        return f"Put {names} from {self.url} into {self.parts(place)[0].parent}."


@dataclass(frozen=True)
class TableFile(RawFile):
    """A raw file that is small enough to be parsed whole.

    Attributes
    ----------
    read : callable
        From the file's bytes to arrays ``x, y, offsets`` (and ``fold``); raises `ContentError`.
    stand_in : callable
        Returns the same arrays, as many examples, made from a fixed seed.
    """

    read: Callable[[bytes], Arrays]
    stand_in: Callable[[], Arrays]

    def recognises(self, head: bytes) -> bool:
        """Tell gzip, or a table that was unpacked on the way."""
        return head.startswith(GZIP) or (head[:2].isascii() and head[:1].isdigit())

    def check(self, path: Path) -> None:
        """Parse it."""
        self.read(path.read_bytes())

    def real(self, path: Path) -> Arrays:
        """Parse it."""
        return self.read(path.read_bytes())

    def stand_in_arrays(self) -> Arrays:
        """Make them."""
        return self.stand_in()


def fetch(name: str, quiet: bool = False) -> Path:
    """Return the path of a dataset's raw data, downloading it where it is not there yet.

    Raises
    ------
    RunFailedError
        It cannot be downloaded.
    """
    raw = raw_file(name)
    return raw.find() or download(raw, quiet)


def load(
    config: SourceConfig,
    raw: RawFile,
    structure: str,
    n_labels: int,
    split: Callable[[Dataset], Dataset] | None = None,
) -> Dataset:
    """Return the dataset that a config asks for.

    Parameters
    ----------
    config : SourceConfig
        Its ``source`` and ``n_samples``.
    raw : RawFile
        The dataset's file and stand-in.
    structure, n_labels
        See `Dataset`.
    split : callable, optional
        From all examples to those to train on, with the others held out; ``n_samples`` are taken
        of the former.

    Raises
    ------
    ConfigError
        ``n_samples`` exceeds the number of examples.
    RunFailedError
        The real data is broken; or it is missing and ``source=real``.
    """
    _check_n(config, max(raw.n, raw.n_stand_in), "examples")
    source = _available(config, raw)
    if source == "real":
        _check_n(config, raw.n, "examples")
    else:
        _check_n(config, raw.n_stand_in, "examples in the stand-in")
    dataset = Dataset(
        name=config.name,
        source=source,
        n_labels=n_labels,
        structure=structure,
        **raw.fields(arrays(raw, source)),
    )
    if split is not None:
        dataset = split(dataset)
        _check_n(config, dataset.n, "examples to train on")
    return dataset if config.n_samples is None else subset(dataset, config.n_samples)


def subset(dataset: Dataset, n_samples: int) -> Dataset:
    """Return the first examples of the permutation that every ``n_samples`` cuts off."""
    order = permutation(dataset.n, np.random.PCG64(SUBSET_SEED))
    return dataset.take(order[:n_samples])


def _available(config: SourceConfig, raw: RawFile) -> str:
    """Return the source that there is: ``"real"`` or, with a warning, ``"synthetic"``."""
    if config.source == "synthetic":
        return "synthetic"
    try:
        raw.find() or download(raw)
    except MissingDataError as error:
        if config.source == "real":
            raise MissingDataError(
                f"{error} Or use the stand-in: dataset.source=synthetic."
            ) from error
        _warn_of_stand_in(config.name, str(error))
        return "synthetic"
    return "real"


def _check_n(config: SourceConfig, n: int, what: str) -> None:
    if config.n_samples is not None and config.n_samples > n:
        raise ConfigError(
            f"dataset.n_samples must be ≤ {n}, the number of {what} of {config.name}, "
            f"got {config.n_samples}."
        )


def arrays(raw: RawFile, source: str, only: Names = None) -> Arrays:
    """Return the arrays of a source, kept in a file once made.

    Parameters
    ----------
    raw : RawFile
        The dataset's file and stand-in.
    source : str
        ``"real"`` or ``"synthetic"``.
    only : collection of str, optional
        Which arrays; by default those of a `Dataset`.

    Raises
    ------
    MissingDataError
        The raw file is nowhere, and could not be downloaded.
    RunFailedError
        It is there, but broken.
    """
    only = only or raw.only
    if source == "synthetic":
        places = cache_places(raw, source)
        return raw.kept(places, raw.key(source), source, raw.stand_in_arrays, only)
    with explained(raw, raw.find() or download(raw)) as path:
        key = f"{raw.key(source)} sha256={_sha256(raw.parts(path))}"
        places = cache_places(raw, source, path)
        return raw.kept(places, key, source, lambda: raw.real(path), only)


@contextmanager
def explained(raw: RawFile, path: Path) -> Iterator[Path]:
    """Turn whatever is wrong with the raw file, in the block, into a `RunFailedError`."""
    try:
        yield path
    except (ContentError, OSError) as error:
        raise RunFailedError(
            f"{path} cannot be used as the {raw.dataset} data: {error}. {repair(raw)}"
        ) from error


def cache_places(raw: RawFile, source: str, path: Path | None = None) -> list[Path]:
    """Return where the arrays of a source may be kept, the preferred place first."""
    first = raw.parts(raw.places()[-1])[0]
    name = f"{first.name if source == 'real' else 'stand-in'}.ssvm-bench.npz"
    places = [first.with_name(name)]
    return places if path is None else [raw.parts(path)[0].with_name(name), *places]


def kept_in(raw: RawFile, source: str) -> Path | None:
    """Return the file that the arrays of a source are kept in, if there is one of this version."""
    places = cache_places(raw, source, raw.find() if source == "real" else None)
    version = raw.key(source)
    return next((p for p in places if stored_key(p).partition(" sha256=")[0] == version), None)


def _sha256(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def download(raw: RawFile, quiet: bool = False) -> Path:
    """Download the raw files that are not in the user's cache folder yet; return where they are.

    Each gets its final name only after its content has been checked.

    Raises
    ------
    MissingDataError
        No network, no connection within five seconds, a refusal, no place to write to, or
        something else came than the data.
    """
    from ssvm_bench.datasets.transfer import TransferError, transfer

    target = raw.places()[-1]
    try:
        for part in raw.missing(target):
            if os.environ.get("SSVM_BENCH_OFFLINE", "0") not in ("", "0"):
                raise TransferError("SSVM_BENCH_OFFLINE=1 forbids to download it")
            part.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                prefix=".download-", dir=part.parent, ignore_cleanup_errors=True
            ) as folder:
                came = transfer(raw.address(part), Path(folder), quiet)
                try:
                    came = raw.unpack(came)
                    raw.check(came)
                except ContentError as error:  # a notice that the page moved, a log-in page, …
                    raise TransferError(
                        f"what {raw.address(part)} gives now is something else ({error})"
                    ) from error
                came.replace(part)
    except (TransferError, OSError) as error:
        looked = " or ".join(str(raw.first_missing(place)) for place in raw.places())
        raise MissingDataError(
            f"The real {raw.dataset} data is missing: no {looked}, and {error}. {raw.what_to_do()}"
        ) from error
    return target


def raw_file(name: str) -> RawFile:
    """Return the raw file of a dataset; raise `ConfigError` if it has none."""
    found = getattr(module("dataset", name), "RAW", None)
    if not isinstance(found, RawFile):
        known = [kind for kind in kinds("dataset") if hasattr(module("dataset", kind), "RAW")]
        raise ConfigError(f"Dataset {name!r} has no raw file. Those with one: {', '.join(known)}.")
    return found


def repair(raw: RawFile) -> str:
    """Return the sentence that says what to do about a broken file."""
    places = " then ".join(str(place) for place in raw.places())
    return (
        f"Delete the file and it is downloaded again from {raw.url}, or let SSVM_BENCH_DATA name "
        f"another folder (looked for: {places})."
    )


def _warn_of_stand_in(name: str, reason: str) -> None:
    bar = "!" * 88
    print(
        f"{bar}\nWARNING: NOT THE REAL {name.upper()} DATA. This run shows the built-in stand-in "
        f"(source: synthetic).\n{reason}\n{bar}",
        file=sys.stderr,
        flush=True,
    )
