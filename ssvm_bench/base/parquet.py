"""How much memory a Parquet file takes, from its metadata, before it is read.

The bytes of a file say little of it: pages are compressed, and where a column has a dictionary, a
row of many bytes takes none. The metadata have it for each column of each row group, a *chunk*:

===============  =================================================================================
numbers          values · bytes of a number, or the bytes of the chunk before compression
texts, bytes     bytes of the chunk before compression, which has 4 for each length. Where the chunk
                 has a dictionary, or values continue others, each may have all bytes of the chunk
===============  =================================================================================

This program writes flat columns of numbers, texts and bytes. All others are refused.

The footer of the file says how large its chunks are. Arrow believes the header that each page has,
so all of these are read, and must agree with the footer. They are structs of Thrift's compact
protocol: a byte per field with its type and its distance from the field before, then its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ssvm_bench.base.errors import shown

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
"""Bytes of a number, by its type in the file; its type in memory is no wider."""

_PLAIN = {0}
"""Encodings of pages by which every text takes its own bytes."""

_BY_DICTIONARY = {*_PLAIN, 2, 8}

_WRITER = "parquet-cpp"
"""For files of some other writers, Arrow reads beyond the end of a chunk."""

_LONGEST_HEADER = 1 << 16
"""Bytes of a page's header at most: it may have the least and the greatest value of the page."""

_DICTIONARY = 2
_ABOUT = {0: (5, 2), _DICTIONARY: (7, 2), 3: (8, 4)}
"""Kind of a page → the field of its header that describes it, and that field's own field of the
encoding; the number of values is its first."""

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, 12
"""Thrift's types of the fields of a header; it has no others."""


def sizes(file: pq.ParquetFile, content: BinaryIO, group: int) -> dict[str, int]:
    """Return column → how many bytes a row group takes in memory at most.

    Columns that are read as dictionaries (``read_dictionary``) take an index for each value.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
    content : file
        What it reads.
    group : int

    Raises
    ------
    ValueError
        A column is of another kind, its metadata and pages contradict each other, or the file is of
        another writer.
    """
    if not file.metadata.created_by.startswith(_WRITER):
        raise ValueError(f"it was written by {shown(file.metadata.created_by)}, not this program")
    about, found = file.metadata.row_group(group), {}
    for k, field in enumerate(file.schema_arrow):
        kind = _kind(field.type)
        if kind is None:
            raise ValueError(f"its column {field.name} holds no numbers or texts, but {field.type}")
        chunk = about.column(k)
        values, stored = about.num_rows, chunk.total_uncompressed_size
        try:
            pages = [*_pages(chunk, content)]
        except (IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the pages of its column {field.name} cannot be read") from error
        of_pages = sum(page.values for page in pages if page.kind != _DICTIONARY)
        if (
            not chunk.num_values == of_pages == values
            or sum(page.stored for page in pages) > stored
            or any(page.values > page.stored for page in pages if page.kind == _DICTIONARY)
        ):
            raise ValueError(f"the sizes of its column {field.name} contradict each other")
        encodings = {page.encoding for page in pages}
        if kind == "number":
            found[field.name] = max(values * _WIDTHS[chunk.physical_type], stored)
        elif encodings <= _PLAIN:
            found[field.name] = stored
        elif kind == "dictionary" and encodings <= _BY_DICTIONARY:
            found[field.name] = 4 * values + stored
        else:
            found[field.name] = values * (4 + stored)
    return found


class _Page(NamedTuple):
    kind: int
    stored: int  # bytes before compression, with those of the header
    values: int
    encoding: int


def _pages(chunk: pq.ColumnChunkMetaData, content: BinaryIO) -> Iterator[_Page]:
    """Yield what the headers of a chunk's pages say; raise some exception if they are none."""
    begin = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    end = begin + chunk.total_compressed_size
    while begin < end:
        content.seek(begin)
        header, size = _struct(content.read(min(_LONGEST_HEADER, end - begin)), 0)
        kind, unpacked, packed = (header[k] for k in (1, 2, 3))
        field, of_encoding = _ABOUT[kind]
        values, encoding = header[field][1], header[field][of_encoding]
        begin += size + packed
        if min(unpacked, packed, values) < 0 or begin > end:
            raise ValueError("a page ends beyond its chunk, or has a negative size")
        yield _Page(kind, size + unpacked, values, encoding)


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by their numbers, and where it ends."""
    found, number = {}, 0
    while head := data[at]:
        at, kind = at + 1, head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        value: Any = None
        if kind in _INTEGERS:
            value, at = _integer(data, at)
        elif kind == _STRUCT:
            value, at = _struct(data, at)
        elif kind == _BINARY:
            length, at = _unsigned(data, at)
            at += length
        elif kind in (_BYTE, _DOUBLE):
            at += 1 if kind == _BYTE else 8
        elif kind not in (_TRUE, _FALSE):
            raise ValueError("a header has no such type")
        found[number] = value
    return found, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer whose sign is its last bit, and where it ends."""
    value, at = _unsigned(data, at)
    return value >> 1 ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of seven bits per byte, the last ones first, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise ValueError("an integer is too long")


def _kind(of: pa.DataType) -> str | None:
    from pyarrow import types

    if types.is_dictionary(of):
        return "dictionary" if types.is_string(of.value_type) else None
    if types.is_string(of) or types.is_binary(of):
        return "text"
    is_number = types.is_integer(of) or types.is_float32(of) or types.is_float64(of)
    return "number" if is_number else None
