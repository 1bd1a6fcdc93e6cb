"""How much memory is free: of the machine, and of the container that the process is in."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

_MACHINE = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Return the bytes that can be had without swapping; None where the system does not tell."""
    found = []
    with suppress(OSError, ValueError, TypeError):
        line = re.search(r"^MemAvailable:\s+(\d+) kB$", _MACHINE.read_text(), re.MULTILINE)
        found.append(int(line[1]) << 10 if line else None)
    with suppress(OSError, ValueError):  # "max" is no number
        most, now = (
            int((_CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current")
        )
        found.append(most - now)
    return min(filter(None, found), default=None)
