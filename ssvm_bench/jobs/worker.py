"""A worker: a process that takes runs of a call and makes them, until none is left to take.

It keeps dataset and oracle of its last run. Its libraries are set to one thread before they are
loaded. It is a child (:mod:`ssvm_bench.base.children`) of whatever a backend starts, or the program
of a batch job. When the call is released, or its parent dies, it ends after its iteration, with a
partial trace and a checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import interrupts, messages
from ssvm_bench.base.children import Child, DiedError
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.jobs.call import Call, RefusedError
from ssvm_bench.results import provenance
from ssvm_bench.runs.terminal import Display

VARIABLES = dict.fromkeys(provenance.THREAD_VARIABLES, "1")
"""Environment variables of every worker: one thread."""

REFUSED = "ssvm-bench: refused: "
"""How a batch job's last line begins if its node cannot make the runs."""

_LOOK_SECONDS = 1.0
"""How often a worker checks whether its call still wants it."""


def work(path: Path, name: str) -> str:
    """Make runs of a call until none is left; return why this node cannot, else an empty text.

    Parameters
    ----------
    path : Path
        File of the call.
    name : str
        Name of this worker in it.
    """
    try:
        call = Call.load(path)
    except RefusedError as error:
        return str(error)
    threading.Thread(target=_end_with_call, args=(call,), daemon=True).start()
    dataset = ""
    try:
        call.news({name: "its job was ended and started again."})  # under the name that it had
        while (run := call.take(name, dataset)) is not None:
            if not _make(call, run):
                break
            dataset = call.configs[run].dataset.name
    except RunFailedError as error:  # the log cannot be written
        return str(error)
    return ""


def _make(call: Call, run: int) -> bool:
    """Make a run; return whether to take another one."""
    from ssvm_bench.runs import runner

    about = call.about["beside"], False, call.about["backend"]
    try:
        with messages.shown_by(lambda text: call.record("said", run, text)):
            outcome = runner.run(call.configs[run], Display(), *about)
    except ConfigError as error:
        call.record("mistaken", run, str(error))
        return False
    except Exception as error:
        what = error if hasattr(error, "exit_status") else f"{type(error).__name__}: {error}"
        call.record("failed", run, str(what), traceback.format_exc())
        return True
    kind = outcome.status if outcome.status in ("held", "interrupted") else "finished"
    call.record(kind, run, str(outcome.summary.get("source", "")), outcome.status)
    return kind != "interrupted"


def _end_with_call(call: Call) -> None:
    while call.is_wanted():
        time.sleep(_LOOK_SECONDS)
    interrupts.end_main_thread()


# ---- how it is started ------------------------------------------------------------------------


def start(
    path: Path, name: str, core: int | None = None, variables: Mapping[str, str] = VARIABLES
) -> Child:
    """Start a worker as a child of this process, pinned to a core if one is given."""
    return Child(_be_child, path, name, core, variables=variables)


def _be_child(connection: Connection, path: Path, name: str, core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})
    with suppress(OSError):
        connection.send(work(path, name))


class End(NamedTuple):
    """How a worker has ended, and whether because its node cannot make the runs."""

    how: str
    refused: bool = False


def end_of(child: Child) -> End:
    """Return how a worker has ended; wait for it."""
    try:
        refused = child.receive()
    except DiedError as error:
        if str(error) == f"signal {int(signal.SIGKILL)}":
            return End(
                "its process was killed, as the system does when memory runs out. Make fewer runs "
                "at once if need be."
            )
        return End(f"its process ended ({error}).")
    child.end(now=False)
    return End(refused or "its process ended.", bool(refused))


def execute(path: Path, name: str, variables: Mapping[str, str]) -> End:
    """Start a worker from a process of a cluster, and wait for it; as `end_of`."""
    return end_of(start(path, name, variables=variables))


def main(path: str, name: str) -> None:
    """Be the worker of a batch job."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # in case that the queue ignores it
    interrupts.end_at_signals()
    interrupts.ignore_signals(interrupts.OF_QUEUES)
    interrupts.refuse_exit()
    refused = work(Path(path), name)
    sys.exit(f"{REFUSED}{refused}" if refused else None)
