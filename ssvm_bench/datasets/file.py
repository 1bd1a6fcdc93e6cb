"""Examples of the user's own: a file of columns, of LIBSVM's format, or an npz.

A run is known by what is in its files, not by where they are. The formats are modules of
:mod:`ssvm_bench.datasets.own_files`: each parses a file, learns the vocabulary of one to train on,
and makes fields of a `Dataset` of any file, as a vocabulary has it.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.files import opened
from ssvm_bench.base.random import permutation
from ssvm_bench.config.validation import Count, check_share, one_of
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import BiasConfig, Dataset, with_bias
from ssvm_bench.datasets.own_files import columns, npz, svmlight
from ssvm_bench.datasets.own_files.columns import BOUNDARIES
from ssvm_bench.datasets.reading import Bounded, ContentError
from ssvm_bench.datasets.vocabulary import Vocabulary

FORMATS: dict[str, Any] = {each.FORMAT: each for each in (columns, svmlight, npz)}
AUTO = "auto"
HELD_OUT = ("validation", "test")
SPLIT_SEED = 1  # of the fixed permutation behind shares that are held out

_ZIP = b"PK\x03\x04"
_SUFFIXES = {".npz": npz.FORMAT, ".svm": svmlight.FORMAT, ".svmlight": svmlight.FORMAT}
_SUFFIXES |= {".libsvm": svmlight.FORMAT, ".conll": columns.FORMAT, ".iob": columns.FORMAT}
_ROW = re.compile(rb"\s*[+-]?[\d.]+(e[+-]?\d+)?(\s+\d+:\S+)+\s*(#.*)?")
_LOOKED_AT = 100  # lines


@dataclass(frozen=True)
class Config(BiasConfig):
    """Options of the examples.

    Attributes
    ----------
    path : Path
        The file.
    format : str
        ``"columns"``, ``"svmlight"`` or ``"npz"``; ``"auto"``: found out.
    validation, test : Path, float or None
        A file of examples to hold out, or which share of those in ``path``.
    templates : tuple of str, or Path
        What makes features of columns: templates, or a file of them; None: `default_templates`.
    boundary : str
        What templates see beyond the ends of a sequence.
    min_count : int
        Features of columns that fewer parts have are left out.
    fingerprint : str, optional
        That of what is in the files, to be sure of it; None: whatever is there.
    """

    path: Path | None = None
    format: Annotated[str, one_of((AUTO, *FORMATS))] = AUTO
    validation: float | Path | None = None
    test: float | Path | None = None
    templates: tuple[str, ...] | Path | None = None
    boundary: Annotated[str, one_of(BOUNDARIES)] = BOUNDARIES[0]
    min_count: Count = 1
    fingerprint: str | None = None

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("path", "format", *HELD_OUT)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.path is None:
            raise ConfigError(
                "dataset=file needs dataset.path=FILE: columns of text, LIBSVM's format, or an "
                ".npz (docs/files.md has the layouts)."
            )
        if self.source == "synthetic":
            raise ConfigError(
                "dataset=file has no synthetic data, and dataset.source=synthetic asks for them."
            )
        shares = [share for _, share in self._held_out() if isinstance(share, float)]
        for name, share in self._held_out():
            if isinstance(share, float):
                check_share(f"dataset.{name}", share)
        if sum(shares) >= 1:
            raise ConfigError("dataset.validation and dataset.test leave no example to train on.")

    def read_files(self) -> Config:
        """Return the config with the templates, and the fingerprint where the files are there."""
        config = replace(self, templates=self._read_templates())
        return config if self.fingerprint else replace(config, fingerprint=config._found())

    def _held_out(self) -> list[tuple[str, Any]]:
        return [(name, value) for name in HELD_OUT if (value := getattr(self, name)) is not None]

    def _read_templates(self) -> tuple[str, ...] | None:
        """Return the templates, from their file if they are in one."""
        given = self.templates
        if isinstance(given, Path):
            one = "%x[" in str(given)
            given = (
                (str(given),) if one else tuple(each.text for each in columns.read_templates(given))
            )
        if given is not None and not given:
            raise ConfigError(f"{columns.OPTION} is empty. Name templates, or leave it out.")
        for text in given or ():
            columns.parse_template(text)
        return given

    def _found(self) -> str | None:
        """Return the fingerprint of what is in the files; None where one cannot be read."""
        assert self.path is not None
        content: list[Any] = [digest(self.path)]
        for name, value in self._held_out():
            content += [name, digest(value) if isinstance(value, Path) else value]
        if "" in content:
            return None
        # a letter first, so that no YAML file or override takes it for a number
        return f"f{hashlib.sha256(repr(content).encode()).hexdigest()[:15]}"

    def default_oracle(self) -> str | None:
        """Return the oracle of these examples; None where they cannot be read: `load` tells."""
        with suppress(RunFailedError, ConfigError):
            vocabulary, _ = _read(self.read_files()._key())
            return vocabulary.oracle
        return None

    def _key(self) -> Config:
        """Return what of the options decides on what is read."""
        return replace(self, name="file", n_samples=None, source="auto", trust=False, bias=0.0)


def load(config: Config) -> Dataset:
    """Return the examples to train on, with those held out.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``; or a template does not fit the columns.
    RunFailedError
        A file cannot be read, or has other content than was asked for.
    """
    if config.fingerprint not in (None, found := config._found()):
        raise RunFailedError(
            f"What is in {config.path}, and in files held out, has the fingerprint {found}, and "
            f"dataset.fingerprint is {config.fingerprint}. Name the files that have it, or leave "
            "the option out."
        )
    vocabulary, splits = _read(config.read_files()._key())
    held_out = {
        name: config.with_bias(_dataset(config.name, vocabulary, fields))
        for name, fields in splits.items()
        if name
    }
    dataset = config.with_bias(_dataset(config.name, vocabulary, splits[""]))
    order, begin = permutation(dataset.n, np.random.PCG64(SPLIT_SEED)), 0
    for name, share in config._held_out():
        if isinstance(share, float):
            end = begin + math.ceil(share * dataset.n)
            held_out[name] = dataset.take(np.sort(order[begin:end]))
            begin = end
    if begin >= dataset.n:
        raise ConfigError(
            f"dataset.validation and dataset.test hold out all {dataset.n} examples of "
            f"{config.path}."
        )
    dataset = dataset.take(np.sort(order[begin:])) if begin else dataset
    sources.check_n(config, dataset.n, "examples to train on")
    if config.n_samples is not None:
        dataset = sources.subset(dataset, config.n_samples)
    return dataset.derived(held_out=held_out)


def examples(path: Path, vocabulary: Vocabulary, name: str) -> tuple[Dataset, bool]:
    """Return the examples of another file as a vocabulary has it, and whether they have labels.

    Raises
    ------
    RunFailedError
        The file cannot be read, or is of another format or structure than the vocabulary.
    """
    fields = _fields(path, vocabulary)
    labelled = "y" in fields
    if not labelled:
        kind = np.float64 if vocabulary.structure == "regression" else np.uint8
        fields["y"] = np.zeros(fields["x"].shape[0], kind)
    return with_bias(_dataset(name, vocabulary, fields), vocabulary.bias), labelled


@functools.lru_cache(maxsize=1)
def _read(config: Config) -> tuple[Vocabulary, dict[str, dict[str, Any]]]:
    """Return vocabulary, and fields of all splits; equal configs have equal content.

    The split to train on has the empty name.
    """
    assert config.path is not None
    with _explained(config.path):
        format_, found = _parse(config.path, config.format)
        if format_ == columns.FORMAT:
            chosen = None
            if isinstance(config.templates, tuple):
                chosen = [columns.parse_template(text) for text in config.templates]
            vocabulary, indices = columns.learned(found, chosen, config.boundary, config.min_count)
            splits = {"": columns.fields(found, vocabulary, indices)}
        elif format_ == svmlight.FORMAT:
            vocabulary = svmlight.learned(found)
            splits = {"": svmlight.fields(found, vocabulary)}
        else:
            vocabulary = npz.learned(found[""])
            splits = {split: npz.fields(arrays, vocabulary) for split, arrays in found.items()}
        if "y" not in splits[""] or splits[""].get("unseen") is not None:
            raise ContentError("it has no labels")
    for name, file in config._held_out():
        if isinstance(file, Path):
            splits[name] = _fields(file, vocabulary, labelled=True)
    return vocabulary, splits


def _fields(path: Path, vocabulary: Vocabulary, labelled: bool = False) -> dict[str, Any]:
    """Return fields of a `Dataset` for a file, without ``y`` if it has no labels."""
    with _explained(path):
        format_, found = _parse(path)
        if format_ != vocabulary.form:
            raise ContentError(
                f"its form is {format_}, and that of the file trained on {vocabulary.form}"
            )
        found = found[""] if format_ == npz.FORMAT else found
        made: dict[str, Any] = FORMATS[format_].fields(found, vocabulary)
        if labelled and "y" not in made:
            raise ContentError("it has no labels")
        return made


def _dataset(name: str, vocabulary: Vocabulary, fields: dict[str, Any]) -> Dataset:
    return Dataset(
        name=name,
        source="real",
        n_labels=len(vocabulary.labels),
        structure=vocabulary.structure,
        vocabulary=vocabulary,
        **fields,
    )


def _parse(path: Path, format_: str = AUTO) -> tuple[str, Any]:
    """Return the format of a file, and what is in it; call it within `_explained`."""
    raw = reading.content(path, reading.MOST_OF_USERS)
    format_ = _format_of(path, raw) if format_ == AUTO else format_
    return format_, FORMATS[format_].parse(raw)


def _format_of(path: Path, raw: bytes) -> str:
    """Return the format of a file, by its first bytes, its name, or its first lines."""
    if raw.startswith(_ZIP):
        return npz.FORMAT
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    head = [line.partition(b"#")[0] for line in raw[: 1 << 20].split(b"\n", _LOOKED_AT)]
    lines = [line for line in head[:_LOOKED_AT] if line.strip()]
    if any(b":" in line for line in lines) and all(
        _ROW.fullmatch(line) or len(line.split()) == 1 for line in lines
    ):
        return svmlight.FORMAT
    return columns.FORMAT


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with a user's file, in the block, into a `RunFailedError`."""
    try:
        yield
    except (ContentError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise RunFailedError(f"{path} cannot be used: {reason}. Correct the file.") from error


def digest(path: Path) -> str:
    """Return the digest of what is in a file, packed or not; empty if it cannot be read."""
    try:
        found = path.stat()
        return _digest(path, found.st_mtime_ns, found.st_size)
    except (OSError, EOFError, ValueError, ContentError):
        return ""


@functools.lru_cache(maxsize=64)
def _digest(path: Path, mtime_ns: int, size: int) -> str:
    sha256 = hashlib.sha256()
    with opened(path) as file:
        packed = file.read(2) == reading.GZIP
        file.seek(0)
        stream = Bounded(gzip.GzipFile(fileobj=file) if packed else file, reading.MOST_OF_USERS)
        while block := stream.read(1 << 20):
            sha256.update(block)
    return sha256.hexdigest()
