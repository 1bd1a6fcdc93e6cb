"""Reads the files of a run, and checks that they are what was written (`results.trace`).

Every reader checks the whole folder: if a file disagrees with the checksums in the trace, none is
used. A file without a checksum was added later, and is refused. Traces of earlier versions have no
checksums. Types and ranges are checked in all folders.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.results import checks
from ssvm_bench.results import trace as schema
from ssvm_bench.results.run_folder import OWN, PARTIAL, partial_folder, recover, results_of
from ssvm_bench.results.table import LazyColumns, Run

if TYPE_CHECKING:
    from ssvm_bench.datasets.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

SHOWN = 4
"""Number of damaged runs and files that have a message of their own."""

NOT_AS_WRITTEN = "it is not what was written (checksum)"
WHAT_TO_DO = " Delete that folder and run again, or run it again with force=true."

_BESIDE = (schema.CONFIG, schema.SUMMARY, schema.WEIGHTS, schema.NAMES, schema.TRACEBACK)
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
        with self._parsing(schema.SUMMARY) as content:
            return _summary(content)

    @property
    def weights(self) -> tuple[np.ndarray, int]:
        """The weights w, and after how many iterations."""
        with self._parsing(schema.WEIGHTS) as content:
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

        with self._parsing(schema.WEIGHTS) as content:
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
        if schema.NAMES not in self.files:
            return None
        from ssvm_bench.datasets.vocabulary import Vocabulary

        with self._parsing(schema.NAMES) as content:
            return Vocabulary.read(content, f"The names in {self.folder / schema.NAMES}")

    def labels(self, n: int, n_labels: int) -> tuple[np.ndarray, int]:
        """Return the labels of n points from transduction, and after how many iterations."""
        with self._parsing(schema.WEIGHTS) as content:
            y = _array(content, "y", self._arrays_there)
            if y.shape != (n,) or y.dtype != np.uint8 or y.max() >= n_labels:
                raise ValueError(f"it holds no labels of {n} points")
        return y, self._iteration

    @property
    def _arrays_there(self) -> str:
        return f"The arrays in {self.folder / schema.WEIGHTS}"

    @property
    def _iteration(self) -> int:
        with _refused(self.folder, schema.SUMMARY):
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
        if not all(
            (folder / name).is_file() for name in (schema.TRACE, schema.CONFIG, schema.WEIGHTS)
        ):
            return False
        content = files.read(folder / schema.SUMMARY, within=results_of(folder))
        return _summary(content)["stop_reason"] not in schema.UNFINISHED
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


def read_weights(folder: Path) -> tuple[np.ndarray, int]:
    """Return w of a finished run, and after how many iterations. Raises as `read_trace` does."""
    return read(folder).weights


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
    return Run(found.columns, found.metadata, found.summary, found.folder)


def read_run(folder: Path) -> Run:
    """Read a finished run. Raises as `read_trace` does."""
    run = read_trace(folder)
    with _refused(folder, schema.TRACE):
        checks.check_rows(run.columns)
    if not is_finished(folder):
        raise cannot_read(folder, "it has not finished, or lacks a file")
    return run


def read_when_asked(folder: Path) -> Run:
    """Return a finished run whose columns are read, and all of its files checked, on demand.

    Metadata and summary are read now. Raises as `read_trace` does, now or on demand.
    """
    with _refused(folder, schema.TRACE):
        about = checks.schema_of(files.read(folder / schema.TRACE, within=results_of(folder)))
        checks.check(metadata := _header(about), checks.METADATA)
        sums = _checksums(about)
    with _refused(folder, schema.SUMMARY):
        content = files.read(folder / schema.SUMMARY, within=results_of(folder))
        if sums and hashlib.sha256(content).hexdigest() != sums.get(schema.SUMMARY):
            raise ValueError(NOT_AS_WRITTEN)
        summary = _summary(content)
    whole = cache(lambda: read_run(folder).columns)
    return Run(LazyColumns(about.names, lambda name: whole()[name]), metadata, summary, folder)


def damage(folder: Path) -> str:
    """Return why a run's folder is not what was written; empty if it is, or does not exist."""
    if not os.path.lexists(folder):
        return ""
    try:
        read(folder)
        finished = is_finished(folder)
    except RunFailedError as error:
        return str(error).removesuffix(WHAT_TO_DO)
    return "" if finished else f"The run {folder} has not finished, or lacks a file."


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
    if not (partial / schema.TRACE).exists():  # left by a removal
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

    A run at work replaces its folder every few seconds. Files of two such folders do not agree, and
    are read again. The run may be another person's, so no link in its results folder is followed.

    Raises
    ------
    RunFailedError
        As `read_trace`.
    """
    while True:
        before = _identity(folder)
        try:
            return _in_agreement(folder)
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
    with _refused(folder, schema.TRACE):
        content = {schema.TRACE: files.read(folder / schema.TRACE, within=root)}
        table = checks.table_of(content[schema.TRACE], f"The table in {folder / schema.TRACE}")
        metadata = _header(table.schema)
        found = {field.name: str(field.type).replace("double", "float64") for field in table.schema}
        wrong = [name for name, column in schema.COLUMNS.items() if found.get(name) != column.dtype]
        if wrong:
            raise ValueError(f"it lacks the columns {', '.join(wrong)}, or has another type")
        if table.num_rows == 0:
            raise ValueError("it has no rows")
        sums = _checksums(table.schema)
        header = table.schema.metadata[schema.METADATA_KEY]
        if sums.get(schema.TRACE, "") not in ("", checks.table_checksum(table, header)):
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
    sums: dict[str, str] = checks.document(of.metadata.get(schema.CHECKSUMS_KEY, b"{}"))
    checks.check(sums, checks.TEXTS, "its list of checksums")
    if unknown := [name for name in sums if name not in (schema.TRACE, *_BESIDE)]:
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
    content = (of.metadata or {}).get(schema.METADATA_KEY)
    if content is None:
        raise ValueError(f"it has no '{schema.METADATA_KEY.decode()}' metadata")
    metadata = checks.document(content)
    version = metadata.get("format") if isinstance(metadata, dict) else None
    if version != schema.FORMAT:
        raise ValueError(f"it has format version {version}; this program reads {schema.FORMAT}")
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


class SkippedFiles:
    """Logs damaged runs and files: a message for each of the first, and one for the rest.

    The last message comes when the ``with`` block ends.

    Attributes
    ----------
    problems : list of str
        Why each cannot be read, without repetition.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, problem: object) -> None:
        """Note what cannot be read, and why."""
        text = str(problem)
        if text not in self.problems:
            self.problems.append(text)
            if len(self.problems) <= SHOWN:
                logger.warning("Passed over: %s", text)

    def __enter__(self) -> SkippedFiles:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Say how many more were skipped."""
        more = len(self.problems) - SHOWN
        if more > 0:
            logger.warning("Passed over: %s more that cannot be read.", more)
