"""The trace of a run: its schema, its writer and its reader.

A run lives in ``<results_dir>/runs/<dataset>/<solver>/<config hash>/seed=<seed>/``, a folder that
appears at once (:mod:`ssvm_bench.results.run_folder`):

========================  ======================================================================
``trace.parquet``         one row per evaluated iteration (``COLUMNS``), metadata ``ssvm_bench``
``config.yaml``           the resolved configuration
``summary.json``          last row, stop reason, best dual and primal, mean losses, wall time
``weights.npz``           ``w``, float64[d]
========================  ======================================================================
"""

from __future__ import annotations

import io
import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from ssvm_bench.errors import RunFailedError
from ssvm_bench.results.files import reason_of
from ssvm_bench.results.run_folder import PARTIAL, partial_folder, write_folder

FORMAT = 1
"""Version of the files of a run; a reader refuses any other."""

METADATA_KEY = b"ssvm_bench"
TRACE, CONFIG, SUMMARY, WEIGHTS = "trace.parquet", "config.yaml", "summary.json", "weights.npz"
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
    "dual": Column("float64", "", "F(φ) of the reported iterate; NaN where there is no dual"),
    "gap": Column("float64", "", "primal − dual"),
    "working_set_mean": Column("float64", "", "mean number of cached planes per term"),
    "approx_passes": Column("int64", "", "approximate passes in this iteration"),
    "w_norm": Column("float64", "", "‖w‖₂ of the reported iterate"),
}
"""The columns of every trace, in order. A trace may have more of them (float64) behind these."""


@dataclass(frozen=True)
class Trace:
    """One run as read from disk.

    Attributes
    ----------
    frame : DataFrame
        The rows; columns as in ``COLUMNS``, and possibly more.
    metadata : dict
        Configuration, dataset {name, source, n, d, fingerprint}, lam, seed, clock, provenance.
    summary : dict
        What ``summary.json`` holds.
    folder : Path
        The run's folder.
    """

    frame: pd.DataFrame
    metadata: dict[str, Any]
    summary: dict[str, Any]
    folder: Path


# ---- writing ----------------------------------------------------------------------------------


def write_run(
    folder: Path,
    rows: Sequence[Mapping[str, Any]] | pd.DataFrame,
    metadata: Mapping[str, Any],
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    w: np.ndarray,
) -> None:
    """Write the folder of a finished run, all files at once, and remove its partial trace.

    Parameters
    ----------
    folder : Path
        The run's folder; an existing one is replaced.
    rows : sequence of dict, or DataFrame
        One row per evaluated iteration, with all of ``COLUMNS``.
    metadata, config, summary : dict
        For the parquet metadata, ``config.yaml`` and ``summary.json``. Not-a-number becomes null.
    w : ndarray, shape (d,)
        Weights of the reported iterate.

    Raises
    ------
    RunFailedError
        If the folder cannot be written (disk full, no permission). Nothing is left behind, and
        a run that stood there before still stands.
    """
    weights = io.BytesIO()
    np.savez(weights, w=np.asarray(w, dtype=np.float64))
    text = yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)
    files = {
        TRACE: _parquet(rows, metadata),
        CONFIG: text.encode(),
        WEIGHTS: weights.getvalue(),
        SUMMARY: _json(summary),
    }
    write_folder(folder, files)
    shutil.rmtree(partial_folder(folder), ignore_errors=True)


def write_partial(
    folder: Path,
    rows: Sequence[Mapping[str, Any]] | pd.DataFrame,
    metadata: Mapping[str, Any],
    summary: Mapping[str, Any],
    traceback: str | None = None,
) -> Path:
    """Write what an interrupted or failed run has measured so far, beside its folder.

    Parameters
    ----------
    folder : Path
        The folder that the finished run would have had; it is not touched.
    rows, metadata, summary
        As for `write_run`; ``summary["stop_reason"]`` is one of ``UNFINISHED``.
    traceback : str, optional
        What was raised; kept as ``traceback.txt``.

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
    files = {TRACE: _parquet(rows, metadata), SUMMARY: _json(summary)}
    if traceback is not None:
        files["traceback.txt"] = traceback.encode()
    write_folder(partial_folder(folder), files)
    return partial_folder(folder)


def _parquet(
    rows: Sequence[Mapping[str, Any]] | pd.DataFrame, metadata: Mapping[str, Any]
) -> bytes:
    """Return the bytes of ``trace.parquet``."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if frame.empty:
        frame = pd.DataFrame(columns=list(COLUMNS))
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ValueError(f"trace rows lack the columns {', '.join(missing)}")
    names = [*COLUMNS, *(str(name) for name in frame.columns if name not in COLUMNS)]
    arrays = [
        pa.array(frame[name].to_numpy(COLUMNS[name].dtype if name in COLUMNS else "float64"))
        for name in names
    ]
    header = json.dumps({"format": FORMAT, **_plain(metadata)}, allow_nan=False)
    schema = pa.schema(
        [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)],
        metadata={METADATA_KEY: header.encode()},
    )
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), buffer)
    return buffer.getvalue()


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(_plain(value), indent=2, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    """Return the value in plain JSON types; not-a-number and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


# ---- reading ----------------------------------------------------------------------------------


def is_finished(folder: Path) -> bool:
    """Tell whether a folder holds a finished run: its four files, and a stop reason of one."""
    if folder.name.startswith(".") or folder.name.endswith(PARTIAL):
        return False
    if not all((folder / name).is_file() for name in (TRACE, CONFIG, WEIGHTS)):
        return False
    try:
        summary = json.loads((folder / SUMMARY).read_bytes())
        return summary["stop_reason"] not in UNFINISHED
    except (OSError, ValueError, KeyError, TypeError):
        return False


def find_runs(results_dir: Path, dataset: str = "*", solver: str = "*") -> list[Path]:
    """Return the folders of the finished runs below a results folder, sorted."""
    folders = results_dir.glob(f"runs/{dataset}/{solver}/*/seed=*")
    return sorted(folder for folder in folders if is_finished(folder))


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a run without reading its rows. Raises as `read_trace` does."""
    with _reading(folder):
        return _header(pq.read_schema(folder / TRACE))


def read_summary(folder: Path) -> dict[str, Any]:
    """Return what ``summary.json`` holds. Raises as `read_trace` does."""
    with _reading(folder):
        summary = json.loads((folder / SUMMARY).read_bytes())
        if not isinstance(summary, dict):
            raise ValueError(f"{SUMMARY} is not a mapping")
        return summary


def read_weights(folder: Path) -> tuple[np.ndarray, int]:
    """Return w of a finished run, and after how many iterations. Raises as `read_trace` does."""
    iteration = int(read_summary(folder)["iteration"])
    with _reading(folder), np.load(folder / WEIGHTS) as stored:
        return stored["w"], iteration


def read_trace(folder: Path) -> Trace:
    """Read a run; also a partial one, if its folder is named.

    Raises
    ------
    RunFailedError
        If a file is missing, cut short, from another format version, or lacks columns.
    """
    with _reading(folder):
        table = pq.read_table(folder / TRACE)
        metadata = _header(table.schema)
        found = {field.name: str(field.type).replace("double", "float64") for field in table.schema}
        wrong = [name for name, column in COLUMNS.items() if found.get(name) != column.dtype]
        if wrong:
            raise ValueError(f"{TRACE} lacks the columns {', '.join(wrong)}, or has another type")
        if table.num_rows == 0:
            raise ValueError(f"{TRACE} has no rows")
        return Trace(table.to_pandas(), metadata, read_summary(folder), folder)


def _header(schema: pa.Schema) -> dict[str, Any]:
    """Return the checked ``ssvm_bench`` metadata of a trace."""
    content = (schema.metadata or {}).get(METADATA_KEY)
    if content is None:
        raise ValueError(f"{TRACE} has no '{METADATA_KEY.decode()}' metadata")
    metadata = json.loads(content)
    version = metadata.get("format") if isinstance(metadata, dict) else None
    if version != FORMAT:
        raise ValueError(f"{TRACE} has format version {version}; this program reads {FORMAT}")
    return metadata


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn whatever a damaged file raises into one message."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunFailedError(
            f"Cannot read the run {folder}: {reason_of(error)}. "
            "Delete that folder and run again, or run it again with force=true."
        ) from error
