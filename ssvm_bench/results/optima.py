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
from ssvm_bench.results.folder import (
    ResultsFolder,
    SkippedFiles,
    as_folder,
    cannot_write,
    write_file,
)
from ssvm_bench.results.table import INSTANCE_COLUMNS, Best, ProblemInstance, Run
from ssvm_bench.results.trace import find_runs, read_run, reason_of

FORMAT = 1
FILE = Path("reference", "optima.json")
KEYS = ("best_primal", "best_dual")

Instance = dict[str, Any]
"""One entry of the file: dataset, source, fingerprint, n, lam, best_primal, best_dual."""


def reference(
    runs: Sequence[Run], results_dir: Path | ResultsFolder, skipped: SkippedFiles | None = None
) -> dict[ProblemInstance, Best]:
    """Tighten the file, and return its values per problem instance.

    If the file is committed, the values of runs go to another file in ``own/``, and both count.

    Parameters
    ----------
    runs : sequence of Run
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
    where = as_folder(results_dir)
    path = where.made / FILE
    seen = _tightened({}, _instances(runs, where.root, skipped))
    try:
        recorded = _stored(where)
    except RunFailedError as error:
        if skipped is None:
            raise
        skipped.add(f"{error} Until then, the best values are those of the runs at hand.")
        recorded = seen
    if _tightened(recorded, seen.values()) != recorded:
        recorded = _tightened(recorded, _tighten_file(path, where.root, seen).values())
    return _values(recorded)


def known(runs: Iterable[Run], *folders: ResultsFolder) -> dict[ProblemInstance, Best]:
    """Return the best values of some runs and of the files; nothing is read or written besides.

    Raises as `reference`.
    """
    stored = itertools.chain.from_iterable(_stored(where).values() for where in folders)
    return _values(_tightened({}, [*stored, *map(_instance, runs)]))


def encoded(runs: Sequence[Run], where: ResultsFolder) -> bytes:
    """Return the content of a file with the best values known on the problem instances of runs."""
    problems = {run.problem for run in runs}
    known = _tightened(_stored(where), map(_instance, runs))
    return _content(of for problem, of in known.items() if problem in problems)


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
            write_file(path, _content(known.values()), root)
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
    runs: Sequence[Run], results_dir: Path, skipped: SkippedFiles | None
) -> Iterator[Instance]:
    """Yield the best values of each run."""
    yield from map(_instance, runs)
    done = {run.folder for run in runs if not run.is_truncated}
    for dataset in dict.fromkeys(run.dataset for run in runs):
        for folder in find_runs(results_dir, dataset):
            if folder in done:
                continue
            try:
                yield _instance(read_run(folder))
            except RunFailedError as error:
                if skipped is not None:
                    skipped.add(error)


def _instance(run: Run) -> Instance:
    oracle = run.config.get("oracle") or {}

    def record(key: str) -> dict[str, Any] | None:
        value = run.end.get(key)
        if value is None or not math.isfinite(value):
            return None
        rows = np.flatnonzero(run[key.removeprefix("best_")] == value)
        return {
            "value": float(value),
            "iteration": int(run["iteration"][rows[0]]) if rows.size else None,
            "solver": run.solver,
            "config": run.own_hash,
            "seed": run.seed,
            "oracle": oracle.get("name"),
            "exact": is_exact(str(oracle.get("kind"))),
            "commit": run.metadata.get("git"),
        }

    order = ("dataset", "source", "fingerprint", "n", "lam")
    return {**{key: run.fact(key) for key in order}, **{key: record(key) for key in KEYS}}


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


def _content(instances: Iterable[Instance]) -> bytes:
    return checks.sealed({"format": FORMAT, "instances": list(instances)})


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
            "delete it: it is then computed from the existing runs."
        ) from error
