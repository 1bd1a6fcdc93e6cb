"""On a node: one job, from the engine's process to a run in a process of its own.

Engines make jobs in threads, in processes with settings of their own, and kill these. So a run is
made by a child (:mod:`ssvm_bench.base.children`), whose libraries use one thread, and which hears
of signals: when the engine's process dies, it ends after its iteration, with a checkpoint. A child
makes one run after the other, and keeps dataset and oracle of the last one; one that has nothing
to do for a while ends.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from ssvm_bench.base.children import Child, DiedError
from ssvm_bench.engines import tickets
from ssvm_bench.engines.contract import Job, LostError, Performed

IDLE_SECONDS = 20.0
"""For so long a child waits for another job."""

_LOOK_SECONDS = 1.0
"""So often is looked whether a job has been withdrawn."""

Kind: TypeAlias = tuple[Any, ...]
"""What a child is made for; jobs that agree in it can share one."""


def perform(job: Job) -> Performed:
    """Make the run of a job, unless this node cannot; go on where another one had to stop."""
    refused = tickets.problem(job.ticket)
    if refused is not None:
        return Performed(refused)
    child, messages = _children.take(job), list[str]()
    try:
        child.connection.send_bytes(job.payload)
        asked = False
        while True:
            while not child.connection.poll(_LOOK_SECONDS):
                if not asked and not tickets.is_valid(job.ticket):
                    asked = True
                    child.process.terminate()
            answer = child.receive()
            if not isinstance(answer, str):
                break
            messages.append(answer)
    except (DiedError, OSError) as error:
        _children.drop(child)
        how = str(error) if isinstance(error, DiedError) else "while it was idle"
        return Performed(LostError(f"its process ended ({how})."), tuple(messages))
    _children.give_back(child)
    return Performed(answer, tuple(messages))


def end_runs() -> None:
    """End the runs of this process after their iterations; return when they have checkpoints.

    To be called from a signal's handler: it reads no connection that `perform` may be reading.
    """
    for child in _children.busy():
        child.process.terminate()
        child.end(now=False)


def work(
    connection: Connection, place: Path, beside: int, folders: tuple[Path, ...], engine: str
) -> None:
    """Make runs in a child; relative paths are relative to ``place`` if this node has it."""
    from ssvm_bench.runs import workers

    if place.is_dir():
        os.chdir(place)
    workers.work(connection, None, beside, folders, engine)


@dataclass
class _Children:
    """The children of a process: some at work, some idle, each of these with its alarm."""

    kinds: dict[Child, Kind] = field(default_factory=dict)
    idle: dict[Child, threading.Timer] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, job: Job) -> Child:
        """Return a child for a job: an idle one of its kind, or a new one."""
        variables = dict(job.variables)
        kind = job.place, job.beside, job.folders, job.engine, tuple(sorted(variables.items()))
        with self.lock:
            for child in [child for child in self.idle if self.kinds[child] == kind]:
                self.idle.pop(child).cancel()
                if child.process.poll() is None:
                    return child
                del self.kinds[child]
        child = Child(work, job.place, job.beside, job.folders, job.engine, variables=variables)
        with self.lock:
            self.kinds[child] = kind
        return child

    def give_back(self, child: Child) -> None:
        """Keep a child for the next job, for a while."""
        alarm = threading.Timer(IDLE_SECONDS, self._expire, [child])
        alarm.daemon = True
        with self.lock:
            self.idle[child] = alarm
        alarm.start()

    def _expire(self, child: Child) -> None:
        with self.lock:
            if self.idle.pop(child, None) is None:
                return
            del self.kinds[child]
        child.end(now=False)

    def drop(self, child: Child) -> None:
        """Forget a child that has died."""
        with self.lock:
            self.kinds.pop(child, None)
        child.end(now=True)

    def busy(self) -> list[Child]:
        """Return those that are at work, without waiting for a thread."""
        return [child for child in list(self.kinds) if child not in self.idle]


_children = _Children()
