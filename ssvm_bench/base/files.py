"""Files and folders that appear completely or not at all; reading that cannot hang or run forever.

A file or folder that is being written has a hidden temporary name beside its final one, and its
writer keeps it locked. The system releases the lock when the process ends, however it ends. So the
next writer in that folder can distinguish leftovers of dead writers from the work of live ones, and
removes the leftovers.

Only what is provably this program's is deleted (`remove`). Below the folder ``within`` which
something is read or written, no symbolic link is followed: behind it is something else of the
user's. ``SECURITY.md`` has a table of all that deletes, renames and writes.

Caches are in a folder of the user. If that cannot be used, a temporary folder replaces it.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import functools
import logging
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

import platformdirs

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import shown

logger = logging.getLogger(__name__)

MARK = ".tmp-ssvm-bench-"
"""In every temporary name: ``.trace.parquet.tmp-ssvm-bench-…``."""

LINKED = ("runs", "traces", "figures", "report")
"""Folders of a results folder that may be links: users keep them on other disks."""

LARGEST = 1 << 30
"""No file of results has more bytes."""

_TEMPORARY_NAME = re.compile(rf"\..*{re.escape(MARK)}\w+")
_TRIES = 10
_LONGEST = 60  # characters of the final name that a temporary one keeps
_WAIT_SECONDS = 0.05  # between two looks at a lock
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


Content: TypeAlias = bytes | Callable[[BinaryIO], object]
"""What a file contains, or a function that writes it to the open file."""


class HeldError(Exception):
    """Another process holds a lock."""


def write(path: Path, content: Content, within: Path | None = None) -> Path:
    """Write a file atomically, as `write_together`; return its path."""
    write_together({path: content}, within)
    return path


def write_together(contents: Mapping[Path, Content], within: Path | None = None) -> None:
    """Write files that belong together; existing ones are replaced, and folders are created.

    Each file is replaced atomically, and none before all of them are on the disk.

    Parameters
    ----------
    contents : mapping
        Path → content.
    within : Path, optional
        Below this folder, a link in the way is an error (`link_on`). By default, links to the
        file's folder are followed, and one in the place of the file is replaced, unless it leads to
        a device or a pipe.

    Raises
    ------
    OSError
        If one cannot be written, as what is there is not a regular file; no other one is replaced
        then, and nothing is left behind.
    """
    for path in contents:
        if within is not None:
            refuse_links(path, within)
        if path.exists() and not path.is_file():
            raise OSError(f"{path} is not a regular file")
    with ExitStack() as held:
        written = []
        for path, content in contents.items():
            how = os.O_RDWR | os.O_CREAT | os.O_EXCL
            temporary, descriptor = held.enter_context(_temporary(path, how, within))
            with open(descriptor, "wb", closefd=False) as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    content(file)
            os.fsync(descriptor)
            written.append((temporary, path))
        for temporary, path in written:
            temporary.replace(path)


@contextmanager
def temporary_folder(place: Path, within: Path | None = None) -> Iterator[Path]:
    """Make a folder beside ``place``, to be renamed to that path; else remove it at the end."""
    with _temporary(place, os.O_RDONLY, within) as (temporary, _):
        yield temporary


@contextmanager
def _temporary(place: Path, flags: int, within: Path | None) -> Iterator[tuple[Path, int]]:
    """Yield a new path that this process has locked, and its descriptor; remove it afterwards."""
    make(place.parent, within)
    sweep(place.parent)
    temporary, descriptor = _locked(place, flags)
    try:
        yield temporary, descriptor
    finally:
        remove(temporary)
        os.close(descriptor)


def _locked(place: Path, flags: int) -> tuple[Path, int]:
    for _ in range(_TRIES):
        temporary = _temporary_name(place)
        if not flags & os.O_CREAT:
            temporary.mkdir()
        # before it is locked, it looks abandoned to other processes, and they may remove it
        with suppress(FileNotFoundError):
            descriptor = os.open(temporary, flags | os.O_NOFOLLOW, 0o666)
            with suppress(OSError):  # on a file system without locks, no process sweeps, either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), temporary.stat()):
                    return temporary, descriptor
            os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, "its folder is being removed", str(place.parent))


def _temporary_name(place: Path) -> Path:
    return place.with_name(f".{place.name[:_LONGEST]}{MARK}{secrets.token_hex(6)}")


# ---- links, folders and locks ------------------------------------------------------------------


def link_on(path: Path, within: Path | None = None) -> Path | None:
    """Return the first link below ``within`` on the way to a path, which counts; None: no link.

    `LINKED` folders of ``within`` do not count. By default, ``within`` is the path's folder.
    """
    within = within or path.parent
    place = str(within)  # this is called for each folder of results, and paths are slow
    for depth, name in enumerate(path.relative_to(within).parts):
        place = os.path.join(place, name)  # noqa: PTH118
        if os.path.islink(place) and (depth or name not in LINKED):  # noqa: PTH114
            return Path(place)
    return None


def refuse_links(path: Path, within: Path | None = None) -> None:
    """Raise ``OSError`` if there is a link below ``within`` on the way to a path; see `link_on`."""
    if link := link_on(path, within):
        raise OSError(f"{link} is a link to {shown(link.readlink())}, which is not followed")


def make(folder: Path, within: Path | None = None) -> None:
    """Create a folder and its parents; by default, links on the way are followed.

    Raises
    ------
    OSError
        If that is impossible, or there is a link below ``within``.
    """
    if within is not None and folder != within:
        refuse_links(folder, within)
    for place in (folder, *folder.parents) if not folder.exists() else ():
        if place.is_symlink() and not place.exists():
            raise OSError(f"{place} is a link to {shown(place.readlink())}, where nothing is")
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def locked(path: Path, seconds: float = math.inf, create: bool = True) -> Iterator[int]:
    """Hold a lock, which is a file that stays; yield its descriptor.

    The lock ends with the block or the process. The path must not be a link.

    Parameters
    ----------
    path : Path
    seconds : float
        How long to wait for another process.
    create : bool
        Whether the file is created if it is missing.

    Raises
    ------
    HeldError
        If another process holds it for longer.
    OSError
        If there cannot be a lock at the path.
    """
    refuse_links(path)
    how = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_CREAT * create
    descriptor = os.open(path, how, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise HeldError from None
                time.sleep(_WAIT_SECONDS)
        try:
            yield descriptor
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a fork may have the descriptor, too
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Tell whether a process holds a lock, as far as this user may know."""
    try:
        with locked(path, 0, create=False):
            return False
    except HeldError:
        return True
    except OSError:
        return False


# ---- deleting ----------------------------------------------------------------------------------


def sweep(folder: Path) -> None:
    """Remove what dead writers have left in a folder."""
    for path in folder.glob(f".*{MARK}*"):
        with suppress(OSError):
            kind = os.O_DIRECTORY if path.is_dir() else os.O_RDWR | os.O_NONBLOCK
            descriptor = os.open(path, kind | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
            finally:
                os.close(descriptor)


def remove(path: Path, names: str = "") -> bool:
    """Delete a file or folder of this program; the only function that deletes.

    What has a temporary name of this program is deleted. Anything else is deleted only if it is a
    regular file whose name is among those given, or a folder with nothing but such files. Otherwise
    it stays, and a warning names it. No link is followed or deleted, except in a folder with a
    temporary name, where links are deleted as such. A partly removed folder loses its name.

    Parameters
    ----------
    path : Path
        The way to it must be checked already (`link_on`).
    names : str
        Regular expression of the names of files that this program writes there; for files in a
        folder of the folder, of their path.

    Returns
    -------
    bool
        Whether nothing is at the path afterwards.
    """
    with suppress(OSError), ExitStack() as held:
        place = _opened_folder(path.parent, held, links=True)
        mode = os.stat(path.name, dir_fd=place, follow_symlinks=False).st_mode
        temporary = _TEMPORARY_NAME.fullmatch(path.name) is not None
        if not stat.S_ISDIR(mode):
            if not (stat.S_ISREG(mode) and (temporary or re.fullmatch(names, path.name))):
                return _kept(path, "it is not a file of this program")
            os.unlink(path.name, dir_fd=place)
            return True
        folder = _opened_folder(path.name, held, place)
        if temporary:
            shutil.rmtree(path.name, ignore_errors=True, dir_fd=place)
        elif foreign := next(_foreign(folder, names), ""):
            return _kept(path, f"{shown(foreign)} in it is not a file of this program")
        else:
            name = path.name
            if not name.startswith("."):
                name = _temporary_name(path).name
                os.rename(path.name, name, src_dir_fd=place, dst_dir_fd=place)
            _emptied(folder)
            os.rmdir(name, dir_fd=place)
    return not os.path.lexists(path)


def _opened_folder(
    path: Path | str, held: ExitStack, place: int | None = None, links: bool = False
) -> int:
    """Return the descriptor of a folder, until the stack is closed."""
    how = _FOLDER & ~os.O_NOFOLLOW if links else _FOLDER
    descriptor = os.open(path, how, dir_fd=place)
    held.callback(os.close, descriptor)
    return descriptor


def _kept(path: Path, why: str) -> bool:
    logger.warning("%s is not deleted: %s.", path, why)
    return False


def _foreign(folder: int, names: str, above: str = "") -> Iterator[str]:
    """Yield what is not a regular file of the given names in a folder; empty folders, too."""
    for entry in sorted(_names(folder)):
        about = os.stat(entry, dir_fd=folder, follow_symlinks=False)
        path = f"{above}{entry}"
        if stat.S_ISDIR(about.st_mode):
            with ExitStack() as held:
                inner = _opened_folder(entry, held, folder)
                if not _names(inner):
                    yield path
                yield from _foreign(inner, names, f"{path}/")
        elif not stat.S_ISREG(about.st_mode) or not (
            re.fullmatch(names, path) or _TEMPORARY_NAME.fullmatch(entry)
        ):
            yield path


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _emptied(folder: int) -> None:
    """Delete what is in a folder in which nothing is foreign."""
    for entry in _names(folder):
        if stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
            with ExitStack() as held:
                _emptied(_opened_folder(entry, held, folder))
            os.rmdir(entry, dir_fd=folder)
        else:
            os.unlink(entry, dir_fd=folder)


# ---- reading -----------------------------------------------------------------------------------


def expanded(path: str | Path) -> Path:
    """Return a path with ``~`` and ``~user`` replaced, as a shell does.

    Raises
    ------
    OSError
        There is no such user, and no file whose name begins so.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        if Path(path).exists():
            return Path(path)
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from error


def opened(path: Path, within: Path | None = None) -> BinaryIO:
    """Open a regular file to read; the only function that opens files of others.

    Parameters
    ----------
    path : Path
    within : Path, optional
        Below this folder, no link is followed (`link_on`); by default, all are.

    Raises
    ------
    OSError
        If it cannot be opened; if it is not a regular file, because a pipe without a writer would
        hang and a device may never end; or if there is a link below ``within``.
    """
    how = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if within is not None:
        refuse_links(path, within)
        how |= os.O_NOFOLLOW
    descriptor = os.open(path, how)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read(path: Path, limit: int = LARGEST, within: Path | None = None) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    OSError
        If it cannot be `opened`, or has more bytes than the limit.
    """
    with opened(path, within) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise OSError(f"it has more than {limit} bytes")
        return file.read()


# ---- caches ------------------------------------------------------------------------------------

TEMPORARY = "SSVM_BENCH_TEMPORARY"
"""Environment variable that passes the temporary folder of a process to its children."""


def user_folder() -> Path:
    """Return the user's cache folder of ssvm-bench, which need not exist.

    Without a home folder, return a temporary folder.
    """
    folder = Path(platformdirs.user_cache_dir("ssvm-bench"))
    if "HOME" not in os.environ and "XDG_CACHE_HOME" not in os.environ:
        return temporary_cache("There is no home folder (HOME is not set)")
    if not folder.is_absolute():
        return temporary_cache(f"{folder.parent} is no absolute path (see HOME and XDG_CACHE_HOME)")
    return folder


def why_unusable(folder: Path, executed: bool = True) -> str:
    """Create a folder, and return why files cannot be kept in it; an empty string if they can.

    Parameters
    ----------
    folder : Path
    executed : bool
        Whether files there are executed: then nobody else may be able to write to the folder.
    """
    try:
        if executed:
            refuse_links(folder)
            with suppress(FileExistsError):
                make(folder.parent)
                folder.mkdir(0o755)
        make(folder)
        about = folder.stat()
        if about.st_uid != os.geteuid():
            return "it belongs to another user"
        if about.st_mode & (stat.S_IWOTH | stat.S_IWGRP * executed):
            return "others may write to it"
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(1 << 12))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def matplotlib_folder() -> Path | None:
    """Return a temporary folder for matplotlib's font list; None if the usual one is usable."""
    with suppress(OSError):
        folder = user_folder()
        if reason := why_unusable(folder, executed=False):
            folder = temporary_cache(f"Cannot use {folder}: {reason}")
        return folder / "matplotlib" if str(folder) == os.environ.get(TEMPORARY) else None
    return None


@functools.cache
def temporary_cache(why: str) -> Path:
    """Return a folder that exists until this process ends, and that its children use, too.

    Parameters
    ----------
    why : str
        The reason, printed once on stderr by the process that creates the folder.

    Raises
    ------
    OSError
        If it cannot be created, either.
    """
    inherited = Path(os.environ.get(TEMPORARY, "-"))
    if inherited.is_absolute() and inherited.is_dir() and not why_unusable(inherited):
        return inherited
    held = ExitStack()
    place = Path(tempfile.gettempdir(), "ssvm-bench")
    folder = held.enter_context(temporary_folder(place))
    folder.chmod(0o700)  # what is loaded from there is executed
    atexit.register(held.close)
    interrupts.before_exit(held.close)
    os.environ[TEMPORARY] = str(folder)
    with suppress(OSError, ValueError):  # stderr may be closed
        line = f"{shown(why, 300)}: caches are kept in {folder} until the program ends."
        print(line, file=sys.stderr, flush=True)
    return folder
