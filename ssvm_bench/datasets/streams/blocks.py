"""Examples as they lie in a Parquet file: one row each, with bytes in its cells.

In memory, rows of the file are a `Block` of `Ragged` arrays, one for each column. It is compact:
labels and features become what kernels read only when a `Dataset` is made of it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

SPLIT = "split"
"""Column that says whether an example is to train on, or held out."""

OF_PARTS = {"y", "x", "columns", "nonzeros", "bits", "edges"}
"""Columns with any number of entries an example; the others have one."""


class WrongRowsError(Exception):
    """Rows do not fit together; the message says what is wrong, from the number of the example."""


class Ragged(NamedTuple):
    """An array of which each example owns some entries: ``values[ends[i]:ends[i + 1]]``."""

    values: np.ndarray
    ends: np.ndarray

    def part(self, begin: int, end: int) -> Ragged:
        """Return what some examples own."""
        first, last = self.ends[begin], self.ends[end]
        return Ragged(self.values[first:last], self.ends[begin : end + 1] - first)


Block = Mapping[str, Ragged]
"""Column → its entries, of the same examples; ends of a number an example are 0, 1, 2 …"""


def size(block: Block) -> int:
    """Return the number of examples."""
    return block["y"].ends.size - 1


def part(block: Block, begin: int, end: int) -> Block:
    """Return some of the examples."""
    return {name: ragged.part(begin, end) for name, ragged in block.items()}


def joined(blocks: Sequence[Block]) -> Block:
    """Return the examples of several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    return {
        name: Ragged(
            np.concatenate([block[name].values for block in blocks]),
            ends_of(np.concatenate([np.diff(block[name].ends) for block in blocks])),
        )
        for name in blocks[0]
    }


def ends_of(lengths: np.ndarray) -> np.ndarray:
    """Return 0 and the sums of the first lengths, the first two, and so on."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


class Digest:
    """Of the entries of any number of blocks: the same however the examples are cut into blocks."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}

    def update(self, block: Block) -> None:
        """Go on with the examples of a block."""
        for name, ragged in block.items():
            for kind, array in ((ragged.values.dtype.str, ragged.values), ("ends", ragged.ends)):
                digest = self._digests.setdefault(f"{name} {kind}", hashlib.sha256())
                lengths = np.diff(array).astype("<i8") if kind == "ends" else array
                digest.update(np.ascontiguousarray(lengths).data)

    def hexdigest(self) -> str:
        """Return 32 hexadecimal digits."""
        lines = [f"{name} {of.hexdigest()}\n" for name, of in sorted(self._digests.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:32]


def seal(block: Block) -> int:
    """Return the CRC-32 of one block: what is damaged is to be told, and quickly."""
    found = 0
    for name, (values, ends) in sorted(block.items()):
        found = zlib.crc32(f"{name} {values.dtype.str}".encode(), found)
        for array in (np.diff(ends).astype("<i8", copy=False), values):
            found = zlib.crc32(np.ascontiguousarray(array).data, found)
    return found


def cells(block: Block, split: str) -> dict[str, pa.Array]:
    """Return the columns of a block in the file."""
    import pyarrow as pa

    n = size(block)
    found = {SPLIT: pa.array(np.repeat(split, n), pa.string())}
    for name, (values, ends) in block.items():
        if name in OF_PARTS:
            offsets = (ends * values.itemsize).astype(np.int32)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
            found[name] = pa.Array.from_buffers(pa.binary(), n, buffers)
        else:
            found[name] = pa.array(values)
    return found


def block_from(table: pa.Table, dtypes: Mapping[str, str]) -> Block:
    """Return the examples of a table of the file.

    Parameters
    ----------
    table : pa.Table
        Columns of the file.
    dtypes : mapping
        Column → type of an entry, for those to take.

    Raises
    ------
    WrongRowsError
        A cell is empty, or ends inside an entry.
    """
    import pyarrow as pa

    block, n = {}, table.num_rows
    for name, dtype in dtypes.items():
        chunks = table.column(name).chunks
        column = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        if column.null_count:
            raise WrongRowsError(f"an example has no {name}")
        if name not in OF_PARTS:
            block[name] = Ragged(column.to_numpy(), np.arange(n + 1))
            continue
        _, offsets, content = column.buffers()
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + n + 1]
        ends = ends.astype(np.int64)
        itemsize = np.dtype(dtype).itemsize
        if (np.diff(ends) % itemsize).any():
            raise WrongRowsError(f"an entry of {name} is cut short")
        whole = np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]]
        block[name] = Ragged(whole.view(dtype), (ends - ends[0]) // itemsize)
    return block
