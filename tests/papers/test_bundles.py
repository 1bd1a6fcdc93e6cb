"""The tables and the figure of the bundle-method report, from hand-made traces."""

import math
from pathlib import Path

import pandas as pd
import pytest
from bundles import N, run_of, statement_runs
from matplotlib.colors import to_hex
from program import figures_of
from traces import make_trace

from ssvm_bench.claims.judging import HOLDS
from ssvm_bench.config.experiment import Experiment
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Table, bold, lines
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.papers.bmrm import bundle_runs, paper, relative
from ssvm_bench.papers.bmrm.bundle_runs import Data, Method, Setup
from ssvm_bench.papers.bmrm.costs import UNKNOWN as NOT_KNOWN
from ssvm_bench.papers.bmrm.costs import Range, costs
from ssvm_bench.papers.bmrm.costs import table as table_of
from ssvm_bench.report import experiment_files, page
from ssvm_bench.report.contents import Contents
from ssvm_bench.results.folder import as_folder
from ssvm_bench.results.table import Best, Runs, instance_of
from ssvm_bench.solvers.bundle import bmrm


def test_methods_have_their_names_in_the_report():
    methods = [("prox_p_bmrm", 10, 16), ("p_bmrm", 10, 4), ("p_bmrm", 10, 2), ("bmrm", 1, 1)]
    methods += [("bmrm", 10, 1), ("mpbcfw", 10, 1)]
    found = [*bundle_runs.setups([run_of(name, lam_n, P=P) for name, lam_n, P in methods])]
    assert [(setup.lam_n, setup.method.title) for setup in found] == [
        *((10, "BMRM"), (10, "P=2-BMRM"), (10, "P=4-BMRM"), (10, "Prox-P=16-BMRM")),
        (1, "BMRM"),
    ]
    assert found[1].method.label == "p_bmrm P=2"
    found = bundle_runs.setups([run_of("bmrm", 1, epsilon=e) for e in (0.1, 0.01)])
    assert [setup.method.title for setup in found] == ["BMRM (epsilon=0.01)", "BMRM (epsilon=0.1)"]


def printed(quantity, dataset, source, lam_n, method, n):
    """Return a number of the report for runs on some data, at a λ and by a method."""
    setup = Setup(Data(dataset, source, n, "", ""), lam_n / n, method, 0.01)
    return bundle_runs.printed(setup, quantity)


def test_the_report_s_numbers_are_those_of_real_mnist():
    of = {"dataset": "mnist", "source": "real", "lam_n": 1.0, "n": 60000}
    of["method"] = prox = Method("prox_bmrm")
    assert printed("validation", **of) == 0.0720
    assert printed("iterations", **of) == 698
    assert printed("speedup", **{**of, "method": Method("prox_p_bmrm", 16)}) == 9.7
    for other in ({"source": "synthetic"}, {"dataset": "usps"}, {"lam_n": 3.0}, {"n": 6000}):
        assert math.isnan(printed("validation", **{**of, **other}))
    assert math.isnan(printed("iterations", **{**of, "method": Method("prox_p_bmrm", 8)}))
    named = prox._replace(options=("accept=always",))
    assert printed("iterations", **{**of, "method": named}) == 698


def test_others_are_rows_until_the_report_s_precision():
    """They have no ε: their costs are read where the gap is first as small."""
    first = run_of("mpbcfw_fast", 1, primal=(2.0, 0.335, 0.9, 1.0), iterations=30, seconds=30)
    plain, found = costs([run_of("bmrm", 1), first])
    assert found.method == Method("mpbcfw_fast")
    assert found.iterations.low * N == pytest.approx(10)  # passes: calls over n
    assert (found.seconds, found.converged) == (Range(10, 10), 1)
    assert found.speedup == Range(1, 1)
    assert plain.setup.problem == found.setup.problem
    (never,) = costs([run_of("bmrm", 1), run_of("bcfw", 1, primal=(9.0, 9.0))])[1:]
    assert never.seconds == Range(10, math.inf)


def test_a_run_that_counts_work_has_no_seconds():
    counted = run_of("prox_bmrm", 1)
    counted.metadata["clock"] = "work"
    _, found = costs([run_of("bmrm", 1), counted])
    assert found.iterations == Range(100, 100)
    assert found.seconds.text(str) == found.speedup.text(str) == "–"
    assert math.isnan(found.qp_share)


def test_of_data_that_only_the_report_has_ratios_are_compared():
    of = {"dataset": "plates", "source": "synthetic", "lam_n": 100.0, "n": 6788}
    of["method"] = Method("prox_p_bmrm", 16)
    assert printed("speedup", **of) == 5.6
    assert math.isnan(printed("iterations", **of))
    assert math.isnan(printed("validation", **of))
    runs = [run_of("bmrm", 100, dataset="plates", validation=0.1)]
    (note,) = bundle_runs.notes(bundle_runs.setups(runs))
    assert "4.61 at λ = 100 %, its test loss 4.21 %" in note
    assert "Prox-P=16-BMRM: 22, 37, 64, 131" in note


LOSSES = [
    run_of("bmrm", 100, validation=0.5, test=0.4),
    run_of("bmrm", 10, validation=0.25, test=0.24),
    run_of("prox_bmrm", 100, validation=0.51, test=0.41),
    run_of("prox_bmrm", 10, validation=0.2, test=0.21, seed=0),
    run_of("prox_bmrm", 10, validation=0.23, test=0.22, seed=1, reached=False),
    run_of("prox_bmrm", 10, validation=0.26, test=0.23, seed=2),
    run_of("p_bmrm", 10, P=2),  # knows no losses
]


def test_losses_are_medians_and_the_best_lambda_stands_out():
    table = paper.risks(LOSSES)
    assert (table["repeats"].tolist(), table["converged"].tolist()) == ([1, 1, 1, 3], [1, 1, 1, 2])
    (found,) = paper.risk_tables(table)
    assert found.title == "MNIST, unit pixels: real data, n = 60000"
    assert found.header == ["validation loss", "λ = 100", "**λ = 10**", "test, λ = 10"]
    assert found.rows == [
        ["BMRM", "0.5000", "**0.2500**", "0.2400"],
        ["Prox-BMRM", "0.5100", "**0.2300**", "0.2200"],
        ["median", "0.5050", "**0.2400**", "0.2300"],
        ["spread", "0.0100", "**0.0200**", "0.0200"],
        ["the report", "0.0740", "**0.0708**", "0.0704"],
    ]
    (output,) = paper.KINDS[0].outputs(FigureData(Runs(LOSSES)), ("table",))
    text = output.markdown()
    assert "| BMRM | 0.5000 | **0.2500** | 0.2400 |" in text
    assert "1 of 6 runs ended before they had reached their ε." in text


def test_other_pixels_have_a_block_of_their_own():
    raw = [run_of("bmrm", 1, validation=0.1, pixels="raw"), *LOSSES]
    first, second = paper.risk_tables(paper.risks(raw))
    assert "raw pixels" in first.title
    assert first.rows[0] == ["BMRM", "**0.1000**", "–"]
    assert len(second.rows) == 5


def test_stand_ins_are_not_compared_with_the_report():
    risks = paper.risks([run_of("bmrm", 1, validation=0.1, source="synthetic")])
    (found,) = paper.risk_tables(risks)
    assert "synthetic, no real data" in found.title
    assert [row[0] for row in found.rows] == ["BMRM"]


def test_what_is_known_of_numbers_in_ranges():
    two, three, above = Range(2, 2), Range(3, 3), Range(3, math.inf)
    assert (two.below(three), three.below(two), two.below(two)) == (True, False, False)
    assert (three.below(above), above.below(three), above.below(Range(9, 9))) == (True, False, None)
    assert Range(0, 3).below(three) is None  # may be 3
    assert three.over(two) == (1.5, 1.5)
    assert above.over(two) == (1.5, math.inf)
    assert two.over(above) == (0, 2 / 3)
    shown = [one.text("{:g}".format) for one in (two, above, Range(0, 3), Range(2, 3))]
    assert shown == ["2", "> 3", "< 3", "2–3"]
    assert above.over(above).text(str) == NOT_KNOWN.text(str) == "–"


def cost(found, title, lam_n):
    (one,) = (c for c in found if (c.setup.method.title, c.setup.lam_n) == (title, lam_n))
    return one


def test_costs_are_medians_and_relative_to_bmrm():
    traces = [
        *(run_of("bmrm", 10, seed=s, seconds=t, iterations=9) for s, t in enumerate((4, 6, 9))),
        run_of("prox_bmrm", 10, seconds=2.0, iterations=5, qp=0.5),
        run_of("prox_bmrm", 1000),  # bmrm was not run there
    ]
    found = costs(traces)
    assert {each.setup.lam_n for each in found} == {10}
    plain, prox = cost(found, "BMRM", 10), cost(found, "Prox-BMRM", 10)
    assert (plain.repeats, plain.converged) == (3, 3)
    assert plain.iterations == (9, 9)
    assert plain.seconds == (6, 6)  # of CPU time
    assert plain.speedup == (1, 1)
    assert prox.speedup == (3, 3)
    assert (plain.qp_share, prox.qp_share) == (0.25, 0.5)
    assert (prox.row["report_iterations"], prox.row["report_speedup"]) == (317, 4.6)
    shown, *_ = paper.tables(found)
    assert shown.title.endswith("ε = 0.01")
    expected = ["10", "Prox-BMRM", "5", "–", "317", "2", "50 %", "–", "3", "4.6"]
    assert shown.rows[1][:10] == expected


def test_a_run_that_did_not_reach_its_gap_is_a_bound():
    traces = [
        run_of("bmrm", 1, iterations=8000, seconds=80, reached=False),
        run_of("prox_bmrm", 1, iterations=700, seconds=8),
        run_of("bmrm", 10, iterations=100, seconds=10),
        run_of("prox_bmrm", 10, iterations=8000, seconds=80, reached=False),
    ]
    found, *_ = paper.tables(costs(traces))
    ours = [[row[k] for k in (0, 1, 2, 5, 8)] for row in found.rows]
    assert ours == [
        ["10", "BMRM", "100", "10", "1"],
        ["10", "Prox-BMRM", "> 8000", "> 80", "< 0.12"],
        ["1", "BMRM", "> 8000", "> 80", "1"],
        ["1", "Prox-BMRM", "700", "8", "> 10"],
    ]


def test_time_is_compared_at_the_same_gap_only():
    traces = [run_of("bmrm", 1, epsilon=0.1, seconds=1), run_of("bmrm", 1, seconds=8)]
    traces += [run_of("prox_bmrm", 1, seconds=2)]
    assert cost(costs(traces), "Prox-BMRM", 1).speedup == (4, 4)
    found = costs([*traces, run_of("bmrm", 1, options={"K": 5})])
    assert math.isnan(cost(found, "Prox-BMRM", 1).speedup.low)


BEST = Best(1.3, 1.25)


def best_of(runs, best=BEST):
    return {instance_of(run.metadata): best for run in runs}


def curves_of(runs, best=BEST):
    known = Runs(runs, best_of(runs, best))
    return relative.relative(known, "iteration"), relative.notes(relative.compared(known))


FIGURE = [
    run_of("bmrm", 10, primal=(5.0, 7.5, 2.5)),
    run_of("bmrm", 1),
    run_of("p_bmrm", 1, P=2),
    run_of("p_bmrm", 1, P=16),
    run_of("p_bmrm", 10, P=2),
    run_of("prox_bmrm", 1, iterations=5),
    run_of("prox_bmrm", 100),  # as the first of a path: nothing to compare it with
    run_of("prox_p_bmrm", 1, P=16),
]


def test_the_distance_is_relative_to_the_best_dual():
    table, notes = curves_of(FIGURE)
    assert table["lam_n"].drop_duplicates().tolist() == [10, 1]
    one = table[(table["lam_n"] == 10) & (table["solver"] == "bmrm")]
    for comparison in relative.COMPARISONS:
        drawn = one[one["quantity"] == comparison].set_index("x")["median"]
        assert drawn.to_dict() == pytest.approx({0: 3.0, 50: 5.0, 100: 1.0})
    of = table.groupby("quantity")["solver"].unique()
    methods = [["bmrm", "p_bmrm P=2", "p_bmrm P=16"], ["bmrm", "prox_bmrm"]]
    assert [list(of[name]) for name in relative.COMPARISONS] == methods
    assert notes[-1] == ("F*: the highest dual value ever seen; the optimum is at most 4 % higher.")
    table, _ = curves_of(FIGURE, Best(1.3, 0.0))  # no bound: nothing to be relative to
    assert table["median"].isna().all()


def test_the_figure_has_two_rows_a_dataset_and_a_column_per_lambda():
    raw = [run_of(name, 1, pixels="raw") for name in ("bmrm", "prox_bmrm")]
    table, notes = curves_of([*FIGURE, *raw])
    figure = relative.draw(table, "iteration", "A title", notes, log_x=True)
    shown = [panel for panel in figure.axes if panel.axison]
    titles = [panel.get_title(loc="left") for panel in shown]
    assert titles[0].startswith("MNIST, raw pixels: real data")
    assert titles[2:4] == [
        "MNIST, unit pixels: real data, n = 60000\nλ = 10/n (the report's λ = 10)",
        "λ = 1/n (the report's λ = 1)",
    ]
    assert all(panel.get_yscale() == panel.get_xscale() == "log" for panel in shown)
    assert [len(panel.lines) for panel in shown] == [1, 2, 2, 3, 1, 2]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["P = 1 (BMRM)", "P = 2", "P = 16", "Prox-BMRM"]
    handles = legend.get_lines()
    assert handles[-1].get_linestyle() == "--"
    assert to_hex(handles[1].get_color()).upper() == style.color("p_bmrm P=2")


def test_a_panel_names_the_lambda_of_the_report_that_it_stands_for():
    matched = [run_of(name, 2000, dataset="plates") for name in ("bmrm", "prox_bmrm")]
    table, notes = curves_of(matched)
    figure = relative.draw(table, "iteration", "A title", notes, log_x=True)
    assert "λ = 2000/n (the report's λ = 100)" in figure.axes[0].get_title(loc="left")


def test_rules_of_accepting_have_their_own_colours_and_words():
    rules = [run_of("prox_bmrm", 1, options={"accept": rule}) for rule in bmrm.ACCEPT]
    table, notes = curves_of([run_of("bmrm", 1), *rules])
    figure = relative.draw(table, "iteration", "A title", notes, log_x=True)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert "Prox-BMRM (Algorithm 2 as printed)" in names
    assert not any("=" in name for name in names[1:])
    assert len({to_hex(handle.get_color()) for handle in legend.get_lines()}) == 4


def test_the_colour_of_p_bmrm_says_p():
    scale = [style.color(f"p_bmrm P={P}") for P in (2, 4, 8, 16, 32)]
    assert len({style.color("bmrm"), *scale}) == 6
    assert style.color("p_bmrm P=64") == scale[-1]
    assert {style.line(f"p_bmrm P={P}") for P in (2, 64)} == {"-"}
    assert style.color("p_bmrm epsilon=0.1") == style.color("p_bmrm")


@pytest.fixture(autouse=True)
def _whose_settings(monkeypatch):
    """Let made-up runs have the report's settings."""
    monkeypatch.setattr(paper.PAPER.__class__, "at_settings", lambda _, runs: ([*runs], []))


ALL = {"risks": ("table",), "speedup": ("table",), "relative": ("iteration", "time")}


def written(runs, tmp_path, monkeypatch, figures=ALL):
    """Return the files that are drawn from runs, without storing them first."""
    monkeypatch.setattr("ssvm_bench.results.optima.reference", lambda *args: best_of(runs))
    monkeypatch.setattr("ssvm_bench.results.stored_traces.write", lambda *args: [])
    for number, run in enumerate(runs):
        object.__setattr__(run, "folder", tmp_path / f"runs/{number}")
    experiment = Experiment("some", "some", "Bundle methods", (), figures, ())
    return figures_of(experiment_files.draw(experiment, runs, [], tmp_path, ["svg"], None))


def test_an_experiment_has_the_tables_and_the_figures(tmp_path, monkeypatch):
    runs = [*statement_runs(), run_of("bmrm", 1000, validation=0.1, test=0.2)]
    files, folder = written(runs, tmp_path, monkeypatch), tmp_path / "figures/some"
    assert {path.relative_to(folder).as_posix() for path in files} == {
        *("risks.md", "risks.csv", "speedup.md", "speedup.csv"),
        *("relative_iterations.svg", "relative_iterations.csv"),
        *("relative_time.svg", "relative_time.csv"),
    }
    text = (folder / "speedup.md").read_text()
    assert "| 1 | Prox-BMRM | 150 | – | 698 | 15 | 25 % | – | 4 | 7.6 | 20 % | 10 % |" in text
    assert text.count(f"**{HOLDS}**") == 7
    table = table_of(costs(runs)).drop(columns="options")  # empty texts
    csv = pd.read_csv(folder / "speedup.csv")[list(table)]
    pd.testing.assert_frame_equal(csv, table, check_dtype=False, rtol=1e-5)
    assert written([make_trace([2.0, 1.0], [0.0, 0.5])], tmp_path, monkeypatch) == []


def shown(runs):
    """Return the page that shows runs."""
    found = Contents("report", "Your runs", Runs(runs, best_of(runs)), as_folder(Path()))
    return page.page(found, Path()).decode()


def test_synthetic_benchmarks_are_compared_with_real_ones_in_ratios_alone(tmp_path, monkeypatch):
    runs = []
    several = {"plates": 4, "mnist": 10, "landmarks": 20}
    for name, seconds in several.items():
        about = {"dataset": name, "source": "real" if name == "mnist" else "synthetic"}
        runs += [run_of("bmrm", 1, **about), run_of("prox_bmrm", 1, **about)]
        runs += [run_of("prox_p_bmrm", 1, P=16, seconds=seconds, **about)]
    written(runs, tmp_path, monkeypatch, {"speedup": ("table",)})
    folder = tmp_path / "figures/some"
    real, synthetic = ((folder / f"speedup{end}.md").read_text() for end in ("", "-synthetic"))
    for text in (real, synthetic):
        *_, last = text.strip().splitlines()
        assert "plates: 2.5×" in last
        assert f"**{HOLDS}** |" in last
    assert "Number plates" not in real
    assert "MNIST, unit pixels" not in synthetic


@pytest.mark.parametrize("source", ["synthetic", "real", "altered"])
def test_the_report_says_nothing_of_other_data(source):
    runs = [
        run_of("bmrm", 10, dataset="usps", source=source),
        run_of("prox_bmrm", 10, dataset="usps", source=source),
    ]
    for run in runs:
        run.metadata["dataset"]["d"] = 2560
    found = costs(runs)
    assert len(found) == 2
    (only,) = paper.tables(found)
    assert "What the report says" not in only.title
    assert "undle methods" in shown(runs)


def test_the_report_shows_them():
    runs = [*statement_runs(), run_of("bmrm", 1000, validation=0.1, test=0.2)]
    for run in runs:
        run.metadata["dataset"]["d"] = 7840
    text = shown(runs)
    assert 'relative distance of the current solution to the optimum"' in text
    assert "<strong>0.1000</strong>" in text
    assert text.count(f"<strong>{HOLDS}</strong>") == 7
    text = shown([make_trace([2.0, 1.0], [0.0, 0.5])])
    assert "elative distance" not in text
    assert "undle methods" not in text


def test_a_sheet_in_markdown_escapes_what_would_end_a_cell():
    shown = Table("", ("name", "value"), [("a|b", bold("1\n2"))])
    assert lines(shown) == ["| name | value |", "| --- | ---: |", "| a\\|b | **1 2** |"]
