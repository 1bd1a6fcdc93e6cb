"""What the bench has measured: the rows of ``<results_dir>/bench.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base import files

FILE = "bench.json"


class Measurement(NamedTuple):
    """One row: of which dataset and source, what was measured, and its value.

    ``low`` and ``high`` are the ends of the single comparisons that the value is the median of.
    """

    subject: str
    source: str
    quantity: str
    value: float
    low: float
    high: float
    unit: str


def read(results_dir: Path) -> Sequence[Measurement]:
    """Return all rows; none where there is no file, or none that can be read."""
    try:
        rows = json.loads(files.read(results_dir / FILE))["measurements"]
        return [Measurement(*(row[name] for name in Measurement._fields)) for row in rows]
    except (OSError, ValueError, KeyError, TypeError):
        return []
