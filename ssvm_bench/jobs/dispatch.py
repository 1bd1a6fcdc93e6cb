"""The loop that submits the runs of an experiment as jobs, and the interface of executors.

A run whose process died is submitted again, at most `Executor.retries` times. A run that another
process works on is submitted again at the end, and then waits for that process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle  # noqa: S403 - messages to our own processes
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, shown
from ssvm_bench.config import LOCAL, registry
from ssvm_bench.jobs.tokens import CancelToken, RefusedError
from ssvm_bench.results import provenance, words

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs import Outcome

logger = logging.getLogger(__name__)

Ended: TypeAlias = "Outcome | RunFailedError"
"""The outcome of a run, or the error that ended it."""

_POLL_SECONDS = 0.2  # a signal does not end a wait
_PREFIX = "SSVM_BENCH_"


class LostError(RunFailedError):
    """The process of a run has died; another one can resume it from its checkpoint."""


class Setting(NamedTuple):
    """Settings of the process of a run; jobs with equal settings can share a process.

    Attributes
    ----------
    backend : str
        Name of the backend, for the metadata of the run.
    beside : int
        Number of other runs that may be executed at the same time.
    place : Path
        Working directory, to which relative paths refer.
    folders : tuple of Path
        Further folders with components.
    variables : tuple of (str, str)
        Environment variables.
    token : CancelToken or None
        When the token is cancelled, the process ends its run; None on this machine.
    """

    backend: str
    beside: int
    place: Path
    folders: tuple[Path, ...]
    variables: tuple[tuple[str, str], ...]
    token: CancelToken | None


class Job(NamedTuple):
    """One run, as it is sent to a node.

    Attributes
    ----------
    key : str
        Identifies the run: another call has the same key for it.
    payload : bytes
        Pickle of its config and of whether to wait for another process that works on it. Only the
        process that executes the run unpickles it; processes of the executor never load components.
    setting : Setting
    seed : int
    dataset : str
        Its name.
    """

    key: str
    payload: bytes
    setting: Setting
    seed: int
    dataset: str


class JobResult(NamedTuple):
    """The outcome of a job, and the messages that its run logged."""

    answer: Outcome | SsvmBenchError
    messages: tuple[str, ...] = ()

    @classmethod
    def failed(cls, error: BaseException, library: str) -> JobResult:
        """Return an exception that a library raised for a job as a ``RunFailedError``."""
        found = RunFailedError(f"{library} says {type(error).__name__}: {shown(error, 300)}.")
        found.traceback = "".join(traceback.format_exception(error))
        return cls(found)


class Executor(ABC):
    """Executes jobs. Each backend is a subclass, built from options and token.

    Attributes
    ----------
    at_once : int
        Number of jobs that it executes at once, as far as it is known.
    beside : int
        Largest number of other jobs on the node of a job.
    retries : int
        How often a run is submitted again if its process died.
    """

    at_once = 1
    beside = 0
    retries = 3

    def __init__(self, token: CancelToken) -> None:
        self.token = token

    def problems(self) -> Mapping[str, object]:
        """Return node → its `CancelToken.problem`, or the exception that this call raised.

        It is called once, before any job is submitted; `at_once` and `beside` are known afterwards.
        """
        return {}

    @abstractmethod
    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Take jobs; they are begun in this order."""

    @abstractmethod
    def wait(self, seconds: float) -> Iterable[tuple[int, JobResult | str | None]]:
        """Return the events since the last call, or none if there are none for ``seconds``.

        An event is None if the job has begun, a text if its run logged a message, or the result.
        """

    def interrupt(self, count: int) -> str | None:
        """Handle the ``count``-th Ctrl-C: end all jobs, each with a result; return None.

        If it returns a text, there is nothing to wait for. The text says what happens to jobs that
        keep running; it may be empty.
        """
        self.token.cancel()
        return None if count == 1 else ""

    @abstractmethod
    def close(self, finished: bool) -> None:
        """Release all resources; cancel unfinished jobs, unless ``finished``."""


class Dispatcher:
    """Executes runs by an executor.

    Parameters
    ----------
    backend : str
        Name of the executor.
    open_executor : callable
        Takes a token (None on this machine); returns the executor, which is ready.

    Attributes
    ----------
    at_once : int
        Number of runs at once, as far as that is known.
    """

    def __init__(
        self, backend: str, open_executor: Callable[[CancelToken | None], Executor]
    ) -> None:
        self.backend, self._open, self.at_once = backend, open_executor, 1

    def make(
        self,
        runs: Mapping[int, RunConfig],
        started: Callable[[int], object],
        ended: Callable[[int, Ended], object],
    ) -> bool:
        """Execute runs, several at once.

        Parameters
        ----------
        runs : mapping
            The runs by number, in the order in which they are begun.
        started, ended : callable
            Called with the number of a run when it begins, as far as that is known; and with its
            number and its outcome when it has ended.

        Returns
        -------
        bool
            False if it was interrupted; then some runs have not `ended`, or were not even started.

        Raises
        ------
        ConfigError
            If dataset, oracle and solver of a run do not fit together; the others are stopped.
        RunFailedError
            If the executor cannot be reached, or a node cannot execute runs.
        """
        self._runs, self._started, self._ended = runs, started, ended
        self._left, self._held, self._died = set(runs), list[int](), Counter[int]()
        self._patient, self._asked_to_end, self._left_there = False, 0, False
        self._token = None
        if self.backend != LOCAL:
            self._token, held = CancelToken.issue(next(iter(runs.values())).results_dir)
        finished = False
        try:
            self._executor = self._open(self._token)
            try:
                problems = self._executor.problems()
                check_nodes(problems)
                self.at_once = self._executor.at_once
                if problems:
                    logger.info("%s makes the runs, %s at once.", self.backend, self.at_once)
                with interrupts.deferred() as arrived:
                    finished = self._loop(arrived)
            finally:
                self._executor.close(finished or self._left_there)
            return finished
        finally:
            if self._token is not None:
                if not self._left_there:
                    self._token.cancel()
                os.close(held)

    def _loop(self, arrived: interrupts.Arrived) -> bool:
        """Loop until all runs have ended, or a signal ends the loop; return whether all have."""
        self._submit(self._runs)
        while self._left or self._held:
            if not self._left:
                others = words.runs(len(self._held))
                logger.info("Others are at work on %s; waiting for them.", others)
                self._left, self._held, self._patient = set(self._held), [], True
                self._submit({number: self._runs[number] for number in sorted(self._left)})
            for number, event in self._executor.wait(_POLL_SECONDS):
                if event is None:
                    self._started(number)
                elif isinstance(event, str):
                    logger.info(event)
                else:
                    self._take(number, event)
            if self._asked_to_end < min(arrived.count, 2):
                arrived.answered = True
                self._asked_to_end += 1
                how = self._executor.interrupt(self._asked_to_end)
                if how is not None:
                    self._left_there = bool(how)
                    if how:
                        logger.info(how)
                    return False
                if self._asked_to_end == 1:
                    logger.info("Ending after the current iterations; Ctrl-C again ends at once.")
                    self._held = []
        return not self._asked_to_end

    def _submit(self, runs: Mapping[int, RunConfig]) -> None:
        variables = dict.fromkeys(provenance.THREAD_VARIABLES, "1")
        variables |= {key: text for key, text in os.environ.items() if key.startswith(_PREFIX)}
        setting = Setting(
            self.backend,
            min(self._executor.beside, len(self._runs) - 1),
            Path.cwd(),
            tuple(folder.absolute() for folder in registry.folders()),
            tuple(sorted(variables.items())),
            self._token,
        )
        jobs = {}
        for number, config in runs.items():
            payload = pickle.dumps((config, self._patient))
            jobs[number] = Job(_key(config), payload, setting, config.seed, config.dataset.name)
        self._executor.submit(jobs)

    def _take(self, number: int, result: JobResult) -> None:
        """Process the result of a job."""
        answer = result.answer
        for text in result.messages:
            logger.info(text)
        if isinstance(answer, LostError) and not self._asked_to_end:
            retries = self._executor.retries
            if self._died[number] < retries:
                self._died[number] += 1
                logger.warning("A run is begun again, or resumed from its checkpoint: %s", answer)
                self._submit({number: self._runs[number]})
                return
            again = "The same command makes this run again."
            if retries:
                again = f"That happened {retries + 1} times; the same command tries again."
            answer, lost = LostError(f"{answer} {again}"), answer
            answer.traceback = lost.traceback
        self._left.discard(number)
        if isinstance(answer, SsvmBenchError):
            if self._asked_to_end and isinstance(answer, LostError | RefusedError):
                return  # before its first iteration, or it was cancelled before it had begun
            if isinstance(answer, RefusedError) or not isinstance(answer, RunFailedError):
                raise answer
        elif answer.status == "held":
            if not self._asked_to_end:
                self._held.append(number)
            return
        self._ended(number, answer)


def check_nodes(problems: Mapping[str, object]) -> None:
    """Raise ``RefusedError`` if a node cannot execute runs: see `Executor.problems`."""
    for node, problem in problems.items():
        if isinstance(problem, RefusedError):
            raise problem
        if isinstance(problem, BaseException):
            raise RefusedError(
                f"The node {node} cannot run this program: {type(problem).__name__}: "
                f"{shown(problem, 300)}. Install the same version there, and start it again."
            ) from problem


def _key(config: RunConfig) -> str:
    """Return an identifier of a run that does not depend on its data."""
    options = {key: value for key, value in config.resolved().items() if key != "quiet"}
    return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]
