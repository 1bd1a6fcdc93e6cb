"""How much memory is free, of the machine, of the container and up to the limit of the process.

Also, how freed memory is returned to the system.
"""

from __future__ import annotations

import ctypes
import re
import resource
from contextlib import suppress
from pathlib import Path

from ssvm_bench.base.errors import RunFailedError

_MACHINE = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup")
_PROCESS = Path("/proc/self/statm")

_ALWAYS = 1 << 20
"""Needs of fewer bytes are not checked."""

_LIBRARIES = 420_000_000
"""Bytes of address space that the libraries of a short run take at least."""

MORE_SPACE = "Raise its limit (ulimit -v)."

_LONG = 1 << 20
"""Numbers of a vector from which `trim` takes no time beside the work on it."""

_MMAP_THRESHOLD, _LEAST_OF_ITS_OWN = -3, 1 << 20
"""Option of ``mallopt``, and bytes of an array from which it has a memory mapping of its own."""


def available() -> int | None:
    """Return the bytes available without swapping; None if the system does not say."""
    found = []
    with suppress(OSError, ValueError, TypeError):
        line = re.search(r"^MemAvailable:\s+(\d+) kB$", _MACHINE.read_text(), re.MULTILINE)
        found.append(int(line[1]) << 10 if line else None)
    with suppress(OSError, ValueError):  # "max" is no number
        most, now = (
            int((_CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current")
        )
        found.append(most - now)
    found.append(address_space())
    return min(filter(None, found), default=None)


def address_space() -> int | None:
    """Return the bytes left up to the limit of the process (``ulimit -v``); None: no limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError):
            pages = int(_PROCESS.read_text().split()[0])
            return max(limit - pages * resource.getpagesize(), 1)
    return None


def check_address_space() -> None:
    """Raise ``RunFailedError`` if the libraries cannot be loaded: some crash when they fail."""
    room = address_space()
    if room is not None and room < _LIBRARIES:
        raise RunFailedError(
            f"The libraries take {_LIBRARIES / 1e6:.0f} MB of address space, and this process has "
            f"{room / 1e6:.0f} MB left. {MORE_SPACE}"
        )


def give_back() -> None:
    """From now on, let glibc return the memory of arrays to the system when they are freed.

    By default it keeps the memory of arrays of up to 32 MB, and arrays that grow leave holes.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LEAST_OF_ITS_OWN)


def trim(d: int) -> None:
    """Before a vector of d numbers is made, let glibc return to the system what has been freed.

    Holes that other arrays have left are too small for a long vector, and would be memory beside
    it. In a process of another program, unlike `give_back`, it changes nothing that comes later.
    """
    if d >= _LONG:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def check_room(needed: float, what: str, instead: str) -> None:
    """Raise ``RunFailedError`` if fewer bytes are free than needed.

    Parameters
    ----------
    needed : float
    what : str
        What needs the bytes: the beginning of the message.
    instead : str
        What to do instead: the end of the message.
    """
    if needed < _ALWAYS:
        return
    room = available()
    if room is not None and needed > room:
        raise RunFailedError(
            f"{what} would take about {needed / 1e6:.0f} MB, and {room / 1e6:.0f} MB are free. "
            f"{instead}"
        )
