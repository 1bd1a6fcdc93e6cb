"""From the runs of an experiment to jobs of an engine, and back.

A job whose process died is given to the engine again, some times; a run that others are at work on
is looked at again in the end, as with processes of one machine (:mod:`ssvm_bench.runs.workers`).
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.config import plug_ins
from ssvm_bench.engines import tickets
from ssvm_bench.engines.contract import Engine, Job, LostError, Performed, RefusedError, Ticket
from ssvm_bench.results import words
from ssvm_bench.results.provenance import THREAD_VARIABLES

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs.workers import Ended

RETRIES = 3
"""So often is a run begun again whose process died."""

_POLL_SECONDS = 0.2
_PREFIX = "SSVM_BENCH_"


class Conductor:
    """Makes runs by an engine.

    Parameters
    ----------
    name : str
        The engine's.
    open_engine : callable
        From a ticket, and whom to tell what goes on, to the engine, which is ready then.

    Attributes
    ----------
    at_once : int
        Number of runs at once, as far as that is known.
    """

    def __init__(
        self, name: str, open_engine: Callable[[Ticket, Callable[[str], object]], Engine]
    ) -> None:
        self.name, self._open, self.at_once = name, open_engine, 1

    def __call__(
        self,
        runs: Mapping[int, RunConfig],
        started: Callable[[int], object],
        ended: Callable[[int, Ended], object],
        say: Callable[[str], object],
    ) -> bool:
        """Make runs, as `workers.make` does.

        Raises
        ------
        RunFailedError
            If the engine cannot be reached, or a node cannot make runs.
        """
        ticket = tickets.issue(next(iter(runs.values())).results_dir)
        left_there = False
        try:
            engine, finished = self._open(ticket, say), False
            self.at_once = engine.at_once
            try:
                with interrupts.deferred() as arrived:
                    turn = _Turn(self.name, engine, ticket, runs, ended, say)
                    finished = turn.make(arrived)
                    left_there = turn.left_there
            finally:
                engine.close(finished or left_there)
            return finished
        finally:
            if not left_there:
                tickets.withdraw(ticket)


class _Turn:
    """One call: which runs there are still to make, and what has become of the others."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        ticket: Ticket,
        runs: Mapping[int, RunConfig],
        ended: Callable[[int, Ended], object],
        say: Callable[[str], object],
    ) -> None:
        self.name, self.engine, self.ticket = name, engine, ticket
        self.runs, self.ended, self.say = runs, ended, say
        self.left, self.held = set(runs), list[int]()
        self.died: Counter[int] = Counter()
        self.patient = self.withdrawn = self.left_there = False

    def make(self, arrived: interrupts.Arrived) -> bool:
        """Go on until all runs have ended, or a signal ends it; return whether all have."""
        self._submit(self.runs)
        while self.left or self.held:
            if not self.left:
                self.say(f"Others are at work on {words.runs(len(self.held))}; waiting for them.")
                self.left, self.held, self.patient = set(self.held), [], True
                self._submit({number: self.runs[number] for number in sorted(self.left)})
            for number, performed in self.engine.wait(_POLL_SECONDS):
                self._take(number, performed)
            if arrived.count and not self.withdrawn:
                arrived.answered = True
                if how := self.engine.leave():
                    self.say(how)
                    self.left_there = True
                    return False
                self.say("Ending after the current iterations; Ctrl-C again ends at once.")
                self.withdrawn, self.held = True, []
                tickets.withdraw(self.ticket)
            if arrived.count > 1:
                return False
        return not self.withdrawn

    def _submit(self, runs: Mapping[int, RunConfig]) -> None:
        beside = min(self.engine.beside, len(self.runs) - 1)
        variables = dict.fromkeys(THREAD_VARIABLES, "1")
        variables |= {key: text for key, text in os.environ.items() if key.startswith(_PREFIX)}
        self.engine.submit(
            {
                number: Job(
                    key=_key(config),
                    payload=pickle.dumps((config, self.patient)),
                    ticket=self.ticket,
                    place=Path.cwd(),
                    folders=tuple(folder.absolute() for folder in plug_ins.folders()),
                    variables=variables,
                    beside=beside,
                    engine=self.name,
                )
                for number, config in runs.items()
            }
        )

    def _take(self, number: int, performed: Performed) -> None:
        """Take what became of a job."""
        answer = performed.answer
        for text in performed.messages:
            self.say(text)
        if self.withdrawn:
            self.left.discard(number)
            if not isinstance(answer, SsvmBenchError) and answer.status != "held":
                self.ended(number, answer)
        elif isinstance(answer, LostError) and self.died[number] < RETRIES:
            self.died[number] += 1
            self.say(f"A run is begun again, or goes on from its checkpoint: {answer}")
            self._submit({number: self.runs[number]})
        elif isinstance(answer, LostError):
            self.left.discard(number)
            often = f"{answer} That happened {RETRIES + 1} times; the same command tries again."
            self.ended(number, _like(answer, often))
        elif isinstance(answer, SsvmBenchError) and (
            isinstance(answer, RefusedError) or not isinstance(answer, RunFailedError)
        ):
            raise answer
        else:
            self.left.discard(number)
            if not isinstance(answer, RunFailedError) and answer.status == "held":
                self.held.append(number)
            else:
                self.ended(number, answer)


def _key(config: RunConfig) -> str:
    """Return what tells a run from others, before its data are loaded."""
    options = {key: value for key, value in config.resolved().items() if key != "quiet"}
    return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]


def _like(error: RunFailedError, text: str) -> RunFailedError:
    """Return an error with the traceback of another one."""
    other = RunFailedError(text)
    other.traceback = error.traceback
    return other
