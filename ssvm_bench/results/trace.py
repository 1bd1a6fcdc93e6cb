"""The trace of a run: schema, problem instance and writer; `results.reading` has the reader.

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

import functools
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

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
    import pandas as pd

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

DUAL_OF_AVERAGE = "dual_of_average"
"""A further column: F(φ) of the reported iterate where that is an average of iterates. ``dual`` is
then the larger one of this value and that of the latest iterate."""


@dataclass(frozen=True)
class Trace:
    """One run as read from disk.

    Attributes
    ----------
    frame : DataFrame
        The rows; columns as in ``COLUMNS``, and possibly more.
    metadata : dict
        Configuration, dataset {name, source, n, d, radius, fingerprint}, lam, seed, clock,
        provenance; ``radius`` is what ``Oracle.radius`` returns, null if it is not known. ``hash``
        is `RunConfig.own_hash`; for older runs, the folder's name takes its place.
    summary : dict
        What ``summary.json`` holds.
    folder : Path
        The run's folder.
    """

    frame: pd.DataFrame
    metadata: dict[str, Any]
    summary: dict[str, Any]
    folder: Path

    @functools.cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        return {}

    def values(self, column: str) -> np.ndarray:
        """Return a column of the rows as float64; do not modify it."""
        if column not in self._columns:
            self._columns[column] = self.frame[column].to_numpy(float)
        return self._columns[column]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration."""
        return self.metadata["config"]

    @property
    def solver(self) -> dict[str, Any]:
        """The options of the solver."""
        return self.config["solver"]

    @property
    def seed(self) -> int:
        """The seed."""
        return self.config["seed"]

    @property
    def data(self) -> dict[str, Any]:
        """The metadata of the dataset."""
        return self.metadata["dataset"]

    @property
    def problem(self) -> ProblemInstance:
        """The problem instance."""
        return instance_of(self.metadata)

    @property
    def converged(self) -> bool:
        """Whether it ended because the solver had converged."""
        return self.summary.get("stop_reason") == "converged"

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """The configuration by full names of options; do not modify it."""
        return flatten(self.config)

    @property
    def own_hash(self) -> str:
        """`RunConfig.own_hash` of the run."""
        return self.metadata.get("hash", self.folder.parent.name)

    @property
    def own_folder(self) -> Path:
        """The folder of the run if it shared none with other budgets; identifies the run."""
        return self.folder.parent.with_name(self.own_hash) / self.folder.name

    @property
    def title(self) -> str:
        """Dataset, solver, hash and seed, as in the path of its folder."""
        return "/".join(self.folder.parts[-4:])

    @property
    def is_truncated(self) -> bool:
        """Whether it is the beginning of a longer run, whose files are in the folder."""
        return "cut_from" in self.metadata


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return options, also those of sections, by their full names."""
    flat = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def dual_of_reported(trace: Trace) -> np.ndarray:
    """Return F(φ) of the reported iterates, also where these are averages, shape (rows,)."""
    return trace.values(DUAL_OF_AVERAGE if DUAL_OF_AVERAGE in trace.frame else "dual")


# ---- problem instances: what two runs must have in common for their values to be comparable ----


class ProblemInstance(NamedTuple):
    """The fingerprint of the data, followed by details of the objective; and its λ or ν.

    These details are the fixed latent values (after ``@``) and, after a space, the prior of w, the
    kernel, or the name of the objective in a family with several.
    """

    fingerprint: str
    lam: float


INSTANCE_COLUMNS = ("dataset", "source", "n", "lam", "fingerprint")
"""Columns that describe a problem instance in a table."""


class Best(NamedTuple):
    """The lowest primal and the highest dual value seen on a problem instance."""

    primal: float
    dual: float


BestValues: TypeAlias = Mapping[ProblemInstance, Best]
"""As `ssvm_bench.results.optima.reference` returns them."""


def instance_of(metadata: Mapping[str, Any]) -> ProblemInstance:
    """Return the problem instance of a run."""
    latent = f"@{metadata['latent']}" if metadata.get("latent") else ""
    named = metadata.get("prior") or metadata.get("objective")
    parts = f"{metadata['dataset']['fingerprint']}{latent}", str(named or "")
    return ProblemInstance(" ".join(filter(None, parts)), float(metadata["lam"]))


def named_in(fingerprint: str) -> str:
    """Return the details of the objective in a problem instance's fingerprint; mostly empty.

    >>> named_in("5f0c N(0, 4)"), named_in("5f0c softmax, linear"), named_in("5f0c")
    ('prior N(0, 4)', 'softmax, linear', '')
    """
    named = fingerprint.partition(" ")[2]
    return f"prior {named}" if named.startswith("N(") else named


def weight_in(fingerprint: str) -> str:
    """Return the letter of the regulariser's weight: ν if the objective has a name, else λ."""
    named = named_in(fingerprint)
    return "ν" if named and not named.startswith(("prior", "kernel")) else "λ"


def columns_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of ``INSTANCE_COLUMNS`` for the problem instance of a run."""
    data, instance = metadata["dataset"], instance_of(metadata)
    values = data["name"], data["source"], data["n"], instance.lam, instance.fingerprint
    return dict(zip(INSTANCE_COLUMNS, values, strict=True))


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
