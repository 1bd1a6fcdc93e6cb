"""Profiles: their definition by brute force, what they do not depend on, and what counts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program import call, error_of
from traces import make_trace

from ssvm_bench.figures import profile
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.figures.profile import LENGTH, RATIO, WIDEST, Costs
from ssvm_bench.results import stored_traces
from ssvm_bench.results.table import Runs

# ---- the definition -----------------------------------------------------------------------------

SOLVERS = "one", "two", "three"
COST = st.sampled_from([0.5, 1.0, 2.0, 3.0, 50.0, 700.0, math.inf])


@st.composite
def costs_of(draw):
    """Return costs on one to three problems; at least one is finite, and solvers may be missing."""
    of_problem, gaps = [], []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 3))
        ran = draw(st.lists(st.sampled_from(SOLVERS), unique=True, max_size=3))
        shapes = {solver: (count, draw(st.integers(1, 4))) for solver in ran}
        of_problem.append(
            {
                solver: np.array(draw(st.lists(COST, min_size=a * b, max_size=a * b))).reshape(a, b)
                for solver, (a, b) in shapes.items()
            }
        )
        gaps.append(tuple(0.1**k for k in range(1, count + 1)))
    of_problem[0]["one"] = np.ones((len(gaps[0]), 1))
    return Costs(SOLVERS, of_problem, gaps)


def median(values):
    """Return the middle of some costs; of two, the mean."""
    values, n = sorted(values), len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def by_definition(costs):
    """Return, for each solver, its ratio to each target, and the costs of its repeats to each."""
    ratios, spent = {of: [] for of in costs.solvers}, {of: [] for of in costs.solvers}
    for of_problem, gaps in zip(costs.of_problem, costs.gaps, strict=True):
        for k in range(len(gaps)):
            repeats = {of: of_problem[of][k] if of in of_problem else [math.inf] for of in SOLVERS}
            medians = {of: median(found) for of, found in repeats.items()}
            best = min(medians.values())
            for of in SOLVERS:
                ratios[of].append(medians[of] / best if medians[of] < math.inf else math.inf)
                spent[of].append(repeats[of])
    return ratios, spent


def share(flags):
    return sum(flags) / len(flags)


@settings(deadline=None)
@given(costs_of())
def test_curves_and_numbers_are_those_of_the_definition(costs):
    ratios, spent = by_definition(costs)
    drawn = profile.curves(costs)
    for row in drawn.to_dict("records"):
        of, x = row["solver"], row["x"]
        if row["curve"] == RATIO:
            expected = share([ratio <= x for ratio in ratios[of]])
        else:
            expected = share([share([cost <= x for cost in repeats]) for repeats in spent[of]])
        assert row["share"] == pytest.approx(expected), row
    for row in profile.summary(costs).to_dict("records"):
        mine = ratios[row["solver"]]
        areas = [max(0.0, 1 - math.log(r) / math.log(WIDEST)) if r < math.inf else 0 for r in mine]
        assert row["area"] == pytest.approx(np.mean(areas))
        assert row["first"] == pytest.approx(share([ratio == 1 for ratio in mine]))
        assert row["reached"] == pytest.approx(share([ratio < math.inf for ratio in mine]))
        worst = max(mine) if max(mine) < math.inf else math.nan
        assert row["worst"] == pytest.approx(worst, nan_ok=True)


@settings(deadline=None)
@given(costs_of())
def test_curves_rise_and_bands_too(costs):
    for _, curve in profile.curves(costs).groupby(["curve", "solver"]):
        assert (curve["x"].diff().dropna() > 0).all()
        for column in ("share", "low", "high"):
            assert (curve[column].diff().dropna() >= -1e-12).all()
            assert curve[column].between(-1e-12, 1 + 1e-12).all()
        assert (curve["low"] <= curve["high"]).all()


@settings(deadline=None)
@given(costs_of(), st.sampled_from([1e-3, 2.0, 1e6]))
def test_the_unit_of_a_problem_does_not_matter(costs, factor):
    other = [{of: factor * found for of, found in costs.of_problem[0].items()}]
    scaled = costs._replace(of_problem=[*other, *costs.of_problem[1:]])
    np.testing.assert_allclose(profile.ratios(scaled), profile.ratios(costs), rtol=1e-12)
    area = [profile.summary(of).set_index("solver")["area"][[*SOLVERS]] for of in (costs, scaled)]
    np.testing.assert_allclose(*area, rtol=1e-12)


def test_who_never_gets_there_has_area_zero_and_who_is_always_first_has_one():
    found = {"one": np.full((2, 3), 2.0), "two": np.full((2, 3), math.inf)}
    costs = Costs(("one", "two", "three"), [found], [(0.1, 0.01)])
    numbers = profile.summary(costs).set_index("solver")
    assert list(numbers["area"]) == list(numbers["first"]) == [1.0, 0.0, 0.0]
    assert numbers.loc["one", "worst"] == 1.0
    assert (numbers["area_low"] == numbers["area"]).all()  # repeats that do not differ
    assert numbers["ran"].to_dict() == {"one": 2, "two": 2, "three": 0}
    drawn = profile.curves(costs)
    assert (drawn.loc[drawn["solver"] != "one", ["share", "high"]] == 0).all(axis=None)


def test_a_target_that_nobody_reached_is_reached_by_nobody():
    found = {"one": np.array([[1.0], [np.inf]]), "two": np.array([[10.0], [np.inf]])}
    numbers = profile.summary(Costs(("one", "two"), [found], [(0.1, 0.01)])).set_index("solver")
    assert numbers["area"].to_dict() == pytest.approx({"one": 0.5, "two": 0.25})
    assert numbers["reached"].to_dict() == {"one": 0.5, "two": 0.5}


def test_bands_are_wider_where_repeats_differ_more():
    rng = np.random.default_rng(0)

    def width(spread, repeats):
        found = {
            "one": np.ones((1, repeats)),
            "two": 5 * np.exp(spread * rng.normal(size=(1, repeats))),
        }
        row = (
            profile.summary(Costs(("one", "two"), [found], [(0.1,)])).set_index("solver").loc["two"]
        )
        assert row["area_low"] <= row["area"] <= row["area_high"]
        return row["area_high"] - row["area_low"]

    assert width(0.0, 5) == 0
    assert width(0.01, 5) < width(0.5, 5)
    assert width(0.5, 200) < width(0.5, 5)


# ---- from runs ----------------------------------------------------------------------------------

REAL = 0.012
"""Seconds of a call of all runs."""


def run_of(solver, seed=0, *, calls, outside, gaps, clock="cpu", cost=1e-6, **more):
    """Return a run with primal 1: calls, seconds outside the oracle, and gap in each row."""
    calls, outside, gaps = (np.array(of, float) for of in (calls, outside, gaps))
    oracle = (cost if clock == "work" else REAL) * calls
    columns = {"cpu_time": outside + REAL * calls, "oracle_time": oracle, "gap": gaps}
    trace = {"oracle_calls": calls, "time": outside + oracle, "columns": columns}
    config = {"oracle": {"cost_call": cost}}
    more |= {"solver": solver, "seed": seed, "clock": clock, "config": config}
    return make_trace(np.ones(len(gaps)), 1.0 - gaps, **trace, **more)


MANY = {"calls": [0, 100, 200], "outside": [0, 1, 2], "gaps": [1, 0.1, 0.01]}
FEW = {"calls": [0, 20, 30], "outside": [0, 8, 9], "gaps": [1, 0.1, 0.04]}


def found(runs, cost, gaps=(0.1, 0.01)):
    return profile.spent(Runs(runs), gaps, cost)


@pytest.mark.parametrize("clock", ["cpu", "wall"])
def test_costs_are_calls_time_and_time_with_calls_of_some_cost(clock):
    runs = [run_of("bcfw", clock=clock, **MANY), run_of("mpbcfw", clock=clock, **FEW)]
    n = runs[0].n
    for cost, many, few in (
        ("calls", [100 / n, 200 / n], 20 / n),
        ("time", [1 + 100 * REAL, 2 + 200 * REAL], 8 + 20 * REAL),
        ("1ms", [1.1, 2.2], 8.02),
        ("1s", [101, 202], 28),
    ):
        costs = found(runs, cost)
        assert costs.gaps == [(0.1, 0.01)]
        (of,) = costs.of_problem
        assert of["bcfw"].ravel() == pytest.approx(many)
        assert of["mpbcfw"].ravel() == pytest.approx([few, math.inf])
    assert profile.summary(found(runs, "1ms"))["solver"].iloc[0] == "bcfw"
    assert found(runs, "calls", ()).gaps == [(0.1, 0.04, 0.01)]


def test_of_several_clocks_that_of_most_solvers_counts():
    counted = run_of("mpbcfw", clock="work", cost=0.1, **FEW)
    runs = [run_of("bcfw", **MANY), run_of("mpbcfw", **FEW), counted]
    other = run_of("mpbcfw", clock="work", cost=1.0, calls=[0, 10], outside=[0, 3], gaps=[1, 0.1])
    costs = found([*runs, other], "time")
    assert costs.solvers == ("bcfw", "mpbcfw")
    # with calls of a second, the run that was made for these counts
    for cost, expected in (("1s", 10 + 3 + REAL * 10 - REAL * 10), ("10ms", 0.2 + 8)):
        (of,) = found([*runs, other], cost, [0.1]).of_problem
        assert of["mpbcfw"].item() == pytest.approx(expected)
    assert found([counted], "time", [0.1]).of_problem[0]["mpbcfw"].item() == pytest.approx(10.0)
    assert found([counted], "1s") is None


def test_a_problem_without_runs_of_a_solver_counts_as_not_reached():
    elsewhere = [run_of("bcfw", lam=0.25, **MANY), run_of("mpbcfw", lam=0.25, **FEW)]
    runs = Runs([run_of("bcfw", **MANY), *elsewhere])
    numbers = profile.summary(profile.spent(runs, [0.1], "calls")).set_index("solver")
    assert numbers["reached"].to_dict() == {"bcfw": 1.0, "mpbcfw": 0.5}
    assert numbers["ran"].to_dict() == {"bcfw": 2, "mpbcfw": 1}
    (output, _) = profile.KIND.outputs(FigureData(runs, "Toy", [0.1]), ["calls"])
    text = output.markdown()
    assert "No runs on some problems, which count as not reached: MP-BCFW." in text
    assert "1 of 2" in text


# ---- document, figure, page ---------------------------------------------------------------------

RUNS = [
    run_of(solver, seed, calls=[0, 100 + seed, 200], outside=of["outside"], gaps=of["gaps"])
    for (solver, of), seed in itertools.product({"bcfw": MANY, "mpbcfw": FEW}.items(), range(3))
]


def test_document_and_figure_show_each_cost():
    data = FigureData(Runs(RUNS), "Toy", (0.1, 0.01))
    numbers, drawn = profile.KIND.files(data, ["calls", "time", "1ms"])
    assert [output.name for output in (numbers, drawn)] == ["profile", "profile_curves"]
    assert [of.title for of in numbers.tables] == [
        *("In exact calls", "In time", "In time, calls of 1 ms")
    ]
    assert "2 targets on 1 problem; 3 repeats; bands: 95 %, by the bootstrap." in numbers.blocks
    row = "| BCFW (`bcfw`) | **1.00** | 1.00 to 1.00 | 100 % | 100 % | 1 | 2 of 2 |"
    assert row in numbers.markdown()
    figure = drawn.figure()
    panels = np.reshape(figure.axes, (2, 3))
    labels = [panel.get_xlabel() for panel in panels[1]]
    assert labels == [
        "passes of the exact oracle (calls / n)",
        *("time [s] (CPU time)", "seconds, with calls of 1 ms"),
    ]
    of_curve = drawn.table.groupby(["curve", "cost", "solver"])["share"].apply(list).to_dict()
    for curve, of_row in zip((RATIO, LENGTH), panels, strict=True):
        for cost, panel in zip(("calls", "time", "1ms"), of_row, strict=True):
            heights = [list(line.get_ydata()) for line in panel.lines]
            assert heights == [of_curve[curve, cost, solver] for solver in ("bcfw", "mpbcfw")]


def test_one_solver_or_no_target_that_was_reached_has_no_profile():
    for runs in ([], [run for run in RUNS if run.solver == "bcfw"]):
        assert not [*profile.KIND.outputs(FigureData(Runs(runs)), ["calls"])]
    late = {"calls": [0, 9], "outside": [0, 9], "gaps": [3, 2]}
    none = [run_of(solver, **late) for solver in ("bcfw", "mpbcfw")]
    assert not [*profile.KIND.outputs(FigureData(Runs(none)), ["calls"])]


def test_an_experiment_that_does_not_list_it_has_it_on_its_page_and_when_asked(tmp_path):
    file, where = tmp_path / "mine.yaml", f"results_dir={tmp_path}"
    words = ("dataset=usps", "dataset.n_samples=30", "clock=work", "budget.max_iterations=40")
    grid = "".join(f"  {word.replace('=', ': ')}\n" for word in (*words, "solver=[bcfw, mpbcfw]"))
    file.write_text(
        f"grid:\n{grid}  dataset.source: synthetic\nfigures: {{suboptimality: [time]}}\n"
    )
    assert call("experiment", file, where).exit_code == 0
    folder = tmp_path / "figures" / "mine"
    before = {path.name for path in folder.iterdir()}
    result = call("plot", file, where, "--figure", "profile", "--format", "svg")
    assert (result.exit_code, result.stderr) == (0, "")
    new = {path.name for path in folder.iterdir()} - before
    stem = "profile-synthetic"
    assert {f"{stem}.csv", f"{stem}.md", "profile_curves-synthetic.svg"} <= new
    nothing = call("plot", file, where, "solver=bcfw", "--figure", "profile")
    assert "mine: these runs give no profile." in nothing.stderr
    assert "Did you mean profile?" in error_of(call("plot", file, where, "--figure=profil"), 2)
    assert call("report", where, "--experiment", file).exit_code == 0
    (page,) = (path.read_text() for path in tmp_path.rglob("mine.html"))
    assert "Profile of all targets" in page
    assert f"In {profile.heading('10ms')}<" not in page  # time is counted
    assert f"In {profile.heading('calls')}<" in page


def test_a_page_of_own_runs_has_the_profile_inside(tmp_path):
    stored_traces.write(RUNS, tmp_path, "made_up")
    assert call("report", f"results_dir={tmp_path}").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert "Profiles: the share of all targets reached" in page
    shown = [cost for cost in profile.KIND.choices.names if f"In {profile.heading(cost)}<" in page]
    assert shown == [*profile.KIND.chosen]
