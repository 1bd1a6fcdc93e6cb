"""Times that were not measured alike, and the pages that show them.

The times of a figure, a table or verdicts are **unlike** if their runs come from several versions
of the program (commits), from several processors, or were timed beside other runs. The file
``provenance.json`` of the folder says so. Seconds that are counted (``clock=work``) are alike
everywhere.

A table has times if a column is one of `COLUMNS`, or if the name says that its x are times. All
tables of claims count as such.

A page shows times of a table if it names the table's file in a link, or takes a number from it. It
then ends in a mark (`marked`), which ``docs/prose.py`` writes; ``ssvm-bench verify`` fails if it is
missing or old, and names what is unlike otherwise.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ssvm_bench.base import files
from ssvm_bench.config import registry
from ssvm_bench.report import prose

COLUMNS = {"time", "seconds", "seconds_from"}
_NAMED = re.compile(r"(?:^|_)time(?:$|[-.])")

BEGIN = "**Times that were not measured alike.** <!-- made by docs/prose.py -->"
END = "<!-- end of times -->"
_MARK = re.compile(rf"\n*{re.escape(BEGIN)}.*?{re.escape(END)}\n")


class Times(NamedTuple):
    """A table with times.

    Attributes
    ----------
    table : str
        Its file below the results folder, without suffix.
    folder : str
        Name of the folder of figures that has its provenance.
    provenance : str
        That file, below the results folder.
    unlike : str
        In what its runs differ; empty if in nothing.
    """

    table: str
    folder: str
    provenance: str
    unlike: str


def unlike(about: Mapping[str, Any]) -> str:
    """Return in what the runs differ that a ``provenance.json`` is about; empty if in nothing."""
    if set(about["clock"]) == {"work"}:
        return ""
    kinds = (len(about["commits"]), "versions"), (len(about["cpu"]), "processors")
    found = [f"{number} {what}" for number, what in kinds if number > 1]
    if beside := about["timed_beside_other_runs"]:
        found.append(f"{beside} of {about['runs']} runs beside others")
    return ", ".join(found)


def tables(results: Path) -> list[Times]:
    """Return the tables with times of a results folder whose provenance is known."""
    claims = {
        paper.experiments[0]: paper.file for paper in registry.papers().values() if paper.file
    }
    found = []
    for path in sorted(results.glob("figures/*/provenance*.json")):
        folder, source = path.parent, path.stem.removeprefix("provenance")
        try:
            differs = unlike(json.loads(files.read(path)))
        except (OSError, ValueError, KeyError, TypeError):  # a damaged one differs when redrawn
            continue
        of = [table.stem for table in sorted(folder.glob("*.csv")) if _has_times(table)]
        names = [f"figures/{folder.name}/{stem}" for stem in of if _source(stem) == source]
        if folder.name in claims:
            names.append(f"{claims[folder.name]}{source}")
        place = path.relative_to(results).as_posix()
        found += [Times(name, folder.name, place, differs) for name in names]
    return found


def _source(stem: str) -> str:
    """Return the suffix of figures of data that are not real."""
    return "-synthetic" if stem.endswith("-synthetic") else ""


def _has_times(table: Path) -> bool:
    header = next(csv.reader(io.StringIO(files.read(table).decode())), [])
    return bool(COLUMNS & set(header) or _NAMED.search(table.stem))


def shown(page: str, rows: Iterable[prose.Row], known: Iterable[Times]) -> list[Times]:
    """Return the tables whose times a page shows, of those that are unlike."""
    text = _MARK.sub("\n", page)
    links = "\n".join([*re.findall(r"\]\(([^)\s]*)\)", text), *(row.of for row in rows)])
    named = set(re.findall(r"(?:figures/\w+/)?[\w-]+(?=\.(?:csv|md|png|pdf)\b)", links))
    return [times for times in known if times.unlike and times.table in named]


def marked(page: str, file: Path, results: Path, unlike: Iterable[Times]) -> str:
    """Return a page with the mark for the times that it shows, or without one if there are none.

    The mark stays where it is; a new one comes to the end. Remarks on claims have none: the tables
    that show them say how their runs were timed.
    """
    if file.suffix != ".md":
        return page
    of = {times.provenance: times for times in unlike}
    items = [
        f"[`{times.folder}`]({os.path.relpath(results / place, file.parent)}): {times.unlike}"
        for place, times in of.items()
    ]
    text = (
        "Their runs are of several versions of the program or processors, or were timed beside "
        f"others: {'; '.join(items)}."
    )
    mark = f"\n\n{BEGIN} {text}{END}\n" if items else "\n"
    if _MARK.search(page):
        return _MARK.sub(lambda _: mark, page)
    return f"{page.rstrip(chr(10))}{mark}" if items else page
