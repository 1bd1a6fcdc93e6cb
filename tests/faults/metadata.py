"""Runs whose metadata, summary or rows are odd, with right checksums, before every command.

Each such run is harmless, or is passed over with its reason: whatever reads it, no exception is
raw, and nothing ends without a message.
"""

import contextlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ssvm_bench.cli.commands import main
from ssvm_bench.results import checks
from ssvm_bench.results.trace import CHECKSUMS_KEY, COLUMNS, METADATA_KEY, SUMMARY, TRACE
from tests.faults import case
from tests.faults.case import Case
from tests.program import GRID
from tests.traces import sealed, with_metadata

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2.5, 1e300, -1e308, 2**63 - 1, "", " ", "x", "nan", "\n", "x" * 2000),
    *([], [1], [[1]], {}, {"a": {"b": [1]}}, ["a", None], "<b>", "../up", "é\u202e"),
)
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e300, 0.0, -1.0)


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Change runs for ever."""
    experiment, base, results = folder / "grid.yaml", folder / "base", folder / "results"
    experiment.write_text(GRID)
    with contextlib.suppress(SystemExit):
        main(["experiment", str(experiment), f"results_dir={base}", "quiet=true"])
    shutil.rmtree(base / "traces")
    runs = [path.relative_to(base) for path in sorted(base.glob("runs/*/*/*/seed=*"))]
    while True:
        case.copied(base, results)
        shutil.rmtree(folder / "merged", ignore_errors=True)
        run, (kind, change) = results / rng.choice(runs), rng.choice(KINDS)
        what = change(run, rng)
        for name, words in rng.sample(sorted(_readers(results, run, experiment).items()), 3):
            done = case.call(folder / "log", *words)
            differs = name == "verify" and done.returncode == 1 and not done.stderr
            yield Case(f"{name}: {kind}", what, "" if differs else case.no_one_message(done))


def _readers(results: Path, run: Path, experiment: Path) -> dict[str, list[object]]:
    """Return a call of every command that reads runs."""
    where = f"results_dir={results}"
    return {
        "report": ["report", where],
        "report --all": ["report", "--all", where],
        "plot": ["plot", experiment, where],
        "status": ["experiment", experiment, "--status", where],
        "compare": ["compare", "bcfw", "mpbcfw", where],
        "compare folders": ["compare", results, results, where],
        "verify": ["verify", where],
        "publish": ["publish", results.with_name("public"), where],
        "merge": ["merge", results, "--into", results.with_name("merged")],
        "score": ["score", run],
        "predict": ["predict", run, "--out", results.with_name("labels")],
    }


def of_metadata(run: Path, rng: random.Random) -> str:
    """Change a value of the metadata."""
    said = ""

    def change(found: dict) -> dict:
        nonlocal said
        said = _changed(found, rng)
        return found

    with_metadata(run, change)
    return said


def of_summary(run: Path, rng: random.Random) -> str:
    """Change a value of the summary."""
    summary = json.loads((run / SUMMARY).read_text())
    said = _changed(summary, rng)
    sealed(run, {SUMMARY: json.dumps(summary).encode()})
    return said


def of_rows(run: Path, rng: random.Random) -> str:
    """Change numbers of a column, or its order."""
    table = pq.read_table(pa.BufferReader((run / TRACE).read_bytes()))
    name = rng.choice([*COLUMNS])
    values = table[name].to_numpy().copy()
    number = rng.choice(NUMBERS)
    if values.dtype.kind == "i":
        number = int(np.clip(np.nan_to_num(number), -(2**62), 2**62))
    how = rng.choice(("one", "last", "all", "reversed"))
    if how == "reversed":
        values = values[::-1].copy()
    else:
        values[{"one": rng.randrange(len(values)), "last": -1, "all": slice(None)}[how]] = number
    place = table.column_names.index(name)
    changed = table.set_column(place, name, pa.array(values))
    about = dict(table.schema.metadata)
    sums = json.loads(about[CHECKSUMS_KEY])
    sums[TRACE] = checks.table_checksum(changed, about[METADATA_KEY])
    about[CHECKSUMS_KEY] = json.dumps(sums).encode()
    pq.write_table(changed.replace_schema_metadata(about), run / TRACE)
    return f"{name} {how} {number}"


def _changed(found: Any, rng: random.Random) -> str:
    """Change, remove or add one value of a document; return which."""
    way = []
    while True:
        key = rng.choice([*found])
        way.append(key)
        if not isinstance(found[key], dict) or not found[key] or rng.random() < 0.2:
            break
        found = found[key]
    if rng.random() < 0.1:
        del found[key]
        return f"{'.'.join(way)} removed"
    value = found["more" if rng.random() < 0.1 else key] = rng.choice(ODD)
    return f"{'.'.join(way)} = {str(value)[:40]!a}"


KINDS: list[tuple[str, Callable[[Path, random.Random], str]]] = [
    ("metadata", of_metadata),
    ("metadata", of_metadata),
    ("summary", of_summary),
    ("rows", of_rows),
]
"""What is changed, and what does it."""
