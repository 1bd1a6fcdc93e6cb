"""What MkDocs does for the site beside its theme: links, formulas, code, gallery, reports.

Pages are written for GitHub, where links lead to files of the repository. The site has such a page
of its own (``README.md`` is its first, those of ``results/`` others), the pictures, and of every
other file or folder that is linked a page that shows it: so it can be read without internet.

A line of its own, ``Source: [`Class.method`](../../ssvm_bench/…/file.py)``, is followed on the site
by that part of the file.
"""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from pathlib import Path

import api
import checked
import formulas
import gallery
import reports
import shaped
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FETCHED = re.compile(r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*')
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"^Source: \[`([\w.]+)`\]\(([^)]+\.py)\)$", re.MULTILINE)
LISTED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md")
"""Pages outside docs/ that the navigation names."""

AS_IT_IS = (".md", ".png", ".svg", ".gif")
"""How the names of files end that are pages or pictures already."""

LARGEST = 200_000
"""The size of the largest text file that a page shows, in bytes; others are linked as such."""

UNNAMED = 'data-md-component="search" role="dialog"'
"""The theme's dialog for searching, without a name for those who hear it."""

FOUND = {"options.md": 2.0, "results/figures/": 0.5}
"""How the place of a page begins → how much more its answers to a search count than others."""

_HIDDEN = "---\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n"
_origins: dict[str, str] = {}
"""Page of the site → the file of the repository that it was made of."""


def on_config(config):
    """Let Markdown know formulas."""
    config.markdown_extensions.append(formulas.Formulas())
    return config


def on_files(files, config):
    """Add all that is linked from somewhere, and what is made of the code."""
    written = files.documentation_pages()
    for place, content in api.pages():
        files.append(File.generated(config, place, content=content))
    _origins.clear()
    waiting = list(LISTED)
    for file in written:
        _origins[file.src_uri] = f"docs/{file.src_uri}"
        waiting += _linked(_origins[file.src_uri])
    seen = {*_origins.values()}
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        place = page_of(path)
        if path.startswith(gallery.FOLDER) and path.endswith(".py"):
            for made in gallery.files(ROOT / path, place, config):
                files.append(made)
        elif (content := _shown(path)) is not None:
            files.append(File.generated(config, place, content=content))
        elif files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
        if place.endswith(".md") and path.endswith(".md"):
            _origins[place] = path
            waiting += _linked(path)
    for made in reports.files(config, lambda path: page_of(path).replace(".md", ".html")):
        if files.get_file_from_path(made.src_uri) is None:  # a picture that a page shows, too
            files.append(made)
    return files


def on_page_markdown(markdown, page, config, files):
    """Let links lead to pages of the site, and show the lines of code that are named."""
    here = page.file.src_uri
    if here not in _origins:
        return markdown
    origin = _origins[here]
    folder = posixpath.dirname(here)
    for begins, boost in FOUND.items():
        if here.startswith(begins):
            page.meta.setdefault("search", {"boost": boost})

    def lead(match):
        path, _, section = match[2].partition("#")
        if "://" in match[2] or not path:
            return match[0]
        target = page_of(_path(origin, path))
        section = f"#{section}" if section else ""
        return f"{match[1]}{posixpath.relpath(target, folder or '.')}{section}{match[3]}"

    def show(match):
        code = part(ROOT / _path(origin, match[2]), match[1])
        return f"{match[0]}\n\n```python\n{code}\n```"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(lead, SOURCE.sub(show, markdown[end : fence.start()])), fence[0]]
        end = fence.end()
    last = LINK.sub(lead, SOURCE.sub(show, markdown[end:]))
    whole = "".join([*parts, last, reports.links(origin, folder)])
    return shaped.SHAPES[here](whole) if here in shaped.SHAPES else whole


def on_post_page(output, page, config):
    """Look whether the page is whole without internet; name the theme's dialog for searching."""
    if found := FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} would fetch {found[0]}")
    return output.replace(UNNAMED, f'{UNNAMED} aria-label="Search"')


def on_post_build(config):
    """Look whether all links lead somewhere, on the pages of reports, too."""
    if found := [*checked.faults(Path(config.site_dir))]:
        raise PluginError("\n".join(["The site has faults:", *found]))


def page_of(path: str) -> str:
    """Return where the site has a file or folder of the repository."""
    if path == "README.md":
        return "index.md"
    if (ROOT / path / "README.md").is_file():
        path = f"{path}/README.md"
    if path.endswith("/README.md"):
        return f"{path.removesuffix('README.md')}index.md"
    if path.endswith(AS_IT_IS):
        return path.removeprefix("docs/")
    if _is_large(ROOT / path):
        return path
    return f"files/{path}.md"


def part(file: Path, name: str) -> str:
    """Return the lines of a function, class or method of a module.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    text = file.read_text(encoding="utf-8")
    node = ast.parse(text)
    for each in name.split("."):
        node = {child.name: child for child in node.body if hasattr(child, "name")}[each]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno]))


def _is_large(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > LARGEST


def _path(origin: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _linked(path: str) -> list[str]:
    """Return the files and folders of the repository that a page links to."""
    text = FENCE.sub("", (ROOT / path).read_text(encoding="utf-8"))
    links = [link.partition("#")[0] for _, link, _ in LINK.findall(text) if "://" not in link]
    found = [_path(path, link) for link in links if link]
    return [
        f"{each}/README.md" if (ROOT / each / "README.md").is_file() else each for each in found
    ]


def _entry(folder: str, name: str) -> str:
    """Return the line of a file in the list of its folder, with a link if it is a page."""
    path = f"{folder}/{name}"
    if not path.startswith("docs/") or not name.endswith(".md"):
        return f"- `{name}`"
    to = posixpath.relpath(page_of(path), posixpath.dirname(page_of(folder)))
    return f"- [`{name}`]({to})"


def _shown(path: str) -> str | None:
    """Return the page that shows a file that is no page, or a folder without one."""
    file = ROOT / path
    if file.is_dir():
        names = sorted(f"{each.name}{'/' * each.is_dir()}" for each in file.iterdir())
        lines = "\n".join(_entry(path, name) for name in names if name[0] not in "._")
        return f"{_HIDDEN}# `{path}/`\n\nA folder of the repository, with\n\n{lines}\n"
    if file.suffix in AS_IT_IS or _is_large(file):
        return None
    language = {".py": "python", ".yaml": "yaml", ".cff": "yaml", ".toml": "toml"}
    kind = language.get(file.suffix, "text")
    text = file.read_text(encoding="utf-8")
    return f'{_HIDDEN}# `{path}`\n\n````{kind} linenums="1"\n{text.rstrip()}\n````\n'
