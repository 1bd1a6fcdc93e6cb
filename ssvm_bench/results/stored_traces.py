"""Thinned traces, small enough to be kept: ``<results_dir>/traces/<experiment>/``.

Those of runs that overrides chose are in a folder below, named after the overrides.

Raw runs are large and stay on the machine that executed them. What figures, claims and report need
is stored here. There is one parquet file per dataset and solver, and a separate one for synthetic
data. It contains the metadata and summary of every run, and of its rows the first, the last, those
with the best primal and dual, and at most `ROWS` more, evenly spaced in log(iteration + 1). These
iterations depend only on the longest of the repeats, so all repeats keep the same ones.

Primal and dual values, which are subtracted from one another, keep all digits; others keep seven.

A file holds the configurations last written to it, and those drawn together with them. Runs of
other configurations of that dataset and solver are removed; other seeds of the same ones stay.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import ALTERED, LOADED_FROM, shown_as
from ssvm_bench.results import checks
from ssvm_bench.results.folder import ResultsFolder, SkippedFiles, as_folder, write_file
from ssvm_bench.results.table import DUAL_OF_AVERAGE, LazyColumns, Run, grouped
from ssvm_bench.results.trace import COLUMNS, read_weights, reason_of

FORMAT = 1
RUN = "run"
"""Column with all of a run except its rows, as JSON; parquet stores each text once."""

CHECKSUM_KEY = b"ssvm_bench_checksum"
ROWS = 140
"""Largest number of rows kept of a run, besides the four that are always kept."""

EXACT = ("primal", "dual", DUAL_OF_AVERAGE, "primal_after_exact", "dual_after_exact")
DERIVED = "gap"
RESULTS_DIR = "results"  # the default: stored runs name no folder of one machine


def write(
    traces: Sequence[Run],
    results_dir: Path | ResultsFolder,
    name: str,
    skipped: SkippedFiles | None = None,
    stay: Collection[str] = (),
) -> list[Run]:
    """Store the traces of an experiment, thinned; the same traces give the same bytes.

    Parameters
    ----------
    traces : sequence of Run
        Finished runs.
    results_dir, name
        The results folder, and the experiment's name or that of a folder below.
    skipped : SkippedFiles, optional
        Collects existing files that cannot be read; they are left unchanged.
    stay : collection of str
        Own hashes of further configurations whose stored runs stay.

    Returns
    -------
    list of Run
        The same runs, as they are read.

    Raises
    ------
    RunFailedError
        If a file cannot be written; or if an existing one cannot be read, and ``skipped`` is not
        given.
    """
    where = as_folder(results_dir)
    root, made = where.root, where.made
    places = grouped(traces, lambda trace: _folder(made, name) / _file_name(trace))
    stored = {}
    for path, new in sorted(places.items()):
        runs = {_key(trace): trace for trace in new}
        hashes = {*stay, *(trace.own_hash for trace in new)}
        is_whole = True
        try:
            for old in read_file(path, root) if os.path.lexists(path) else ():
                if old.own_hash in hashes:
                    runs.setdefault(_key(old), old)
        except RunFailedError as damaged:
            if skipped is None:
                raise
            skipped.add(damaged)
            is_whole = False
        content = _parquet([runs[key] for key in sorted(runs)])
        if is_whole:
            write_file(path, content, root)
        stored.update({(path, _key(trace)): trace for trace in _traces(content, root)})
    return [stored[_folder(made, name) / _file_name(trace), _key(trace)] for trace in traces]


def encoded(traces: Sequence[Run], name: str) -> dict[Path, bytes]:
    """Return path below a results folder → content, as `write` does into one without files.

    Parameters
    ----------
    traces : sequence of Run
        Finished runs, each once.
    name : str
        As for `write`.
    """
    places = grouped(traces, lambda trace: _folder(Path(), name) / _file_name(trace))
    return {path: _parquet(sorted(of, key=_key)) for path, of in sorted(places.items())}


def files_of(results_dir: Path | ResultsFolder, name: str) -> list[Path]:
    """Return the files of an experiment; of two traces of a run, the first one counts."""
    folders = (_folder(place, name) for place in as_folder(results_dir).stored)
    return [path for folder in folders for path in sorted(folder.glob("*.parquet"))]


def names(results_dir: Path | ResultsFolder) -> list[str]:
    """Return the names under which traces are stored."""
    roots = [place / "traces" for place in as_folder(results_dir).stored]
    some = [of for root in roots for of in ((root, "*/*.parquet"), (root, "*/*/*.parquet"))]
    found = (path.parent.relative_to(root) for root, files in some for path in root.glob(files))
    return sorted({path.as_posix() for path in found})


def read_file(path: Path, results_dir: Path) -> list[Run]:
    """Return the traces in a file; raise ``RunFailedError`` if it is damaged.

    The folder of a trace is where its raw run was, below this results folder; it need not exist.
    """
    try:
        return _traces(files.read(path, within=results_dir), results_dir)
    except Exception as error:  # a reader may raise anything on a damaged file
        raise RunFailedError(
            f"Cannot read the stored traces {path}: {reason_of(error)}. Restore the file, or "
            "delete it and run the experiment again."
        ) from error


def decoded(content: bytes) -> list[Run]:
    """Return the traces in the content of a file, of no results folder; raise as `read_file`."""
    try:
        return _traces(content, Path())
    except Exception as error:  # a reader may raise anything on a damaged file
        raise RunFailedError(f"Cannot read stored traces: {reason_of(error)}.") from error


def thin(traces: Sequence[Run]) -> list[Run]:
    """Return some repeats with the rows to keep only."""
    longest = max((trace["iteration"] for trace in traces), key=len)
    ratio = 1.0 + 1e-3
    while len(longest) > ROWS and len(np.unique(_bins(longest, ratio))) > ROWS:
        ratio *= 1.001
    return [trace.take(_kept(trace, ratio)) for trace in traces]


def _kept(run: Run, ratio: float) -> np.ndarray:
    """Return which rows to keep: the first in each bin, and the special ones."""
    kept = np.zeros(len(run), bool)
    kept[[0, -1]] = True
    kept[np.unique(_bins(run["iteration"], ratio), return_index=True)[1]] = True
    for column, sign in (("primal", 1), ("dual", -1)):
        values = sign * run[column]
        if not np.isnan(values).all():
            kept[np.nanargmin(values)] = True
    return kept


def _bins(iteration: np.ndarray, ratio: float) -> np.ndarray:
    return np.floor(np.log1p(iteration) / np.log(ratio))


# ---- files ------------------------------------------------------------------------------------


def _folder(results_dir: Path, name: str) -> Path:
    return results_dir / "traces" / name


def _file_name(trace: Run) -> str:
    data = trace.data
    solver = trace.solver
    name = f"{data['name']}-{solver}{suffix(data['source'])}.parquet"
    return name.replace(os.sep, "_")


def named(path: Path) -> str:
    """Return ``<dataset>-<solver>`` of a file of stored traces.

    >>> named(Path("traces/quickstart/ocr-bcfw-synthetic.parquet"))
    'ocr-bcfw'
    """
    ends = sorted(map(suffix, LOADED_FROM), key=len, reverse=True)
    return next(path.stem.removesuffix(end) for end in ends if path.stem.endswith(end))


def suffix(source: str) -> str:
    """Return the suffix of names of files that show data of one source only."""
    return {"real": "", ALTERED: "-altered"}.get(shown_as(source), f"-{source}")


def _key(trace: Run) -> tuple[str, int]:
    """Return the sort key of a run within one file: its own hash and its seed."""
    return trace.own_hash, trace.seed


def _parquet(traces: Sequence[Run]) -> bytes:
    """Return the bytes of a file."""
    frames = [
        thinned.frame.drop(columns=DERIVED).assign(run=_run(thinned))
        for group in grouped(traces, lambda trace: trace.own_hash).values()
        for thinned in thin(group)
    ]
    frame = pd.concat(frames, ignore_index=True)
    table = pa.table({str(key): frame[key].to_numpy(_stored_type(str(key))) for key in frame})
    about = {CHECKSUM_KEY: checks.table_checksum(table)}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(about), buffer, compression="zstd")
    return buffer.getvalue()


def _run(trace: Run) -> str:
    """Return all of a run as JSON, except its rows and the path of its results folder."""
    config = dict(trace.config)
    if "results_dir" in config:
        config["results_dir"] = RESULTS_DIR
    content = {
        "format": FORMAT,
        "folder": trace.title,
        "metadata": {**trace.metadata, "config": config},
        "summary": trace.end,
    }
    return json.dumps(content, sort_keys=True)


def _stored_type(column: str) -> str:
    if column == RUN:
        return "object"
    if column in COLUMNS and COLUMNS[column].dtype == "int64":
        return "int64"
    return "float64" if column in EXACT else "float32"


def _traces(content: bytes, results_dir: Path) -> list[Run]:
    """Return the traces in the content of a file; raise an exception if it is damaged."""
    table = checks.table_of(content, "A table of stored traces", (RUN,))
    checksum = (table.schema.metadata or {}).get(CHECKSUM_KEY)
    table = table.replace_schema_metadata(None)
    missing = {RUN, *COLUMNS} - {DERIVED, *table.column_names}
    if missing:
        raise ValueError(f"it lacks the columns {', '.join(sorted(missing))}")
    if checksum not in (None, checks.table_checksum(table).encode()):
        raise ValueError("it is not what was written (checksum)")
    of_run, texts = checks.coded(table[RUN])
    columns = {name: checks.column_of(table[name]) for name in table.column_names if name != RUN}
    columns[DERIVED] = columns["primal"] - columns["dual"]
    types = {name: column.dtype for name, column in COLUMNS.items()}
    further = [name for name in columns if name not in COLUMNS]
    types |= dict.fromkeys(further, "float64")
    columns = {name: columns[name].astype(of) for name, of in types.items()}
    found = []
    for k, text in enumerate(texts):
        rows = np.flatnonzero(of_run == k)
        # runs in one file need not have the same further columns
        gone = {name for name in further if np.isnan(columns[name][rows]).all()}
        names = [name for name in columns if name not in gone]
        of = LazyColumns(names, partial(_part, columns, rows))
        checks.check_rows(of)
        about = checks.document(text)
        if about["format"] != FORMAT:
            raise ValueError(f"format version {about['format']}; this program reads {FORMAT}")
        checks.check(about["metadata"], checks.METADATA)
        checks.check_summary(about["summary"])
        folder = results_dir.joinpath("runs", *PurePosixPath(about["folder"]).parts[-4:])
        facts = about["metadata"], about["summary"], folder
        found.append(Run(of, *facts, read_weights=_weights_of_raw_run))
    return found


def _part(columns: Mapping[str, np.ndarray], rows: np.ndarray, name: str) -> np.ndarray:
    return columns[name][rows]


def _weights_of_raw_run(folder: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """Return what `read_weights` does, if the raw run of a stored trace is there."""
    if not os.path.lexists(folder):
        raise RunFailedError(
            f"Only the trace of {folder} is stored, not its weights. Run it again to have them."
        )
    return read_weights(folder)
