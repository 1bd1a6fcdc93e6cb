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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.files import read
from ssvm_bench.base.memory import check_room
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, FileConfig, split_by_fold
from ssvm_bench.datasets.cache import Make, cached, stored_key
from ssvm_bench.datasets.images import pictures
from ssvm_bench.datasets.reading import Arrays, ContentError, ensure

if TYPE_CHECKING:
    from PIL import Image

SPLITS = ("train", "validation", "test")
"""Names of the folds 0, 1, 2 of an example."""

HEAD = ("image", "split")

_LINE = 600
"""Least bytes that a line of a table takes when it is split into its fields."""

_DIGITS = 9
"""Most digits of a number in a table."""

_FEWER = "Use fewer images, or smaller ones."

Lines = list[dict[str, str]]


@dataclass(frozen=True)
class TableConfig(FileConfig):
    """Options of pictures with a table; without the folder ``path``, they are synthetic."""

    TABLES: ClassVar[tuple[str, ...]]

    @property
    def variant(self) -> str:
        """Name of the options that the simulated pictures depend on; empty: the default ones."""
        return ""

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.path is None and self.source == "real":
            raise ConfigError(
                f"{self.name} are synthetic unless dataset.path names a folder of your "
                f"own, with images and {' and '.join(self.TABLES)} (`ssvm-bench help files`)."
            )
        if self.path is not None and self.source == "synthetic":
            raise ConfigError("dataset.path names data of your own; dataset.source=synthetic asks.")
        # experiments ask for real data first
        object.__setattr__(self, "source", "synthetic" if self.path is None else "real")

    def found(self) -> str | None:
        """Return the fingerprint of the content of the folder; None if it cannot be read."""
        assert self.path is not None
        try:
            found = (file for file in self.path.iterdir() if not file.is_symlink())
            files = sorted(file for file in found if file.is_file())  # what is a link is never read
            stats = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
            return _digest(self.path, tuple(stats))
        except OSError:
            return None


@functools.lru_cache(maxsize=8)
def _digest(folder: Path, files: tuple[tuple[str, int, int], ...]) -> str:
    sha256 = hashlib.sha256()
    for name, _, size in files:
        sha256.update(f"{name} {size} ".encode(errors="surrogateescape"))
        if size <= reading.MOST:  # nothing larger is ever read
            sha256.update(read(folder / name, reading.MOST, within=folder))
    return f"f{sha256.hexdigest()[:15]}"  # a letter first, so that YAML takes it for a text


def lines(folder: Path, table: str, columns: tuple[str, ...]) -> Lines:
    """Return the lines of a table, which must have exactly these columns in this order.

    Raises
    ------
    ContentError
        The table is missing, or has other columns, or a line with another number of fields.
    """
    try:
        content = _read(folder, table, f"there is no {table} in it")
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContentError(f"{table} is no text in UTF-8 ({error})") from None
    n, found = len(columns), []
    check_room(float(len(content) + _LINE * _n_lines(content)), f"The lines of {table}", _FEWER)
    with reading.parsing(f"{table} is no table with commas"):
        rows = csv.reader(io.StringIO(text, newline=None))  # whatever ends its lines
        head = next(rows, [])
        if tuple(head) != columns:
            has = shown(",".join(head), 200)
            raise ContentError(f"the head line of {table} is {has!r}, not {','.join(columns)!r}")
        for number, row in enumerate(rows, 2):
            ensure(len(row) == n, f"line {number} of {table} has {len(row)} fields, not {n}")
            found.append(dict(zip(columns, row, strict=True)))
    return found


def _n_lines(content: bytes) -> int:
    return content.count(b"\n") + content.count(b"\r")


def whole(text: str) -> int | None:
    """Return the number from 0 that a field is, of at most nine digits; None if it is none."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def folds(table: Lines) -> np.ndarray:
    """Return the fold of each line; raise `ContentError` if a split has another name."""
    for line in table:
        name, its = line["image"], line["split"]
        is_one = its in SPLITS
        ensure(is_one, f"the split of {shown(name)} is {shown(its)!r}, not {', '.join(SPLITS)}")
    fold = np.array([SPLITS.index(line["split"]) for line in table], np.int64)
    ensure((fold == 0).any(), "no image of its table has the split 'train'")
    return fold


def images(folder: Path, table: Lines, each: int) -> list[np.ndarray]:
    """Return the grey values of the image in each line of a table, uint8 (height, width).

    Parameters
    ----------
    folder : Path
    table : list of dict
        As returned by `lines`.
    each : int
        Bytes that a pixel takes, with everything that the caller makes of it.

    Raises
    ------
    ContentError
        A file does not exist, or is no image.
    RunFailedError
        The images do not fit into memory.
    """
    names = [line["image"] for line in table]
    pixels = {}
    for name in dict.fromkeys(names):
        with _image(folder, name) as opened:
            pixels[name] = opened.width * opened.height
    needed = float(each) * sum(pixels[name] for name in names)
    check_room(needed, f"The {len(names)} images of {shown(folder, 200)}", _FEWER)
    decoded = {}
    for name in pixels:
        with _image(folder, name) as opened:
            decoded[name] = np.asarray(opened.convert("L"))
    return [decoded[name] for name in names]


def _read(folder: Path, name: str, missing: str) -> bytes:
    """Return the content of a file in a folder, out of which no link is followed."""
    try:
        return read(folder / name, reading.MOST, within=folder)
    except (FileNotFoundError, ValueError):  # no file has a name with NUL
        raise ContentError(missing) from None
    except OSError as error:
        raise ContentError(f"{shown(name)} cannot be read ({error.strerror or error})") from error


@contextmanager
def _image(folder: Path, name: str) -> Iterator[Image.Image]:
    """Open an image of a folder; raise `ContentError` if there is none of this name."""
    if Path(name).name != name:
        raise ContentError(f"there is no image {shown(name)!r}, which its table names")
    content = _read(folder, name, f"there is no image {shown(name)!r}, which its table names")
    allowed = pictures.FORMATS_OF_USERS, pictures.MOST_PIXELS_OF_USERS
    with pictures.picture_in(content, shown(name), *allowed) as opened:
        yield opened


def arrays(
    config: TableConfig, version: int, synthetic: Make, read: Callable[[Path], Arrays]
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
        return cached(*_kept(config, version), synthetic)
    with reading.explained(f"{config.path} cannot be used", "Correct the files."):
        reading.check_named(config.path)
        config.check_fingerprint(config.found())
        return read(config.path)


def is_kept(config: TableConfig, version: int) -> bool:
    """Return whether the arrays of a config's pictures are cached; the user's own never are."""
    place, key = _kept(config, version)
    return config.path is None and stored_key(place) == key


def _kept(config: TableConfig, version: int) -> tuple[Path, str]:
    """Return the cache file of simulated pictures, and its key."""
    drawn = " ".join(filter(None, ("drawn", config.variant)))
    place = reading.user_folder() / config.kind / f"{drawn.replace(' ', '-')}.ssvm-bench.npz"
    return place, f"{config.kind} {drawn} v{version}"


def split(config: TableConfig, dataset: Dataset) -> Dataset:
    """Return the training examples, with the held-out ones; raise ``ConfigError`` if too few."""
    return sources.first_samples(config, split_by_fold(dataset, *SPLITS[1:]))
