"""Cancel tokens: by them, the nodes of a backend know whether their jobs are still wanted.

A cancel token is a folder ``<results_dir>/.engines/<name>`` with a file ``token``. A node that does
not find it executes no run. Removing it cancels all jobs of a call: waiting jobs end at once, and
runs end after their iteration, on every node and without help of the executor.

The process that issued a token holds a lock, which the system releases when the process dies. So
the next call on the same node removes the token of a killed one, unless jobs of it are in a queue.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import checkpoint_file
from ssvm_bench.results.provenance import versions

FOLDER = ".engines"
QUEUED = "jobs.json"
"""A file in a token's folder: its jobs are in a queue, and outlive the process."""

_TOKEN, _NODE, _LOCK = "token", "node", f"{FOLDER}.lock"
_NAME = "[0-9a-f]{12}"
_OWN = rf"{_TOKEN}|{_NODE}|{re.escape(QUEUED)}|jobs/([0-9a-f]|submission_file_)\w+\.\w+"
"""Names of the files in a token's folder; submitit writes those in ``jobs``."""


class RefusedError(RunFailedError):
    """A node cannot execute runs: its sources differ, or it does not see the results folder."""


@dataclass(frozen=True)
class CancelToken:
    """What a node compares itself with before it executes a run.

    Attributes
    ----------
    folder : Path
        Folder of one call, in the results folder; it is removed when the call is cancelled.
    program : str
        Digest of the program's sources and of the packages that they compute with.
    versions : dict
        Package → version, to say what differs.
    """

    folder: Path
    program: str
    versions: Mapping[str, str] = field(compare=False)

    @classmethod
    def issue(cls, results_dir: Path) -> tuple[CancelToken, int]:
        """Return a new token, and the descriptor by which this process holds it.

        Raises
        ------
        RunFailedError
            If the results folder cannot be written.
        """
        place = results_dir.absolute() / FOLDER
        folder = place / secrets.token_hex(6)
        try:
            files.make(place, results_dir.absolute())
            with files.locked(place.with_name(_LOCK)):
                files.write(folder / _NODE, socket.gethostname().encode(), place)
                held = os.open(folder / _NODE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                with suppress(OSError):  # a file system without locks: `sweep` does nothing there
                    fcntl.flock(held, fcntl.LOCK_EX)
                files.write(folder / _TOKEN, folder.name.encode(), place)
        except OSError as error:
            raise RunFailedError(
                f"Cannot write {folder}: {error.strerror or error}. Make room or choose another "
                "folder with results_dir=…"
            ) from error
        return cls(folder, checkpoint_file.program(), versions()), held

    def cancel(self) -> None:
        """Cancel all jobs, and remove the folder with all its files."""
        if not files.link_on(self.folder, self.folder.parents[1]):
            files.remove(self.folder / _TOKEN, _TOKEN)
            discard(self.folder)

    def is_valid(self) -> bool:
        """Tell whether this node sees the folder, and jobs are still wanted."""
        with suppress(OSError):
            content = files.read(self.folder / _TOKEN, 100, within=self.folder.parents[1])
            return content == self.folder.name.encode()
        return False

    def problem(self) -> RefusedError | None:
        """Return why this node cannot execute runs; None if it can."""
        node = f"The node {socket.gethostname()}"
        if not self.is_valid():
            return RefusedError(
                f"{node} does not see the results folder {self.folder.parents[1]}. Choose one that "
                "all nodes share, with results_dir=…"
            )
        if checkpoint_file.program() == self.program:
            return None
        here = versions()
        differ = [
            f"{name} {here.get(name, 'none')} in place of {self.versions.get(name, 'none')}"
            for name in sorted({*here, *self.versions})
            if here.get(name) != self.versions.get(name)
        ]
        return RefusedError(
            f"{node} has another version of the program: "
            f"{', '.join(differ) or 'other sources of ssvm-bench'}. Install the same one there, and"
            " start its workers again."
        )


def sweep(results_dir: Path) -> None:
    """Remove the tokens of calls that were killed on this node; this ends their remaining jobs."""
    place = results_dir.absolute() / FOLDER
    if not place.is_dir() or place.is_symlink():
        return
    with suppress(OSError, files.HeldError), files.locked(place.with_name(_LOCK), seconds=1.0):
        for folder in folders(results_dir):
            named = re.fullmatch(_NAME, folder.name)
            if named and not (folder / QUEUED).exists() and _is_abandoned(folder):
                CancelToken(folder, "", {}).cancel()


def folders(results_dir: Path) -> list[Path]:
    """Return the folders of tokens in a results folder; links are none."""
    place = results_dir.absolute() / FOLDER
    found = [] if place.is_symlink() else sorted(place.glob("*/"))
    return [path for path in found if not path.is_symlink()]


def discard(folder: Path) -> None:
    """Remove a token's folder, unless its name or a file in it is not a token's."""
    if re.fullmatch(_NAME, folder.name):
        files.remove(folder, _OWN)


def _is_abandoned(folder: Path) -> bool:
    """Tell whether the process that issued a token was on this node, and is dead."""
    try:
        with files.opened(folder / _NODE, folder) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file.read() == socket.gethostname().encode()
    except FileNotFoundError:  # left by a removal
        return not (folder / _TOKEN).exists()
    except OSError:
        return False
