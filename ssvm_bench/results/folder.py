"""A results folder: where results are read, and where files derived from runs are written.

.. code-block:: text

    <results_dir>/
      runs/                     raw runs, always here
      COMMITTED                 says that all else in this folder is committed, as a reference
      own/                      files derived from the runs of this machine, in that case

Committed results are read. They change only where ``results_dir=…`` asks for it, so that first
steps in a checkout leave them unchanged. A figure shows the user's own runs or committed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.results.reading import is_superseded, remove_superseded
from ssvm_bench.results.run_folder import PARTIAL, HeldError, lock, recover

MARKER = "COMMITTED"
OWN = "own"
MINE, COMMITTED = "mine", "committed"
"""Whose runs: the user's own, or those stored in a folder with committed results."""

OPTION = "results_dir="


class ResultsFolder(NamedTuple):
    """A results folder.

    Attributes
    ----------
    root : Path
        ``results_dir``: all of it is read.
    made : Path
        The folder to which files derived from runs are written.
    whose : str
        Whose runs are read: ``MINE``, ``COMMITTED``, or empty for all.
    """

    root: Path
    made: Path
    whose: str = ""

    @property
    def read(self) -> tuple[Path, ...]:
        """The folders that are read, the user's own one first."""
        return tuple(dict.fromkeys((self.made, self.root)))

    @property
    def stored(self) -> tuple[Path, ...]:
        """Those of these folders whose thinned traces are read."""
        return {MINE: (self.root / OWN,), COMMITTED: (self.root,)}.get(self.whose, self.read)

    @property
    def has_committed(self) -> bool:
        """Whether its results are committed, so that they are distinguished from the user's own."""
        return (self.root / MARKER).is_file()

    def sides(self, whose: str = "") -> tuple[ResultsFolder, ...]:
        """Return the folder restricted to the runs of one side: ``whose``, or each side in turn.

        Without committed results, all runs are the user's own.

        Raises
        ------
        ConfigError
            If committed runs are asked for, and there are none.
        """
        if not self.has_committed:
            if whose == COMMITTED:
                raise ConfigError(
                    f"{self.root} has no committed results: all runs there are your own. Leave "
                    "--runs out."
                )
            return (self,)
        return tuple(self._replace(whose=of) for of in ([whose] if whose else (MINE, COMMITTED)))

    @property
    def notice(self) -> str:
        """A message that says where files are written; empty if that is ``root``."""
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
    """Return a results folder without a protected part, or the `ResultsFolder` that is given."""
    if isinstance(results_dir, ResultsFolder):
        return results_dir
    return ResultsFolder(results_dir, results_dir)


def sweep(results_dir: Path | ResultsFolder) -> None:
    """Remove what killed writers have left anywhere, and restore what they were replacing."""
    where = plain(results_dir)
    for place in where.read:
        if files.link_on(place, where.root):
            continue
        recover(place, "runs/*/*/*/")
        files.sweep(place)
        of_sets = ("figures/*", "figures/*/*", "traces/*", "traces/*/*", "report")
        for pattern in ("reference", *of_sets, "runs/*/*/*"):
            for folder in place.glob(pattern):
                if not files.link_on(folder, where.root):
                    files.sweep(folder)
        for partial in place.glob(f"runs/*/*/*/seed=*{PARTIAL}"):
            folder = partial.with_name(partial.name.removesuffix(PARTIAL))
            if is_superseded(folder):
                with suppress(HeldError, RunFailedError), lock(folder, wait=False):
                    remove_superseded(folder)
