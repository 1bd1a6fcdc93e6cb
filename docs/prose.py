"""``python docs/prose.py [PAGE…]``: fill measured numbers into pages, and keep their lists.

A page, or a file of remarks on claims, has a list of its numbers in ``results/numbers``; the module
:mod:`ssvm_bench.report.prose` says what is in it. A page may be edited freely before: numbers that
are new or changed get rows without a kind, which are then filled in by hand, in the list. Numbers
that are measured get the values of their formulas, in both. Times that were not measured alike are
marked at the end (:mod:`ssvm_bench.report.times`). Without arguments, as ``make papers-pages``
does, these are all pages that have a list; a page that is named gets one.
"""

from __future__ import annotations

import csv
import io
import sys
from difflib import SequenceMatcher
from pathlib import Path

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.report import prose, times

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
MADE = ("results/claims*.md", "results/fidelity.md")
"""Pages that a program writes, which ``verify`` writes again."""


def pages() -> list[str]:
    """Return the names of all pages and remarks that have measured numbers."""
    found = [ROOT / "README.md", ROOT / "docs" / "which_solver.md"]
    for folder in ("results", "experiments", "docs/papers"):
        found += sorted((ROOT / folder).glob("*.md"))
    found += sorted(ROOT.glob("ssvm_bench/papers/*/remarks.yaml"))
    made = {path for pattern in MADE for path in ROOT.glob(pattern)}
    return [path.relative_to(ROOT).as_posix() for path in found if path not in made]


def list_of(name: str) -> Path:
    """Return the list of a page."""
    return RESULTS / prose.LISTS / f"{name.removesuffix('.md')}.csv"


def aligned(page: str, rows: list[prose.Row]) -> list[prose.Row]:
    """Return a row for each number of a page: its old one, or one without a kind."""
    now = [number.text for number in prose.numbers(page)]
    before = [row.number for row in rows]
    made = [prose.Row(text, "", "") for text in now]
    changes = SequenceMatcher(None, before, now, autojunk=False).get_opcodes()
    for what, begin, end, at, to in changes:
        if what == "equal":
            made[at:to] = rows[begin:end]
    return made


def write(path: Path, rows: list[prose.Row]) -> None:
    """Write a list."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([prose.HEAD, *rows])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue(), encoding="utf-8")


def main(names: list[str]) -> int:
    """Fill in some pages, or all with a list; return 1 if a number has no kind or no value."""
    sources, known, status = prose.Sources(RESULTS), times.tables(RESULTS), 0
    for name in names or filter(lambda name: list_of(name).is_file(), pages()):
        page, path = ROOT / name, list_of(name)
        text = page.read_text(encoding="utf-8")
        rows = aligned(text, prose.read(path) if path.is_file() else [])
        try:
            text, rows = prose.filled(text, rows, sources)
        except ConfigError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
        text = times.marked(text, page, RESULTS, times.shown(text, rows, known))
        page.write_text(text, encoding="utf-8")
        write(path, rows)
        if missing := sum(not row.kind for row in rows):
            print(f"{name}: {missing} of {len(rows)} numbers have no kind in {path}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
