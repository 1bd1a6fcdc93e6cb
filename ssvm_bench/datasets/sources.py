"""Where a dataset's numbers come from: its raw file, a download, or a generator.

A raw file that is not found is downloaded from its home page into the user's cache folder.
Synthetic data replace only data that are *not available*, and only under ``source=auto``. Broken or
altered data are never replaced.

**Raw data as published.** A raw file is looked for in ``$SSVM_BENCH_DATA/<folder>/<file>``, then in
the user's cache folder. If it is in none, it is downloaded into the cache folder. If a dataset has
several files, they must be together in one folder, whose path is then that of the raw data; a
folder that lacks one of them is skipped.

The sha256 of the unpacked content shows whether files are genuine, since copies are compressed in
different ways. Users who trust other files may use them, but their source is never ``"real"``.

**On board.** Some data come with an installed package, this one or another. They are real on every
machine: a run never downloads them, and no synthetic data replace them, even if they were left out
of the installation.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import re
import sys
import time
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.base.files import opened
from ssvm_bench.base.random import permutation
from ssvm_bench.config import ALTERED, catalog
from ssvm_bench.config.registry import kinds, module
from ssvm_bench.datasets import base, reading
from ssvm_bench.datasets.arrays import csr
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Make, cached, stored_key
from ssvm_bench.datasets.reading import GZIP, Arrays, Bounded, ContentError, too_large

Names = Collection[str] | None

CSR = ("data", "indices", "indptr")
"""Arrays of a sparse matrix."""

_HOMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def home(dataset: str) -> dict[str, Any]:
    """Return the entry of a dataset in ``sources.toml``: fields of a `RawFile`."""
    return {"dataset": dataset, **_HOMES[dataset]}


def of_package(package: str, path: str) -> Path | None:
    """Return a file in the folder of an installed package, without importing it; None if none."""
    found = find_spec(package)
    return Path(found.origin).parent / path if found and found.origin else None


class MissingDataError(RunFailedError):
    """The raw file was not found, and could not be downloaded."""


class AlteredError(ContentError):
    """A raw file that can be read is not the genuine one; the message says how to accept it."""


class Property(NamedTuple):
    """A property of a copy of raw data.

    Attributes
    ----------
    what, found : str
    expected : str
        Value for the genuine data; empty if it is the same, or not known.
    """

    what: str
    found: str
    expected: str = ""

    @classmethod
    def compared(cls, what: str, found: object, expected: object) -> Property:
        """Return a finding, given the value for the genuine data."""
        return cls(what, str(found), "" if found == expected else str(expected))


class Content(NamedTuple):
    """The content of raw data.

    Attributes
    ----------
    sha256 : mapping
        Name of each file → hexadecimal digest of its content.
    arrays : callable
        Makes the arrays, which may take minutes.
    """

    sha256: Mapping[str, str]
    arrays: Callable[[], Arrays]


@dataclass(frozen=True, kw_only=True)
class RawFile(ABC):
    """One dataset's raw data, how they are read, and what replaces them.

    Attributes
    ----------
    dataset, folder, file, url : str
        The dataset's name; the folder of the file in the data folder, by default that name; the
        file's name; its address. Without ``file``, there are several files: the keys of
        ``sha256``, all in the folder; ``url`` is then the address of their folder.
    n, synthetic_size : int
        Number of examples of the real data, without held-out ones; that of the synthetic data, if
        it differs.
    licence : str
        Licence of the data at its home page, as far as it is known.
    version : int
        To be raised when the arrays that are read or simulated change.
    sha256 : mapping
        Name of each file → hexadecimal digest of its genuine content; empty if no genuine file
        was available.
    heads : tuple of bytes
        Possible first bytes of a file, which may have been unpacked by the download.
    most : int
        Largest size of a file in bytes, packed and unpacked.
    n_features : int, optional
        Number of features, if they are stored as the arrays of a CSR matrix; None: as ``x``.
    on_board : Path, optional
        The file of an installed package that has the data. It counts last and is never written to.
    """

    dataset: str
    folder: str = ""
    file: str = ""
    url: str
    licence: str = "not known"
    n: int
    synthetic_size: int | None = None
    version: int
    sha256: Mapping[str, str] = field(default_factory=dict)
    heads: tuple[bytes, ...] = (GZIP,)
    most: int = reading.MOST
    n_features: int | None = None
    on_board: Path | None = None

    only: ClassVar[Names] = None
    """Arrays that a `Dataset` is made from; None: all."""

    format: ClassVar[str] = "a gzip file"

    prepared: ClassVar[bool] = False
    """Whether making the arrays takes so long that the user should know."""

    @abstractmethod
    def read(self, path: Path) -> Content:
        """Return the content of the raw data; raise `ContentError` if it is broken."""

    @abstractmethod
    def synthetic_arrays(self) -> Arrays:
        """Return the arrays of the synthetic data."""

    def extra(self, source: str) -> str:
        """Return the extra that making the arrays of a source takes; empty if none."""
        return ""

    def check(self, part: Path) -> None:
        """Raise `ContentError` if a file is broken, `AlteredError` if it is not genuine."""
        self.compare(self.read(part).sha256)

    def compare(self, found: Mapping[str, str]) -> None:
        """Raise `AlteredError` unless the files with these digests are the genuine ones."""
        for name, digest in found.items():
            known = self.genuine(name) or digest
            if digest != known:
                raise AlteredError(
                    f"what is in {name} has the sha256 {digest[:16]}…, that of the genuine file is "
                    f"{known[:16]}… (dataset.trust=true uses it, as source `{ALTERED}`)"
                )

    def integrity_report(self, path: Path) -> Iterator[Property]:
        """Yield findings that compare the raw data with the genuine ones.

        Raises
        ------
        ContentError
            If the raw data cannot be read.
        """
        for name, digest in self.read(path).sha256.items():
            known = self.genuine(name) or digest
            yield Property.compared(f"sha256 of what is in {name}", digest, known)

    def genuine(self, name: str) -> str:
        """Return the digest of the genuine content of a file; empty if it is not known.

        If there is only one file, its name does not matter: that of a copy may be another one.
        """
        return self.sha256.get(self.file or name, "")

    @property
    def n_synthetic(self) -> int:
        """Number of synthetic examples."""
        return self.n if self.synthetic_size is None else self.synthetic_size

    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins like this may be the raw file."""
        return head.startswith(self.heads)

    def key(self, source: str) -> str:
        """Return a text that changes when the arrays of a source must be prepared again."""
        return f"{self.dataset} {'stand-in ' if source == 'synthetic' else ''}v{self.version}"

    def fields(self, arrays: Arrays) -> dict[str, Any]:
        """Return the fields of a `Dataset` from its arrays; by default, each part is an example."""
        found: dict[str, Any] = dict(arrays)
        if self.n_features is not None:
            found["x"] = csr({name: found.pop(name) for name in CSR}, self.n_features)
        return {"offsets": np.arange(len(found["y"]) + 1), **found}

    def kept(self, place: Path, key: str, source: str, make: Make, only: Names) -> Arrays:
        """Return some arrays of a source, from their cache file or newly made and stored."""
        return cached(place, key, make, only)

    def parts(self, path: Path) -> list[Path]:
        """Return the files of the raw data at a path, whether they exist or not."""
        return [path] if self.file else [path / name for name in self.sha256]

    def places(self) -> list[Path]:
        """Return the paths where the raw data may be, the preferred one first."""
        roots = [reading.user_folder()]
        if os.environ.get("SSVM_BENCH_DATA"):
            roots.insert(0, Path(os.environ["SSVM_BENCH_DATA"]).expanduser())
        return [root / (self.folder or self.dataset) / self.file for root in roots]

    def missing(self, path: Path) -> list[Path]:
        """Return the files that do not exist; a broken link counts as existing."""
        return [part for part in self.parts(path) if not os.path.lexists(part)]

    def first_missing(self, path: Path) -> Path:
        """Return the first missing file; the first of all if another process got it meanwhile."""
        return (self.missing(path) or self.parts(path))[0]

    def missing_names(self) -> str:
        """Return the names of the files that are missing at the preferred path."""
        return ", ".join(part.name for part in self.missing(self.places()[0]))

    def how_to_get(self) -> str:
        """Return advice on how to get the missing files."""
        does = "downloads it"
        if not self.sha256:
            does = f"tries {self.url}, which was not available when this was written"
        put = f"Or put {self.missing_names()} there."
        return f"`ssvm-bench data fetch {self.dataset}` {does}. {put}"

    def find(self) -> Path | None:
        """Return the first path where no file of the raw data is missing, if any."""
        places = self.places() if self.on_board is None else [*self.places(), self.on_board]
        return next((place for place in places if not self.missing(place)), None)

    def falls_back(self) -> bool:
        """Return whether ``source=auto`` is synthetic data on this machine, without a download."""
        return self.on_board is None and self.find() is None

    def get(self, again: bool = True) -> Path:
        """Return the path of the raw data; download it if it is not found.

        Parameters
        ----------
        again : bool
            Whether to try a download that has failed less than `TRIED_SECONDS` ago.

        Raises
        ------
        MissingDataError
            No network, no connection within five seconds, a refusal, no writable folder, or a
            download that is not the data.
        """
        if (found := self.find()) is not None:
            return found
        from ssvm_bench.datasets.progress import TransferError

        target = self.places()[-1]
        try:
            for part in self.missing(target):
                if _is_offline():
                    raise TransferError("SSVM_BENCH_OFFLINE=1 forbids to download it")
                if not again and (before := _failed_before(part)):
                    raise TransferError(f"{before}. It is not tried again now")
                try:
                    self._download(part)
                except (TransferError, OSError) as error:
                    with suppress(OSError):
                        files.write(_mark_of(part), str(error).encode())
                    raise
        except (TransferError, OSError) as error:
            raise self.missing_error(error) from error
        return target

    def missing_error(self, why: object) -> MissingDataError:
        """Return the error for raw data that are not found and, for a reason, not downloaded."""
        looked = " or ".join(str(self.first_missing(place)) for place in self.places())
        preferred = self.parts(self.places()[0])[0].parent
        call = f"`ssvm-bench data fetch {self.dataset}`"
        way = f"unset SSVM_BENCH_OFFLINE, then {call}" if _is_offline() else call
        return MissingDataError(
            f"The real {self.dataset} data is missing: no {looked}, and {why}. To get it: "
            f"{way} with internet access, or put {self.missing_names()} from {self.url} into "
            f"{preferred}."
        )

    def _download(self, part: Path) -> None:
        """Download a file, which gets its final name only after its content has been checked."""
        from ssvm_bench.datasets.progress import TransferError, transfer

        url = self.address(part)
        files.refuse_links(part)
        with files.temporary_folder(part) as folder:
            came = folder / url.rpartition("/")[2]
            transfer(url, came, self.most, secure=part.name not in self.sha256)
            try:
                came = self.unpack(came).replace(folder / part.name)
                self.check(came)
            except ContentError as error:  # a notice that the page moved, a log-in page, …
                raise TransferError(f"what {url} gives now is something else ({error})") from error
            came.replace(part)

    def address(self, part: Path) -> str:
        """Return where to download a file from."""
        return self.url if self.file else f"{self.url.rstrip('/')}/{part.name}"

    def unpack(self, came: Path) -> Path:
        """Return the raw file in a download; by default, the download itself."""
        return came

    def cache_place(self, source: str) -> Path:
        """Return the cache file of a source's arrays: always in the user's cache folder."""
        first = self.parts(self.places()[-1])[0]
        name = "stand-in" if source == "synthetic" else first.name
        return first.with_name(f"{name}.ssvm-bench.npz")

    def repair(self, path: Path) -> str:
        """Return advice on what to do about a broken file."""
        places = " then ".join(map(str, self.places()))
        again = f"Delete the file and it is downloaded again from {self.url}"
        if path == self.on_board:
            again = "Install the package that it belongs to again"
        elif self.on_board is not None and not self.missing(self.on_board):
            again = f"Delete the file and {self.on_board} is used"
        return f"{again}, or let SSVM_BENCH_DATA name another folder (looked for: {places})."

    def explained(self, path: Path) -> AbstractContextManager[None]:
        """Turn errors about the raw file, raised in a block, into `RunFailedError`."""
        what = f"{path} cannot be used as the {self.dataset} data"
        return reading.explained(what, self.repair(path))


TRIED_SECONDS = 3600.0
"""For so long, a download that has failed is not tried again where synthetic data replace it."""


def _is_offline() -> bool:
    return os.environ.get("SSVM_BENCH_OFFLINE", "0") not in ("", "0")


def _mark_of(part: Path) -> Path:
    """Return the file that says why the download of another one has failed."""
    return part.with_name(f".{part.name}.not-downloaded")


def _failed_before(part: Path) -> str:
    """Return why and when the download of a file has just failed; empty if it has not."""
    mark = _mark_of(part)
    with suppress(OSError):
        passed = time.time() - mark.lstat().st_mtime
        if 0 <= passed < TRIED_SECONDS:
            why = files.read(mark, _LONGEST_MARK, mark.parent).decode(errors="replace")
            return f"{shown(why, 400)} ({passed / 60:.0f} minutes ago)"
    return ""


_LONGEST_MARK = 10_000  # bytes


@dataclass(frozen=True, kw_only=True)
class ParsedFile(RawFile):
    """A raw file, or several, small enough to be parsed whole.

    Attributes
    ----------
    parse : callable
        Turns the unpacked bytes of a file in this format, of any length, into an argument of
        ``combine``; raises `ContentError`.
    combine : callable
        Turns the parsed files, in their order, into the arrays to keep; raises `ContentError`. By
        default, these are what the only file was parsed to.
    synthetic : callable
        Returns arrays of the same form, simulated from a fixed seed.
    to_fields : callable
        Turns the fields that `RawFile.fields` returns into those of a `Dataset`; by default the
        same.
    identity : callable, optional
        Turns the unpacked bytes of a file into those whose digest shows whether it is genuine.
    restore : callable
        Turns the unpacked bytes of the file on board into the arrays to keep, if that file has a
        format of its own.
    packed_sha256 : str
        Digest of this file on board as it is, which is checked before anything is unpacked; empty
        if the file on board has the format of the raw file.
    """

    parse: Callable[[bytes], Any]
    combine: Callable[..., Arrays] = dict
    synthetic: Callable[[], Arrays]
    to_fields: Callable[[Arrays], dict[str, Any]] = dict
    identity: Callable[[bytes], bytes] = bytes
    restore: Callable[[bytes], Arrays] | None = None
    packed_sha256: str = ""
    heads: tuple[bytes, ...] = (GZIP, *(b"%d" % digit for digit in range(10)))

    def fields(self, arrays: Arrays) -> dict[str, Any]:
        """Return the fields of a `Dataset` from its arrays."""
        return self.to_fields(super().fields(arrays))

    def check(self, part: Path) -> None:
        """Check this file alone."""
        self.compare({part.name: self._parsed(part)[0]})

    def read(self, path: Path) -> Content:
        """Parse all files, or restore what was packed on board."""
        if self.restore is not None and path == self.on_board:
            return self._restored(path, self.restore)
        found = {part.name: self._parsed(part) for part in self.parts(path)}
        digests = {name: digest for name, (digest, _) in found.items()}
        return Content(digests, lambda: self.combine(*(parsed for _, parsed in found.values())))

    def _restored(self, path: Path, restore: Callable[[bytes], Arrays]) -> Content:
        """Return the content of a file on board in a format of its own."""
        packed = files.read(path, self.most)
        found = sha256(packed)
        if found != self.packed_sha256:
            raise ContentError(
                f"its sha256 is {found[:16]}…, that of the file that belongs to this version is "
                f"{self.packed_sha256[:16]}…"
            )
        # a known file: what is in it is known, too
        known = {path.name: self.genuine(path.name)}
        return Content(known, lambda: restore(reading.unpack(packed, self.most)))

    def synthetic_arrays(self) -> Arrays:
        """Return the arrays of the synthetic data."""
        return self.synthetic()

    def _parsed(self, part: Path) -> tuple[str, Any]:
        """Return digest and content of one file; if there are several, errors name the file."""
        try:
            content = reading.content(part, self.most)
            with reading.parsing("it is no file of these data"):
                parsed = self.parse(content)  # which names the first line that is wrong
                return sha256(self.identity(content)), parsed
        except ContentError as error:
            raise error if self.file else ContentError(f"{part.name}: {error}") from error


def sha256(content: bytes) -> str:
    """Return the digest of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


# ---- Sources ----------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

SUBSET_SEED = 0  # of the fixed permutation behind n_samples

_HEAD = 512  # bytes of a file by which its format is recognised

SHA256 = "sha256"
"""Name of a further cached array: the name and digest of each raw file."""


def raw_file(name: str) -> RawFile:
    """Return the raw file of a dataset; raise `ConfigError` if it has none."""
    if not has_raw_file(name):
        known = filter(has_raw_file, kinds("dataset"))
        raise ConfigError(f"Dataset {name!r} has no raw file. Those with one: {', '.join(known)}.")
    found: RawFile = module_of(name).RAW
    return found


def has_raw_file(name: str) -> bool:
    """Return whether a dataset has a raw file; one that is read from any file has none."""
    return isinstance(getattr(module_of(name), "RAW", None), RawFile)


def module_of(name: str) -> Any:
    """Return the module that loads a dataset; it is named by the dataset's kind."""
    return module("dataset", _kind(name))


def _kind(name: str) -> str:
    files = catalog.entries("dataset")
    return catalog.read("dataset", name, files).options["kind"] if name in files else name


def usual(name: str, source: str, allow_checksum_mismatch: bool = False) -> Any:
    """Return the default options of a dataset, except for these."""
    made = module_of(name).Config
    return made(name=name, kind=_kind(name), source=source, trust=allow_checksum_mismatch)


def fetch(name: str) -> Path:
    """Return the path of a dataset's raw data; download it if it is not found.

    Raises
    ------
    RunFailedError
        The raw data cannot be downloaded.
    """
    return raw_file(name).get()


def integrity_report(name: str) -> tuple[Path, list[Property]]:
    """Return the path of a dataset's raw data, and findings that compare it with genuine data.

    Raises
    ------
    RunFailedError
        The raw data are missing, or cannot be read.
    """
    raw = raw_file(name)
    path = raw.find()
    if path is None:
        raise MissingDataError(
            f"There is no {raw.first_missing(raw.places()[0])} to check. {raw.how_to_get()}"
        )
    with raw.explained(path):
        return path, list(raw.integrity_report(path))


class DatasetStatus(NamedTuple):
    """State of a dataset's raw file.

    Attributes
    ----------
    name : str
        The dataset.
    state : str
        ``"ready"``, ``"missing"`` or ``"broken"`` (judged by the first bytes only; the content is
        checked when it is loaded).
    path : Path
        Path of the raw data; else of the first file that is broken, or where the missing one goes.
    size : int
        Bytes of all files; 0 if one is missing.
    hint : str
        What to do; empty if there is nothing to do.
    content : str
        Whether the content of the files is genuine; empty if it was not verified.
    kept : Path or None
        Cache file of the prepared arrays: of the real data or, if missing, of synthetic data.
        Loading checks whether they were made from the raw file that is there.
    on_board : bool
        Whether the file is that of an installed package.
    """

    name: str
    state: str
    path: Path
    size: int
    hint: str
    content: str = ""
    kept: Path | None = None
    on_board: bool = False


def status(name: str, verify: bool = False) -> DatasetStatus:
    """Return the state of a dataset, without network and, unless ``verify``, without parsing."""
    raw = raw_file(name)
    path = raw.find()
    kept = kept_in(raw, "real" if path else "synthetic") if raw.prepared else None
    if path is None:
        first = raw.first_missing(raw.places()[0])
        return DatasetStatus(name, "missing", first, 0, raw.how_to_get(), kept=kept)
    size = 0
    for part in raw.parts(path):
        try:
            with opened(part) as file:
                recognised = raw.recognises(file.read(_HEAD))
        except OSError as error:
            return DatasetStatus(name, "broken", part, 0, f"{error}. {raw.repair(part)}")
        size += part.stat().st_size
        if not recognised:
            hint = f"Not {raw.format}. {raw.repair(part)}"
            return DatasetStatus(name, "broken", part, part.stat().st_size, hint)
    hint, content = "", _content(raw, path) if verify else ""
    if raw.prepared and kept is None:
        hint = f"Not prepared yet: `ssvm-bench data prepare {name}` does it, or the first run."
    return DatasetStatus(name, "ready", path, size, hint, content, kept, path == raw.on_board)


def _content(raw: RawFile, path: Path) -> str:
    """Return whether raw data are genuine, after reading them completely."""
    if not raw.sha256:
        return "unknown, because the checksum of the genuine file is not known"
    try:
        raw.compare(raw.read(path).sha256)
    except AlteredError as error:
        return f"altered: {error}"
    except (ContentError, OSError) as error:
        return f"broken: {error}"
    return "genuine, by its sha256"


def load(
    config: SourceConfig,
    raw: RawFile,
    structure: str,
    n_labels: int,
    split: Callable[[Dataset], Dataset] | None = None,
    make: Callable[..., Dataset] = Dataset,
) -> Dataset:
    """Return the dataset that a config requests.

    Parameters
    ----------
    config : SourceConfig
        Its ``source`` and ``n_samples``.
    raw : RawFile
        The dataset's file and synthetic data.
    structure, n_labels
        See `Dataset`.
    split : callable, optional
        Turns all examples into those to train on, with the others held out; ``n_samples`` are
        taken from the former.
    make : callable
        Makes the dataset from its fields; a subclass has further fields.

    Raises
    ------
    ConfigError
        ``n_samples`` exceeds the number of examples.
    RunFailedError
        The real data is broken; or it is missing and ``source=real``.
    """
    if not config.trust:  # an altered file may have any number of examples
        check_n(config, max(raw.n, raw.n_synthetic), "examples")
    source = _available(config, raw)
    if source == "synthetic":
        check_n(config, raw.n_synthetic, "synthetic examples")
    elif not config.trust:
        check_n(config, raw.n, "examples")
    source, found = arrays(raw, source, allow_checksum_mismatch=config.trust)
    with base.explained(config):
        fields = raw.fields(found)
    dataset = make(
        name=config.name, source=source, n_labels=n_labels, structure=structure, **fields
    )
    if split is not None:
        dataset = split(dataset)
    return first_samples(config, dataset)


def first_samples(config: SourceConfig, dataset: Dataset) -> Dataset:
    """Return the first ``n_samples`` examples; raise ``ConfigError`` if there are fewer."""
    check_n(config, dataset.n, "examples to train on")
    return dataset if config.n_samples is None else subset(dataset, config.n_samples)


def subset(dataset: Dataset, n_samples: int) -> Dataset:
    """Return the first ``n_samples`` examples of a fixed permutation."""
    return dataset.take(permutation(dataset.n, np.random.PCG64(SUBSET_SEED))[:n_samples])


def arrays(
    raw: RawFile, source: str, only: Names = None, allow_checksum_mismatch: bool = False
) -> tuple[str, Arrays]:
    """Return the actual source of arrays, and the arrays, which are cached once made.

    Parameters
    ----------
    raw : RawFile
        The dataset's file and synthetic data.
    source : str
        ``"real"``, ``"real (altered)"`` or ``"synthetic"``.
    only : collection of str, optional
        Which arrays; by default those of a `Dataset`.
    allow_checksum_mismatch : bool
        Use raw files that are not genuine; the second source implies it.

    Raises
    ------
    MissingDataError
        The raw file was not found, and could not be downloaded.
    RunFailedError
        The raw file is broken; or it is altered, and that is not allowed.
    """
    only, place = only or raw.only, raw.cache_place(source)
    if source == "synthetic":
        return source, raw.kept(place, raw.key(source), source, raw.synthetic_arrays, only)
    allowed = allow_checksum_mismatch or source == ALTERED

    def make() -> Arrays:
        content = raw.read(path)
        _judged(raw, content.sha256, allowed)  # before making arrays, which may take minutes
        return {**content.arrays(), SHA256: np.array([*content.sha256.items()], str).reshape(-1, 2)}

    path = raw.get()
    with raw.explained(path):
        key = f"{raw.key('real')} sha256={_sha256(raw, path)}"
        found = raw.kept(place, key, "real", make, only and (*only, SHA256))
        return _judged(raw, dict(found.pop(SHA256).tolist()), allowed), found


def _judged(raw: RawFile, found: Mapping[str, str], allow_checksum_mismatch: bool) -> str:
    """Return the source of raw files with these digests; raise `AlteredError` if not allowed."""
    try:
        raw.compare(found)
    except AlteredError:
        if not allow_checksum_mismatch:
            raise
        return ALTERED
    return "real"


def extra_of(config: Any) -> str:
    """Return the extra that loading a dataset takes on this machine; empty if none.

    Prepared arrays that are kept need none. A dataset's module that makes its arrays otherwise has
    a function of its own, ``extra(config)``.
    """
    found = module("dataset", config.kind)
    if hasattr(found, "extra"):
        return str(found.extra(config))
    raw, source = getattr(found, "RAW", None), getattr(config, "source", "real")
    if not isinstance(raw, RawFile):
        return ""
    if source == "auto":
        source = "synthetic" if raw.falls_back() else "real"
    return "" if raw.prepared and kept_in(raw, source) else raw.extra(source)


def kept_in(raw: RawFile, source: str) -> Path | None:
    """Return the cache file of a source's arrays, if there is one of this version."""
    place = raw.cache_place(source)
    return place if stored_key(place).partition(" sha256=")[0] == raw.key(source) else None


def _available(config: SourceConfig, raw: RawFile) -> str:
    """Return the available source: ``"real"`` or, with a warning, ``"synthetic"``."""
    if config.source == "synthetic":
        return "synthetic"
    try:
        if raw.on_board is not None and raw.find() is None:
            why = f"{raw.on_board}, which comes with its package, was left out of this installation"
            raise raw.missing_error(why)
        logger.debug("%s is read from %s", config.name, raw.get(again=config.source == "real"))
    except MissingDataError as error:
        if config.source == "real" or raw.on_board is not None:
            raise MissingDataError(
                f"{error} Or use synthetic data: dataset.source=synthetic."
            ) from error
        bar = "!" * 88
        print(
            f"{bar}\nWARNING: NOT THE REAL {config.name.upper()} DATA. This run is on built-in "
            f"synthetic data (source: synthetic).\n{error}\n{bar}",
            file=sys.stderr,
            flush=True,
        )
        return "synthetic"
    return "real"


def check_n(config: SourceConfig, n: int, what: str) -> None:
    """Raise ``ConfigError`` if ``n_samples`` is more than the number n of examples."""
    if config.n_samples is not None and config.n_samples > n:
        raise ConfigError(
            f"dataset.n_samples must be ≤ {n}, the number of {what} of {config.name}, "
            f"got {config.n_samples}."
        )


def _sha256(raw: RawFile, path: Path) -> str:
    digest = hashlib.sha256()
    for part in raw.parts(path):
        with opened(part) as file:
            if part.stat().st_size > raw.most:  # a sparse file may have any size
                raise too_large(raw.most)
            for block in Bounded(file, raw.most):
                digest.update(block)
    return digest.hexdigest()


# ---- cards --------------------------------------------------------------------------------------


MADE = "that of the files it is made of; what the program makes needs none"


def card(name: str) -> dict[str, Any]:
    """Return the description of a dataset: heading → text, or name → text.

    It is collected from the first line and the references of the docstring of its module, the
    comment of its YAML file, and its raw files.
    """
    module = module_of(name)
    # several datasets may share the module that defines their Config
    texts = [inspect.getdoc(each) or "" for each in (module, sys.modules[module.Config.__module__])]
    text = next((each for each in texts if "\nReferences\n" in each), texts[0])
    cited = re.search(r"^References\n-+\n(.+)\Z", text, re.MULTILINE | re.DOTALL)
    found = {
        "name": name,
        "about": catalog.description(catalog.entries("dataset")[name]),
        "module": text.partition("\n")[0],
    }
    if not has_raw_file(name):
        return {**found, "licence": MADE}
    raw, there = raw_file(name), status(name)
    return {
        **found,
        "source": raw.url,
        "licence": raw.licence,
        "examples": _counts(name, raw.n, there),
        "sha256 unpacked": dict(raw.sha256) or "not known",
        "here": f"{there.path} ({there.state}{', on board' * there.on_board})",
        "citation": " ".join(cited[1].split()) if cited else "see the source",
    }


def _counts(name: str, n: int, there: DatasetStatus) -> str:
    """Return the numbers of examples, labels and features, if they can be counted quickly."""
    data = None
    if there.state == "ready" and (there.kept is not None or not raw_file(name).prepared):
        with suppress(RunFailedError):
            data = module_of(name).load(usual(name, "real"))
    if not isinstance(data, Dataset):
        return f"{n}"
    parts = f" of {data.y.size} parts" if data.y.size != data.n else ""
    held_out = "".join(f", {split.n} {of}" for of, split in data.held_out.items())
    labels = f"{data.n_labels} labels, " if data.n_labels else ""
    what = f"{data.structure}, {labels}{data.n_features} features"
    return f"{data.n} to train on{parts}{held_out}; {what}"
