"""Claims as they are written in YAML, and what a number says about a range, without runs."""

import math

import numpy as np
import pytest

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.claims.cases import Family, Selection
from ssvm_bench.claims.claim import Claim, Measured, end_of_range, fact_text, read_claims
from ssvm_bench.claims.judging import FAILS, HOLDS, UNKNOWN, VOID, judge
from ssvm_bench.results.curves import UnmeasurableError
from ssvm_bench.results.words import percent, seconds

CLAIMS = """
runs:
  ours: {solver: bcfw, step: line_search, name: Ours}
  ssg: &ssg {solver: ssg, warm_start: false}
  others: {name: the others, of: [*ssg, {solver: fw}]}
each:
  one: {ssg: {ours: ours, family: ssg, how: much}}
  several: {others: {ours: ours, family: others, how: little}}
claims:
  ahead: &ahead
    each: [one, several]
    section: '1'
    text: '{ours} is {how} ahead of {family}.'
    measured: share below {family.median}; holds from {low} to {high}
    paper: {toy: '{how}'}
    measure: {by: values, of: '{family}', many: ['{how}', 2]}
    low: 1/4
    high: < 1
    show: percent
  behind: {<<: *ahead, name: last, together: true, low: '> 0', lam: 0.5, beside: not claimed}
  alone: {section: '2', text: All., measured: all, paper: {toy: yes}, measure: {by: values, of: 3}}
"""


def values(case, of, many=()):
    return Measured([case], facts={"of": str(of), "many": str(many)})


def read(tmp_path, text=CLAIMS):
    (tmp_path / "claims.yaml").write_text(text)
    return read_claims(tmp_path / "claims.yaml", {"values": values})


def test_a_statement_is_repeated_for_each_row_of_its_tables_in_turn_with_the_next(tmp_path):
    claims = {claim.key: claim for claim in read(tmp_path)}
    assert [*claims] == ["ahead_ssg", "last_ssg", "ahead_others", "last_others", "alone"]
    one, other = claims["ahead_ssg"], claims["ahead_others"]
    assert one.text == "Ours is much ahead of SSG."
    assert other.text == "Ours is little ahead of the others."
    assert one.measured == "share below the median of SSG; holds from 25 % to 100 %"
    assert other.measured == "share below the lowest median of the others; holds from 25 % to 100 %"
    assert (one.paper, other.paper) == ({"toy": "much"}, {"toy": "little"})
    ssg = Selection("ssg", warm_start=False)
    assert one.measure.keywords == {"of": ssg, "many": ["much", 2]}
    family = Family("the others", (ssg, Selection("fw")))
    assert other.measure.keywords == {"of": family, "many": ["little", 2]}
    assert (one.low, one.high, one.show) == (0.25, math.nextafter(1, 0), percent)
    last = claims["last_ssg"]
    assert (last.low, last.lam, last.beside) == (math.nextafter(0, 1), 0.5, "not claimed")
    assert (one.lam, one.beside, one.timed) == (None, "", False)
    alone = claims["alone"]
    assert (alone.low, alone.high) == (-math.inf, math.inf)
    assert alone.measure.keywords == {"of": 3}


@pytest.mark.parametrize(
    ("entry", "instead", "said"),
    [
        ("show: percent", "show: percents", "has no format 'percents'.*percent"),
        ("by: values, of: 3", "by: value, of: 3", "The claim alone.*no measure 'value'.*values"),
        ("each: [one, several]", "each: [one, severe]", "no table 'severe'.*several"),
        ("high: < 1", "hihg: < 1", "no entry 'hihg'.*high"),
    ],
)
def test_what_does_not_exist_is_named_with_what_comes_near(tmp_path, entry, instead, said):
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, CLAIMS.replace(entry, instead))


def test_ends_of_a_range_are_numbers_fractions_or_exclude_their_number():
    assert [end_of_range(end) for end in (2, "2", "4/3", math.inf)] == [2.0, 2.0, 4 / 3, math.inf]
    assert end_of_range("< 1/2") < 0.5 < end_of_range(">1/2")
    assert end_of_range("< 1/2") == math.nextafter(0.5, 0)


def claim(low=-math.inf, high=math.inf, found=None):
    def measure(_):
        return found if isinstance(found, Measured) else Measured(found)

    return Claim("key", "1", "Text.", "measured", {}, measure, low=low, high=high)


@pytest.mark.parametrize(
    ("found", "low", "high", "verdict", "agree"),
    [
        ([1.0, 2.0, 9.0], 2.0, 9.0, HOLDS, 2),  # the median decides, ends belong to the range
        ([1.0, 2.0, 9.0], 1.0, 2.0, HOLDS, 2),
        ([1.0, 2.0, 9.0], 2.1, 9.0, FAILS, 1),
        ([1.0, 2.0, 9.0], 1.0, 1.9, FAILS, 1),
        (Measured([2.0], low=3.0), 1.0, 9.0, FAILS, 0),  # the smaller of two ranges
        (Measured([2.0], high=1.0), 1.0, 9.0, FAILS, 0),
        (Measured([2.0], low=1.0, high=3.0), 0.0, 9.0, HOLDS, 1),
        ([math.nan, 1.0], 0.0, 9.0, UNKNOWN, 0),
        ([math.inf], 1.0, math.inf, HOLDS, 1),
    ],
)
def test_a_claim_holds_if_the_median_is_in_the_range(found, low, high, verdict, agree):
    row = judge(claim(low, high, found), None)
    assert (row.verdict, row.agree) == (verdict, agree)
    if verdict != UNKNOWN:
        numbers = np.atleast_1d(found.values if isinstance(found, Measured) else found)
        assert (row.min, row.median, row.max) == (min(numbers), np.median(numbers), max(numbers))
        assert row.repeats == len(numbers)


@pytest.mark.parametrize(
    ("bound", "low", "high", "verdict"),
    [
        (3.0, -math.inf, 2.0, FAILS),  # it has spent more than the range allows
        (2.0, -math.inf, 2.0, FAILS),
        (1.9, -math.inf, 2.0, UNKNOWN),
        (3.0, 2.0, math.inf, HOLDS),
        (1.9, 2.0, math.inf, UNKNOWN),
    ],
)
def test_a_run_that_ended_before_decides_only_beyond_the_range(bound, low, high, verdict):
    found = Measured([math.inf, math.inf], bounds=np.array([bound, 9.0]), ended="It ended.")
    row = judge(claim(low, high, found), None)
    assert row.verdict == verdict
    assert row.note == ("It ended." if verdict == UNKNOWN else "")


def test_numbers_that_measure_something_else_are_shown_and_have_no_verdict():
    found = Measured([1.0, 2.0], facts={"in": "all"}, void="They measure the order of a file.")
    row = judge(claim(high=9.0, found=found), None)
    assert (row.verdict, row.agree, row.repeats, row.median) == (VOID, 0, 2, 1.5)
    assert row.note == "They measure the order of a file. in all"
    assert row.ours


def test_why_something_cannot_be_measured_is_the_note():
    def measure(_):
        raise UnmeasurableError("No runs.")

    row = judge(claim()._replace(measure=measure), None)
    assert (row.verdict, row.note, row.ours, row.repeats) == (UNKNOWN, "No runs.", "", 0)
    found = Measured([math.nan], text="nothing to see")
    assert judge(claim(found=found), None).note == "nothing to see"


def test_facts_are_medians_with_their_ends_if_these_differ():
    assert fact_text("said") == "said"
    assert fact_text(3.0) == fact_text([3.0, 3.0]) == "3"
    assert fact_text([1.0, 2.0, 9.0]) == "2 (1 – 9)"
    assert fact_text(([0.1, 0.2], seconds)) == "150 ms (100 ms – 200 ms)"
    assert fact_text([math.inf]) == "not reached"
    found = Measured([1.0], facts={"of all": (0.5, percent), "nothing more": "", "and": 2})
    assert found.note == "of all 50 %; nothing more; and 2"


@pytest.mark.parametrize(
    ("entry", "instead", "said"),
    [
        ("section: '2'", "section: 2", "section has to be a text, but is 2"),
        ("section: '2', ", "", "no entry 'section'"),
        ("text: All., ", "", "no entry 'text'"),
        ("measured: all, ", "", "no entry 'measured'"),
        (", measure: {by: values, of: 3}", "", "no entry 'measure'"),
        ("by: values, of: 3", "of: 3", "add “by”"),
        ("by: values, of: 3", "by: values, from: 3", "the measure values .*'of'"),
        ("by: values, of: 3", "by: values, of: '{off}'", "no placeholder 'off'"),
        ("text: All.", "text: '{al} of {it}'", "no placeholder 'al'"),
        ("text: All.", "text: 'All}'", "Single '}'"),
        ("text: All.", "text: All., high: few", "few"),
        ("text: All.", "text: All., each: 3", "each has to be .*, but is 3"),
        ("text: All.", "text: All., each: null", "each has to be .*, but is None"),
        ("text: All.", "text: All., each: {a: 3}", "a has to be a mapping, but is 3"),
        ("text: All.", "text: All., lam: abc", "lam has to be a number, but is abc"),
        ("text: All.", "text: All., timed: yes please", "timed has to be true or false"),
        ("text: All.", "text: All., only: text", "only has to be a mapping"),
        ("paper: {toy: yes}", "paper: few", "paper has to be a mapping, but is few"),
    ],
)
def test_a_mistake_in_a_claim_is_one_message_with_its_name_and_file(tmp_path, entry, instead, said):
    alone = CLAIMS.splitlines()[-1]
    assert entry in alone
    text = CLAIMS.replace(alone, alone.replace(entry, instead))
    place = f"The claim alone in {tmp_path / 'claims.yaml'}: "
    with pytest.raises(ConfigError, match=said) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(place)
    assert str(raised.value).count("claims.yaml") == 1


ONE = (
    "{section: '1', text: T, measured: m, paper: {}, measure: {by: values, of: 3}, together: true}"
)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: [", "{}: ", "line 1: "),
        ("- a", "{}: ", "has to be a mapping"),
        ("", "{}: ", "empty"),
        ("runs: {}", "{}: ", "no claims"),
        ("claims: [a]", "{}: ", "claims has to be a mapping"),
        ("claims: {1: {}}", "{}: ", "quote it"),
        ("claims: {a: {}, a: {}}", "{}: ", "the key a stands twice"),
        ("claims: {a: b}", "The claim a in {}: ", "a mapping, but is b"),
        (f"claims: {{a: {ONE}}}", "The claim a in {}: ", "together"),
        ("runs: {a: {step: 1}}", "The kind of runs a in {}: ", "with a solver"),
        ("runs: {a: b}", "The kind of runs a in {}: ", "a mapping, but is b"),
        ("runs: {a: {name: A, of: [b]}}", "The kind of runs a in {}: ", "but has b"),
        ("runs: {a: {of: []}}", "The kind of runs a in {}: ", "name"),
    ],
)
def test_a_mistake_in_a_file_of_claims_is_one_message_with_its_file(tmp_path, text, place, said):
    with pytest.raises(ConfigError, match=said) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(place.format(tmp_path / "claims.yaml"))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned None"),
        (3.0, "returned 3.0"),
        (Measured([]), r"shape \(0,\)"),
        (Measured([[1.0]]), r"shape \(1, 1\)"),
        (Measured([1.0], facts=["a"]), "no mapping"),
        (Measured([1.0], facts={"a": object()}), "TypeError"),
    ],
)
def test_a_measure_that_returns_something_else_is_named_by_its_claim(returned, said):
    asked = claim()._replace(measure=lambda _: returned, place="The claim key in FILE")
    with pytest.raises(RunFailedError, match=f"The claim key in FILE cannot be judged.*{said}"):
        judge(asked, None)


def test_a_measure_that_raises_is_named_by_its_claim_with_its_line():
    def measure(_):
        return 1 / 0

    asked = claim()._replace(measure=measure, place="The claim key in FILE")
    said = r"The claim key in FILE cannot be judged: ZeroDivisionError.*test_claim.py, line \d+"
    with pytest.raises(RunFailedError, match=said):
        judge(asked, None)
