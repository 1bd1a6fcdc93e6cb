"""The trace of a run: its schema, the atomic writer and the reader.

A run lives in ``<results_dir>/runs/<dataset>/<solver>/<config hash>/seed=<seed>/``:

========================  ======================================================================
``trace.parquet``         one row per evaluated iteration (``COLUMNS``), metadata ``ssvm_bench``
``config.yaml``           the resolved configuration
``summary.json``          last row, stop reason, best dual and primal, training loss, wall time
``weights.npz``           ``w``, float64[d]
========================  ======================================================================

Atomic: the files are written and synced in a hidden sibling folder, which is then renamed. So a
run folder either does not exist or is complete, whenever the process dies. Siblings of
``seed=0`` that no reader takes for a run:

========================  ======================================================================
``.seed=0.lock``          held by the process that works on this configuration
``.seed=0.tmp-…``         a run being written
``.seed=0.old-…``         a run being replaced
``seed=0.partial``        trace so far of a run that was interrupted or failed
========================  ======================================================================
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from ssvm_bench.errors import RunFailedError

FORMAT = 1
"""Version of the files of a run; a reader refuses any other."""

METADATA_KEY = b"ssvm_bench"
TRACE, CONFIG, SUMMARY, WEIGHTS = "trace.parquet", "config.yaml", "summary.json", "weights.npz"
PARTIAL = ".partial"
UNFINISHED = ("interrupted", "error", "diverged")
"""Stop reasons of a partial trace."""


_GLANCE_SECONDS = 0.5
"""For longer than that, nobody holds a lock who only looks whether it is held."""


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
    _write_folder(folder, files)
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
    _write_folder(partial_folder(folder), files)
    return partial_folder(folder)


def partial_folder(folder: Path) -> Path:
    """Return where the partial trace of a run is kept."""
    return folder.with_name(folder.name + PARTIAL)


@contextmanager
def lock(folder: Path, on_wait: Callable[[str], object] | None = None) -> Iterator[None]:
    """Hold a run's folder for this process, so that the same configuration is run only once.

    Whoever has waited should look again whether the run `is_finished`. Left-overs of writers
    that died are cleared away first.

    Parameters
    ----------
    folder : Path
        The run's folder; its parents are created.
    on_wait : callable, optional
        Called once with a message if another process holds the folder.

    Raises
    ------
    RunFailedError
        If the results folder cannot be written.
    """
    mutex = filelock.FileLock(_lock_file(folder))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            mutex.acquire(timeout=_GLANCE_SECONDS)
        except filelock.Timeout:
            if on_wait is not None:
                on_wait(f"Another process works on the same configuration; waiting for {folder}.")
            mutex.acquire()
        _clear_left_overs(folder)
    except OSError as error:
        mutex.release()
        raise _cannot_write(folder, error) from error
    try:
        yield
    finally:
        mutex.release()


def is_locked(folder: Path) -> bool:
    """Tell whether a process works on the configuration of a run's folder."""
    if not _lock_file(folder).exists():
        return False
    mutex = filelock.FileLock(_lock_file(folder))
    try:
        mutex.acquire(blocking=False)
    except filelock.Timeout:
        return True
    except OSError:  # of somebody else, who may be at work or not
        return False
    mutex.release()
    return False


def _lock_file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def _clear_left_overs(folder: Path) -> None:
    """Undo the steps of writers that were killed. Sound only while the lock is held."""
    for kind in ("old", "tmp"):
        for name in (folder.name, folder.name + PARTIAL):
            for stale in folder.parent.glob(f".{name}.{kind}-*"):
                if kind == "old" and not folder.with_name(name).exists():
                    stale.rename(folder.with_name(name))  # killed while replacing this run
                else:
                    shutil.rmtree(stale, ignore_errors=True)


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder of files appear at once, replacing the one that is there."""
    temporary = _sibling(folder, "tmp")
    try:
        temporary.mkdir(parents=True)
        for name, content in files.items():
            with (temporary / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _sync(temporary)
        _publish(temporary, folder)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(temporary: Path, folder: Path) -> None:
    """Rename; a folder cannot be renamed onto a full one, so that one steps aside first."""
    aside: list[Path] = []
    while True:
        try:
            temporary.rename(folder)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        aside.append(_sibling(folder, "old"))
        with suppress(FileNotFoundError):  # another writer may just have moved it
            folder.rename(aside[-1])
    _sync(folder.parent)
    for old in aside:
        shutil.rmtree(old, ignore_errors=True)


def _sibling(folder: Path, kind: str) -> Path:
    return folder.with_name(f".{folder.name}.{kind}-{os.getpid()}-{secrets.token_hex(4)}")


def _sync(folder: Path) -> None:
    """Make the names inside a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(folder: Path, error: OSError) -> RunFailedError:
    return RunFailedError(
        f"Cannot write the run {folder}: {error.strerror or error}. Make room there or make it "
        "writable, or choose another folder with results_dir=…, then run again."
    )


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
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise RunFailedError(
            f"Cannot read the run {folder}: {reason}. "
            "Delete that folder and run again, or run it again with force=true."
        ) from error
