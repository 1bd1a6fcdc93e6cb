"""Bounds with all their constants, on hand-made traces and on runs of the solvers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import Dense, iterated, problem, random_chains, random_graphs, reports, solver
from traces import make_trace

from ssvm_bench.claims import judging
from ssvm_bench.papers.bcfw_poster import measures, theorems
from ssvm_bench.papers.bcfw_poster.paper import PAPER as POSTER
from ssvm_bench.results.table import Best, instance_of

EVERY_SOLVER = replace(POSTER, solvers=POSTER.solvers | POSTER.beside_runs_of, beside_runs_of=())

N, LAM, R = 200, 0.01, 0.1
H0 = 10.0
PASSES = np.array([0, 4, 8, 16, 32, 64])
CALLS = N * PASSES
BEST = Best(primal=1 + 1e-9, dual=1.0)
BOUNDS = {  # as the papers have them; k₀ = ⌈log₂ 2.5⌉
    "bcfw": 6 * N / (CALLS + 1) * (4 * R**2 / (LAM * N) + H0),
    "fw": 6 / (PASSES + 1) * (4 * R**2 / LAM + H0),
    "one_slack": 16 * R**2 / (LAM * np.where(PASSES >= 2 + 4, PASSES - 2, 1e-9)),
    "ssg": 17 * (2 * R) ** 2 * (1 + np.log(CALLS + 1)) / (LAM * (CALLS + 1)),
}
OPTIONS = {"bcfw": {"step": "line_search", "sampling": "uniform"}}
OPTIONS |= {"one_slack": {"cache": 0}, "ssg": {"sampling": "uniform"}}
NAMES = {"bcfw": "block Frank-Wolfe", "fw": "batch Frank-Wolfe"}
NAMES |= {"one_slack": "1-slack cutting planes", "ssg": "stochastic subgradients"}


def run(name, error, seed=0, radius=R, calls=CALLS, n=N, **options):
    """Return a run with such gaps, or primal errors if it has no dual value."""
    error, known = np.asarray(error, float), {"radius": radius} if radius else {}
    of_primal = name == "ssg"
    return make_trace(
        1 + error if of_primal else 1 + error / 2,
        math.nan * error if of_primal else 1 - error / 2,
        iteration=np.arange(len(calls)),
        oracle_calls=calls,
        solver=name,
        seed=seed,
        lam=LAM,
        options={**OPTIONS.get(name, {}), **options},
        dataset={"name": "ocr", "n": n, "fingerprint": f"{n}", **known},
        config={"dataset": {"name": "ocr", "n_samples": None if n == N else n}},
    )


def at(name, share):
    """Return errors that are at most at a share of the bound, and there where that is below h₀."""
    error = share * BOUNDS[name]
    return error if name == "ssg" else np.minimum(error, H0)


def judged(runs, key, best=BEST):
    """Return the only row of a claim; some solver of the poster is always there."""
    runs = [*runs, run("cutting_plane", H0 / (1 + PASSES), radius=None)]
    rows = judging.evaluate(EVERY_SOLVER, runs, {instance_of(made.metadata): best for made in runs})
    (row,) = (row for row in rows if row.key == key)
    return row


@pytest.mark.parametrize(("share", "verdict"), [(0.9, judging.HOLDS), (1.1, judging.FAILS)])
@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_decides_and_nothing_else(name, share, verdict):
    row = judged([run(name, at(name, share))], f"rate_{name}")
    assert (row.median, row.verdict) == (pytest.approx(share, rel=1e-6), verdict)
    assert f"R ≤ {R}" in row.note


@pytest.mark.parametrize(("more", "verdict"), [(1.1, judging.HOLDS), (1.4, judging.FAILS)])
@pytest.mark.parametrize("name", ["bcfw", "ssg"])
def test_expectations_are_means_over_the_repeats(name, more, verdict):
    error, factor = at(name, 0.9), np.where(PASSES > 0, more, 1.0)
    row = judged([run(name, error), run(name, factor * error, seed=1)], f"rate_{name}")
    assert (row.median, row.verdict) == (pytest.approx(0.9 * (1 + more) / 2), verdict)


@pytest.mark.parametrize("name", [name for name in BOUNDS if name != "ssg"])
def test_gaps_may_rise_again_after_they_were_low(name):
    error = at(name, 0.1)
    error[-2:] = H0, error[-2]
    assert judged([run(name, error)], f"rate_{name}").verdict == judging.HOLDS


def test_a_flat_curve_is_within_a_bound_that_is_far_above_it():
    flat = np.full(PASSES.size, H0)
    assert judged([run("fw", flat, radius=100.0)], "rate_fw").verdict == judging.HOLDS
    assert judged([run("fw", flat)], "rate_fw").verdict == judging.FAILS


def test_the_slope_is_a_note():
    error = at("fw", 0.9)
    error[1:] = 5.0 * CALLS[1:] ** -0.5
    assert judged([run("fw", error)], "rate_fw").note.endswith("second half: -0.5")
    short = judged([run("fw", error[:3], calls=CALLS[:3])], "rate_fw")
    assert short.note.endswith("second half: –")


def test_one_run_that_tells_r_is_enough():
    silent = run("fw", at("fw", 0.9), radius=None)
    row = judged([silent], "rate_fw")
    assert (row.verdict, row.note[:14]) == (judging.UNKNOWN, "no run tells R")
    told = judged([silent, run("one_slack", at("one_slack", 0.5))], "rate_fw")
    assert told.median == pytest.approx(0.9)


def test_runs_that_a_theorem_is_not_about_do_not_count():
    other = run("bcfw", at("bcfw", 0.5), sampling="permutation")
    row = judged([other], "rate_bcfw")
    assert row.note == "no finished runs of BCFW (sampling=uniform)"
    early = run("one_slack", at("one_slack", 0.5)[:2], calls=CALLS[:2])
    row = judged([early], "rate_one_slack")
    assert (row.verdict, row.note) == (judging.UNKNOWN, theorems.TOO_SHORT)


def test_a_primal_error_above_its_bound_may_be_one_of_the_optimum():
    runs = [run("ssg", at("ssg", 1.1))]
    loose = Best(primal=1 + 0.2 * BOUNDS["ssg"][0], dual=1.0)
    row = judged(runs, "rate_ssg", loose)
    assert (row.verdict, row.note) == (judging.UNKNOWN, measures.TOO_LOOSE)
    lower = [run("ssg", at("ssg", 0.9))]
    assert judged(lower, "rate_ssg", loose).verdict == judging.HOLDS


def test_cutting_planes_are_bounded_from_the_fourth_pass_on_after_those_to_a_small_gap():
    k = np.arange(1, 9)
    bound = theorems.THEOREMS["1-slack cutting planes"].bound(k, R**2, LAM, N, H0)
    assert np.isfinite(bound).tolist() == [False] * 5 + [True] * 3  # k₀ = 2
    assert bound[5] == pytest.approx(16 * R**2 / (LAM * 4))


@pytest.mark.parametrize("name", ["fw", "one_slack"])
def test_calls_are_bounded_in_proportion_to_n(name):
    def verdict(share, of_half, radius=R):
        half = run(name, at(name, of_half), n=N // 2, calls=CALLS // 2, radius=radius)
        return judged([run(name, at(name, share)), half], f"size_{name}").verdict

    assert verdict(0.9, 0.9) == verdict(0.5, 0.9, radius=R / 10) == judging.HOLDS
    assert verdict(0.9, 1.1) == verdict(1.1, 0.9) == judging.FAILS
    alone = judged([run(name, at(name, 0.9))], f"size_{name}")
    assert (alone.verdict, "part of the examples" in alone.note) == (judging.UNKNOWN, True)


@pytest.mark.parametrize("name", BOUNDS)
def test_the_solvers_keep_to_their_bounds(name):
    data, theorem = random_chains([3, 1, 4, 2, 3], 3, 2, seed=3), theorems.THEOREMS[NAMES[name]]
    posed = problem(data, 0.1)
    optimum = iterated(solver(posed, "mpbcfw_pairwise"), 300).reported().dual
    lowest = at_0 = posed.primal(np.zeros(posed.d))
    constants = Dense(data).radius2(), posed.lam, posed.n, at_0
    made = solver(posed, name, **OPTIONS.get(name, {}))
    for passes, (w, dual) in enumerate(reports(made, 40), 1):
        lowest = min(lowest, posed.primal(w) - dual)
        error = posed.primal(w) - optimum if theorem.error == "primal" else lowest
        k = passes if theorem.in_passes else passes * posed.n
        assert 0 <= error <= theorem.bound(np.array([k]), *constants)[0]
    assert made.clock.oracle_calls == passes * posed.n


def test_the_radius_is_known_where_inner_products_are():
    chains, graphs = random_chains([3, 1, 4], 3, 2, seed=3), random_graphs([4, 2], 2, 4, seed=8)
    assert problem(chains).oracle.radius() >= math.sqrt(Dense(chains).radius2())
    assert math.isnan(problem(graphs).oracle.radius())
