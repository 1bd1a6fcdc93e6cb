"""The best primal and dual values ever seen: ``<results_dir>/reference/optima.json``.

Suboptimality is measured against the highest dual and the lowest primal value of any run on the
same problem instance: the data (fingerprint) and λ. These values are stored, each with the run that
reached it, so that a curve does not depend on which runs are still in the results folder. A value
is only ever replaced by a better one. Delete the file to start afresh.

A dual value bounds the optimum with any oracle. A primal value measured by an inexact oracle may be
below the optimum: it is marked ``"exact": false``, and any exact value replaces it.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.config import registry
from ssvm_bench.results import checks
from ssvm_bench.results.folder import ResultsFolder, plain
from ssvm_bench.results.reading import SkippedFiles, find_runs, read_run, reason_of
from ssvm_bench.results.run_folder import cannot_write, write_file
from ssvm_bench.results.table import INSTANCE_COLUMNS, Best, ProblemInstance, Run

FORMAT = 1
FILE = Path("reference", "optima.json")
KEYS = ("best_primal", "best_dual")

Instance = dict[str, Any]
"""One entry of the file: dataset, source, fingerprint, n, lam, best_primal, best_dual."""


def reference(
    traces: Sequence[Run], results_dir: Path | ResultsFolder, skipped: SkippedFiles | None = None
) -> dict[ProblemInstance, Best]:
    """Tighten the file, and return its values per problem instance.

    If the file is committed, the values of runs go to another file in ``own/``, and both count.

    Parameters
    ----------
    traces : sequence of Run
        Finished runs. They count, and so does every finished run below the results folder on
        one of their datasets.
    results_dir : Path or ResultsFolder
        The results folder.
    skipped : SkippedFiles, optional
        Collects runs below the results folder that cannot be read, and the file if it is damaged; a
        damaged file is left unchanged.

    Raises
    ------
    RunFailedError
        If the file is damaged, and ``skipped`` is not given; or if it cannot be written.
    """
    where = plain(results_dir)
    path = where.made / FILE
    seen = _tightened({}, _instances(traces, where.root, skipped))
    try:
        known = _stored(where)
    except RunFailedError as error:
        if skipped is None:
            raise
        skipped.add(f"{error} Until then, the best values are those of the runs at hand.")
        known = seen
    if _tightened(known, seen.values()) != known:
        known = _tightened(known, _tighten_file(path, where.root, seen).values())
    return _values(known)


def untold(
    traces: Iterable[Run], results_dir: Path | ResultsFolder
) -> tuple[dict[ProblemInstance, Best], dict[ProblemInstance, Best]]:
    """Return the best values of runs and file, and those of them that are not in the file.

    Neither the file nor runs below the results folder are touched. Raises as `reference`.
    """
    known = _stored(plain(results_dir))
    both = _tightened(known, map(_instance, traces))
    better = {problem: item for problem, item in both.items() if item != known.get(problem)}
    return _values(both), _values(better)


def _stored(where: ResultsFolder) -> dict[ProblemInstance, Instance]:
    found = (_read(place / FILE, where.root).values() for place in where.read)
    return _tightened({}, itertools.chain.from_iterable(found))


def _values(instances: Mapping[ProblemInstance, Instance]) -> dict[ProblemInstance, Best]:
    none = {"value": math.nan}
    return {
        problem: Best(*(float((instance[key] or none)["value"]) for key in KEYS))
        for problem, instance in instances.items()
    }


def _tighten_file(
    path: Path, root: Path, seen: Mapping[ProblemInstance, Instance]
) -> dict[ProblemInstance, Instance]:
    """Merge values into the file while no other process does, and return all of its values."""
    try:
        files.make(path.parent, root)
        with files.locked(path.with_name(f".{path.name}.lock")):
            known = _tightened(_read(path, root), seen.values())
            content = checks.sealed({"format": FORMAT, "instances": list(known.values())})
            write_file(path, content, root)
            return known
    except OSError as error:
        raise cannot_write(path, error) from error


def _tightened(
    known: Mapping[ProblemInstance, Instance], others: Iterable[Instance]
) -> dict[ProblemInstance, Instance]:
    """Return the better of the values, sorted; of two equal ones, the known one."""
    result = dict(known)
    for other in others:
        problem = ProblemInstance(str(other["fingerprint"]), float(other["lam"]))
        mine = result.get(problem, other)
        for key in KEYS:
            mine = {**mine, key: min(mine[key], other[key], key=partial(_rank, key))}
        result[problem] = mine
    return dict(sorted(result.items(), key=lambda item: [item[1][key] for key in INSTANCE_COLUMNS]))


def _rank(key: str, record: Mapping[str, Any] | None) -> tuple[int, float]:
    """Return how good a value is: the lower, the better."""
    if record is None:
        return 2, 0.0
    if key == "best_dual":
        return 0, -record["value"]
    return int(record["exact"] is not True), record["value"]


# ---- from runs --------------------------------------------------------------------------------


def _instances(
    traces: Sequence[Run], results_dir: Path, skipped: SkippedFiles | None
) -> Iterator[Instance]:
    """Yield the best values of each run."""
    for trace in traces:
        yield _instance(trace)
    done = {trace.folder for trace in traces if not trace.is_truncated}
    for dataset in dict.fromkeys(trace.dataset for trace in traces):
        for folder in find_runs(results_dir, dataset):
            if folder in done:
                continue
            try:
                yield _instance(read_run(folder))
            except RunFailedError as error:
                if skipped is not None:
                    skipped.add(error)


def _instance(trace: Run) -> Instance:
    metadata, config = trace.metadata, trace.config
    oracle = config.get("oracle") or {}

    def record(key: str) -> dict[str, Any] | None:
        value = trace.end.get(key)
        if value is None or not math.isfinite(value):
            return None
        rows = np.flatnonzero(trace[key.removeprefix("best_")] == value)
        return {
            "value": float(value),
            "iteration": int(trace["iteration"][rows[0]]) if rows.size else None,
            "solver": config["solver"]["name"],
            "config": trace.own_hash,
            "seed": config["seed"],
            "oracle": oracle.get("name"),
            "exact": is_exact(str(oracle.get("kind"))),
            "commit": metadata.get("git"),
        }

    about = trace.instance
    order = ("dataset", "source", "fingerprint", "n", "lam")
    return {**{key: about[key] for key in order}, **{key: record(key) for key in KEYS}}


@cache
def is_exact(kind: str) -> bool | None:
    """Tell whether an oracle always finds a best labeling; None if it is not installed."""
    from ssvm_bench.oracles.base import Oracle

    try:
        module = registry.module("oracle", kind)
    except SsvmBenchError:
        return None
    classes = [item for item in vars(module).values() if isinstance(item, type)]
    return all(item.exact for item in classes if issubclass(item, Oracle))


# ---- the file ---------------------------------------------------------------------------------


def _read(path: Path, root: Path) -> dict[ProblemInstance, Instance]:
    """Return the file's entries, checked."""
    if not os.path.lexists(path):
        return {}
    try:
        content = checks.opened(files.read(path, within=root))
        if content["format"] != FORMAT:
            raise ValueError(f"format version {content['format']}; this program reads {FORMAT}")
        for instance in content["instances"]:
            checks.check(instance, checks.INSTANCE)
        return _tightened({}, content["instances"])
    except Exception as error:  # a reader may raise anything on a damaged file
        raise RunFailedError(
            f"Cannot read the best values in {path}: {reason_of(error)}. Restore the file, or "
            "delete it: then it is made again from the runs there are."
        ) from error
