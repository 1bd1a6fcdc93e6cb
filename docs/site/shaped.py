"""What the site does to three pages that GitHub, too, shows: cards, and sections that are closed.

README gets three doors before its commands. The page of options, which has a table for each family
of choices, is closed but for what each table is on. Its heading is inside, where the theme's search
looks for one, and opens it. The gallery's table becomes cards with the figure of each script.
"""

from __future__ import annotations

import re

DOORS = """\
<div class="grid cards doors" markdown>

-   **[Train on my data](own_data.md)**

    Columns, LIBSVM's format, arrays, graphs or pictures: from the command line, or with
    [an estimator of scikit-learn](coming_from/scikit_learn.md).

-   **[Compare solvers](which_solver.md)**

    Who is first at which cost of a call, [recipes](howto.md), and
    [a solver of my own](own_solver.md) beside the others.

-   **[Read the results](results/index.md)**

    A verdict on each claim of five papers, and all their runs on
    [interactive pages](results/report/index.html).

</div>
"""
"""What to go on with, in links of the site."""

FAMILY = re.compile(r"^### (.+)\n\n((?:(?!#|<!--).*\n)+)", re.MULTILINE)
FIRST = re.compile(r"^\| (`[^`]+`) \|", re.MULTILINE)
SCRIPT = re.compile(r"^\| \[`(\w+)\.py`\]\((\S+)\) \| (.+) \|$", re.MULTILINE)
HEAD = "| script | what it shows |\n|---|---|\n"


def doors(text: str) -> str:
    """Return the first page, with cards before its first commands."""
    before, fence, after = text.partition("```sh\n")
    return f"{before}{DOORS}\n{fence}{after}"


def closed(text: str) -> str:
    """Return the page of options, with its families closed."""

    def family(found: re.Match[str]) -> str:
        title, body = found.groups()
        summary = f"**{title}**\n{', '.join(FIRST.findall(body))}"
        inside = f"### {title} {{ .heard }}\n\n{body}"
        return (
            f'<details class="family" markdown="block">\n<summary markdown="block">\n\n{summary}'
            f"\n\n</summary>\n\n{inside}\n</details>\n\n"
        )

    return FAMILY.sub(family, text)


def cards(text: str) -> str:
    """Return the page of the gallery, with a picture for each script."""

    def card(found: re.Match[str]) -> str:
        name, to, said = found.groups()
        picture = f"[![{said}]({name}.svg){{ loading=lazy }}]({to})"
        return f"-   {picture}\n\n    [`{name}.py`]({to}): {said}\n"

    before, head, rest = text.partition(HEAD)
    assert head, "the gallery has no table"
    return (
        f'{before}<div class="grid cards pictures" markdown>\n\n{SCRIPT.sub(card, rest)}\n</div>\n'
    )


SHAPES = {"index.md": doors, "options.md": closed, "examples/gallery/index.md": cards}
"""Place of a page → what shapes it, once its links lead to pages of the site."""
