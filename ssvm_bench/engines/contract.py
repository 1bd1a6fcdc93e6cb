"""What the program and an engine say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ssvm_bench.base.errors import RunFailedError, SsvmBenchError

if TYPE_CHECKING:
    from ssvm_bench.runs.outcome import Outcome


@dataclass(frozen=True)
class Ticket:
    """What a node has to agree in before it makes a run.

    Attributes
    ----------
    folder : Path
        In the results folder, of this call alone; it is gone when the call has been withdrawn.
    name : str
        What the file ``token`` in it holds.
    program : str
        Digest of the program's sources and of what they compute with.
    versions : dict
        Package → version, to say what differs.
    """

    folder: Path
    name: str
    program: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """One run, as it is sent to a node.

    Attributes
    ----------
    key : str
        Which run: the same for the same run in another call.
    payload : bytes
        Pickle of its config and of whether to wait for others that work on it. Only the process
        that makes the run reads it: the classes of components stay out of the engine's processes.
    ticket : Ticket
        Looked at before anything else is.
    place : Path
        Folder that relative paths are relative to.
    folders : tuple of Path
        Where components are besides.
    variables : dict
        Environment variables of the process.
    beside : int
        Number of other runs that may go on on the same node.
    engine : str
        Its name.
    """

    key: str
    payload: bytes
    ticket: Ticket
    place: Path
    folders: tuple[Path, ...]
    variables: Mapping[str, str]
    beside: int
    engine: str


class RefusedError(RunFailedError):
    """No run can be made on a node: other sources, or it does not see the results folder."""


class LostError(RunFailedError):
    """The process of a run has died; another one can go on from its checkpoint."""


class Performed(NamedTuple):
    """What became of a job, and what its runner had to say."""

    answer: Outcome | SsvmBenchError
    messages: tuple[str, ...] = ()


class Engine(Protocol):
    """Makes jobs somewhere. A module of this package has a class that does; see `choice`.

    Attributes
    ----------
    at_once : int
        Number of jobs that it makes at once, as far as it knows.
    beside : int
        Number of other jobs on the node of one, at most.
    """

    at_once: int
    beside: int

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Take jobs; they are begun in this order."""

    def wait(self, seconds: float) -> list[tuple[int, Performed]]:
        """Return jobs that have ended since; after some seconds none."""

    def leave(self) -> str:
        """Say how jobs that are left there are cancelled; nothing if they cannot be left."""

    def close(self, finished: bool) -> None:
        """Give back what is held; what has not ended although all was to be made is cancelled."""
