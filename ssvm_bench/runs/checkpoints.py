"""Checkpoints of a run: its whole state, written while it goes on, and where the next start begins.

Under ``clock=work``, a run that was ended and goes on has the trace of one that was not. What is
in a checkpoint: the solver with its clock and random streams, and the recorder with the trace
(:mod:`~ssvm_bench.runs.snapshot`); where in its loop the run is, and what it has spent.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from ssvm_bench.base.errors import RunFailedError, described
from ssvm_bench.config.schema import Checkpoint
from ssvm_bench.oracles.objective import Objective
from ssvm_bench.results import checkpoint_file
from ssvm_bench.results.provenance import cpu_model
from ssvm_bench.runs import snapshot
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.solvers.base import Solver

logger = logging.getLogger(__name__)

_SHARE = 0.01
"""Largest share of a run's time that checkpoints every so many seconds take."""

Dump: TypeAlias = Callable[[BinaryIO], object]


@dataclass
class Progress:
    """Where a run is, between two iterations.

    Attributes
    ----------
    iteration : int
        Of the present round.
    due : int
        The iteration to be evaluated next.
    evaluated : int
        That evaluated last.
    begin : float
        Moment of the clock at which the round began.
    wall_time : float
        Seconds that the processes before have spent on the run.
    checkpoint_time : float
        Seconds spent on checkpoints.
    cpu : str
        The processor.
    resumed : list of dict
        Where earlier processes had ended: ``iteration``, and ``started``, when the next began;
        ``cpu``, the processor until then, if the next one had another.
    """

    iteration: int = 0
    due: int = 0
    evaluated: int = -1
    begin: float = 0.0
    wall_time: float = 0.0
    checkpoint_time: float = 0.0
    cpu: str = field(default_factory=cpu_model)
    resumed: list[dict[str, Any]] = field(default_factory=list)

    def next_round(self, begin: float) -> None:
        """Go to the beginning of a round."""
        self.iteration, self.due, self.evaluated, self.begin = 0, 0, -1, begin


class Resumed(NamedTuple):
    """What a checkpoint has: a solver, what its recorder knew, and where the run is."""

    solver: Solver
    record: dict[str, Any]
    progress: Progress


class Checkpoints:
    """Writes the state of one run from time to time.

    Parameters
    ----------
    config : Checkpoint
        When.
    whose : dict
        `checkpoint_file.identity` of the run.
    problem : Objective
        As built, before anything was asked of it.
    write : callable
        Saves the trace so far; its argument writes the checkpoint file.
    now : callable
        Seconds on a monotonic clock.
    """

    def __init__(
        self,
        config: Checkpoint,
        whose: dict[str, str],
        problem: Objective,
        write: Callable[[Dump], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every, self._keep, self._whose = config.every, config.keep, whose
        self._write, self._now, self._begin = write, now, now()
        self._parts = snapshot.parts(problem)
        self._due = math.inf if config.every is None else self._begin + config.every

    def write_if_due(
        self, solver: Solver, recorder: Recorder, progress: Progress, reason: str | None
    ) -> None:
        """Write the state if it is time, or if the run ends here; the clock stands still.

        Parameters
        ----------
        solver, recorder, progress
            The state.
        reason : str or None
            Why the run ends, if it does.
        """
        begin = self._now()
        last = reason == "interrupted" and self._every is not None
        wanted = last or begin >= self._due or (reason is not None and self._keep)
        if not wanted or not recorder.rows:
            return
        with solver.clock.paused():
            try:
                self._write(self._dump(solver, recorder, progress))
            except RunFailedError as error:
                logger.warning("What was measured so far is not on disk: %s", error)
            except Exception as error:  # whatever the pickling of a component raises
                self._every, self._keep = None, False
                logger.warning("This run cannot go on from where it ends: %s.", described(error))
        took = self._now() - begin
        progress.checkpoint_time += took
        if self._every is None:
            self._due = math.inf
        elif self._every > 0:
            self._due = begin + took + max(self._every, took / _SHARE)

    def _dump(self, solver: Solver, recorder: Recorder, progress: Progress) -> Dump:
        """Return what writes the state to a file."""
        spent = progress.wall_time + self._now() - self._begin
        state = {
            "solver": solver,
            "record": recorder.state(),
            "progress": {**vars(progress), "wall_time": spent},
        }
        return lambda file: checkpoint_file.write(
            file, self._whose, lambda inner: snapshot.dump(state, self._parts, inner)
        )


def resume(
    folder: Path, whose: dict[str, str], problem: Objective, packages: Collection[str]
) -> Resumed | None:
    """Return the state that a folder's checkpoint has; None if there is none, or none of use.

    Parameters
    ----------
    folder : Path
        Of a partial trace, or of a finished run.
    whose, problem
        As for `Checkpoints`.
    packages : collection of str
        Of components that are not this program's.
    """
    try:
        with checkpoint_file.reading(folder, whose) as file:
            state = snapshot.load(file, snapshot.parts(problem), packages)
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever a state that does not fit makes the unpickling raise
        reason = (
            str(error) if isinstance(error, checkpoint_file.UnusableError) else described(error)
        )
        logger.warning(
            "The checkpoint in %s is left aside: %s. No run goes on from there.", folder, reason
        )
        return None
    return Resumed(state["solver"], state["record"], Progress(**state["progress"]))
