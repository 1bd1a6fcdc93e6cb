"""The runs of several results folders in one.

Of a run that is in more than one of them, the finished one is taken, else the longer one. Runs of
the same configuration have the same data: those of another fingerprint are refused. So are real
and synthetic data side by side, which no figure would show together. All that is looked at before
anything is written. A run that was there before is replaced only by a better one.

Figures, claims and stored traces are made of runs: they are drawn anew, by ``ssvm-bench plot``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.results.reading import read_trace
from ssvm_bench.results.run_folder import PARTIAL, lock, partial_folder, write_folder
from ssvm_bench.results.trace import UNFINISHED, Trace

SYNTHETIC = "synthetic"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Merged:
    """What became of the runs.

    Attributes
    ----------
    copied, there : int
        Runs that were copied, and those that were as good where they were to go.
    damaged : int
        Folders that were passed over.
    """

    copied: int
    there: int
    damaged: int


@dataclass(frozen=True)
class _Found:
    """A run, finished or not, in one of the folders."""

    root: Path
    name: PurePath
    metadata: dict[str, Any]
    finished: bool
    iterations: int

    @property
    def rank(self) -> tuple[bool, int]:
        """Return how good it is."""
        return self.finished, self.iterations

    @property
    def folder(self) -> Path:
        """Return where its files are."""
        folder = self.root / self.name
        return folder if self.finished else partial_folder(folder)


def merge(roots: Sequence[Path], into: Path, source: str | None = None) -> Merged:
    """Copy the runs of results folders into another one.

    Parameters
    ----------
    roots : sequence of Path
        Results folders; earlier ones go first where runs are equally good.
    into : Path
        Where to; made if it is not there. It may have runs.
    source : str, optional
        Only runs on ``real`` data, or on ``synthetic`` data.

    Raises
    ------
    ConfigError
        If a folder has no runs.
    RunFailedError
        If runs contradict each other, or cannot be written.
    """
    found, damaged = [], 0
    for k, root in enumerate((into, *roots)):
        if k > 0 and not (root / "runs").is_dir():
            raise ConfigError(f"There are no runs in {root}: a results folder has a folder runs.")
        for folder in sorted(root.glob("runs/*/*/*/seed=*")):
            try:
                trace = read_trace(folder)
            except RunFailedError as error:
                damaged += 1
                logger.warning("%s", error)
            else:
                found.append(_of(root, folder, trace))
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


def _of(root: Path, folder: Path, trace: Trace) -> _Found:
    name = folder.relative_to(root)
    finished = trace.summary["stop_reason"] not in UNFINISHED
    if folder.name.endswith(PARTIAL):
        name, finished = name.with_name(name.name.removesuffix(PARTIAL)), False
    return _Found(root, name, trace.metadata, finished, int(trace.frame["iteration"].iloc[-1]))


def _kind(run: _Found) -> str:
    """Return whether a run is on synthetic data in place of real ones, or on the dataset itself."""
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
    """Copy the files of a run, at once, in the place of those that are there."""
    target = into / run.name
    content = {
        path.name: files.read(path) for path in sorted(run.folder.iterdir()) if path.is_file()
    }
    with lock(target):
        if run.finished:
            write_folder(target, content)
            files.remove(partial_folder(target))
        else:
            write_folder(partial_folder(target), content)
