"""Checks that need data: their fingerprints, P at stored weights, and stored runs executed again.

Data that are missing or not prepared are skipped: preparing can take long, and a download longer.

Some runs are drawn to be executed again, of those where the clock decides nothing: with
``clock=work``, or without approximate passes. They run under ``clock=work``, for as many iterations
as the stored run did in `SECONDS`. In the rows that both traces have, the number of oracle calls
must be the same, and P and F must be the same up to rounding.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.base.random import permutation
from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.progress import silence
from ssvm_bench.datasets.sources import has_raw_file, kept_in, raw_file
from ssvm_bench.oracles.objective import STRUCTURAL_SVM
from ssvm_bench.results.reading import read_run, read_weights
from ssvm_bench.results.table import Run, grouped
from ssvm_bench.runs import components
from ssvm_bench.runs.runner import run
from ssvm_bench.runs.terminal import Display
from ssvm_bench.verification.finding import SKIPPED, Finding, Subject, compared, skipped

ROUNDING = 1e-6
"""Relative, of P and F: sums have another order elsewhere, and a prior's root is inverted."""

SECONDS = 20.0
"""Of solver and evaluations of a run that is executed again, on the machine of the stored run."""


def config_of(trace: Run) -> RunConfig:
    """Return the options of a run as the current program reads them, on data of the same source.

    Raises
    ------
    ConfigError, RunFailedError
        If a component or option no longer exists, or an option is not understood.
    """
    options = dict(trace.config)
    try:
        for group in catalog.COMPONENTS:
            options[group] = registry.config(group, options[group])
        config = validation.build(RunConfig, options)
    except KeyError as error:
        raise RunFailedError(f"its options lack {error}") from error
    return config.with_source(trace.source)


def dataset_of(config: RunConfig) -> Any:
    """Return the dataset of a run; raise ``RunFailedError`` if it is missing or not prepared."""
    data = config.dataset
    if has_raw_file(data.kind):
        raw = raw_file(data.kind)
        if config.source != "synthetic" and raw.find() is None:
            raise RunFailedError(f"the data of {data.name} are not here")
        if raw.prepared and kept_in(raw, config.source) is None:
            raise RunFailedError(f"the data of {data.name} are not prepared")
    with silence(True):
        return components.load_dataset(data, components.chunk_rows(config))


def fingerprints(subject: Subject) -> Iterator[Finding]:
    """Yield for each dataset, with its options, whether its fingerprint is that of its runs."""
    named = grouped([*subject.traces, *subject.runs], _of_dataset)
    for (name, source, told, _), traces in sorted(named.items()):
        of = f"{name} ({source}), fingerprint {told}"
        try:
            config = config_of(traces[0])
            found = dataset_of(config).fingerprint
        except SsvmBenchError as error:
            yield skipped(of, error)
            continue
        images = getattr(config.dataset, "pictures", config.dataset.kind)  # scribbles name theirs
        if found != told and has_raw_file(images) and raw_file(images).prepared:
            text = f"the features of {name} are of another version of the program, or of a library"
            yield skipped(of, f"{text}. The pictures here are the genuine ones")
        else:
            yield compared(of, f"that of the data here is {found}" * (found != told))


def _of_dataset(trace: Run) -> tuple[str, str, str, str]:
    data = trace.data
    options = {**trace.config["dataset"], "source": ""}
    return str(data["name"]), str(data["source"]), str(data["fingerprint"]), repr(options)


def weights(subject: Subject) -> Iterator[Finding]:
    """Yield for each run with stored weights whether P at these is P in the last row."""
    for traces in grouped(subject.runs, _of_dataset).values():
        for trace in traces:
            try:
                found = _primal(trace)
            except SsvmBenchError as error:
                yield skipped(trace.title, error)
                continue
            told = float(trace["primal"][-1])
            differs = abs(found - told) > ROUNDING * max(abs(told), 1.0)
            why = f"P = {found:.9g} at the stored weights, {told:.9g} in the trace"
            yield compared(trace.title, why * differs)


def _primal(trace: Run) -> float:
    """Return P at the stored weights of a run."""
    config = config_of(trace)
    if config.oracle.family != STRUCTURAL_SVM:
        raise RunFailedError("P of transduction is not that of its weights alone")
    if trace.metadata.get("latent"):
        raise RunFailedError("the latent values, which P depends on, are not stored")
    dataset = dataset_of(config)
    if dataset.fingerprint != trace.data["fingerprint"]:
        raise RunFailedError("the data here are others")
    if not isinstance(dataset, Dataset):
        terms = components.oracle_of(config.oracle, dataset, components.chunk_rows(config))
    else:
        terms = components.build_oracle(config.oracle, config.dataset).fresh()
    w, _ = read_weights(trace.folder)
    if w.size != terms.d:
        raise RunFailedError(f"there are {w.size} weights, of a problem with {terms.d}")
    prior = components.prior_of(config, terms.d)
    if prior is not None:  # the stored weights are an affine map of the solver's, which P takes
        centred = w - prior.mean
        w = centred / prior.root if prior.root.ndim == 1 else np.linalg.solve(prior.root, centred)
    problem = components.problem_of(terms, float(trace.metadata["lam"]), prior)
    value, _ = problem.measured(w)
    return value


# ---- runs executed again ----------------------------------------------------------------------


def made_again(subject: Subject, count: int, seed: int) -> Iterator[Finding]:
    """Yield for some stored runs, drawn by a seed, whether they are the same if executed again.

    A drawn run that cannot be executed here is skipped with a finding, and another one is drawn.
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


def _is_fixed(trace: Run) -> bool:
    """Return whether a run depends on neither the clock, nor an earlier run, nor other workers."""
    config = trace.config
    parallel = config.get("parallel", {})
    clockless = trace.clock == "work" or not trace.frame["approx_calls"].any()
    return clockless and not config.get("path") and parallel.get("workers", 1) == 1


def _again(trace: Run) -> Finding:
    frame = trace.frame
    spent = frame["cpu_time"] + frame["eval_time"]
    last = int(frame["iteration"][spent <= max(SECONDS, float(spent.iloc[0]))].iloc[-1])
    of = f"{trace.title}, {last} iterations"
    try:
        config = config_of(trace)
        if config.own_hash() != trace.own_hash:
            return skipped(of, "the program is another since: its CODE_VERSION has risen")
        if dataset_of(config).fingerprint != trace.data["fingerprint"]:
            return skipped(of, "the data here are others")
        with files.temporary_folder(Path(tempfile.gettempdir(), "ssvm-bench-again")) as folder:
            # the least gap ends no run, but lets it go on beyond a solver's own precision
            gap = math.ulp(0.0) if config.budget.gap_tol > 0 else 0.0
            asked = Budget(max(last, 1), None, gap)
            config = replace(config, clock="work", budget=asked, results_dir=folder)
            again = read_run(run(replace(config, quiet=True), Display()).folder).frame
    except SsvmBenchError as error:
        return skipped(of, error)
    return compared(of, _unlike(frame[frame["iteration"] <= last], again))


def _unlike(stored: pd.DataFrame, again: pd.DataFrame) -> str:
    """Return where two traces differ first; an empty string if they do not differ."""
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
