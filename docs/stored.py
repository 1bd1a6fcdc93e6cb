"""Where a script of this folder puts its table, from which pages take their numbers.

Three tables are not yet written by their scripts: ``potts``, ``partial_optimality`` and ``centres``
were copied from pages whose numbers earlier runs had printed. The next run of a script replaces its
table.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

FIGURES = Path(__file__).parents[1] / "results" / "figures"


def keep(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as a table, and write them to ``results/figures/NAME.csv``."""
    table, file = pd.DataFrame(rows), FIGURES / f"{name}.csv"
    print(table.to_string(index=False))
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False, float_format="%.6g")
