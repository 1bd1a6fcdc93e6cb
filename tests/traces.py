"""Traces that no run has made."""

from pathlib import Path

import numpy as np
import pandas as pd

from ssvm_bench.results.trace import COLUMNS, Trace


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
    **meta,
):
    """Return a run that saw the given values."""
    count = len(primal)
    frame = pd.DataFrame({name: np.zeros(count, column.dtype) for name, column in COLUMNS.items()})
    frame["iteration"] = np.arange(count) if iteration is None else iteration
    frame["oracle_calls"] = frame["iteration"] if oracle_calls is None else oracle_calls
    frame["time"] = np.arange(count, dtype=float) if time is None else time
    frame["cpu_time"] = frame["time"]
    frame["primal"], frame["dual"] = primal, dual
    options = meta.pop("options", {})
    metadata = {
        "config": {"solver": {"name": solver, **options}, "seed": seed, "lam": None},
        "dataset": {"name": "toy", "source": source, "n": 2, "d": 1, "fingerprint": f"f-{source}"},
        "lam": lam,
        "clock": "wall",
        **meta,
    }
    folder = Path(f"runs/toy/{solver}/hash/seed={seed}")
    return Trace(frame, metadata, {"stop_reason": "max_iterations"}, folder)
