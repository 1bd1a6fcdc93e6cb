"""Stored runs made again, and their curves compared.

Some of the runs whose clock decides nothing are drawn: those of ``clock=work``, and those without
approximate passes. They are made again under ``clock=work``, for as many iterations as took the
stored run `SECONDS`. In the rows that both have, the number of oracle calls has to be the same, and
P and F but for rounding.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ssvm_bench.base.errors import SsvmBenchError
from ssvm_bench.base.random import permutation
from ssvm_bench.results.reading import read_run
from ssvm_bench.results.trace import Trace
from ssvm_bench.runs.runner import run
from ssvm_bench.runs.terminal import Display
from ssvm_bench.verification.data import dataset_of
from ssvm_bench.verification.finding import (
    DIFFERENT,
    SAME,
    SKIPPED,
    Finding,
    Subject,
    config_of,
    title,
)

SECONDS = 20.0
"""Of solver and evaluations, on the machine of the stored run."""

ROUNDING = 1e-6
"""Of P and F, relative to P: sums have another order on another processor."""


def made_again(subject: Subject, count: int, seed: int) -> Iterator[Finding]:
    """Yield of some stored runs, drawn by a seed, whether they are the same when made again.

    What is drawn and cannot be made here is told, and another one drawn in its place.
    """
    traces = [trace for trace in subject.traces if _is_fixed(trace)]
    order = permutation(len(traces), np.random.PCG64(seed))
    done = 0
    for trace in (traces[k] for k in order):
        if done == count:
            return
        found = _again(trace)
        done += found.outcome != SKIPPED
        yield found


def _is_fixed(trace: Trace) -> bool:
    """Tell whether neither the clock, nor a run before, nor others decide what a run does."""
    config = trace.metadata["config"]
    parallel = config.get("parallel", {})
    clockless = trace.metadata["clock"] == "work" or not trace.frame["approx_calls"].any()
    return clockless and not config.get("path") and parallel.get("workers", 1) == 1


def _again(trace: Trace) -> Finding:
    frame = trace.frame
    spent = frame["cpu_time"] + frame["eval_time"]
    last = int(frame["iteration"][spent <= max(SECONDS, float(spent.iloc[0]))].iloc[-1])
    of = f"{title(trace)}, {last} iterations"
    try:
        config = config_of(trace)
        if config.own_hash() != trace.own_hash:
            return Finding(SKIPPED, of, "the program is another since: its CODE_VERSION has risen")
        if dataset_of(config).fingerprint != trace.metadata["dataset"]["fingerprint"]:
            return Finding(SKIPPED, of, "the data here are others")
        with tempfile.TemporaryDirectory(prefix="ssvm-bench-") as folder:
            asked = replace(config.budget, max_iterations=max(last, 1), max_seconds=None, gap_tol=0)
            outcome = run(
                replace(config, clock="work", budget=asked, results_dir=Path(folder), quiet=True),
                Display(),
            )
            again = read_run(outcome.folder).frame
    except SsvmBenchError as error:
        return Finding(SKIPPED, of, str(error))
    why = _unlike(frame[frame["iteration"] <= last], again)
    return Finding(DIFFERENT if why else SAME, of, why)


def _unlike(stored: pd.DataFrame, again: pd.DataFrame) -> str:
    """Return where two traces differ first; nothing if they do not."""
    both = stored.merge(again, on="iteration", suffixes=("", "_again"))
    if len(both) < len(stored):
        return f"it has {len(both)} of the {len(stored)} rows"
    scale = np.maximum(np.abs(both["primal"].to_numpy(float)), 1e-12)
    for name, allowed in (("oracle_calls", 0.0), ("primal", ROUNDING), ("dual", ROUNDING)):
        old, new = (both[key].to_numpy(float) for key in (name, f"{name}_again"))
        wrong = ~((np.abs(old - new) <= allowed * scale) | (np.isnan(old) & np.isnan(new)))
        if wrong.any():
            k = int(np.argmax(wrong))
            iteration = int(both["iteration"].iloc[k])
            return f"{name} {old[k]:.9g} stored, {new[k]:.9g} made again, at iteration {iteration}"
    return ""
