"""Examples in a file written by ``ssvm-bench data export``, read in chunks or as a whole.

`open` returns a `DataStream`, which holds one chunk in memory at a time; solvers that support it
train on data of any length. `load` returns all examples as a `Dataset`, for the other solvers.

**The layout**: a Parquet file with one row per example, whose cells are bytes of arrays.

================  =============================================================================
column            content of a cell, little-endian
================  =============================================================================
``split``         ``train``, or the name of the held-out examples (a text)
``y``             the labels of the parts
``x``             the features of all parts, row by row; if they are sparse, the non-zeros only
``columns``       the column of each non-zero
``nonzeros``      the number of non-zeros of each part
``edges``         pairs of neighbours in a graph
``edge_x``        the features of all edges, edge by edge
``fold``, …       a number: each further field of a `Dataset` with one number per example
================  =============================================================================

Features that equal k/scale for small integers k, computed in their own type, are stored as k: grey
values take one byte, numbers of three decimals two; −0 may become 0. Parquet has a checksum of each
page. The `Header` has everything that must be known before a row is read. It is a JSON object in
the metadata of the file, which Parquet does not protect; so its SHA-256 is stored beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError
from ssvm_bench.base.memory import available, check_room
from ssvm_bench.base.parquet import sizes
from ssvm_bench.config import ALTERED, LOADED_FROM, catalog
from ssvm_bench.config.validation import Positive
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.arrays import MOST_LABELS, array, csr, ends_of
from ssvm_bench.datasets.base import OF_EXAMPLES, Dataset, FileConfig
from ssvm_bench.datasets.reading import ContentError, ensure, parsing
from ssvm_bench.datasets.structures import Windows
from ssvm_bench.datasets.vocabulary import LEARNED_POTTS

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3
"""Version of the layout; a reader refuses any other."""

KEY, CHECKSUM_KEY = b"ssvm_bench_stream", b"ssvm_bench_stream_checksum"

SPLIT, TRAIN = "split", "train"

ARRAYS = {"y", "x", "columns", "nonzeros", "edges", "edge_x"}
"""Columns whose cells are arrays; cells of the others are single numbers."""

SCALES = (1, 255, 1000)
"""Divisors for integers, grey values of a byte, numbers of three decimals."""

FORMS = ("dense", "rows", "bits")

CODES = ("|u1", "<i2")
"""Types of the integers that encode features."""

FEATURES = ("|u1", "<f4", "<f8")
TYPES = {*FEATURES, "|i1", *(f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8))}
"""Types that features, and that any entries of a `Dataset` may have."""


class Entries(NamedTuple):
    """A column: the concatenated entries of all examples, and the number of entries of each."""

    values: np.ndarray
    lengths: np.ndarray


# ---- features -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How features are stored.

    Attributes
    ----------
    dtype, stored : str
        Their type in a `Dataset`, and in the file.
    scale : int
        Divisor of the integers in the file; 1 if they are the features themselves.
    form : str
        ``"dense"``, ``"rows"`` or ``"bits"``. The latter two are sparse, and are stored in the
        same way; with ``bits``, the fingerprint hashes the positions of non-zeros as one bit per
        feature.
    columns : str
        Type of the index of a column.
    """

    dtype: str
    stored: str
    scale: int
    form: str
    columns: str

    @classmethod
    def of(cls, datasets: Sequence[Dataset], deformed: bool = False) -> Encoding:
        """Choose how the features of datasets of one kind are stored.

        Parameters
        ----------
        datasets : sequence of Dataset
            The training examples, and the held-out ones.
        deformed : bool
            Whether they are images that will be deformed. Sparse bytes then have the form
            ``bits``; other sparse numbers, which cannot be deformed, have the form ``rows``.
        """
        matrices: list[Any] = [each.x for each in datasets]
        first, form = matrices[0], "dense"
        is_dense = isinstance(first, np.ndarray)
        values = np.concatenate([x.ravel() if is_dense else x.data for x in matrices])
        stored, scale = _code(values)
        columns = "<u2" if first.shape[1] <= 1 << 16 else "<i4"
        if not is_dense:
            bits = sum(x.shape[0] for x in matrices) * -(-first.shape[1] // 8)
            rows = values.size * np.dtype(columns).itemsize
            fits = stored == "|u1" if deformed else bits <= rows
            rising = all(x.has_canonical_format for x in matrices)  # else bits lose the order
            form = "bits" if fits and rising else "rows"
        return cls(first.dtype.newbyteorder("<").str, stored, scale, form, columns)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Return features as stored in the file."""
        if self.stored == self.dtype:
            return np.ascontiguousarray(x, self.stored)
        return np.rint(x * np.dtype(self.dtype).type(self.scale)).astype(self.stored)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the features that were encoded."""
        values = codes.astype(self.dtype, copy=False)
        if self.scale != 1:
            values /= values.dtype.type(self.scale)
        return values


def _code(values: np.ndarray) -> tuple[str, int]:
    """Return the smallest integer type that encodes all numbers (else their own), and its scale."""
    dtype = values.dtype
    for scale in map(dtype.type, SCALES if dtype.kind == "f" else ()):
        codes = np.rint(values * scale)
        if np.array_equal(codes / scale, values):
            low, high = codes.min(initial=0), codes.max(initial=0)
            for name in CODES:
                if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
                    return name, int(scale)
    return dtype.newbyteorder("<").str, 1


# ---- from a dataset to a table ------------------------------------------------------------------


def entries_of(dataset: Dataset, encoding: Encoding) -> dict[str, Entries]:
    """Return the columns of the examples of a dataset."""
    parts, x = np.diff(dataset.offsets).astype(np.int64), dataset.x
    found = {"y": Entries(_little(dataset.y), parts)}
    if isinstance(x, np.ndarray):
        found["x"] = Entries(encoding.encode(x).ravel(), parts * x.shape[1])
    else:
        own = np.diff(x.indptr.astype(np.int64)[dataset.offsets])
        found["x"] = Entries(encoding.encode(x.data), own)
        found["columns"] = Entries(x.indices.astype(encoding.columns), own)
        found["nonzeros"] = Entries(np.diff(x.indptr).astype("<i4"), parts)
    if dataset.edges is not None and dataset.edge_offsets is not None:
        ends = 2 * np.diff(dataset.edge_offsets).astype(np.int64)
        found["edges"] = Entries(dataset.edges.astype("<i4").ravel(), ends)
        if dataset.edge_x is not None:
            own = ends // 2 * dataset.n_edge_features
            found["edge_x"] = Entries(_little(dataset.edge_x).ravel(), own)
    for name in OF_EXAMPLES:
        if (values := getattr(dataset, name)) is not None:
            found[name] = Entries(_little(values), np.ones(dataset.n, np.int64))
    return found


def _little(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def schema(dtypes: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of a file whose columns have entries of these types."""
    import pyarrow as pa

    types = {SPLIT: pa.string()}
    for name, dtype in dtypes.items():
        types[name] = pa.binary() if name in ARRAYS else pa.from_numpy_dtype(dtype)
    return pa.schema([pa.field(name, type_, nullable=False) for name, type_ in types.items()])


def table_of(entries: Mapping[str, Entries], split: str) -> pa.Table:
    """Return some examples as rows of the file."""
    import pyarrow as pa

    n = entries["y"].lengths.size
    columns = [pa.array(np.repeat(split, n), pa.string())]
    for name, (values, lengths) in entries.items():
        if name in ARRAYS:
            offsets = (ends_of(lengths) * values.itemsize).astype(np.int32)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
            columns.append(pa.Array.from_buffers(pa.binary(), n, buffers))
        else:
            columns.append(pa.array(values))
    dtypes = {name: each.values.dtype.str for name, each in entries.items()}
    return pa.Table.from_arrays(columns, schema=schema(dtypes))


def fingerprint_of(*content: Any) -> str:
    """Return 15 digits after a letter, so that no YAML file or override takes it for a number."""
    return f"s{hashlib.sha256(repr(content).encode()).hexdigest()[:15]}"


# ---- from a table to a dataset ------------------------------------------------------------------


def fields_of(table: pa.Table, header: Header) -> dict[str, Any]:
    """Return the fields of a `Dataset` from rows of the file.

    Raises
    ------
    ContentError
        Cells of an example do not fit each other. The `Dataset` checks their ranges.
    """
    found = {name: _entries(table.column(name), dtype) for name, dtype in header.dtypes.items()}
    for name in {"nonzeros", "edges"} & found.keys():
        whole = array(found[name].values, name, low=0, high=np.iinfo(np.int32).max)
        found[name] = found[name]._replace(values=whole)
    y, codes, shape = found["y"], found["x"], (found["y"].values.size, header.n_features)
    made: dict[str, Any] = {"y": y.values, "offsets": ends_of(y.lengths)}
    if header.encoding.form == "dense":
        _compare(codes, y.lengths * header.n_features, "x")
        made["x"] = header.encoding.decode(codes.values).reshape(shape)
    else:
        _compare(found["nonzeros"], y.lengths, "nonzeros")
        indptr = ends_of(found["nonzeros"].values)
        for name in ("x", "columns"):
            _compare(found[name], np.diff(indptr[made["offsets"]]), name)
        data, indices = header.encoding.decode(codes.values), found["columns"].values
        made["x"] = csr({"data": data, "indices": indices, "indptr": indptr}, header.n_features)
    if "edges" in found:
        made["edges"] = found["edges"].values.astype(np.int32).reshape(-1, 2)
        made["edge_offsets"] = ends_of(found["edges"].lengths // 2)
        _compare(found["edges"], 2 * (found["edges"].lengths // 2), "edges")
    if "edge_x" in found:
        k = header.n_edge_features
        _compare(found["edge_x"], np.diff(made["edge_offsets"]) * k, "edge_x")
        made["edge_x"] = found["edge_x"].values.reshape(-1, k)
    return made | {name: each.values for name, each in found.items() if name not in ARRAYS}


def _entries(column: pa.ChunkedArray, dtype: str) -> Entries:
    """Return a column of the file; raise `ContentError` if an array ends inside an entry."""
    if column.type != "binary":
        return Entries(column.to_numpy(), np.ones(len(column), np.int64))
    contents, sizes, itemsize = [], [], np.dtype(dtype).itemsize
    for chunk in column.chunks:
        _, offsets, content = chunk.buffers()
        ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        contents.append(np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]])
        sizes.append(np.diff(ends.astype(np.int64)))
    lengths, rest = np.divmod(np.concatenate(sizes), itemsize)
    if rest.any():
        raise ContentError(
            f"it is damaged: a cell of example {int(np.argmax(rest > 0))} is cut short"
        )
    content = contents[0] if len(contents) == 1 else np.concatenate(contents)
    return Entries(content.view(dtype), lengths)


def _compare(entries: Entries, expected: np.ndarray, name: str) -> None:
    wrong = np.flatnonzero(entries.lengths != expected)
    if wrong.size:
        i = int(wrong[0])
        raise ContentError(
            f"it is damaged: example {i} has {entries.lengths[i]} entries of {name}, and needs "
            f"{expected[i]}"
        )


# ---- the header ---------------------------------------------------------------------------------


class Split(NamedTuple):
    """Numbers of row groups and examples, and the bytes that these take in a `Dataset`."""

    row_groups: int
    n: int
    nbytes: int


@dataclass(frozen=True)
class Header:
    """The description of a file's content.

    Attributes
    ----------
    dataset, source : str
        Name of the exported dataset, and the source of its data.
    structure, n_labels, n_features, n_edge_features
        As in a `Dataset`.
    encoding : Encoding
        How features are stored.
    dtypes : mapping
        Column of the file → type of its entries.
    oracle : str
        The default oracle of the dataset.
    d : int
        Number of weights, with that oracle.
    splits : mapping
        Name → its `Split`, in the order of the file; the training split is the first.
    fingerprint : str
        By `fingerprint_of`: equal for equal training examples that are stored in the same form,
        whatever the row groups.
    made : mapping
        How the file was made: options, versions, time.
    windows : Windows, optional
        As in a `Dataset`.
    """

    dataset: str
    source: str
    structure: str
    n_labels: int
    n_features: int
    encoding: Encoding
    dtypes: Mapping[str, str]
    oracle: str
    d: int
    splits: Mapping[str, Split]
    fingerprint: str
    made: Mapping[str, Any]
    windows: Windows | None = None
    n_edge_features: int = 0

    @property
    def train(self) -> Split:
        """The training split."""
        return self.splits[TRAIN]

    @property
    def growth(self) -> dict[str, float]:
        """Column of the file → bytes of an entry in a `Dataset`, divided by those in the file."""
        kinds = {**self.dtypes, "x": self.encoding.dtype, "columns": "<i4"}
        return {
            k: np.dtype(kinds[k]).itemsize / np.dtype(of).itemsize for k, of in self.dtypes.items()
        }

    def metadata(self) -> dict[bytes, bytes]:
        """Return the metadata to write: the header and its checksum."""
        content = json.dumps({"format": FORMAT, **asdict(self)}, allow_nan=False).encode()
        return {KEY: content, CHECKSUM_KEY: hashlib.sha256(content).hexdigest().encode()}

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes]) -> Header:
        """Return the header of a file with this metadata.

        Raises
        ------
        ContentError
            There is no header, or it has changed since it was written.
        """
        content = metadata.get(KEY)
        if content is None:
            raise ContentError(
                "it is a Parquet file, but not one that `ssvm-bench data export` wrote"
            )
        if hashlib.sha256(content).hexdigest().encode() != metadata.get(CHECKSUM_KEY):
            raise ContentError("its metadata have changed since they were written")
        with parsing("its metadata are not as this program writes them"):
            values = json.loads(content)
            its = values.pop("format")
            ensure(its == FORMAT, f"its layout has version {its!r}; this program reads {FORMAT}")
            values["encoding"] = Encoding(**values["encoding"])
            values["splits"] = {name: Split(*of) for name, of in values["splits"].items()}
            if values["windows"] is not None:
                canvas, window, step = values["windows"]
                values["windows"] = Windows(tuple(canvas), tuple(window), step)
            header = cls(**values)
            header._check()
        return header

    def _check(self) -> None:
        """Raise ``ValueError`` unless values have the types and ranges that readers rely on."""
        coded = self.encoding
        counts = self.n_features, *(count for split in self.splits.values() for count in split)
        numbers = self.n_labels, self.d, coded.scale, self.n_edge_features, *counts
        texts = self.dataset, self.structure, self.oracle, self.fingerprint
        sparse = {"columns", "nonzeros"} if coded.form != "dense" else set()
        if not (
            all(type(number) is int and number >= 0 for number in numbers)
            and min(counts) >= 1
            and self.n_labels <= MOST_LABELS
            and all(isinstance(text, str) for text in texts)
            and self.source in LOADED_FROM
            and next(iter(self.splits)) == TRAIN
            and ARRAYS & self.dtypes.keys() - {"edges", "edge_x"} == {"y", "x"} | sparse
            and ("edge_x" in self.dtypes) == (self.n_edge_features > 0)
            and {"edges", "edge_x"} & self.dtypes.keys() != {"edge_x"}
            and coded.dtype in FEATURES
            and TYPES.issuperset((coded.columns, *self.dtypes.values()))
            and coded.form in FORMS
            and coded.scale in SCALES
            and coded.stored in (coded.dtype, *CODES)
            and coded.stored == self.dtypes["x"]
            and (not sparse or coded.columns == self.dtypes["columns"])
        ):
            raise ValueError


# ---- Reading ----------------------------------------------------------------------------------

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
        return DataStream(self.existing()).header

    def existing(self) -> Path:
        """Return the path of the file.

        Raises
        ------
        ConfigError, RunFailedError
            There is no such file, which the call names, or that of a dataset of this package.
        """
        assert self.path is not None
        try:
            return reading.check_named(self.path)
        except ConfigError as error:
            known = catalog.entries("dataset")
            own = catalog.read("dataset", self.name, known).options if self.name in known else {}
            if own.get("path") != str(self.path):
                raise
            about = catalog.description(known[self.name])
            raise RunFailedError(f"{error} It is that of dataset={self.name}: {about}.") from error


def open(config: Config) -> DataStream:
    """Open the stream of the examples; none is read yet.

    Raises
    ------
    ConfigError
        There is no such file, or it has fewer than ``n_samples``.
    RunFailedError
        The file cannot be read, or has other examples than the requested ones.
    """
    stream = DataStream(config.existing(), config.name, config.n_samples)
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
    n, source, structure, n_labels, n_features, vocabulary
        As in a `Dataset`; it has no vocabulary.
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

    vocabulary: None = None

    def __init__(self, path: Path, name: str = "stream", n_samples: int | None = None) -> None:
        self.path, self.name = path, name
        with self._opened() as (file, parquet):
            self._identity = _identity(os.fstat(file.fileno()))
            self.header = header = Header.read(parquet.metadata.metadata or {})
            _check_against(parquet, header)
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


def _check_against(parquet: Any, header: Header) -> None:
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
