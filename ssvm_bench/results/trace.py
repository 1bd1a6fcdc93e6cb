"""The trace of a run: schema and writer; `results.reading` has the reader.

A run's files are in ``<results_dir>/runs/<dataset>/<solver>/<config hash>/seed=<seed>/``, a
folder that appears at once (:mod:`ssvm_bench.results.run_folder`):

========================  ======================================================================
``trace.parquet``         one row per evaluated iteration (``COLUMNS``), metadata ``ssvm_bench``
``config.yaml``           the resolved configuration
``summary.json``          last row, stop reason, best dual and primal, mean losses, wall time
``weights.npz``           ``w``, float64[d]; of transduction also ``y``, the labels; with a kernel
                          the features of the support (`ssvm_bench.oracles.kernels.SUPPORT`)
``names.json.gz``         names of labels and features, where the data have names
``checkpoint``            the state to resume from (:mod:`ssvm_bench.results.checkpoint_file`);
                          of finished runs, if that is requested
========================  ======================================================================
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from ssvm_bench.base import files
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.config.schema import plain_values
from ssvm_bench.results import checks
from ssvm_bench.results.checkpoint_file import NAME as CHECKPOINT
from ssvm_bench.results.run_folder import (
    CONFIG,
    NAMES,
    OWN,
    SUMMARY,
    TRACE,
    TRACEBACK,
    WEIGHTS,
    Content,
    partial_folder,
    write_folder,
)

if TYPE_CHECKING:
    from ssvm_bench.datasets.vocabulary import Vocabulary

FORMAT = 1
"""Version of the files of a run; a reader refuses any other."""

METADATA_KEY = b"ssvm_bench"
CHECKSUMS_KEY = b"ssvm_bench_checksums"
UNFINISHED = ("interrupted", "error", "diverged")
"""Stop reasons of a partial trace."""


class Column(NamedTuple):
    """Type and meaning of one column of the trace."""

    dtype: str
    unit: str
    meaning: str


COLUMNS: dict[str, Column] = {
    "iteration": Column("int64", "", "outer iterations done; batch methods: oracle passes"),
    "oracle_calls": Column("int64", "", "exact oracle calls that the solver made"),
    "approx_calls": Column("int64", "", "working-set oracle calls"),
    "time": Column("float64", "s", "solver time on the run's clock, without evaluation"),
    "oracle_time": Column("float64", "s", "the part of time spent inside the exact oracle"),
    "cpu_time": Column("float64", "s", "CPU time of the solver, whatever the clock"),
    "eval_time": Column("float64", "s", "time spent evaluating so far; not in time"),
    "primal": Column("float64", "", "P(w) of the reported iterate"),
    "dual": Column("float64", "", "best lower bound at hand; NaN where there is no dual"),
    "gap": Column("float64", "", "primal − dual"),
    "working_set_mean": Column("float64", "", "mean number of cached planes per term"),
    "approx_passes": Column("int64", "", "approximate passes in this iteration"),
    "w_norm": Column("float64", "", "‖w‖₂ of the reported iterate"),
}
"""The columns of every trace, in order. A trace may have further columns (float64) after these."""


# ---- writing ----------------------------------------------------------------------------------


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Return rows as columns, with NaN where a row lacks a value."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, math.nan) for row in rows]) for name in names}


def write_run(
    folder: Path,
    rows: Sequence[Mapping[str, Any]] | checks.Columns,
    metadata: Mapping[str, Any],
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    weights: np.ndarray | Mapping[str, np.ndarray],
    vocabulary: Vocabulary | None = None,
    with_checkpoint: bool = False,
    partial: Path | None = None,
) -> None:
    """Write the folder of a finished run, all files at once, and remove its partial trace.

    Parameters
    ----------
    folder : Path
        The run's folder; an existing one is replaced.
    rows : sequence of dict, or Columns
        One row per evaluated iteration, with all of ``COLUMNS``.
    metadata, config, summary : dict
        For the parquet metadata, ``config.yaml`` and ``summary.json``. Not-a-number becomes null.
    weights : ndarray, shape (d,), or mapping of str to ndarray
        Weights of the reported iterate: ``w`` alone, or the arrays to store, among them ``w``. A
        `Nonzeros` w is stored as a dense array, compressed.
    vocabulary : Vocabulary, optional
        Names of the dataset's labels and features.
    with_checkpoint : bool
        Whether to keep the checkpoint of the partial trace, which is the state at the end.
    partial : Path, optional
        Folder of the partial trace; by default beside the run's folder.

    Raises
    ------
    RunFailedError
        If the folder cannot be written (disk full, no permission). Nothing is left behind, and
        a run that was there before is unchanged.
    """
    stored = io.BytesIO()
    arrays: dict[str, Any] = {**weights} if isinstance(weights, Mapping) else {"w": weights}
    if isinstance(w := arrays["w"], Nonzeros):
        packed = zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED)
        with packed, packed.open("w.npy", "w", force_zip64=True) as file:
            w.write(file)
    else:
        np.savez(stored, **{**arrays, "w": np.asarray(w, dtype=np.float64)})
    text = yaml.safe_dump(plain_values(config), sort_keys=False, allow_unicode=True)
    summed = checks.json_bytes(plain_values(summary))
    beside = {CONFIG: text.encode(), WEIGHTS: stored.getvalue(), SUMMARY: summed}
    if vocabulary is not None:
        beside[NAMES] = vocabulary.dumped()
    begun = partial or partial_folder(folder)
    content: dict[str, Content] = {TRACE: _parquet(rows, metadata, beside), **beside}
    if with_checkpoint:
        content[CHECKPOINT] = begun / CHECKPOINT
    write_folder(folder, content)
    files.remove(begun, OWN)


def write_partial(
    folder: Path,
    rows: Sequence[Mapping[str, Any]] | checks.Columns,
    metadata: Mapping[str, Any],
    summary: Mapping[str, Any],
    traceback: str | None = None,
    checkpoint: Content | None = None,
) -> Path:
    """Write what an interrupted or failed run has measured so far, beside its folder.

    Parameters
    ----------
    folder : Path
        The folder that the finished run would have had; it is not touched.
    rows, metadata, summary
        As for `write_run`; ``summary["stop_reason"]`` is one of ``UNFINISHED``.
    traceback : str, optional
        Traceback of the exception; stored as ``traceback.txt``.
    checkpoint : callable, optional
        Writes the state to resume from to a file; None: the last checkpoint stays.

    Returns
    -------
    Path
        The folder written, ``<folder>.partial``.

    Raises
    ------
    RunFailedError
        As for `write_run`.
    """
    if summary.get("stop_reason") not in UNFINISHED:
        raise ValueError(f"a partial trace has stop_reason in {UNFINISHED}")
    beside = {SUMMARY: checks.json_bytes(plain_values(summary))}
    if traceback is not None:
        beside[TRACEBACK] = traceback.encode(errors="backslashreplace")
    # quickly, because runs wait for it
    trace = _parquet(rows, metadata, beside, use_dictionary=False, compression="none")
    place = partial_folder(folder)
    state = place / CHECKPOINT if checkpoint is None else checkpoint
    write_folder(place, {TRACE: trace, **beside, CHECKPOINT: state})
    return place


def _parquet(
    rows: Sequence[Mapping[str, Any]] | checks.Columns,
    metadata: Mapping[str, Any],
    beside: Mapping[str, bytes],
    **how: Any,
) -> bytes:
    """Return the bytes of ``trace.parquet``, with checksums of it and of the files beside it."""
    columns = as_columns(rows) if isinstance(rows, Sequence) else rows
    if not len(columns):
        columns = dict.fromkeys(COLUMNS, np.zeros(0))
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise ValueError(f"trace rows lack the columns {', '.join(missing)}")
    types = {name: column.dtype for name, column in COLUMNS.items()}
    types |= {str(name): "float64" for name in columns if name not in COLUMNS}
    values = {name: np.ascontiguousarray(columns[name], of) for name, of in types.items()}
    table = pa.table({name: _array(each) for name, each in values.items()})
    header = json.dumps({"format": FORMAT, **plain_values(metadata)}, allow_nan=False).encode()
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in beside.items()}
    sums[TRACE] = checks.table_checksum(table, header)
    about = {METADATA_KEY: header, CHECKSUMS_KEY: json.dumps(sums).encode()}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(about), buffer, **how)
    return buffer.getvalue()


def _array(values: np.ndarray) -> pa.Array:
    """Return numbers as an Arrow array; ``pa.array`` would import pandas."""
    of = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(of, values.size, [None, pa.py_buffer(values)])
