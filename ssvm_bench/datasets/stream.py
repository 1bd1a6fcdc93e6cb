"""Examples in a file written by ``ssvm-bench data export``, read in chunks or as a whole.

`open` returns a `DataStream`, which holds one chunk in memory at a time; solvers that support it
train on data of any length. `load` returns all examples as a `Dataset`, for the other solvers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError
from ssvm_bench.base.memory import available, check_room
from ssvm_bench.base.parquet import sizes
from ssvm_bench.config import ALTERED
from ssvm_bench.config.validation import Positive
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, FileConfig
from ssvm_bench.datasets.reading import ContentError, ensure
from ssvm_bench.datasets.streams.layout import TRAIN, Header, fields_of, fingerprint_of, schema
from ssvm_bench.datasets.vocabulary import LEARNED_POTTS

if TYPE_CHECKING:
    import pyarrow as pa

_AS_A_WHOLE = 3
"""Memory to load a dataset and arrange it for kernels, as a multiple of its size."""

_LARGEST_ROW_GROUP = 1 << 30
"""Largest accepted row group, in bytes of a `Dataset`; this program writes far smaller ones."""


@dataclass(frozen=True)
class Config(FileConfig):
    """Options of examples in such a file.

    Attributes
    ----------
    max_memory : float, optional
        Megabytes that all examples together may take; None: the free memory.
    """

    max_memory: Positive | None = None

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("path", "max_memory")

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.path is None:
            raise ConfigError(
                "dataset=stream needs dataset.path=FILE.parquet, a file that `ssvm-bench data "
                "export NAME FILE.parquet` has written."
            )

    def found(self) -> str | None:
        """Return the fingerprint of the examples; None if the file cannot be read."""
        with suppress(SsvmBenchError):
            return self._header.fingerprint
        return None

    def default_oracles(self) -> tuple[str, ...]:
        """Return the oracle of these examples."""
        return (self._header.oracle,)

    def oracle_options(self) -> dict[str, Any]:
        """Return a learned Potts weight if the number of weights has room for it."""
        header = self._header
        learned = header.structure == "graph" and header.d > header.n_labels * header.n_features
        return LEARNED_POTTS if learned else {}

    @cached_property
    def _header(self) -> Header:
        assert self.path is not None
        reading.check_named(self.path)
        return DataStream(self.path).header


def open(config: Config) -> DataStream:
    """Open the stream of the examples; none is read yet.

    Raises
    ------
    ConfigError
        There is no such file, or it has fewer than ``n_samples``.
    RunFailedError
        The file cannot be read, or has other examples than the requested ones.
    """
    assert config.path is not None
    reading.check_named(config.path)
    stream = DataStream(config.path, config.name, config.n_samples)
    header = stream.header
    sources.check_n(config, header.train.n, f"examples in {config.path}")
    config.check_fingerprint(header.fingerprint)
    asked = "synthetic" if header.source == "synthetic" else "real"
    if config.source not in ("auto", asked):
        raise RunFailedError(
            f"{config.path} was made of {header.source} data, and dataset.source={config.source}. "
            "Name another file, or leave the option out."
        )
    if header.source == ALTERED and not config.trust:
        raise RunFailedError(
            f"{config.path} was made of raw files that are not the genuine ones. "
            f"dataset.trust=true uses it, as source `{ALTERED}`."
        )
    return stream


def load(config: Config) -> Dataset:
    """Return all examples as a dataset, with the held-out ones.

    Raises
    ------
    ConfigError, RunFailedError
        As in `open`; or the examples do not fit into memory.
    """
    stream = open(config)
    needed = _AS_A_WHOLE * stream.nbytes * stream.n / stream.header.train.n
    room = available() if config.max_memory is None else config.max_memory * 1e6
    if room is not None and needed > room:
        raise RunFailedError(
            f"The {stream.n} examples in {config.path} take about {needed / 1e6:.0f} MB as a "
            f"whole, and {room / 1e6:.0f} MB are free. Use fewer, as dataset.n_samples="
            f"{max(1, int(stream.n * room / needed))}, a solver that reads them in chunks, or, if "
            "you know better, a larger dataset.max_memory (in MB)."
        )
    (dataset,) = stream.chunks(stream.n)
    return dataset.derived(held_out=stream.held_out, fingerprint=stream.fingerprint)


class DataStream:
    """A dataset in a file, which is read one chunk at a time.

    The header holds everything that is needed before the first example. Parquet compares every
    page with its checksum, and every chunk is checked as a `Dataset`. Before each row group, the
    file must still be the one that was opened.

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
        The file's description of its content.
    n, source, structure, n_labels, n_features
        As in a `Dataset`.
    d : int
        Number of weights, with the dataset's default oracle.
    nbytes : int
        Bytes that all training examples of the file take in a `Dataset`.
    fingerprint : str
        Equal for equal training examples; computed from the header alone.

    Raises
    ------
    RunFailedError
        The file cannot be read, or was not written by this program.
    """

    def __init__(self, path: Path, name: str = "stream", n_samples: int | None = None) -> None:
        self.path, self.name = path, name
        with self._opened() as (file, parquet):
            self._identity = _identity(os.fstat(file.fileno()))
            self.header = header = Header.read(parquet.metadata.metadata or {})
            _compare(parquet, header)
        self.source, self.structure, self.d = header.source, header.structure, header.d
        self.n_labels, self.n_features = header.n_labels, header.n_features
        whole = header.fingerprint
        self.n = n = min(n_samples or header.train.n, header.train.n)
        self.fingerprint = whole if n == header.train.n else fingerprint_of(whole, n)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all training examples: what the header says, or more if the columns have it."""
        with self._opened() as opened:
            groups = range(self.header.train.row_groups)
            return max(self.header.train.nbytes, sum(self._size(*opened, k) for k in groups))

    @cached_property
    def held_out(self) -> Mapping[str, Dataset]:
        """Name → held-out examples, which are read at the first access."""
        splits = {name: split.n for name, split in self.header.splits.items() if name != TRAIN}
        return {name: next(self._chunks(name, n, n)) for name, n in splits.items()}

    def head(self, size: int) -> Dataset:
        """Return the first ``size`` examples, for instance to compile kernels on."""
        return next(self.chunks(size))

    def chunks(self, rows: int) -> Iterator[Dataset]:
        """Yield the examples in order, ``rows`` at a time; the last chunk may have fewer.

        Parameters
        ----------
        rows : int
            At least 1. One row group is in memory besides the chunk.

        Raises
        ------
        RunFailedError
            The file is damaged, or has changed since it was opened.
        """
        ensure(rows > 0, f"a chunk has at least one example, not {rows}")
        return self._chunks(TRAIN, self.n, rows)

    def _chunks(self, split: str, n: int, rows: int) -> Iterator[Dataset]:
        import pyarrow as pa

        begin, held = 0, None
        for table in self._row_groups(split):
            held = table if held is None else pa.concat_tables((held, table))
            while held is not None and held.num_rows >= (size := min(rows, n - begin)):
                yield self._dataset(held.slice(0, size), begin)
                begin += size
                if begin == n:
                    return
                held = held.slice(size) if held.num_rows > size else None

    def _dataset(self, table: pa.Table, begin: int) -> Dataset:
        """Return some rows as a checked dataset."""
        header = self.header
        try:
            with self._explained(), reading.parsing("it is damaged"):
                fields = fields_of(table, header)
            for name in ("source", "n_labels", "structure", "windows"):
                fields[name] = getattr(header, name)
            return Dataset(name=self.name, **fields)
        except RunFailedError as error:
            raise RunFailedError(
                f"{error} Examples are counted from number {begin} of their split of {self.path}."
            ) from None

    def _row_groups(self, split: str) -> Iterator[pa.Table]:
        """Yield the rows of each row group of a split."""
        sizes = {name: of.row_groups for name, of in self.header.splits.items()}
        begin = sum(sizes[name] for name in [*sizes][: [*sizes].index(split)])
        with self._opened() as (file, parquet):
            for k in range(begin, begin + sizes[split]):
                self._check_identity(file)
                check_room(
                    2.0 * self._size(file, parquet, k),
                    f"Row group {k} of {self.path}, and a dataset made of it,",
                    "Free memory, or export the examples again, which makes small row groups.",
                )
                with reading.parsing(f"row group {k} is damaged"):
                    columns = [*self.header.dtypes]
                    table = parquet.read_row_group(k, columns=columns, use_threads=False)
                yield table

    def _size(self, file: BinaryIO, parquet: Any, group: int) -> int:
        """Return the bytes that a row group takes in a `Dataset`; refuse one that is too large."""
        with reading.parsing(f"row group {group} is damaged"):
            found, growth = sizes(parquet, file, group), self.header.growth
            needed = round(sum(found[name] * growth[name] for name in growth))
            ensure(
                needed <= _LARGEST_ROW_GROUP,
                f"its row group {group} would take about {needed / 1e6:.0f} MB, and may take "
                f"{_LARGEST_ROW_GROUP / 1e6:.0f}",
            )
        return needed

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, Any]]:
        """Open the file; yield it and its Parquet reader."""
        import pyarrow.parquet as pq

        with self._explained(), files.opened(self.path) as file:
            with reading.parsing("it is no Parquet file, or is cut short"):
                parquet = pq.ParquetFile(file, page_checksum_verification=True)
            yield file, parquet

    def _check_identity(self, file: BinaryIO) -> None:
        """Raise `ContentError` unless the file still exists and is unchanged."""
        try:
            there = _identity(os.stat(self.path))  # noqa: PTH116
        except FileNotFoundError:
            raise ContentError("it was deleted while it was read") from None
        if not _identity(os.fstat(file.fileno())) == there == self._identity:
            raise ContentError("it was replaced or changed while it was read")

    def _explained(self) -> AbstractContextManager[None]:
        """Turn errors about the file, raised in a block, into `RunFailedError`."""
        return reading.explained(
            f"Cannot read the examples in {self.path}",
            "Export it again, as `ssvm-bench data export NAME FILE.parquet` does, or name another "
            "file with dataset.path.",
        )


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _compare(parquet: Any, header: Header) -> None:
    """Raise `ContentError` unless row groups and columns are as the header states."""
    if not parquet.schema_arrow.equals(schema(header.dtypes)):
        raise ContentError("it has other columns than were written")
    rest = [parquet.metadata.row_group(k).num_rows for k in range(parquet.num_row_groups)]
    for split in header.splits.values():
        here, rest = rest[: split.row_groups], rest[split.row_groups :]
        if len(here) != split.row_groups or sum(here) != split.n:
            raise ContentError("it has other row groups than were written")
    if rest:
        raise ContentError("it has more row groups than were written")
