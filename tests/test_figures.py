"""The numbers of the figures on hand-made traces, and the files that are drawn from them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvm_bench.errors import RunFailedError
from ssvm_bench.figures import curves, draw, style
from ssvm_bench.trace import COLUMNS, Trace, write_run

NAN = float("nan")


def make_trace(
    primal,
    dual,
    *,
    iteration=None,
    time=None,
    solver="bcfw",
    seed=0,
    source="real",
    lam=0.5,
    **meta,
):
    """Return a run that saw the given values."""
    count = len(primal)
    frame = pd.DataFrame({name: np.zeros(count, column.dtype) for name, column in COLUMNS.items()})
    frame["iteration"] = np.arange(count) if iteration is None else iteration
    frame["time"] = np.arange(count, dtype=float) if time is None else time
    frame["cpu_time"] = frame["time"]
    frame["primal"], frame["dual"] = primal, dual
    options = meta.pop("options", {})
    metadata = {
        "config": {"solver": {"name": solver, **options}, "seed": seed, "lam": None},
        "dataset": {"name": "toy", "source": source, "n": 2, "d": 1, "fingerprint": f"f-{source}"},
        "lam": lam,
        "clock": "wall",
        **meta,
    }
    folder = Path(f"runs/toy/{solver}/hash/seed={seed}")
    return Trace(frame, metadata, {"stop_reason": "max_iterations"}, folder)


def table_of(traces, axis="iteration", primal=1.0, dual=1.0):
    best = {curves.problem_of(trace.metadata): curves.Best(primal, dual) for trace in traces}
    return curves.suboptimality(traces, best, axis)


def curve(table, quantity="duality gap", solver="bcfw"):
    chosen = table[(table["quantity"] == quantity) & (table["solver"] == solver)]
    return chosen.set_index("x")[["median", "min", "max", "repeats"]]


# ---- numbers ----------------------------------------------------------------------------------


def test_the_three_quantities_and_their_band():
    table = table_of(
        [make_trace([p, p / 2], [0.0, 0.5], seed=seed) for seed, p in enumerate([4.0, 8.0, 6.0])],
        primal=1.5,
        dual=0.75,
    )
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


def test_curves_of_different_lengths_are_not_prolonged():
    long = make_trace([8.0, 6.0, 4.0, 2.0], [0.0] * 4)
    short = make_trace([4.0, 2.0], [0.0] * 2, seed=1)
    gap = curve(table_of([long, short]))
    assert gap["repeats"].tolist() == [2, 2, 1, 1]
    assert gap["median"].tolist() == pytest.approx([6, 4, 4, 2])
    assert gap["min"].tolist() == pytest.approx([4, 2, 4, 2])
    on_time = curve(table_of([long, short], "time"))
    assert on_time.index.max() == 3
    assert set(on_time.loc[on_time.index > 1, "repeats"]) == {1}
    assert set(on_time.loc[on_time.index <= 1, "repeats"]) == {2}


def test_against_iterations_only_evaluated_ones_count():
    every = make_trace([8.0, 6.0, 4.0], [0.0] * 3)
    second = make_trace([8.0, 2.0], [0.0] * 2, iteration=[0, 2], seed=1)
    assert curve(table_of([every, second]))["repeats"].tolist() == [2, 1, 2]


def test_against_time_a_run_is_interpolated_as_a_log_plot_draws_it():
    run = make_trace([100.0, 1.0], [0.0, 0.0], time=[0.0, 2.0])
    gap = curve(table_of([run], "time"))
    assert gap["median"].iloc[[0, 50, 100]].tolist() == pytest.approx([100, 10, 1])
    assert gap.index[50] == pytest.approx(1.0)


def test_against_time_nothing_is_drawn_across_an_interruption():
    run = make_trace([4.0, 2.0, -1.0, 1.0], [0.0] * 4)
    gap = curve(table_of([run], "time"))
    inside = (gap.index > 1) & (gap.index < 3)
    assert gap.loc[inside, "median"].isna().all()
    assert not gap.loc[~inside, "median"].isna().any()


def test_a_run_that_starts_late_is_not_prolonged_to_the_left():
    late = make_trace([4.0, 2.0], [0.0] * 2, time=[1.0, 2.0])
    early = make_trace([4.0, 2.0], [0.0] * 2, time=[0.0, 1.0], seed=1)
    gap = curve(table_of([late, early], "time"))
    assert set(gap.loc[gap.index < 1, "repeats"]) == {1}


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.floats(1e-6, 1e6) | st.just(NAN) | st.floats(-1, 0), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(curves.AXES),
)
def test_a_band_lies_within_the_measured_values(values, axis):
    traces = [make_trace(v, np.zeros(len(v)), seed=seed) for seed, v in enumerate(values)]
    gap = curve(table_of(traces, axis))
    measured = [value for run in values for value in run if value > 0]
    drawn = gap.dropna()
    assert (drawn["repeats"] > 0).all()
    assert (gap["repeats"] <= len(values)).all()
    assert gap.index.max() <= max(len(run) for run in values) - 1
    assert (drawn["min"] <= drawn["median"] * (1 + 1e-9)).all()
    assert (drawn["median"] <= drawn["max"] * (1 + 1e-9)).all()
    if len(drawn):
        assert drawn["min"].min() >= min(measured) * (1 - 1e-9)
        assert drawn["max"].max() <= max(measured) * (1 + 1e-9)


# ---- what belongs together --------------------------------------------------------------------


def test_sources_and_lambdas_are_never_mixed():
    table = table_of(
        [
            make_trace([4.0], [0.0]),
            make_trace([8.0], [0.0], source="synthetic"),
            make_trace([16.0], [0.0], lam=0.1),
        ]
    )
    gap = table[table["quantity"] == "duality gap"]
    assert gap["median"].tolist() == pytest.approx([4, 8, 16])
    assert gap["repeats"].tolist() == [1, 1, 1]
    assert gap["source"].tolist() == ["real", "synthetic", "real"]


def test_runs_with_other_options_are_other_curves_and_not_repeats():
    traces = [make_trace([4.0], [0.0], seed=0, options={"T": 5})]
    assert curves.labels(traces) == ["bcfw"]
    traces.append(make_trace([8.0], [0.0], seed=1, options={"T": 10}))
    traces.append(make_trace([2.0], [0.0], solver="fw"))
    assert curves.labels(traces) == ["bcfw T=5", "bcfw T=10", "fw"]
    table = table_of(traces)
    assert set(table["repeats"]) == {1}
    assert style.color("bcfw T=5") == style.color("bcfw")
    assert style.solver_label("bcfw T=5") == "BCFW (T=5)"


def test_the_best_values_come_from_every_run_on_the_problem_instance(tmp_path):
    def store(name, best_primal, best_dual, source="real"):
        run = make_trace([1.0], [0.0], source=source)
        summary = {**run.summary, "best_primal": best_primal, "best_dual": best_dual}
        write_run(tmp_path / name, run.frame, run.metadata, {}, summary, np.zeros(1))
        return tmp_path / name

    folders = [store("a", 3.0, 0.5), store("b", 2.0, NAN), store("c", 4.0, 1.0)]
    other = store("d", 0.1, 0.1, source="synthetic")
    best = curves.best_values([*folders, other])
    assert best[curves.Problem("f-real", 0.5)] == (2.0, 1.0)
    assert best[curves.Problem("f-synthetic", 0.5)] == (0.1, 0.1)
    (folders[1] / "trace.parquet").write_bytes(b"")
    with pytest.raises(RunFailedError):
        curves.best_values(folders)
    said = []
    assert curves.best_values(folders, said.append)[curves.Problem("f-real", 0.5)] == (3.0, 1.0)
    assert str(folders[1]) in said[0]


# ---- what the figure says ---------------------------------------------------------------------


def test_notes_and_axis_label():
    quiet = make_trace([4.0, 2.0], [0.0, 0.0])
    busy = make_trace([4.0, 2.0], [0.0, 0.0], seed=1, concurrent_runs=1)
    busy.frame["cpu_time"] = busy.frame["time"] * 0.8
    table = table_of([quiet, busy], "time")
    assert len(curves.notes(table, [quiet], "time")) == 1
    text = " ".join(curves.notes(table, [quiet, busy], "time"))
    assert "1 of 2 runs were timed while other runs" in text
    assert "In 1 of 2 runs, wall and CPU time differ" in text
    assert len(curves.notes(table, [quiet, busy], "iteration")) == 1
    assert curves.axis_label([quiet], "time") == "time [s] (wall clock)"
    assert curves.axis_label([quiet], "iteration") == "iteration"
    busy.metadata["clock"] = "work"  # counted seconds cannot be compared with CPU time
    assert "differ" not in " ".join(curves.notes(table, [busy], "time"))


def test_a_solver_always_has_the_same_distinct_look():
    known = {style.color(name) for name in style.SOLVERS}
    assert len(known) == len(style.SOLVERS)
    assert style.color("my_solver") == style.color("my_solver")
    assert style.color("my_solver") not in known
    assert style.line("bcfw_avg") != style.line("bcfw")


def draw_some(**changes):
    traces = [
        make_trace([4.0 + s, 2.0, 1.5], [0.0, 0.5, 0.9], solver=solver, seed=s, **changes)
        for s in range(2)
        for solver in ("bcfw", "mpbcfw_avg")
    ]
    table = table_of(traces, primal=1.4, dual=0.95)
    return draw.draw_curves(table, "iteration", "A title", ["a note"]), table


def test_the_figure_shows_source_size_and_curves():
    figure, _ = draw_some()
    assert len(figure.axes) == 3
    assert all(panel.get_yscale() == "log" for panel in figure.axes)
    assert [panel.get_ylabel() for panel in figure.axes] == list(curves.QUANTITIES)
    assert figure.axes[0].get_title(loc="left") == "toy: real data, n = 2, λ = 1/n"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["BCFW", "MP-BCFW-avg"]
    line = figure.axes[2].lines[0]
    assert line.get_ydata() == pytest.approx([4.5, 1.5, 0.6])
    figure, _ = draw_some(source="synthetic")
    assert "stand-in" in figure.axes[0].get_title(loc="left")


def test_the_legend_covers_no_panel_and_nothing_leaves_the_page():
    figure, _ = draw_some()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    legend = figure.legends[0].get_window_extent(renderer)
    for panel in figure.axes:
        box = panel.get_tightbbox(renderer)
        assert not box.overlaps(legend)
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


def test_a_figure_without_a_positive_value_can_be_drawn(tmp_path):
    table = table_of([make_trace([1.0, 1.0], [1.0, 2.0])])
    figure = draw.draw_curves(table, "iteration", "nothing")
    assert len(draw.save(figure, table, tmp_path / "empty", ["png"])) == 2


def test_files_are_what_their_names_say_and_are_reproducible(tmp_path):
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "csv": b"dataset,source,"}
    contents = []
    for name in ("one", "two"):
        figure, table = draw_some()
        written = draw.save(figure, table, tmp_path / name / "iterations", ["png", "pdf", "svg"])
        assert {path.suffix[1:] for path in written} == set(starts)
        for path in written:
            assert path.read_bytes().startswith(starts[path.suffix[1:]])
        contents.append({path.name: path.read_bytes() for path in written})
        assert len(list((tmp_path / name).iterdir())) == len(written)
    assert contents[0] == contents[1]
    assert b"/Type3" not in contents[0]["iterations.pdf"]  # fonts are embedded as TrueType
    csv = pd.read_csv(tmp_path / "one" / "iterations.csv")
    pd.testing.assert_frame_equal(csv, table.reset_index(drop=True), check_dtype=False, rtol=1e-5)


def test_a_figure_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    figure, table = draw_some()
    with pytest.raises(RunFailedError, match="results_dir"):
        draw.save(figure, table, tmp_path / "file" / "iterations", ["png"])
