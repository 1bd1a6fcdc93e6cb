"""Array jobs that a results folder has in SLURM's queue: ``.engines/<name>/jobs.json`` of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.engines.slurm import State

_FILE = "jobs.json"


@dataclass(frozen=True)
class Array:
    """Jobs that were submitted by one call.

    Attributes
    ----------
    folder : Path
        Of its ticket.
    names : dict
        Key of a run → SLURM's name of its job, ``12_3``.
    """

    folder: Path
    names: Mapping[str, str]


def write(array: Array) -> None:
    """Remember the jobs of a call, besides those that are known of it."""
    before = _read(array.folder)
    names = {**(before.names if before else {}), **array.names}
    files.write(array.folder / _FILE, json.dumps(names).encode())


def _read(folder: Path) -> Array | None:
    with suppress(OSError, ValueError):
        names = json.loads(files.read(folder / _FILE))
        if isinstance(names, dict):
            return Array(folder, {str(key): str(name) for key, name in names.items()})
    return None


def found(folder: Path) -> list[Array]:
    """Return the arrays of a folder ``.engines``, whatever has become of them."""
    return [array for path in sorted(folder.glob("*")) if (array := _read(path))]


def live(folder: Path, queue: Mapping[str, State]) -> dict[str, tuple[Array, str]]:
    """Return the runs that are in the queue: key → array and name of the job."""
    return {
        key: (array, name)
        for array in found(folder)
        for key, name in array.names.items()
        if name in queue and queue[name].is_live
    }


def sweep(folder: Path, queue: Mapping[str, State], but: Path) -> None:
    """Remove the folders of arrays that have ended, but one."""
    alive = {array.folder for array, _ in live(folder, queue).values()}
    for array in found(folder):
        if array.folder not in alive and array.folder != but:
            files.remove(array.folder)


def lines(folder: Path, queue: Mapping[str, State]) -> list[str]:
    """Return what there is to say of the queue, one line for each array that is in it."""
    text = []
    for array in found(folder):
        states = [queue[name] for name in array.names.values() if name in queue]
        if any(state.is_live for state in states):
            counts = Counter(
                f"{state.name} ({state.reason})" if state.name == "PENDING" else state.name
                for state in states
            )
            roots = dict.fromkeys(name.partition("_")[0] for name in array.names.values())
            listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            text.append(f"SLURM job {', '.join(roots)}: {listed}")
    return text
