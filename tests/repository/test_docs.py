"""The pages for readers: what they point to is there, and the first one stays short."""

import ast
import doctest
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from program import of_a_checkout

from ssvm_bench.config import catalog
from ssvm_bench.config.compose import compose_runs

pytestmark = of_a_checkout
ROOT = Path(__file__).parents[2]
FINDINGS = (
    *("mpbcfw", "bcfw_poster", "bmrm", "dual_coordinate", "transduction"),
    *("beyond", "speed", "world"),
)
PAGES = (
    *("README.md", "CONTRIBUTING.md", "results/README.md", "experiments/beyond.md"),
    *("experiments/kernel.md", "experiments/potts.md"),
    *(f"results/{name}.md" for name in FINDINGS),
    *("examples/gallery/README.md", "examples/ranking/README.md", "examples/bcfw/README.md"),
    "examples/world/README.md",
)
DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
DEEPER = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*/*.md"))
ALGORITHMS = [name for name in DEEPER if name.startswith("docs/algorithms/")]
COMING_FROM = sorted(f"coming_from/{path.stem}" for path in ROOT.glob("docs/coming_from/*.md"))
PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.parametrize("name", [*PAGES, *DOCS, *DEEPER])
def test_links_lead_to_what_is_there(name):
    page = ROOT / name
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, section = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if section:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            words = [re.sub(r"[^\w -]", "", title.lower()) for title in titles]
            assert section in [title.replace(" ", "-") for title in words], link


def test_the_readme_is_two_screens_and_leads_to_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    for name in ("CONTRIBUTING.md", "results/README.md", *DOCS):
        assert f"({name})" in text
    # what a merge needs is what a reader is told
    recipe = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (targets,) = re.findall(r"CI_TARGETS:-(.*)}", recipe)
    assert f"make {targets} " in text


def test_every_component_is_in_the_tables():
    text = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")
    names = {f"`{name}`" for group in catalog.COMPONENTS for name in catalog.entries(group)}
    assert {name for name in names if name not in text} == set()


def test_the_tables_of_options_are_those_of_the_code():
    tables = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    text = tables["PAGE"].read_text(encoding="utf-8")
    assert tables["page"](text) == text, "make options"
    assert tables["completion"]() == tables["TABLE"].read_text(encoding="utf-8"), "make options"


def test_every_promise_names_the_tests_that_hold_it():
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    promises = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    assert promises
    for promise in promises:
        names = re.findall(r"`(tests/\w+/\w+\.py)::(\w+)`", promise)
        assert names, promise
        for file, test in names:
            assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


@pytest.mark.parametrize("name", [*DOCS, *DEEPER])
def test_lines_of_code_that_a_page_shows_are_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for part, link in re.findall(r"^Source: \[`([\w.]+)`\]\((.+)\)$", text, re.MULTILINE):
        node = ast.parse((ROOT / name).parent.joinpath(link).read_text(encoding="utf-8"))
        for each in part.split("."):
            found = {child.name: child for child in node.body if hasattr(child, "name")}
            assert each in found, part
            node = found[each]


@pytest.mark.parametrize("name", [*PAGES, *DOCS, *DEEPER])
def test_a_page_promises_no_package_before_the_release(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    for k, line in enumerate(lines):
        if re.search(r"\b(pip|pipx|uv|uvx|pixi|conda)\b[^`]*\bssvm-bench\b", line):
            before = " ".join(lines[max(0, k - 3) : k + 1]).lower()
            assert "release" in before or "in a checkout" in before, line


@pytest.mark.parametrize("name", [*PAGES, *DOCS, *DEEPER, "experiments/scaling.md"])
def test_a_page_begins_with_a_sentence(name):
    title, first, *_ = (ROOT / name).read_text(encoding="utf-8").split("\n\n")
    assert re.fullmatch(r"# [^\n]+", title)
    if name != "CONTRIBUTING.md":  # which begins with the commands that contributors want
        assert re.match(r"(?!```|`results/)[\w*`\[]", first), first
        assert re.search(r"[.:]\**( |\n|$)", first), first


def test_names_that_a_reader_is_sent_to_are_there():
    page = ROOT / "docs" / "reading.md"
    found = re.findall(r"((?:`\w+`[ ,and]*)+) in \[`[^`]+`\]\(([^)]+)\)", page.read_text("utf-8"))
    assert len(found) > 15
    for names, link in found:
        code = page.parent.joinpath(link).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names.replace(" and ", " ")):
            assert re.search(rf"^ *((def|class) {name}\b|{name}( *[:=]|:))", code, re.M), (
                name,
                link,
            )


@pytest.mark.parametrize("name", ["learn/by_hand", "serving", *COMING_FROM])
def test_examples_of_a_page_print_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write a file
    found = doctest.testfile(str(ROOT / "docs" / f"{name}.md"), module_relative=False)
    assert found.failed == 0 < found.attempted


@pytest.mark.parametrize("name", ["README.md", *ALGORITHMS])
def test_runs_of_a_page_are_runs(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / name).read_text(encoding="utf-8")
    for line in re.findall(r"^ssvm-bench run (.*)$", text, re.MULTILINE):
        words = shlex.split(line, comments=True)
        folders = [words.pop(words.index(each) + 1) for each in words if each == "--config-dir"]
        options = [word for word in words if not word.startswith("-")]
        if "dataset=file" not in options:  # whose file is not there
            assert compose_runs(options, "-m" in words, folders), line


def test_the_navigation_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name in (*DOCS, *DEEPER, *(f"results/{name}.md" for name in FINDINGS)):
        assert f"- {name.removeprefix('docs/')}\n" in text, name


def test_docstrings_of_the_interface_can_be_read():
    pytest.importorskip("docutils")
    pages = dict(runpy.run_path(str(ROOT / "docs" / "site" / "api.py"))["pages"]())
    assert "<dt>lam<" in pages["api/python.md"]
    for name in ("fit", "predict", "score", "decision_function", "coef_", "top_features"):
        assert f"### `StructuredSVM.{name}`\n" in pages["api/python.md"]  # its own, and inherited
    assert "\ntrace: pd.DataFrame\n" in pages["api/python.md"]
    assert "BaseEstimator" not in pages["api/python.md"]
    assert "problematic" not in "".join(pages.values())


def test_drawings_are_those_of_the_code(tmp_path):
    """Draw them again, and compare texts, and coordinates to a point's fraction."""
    stored = {path.name: _content(path) for path in PICTURES.glob("*.svg")}
    drawn_by = {version for _, _, version in stored.values()}
    if drawn_by != {mpl.__version__.rpartition(".")[0]}:
        pytest.skip(f"the drawings are of Matplotlib {drawn_by}")
    script = PICTURES / "draw.py"
    subprocess.run((sys.executable, script, tmp_path), check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == set(stored)
    for name, (words, numbers, _) in stored.items():
        new_words, new_numbers, _ = _content(tmp_path / name)
        assert new_words == words, f"{name}: make pictures"
        np.testing.assert_allclose(new_numbers, numbers, atol=0.1, err_msg=f"{name}: make pictures")


def _content(path):
    """Return the texts of a drawing, the coordinates of its lines, and who drew it."""
    text = path.read_text(encoding="utf-8")
    paths = " ".join(re.findall(r' d="([^"]*)"', text))
    numbers = np.array(re.findall(r"-?\d+(?:\.\d+)?", paths), float)
    (version,) = re.findall(r"Matplotlib v(\d+\.\d+)", text)
    return re.findall(r"<text[^>]*>([^<]*)</text>", text), numbers, version
