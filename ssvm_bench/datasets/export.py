"""Export of a dataset to a file for `DataStream`: once, or several times with deformations.

Example i of n, written for the r-th time, has the number t = r·n + i. Its deformation depends only
on t and the seed, so every order writes the same examples:

==============  ===================================================================================
``dataset``     t = 0, 1, 2 …
``shuffled``    repeat r after repeat r, with the examples of each in a random order
``neighbours``  every example with all its repeats one after the other
==============  ===================================================================================

Held-out examples follow, once each and without deformation.

**Deformed images**: shifts, rotations and elastic deformations (Simard et al. 2003). The pixel at
(r, c) of a deformed image has the value of the original image at

.. code-block:: text

    m + R(θ) ((r, c) − m) − s + E(r, c)        m: the middle; s, θ uniform in ±shift, ±rotation

by bilinear interpolation, with the background outside. Each component of the elastic field E is
``elastic`` times white noise smoothed by a Gaussian of ``sigma`` pixels, G_r N G_cᵀ, where the
rows of G_r and G_c have norm 1. So ``elastic`` is the standard deviation of E in pixels at every
pixel. The noise is uniform, as in the paper; its best values σ = 4, α = 34 correspond to
``elastic=1.4``.

The deformation of image t is computed from the words at a position of its own in one stream. So it
does not depend on the order in which images are deformed, nor on how many at a time.

References
----------
P. Y. Simard, D. Steinkraus, J. C. Platt: Best practices for convolutional neural networks applied
to visual document analysis. ICDAR 2003, section 2.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, fields, replace
from math import floor, sqrt
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, nearest, shown
from ssvm_bench.base.jit import allocating_kernel, kernel
from ssvm_bench.base.random import permutation, unit, words_at
from ssvm_bench.config import ORDERS
from ssvm_bench.config.validation import (
    Count,
    Natural,
    NotNegative,
    Options,
    Positive,
    build,
    one_of,
)
from ssvm_bench.datasets import progress, stream
from ssvm_bench.datasets.base import Dataset, Images
from ssvm_bench.datasets.stream import TRAIN, Encoding, Entries, Header, Split, entries_of

# mypy: disable-error-code="no-untyped-def"


POSE = 4
"""Words for the pose: shift down, shift right, rotation, and one to spare."""

STEP = 4
"""Terms that `_product` adds at a time."""

_DECIMALS = 12  # the last bits of cosines and exponentials are not the same on every machine


@dataclass(frozen=True)
class Jitter(Options):
    """How strongly images are deformed; 0 means not at all.

    Attributes
    ----------
    shift : float
        Largest shift along each axis, in pixels.
    rotation : float
        Largest rotation, in degrees.
    elastic : float
        Standard deviation of the elastic displacement along each axis, in pixels.
    sigma : float
        Smoothness of the elastic displacement, in pixels.
    """

    section: ClassVar[str] = "--jitter"

    shift: NotNegative = 0.0
    rotation: NotNegative = 0.0
    elastic: NotNegative = 0.0
    sigma: Positive = 4.0

    @classmethod
    def read(cls, text: str) -> Jitter:
        """Parse a text such as ``shift=1,rotation=10``.

        Raises
        ------
        ConfigError
            If the text cannot be parsed.
        """
        known = [field.name for field in fields(cls)]
        values: dict[str, float] = {}
        for word in text.split(","):
            name, _, number = (part.strip() for part in word.partition("="))
            if name not in known:
                raise ConfigError(f"--jitter has no {shown(repr(name))}. {nearest(name, known)}")
            try:
                values[name] = float(number)
            except ValueError:
                raise ConfigError(
                    f"--jitter {shown(word)}: write the strength as a number, as in {name}=1."
                ) from None
        return build(cls, values, cls.section)


def deformed(
    codes: np.ndarray, images: Images, background: float, jitter: Jitter, t: np.ndarray, seed: int
) -> np.ndarray:
    """Return deformed images, of the same shape and type; integers are rounded.

    Parameters
    ----------
    codes : ndarray, shape (m, height * width)
        The images, row by row.
    images : Images
        Their size.
    background : float
        The code of a pixel outside the images.
    jitter : Jitter
        How strongly images are deformed.
    t : ndarray of int64, shape (m,)
        The number of each deformation, which determines nothing except its random words.
    seed : int
        Seed of the stream of words.
    """
    height, width = images.cell
    noise_words = -(-height * width // 2)  # two fields of numbers of 16 bits
    count = POSE + (noise_words if jitter.elastic else 0)
    words = words_at(t * (POSE + noise_words), count, np.random.PCG64([seed, 1]))
    pose = 2 * unit(words[:, :3]) - 1
    angle = np.deg2rad(jitter.rotation) * pose[:, 2]
    motion = np.column_stack((
        jitter.shift * pose[:, :2],
        np.round(np.cos(angle), _DECIMALS),
        np.round(np.sin(angle), _DECIMALS),
    ))  # fmt: skip
    noise = words[:, POSE:].astype("<u8", copy=False).view("<u2").astype(np.uint16, copy=False)
    out = np.empty_like(codes)
    _deform(
        codes, height, width, float(background), motion, noise,
        np.float32(jitter.elastic), _smoothing(height, jitter.sigma),
        np.ascontiguousarray(_smoothing(width, jitter.sigma).T), codes.dtype.kind in "iu", out,
    )  # fmt: skip
    return out


def _smoothing(size: int, sigma: float) -> np.ndarray:
    """Return the matrix (float32) whose rows are Gaussians of norm 1, cut off at the ends.

    Columns of zeros are appended until their number is a multiple of `STEP`.
    """
    distance = np.subtract.outer(np.arange(size), np.arange(size)) / sigma
    weights = np.round(np.exp(-0.5 * distance**2), _DECIMALS)
    rows = weights / np.sqrt((weights**2).sum(axis=1, keepdims=True))
    return np.pad(rows, ((0, 0), (0, -size % STEP))).astype(np.float32)


@allocating_kernel
def _deform(
    images, height, width, background, motion, noise, elastic, down, across, rounded, out
):  # fmt: skip
    framed = np.full((height + 2, width + 2), background)
    white = np.zeros((down.shape[1], width), np.float32)
    half = np.zeros((height, across.shape[0]), np.float32)
    field = np.zeros((2, height, width), np.float32)
    middle_r, middle_c = (height - 1) / 2, (width - 1) / 2
    for e in range(len(images)):
        for r in range(height):
            for c in range(width):
                framed[r + 1, c + 1] = images[e, r * width + c]
        for axis in range(2 if elastic > 0 else 0):
            _noise(noise[e], axis * height * width, elastic, white[:height])
            _product(down, white, half[:, :width])
            _product(half, across, field[axis])
        cos, sin = motion[e, 2], motion[e, 3]
        for r in range(height):
            for c in range(width):
                y, x = r - middle_r, c - middle_c
                at_r = middle_r + cos * y - sin * x - motion[e, 0] + field[0, r, c]
                at_c = middle_c + sin * y + cos * x - motion[e, 1] + field[1, r, c]
                value = _between(framed, at_r + 1, at_c + 1, background)
                out[e, r * width + c] = floor(value + 0.5) if rounded else value


@kernel
def _noise(words, begin, size, out):
    """Fill a field with uniform noise of standard deviation ``size``, from words of 16 bits."""
    scale = np.float32(size * sqrt(3.0) * 2.0**-15)
    height, width = out.shape
    for r in range(height):
        for c in range(width):
            out[r, c] = scale * (np.float32(words[begin + r * width + c]) - np.float32(32767.5))


@kernel
def _product(left, right, out):
    """Multiply two matrices; the inner dimension is a multiple of `STEP`."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for k in range(0, right.shape[0], 4):
            a, b, c, d = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
            for j in range(out.shape[1]):
                here = a * right[k, j] + b * right[k + 1, j]
                out[i, j] += here + (c * right[k + 2, j] + d * right[k + 3, j])


@kernel
def _between(framed, r, c, background):
    """Return the value of a framed image at a point, interpolated from four pixels around it."""
    if not (0 <= r < framed.shape[0] - 1 and 0 <= c < framed.shape[1] - 1):
        return background
    i, j = int(r), int(c)
    b, a = r - i, c - j
    above = (1 - a) * framed[i, j] + a * framed[i, j + 1]
    below = (1 - a) * framed[i + 1, j] + a * framed[i + 1, j + 1]
    return (1 - b) * above + b * below


# ---- The export -------------------------------------------------------------------------------

MOST_ROWS, MOST_BYTES = 8192, 1 << 23
"""Largest row group, before compression: readers hold one in memory at a time."""

SUFFIX = ".parquet"

_WRITER = {
    "compression": "lz4",
    "use_dictionary": [stream.SPLIT],
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
        Images to be deformed have sparse features that are not bytes; or the dataset has fields
        that no file records, such as which points are labeled.
    RunFailedError
        The file cannot be written.
    """
    import pyarrow.parquet as pq

    recorded = {of.name for of in fields(Dataset)}
    if own := [of.name for of in fields(dataset) if of.name not in recorded]:
        raise ConfigError(
            f"{dataset.name} cannot be exported: files of examples do not record {', '.join(own)}."
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
        writer = pq.ParquetWriter(file, stream.schema(header.dtypes), **_WRITER)
        try:
            blocks = _blocks(dataset, export, images, encoding, rows)
            for split, entries in progress.shown(blocks, f"Writing {path.name}", total):
                table = stream.table_of(entries, split)
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
            fingerprint = stream.fingerprint_of(*kind, *astuple(encoding), of_all)
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
