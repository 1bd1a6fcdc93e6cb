"""What it costs to reach a relative gap: numbers, table and figure."""

import math

import numpy as np
from traces import make_trace

from ssvm_bench.figures import targets
from ssvm_bench.figures.document import markdown
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.results.table import Best, Runs, instance_of


def run_of(solver, seed, *, times, gaps, **more):
    """Return a run with primal 2, n = 2, and five exact calls a row."""
    gaps = np.array(gaps)
    more |= {"oracle_calls": 5 * np.arange(len(gaps)), "columns": {"gap": 2 * gaps}}
    return make_trace([2.0] * len(gaps), 2 - 2 * gaps, time=times, solver=solver, seed=seed, **more)


BEST = {instance_of(run_of("bcfw", 0, times=[0], gaps=[1]).metadata): Best(2.0, 1.9)}
GAPS = (0.1, 0.05, 0.02, 0.01)
RUNS = [
    run_of("mpbcfw", 0, times=[0, 1, 2, 4], gaps=[1, 0.1, 0.05, 0.005]),
    run_of("mpbcfw", 1, times=[0, 1, 3, 8], gaps=[1, 0.3, 0.04, 0.015]),
    run_of("mpbcfw", 2, times=[0, 1, 3, 6], gaps=[1, 0.3, 0.04, 0.015]),
    run_of("bcfw", 0, times=[0, 2], gaps=[1, 0.08]),
]


def spent_on(run, best, gap):
    """Return the costs of a run to a gap."""
    ((time,), (passes,)) = targets.costs(Runs([run], best), [gap])[0].values()
    return [time, passes * run.n]


def test_costs_are_those_of_the_first_row_at_the_target():
    spent = {"time": [0, 0.5, 1.5, 4], "oracle_calls": [0, 10, 20, 30]}
    trace = make_trace([2.0, 2.0, 2.0, 2.0], [0.0, 1.7, 1.92, 1.99], **spent)
    assert spent_on(trace, BEST, 0.05) == [1.5, 20]
    assert spent_on(trace, BEST, 1e-3) == [np.inf, np.inf]


def without_dual(primal):
    """Return a run of ssg with a row each second and five exact calls between two."""
    calls = 5 * np.arange(len(primal))
    return make_trace(primal, [math.nan] * len(primal), solver="ssg", oracle_calls=calls)


def test_without_a_dual_the_gap_is_measured_from_the_best_one_known():
    trace = without_dual([4.0, 2.5, 2.0])  # 0.525, 0.24, 0.05 above 1.9
    for gap, spent in ((0.3, [1, 5]), (0.06, [2, 10]), (0.04, [np.inf, np.inf])):
        assert spent_on(trace, BEST, gap) == spent
    unknown = {problem: Best(2.0, math.nan) for problem in BEST}
    assert spent_on(trace, unknown, 0.3)[0] == np.inf


def test_what_is_measured_from_the_best_dual_is_marked():
    runs = [*RUNS, without_dual([4.0, 2.0])]
    table = targets.targets(Runs(runs, BEST), (0.06,))
    bounds = table.set_index("solver")["bound"].to_dict()
    assert bounds == {"mpbcfw": "own dual", "bcfw": "own dual", "ssg": "best dual"}
    notes = targets.notes(table, Runs(runs))
    page = markdown(targets.tables(table))
    assert targets.MEANING in notes
    own, to_best = page.split("to a distance P − F⋆")
    assert "| SSG (`ssg`) | 1 | 2.5 |" in to_best
    assert "SSG" not in own
    assert "| MP-BCFW (`mpbcfw`) | **3** | **5** |" in own
    assert "| MP-BCFW (`mpbcfw`) | **0** | **0** |" in page
    (panel,) = targets.draw(table, {"time": "time"}, "A title", notes).axes
    assert ticks(panel) == ["MP-BCFW", "BCFW", "SSG†"]
    assert targets.MEANING not in targets.notes(targets.targets(Runs(RUNS, BEST), GAPS), Runs(RUNS))


def ticks(panel):
    return [tick.get_text() for tick in panel.get_yticklabels()]


def texts(panel):
    return [text.get_text() for text in panel.texts]


def row(table, solver, gap):
    (found,) = table.query("solver == @solver and gap == @gap").to_dict("records")
    return found


def test_medians_are_over_all_repeats_and_exist_if_most_got_there():
    table = targets.targets(Runs(RUNS, BEST), GAPS)
    assert list(dict.fromkeys(table["gap"])) == list(GAPS)
    found = row(table, "mpbcfw", 0.1)
    assert (found["repeats"], found["reached"]) == (3, 3)
    assert (found["time"], found["time_min"], found["time_max"]) == (3, 1, 3)
    assert (found["calls"], found["calls_min"], found["calls_max"]) == (5, 2.5, 5)  # passes
    last = row(table, "mpbcfw", 0.01)
    assert last["reached"] == 1
    assert math.isnan(last["time"])
    assert last["time_min"] == last["time_max"] == 4
    assert math.isnan(row(table, "bcfw", 0.05)["time"])


def test_the_table_marks_the_best_and_what_was_not_reached():
    table = targets.targets(Runs(RUNS, BEST), (0.1, 0.01))
    notes = targets.notes(table, Runs(RUNS))
    assert notes[0] == "Points: median; bars: minimum to maximum; 1 to 3 repeats."
    data = FigureData(Runs(RUNS, BEST), "", (0.1, 0.02, 0.01))  # most runs miss the last
    (output,) = targets.KIND.outputs(data, ("time",))
    lines = output.markdown().splitlines()
    assert "1 to 3 repeats." in lines
    headings = [line for line in lines if line.startswith("| solver")]
    assert [line.count(" 0.1: ") for line in headings] == [2, 2]
    assert "| MP-BCFW (`mpbcfw`) | 3 | 5 | **6** | **7.5** |" in lines
    assert "| BCFW (`bcfw`) | **2** | **2.5** | – | – |" in lines


def test_the_figure_has_a_point_for_every_median():
    table = targets.targets(Runs(RUNS, BEST), GAPS)
    labels = {cost: targets.x_label(Runs(RUNS), cost) for cost in targets.COSTS}
    passes = "passes of the exact oracle (calls / n)"
    assert labels == {"time": "time [s] (wall clock)", "calls": passes}
    figure = targets.draw(table, labels, "A title", targets.notes(table, Runs(RUNS)))
    for panel, (cost, label) in zip(figure.axes, labels.items(), strict=True):
        assert panel.get_xlabel().replace("\n", " ") == label
        assert ticks(panel) == ["MP-BCFW", "BCFW"]
        marked = [line for line in panel.lines if line.get_marker() == "o"]
        points = sorted((line.get_ydata()[0], line.get_xdata()[0]) for line in marked)
        drawn = table[table[cost].notna()]
        places = [["mpbcfw", "bcfw"].index(solver) for solver in drawn["solver"]]
        assert points == sorted(zip(places, drawn[cost], strict=True))


def test_what_a_panel_says_of_a_solver_without_a_point():
    def panels(runs, best, gaps):
        table = targets.targets(Runs(runs, best), gaps)
        return [texts(panel) for panel in targets.draw(table, {"time": "time"}, "A title").axes]

    runs = [RUNS[0], run_of("bcfw", 0, times=[0, 1], gaps=[1, 0.5])]
    assert panels(runs, BEST, GAPS) == [["not reached by most runs"]]
    elsewhere = run_of("mpbcfw", 0, times=[0, 1], gaps=[1, 0.05], lam=0.25)
    best = {**BEST, instance_of(elsewhere.metadata): Best(2.0, 1.9)}
    assert panels([*RUNS, elsewhere], best, (0.1,)) == [[], ["no runs"]]


def test_the_figure_and_its_tables_say_what_a_dataset_stands_for():
    data = FigureData(Runs(RUNS, BEST), "A title", GAPS, stands_for={RUNS[0].dataset: "horseseg"})
    (output,) = targets.KIND.outputs(data, ("time",))
    heading = f"{RUNS[0].dataset} (for HorseSeg)"
    assert f"## {heading}: " in markdown(output.blocks)
    assert heading in output.figure().axes[0].get_title(loc="left")
    assert {*output.table["dataset"]} == {RUNS[0].dataset}
