"""The numbers of the pages: each has a kind, and a digit that is changed is noticed."""

import re
import runpy
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from ssvm_bench.report import prose, times
from ssvm_bench.results.folder import ResultsFolder
from ssvm_bench.verification import DIFFERENT, Subject, in_prose

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
LISTED = [name for name, _, _ in prose.pages(RESULTS)]


@pytest.fixture(scope="module")
def sources():
    return prose.Sources(RESULTS)


def test_every_page_has_a_list():
    pages = runpy.run_path(str(ROOT / "docs" / "prose.py"))["pages"]()
    assert sorted(pages) == sorted(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_every_number_of_a_page_has_a_kind_and_its_value(sources, name):
    (of,) = (each for each in prose.pages(RESULTS) if each[0] == name)
    _, page, numbers = of
    text, rows = page.read_text(encoding="utf-8"), prose.read(numbers)
    assert [*prose.differences(text, rows, sources)] == []
    assert prose.filled(text, rows, sources) == (text, rows), "make papers-pages"


def test_pages_mark_times_that_were_not_measured_alike():
    known = times.tables(RESULTS)
    for _, page, numbers in prose.pages(RESULTS):
        text = page.read_text(encoding="utf-8")
        of = times.shown(text, prose.read(numbers), known)
        assert times.marked(text, page, RESULTS, of) == text, f"{page}: make papers-pages"


@pytest.mark.parametrize("in_list", [False, True], ids=["page", "page and list"])
def test_a_digit_that_is_changed_in_a_page_is_noticed_by_its_name(tmp_path, in_list):
    """Nobody changes a measured number, in the page alone or in its list as well."""
    results = tmp_path / "results"
    pictures = shutil.ignore_patterns("*.png", "*.pdf")
    shutil.copytree(RESULTS, results, ignore=pictures)
    for name, page, numbers in prose.pages(results):
        text, rows = (ROOT / name).read_text(encoding="utf-8"), prose.read(numbers)
        pairs = zip(prose.numbers(text), rows, strict=True)
        measured = [(k, at) for k, (at, row) in enumerate(pairs) if row.kind == prose.MEASURED]
        k, number = measured[len(measured) // 2]
        wrong = f"{number.text[:-1]}{(int(number.text[-1]) + 1) % 10}"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text[: number.begin] + wrong + text[number.end :], encoding="utf-8")
        if in_list:
            lines = numbers.read_text(encoding="utf-8").splitlines(keepends=True)
            lines[k + 1] = lines[k + 1].replace(number.text, wrong, 1)
            numbers.write_text("".join(lines), encoding="utf-8")
    verdicts = [*in_prose(Subject(ResultsFolder(results, results), defaultdict(dict), []))]
    assert [(each.outcome, each.of) for each in verdicts] == [(DIFFERENT, name) for name in LISTED]
    assert all(len(re.findall(r"\bline \d", verdict.why)) == 1 for verdict in verdicts)
