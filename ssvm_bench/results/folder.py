"""A results folder: where it is read, and where what is made of its runs is written.

.. code-block:: text

    <results_dir>/
      runs/                     raw runs, always here
      COMMITTED                 says that what else is here is committed, and a reference
      own/                      what is made of the runs of this machine, then

Committed results are read, and change only where ``results_dir=…`` asks for it: first steps in a
checkout leave it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results.reading import is_superseded, remove_superseded
from ssvm_bench.results.run_folder import PARTIAL, HeldError, lock, recover

MARKER = "COMMITTED"
OWN = "own"
OPTION = "results_dir="


class ResultsFolder(NamedTuple):
    """A results folder.

    Attributes
    ----------
    root : Path
        ``results_dir``: all of it is read.
    made : Path
        Where what is made of the runs is written.
    """

    root: Path
    made: Path

    @property
    def read(self) -> tuple[Path, ...]:
        """The folders that are read, that of the user's own first."""
        return tuple(dict.fromkeys((self.made, self.root)))

    @property
    def notice(self) -> str:
        """What a user should know about where things are written; nothing if it is as usual."""
        if self.made == self.root:
            return ""
        return (
            f"What {self.root} holds is committed and stays as it is: figures, tables and thinned "
            f"traces go to {self.made}. {OPTION}{self.root} changes what is committed."
        )


def results_folder(results_dir: Path, overrides: Sequence[str]) -> ResultsFolder:
    """Return a results folder whose committed part may be changed if ``overrides`` name it."""
    asked = any(override.lstrip("+").startswith(OPTION) for override in overrides)
    if asked or not (results_dir / MARKER).is_file():
        return plain(results_dir)
    return ResultsFolder(results_dir, results_dir / OWN)


def plain(results_dir: Path | ResultsFolder) -> ResultsFolder:
    """Return a folder of which nothing is protected; one that is given as it is."""
    if isinstance(results_dir, ResultsFolder):
        return results_dir
    return ResultsFolder(results_dir, results_dir)


def sweep(results_dir: Path | ResultsFolder) -> None:
    """Remove what killed writers have left anywhere, and bring back what they were replacing."""
    for place in plain(results_dir).read:
        recover(place, "runs/*/*/*/")
        files.sweep(place)
        for pattern in ("reference", "figures/*", "traces/*", "runs/*/*/*"):
            for folder in place.glob(pattern):
                files.sweep(folder)
        for partial in place.glob(f"runs/*/*/*/seed=*{PARTIAL}"):
            folder = partial.with_name(partial.name.removesuffix(PARTIAL))
            if is_superseded(folder):
                with suppress(HeldError, RunFailedError), lock(folder, wait=False):
                    remove_superseded(folder)
