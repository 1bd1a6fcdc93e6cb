"""Numbers in prose: each is computed from a table or a trace, or marked as something else.

A page ``PAGE.md`` has a list ``results/numbers/PAGE.csv``, with a row for each number of its text,
in the order of the text. Another file of text keeps the end of its name: the list of the remarks in
``remarks.yaml`` is ``remarks.yaml.csv``.

.. code-block:: text

    number,is,of
    0.80,measured,"figures/beyond/targets.csv[dataset=weizmann solver=mpbcfw_fast gap=0.01].time"
    0.01,set,
    0.51,printed,Figure 5

============  ======================================================================================
``is``        the number
============  ======================================================================================
``measured``  the value of the formula ``of``, rounded to the digits that it has in the text
``printed``   stands in a paper; ``of`` may say where
``set``       is an option, a size, a target or a definition, and not found by measuring
============  ======================================================================================

**Numbers** are those with a decimal point, those with one of `UNITS` after them, also after another
number (“10 to 29 %”), and all in those cells of tables that begin with a number. Code, links,
formulas, comments and what a program writes between two comments are no text. Neither are
references: “Figure 4”, “claims 28 to 30”, and the columns that `REFERENCES` head.

**A formula** has sums, differences, products and quotients of numbers, and cells
``FILE[NAME=VALUE NAME=VALUE].COLUMN``. FILE is a CSV file of the results folder, a bench's JSON
file, ``reference/optima.json`` (``best_primal_value`` and so on), or ``traces/EXPERIMENT``: of runs
the table `Runs.ends`, and the last values of the traces' columns. A value with blanks is quoted; an
empty one is that of empty cells. ``NAME~TEXT`` asks for cells that contain a text. Blanks in names
of columns are written ``_``. Conditions with several rows give several values.

===============================  ===================================================================
``min max median mean``          of all values of the arguments, without empty cells
``log(x)``                       the natural logarithm
``count(cells)``                 how many there are
``after("words", cells)``        the first number after these words, in cells of text
===============================  ===================================================================
"""

from __future__ import annotations

import ast
import csv
import io
import json
import operator
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.results import loading
from ssvm_bench.results.table import Runs

MEASURED, PRINTED, SET = "measured", "printed", "set"
LISTS = "numbers"
HEAD = ("number", "is", "of")

UNITS = (
    *("%", "×", "±", "s", "ms", "µs", "min", "minutes", "hours", "MB", "GB", "kB"),
    *("passes", "calls", "iterations", "steps", "seconds", "points", "times"),
)
"""What makes an integer a number of the list, with or without a blank between them."""

REFERENCES = ("#", "where", "section", "equation")
"""Heads of columns that name places in a paper or in the program."""

_NO_TEXT = re.compile(
    r"<!-- made by .*?<!-- end .*?-->|<!--.*?-->|```.*?```|\$\$.*?\$\$|\$`.*?`\$"
    r"|(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n+)+|`(?:[^`\n]|\n(?!\n))*`|\]\([^)\s]*\)|</?[a-zA-Z][^>\n]*>|https?://\S+"
    r"|(?<=\n)#+ [\d., ]+"
    r"|\b(?i:figure|table|equation|section|chapter|algorithm|claim|row|line|lemma|theorem|definition"
    r"|proposition)s?\s\(?[\d.]*\d\)?(?:(?:,|\sand|\sto|–)\s?\(?[\d.]*\d\)?(?!\s?[%×s]))*",
    re.DOTALL,
)
_WHOLE = r"[−-]?\d+(?:,\d{3})*"
_DIGITS = rf"(?<![\w.,/^-])(?<!e\+){_WHOLE}"
_END = r"(?![\w.]*\w|⁻)"
_UNIT = rf"[ \u00a0]?(?:{'|'.join(map(re.escape, UNITS))})(?!\w)"
_MORE = rf"(?:(?:,| to| and| or|,? against|–| /)(?: over| more than)? ?{_WHOLE}(?:\.\d+)?)*"
_NUMBER = re.compile(rf"{_DIGITS}(?:\.\d+|(?={_MORE}{_UNIT})){_END}")
_IN_TABLE = re.compile(rf"{_DIGITS}(?:\.\d+)?{_END}")
_BEGINS = re.compile(r"[\s*~≈<>≤≥]*[−-]?\d")
_BETWEEN = re.compile(r"(?<!\\)\|")
_CONDITION = re.compile("([=~])")
_CELL = re.compile(r"(?P<file>[\w./-]+)\[(?P<where>[^\]]*)\]\.(?P<column>\w+)")

_OPERATORS: Mapping[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_OF_SEVERAL: Mapping[str, Any] = {
    "min": np.min,
    "max": np.max,
    "median": np.median,
    "mean": np.mean,
}


class Number(NamedTuple):
    """A number of a page: its text, and where it begins and ends."""

    text: str
    begin: int
    end: int


class Row(NamedTuple):
    """A row of a list; see the module."""

    number: str
    kind: str
    of: str


def numbers(page: str) -> list[Number]:
    """Return the numbers of a page's text, in order."""
    text = _NO_TEXT.sub(lambda found: re.sub(r"\S", " ", found[0]), page)
    found, begin = [], 0
    heads: list[str] = []
    for line in text.splitlines(keepends=True):
        in_table = line.lstrip().startswith("|")
        parts = _BETWEEN.split(line) if in_table else [line]
        heads = (heads or [part.strip() for part in parts]) if in_table else []
        for k, part in enumerate(parts):
            pattern = _IN_TABLE if in_table and _BEGINS.match(part) else _NUMBER
            if k >= len(heads) or heads[k] not in REFERENCES:
                for match in pattern.finditer(part):
                    found.append(Number(match[0], begin + match.start(), begin + match.end()))
            begin += len(part) + (k < len(parts) - 1)
    return found


class Sources:
    """The tables of a results folder.

    Parameters
    ----------
    root : Path
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.table = cache(self._table)

    def value(self, formula: str) -> float:
        """Return the value of a formula.

        Raises
        ------
        ConfigError
            If it is none, or names no cell, or several without ``median`` or the like.
        """
        cells: dict[str, np.ndarray] = {}

        def name(match: re.Match[str]) -> str:
            key = f"cell{len(cells)}"
            cells[key] = self._cells(match)
            return key

        try:
            tree = ast.parse(_CELL.sub(name, formula), mode="eval").body
            with np.errstate(all="ignore"):
                found = np.ravel(_evaluated(tree, cells))
        except (SyntaxError, ZeroDivisionError):
            raise ConfigError(f"{shown(formula)} is no formula.") from None
        except ValueError:
            raise ConfigError(f"{shown(formula, 200)} is no number.") from None
        if found.size != 1:
            raise ConfigError(f"{shown(formula, 200)} has {found.size} values; write median(…).")
        if not np.isfinite(found[0]):
            raise ConfigError(f"{shown(formula, 200)} is no number.")
        return float(found[0])

    def _cells(self, match: re.Match[str]) -> np.ndarray:
        """Return the cells of a column in the rows with some values."""
        table, column = self.table(match["file"]), match["column"]
        wanted = [_CONDITION.split(each, 1) for each in shlex.split(match["where"])]
        for name in (*(name for name, *_ in wanted), column):
            if name not in table:
                raise ConfigError(f"{match['file']} has no column {name}.")
        chosen = np.ones(len(table), bool)
        for name, how, value in wanted:
            fits = _same if how == "=" else _contains
            chosen &= np.array([fits(cell, value) for cell in table[name]], bool)
        if not chosen.any():
            raise ConfigError(f"{match['file']} has no row with {match['where']}.")
        return table.loc[chosen, column].to_numpy()

    def _table(self, name: str) -> pd.DataFrame:
        path = self.root / name
        if name.startswith("traces/"):
            if not (runs := Runs(loading.stored(self.root, path.name))):
                raise ConfigError(f"{self.root} has no {name}.")
            last = [{name: run[name][-1] for name in run.columns} for run in runs]
            ends = runs.ends
            return ends.join(pd.DataFrame(last).drop(columns=ends.columns, errors="ignore"))
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise ConfigError(f"{name} is outside of the results folder.")
        try:
            content = files.read(path)
            if path.suffix == ".json":
                found = json.loads(content)
                rows = found["measurements"] if "measurements" in found else found["instances"]
                return pd.json_normalize(rows, sep="_")
            table = pd.read_csv(io.BytesIO(content))
            return table.rename(columns=lambda name: name.replace(" ", "_"))
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"{name} cannot be read as a table: {error}") from None


def _same(cell: Any, value: str) -> bool:
    """Return whether a cell has a value, as text or as a number."""
    try:
        return bool(float(cell) == float(value))
    except (TypeError, ValueError):
        return str(cell) == value or (not value and bool(pd.isna(cell)))


def _contains(cell: Any, value: str) -> bool:
    return value in str(cell)


def _after(words: str, text: str) -> float:
    """Return the first number of a text after some words."""
    _, found, rest = text.partition(words)
    if not found or not (match := re.search(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", rest)):
        raise ConfigError(f"{shown(text, 80)!r} has no number after {words!r}.")
    return float(match[0])


def _evaluated(node: ast.AST, cells: Mapping[str, np.ndarray]) -> Any:
    match node:
        case ast.Constant(value=float() | int() as number):
            return number
        case ast.Name(id=name) if name in cells:
            return cells[name].astype(float)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand, cells)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluated(left, cells), _evaluated(right, cells))
        case ast.Call(func=ast.Name(id="count"), args=[ast.Name(id=name)]) if name in cells:
            return len(cells[name])
        case ast.Call(
            func=ast.Name(id="after"), args=[ast.Constant(value=str() as words), ast.Name(id=name)]
        ) if name in cells:
            return np.array([_after(words, str(cell)) for cell in cells[name]])
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _OF_SEVERAL:
            values = np.concatenate([np.ravel(_evaluated(arg, cells)) for arg in args])
            values = values[~np.isnan(values)]
            return _OF_SEVERAL[name](values) if len(values) else np.nan
        case ast.Call(func=ast.Name(id="log"), args=[arg], keywords=[]):
            return np.log(_evaluated(arg, cells))
    raise ConfigError(f"{ast.unparse(node)} is no part of a formula.")


def written(value: float, like: str) -> str:
    """Return a value with the digits, the separators and the sign that a text has."""
    decimals = len(like.partition(".")[2])
    text = f"{value:,.{decimals}f}" if "," in like else f"{value:.{decimals}f}"
    return text.replace("-", "−") if "−" in like or "-" not in like else text


def read(path: Path) -> list[Row]:
    """Return the rows of a list.

    Raises
    ------
    RunFailedError
        If it cannot be read, or is no list.
    """
    try:
        head, *rows = csv.reader(io.StringIO(files.read(path).decode()))
        if tuple(head) != HEAD:
            raise ValueError(f"its first line is not {','.join(HEAD)}")
        return [Row(*row) for row in rows]
    except (OSError, ValueError, TypeError) as error:
        raise RunFailedError(f"{path} is no list of numbers: {error}") from None


def differences(page: str, rows: Sequence[Row], sources: Sources) -> Iterator[str]:
    """Yield what is wrong with the numbers of a page: where, and why."""
    found = numbers(page)
    for k, number in enumerate(found):
        where = f"line {page.count(chr(10), 0, number.begin) + 1}"
        if k >= len(rows):
            yield f"{where}: {number.text} and what follows is of no kind"
            return
        row = rows[k]
        if row.number != number.text:
            yield f"{where}: {number.text}, where the list of its numbers has {row.number}"
            return
        if row.kind == MEASURED:
            try:
                now = written(sources.value(row.of), number.text)
            except ConfigError as error:
                yield f"{where}: {number.text}: {error}"
                continue
            if now != number.text:
                yield f"{where}: {number.text}, but {now} by {row.of}"
        elif row.kind not in (PRINTED, SET):
            yield f"{where}: {number.text} is of no kind"
    if len(rows) > len(found):
        yield f"its list has {len(rows) - len(found)} numbers more than the text"


def filled(page: str, rows: Sequence[Row], sources: Sources) -> tuple[str, list[Row]]:
    """Return a page, and its list, with measured numbers as they are now.

    Raises
    ------
    ConfigError
        If a formula is none.
    """
    parts, made, end = [], [], 0
    for number, row in zip(numbers(page), rows, strict=True):
        text = number.text
        if row.kind == MEASURED:
            text = written(sources.value(row.of), text)
        parts += [page[end : number.begin], text]
        made.append(row._replace(number=text))
        end = number.end
    return "".join([*parts, page[end:]]), made


def pages(results: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield the pages that have lists: name, page and list."""
    root = results / LISTS
    for path in sorted(root.rglob("*.csv")):
        name = path.relative_to(root).with_suffix("")
        name = name if name.suffix else name.with_suffix(".md")
        yield name.as_posix(), results.parent / name, path
