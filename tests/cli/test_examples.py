"""Commands that helps and pages of the package show: they are read, and their runs composed."""

import re
import shlex
from itertools import groupby
from pathlib import Path

import click
import pytest
from program import call

from ssvm_bench import cli
from ssvm_bench.cli import commands
from ssvm_bench.cli import help as pages
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.report.experiment_files import load

ROOT = Path(__file__).parents[2]


def calls(text):
    """Yield the calls of the program in lines of a shell, without its name."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        for joined, command in groupby(words, lambda word: word in ("|", "&&", "&")):
            first, *others = command
            if not joined and first == "ssvm-bench":
                yield shlex.join(others)


def shown():
    """Return each call once, with the command or the page that shows it."""
    context = click.Context(commands.main)

    def of_commands(command, name):
        yield name, command.epilog or ""
        for each in command.list_commands(context) if isinstance(command, click.Group) else ():
            yield from of_commands(command.get_command(context, each), f"{name} {each}".strip())

    def of_pages():
        for topic in pages.TOPICS:
            text = (ROOT / "docs" / f"{topic}.md").read_text(encoding="utf-8")
            yield topic, "\n".join(re.findall(r"^ssvm-bench .*", text, re.MULTILINE))

    texts = [*of_pages(), *of_commands(commands.main, "")]
    return {each: place for place, text in texts for each in calls(text)}


SHOWN = shown()


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory):
    """A folder with the plug-ins that ``new`` writes under the name mine, as the examples say."""
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for group in ("solver", "oracle"):
            assert call("new", group, "mine").exit_code == 0
    return folder


def test_helps_and_pages_have_examples():
    assert {"run", "config show", "data export", "recommend", "howto"} <= {*SHOWN.values()}


@pytest.mark.parametrize("line", SHOWN, ids=[f"{SHOWN[each]}: {each}" for each in SHOWN])
def test_an_example_composes_its_runs(line, beginnings, monkeypatch):
    """The command is read, options and all, and is not invoked."""
    monkeypatch.chdir(beginnings)
    read = []

    def invoke(command, context):
        if isinstance(command, click.Group):
            click.Group.invoke(command, context)
        else:
            read.append(context)

    monkeypatch.setattr(cli.Command, "invoke", invoke)
    result = call(*shlex.split(line))
    assert result.exit_code == 0, result.output
    (context,) = read
    said, folders = context.params, context.obj.config_dirs()
    name, words = said.get("name"), said.get("overrides", ())
    if "topic" in said:
        listed = commands.main.list_commands(context)
        assert said["topic"] in (None, *pages.TOPICS, *listed)
    elif context.command.name in ("experiment", "plot"):
        options = [word for word in words if "=" in word]
        for each in (name, *(word for word in words if word not in options)):
            assert load(each, folders).configs(options, folders)
    elif context.command.name != "new":
        for each in filter(None, (said.get("experiment"), *said.get("experiments", ()))):
            assert each == "*" or load(each, folders).configs((), folders)
        if name:
            words = (f"{said.get('kind', 'dataset')}={name}", *words)
        files = [word for word in words if re.search(r"\.(path|mean|test|templates|loss)=", word)]
        if not files:  # of the reader's
            assert compose_runs(words, said.get("multirun", False), folders)
