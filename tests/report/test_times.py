"""Times that were not measured alike: what makes them so, and which pages show and mark them."""

import json

import pytest

from ssvm_bench.report import prose, times

ALIKE = {
    "runs": 4,
    "timed_beside_other_runs": 0,
    "commits": {"a": 4},
    "cpu": {"X": 4},
    "clock": {"cpu": 4},
}


@pytest.mark.parametrize(
    ("changes", "unlike"),
    [
        ({}, ""),
        ({"commits": {"a": 3, "b": 1}}, "2 versions"),
        ({"cpu": {"X": 3, "Y": 1}}, "2 processors"),
        ({"timed_beside_other_runs": 3}, "3 of 4 runs beside others"),
        ({"commits": {"a": 2, "b": 2}, "cpu": {"X": 3, "Y": 1}}, "2 versions, 2 processors"),
        ({"commits": {"a": 2, "b": 2}, "clock": {"work": 4}}, ""),
        ({"commits": {"a": 2, "b": 2}, "clock": {"cpu": 1, "work": 3}}, "2 versions"),
    ],
)
def test_times_are_alike_of_one_version_and_processor_and_nothing_beside(changes, unlike):
    assert times.unlike(ALIKE | changes) == unlike


@pytest.fixture
def results(tmp_path):
    mixed = ALIKE | {"commits": {"a": 2, "b": 2}}
    for name, source, about in (
        ("one", "", ALIKE),
        ("two", "", mixed),
        ("two", "-synthetic", ALIKE),
        ("mpbcfw_claims", "", mixed),
    ):
        folder = tmp_path / "results" / "figures" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"provenance{source}.json").write_text(json.dumps(about))
        (folder / f"targets{source}.csv").write_text("solver,gap,time\nbcfw,0.1,2.5\n")
        (folder / f"passes{source}.csv").write_text("solver,gap,calls\nbcfw,0.1,2\n")
        (folder / f"time{source}.csv").write_text("solver,x,median\nbcfw,0.1,2\n")
    return tmp_path / "results"


def test_tables_with_times_have_the_provenance_of_their_folder(results):
    found = {each.table: each.unlike for each in times.tables(results)}
    assert found == {
        "claims": "2 versions",
        "figures/mpbcfw_claims/targets": "2 versions",
        "figures/mpbcfw_claims/time": "2 versions",
        "figures/one/targets": "",
        "figures/one/time": "",
        "figures/two/targets": "2 versions",
        "figures/two/targets-synthetic": "",
        "figures/two/time": "2 versions",
        "figures/two/time-synthetic": "",
    }
    (results / "figures/two/provenance.json").write_text("{}")
    assert "figures/two/time" not in {each.table for each in times.tables(results)}


@pytest.mark.parametrize(
    ("text", "of", "tables"),
    [
        ("[table](figures/one/targets.md)", "", []),
        ("![times](figures/two/time.png)", "", ["figures/two/time"]),
        ("![passes](figures/two/passes.png)", "", []),
        ("[table](figures/two/targets-synthetic.md)", "", []),
        ("[claims](claims.md), [others](claims-poster.md)", "", ["claims"]),
        ("2.5", "figures/two/targets.csv[gap=0.1].time", ["figures/two/targets"]),
        ("2.5", "claims.csv[key=fewer].median", ["claims"]),
    ],
)
def test_a_page_shows_the_times_that_it_links_or_takes_numbers_from(results, text, of, tables):
    known, page = times.tables(results), results / "page.md"
    rows = [prose.Row("2.5", prose.MEASURED, of)]
    found = times.shown(text, rows, known)
    assert [each.table for each in found] == tables
    marked = times.marked(f"{text}\n", page, results, found)
    assert ("not measured alike" in marked) == bool(tables)
    assert times.shown(marked, rows, known) == found
    assert times.marked(marked, page, results, found) == marked
    assert times.marked(marked, page, results, []) == f"{text}\n"
    assert prose.numbers(marked) == prose.numbers(text)


def test_a_mark_stays_where_it_is(results):
    known, page = times.tables(results), results.parent / "README.md"
    text = "![times](results/figures/two/time.png)\n"
    marked = times.marked(text, page, results, times.shown(text, [], known)) + "\n## More\n"
    assert "(results/figures/two/provenance.json): 2 versions." in marked
    old = marked.replace("2 versions", "3 versions")
    assert times.marked(old, page, results, times.shown(old, [], known)) == marked
