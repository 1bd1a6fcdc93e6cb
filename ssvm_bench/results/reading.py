"""Reading what a run has left, and telling whether it is what was written (`results.trace`)."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import checks
from ssvm_bench.results.files import reason_of
from ssvm_bench.results.run_folder import PARTIAL
from ssvm_bench.results.trace import (
    CHECKSUMS_KEY,
    COLUMNS,
    CONFIG,
    FORMAT,
    METADATA_KEY,
    NAMES,
    SUMMARY,
    TRACE,
    UNFINISHED,
    WEIGHTS,
    Trace,
)

if TYPE_CHECKING:
    from ssvm_bench.datasets.vocabulary import Vocabulary

NOT_AS_WRITTEN = "it is not what was written (checksum)"
WHAT_TO_DO = " Delete that folder and run again, or run it again with force=true."


def is_finished(folder: Path) -> bool:
    """Tell whether a folder holds a finished run: its four files, and a stop reason of one.

    Whether they are what was written, `read_run` finds out.
    """
    if folder.name.startswith(".") or folder.name.endswith(PARTIAL):
        return False
    try:
        if not all((folder / name).is_file() for name in (TRACE, CONFIG, WEIGHTS)):
            return False
        return read_summary(folder)["stop_reason"] not in UNFINISHED
    except (OSError, RunFailedError):
        return False


def find_runs(results_dir: Path, dataset: str = "*", solver: str = "*") -> list[Path]:
    """Return the folders of the finished runs below a results folder, sorted."""
    folders = results_dir.glob(f"runs/{dataset}/{solver}/*/seed=*")
    return sorted(folder for folder in folders if is_finished(folder))


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a run without reading its rows. Raises as `read_trace` does."""
    with _reading(folder, TRACE) as content:
        metadata = _header(pq.read_schema(pa.BufferReader(content)))
        checks.check(metadata, checks.METADATA)
        return metadata


def read_summary(folder: Path) -> dict[str, Any]:
    """Return what ``summary.json`` holds. Raises as `read_trace` does."""
    with _reading(folder, SUMMARY) as content:
        summary = checks.document(content)
        checks.check_summary(summary)
        return summary


def read_weights(folder: Path) -> tuple[np.ndarray, int]:
    """Return w of a finished run, and after how many iterations. Raises as `read_trace` does."""
    summary = read_summary(folder)
    with _reading(folder, WEIGHTS) as content, np.load(io.BytesIO(content)) as stored:
        w = stored["w"]
        if w.ndim != 1 or w.dtype != np.float64 or not np.isfinite(w).all():
            raise ValueError("it holds no vector of finite numbers")
        return w, int(summary["iteration"])


def read_vocabulary(folder: Path) -> Vocabulary | None:
    """Return what a run calls labels and features, if it does. Raises as `read_trace` does."""
    if not (folder / NAMES).exists():
        return None
    from ssvm_bench.datasets.vocabulary import Vocabulary

    with _reading(folder, NAMES) as content:
        return Vocabulary.read(content)


def read_labels(folder: Path, n: int, n_labels: int) -> tuple[np.ndarray, int]:
    """Return the labels of n points that a finished run of transduction found, as `read_weights`.

    Raises
    ------
    RunFailedError
        As `read_trace` does, or if the run has none.
    """
    summary = read_summary(folder)
    with _reading(folder, WEIGHTS) as content, np.load(io.BytesIO(content)) as stored:
        y = stored["y"] if "y" in stored else np.zeros(0)
        if y.shape != (n,) or y.dtype != np.uint8 or y.max() >= n_labels:
            raise ValueError(f"it holds no labels of {n} points")
        return y, int(summary["iteration"])


def read_trace(folder: Path) -> Trace:
    """Read a run; also a partial one, if its folder is named.

    Raises
    ------
    RunFailedError
        If a file is missing, cut short, from another format version, or lacks columns; or is
        not what was written.
    """
    table, metadata = _as_written(folder)
    with _reading(folder, TRACE):
        checks.check(metadata, checks.METADATA)
    frame = table.replace_schema_metadata(None).to_pandas()
    return Trace(frame, metadata, read_summary(folder), folder)


def read_run(folder: Path) -> Trace:
    """Read a finished run. Raises as `read_trace` does."""
    trace = read_trace(folder)
    with _reading(folder, TRACE):
        checks.check_rows(trace.frame)
    if not is_finished(folder):
        raise cannot_read(folder, "it has not finished, or lacks a file")
    return trace


def damage(folder: Path) -> str:
    """Return why a run's folder is not what was written; nothing if it is, or is not there."""
    if not os.path.lexists(folder):
        return ""
    try:
        _as_written(folder)
        finished = is_finished(folder)
    except RunFailedError as error:
        return str(error).removesuffix(WHAT_TO_DO)
    return "" if finished else f"The run {folder} has not finished, or lacks a file."


def is_whole(folder: Path) -> bool:
    """Tell whether a folder holds a finished run, all of which is as it was written."""
    return is_finished(folder) and not damage(folder)


def _as_written(folder: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return the rows and the metadata of a run whose files agree with their checksums.

    One that goes on replaces its folder every few seconds: files of two folders do not agree, and
    are read again.
    """
    while True:
        before = _identity(folder)
        try:
            return _in_agreement(folder)
        except RunFailedError:
            if _identity(folder) == before:
                raise


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from the one that replaces it; None while there is none."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _in_agreement(folder: Path) -> tuple[pa.Table, dict[str, Any]]:
    with _reading(folder, TRACE) as content:
        table = pq.read_table(pa.BufferReader(content))
        metadata = _header(table.schema)
        found = {field.name: str(field.type).replace("double", "float64") for field in table.schema}
        wrong = [name for name, column in COLUMNS.items() if found.get(name) != column.dtype]
        if wrong:
            raise ValueError(f"it lacks the columns {', '.join(wrong)}, or has another type")
        if table.num_rows == 0:
            raise ValueError("it has no rows")
        sums = json.loads(table.schema.metadata.get(CHECKSUMS_KEY, b"{}"))
        header = table.schema.metadata[METADATA_KEY]
        if sums.pop(TRACE, "") not in ("", checks.table_checksum(table, header)):
            raise ValueError(NOT_AS_WRITTEN)
    for name, checksum in sums.items():
        with _reading(folder, name) as content:
            if hashlib.sha256(content).hexdigest() != checksum:
                raise ValueError(NOT_AS_WRITTEN)
    return table, metadata


def _header(schema: pa.Schema) -> dict[str, Any]:
    """Return the ``ssvm_bench`` metadata of a trace, of this version."""
    content = (schema.metadata or {}).get(METADATA_KEY)
    if content is None:
        raise ValueError(f"it has no '{METADATA_KEY.decode()}' metadata")
    metadata = checks.document(content)
    version = metadata.get("format") if isinstance(metadata, dict) else None
    if version != FORMAT:
        raise ValueError(f"it has format version {version}; this program reads {FORMAT}")
    return metadata


@contextmanager
def _reading(folder: Path, name: str) -> Iterator[bytes]:
    """Read a file of a run, and turn whatever a damaged one makes a reader raise into a message."""
    try:
        yield files.read(folder / name)
    except Exception as error:
        raise cannot_read(folder, f"{name}: {reason_of(error)}") from error


def cannot_read(folder: Path, reason: str) -> RunFailedError:
    """Return the error that says why a run cannot be read, and what to do."""
    return RunFailedError(f"Cannot read the run {folder}: {reason}.{WHAT_TO_DO}")
