"""Online dual coordinate descent: bounds, rivals, chunks, and what its cache holds."""

import math
import runpy
from pathlib import Path

import helpers
import numpy as np
import pytest
from program import call, error_of, run_here

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import export, stream
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.chunked import ChunkedOracle
from ssvm_bench.planes.cache import PLANES
from ssvm_bench.results.trace import read_trace
from ssvm_bench.solvers.coordinate import dcd_online
from ssvm_bench.solvers.coordinate.dcd_online import SCHEDULES

DATA = {
    "multiclass": helpers.random_multiclass(40, 4, 3, seed=5),
    "chains": helpers.random_chains([3, 1, 4, 2, 3, 4, 1, 3], 3, 2, seed=0),
}
MULTICLASS = DATA["multiclass"]
TOL = {"gap": 1e-7, "one_pass": 1e-3, "larank": 1e-5, "mining": 1e-7}
"""One step an example and pass takes thousands of passes to close in."""

ABOUT = {"oracle": "multiclass", "d": 12}


def enclosed(posed, made, best, rounding=1e-6):
    """Let a solver do passes until it has converged; check its bounds; yield it after each."""
    before = 0.0
    for w, lower in helpers.reports(made, 3000):
        assert before - 1e-15 <= lower <= best + 1e-12
        assert best - 1e-12 <= made.upper == pytest.approx(posed.primal(w), rel=rounding)
        before = lower
        yield made
    assert made.converged


@pytest.fixture
def path(tmp_path):
    """Return the file of a stream."""
    file = tmp_path / "a.parquet"
    export.write(MULTICLASS, file, export.Export(), rows=16, **ABOUT)
    return file


def online(posed, **options):
    return helpers.solver(posed, "dcd_online", **options)


def in_chunks(data, rows):
    return Problem(ChunkedOracle(data, helpers.oracle, rows), 1 / data.n)


def optimum(data):
    return (
        helpers.converged_in(helpers.solver(helpers.problem(data), "dcd", tol=1e-11), 1000)
        .reported()
        .dual
    )


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_cyclic_variant_finds_the_optimum_of_dcd_between_its_bounds(schedule, name):
    of, tol = helpers.problem(DATA[name]), TOL[schedule]
    made = online(of, schedule=schedule, tol=tol, verify=True)
    *_, made = enclosed(of, made, optimum(DATA[name]), 1e-13)
    assert made.upper - made.reported().dual <= tol * made.upper


def test_a_random_plane_of_a_new_example_lowers_no_dual_and_finds_the_same_optimum():
    of, best, duals = helpers.problem(MULTICLASS), optimum(MULTICLASS), {}
    for plane in ("random", "largest"):
        options = {"schedule": "larank", "plane": plane, "verify": True, "tol": 1e-4}
        for made in enclosed(of, online(of, **options), best):
            duals.setdefault(plane, made.reported().dual)
            assert made.clock.oracle_calls % of.n == 0
        assert best - made.reported().dual <= 1e-4 * made.upper
    assert 0 < duals["random"] < duals["largest"]  # after one pass
    blind = helpers.iterated(online(of, schedule="one_pass", plane="random"), 20)
    assert math.isnan(blind.upper)
    assert not blind.converged


def test_a_random_plane_is_one_of_a_wrong_label():
    made = online(helpers.problem(MULTICLASS), plane="random")
    drawn = np.array([made._drawn(made.problem.oracle).labels for _ in range(400)])
    for truth, labels in zip(MULTICLASS.y, drawn.T, strict=True):
        counts = np.bincount(labels, minlength=4)
        assert counts[truth] == 0
        np.testing.assert_allclose(np.delete(counts, truth), 400 / 3, atol=50)
    with pytest.raises(ConfigError, match="draws a wrong label"):
        made.config.check_data(8, "chain")


def test_the_bound_of_the_cached_problem_is_none_of_all_examples():
    made = helpers.iterated(online(helpers.problem(MULTICLASS), tol=1e-6), 1)
    said = made.diagnostics()
    assert math.isnan(said["upper_bound"])
    assert made.reported().dual <= said["cached_bound"] < optimum(MULTICLASS)


def test_a_pass_without_a_step_verifies_what_it_leaves_alone():
    of = helpers.problem(MULTICLASS)
    made = helpers.converged_in(online(of, tol=1e-6), 300)
    assert made.upper == made.tracked == pytest.approx(of.primal(made.reported().w), rel=1e-13)
    assert made.clock.oracle_calls % of.n == 0  # no further pass


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_stream_in_chunks_gives_the_trace_of_the_whole(schedule):
    whole = [helpers.problem(MULTICLASS), *(in_chunks(MULTICLASS, rows) for rows in (1, 7, 40))]
    options = {"schedule": schedule, "cache": 16, "tol": 1e-3}
    first, *others = (helpers.iterated(online(posed, **options), 1) for posed in whole)
    for made in others:
        assert np.array_equal(made.reported().w, first.reported().w)
        assert made.reported().dual == first.reported().dual
        expected = {**first.diagnostics(), "tracked_bound": made.tracked}
        np.testing.assert_equal(made.diagnostics(), expected)
        assert made.tracked == pytest.approx(first.tracked, rel=1e-14)
        assert made.clock.oracle_calls == first.clock.oracle_calls == 40
        assert made.clock.plane_evaluations == first.clock.plane_evaluations


def test_planes_called_from_python_give_the_run_of_compiled_ones():
    of = helpers.problem(DATA["chains"])
    called = Problem(helpers.Plain(of.oracle), of.lam)
    one, other = (online(p, tol=1e-3) for p in (of, called))
    for _ in helpers.together(3, one, other):
        assert other.reported().w == pytest.approx(one.reported().w, abs=1e-10)
    assert other.diagnostics() == pytest.approx(one.diagnostics(), abs=1e-10, nan_ok=True)


def test_the_weights_of_the_cache_are_w_and_dropping_those_that_are_zero_is_no_change():
    made = online(helpers.problem(MULTICLASS), tol=1e-3)
    cached = made.cached
    for _ in helpers.reports(made, 4):
        w, circ = cached.shared.w.copy(), cached.offset
        cached.recompute()
        assert cached.shared.w == pytest.approx(w, abs=1e-13)
        kept = cached.planes
        cached.drop_idle()
        cached.recompute()
        assert cached.shared.w == pytest.approx(w, abs=1e-13)
        assert cached.offset == pytest.approx(circ, rel=1e-13)
        assert cached.planes <= kept
        assert made.working_set_mean() == cached.planes / 40
    blocks, alpha = cached.cache.blocks, cached.cache.numbers.alpha
    live = np.flatnonzero(cached.cache.example >= 0)
    of_terms = [alpha[blocks.start[t] : blocks.start[t] + blocks.n_planes[t]] for t in live]
    assert all((a[1:] > 0).all() and a.sum() == pytest.approx(1) for a in of_terms)
    assert len(set(cached.cache.example[live])) == live.size
    assert cached.cache.used[PLANES] == sum(a.size - 1 for a in of_terms)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_full_cache_fixes_weights_and_the_run_ends_with_a_true_lower_bound(schedule):
    made = online(helpers.problem(MULTICLASS), schedule=schedule, cache=8, tol=1e-3)
    for _ in helpers.reports(made, 300):
        if made.ended:
            break
    assert made.ended == "cache_full"
    said, cached = made.diagnostics(), made.cached
    assert said["fixed_examples"] > 0
    assert said["cache_size"] <= 8
    assert 0 < made.reported().dual <= optimum(MULTICLASS)
    w = cached.shared.w.copy()
    cached.fix(0)
    cached.recompute()
    assert cached.planes == 0
    assert cached.shared.w == pytest.approx(w, abs=1e-13)
    assert cached.upper() == pytest.approx(cached.lower(), abs=1e-13)


def test_those_farthest_beyond_the_margin_are_fixed_first():
    cached = helpers.iterated(online(helpers.problem(MULTICLASS), tol=1e-3), 1).cached
    cached.upper()
    order = np.argsort(-cached._lowest[: cached.terms], kind="stable")
    example = cached.cache.example[: cached.terms].copy()
    cached.fix(cached.planes - 3)
    assert set(example) - set(cached.cache.example) == set(example[order[:3]])


def test_larank_visits_ten_for_each_new_example_and_one_pass_none():
    one_pass, larank = (
        helpers.iterated(online(helpers.problem(MULTICLASS), schedule=of), 1).clock.approx_calls
        for of in ("one_pass", "larank")
    )
    assert one_pass < 2 * 40
    assert 10 * 30 < larank < 11 * 40 + 2 * 40


def test_later_most_new_examples_change_nothing_and_old_ones_are_optimised(monkeypatch):
    """Section 4, exploration vs optimization: within the first pass, tenth by tenth."""
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.syspath_prepend(docs)
    first_pass = runpy.run_path(str(docs / "online.py"))["first_pass"]
    data = helpers.random_multiclass(600, 3, 8, seed=7)
    passed, visits, _ = first_pass(data, helpers.oracle, 0.01, "one_pass")
    assert passed[0] < 0.5 < passed[-3:].mean()
    assert visits.max() <= 1  # an example's own step
    _, visits, _ = first_pass(data, helpers.oracle, 0.01, "gap")
    assert visits[-3:].mean() > 3 * visits[:3].mean()
    passed, _, steps = first_pass(data, helpers.oracle, 0.01, "larank")
    assert 0 <= steps.min() <= steps.max() <= 1  # one plane an example
    assert (steps[3:] > 1 - passed[3:]).all()  # "more likely to trigger an update"


def test_an_optimisation_from_zero_comes_to_the_same_bounds_by_more_visits():
    visits = []
    for hot in (True, False):
        made = online(helpers.problem(MULTICLASS), hot=hot, tol=1e-6, verify=True)
        helpers.converged_in(made, 50)
        assert made.upper - made.reported().dual <= 1e-6 * made.upper
        visits.append(made.clock.approx_calls)
    assert visits[0] < visits[1]


def test_an_order_at_random_is_for_examples_in_memory():
    sequential, random = (
        helpers.iterated(online(helpers.problem(MULTICLASS), order=order, schedule="one_pass"), 1)
        .reported()
        .w
        for order in ("sequential", "random")
    )
    assert not np.array_equal(sequential, random)


def test_a_run_on_a_stream_is_the_run_in_memory(tmp_path, path):
    words = ("solver=dcd_online", "clock=work", "budget.max_iterations=2", "solver.verify=true")
    data = ("dataset=stream", f"dataset.path={path}")
    runs = [
        run_here(tmp_path / f"{chunk}", *words, f"solver.chunk={chunk}", data=data)
        for chunk in (7, 40)
    ]
    one, other = [read_trace(run.folder).frame for run in runs]
    columns = ["iteration", "oracle_calls", "time", "dual", "w_norm", "cache_size", "cached_bound"]
    assert one[columns].equals(other[columns])
    assert list(one["oracle_calls"]) == [0, 80, 160]
    assert (one["gap"] >= 0).all()
    np.testing.assert_allclose(one["primal"], other["primal"], rtol=1e-14)
    np.testing.assert_allclose(one["upper_bound"][1:], one["primal"][1:], rtol=1e-14)
    assert runs[0].summary["train_loss"] == pytest.approx(runs[1].summary["train_loss"])
    assert run_here(tmp_path / "7", *words, data=data).status == "skipped"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("solver.order=random", "solver.order=random needs the examples in memory"),
        ("oracle.class_weight=balanced", "class_weight=balanced"),
    ],
)
def test_what_a_stream_cannot_do_is_told_before_it_is_read(path, word, message):
    result = call("run", "solver=dcd_online", "dataset=stream", f"dataset.path={path}", word)
    assert message in error_of(result, 2)


def test_a_stream_that_goes_away_ends_the_run_with_the_stream_s_message(path, monkeypatch):
    optimise = dcd_online.CachedProblem.optimise

    def deleting(self, *arguments):
        path.unlink(missing_ok=True)
        optimise(self, *arguments)

    (config,) = compose_runs(["dataset=stream", f"dataset.path={path}"])
    made = helpers.solver(in_chunks(stream.open(config.dataset), 8), "dcd_online")
    monkeypatch.setattr(dcd_online.CachedProblem, "optimise", deleting)
    with pytest.raises(RunFailedError, match="it was deleted while it was read"):
        made.iterate()


def test_an_absolute_tolerance_is_a_difference_of_the_paper_s_objective():
    posed = helpers.problem(MULTICLASS)
    relative, absolute = (online(posed, verify=True, tol=0.1, absolute=of) for of in (False, True))
    for made in (relative, absolute):
        assert len([*helpers.reports(made, 300)]) < 300
    gaps = [made.upper - made.cached.lower() for made in (relative, absolute)]
    assert gaps[0] <= 0.1 * relative.upper
    assert gaps[1] / posed.lam <= 0.1  # P/λ is the paper's objective
    assert relative.upper / posed.lam > 1.0  # so that the second is the finer one
    assert gaps[1] < gaps[0]
