"""How much memory a Parquet file takes, from its metadata, before it is read.

The bytes of a file say little of it: pages are compressed, and where a column has a dictionary, a
row of many bytes takes none. The metadata tell it for each column of each row group, a *chunk*:

===============  =================================================================================
numbers          values · bytes of a number
texts, bytes     bytes of the chunk before compression, which has 4 for each length. Where the chunk
                 has a dictionary, or values continue others, each may have all bytes of the chunk
===============  =================================================================================

This program writes flat columns of numbers, texts and bytes. All others are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
"""Bytes of a number, by its type in the file; its type in memory is no wider."""

_EACH_BY_ITSELF = {"PLAIN", "RLE", "BIT_PACKED"}
"""Encodings by which every text takes its own bytes."""

_BY_DICTIONARY = {*_EACH_BY_ITSELF, "PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def sizes(file: pq.ParquetFile, group: int) -> dict[str, int]:
    """Return column → how many bytes a row group takes in memory at most.

    Columns that are read as dictionaries (``read_dictionary``) take an index for each value.

    Raises
    ------
    ValueError
        A column is of another kind, or its metadata contradict each other.
    """
    about, found = file.metadata.row_group(group), {}
    for k, field in enumerate(file.schema_arrow):
        kind = _kind(field.type)
        if kind is None:
            raise ValueError(f"its column {field.name} holds no numbers or texts, but {field.type}")
        chunk = about.column(k)
        values, stored, encodings = about.num_rows, chunk.total_uncompressed_size, chunk.encodings
        if chunk.num_values != values or min(values, stored, chunk.total_compressed_size) < 0:
            raise ValueError(f"the sizes of its column {field.name} contradict each other")
        if kind == "number":
            found[field.name] = values * _WIDTHS[chunk.physical_type]
        elif _EACH_BY_ITSELF.issuperset(encodings):
            found[field.name] = stored
        elif kind == "dictionary" and _BY_DICTIONARY.issuperset(encodings):
            found[field.name] = 4 * values + stored
        else:
            found[field.name] = values * (4 + stored)
    return found


def _kind(of: pa.DataType) -> str | None:
    from pyarrow import types

    if types.is_dictionary(of):
        return "dictionary" if types.is_string(of.value_type) else None
    if types.is_string(of) or types.is_binary(of):
        return "text"
    is_number = types.is_integer(of) or types.is_float32(of) or types.is_float64(of)
    return "number" if is_number else None
