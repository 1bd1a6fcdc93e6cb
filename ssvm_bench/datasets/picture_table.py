"""The user's own pictures, described by a table; or synthetic pictures.

``dataset.path`` is a folder with image files and a table in CSV: a head line with the names of the
columns, then one line per image. The first two columns are always ``image`` (a file's name) and
``split`` (``train``, ``validation`` or ``test``). A run is identified by the content of the files,
not by their paths. Colours become grey values.

Without a path, pictures are simulated, and cached in the user's cache folder.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, FileConfig, split_by_fold
from ssvm_bench.datasets.reading import Arrays, ContentError, ensure

SPLITS = ("train", "validation", "test")
"""Names of the folds 0, 1, 2 of an example."""

HEAD = ("image", "split")

Lines = list[dict[str, str]]


@dataclass(frozen=True)
class TableConfig(FileConfig):
    """Options of pictures with a table; without the folder ``path``, they are synthetic."""

    TABLES: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.path is None and self.source == "real":
            raise ConfigError(
                f"{self.name} are synthetic unless dataset.path names a folder of your "
                f"own, with images and {' and '.join(self.TABLES)} (docs/files.md)."
            )
        if self.path is not None and self.source == "synthetic":
            raise ConfigError("dataset.path names data of your own; dataset.source=synthetic asks.")
        # experiments ask for real data first
        object.__setattr__(self, "source", "synthetic" if self.path is None else "real")

    def found(self) -> str | None:
        """Return the fingerprint of the content of the folder; None if it cannot be read."""
        assert self.path is not None
        try:
            files = sorted(file for file in self.path.iterdir() if file.is_file())
            stats = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
            return _digest(self.path, tuple(stats))
        except OSError:
            return None


@functools.lru_cache(maxsize=8)
def _digest(folder: Path, files: tuple[tuple[str, int, int], ...]) -> str:
    sha256 = hashlib.sha256()
    for name, _, size in files:
        sha256.update(f"{name} {size} ".encode())
        sha256.update((folder / name).read_bytes())
    return f"f{sha256.hexdigest()[:15]}"  # a letter first, so that YAML takes it for a text


def lines(folder: Path, table: str, columns: tuple[str, ...]) -> Lines:
    """Return the lines of a table, which must have exactly these columns in this order.

    Raises
    ------
    ContentError
        The table is missing, or has other columns, or a line with another number of fields.
    """
    try:
        text = reading.content(folder / table).decode("utf-8-sig")
    except FileNotFoundError:
        raise ContentError(f"there is no {table} in it") from None
    except UnicodeDecodeError as error:
        raise ContentError(f"{table} is no text in UTF-8 ({error})") from None
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or tuple(rows[0]) != columns:
        has = ",".join(rows[0])[:200] if rows else ""
        raise ContentError(f"the head line of {table} is {has!r}, not {','.join(columns)!r}")
    for number, row in enumerate(rows[1:], 2):
        count, n = len(row), len(columns)
        ensure(count == n, f"line {number} of {table} has {count} fields, not {n}")
    return [dict(zip(columns, row, strict=True)) for row in rows[1:]]


def folds(table: Lines) -> np.ndarray:
    """Return the fold of each line; raise `ContentError` if a split has another name."""
    for line in table:
        name, its = line["image"], line["split"]
        ensure(its in SPLITS, f"the split of {name} is {its!r}, not {', '.join(SPLITS)}")
    fold = np.array([SPLITS.index(line["split"]) for line in table], np.int64)
    ensure((fold == 0).any(), "no image of its table has the split 'train'")
    return fold


def image(folder: Path, name: str) -> np.ndarray:
    """Return the grey values of an image, uint8 (height, width).

    Raises
    ------
    ContentError
        The file does not exist, or is no image.
    """
    from PIL import Image

    path = folder / name
    if Path(name).name != name or not path.is_file():
        raise ContentError(f"there is no image {name!r}, which its table names")
    with reading.parsing(f"{name} is no image that can be read"), Image.open(path) as opened:
        return np.asarray(opened.convert("L"))


def arrays(
    config: TableConfig, version: int, synthetic: reading.Make, read: Callable[[Path], Arrays]
) -> Arrays:
    """Return the arrays of a config's pictures, including ``fold``.

    Parameters
    ----------
    config : TableConfig
    version : int
        To be raised when the simulated pictures change.
    synthetic : callable
        Simulates the pictures, which are then cached.
    read : callable
        Reads the pictures of a folder; raises `ContentError` or ``OSError``.

    Raises
    ------
    RunFailedError
        The folder's content cannot be used, or does not have the requested fingerprint.
    """
    if config.path is None:
        return reading.cached(*_kept(config, version), synthetic)
    with reading.explained(f"{config.path} cannot be used", "Correct the files."):
        reading.check_named(config.path)
        config.check_fingerprint(config.found())
        return read(config.path)


def is_kept(config: TableConfig, version: int) -> bool:
    """Return whether the arrays of a config's pictures are cached; the user's own never are."""
    place, key = _kept(config, version)
    return config.path is None and reading.stored_key(place) == key


def _kept(config: TableConfig, version: int) -> tuple[Path, str]:
    """Return the cache file of simulated pictures, and its key."""
    place = reading.user_folder() / config.kind / "drawn.ssvm-bench.npz"
    return place, f"{config.kind} drawn v{version}"


def split(config: TableConfig, dataset: Dataset) -> Dataset:
    """Return the training examples, with the held-out ones; raise ``ConfigError`` if too few."""
    return sources.first_samples(config, split_by_fold(dataset, *SPLITS[1:]))
