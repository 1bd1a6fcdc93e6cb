"""Traces that no run has made, and runs that were changed with their checksums."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ssvm_bench.results import checks
from ssvm_bench.results.table import Run
from ssvm_bench.results.trace import CHECKSUMS_KEY, COLUMNS, METADATA_KEY, TRACE


def make_trace(
    primal,
    dual,
    *,
    iteration=None,
    oracle_calls=None,
    time=None,
    solver="bcfw",
    seed=0,
    source="real",
    lam=0.5,
    columns=None,
    dataset=None,
    config=None,
    **meta,
):
    """Return a run that saw the given values; it has some columns and metadata of its own."""
    count = len(primal)
    frame = pd.DataFrame({name: np.zeros(count, column.dtype) for name, column in COLUMNS.items()})
    frame["iteration"] = np.arange(count) if iteration is None else iteration
    frame["oracle_calls"] = frame["iteration"] if oracle_calls is None else oracle_calls
    frame["time"] = np.arange(count, dtype=float) if time is None else time
    frame["cpu_time"] = frame["time"]
    frame["primal"], frame["dual"] = primal, dual
    frame["gap"] = frame["primal"] - frame["dual"]
    for name, values in (columns or {}).items():
        frame[name] = values
    options = meta.pop("options", {})
    data = {"name": "toy", "source": source, "n": 2, "d": 1, "fingerprint": f"f-{source}"}
    metadata = {
        "config": {"solver": {"name": solver, **options}, "seed": seed, "lam": None}
        | (config or {}),
        "dataset": data | (dataset or {}),
        "lam": lam,
        "clock": "wall",
        **meta,
    }
    folder = Path(f"runs/toy/{solver}/hash/seed={seed}")
    return Run(columns_of(frame), metadata, {"stop_reason": "max_iterations"}, folder)


def columns_of(frame):
    """Return the columns of a frame, as a run has them."""
    return {str(name): frame[name].to_numpy() for name in frame}


def set_columns(run, at=slice(None), **values):
    """Change columns of a run that no file has, at all rows or some."""
    for name, column in values.items():
        made = np.array(run.columns.get(name, np.zeros(len(run))), float)
        made[at] = column
        run.columns[name] = made
    for cached in ("_values", "frame", "has_dual"):
        run.__dict__.pop(cached, None)


def sealed(folder, changed):
    """Change files of a run, name → content, and the checksums in its trace with them."""
    table = pq.read_table(pa.BufferReader((folder / TRACE).read_bytes()))
    sums = json.loads(table.schema.metadata[CHECKSUMS_KEY])
    for name, content in changed.items():
        (folder / name).write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    about = {**table.schema.metadata, CHECKSUMS_KEY: json.dumps(sums).encode()}
    pq.write_table(table.replace_schema_metadata(about), folder / TRACE)


def with_metadata(folder, change):
    """Change the metadata of a run by a function, and the checksum of its trace with them."""
    table = pq.read_table(pa.BufferReader((folder / TRACE).read_bytes()))
    about = dict(table.schema.metadata)
    header = about[METADATA_KEY] = json.dumps(change(json.loads(about[METADATA_KEY]))).encode()
    sums = {**json.loads(about[CHECKSUMS_KEY]), TRACE: checks.table_checksum(table, header)}
    about[CHECKSUMS_KEY] = json.dumps(sums).encode()
    pq.write_table(table.replace_schema_metadata(about), folder / TRACE)


def spoilt(array, rng):
    """Return an array in which something is another value, or which has another shape or type."""
    kind = rng.integers(9)
    if kind == 0 or not array.size:
        return array[:-1].copy()
    if kind == 1:
        return np.concatenate((array, array[-1:]))
    if kind == 8:
        return array.astype(rng.choice(["int64", "float64", "uint8", "float32", "bool"]))
    found = array.copy()
    flat = found.reshape(-1)
    at = rng.integers(flat.size, size=min(flat.size, int(rng.integers(1, 4))))
    if kind == 2:
        flat[at] = flat[rng.integers(flat.size)]
    elif kind == 3 and array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        flat[at] = rng.choice([info.max, info.min, info.max // 2, info.max - 1])
    elif kind == 3 and array.dtype.kind == "f":
        flat[at] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1.0, 0.0])
    elif kind == 4 and array.dtype.kind in "iu":
        flat[at] += rng.choice([1, -1]).astype(array.dtype)
    else:
        bits = flat.view(np.uint8)
        bits[rng.integers(bits.size)] ^= np.uint8(1 << rng.integers(8))
    return found
