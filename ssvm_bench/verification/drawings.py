"""Figures, tables and claims, made again from the stored traces and compared.

The numbers that a figure draws are stored beside it as CSV. Pictures are not compared, because
other machines have other fonts. Numbers count as equal if they differ by at most one unit of the
last of their six digits: logarithms are not rounded alike everywhere. Documents must be equal.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.config.experiment import Experiment, along_paths
from ssvm_bench.figures.kind import Output
from ssvm_bench.report import experiment_files
from ssvm_bench.report.experiment_files import load
from ssvm_bench.results.trace import Trace
from ssvm_bench.verification.finding import Finding, Subject, compared, skipped

LAST_DIGIT = 1e-5
"""One unit of the last of six digits, relative to the number."""

PICTURES = (".png", ".pdf", ".svg")


def redrawn(subject: Subject, claims: bool) -> Iterator[Finding]:
    """Yield a finding for each file of figures and tables.

    Parameters
    ----------
    subject : Subject
    claims : bool
        Whether to check the files at the top of the folder, or those in ``figures/``.
    """
    root = subject.where.made
    best, _ = subject.best
    for folder in sorted(root.glob("figures/*/")):
        drawn: set[str] = set()
        experiment, runs, why = _runs(subject, folder.name)
        made_of_runs: Iterable[experiment_files.Made] = ()
        if experiment is not None:
            about = experiment, runs, best, root
            made_of_runs = experiment_files.outputs(*about, lambda kind: kind.at_top == claims)
        for made in made_of_runs:
            if claims and isinstance(made.shown, bytes):  # checked with the figures
                continue
            stem = root / made.place
            drawn.add(stem.name)
            for end, text in made.texts().items():
                path = stem.with_name(f"{stem.name}.{end}")
                yield compared(subject.named(path), _difference(path, text))
            if isinstance(made.shown, Output) and made.shown.figure is not None:
                pictures = [stem.with_name(stem.name + end) for end in PICTURES]
                if not any(path.is_file() for path in pictures):
                    yield compared(subject.named(pictures[0]), "there is no such picture")
        for path in () if claims else sorted(folder.iterdir()):
            if path.stem not in drawn and not path.name.startswith("."):
                yield skipped(subject.named(path), why)


def _runs(subject: Subject, name: str) -> tuple[Experiment | None, list[Trace], str]:
    """Return an experiment and its stored runs, if any, and why its files cannot be made again."""
    try:
        experiment = load(name, subject.config_dirs)
        asked = [f"results_dir={subject.where.root}"]
        configs = experiment.configs(asked, subject.config_dirs)
    except ConfigError:
        return None, [], "no experiment draws it"
    of_origins = (subject.stored[origin] for origin in experiment.origins)
    stored = {key: run for of_origin in of_origins for key, run in of_origin.items()}
    found = experiment_files.finished(along_paths(configs), stored)
    runs = {run.own_folder: run for _, run in found if run}
    if not runs:
        return None, [], "no run of the experiment's file is stored; drawn with other options"
    return experiment, [*runs.values()], "it takes data, or files of runs, that are not here"


def _difference(path: Path, text: bytes) -> str:
    """Return where a file differs from its expected content; an empty string if it does not."""
    if not path.is_file():
        return "there is no such file"
    there = files.read(path)
    if there == text:
        return ""
    try:
        before, now = (content.decode() for content in (there, text))
        rows = [_rows(path, content) for content in (before, now)]
    except (UnicodeDecodeError, csv.Error):
        return "it is no text"
    for line, (old, new) in enumerate(itertools.zip_longest(*rows, fillvalue=[]), 1):
        pairs = itertools.zip_longest(old, new, fillvalue="nothing")
        for cell, made in pairs:
            if cell != made and not (path.suffix == ".csv" and _close(cell, made)):
                return f"line {line}: {_around(cell, made)}"
    return ""


def _rows(path: Path, text: str) -> list[list[str]]:
    if path.suffix == ".csv":
        return list(csv.reader(io.StringIO(text)))
    return [[line] for line in text.splitlines()]


def _close(cell: str, made: str) -> bool:
    try:
        return math.isclose(float(cell), float(made), rel_tol=LAST_DIGIT)
    except ValueError:
        return False


def _around(cell: str, made: str) -> str:
    """Return what differs in two texts, with a few characters before the difference."""
    pairs = enumerate(zip(cell, made, strict=False))
    same = next((k for k, (old, new) in pairs if old != new), min(len(cell), len(made)))
    begin = max(0, same - 12)
    return f"{shown(cell[begin:], 40)!r} there, {shown(made[begin:], 40)!r} made again"
