"""Checks of results when they are read, before anything uses them.

A kill never leaves half a file, but disks and people do change files. So written files carry
checksums: a JSON document its own; a trace those of its rows and of the other files of its run
(`trace`). Files of earlier versions, which have none, are read as well. Types and ranges are
checked in all cases: all that looks at a `Run` relies on them.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ssvm_bench.base.memory import check_room
from ssvm_bench.base.parquet import sizes

if TYPE_CHECKING:  # runs do without pandas: importing it takes time and memory
    import pandas as pd

Columns: TypeAlias = "Mapping[str, np.ndarray] | pd.DataFrame"
"""The rows of a trace: name → one number per row."""

LARGEST_TABLE = 1 << 28
"""No table of results takes more bytes: that is a trace of two million rows."""

_COPIES = 3
"""How often a table is in memory while it is checked and turned into a `Run`."""

_PARSED = 35
"""How many bytes a byte of JSON takes in memory at most: nested empty lists do."""

_LARGEST_DOCUMENT = 1 << 20
"""No run has more bytes of JSON in one place."""

_LARGEST_COLLECTION = 1 << 24
"""No document of many runs has more bytes."""

_DEEPEST = 20
_LARGEST = 1 << 63
_LARGEST_NUMBER = 1e300  # differences of two are finite

_FINITE = ("time", "oracle_time", "cpu_time", "eval_time", "oracle_calls", "primal", "dual", "gap")
_OR_NONE = ("oracle_time", "dual", "gap")
"""Columns whose numbers are finite, and those of them that may have none, NaN."""

CHECKSUM = "sha256"
"""Key of a document's checksum within the document."""


# ---- documents --------------------------------------------------------------------------------


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a JSON document with its checksum."""
    return json_bytes({**content, CHECKSUM: _checksum(content)})


def opened(data: bytes) -> dict[str, Any]:
    """Return the content of a JSON document, without its checksum if it has one.

    Raises
    ------
    ValueError
        If it is no JSON document, or not the one that was written.
    """
    content = document(data, _LARGEST_COLLECTION)
    if not isinstance(content, dict):
        raise ValueError("it is not a mapping")
    checksum = content.pop(CHECKSUM, None)
    if checksum not in (None, _checksum(content)):
        raise ValueError("it is not what was written (checksum)")
    return content


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Return a JSON document."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def document(data: bytes | str, most: int = _LARGEST_DOCUMENT) -> Any:
    """Return the content of a JSON document; raise ``ValueError`` if it is not standard JSON.

    One of more than ``most`` bytes is refused unparsed: its content would take many times as many.
    """
    if len(data) > most:
        raise ValueError(f"it has {len(data) / 1e6:.1f} MB of JSON, far more than its kind has")
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_plain(value, _DEEPEST)
    return value


def _check_plain(value: Any, levels: int) -> None:
    if levels < 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            _check_plain(item, levels - 1)
        value = "".join(value) if isinstance(value, dict) else ""
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is no text
    elif isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError("it has an integer that is too large")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it has a number that is too large, or none")


# ---- tables -----------------------------------------------------------------------------------


def table_of(content: bytes, what: str, texts: Collection[str] = ()) -> pa.Table:
    """Return the table in a Parquet file, read by this thread alone.

    If a process ends just after Arrow has started threads, they abort it.

    Parameters
    ----------
    content : bytes
    what : str
        Its name in the message.
    texts : collection of str
        The columns of JSON; the others are of numbers, without gaps.

    Raises
    ------
    RunFailedError
        It does not fit into memory.
    ValueError
        It is larger than any table of results, or has other columns.
    """
    import pyarrow.parquet as pq  # which a fit does without

    # of a text that many rows share, each row has an index only, until the size is known
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=list(texts))
    groups, stored = range(file.num_row_groups), io.BytesIO(content)
    columns = [column for k in groups for column in sizes(file, stored, k).items()]
    _check_size(sum(size * (_PARSED if name in texts else 1) for name, size in columns), what)
    table = file.read(use_threads=False)
    for k, field in enumerate(table.schema):
        is_text = field.name in texts
        kinds = [pa.types.is_dictionary] if is_text else [pa.types.is_integer, pa.types.is_floating]
        if not any(of(field.type) for of in kinds):
            raise ValueError(f"its column {field.name} is of {field.type}")
        if table[k].null_count:
            raise ValueError(f"its column {field.name} has gaps")
        if is_text:
            numbers, found = coded(table[k])
            counts = np.bincount(numbers, minlength=len(found)).tolist()
            _check_size(sum(map(mul, counts, map(len, found))), what)
            table = table.set_column(k, field.name, table[k].cast(pa.string()))
    return table


def schema_of(content: bytes) -> pa.Schema:
    """Return the names and types of the columns in a Parquet file, and its metadata."""
    import pyarrow.parquet as pq

    return pq.read_schema(pa.BufferReader(content))


def column_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of numbers without gaps; ``to_numpy`` would import pandas."""
    return np.from_dlpack(column.combine_chunks())


def _check_size(needed: int, what: str) -> None:
    """Raise an error unless a table may have so many bytes, and memory has them."""
    if needed > LARGEST_TABLE:
        raise ValueError(f"it would take about {needed / 1e6:.0f} MB, far more than its kind has")
    check_room(_COPIES * needed, what, "Leave it out, or free memory.")


def table_checksum(table: pa.Table, *more: bytes) -> str:
    """Return the checksum of a table's columns, however they are stored, and of ``more``."""
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type):  # as a JSON list; each distinct text is encoded once
            numbers, texts = coded(column)
            written = [json.dumps(text) for text in texts]
            content = f"[{', '.join(written[k] for k in numbers)}]".encode()
        elif str(column.type) in ("int64", "float", "double") and not column.null_count:
            content = column_of(column).tobytes()
        else:
            content = column.to_numpy().tobytes()
        digest.update(f"{name} {column.type} {len(content)}\n".encode() + content)
    for content in more:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def coded(column: pa.ChunkedArray) -> tuple[np.ndarray, list[Any]]:
    """Return a column of texts as indices, and the distinct texts in order of appearance."""
    found = column.combine_chunks()
    if not pa.types.is_dictionary(found.type):
        found = found.dictionary_encode("encode")
    return found.indices.to_numpy(), found.dictionary.to_pylist()


def check_rows(rows: Columns) -> None:
    """Raise ``ValueError`` unless the rows can be those of a finished run."""
    iteration = np.asarray(rows["iteration"], float)
    if not (iteration[0] >= 0 and (np.diff(iteration) >= 0).all()):
        raise ValueError("its iterations do not rise")
    for name in _FINITE:
        values = np.abs(np.asarray(rows[name], float))
        no_value = np.isnan(values) & (name in _OR_NONE)
        if not ((values <= _LARGEST_NUMBER) | no_value).all():
            raise ValueError(f"its {name} is not finite everywhere, or too large")


# ---- types and ranges -------------------------------------------------------------------------


class Value(NamedTuple):
    """A condition on a value: in words, and as a test."""

    what: str
    holds: Callable[[Any], bool]


Shape: TypeAlias = "Value | Mapping[str, Shape]"
"""For a mapping: key → shape. A key may be missing or null if it ends with ``?``, missing if with
``~``."""


def _is_moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= _LARGEST_NUMBER


TEXT = Value("a text", lambda value: isinstance(value, str) and len(value) <= 1000)
NAME = Value("a name", lambda value: TEXT.holds(value) and bool(value.strip()))
WHOLE = Value("an integer", lambda value: type(value) is int)
COUNT = Value("a positive integer", lambda value: type(value) is int and value > 0)
NUMBER = Value("a number", _is_number)
POSITIVE = Value("a positive number", lambda value: _is_number(value) and value > 0)
COST = Value("a number of at least 0", lambda value: _is_number(value) and value >= 0)
FLAG = Value("true or false", lambda value: isinstance(value, bool))
HASH = Value(
    "a hash", lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{12}", value))
)
CODE = Value("a version or a digest", lambda value: WHOLE.holds(value) or TEXT.holds(value))
MOMENT = Value("a date", _is_moment)
MAPPING = Value("a mapping", lambda value: isinstance(value, dict))
MAPPINGS = Value(
    "a list of mappings",
    lambda value: isinstance(value, list) and all(map(MAPPING.holds, value)),
)
TEXTS = Value(
    "a mapping of texts",
    lambda value: isinstance(value, dict) and all(map(TEXT.holds, value.values())),
)
LIST = Value("a list", lambda value: isinstance(value, list))

CONFIG: Shape = {
    "solver": {"name": NAME, "kind~": TEXT},
    "seed": WHOLE,
    "dataset~": dict.fromkeys(("name~", "kind~", "source~"), TEXT),
    "oracle~": {
        **dict.fromkeys(("name~", "kind~"), TEXT),
        **dict.fromkeys(("cost_call~", "cost_plane~", "cost_visit~", "delay~"), COST),
    },
    "parallel~": dict.fromkeys(("workers~", "batch~"), COUNT),
    "path~": LIST,
    **dict.fromkeys(("budget~", "eval~", "prior~", "checkpoint~"), MAPPING),
}
"""The options of a run: those of every solver, dataset and oracle, as far as they are used."""

METADATA: Shape = {
    "config": CONFIG,
    "dataset": {
        **dict.fromkeys(("name", "source", "fingerprint"), NAME),
        **dict.fromkeys(("n", "d"), COUNT),
        "radius?": COST,
    },
    "lam": POSITIVE,
    "concurrent_runs~": WHOLE,
    "started?": MOMENT,
    "git_dirty?": FLAG,
    "cores?": WHOLE,
    "hash~": HASH,
    "code~": dict.fromkeys(("oracle~", "solver~"), CODE),
    "cut_from~": {"iteration": WHOLE, "stop_reason": TEXT},
    "resumed~": MAPPINGS,
    **dict.fromkeys(("versions~", "threads~", "plug_ins~"), TEXTS),
    **dict.fromkeys(("clock~", "node~", "engine~"), TEXT),
    **dict.fromkeys(("prior?", "objective?", "latent?", "git?", "cpu?", "system?"), TEXT),
}
"""The metadata of a run, as far as they are used."""

SUMMARY: Shape = {
    "stop_reason": TEXT,
    "source~": TEXT,
    "iteration~": NUMBER,
    "converged_at~": WHOLE,
    **dict.fromkeys(("gap?", "best_primal?", "best_dual?", "wall_time?"), NUMBER),
}

_RECORD: Shape = {"value": NUMBER, "exact?": FLAG}
INSTANCE: Shape = {
    **dict.fromkeys(("dataset", "source", "fingerprint"), TEXT),
    "n": COUNT,
    "lam": POSITIVE,
    **dict.fromkeys(("best_primal?", "best_dual?"), _RECORD),
}
"""An entry of ``optima.json``."""


def check(value: Any, shape: Shape, where: str = "") -> None:
    """Raise ``ValueError``, which says where, unless a value has a shape."""
    if isinstance(shape, Value):
        if not shape.holds(value):
            raise ValueError(f"{where} is not {shape.what}")
        return
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'it'} is not a mapping")
    for key, inner in shape.items():
        name = key.rstrip("?~")
        place = f"{where}.{name}" if where else name
        if value.get(name) is not None or (name in value and key[-1] != "?"):
            check(value[name], inner, place)
        elif name == key:
            raise ValueError(f"it has no {place}")


def check_summary(summary: Any) -> None:
    """Raise ``ValueError`` unless it can be what ``summary.json`` holds."""
    check(summary, SUMMARY)
    check(summary, {f"{key}?": NUMBER for key in summary if key.endswith("_loss")})
