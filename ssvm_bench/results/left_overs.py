"""What writers that were killed have left in a results folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results.folder import ResultsFolder, plain
from ssvm_bench.results.reading import is_finished, read_trace
from ssvm_bench.results.run_folder import PARTIAL, HeldError, lock, partial_folder, recover
from ssvm_bench.results.trace import TRACE


def sweep(results_dir: Path | ResultsFolder) -> None:
    """Remove what they have left anywhere, and bring back what they were about to replace."""
    for place in plain(results_dir).read:
        recover(place, "runs/*/*/*/")
        files.sweep(place)
        for pattern in ("reference", "figures/*", "traces/*", "runs/*/*/*"):
            for folder in place.glob(pattern):
                files.sweep(folder)
        for partial in place.glob(f"runs/*/*/*/seed=*{PARTIAL}"):
            folder = partial.with_name(partial.name.removesuffix(PARTIAL))
            if _is_superseded(folder):
                with suppress(HeldError, RunFailedError), lock(folder, wait=False):
                    remove_superseded(folder)


def remove_superseded(folder: Path) -> None:
    """Remove the partial trace of a run that has finished since; only while its lock is held."""
    if _is_superseded(folder):
        files.remove(partial_folder(folder))


def _is_superseded(folder: Path) -> bool:
    """Tell whether a run's partial trace is the beginning of the finished one.

    One that goes further is that of an extension, one that began later was made by force, and one
    of an error has its traceback.
    """
    partial = partial_folder(folder)
    if not partial.is_dir() or not is_finished(folder):
        return False
    if not (partial / TRACE).exists():  # what a removal has left
        return True
    try:
        begun, whole = read_trace(partial), read_trace(folder)
    except RunFailedError:
        return False
    ends = [trace.frame["iteration"].iloc[-1] for trace in (begun, whole)]
    starts = [trace.metadata.get("started") or "" for trace in (begun, whole)]
    return (
        begun.summary["stop_reason"] == "interrupted"
        and ends[0] <= ends[1]
        and starts[0] <= starts[1]
    )
