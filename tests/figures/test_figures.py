"""The numbers of the figures on hand-made traces, and the files that are drawn from them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import make_trace, set_columns

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.figures import convergence, curves, drawing, style
from ssvm_bench.figures.convergence import SUBOPTIMALITY
from ssvm_bench.figures.kind import FigureData, Output, save
from ssvm_bench.results import words
from ssvm_bench.results.table import Best, Runs, instance_of, labels

NAN = float("nan")
TOO_LOW = "not positive (the oracle may miss the maximum, and P is then too low)"
SELECTION = ("planes per example", "approximate passes per iteration")


def table_of(traces, axis="iteration", primal=1.0, dual=1.0):
    best = {instance_of(trace.metadata): Best(primal, dual) for trace in traces}
    return SUBOPTIMALITY.tabulate(Runs(traces, best), axis)


def notes_of(table, traces, axis, best=None):
    return curves.notes(table, Runs(traces, best), axis)


def curve(table, quantity="duality gap", solver="bcfw"):
    chosen = table[(table["quantity"] == quantity) & (table["solver"] == solver)]
    return chosen.set_index("x")[["median", "min", "max", "repeats"]]


def test_the_three_quantities_and_their_band():
    values = enumerate([4.0, 8.0, 6.0])
    runs = [make_trace([p, p / 2], [0.0, 0.5], seed=seed) for seed, p in values]
    table = table_of(runs, primal=1.5, dual=0.75)
    assert list(table.columns) == list(curves.COLUMNS)
    assert curve(table).loc[0].tolist() == pytest.approx([6, 4, 8, 3])
    assert curve(table).loc[1].tolist() == pytest.approx([2.5, 1.5, 3.5, 3])
    primal = curve(table, "primal suboptimality")
    assert primal.loc[0].tolist() == pytest.approx([5.25, 3.25, 7.25, 3])
    dual = curve(table, "dual suboptimality")
    assert dual.loc[1].tolist() == pytest.approx([1, 1, 1, 3])


def test_values_that_are_not_positive_interrupt_the_curve():
    run = make_trace([3.0, 1.0, 0.5, 2.0, NAN], [1.0, 1.0, 1.0, NAN, 0.0])
    gap = curve(table_of([run]))
    assert gap["median"].isna().tolist() == [False, True, True, True, True]
    assert gap["repeats"].tolist() == [1, 0, 0, 0, 0]
    primal = curve(table_of([run]), "primal suboptimality")
    assert primal["median"].isna().tolist() == [False, True, True, False, True]


@pytest.mark.parametrize(
    ("oracle", "least", "note"),
    [
        ("mincut", 1e-16, "0 up to rounding"),
        ("mincut", 0.0, "0 up to rounding"),
        ("mincut", -1e-15, "0 up to rounding"),
        ("mincut", -0.1, "not positive"),
        ("alpha_expansion", -0.1, TOO_LOW),
        ("alpha_expansion", -1e-15, "0 up to rounding"),  # of two labels, for instance
        ("of_another_package", -0.1, TOO_LOW),
    ],
)
def test_an_inexact_oracle_is_named_only_where_it_was_inexact(oracle, least, note):
    about = {"config": {"oracle": {"kind": oracle}}}
    run = make_trace([100.0, 99.0, 98.0 + least], [0.0, 98.0, 98.0], **about)
    table = SUBOPTIMALITY.tabulate(
        Runs([run], {run.problem: Best(98.0 + least, 98.0)}), "iteration"
    )
    assert np.isnan(table["median"]).any()
    said = notes_of(table, [run], "iteration")
    assert [text for text in said if "interrupted" in text] == [
        f"A curve is interrupted where its value is {note}."
    ]
    # it may be the best values of other runs that show it
    other = make_trace([100.0, 99.0, 98.0], [0.0, 97.0, 98.0], **about)
    known = {run.problem: Best(98.0 + least, 98.0)}
    table = SUBOPTIMALITY.tabulate(Runs([other], known), "iteration")
    assert f"value is {note}." in " ".join(notes_of(table, [other], "iteration", known))
    whole = make_trace([100.0, 99.0], [0.0, 98.0], **about, lam=0.25)
    known[whole.problem] = Best(99.0, 98.0 - 1.0)
    table = SUBOPTIMALITY.tabulate(Runs([run, whole], known), "iteration")
    beside = notes_of(table, [run, whole], "iteration", known)
    assert [text for text in beside if "interrupted" in text] == [
        f"A curve is interrupted where its value is {note}."
    ]


def test_a_figure_says_how_far_its_zero_is_known():
    values = {"bcfw": ([2.0, 1.5], [0.0, 0.75]), "mpbcfw": ([2.0, 1.25], [0.0, 1.0])}
    runs = [make_trace(*of, solver=solver) for solver, of in values.items()]

    def said(*best):
        known = {run.problem: of for run, of in zip(runs, best, strict=False)}
        table = SUBOPTIMALITY.tabulate(Runs(runs, known), "iteration")
        return [note for note in notes_of(table, runs, "iteration", known) if "optimum" in note]

    assert said(Best(1.25, 1.0)) == [  # both are of these runs
        "The optimum is not known: suboptimality, measured from the best values of any run so far, "
        "is up to 0.25 too large."
    ]
    assert said(Best(1.125, 1.12)) == []  # the least one is 0.125, and known to a tenth
    assert said(Best(1.125, 1.125)) == said(Best(NAN, 1.0)) == said() == []
    runs.append(make_trace([2.0, 1.5], [0.0, 1.0], lam=0.25))
    runs = runs[1:]
    assert said(Best(1.25, 1.0), Best(1.5, 1.0))[0].endswith(
        "up to 0.25–0.5 too large (by problem)."
    )


def test_a_curve_goes_on_while_more_than_half_of_its_repeats_do():
    long = make_trace([8.0, 6.0, 4.0, 2.0], [0.0] * 4)
    short = make_trace([4.0, 2.0], [0.0] * 2, seed=1)
    for axis in curves.AXES:
        unit = 0.5 if axis == "passes" else 1  # n = 2
        gap = curve(table_of([long, short], axis))
        assert gap.index.max() == unit
        assert set(gap["repeats"]) == {2}
        gap = curve(table_of([long, short, make_trace([5.0] * 3, [0.0] * 3, seed=2)], axis))
        assert gap.index.max() == 2 * unit
        assert gap.loc[0].tolist() == pytest.approx([5, 4, 8, 3])
        assert gap.loc[2 * unit].tolist() == pytest.approx([4.5, 4, 5, 2])


def test_the_last_row_of_a_repeat_makes_no_median_of_its_own():
    steady = [100.0, 10.0, 1.0]
    repeats = [make_trace(steady, [0.0] * 3, iteration=[0, 10, 20], seed=s) for s in range(2)]
    stopped = make_trace([100.0, 10.0, 10**-0.5], [0.0] * 3, iteration=[0, 10, 15], seed=2)
    gap = curve(table_of([*repeats, stopped]))
    assert gap.index.tolist() == [0, 10, 15, 20]
    # the others are where their lines are in a log plot
    assert gap.loc[15].tolist() == pytest.approx([10**0.5, 10**-0.5, 10**0.5, 3])
    assert gap.loc[20].tolist() == pytest.approx([1, 1, 1, 2])


def test_a_median_counts_values_that_cannot_be_drawn_as_the_lowest():
    runs = [make_trace([8.0, value], [0.0] * 2, seed=s) for s, value in enumerate([4.0, 2.0, -1.0])]
    assert curve(table_of(runs)).loc[1].tolist() == pytest.approx([2, 2, 4, 2])
    runs.append(make_trace([8.0, -2.0], [0.0] * 2, seed=3))
    gap = curve(table_of(runs)).loc[1]
    assert np.isnan(gap["median"])
    assert gap["repeats"] == 2
    assert "interrupted" in " ".join(notes_of(table_of(runs), runs, "iteration"))


def test_oracle_calls_and_passes_are_axes():
    run = make_trace([8.0, 6.0], [0.0] * 2, oracle_calls=[0, 70])  # of two examples
    assert curve(table_of([run], "calls")).index.tolist() == [0, 70]
    assert curve(table_of([run], "passes")).index.tolist() == [0, 35]
    assert curves.axis_label([run], "calls") == "calls of the exact oracle"
    assert curves.axis_label([run], "passes") == "passes of the exact oracle (calls / n)"


def test_against_time_a_run_is_interpolated_as_a_log_plot_draws_it():
    gap = curve(table_of([make_trace([100.0, 1.0], [0.0, 0.0], time=[0.0, 2.0])], "time"))
    assert gap["median"].iloc[[0, 50, 100]].tolist() == pytest.approx([100, 10, 1])
    assert gap.index[50] == pytest.approx(1.0)
    gap = curve(table_of([make_trace([4.0, 2.0, -1.0, 1.0], [0.0] * 4)], "time"))
    inside = (gap.index > 1) & (gap.index < 3)
    assert gap["median"].isna().tolist() == inside.tolist()  # nothing across an interruption


def test_a_run_that_starts_late_is_not_prolonged_to_the_left():
    late = make_trace([4.0, 2.0], [0.0] * 2, time=[0.5, 2.0])
    early = make_trace([4.0, 2.0], [0.0] * 2, time=[0.0, 1.0], seed=1)
    gap = curve(table_of([late, early], "time"))
    assert (gap.index.min(), gap.index.max()) == (0.5, 1.0)
    assert set(gap["repeats"]) == {2}


def test_repeats_without_a_time_in_common_are_told_not_dropped():
    """One repeat may have ended before another, of a busier machine, began to count."""
    early = make_trace([4.0, 2.0], [0.0, 0.0], time=[0.1, 0.2])
    late = make_trace([4.0, 2.0], [0.0, 0.0], time=[0.3, 0.4], seed=1)
    drawn = make_trace([4.0, 2.0], [0.0, 0.0], time=[0.1, 0.4], solver="mpbcfw")
    table = table_of([early, late, drawn], "time")
    assert set(table["solver"]) == {"bcfw", "mpbcfw"}
    text = " ".join(notes_of(table, [early, late, drawn], "time"))
    assert "Not drawn, as one repeat ended before another began: BCFW." in text
    assert "Lines: one run each." in text
    assert "dual value" not in text
    apart = table_of([early, late], "time")
    assert curves.why_empty(apart[apart["quantity"] == "duality gap"]) == "no time in common"
    drawing.draw_curves(apart, "time [s]", "apart")


RUN = st.lists(st.floats(1e-6, 1e6) | st.just(NAN) | st.floats(-1, 0), min_size=1, max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.lists(RUN, min_size=1, max_size=4), st.sampled_from(sorted(curves.AXES)))
def test_a_band_lies_within_the_measured_values(values, axis):
    traces = [make_trace(v, np.zeros(len(v)), seed=seed) for seed, v in enumerate(values)]
    gap = curve(table_of(traces, axis))
    measured = [value for run in values for value in run if value > 0]
    if np.isnan(np.concatenate(values)).all():
        assert gap.index.isna().tolist() == [True]
        return
    drawn = gap.dropna()
    assert (drawn["repeats"] > 0).all()
    assert (gap["repeats"] <= len(values)).all()
    assert gap.index.max() <= max(len(run) for run in values) - 1
    assert (drawn["min"] <= drawn["median"] * (1 + 1e-9)).all()
    assert (drawn["median"] <= drawn["max"] * (1 + 1e-9)).all()
    if len(drawn):
        assert drawn["min"].min() >= min(measured) * (1 - 1e-9)
        assert drawn["max"].max() <= max(measured) * (1 + 1e-9)


def test_sources_and_lambdas_are_never_mixed():
    runs = [make_trace([4.0], [0.0]), make_trace([8.0], [0.0], source="synthetic")]
    table = table_of([*runs, make_trace([16.0], [0.0], lam=0.1)])
    gap = table[table["quantity"] == "duality gap"]
    assert gap["median"].tolist() == pytest.approx([4, 8, 16])
    assert gap["repeats"].tolist() == [1, 1, 1]
    assert gap["source"].tolist() == ["real", "synthetic", "real"]


def made(solver="bcfw", seed=0, lam=0.5, config=None, **options):
    """Return a run of one row, of which its options matter."""
    about = {"solver": solver, "seed": seed, "lam": lam, "config": config, "options": options}
    return make_trace([4.0], [0.0], **about)


def test_runs_are_named_by_the_options_that_differ():
    older = made(kind="mpbcfw")  # without a later option, which is at its default
    assert labels([older, made(kind="mpbcfw", rule="slope")]) == ["bcfw", "bcfw"]
    found = labels([older, made(kind="mpbcfw", rule="fixed")])
    assert found == ["bcfw rule=slope", "bcfw rule=fixed"]
    assert labels([made(T=5)]) == ["bcfw"]
    others = [made(T=5), made(seed=1, T=10), made("fw")]  # no repeats
    assert labels(others) == ["bcfw T=5", "bcfw T=10", "fw"]
    assert set(table_of(others)["repeats"]) == {1}
    # what differs somewhere is named everywhere
    search, fixed = {"step": "line_search"}, {"step": "2n/(k+2n)"}
    other_lam = {"lam": 0.25, **search}
    runs = [made(**search), made(**fixed), made(**other_lam), made("fw", **other_lam)]
    one, other = "bcfw step=line_search", "bcfw step=2n/(k+2n)"
    assert labels(runs) == [one, other, one, "fw"]
    # an option that only some runs have is null for the others
    data = [{"dataset": {"name": "ocr", **more}} for more in ({}, {"folds": [0]})]
    found = labels([made("fw", config=data[0]), made("fw", 1, config=data[1], epsilon=0.1)])
    assert found == ["fw dataset.folds=null epsilon=null", "fw dataset.folds=[0] epsilon=0.1"]


def test_a_path_names_a_curve_only_where_another_one_leads_to_the_same_problem():
    def along(path, lam, solver="bcfw"):
        return made(solver, lam=lam, config={"path": path})

    runs = [along([], 5.0), along(["10/n"], 0.5), along(["10/n", 0.5], 0.1), along(["10/n"], 0.5)]
    assert labels([*runs, along([], 0.5, "fw")]) == ["bcfw", "bcfw", "bcfw", "bcfw", "fw"]
    runs += [along([], 0.5, "fw"), along(["10/n", 1.0], 0.5), along([], 0.1)]
    assert labels(runs) == [
        *("bcfw", "bcfw path=[10/n]", "bcfw path=[10/n,0.5]", "bcfw path=[10/n]", "fw"),
        *("bcfw path=[10/n,1.0]", "bcfw path=[]"),
    ]


def test_notes_and_axis_label():
    for count in (2, 3):
        runs = [make_trace([4.0] * count, [0.0] * count, seed=seed) for seed in range(3)]
        assert "; 3 repeats" in notes_of(table_of(runs), runs, "iteration")[0]
    quiet = make_trace([4.0, 2.0], [0.0, 0.0])
    busy = make_trace([4.0, 2.0], [0.0, 0.0], seed=1, concurrent_runs=1)
    set_columns(busy, cpu_time=busy.frame["time"] * 0.8)
    table = table_of([quiet, busy], "time")
    assert len(notes_of(table, [quiet], "time")) == 1
    text = " ".join(notes_of(table, [quiet, busy], "time"))
    assert "1 of 2 runs were timed while other runs" in text
    assert "In 1 of 2 runs, wall and CPU time differ" in text
    assert len(notes_of(table, [quiet, busy], "iteration")) == 1
    assert curves.axis_label([quiet], "time") == "time [s] (wall clock)"
    assert curves.axis_label([quiet], "iteration") == "iteration"
    busy.metadata["clock"] = "work"  # counted seconds cannot be compared with CPU time
    assert "differ" not in " ".join(notes_of(table, [busy], "time"))


def test_a_solver_always_has_the_same_distinct_look():
    solvers = [name for name in style.looks() if " " not in name]
    known = {(style.color(name), style.line(name)) for name in solvers}
    assert len(known) == len(solvers)
    assert not {color for color, _ in known} & set(style.OTHERS)
    assert style.line("my_solver_avg") == "--"
    assert style.line("p_bmrm K=10") == ":"
    assert style.solver_label("prox_p_bmrm K=10") == "Prox-P-BMRM (K=10)"
    assert style.solver_label("bcfw T=5") == "BCFW (T=5)"
    assert style.color("bcfw T=5") == style.color("bcfw")
    assert style.line("bcfw_avg") != style.line("bcfw")


OF_THE_PAPERS = (
    *("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg", "mpbcfw_fast"),
    *("ssg", "ssg_weighted", "ssg_tail", "eg", "cutting_plane", "one_slack"),
    *("excessive_gap", "extragradient"),
    *("bmrm", "prox_bmrm", "p_bmrm", "prox_p_bmrm", "dcd"),
)

# Machado, Oliveira, Fernandes 2009: linear RGB as seen without one kind of cones
VISIONS = {
    "all": np.eye(3),
    "no long": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
    "no medium": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "no short": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


def as_seen(color, vision):
    """Return a colour in CIE L*a*b*, where a distance of 2 can just be seen."""
    rgb = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.asarray(VISIONS[vision]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.asarray(to_xyz) @ linear / (0.9505, 1.0, 1.089)
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_all_curves_of_the_papers_can_be_told_apart(vision):
    for one, other in itertools.combinations(OF_THE_PAPERS, 2):
        if style.line(one) == style.line(other):
            colors = (as_seen(style.color(name), vision) for name in (one, other))
            assert np.linalg.norm(np.subtract(*colors)) > 15, (one, other)
    for name in OF_THE_PAPERS:  # on white
        assert np.linalg.norm(as_seen(style.color(name), vision) - [100, 0, 0]) > 25


def test_the_number_of_iterations_is_logarithmic_where_curves_differ_much_in_length():
    short = make_trace([4.0, 2.0], [0.0, 0.0], iteration=[0, 10], solver="mpbcfw")
    long = make_trace([4.0, 3.0, 2.0], [0.0] * 3, iteration=[0, 10, 100])
    table = table_of([short, long])
    assert curves.is_log_x(table, "iteration")
    assert not curves.is_log_x(table, "time")
    assert not curves.is_log_x(table_of([long]), "iteration")
    # a plot can ask for either
    assert not curves.is_log_x(table, "iteration", asked=False)
    assert curves.is_log_x(table_of([long]), "iteration", asked=True)
    assert curves.is_log_x(table, "time", asked=True)
    figure = drawing.draw_curves(table, "iteration", "A title", [], True)
    assert {panel.get_xscale() for panel in figure.axes} == {"log"}
    assert figure.axes[2].lines[1].get_xdata() == pytest.approx([10, 100])


def test_time_is_logarithmic_where_curves_fall_by_decades_at_once():
    fallen = make_trace([1e6, 2.0, 1.5], [0.0] * 3, time=[0.01, 0.1, 10.0])
    table = table_of([fallen], "time")
    assert curves.is_log_x(table, "time")
    gap = curve(table)
    assert len(gap) == curves.TIME_POINTS
    assert gap.index[[0, 50, 100]].to_numpy() == pytest.approx([0.01, 10**-0.5, 10])
    assert (gap.index < 0.1).sum() == 34  # an even grid has one point there
    other = make_trace([4.0, 2.0], [0.0] * 2, time=[0.0, 10.0], solver="mpbcfw")
    assert not curves.is_log_x(table_of([fallen, other, other], "time"), "time")
    linear = SUBOPTIMALITY.tabulate(Runs([fallen]), "time", log_x=False)  # as a plot asked
    assert curve(linear).index[1] == pytest.approx(0.01 + 9.99 / 100)
    begun = make_trace([1e6, 2.0, 1.5], [0.0] * 3, time=[0.0, 0.1, 10.0])  # 0 is on no log axis
    assert curve(table_of([begun], "time")).index.min() == 0.1


def selecting(planes, approx_calls, oracle_calls, **changes):
    columns = {"working_set_mean": planes, "approx_calls": approx_calls}
    spent = {"oracle_calls": oracle_calls, "columns": columns}
    return make_trace([1.0] * len(planes), [0.0] * len(planes), **spent, **changes)


def test_working_sets_and_passes_of_the_solvers_that_have_them():
    without = selecting([0.0, 0.0], [0, 0], [0, 2])
    multi = {"solver": "mpbcfw", "iteration": [0, 1, 4]}
    runs = [selecting([1.0, 3.0, 2.0], [0, 4, 64], [0, 2, 8], **multi), without]
    table = convergence.SELECTION.tabulate(convergence.SELECTION.chosen(Runs(runs)), "iteration")
    assert set(table["solver"]) == {"mpbcfw"}
    planes, passes = (curve(table, name, "mpbcfw") for name in SELECTION)
    assert planes["median"].tolist() == [1, 3, 2]
    assert passes["median"].tolist()[1:] == [2, 10]  # on average since the row before
    assert np.isnan(passes["median"].iloc[0])
    assert "interrupted" not in " ".join(notes_of(table, runs, "iteration"))
    figure = drawing.draw_curves(table, "iteration", "A title", log_y=False)
    assert [panel.get_ylabel() for panel in figure.axes] == list(SELECTION)
    assert all(panel.get_ylim()[0] == 0 for panel in figure.axes)
    (kind,) = (kind for kind in convergence.KINDS if kind.name == "selection")
    assert list(kind.outputs(FigureData(Runs([without])), ["iteration"])) == []


def draw_some(**changes):
    traces = [
        make_trace([4.0 + s, 2.0, 1.5], [0.0, 0.5, 0.9], solver=solver, seed=s, **changes)
        for s in range(2)
        for solver in ("bcfw", "mpbcfw_avg")
    ]
    table = table_of(traces, primal=1.4, dual=0.95)
    return drawing.draw_curves(table, "iteration", "A title", ["a note"]), table


def test_the_figure_shows_source_size_and_curves():
    figure, _ = draw_some()
    assert len(figure.axes) == 3
    assert all(panel.get_yscale() == "log" for panel in figure.axes)
    assert [panel.get_ylabel() for panel in figure.axes] == list(curves.QUANTITIES)
    assert figure.axes[0].get_title(loc="left") == "toy: real data, n = 2, λ = 1/n"
    assert names_in(figure) == ["BCFW", "MP-BCFW-avg"]
    assert figure.axes[2].lines[0].get_ydata() == pytest.approx([4.5, 1.5, 0.6])
    figure, _ = draw_some(source="synthetic")
    assert "synthetic, no real data" in figure.axes[0].get_title(loc="left")


def extent_of_legend(figure):
    figure.canvas.draw()
    return figure.legends[0].get_window_extent(figure.canvas.get_renderer())


def test_the_legend_covers_no_panel_and_nothing_leaves_the_page():
    figure, _ = draw_some()
    legend = extent_of_legend(figure)
    for panel in figure.axes:
        box = panel.get_tightbbox(figure.canvas.get_renderer())
        assert not box.overlaps(legend)
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


@pytest.mark.parametrize("length", [1, 30, 60, 90])
def test_long_names_take_fewer_columns_of_the_legend(length):
    names = ("x" * length, "y" * length, "z")
    runs = [made(solver, T=name) for solver in ("bcfw", "mpbcfw") for name in names]
    figure = drawing.draw_curves(table_of(runs), "iteration", "names")
    legend = extent_of_legend(figure)
    assert figure.bbox.x0 <= legend.x0 < legend.x1 <= figure.bbox.x1


def test_variants_of_a_solver_differ_in_their_lines():
    labels = ["bcfw T=5", "bcfw T=10", "bcfw_avg", "bcfw T=20", "bcfw T=5"]
    lines = style.strokes(labels)
    assert list(lines) == list(dict.fromkeys(labels))
    for name in ("bcfw T=5", "bcfw_avg"):
        assert lines[name] == (style.color(name), style.line(name))
    assert len(set(lines.values())) == 4
    assert len(set(style.strokes(f"mpbcfw T={k}" for k in range(12)).values())) == 12


def test_a_value_without_neighbours_is_a_point_on_the_axis_of_the_whole_run():
    run = make_trace([0.5, 0.5, 3.0, 0.5, 0.5], [0.0] * 5, iteration=[0, 10, 20, 30, 40])
    chosen = table_of([run])
    chosen = chosen[chosen["quantity"] == "primal suboptimality"]
    (panel,) = drawing.draw_curves(chosen, "iteration", "Three").axes
    points = [line for line in panel.lines if line.get_marker() == "o"]
    assert [line.get_xydata()[line.get_markevery()].tolist() for line in points] == [[[20, 2]]]
    assert panel.get_xlim() == (0, 40)


def test_starts_have_figures_of_their_own_and_rows_say_what_a_dataset_stands_for():
    runs = [
        make_trace([9.0, 2.0], [0.0, 1.0], options={"start": start}, seed=seed)
        for start in ("truth", "oracle")
        for seed in range(2)
    ]
    best = {instance_of(run.metadata): Best(1.5, 1.2) for run in runs}
    name = runs[0].dataset
    data = FigureData(Runs(runs, best), "A title", stands_for={name: "horseseg"})
    outputs = list(SUBOPTIMALITY.outputs(data, ["iteration"]))
    assert [output.name for output in outputs] == ["iterations-oracle", "iterations-truth"]
    assert [set(output.table["solver"]) for output in outputs] == [{"bcfw"}] * 2
    assert {row for output in outputs for row in output.table["dataset"]} == {name}
    figure = outputs[0].figure()
    assert figure.get_suptitle() == "A title, from the oracle's labelings at w = 0"
    assert f"{name} (for HorseSeg): " in figure.axes[0].get_title(loc="left")
    (alone,) = SUBOPTIMALITY.outputs(data._replace(runs=Runs(runs[:2], best)), ["iteration"])
    assert alone.name == "iterations"
    simulated = [make_trace([9.0, 2.0], [0.0, 1.0], source="synthetic")]
    (drawn,) = SUBOPTIMALITY.outputs(data._replace(runs=Runs(simulated)), ["iteration"])
    (drawn_alone,) = SUBOPTIMALITY.outputs(FigureData(Runs(simulated)), ["iteration"])
    headings = [each.figure().axes[0].get_title(loc="left") for each in (drawn, drawn_alone)]
    assert headings[0].replace(" (for HorseSeg)", "") == headings[1]


def test_more_than_seven_curves_have_numbers():
    def numbers(count):
        runs = [make_trace([9.0, 2.0], [0.0, 1.0], options={"T": k}) for k in range(count)]
        figure = drawing.draw_curves(table_of(runs), "iteration", "numbers")
        (legend,) = figure.legends
        texts = [text for panel in figure.axes for text in panel.texts if text.get_text()]
        heights = sorted(text.get_position()[1] for text in texts if text.axes is figure.axes[0])
        return [text.get_text() for text in legend.get_texts()], texts, heights

    assert numbers(7)[:2] == ([f"BCFW (T={k})" for k in range(7)], [])
    names, texts, heights = numbers(8)
    assert names[0] == "1  BCFW (T=0)"
    assert sorted({text.get_text() for text in texts}) == [f"{k}" for k in range(1, 9)]
    assert np.diff(heights).min() > drawing.NEAR - 1e-9  # all curves end at one place


def test_where_averages_change_nothing_both_curves_are_seen():
    runs = []
    for solver in ("mpbcfw", "mpbcfw_avg"):
        runs.append(make_trace([9.0, 2.0], [0.0, 1.0], solver=solver))
        set_columns(runs[-1], working_set_mean=2.0)
    (output,) = convergence.SELECTION.outputs(FigureData(Runs(runs)), ["iteration"])
    solid, dashed = output.figure().axes[0].lines
    assert dashed.get_linewidth() > 2 * solid.get_linewidth() - 1
    assert dashed.get_zorder() < solid.get_zorder()


def test_how_numbers_are_written():
    assert words.lam(1 / 6877, 6877) == "1/n"
    assert {words.lam(1000 / n, n) for n in range(1, 9000)} == {"1000/n"}  # where it is whole
    assert [words.lam(0.01, n) for n in (6877, 300)] == ["0.01", "3/n"]
    assert words.lam(0.5 / 300, 300) == "0.00167"
    assert [words.number(value) for value in (0.12345, None, NAN)] == ["0.123", "–", "–"]
    assert [words.seconds(value) for value in (12.345, 0.012, 3e-6)] == ["12.3 s", "12 ms", "3 µs"]
    assert (words.percent(0.1234), words.times(1.26)) == ("12.3 %", "1.3×")
    assert " ".join(map(words.tick_label, (0.02, 5000, 2e4, 1e6))) == "0.02 5,000 20k 1M"
    assert (words.counts([3, 1]), words.counts([2, 2])) == ("1–3", "2")
    assert [*map(words.repeats, ([1], [3, 1], []))] == ["1 repeat", "1 to 3 repeats", "0 repeat"]
    assert (words.runs(1), words.runs(2)) == ("1 run", "2 runs")


def said_in(figure):
    """Return the text within each panel."""
    return ["".join(text.get_text() for text in panel.texts) for panel in figure.axes]


def names_in(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("axis", curves.AXES)
def test_a_solver_without_a_dual_has_no_dual_curve_and_no_gap(axis):
    runs = [make_trace([4.0, 2.0, 1.5], [0.0, 0.5, 0.9])]
    runs += [make_trace([4.0, 3.0, 2.0], [NAN] * 3, solver="ssg", seed=seed) for seed in range(2)]
    table = table_of(runs, axis)
    assert curve(table, "primal suboptimality", "ssg")["median"].iloc[-1] == pytest.approx(1)
    for quantity in ("dual suboptimality", "duality gap"):
        assert curve(table, quantity, "ssg").index.isna().tolist() == [True]
        assert curve(table, quantity)["median"].notna().all()
    notes = notes_of(table, runs, axis)
    assert notes[1:] == ["Without a dual value, and so without dual suboptimality and gap: SSG."]
    figure = drawing.draw_curves(table, axis, "A title", notes, curves.is_log_x(table, axis))
    assert [len(panel.lines) for panel in figure.axes] == [2, 1, 1]
    assert said_in(figure) == ["", "", ""]
    assert names_in(figure) == ["BCFW", "SSG"]


def drawn(table, figure):
    return Output("", table, figure=lambda: figure)


def test_a_panel_without_a_curve_says_why(tmp_path):
    run, unknown = make_trace([4.0, 2.0], [NAN] * 2, solver="ssg"), "no dual value is known"
    for dual, first in ((1.0, ""), (NAN, unknown)):
        figure = drawing.draw_curves(table_of([run], dual=dual), "iteration", "A title")
        assert said_in(figure) == [first, unknown, unknown]
    table = table_of([make_trace([1.0, 1.0], [1.0, 2.0])])
    figure = drawing.draw_curves(table, "iteration", "A title")
    assert said_in(figure) == ["no positive values"] * 3
    assert len(save(drawn(table, figure), tmp_path / "empty", ["png"])) == 2


def test_files_are_what_their_names_say_and_are_reproducible(tmp_path):
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "csv": b"dataset,source,"}
    contents = []
    for name in ("one", "two"):
        figure, table = draw_some()
        written = save(drawn(table, figure), tmp_path / name / "iterations", ["png", "pdf", "svg"])
        assert {path.suffix[1:] for path in written} == set(starts)
        for path in written:
            assert path.read_bytes().startswith(starts[path.suffix[1:]])
        contents.append({path.name: path.read_bytes() for path in written})
        assert len(list((tmp_path / name).iterdir())) == len(written)
    assert contents[0] == contents[1]
    assert b"/Type3" not in contents[0]["iterations.pdf"]  # fonts are embedded as TrueType
    csv = pd.read_csv(tmp_path / "one" / "iterations.csv")
    pd.testing.assert_frame_equal(csv, table.reset_index(drop=True), check_dtype=False, rtol=1e-5)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailedError, match="results_dir"):
        save(drawn(table, figure), tmp_path / "file" / "iterations", ["png"])


def test_times_of_several_processors_are_told():
    def timed(seed, solver, cpu, **more):
        return make_trace([4.0, 2.0], [0.0, 0.0], seed=seed, solver=solver, cpu=cpu, **more)

    traces = [timed(0, "bcfw", "A"), timed(1, "bcfw", "B"), timed(0, "fw", "B")]
    note = curves.processors_note(Runs(traces))
    assert "different processors, within the repeats of 1 of 2 curves: 1 on A, 2 on B." in note
    assert note in curves.timing_notes(Runs(traces))
    assert curves.processors_note(Runs(traces[1:])) == ""
    assert "processors: 1 on A, 1 on B." in curves.processors_note(Runs([traces[0], traces[2]]))
    moved = timed(0, "bcfw", "B", resumed=[{"iteration": 1, "started": "", "cpu": "A"}])
    assert "within the repeats of 1 of 1 curves" in curves.processors_note(Runs([moved]))
    for trace in traces:
        trace.metadata["clock"] = "work"  # counted seconds are the same on all of them
    assert curves.processors_note(Runs(traces)) == ""


@pytest.mark.parametrize("columns", [1, 4])
def test_long_notes_continue_in_the_next_line(columns):
    note = "a solver without a line took more than forty times as long, in all panels " * 5
    with drawing.page("title", [note, "short"], (1, columns), ([], [])) as (figure, _):
        pass
    (said,) = [text for text in figure.texts if "forty" in text.get_text()]
    *long, short = said.get_text().split("\n")
    assert " ".join(long) == note.strip()
    assert short == "short"
    extent = said.get_window_extent(figure.canvas.get_renderer())
    assert 0 < extent.x0 < extent.x1 < figure.bbox.width


@pytest.mark.parametrize("columns", [1, 4])
def test_long_titles_do_so_too_and_cover_no_panel(columns):
    title = "MP-BCFW on 2376 pictures of horses, at the paper's costs, from the labels at 0 " * 3
    with drawing.page(title, [], (2, columns), ([], [])) as (figure, panels):
        for panel in panels[0]:
            panel.set_title("data")
    renderer = figure.canvas.get_renderer()
    (said,) = [text for text in figure.texts if "horses" in text.get_text()]
    extent = said.get_window_extent(renderer)
    assert 0 < extent.x0 < extent.x1 < figure.bbox.width
    tops = [panel.get_tightbbox(renderer).y1 for panel in panels[0]]
    assert max(tops) <= extent.y0
