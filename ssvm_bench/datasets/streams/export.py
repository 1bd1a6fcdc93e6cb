"""Export of a dataset to a file for `DataStream`: once, or several times with deformations.

Example i of n, written for the r-th time, has the number t = r·n + i. Its deformation depends only
on t and the seed, so every order writes the same examples:

==============  ===================================================================================
``dataset``     t = 0, 1, 2 …
``shuffled``    repeat r after repeat r, with the examples of each in a random order
``neighbours``  every example with all its repeats one after the other
==============  ===================================================================================

Held-out examples follow, once each and without deformation.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.random import permutation
from ssvm_bench.config import ORDERS
from ssvm_bench.config.validation import Count, Natural, Options, one_of
from ssvm_bench.datasets.base import Dataset, Images
from ssvm_bench.datasets.progress import shown
from ssvm_bench.datasets.streams import layout
from ssvm_bench.datasets.streams.jitter import Jitter, deformed
from ssvm_bench.datasets.streams.layout import TRAIN, Encoding, Entries, Header, Split, entries_of

MOST_ROWS, MOST_BYTES = 8192, 1 << 23
"""Largest row group, before compression: readers hold one in memory at a time."""

SUFFIX = ".parquet"

_WRITER = {
    "compression": "lz4",
    "use_dictionary": [layout.SPLIT],
    "write_statistics": False,
    "write_page_checksum": True,
    "store_schema": False,
}
"""Options of Arrow's writer. zstd would take a fifth less space, a quarter more reading time."""


@dataclass(frozen=True)
class Export(Options):
    """How a dataset is written.

    Attributes
    ----------
    repeat : int
        How often each example is written.
    order : str
        One of `ORDERS`.
    jitter : Jitter or None
        How strongly images are deformed.
    seed : int
        Seed of the order and of deformations.
    """

    section: ClassVar[str] = "--"

    repeat: Count = 1
    order: Annotated[str, one_of(ORDERS)] = "dataset"
    jitter: Jitter | None = None
    seed: Natural = 0

    def numbers(self, n: int, rows: int) -> Iterator[np.ndarray]:
        """Yield the numbers t of all n·repeat examples in their order, ``rows`` at a time."""
        bits = np.random.PCG64([self.seed, 0])
        waiting = np.zeros(0, np.int64)
        for r in range(self.repeat):
            t = np.arange(r * n, (r + 1) * n)
            if self.order == "shuffled":
                t = t[permutation(n, bits)]
            elif self.order == "neighbours":
                t = t // self.repeat + t % self.repeat * n
            waiting = np.concatenate((waiting, t))
            while waiting.size >= rows:
                yield waiting[:rows]
                waiting = waiting[rows:]
        if waiting.size:
            yield waiting


def write(
    dataset: Dataset,
    path: Path,
    export: Export,
    images: Images | None = None,
    rows: int | None = None,
    made: Mapping[str, Any] | None = None,
    **default: Any,
) -> Header:
    """Write a dataset to a file atomically; return the header.

    Parameters
    ----------
    dataset : Dataset
        The examples, with the held-out ones.
    path : Path
        The file; an existing one is replaced.
    export : Export
        How the dataset is written.
    images : Images, optional
        Layout of its examples, if they are images to be deformed.
    rows : int, optional
        Number of examples of a row group.
    made : mapping, optional
        What the file records about its origin, besides these options.
    **default
        ``oracle`` and ``d`` of the `Header`.

    Raises
    ------
    ConfigError
        Images to be deformed have sparse features that are not bytes; or the examples are points,
        for which the file cannot record which are labeled.
    RunFailedError
        The file cannot be written.
    """
    import pyarrow.parquet as pq

    if dataset.structure == "points":
        raise ConfigError(
            f"{dataset.name} has points of which some are labeled, which a file of examples cannot "
            "tell: it cannot be exported."
        )
    held_out = dataset.held_out.values()
    encoding = Encoding.of([dataset, *held_out], deformed=export.jitter is not None)
    if export.jitter is not None and encoding.form == "rows":
        raise ConfigError(
            f"--jitter deforms images of any numbers, or sparse ones of bytes: those of "
            f"{dataset.name} are sparse, and no k or k/255 with k = 0 … 255. Leave it out."
        )
    rows = rows or _rows(dataset, encoding)
    total = export.repeat * dataset.n + sum(examples.n for examples in held_out)
    digests, splits = dict[str, Any](), dict[str, Split]()
    same = "source", "structure", "n_features", "n_edge_features", "windows"
    header = Header(
        dataset=dataset.name,
        **{name: getattr(dataset, name) for name in same},
        n_labels=int(dataset.n_labels),
        encoding=encoding,
        dtypes={k: v.values.dtype.str for k, v in entries_of(dataset.head(1), encoding).items()},
        splits=splits,
        fingerprint="",
        made={"n": dataset.n, "fingerprint": dataset.fingerprint, **asdict(export), **(made or {})},
        **default,
    )

    def put(file: BinaryIO) -> None:
        nonlocal header
        writer = pq.ParquetWriter(file, layout.schema(header.dtypes), **_WRITER)
        try:
            blocks = _blocks(dataset, export, images, encoding, rows)
            for split, entries in shown(blocks, f"Writing {path.name}", total):
                table = layout.table_of(entries, split)
                writer.write_table(table, row_group_size=table.num_rows)
                if not splits:
                    _check_room(path, file.tell() * total / table.num_rows)
                if split == TRAIN:
                    _update(digests, entries, header)
                groups, n, nbytes = splits.get(split, Split(0, 0, 0))
                nbytes += sum(_nbytes(name, of, encoding) for name, of in entries.items())
                splits[split] = Split(groups + 1, n + table.num_rows, nbytes)
            kind = dataset.structure, dataset.n_labels, dataset.n_features, *(dataset.windows or ())
            lines = [f"{name} {of.hexdigest()}\n" for name, of in sorted(digests.items())]
            of_all = hashlib.sha256("".join(lines).encode()).hexdigest()[:32]
            fingerprint = layout.fingerprint_of(*kind, *astuple(encoding), of_all)
            header = replace(header, fingerprint=fingerprint)
            writer.add_key_value_metadata(header.metadata())
            writer.close()
        except BaseException:
            writer.is_open = False  # else its deletion closes it, with another error
            raise

    try:
        files.write(path, put)
    except OSError as error:
        raise RunFailedError(
            f"Cannot write {path}: {error.strerror or error}. Make room there or make it writable, "
            "or name another file."
        ) from error
    return header


def _update(digests: dict[str, Any], entries: Mapping[str, Entries], header: Header) -> None:
    """Add examples to the digests, which do not depend on how row groups divide the examples."""
    found = dict(entries)
    if header.encoding.form == "bits":
        columns, nonzeros = found.pop("columns").values, found.pop("nonzeros")
        mask = np.zeros((nonzeros.values.size, header.n_features), bool)
        mask[np.repeat(np.arange(len(mask)), nonzeros.values), columns] = True
        bits = np.packbits(mask, axis=1, bitorder="little")
        found["bits"] = Entries(bits, nonzeros.lengths * bits.shape[1])
    for name, (values, lengths) in found.items():
        for what, part in ((values.dtype.str, values), ("ends", lengths.astype("<i8"))):
            digest = digests.setdefault(f"{name} {what}", hashlib.sha256())
            digest.update(np.ascontiguousarray(part).data)


def _rows(dataset: Dataset, encoding: Encoding) -> int:
    """Return the number of examples in a row group of moderate size."""
    nbytes = dataset.x.size * np.dtype(encoding.stored).itemsize  # a sparse x: its non-zeros
    if encoding.form != "dense":
        nbytes += dataset.x.size * np.dtype(encoding.columns).itemsize
    return int(np.clip(MOST_BYTES * dataset.n // max(1, nbytes), 1, MOST_ROWS))


def _nbytes(name: str, entries: Entries, encoding: Encoding) -> int:
    """Return the bytes that a column takes in a `Dataset`."""
    kinds = {"x": encoding.dtype, "columns": "<i4"}
    of_offsets = 8 * entries.lengths.size if name in ("y", "edges") else 0
    itemsize = np.dtype(kinds.get(name, entries.values.dtype)).itemsize
    return entries.values.size * itemsize + of_offsets


def _blocks(
    dataset: Dataset, export: Export, images: Images | None, encoding: Encoding, rows: int
) -> Iterator[tuple[int, tuple[str, dict[str, Entries]]]]:
    """Yield the content of each row group: number of examples, split, and columns."""
    from scipy.sparse import csr_array

    for t in export.numbers(dataset.n, rows):
        examples = dataset.take(t % dataset.n)
        if export.jitter is not None and images is not None:
            full = examples.x if isinstance(examples.x, np.ndarray) else examples.x.toarray()
            codes = encoding.encode(full)
            background = encoding.encode(np.array([images.background], encoding.dtype))[0]
            codes = deformed(codes, images, background, export.jitter, t, export.seed)
            x = encoding.decode(codes)
            examples = examples.derived(x=x if encoding.form == "dense" else csr_array(x))
        yield t.size, (TRAIN, entries_of(examples, encoding))
    for name, held_out in dataset.held_out.items():
        for chunk in held_out.chunks(rows):
            yield chunk.n, (name, entries_of(chunk, encoding))


def _check_room(path: Path, expected: float) -> None:
    """Raise ``OSError`` if the disk has less space than the file is expected to take."""
    free = shutil.disk_usage(path.parent).free
    if expected > free:
        raise OSError(
            f"it will have about {expected / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free there"
        )
