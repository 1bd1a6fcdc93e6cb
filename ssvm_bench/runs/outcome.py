"""What becomes of a run. What sends it from one process to another loads nothing else with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssvm_bench.results.trace import Trace


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes
    ----------
    status : str
        ``finished``, ``skipped`` (it had finished before, or a longer one), ``interrupted``, or
        ``held``: another process works on it.
    stop_reason : str
        See :mod:`ssvm_bench.runs.loop`.
    folder : Path
        Where its files are; of an interrupted run, the partial ones.
    summary : dict
        What ``summary.json`` holds, or would hold with this budget; of a run that is held, nothing.
    """

    status: str
    stop_reason: str
    folder: Path
    summary: dict[str, Any]

    @classmethod
    def of(cls, status: str, run: Trace) -> Outcome:
        """Return that of a run that is there, as far as it was asked for."""
        return cls(status, run.summary["stop_reason"], run.folder, run.summary)
