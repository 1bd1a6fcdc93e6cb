"""Where a dataset's numbers come from: its raw file, a download, or the built-in stand-in.

A raw file that is nowhere (see `raw_files`) is downloaded from its home page into the user's cache
folder. Only data that *cannot be had* is replaced by the stand-in, and only under ``source=auto``;
data that is there but broken never is.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ssvm_bench.config.registry import kinds, module
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.cache import Arrays, stored_key
from ssvm_bench.datasets.raw_files import MissingDataError, Names, RawFile
from ssvm_bench.datasets.transfer import download
from ssvm_bench.errors import ConfigError
from ssvm_bench.random import permutation

SUBSET_SEED = 0  # of the fixed permutation behind n_samples


def raw_file(name: str) -> RawFile:
    """Return the raw file of a dataset; raise `ConfigError` if it has none."""
    found = getattr(module("dataset", name), "RAW", None)
    if not isinstance(found, RawFile):
        known = [kind for kind in kinds("dataset") if hasattr(module("dataset", kind), "RAW")]
        raise ConfigError(f"Dataset {name!r} has no raw file. Those with one: {', '.join(known)}.")
    return found


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
        places = raw.cache_places(source)
        return raw.kept(places, raw.key(source), source, raw.stand_in_arrays, only)
    with raw.explained(raw.find() or download(raw)) as path:
        key = f"{raw.key(source)} sha256={_sha256(raw.parts(path))}"
        places = raw.cache_places(source, path)
        return raw.kept(places, key, source, lambda: raw.real(path), only)


def kept_in(raw: RawFile, source: str) -> Path | None:
    """Return the file that the arrays of a source are kept in, if there is one of this version."""
    places = raw.cache_places(source, raw.find() if source == "real" else None)
    version = raw.key(source)
    return next((p for p in places if stored_key(p).partition(" sha256=")[0] == version), None)


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
        bar = "!" * 88
        print(
            f"{bar}\nWARNING: NOT THE REAL {config.name.upper()} DATA. This run shows the built-in "
            f"stand-in (source: synthetic).\n{error}\n{bar}",
            file=sys.stderr,
            flush=True,
        )
        return "synthetic"
    return "real"


def _check_n(config: SourceConfig, n: int, what: str) -> None:
    if config.n_samples is not None and config.n_samples > n:
        raise ConfigError(
            f"dataset.n_samples must be ≤ {n}, the number of {what} of {config.name}, "
            f"got {config.n_samples}."
        )


def _sha256(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
