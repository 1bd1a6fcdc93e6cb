"""Pages of the documentation in the terminal, and what messages name."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from program import call, error_of

from ssvm_bench.cli import commands
from ssvm_bench.cli import help as pages
from ssvm_bench.config import catalog

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("topic", pages.TOPICS)
def test_a_page_is_printed_without_links_that_lead_nowhere(topic):
    result = call("help", topic)
    text = (ROOT / "docs" / f"{topic}.md").read_text(encoding="utf-8")
    assert result.exit_code == 0
    assert result.stdout.startswith(text.splitlines()[0])
    prose = re.sub(r"^```.*?^```$", "", result.stdout, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\]\([^)]*\)|<!--|^Source:", prose)
    assert len(result.stdout) > 0.7 * len(text)
    for code in re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE):
        assert code in result.stdout
    for part in re.findall(r"^Source: \[`(?:\w+\.)*(\w+)`", text, re.MULTILINE):
        assert re.search(rf"^ *(def|class) {part}\b", result.stdout, re.MULTILINE)
    for other in re.findall(r"ssvm-bench help (\w+)`", result.stdout):
        assert call("help", other).exit_code == 0


def test_topics_are_listed_and_commands_have_help_too():
    listed = call("help").stdout
    assert [line.split()[0] for line in listed.splitlines()] == [*pages.TOPICS]
    assert max(map(len, listed.splitlines())) <= 80
    assert call("help", "run").stdout == call("run", "--help").stdout
    assert "own_data (`ssvm-bench help own_data`)" not in call("help", "own_data").stdout
    assert "Your own data (`ssvm-bench help own_data`)" in call("help", "howto").stdout
    assert "Did you mean own_data?" in error_of(call("help", "own_dat"), status=2)


def test_the_page_on_options_lists_the_commands_with_json():
    def with_json(group, before=""):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from with_json(command, f"{name} ")
            elif any("--json" in each.opts for each in command.params):
                yield before + name

    context = click.Context(commands.main)
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    paragraph = text.partition("\nWith `--json`, ")[2].partition("\n\n")[0]
    for name in with_json(commands.main):
        assert f"`{name}" in paragraph, name


def test_a_terminal_gets_a_page_that_fits(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    pages._show("# A page\n\n" + "word " * 100 + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 70
    assert shown.count("word") == 100
    assert "|---|" not in shown


def test_the_wheel_has_the_pages():
    with (ROOT / "pyproject.toml").open("rb") as file:
        wheel = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    found = {source: target for source, target in wheel.items() if source.startswith("docs/")}
    assert found == {f"docs/{name}.md": f"ssvm_bench/_docs/{name}.md" for name in pages.TOPICS}
    assert catalog.shipped("docs") == ROOT / "docs"


def texts(file):
    """Yield the constants of a module that are texts, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


ONLY_HERE = re.compile(
    r"\b(docs|experiments|configs|examples|tests|results(?=/\w+\.md))/\w+|\b[A-Z_]{4,}\.md\b"
)
"""A file that a package lacks."""


def test_messages_name_no_file_that_a_package_lacks():
    named = {
        (file.name, text): found[0]
        for file in sorted((ROOT / "ssvm_bench").rglob("*.py"))
        if file.name != "new.py"  # which writes such files
        for text in texts(file)
        if (found := ONLY_HERE.search(text)) and "<!--" not in text  # marks in our pages
    }
    assert named == {}


@pytest.mark.parametrize("folder", ["configs", "experiments", "ssvm_bench"])
def test_what_a_package_says_in_yaml_names_no_file_that_it_lacks(folder):
    files = sorted((ROOT / folder).rglob("*.yaml"))
    assert len(files) > 10
    for file in files:
        text = file.read_text(encoding="utf-8")
        # its values, in one line each, and the comment that `list` shows
        shown = f"{catalog.description(file)}\n{yaml.safe_dump(yaml.safe_load(text), width=1e9)}"
        assert not (found := ONLY_HERE.search(shown)), f"{file.relative_to(ROOT)}: {found[0]}"
