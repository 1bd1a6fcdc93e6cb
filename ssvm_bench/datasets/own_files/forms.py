"""Which form a file of a user has, and its examples, whatever the form."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.files import opened
from ssvm_bench.datasets import reading
from ssvm_bench.datasets.base import Dataset, with_bias
from ssvm_bench.datasets.own_files import columns, npz, svmlight
from ssvm_bench.datasets.own_files.templates import Template
from ssvm_bench.datasets.reading import Bounded, ContentError
from ssvm_bench.datasets.vocabulary import Vocabulary

MOST = 1 << 32
"""Bytes of a file, unpacked."""

FORMS = (columns.FORM, svmlight.FORM, npz.FORM)

_ZIP = b"PK\x03\x04"
_SUFFIXES = {".npz": npz.FORM, ".svm": svmlight.FORM, ".svmlight": svmlight.FORM}
_SUFFIXES |= {".libsvm": svmlight.FORM, ".conll": columns.FORM, ".iob": columns.FORM}
_ROW = re.compile(rb"\s*[+-]?[\d.]+(e[+-]?\d+)?(\s+\d+:\S+)+\s*(#.*)?")
_LOOKED_AT = 100  # lines


@dataclass(frozen=True)
class How:
    """What makes features of columns; other forms come with theirs.

    Attributes
    ----------
    templates : list of Template, optional
    boundary : str
    min_count : int
        See `columns.learned`.
    """

    templates: list[Template] | None
    boundary: str
    min_count: int


@contextmanager
def explained(path: Path) -> Iterator[None]:
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
    import gzip

    sha256 = hashlib.sha256()
    with opened(path) as file:
        packed = file.read(2) == reading.GZIP
        file.seek(0)
        stream = Bounded(gzip.GzipFile(fileobj=file) if packed else file, MOST)
        while block := stream.read(1 << 20):
            sha256.update(block)
    return sha256.hexdigest()


def form_of(path: Path, raw: bytes) -> str:
    """Return the form of a file, by its first bytes, its name, or its first lines."""
    if raw.startswith(_ZIP):
        return npz.FORM
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    head = [line.partition(b"#")[0] for line in raw[: 1 << 20].split(b"\n", _LOOKED_AT)]
    lines = [line for line in head[:_LOOKED_AT] if line.strip()]
    if any(b":" in line for line in lines) and all(
        _ROW.fullmatch(line) or len(line.split()) == 1 for line in lines
    ):
        return svmlight.FORM
    return columns.FORM


def parse(path: Path, form: str | None = None) -> tuple[str, Any]:
    """Return the form of a file, and what is in it; call it within `explained`.

    Parameters
    ----------
    path : Path
    form : str, optional
        By default found out.

    Raises
    ------
    ContentError, OSError
        The file cannot be read, or is not of that form.
    """
    raw = reading.content(path, MOST)
    form = form or form_of(path, raw)
    if form == npz.FORM:
        return form, npz.parse(raw, MOST)
    return form, columns.parse(raw) if form == columns.FORM else svmlight.parse(raw)


def training(form: str, found: Any, how: How) -> tuple[Vocabulary, dict[str, dict[str, Any]]]:
    """Return the vocabulary of a file to train on, and fields of a `Dataset` by name of the split.

    That to train on has the empty name.

    Raises
    ------
    ContentError
        The file is not as it should be.
    ConfigError
        A template does not fit it.
    """
    if form == columns.FORM:
        vocabulary, places = columns.learned(found, how.templates, how.boundary, how.min_count)
        return vocabulary, {"": columns.fields(found, vocabulary, places)}
    if form == svmlight.FORM:
        vocabulary = svmlight.learned(found)
        return vocabulary, {"": svmlight.fields(found, vocabulary)}
    vocabulary = npz.learned(found[""])
    return vocabulary, {split: npz.fields(arrays, vocabulary) for split, arrays in found.items()}


_FIELDS: dict[str, Callable[[Any, Vocabulary], dict[str, Any]]] = {
    columns.FORM: columns.fields,
    svmlight.FORM: svmlight.fields,
    npz.FORM: lambda found, vocabulary: npz.fields(found[""], vocabulary),
}


def examples(path: Path, vocabulary: Vocabulary, name: str) -> tuple[Dataset, bool]:
    """Return the examples of another file as a vocabulary has it, and whether they have labels.

    Raises
    ------
    RunFailedError
        The file cannot be read, or is of another form or structure than the vocabulary.
    """
    with explained(path):
        found = fields(path, vocabulary)
    labelled = "y" in found
    if not labelled:
        kind = np.float64 if vocabulary.structure == "regression" else np.uint8
        found["y"] = np.zeros(found["x"].shape[0], kind)
    return with_bias(dataset(name, vocabulary, found), vocabulary.bias), labelled


def fields(path: Path, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return fields of a `Dataset` for a file, without ``y`` if it has no labels.

    Raises
    ------
    ContentError, OSError
        See `examples`.
    """
    form, found = parse(path)
    if form != vocabulary.form:
        raise ContentError(f"its form is {form}, and that of the file trained on {vocabulary.form}")
    return _FIELDS[form](found, vocabulary)


def dataset(name: str, vocabulary: Vocabulary, found: dict[str, Any]) -> Dataset:
    """Return the dataset with these fields."""
    return Dataset(
        name=name,
        source="real",
        n_labels=len(vocabulary.labels),
        structure=vocabulary.structure,
        vocabulary=vocabulary,
        **found,
    )
