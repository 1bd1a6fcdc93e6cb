"""Where workers of a call are started: here, by dask or ray, or in SLURM's queue."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ssvm_bench.base import interrupts, scheduler
from ssvm_bench.base.children import Child
from ssvm_bench.base.errors import RunFailedError, described, shown
from ssvm_bench.config import LOCAL
from ssvm_bench.jobs import Options
from ssvm_bench.jobs.call import Call
from ssvm_bench.jobs.worker import VARIABLES, End, end_of, execute, start

logger = logging.getLogger(__name__)


class Backend(ABC):
    """Starts workers, and says how they ended.

    Attributes
    ----------
    name : str
        As on the command line.
    count : int
        Number of workers at once.
    beside : int
        Largest number of other workers on the node of one.
    retries : int
        How often a run is taken again in a call after its worker has died.
    outlives : bool
        Whether workers continue when the program ends.
    stays : bool
        Whether they continue now, and still need the files of their call.
    cancelled : str
        Why no worker is started any more.
    """

    name: ClassVar[str]
    retries: ClassVar[int] = 3
    outlives: ClassVar[bool] = False

    def __init__(self, options: Options) -> None:
        self.options, self.count, self.beside = options, options.jobs or 1, 0
        self.stays, self.cancelled = False, ""
        self._tasks: dict[str, Any] = {}
        self._held = ExitStack()

    @abstractmethod
    def open(self, runs: int) -> None:
        """Connect to what starts the workers; then `count` and `beside` are known."""

    def start(self, path: Path, names: Sequence[str]) -> None:
        """Start workers of the call with this file."""
        for name in names:
            self._tasks[name] = self._submit(path, name)

    def ended(self) -> Iterator[tuple[str, End]]:
        """Yield the workers that have ended since the last call.

        Raises
        ------
        RunFailedError
            If the backend has ended.
        """
        for name, task in [*self._tasks.items()]:
            if (end := self._end(task)) is not None:
                del self._tasks[name]
                yield name, end

    @abstractmethod
    def _submit(self, path: Path, name: str) -> Any:
        """Start a worker; return its task."""

    @abstractmethod
    def _end(self, task: Any) -> End | None:
        """Return how a task has ended; None if it has not."""

    def elsewhere(self, call: Call) -> set[int]:
        """Return the runs of a call that workers of earlier calls will make."""
        return set()

    def interrupt(self) -> bool:
        """Pass Ctrl-C on to the workers, if that can be done; return whether it was."""
        return False

    def close(self) -> None:
        """Release all resources."""
        self._held.close()


class Local(Backend):
    """Processes of this machine, one a core; a run whose process died has failed."""

    name = LOCAL
    retries = 0

    def open(self, runs: int) -> None:
        """Warn if there are more workers than cores."""
        affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
        self._cores: list[int | None] = sorted(affinity(0)) if affinity else [None]
        self.count = min(self.count, runs)
        self.beside = self.count - 1
        if affinity and self.count > len(self._cores):
            logger.warning(
                "%s runs at once share %s cores: wall times will be longer.",
                *(self.count, len(self._cores)),
            )

    def _submit(self, path: Path, name: str) -> tuple[Child, int | None]:
        busy = [core for _, core in self._tasks.values()]
        core = min(self._cores, key=busy.count)
        return start(path, name, core), core

    def _end(self, task: tuple[Child, int | None]) -> End | None:
        child, _ = task
        has_ended = child.process.poll() is not None or child.connection.poll()
        return end_of(child) if has_ended else None

    def interrupt(self) -> bool:
        """Pass the signal on, each time."""
        for child, _ in self._tasks.values():
            child.process.terminate()
        return True

    def close(self) -> None:
        """End all workers at once."""
        for child, _ in self._tasks.values():
            child.end(now=True)


class Dask(Backend):
    """The workers of a dask scheduler: the one at an address, or else of a cluster of its own.

    If a worker of dask dies, the scheduler gives its task to another one.
    """

    name = "dask"

    def open(self, runs: int) -> None:
        """Connect to the scheduler; each thread of its workers can be a worker of a call."""
        import distributed

        for name in ("distributed", "distributed.client"):  # the client's has its own level
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if self.options.address is not None:
            self._client = self._held.enter_context(scheduler.connect(self.options.address, 1))
        else:
            cluster = distributed.LocalCluster(
                n_workers=self.count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,  # none for workers: their children hold the data
                silence_logs=logging.CRITICAL,
            )
            self._held.callback(cluster.close)
            self._client = self._held.enter_context(distributed.Client(cluster))
            terminal = interrupts.OF_TERMINAL
            ignore = {"setup": lambda self, worker: interrupts.ignore_signals(terminal)}
            deaf = type("Deaf", (distributed.WorkerPlugin,), ignore)  # Ctrl-C is for this program
            self._client.register_plugin(deaf())
        hosts: Counter[str] = Counter()
        for worker, threads in self._client.nthreads().items():
            hosts[urlsplit(worker).hostname or worker] += threads
        self.count, self.beside = hosts.total(), min(max(hosts.values()), runs) - 1

    def ended(self) -> Iterator[tuple[str, End]]:
        """See `Backend`."""
        if self._client.status in ("closing", "closed"):  # it has tried to reconnect
            raise RunFailedError(
                "The dask scheduler has ended. Runs that it had begun end after their iteration; "
                "start it again, or leave out --backend: the same command resumes them."
            )
        return super().ended()

    def _submit(self, path: Path, name: str) -> Any:
        return self._client.submit(execute, path, name, variables(), pure=False)

    def _end(self, task: Any) -> End | None:
        if not task.done():
            return None
        if task.status == "finished":
            end: End = task.result()
            return end
        if task.status == "cancelled":
            return End("the dask scheduler has ended.")
        error = task.exception()
        return _failed(self.name, error, died=type(error).__name__ == "KilledWorker")


class Ray(Backend):
    """The nodes of a ray cluster: the one at an address, or else of one with ``jobs`` CPUs.

    An address is ``host:6379``, ``ray://host:10001`` or ``auto``.
    """

    name = "ray"

    def open(self, runs: int) -> None:
        """Connect to the cluster; each of its CPUs can be a worker of a call."""
        import ray

        address = self.options.address
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "critical"}
        if address is None:
            quiet |= {"num_cpus": self.count, "include_dashboard": False}
            for key, text in _OF_OWN.items():
                os.environ.setdefault(key, text)
        try:
            if address is not None:
                _check_reachable(address)
            self._held.callback(ray.shutdown)
            ray.init(address=address or "local", **quiet)
        except Exception as error:  # of any class, also plain ones
            what = f"at {shown(address)}" if address else "of its own"
            raise RunFailedError(
                f"No ray cluster answers {what} ({described(error)}). Start one with `ray start "
                "--head`, or give the address that it prints."
            ) from error
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        counts = [int(resources.get("CPU", 0)) for resources in nodes]
        self.count, self.beside = max(sum(counts), 1), max(min(max(counts), runs), 1) - 1

    def _submit(self, path: Path, name: str) -> Any:
        import ray

        return ray.remote(num_cpus=1, max_retries=0)(execute).remote(path, name, variables())

    def _end(self, task: Any) -> End | None:
        import ray

        if not ray.wait([task], timeout=0)[0]:
            return None
        try:
            end: End = ray.get(task)
        except Exception as error:
            raised = isinstance(error, ray.exceptions.RayTaskError)
            return _failed(self.name, error, died=not raised)
        return end


_OF_OWN = {"RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Variables of a cluster of ray of its own: no token in the home folder, no warning of changes."""

_REACH_SECONDS = 5
_HEALTH_SECONDS = 3 * _REACH_SECONDS  # includes the start of the program that checks


def _check_reachable(address: str) -> None:
    """Raise an error if no cluster of ray answers at an address that has a port."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.port is None or not parts.hostname:
        return
    socket.create_connection((parts.hostname, parts.port), timeout=_REACH_SECONDS).close()
    if not parts.scheme:  # ray itself would wait minutes for a silent listener
        command = (sys.executable, "-m", "ray.scripts.scripts", "health-check")
        try:
            subprocess.run(
                [*command, "--skip-version-check", "--address", address],
                capture_output=True,
                timeout=_HEALTH_SECONDS,
                check=True,
            )
        except subprocess.SubprocessError as error:
            raise ConnectionError("somebody listens who is no ray cluster") from error


def variables() -> dict[str, str]:
    """Return the environment variables of a worker on another node."""
    own = {key: text for key, text in os.environ.items() if key.startswith("SSVM_BENCH_")}
    return {**VARIABLES, **own}


def _failed(library: str, error: BaseException, died: bool) -> End:
    """Return how a task ended that raised an error: its node died, or cannot run the program."""
    text = f"{library} says {type(error).__name__}: {shown(error, 300)}."
    if died:
        return End(text)
    return End(f"A node cannot run this program: {text} Install the same version there.", True)
