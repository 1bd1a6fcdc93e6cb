"""Where a dataset's numbers come from: its raw file, a download, or a generator.

A raw file that is not found (see `raw_files`) is downloaded from its home page into the user's
cache folder. Synthetic data replace only data that are *not available*, and only under
``source=auto``. Broken or altered data are never replaced.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.files import opened
from ssvm_bench.base.random import permutation
from ssvm_bench.config import ALTERED, catalog
from ssvm_bench.config.registry import kinds, module
from ssvm_bench.datasets import checks
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.raw_files import AlteredError, Finding, MissingDataError, Names, RawFile
from ssvm_bench.datasets.reading import Arrays, Bounded, ContentError, stored_key, too_large

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


def integrity_report(name: str) -> tuple[Path, list[Finding]]:
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
    """

    name: str
    state: str
    path: Path
    size: int
    hint: str
    content: str = ""
    kept: Path | None = None


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
            return DatasetStatus(name, "broken", part, 0, f"{error}. {raw.repair()}")
        size += part.stat().st_size
        if not recognised:
            hint = f"Not {raw.format}. {raw.repair()}"
            return DatasetStatus(name, "broken", part, part.stat().st_size, hint)
    hint, content = "", _content(raw, path) if verify else ""
    if raw.prepared and kept is None:
        hint = f"Not prepared yet: `ssvm-bench data prepare {name}` does it, or the first run."
    return DatasetStatus(name, "ready", path, size, hint, content, kept)


def _content(raw: RawFile, path: Path) -> str:
    """Return whether raw data are genuine, after reading them completely."""
    if not raw.sha256:
        return "unknown, because the genuine file could not be had to tell it by"
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
    with checks.explained(config):
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
        source = "synthetic" if raw.find() is None else "real"
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
        logger.debug("%s is read from %s", config.name, raw.get(again=config.source == "real"))
    except MissingDataError as error:
        if config.source == "real":
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
        "here": f"{there.path} ({there.state})",
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
