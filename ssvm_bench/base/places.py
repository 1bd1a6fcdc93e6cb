"""Where the user's caches are kept, and what takes their place where they cannot be."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import platformdirs

from ssvm_bench.base import files
from ssvm_bench.base.errors import shown

TEMPORARY = "SSVM_BENCH_TEMPORARY"
"""Environment variable that hands the temporary folder of a process on to its children."""


def user_folder() -> Path:
    """Return the user's cache folder of ssvm-bench, which need not exist.

    Without a home there is none: it is temporary then.
    """
    folder = Path(platformdirs.user_cache_dir("ssvm-bench"))
    if "HOME" not in os.environ and "XDG_CACHE_HOME" not in os.environ:
        return temporary("There is no home folder (HOME is not set)")
    if not folder.is_absolute():
        return temporary(f"{folder.parent} is no absolute path (see HOME and XDG_CACHE_HOME)")
    return folder


def why_unusable(folder: Path) -> str:
    """Create a folder, and return why nothing can be kept in it; nothing if something can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(1 << 12))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def matplotlib_folder() -> Path | None:
    """Return where matplotlib has to keep its list of fonts, if it cannot where it would."""
    with suppress(OSError):
        folder = user_folder()
        if reason := why_unusable(folder):
            folder = temporary(f"Cannot use {folder}: {reason}")
        return folder / "matplotlib" if str(folder) == os.environ.get(TEMPORARY) else None
    return None


@functools.cache
def temporary(why: str) -> Path:
    """Return a folder that lives as long as this process, and is also that of its children.

    Parameters
    ----------
    why : str
        Said once, on stderr, by the process that makes it.

    Raises
    ------
    OSError
        If there is no place for it, either.
    """
    inherited = Path(os.environ.get(TEMPORARY, "-"))
    if inherited.is_absolute() and inherited.is_dir() and not why_unusable(inherited):
        return inherited
    held = ExitStack()
    place = Path(tempfile.gettempdir(), "ssvm-bench")
    folder = held.enter_context(files.temporary_folder(place))
    folder.chmod(0o700)  # what is loaded from there is executed
    atexit.register(held.close)
    os.environ[TEMPORARY] = str(folder)
    with suppress(OSError, ValueError):  # nobody has to hear it
        line = f"{shown(why, 300)}: caches are kept in {folder} until the program ends."
        print(line, file=sys.stderr, flush=True)
    return folder
