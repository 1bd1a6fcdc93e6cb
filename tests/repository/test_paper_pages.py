"""The pages of the papers: their verdicts are the stored ones, and what they name is there."""

import csv
import re
import runpy
import shlex
from pathlib import Path

import pytest
from program import of_a_checkout

from ssvm_bench.config import catalog, registry
from ssvm_bench.config.compose import compose_runs

pytestmark = of_a_checkout
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "papers"
PAGES = sorted(FOLDER.glob("*.md"))
HEADER = "| item | where | command | status |"
MISSING = ("not yet", "planned", "not here", "out of reach")
STATUS = re.compile(rf"shown|judged|test|({'|'.join(MISSING)}): .+")
MAKEFILES = [ROOT / "Makefile", *ROOT.glob("ssvm_bench/papers/*/targets.mk")]


def items(text):
    """Yield the cells of each row of the tables of items."""
    of_items = False
    for line in text.splitlines():
        if line.startswith("| item |"):
            assert line == HEADER
            of_items = True
        elif not line.startswith("|"):
            of_items = False
        elif of_items and not line.startswith("|--"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert len(cells) == 4, line
            yield cells


def test_every_paper_has_a_page():
    folders = sorted(paper.folder.name for paper in registry.papers().values())
    assert [page.stem for page in PAGES] == folders


def test_the_verdicts_are_those_of_the_stored_tables():
    for file, text in runpy.run_path(str(ROOT / "docs" / "verdicts.py"))["pages"]():
        assert file.read_text(encoding="utf-8") == text, "make papers-pages"


def test_every_remark_is_shown():
    """A remark says why a claim does not hold; where it holds by now, nobody would read it."""
    for paper in filter(lambda paper: paper.file, registry.papers().values()):
        with (ROOT / "results" / f"{paper.file}.csv").open(encoding="utf-8", newline="") as file:
            notes = {(row["key"], row["dataset"], row["note"]) for row in csv.DictReader(file)}
        for key, remarks in paper.remarks.items():
            for about, text in remarks.items():
                shown = [note for of, data, note in notes if (of, data) == (key, about.split()[0])]
                assert any(text.rstrip(".") in note for note in shown), (key, about)


def test_the_findings_name_every_claim_of_mpbcfw_that_fails():
    with (ROOT / "results" / "claims.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    claims = list(dict.fromkeys(row["claim"] for row in rows))
    counted = [row for row in rows if row["verdict"] == "does not hold" and not row["beside"]]
    table = (ROOT / "results" / "mpbcfw.md").read_text(encoding="utf-8").partition("| # |")[2]
    named = map(int, re.findall(r"^\| (\d+) \| ", table.partition("\n\n")[0], re.M))
    assert sorted(named) == sorted({claims.index(row["claim"]) + 1 for row in counted})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_item_has_a_command_or_a_reason(page):
    rows = list(items(page.read_text(encoding="utf-8")))
    assert len(rows) > 20
    for item, where, command, status in rows:
        assert item
        assert where, item
        assert STATUS.fullmatch(status), f"{item}: {status}"
        missing = status.startswith(MISSING)
        assert command != "–" or missing, item
        assert (where == "–") <= missing, item


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_named_is_there(page):
    spans = re.findall(r"`([^`]+)`", page.read_text(encoding="utf-8"))
    rules = "".join(file.read_text(encoding="utf-8") for file in MAKEFILES)
    targets = re.findall(r"^([a-z-]+):", rules, re.M)
    experiments = catalog.entries("experiments")
    for span in spans:
        if found := re.match(r"ssvm-bench (?:experiment|plot) (\w+)", span):
            assert found[1] in experiments, span
        elif span.startswith("ssvm-bench run "):
            words = shlex.split(span)[2:]
            assert compose_runs([word for word in words if word != "-m"], "-m" in words), span
        elif span.startswith("make "):
            assert span.split()[1] in targets, span
        elif found := re.fullmatch(r"(tests/\w+/\w+\.py)::(\w+)", span):
            assert f"\ndef {found[2]}(" in (ROOT / found[1]).read_text(encoding="utf-8"), span
        elif found := re.match(r"python -m ([\w.]+)", span):
            assert any(ROOT.glob(found[1].replace(".", "/") + "*")), span
        elif re.fullmatch(r"[\w./-]+/[\w./-]*|\w+\.(py|md|yaml)", span):
            assert (ROOT / span).exists() or (ROOT / "ssvm_bench" / span).exists(), span
