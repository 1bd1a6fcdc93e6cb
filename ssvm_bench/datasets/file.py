"""The user's own examples: a file of columns, in LIBSVM's format, or an npz.

A run is identified by the content of its files, not by their paths. Each format is a module of
:mod:`ssvm_bench.datasets.own_files`. It parses a file, learns the vocabulary of a training file,
and turns any file into the fields of a `Dataset`, given a vocabulary.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.files import opened
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import permutation
from ssvm_bench.config.validation import Count, check_share, one_of
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import BiasConfig, Dataset, FileConfig, described
from ssvm_bench.datasets.own_files import columns, npz, svmlight
from ssvm_bench.datasets.reading import ContentError, ensure
from ssvm_bench.datasets.vocabulary import BOUNDARIES, Vocabulary, parse_template, read_templates

FORMATS: dict[str, Any] = {each.FORMAT: each for each in (columns, svmlight, npz)}
AUTO = "auto"
HELD_OUT = ("validation", "test")
SPLIT_SEED = 1  # of the fixed permutation that selects held-out shares

_ZIP = b"PK\x03\x04"
_SUFFIXES = {".npz": npz.FORMAT, ".svm": svmlight.FORMAT, ".svmlight": svmlight.FORMAT}
_SUFFIXES |= {".libsvm": svmlight.FORMAT, ".conll": columns.FORMAT, ".iob": columns.FORMAT}
_ROW = re.compile(rb"\s*[+-]?[\d.]+(e[+-]?\d+)?(\s+\d+:\S+)+\s*(#.*)?")
_LOOKED_AT = 100  # lines by which a format is recognised


@dataclass(frozen=True)
class Config(FileConfig, BiasConfig):
    """Options of the user's own examples.

    Attributes
    ----------
    format : str
        ``"columns"``, ``"svmlight"`` or ``"npz"``; ``"auto"``: detected.
    validation, test : Path, float or None
        A file of examples to hold out, or the share of those in ``path`` to hold out.
    templates : tuple of str, or Path
        Templates that turn columns into features, or a file of them; None: `default_templates`.
    boundary : str
        What templates see beyond the ends of a sequence.
    min_count : int
        Features of columns that occur in fewer parts than this are left out.
    """

    format: Annotated[str, one_of((AUTO, *FORMATS))] = AUTO
    validation: float | Path | None = None
    test: float | Path | None = None
    templates: tuple[str, ...] | Path | None = None
    boundary: Annotated[str, one_of(BOUNDARIES)] = BOUNDARIES[0]
    min_count: Count = 1

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
        shares = {name: of for name, of in self._held_out() if isinstance(of, float)}
        for name, share in shares.items():
            check_share(f"dataset.{name}", share)
        if sum(shares.values()) >= 1:
            raise ConfigError("dataset.validation and dataset.test leave no example to train on.")

    def read_files(self) -> Config:
        """Return the config with its templates, and its fingerprint if the files can be read."""
        given = self.templates
        templates = None if given is None else read_templates(given)
        return replace(super().read_files(), templates=templates)

    def _held_out(self) -> list[tuple[str, Any]]:
        return [(name, value) for name in HELD_OUT if (value := getattr(self, name)) is not None]

    def found(self) -> str | None:
        """Return the fingerprint of all files' content; None if one cannot be read."""
        assert self.path is not None
        content: list[Any] = [digest(self.path)]
        for name, value in self._held_out():
            content += [name, digest(value) if isinstance(value, Path) else value]
        if "" in content:
            return None
        # a letter first, so that no YAML file or override takes it for a number
        return f"f{hashlib.sha256(repr(content).encode()).hexdigest()[:15]}"

    def default_oracle(self) -> str | None:
        """Return the oracle of these examples; None if unreadable, which `load` reports."""
        with suppress(RunFailedError, ConfigError):
            vocabulary, _ = _read(self.read_files()._key())
            return vocabulary.oracle
        return None

    def _key(self) -> Config:
        """Return the config with only those options that decide what is read."""
        return replace(self, name="file", n_samples=None, source="auto", trust=False, bias=0.0)


def load(config: Config) -> Dataset:
    """Return the training examples, with the held-out ones.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``; or a template does not fit the columns.
    RunFailedError
        A file cannot be read, or does not have the requested fingerprint.
    """
    config.check_fingerprint(config.found())
    vocabulary, splits = _read(config.read_files()._key())
    shares = {name: of for name, of in config._held_out() if isinstance(of, float)}
    if config.bias or shares:
        of = "A copy of the features, for a bias or what is held out,"
        check_room(float(splits[""]["x"].data.nbytes), of, "Use fewer examples.")
    datasets = {
        name: described(config.name, vocabulary, config.bias, fields)
        for name, fields in splits.items()
    }
    dataset, held_out = datasets.pop(""), datasets
    order, begin = permutation(dataset.n if shares else 0, np.random.PCG64(SPLIT_SEED)), 0
    for name, share in shares.items():
        end = begin + math.ceil(share * dataset.n)
        held_out[name] = dataset.take(np.sort(order[begin:end]))
        begin = end
    if begin >= dataset.n:
        raise ConfigError(
            f"dataset.validation and dataset.test hold out all {dataset.n} examples of "
            f"{config.path}."
        )
    dataset = dataset.take(np.sort(order[begin:])) if begin else dataset
    return sources.first_samples(config, dataset).derived(held_out=held_out)


def examples(path: Path, vocabulary: Vocabulary, name: str) -> tuple[Dataset, bool]:
    """Read another file with a vocabulary; return its examples, and whether they have labels.

    Raises
    ------
    RunFailedError
        The file cannot be read, or is of another format or structure than the vocabulary.
    """
    with _explained(path):
        fields = _fields(path, vocabulary)
    labelled = "y" in fields
    if not labelled:
        kind = np.float64 if vocabulary.structure == "regression" else np.uint8
        fields["y"] = np.zeros(fields["x"].shape[0], kind)
    return described(name, vocabulary, vocabulary.bias, fields), labelled


@functools.lru_cache(maxsize=1)
def _read(config: Config) -> tuple[Vocabulary, dict[str, dict[str, Any]]]:
    """Return the vocabulary and the fields of all splits; equal configs have equal content.

    The training split has the empty name.
    """
    assert config.path is not None
    with _explained(config.path):
        format_, found = _parse(config.path, config.format)
        how: tuple[Any, ...] = ()
        if format_ == columns.FORMAT:
            assert not isinstance(config.templates, Path)
            chosen = config.templates and [*map(parse_template, config.templates)]
            how = chosen, config.boundary, config.min_count
        splits: dict[str, dict[str, Any]] = {}
        vocabulary, splits[""] = FORMATS[format_].learned(found.pop(""), *how)
        for name, content in found.items():
            try:
                splits[name] = _labelled(FORMATS[format_].fields(content, vocabulary))
            except ContentError as error:
                raise ContentError(f"its {name} examples: {error}") from error
    for name, file in config._held_out():
        if isinstance(file, Path):
            with _explained(file):
                splits[name] = _labelled(_fields(file, vocabulary))
    return vocabulary, splits


def _labelled(fields: dict[str, Any]) -> dict[str, Any]:
    ensure("y" in fields, "there are no labels (of an .npz: test.y beside test.x)")
    return fields


def _fields(path: Path, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return fields of a `Dataset` for a file, without ``y`` if it has no labels."""
    (format_, found), form = _parse(path), vocabulary.form
    ensure(format_ == form, f"its form is {format_}, and that of the file trained on {form}")
    return dict(FORMATS[format_].fields(found[""], vocabulary))


def _parse(path: Path, format_: str = AUTO) -> tuple[str, dict[str, Any]]:
    """Return the format of a file, and the content of each split; that of training is ``""``."""
    raw = reading.content_of_users(path)
    format_ = _format_of(path, raw) if format_ == AUTO else format_
    found = FORMATS[format_].parse(raw)
    return format_, found if format_ == npz.FORMAT else {"": found}


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


def _explained(path: Path) -> AbstractContextManager[None]:
    """Turn errors about a user's file, raised in a block, into `RunFailedError`."""
    return reading.explained(f"{path} cannot be used", "Correct the file.")


def digest(path: Path) -> str:
    """Return the digest of a file's unpacked content; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        found = path.stat()
        return _digest(path, found.st_mtime_ns, found.st_size)
    return ""


@functools.lru_cache(maxsize=64)
def _digest(path: Path, mtime_ns: int, size: int) -> str:
    sha256 = hashlib.sha256()
    with opened(path) as file, reading.unpacked(file, reading.MOST_OF_USERS) as stream:
        for block in stream:
            sha256.update(block)
    return sha256.hexdigest()
