"""Where a dataset's numbers come from: a raw file, a download, or the built-in stand-in.

A raw file is looked for in ``$SSVM_BENCH_DATA/<folder>/<file>``, then in the user's cache folder,
then downloaded there from its home page. Only data that *cannot be had* is replaced by the
stand-in, and only under ``source=auto``; data that is there but broken never is.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Arrays, cached, user_folder
from ssvm_bench.datasets.content import ContentError
from ssvm_bench.errors import ConfigError, RunFailedError
from ssvm_bench.random import permutation
from ssvm_bench.registry import kinds, module

SUBSET_SEED = 0  # of the fixed permutation behind n_samples


class MissingDataError(RunFailedError):
    """The raw file is nowhere, and its home does not give it."""


@dataclass(frozen=True)
class RawFile:
    """One dataset's raw file, how it is read, and what stands in for it.

    Attributes
    ----------
    dataset, folder, file, url : str
        The dataset's name; where the file is under the data folder; its home page.
    n : int
        Number of examples of the real data and of the stand-in.
    read : callable
        From the file's bytes to arrays ``x, y, offsets`` (and ``fold``); raises `ContentError`.
    stand_in : callable
        Returns the same arrays, made from a fixed seed.
    version : int
        To be raised when ``read`` or ``stand_in`` changes what it returns.
    """

    dataset: str
    folder: str
    file: str
    url: str
    n: int
    read: Callable[[bytes], Arrays]
    stand_in: Callable[[], Arrays]
    version: int

    def places(self) -> list[Path]:
        """Return where the file may be, the preferred place first."""
        roots = [user_folder()]
        if os.environ.get("SSVM_BENCH_DATA"):
            roots.insert(0, Path(os.environ["SSVM_BENCH_DATA"]).expanduser())
        return [root / self.folder / self.file for root in roots]

    def find(self) -> Path | None:
        """Return the first place where the file is; a broken link counts as being there."""
        return next((place for place in self.places() if os.path.lexists(place)), None)

    def what_to_do(self) -> str:
        """Return the sentence that says where to put the file."""
        return f"Put {self.file} from {self.url} into {self.places()[0].parent}."


@dataclass(frozen=True)
class DatasetStatus:
    """Where a dataset's raw file stands.

    Attributes
    ----------
    name : str
        The dataset.
    state : str
        ``"ready"``, ``"missing"`` or ``"broken"`` (which only a look at its start tells here;
        the content is checked when it is loaded).
    path : Path
        Where the file is, or should be put.
    size : int
        Bytes; 0 if missing.
    url : str
        Its home.
    hint : str
        What to do; empty if there is nothing to do.
    """

    name: str
    state: str
    path: Path
    size: int
    url: str
    hint: str


def status(name: str) -> DatasetStatus:
    """Return where a dataset stands, without parsing anything and without network."""
    raw = _raw_file(name)
    path = raw.find()
    if path is None:
        hint = f"`ssvm-bench data fetch {name}` downloads it. Or put {raw.file} there."
        return DatasetStatus(name, "missing", raw.places()[0], 0, raw.url, hint)
    try:
        with path.open("rb") as file:
            head = file.read(2)
        size = path.stat().st_size
    except OSError as error:
        return DatasetStatus(name, "broken", path, 0, raw.url, f"{error}. {_repair(raw)}")
    if head == b"\x1f\x8b" or (head.isascii() and head[:1].isdigit()):
        return DatasetStatus(name, "ready", path, size, raw.url, "")
    return DatasetStatus(name, "broken", path, size, raw.url, f"Not a gzip file. {_repair(raw)}")


def fetch(name: str, quiet: bool = False) -> Path:
    """Return the path of a dataset's raw file, downloading it where it is not there yet.

    Raises
    ------
    RunFailedError
        It cannot be downloaded.
    """
    raw = _raw_file(name)
    return raw.find() or download(raw, quiet)


def load(config: SourceConfig, raw: RawFile, structure: str, n_labels: int) -> Dataset:
    """Return the dataset that a config asks for.

    Parameters
    ----------
    config : SourceConfig
        Its ``source`` and ``n_samples``.
    raw : RawFile
        The dataset's file and stand-in.
    structure, n_labels
        See `Dataset`.

    Raises
    ------
    ConfigError
        ``n_samples`` exceeds the number of examples.
    RunFailedError
        The real data is broken; or it is missing and ``source=real``.
    """
    if config.n_samples is not None and config.n_samples > raw.n:
        raise ConfigError(
            f"dataset.n_samples must be ≤ {raw.n}, the number of examples of {config.name}, "
            f"got {config.n_samples}."
        )
    source = "synthetic"
    if config.source != "synthetic":
        try:
            arrays = real_arrays(raw)
            source = "real"
        except MissingDataError as error:
            if config.source == "real":
                raise MissingDataError(
                    f"{error} Or use the stand-in: dataset.source=synthetic."
                ) from error
            _warn_of_stand_in(config.name, str(error))
    if source == "synthetic":
        arrays = stand_in_arrays(raw)
    dataset = Dataset(
        name=config.name, source=source, n_labels=n_labels, structure=structure, **arrays
    )
    if config.n_samples is None:
        return dataset
    order = permutation(dataset.n, np.random.PCG64(SUBSET_SEED))
    return dataset.take(order[: config.n_samples])


def real_arrays(raw: RawFile) -> Arrays:
    """Return the checked arrays of the raw file, wherever it is.

    Raises
    ------
    MissingDataError
        It is nowhere, and could not be downloaded.
    RunFailedError
        It is there, but broken.
    """
    path = raw.find() or download(raw)
    try:
        content = path.read_bytes()
        key = f"{raw.dataset} v{raw.version} sha256={hashlib.sha256(content).hexdigest()}"
        name = f"{raw.file}.ssvm-bench.npz"
        places = [path.with_name(name), user_folder() / raw.folder / name]
        return cached(places, key, lambda: raw.read(content))
    except (ContentError, OSError) as error:
        raise RunFailedError(
            f"{path} cannot be used as the {raw.dataset} data: {error}. {_repair(raw)}"
        ) from error


def stand_in_arrays(raw: RawFile) -> Arrays:
    """Return the arrays of the stand-in, kept in the user's cache folder once made."""
    place = user_folder() / raw.folder / "stand-in.ssvm-bench.npz"
    return cached([place], f"{raw.dataset} stand-in v{raw.version}", raw.stand_in)


def download(raw: RawFile, quiet: bool = False) -> Path:
    """Download a raw file into the user's cache folder; return where it is.

    It gets its final name only after its content has been checked.

    Raises
    ------
    MissingDataError
        No network, no connection within five seconds, a refusal, no place to write to, or
        something else came than the data.
    """
    from ssvm_bench.datasets.transfer import TransferError, transfer

    target = raw.places()[-1]
    try:
        if os.environ.get("SSVM_BENCH_OFFLINE", "0") not in ("", "0"):
            raise TransferError("SSVM_BENCH_OFFLINE=1 forbids to download it")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".download-", dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            came = transfer(raw.url, Path(folder), quiet)
            try:
                raw.read(came.read_bytes())
            except ContentError as error:  # a notice that the page moved, a log-in page, …
                raise TransferError(
                    f"what {raw.url} gives now is something else ({error})"
                ) from error
            came.replace(target)
    except (TransferError, OSError) as error:
        looked = " or ".join(str(place) for place in raw.places())
        raise MissingDataError(
            f"The real {raw.dataset} data is missing: no {looked}, and {error}. {raw.what_to_do()}"
        ) from error
    return target


def _raw_file(name: str) -> RawFile:
    found = getattr(module("dataset", name), "RAW", None)
    if not isinstance(found, RawFile):
        known = [kind for kind in kinds("dataset") if hasattr(module("dataset", kind), "RAW")]
        raise ConfigError(f"Dataset {name!r} has no raw file. Those with one: {', '.join(known)}.")
    return found


def _repair(raw: RawFile) -> str:
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
