"""The tables of the MP-BCFW paper, and its Figure 3, on hand-made traces."""

import numpy as np
import pytest
from traces import make_trace

from ssvm_bench.figures.kind import FigureData
from ssvm_bench.papers.mpbcfw import tables
from ssvm_bench.results.table import Best, Runs, instance_of

COUNTED = {"cost_call": 1.0, "cost_plane": 1.0, "cost_visit": 1.0}


def run(solver, primal, dual=None, seed=0, lam=0.5, time=None, passes=0, columns=None, **options):
    """Return a run whose time is counted."""
    dual = -np.asarray(primal, float) if dual is None else dual
    about = {"solver": solver, "seed": seed, "lam": lam, "time": time, "clock": "work"}
    about["options"] = {"M": 1000, "T": 10, **options}
    about["columns"] = {"approx_passes": passes, **(columns or {})}
    return make_trace(primal, dual, config={"oracle": COUNTED}, **about)


def best(traces, value=0.0):
    return {instance_of(trace.metadata): Best(value, value) for trace in traces}


def outputs(kind, traces):
    return list(kind.outputs(FigureData(Runs(traces, best(traces))), kind.choices.names))


def test_scale_counts_the_iterations_at_which_the_second_primal_is_lower():
    traces = [run("bcfw", [9, 5, 4, 3], seed=seed, lam=lam) for lam in (0.5, 5) for seed in (0, 1)]
    traces += [run("mpbcfw", [9, 6, 3, 2], seed=seed) for seed in (0, 1)]
    traces += [run("mpbcfw", [9, 4, 3, 2], seed=seed, lam=5) for seed in (0, 1)]
    table = tables.scale(Runs(traces, best(traces))).set_index("lam")
    assert list(table["lower"]) == [2, 3]
    assert set(table["iterations"]) == {3}
    assert list(table["last_not_lower"]) == [1, 0]
    (output,) = outputs(tables.KINDS[0], traces)
    assert "| BCFW, MP-BCFW | truth | 1/n | 2 | 3 | 2 (2 – 2) | 2 |" in output.markdown()
    assert outputs(tables.KINDS[0], traces[:2]) == []  # of one solver


def test_slope_is_the_time_to_the_gap_of_bcfw_over_that_with_the_rule():
    single = [run("bcfw", [8, 4, 2, 1, 0.5], time=np.arange(5.0))]
    usual = [run("mpbcfw", [8, 2, 1, 0.5, 0.1], time=np.arange(5.0))]
    fixed = [run("mpbcfw", [8, 2, 1, 0.5, 0.1], time=2 * np.arange(5.0), rule="fixed", M=5)]
    other = [run("mpbcfw", [8, 8, 8, 8, 8], time=np.arange(5.0), T=3)]
    traces = single + usual + fixed + other
    table = tables.slope(Runs(traces, best(traces)))
    assert table[["M", "T"]].values.tolist() == [[0, 10], [5, 10], [0, 3]]
    assert table["ratio"].tolist() == [1, pytest.approx(2), np.inf]
    assert table["tenth"].tolist() == [1, pytest.approx(2), np.inf]  # at 4 seconds
    assert table["gap"].iloc[0] == 2.0  # at 3 of 4 seconds, within 80 % of the budget
    (output,) = outputs(tables.KINDS[1], traces)
    assert "| slope rule | 10 | 1 |" in output.markdown()
    assert "not reached" in output.markdown()


def test_averages_are_compared_with_their_interpolation():
    columns = {"dual_of_average": -1.0, "dual_of_exact_average": -4.0}
    columns["dual_of_approximate_average"] = -1.5
    traces = [run("mpbcfw_avg", np.full(31, 3.0), columns=columns)]
    table = tables.averages(Runs(traces, best(traces)))
    assert table["after"].tolist() == [10, 30]
    assert table[["interpolation", "exact", "approximate"]].values.tolist() == [[1, 4, 1.5]] * 2
    (output,) = outputs(tables.KINDS[2], traces)
    assert "| 30 | 1 | 1 | 4× | 1.5× |" in output.markdown()


def test_the_rule_is_drawn_from_runs_of_one_iteration():
    ends = {0: (4.0, 1.0), 1: (5.0, 3.0), 2: (6.0, 4.0), 3: (7.0, 4.2)}
    traces = []
    for M, (time, dual) in ends.items():
        traces.append(run("mpbcfw", [9, 9], [0, dual], time=[0, time], rule="fixed", M=M))
    assert outputs(tables.KINDS[3], traces) == []  # how many the rule makes is not known
    traces += [run("mpbcfw", [9, 9], [0, 4.2], time=[0, 7.0], passes=3)]
    table = tables.passes(Runs(traces, best(traces))).set_index("passes")
    assert table["pays"].tolist() == [False, False, True, True, False]
    assert table["last"].loc[[1, 2, 3]].tolist() == [2.0, 1.0, pytest.approx(0.2)]
    assert table["iteration"].loc[[0, 3]].tolist() == [0.25, pytest.approx(0.6)]
    (output,) = outputs(tables.KINDS[3], traces)
    titles = [panel.get_title(loc="left") for panel in output.figure().axes]
    assert [title.split(": ")[1] for title in titles] == ["after 1 pass", "after 3 passes"]


def test_the_noise_of_times_is_that_of_an_iteration_over_the_repeats():
    def timed(solver, seed, seconds, clock="cpu"):
        about = {"solver": solver, "seed": seed, "time": seconds * np.arange(4.0), "clock": clock}
        return make_trace([9, 5, 4, 3], [0, 1, 2, 2], **about)

    runs = [timed("bcfw", seed, seconds) for seed, seconds in enumerate((1.0, 2.0, 3.0, 4.0, 5.0))]
    kind = next(kind for kind in tables.KINDS if kind.name == "noise")
    (output,) = outputs(kind, [*runs, timed("mpbcfw", 0, 1.0)])
    (row,) = output.table.to_dict("records")  # one repeat has no noise
    assert (row["solver"], row["repeats"], row["time"]) == ("bcfw", 5, 3.0)
    assert row["spread"] == pytest.approx(2 / 3)
    assert "| BCFW | truth | 5 | 3 s (1 s – 5 s) | 67 % |" in output.markdown()
    assert outputs(kind, [run("bcfw", [9, 5], seed=seed) for seed in (0, 1)]) == []  # counted
