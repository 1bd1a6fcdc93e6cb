"""The claims of the paper on hand-made traces: where each holds, fails, and is unknown."""

import functools
import html
import itertools
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml
from program import call, real_data
from traces import columns_of, make_trace, set_columns

from ssvm_bench.claims import display, judging
from ssvm_bench.claims.judging import FAILS, HOLDS, INCOMPARABLE, UNDECIDED, UNKNOWN
from ssvm_bench.config import registry
from ssvm_bench.figures import document
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.figures.style import solver_label
from ssvm_bench.papers.mpbcfw import measures, tables
from ssvm_bench.papers.mpbcfw.paper import PAPER as MPBCFW
from ssvm_bench.report.experiment_files import kinds, load
from ssvm_bench.results.table import Best, Runs, instance_of
from ssvm_bench.results.targets import reach, target

NAN = float("nan")
N = 10
ITERATIONS = np.arange(0, 41)
SINGLE, MULTI = ("bcfw", "bcfw_avg"), ("mpbcfw", "mpbcfw_avg")
SECONDS = {  # per oracle call, and the rest per call of BCFW and MP-BCFW: as in the paper
    "usps": (3e-6, 17e-6, 18e-6),
    "ocr": (50e-6, 21e-6, 60e-6),
    **dict.fromkeys(("weizmann", "horseseg", "stanford"), (2e-3, 20e-6, 8e-3)),
}
SPEED = {"usps": (0.1, 0.105), "ocr": (0.1, 0.2), "stanford": (0.008, 0.11)}
"""Rates of convergence per iteration."""
PLANES = {
    "usps": 1 + np.minimum(ITERATIONS, 1.5),
    "ocr": 1 + 6 * ITERATIONS * np.exp(-ITERATIONS / 8.0),
    "horses": 2 + 8 * np.exp(-(((ITERATIONS - 8) / 8.0) ** 2)),
    "stanford": 1 + 9 * (1 - np.exp(-ITERATIONS / 6.0)),
}
PASSES = {
    "usps": np.full(41, 2),
    "ocr": 10 + ITERATIONS % 6,
    "horses": np.minimum(60 * ITERATIONS, 400),
    "stanford": np.round(10 * np.sqrt(ITERATIONS)),
}
BEST = Best(1.0, 1.0)


def run(dataset, solver, seed=0, source="real", keep=slice(None), **change):
    """Return a run that behaves as the paper says; `change` replaces columns or metadata."""
    kind = "horses" if dataset in ("weizmann", "horseseg") else dataset
    multi = solver in MULTI
    rate = SPEED.get(dataset, (0.1, 1.0))[multi]
    rate *= 1 + (0.005 * (1 + seed) if multi else 0.01 * seed)
    rate *= 1.2 if solver.endswith("avg") else 1
    oracle, *rest = SECONDS[dataset]
    calls, gap = N * ITERATIONS, np.exp(-rate * ITERATIONS)
    passes = (PASSES[kind] * (ITERATIONS > 0)) if multi else 0 * ITERATIONS
    columns = {"primal": 1 + gap / 2, "dual": 1 - gap / 2, "time": calls * (oracle + rest[multi])}
    columns |= {"oracle_calls": calls, "oracle_time": calls * oracle}
    columns |= {"approx_calls": N * np.cumsum(passes), "approx_passes": passes}
    columns["working_set_mean"] = PLANES[kind] if multi else 0.0 * ITERATIONS
    columns |= {key: change.pop(key) for key in list(change) if key in columns}
    about = {"solver": solver, "seed": seed, "source": source, "lam": 0.1, **change}
    about["dataset"] = {"name": dataset, "n": N, "d": 3, "fingerprint": f"{dataset}-{source}"}
    primal, dual, time = (columns[name] for name in ("primal", "dual", "time"))
    trace = make_trace(primal, dual, iteration=ITERATIONS, time=time, columns=columns, **about)
    return replace(trace, columns=columns_of(trace.frame.iloc[keep].reset_index(drop=True)))


def behind(last):
    """Return primal values of a run that is behind until an iteration, and then ahead."""
    return np.where(last >= ITERATIONS, 3.0, 1 + np.exp(-ITERATIONS) / 2)


def solver_of(trace):
    return trace.metadata["config"]["solver"]["name"]


def dataset_of(trace):
    return trace.metadata["dataset"]["name"]


def paper(*datasets, source="real", seeds=3):
    """Return runs of all solvers on which the paper's claims hold."""
    datasets = datasets or ("usps", "ocr", "weizmann", "stanford")
    cases = itertools.product(datasets, SINGLE + MULTI, range(seeds))
    return [run(dataset, solver, seed, source) for dataset, solver, seed in cases]


WITHOUT_REMARKS = replace(MPBCFW)
vars(WITHOUT_REMARKS)["remarks"] = {}
HORSES, COSTS = "horseseg", MPBCFW.costs


def judge(traces, paper=WITHOUT_REMARKS):
    """Return the rows without the remarks that come along, which are about the real runs."""
    best = {instance_of(t.metadata): BEST for t in traces}
    return judging.evaluate(paper, traces, best)


@functools.cache
def usual():
    """Return the rows of runs as the paper describes them."""
    return judge(paper())


def one(traces, key, dataset, paper=WITHOUT_REMARKS):
    """Return the only row of a claim on a dataset."""
    best = {instance_of(t.metadata): BEST for t in traces}
    claims = [claim for claim in paper.claims if claim.key == key]
    rows = judging.evaluate(paper, traces, best, claims=claims)
    (row,) = (row for row in rows if row.dataset == dataset)
    return row


def replaced(dataset, solver, change, seeds=3):
    """Return the paper's runs, those of one solver changed: seed → arguments of `run`."""
    kept = [t for t in paper() if (dataset_of(t), solver_of(t)) != (dataset, solver)]
    return kept + [run(dataset, solver, seed, **change(seed)) for seed in range(seeds)]


def changed(key, dataset, solver="mpbcfw", **change):
    """Return the row of a claim by the paper's runs, those of one solver changed."""
    return one(replaced(dataset, solver, lambda _: change), key, dataset)


CLAIMED = [(each.key, name) for each in MPBCFW.claims if not each.variants for name in each.paper]
EVERY = [(key, "weizmann" if name == HORSES else name) for key, name in CLAIMED]
OF_MACHINES = {claim.key for claim in MPBCFW.claims if claim.given}


def test_on_runs_as_the_paper_describes_them_every_claim_holds():
    rows = usual()
    assert [(row.key, row.dataset) for row in rows] == EVERY
    judged = [row for row in rows if row.key not in OF_MACHINES]
    assert {(r.key, r.dataset, r.note) for r in judged if r.verdict != HOLDS} == set()
    by_repeat = [row for row in judged if not row.beside]
    assert {row.agree for row in by_repeat} == {3} == {row.repeats for row in by_repeat}


def test_claims_about_another_program_s_time_have_numbers_and_no_verdict():
    for traces in (paper(), [flipped(swapped(trace)) for trace in paper()]):
        mine = [row for row in judge(traces) if row.key in OF_MACHINES]
        assert {(row.verdict, row.agree) for row in mine} == {(INCOMPARABLE, 0)}
        assert all(row.ours and row.paper for row in mine)
    text = display.output(MPBCFW, usual()).markdown()
    assert display.TEXTS["of_machines"] in text
    assert "**not comparable** |" in text
    assert "| – 15 % |" in text


def test_of_own_runs_the_claims_that_none_of_them_decides_are_left_out():
    """A reader of a page on three runs met 68 lines of "not measurable"."""
    unknown = [row._replace(verdict=judging.UNKNOWN) for row in usual()]
    mixed = [
        row if row.title == "USPS" else none for row, none in zip(usual(), unknown, strict=True)
    ]
    found = display.decided(MPBCFW, mixed)
    assert set(found.table["title"]) == {"USPS"}
    counts = [
        sum(not row.beside for row in of)
        for of in ([row for row in mixed if row.title != "USPS"], mixed)
    ]
    assert "{} of {} pairs of claim and dataset".format(*counts) in found.blocks[0]
    assert not found.lacking
    last = [row.claim for row in mixed if row.title == "USPS" and not row.beside][-1]
    numbers = {
        number
        for made in (found, display.output(MPBCFW, usual()))
        for number in re.findall(rf"\| (\d+) \| {re.escape(last)}", made.markdown())
    }
    assert len(numbers) == 1
    nothing = display.decided(MPBCFW, unknown)
    assert (len(nothing.table), len(display.decided(MPBCFW, []).lacking)) == (0, 0)
    assert "`ssvm-bench experiment mpbcfw_claims`" in nothing.lacking


def flipped(trace):
    """Return a run that contradicts everything: solvers swapped, oracle and planes reversed."""
    frame, name = trace.frame.copy(), dataset_of(trace)
    frame["oracle_time"] = frame["time"] * (0.4 if solver_of(trace) in SINGLE else 0.9)
    frame["working_set_mean"] = 20.0 + 20 * (-1.0) ** frame["iteration"] - 0.9 * frame["iteration"]
    if name in ("ocr", "weizmann"):  # rises to the end, and jumps
        frame["working_set_mean"] = 1.0 + frame["iteration"] ** 2
    rate = {"usps": 50.0, "ocr": 50.0, "weizmann": 3.0, "stanford": 3.0}[name]
    frame["approx_calls"] = np.round(N * rate * frame["iteration"])
    return replace(trace, columns=columns_of(frame))


def swapped(trace):
    solvers = dict(zip(SINGLE + MULTI, MULTI + SINGLE, strict=True))
    config = {**trace.metadata["config"], "solver": {"name": solvers[solver_of(trace)]}}
    return replace(trace, metadata={**trace.metadata, "config": config})


def test_flipped_runs_flip_the_verdicts():
    def slower(trace):  # a swap is not enough where the two are alike in time
        factor = 30e3 if solver_of(trace) in MULTI else 1e3
        return replace(
            trace, columns=columns_of(trace.frame.assign(time=trace.frame["time"] * factor))
        )

    rows = judge([flipped(slower(swapped(trace))) for trace in paper()])
    kept = {(r.key, r.dataset) for r in rows if r.verdict != FAILS}
    # Slower, so it cannot be faster; who is averaged, and the limits, are as before.
    kept = {key for key in kept if not key[0].startswith(("average", "limits", *OF_MACHINES))}
    assert kept == {("not_faster_plain", "usps"), ("not_faster_avg", "usps")}


@pytest.mark.parametrize("dataset", ["usps", "ocr", "weizmann", "stanford"])
def test_without_runs_nothing_is_measurable(dataset):
    rows = judge([trace for trace in paper() if dataset_of(trace) != dataset])
    name = HORSES if dataset == "weizmann" else dataset
    mine = [row for row in rows if row.dataset == name]
    assert [row.key for row in mine] == [key for key, of in EVERY if of == dataset]
    for row in mine:
        assert (row.verdict, row.note, row.ours) == (UNKNOWN, "no finished runs", "")
        assert math.isnan(row.median)


@pytest.mark.parametrize("solver", SINGLE + MULTI)
def test_the_solver_that_is_missing_is_named(solver):
    rows = judge([trace for trace in paper() if solver_of(trace) != solver])
    unknown = [row for row in rows if row.verdict == UNKNOWN]
    pair = "avg" if solver.endswith("avg") else "plain"
    multi = ("planes", "passes", "share_mpbcfw", "limits")
    alone = {"bcfw": ("share_bcfw", "call"), "mpbcfw": multi}.get(solver, ())
    begins = (f"average_{solver.removesuffix('_avg')}", *alone)
    expected = {key for key, _ in EVERY if key.endswith(pair) or key.startswith(begins)}
    assert {row.key for row in unknown} == expected
    assert {row.note for row in unknown} == {f"no finished runs of {solver_label(solver)}"}


def test_counted_work_is_no_time_and_clocks_are_not_mixed():
    work = [run("usps", solver, seed, clock="work") for solver in SINGLE + MULTI for seed in (0, 1)]
    for row in judge(work):
        timed = row.key.startswith(("not_", "share", "call"))
        if row.dataset == "usps":
            assert row.verdict == (UNKNOWN if timed else HOLDS)
    assert "different clocks" in changed("similar_plain", "ocr", clock="cpu").note
    assert changed("below_plain", "ocr", clock="cpu").verdict == HOLDS


def test_without_repeats_there_is_no_spread_to_compare_with():
    rows = {row.key: row for row in judge(paper(seeds=1)) if row.dataset == "usps"}
    assert rows["not_slower_plain"].verdict == UNKNOWN
    assert "no repeats" in rows["not_slower_plain"].note
    assert rows["below_plain"].verdict == HOLDS
    assert rows["below_plain"].ours == "100 %"


def test_the_gap_to_reach_leaves_time_to_reach_it():
    trace = run("usps", "bcfw")
    within = trace.frame["time"] <= 0.8 * trace["time"][-1]
    assert target([trace]) == trace.frame["gap"][within].min()
    assert target([trace]) > trace["gap"].min()
    alike = [run("usps", solver, seed) for solver in ("bcfw", "mpbcfw") for seed in range(2)]
    assert one(alike, "fewer_plain", "usps").verdict == HOLDS


def test_averages_are_judged_by_the_primal_that_the_plain_solver_reaches():
    row = one(paper("ocr"), "average_bcfw", "ocr")
    assert (row.verdict, row.repeats) == (HOLDS, 3)
    slow = 1 + np.exp(-0.02 * ITERATIONS) / 2
    row = changed("average_bcfw", "ocr", "bcfw_avg", primal=slow)
    assert (row.verdict, row.ours) == (FAILS, "not reached")


def test_the_limits_are_shares_of_passes_and_of_iterations():
    row = one([run("ocr", "mpbcfw", options={"N": 41, "M": 1000})], "limits", "ocr")
    assert (row.verdict, row.median) == (FAILS, 1.0)  # 41 planes after 40 iterations
    row = one([run("ocr", "mpbcfw", options={"N": 1000, "M": 30})], "limits", "ocr")
    assert (row.verdict, row.median) == (HOLDS, 0.5)
    assert row.note.startswith("passes of an iteration, at most: 15; ")


def test_the_slope_rule_is_held_against_the_best_fixed_number():
    def fixed(passes, factor):
        options = {"rule": "fixed", "M": passes}
        time = factor * run("ocr", "mpbcfw").frame["time"].to_numpy()
        return [run("ocr", "mpbcfw", seed, options=options, time=time) for seed in range(2)]

    for factor, verdict in ((1.5, HOLDS), (0.5, FAILS)):
        runs = paper("ocr") + fixed(1, 3.0) + fixed(20, factor)
        rows = judge(runs + varied(runs, dataset_costs=COSTS))
        row = next(r for r in rows if (r.key, r.dataset, r.counted) == ("rule", "ocr", True))
        assert (row.verdict, row.repeats) == (verdict, 2)
        assert row.median == pytest.approx(1 / factor, rel=0.02)
        assert "M = 1 over the rule: 3× (" in row.note
        # All else is judged by the runs with the rule.
        assert [r for r in rows if not r.counted] == judge(paper("ocr"))


def test_equal_iterations_are_those_evaluated_in_both_runs_of_a_seed():
    traces = [run("ocr", "bcfw", keep=slice(None, None, 2))]
    traces += [run("ocr", "mpbcfw", keep=slice(None, None, 3))]
    row = one([*traces, run("ocr", "mpbcfw", 1)], "below_plain", "ocr")  # no such seed of BCFW
    assert (row.repeats, row.note) == (1, "common evaluations: 6")
    apart = [run("ocr", "bcfw", keep=[0, 1, 3]), run("ocr", "mpbcfw", keep=[0, 2, 4])]
    assert one(apart, "below_plain", "ocr").verdict == UNKNOWN


def test_where_the_primal_is_behind_is_told():
    row = changed("below_plain", "ocr", primal=behind(9))
    assert (row.verdict, row.median, row.agree) == (FAILS, 31 / 40, 0)
    assert row.note == ("common evaluations: 40; not lower at 9; the last at iteration 9")


def test_curves_are_medians_over_the_repeats():
    def row(count):
        late = {"primal": behind(9)}
        runs = replaced("ocr", "mpbcfw", lambda seed: late if seed < count else {})
        return one(runs, "curves_plain", "ocr")

    assert (row(1).verdict, row(1).median) == (HOLDS, 1.0)
    assert (row(2).verdict, row(2).median) == (FAILS, 31 / 40)
    assert row(2).note.endswith("not lower at 9; the last at iteration 9")


def test_duals_are_compared_as_primals_are_averages_by_their_own():
    low = np.where(ITERATIONS <= 9, -3.0, 1 - np.exp(-ITERATIONS) / 2)
    row = changed("duals_plain", "ocr", dual=low)
    assert (row.verdict, row.median, row.beside) == (FAILS, 31 / 40, "other readings")
    assert row.note.endswith("not higher at 9; the last at iteration 9")
    runs = [run("ocr", solver) for solver in ("bcfw_avg", "mpbcfw_avg")]
    assert one(runs, "duals_avg", "ocr").verdict == HOLDS
    for trace, own in zip(runs, (0.5, 0.1), strict=True):
        set_columns(trace, dual_of_average=own)
    assert one(runs, "duals_avg", "ocr").verdict == FAILS


def test_always_sooner_is_to_every_gap_below_the_optimal_value():
    runs = [run("ocr", "bcfw"), run("ocr", "mpbcfw")]
    assert one(runs, "quality_plain", "ocr").median == 1.0  # the gap of the start
    row = one([runs[0], run("ocr", "mpbcfw", primal=behind(9))], "quality_plain", "ocr")
    assert (row.verdict, row.median) == (FAILS, pytest.approx(np.exp(-0.9)))


def test_shares_are_those_of_iterations_not_of_evaluations():
    rare = [0, 1, 2, 3, 4, 10, 40]  # half of the evaluations are at the first three iterations

    def row(**primal):
        runs = [run("ocr", "bcfw", keep=rare), run("ocr", "mpbcfw", keep=rare, **primal)]
        return one(runs, "below_plain", "ocr")

    assert row(primal=behind(3)).median == 37 / 40
    once = row(primal=np.where(ITERATIONS == 10, 3.0, behind(-1)))
    assert (once.verdict, once.median) == (FAILS, 34 / 40)  # what is seen at 10 stands for 5 to 10
    assert once.note.endswith("the last at iteration 10")
    assert (row().verdict, row().median) == (HOLDS, 1.0)


def test_the_primal_after_the_exact_pass_is_a_second_measure():
    def seen(after_exact, **change):
        trace = run("stanford", "mpbcfw", **change)
        set_columns(trace, primal_after_exact=after_exact)
        return one([run("stanford", "bcfw"), trace], "below_plain", "stanford")

    late = np.where(ITERATIONS <= 10, 3.0, 1.0)
    ahead, ahead_after = seen(late), seen(behind(-1), primal=late)
    assert (ahead.verdict, ahead_after.verdict) == (HOLDS, FAILS)
    assert ahead.note.endswith(
        "after the exact pass, lower at 75 %; after it, not lower at 10; "
        "after it, the last at iteration 10"
    )
    assert ahead_after.note.endswith("after the exact pass, lower at 100 %")
    assert "exact pass" not in seen(np.full(41, NAN)).note


def test_slow_growth_is_that_of_the_horses_or_slower_by_half():
    def growth(series, horses=PASSES["horses"]):
        traces = []
        for name, made in (("stanford", series), ("weizmann", horses)):
            calls = N * np.cumsum(made * (ITERATIONS > 0))
            traces += [run(name, "mpbcfw", seed, approx_calls=calls) for seed in range(3)]
        return one(traces, "passes_slowly", "stanford")

    row = growth(PASSES["stanford"])
    assert (row.verdict, row.median) == (HOLDS, 10 / 4)
    assert row.note == (
        "largest: 63; half of it at iteration 10; largest on the 10 horses: 400; "
        "half of that at iteration 4; iterations that all have: 40"
    )
    as_quickly, none, falls = PASSES["horses"], np.full(41, 50), np.maximum(60 - ITERATIONS, 0)
    for series in (as_quickly, none, falls):
        assert growth(series).verdict == FAILS
    assert growth(PASSES["stanford"], PASSES["stanford"]).verdict == FAILS
    alone = one([run("stanford", "mpbcfw")], "passes_slowly", "stanford")
    assert alone.verdict == UNKNOWN
    assert alone.note == "no finished runs on the horses to compare with"


def test_nan_duals_leave_the_primal_comparison_alone():
    bare = [run("ocr", s, k, dual=np.full(41, NAN)) for s in ("bcfw", "mpbcfw") for k in (0, 1)]
    assert one(bare, "below_plain", "ocr").verdict == HOLDS
    assert one(bare, "similar_plain", "ocr").note == "no positive duality gap"


def test_time_to_a_gap_is_read_between_rows_and_nowhere_else():
    trace = make_trace([100.0, 1.0, -1.0], [0.0] * 3, time=[0.0, 2.0, 3.0], iteration=[0, 5, 9])
    assert reach(trace, 10.0, "time") == pytest.approx(1.0)
    assert reach(trace, 10.0, "iteration") == 5
    assert reach(trace, 0.5, "time") == 3.0  # no logarithm to interpolate
    assert reach(trace, -2.0, "time") == math.inf
    assert target([trace]) == 1.0


def test_a_run_that_ends_too_early_tells_nothing_one_that_ends_late_is_slower():
    assert "ended before" in changed("faster_plain", "stanford", keep=slice(0, 2)).note
    row = changed("faster_plain", "stanford", primal=np.full(41, 9.0))
    assert (row.verdict, row.median) == (FAILS, math.inf)
    assert row.ours.startswith("not reached")


def test_an_inexact_oracle_may_turn_the_gap_negative():
    primal = 1 + np.exp(-0.3 * ITERATIONS) - 0.01 * ITERATIONS
    assert changed("faster_plain", "stanford", primal=primal).verdict in (HOLDS, FAILS)
    assert np.isfinite(changed("gain_plain", "stanford", primal=primal).median)


@pytest.mark.parametrize(
    ("key", "dataset", "inside", "outside"),
    [
        ("faster_plain", "weizmann", [0.1, 0.49], [0.51]),
        ("similar_plain", "ocr", [0.51, 1.99], [0.49, 2.01]),
    ],
)
def test_what_substantially_and_small_mean(key, dataset, inside, outside):
    single = run(dataset, "bcfw")
    curves, time = single.frame[["primal", "dual"]], single.frame["time"].to_numpy()
    for factor in inside + outside:
        row = one([single, run(dataset, "mpbcfw", **curves, time=factor * time)], key, dataset)
        assert row.median == pytest.approx(factor)
        assert row.verdict == (HOLDS if factor in inside else FAILS)


def test_not_slower_is_judged_by_the_spread_of_the_repeats_or_a_tenth():
    def verdict(key, factor):
        return changed(key, "usps", time=N * ITERATIONS * 20e-6 * factor).verdict

    found = [verdict("not_slower_plain", factor) for factor in (0.25, 0.9, 1.09, 1.2)]
    assert found == [HOLDS, HOLDS, HOLDS, FAILS]
    found = [verdict("not_faster_plain", factor) for factor in (0.25, 0.98)]
    assert found == [FAILS, HOLDS]  # a ratio of 0.93: beyond the spread, within a tenth
    time = N * ITERATIONS * 20e-6
    spread = [run("usps", "bcfw", k, time=time * factor) for k, factor in enumerate([0.8, 1, 1.2])]
    for key, factor in (("not_faster_plain", 0.9), ("not_slower_plain", 1.2)):
        multi = [run("usps", "mpbcfw", k, time=time * factor) for k in range(3)]
        row = one(spread + multi, key, "usps")
        assert (row.verdict, row.by_median) == (UNDECIDED, HOLDS)  # the noise is 0.2


def test_the_median_decides_and_the_repeats_are_counted():
    def row(seeds):
        poor = {"primal": np.full(41, 9.0)}
        runs = replaced("ocr", "mpbcfw", lambda seed: poor if seed in seeds else {})
        return one(runs, "below_plain", "ocr")

    few = row([0])
    assert (few.verdict, few.agree, few.min, few.max) == (HOLDS, 2, 0.0, 1.0)
    assert row([1, 2]).verdict == FAILS


def test_a_number_that_fails_does_not_read_as_the_end_of_the_range():
    calls = N * np.cumsum(np.where(ITERATIONS % 2, 15.02, 15.04) * (ITERATIONS > 0))
    row = changed("passes_ocr", "ocr", approx_calls=calls)
    assert (row.verdict, row.ours) == (FAILS, "15.03 (15.03 – 15.03)")
    below = changed("below_plain", "ocr", primal=np.where(ITERATIONS == 1, 9.0, behind(-1)))
    assert below.ours == "97.5 % (97.5 % – 97.5 %)"


def timed(*factors, single=(1.0,)):
    """Return `faster_plain` on Stanford, which holds up to 1/2: MP-BCFW's time over BCFW's."""
    plain = run("stanford", "bcfw")
    curves, time = plain.frame[["primal", "dual"]], plain.frame["time"].to_numpy()
    runs = [
        run("stanford", solver, seed, **curves, time=factor * time)
        for solver, each in (("bcfw", single), ("mpbcfw", factors))
        for seed, factor in enumerate(each)
    ]
    return one(runs, "faster_plain", "stanford")


def test_time_is_undecided_where_repeats_split_3_to_7_or_closer():
    three, two = (timed(*[0.1] * (10 - k), *[10.0] * k) for k in (3, 2))
    assert (three.verdict, three.by_median, three.agree) == (UNDECIDED, HOLDS, 7)
    assert three.note.startswith("The repeats split 3 : 7. ")
    assert (two.verdict, two.by_median, two.agree) == (HOLDS, "", 8)
    seven = timed(*[0.1] * 3, *[10.0] * 7)
    assert (seven.verdict, seven.by_median) == (UNDECIDED, FAILS)
    primal = np.where(ITERATIONS > 5, 3.0, 1 + np.exp(-ITERATIONS) / 2)
    runs = replaced("ocr", "mpbcfw", lambda seed: {"primal": primal} if seed else {})
    assert one(runs, "below_plain", "ocr").verdict == FAILS  # 1 : 2, but not about time


def test_time_is_undecided_within_the_noise_of_its_limit():
    # quartiles at ± 4 % of the median: a noise of 8 %; no repeat is on the other side of the limit
    spread = np.array([0.92, 0.96, 1.0, 1.04, 1.05])
    near, far = timed(*0.47 * spread), timed(*0.46 * spread)
    assert (near.verdict, near.by_median, near.agree) == (UNDECIDED, HOLDS, 5)
    assert near.note.startswith("The median is within the noise of its limit, 0.5×. ")
    assert near.note.endswith("Noise: 8 % (time of an iteration of MP-BCFW)")
    assert (far.verdict, far.by_median) == (HOLDS, "")
    assert [near.noise, far.noise] == pytest.approx([0.08] * 2)
    # the noisiest solver counts, whichever it is
    single = timed(0.45, 0.45, single=(0.8, 1.0, 1.2))
    assert (single.verdict, single.noise) == (UNDECIDED, pytest.approx(0.2))
    assert "time of an iteration of BCFW" in single.note
    alone = timed(0.499)
    assert (alone.verdict, math.isnan(alone.noise)) == (HOLDS, True)


def test_counted_time_has_no_noise():
    slow = [run("usps", "mpbcfw", k, time=N * ITERATIONS * 1e-5 * (k + 1)) for k in range(3)]
    rows = judge(varied([*paper("usps"), *slow], dataset_costs=COSTS))
    assert {row.dataset for row in rows if row.counted} >= {"usps"}
    assert all(math.isnan(row.noise) for row in rows)


def test_what_is_undecided_is_counted_and_marked():
    row = timed(*[0.1] * 7, *[10.0] * 3)
    text = display.output(MPBCFW, [row]).markdown()
    assert display.TEXTS["noise"].strip() in text
    assert "undecided here: 1 (by the median alone, 1 would hold, 0 would not)" in text
    assert "**undecided here**, 7 of 10" in text
    assert "| ≈ " in text


def test_passes_count_iterations_that_were_not_evaluated():
    trace = run("ocr", "mpbcfw", keep=[0, 10, 13, 40])
    series = measures.passes(trace)
    assert series.size == 40
    assert series.sum() == pytest.approx(run("ocr", "mpbcfw").frame["approx_passes"].sum())
    assert np.unique(series).size == 3


def test_the_numbers_of_planes_are_those_by_hand():
    at, planes = np.array([0, 4, 6, 7, 8]), np.array([1.0, 8.0, 4.0, 2.0, 3.0])
    found = {name: of(at, planes) for name, of in measures.PLANES.items()}
    assert found == {"largest": 8, "end": 3 / 8, "change": 2 / 4}  # the last quarter is from 6 on
    assert measures.late_change(at, 0 * planes) == 0
    assert measures.late_change(at, np.array([9.0, 9.0, 0.0, 1.0, 0.5])) == 1
    assert math.isnan(measures.end_over_peak(at, 0 * planes))


def test_planes_depend_on_an_end_that_is_not_printed():
    gap = np.select([of > ITERATIONS for of in (5, 10, 20)], [0.5, 0.099, 0.029], 0.009)
    planes = np.select([of >= ITERATIONS for of in (8, 19, 39)], [1 + ITERATIONS, 8, 4], 3.0)

    def row(planes):
        trace = run("stanford", "mpbcfw", primal=np.ones(41), dual=1 - gap, working_set_mean=planes)
        return one([trace], "planes_grow", "stanford")

    falls = row(planes)
    assert (falls.verdict, falls.ours) == (UNKNOWN, "")
    assert falls.note == (
        "it depends on the end of the paper's runs, which is not printed; "
        "up to a relative gap of 10 %: 1; up to a relative gap of 3 %: 0.889; "
        "up to a relative gap of 1 %: 0.444; up to the end: 0.333"
    )
    assert [row(of).verdict for of in (1.0 + ITERATIONS, 41.0 - ITERATIONS)] == [HOLDS, FAILS]


def test_a_claim_holds_to_each_quality_and_the_worst_decides():
    single = run("usps", "bcfw")
    curves, time = single.frame[["primal", "dual"]], single.frame["time"].to_numpy()
    for late, verdict, shown in ((1.0, HOLDS, (0.3,)), (3.0, FAILS, (0.1, 0.05))):
        slower = np.where(single["relative_gap"] > 0.2, time, late * time)
        both = [single, run("usps", "bcfw", 1, **curves, time=time)]
        row = one([*both, run("usps", "mpbcfw", **curves, time=slower)], "not_slower_plain", "usps")
        assert (row.verdict, row.median) == (verdict, pytest.approx(late))
        assert row.note.startswith(tuple(f"to a relative gap of {gap}; BCFW: " for gap in shown))
        assert row.note.count("; to 0.") == 2
    few = run("usps", "bcfw", keep=slice(0, 14)), run("usps", "mpbcfw", keep=slice(0, 14))
    note = one(few, "fewer_plain", "usps").note
    assert note == "to a relative gap of 0.3; BCFW: 10.4 iterations"  # no other is reached


def test_the_oracle_s_share_and_what_it_would_be_with_the_paper_s_oracle():
    calls = N * ITERATIONS
    times = {"solver": "bcfw", "time": calls * 120e-6, "oracle_time": calls * 100e-6}
    share = changed("share_bcfw", "weizmann", **times)
    assert (share.verdict, share.median) == (INCOMPARABLE, pytest.approx(5 / 6))
    assert share.note.endswith("if a call took as long as the paper's: 98 %–99.6 %")
    call = changed("call", "weizmann", **times)
    assert (call.median, call.note) == (
        pytest.approx(100e-6),
        "faster than the paper's: 10×–50×",
    )
    times = {"solver": "bcfw", "time": calls * 100e-6, "oracle_time": calls * 70e-6}
    within = changed("share_bcfw", "ocr", **times)
    assert (within.median, "the paper's" in within.note) == (pytest.approx(0.7), False)


def test_real_data_and_stand_ins_are_judged_apart():
    rows = judge(paper("usps", source="synthetic") + paper("ocr"))
    assert list(dict.fromkeys(row.source for row in rows)) == ["real", "synthetic"]
    assert {r.dataset for r in rows if r.source == "real" and r.repeats} == {"ocr"}
    gains = [r for r in rows if r.source == "real" and (r.key, r.dataset) == ("gain_plain", "ocr")]
    assert [row.verdict for row in gains] == [UNKNOWN]  # USPS is there, but a stand-in


def test_data_that_the_paper_drew_are_judged_with_real_ones():
    rows = judge(paper("usps", source="drawn") + paper("ocr"))
    (gain,) = [row for row in rows if (row.key, row.dataset) == ("gain_plain", "ocr")]
    assert gain.verdict != UNKNOWN  # it compares OCR with USPS
    text = display.output(MPBCFW, rows).markdown()
    assert "\n## On the real data, and on data drawn as the paper's are\n" in text
    assert "⚠" not in text
    assert "say nothing" not in text


def test_weizmann_stands_for_horseseg_only_where_that_is_missing():
    assert one(paper(), "call", "weizmann").title == "Weizmann (for HorseSeg)"
    rows = judge(paper("weizmann", "horseseg"))
    assert {row.title for row in rows if row.dataset == "horseseg"} == {"HorseSeg"}
    assert not any(row.dataset == "weizmann" for row in rows)


def test_runs_that_differ_in_more_than_the_seed_are_no_repeats():
    sweep = [run("ocr", "mpbcfw", 0, options={"N": N}) for N in (5, 10)]
    row = one([*sweep, run("ocr", "bcfw")], "passes_ocr", "ocr")
    assert (row.verdict, row.note) == (UNKNOWN, "runs of MP-BCFW differ in more than the seed")


def test_two_problem_instances_of_a_dataset_have_rows_of_their_own():
    other = [run("ocr", s, seed, lam=0.7) for s in SINGLE + MULTI for seed in range(3)]
    rows = [row for row in judge(paper("ocr") + other) if row.key == "below_plain"]
    titles = [row.title for row in rows if row.dataset == "ocr"]
    assert titles == ["OCR, n = 10, λ = 1/n", "OCR, n = 10, λ = 7/n"]


def test_other_datasets_solvers_and_costs_are_passed_over():
    toy = make_trace([1.0], [0.0])
    assert judging.evaluate(MPBCFW, [toy], {}) == [] == judging.evaluate(MPBCFW, [], {})
    assert judge([run("ocr", "bcfw")]) == []  # what is claimed is about MP-BCFW
    other = {name: value._replace(visit=1.0) for name, value in COSTS.items()}
    assert judge(varied(paper(), dataset_costs=other)) == []


def test_an_experiment_can_ask_for_every_paper():
    named = kinds()["claims"].choices.names
    assert named == ("mpbcfw", "poster", "dual_coordinate", "transduction")
    assert len({registry.papers()[name].file for name in named}) == len(named)


def test_a_missing_reference_optimum_is_a_reason():
    rows = judging.evaluate(MPBCFW, paper(), {})
    gain = next(r for r in rows if (r.key, r.dataset) == ("gain_plain", "ocr"))
    assert (gain.verdict, gain.note) == (UNKNOWN, "no reference optimum")


def test_remarks_are_shown_where_a_claim_does_not_hold_on_real_data(tmp_path):
    shutil.copy(MPBCFW.folder / "claims.yaml", tmp_path)
    (tmp_path / "remarks.yaml").write_text("planes_fall: {ocr: Ours end early.}")
    remarked = replace(MPBCFW, folder=tmp_path)
    short = [run("ocr", "mpbcfw", keep=slice(0, 6))]
    assert one(short, "planes_fall", "ocr", paper=remarked).note.endswith(". Ours end early.")
    assert "early" not in one(paper(), "planes_fall", "ocr", paper=remarked).note
    made = [run("ocr", "mpbcfw", source="synthetic", keep=slice(0, 6))]
    assert "early" not in one(made, "planes_fall", "ocr", paper=remarked).note


def test_every_statement_of_a_paper_is_judged():
    for paper in registry.papers().values():
        text = (paper.folder / "claims.yaml").read_text(encoding="utf-8")
        keys = {claim.key for claim in paper.claims}
        said = yaml.safe_load(text)
        for name, statement in said.get("claims", said).items():
            name = statement.get("name", name)
            assert name in keys or any(key.startswith((f"{name}_", f"{name} ")) for key in keys)
        shown = [text for claim in paper.claims for text in (claim.text, claim.measured)]
        assert not any("{" in text for text in shown)


def test_the_remarks_that_come_along_are_about_claims_that_exist():
    variants = ("", "start=oracle", "counted", "start=oracle counted")
    for paper in registry.papers().values():
        known = {claim.key: claim for claim in paper.claims}
        assert len(known) == len(paper.claims)  # one key, one claim
        for key, remarks in paper.remarks.items():
            said = known[key].paper  # empty: of all datasets
            for about, text in remarks.items():
                dataset, _, variant = about.partition(" ")
                assert not said or {dataset, paper.stands_for.get(dataset)} & said.keys()
                assert not said or variant in variants
                assert text.endswith(".")


def varied(traces, start="truth", dataset_costs=None):
    """Return runs as of another start, and with their time counted at some costs."""
    found = []
    for trace in traces:
        config = dict(trace.metadata["config"])
        metadata = {**trace.metadata, "config": config}
        if start != "truth":
            config["solver"] = {**config["solver"], "start": start}
        if dataset_costs:
            spent = dataset_costs[dataset_of(trace)]._asdict()
            config["oracle"] = {f"cost_{name}": value for name, value in spent.items()}
            metadata["clock"] = "work"
        found.append(replace(trace, metadata=metadata))
    return found


def test_starts_are_judged_apart():
    late = replaced("ocr", "mpbcfw", lambda _: {"primal": np.full(41, 9.0)})
    rows = judge(late + varied(paper(), "oracle"))
    truth, oracle = ([row for row in rows if row.start == start] for start in ("truth", "oracle"))
    assert [row.key for row in truth] == [row.key for row in oracle] == [key for key, _ in EVERY]
    assert truth == judge(late)
    assert {row.verdict for row in oracle} == {HOLDS, INCOMPARABLE}
    below = [row.verdict for row in rows if (row.key, row.dataset) == ("below_plain", "ocr")]
    assert below == [HOLDS, FAILS]  # the start of the authors' program comes first


def test_a_problem_has_the_same_title_in_all_variants():
    other = [run("ocr", s, seed, lam=0.7) for s in SINGLE + MULTI for seed in range(3)]
    rows = judge(paper("ocr") + other + varied(paper("ocr"), "oracle"))
    titles = {(row.start, row.title) for row in rows if row.dataset == "ocr"}
    of_both = ("truth", "oracle"), ("OCR, n = 10, λ = 1/n",)
    assert titles == {*itertools.product(*of_both), ("truth", "OCR, n = 10, λ = 7/n")}
    assert {row.title for row in rows if row.dataset == "usps"} == {"USPS"}  # it was not run


def test_a_variant_without_runs_on_a_dataset_is_not_measurable_there():
    rows = judge(paper() + varied(paper("ocr"), "oracle"))
    usps = [row for row in rows if (row.dataset, row.start) == ("usps", "oracle")]
    assert {row.verdict for row in usps} == {UNKNOWN}
    gain = next(row for row in rows if (row.key, row.start) == ("gain_plain", "oracle"))
    assert "on USPS to compare with" in gain.note


def test_a_claim_that_fails_at_the_paper_s_costs_says_what_it_does_at_measured_times():
    slow = replaced("stanford", "mpbcfw", lambda _: {"time": N * ITERATIONS * 1.0})
    counted = varied(slow, dataset_costs=COSTS)
    for measured, said in (
        (slow, judging.FAILS_TWICE),
        (paper(), "It holds at the times measured"),
    ):
        rows = {(r.key, r.dataset, r.counted): r for r in judge(measured + counted)}
        row = rows["faster_plain", "stanford", True]
        assert (row.verdict, said in row.note) == (FAILS, True)
        assert "measured here" not in rows["faster_plain", "stanford", False].note
        assert rows["faster_avg", "stanford", True].verdict == HOLDS
        given = {claim.key for claim in MPBCFW.claims if claim.given}
        assert given == {"share_bcfw", "call"} == given - {key for key, _, at in rows if at}


def test_the_paper_s_costs_give_bcfw_the_paper_s_shares():
    found = COSTS
    (call,) = (claim for claim in MPBCFW.claims if claim.key == "call")
    paper_call = call.measure.keywords["paper"]
    share = {"usps": 0.15, "ocr": 0.7} | dict.fromkeys(("weizmann", "horseseg", "stanford"), 0.99)
    d = {"usps": 2560, "ocr": 26 * 128 + 26**2, "weizmann": 2 * 649, "stanford": 9 * 649}
    assert found["horseseg"] == found["weizmann"]
    assert found.keys() == share.keys() == paper_call.keys()
    for name, (low, high) in paper_call.items():
        assert low <= found[name].call <= high
        assert found[name].share == pytest.approx(share[name], abs=1e-6)
    for name, size in d.items():
        assert found[name].plane == pytest.approx(size * found["usps"].call / 2560, rel=1e-3)
        assert 5e-9 < found[name].visit / size < 9e-9


def test_the_tables_of_several_variants():
    both = paper() + varied(paper(seeds=2), "oracle")
    rows = judge(both + varied(both, dataset_costs=COSTS))
    assert [row for row in rows if not row.counted] == judge(both)
    text = display.output(MPBCFW, rows).markdown()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["On the real data", "At the paper's costs", "How it is measured"]
    tables = [table.splitlines() for table in text.split("\n\n") if table.startswith("| #")]
    starts = [[line.split("|")[3].strip() for line in table[2:]] for table in tables[::3]]
    assert starts == [["oracle", "truth"] * 30, ["oracle", "truth"] * 28]
    assert "start at oracle: holds: 60" in text
    counted = [line.split("|")[1].strip() for line in tables[3][2::2]]
    assert counted == [f"{number}" for number in (*range(1, 30), 32) if number not in (15, 17)]
    assert "Claims 15 and 17 are not judged here" in text
    assert "| USPS | 3 µs | 3 µs | 17 µs | 15 % |" in text


def test_rows_do_not_depend_on_the_order_of_the_traces():
    traces = paper() + paper("ocr", source="synthetic")
    rows, others = judge(traces), judge(traces[::-1])
    assert str(others) == str(rows)
    one, other = (display.output(MPBCFW, each).markdown() for each in (rows, others))
    assert one == other


def test_the_markdown_is_a_table_and_says_what_it_rests_on():
    traces = [run("ocr", s, k, concurrent_runs=1) for s in ("bcfw", "mpbcfw") for k in range(3)]
    traces += paper("usps", source="synthetic", seeds=2)
    rows = judge(traces)
    text = display.output(MPBCFW, rows).markdown()
    lines = text.splitlines()
    tables = [table.splitlines() for table in text.split("\n\n") if table.startswith("| #")]
    cells = [[re.split(r"(?<!\\)\|", line)[1:-1] for line in table] for table in tables]
    # per source the overview, the rows, and those not counted; each with a header and a rule
    overview, real, readings, other_overview, synthetic, other_readings = cells
    details = [*real, *readings, *synthetic, *other_readings]
    assert len(details) == len(rows) + 8
    assert {len(row) for row in details} == {7}
    beside = sum(bool(claim.beside) for claim in MPBCFW.claims)
    # one is judged at the paper's costs
    assert len(overview) == len(other_overview) == len(MPBCFW.claims) - beside + 1
    assert {len(row) for row in overview + other_overview} == {6}
    rules = [k for k, line in enumerate(lines) if line.startswith("| ---")]
    assert all(lines[k - 2] == "" and lines[k - 1].startswith("| #") for k in rules)
    assert "## On the real data" in lines
    assert "## ⚠ On synthetic data, NOT on the real data" in lines
    assert "- OCR: 3 repeats; wall clock, 6 of 6 runs beside others" in lines
    assert "- USPS: 2 repeats; wall clock" in lines
    assert "- Stanford: nothing measured" in lines
    real = [row for row in rows if row.source == "real" and not row.beside]
    verdicts = ("holds", "does not hold", "not measurable", "not comparable")
    counts = "; ".join(f"{of}: {sum(row.verdict == of for row in real)}" for of in verdicts)
    assert f"Of {len(real)} pairs of claim and dataset: {counts}." in lines
    numbered = [line for line in lines if re.match(r"\d+\. ", line)]
    assert len(numbered) == len(MPBCFW.claims) - 1


def test_the_overview_shows_verdict_and_median():
    shown = display.overview([row for row in usual() if row.key in ("planes_fall", "call")])
    lines = document.lines(shown)
    assert lines[0] == "| # | claim | USPS | OCR | Weizmann (for HorseSeg) | Stanford |"
    assert [line.count("|") for line in lines] == [7] * 4
    rows = {row.dataset: row for row in usual() if row.key == "call"}
    marks = [display.MARKS[row.verdict] for row in rows.values()]
    assert [cell.split()[0] for cell in lines[2].split("|")[3:-1]] == marks
    median = rows["ocr"].ours.partition(" (")[0]
    assert f"{display.MARKS[rows['ocr'].verdict]} {median} |" in lines[2]


# ---- the paper's settings -----------------------------------------------------------------------


@functools.cache
def hashes(*overrides):
    """Return the hashes of runs that the paper's experiment defines, with overrides."""
    configs = load("mpbcfw_fig4").configs(overrides)
    return {config.with_source("real").own_hash() for config in configs}


def at(found, *overrides):
    """Return runs with the hashes of an experiment with overrides, whatever their solvers."""
    digests = itertools.cycle(sorted(hashes(*overrides)))
    return [replace(run, metadata={**run.metadata, "hash": next(digests)}) for run in found]


def claims_of(traces):
    best = {instance_of(t.metadata): BEST for t in traces}
    (output,) = kinds()["claims"].outputs(FigureData(Runs(traces, best)), ["mpbcfw"])
    return output


@pytest.mark.parametrize(
    "other",
    [
        "dataset.n_samples=300",
        "lam=0.1",
        "lam=10/n",
        "budget.max_seconds=1",
        "budget.max_iterations=3",
        "solver.T=1",
        "clock=wall",
        "oracle.cost_call=1",
    ],
)
def test_claims_are_judged_by_runs_with_the_papers_settings_alone(other):
    usps = ("dataset=usps",)
    runs = at(paper("usps"), *usps)
    judged = claims_of(runs)
    assert (judged.table["verdict"] == HOLDS).any()
    assert judging.OTHER_SETTINGS not in judged.markdown()
    others = [run("usps", s, seed, lam=0.7) for s in SINGLE + MULTI for seed in range(3)]
    away = at(others, *usps, other)
    assert claims_of([*runs, *away]).table.equals(judged.table)
    alone = claims_of(away)
    assert set(alone.table["verdict"]) == {UNKNOWN}
    assert set(alone.table["note"]) == {judging.OTHER_SETTINGS, judging.NO_RUNS}
    assert "`mpbcfw_claims`" in alone.markdown()


def test_any_number_of_seeds_has_the_papers_settings_and_a_stand_in_needs_none():
    assert hashes("seed=0") == hashes("seed=range(100)") == hashes()
    of_stand_ins = paper("usps", source="synthetic")
    made_up = paper("usps")
    for of, runs in (
        (MPBCFW, of_stand_ins),
        (replace(MPBCFW, experiments=()), made_up),
    ):
        assert list(map(len, of.at_settings(runs))) == [len(runs), 0]
    assert list(map(len, MPBCFW.at_settings(made_up))) == [0, len(made_up)]


def test_every_paper_with_claims_names_the_experiments_of_its_runs():
    for other in registry.papers().values():
        assert other.experiments
        assert all(load(name).configs() for name in other.experiments)


@real_data("ocr/letter.data.gz")
def test_the_report_judges_no_claim_by_a_part_of_the_data(tmp_path):
    options = ("dataset=ocr", "dataset.n_samples=20", "budget.max_iterations=2", "clock=work")
    where = f"results_dir={tmp_path}"
    assert call("run", "-m", "solver=bcfw,mpbcfw", *options, where).exit_code == 0
    assert call("report", where).exit_code == 0
    text = html.unescape((tmp_path / "report.html").read_text())
    left = re.findall(r"(\d+) of (\d+) pairs of claim and dataset are left out", text)
    assert left
    assert all(undecided == pairs for undecided, pairs in left)


# ---- one scale of the features for each set of images ------------------------------------------


def test_each_pair_of_scales_is_judged_by_itself():
    late = {"primal": behind(9)}
    runs = [
        run(dataset, solver, seed, lam=lam, **(late if slow and solver == "mpbcfw" else {}))
        for dataset, lam, slow in (
            *(("weizmann", 1.0, True), ("weizmann", 10.0, False), ("stanford", 10.0, False)),
        )
        for solver in SINGLE + MULTI
        for seed in range(2)
    ]
    counted = varied(runs, "oracle", COSTS)
    best = {instance_of(trace.metadata): BEST for trace in counted}
    table = tables.fitted(Runs(counted, best))
    assert table[["horses", "stanford"]].to_numpy().tolist() == [[10, 100], [100, 100]]
    assert table["1 horses"].str[0].tolist() == ["✗", "✓"]
    assert table["1 Stanford"].str[0].tolist() == ["✓", "✓"]
    assert (table["of"] == 10).all()
    assert table["hold"].tolist() == [9, 10]
