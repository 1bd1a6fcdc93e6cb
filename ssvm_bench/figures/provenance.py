"""Where the numbers of a figure come from: code, machine, dates, data. No host or user name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ssvm_bench.results.trace import Trace


def origin(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return what a reader of a figure may ask about its runs.

    Parameters
    ----------
    traces : sequence of Trace
        The runs behind the figure.

    Returns
    -------
    dict
        ``runs`` and how many of them were ``timed_beside_other_runs``; first and last day of
        ``started``; ``commits`` of the code and ``versions`` of packages, ``cpu``, ``cores``,
        ``system``, ``clock``: each value with the number of runs that had it; ``datasets``.
    """
    runs = [trace.metadata for trace in traces]
    started = sorted(str(run["started"]) for run in runs if run.get("started"))
    versions = sorted({name for run in runs for name in run.get("versions", {})})
    datasets = Counter(
        json.dumps({**run["dataset"], "lam": run["lam"]}, sort_keys=True) for run in runs
    )
    return {
        "runs": len(runs),
        "timed_beside_other_runs": sum(bool(run.get("concurrent_runs")) for run in runs),
        "started": {"first": started[0], "last": started[-1]} if started else None,
        "commits": _counts(_commit(run) for run in runs),
        "versions": {
            name: _counts(run.get("versions", {}).get(name) for run in runs) for name in versions
        },
        **{key: _counts(run.get(key) for run in runs) for key in ("cpu", "cores", "system")},
        "clock": _counts(run.get("clock") for run in runs),
        "datasets": [{**json.loads(text), "runs": datasets[text]} for text in sorted(datasets)],
    }


def _commit(run: dict[str, Any]) -> str:
    commit = run.get("git") or "unknown"
    return f"{commit} (with changes)" if run.get("git_dirty") else str(commit)


def _counts(values: Iterable[Any]) -> dict[str, int]:
    """Return how many runs had each value, sorted."""
    return dict(sorted(Counter(str(value) for value in values).items()))
