"""Files that appear at once: a single one, or the folder of a run, which one process works on.

The files are written and synced in a hidden sibling folder. It is then renamed, or exchanged by one
system call with the folder that it replaces. So a run folder either does not exist or is complete,
whenever the process dies, and an existing one is there at any moment. Where the system or the file
system cannot exchange two folders, the old one is moved aside first; if the writer dies then, the
next reader or writer restores it. Siblings of ``seed=0`` that no reader takes for a run:

========================  ======================================================================
``.seed=0.lock``          held by the process that works on this configuration
``.seed=0.tmp-…``         a run being written (`ssvm_bench.base.files`)
``.seed=0.old-…``         a run that is being replaced, or its replacement
``.seed=0.kept-…``        a run that was replaced, with files that are not a run's
``seed=0.partial``        trace so far, and checkpoint, of a run that was interrupted or failed
========================  ======================================================================

The results folder and its folder ``runs`` may be links. Below ``runs``, no link is followed: a run
is not read or written where a link is in the way.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.files import HeldError, remove, temporary_folder
from ssvm_bench.results.checkpoint_file import NAME as CHECKPOINT

TRACE, CONFIG, WEIGHTS, SUMMARY = "trace.parquet", "config.yaml", "weights.npz", "summary.json"
NAMES, TRACEBACK = "names.json.gz", "traceback.txt"
OWN = "|".join(map(re.escape, (TRACE, CONFIG, WEIGHTS, SUMMARY, NAMES, TRACEBACK, CHECKPOINT)))
"""Regular expression of the names of a run's files; a run with other files is not deleted."""

PARTIAL = ".partial"

logger = logging.getLogger(__name__)

_HERE, _RENAME_EXCHANGE = -100, 2
"""Linux's AT_FDCWD, and the flag of renameat2."""

_PLACES = 256
"""More runs on a node are not counted."""

_GLANCE_SECONDS = 0.5
"""A process that only tests whether a lock is held does not hold it for longer than that."""


def partial_folder(folder: Path) -> Path:
    """Return where the partial trace of a run is kept."""
    return folder.with_name(folder.name + PARTIAL)


def results_of(folder: Path) -> Path:
    """Return the results folder that a run's folder is in, below which no link is followed."""
    above = folder.parents
    return above[4] if len(above) > 4 and above[3].name == "runs" else above[0]


@contextmanager
def lock(folder: Path, wait: bool = True) -> Iterator[None]:
    """Hold a run's folder for this process, so that the same configuration is run only once.

    A caller that has waited should check again whether the run `is_finished`. Left-overs of dead
    writers are removed first.

    Parameters
    ----------
    folder : Path
        The run's folder; its parents are created.
    wait : bool
        Whether to wait if another process holds the folder.

    Raises
    ------
    HeldError
        If another process holds the folder, and ``wait`` is false.
    RunFailedError
        If the results folder cannot be written.
    """
    with ExitStack() as held:
        try:
            files.make(folder.parent, results_of(folder))
            for place in (folder, partial_folder(folder)):
                files.refuse_links(place)
            try:
                held.enter_context(files.locked(_lock_file(folder), _GLANCE_SECONDS))
            except HeldError:
                if not wait:
                    raise
                logger.info(
                    "Another process works on the same configuration; waiting for %s.", folder
                )
                held.enter_context(files.locked(_lock_file(folder)))
            _clear_left_overs(folder)
        except OSError as error:
            raise _cannot_write(folder, error) from error
        yield


def is_locked(folder: Path) -> bool:
    """Tell whether a process works on the configuration of a run's folder."""
    return files.is_held(_lock_file(folder))


@contextmanager
def counted(results_dir: Path) -> Iterator[Callable[[], int]]:
    """Be one of the runs that are made on this node; yield a function that counts the others.

    Each holds a lock ``.running-NODE-K.lock`` in the folder ``runs``, the first one that is free.
    """
    name = results_dir / "runs" / f".running-{socket.gethostname()}"
    with ExitStack() as held:
        for number in range(_PLACES):
            own = name.with_name(f"{name.name}-{number}.lock")
            with suppress(HeldError, OSError):  # that of another user, or a link
                held.enter_context(files.locked(own, 0))
                break
        all_places = f"{name.name}-*.lock"
        yield lambda: sum(files.is_held(one) for one in name.parent.glob(all_places) if one != own)


def _lock_file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def recover(place: Path, pattern: str = "") -> None:
    """Restore runs whose replacement was killed half-way, unless a process is at work on them.

    Parameters
    ----------
    place : Path
    pattern : str
        Which folders below ``place`` to search: ``"**/"``; by default ``place`` alone.
    """
    for old in place.glob(f"{pattern}.seed=*.old-*"):
        folder = old.with_name(old.name[1:].rpartition(".old-")[0].removesuffix(PARTIAL))
        with suppress(HeldError, RunFailedError), lock(folder, wait=False):
            pass  # taking the lock restores the run


def _clear_left_overs(folder: Path) -> None:
    """Undo the steps of writers that were killed. Safe only while the lock is held."""
    for kind in ("old", "tmp"):
        for name in (folder.name, folder.name + PARTIAL):
            for stale in folder.parent.glob(f".{name}.{kind}-*"):
                if kind == "tmp":
                    remove(stale)
                elif folder.with_name(name).exists():
                    _discard(stale)
                else:
                    stale.rename(folder.with_name(name))  # killed while replacing this run


Content: TypeAlias = "bytes | Callable[[BinaryIO], object] | Path"
"""The bytes of a file, a function that writes them, or a file to link to if it exists."""


def write_folder(folder: Path, contents: Mapping[str, Content]) -> None:
    """Make a folder of files appear at once, replacing an existing one.

    Parameters
    ----------
    folder : Path
    contents : mapping
        Name → content.
    """
    try:
        files.refuse_links(folder, results_of(folder))
        with temporary_folder(folder, results_of(folder)) as temporary:
            for name, content in contents.items():
                if isinstance(content, Path):
                    _link(content, temporary / name)
                    continue
                with (temporary / name).open("wb") as file:
                    if isinstance(content, bytes):
                        file.write(content)
                    else:
                        content(file)
                    file.flush()
                    os.fsync(file.fileno())
            _sync(temporary)
            _publish(temporary, folder)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _link(content: Path, path: Path) -> None:
    """Let a file have a second name, or copy it; nothing if it is missing, or itself a link."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(content.lstat().st_mode):
            return
        try:
            os.link(content, path, follow_symlinks=False)
        except OSError:  # no hard links here
            with files.opened(content, content.parent) as file, path.open("xb") as copy:
                shutil.copyfileobj(file, copy)


def _publish(temporary: Path, folder: Path) -> None:
    """Rename the temporary folder; if there is a folder of that name, exchange the two.

    A temporary name is deleted with all that is in it, so what is replaced never has one.
    """
    aside: list[Path] = []
    while True:
        try:
            temporary.rename(folder)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        aside.append(folder.with_name(f".{folder.name}.old-{secrets.token_hex(6)}"))
        temporary.rename(aside[-1])
        if _exchange(aside[-1], folder):
            break
        aside[-1].rename(temporary)
        with suppress(FileNotFoundError):  # another writer may just have moved it
            folder.rename(aside[-1])
    _sync(folder.parent)
    for old in aside:
        _discard(old)


def _discard(old: Path) -> None:
    """Remove a run that was replaced; if not all of it is a run's, it stays under another name."""
    if not remove(old, OWN):
        kept = old.with_name(old.name.replace(".old-", ".kept-"))
        with suppress(OSError):
            old.rename(kept)
            logger.warning("The previous content was moved to %s.", kept)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names at once; return False if the system cannot do that here."""
    rename: Any = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_HERE, names[0], _HERE, names[1], _RENAME_EXCHANGE) == 0)


def _sync(folder: Path) -> None:
    """Make the names inside a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(folder: Path, error: OSError) -> RunFailedError:
    return RunFailedError(
        f"Cannot write the run {folder}: {error.strerror or error}. Make room there or make it "
        "writable, or choose another folder with results_dir=…, then run again."
    )
