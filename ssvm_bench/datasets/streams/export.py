"""A dataset written to a file, which `DataStream` reads: once, or several times, deformed.

Example i of n, written for the r-th time, is number t = r·n + i. What is random of it depends on
t and the seed alone; so the same examples are written in every order:

==============  ===================================================================================
``dataset``     t = 0, 1, 2 …
``shuffled``    the same r after r, but the examples of each in a random order
``neighbours``  every example with all its repeats after one another
==============  ===================================================================================

Examples that are held out follow, once each and as they are.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.random import permutation
from ssvm_bench.config import ORDERS
from ssvm_bench.config.validation import Count, Natural, Options, one_of
from ssvm_bench.datasets.base import Dataset, Images
from ssvm_bench.datasets.images.progress import shown
from ssvm_bench.datasets.streams.blocks import SPLIT, Block, Digest, cells, seal, size
from ssvm_bench.datasets.streams.features import Features, encoded, features_of, width
from ssvm_bench.datasets.streams.header import TRAIN, Header, RowGroup, fingerprint_of
from ssvm_bench.datasets.streams.jitter import Jitter, deformed
from ssvm_bench.datasets.streams.layout import block_of, fields_of, nbytes

MOST_ROWS, MOST_BYTES = 8192, 1 << 23
"""Of a row group, before it is compressed: readers have one in memory at a time."""

SUFFIX = ".parquet"


@dataclass(frozen=True)
class Export(Options):
    """How a dataset is written.

    Attributes
    ----------
    repeat : int
        How often each example is.
    order : str
        One of `ORDERS`.
    jitter : Jitter or None
        How strongly images are deformed.
    seed : int
        Of the order and of deformations.
    """

    section: ClassVar[str] = "--"

    repeat: Count = 1
    order: Annotated[str, one_of(ORDERS)] = "dataset"
    jitter: Jitter | None = None
    seed: Natural = 0

    def numbers(self, n: int, rows: int) -> Iterator[np.ndarray]:
        """Yield the numbers t of all n·repeat examples, in their order, so many at a time."""
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


def check_images(dataset: Dataset, images: Images | None, known: str) -> None:
    """Check that a dataset's examples are images, which can be deformed.

    Raises
    ------
    ConfigError
        They are not; ``known`` says which datasets have some.
    """
    one_each = dataset.y.size == dataset.n
    if images is None or not one_each or np.prod(images.cell) != dataset.n_features:
        raise ConfigError(
            f"--jitter deforms images, and the examples of {dataset.name} are none. Leave it out, "
            f"or export one of: {known}."
        )


def write(
    dataset: Dataset,
    path: Path,
    export: Export,
    images: Images | None = None,
    rows: int | None = None,
    made: Mapping[str, Any] | None = None,
    **brought: Any,
) -> Header:
    """Write a dataset to a file, at once; return the header.

    Parameters
    ----------
    dataset : Dataset
        The examples, with those that are held out.
    path : Path
        The file; one that is there is replaced.
    export : Export
        How.
    images : Images, optional
        What is known of its examples, if they are images and to be deformed.
    rows : int, optional
        Examples of a row group.
    made : mapping, optional
        What the file is to say of its origin, besides these options.
    **brought
        ``oracle`` and ``d`` of the `Header`.

    Raises
    ------
    ConfigError
        Images are to be deformed whose features are sparse, and no bytes; or the examples are
        points, of which the file could not say which are labeled.
    RunFailedError
        The file cannot be written.
    """
    if dataset.structure == "points":
        raise ConfigError(
            f"{dataset.name} has points of which some are labeled, which a file of examples cannot "
            "tell: it cannot be exported."
        )
    held_out = dataset.held_out.values()
    features = features_of([dataset, *held_out], deformed=export.jitter is not None)
    if export.jitter is not None and features.form == "rows":
        raise ConfigError(
            f"--jitter deforms images of any numbers, or sparse ones of bytes: those of "
            f"{dataset.name} are sparse, and no k or k/255 with k = 0 … 255. Leave it out."
        )
    rows = rows or _rows(dataset, features)
    total = export.repeat * dataset.n + sum(examples.n for examples in held_out)
    made = {"n": dataset.n, "fingerprint": dataset.fingerprint, **asdict(export), **(made or {})}
    content = _Content(dataset, features)

    def put(file: BinaryIO) -> None:
        blocks = _blocks(dataset, export, images, features, rows)
        with content.written():
            for split, block in shown(blocks, f"Writing {path.name}", total):
                content.add(file, split, block)
                if len(content.groups) == 1:
                    _check_room(path, file.tell() * total / size(block))
            content.close(made=made, **brought)

    try:
        files.write(path, put)
    except OSError as error:
        raise RunFailedError(
            f"Cannot write {path}: {error.strerror or error}. Make room there or make it writable, "
            "or name another file."
        ) from error
    return content.header(made=made, **brought)


def _rows(dataset: Dataset, features: Features) -> int:
    """Return how many examples have a row group of moderate size."""
    nbytes = dataset.x.size * np.dtype(features.stored).itemsize  # of a sparse x, its entries
    if features.form == "rows":
        nbytes += dataset.x.size * np.dtype(features.columns).itemsize
    elif features.form == "bits":
        nbytes += dataset.y.size * width(dataset.n_features)
    return int(np.clip(MOST_BYTES * dataset.n // max(1, nbytes), 1, MOST_ROWS))


def _blocks(
    dataset: Dataset, export: Export, images: Images | None, features: Features, rows: int
) -> Iterator[tuple[int, tuple[str, Block]]]:
    """Yield what becomes row groups: number of examples, split, and block."""
    for t in export.numbers(dataset.n, rows):
        examples, codes = dataset.take(t % dataset.n), None
        if export.jitter is not None and images is not None:
            full = examples.x if isinstance(examples.x, np.ndarray) else examples.x.toarray()
            background = encoded(np.array([images.background], features.dtype), features)[0]
            codes = encoded(full, features)
            codes = deformed(codes, images, background, export.jitter, t, export.seed)
        yield t.size, (TRAIN, block_of(examples, features, codes))
    for name, examples in dataset.held_out.items():
        for chunk in examples.chunks(rows):
            yield chunk.n, (name, block_of(chunk, features))


def _check_room(path: Path, expected: float) -> None:
    """Raise an error if the disk has less room than the file will take, as its beginning tells."""
    free = shutil.disk_usage(path.parent).free
    if expected > free:
        raise OSError(
            f"it will have about {expected / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free there"
        )


class _Content:
    """What has been written of a file."""

    def __init__(self, dataset: Dataset, features: Features) -> None:
        self._dataset, self._features = dataset, features
        self._writer: Any = None
        self._digest, self._largest = Digest(), 0.0
        self._dtypes: dict[str, str] = {}
        self.groups: list[RowGroup] = []

    @contextmanager
    def written(self) -> Iterator[None]:
        """Leave a file that could not be written alone."""
        try:
            yield
        except BaseException:
            if self._writer is not None:
                self._writer.is_open = False  # else it would be closed, with another error
            raise

    def add(self, file: BinaryIO, split: str, block: Block) -> None:
        """Write a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(cells(block, split))
        if self._writer is None:
            options = {"compression": "lz4", "use_dictionary": [SPLIT], "write_statistics": False}
            self._writer = pq.ParquetWriter(file, table.schema, store_schema=False, **options)
            self._dtypes = {name: ragged.values.dtype.str for name, ragged in block.items()}
        self._writer.write_table(table, row_group_size=table.num_rows)
        fields = fields_of(block, self._features, self._dataset.n_features)
        if split == TRAIN:
            self._digest.update(block)
            x = fields["x"]
            values = x if isinstance(x, np.ndarray) else x.data
            largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
            self._largest = max(self._largest, largest)
        parts = block["y"].values.size
        self.groups.append(RowGroup(split, size(block), parts, nbytes(fields), seal(block)))

    def close(self, **about: Any) -> None:
        """Write the end of the file."""
        self._writer.add_key_value_metadata(self.header(**about).metadata())
        self._writer.close()

    def header(self, **about: Any) -> Header:
        """Return what the file says of itself."""
        data, features = self._dataset, self._features
        kind = data.structure, data.n_labels, data.n_features, *(data.windows or ())
        return Header(
            dataset=data.name,
            source=data.source,
            structure=data.structure,
            n_labels=int(data.n_labels),
            n_features=data.n_features,
            windows=data.windows,
            features=features,
            dtypes=self._dtypes,
            largest=self._largest,
            row_groups=tuple(self.groups),
            fingerprint=fingerprint_of(*kind, *astuple(features), self._digest.hexdigest()),
            **about,
        )
