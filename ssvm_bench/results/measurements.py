"""Measurements of the bench: the rows of ``<results_dir>/bench/*.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import files

FOLDER = "bench"


class Measurement(NamedTuple):
    """One row: the dataset and its source, the measured quantity, and its value.

    ``value`` is the median of several comparisons, ``low`` and ``high`` are their extremes.
    """

    subject: str
    source: str
    quantity: str
    value: float
    low: float
    high: float
    unit: str


def read(results_dir: Path) -> Sequence[Measurement]:
    """Return the rows of all machines, the latest one of each quantity; skip unreadable files."""
    rows: list[tuple[str, Measurement]] = []
    for path in sorted((results_dir / FOLDER).glob("*.json")):
        try:
            for row in json.loads(files.read(path))["measurements"]:
                one = Measurement(*(row[name] for name in Measurement._fields))
                rows.append((str(row.get("date", "")), one))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    newest = {one[:3]: one for _, one in sorted(rows, key=lambda dated: dated[0])}
    return list(newest.values())
