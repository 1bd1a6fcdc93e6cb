"""Numbers in prose: what counts as one, formulas, and what is said where page and list differ."""

import json

import pytest

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.report import prose
from ssvm_bench.report.prose import MEASURED, PRINTED, SET, Row

PAGE = r"""# Title 2.5

`mpbcfw_fast` takes 0.80 s and 15 passes, `x=0.3` [1.5 %](figures/9.9.csv) less. Chapter 3, 1e-10,
v1.2.3, OCR-26 and a1.5b are names; −4.2 % and 1,234 calls are not. $`x^{2.5}`$ Figure 4, Sections
4.1 and 4.2, claims 28 to 30 and 10⁻⁶ are none; 3 to 5, 7 and 9 times are four, 3 of 5 none. `over
two lines 1.7`

## 3.1, 4 Theorems

    indented 7.7 code

| what | n | where | # |
|---|---:|---|---|
| 26 letters of `0.1` | 5 | 4.1, equation 3 | 7 |
| the other 26, or 13 % | **~6** (7) | \|8\| 2 | 8 |

```text
8.8 s
```
<!-- made by `make` -->
6.6 s
<!-- end of it -->
"""


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    (folder / "figures").mkdir(parents=True)
    table = "dataset,solver,gap,time\nocr,fast,0.01,4.26\nocr,fast,0.1,1.04\nusps,a b,0.01,0.5\n"
    (folder / "figures" / "t.csv").write_text(table)
    notes = "key,of all,note\na,,to 0.1: 0.25× (2); BCFW: 3e-2 s\nb,2,to 0.1: not reached\nb,8,\n"
    (folder / "notes.csv").write_text(notes)
    rows = [{"quantity": "one pass / product", "value": 1.8}]
    (folder / "bench.json").write_text(json.dumps({"measurements": rows}))
    return folder


CELLS = ["26", "5", "13", "6", "7"]


def test_numbers_are_those_of_text_and_tables():
    found = [number.text for number in prose.numbers(PAGE)]
    assert found == ["2.5", "0.80", "15", "1.5", "−4.2", "1,234", "3", "5", "7", "9", *CELLS]
    assert all(PAGE[one.begin : one.end] == one.text for one in prose.numbers(PAGE))


def test_numbers_before_one_that_is_only_a_bound_are_numbers_too():
    found = prose.numbers("It takes 54, 162 and over 2000 passes, 3 or more than 7 s; 5 over 8.")
    assert [number.text for number in found] == ["54", "162", "2000", "3", "7"]


OCR = "figures/t.csv[dataset=ocr gap=0.010].time"


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        (OCR, 4.26),
        (f"100 * (1 - {OCR} / 8.52)", 50.0),
        ("figures/t.csv[solver='a b'].time", 0.5),
        ("max(figures/t.csv[dataset=ocr].time) - min(figures/t.csv[dataset=ocr].time, 1)", 3.26),
        ("median(figures/t.csv[gap=0.01].time)", 2.38),
        ("bench.json[quantity='one pass / product'].value", 1.8),
        ("-2", -2.0),
        ("count(notes.csv[key=b].note)", 2),
        ("count(notes.csv['note~to 0.1:'].note)", 2),
        ("count(notes.csv[of_all=].key)", 1),
        ("max(notes.csv[].of_all)", 8),
        ("mean(log(notes.csv[key=b].of_all)) / log(2)", 2),
        ("after('to 0.1:', notes.csv[key=a].note)", 0.25),
        ("after('BCFW', notes.csv[key=a].note)", 0.03),
    ],
)
def test_formulas_have_the_values_of_cells(results, formula, value):
    assert prose.Sources(results).value(formula) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("figures/t.csv[dataset=ocr].time", "has 2 values"),
        ("figures/t.csv[dataset=mnist].time", "no row with dataset=mnist"),
        ("figures/t.csv[data=ocr].time", "no column data"),
        ("figures/t.csv[gap=0.1].solver", "is no number"),
        ("notes.csv[key=a].of_all", "is no number"),
        ("notes.csv[key=a].of_all / 2", "is no number"),
        ("min(notes.csv[key=a].of_all)", "is no number"),
        ("1 / log(notes.csv[of_all=2].of_all / 2)", "is no number"),
        ("after('to 0.2:', notes.csv[key=a].note)", "no number after 'to 0.2:'"),
        ("count(2)", "no part of a formula"),
        ("figures/none.csv[gap=1].time", "cannot be read"),
        ("../t.csv[gap=1].time", "outside"),
        ("traces/none[solver=x].seconds", "has no traces/none"),
        *(("1 +", "no formula"), ("1 / 0", "no formula")),
        ("open('x')", "no part of a formula"),
        ("(1).real", "no part of a formula"),
    ],
)
def test_what_is_no_formula_is_refused(results, formula, why):
    with pytest.raises(ConfigError, match=why):
        prose.Sources(results).value(formula)


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (4.26, "4.9", "4.3"),
        (4.26, "12", "4"),
        (51234.4, "5,183", "51,234"),
        (-0.5, "−1.25", "−0.50"),
        (-0.5, "3.1", "−0.5"),
        (-0.5, "-3.1", "-0.5"),
    ],
)
def test_values_get_the_digits_of_the_text(value, like, text):
    assert prose.written(value, like) == text


ROWS = [Row("4.3", MEASURED, OCR), Row("0.01", SET, ""), Row("0.51", PRINTED, "Figure 5")]
TEXT = "It takes 4.3 s to 0.01, and\n0.51 of it is printed."


@pytest.mark.parametrize(
    ("text", "rows", "wrong"),
    [
        (TEXT, ROWS, []),
        (TEXT.replace("4.3", "4.2"), ROWS, ["line 1: 4.2, where the list of its numbers has 4.3"]),
        (
            TEXT.replace("4.3", "4.2"),
            [ROWS[0]._replace(number="4.2"), *ROWS[1:]],
            [f"line 1: 4.2, but 4.3 by {OCR}"],
        ),
        (TEXT, ROWS[:2], ["line 2: 0.51 and what follows is of no kind"]),
        (TEXT, [*ROWS[:2], Row("0.51", "by hand", "")], ["line 2: 0.51 is of no kind"]),
        (TEXT, [*ROWS, ROWS[0]], ["its list has 1 numbers more than the text"]),
        (TEXT, [Row("4.3", MEASURED, "none"), *ROWS[1:]], ["line 1: 4.3: none is no part"]),
    ],
)
def test_a_changed_digit_is_noticed(results, text, rows, wrong):
    found = [*prose.differences(text, rows, prose.Sources(results))]
    assert len(found) == len(wrong)
    assert all(one.startswith(start) for one, start in zip(found, wrong, strict=True))


def test_measured_numbers_are_filled_in(results):
    old = TEXT.replace("4.3", "9.9")
    rows = [ROWS[0]._replace(number="9.9"), *ROWS[1:]]
    assert prose.filled(old, rows, prose.Sources(results)) == (TEXT, ROWS)


def test_lists_lie_beside_the_results_of_their_pages(results):
    path = results / prose.LISTS / "docs" / "page.csv"
    path.parent.mkdir(parents=True)
    path.write_text("number,is,of\n4.3,measured,1\n")
    assert [*prose.pages(results)] == [("docs/page.md", results.parent / "docs/page.md", path)]
    assert prose.read(path) == [Row("4.3", MEASURED, "1")]
    (results / prose.LISTS / "remarks.yaml.csv").write_text("number,is,of\n")
    assert [*prose.pages(results)][1][:2] == ("remarks.yaml", results.parent / "remarks.yaml")
    for text in ("", "number,is\n", "number,is,of\n4.3\n", "number,is,of\n\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(RunFailedError, match=r"page\.csv is no list of numbers"):
            prose.read(path)
