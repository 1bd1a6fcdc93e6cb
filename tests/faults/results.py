"""Spoilt results: whatever is done to a stored file, the others are drawn, and no number is wrong.

One file, or one run's folder, of an experiment that has finished is spoilt; then some command is
called. A figure's numbers are those of the whole results, or the command says what it passed over
and the other curves are the same.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ssvm_bench.figures import drawing  # noqa: F401 — loaded once, for all calls
from ssvm_bench.report import experiment_files, page  # noqa: F401
from ssvm_bench.results import reading
from ssvm_bench.runs import runner  # noqa: F401
from tests.faults.case import (
    Case,
    as_folder,
    as_link,
    as_pipe,
    call,
    copied,
    cut,
    flipped,
    no_one_message,
    overwritten,
    removed,
)

FILE = """
grid:
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 20
  solver: [fw, mpbcfw]
  seed: [0, 1]
  clock: work
  budget.max_iterations: 3
figures:
  suboptimality: [iteration]
"""
RUN = (
    *("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=20", "clock=work"),
    *("budget.max_iterations=3", "quiet=true"),
)
VALUES = ("null", "true", "-1", "1e999", "NaN", "9" * 400, '"x"', "[]", "{}", '"\\ud800"', "[[]]")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield faults without end."""
    file = folder / "some.yaml"
    file.write_text(FILE)
    whole, results = folder / "whole", folder / "results"
    done = call(folder / "stderr", "experiment", file, f"results_dir={whole}")
    assert done.returncode == 0, done.stderr
    while True:
        copied(whole, results)
        if rng.random() < 0.3:  # drawn from what is stored
            shutil.rmtree(results / "runs")
        found = [
            *(path for path in results.glob("*/**/*") if is_stored(path, results)),
            *results.glob("runs/*/*/*/seed=*"),
        ]
        path = rng.choice(found)
        kind, spoil = rng.choice(list(KINDS.items()))
        if path.is_dir() and spoil not in (as_pipe, as_link, as_folder, as_empty):
            continue
        spoil(path, rng)
        command = rng.choice(("plot", "plot", "report", "status", "run"))
        where = path.relative_to(results)
        yield Case(f"{command}: {kind}", f"{where}", failure(command, file, results, whole))


def is_stored(path: Path, results: Path) -> bool:
    """Tell whether a file is read by any command."""
    top = path.relative_to(results).parts[0]
    return top in ("runs", "traces", "reference") and path.is_file() and path.name[0] != "."


# ---- what is done to a file -------------------------------------------------------------------


def other_type(path: Path, rng: random.Random) -> None:
    """Replace all by another value."""
    path.write_text(rng.choice(VALUES))


def deep(path: Path, rng: random.Random) -> None:
    """Nest without end."""
    path.write_text(rng.choice(("[", '{"a":', "- ")) * 100_000)


def edited(path: Path, rng: random.Random) -> None:
    """Change or remove one value of a document; anything else is overwritten."""
    try:
        content = json.loads(path.read_text())
    except ValueError:
        return overwritten(path, rng)
    item: Any = content
    while True:
        key = rng.choice(list(item) if isinstance(item, dict) else range(len(item)))
        if not isinstance(item[key], (dict, list)) or not item[key] or rng.random() < 0.2:
            break
        item = item[key]
    if rng.random() < 0.3:
        del item[key]
        path.write_text(json.dumps(content, indent=2))
    else:
        item[key] = "@@"
        path.write_text(json.dumps(content, indent=2).replace('"@@"', rng.choice(VALUES)))


def as_empty(path: Path, rng: random.Random) -> None:
    """Leave an empty file."""
    removed(path)
    path.write_bytes(b"")


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "a bit flipped": flipped,
    "cut short": cut,
    "partly overwritten": overwritten,
    "another type": other_type,
    "nested without end": deep,
    "a value edited": edited,
    "empty": as_empty,
    "a pipe": as_pipe,
    "a folder": as_folder,
    "a link": as_link,
}


# ---- what must hold ---------------------------------------------------------------------------


def failure(command: str, file: Path, results: Path, whole: Path) -> str:
    """Call a command on spoilt results; return what did not hold."""
    where = f"results_dir={results}"
    arguments = {
        "plot": ("plot", file, "--format=svg", where),
        "report": ("report", where),
        "status": ("experiment", file, "--status", where),
        "run": ("run", "solver=fw", *RUN, where),
    }[command]
    done = call(results.with_name("stderr"), *arguments)
    nothing_to_draw = command == "plot" and "No run of" in done.stderr
    problem = no_one_message(done, (0, 1) if nothing_to_draw else (0,))
    if not problem and done.returncode == 0 and command == "plot":
        problem = of_numbers(results, whole, "Passed over" in done.stderr)
    if not problem and command == "run":
        problem = of_run(results, whole)
    return problem


def of_numbers(results: Path, whole: Path, passed_over: bool) -> str:
    """Return what is wrong with the numbers of a figure."""
    name = "figures/some/iterations-synthetic.csv"
    now, before = (pd.read_csv(folder / name) for folder in (results, whole))
    if not passed_over:
        return "" if now.equals(before) else "other numbers, and nothing is said"
    curves = ["solver", "quantity"]
    same = sum(
        rows.reset_index(drop=True).equals(
            before[(before[curves] == key).all(axis=1)].reset_index(drop=True)
        )
        for key, rows in now.groupby(curves)
    )
    return "" if same >= 3 else "the other solver's numbers have changed"


def of_run(results: Path, whole: Path) -> str:
    """Return what is wrong with the run that was asked for, which must be whole again."""
    (folder,) = whole.glob("runs/usps/fw/*/seed=0")
    columns = ["iteration", "time", "primal", "dual"]
    now = reading.read_run(results / folder.relative_to(whole)).frame[columns]
    return "" if now.equals(reading.read_run(folder).frame[columns]) else "another run"
