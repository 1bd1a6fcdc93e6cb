"""The pages for readers: what they point to is there, and the first one stays short."""

import re
import runpy
from pathlib import Path

import pytest

from ssvm_bench.config import catalog

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "results/README.md", "experiments/beyond.md")
DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
PAPERS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "papers").glob("*.md"))


@pytest.mark.parametrize("name", [*PAGES, *DOCS, *PAPERS])
def test_links_lead_to_what_is_there(name):
    page = ROOT / name
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        if "://" in link:
            continue
        path, _, section = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if section:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            words = [re.sub(r"[^\w -]", "", title.lower()) for title in titles]
            assert section in [title.replace(" ", "-") for title in words], link


def test_the_readme_takes_two_minutes_and_leads_to_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for name in ("CONTRIBUTING.md", "results/README.md", *DOCS):
        assert f"({name})" in text
    # what a merge needs is what a reader is told
    recipe = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (targets,) = re.findall(r"CI_TARGETS:-(.*)}", recipe)
    assert f"make {targets} " in text


def test_every_component_is_in_the_tables():
    text = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")
    for group in catalog.COMPONENTS:
        for name in catalog.entries(group):
            assert f"`{name}`" in text, name


def test_the_tables_of_options_are_those_of_the_code():
    tables = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    text = tables["PAGE"].read_text(encoding="utf-8")
    assert tables["page"](text) == text, "make options"


def test_every_promise_names_the_tests_that_hold_it():
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    promises = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    assert promises
    for promise in promises:
        names = re.findall(r"`(tests/\w+\.py)::(\w+)`", promise)
        assert names, promise
        for file, test in names:
            assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
