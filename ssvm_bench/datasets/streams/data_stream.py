"""A dataset in a file, of which a chunk is in memory at a time.

What is needed before the first example is known from the file's metadata: n, f, K, the structure,
how many row groups. Every row group that is read is compared with the checksum that the metadata
have of it, and every chunk is a `Dataset`, and as such checked. Between two row groups, the file
must be the one that was opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from ssvm_bench.base.errors import RunFailedError, shown
from ssvm_bench.base.files import opened
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.streams.blocks import (
    Block,
    block_from,
    joined,
    part,
    seal,
    size,
)
from ssvm_bench.datasets.streams.header import TRAIN, Header, HeaderError, fingerprint_of
from ssvm_bench.datasets.streams.layout import check, fields_of

MAGIC = b"PAR1"
"""How a Parquet file begins, and how it ends."""

LARGEST_ROW_GROUP = 1 << 30
"""Bytes of a row group; this program writes far smaller ones."""

_WRITE = "`ssvm-bench data export NAME FILE.parquet` writes such files"


class DataStream:
    """Examples in a file.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        The dataset's name.
    n_samples : int, optional
        Only the first examples.

    Attributes
    ----------
    path : Path
    name : str
    header : Header
        What the file says of itself.

    Raises
    ------
    RunFailedError
        The file cannot be read, or is no such file.
    """

    def __init__(self, path: Path, name: str = "stream", n_samples: int | None = None) -> None:
        self.path, self.name = path, name
        with self._opened() as (file, parquet):
            self._identity = _identity(os.fstat(file.fileno()))
            self.header = Header.read(parquet.metadata.metadata or {})
            _compare(parquet.metadata, self.header)
        self.n = min(n_samples or self.header.total("n"), self.header.total("n"))

    @property
    def source(self) -> str:
        """Where the data came from: ``"real"``, ``"real (altered)"`` or ``"synthetic"``."""
        return self.header.source

    @property
    def structure(self) -> str:
        """Which parts of an example are neighbours."""
        return self.header.structure

    @property
    def n_labels(self) -> int:
        """Number of labels K of a part."""
        return self.header.n_labels

    @property
    def n_features(self) -> int:
        """Number of features f of a part."""
        return self.header.n_features

    @property
    def d(self) -> int:
        """Number of weights, with the oracle that the dataset brought."""
        return self.header.d

    @property
    def fingerprint(self) -> str:
        """Equal for equal examples to train on; nothing is read for it."""
        whole = self.header.fingerprint
        return whole if self.n == self.header.total("n") else fingerprint_of(whole, self.n)

    @cached_property
    def held_out(self) -> Mapping[str, Dataset]:
        """Name → examples that are not trained on, which are read when this is first asked for."""
        return {
            split: next(self._chunks(split, n, n))
            for split in self.header.splits
            if split != TRAIN
            for n in [self.header.total("n", split)]
        }

    def head(self, size: int) -> Dataset:
        """Return the first examples: enough to compile kernels on."""
        return next(self.chunks(size))

    def chunks(self, rows: int) -> Iterator[Dataset]:
        """Yield the examples in their order, so many at a time; the last chunk may have fewer.

        Parameters
        ----------
        rows : int
            At least 1. Besides the chunk, one row group is in memory.

        Raises
        ------
        RunFailedError
            The file is damaged, or another one than it was.
        """
        if rows < 1:
            raise ValueError(f"a chunk has at least one example, not {rows}")
        return self._chunks(TRAIN, self.n, rows)

    def _chunks(self, split: str, n: int, rows: int) -> Iterator[Dataset]:
        pieces: list[Block] = []
        done = waiting = 0
        for k, block in self._blocks(split):
            begin = 0
            while begin < size(block) and done + waiting < n:
                end = min(size(block), begin + min(rows, n - done) - waiting)
                pieces.append(part(block, begin, end))
                waiting, begin = waiting + end - begin, end
                if waiting == rows or done + waiting == n:
                    yield self._dataset(joined(pieces), k, done)
                    pieces, done, waiting = [], done + waiting, 0
            if done == n:
                return

    def _dataset(self, block: Block, k: int, begin: int) -> Dataset:
        """Return the dataset of a block, checked."""
        header = self.header
        try:
            return Dataset(
                name=self.name,
                source=header.source,
                n_labels=header.n_labels,
                structure=header.structure,
                windows=header.windows,
                **fields_of(block, header.features, header.n_features),
            )
        except RunFailedError as error:
            raise RunFailedError(
                f"{error} This is of {self.path}, at row group {k}, where example 0 is number "
                f"{begin} of its kind."
            ) from None

    def _blocks(self, split: str) -> Iterator[tuple[int, Block]]:
        """Yield number and content of each row group of a split."""
        columns = self.header.dtypes
        with self._opened() as (file, parquet):
            for k in self.header.splits[split]:
                self._check_identity(file)
                with self._explained(f"row group {k} is damaged"):
                    table = parquet.read_row_group(k, columns=[*columns], use_threads=False)
                    block = block_from(table, columns)
                    del table
                    check(block, self.header.features, self.header.n_features)
                if seal(block) != self.header.row_groups[k].seal:
                    raise self._failed(f"row group {k} is not what was written")
                yield k, block

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, Any]]:
        """Open the file."""
        import pyarrow.parquet as pq

        try:
            file = opened(self.path)
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        with file:
            self._check_ends(file)
            with self._explained("it is no Parquet file that can be read"):
                parquet = pq.ParquetFile(file)
            try:
                yield file, parquet
            except HeaderError as error:
                raise self._failed(str(error)) from None

    def _check_ends(self, file: BinaryIO) -> None:
        """Tell what is no Parquet file, and what was one once."""
        length = os.fstat(file.fileno()).st_size
        if file.read(len(MAGIC)) != MAGIC:
            raise self._failed(f"it is not a Parquet file. {_WRITE}")
        file.seek(max(0, length - len(MAGIC)))
        if length < 3 * len(MAGIC) or file.read() != MAGIC:
            raise self._failed("it is cut short: its end is missing")
        file.seek(0)

    def _check_identity(self, file: BinaryIO) -> None:
        """Raise an error unless the file is still there, and still the same."""
        try:
            there = _identity(os.stat(self.path))  # noqa: PTH116
        except FileNotFoundError:
            raise self._failed("it was deleted while it was read") from None
        if not _identity(os.fstat(file.fileno())) == there == self._identity:
            raise self._failed("it was replaced or changed while it was read")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn whatever a damaged file makes its reader raise into a message."""
        try:
            yield
        except MemoryError:
            raise
        except Exception as error:
            reason = shown(str(error).partition("\n")[0].rstrip("."), 120)
            raise self._failed(f"{what}: {reason or type(error).__name__}") from error

    def _failed(self, reason: str) -> RunFailedError:
        return RunFailedError(
            f"Cannot read the examples in {self.path}: {reason}. Export it again, or name another "
            "file with dataset.path."
        )


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _compare(found: Any, header: Header) -> None:
    """Compare the row groups and columns that there are with those of the header."""
    groups = [found.row_group(k) for k in range(found.num_row_groups)]
    if [group.num_rows for group in groups] != [group.n for group in header.row_groups]:
        raise HeaderError("it has other row groups than were written")
    names = {found.schema.column(k).path for k in range(len(found.schema.names))}
    missing = header.dtypes.keys() - names
    if missing:
        raise HeaderError(f"it has no column {', '.join(sorted(missing))}")
    if any(group.total_byte_size > LARGEST_ROW_GROUP for group in groups):
        raise HeaderError("it has row groups of more than 1 GB")
