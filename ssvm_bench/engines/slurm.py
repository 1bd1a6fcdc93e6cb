"""What SLURM's queue says, by its own commands; it needs no accounting database."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from ssvm_bench.base.errors import RunFailedError, shown

REACH_SECONDS = 5
_COMMAND_SECONDS = 30

LIVE = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD")
"""States of jobs that are still to do something."""


class State(NamedTuple):
    """Where a job is: SLURM's word, and its reason."""

    name: str
    reason: str

    @property
    def is_live(self) -> bool:
        """Whether the job is still to do something."""
        return self.name in LIVE


def check_reachable() -> None:
    """Raise ``RunFailedError`` if there is no SLURM here, or its controller does not answer."""
    try:
        _output("scontrol", "ping", seconds=REACH_SECONDS)
    except FileNotFoundError as error:
        raise RunFailedError(
            "There is no SLURM here: the command scontrol is missing. Call this on a node from "
            "which jobs are submitted, or choose another --backend."
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise RunFailedError(
            f"SLURM's controller does not answer within {REACH_SECONDS} s ({_said(error)}). Ask "
            "`scontrol ping`, or choose another --backend."
        ) from error


def states() -> dict[str, State]:
    """Return the states of this user's jobs, elements of arrays apart: ``12_3`` → state.

    Jobs that have ended are in it for some minutes.

    Raises
    ------
    RunFailedError
        If the controller does not answer.
    """
    command = ("squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%T|%r")
    try:
        lines = _output(*command, seconds=_COMMAND_SECONDS).splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        raise RunFailedError(
            f"SLURM's queue cannot be asked ({_said(error)}). Jobs go on; the same command waits "
            "for them again."
        ) from error
    rows = [line.strip().split("|", 2) for line in lines]
    return {row[0]: State(row[1], row[2]) for row in rows if len(row) == 3}


def cancel(jobs: Sequence[str]) -> None:
    """Cancel jobs, as far as they are there."""
    if jobs:
        subprocess.run(["scancel", *jobs], capture_output=True, timeout=_COMMAND_SECONDS)


def requeue(job: str) -> bool:
    """Put a job that has ended into the queue again; tell whether SLURM still knew it."""
    done = subprocess.run(
        ["scontrol", "requeue", job], capture_output=True, timeout=_COMMAND_SECONDS
    )
    return done.returncode == 0


def _output(*command: str, seconds: float) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    return done.stdout


def _said(error: Exception) -> str:
    """Return what a command has said of why it failed."""
    text = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
    return shown(" ".join(str(text).split()), 200)
