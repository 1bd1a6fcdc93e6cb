"""A results folder: where results are read, and where files derived from runs are written.

.. code-block:: text

    <results_dir>/
      runs/                     raw runs, always here
      COMMITTED                 says that all else in this folder is committed, as a reference
      published.json            says that `ssvm-bench publish` has written it, as a reference
      own/                      files derived from the runs of this machine, in both cases

Such results are read. They change only where ``results_dir=…`` asks for it, so that first
steps in a checkout leave them unchanged. A figure shows the user's own runs or committed ones.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.results.run_folder import PARTIAL, HeldError, lock, recover
from ssvm_bench.results.trace import is_superseded, remove_superseded

MARKER, PUBLISHED = "COMMITTED", "published.json"
OWN = "own"
MINE, COMMITTED = "mine", "committed"
"""Whose runs: the user's own, or those that came with a folder: committed, or published."""

OPTION = "results_dir="

SHOWN = 4
"""Number of damaged runs and files that have a message of their own."""

logger = logging.getLogger(__name__)


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
    def has_references(self) -> bool:
        """Whether its results are references, which are distinguished from the user's own."""
        return any((self.root / name).is_file() for name in (MARKER, PUBLISHED))

    @property
    def origin(self) -> str:
        """Where its references come from, as a word: published, committed, or else stored."""
        if (self.root / PUBLISHED).is_file():
            return "published"
        root = self.root.absolute()
        in_git = any(os.path.lexists(place / ".git") for place in (root, *root.parents))
        return "committed" if in_git else "stored"

    @property
    def called(self) -> str:
        """Whose runs are read, in a sentence."""
        return {MINE: "your own runs", COMMITTED: f"{self.origin} runs"}.get(self.whose, "all runs")

    def sides(self, whose: str = "") -> tuple[ResultsFolder, ...]:
        """Return the folder restricted to the runs of one side: ``whose``, or each side in turn.

        Without references, all runs are the user's own.

        Raises
        ------
        ConfigError
            If runs that came with the folder are asked for, and there are none.
        """
        if not self.has_references:
            if whose == COMMITTED:
                raise ConfigError(
                    f"{self.root} has no results that came with it, committed or published: all "
                    "runs there are your own. Leave --runs out."
                )
            return (self,)
        return tuple(self._replace(whose=of) for of in ([whose] if whose else (MINE, COMMITTED)))

    @property
    def notice(self) -> str:
        """A message that says where files are written; empty if that is ``root``."""
        if self.made == self.root:
            return ""
        return (
            f"Figures, tables and thinned traces of your runs are in {self.made}, apart from the "
            f"{self.origin} ones in {self.root}. With {OPTION}{self.root}, they would replace "
            "these."
        )


def results_folder(results_dir: Path, overrides: Sequence[str]) -> ResultsFolder:
    """Return a results folder whose references may be changed if ``overrides`` name it."""
    asked = any(override.lstrip("+").startswith(OPTION) for override in overrides)
    if asked or not as_folder(results_dir).has_references:
        return as_folder(results_dir)
    return ResultsFolder(results_dir, results_dir / OWN)


def existing_folder(results_dir: Path, overrides: Sequence[str]) -> ResultsFolder:
    """Return a `results_folder` to read from.

    Raises
    ------
    ConfigError
        If ``overrides`` name a folder that does not exist.
    """
    if any(override.startswith(OPTION) for override in overrides) and not results_dir.is_dir():
        raise ConfigError(f"{OPTION}{shown(results_dir, 300)}: there is no such folder.")
    return results_folder(results_dir, overrides)


def as_folder(results_dir: Path | ResultsFolder) -> ResultsFolder:
    """Return a results folder without a protected part, or the `ResultsFolder` that is given."""
    if isinstance(results_dir, ResultsFolder):
        return results_dir
    return ResultsFolder(results_dir, results_dir)


def sweep(results_dir: Path | ResultsFolder) -> None:
    """Remove what killed writers have left anywhere, and restore what they were replacing."""
    where = as_folder(results_dir)
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


# ---- files of it -------------------------------------------------------------------------------


def write_file(path: Path, content: bytes, within: Path | None = None) -> Path:
    """Write a file at once, creating its folder; return its path. As `write_files`."""
    write_files({path: content}, within)
    return path


def write_files(contents: Mapping[Path, bytes], within: Path | None = None) -> None:
    """Write files that belong together, all or none, creating their folders.

    Parameters
    ----------
    contents : mapping
        Path → content.
    within : Path, optional
        Their results folder, below which no link is followed.

    Raises
    ------
    RunFailedError
        If one cannot be written.
    """
    try:
        files.write_together(contents, within)
    except OSError as error:
        raise cannot_write(Path(os.path.commonpath(contents)), error) from error


def cannot_write(path: Path, error: OSError) -> RunFailedError:
    """Return the error that says that a file cannot be written, and what to do."""
    return RunFailedError(
        f"Cannot write {path}: {error.strerror or error}. Make room there or make it writable, or "
        "choose another place (results_dir=…, --output), then draw again."
    )


class SkippedFiles:
    """Logs damaged runs and files: a message for each of the first, and one for the rest.

    The last message comes when the ``with`` block ends.

    Attributes
    ----------
    problems : list of str
        Why each cannot be read, without repetition.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, problem: object) -> None:
        """Note what cannot be read, and why."""
        text = str(problem)
        if text not in self.problems:
            self.problems.append(text)
            if len(self.problems) <= SHOWN:
                logger.warning("Passed over: %s", text)

    def __enter__(self) -> SkippedFiles:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Say how many more were skipped."""
        more = len(self.problems) - SHOWN
        if more > 0:
            logger.warning("Passed over: %s more that cannot be read.", more)
