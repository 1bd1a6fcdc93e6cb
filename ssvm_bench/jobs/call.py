"""One call of an experiment with several workers: a file and a log in its results folder.

==========================  ====================================================================
``.call-ID.json``           what the workers of the call need: the runs, by the overrides that
                            describe them, and the program that makes them; never changed. ID is
                            a digest of the content, so what is read is what was written.
``.call-ID.log``            what happened: one line of JSON per `Event`, only ever appended
==========================  ====================================================================

The process that issued a call holds a lock on the first file while it lives. When it releases the
lock, or dies in any way, the workers end after their iteration, on every node. (Workers in SLURM's
queue do not: they outlive that process.) All locks are those of the system, which releases them
when a process ends; none is broken by age.

A worker takes a run by a line of the log, under the lock of the log, and then locks the run's
folder, as every process does that makes it. While the call is held, its holder records which
workers have died. Later, a run whose folder nobody has locked can be taken again. A run that raises
is not taken again, and one whose worker dies only ``retries`` times.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, shown
from ssvm_bench.config.experiment import Experiment, Grid, Shard, dependency_levels
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.jobs.status import finished_before, sources
from ssvm_bench.results import checkpoint_file, checks, run_folder
from ssvm_bench.results.provenance import versions

OWN = r"\.call-[0-9a-f]{32}\.(log|out|json)"
"""Names of the files of a call; ``.out`` is what its jobs in SLURM print."""

_UNSHARED = {"nolock", "localflock", "local_lock=flock", "local_lock=all"}
"""Options of a mount whose locks do not reach other nodes."""

_CONTENT: checks.Shape = {
    **dict.fromkeys(("id", "node", "started", "program", "place", "backend"), checks.TEXT),
    **dict.fromkeys(("grids", "overrides", "folders"), checks.LIST),
    **dict.fromkeys(("versions", "runs"), checks.TEXTS),
    **dict.fromkeys(("beside", "retries"), checks.WHOLE),
    **dict.fromkeys(("force", "outlives"), checks.FLAG),
    "shard?": checks.TEXT,
}
"""What a call's file holds."""

_KINDS = ("taken", "said", "finished", "held", "interrupted", "failed", "mistaken", "died")
_ENDS = ("finished", "failed", "mistaken")


class RefusedError(RunFailedError):
    """A node cannot make the runs of a call: the message says what differs there."""


class Event(NamedTuple):
    """A line of the log.

    Attributes
    ----------
    kind : str
        ``taken``; ``said``: the run logged a message; ``finished``; ``held``: a process of another
        call makes it; ``interrupted``; ``failed``; ``mistaken``: a ``ConfigError``; ``died``.
    run : int
        Number of the run.
    text : str
        The worker that took it; the message; the source of a finished run's data; or why.
    more : str
        The outcome's status, or the traceback.
    """

    kind: str
    run: int
    text: str = ""
    more: str = ""


class Call:
    """A call, as its supervisor and each of its workers see it.

    Parameters
    ----------
    about : mapping
        Content of its file.
    configs : list of RunConfig
        All runs of the experiment.

    Attributes
    ----------
    path : Path
        Its file.
    runs : set of int
        The numbers of the runs to make.
    ended : dict
        Number of a run → the event that ended it in this call.
    takers : dict
        Number of a run → the worker that took it, and has not ended it.
    """

    def __init__(self, about: Mapping[str, Any], configs: list[RunConfig]) -> None:
        self.about, self.configs = about, configs
        self.path = configs[0].results_dir.absolute() / f".call-{_digest(about)}.json"
        self.runs = {int(run) for run in about["runs"]}
        self._later = {*dependency_levels(configs)[1]}
        self.ended: dict[int, Event] = {}
        self.takers: dict[int, str] = {}
        self._deaths: Counter[int] = Counter()
        self._news: list[Event] = []
        self._read = 0
        self._held = ExitStack()

    @classmethod
    def issue(
        cls, asked: Mapping[str, Any], configs: list[RunConfig], runs: Iterable[int], **about: Any
    ) -> Call:
        """Return a new call; its file is written by `led`.

        Parameters
        ----------
        asked : mapping
            What describes the configs, as `asked_for` returns it.
        configs : list of RunConfig
        runs : iterable of int
            The numbers of those to make.
        about
            ``backend``, ``beside``, ``retries``, ``outlives``: see `jobs.backends.Backend`.
        """
        here = {
            "id": secrets.token_hex(8),
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "node": socket.gethostname(),
            "program": checkpoint_file.program(),
            "versions": versions(),
            "force": configs[0].force,
            "place": str(Path.cwd()),
            "runs": {str(run): key(configs[run]) for run in runs},
        }
        return cls({**asked, **about, **here}, configs)

    @classmethod
    def load(cls, path: Path) -> Call:
        """Return the call of a file, on the node of a worker.

        Raises
        ------
        RefusedError
            If this node cannot make its runs.
        """
        node, about = f"The node {socket.gethostname()}", read(path)
        unseen = RefusedError(
            f"{node} does not see the results folder {path.parent}. Choose one that all nodes "
            "share, with results_dir=…, or use --shard."
        )
        if about is None:
            raise unseen
        if about["program"] != checkpoint_file.program():
            here, there = versions(), about["versions"]
            differ = [
                f"{name} {here.get(name, 'none')} in place of {there.get(name, 'none')}"
                for name in sorted({*here, *there})
                if here.get(name) != there.get(name)
            ]
            raise RefusedError(
                f"{node} has another version of the program: "
                f"{', '.join(differ) or 'other sources of ssvm-bench'}. Install the same one there,"
                " and start its workers again."
            )
        is_held = about["outlives"] or files.is_held(path)
        if about["node"] != socket.gethostname() and not (is_held and shares_locks(path.parent)):
            raise RefusedError(
                f"{node} does not share the locks of the results folder {path.parent} with "
                f"{about['node']}: see its mount options (nolock, local_lock, localflock). Choose "
                "another folder, with results_dir=…, or use --shard."
            )
        with suppress(OSError):
            os.chdir(about["place"])
        try:
            configs = _configs(about)
            same = all(key(configs[int(run)]) == known for run, known in about["runs"].items())
        except (SsvmBenchError, IndexError):
            same = False
        if not same:
            raise RefusedError(
                f"{node} has other config files than {about['node']}. Give all nodes the same ones."
            )
        call = cls(about, configs)
        if call.path != path:
            raise unseen
        return call

    @contextmanager
    def led(self) -> Iterator[None]:
        """Write the file and hold it: workers continue while the block does, and this process.

        Raises
        ------
        RunFailedError
            If the results folder cannot be written.
        """
        with self._held:
            try:
                while not self.path.exists():  # until it is held, `sweep` may remove it
                    self.release()
                    files.write(self.path, _content(self.about), self.path.parent)
                    with suppress(FileNotFoundError):
                        self._held.enter_context(files.locked(self.path, create=False))
            except OSError as error:
                raise _cannot_write(self.path, error) from error
            yield

    def release(self) -> None:
        """Let all workers end after their iterations."""
        self._held.close()

    def is_wanted(self) -> bool:
        """Return whether the workers of the call are to continue."""
        return self.path.exists() and (self.about["outlives"] or files.is_held(self.path))

    # ---- taking runs --------------------------------------------------------------------------

    def take(self, worker: str, dataset: str) -> int | None:
        """Take a run; return None if there is none to take.

        Seeds come in order, runs on the worker's dataset first, then on one that no other has.
        """
        led = files.is_held(self.path)
        with self._log() as append:
            others = {self.configs[run].dataset.name for run in self.takers}

            def order(run: int) -> tuple[Any, ...]:
                seed, name = self.configs[run].seed, self.configs[run].dataset.name
                late = run in self.takers, run in self._later
                return *late, seed, name != dataset, name in others, run

            for run in sorted(self.runs, key=order):
                if run in self.takers and not led and not is_at_work(self.configs[run]):
                    self._die(append, run, "its process has ended.")
                if self._is_free(run):
                    append(Event("taken", run, worker))
                    return run
        return None

    def free(self) -> list[int]:
        """Return the runs that a worker could take now; those that others have made have ended."""
        free = [run for run in sorted(self.runs) if self._is_free(run)]
        for run in free:
            if finished_before(self.configs[run]):
                with self._log() as append:
                    if self._is_free(run):  # still
                        append(Event("finished", run, "", "skipped"))
        return [run for run in free if run not in self.ended and run not in self.takers]

    def _is_free(self, run: int) -> bool:
        if run in self.ended or run in self.takers or is_at_work(self.configs[run]):
            return False  # and a run may be contained in another one that is made before
        return run not in self._later or self.ended.keys() >= self.runs - self._later

    # ---- what happened ------------------------------------------------------------------------

    def record(self, *event: Any) -> None:
        """Write an `Event` to the log."""
        with self._log() as append:
            append(Event(*event))

    def news(self, gone: Mapping[str, str]) -> list[Event]:
        """Return what happened since the last call.

        Parameters
        ----------
        gone : mapping
            Worker that has ended → how. Runs that it has not ended have died with it.
        """
        with self._log() as append:
            for run in [run for run, taker in self.takers.items() if taker in gone]:
                self._die(append, run, gone[self.takers[run]])
        news, self._news = self._news, []
        return news

    def _die(self, append: Callable[[Event], None], run: int, how: str) -> None:
        """Record that a run's worker has died: the run is free again, or has failed."""
        append(Event("died", run, how))
        if finished_before(self.configs[run]):  # it died when its files were there
            append(Event("finished", run, "", "finished"))
            return
        retries = self.about["retries"]
        if self._deaths[run] > retries:
            again = "The same command makes this run again."
            if retries:
                again = f"That happened {retries + 1} times; the same command tries again."
            append(Event("failed", run, f"{how} {again}"))

    @contextmanager
    def _log(self) -> Iterator[Callable[[Event], None]]:
        """Lock the log, read what is new there, and yield a function that appends to it."""
        try:
            log, is_led = self.path.with_suffix(".log"), self.path.exists()
            with files.locked(log, create=is_led) as descriptor:

                def append(event: Event) -> None:
                    os.pwrite(descriptor, torn + json.dumps(event).encode() + b"\n", end())
                    catch_up()

                def end() -> int:
                    return os.fstat(descriptor).st_size

                def catch_up() -> bytes:
                    found = os.pread(descriptor, max(end() - self._read, 0), self._read)
                    *lines, rest = found.split(b"\n")
                    self._read += len(found) - len(rest)
                    for line in lines:
                        self._follow(line)
                    return b"\n" * bool(rest)  # a writer was killed within its line

                torn = catch_up()
                yield append
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def _follow(self, line: bytes) -> None:
        """Take a line of the log into account; what is none is passed over."""
        try:
            event = Event(*json.loads(line))
        except (ValueError, TypeError, RecursionError):
            return
        known = event.kind in _KINDS and type(event.run) is int and event.run in self.runs
        if not known or not all(isinstance(text, str) for text in event[2:]):
            return
        self._news.append(event)
        if event.kind == "taken":
            self.takers[event.run] = event.text
        elif event.kind != "said":
            self.takers.pop(event.run, None)
        self._deaths[event.run] += event.kind == "died"
        if event.kind in _ENDS:
            self.ended[event.run] = event


def asked_for(
    experiment: Experiment,
    overrides: Sequence[str],
    config_dirs: Sequence[Path],
    shard: Shard | None,
) -> dict[str, Any]:
    """Return what describes the runs of an experiment, as plain values."""
    return {
        "grids": [[of.origin, list(of.words), dict(of.each)] for of in experiment.grids],
        "overrides": list(overrides),
        "folders": [str(folder.absolute()) for folder in config_dirs],
        "shard": None if shard is None else str(shard),
    }


def _configs(asked: Mapping[str, Any]) -> list[RunConfig]:
    grids = tuple(Grid(of, tuple(words), each) for of, words, each in asked["grids"])
    folders = [Path(folder) for folder in asked["folders"]]
    configs = Experiment("", "", "", grids, {}, ()).configs(asked["overrides"], folders)
    return Shard.parsed(asked["shard"]).of(configs) if asked["shard"] else configs


def key(config: RunConfig) -> str:
    """Return a digest of a run that does not depend on its data."""
    return _digest({key: value for key, value in config.resolved().items() if key != "quiet"})


def _content(about: Mapping[str, Any]) -> bytes:
    return json.dumps(about, sort_keys=True).encode()


def _digest(about: Mapping[str, Any]) -> str:
    return _digest_of(_content(about))


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def is_at_work(config: RunConfig) -> bool:
    """Tell whether a process makes a run, on whatever data."""
    stages = (stage for of in sources(config) for stage in config.with_source(of).path_steps())
    return any(run_folder.is_locked(stage.folder) for stage in stages)


def read(path: Path) -> dict[str, Any] | None:
    """Return the content of a call's file; None if there is none, or it is not what was written."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        content = files.read(path, within=path.parent)
        if path.name == f".call-{_digest_of(content)}.json":
            about: dict[str, Any] = json.loads(content)
            checks.check(about, _CONTENT)
            return about
    return None


def calls(folder: Path) -> dict[Path, dict[str, Any]]:
    """Return the calls of a results folder: file → content."""
    found = {path: read(path) for path in sorted(folder.glob(".call-*.json"))}
    return {path: about for path, about in found.items() if about is not None}


def sweep(folder: Path) -> None:
    """Remove the files of calls that were killed on this node; their workers end."""
    for path, about in calls(folder).items():
        if about["node"] == socket.gethostname() and not about["outlives"]:
            with suppress(OSError, files.HeldError), files.locked(path, 0, create=False):
                remove(path)
    for left in folder.glob(".call-*.*"):  # a worker may have written after its call had ended
        if left.suffix in (".log", ".out"):
            with suppress(OSError, files.HeldError), files.locked(left, 0, create=False):
                if not left.with_suffix(".json").exists():
                    remove(left.with_suffix(".json"))


def remove(path: Path) -> None:
    """Remove the files of a call, its own one first: nobody makes a log without it."""
    for left in sorted(path.parent.glob(f"{path.stem}.*"), key=lambda left: left != path):
        files.remove(left, OWN)


def shares_locks(folder: Path) -> bool:
    """Tell whether locks below a folder reach other nodes, as far as its mount says."""
    with suppress(OSError):  # not on macOS
        about = folder.stat().st_dev
        device = f"{os.major(about)}:{os.minor(about)}"
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            if line.split()[2] == device and _UNSHARED & {*re.split(r"[\s,]", line)}:
                return False
    return True


def _cannot_write(path: Path, error: OSError) -> RunFailedError:
    return RunFailedError(
        f"Cannot write {path}: {shown(error.strerror or error)}. Make room or choose another "
        "folder with results_dir=…"
    )
