"""Supervises a call: starts its workers, replaces those that died, and passes signals on.

What has become of the runs is read from the log of the call and from the results folder.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable
from typing import TypeAlias

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.jobs.backends import Backend
from ssvm_bench.jobs.call import Call, Event, RefusedError
from ssvm_bench.jobs.status import outcome_of
from ssvm_bench.results import words
from ssvm_bench.runs import Outcome

logger = logging.getLogger(__name__)

Ended: TypeAlias = "Outcome | RunFailedError"
"""The outcome of a run, or the error that ended it."""

_VAIN = 3
"""So many workers, besides `Backend.count`, may end one after the other without taking a run."""

_POLL_SECONDS = 0.2

_SYNC_SECONDS = 20.0
"""Longest time that a finished run may take from its node to this one."""


class Supervisor:
    """Lets workers make the runs of a call.

    Parameters
    ----------
    call : Call
        It is held by this process.
    backend : Backend
        It is open.
    started, ended : callable
        Called with the number of a run when a worker takes it; and with its number and its outcome
        when it has ended.
    """

    def __init__(
        self,
        call: Call,
        backend: Backend,
        started: Callable[[int], object],
        ended: Callable[[int, Ended], object],
    ) -> None:
        self.call, self.backend, self._started, self._ended = call, backend, started, ended
        self._left, self._alive = set(call.runs), set[str]()
        self._names = map(str, itertools.count(1))
        self._finished: dict[Event, float] = {}
        self._vain = self._asked = 0
        self._how, self._waits = "", False

    def supervise(self) -> bool:
        """Return when all runs have ended; or False if a signal came before.

        Raises
        ------
        ConfigError
            If dataset, oracle and solver of a run do not fit together.
        RunFailedError
            If the backend cannot be reached, or a node cannot make runs.
        """
        with interrupts.deferred() as arrived:
            while (self._left and not self._asked) or self._alive:
                time.sleep(_POLL_SECONDS)
                self._look_at_workers()
                self._look_at_files()
                if self._asked < min(arrived.count, 2):
                    arrived.answered = True
                    self._asked += 1
                    passed_on = self.backend.interrupt()
                    if self.backend.stays or (self._asked == 2 and not passed_on):
                        break
                    if not passed_on:
                        self.call.release()
                    if self._asked == 1 and self._alive:
                        how = "Ending after the current iterations; Ctrl-C again ends at once."
                        logger.info(how)
                if self._left and not self._asked:
                    self._start_workers()
        return not self._asked

    def _look_at_workers(self) -> None:
        """Find out which workers have ended, and what all of them have said."""
        gone: dict[str, str] = {}
        for name, end in self.backend.ended():
            if end.refused and not self._asked:
                raise RefusedError(end.how)
            gone[name] = self._how = end.how
        self._alive -= gone.keys()
        self._vain += len(gone)
        for event in self.call.news({} if self._asked else gone):
            run = event.run
            if event.kind == "taken":
                self._started(run)
                self._vain = 0
            elif event.kind == "said":
                logger.info(event.text)
            elif event.kind == "mistaken":
                raise ConfigError(event.text)
            elif event.kind == "died" and run not in self.call.ended:
                logger.warning(
                    "A run is begun again, or resumed from its checkpoint: %s", event.text
                )
            elif event.kind == "failed":
                self._end(run, _failure(event.text, event.more))
            elif event.kind == "finished":
                self._finished[event] = time.monotonic()
            elif event.kind == "interrupted" and self._asked:
                outcome = outcome_of(self.call.configs[run], event.text, partial=True)
                if outcome is not None:
                    self._ended(run, outcome)

    def _look_at_files(self) -> None:
        """Read the runs that have finished, if their files have come to this node."""
        for event, since in [*self._finished.items()]:
            outcome = outcome_of(self.call.configs[event.run], event.text, event.more)
            if outcome is not None or time.monotonic() - since > _SYNC_SECONDS:
                del self._finished[event]
                unread = _failure("It has finished, but its files cannot be read here.")
                self._end(event.run, outcome or unread)

    def _end(self, run: int, how: Ended) -> None:
        if run in self._left:  # two may have found that it had finished
            self._left.discard(run)
            self._ended(run, how)

    def _start_workers(self) -> None:
        """Start workers for the runs that nobody makes, as many as there may be at once."""
        call, backend = self.call, self.backend
        if len(self._alive) >= backend.count > 0:
            return
        free = [*{*call.free()}.difference(elsewhere := backend.elsewhere(call))]
        if backend.cancelled and not self._alive and backend.count == 0:
            for run in free:  # runs that are contained in these become free by it
                self.call.record("failed", run, backend.cancelled)
            return
        wanted = min(backend.count, len(free) + len(call.takers)) - len(self._alive)
        if wanted > 0:
            if self._vain > _VAIN + backend.count:
                raise RunFailedError(f"Workers end before they take a run: {self._how}")
            names = [next(self._names) for _ in range(wanted)]
            backend.start(call.path, names)
            self._alive.update(names)
        elif not (self._alive or self._waits or self._finished or elsewhere):
            held = words.runs(len(self._left))
            logger.info("Others are at work on %s; waiting for them.", held)
            self._waits = True


def _failure(text: str, traceback: str = "") -> RunFailedError:
    error = RunFailedError(text)
    error.traceback = traceback
    return error
