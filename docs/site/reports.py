"""The interactive pages on the committed runs, made while the site is built.

They are those of ``ssvm-bench report --all --runs committed``. Each links to the page that explains
its experiment, and the pages that name an experiment end with a list of those on it.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from ssvm_bench.config import registry
from ssvm_bench.report.contents import INDEX, Contents, everything
from ssvm_bench.report.pages import rendered
from ssvm_bench.results.folder import COMMITTED, SkippedFiles, results_folder

ROOT = Path(__file__).parents[2]
PLACE = "results/report"
LARGEST = 1_000_000
"""No page has more bytes."""

EXPLAIN = (
    *("docs/which_solver.md", "results/*.md", "docs/papers/*.md"),
    *("experiments/*.md", "docs/algorithms/*.md"),
)
"""Where experiments are explained."""

_NAMED = re.compile(r"(?:figures/|experiments?[ /]|`)(\w+)")
_PICTURE = re.compile(r'<img src="(?!data:)([^"]+)"')


@functools.cache
def contents() -> Sequence[Contents]:
    """Return the contents of each page.

    Raises
    ------
    PluginError
        If a file of the committed results, or of a paper, cannot be read.
    """
    where = results_folder(ROOT / "results", ())
    with SkippedFiles() as skipped, registry.readable_papers() as unreadable:
        found = everything(where, (), skipped, COMMITTED)
    if problems := [*unreadable, *skipped.problems]:
        raise PluginError(f"results: {problems[0]}")
    return found


@functools.cache
def mentioned() -> Mapping[str, Mapping[str, int]]:
    """Return page of the repository → experiment → how often it is named; if it has runs."""
    names = {each.name for each in contents()}
    found = {}
    for path in (path for pattern in EXPLAIN for path in sorted(ROOT.glob(pattern))):
        if not path.name.startswith("claims"):  # a table, that other pages explain
            counts = Counter(_NAMED.findall(path.read_text(encoding="utf-8")))
            found[path.relative_to(ROOT).as_posix()] = {
                name: count for name, count in counts.items() if name in names
            }
    return found


def title(path: str) -> str:
    """Return the first heading of a page."""
    heading, *_ = re.findall(r"^# (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.M)
    return heading


def files(config, address_of) -> Iterator[File]:
    """Yield the pages, and the pictures that they show.

    Parameters
    ----------
    config
        MkDocs' configuration.
    address_of : callable
        Page of the repository → its place in the site, in HTML.
    """
    explained = {}
    for name in (each.name for each in contents()):
        path = max(mentioned(), key=lambda path: mentioned()[path].get(name, 0))
        if name not in mentioned()[path]:
            raise PluginError(f"No page explains the experiment {name}: name it in results/")
        explained[name] = posixpath.relpath(address_of(path), PLACE), title(path)
    where, folder, seen = results_folder(ROOT / "results", ()), ROOT / PLACE, set()
    for name, content in rendered(contents(), where, folder, explained=explained):
        if len(content) > LARGEST:
            raise PluginError(f"{PLACE}/{name} has {len(content):,} bytes, more than {LARGEST:,}")
        yield File.generated(config, f"{PLACE}/{name}", content=content)
        seen |= {posixpath.normpath(f"{PLACE}/{to}") for to in _PICTURE.findall(content.decode())}
    for picture in sorted(seen):
        yield File.generated(config, picture, abs_src_path=str(ROOT / picture))


def links(path: str, folder: str) -> str:
    """Return the end of a page: links to the interactive pages of the experiments that it names.

    Parameters
    ----------
    path, folder : str
        The page in the repository, and its folder in the site.
    """
    names = mentioned().get(path, ())
    to = posixpath.relpath(PLACE, folder or ".")
    found = [f"- [{each.title}]({to}/{each.file})" for each in contents() if each.name in names]
    if path == "results/README.md":
        found.insert(0, f"- [All experiments]({to}/{INDEX})")
    if not found:
        return ""
    heading = "## The same runs, interactive"
    return "\n".join(["", "", heading, "", *found, ""])
