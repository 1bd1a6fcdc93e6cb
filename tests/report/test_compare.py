"""`ssvm-bench compare`: pairs, ratios and bands on made-up runs, and its files."""

import itertools
import json
import math
import os
from pathlib import Path

import pandas as pd
import pytest
from program import USPS, call, completed, error_of, run_here
from traces import make_trace, set_columns

from ssvm_bench.figures import document, pairs, targets
from ssvm_bench.results import folder, loading, stored_traces
from ssvm_bench.results.table import Best, Runs, instance_of
from ssvm_bench.results.trace import read_trace

CALLS = [0, 20, 40, 60]
PRIMAL, DUAL = [1.0, 1.0, 1.0, 1.0], [0.0, 0.5, 0.95, 0.995]  # gaps 1, 0.5, 0.05, 0.005


def trace(solver, seed=0, factor=1.0, cpu="one", **more):
    """Return a run whose calls and seconds are those of another one, times a factor."""
    scaled = {"oracle_calls": [round(factor * calls) for calls in CALLS]}
    scaled["time"] = [0.1 * factor * calls for calls in CALLS]
    options = {"solver": solver, "seed": seed, "cpu": cpu, **more}
    made = make_trace(PRIMAL, DUAL, **scaled, **options)
    made.end.update(iteration=3, primal=1.0, dual=0.995, best_primal=1.0, best_dual=0.995)
    return made


def ratios(a, b, gaps=(0.1,), same_curve=False, seconds=False):
    best = {instance_of(run.metadata): Best(1.0, 1.0) for run in (*a, *b)}
    found = pairs.paired(Runs(a, best), Runs(b, best), same_curve)
    return pairs.ratios(found, gaps, seconds)


@pytest.mark.parametrize("dual", [math.nan, -math.inf])
def test_runs_without_a_known_gap_have_none_in_common(dual):
    both = [trace(solver) for solver in ("ssg", "ssg_tail")]
    for run in both:
        set_columns(run, dual=math.nan, gap=math.nan)
    both = Runs(both, dict.fromkeys((run.problem for run in both), Best(1.0, dual)))
    found = pairs.paired(both[:1], both[1:], same_curve=False)
    table = pairs.ratios(found, (), seconds=False)
    assert not table["calls"].notna().any()
    assert not table[["reached_a", "reached_b"]].to_numpy().any()
    assert list(table["gap"]) == [0.9]
    (said,) = pairs.sentences(table)
    assert said.endswith("neither got to a relative gap of 0.9 (1 pair): none is known.")


def test_a_row_without_a_gap_is_left_out():
    late = trace("bcfw")
    set_columns(late, 1, dual=math.nan, gap=math.nan)
    common, whole = (
        set(ratios([run], [trace("mpbcfw")], gaps=())["gap"]) for run in (late, trace("bcfw"))
    )
    assert common == whole == {0.1, 0.01, 0.006}  # 1 − 0.995 is above 0.005


def test_ratios_are_medians_over_seeds_with_their_ends():
    a = [trace("bcfw", seed) for seed in range(3)]
    b = [trace("mpbcfw", seed, factor) for seed, factor in enumerate((0.5, 0.25, 0.75))]
    b.append(trace("mpbcfw", 7))  # without a partner
    (row,) = ratios(a, b).to_dict("records")
    assert row["pairs"] == row["reached_a"] == row["reached_b"] == 3
    for cost in ("time", "calls"):
        ends = [row[name] for name in (cost, f"{cost}_min", f"{cost}_max")]
        assert ends == pytest.approx([0.5, 0.25, 0.75])


def test_who_does_not_get_there_is_infinitely_slow():
    late = trace("bcfw")
    set_columns(late, slice(2, None), dual=0.5, gap=0.5)
    early = trace("mpbcfw")
    (row,) = ratios([late], [early]).to_dict("records")
    assert (row["time"], row["reached_a"], row["reached_b"]) == (0.0, 0, 1)
    (row,) = ratios([early], [late]).to_dict("records")
    assert row["time"] == math.inf
    (row,) = ratios([late], [late], same_curve=True).to_dict("records")
    assert math.isnan(row["time"])
    common = ratios([late], [early], gaps=())
    assert set(common["gap"]) == {0.5, 0.1, 0.01, 0.006}
    assert common.loc[common["gap"] == 0.5, "calls"].item() == 1.0


def test_seconds_of_different_machines_and_clocks_are_left_out():
    a, b = [trace("bcfw")], [trace("mpbcfw", factor=0.5, cpu="other")]
    row = ratios(a, b).iloc[0]
    assert row["machines"] == pairs.OTHERS
    assert math.isnan(row["time"])
    assert row["calls"] == 0.5
    assert "other processors" in pairs.notes(ratios(a, b), seconds=False)[0]
    assert ratios(a, b, seconds=True)["time"].item() == 0.5
    counted = [trace(run, clock="work", cpu=run) for run in ("bcfw", "mpbcfw")]
    assert ratios(counted[:1], counted[1:])["time"].item() == 1.0
    timed = [trace("mpbcfw", clock="cpu")]
    row = ratios(a, timed, seconds=True).iloc[0]
    assert row["machines"] == pairs.CLOCKS
    assert math.isnan(row["time"])


def test_a_figure_tells_seconds_that_are_left_out_from_gaps_that_nobody_reached():
    """There is a panel of time, because the times of other pairs can be compared."""
    b = [trace("mpbcfw", cpu="other"), trace("fw")]
    table = ratios([trace("bcfw")], b, gaps=(0.1, 0.001))
    figure = pairs.draw(table, "title", [])
    time, calls = ([text.get_text() for text in panel.texts] for panel in figure.axes)
    assert time == ["0.1: left out", "0.001: neither", "0.001: neither"]
    assert calls == ["0.001: neither", "0.001: neither"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("separator", [" ", "_"])
def test_long_labels_of_rows_are_wrapped_and_whole(separator):
    paths = [separator.join(["somewhere"] * 14) + f"{k}" for k in range(3)]
    b = [trace("mpbcfw", options={"start": path}) for path in paths]
    table = ratios([trace("bcfw")], b)
    assert table["b"].str.len().min() > 145
    figure = pairs.draw(table, "title", [])
    panel = figure.axes[0]
    extents = [label.get_window_extent() for label in panel.get_yticklabels()]
    assert len(extents) == 3
    left = panel.get_window_extent().x0
    assert all(extent.x0 >= 0 and extent.x1 <= left for extent in extents)
    for above, below in itertools.pairwise(extents):
        assert above.y0 >= below.y1


def test_folders_pair_the_same_options_and_solvers_all_of_them():
    a = [trace("mpbcfw", options={"T": T}) for T in (5, 10)]
    b = [trace("mpbcfw", factor=T / 10, options={"T": T}) for T in (5, 10)]
    found = ratios(a, b, same_curve=True).set_index("a")["calls"].to_dict()
    assert found == {"mpbcfw T=5": 0.5, "mpbcfw T=10": 1.0}
    assert len(pairs.paired(a, [trace("bcfw")], same_curve=False)) == 2
    assert pairs.paired(a, [trace("bcfw", lam=3.0)], same_curve=False) == []


def test_command_writes_all_files(tmp_path):
    results = tmp_path / "results"
    runs = [trace(solver, seed) for solver in ("bcfw", "mpbcfw") for seed in (0, 1)]
    stored_traces.write(runs, results, "made_up")
    stem = tmp_path / "out" / "both"
    done = call("compare", "bcfw", "mpbcfw", f"results_dir={results}", "--out", stem)
    assert "(2 pairs); too few pairs." in done.stdout
    assert done.exit_code == 0, done.output
    assert "mpbcfw beside bcfw: 1× of the time and 1× of the oracle calls" in done.stdout
    names = {path.suffix for path in stem.parent.iterdir()}
    assert names == {".md", ".csv", ".png", ".pdf", ".tex"}
    assert len(pd.read_csv(stem.with_suffix(".csv"))) == 3
    assert r"\begin{tabular}{llrrrrr}" in stem.with_suffix(".tex").read_text()
    other = tmp_path / "other"
    stored_traces.write([trace("bcfw", 1, factor=2.0)], other, "made_up")
    done = call("compare", results, other, "--out", stem, "--format", "svg", "--gap", 0.1)
    assert "bcfw: 2× of the time" in done.stdout
    assert "(1 pair); too few pairs." in done.stdout


def test_a_solver_may_have_the_name_of_a_side(tmp_path):
    results, out = tmp_path / "results", ("--out", tmp_path / "c", "--format", "svg")
    where = f"results_dir={results}"
    stored_traces.write([trace("mpbcfw"), trace("mine", factor=2.0)], results, "made_up")
    done = call("compare", "mine", "mpbcfw", where, *out)
    assert "mpbcfw beside mine: 0.5× of the time" in done.stdout, done.stderr
    assert (
        "mine beside mpbcfw: 2× of the time"
        in call("compare", "mpbcfw", "mine", where, *out).stdout
    )
    other = tmp_path / "other"
    stored_traces.write([trace("mine", factor=3.0)], other, "made_up")
    assert "mine: 1.5× of the time" in call("compare", "mine", other, where, *out).stdout
    (results / folder.MARKER).touch()
    own = results / folder.OWN
    stored_traces.write([trace("mine", factor=4.0)], own, "made_up")
    assert "mine: 2× of the time" in call("compare", "committed", "mine", where, *out).stdout
    assert "is no results folder" in error_of(call("compare", "committed", "fw", where), 2)


@pytest.mark.parametrize(
    ("clock", "said"), [("wall", "interprets a solver"), ("work", "and no other")]
)
def test_the_time_of_a_plug_in_is_remarked_on(clock, said):
    runs = [trace("mine", clock=clock, options={"kind": "mine"}), trace("bcfw", clock=clock)]
    (note,) = pairs.of_plug_ins(runs)
    assert "Not part of the program: mine. " in note
    assert said in note
    assert not [*pairs.of_plug_ins(runs[:1])]
    assert not [*pairs.of_plug_ins(runs[1:])]


def test_a_run_that_was_told_to_end_before_a_gap_is_remarked_on():
    runs = [trace(solver) for solver in ("bcfw", "mpbcfw")]
    end = float(runs[1]["relative_gap"][-1])
    runs[1].metadata["config"]["budget"] = {"gap_tol": end}
    (note,) = pairs.told_to_end(runs, (end / 2, 2 * end))
    assert note.startswith(f"mpbcfw was told to end at a relative gap of {end:g} (budget.gap_tol)")
    assert not [*pairs.told_to_end(runs, (end,))]
    assert not [*pairs.told_to_end(runs, ())]


def test_what_the_pairs_show_is_said_and_is_in_all_files(tmp_path):
    results, stem = tmp_path / "results", tmp_path / "both"
    factors = 0.5, 0.6, 0.7, 0.8, 0.9, 0.95
    runs = [trace("bcfw", seed) for seed in range(6)]
    runs += [trace("mpbcfw", seed, factor) for seed, factor in enumerate(factors)]
    runs += [trace("fw", seed, factor=0.5 if seed % 2 else 2.0) for seed in range(6)]
    stored_traces.write(runs, results, "made_up")
    where = (f"results_dir={results}", "--out", stem, "--format", "svg", "--gap", 0.1)
    done = call("compare", "bcfw", "mpbcfw", *where)
    assert "(6 pairs); mpbcfw is ahead (p = 0.031)." in done.stdout
    row = pd.read_csv(stem.with_suffix(".csv")).iloc[0]
    assert row["calls"] == pytest.approx(math.sqrt(0.7 * 0.8))
    assert [row[f"calls_{of}"] for of in ("low", "high", "p")] == [0.5, 0.95, 0.03125]
    assert [row[f"time_ahead_{of}"] for of in "ab"] == [0, 6]
    line = "| bcfw | mpbcfw | oracle calls | 0.1 | 0.75× | 0.5× to 0.95× | 0.031 | 0 | 6 | 0 |"
    assert f"{line} mpbcfw is ahead |" in stem.with_suffix(".md").read_text()
    done = call("compare", "bcfw", "fw", *where, "--json")
    (found,) = json.loads(done.stdout)["comparisons"]
    assert (found["time_shows"], found["calls_shows"]) == ("no difference shown",) * 2
    assert found["time"] == pytest.approx(1.0)
    for path in json.loads(done.stdout)["files"]:
        assert Path(path).is_file()


def test_sides_that_differ_in_an_option_only_are_named_by_it(tmp_path):
    early, late = (trace("mpbcfw", options={"T": T}, hash=f"{T:012x}") for T in (5, 10))
    set_columns(late, slice(2, None), dual=0.5, gap=0.5)
    (said,) = pairs.sentences(ratios([early], [late]))
    assert "mpbcfw T=10 beside mpbcfw T=5: only mpbcfw T=5 got to a relative gap of 0.1" in said
    assert said.endswith(". The smallest is 0.005 of mpbcfw T=5 and 0.5 of mpbcfw T=10.")
    for folder_, run in (("one", early), ("two", late)):
        run.metadata["config"]["solver"]["T"] = 5
        stored_traces.write([run], tmp_path / folder_, "made_up")
    one, two = tmp_path / "one", tmp_path / "two"
    done = call("compare", one, two, "--gap", 0.1, "--out", tmp_path / "c", "--format", "svg")
    assert f"mpbcfw: only {one} got to a relative gap of 0.1 (1 pair)" in done.stdout


def test_sides_that_are_exchanged_are_as_far_ahead():
    one = [trace("bcfw", seed) for seed in range(7)]
    two = [trace("mpbcfw", seed, factor) for seed, factor in enumerate((0.4, 0.5, 2, 3, 5, 6, 8))]
    set_columns(two[-1], slice(2, None), dual=0.5, gap=0.5)  # never gets there
    (of_two,), (of_one,) = (ratios(*sides).to_dict("records") for sides in ((one, two), (two, one)))
    for cost in ("time", "calls"):
        assert of_two[cost] == pytest.approx(1 / of_one[cost])
        assert of_two[f"{cost}_p"] == of_one[f"{cost}_p"]
        assert of_two[f"{cost}_high"] == pytest.approx(1 / of_one[f"{cost}_low"])
        assert of_two[f"{cost}_low"] == pytest.approx(1 / of_one[f"{cost}_high"])
        assert of_two[f"{cost}_ahead_a"] == of_one[f"{cost}_ahead_b"] == 5


def test_too_many_comparisons_have_no_figure(tmp_path, monkeypatch):
    stored_traces.write([trace("bcfw"), trace("mpbcfw")], tmp_path, "made_up")
    monkeypatch.setattr(pairs, "MOST", 0)
    stem = tmp_path / "out" / "both"
    done = call("compare", "bcfw", "mpbcfw", f"results_dir={tmp_path}", "--out", stem)
    assert "1 comparisons are too many" in done.stdout
    assert {path.suffix for path in stem.parent.iterdir()} == {".md", ".csv", ".tex"}


def test_where_no_side_has_got_anywhere_the_smallest_gaps_are_said_and_nothing_is_drawn(tmp_path):
    runs = [trace("bcfw"), trace("mpbcfw")]
    for run, gap in zip(runs, (0.97, 0.9001), strict=True):
        set_columns(run, slice(1, None), dual=1 - gap, gap=gap)
    stored_traces.write(runs, tmp_path, "made_up")
    words = ("compare", "bcfw", "mpbcfw", f"results_dir={tmp_path}", "--out", tmp_path / "c")
    done = call(*words, "--format", "svg")
    assert done.exit_code == 0, done.output
    assert (
        "neither got to a relative gap of 0.9 (1 pair) yet: more iterations "
        "(budget.max_iterations) show who is ahead. The smallest is 0.97 of bcfw and 0.9001 of "
        "mpbcfw."
    ) in done.stdout
    assert {path.suffix for path in tmp_path.glob("c.*")} == {".md", ".csv", ".tex"}
    asked = call(*words, "--gap", 0.95)
    assert "only mpbcfw got to a relative gap of 0.95" in asked.stdout
    assert "A is bcfw, and B is mpbcfw." in asked.stdout
    assert (tmp_path / "c.png").is_file()


def test_a_picture_of_an_earlier_comparison_is_named(tmp_path, monkeypatch):
    stored_traces.write([trace("bcfw"), trace("mpbcfw", factor=2.0)], tmp_path, "x")
    words = ("compare", "bcfw", "mpbcfw", f"results_dir={tmp_path}", "--out", tmp_path / "c")
    assert call(*words).exit_code == 0
    monkeypatch.setattr(pairs, "MOST", 0)
    again = call(*words)
    assert f"Of an earlier comparison: {tmp_path / 'c.png'}, {tmp_path / 'c.pdf'}" in again.stderr


def test_names_that_are_not_utf_8_are_escaped_in_files(tmp_path):
    runs = [trace(solver) for solver in ("bcfw", "mpbcfw")]
    place = tmp_path / os.fsdecode(b"\xff")
    stored_traces.write(runs, place, os.fsdecode(b"x\xfe"))
    calls = ("compare", place, place, "--out", tmp_path / "c"), ("report", "--all")
    for words in calls:
        done = completed(tmp_path / "log", *words, f"results_dir={place}")
        assert done.returncode == 0, done.stderr
    for file in (tmp_path / "c.md", place / "report" / "index.html"):
        assert "\\udcf" in file.read_text()


def test_messages(tmp_path):
    stored_traces.write([trace("bcfw"), trace("mpbcfw", 1)], tmp_path, "made_up")
    for words, status, message in (
        (("bcfw", "mpbcwf"), 2, "Did you mean mpbcfw?"),
        ((tmp_path, "bcfw"), 2, "'bcfw' is no results folder. Compare two"),
        ((tmp_path, tmp_path / "nix"), 2, "/nix' does not exist. Compare two"),
        (("bcfw", "mpbcfw", "--dataset", "ocr"), 2, "no runs on 'ocr'"),
        (("bcfw", "bcfw"), 2, "Both sides are 'bcfw'. Name two solvers"),
        (("mpbcfw T=5 N=9", "mpbcfw solver.N=9 T=5"), 2, "Both sides are 'mpbcfw T=5 N=9'"),
        (("bcfw", "mpbcfw"), 1, "no two runs to compare"),
        (("bcfw", "mpbcfw", "--gap", "nan"), 2, "--gap must be a number above 0, got nan"),
        (("bcfw", "mpbcfw", "--gap", "inf"), 2, "--gap must be a number above 0, got inf"),
    ):
        assert message in error_of(call("compare", *words, f"results_dir={tmp_path}"), status)
    empty = tmp_path / "empty"
    empty.mkdir()
    message = error_of(call("compare", empty, empty, f"results_dir={empty}"), 2)
    assert "is a folder without runs, and is no solver with runs. There is none here." in message
    assert "come with the repository" in message
    message = error_of(call("compare", tmp_path, empty), 2)
    assert "/empty' is a folder without runs. Compare two folders" in message


@pytest.mark.parametrize("source", ["real", "synthetic", "real (altered)", "drawn"])
def test_names_are_checked_before_any_trace_is_read(tmp_path, monkeypatch, source):
    """With the traces of all papers, a misspelt name took a minute to be refused."""
    runs = [trace("bcfw", source=source), trace("mpbcfw", source=source)]
    stored_traces.write(runs, tmp_path, "made_up")
    assert loading.names(folder.as_folder(tmp_path)) == {"toy-bcfw", "toy-mpbcfw"}
    words = ("compare", "bcfw", "mpbcfw", f"results_dir={tmp_path}", "--out", tmp_path / "c")
    assert call(*words).exit_code == 0
    monkeypatch.setattr(loading, "each", lambda *_: pytest.fail("traces are read"))
    for words, message in (
        (("bcfw", "mpbcwf"), "Did you mean mpbcfw? Valid: bcfw, mpbcfw."),
        (("bcwf T=3", "mpbcfw"), "Did you mean bcfw?"),
        (("bcfw", "mpbcfw", "--dataset", "ty"), "no runs on 'ty'. Did you mean toy?"),
        (("bcfw", "mpbcwf", "--experiment", "made_up"), "Did you mean mpbcfw?"),
    ):
        assert message in error_of(call("compare", *words, f"results_dir={tmp_path}"), 2)


def test_an_option_that_no_run_has_is_named(tmp_path):
    runs = [trace("mpbcfw", options={"T": T, "N": 9}, hash=f"{T:012x}") for T in (5, 10)]
    stored_traces.write(runs, tmp_path, "made_up")
    for b, message in (
        ("mpbcfw t=10", "'t' is no option of mpbcfw. Valid: N, T."),
        ("mpbcfw T=7", "No run of mpbcfw has T=7. Valid: 10, 5."),
        ("mpbcfw T", "'T' is no option and its value, as T=10"),
    ):
        words = ("compare", "mpbcfw T=5", b, f"results_dir={tmp_path}")
        assert message in error_of(call(*words), 2)


def test_a_folder_without_runs_does_not_hide_the_solver_of_its_name(tmp_path, monkeypatch):
    stored_traces.write([trace("bcfw"), trace("mpbcfw")], tmp_path, "made_up")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bcfw" / "solver").mkdir(parents=True)  # as `new solver bcfw` makes it
    done = call("compare", "bcfw", "mpbcfw", f"results_dir={tmp_path}", "--out", tmp_path / "both")
    assert "Ratios are mpbcfw ÷ bcfw" in done.stdout


def test_latex_has_no_character_that_means_something_else():
    table = document.Table("t", ["a_b", "λ"], [["**5 %**", "`x{y}` 2×"]])
    lines = document.latex([table]).splitlines()
    assert lines[3] == r"a\_b & $\lambda$ \\"
    assert lines[5] == r"\textbf{5 \%} & \texttt{x\{y\}} 2$\times$ \\"
    odd = "[9pt] ~ ^ \\input{x} #1 $a & b\n\n\x1b"
    text = document.latex([document.Table(odd, [odd], [[odd], ["*"]])])
    assert text.splitlines()[0].startswith("% [9pt]")  # a comment is one line
    shown = r"[9pt] \textasciitilde{} \textasciicircum{} \textbackslash{}input\{x\} \#1 \$a \& b"
    assert text.splitlines()[3:] == [
        *(rf"{{}}{shown}    \\", r"\midrule", rf"{{}}{shown}    \\", r"{}* \\"),
        *(r"\bottomrule", r"\end{tabular}"),
    ]


def test_tables_of_several_datasets_are_one_with_their_names_in_it(tmp_path):
    """An author who takes it into a paper sees what each row is about."""
    results, stem = tmp_path / "results", tmp_path / "both"
    both = itertools.product((0.5, 0.3), ("bcfw", "mpbcfw"))
    runs = [trace(solver, lam=lam, hash=f"{round(10 * lam):012x}") for lam, solver in both]
    stored_traces.write(runs, results, "made_up")
    words = ("compare", "bcfw", "mpbcfw", f"results_dir={results}", "--out", stem)
    assert call(*words, "--format", "svg").exit_code == 0
    lines = stem.with_suffix(".tex").read_text().splitlines()
    assert [lines.count(text) for text in (r"\toprule", r"\midrule", r"\bottomrule")] == [2, 4, 2]
    headings = [line for line in lines if line.startswith(r"\multicolumn{7}{l}{toy: real data")]
    assert sorted("1/n" in line for line in headings) == [False, True]
    assert not [line for line in lines if line.startswith("%")]
    other = document.Table("other", ["c"], [["1"]])
    one = document.Table("one", ["a", "b"], [["x", "2"]])
    text = document.latex([one, one, other])
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert "% other\n" in text


def test_sentences_tell_where_a_solver_is_where_bcfw_ends():
    base = [trace("bcfw", seed) for seed in range(3)]
    fast = [trace("mpbcfw", seed, factor) for seed, factor in enumerate((0.5, 0.5, 0.25))]
    for run in fast:
        set_columns(run, approx_passes=[0, 4, 4, 4])
    best = {instance_of(base[0].metadata): Best(1.0, 1.0)}
    table = targets.compare(Runs([*base, *fast], best))
    costs = table.set_index("solver")[["passes", "to_passes", "to_time"]]
    assert costs.loc[["bcfw", "mpbcfw"]].values.tolist() == [[30, 30, 6], [15, 15, 3]]
    ends, arrives, keeps = targets.sentences(table)
    assert "After 30 passes" in ends
    assert "0.5 % of the primal value with BCFW" in ends
    assert arrives == (
        "MP-BCFW is where BCFW ends after 15 passes and 3 s; BCFW needs 30 passes and 6 s."
    )
    assert "for each of the oracle's, 4 with MP-BCFW." in keeps
    for run in fast:
        set_columns(run, slice(1, None), dual=0.5, gap=0.5)
    table = targets.compare(Runs([*base, *fast], best))
    assert list(targets.sentences(table))[1] == "MP-BCFW does not get to where BCFW ends."
    # of three solvers and two problems, nothing is said twice
    third = [trace("mpbcfw_fast", seed, 0.25) for seed in range(3)]
    other = [trace(solver, lam=0.3) for solver in ("bcfw", "mpbcfw")]
    table = targets.compare(Runs([*base, *fast, *third, *other], best))
    title, ends, arrives, keeps, second, *rest = targets.sentences(table)
    assert (title.text, second.text) == tuple(
        f"toy: real data, n = 2, λ = {lam}" for lam in ("1/n", "0.3")
    )
    assert (
        ends.count("After 30 passes") == ends.count("with MP-BCFW, fast it is 0.5 % after 8") == 1
    )
    assert arrives == (
        "MP-BCFW, fast is where BCFW ends after 8 passes and 1.5 s; BCFW needs 30 passes and 6 s; "
        "MP-BCFW does not get to where BCFW ends."
    )
    assert len(rest) == 2


def test_each_gap_that_is_asked_for_has_a_sentence():
    table = ratios([trace("bcfw")], [trace("mpbcfw", factor=0.5)], (0.1, 0.01))
    (least,) = pairs.sentences(table)
    both = [*pairs.sentences(table, asked=True)]
    assert ["to a relative gap of 0.1 (1 pair)" in text for text in both] == [True, False]
    assert both[1] == least


# ---- whose runs ---------------------------------------------------------------------------------


@pytest.fixture
def committed(tmp_path):
    """Return a folder whose committed runs say 0.5, and the user's own ones 0.25."""
    results = tmp_path / "results"
    for place, factor in ((results, 0.5), (results / folder.OWN, 0.25)):
        runs = [trace("bcfw"), trace("mpbcfw", factor=factor, options={"T": 10})]
        stored_traces.write(runs, place, "made_up")
    (results / folder.MARKER).touch()
    (tmp_path / ".git").mkdir()
    return results


def ratio(done):
    """Return the first ratio of calls in the numbers that were written."""
    assert done.exit_code == 0, done.output
    (csv,) = (line for line in done.stdout.splitlines() if line.endswith(".csv"))
    return pd.read_csv(csv.removeprefix("file: "))["calls"].iloc[0]


@pytest.mark.parametrize("experiment", [(), ("--experiment", "made_up")])
def test_own_runs_are_never_compared_with_committed_ones(committed, monkeypatch, experiment):
    monkeypatch.chdir(committed.parent)
    words = ("compare", "bcfw", "mpbcfw", "--format", "svg", *experiment)
    done = call(*words)
    assert ratio(done) == 0.25
    assert "--runs committed" in done.stderr
    assert "Only your own runs are compared." in done.stdout
    done = call(*words, "--runs", "committed")
    assert ratio(done) == 0.5
    assert "Only committed runs are compared." in done.stdout
    assert ratio(call(*words, "results_dir=results")) == 0.25  # which only says where to write
    assert ratio(call("compare", "committed", "mine")) in (1.0, 0.5)
    # of one solver each, there are no pairs, although both together have some
    for path in committed.glob("traces/*/*mpbcfw*"):
        path.unlink()
    for path in (committed / folder.OWN).glob("traces/*/*-bcfw*"):
        path.unlink()
    error_of(call(*words), 1)


def test_committed_runs_take_the_place_of_own_ones_only_with_a_word(committed, monkeypatch):
    monkeypatch.chdir(committed.parent)
    words = ("compare", "bcfw", "mpbcfw", "--format", "svg")
    own = committed / folder.OWN
    for runs, said in (
        ([trace("bcfw")], "You have no such runs of mpbcfw;"),
        ([trace("ssg")], "You have no such runs of bcfw and mpbcfw;"),
        ([trace("bcfw"), trace("mpbcfw", 1)], "Your own runs of both have no two to compare;"),
    ):
        for path in own.glob("traces/*/*"):
            path.unlink()
        stored_traces.write(runs, own, "made_up")
        done = call(*words)
        assert ratio(done) == 0.5
        assert f"{said} committed runs are compared." in done.stderr
    assert "committed runs" not in call(*words, "--runs", "committed").stderr


def test_runs_are_never_compared_with_themselves(tmp_path):
    results, other = tmp_path / "results", tmp_path / "other"
    few = ("solver=bcfw", "budget.max_iterations=50")  # to a relative gap below 0.9
    made = run_here(results, *few, data=USPS)
    stored_traces.write([read_trace(made.folder)], results, "made_up")
    (results / folder.MARKER).touch()
    where = f"results_dir={results}"
    for words in (("committed", "mine", where), (results, results)):
        assert "are the same runs" in error_of(call("compare", *words), 2)
    run_here(other, *few, data=USPS)  # the same configuration, executed once more
    assert ratio(call("compare", results, other, where, "--gap", "0.99", "--format", "svg")) == 1.0


def test_a_folder_is_compared_by_its_own_runs_or_its_committed_ones(committed, tmp_path):
    other = tmp_path / "other"
    stored_traces.write([trace("mpbcfw", options={"T": 10})], other, "made_up")
    words = ("compare", committed, other, f"results_dir={tmp_path}", "--format", "svg")
    done = call(*words)
    assert ratio(done) == 4.0
    assert "only your own runs are compared" in done.stderr
    assert "folders" in error_of(call(*words, "--runs", "committed"), 2)
    for path in (committed / folder.OWN).glob("traces/*/*"):
        path.unlink()
    assert ratio(call(*words)) == 2.0


def test_comparisons_of_different_runs_have_files_of_different_names(committed, monkeypatch):
    monkeypatch.chdir(committed.parent)
    files = set()
    options = (
        (),
        ("--runs", "committed"),
        ("--experiment", "made_up"),
        ("--dataset", "toy"),
        ("--gap", "0.1"),
        ("--gap", "0.1", "--gap", "0.5"),
        ("--seconds",),
    )
    calls = [("bcfw", "mpbcfw", *words) for words in options]
    calls += [("bcfw", "mpbcfw T=10"), ("mpbcfw", "bcfw")]
    for words in calls:
        done = call("compare", *words, "--format", "svg")
        assert done.exit_code == 0, done.output
        written = {line for line in done.stdout.splitlines() if line.startswith("file: ")}
        assert not written & files
        files |= written


def test_an_experiment_without_traces_and_runs_with_other_options(committed, monkeypatch):
    monkeypatch.chdir(committed.parent)
    words = ("compare", "bcfw", "mpbcfw", "--format", "svg", "--experiment")
    message = error_of(call(*words, "made_pu"), 2)
    assert "No traces are stored with the experiment 'made_pu'. Did you mean made_up?" in message
    runs = [trace("bcfw"), trace("mpbcfw", factor=0.125)]
    stored_traces.write(runs, committed / folder.OWN, "made_up/dataset.n_samples=2")
    done = call(*words, "made_up")
    assert ratio(done) == 0.25
    assert "made_up/dataset.n_samples=2" in done.stderr
    assert ratio(call(*words, "made_up/dataset.n_samples=2")) == 0.125
