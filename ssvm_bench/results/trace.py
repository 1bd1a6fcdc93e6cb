"""The trace of a run and the files beside it: schema, writers and readers.

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

Every reader checks the whole folder: if a file disagrees with the checksums in the trace, none is
used. A file without a checksum was added later, and is refused. Traces of earlier versions have no
checksums. Types and ranges are checked in all folders (:mod:`ssvm_bench.results.checks`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import yaml

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.config.schema import plain_values
from ssvm_bench.results import checks
from ssvm_bench.results.checkpoint_file import NAME as CHECKPOINT
from ssvm_bench.results.run_folder import (
    CONFIG,
    NAMES,
    OWN,
    PARTIAL,
    SUMMARY,
    TRACE,
    TRACEBACK,
    WEIGHTS,
    Content,
    partial_folder,
    recover,
    results_of,
    write_folder,
)
from ssvm_bench.results.table import LazyColumns, Run

if TYPE_CHECKING:
    from ssvm_bench.datasets.vocabulary import Vocabulary

Read = TypeVar("Read")

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
        an earlier run is unchanged.
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
    import pyarrow.parquet as pq  # which a fit does without

    columns = as_columns(rows) if isinstance(rows, Sequence) else rows
    if not len(columns):
        columns = dict.fromkeys(COLUMNS, np.zeros(0))
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise ValueError(f"trace rows lack the columns {', '.join(missing)}")
    types = {name: column.dtype for name, column in COLUMNS.items()}
    types |= {str(name): "float64" for name in columns if name not in COLUMNS}
    values = {name: np.ascontiguousarray(columns[name], of) for name, of in types.items()}
    table = pa.table({name: _arrow(each) for name, each in values.items()})
    header = json.dumps({"format": FORMAT, **plain_values(metadata)}, allow_nan=False).encode()
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in beside.items()}
    sums[TRACE] = checks.table_checksum(table, header)
    about = {METADATA_KEY: header, CHECKSUMS_KEY: json.dumps(sums).encode()}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(about), buffer, **how)
    return buffer.getvalue()


def _arrow(values: np.ndarray) -> pa.Array:
    """Return numbers as an Arrow array; ``pa.array`` would import pandas."""
    of = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(of, values.size, [None, pa.py_buffer(values)])


# ---- reading ----------------------------------------------------------------------------------

NOT_AS_WRITTEN = "it is not what was written (checksum)"
WHAT_TO_DO = " Delete that folder and run again, or run it again with force=true."

_BESIDE = (CONFIG, SUMMARY, WEIGHTS, NAMES, TRACEBACK)
"""Files that a run can have beside its trace, which contains their checksums."""


class Written(NamedTuple):
    """A run whose files are what was written.

    Attributes
    ----------
    folder : Path
    table : pyarrow.Table
        Its rows.
    metadata : dict
    files : dict
        Name of a file → its content.
    """

    folder: Path
    table: pa.Table
    metadata: dict[str, Any]
    files: dict[str, bytes]

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns of its rows."""
        return {name: checks.column_of(self.table[name]) for name in self.table.column_names}

    @property
    def summary(self) -> dict[str, Any]:
        """What ``summary.json`` holds."""
        with self._parsing(SUMMARY) as content:
            return _summary(content)

    @property
    def weights(self) -> tuple[np.ndarray, int]:
        """The weights w, and after how many iterations."""
        with self._parsing(WEIGHTS) as content:
            w = _array(content, "w", self._arrays_there)
            if w.ndim != 1 or w.dtype != np.float64 or not np.isfinite(w).all():
                raise ValueError("it holds no vector of finite numbers")
        return w, self._iteration

    def support(self, f: int) -> Any | None:
        """Return the features of the parts that a kernel's w is a sum over; None if not stored.

        Parameters
        ----------
        f : int
            Number of features of a part.

        Returns
        -------
        ndarray of numbers or csr_array, shape (parts, f), or None
        """
        from ssvm_bench.datasets.arrays import LARGEST, REAL, array, csr
        from ssvm_bench.oracles.kernels import SUPPORT

        with self._parsing(WEIGHTS) as content:
            dense, *of_csr = SUPPORT
            found = _arrays(content, SUPPORT, self._arrays_there)
            if not found:
                return None
            if found.keys() == {dense}:
                return array(found[dense], dense, REAL, (None, f), -LARGEST)
            if found.keys() != set(of_csr):
                raise ValueError(f"it has {', '.join(found)} of {dense}, or {', '.join(of_csr)}")
            x = csr({name.removeprefix(f"{dense}_"): found[name] for name in of_csr}, f)
            array(x.data, of_csr[0], REAL, (None,), -LARGEST)
            x.sum_duplicates()
            return x

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The names of labels and features, if the run has them."""
        if NAMES not in self.files:
            return None
        from ssvm_bench.datasets.vocabulary import Vocabulary

        with self._parsing(NAMES) as content:
            return Vocabulary.read(content, f"The names in {self.folder / NAMES}")

    def labels(self, n: int, n_labels: int) -> tuple[np.ndarray, int]:
        """Return the labels of n points from transduction, and after how many iterations."""
        with self._parsing(WEIGHTS) as content:
            y = _array(content, "y", self._arrays_there)
            if y.shape != (n,) or y.dtype != np.uint8 or y.max() >= n_labels:
                raise ValueError(f"it holds no labels of {n} points")
        return y, self._iteration

    @property
    def _arrays_there(self) -> str:
        return f"The arrays in {self.folder / WEIGHTS}"

    @property
    def _iteration(self) -> int:
        with _refused(self.folder, SUMMARY):
            checks.check(summary := self.summary, {"iteration": checks.WHOLE})
            return int(summary["iteration"])

    @contextmanager
    def _parsing(self, name: str) -> Iterator[bytes]:
        with _refused(self.folder, name):
            yield self.files[name]


def is_finished(folder: Path) -> bool:
    """Tell whether a folder holds a finished run: its four files, and a final stop reason.

    Whether they are what was written is checked by `read_run`.
    """
    if folder.name.startswith(".") or folder.name.endswith(PARTIAL):
        return False
    try:
        if not all((folder / name).is_file() for name in (TRACE, CONFIG, WEIGHTS)):
            return False
        content = files.read(folder / SUMMARY, within=results_of(folder))
        return _summary(content)["stop_reason"] not in UNFINISHED
    except (OSError, ValueError):
        return False


def find_runs(results_dir: Path, dataset: str = "*", solver: str = "*") -> list[Path]:
    """Return the folders of the finished runs below a results folder, sorted."""
    recover(results_dir, f"runs/{dataset}/{solver}/*/")
    folders = results_dir.glob(f"runs/{dataset}/{solver}/*/seed=*")
    return sorted(folder for folder in folders if is_finished(folder))


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a run. Raises as `read_trace` does."""
    return read(folder).metadata


def read_summary(folder: Path) -> dict[str, Any]:
    """Return what ``summary.json`` holds. Raises as `read_trace` does."""
    return read(folder).summary


def read_weights(folder: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """Return w of a finished run, and its summary. Raises as `read_trace` does."""
    found = read(folder)
    return found.weights[0], found.summary


def read_labels(folder: Path, n: int, n_labels: int) -> tuple[np.ndarray, int]:
    """Return the labels of n points from a finished transduction, and after how many iterations.

    Raises
    ------
    RunFailedError
        As `read_trace` does, or if the run has none.
    """
    return read(folder).labels(n, n_labels)


def read_trace(folder: Path) -> Run:
    """Read a run; or a partial trace, if that is the folder's content.

    Raises
    ------
    RunFailedError
        If a file is missing, cut short, from another format version, or lacks columns; or is
        not what was written.
    """
    found = read(folder)
    about = found.metadata, found.summary, found.folder
    return Run(found.columns, *about, read_weights=read_weights)


def read_run(folder: Path) -> Run:
    """Read a finished run. Raises as `read_trace` does."""
    run = read_trace(folder)
    with _refused(folder, TRACE):
        checks.check_rows(run.columns)
    if not is_finished(folder):
        raise cannot_read(folder, "it has not finished, or lacks a file")
    return run


def read_when_asked(folder: Path) -> Run:
    """Return a finished run whose columns are read, and all of its files checked, on demand.

    Metadata and summary are read now. Raises as `read_trace` does, now or on demand, and on demand
    if the run was replaced meanwhile.
    """
    metadata, summary, names = _of_one_folder(folder, _in_brief)

    @cache
    def whole() -> Mapping[str, np.ndarray]:
        run = read_run(folder)
        if (run.metadata, run.end) != (metadata, summary):
            raise RunFailedError(
                f"The run {folder} was replaced since it was loaded. Load it again."
            )
        return run.columns

    columns = LazyColumns(names, lambda name: whole()[name])
    return Run(columns, metadata, summary, folder, read_weights=read_weights)


def _in_brief(folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return metadata and summary of a run, and the names of its columns."""
    with _refused(folder, TRACE):
        about = checks.schema_of(files.read(folder / TRACE, within=results_of(folder)))
        checks.check(metadata := _header(about), checks.METADATA)
        sums = _checksums(about)
    with _refused(folder, SUMMARY):
        content = files.read(folder / SUMMARY, within=results_of(folder))
        if sums and hashlib.sha256(content).hexdigest() != sums.get(SUMMARY):
            raise ValueError(NOT_AS_WRITTEN)
        return metadata, _summary(content), about.names


def damage(folder: Path) -> str:
    """Return why a run's folder is not what was written; empty if it is, or does not exist."""
    if not os.path.lexists(folder):
        return ""
    try:
        read_run(folder)
    except RunFailedError as error:
        return str(error).removesuffix(WHAT_TO_DO)
    return ""


def is_whole(folder: Path) -> bool:
    """Tell whether a folder holds a finished run that is what was written."""
    return is_finished(folder) and not damage(folder)


def remove_superseded(folder: Path) -> None:
    """Remove the partial trace of a run that has finished since; call only while it is locked."""
    if is_superseded(folder):
        files.remove(partial_folder(folder), OWN)


def is_superseded(folder: Path) -> bool:
    """Tell whether a run's partial trace is the beginning of the finished one.

    A partial trace that goes further belongs to an extension, one that began later to a forced run,
    and one of an error has a traceback to keep.
    """
    partial = partial_folder(folder)
    if not partial.is_dir() or not is_finished(folder):
        return False
    if not (partial / TRACE).exists():  # left by a removal
        return True
    try:
        begun, whole = read_trace(partial), read_trace(folder)
    except RunFailedError:
        return False
    (end, start), (last, first) = (
        (trace["iteration"][-1], trace.metadata.get("started") or "") for trace in (begun, whole)
    )
    return begun.stop_reason == "interrupted" and end <= last and start <= first


def read(folder: Path) -> Written:
    """Return a run, finished or not, whose files agree with their checksums.

    The run may be another person's, so no link in its results folder is followed.

    Raises
    ------
    RunFailedError
        As `read_trace`.
    """
    return _of_one_folder(folder, _in_agreement)


def _of_one_folder(folder: Path, read_files: Callable[[Path], Read]) -> Read:
    """Return what is read from a folder, again if it was replaced meanwhile.

    A run at work replaces its folder every few seconds. Files of two such folders do not agree.
    """
    while True:
        before = _identity(folder)
        try:
            return read_files(folder)
        except RunFailedError:
            if _identity(folder) == before:
                raise


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what distinguishes a folder from its replacement; None while there is no folder."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _in_agreement(folder: Path) -> Written:
    root = results_of(folder)
    with _refused(folder, TRACE):
        content = {TRACE: files.read(folder / TRACE, within=root)}
        table = checks.table_of(content[TRACE], f"The table in {folder / TRACE}")
        metadata = _header(table.schema)
        found = {field.name: str(field.type).replace("double", "float64") for field in table.schema}
        wrong = [name for name, column in COLUMNS.items() if found.get(name) != column.dtype]
        if wrong:
            raise ValueError(f"it lacks the columns {', '.join(wrong)}, or has another type")
        if table.num_rows == 0:
            raise ValueError("it has no rows")
        sums = _checksums(table.schema)
        header = table.schema.metadata[METADATA_KEY]
        if sums.get(TRACE, "") not in ("", checks.table_checksum(table, header)):
            raise ValueError(NOT_AS_WRITTEN)
        checks.check(metadata, checks.METADATA)
    for name in _BESIDE:
        if name in sums or os.path.lexists(folder / name):
            with _refused(folder, name):
                content[name] = files.read(folder / name, within=root)
                if sums and name not in sums:
                    raise ValueError("the run was written without it")
                if sums and hashlib.sha256(content[name]).hexdigest() != sums[name]:
                    raise ValueError(NOT_AS_WRITTEN)
    return Written(folder, table, metadata, content)


def _checksums(of: pa.Schema) -> dict[str, str]:
    """Return name → checksum of the files of a run; empty for runs of earlier versions."""
    sums: dict[str, str] = checks.document(of.metadata.get(CHECKSUMS_KEY, b"{}"))
    checks.check(sums, checks.TEXTS, "its list of checksums")
    if unknown := [name for name in sums if name not in (TRACE, *_BESIDE)]:
        raise ValueError(f"it has a checksum of {shown(unknown[0])}, which no run has")
    return sums


def _summary(content: bytes) -> dict[str, Any]:
    summary: dict[str, Any] = checks.document(content)
    checks.check_summary(summary)
    return summary


def _array(content: bytes, name: str, what: str) -> np.ndarray:
    """Return an array of an ``.npz``. Raises as `_arrays` does."""
    found = _arrays(content, (name,), what)
    if not found:
        raise ValueError(f"it has no array {name}")
    return found[name]


def _arrays(content: bytes, names: Collection[str], what: str) -> dict[str, np.ndarray]:
    """Return the named arrays that an ``.npz`` has; raise ``ValueError`` if it is too large.

    If memory has no room for it, raise ``RunFailedError``; its message begins with ``what``.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        size = sum(member.file_size for member in stored.zip.infolist())
        if size > files.LARGEST:
            raise ValueError(f"it has more than {files.LARGEST} bytes, unpacked")
        check_room(2.0 * size, what, "Free memory, or delete that folder and run again.")
        return {name: np.asarray(stored[name]) for name in names if name in stored.files}


def _header(of: pa.Schema) -> dict[str, Any]:
    """Return the ``ssvm_bench`` metadata of a trace; raise unless they have this version."""
    content = (of.metadata or {}).get(METADATA_KEY)
    if content is None:
        raise ValueError(f"it has no '{METADATA_KEY.decode()}' metadata")
    metadata = checks.document(content)
    version = metadata.get("format") if isinstance(metadata, dict) else None
    if version != FORMAT:
        raise ValueError(f"it has format version {version}; this program reads {FORMAT}")
    return metadata


@contextmanager
def _refused(folder: Path, name: str) -> Iterator[None]:
    """Turn any exception that a damaged file raises in the block into one with a message."""
    try:
        yield
    except RunFailedError:
        raise
    except Exception as error:
        raise cannot_read(folder, f"{name}: {reason_of(error)}") from error


def cannot_read(folder: Path, reason: str) -> RunFailedError:
    """Return the error that says why a run cannot be read, and what to do."""
    return RunFailedError(f"Cannot read the run {folder}: {reason}.{WHAT_TO_DO}")


def reason_of(error: Exception) -> str:
    """Return the message of an error as one short line without a full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = f"no {text}" if isinstance(error, KeyError) else text
    return shown((text.splitlines() or [type(error).__name__])[0].rstrip("."), 120)
