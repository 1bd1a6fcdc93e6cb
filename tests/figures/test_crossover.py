"""Time against the cost of a call: what is counted, who is first, table and figure."""

import numpy as np
import pytest
from traces import make_trace

from ssvm_bench.figures import crossover
from ssvm_bench.figures.document import markdown
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.results.table import Runs

REAL = 0.012
"""CPU seconds of a call of all runs."""

COSTS = 0.001, 1.0
GAPS = 0.1, 0.001


def run_of(solver, seed, *, calls, outside, gaps, cost=None, **options):
    """Return a run with primal 1: calls, CPU seconds outside the oracle, and gap in each row."""
    calls, outside, gaps = (np.array(of, float) for of in (calls, outside, gaps))
    oracle = REAL * calls if cost is None else cost * calls
    config = {"oracle": {"cost_call": 1e-6 if cost is None else cost}}
    columns = {"cpu_time": outside + REAL * calls, "oracle_time": oracle}
    trace = {"oracle_calls": calls, "time": outside + oracle, "columns": columns}
    clock = "cpu" if cost is None else "work"
    more = {"solver": solver, "seed": seed, "clock": clock, "config": config, "options": options}
    return make_trace(np.ones(len(gaps)), 1.0 - gaps, **trace, **more)


RUNS = Runs(
    [
        # many calls, and little else
        *(run_of("bcfw", k, calls=[0, 100], outside=[0, 1 + k], gaps=[1, 0.05]) for k in range(3)),
        # few calls, and much else; more of it where calls cost much
        run_of("mpbcfw", 0, calls=[0, 40, 60], outside=[0, 4, 5], gaps=[1, 0.1, 1e-4]),
        run_of("mpbcfw", 0, calls=[0, 50, 80], outside=[0, 1, 2], gaps=[1, 0.1, 1e-4], cost=0.001),
        run_of("mpbcfw", 0, calls=[0, 10, 20], outside=[0, 5, 9], gaps=[1, 0.1, 1e-4], cost=1.0),
    ]
)


def test_time_is_that_of_calls_at_a_cost_and_of_all_else():
    table = crossover.crossover(RUNS, GAPS).set_index(["solver", "gap", "cost"])
    assert sorted({cost for *_, cost in table.index}) == [*COSTS[:1], REAL, *COSTS[1:]]
    for cost, time in zip((0.001, REAL, 1.0), (2.1, 3.2, 102.0), strict=True):
        row = table.loc["bcfw", 0.1, cost]
        assert row["time"] == pytest.approx(time)  # the median; outside takes 1, 2 or 3 seconds
        assert (row["time_min"], row["time_max"]) == pytest.approx((time - 1, time + 1))
        assert (row["repeats"], row["reached"], row["passes"]) == (3, 3, 50)
        assert row["outside"] == pytest.approx(2.0)
        assert row["real"] == (cost == REAL)
        missed = table.loc["bcfw", 0.001, cost]
        assert missed["reached"] == 0
        assert np.isnan([missed["time"], missed["ratio"]]).all()
    for cost, time, passes in ((0.001, 1.05, 25), (REAL, 4.48, 20), (1.0, 15.0, 5)):
        row = table.loc["mpbcfw", 0.1, cost]  # of the run at this cost
        assert (row["time"], row["passes"]) == (pytest.approx(time), passes)
    assert table.loc["bcfw", 0.1, 1.0]["ratio"] == pytest.approx(102.0 / 15.0)
    ratios = table.sort_index().loc[("mpbcfw", 0.1), "ratio"]
    assert list(ratios) == pytest.approx([1.0, 4.48 / 3.2, 1.0])


def test_without_runs_at_several_costs_decades_are_taken():
    table = crossover.crossover(RUNS.where(clock="cpu"), [0.1])
    assert set(table["cost"]) == {REAL, *crossover.COSTS}
    first = crossover.firsts(table[table["solver"] == "bcfw"])
    assert first == [("bcfw", pytest.approx([*crossover.COSTS]))]
    by_cost = dict(crossover.firsts(table))
    assert by_cost == {"bcfw": pytest.approx([*crossover.COSTS[:5]]), "mpbcfw": [0.1, 1.0]}
    assert not len(crossover.crossover(RUNS.where(clock="work"), [0.1]))


def test_the_document_says_who_is_first_and_what_a_solver_loses():
    data = FigureData(RUNS, "Toy", GAPS)
    output, *figures = crossover.KIND.files(data, ["table"])
    text = output.markdown()
    assert "First, by the cost of a call: MP-BCFW: 1 ms to 1 s." in text
    assert "6.80" in text
    assert "12 ms (real)" in text
    assert markdown([*crossover.tables(output.table)]) in text
    for gap, each in zip(GAPS, figures, strict=True):
        assert each.name == f"crossover-{gap:g}"
        (panel,) = each.figure().axes
        assert panel.get_xscale() == panel.get_yscale() == "log"
        (of_real,) = [line for line in panel.lines if line.get_linestyle() == ":"]
        assert list(of_real.get_xdata()) == [REAL, REAL]
        curves = [line for line in panel.lines if line is not of_real]
        assert REAL not in {x for line in curves for x in line.get_xdata()}


def test_gaps_that_nobody_reaches_are_said():
    data = FigureData(RUNS.where(solver="bcfw"), "Toy", GAPS)
    output, *figures = crossover.KIND.files(data, ["table"])
    assert "relative gap of 0.001: no solver got there." in output.markdown()
    assert "crossover-0.001" not in [each.name for each in figures]


def test_a_cost_at_which_alone_a_solver_gets_there_has_a_marker():
    near = {"outside": [0, 1], "gaps": [1, 0.05]}
    slow = {"outside": [0, 2]}
    runs = [
        run_of("bcfw", 0, calls=[0, 10], **near),
        run_of("mpbcfw", 0, calls=[0, 10], **slow, gaps=[1, 0.5]),
        *(
            run_of("mpbcfw", 0, calls=[0, 9], **slow, gaps=[1, gap], cost=cost)
            for cost, gap in ((0.001, 0.5), (0.1, 0.05), (1.0, 0.5))
        ),
    ]
    table = crossover.crossover(Runs(runs), [0.1])
    (panel,) = crossover.draw(table, "Toy", []).axes
    (shown,) = (line for line in panel.get_lines() if line.get_marker() == "o")
    assert np.array(shown.get_xdata())[shown.get_markevery()].tolist() == [0.1]


def test_a_solver_without_a_line_is_named_below_and_not_in_the_legend():
    data = FigureData(RUNS, "Toy", GAPS)
    _, near, far = crossover.KIND.files(data, ["table"])
    for output, names, said in (
        (near, ["1  BCFW", "2  MP-BCFW"], "than 40 times as long."),
        (far, ["1  MP-BCFW"], "than 40 times as long: in all panels BCFW."),
    ):
        figure = output.figure()
        assert [text.get_text() for text in figure.legends[0].get_texts()] == names
        assert figure.texts[-1].get_text().endswith(said)
