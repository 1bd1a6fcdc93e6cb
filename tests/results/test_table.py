"""Runs as a table: choosing, grouping, columns, frames, plots; queries against brute force."""

import math
import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from program import run_here
from traces import make_trace

import ssvm_bench
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.results import curves, stored_traces, targets
from ssvm_bench.results.table import DERIVED, Best, LazyColumns, Run, Runs


def run_of(solver="bcfw", seed=0, primal=(4.0, 2.0, 1.5), dual=(0.0, 0.5, 1.0), **more):
    return make_trace([*primal], [*dual], solver=solver, seed=seed, **more)


@pytest.fixture
def runs():
    return Runs(
        [
            *(run_of("bcfw", seed) for seed in range(3)),
            *(run_of("mpbcfw", seed, options={"T": 10}) for seed in range(3)),
            run_of("mpbcfw", 0, options={"T": 5}),
            run_of("ssg", 0, dual=[math.nan] * 3, lam=0.1),
        ]
    )


def test_runs_are_a_sequence_that_equals_a_list(runs):
    assert isinstance(runs, Sequence)
    assert runs == [*runs]
    assert runs[1:3] == [runs[1], runs[2]]
    assert isinstance(runs[1:3], Runs)
    assert (runs[-1].solver, len(runs), runs.index(runs[2])) == ("ssg", 8, 2)
    assert runs[:2] + runs[2:] == runs != runs[:2]
    assert (bool(Runs()), len(Runs())) == (False, 0)


def test_where_chooses_by_facts_options_and_functions(runs):
    assert [run.seed for run in runs.where(solver="bcfw")] == [0, 1, 2]
    assert len(runs.where(seed=range(1, 3))) == 4
    assert len(runs.where(solver={"bcfw", "ssg"}, seed=0)) == 2
    assert len(runs.where(**{"solver.T": 10})) == 3
    assert len(runs.where(**{"solver.T": None})) == 4  # those without this option
    assert runs.where(lambda run: run.has_dual and run.lam < 0.5) == []
    assert runs.where(lam=0.1) == [runs[-1]]
    with pytest.raises(ConfigError, match="solver"):
        runs.where(solvers="bcfw")


@pytest.mark.parametrize(
    "some", [list, tuple, set, np.array, pd.Series, pd.Index, iter], ids=lambda of: of.__name__
)
def test_where_takes_any_collection_of_values(runs, some):
    assert [run.seed for run in runs.where(seed=some([0, 2]), solver="bcfw")] == [0, 2]
    assert len(runs.where(solver=some(["bcfw", "ssg"]))) == 4
    assert len(runs.where(**{"solver.T": some([5, 10])})) == 4


def test_values_that_are_collections_are_wanted_whole(runs):
    lists = Runs([run_of(config={"path": path}) for path in ([4.0, 1.0], [2.0], None)])
    chosen = [
        ([4.0, 1.0], [lists[0]]),
        (np.array([4.0, 1.0]), [lists[0]]),
        ([[4.0, 1.0], [2.0]], lists[:2]),
        ({(2.0,), None}, lists[1:]),
        ({1.0, 2.0}, []),
        (np.float64(2.0), []),
        (None, [lists[2]]),
    ]
    for wanted, expected in chosen:
        assert lists.where(path=wanted) == expected
    assert runs.where(seed={(0, 1)}) == runs.where(seed=[[0, 1]]) == []
    assert runs.where(problem=runs[-1].problem) == [runs[-1]]
    assert len(runs.where(problem={run.problem for run in runs}, processors=set())) == len(runs)
    assert list(lists.groups("path")) == [(4.0, 1.0), (2.0,), None]
    assert list(lists.groups("path", "seed")) == [((4.0, 1.0), 0), ((2.0,), 0), (None, 0)]


def test_groups_and_curves_have_the_runs_in_their_order(runs):
    assert [len(of) for of in runs.groups("solver").values()] == [3, 4, 1]
    assert list(runs.groups("solver", "lam"))[-1] == ("ssg", 0.1)
    assert list(runs.groups(lambda run: run.seed % 2)) == [0, 1]
    curves = runs.curves()
    assert [label for _, label in curves] == ["bcfw", "mpbcfw T=10", "mpbcfw T=5", "ssg"]
    assert [len(repeats) for repeats in curves.values()] == [3, 3, 1, 1]
    assert list(runs[:4].by_seed) == [0, 1, 2]
    assert runs.last("primal").tolist() == [1.5] * 8


def test_derived_columns_follow_from_those_of_the_trace(runs):
    best = {run.problem: Best(1.4, 1.2) for run in runs}
    known = Runs(runs, best)
    assert known.best == best
    assert runs.best == {}
    first, without = known[0], known[-1]
    np.testing.assert_allclose(first["suboptimality"], first["primal"] - 1.2)
    np.testing.assert_allclose(first["dual_suboptimality"], 1.4 - first["dual"])
    np.testing.assert_allclose(first["relative_gap"], first["gap"] / first["primal"])
    np.testing.assert_allclose(first["passes"], first["oracle_calls"] / 2)
    assert np.array_equal(first["relative_distance"], first["relative_gap"])
    np.testing.assert_allclose(
        without["relative_distance"], (without["primal"] - 1.2) / [4, 2, 1.5]
    )
    assert np.isnan(runs[0]["suboptimality"]).all()
    with pytest.raises(KeyError, match=r"primel\. Did you mean primal\? Valid: "):
        first["primel"]
    with pytest.raises(ValueError, match="read-only"):
        first["primal"][0] = 0.0


def test_a_frame_has_a_row_per_evaluation_and_ends_one_per_run(runs):
    frame, ends = runs.frame, runs.ends
    assert len(frame) == 3 * len(runs)
    assert frame.columns.is_unique
    assert {*DERIVED} - {"suboptimality", "dual_suboptimality"} <= {*frame}
    assert frame.groupby("label").size().to_dict() == {
        "bcfw": 9,
        "mpbcfw T=10": 9,
        "mpbcfw T=5": 3,
        "ssg": 3,
    }
    for name in ("solver", "label", "seed"):  # as in the other frame
        assert ends[name].tolist() == frame[name][::3].tolist()
    assert set(ends["stop_reason"]) == {"max_iterations"}
    assert runs._repr_html_().count("<tr") == 1 + len(runs)
    assert repr(runs[3]) == "<Run toy/mpbcfw/hash/seed=0: max_iterations>"
    end = {"iteration": 12, "primal": 0.5, "gap": 0.005, "stop_reason": "gap_tol"}
    reached = "primal 0.5, relative gap 0.01, gap_tol after iteration 12"
    assert repr(replace(runs[3], end=end)) == f"<Run toy/mpbcfw/hash/seed=0: {reached}>"
    without = repr(replace(runs[3], end={**end, "gap": None}))
    assert without == "<Run toy/mpbcfw/hash/seed=0: primal 0.5, gap_tol after iteration 12>"
    assert repr(runs) == "<Runs: 8 of bcfw, mpbcfw, ssg on toy>"
    assert (len(Runs().frame), len(Runs().ends)) == (0, 0)
    assert [*Runs().ends] == [*ends]
    assert {*Runs().frame} <= {*Runs(runs, {run.problem: Best(1.4, 1.2) for run in runs}).frame}
    assert [*Runs().frame][:8] == [*frame][:8]


def test_a_run_ends_with_its_relative_gap_and_has_a_dual_where_a_row_has_one():
    run = run_of(dual=[math.nan, 0.5, 1.0])
    run.end.update(primal=4.0, gap=-2.0, oracle_calls=6, iteration=2, time=1.0)
    (end,) = Runs([run]).ends.to_dict("records")
    assert (end["relative_gap"], end["passes"], end["primal"]) == (-0.5, 3.0, 4.0)
    assert run.has_dual
    assert not run_of(dual=[math.nan] * 3).has_dual
    starts = [run_of(options={"start": of}).start for of in ("oracle", "truth", 0.5)]
    assert starts == ["oracle", "truth", "truth"]


def test_a_plot_has_a_line_and_a_band_for_each_curve(runs):
    axes = runs.where(lambda run: run.has_dual).plot("gap", "iteration", Figure().gca())
    assert [line.get_label() for line in axes.lines] == ["bcfw", "mpbcfw T=10", "mpbcfw T=5"]
    assert len(axes.collections) == 3
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("iteration", "gap", "log")
    below = runs[:1].plot("dual", ax=Figure().gca())
    assert below.get_xlabel() == "passes"


def test_a_plot_needs_values_and_a_log_axis_positive_ones(runs):
    with pytest.raises(ConfigError, match="no run has a value of suboptimality"):
        runs.plot("suboptimality", ax=Figure().gca())
    with pytest.raises(ConfigError, match="no run has a value of dual_suboptimality"):
        runs.plot("gap", "dual_suboptimality", ax=Figure().gca())
    with pytest.raises(ConfigError, match="no run has a value of passes"):
        Runs().plot()
    nothing = Runs([run_of(primal=[0.0] * 3, dual=[0.0] * 3)])
    assert nothing.plot("primal", ax=Figure().gca()).get_yscale() == "linear"
    below = Runs([run_of(primal=[2.0, 1.0, -1.0], dual=[0.0] * 3)])
    assert below.plot("gap", ax=Figure().gca()).get_yscale() == "linear"
    some = runs.plot("dual", ax=Figure().gca())  # one solver has none
    assert some.get_yscale() == "log"


def test_columns_are_read_when_asked_for():
    read = []
    columns = LazyColumns(["iteration", "primal"], lambda name: read.append(name) or np.arange(3.0))
    run = Run(columns, run_of().metadata, {}, run_of().folder)
    assert "primal" in run
    assert "dual" not in run
    assert read == []
    assert run["primal"].tolist() == run["primal"].tolist() == [0, 1, 2]
    assert run.take(slice(2))["primal"].tolist() == [0, 1]
    assert read == ["primal"]
    with pytest.raises(RunFailedError, match="no weights"):
        _ = run.weights


def test_a_damaged_run_fails_when_its_columns_are_asked_for(tmp_path):
    folders = [
        run_here(tmp_path, f"seed={seed}", "dataset.n_samples=20", "budget.max_iterations=2").folder
        for seed in (0, 1)
    ]
    weights = folders[1] / "weights.npz"
    weights.write_bytes(weights.read_bytes()[:-1])
    found = ssvm_bench.load_runs(tmp_path)
    assert [run.seed for run in found] == [0, 1]
    assert found[0]["primal"].size == 3
    assert found[0].weights.ndim == 1
    for ask in (lambda run: run["primal"], lambda run: run.weights, lambda run: run.trace):
        with pytest.raises(RunFailedError, match="checksum"):
            ask(found[1])


def test_runs_can_be_pickled(tmp_path):
    made = run_here(tmp_path, "dataset.n_samples=20", "budget.max_iterations=2").folder
    (loaded,) = ssvm_bench.load_runs(tmp_path)
    (stored,) = stored_traces.write([loaded], tmp_path, "e")
    for run in Runs([loaded, stored, loaded.take(slice(2))]):
        (same,) = pickle.loads(pickle.dumps(Runs([run])))
        assert (same.folder, same.end, same.metadata) == (made, run.end, run.metadata)
        np.testing.assert_array_equal(same["relative_gap"], run["relative_gap"])
        np.testing.assert_array_equal(same.weights, run.weights)
        again = pickle.loads(pickle.dumps(same))
        assert not again["primal"].flags.writeable


# ---- queries against brute force --------------------------------------------------------------

CURVE = st.lists(st.floats(-1, 10), min_size=1, max_size=8).map(np.array)


@given(CURVE, st.floats(-1, 10))
def test_first_and_crossing_are_those_of_a_search(y, target):
    x = np.arange(y.size, dtype=float)
    at = next((k for k in range(y.size) if y[k] <= target), None)
    reached = curves.first(x, y, target)
    between = curves.crossing(x, y, target)
    if at is None:
        assert reached == between == math.inf
        return
    assert reached == at
    assert max(at - 1, 0) <= between <= at
    if at and target > 0 and y[at] > 0:
        share = between - (at - 1)
        on_line = (1 - share) * math.log(y[at - 1]) + share * math.log(y[at])
        assert on_line == pytest.approx(math.log(target), abs=1e-9)


@given(st.lists(CURVE, min_size=1, max_size=4))
def test_a_target_is_reached_by_all_in_four_fifths_of_their_time(ys):
    def early(y):
        return [value for k, value in enumerate(y) if k <= 0.8 * (y.size - 1) and value > 0]

    runs = [run_of(primal=y, dual=np.zeros(y.size)) for y in ys]
    if not all(map(early, ys)):
        with pytest.raises(curves.UnmeasurableError, match="no positive"):
            targets.target(runs)
        return
    least = targets.target(runs)
    assert least == max(min(early(y)) for y in ys)
    for run in runs:
        assert targets.reach(run, least, "time") <= 0.8 * run["time"][-1]


def with_gaps(*shares, **more):
    """Return a run with such relative gaps."""
    dual, gap = 1 - np.array(shares), {"gap": np.array(shares)}
    return run_of(primal=np.ones(len(shares)), dual=dual, columns=gap, **more)


SHARES = st.lists(st.sampled_from([5.0, 0.99, 0.7, 0.05, 0.0123, 2e-4, 0.0, math.nan]), min_size=1)


@given(st.lists(st.lists(SHARES, min_size=1, max_size=5), max_size=4))
def test_gaps_that_curves_reached_are_below_one_and_end_where_the_best_curve_does(curves):
    """A curve reached what more than half of its repeats did."""

    def reached(repeats, gap):
        return sum(any(share <= gap for share in shares) for shares in repeats) > len(repeats) / 2

    gaps = targets.gaps_reached([[with_gaps(*shares) for shares in of] for of in curves])
    assert all(0 < gap < 1 and float(f"{gap:.0e}") == gap for gap in gaps)
    assert list(gaps) == sorted(set(gaps), reverse=True)
    if not any(reached(of, 0.9) for of in curves):
        assert gaps == (0.9,)
        return
    for gap in targets.DECADES:
        assert (gap in gaps) == any(reached(of, gap) for of in curves)
    for gap in gaps:
        assert any(reached(of, gap) for of in curves)
    by_all = [gap for gap in gaps if all(reached(of, gap) for of in curves)]
    assert bool(by_all) == all(reached(of, 0.9) for of in curves)


def test_the_smallest_gaps_of_all_and_of_any_curve_are_rounded_up_to_one_digit():
    slow, fast = [with_gaps(1, gap) for gap in (0.62, 0.41, 0.51)], [with_gaps(1, 0.041)]
    assert targets.gaps_reached([slow, fast]) == (0.6, 0.1, 0.05)
    assert targets.gaps_reached([fast, [with_gaps(1, 3.5e-6)]]) == (0.1, 0.05, 0.01, 0.001)
    assert targets.gaps_reached([[with_gaps(1, 3.5e-6)]]) == (0.1, 0.01, 0.001, 4e-6)
    # between the slowest and the fastest, most curves have one
    between = [with_gaps(1, 0.19)]
    assert targets.gaps_reached([slow, fast, between]) == (0.6, 0.2, 0.1, 0.05)
    far, fastest = [with_gaps(1, 0.99)], [with_gaps(1, 0.0015)]
    assert targets.gaps_reached([far, between, fastest]) == (0.2, 0.1, 0.01, 0.002)


def told_to_end_at(gap_tol, *shares):
    """Return a run with such relative gaps that asks for a gap."""
    run = with_gaps(*shares)
    budget = {**run.config.get("budget", {}), "gap_tol": gap_tol}
    return replace(run, metadata={**run.metadata, "config": {**run.config, "budget": budget}})


def test_no_gap_is_below_one_at_which_a_run_was_told_to_end():
    """A run that had met 0.01 as asked "did not get" to 0.009, to which another one went."""
    met, went = told_to_end_at(0.01, 1, 0.0098), told_to_end_at(0.01, 1, 0.0083)
    assert met.ended_at == 0.01
    assert targets.gaps_reached([[went], [met]]) == (0.1, 0.01)
    assert targets.gaps_reached([[with_gaps(1, 2e-4)], [met]]) == (0.1, 0.01)
    assert targets.gaps_reached([[went], [told_to_end_at(0.015, 1, 0.0149)]]) == (0.1, 0.02)
    assert targets.gaps_reached([[with_gaps(1, 2e-4)], [met, went]]) == (0.1, 0.01)
    assert targets.gaps_reached([[with_gaps(1, 2e-4)], [told_to_end_at(1.5, 1)]]) == (0.9,)
    short = told_to_end_at(0.01, 1, 0.03)  # another limit ended it
    assert short.ended_at == with_gaps(1, 0.01).ended_at == 0.0
    assert targets.gaps_reached([[with_gaps(1, 2e-4)], [short]]) == (0.1, 0.03, 0.01, 0.001)


def drawn_at(at, x, y, log):
    """Return the height of a curve's line at an x; None where no line is."""
    heights = [value if value > 0 or not log else None for value in y]
    if at in x:
        return heights[x.index(at)]
    k = max(k for k in range(len(x)) if x[k] < at)
    low, high, share = heights[k], heights[k + 1], (at - x[k]) / (x[k + 1] - x[k])
    if None in (low, high):
        return None
    return low ** (1 - share) * high**share if log else (1 - share) * low + share * high


HEIGHTS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 4.0]), min_size=1, max_size=4)
REPEATS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), HEIGHTS), min_size=1, max_size=5)


@given(REPEATS, st.booleans())
def test_bands_are_those_of_the_lines_at_every_x_that_more_than_half_of_them_reach(repeats, log):
    xs = [[start + k * step for k in range(len(y))] for start, step, y in repeats]
    ys = [y for *_, y in repeats]
    made = curves.bands([np.array(x, float) for x in xs], [*map(np.array, ys)], log)
    expected = []
    for at in sorted({at for x in xs for at in x}):
        there = [(x, y) for x, y in zip(xs, ys, strict=True) if x[0] <= at <= x[-1]]
        if 2 * len(there) > len(repeats):
            heights = [drawn_at(at, x, y, log) for x, y in there]
            known = [height for height in heights if height is not None]
            lowest = sorted(-math.inf if height is None else height for height in heights)
            middle = lowest[(len(there) - 1) // 2], lowest[len(there) // 2]
            median = sum(middle) / 2 if math.isfinite(middle[0]) else math.nan
            ends = (min(known), max(known)) if known else (math.nan, math.nan)
            expected.append((at, median, *ends, len(known)))
    # a line between −1 and 0.5 that passes through 0 does so up to rounding
    np.testing.assert_allclose(np.transpose(made), np.reshape(expected, (-1, 5)), atol=1e-14)


def test_an_even_grid_is_between_the_ends_of_the_middle_repeat():
    xs = [np.array(ends, float) for ends in ([0, 6], [1, 8], [2, 10])]
    ys = [np.ones(2)] * 3
    assert curves.bands(xs, ys, log=False, points=8).x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert curves.bands(xs[:2], ys[:2], log=False, points=6).x.tolist() == [1, 2, 3, 4, 5, 6]


def test_what_two_runs_have_in_common_weighs_the_iterations_between():
    one = run_of(primal=[9, 4, 3, 1], dual=[0] * 4, iteration=[0, 1, 4, 10])
    other = run_of(primal=[9, 5, 2, 0.5], dual=[0] * 4, iteration=[0, 2, 4, 10])
    both = targets.common(one, other, "primal")
    assert both.iterations.tolist() == [4, 10]  # 0 is the same for all
    assert both.share_below == 1.0
    assert both.behind.size == 0
    assert targets.common(other, one, "primal").share_below == 0.0


def test_the_target_of_pairs_is_what_all_of_their_runs_reach():
    times = [0.0, 1.0, 3.0]
    quick, slow = (run_of(dual=[0.0] * 3, primal=of, time=times) for of in ([8, 2, 1], [8, 4, 2]))
    target, at = targets.to_common_target([(quick, slow), (slow, quick)], "time", "gap")
    assert target == 2.0
    np.testing.assert_allclose(at, [[1.0, 3.0], [3.0, 1.0]])
    target, at = targets.to_common_target([(quick, slow)], "time", "gap", least=4.0)
    assert target == 4.0
    np.testing.assert_allclose(at, [[0.5, 1.0]])
    below = run_of(primal=[-1.0] * 3, dual=[0.0] * 3)
    with pytest.raises(curves.UnmeasurableError, match="no positive error"):
        targets.to_common_target([(quick, below)], "time", "gap", what="error")


def test_of_several_evaluations_at_one_x_the_last_is_read_off():
    x, y = np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])
    found = curves.read_off(np.array([0.5, 1.0, 1.5]), x, y, log=False)
    np.testing.assert_array_equal(found, [1.5, 3.0, math.nan])
