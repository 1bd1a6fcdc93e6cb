"""Files and folders that appear completely or not at all; reading that cannot hang or run forever.

A file or folder that is being written has a hidden temporary name beside its final one, and its
writer keeps it locked. The system releases the lock when the process ends, however it ends. So the
next writer in that folder can distinguish leftovers of dead writers from the work of live ones, and
removes the leftovers.

Caches are in a folder of the user. If that cannot be used, a temporary folder replaces it.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import functools
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

import platformdirs

from ssvm_bench.base.errors import shown

MARK = ".tmp-ssvm-bench-"
"""In every temporary name: ``.trace.parquet.tmp-ssvm-bench-…``."""

LARGEST = 1 << 30
"""No file of results has more bytes."""

_TRIES = 10
_LONGEST = 60  # characters of the final name that a temporary one keeps


Content: TypeAlias = bytes | Callable[[BinaryIO], object]
"""What a file contains, or a function that writes it to the open file."""


def write(path: Path, content: Content) -> Path:
    """Write a file atomically, as `write_together`; return its path."""
    write_together({path: content})
    return path


def write_together(contents: Mapping[Path, Content]) -> None:
    """Write files that belong together; existing ones are replaced, and folders are created.

    Each file is replaced atomically, and none before all of them are on the disk.

    Raises
    ------
    OSError
        If one cannot be written; no other one is replaced then, and nothing is left behind.
    """
    with ExitStack() as held:
        written = []
        for path, content in contents.items():
            how = os.O_RDWR | os.O_CREAT | os.O_EXCL
            temporary, descriptor = held.enter_context(_temporary(path, how))
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
def temporary_folder(place: Path) -> Iterator[Path]:
    """Make a folder beside ``place``, to be renamed to that path; else remove it at the end."""
    with _temporary(place, os.O_RDONLY) as (temporary, _):
        yield temporary


@contextmanager
def _temporary(place: Path, flags: int) -> Iterator[tuple[Path, int]]:
    """Yield a new path that this process has locked, and its descriptor; remove it afterwards."""
    place.parent.mkdir(parents=True, exist_ok=True)
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
            descriptor = os.open(temporary, flags, 0o666)
            with suppress(OSError):  # on a file system without locks, no process sweeps, either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), temporary.stat()):
                    return temporary, descriptor
            os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, "its folder is being removed", str(place.parent))


def sweep(folder: Path) -> None:
    """Remove what dead writers have left in a folder."""
    for path in folder.glob(f".*{MARK}*"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
            finally:
                os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as possible; a partly removed folder loses its name."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            if not path.name.startswith("."):
                path = path.rename(_temporary_name(path))
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _temporary_name(place: Path) -> Path:
    return place.with_name(f".{place.name[:_LONGEST]}{MARK}{secrets.token_hex(6)}")


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


def opened(path: Path, links: bool = True) -> BinaryIO:
    """Open a regular file to read.

    Raises
    ------
    OSError
        If it cannot be opened; if it is not a regular file, because a pipe without a writer would
        hang and a device may never end; or if it is a symbolic link, unless ``links`` are followed.
    """
    if not links and path.is_symlink():
        raise OSError(f"it is a link to {shown(path.readlink())}, which is not followed")
    how = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, how if links else how | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read(path: Path, limit: int = LARGEST, links: bool = True) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    OSError
        If it cannot be `opened`, or has more bytes than the limit.
    """
    with opened(path, links) as file:
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


def why_unusable(folder: Path) -> str:
    """Create a folder, and return why files cannot be kept in it; an empty string if they can.

    Files there may be executed: other users must not be able to write to the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        about = folder.stat()
        if about.st_uid != os.geteuid():
            return "it belongs to another user"
        if about.st_mode & stat.S_IWOTH:
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
        if reason := why_unusable(folder):
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
    os.environ[TEMPORARY] = str(folder)
    with suppress(OSError, ValueError):  # stderr may be closed
        line = f"{shown(why, 300)}: caches are kept in {folder} until the program ends."
        print(line, file=sys.stderr, flush=True)
    return folder
