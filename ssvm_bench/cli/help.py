"""``ssvm-bench help``: pages of the documentation, which every installation has."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.cli import PROGRAM, Command

TOPICS = {
    "faq": "Questions: the first run, λ, the gap, slow oracles, GPUs, …",
    "howto": "Recipes: train on your data, choose λ, compare solvers, …",
    "options": "Commands and options.",
    "which_solver": "The solver for a problem, by what a call of its oracle costs.",
    "components": "Solvers, datasets and oracles; what to install.",
    "own_data": "Files of your own: columns, LIBSVM's format, arrays.",
    "own_oracle": "An oracle of your own.",
    "own_solver": "A solver of your own.",
    "serving": "A model in a service.",
    "files": "Files of a run, of results, and of examples.",
    "machines": "Resumed runs, several processes, dask, ray and SLURM.",
    "transduction": "Labels and a classifier found jointly.",
}
"""Page of ``docs/`` → its summary. ``pyproject.toml`` puts these pages into the wheel."""

WIDTH = 100
"""Most characters of a line on a terminal."""

_MARKED = re.compile(
    r"^```.*?^```$"
    r"|(?P<comment><!--.*?-->\n*)"
    r"|^Source:\ \[`(?P<part>[\w.]+)`\]\(\.\./(?P<file>[^)]+)\)$"
    r"|!?\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]*)\)",
    re.DOTALL | re.MULTILINE,
)
"""Code, which is left alone; a comment; a line that stands for a part of a file; a link."""


def page(topic: str) -> str:
    """Return the text of a page, in which links name what a reader of a terminal can open."""
    from ssvm_bench.config import catalog

    text = (catalog.shipped("docs") / f"{topic}.md").read_text(encoding="utf-8")
    return _MARKED.sub(_readable, text)


def _readable(found: re.Match[str]) -> str:
    """Return a link as text, the code that a line stands for, or nothing for a comment."""
    if found["comment"]:
        return ""
    if found["part"]:
        return f"```python\n{_source(found['file'], found['part'])}\n```"
    if found["target"] is None:
        return found[0]
    text, other = found["text"], Path(found["target"].partition("#")[0])
    if found["target"].startswith(("http:", "https:")):
        return f"{text} ({found['target']})"
    known = other.suffix == ".md" and other.parent == Path() and other.stem in TOPICS
    return f"{text} (`{PROGRAM} help {other.stem}`)" if known else text


def _source(path: str, part: str) -> str:
    """Return the source of a class or function, in a file of the package or of its examples."""
    from ssvm_bench.config import catalog

    folder, _, file = path.partition("/")
    where = catalog.shipped(folder) if folder == "examples" else Path(__file__).parents[1]
    code = (where / file).read_text(encoding="utf-8")
    node: Any = ast.parse(code)
    for name in part.split("."):
        node = next(each for each in node.body if getattr(each, "name", "") == name)
    first = min((each.lineno for each in node.decorator_list), default=node.lineno)
    return textwrap.dedent("\n".join(code.splitlines()[first - 1 : node.end_lineno]))


@click.command("help", cls=Command)
@click.argument("topic", required=False, shell_complete=lambda *_: [*TOPICS])
@click.pass_context
def help_command(context: click.Context, topic: str | None) -> None:
    """Show a page of the documentation, or the help of a command.

    Without a TOPIC, it lists the topics. On a terminal, pages are formatted; to a pipe or a file,
    they are printed as they are written.

    .. code-block:: console

        ssvm-bench help
        ssvm-bench help own_data
        ssvm-bench help options | grep newton
        ssvm-bench help run
    """
    program = context.find_root()
    assert isinstance(program.command, click.Group)
    if topic is None:
        width = max(map(len, TOPICS))
        for name, summary in TOPICS.items():
            click.echo(f"{name:<{width}}  {summary}")
    elif topic in TOPICS:
        _show(page(topic))
    elif (command := program.command.get_command(program, topic)) is not None:
        click.echo(command.get_help(click.Context(command, program, topic)))
    else:
        names = [*TOPICS, *program.command.list_commands(program)]
        raise ConfigError(f"There is no topic {shown(repr(topic))}. {nearest(topic, names)}")


def _show(text: str) -> None:
    """Print a page in Markdown, formatted if a terminal shows it."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=sys.stdout)
    console.print(Markdown(text), width=min(console.width, WIDTH))
