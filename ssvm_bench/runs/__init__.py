"""The execution of runs: components, loop, checkpoints, status, predictions and contracts.

The outcome of a run is here: processes that exchange one load nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssvm_bench.results.table import Run


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    status : str
        ``finished``, ``skipped`` (it had finished before, or a longer one), ``interrupted``, or
        ``held``: another process works on it.
    stop_reason : str
        See :mod:`ssvm_bench.runs.runner`.
    folder : Path
        Folder of its files; for an interrupted run, of the partial trace.
    summary : dict
        Content of ``summary.json``, as it would be with this budget; empty if the run is held.
    """

    status: str
    stop_reason: str
    folder: Path
    summary: dict[str, Any]

    @classmethod
    def of(cls, status: str, run: Run) -> Outcome:
        """Return the outcome of a stored run, which may be truncated to a budget."""
        return cls(status, run.end["stop_reason"], run.folder, run.end)
