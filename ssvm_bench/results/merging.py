"""Merges the runs of several results folders into one.

If several folders contain a run, a finished one is preferred, then the longer one. Runs of one
configuration must have the same data: another fingerprint is refused. So is a mixture of real and
synthetic data, which no figure would show together. All of this is checked before anything is
written. An existing run is replaced only by a better one.

Folders to merge can come from anywhere. So only the layout of a results folder is followed, and no
links. Only the files that belong to a run are copied, and only if their checksums agree. A
checkpoint is copied if this version of the program can resume from it.

Figures, claims and stored traces are derived from runs: ``ssvm-bench plot`` makes them anew.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.results import checkpoint_file, checks
from ssvm_bench.results.folder import SkippedFiles, sweep
from ssvm_bench.results.run_folder import OWN, PARTIAL, Content, lock, partial_folder, write_folder
from ssvm_bench.results.trace import UNFINISHED, Written, cannot_read, is_finished, read

SYNTHETIC = "synthetic"

_LAYOUT = ("runs", "*", "*", "*", "seed=*")
"""Folders on the way from a results folder to a run; ``*``: dataset, solver and hash."""

logger = logging.getLogger(__name__)


class Merged(NamedTuple):
    """Result of a merge.

    Attributes
    ----------
    copied, there : int
        Numbers of runs copied, and of runs that were as good in the target folder.
    damaged : int
        Number of folders that were skipped.
    """

    copied: int
    there: int
    damaged: int


class _Found(NamedTuple):
    """A run, finished or not, in one of the folders."""

    root: Path
    name: PurePath
    metadata: dict[str, Any]
    finished: bool
    iterations: int

    @property
    def rank(self) -> tuple[bool, int]:
        """Return the sort key of the run; the greater, the better."""
        return self.finished, self.iterations

    @property
    def folder(self) -> Path:
        """Return the folder of its files."""
        folder = self.root / self.name
        return folder if self.finished else partial_folder(folder)


def merge(roots: Sequence[Path], into: Path, source: str | None = None) -> Merged:
    """Copy the runs of results folders into another one.

    Parameters
    ----------
    roots : sequence of Path
        Results folders; of equally good runs, that of the first folder is taken.
    into : Path
        The target folder, created if missing. It may have runs.
    source : str, optional
        Only runs on ``real`` data, or on ``synthetic`` data.

    Raises
    ------
    ConfigError
        If a folder has no runs, or the target is all there is to merge.
    RunFailedError
        If runs contradict each other, or cannot be written; or if none of those there can be read.
    """
    if roots and {*map(os.path.realpath, roots)} == {os.path.realpath(into)}:
        raise ConfigError(f"{into} cannot be merged into itself. Name another folder.")
    sweep(into)
    found: list[_Found] = []
    damaged, named = 0, ", ".join(map(str, roots))
    with SkippedFiles() as skipped:
        for k, root in enumerate((into, *roots)):
            if k > 0 and not (root / "runs").is_dir():
                raise ConfigError(
                    f"There are no runs in {root}: a results folder has a folder runs."
                )
            for folder in _folders(root, links=k == 0):
                try:
                    if k > 0 and folder.is_symlink():
                        raise RunFailedError(
                            f"{folder} is a link, and a merge follows none. Name the results "
                            "folder that it leads to."
                        )
                    found.append(_of(root, folder, read(folder)))
                except RunFailedError as error:
                    damaged += 1
                    skipped.add(error)
    if damaged and all(run.root == into for run in found):
        raise RunFailedError(
            f"None of the runs in {shown(named, 300)} can be read, for the reasons above: nothing "
            f"is copied to {into}. Run them again, or name other folders."
        )
    wanted = [run for run in found if source is None or _kind(run) == source]
    _check_sources(wanted)
    best: dict[PurePath, _Found] = {}
    for run in wanted:
        before = best.setdefault(run.name, run)
        _check_same(before, run)
        best[run.name] = max(before, run, key=lambda one: one.rank)
    new = [run for run in best.values() if run.root != into]
    for run in new:
        _copy(run, into)
    offered = {run.name for run in wanted if run.root != into}
    return Merged(len(new), len(offered) - len(new), damaged)


def _folders(root: Path, links: bool) -> Iterator[Path]:
    """Yield the run folders of a results folder, and links on the way unless those are followed."""
    places = [root]
    for pattern in _LAYOUT:
        inner = [path for place in places for path in sorted(place.glob(pattern))]
        places = [path for path in inner if links or not path.is_symlink()]
        yield from () if links else filter(Path.is_symlink, inner)
    yield from places


def _of(root: Path, folder: Path, run: Written) -> _Found:
    """Return a run that was read; raise ``RunFailedError`` if its path is that of another one."""
    name, finished = folder.relative_to(root), run.summary["stop_reason"] not in UNFINISHED
    if finished == folder.name.endswith(PARTIAL) or finished != is_finished(folder):
        raise cannot_read(folder, "it has not finished, or lacks a file")
    if not finished:
        name = name.with_name(name.name.removesuffix(PARTIAL))
    config = run.metadata["config"]
    of = (config.get("dataset") or {}).get("name"), config["solver"]["name"]
    right = name.parts[1:3] == of and name.name == f"seed={config['seed']}"
    if not right or not checks.HASH.holds(name.parts[3]):
        place = f"its place is not that of {of[1]} on {of[0]}, seed={config['seed']}"
        raise cannot_read(folder, place)
    return _Found(root, name, run.metadata, finished, run.table["iteration"][-1].as_py())


def _kind(run: _Found) -> str:
    """Return ``synthetic`` if synthetic data replaced the dataset of a run, else ``real``."""
    return SYNTHETIC if run.metadata["dataset"]["source"] == SYNTHETIC else "real"


def _check_sources(runs: Iterable[_Found]) -> None:
    """Raise ``RunFailedError`` if runs on a dataset are of both kinds."""
    first: dict[str, _Found] = {}
    for run in runs:
        name = run.metadata["dataset"]["name"]
        other = first.setdefault(name, run)
        if _kind(run) != _kind(other):
            raise RunFailedError(
                f"Runs on {name} are of real and of synthetic data: {other.folder} is of "
                f"{_kind(other)} data, {run.folder} of {_kind(run)}. Say which to merge, by "
                "--source=real or --source=synthetic."
            )


def _check_same(one: _Found, other: _Found) -> None:
    """Raise ``RunFailedError`` if two runs of a configuration are of different data."""
    before, after = (run.metadata["dataset"]["fingerprint"] for run in (one, other))
    if before != after:
        raise RunFailedError(
            f"{one.folder} and {other.folder} are the same run on different data: their "
            f"fingerprints are {before} and {after}. Leave out one of the folders."
        )


def _copy(run: _Found, into: Path) -> None:
    """Copy the files of a run, all at once, replacing those that are there."""
    target, partial = into / run.name, partial_folder(into / run.name)
    content: dict[str, Content] = {**read(run.folder).files}
    path = run.folder / checkpoint_file.NAME
    if _is_checkpoint(path, run):
        content[checkpoint_file.NAME] = files.read(path, path.stat().st_size, path.parent)
    with lock(target):
        if not run.finished:
            write_folder(partial, content)
            return
        write_folder(target, content)
        with suppress(RunFailedError):
            if read(partial).table["iteration"][-1].as_py() > run.iterations:
                return  # it belongs to an extension
        files.remove(partial, OWN)


def _is_checkpoint(path: Path, run: _Found) -> bool:
    """Tell whether a file is a checkpoint of the run that this version can resume from."""
    whose = f"{run.name.parent.name}/{run.name.name}", run.metadata["dataset"]["fingerprint"]
    if not path.exists():
        return False
    try:
        if path.is_symlink():
            raise OSError("it is a link")
        checkpoint_file.read(path.parent, checkpoint_file.identity(*whose))
        return True
    except (checkpoint_file.UnusableError, OSError) as error:
        logger.warning("%s is not copied: %s. The run itself is.", path, error)
        return False
