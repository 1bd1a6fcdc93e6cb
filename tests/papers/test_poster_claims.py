"""The claims of the BCFW poster on hand-made traces: where each holds, fails, and is unknown."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import yaml
from traces import make_trace, set_columns

from ssvm_bench.claims import display, judging
from ssvm_bench.claims.claim import kinds_of_runs
from ssvm_bench.claims.judging import FAILS, HOLDS, UNKNOWN
from ssvm_bench.config import catalog, registry
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.figures.style import solver_label
from ssvm_bench.papers.bcfw_poster import measures, rivals
from ssvm_bench.papers.bcfw_poster.paper import PAPER
from ssvm_bench.results.table import Best, Runs, instance_of
from ssvm_bench.solvers.cutting_plane import one_slack

POSTER = replace(PAPER)
vars(POSTER)["remarks"] = {}  # notes without them
RUNS = kinds_of_runs(PAPER.folder / "claims.yaml")
FACTOR = 4 / 3  # numbers of calls within it are the same

N, HALF = 200, 100
PASSES = np.unique(np.round(1.1 ** np.arange(45)))
PASSES = np.concatenate([[0.0], PASSES[PASSES <= 64]])
LAMS = (0.01, 0.001, 1 / N)
BEST = Best(primal=1 + 1e-6, dual=1.0)
START = 10.0
FIXED = "2n/(k+2n)"

# calls to half of the error at the start; those of batch methods grow with n
ONLINE = {"bcfw": 50.0, "bcfw_avg": 40.0, "bcfw_tail": 45.0}
ONLINE |= {"ssg": 200.0, "ssg_weighted": 220.0, "ssg_tail": 210.0}
BATCH = {"eg": 4.0, "fw": 2.0, "one_slack": 3.0, "one_slack_cached": 3.2, "cutting_plane": 3.5}

OPTIONS = {"bcfw": {"step": "line_search", "sampling": "uniform"}, "one_slack": {"cache": 0}}
OPTIONS |= {"bcfw_avg": {"step": "line_search"}, "ssg": {"sampling": "uniform"}}
OPTIONS["bcfw_inexact"] = {"sampling": "uniform", "error": 0.1, "falls": False}


def run(
    solver, errors, seed=0, *, n=N, lam=0.01, passes=None, dual=None, fold=1, radius=10.0, **options
):
    """Return a run with P = 1 + error and F = 1 − error/2 at some numbers of passes."""
    errors = np.asarray(errors, float)
    passes = PASSES[: errors.size] if passes is None else np.array(passes)
    if solver == "one_slack_cached":
        solver, options = "one_slack", {"cache": 5, **options}
    about = {"solver": solver, "seed": seed, "lam": lam}
    about["options"] = {**OPTIONS.get(solver, {}), **options}
    about["dataset"] = {"name": "ocr", "n": n, "radius": radius, "fingerprint": f"{n}-{fold}"}
    data = {"name": "ocr", "folds": [fold], "n_samples": None if n == N else n}
    if solver == "bcfw_tail":
        about["columns"] = {"working_set_mean": 1 + 0.3 * passes}
    calls, dual = np.round(n * passes).astype(int), 1 - errors / 2 if dual is None else dual
    return make_trace(1 + errors, dual, oracle_calls=calls, config={"dataset": data}, **about)


def falling(half, n=N, power=1.0):
    """Return START/(1 + calls/half)^power."""
    return START / (1 + n * PASSES / half) ** power


def of_poster(n=N, lam=0.01, seeds=3):
    """Return runs on one problem instance that behave as the poster says."""
    about = {"n": n, "lam": lam}
    traces = [run(key, falling(half * n, n), **about) for key, half in BATCH.items()]
    for seed in range(seeds):
        for key, half in ONLINE.items():
            traces.append(run(key, falling(half, n) * (1 + 0.01 * seed), seed, **about))
        traces.append(run("bcfw", falling(60.0, n), seed, step=FIXED, **about))
    for falls in (False, True):
        traces += [run("bcfw_inexact", falling(52, n), s, falls=falls, **about) for s in (0, 1)]
    return traces


def everything():
    return [t for lam in LAMS for t in of_poster(lam=lam)] + of_poster(n=HALF)


def judge(traces, best=BEST):
    return judging.evaluate(POSTER, traces, {instance_of(t.metadata): best for t in traces})


def unknown(rows):
    """Return claim → note of those that are not measurable."""
    return {row.key: row.note for row in rows if row.verdict == UNKNOWN}


@functools.cache
def judged():
    """Return the rows of runs as the poster describes them."""
    return judge(everything())


def one(traces, key, lam=0.01, best=BEST):
    """Return the only row of a claim at a λ."""
    chosen = [t for t in traces if t.metadata["lam"] == lam]
    (row,) = (row for row in judge(chosen, best) if row.key == key)
    return row


def without(traces, *solvers):
    return [t for t in traces if t.metadata["config"]["solver"]["name"] not in solvers]


def test_on_runs_as_the_poster_describes_them_every_claim_holds():
    rows = judged()
    assert {(row.key, row.title, row.note) for row in rows if row.verdict != HOLDS} == set()
    titles = [f"OCR, n = {N}, λ = {lam}" for lam in ("0.001", "1/n", "2/n")]
    for claim in POSTER.claims:
        shown = [row.title for row in rows if row.key == claim.key]
        assert shown == (titles if claim.lam is None else titles[-1:])


def contrary(n):
    """Return runs on which nothing of what the poster says is true."""
    bad, slow = falling(8 * n, n, 0.5) / 5, falling(30, n, 0.5) / 5
    bad[1] = 2 * bad[0]  # above the start
    false, wrong = bad - 49, slow - 49  # a gap that tells little …
    false[-1] = wrong[-1] = 1.1  # … and a dual value above the optimum
    tiny = {"n": n, "radius": 1e-3}  # so that no theorem allows for such errors
    ours = ("bcfw", "bcfw_avg", "bcfw_tail")
    traces = [run(s, bad, seed, dual=false, **tiny) for s in ours for seed in (0, 1)]
    for trace in traces:
        set_columns(trace, time=trace["time"] * 3)
        set_columns(trace, working_set_mean=1 + 2 * PASSES)
    for falls in (False, True):
        traces.append(run("bcfw_inexact", 1.5 * bad, dual=false, falls=falls, **tiny))
    traces += [run("bcfw", slow, step=FIXED, **tiny), run("eg", slow, **tiny)]
    batch = ("fw", "one_slack", "one_slack_cached", "cutting_plane")
    traces += [run(s, slow, dual=wrong, **tiny) for s in batch]
    online = ("ssg", "ssg_weighted", "ssg_tail")
    return traces + [run(s, falling(3 * n, n, 0.5) / 5, **tiny) for s in online]


def test_contrary_runs_flip_every_verdict():
    rows = judge(contrary(N) + contrary(HALF))
    assert [row.key for row in rows] == [claim.key for claim in POSTER.claims]
    assert {(row.key, row.ours, row.note) for row in rows if row.verdict != FAILS} == set()


IN_PASSES = ("ahead", "passes")


def against(*baselines, kinds=(*IN_PASSES, "seconds")):
    """Return the claims that compare BCFW with these."""
    ours = {"bcfw": baselines, "bcfw_tail": baselines}
    ours["bcfw_avg"] = [name for name in baselines if name not in ("cached", "n_slack")]
    return {f"{kind}_{one}_{name}" for kind in kinds for one in ours for name in ours[one]}


def like_with_like(form):
    """Return the claims that compare BCFW in a form with SSG in the same."""
    return {f"{kind}_{form}_ssg" for kind in (*IN_PASSES, "seconds")}


@pytest.mark.parametrize(
    ("solver", "claims"),
    [
        ("eg", against("eg")),
        ("fw", against("fw") | {"rate_fw", "size_fw", "certificate_fw", "tight_fw"}),
        ("ssg", {"rate_ssg", "size_ssg", "call", *like_with_like("bcfw")}),
        ("ssg_tail", like_with_like("bcfw_tail")),
        ("bcfw_inexact", {"inexact", "inexact_calls", "inexact_rate"}),
        ("cutting_plane", against("n_slack")),
        ("one_slack", against("cutting_plane", "cached") | {"rate_one_slack", "size_one_slack"}),
    ],
)
def test_without_the_runs_of_a_solver_its_claims_are_unknown(solver, claims):
    found = unknown(judge(without(everything(), solver)))
    assert found.keys() == claims
    assert all("no finished runs of" in note for note in found.values())


def test_the_cutting_planes_of_the_poster_are_those_without_a_cache():
    def cache(trace):
        return trace.metadata["config"]["solver"].get("cache")

    plain = against("cutting_plane") | {"rate_one_slack", "size_one_slack"}
    for left_out, name, claims in ((0, "one_slack", plain), (5, "cached", against("cached"))):
        found = unknown(judge([t for t in everything() if cache(t) != left_out]))
        assert found == dict.fromkeys(claims, f"no finished runs of {RUNS[name]}")
    better = [t for t in of_poster() if cache(t) != 5]
    better.append(run("one_slack_cached", falling(20)))
    assert one(better, "ahead_bcfw_cached").verdict == FAILS
    row = one(better, "ahead_bcfw_cutting_plane")
    assert (row.verdict, f"of {RUNS['one_slack']} over ours" in row.note) == (HOLDS, True)


def test_self_checks_and_other_baselines_are_not_counted():
    rows = judged()
    kinds = {kind: {row.key for row in rows if row.beside == kind} for kind in POSTER.beside}
    rates = {f"rate_{name}" for name in ("bcfw", "ssg", "fw", "one_slack")}
    bounds = {"inexact_rate", "size_fw", "size_one_slack"} | rates
    assert kinds["self-checks"] == {"sparse", "certificate_bcfw", "certificate_fw"} | bounds
    rivals = against("ssg", "eg", "fw", "cutting_plane", kinds=IN_PASSES)
    assert kinds["weighted averages"] == {key for key in rivals if "_bcfw_avg_" in key}
    assert kinds["unlike averages"] == against("any_ssg", kinds=IN_PASSES)
    assert kinds["other baselines"] == against("cached", "n_slack", kinds=IN_PASSES)
    assert all(key.startswith("seconds_") for key in kinds["in seconds"])
    text = display.output(POSTER, rows).markdown()
    counted = sum(not row.beside for row in rows)
    assert f"Of {counted} pairs of claim and dataset: holds: {counted}; " in text
    tables = [table.splitlines() for table in text.split("\n\n") if table.startswith("| #")]
    assert len(tables[0]) == sum(not claim.beside for claim in POSTER.claims) + 2
    beside = (sum(row.beside == kind for row in rows) for kind in POSTER.beside)
    assert [len(table) - 2 for table in tables[1:]] == [counted, *beside]
    for kind, why in POSTER.beside.items():
        assert f"### Not counted: {kind}\n\n{why}\n" in text
    assert "n-slack" not in "".join(tables[0] + tables[1])


def test_a_missing_reference_optimum_is_a_reason():
    rows = judging.evaluate(POSTER, of_poster(), {})
    verdicts = {row.key: (row.verdict, row.note) for row in rows}
    assert verdicts["ahead_bcfw_eg"] == (UNKNOWN, "no reference optimum")
    assert verdicts["rate_bcfw"][0] == HOLDS  # the gap needs none


def test_curves_are_compared_where_ours_was_evaluated_read_off_in_log_y():
    ours = run("bcfw", [10, 6, 2, 0.9, 0.5])
    # between passes 0 and 4, the baseline's line is at 10^(1 − passes/4)
    baseline = run("eg", [10, 1], passes=[0, 4])
    row = one([ours, baseline], "ahead_bcfw_eg")
    assert 10**0.75 < 6  # so behind after one pass; ahead after two, three and four
    assert (row.median, row.verdict) == (3 / 4, FAILS)
    assert row.note == (
        "numbers of passes: 4; not lower at 1; the last at pass 1; "
        "after 4 passes, the suboptimality of EG over ours is 2×"
    )


def test_a_tie_is_not_ahead():
    row = one([run("bcfw", [10, 6, 2]), run("eg", [10, 6, 2])], "ahead_bcfw_eg")
    assert (row.median, row.verdict) == (0, FAILS)
    assert row.note.startswith("numbers of passes: 2; not lower at 2; the last at pass 2; ")


def test_nothing_is_compared_beyond_the_end_of_a_baseline():
    runs = [run("bcfw", [10, 6, 2, 0.9]), run("eg", [10, 7, 3])]
    runs.append(run("fw", [10, 7], passes=[0, 0.5]))
    assert one(runs, "ahead_bcfw_eg").note.startswith("numbers of passes: 2;")
    assert one(runs, "ahead_bcfw_fw").verdict == UNKNOWN


def test_one_of_our_repeats_is_compared_with_the_median_of_the_baseline():
    ours = [run("bcfw", [10, e, e], seed) for seed, e in enumerate([1, 3, 5])]
    row = one(ours + [run("eg", [10, e, e], s) for s, e in enumerate([2, 4, 9])], "ahead_bcfw_eg")
    assert (row.min, row.median, row.max) == (0, 1, 1)
    assert (row.agree, row.repeats, row.verdict) == (2, 3, HOLDS)


def test_the_lowest_of_a_family_counts_and_averages_are_compared_with_the_same_averages():
    assert one(of_poster(), "ahead_bcfw_any_ssg").verdict == HOLDS
    better = [*without(of_poster(), "ssg_tail"), run("ssg_tail", falling(20))]
    lowest = one(better, "ahead_bcfw_any_ssg")
    assert (lowest.verdict, lowest.median) == (FAILS, 0)
    assert "of SSG-tavg over ours is 0.4×" in lowest.note
    found = [one(better, f"ahead_bcfw{form}_ssg").verdict for form in ("", "_avg", "_tail")]
    assert found == [HOLDS, HOLDS, FAILS]


def test_passes_to_the_smallest_level_that_all_of_our_repeats_reach():
    def made(solver, *errors, passes=(0, 1, 2, 4, 8), seed=0):
        return run(solver, errors, seed, passes=passes[: len(errors)])

    first = made("bcfw", 10, 0.99, 0.099, 0.09, 0.08)
    ours = [first, made("bcfw", 10, 0.99, 0.98, 0.099, 0.009, seed=1)]
    row = one([*ours, made("eg", 10, 0.99, 0.98, 0.97, 0.099)], "passes_bcfw_eg")
    assert (row.min, row.max) == pytest.approx((8 / 4, 8 / 2), rel=0.01)
    assert row.note.endswith("to 0.1: 2.99 passes (2 passes – 3.99 passes); EG to 0.1: 7.98 passes")
    row = one([*ours, made("eg", 10, 0.99, 0.98, 0.97, 0.2)], "passes_bcfw_eg")
    assert (row.median, row.verdict) == (math.inf, HOLDS)
    assert row.note.endswith("; no baseline gets to 0.1")
    early = made("eg", 10, 0.99, 0.98)
    assert "ended before" in one([*ours, early], "passes_bcfw_eg").note
    short = made("eg", 10, 0.99, 0.98, 0.95, passes=(0, 1, 2, 3.5))
    third = made("bcfw", 10, 0.99, 0.45, 0.3, 0.09, seed=2)
    row = one([*ours, third, short], "passes_bcfw_eg")
    assert row.note.endswith("; no baseline gets to 0.5")  # 0.1 takes longer than it ran
    row = one([made("bcfw", 10, 0.15, 0.11), early], "passes_bcfw_eg")
    assert (row.verdict, "after the first pass" in row.note) == (UNKNOWN, True)


def test_the_fastest_of_a_family_counts():
    assert one(of_poster(), "passes_bcfw_any_ssg").verdict == HOLDS
    better = [*without(of_poster(), "ssg_tail"), run("ssg_tail", falling(20))]
    row = one(better, "passes_bcfw_any_ssg")
    assert (row.verdict, row.median) == (FAILS, pytest.approx(20 / 50, rel=0.05))
    assert "SSG-tavg to " in row.note


def test_runs_are_found_by_their_options():
    traces = of_poster()
    assert one(traces, "step").verdict == HOLDS
    alone = [*without(traces, "bcfw"), run("bcfw", falling(60))]
    assert one([*alone, run("bcfw", falling(50), step=FIXED)], "step").median == 0
    row = one(alone, "step")
    assert (row.verdict, "γ = 2n/(k + 2n)" in row.note) == (UNKNOWN, True)
    mixed = [*traces, run("bcfw", falling(50), 7, sampling="permutation")]
    assert "differ in more than the seed" in one(mixed, "start").note


def test_the_size_of_an_error_is_not_known_below_what_is_known_of_the_optimum():
    loose = Best(primal=1.5, dual=1.0)  # an error of 5 may be one of 4.5
    row = one(everything(), "size_bcfw", best=loose)
    assert (row.verdict, row.note) == (UNKNOWN, measures.TOO_LOOSE)
    for key in ("rate_bcfw", "ahead_bcfw_ssg"):
        assert one(everything(), key, best=loose).verdict == HOLDS
    fw = run("fw", [10, 5, 0.5], dual=[-9, -9, -9])
    assert one([fw], "tight_fw", best=loose).median == pytest.approx((1 + 5 + 9) / 5)


def test_a_call_costs_its_share_of_the_time_and_finds_planes():
    ours, baseline, tail, empty = (
        run(solver, [10, 5, 1]) for solver in ("bcfw", "ssg", "bcfw_tail", "bcfw_tail")
    )
    set_columns(ours, time=[0.0, 1.0, 3.0])
    row = one([ours, baseline], "call")
    assert (row.median, row.verdict) == (1.5, HOLDS)
    baseline.metadata["clock"] = "cpu"
    assert "different clocks" in one([ours, baseline], "call").note
    set_columns(tail, working_set_mean=[1.0, 1.5, 1.8])
    set_columns(empty, working_set_mean=0.0)
    row = one([tail, baseline], "sparse")
    assert (row.median, row.note) == (pytest.approx(0.4), "planes a term: 0.8; passes: 2")
    assert "has not kept" in one([empty, baseline], "sparse").note


def test_errors_of_the_oracle_are_compared_with_what_they_leave():
    short = run("bcfw_inexact", [10, 1, 0.1], dual=[0, 0.9, 1.0])
    row = one([short, run("ssg", [10, 5])], "inexact")
    assert row.median == pytest.approx(0.1 / 1.1 / 0.1)
    traces = [run(s, falling(half), falls=True) for s, half in (("bcfw", 50), ("bcfw_inexact", 60))]
    row = one([*traces, run("ssg", falling(90))], "inexact_calls")
    assert row.median == pytest.approx(60 / 50, rel=0.05)
    assert row.verdict == HOLDS


def test_calls_are_compared_with_those_on_half_of_the_examples():
    row = one(everything(), "size_bcfw")
    assert (row.median, row.repeats) == (pytest.approx(1.0, rel=0.02), 3)  # read off
    assert one(everything(), "size_fw").note.endswith(
        "; calls at n = 200: 1.2e+04; calls at n = 100: 6e+03"
    )
    few = [trace for n in (40, 60, 160) for trace in of_poster(n=n)]
    assert one([*everything(), *few], "size_fw").note.endswith("; calls at n = 100: 6e+03")
    assert "; calls at n = 60: " in one([*of_poster(), *few], "size_fw").note  # the nearest to 100


@pytest.mark.parametrize(("factor", "verdict"), [(FACTOR * 0.98, HOLDS), (FACTOR * 1.03, FAILS)])
@pytest.mark.parametrize("power", [1, -1])
def test_what_independent_of_n_means(factor, verdict, power):
    whole = [run("bcfw", falling(500 * factor**power)), run("ssg", falling(9))]
    half = [run("bcfw", falling(500, HALF), n=HALF), run("ssg", falling(9, HALF), n=HALF)]
    assert one(whole + half, "size_bcfw").verdict == verdict


def test_only_runs_that_differ_in_the_examples_alone_are_paired():
    def part(seed=0, **options):
        return [run(name, falling(200, HALF), seed, n=HALF, **options) for name in ("bcfw", "ssg")]

    whole = of_poster()
    for other in ([], of_poster(n=HALF, lam=0.001)):
        assert "part of the examples" in one([*whole, *other], "size_bcfw").note
    rows = [row for row in judge(whole + part(fold=2)) if row.key == "size_bcfw"]
    assert ["part of the examples" in row.note for row in rows] == [True, True]
    assert one(whole + part(9), "size_bcfw").note == "no two runs with the same seed"
    other_option = whole + part(sampling="permutation")
    assert "differ in more than the examples" in one(other_option, "size_bcfw").note


def test_a_part_of_the_examples_is_not_judged_itself():
    rows = judge(of_poster() + of_poster(n=HALF))
    assert {row.title for row in rows} == {"OCR"}
    alone = judge(of_poster(n=HALF))
    assert {row.verdict for row in alone if row.key == "ahead_bcfw_ssg"} == {HOLDS}


def test_each_paper_is_judged_where_its_solvers_ran():
    multi = run("mpbcfw", falling(10), fold=2)
    assert judging.evaluate(registry.papers()["mpbcfw"], everything(), {}) == []
    assert judge([multi, run("bcfw", falling(20), fold=2)]) == []
    assert {row.title for row in judge([*of_poster(), multi])} == {"OCR"}
    text = display.output(POSTER, judged()).markdown()
    assert text.startswith("# What the BCFW poster claims")
    assert f"| # | claim | OCR, n = {N}, λ = 0.001 | OCR, n = {N}, λ = 1/n | " in text


def test_the_experiment_makes_the_runs_that_the_claims_need():
    content = yaml.safe_load(catalog.entries("experiments")["bcfw_poster"].read_text())
    made = set()
    for grid in content["grid"]:
        for solver in map(str, np.atleast_1d(grid["solver"])):
            cached = solver == "one_slack" and grid.get("solver.cache") is None
            name = f"{solver} cached" if cached else solver
            part = "dataset.n_samples" in grid
            made |= {(name, lam, part) for lam in np.atleast_1d(grid["lam"])}
    asked = POSTER.solvers | POSTER.beside_runs_of | {"one_slack cached"}
    whole = {(solver, lam) for solver in asked - {"bcfw_inexact"} for lam in (0.01, 0.001, None)}
    assert {run[:2] for run in made if not run[2]} == {*whole, ("bcfw_inexact", 0.01)}
    keys = [claim.key for claim in POSTER.claims]
    sizes = {key.removeprefix("size_") for key in keys if key.startswith("size_")}
    assert {run for run in made if run[2]} == {(solver, 0.01, True) for solver in sizes}
    assert content["figures"]["claims"] == ["poster"]
    default = vars(one_slack.Config("one_slack", "one_slack"))
    assert {**default, **RUNS["cached"].options} == default


def test_the_poster_s_figure_has_its_seven_methods_and_ours_are_in_another():
    half = [run(solver, falling(50.0, HALF), n=HALF) for solver in ("bcfw", "one_slack")]
    runs = Runs([*of_poster(seeds=1), *half], {})
    figures = {output.name: output for output in rivals.KIND.outputs(FigureData(runs), ["passes"])}
    assert list(figures) == ["oracle_passes", "oracle_passes-ours"]
    own, ours = (set(map(solver_label, output.table["solver"])) for output in figures.values())
    assert own == {"FW", "BCFW", "BCFW-tavg", "SSG", "SSG-tavg", "EG", "1-slack"}
    assert ours == {
        *("BCFW", "BCFW-avg", "BCFW, γ = 2n/(k + 2n)", "SSG-wavg", "1-slack with a cache"),
        *("Cutting plane (n-slack)", "BCFW, inexact", "BCFW, inexact, falling", "1-slack"),
    }
    assert set(figures["oracle_passes"].table["n"]) == {N}
    notes = figures["oracle_passes-ours"].figure().texts[-1].get_text()
    assert f"n = {HALF}: a part of the examples" in notes
    (alone,) = rivals.KIND.outputs(FigureData(Runs([run("bcfw", falling(9.0))])), ["passes"])
    assert alone.name == "oracle_passes"
