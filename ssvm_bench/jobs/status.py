"""The status of each run of an experiment, from the results folder, and the time that is left.

The status of a run is

==========  ================================================================================
``done``    it has finished, or a longer run that begins with it has
``running`` a process works on it
``failed``  the last attempt ended in an error in one of its iterations, or diverged
``missing`` none of these; also a run that was interrupted, and one that failed before its
            first iteration or with its process
==========  ================================================================================
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssvm_bench.base.errors import SsvmBenchError
from ssvm_bench.config import registry
from ssvm_bench.config.experiment import along_paths
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.sources import raw_file
from ssvm_bench.results import budgets, run_folder, trace, words
from ssvm_bench.runs import Outcome

STATES = ("done", "running", "failed", "missing")


@dataclass(frozen=True)
class RunStatus:
    """Where one run stands.

    Attributes
    ----------
    config : RunConfig
        Which run.
    state : str
        One of ``STATES``.
    folder : Path
        Folder of its files; for a failed run, of its partial trace and the traceback.
    damage : str
        Why its stored files cannot be read; such a run is executed again.
    summary : mapping
        Content of ``summary.json`` if the run is done, else empty.
    lam : float, optional
        λ as a number if the run is done: without its data, K/n is none.
    """

    config: RunConfig
    state: str
    folder: Path
    damage: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    lam: float | None = None

    def as_plain(self) -> dict[str, Any]:
        """Return the status as plain values."""
        return {
            **{group: getattr(self.config, group).name for group in ("dataset", "solver")},
            "lam": self.config.lam_or_rule,
            "lam_value": self.lam,
            "seed": self.config.seed,
            "state": self.state,
            "folder": str(self.folder),
            "damage": self.damage,
            "summary": dict(self.summary),
        }


def survey(configs: Iterable[RunConfig]) -> list[RunStatus]:
    """Return the status of each run, and of each run along its path, from their folders."""
    return [_status(config) for config in along_paths(configs)]


def _status(config: RunConfig) -> RunStatus:
    """Return the status of a run; if its source is not known yet, the most advanced one."""
    found = [_state(config.with_source(source)) for source in sources(config)]
    return min(found, key=lambda status: (STATES.index(status.state), not status.damage))


def _state(config: RunConfig) -> RunStatus:
    before = budgets.find_run(config)
    if before is not None:
        return RunStatus(config, "done", before.folder, summary=before.end, lam=before.lam)
    folder = config.folder
    problem = next(filter(None, map(trace.damage, config.folders)), "")
    if run_folder.is_locked(folder):
        return RunStatus(config, "running", folder)
    partial = run_folder.partial_folder(folder)
    with suppress(SsvmBenchError):
        if partial.is_dir() and trace.read_summary(partial)["stop_reason"] != "interrupted":
            return RunStatus(config, "failed", partial, problem)
    return RunStatus(config, "missing", folder, problem)


def sources(config: RunConfig) -> tuple[str, ...]:
    """Return the possible sources of a run's data, as far as known without loading them."""
    sources = config.sources()
    if config.source != "auto":
        return sources
    with suppress(SsvmBenchError):  # of a dataset that has no raw file
        if not raw_file(config.dataset.kind).falls_back():
            return sources[:-1]
    return sources


def finished_before(config: RunConfig) -> Outcome | None:
    """Return the outcome of a run whose path has finished, if that is certain; load no data.

    It is never certain for a dataset of another package: its data may have changed since.
    """
    known = sources(config)
    if len(known) > 1 or config.force or not registry.is_own("dataset", config.dataset.kind):
        return None
    config = config.with_source(known[0])
    found = [budgets.find_run(stage) for stage in config.path_steps()]
    if found[-1] is None or not all(found):
        return None
    return Outcome.of("skipped", found[-1])


def outcome_of(
    config: RunConfig, source: str, status: str = "interrupted", partial: bool = False
) -> Outcome | None:
    """Return the outcome of a run that another process made, from its files; None: there are none.

    Parameters
    ----------
    config : RunConfig
    source : str
        Source of its data; empty if that is not known.
    status : str
        Of the outcome.
    partial : bool
        Whether it was interrupted.
    """
    for known in sources(config):
        if source in (known, ""):
            here = config.with_source(known)
            with suppress(SsvmBenchError):
                if partial:
                    folder = run_folder.partial_folder(here.folder)
                    return Outcome(status, status, folder, trace.read_summary(folder))
                if found := budgets.find_run(here):
                    return Outcome.of(status, found)
    return None


class Durations:
    """Estimates the seconds from the start of a run to its end, from finished runs of its kind.

    Parameters
    ----------
    runs : iterable of (RunConfig, summary)
        Runs that have finished.
    """

    def __init__(self, runs: Iterable[tuple[RunConfig, Mapping[str, Any]]] = ()) -> None:
        self._seen: dict[tuple[str, str], list[float]] = {}
        for config, summary in runs:
            self.add(config, summary)

    def add(self, config: RunConfig, summary: Mapping[str, Any]) -> None:
        """Add a run that has finished."""
        seconds = summary.get("wall_time")
        if seconds is not None:
            self._seen.setdefault(_kind(config), []).append(float(seconds))

    def left(self, configs: Sequence[RunConfig], jobs: int) -> float | None:
        """Return the seconds that runs will take, ``jobs`` at a time; None if that is unknown."""
        each = [self._of(config) for config in configs]
        known = [seconds for seconds in each if seconds is not None]
        if len(known) < len(each):
            return None
        return max(sum(known) / min(jobs, len(known)), *known) if known else 0.0

    def _of(self, config: RunConfig) -> float | None:
        """Return the median of runs with that dataset and solver, else ``budget.max_seconds``."""
        seen = self._seen.get(_kind(config))
        return statistics.median(seen) if seen else config.budget.max_seconds


def _kind(config: RunConfig) -> tuple[str, str]:
    return config.dataset.name, config.solver.name


def lines(found: Sequence[RunStatus], jobs: int) -> list[str]:
    """Return the lines to print: datasets by solvers, the sum, and the failed runs.

    Parameters
    ----------
    found : sequence of RunStatus
        As `survey` returns them.
    jobs : int
        Number of runs at once, for the estimate of the time left.
    """
    solvers = list(dict.fromkeys(run.config.solver.name for run in found))
    cells = [["", *solvers]]
    for dataset in dict.fromkeys(run.config.dataset.name for run in found):
        kinds = [(dataset, solver) for solver in solvers]
        counts = [_count([run for run in found if _kind(run.config) == kind]) for kind in kinds]
        cells.append([dataset, *counts])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    text += ["", f"{_count(found)}, of {len(found)} runs{_eta(found, jobs)}"]
    return text + [f"failed: {run.folder}" for run in found if run.state == "failed"]


def _count(found: Sequence[RunStatus]) -> str:
    counts = {state: sum(run.state == state for run in found) for state in STATES}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "-"


def _eta(found: Sequence[RunStatus], jobs: int) -> str:
    done = [run for run in found if run.state == "done"]
    durations = Durations((run.config, run.summary) for run in done)
    seconds = durations.left([run.config for run in found if run.state != "done"], jobs)
    if seconds is None:
        return "; ETA unknown until a run of each kind is done"
    return f"; ETA {words.minutes(seconds)} with --jobs {jobs}" if seconds else ""
