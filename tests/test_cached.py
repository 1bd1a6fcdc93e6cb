"""Visits of several steps: their numbers against dense ones, and what must hold of all options."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers import SMALL as DATA
from helpers import (
    TINY,
    Plain,
    Table,
    cached,
    converged_in,
    iterated,
    optimum,
    oracle,
    problem,
    solver,
)

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes import dual_iterate
from ssvm_bench.solvers.block.acceleration import Acceleration
from ssvm_bench.solvers.fw import STARTS

LAM = 0.02
STEPS = ("fw", "away", "pairwise")
NAMES = ("steps", "inner_steps", "sampling", "share", "shrink", "kappa", "average", "in_out")
OPTIONS = [
    dict(zip(NAMES, values, strict=True))
    for values in itertools.product(
        *(STEPS, (1, 4), ("permutation", "gap"), (None, 0.25), (0.0, 0.5), (0.0, 5.0)),
        *((False, True), (None, 0.5)),
    )
]


def run(posed, iterations, name="mpbcfw_pairwise", **options):
    """Yield the solver after each iteration."""
    made = solver(posed, name, **options)
    for _ in range(iterations):
        made.iterate()
        yield made


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_one_step_a_visit_is_mpbcfw(data, average, rows, start):
    kept = Problem(Plain(oracle(data)), 1 / data.n) if rows and data.n_labels > 2 else problem(data)
    paper = run(kept, 15, "mpbcfw", average=average, T=3, start=start)
    ours = run(kept, 15, "mpbcfw_gram", average=average, T=3, inner_steps=1, start=start)
    for one, other in zip(paper, ours, strict=True):
        np.testing.assert_allclose(other.reported().w, one.reported().w, atol=1e-9)
        assert other.reported().dual == pytest.approx(one.reported().dual, abs=1e-12)
        assert other.approx_passes == one.approx_passes
        assert (other.phi.blocks.n_planes == one.phi.blocks.n_planes).all()


@pytest.mark.parametrize(("first", "name"), list(enumerate(TINY)))
def test_every_combination_of_options_reaches_the_optimum(name, first):
    """On each kind of problem a fifth of them, in which all values of all options meet."""
    posed = problem(TINY[name], LAM)
    best = optimum(posed)
    for options in OPTIONS[first::5]:
        dual = -np.inf
        # Frank–Wolfe steps and averages converge sublinearly, the others linearly
        linear = options["steps"] != "fw" and not options["average"]
        for made in run(posed, 500 if linear else 40, M=5, **options):
            iterate = made.reported()
            assert iterate.dual <= best + 1e-9, options
            if not options["average"]:
                assert iterate.dual >= dual - 1e-12, options
            dual = iterate.dual
            if dual > best * (1 - 5e-7):
                break
        assert posed.primal(iterate.w) >= best - 1e-9
        assert dual > best - (1e-6 if linear else 0.2) * best, options


def follow_a_path(made, iterations):
    """Yield the solver after each iteration, and after each change of λ."""
    for lam in (4 * LAM, 2 * LAM, LAM):
        made.warm_start(lam, made.clock)
        yield made
        for _ in range(iterations // 3):
            made.iterate()
            yield made


@pytest.mark.parametrize(
    ("kappa", "start"), [(0.0, "truth"), (20.0, "truth"), (0.0, "oracle"), (20.0, "oracle")]
)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", DATA)
def test_the_cached_numbers_are_those_of_the_planes(name, steps, kappa, start):
    data = DATA[name]
    table = Table(data)
    n = table.n
    options = {"steps": steps, "inner_steps": 3, "T": 4, "kappa": kappa, "start": start}
    for made in follow_a_path(solver(problem(data), "mpbcfw_pairwise", **options), 24):
        numbers = made.visits.policy.simplex
        phi = np.zeros(table.d + 1)
        for i in range(n):
            _, planes = cached(made.phi.blocks, table, i)
            planes, known = n * np.array(planes), numbers.known[i]
            first, room = numbers.start[i], numbers.room[i]
            gram = numbers.gram[numbers.gram_start[i] :][: room * room].reshape(room, room)
            stars = planes[:known, :-1]
            np.testing.assert_allclose(gram[:known, :known], stars @ stars.T, atol=1e-10)
            if steps == "fw":
                continue
            assert known == len(planes)
            alpha = numbers.alpha[first : first + known]
            assert (alpha >= 0).all()
            assert alpha.sum() == pytest.approx(1, abs=1e-12)
            of_term = alpha @ planes
            assert made.phi.blocks.term_offset[i] == pytest.approx(of_term[-1], abs=1e-12)
            product = numbers.product[first : first + known]
            np.testing.assert_allclose(product, stars @ of_term[:-1], atol=1e-9)
            assert numbers.square[i] == pytest.approx(of_term[:-1] @ of_term[:-1], abs=1e-9)
            phi += of_term / n
        if steps != "fw":
            np.testing.assert_allclose(made.reported().w, -phi[:-1] / made.problem.lam, atol=1e-9)


@pytest.mark.parametrize("steps", ["away", "pairwise"])
def test_planes_with_weight_stay(steps):
    data = DATA["chains"]
    table, weighted, dropped = Table(data), [set()] * data.n, False
    options = {"steps": steps, "N": 1, "T": 1, "M": 3}
    for made in run(problem(data, LAM), 20, **options):
        numbers = made.visits.policy.simplex
        for i in range(data.n):
            alpha = numbers.alpha[numbers.start[i] :][: made.phi.blocks.n_planes[i]]
            assert alpha.sum() == pytest.approx(1, abs=1e-12)
            # over N, and after T iterations, the others go
            new = made.phi.blocks.active[made.phi.blocks.start[i] :][: alpha.size] == made.iteration
            assert ((alpha > 0) | new).all()
            # a step has taken all the weight of one that is gone
            found = np.array(cached(made.phi.blocks, table, i)[0])
            dropped |= not weighted[i] <= set(found.tolist())
            weighted[i] = set(found[alpha > 0].tolist())
    assert dropped


def test_gap_sampling_draws_in_proportion():
    made = solver(problem(DATA["multiclass"]), "mpbcfw_pairwise", sampling="gap")
    gaps = np.array([0.0, 1.0, 3.0] + [0.0] * 9)
    order = made.order
    made.visits.policy.gaps[:] = gaps
    drawn = np.bincount(order.drawn(4000), minlength=12)
    assert drawn[[0, *range(3, 12)]].sum() == 0
    assert drawn[2] == pytest.approx(3000, abs=150)  # five standard deviations
    made.visits.policy.gaps[:] = 0
    assert sorted(order.drawn(12)) == list(range(12))


@pytest.mark.parametrize("name", DATA)
def test_gap_sampling_refreshes_with_a_permutation(name):
    data = DATA[name]
    made = solver(problem(data, LAM), "bcfw_gap", refresh=3)
    visited = []
    prepare = made.visits.prepare
    made.visits.prepare = lambda order, *rest: (visited.append(order), prepare(order, *rest))[1]
    iterated(made, 7)
    whole = [order for order in visited if order.size == data.n]
    assert [sorted(order) == list(range(data.n)) for order in whole] == [True] * 3
    assert sum(order.size for order in visited) == 7 * data.n == made.clock.oracle_calls
    assert (made.phi.blocks.n_planes == 0).all()


@pytest.mark.parametrize("name", DATA)
def test_spared_calls_are_counted_as_calls_of_working_sets(name):
    data = DATA[name]
    made = iterated(solver(problem(data, LAM), "mpbcfw_pairwise", share=0.25, M=0, refresh=10), 30)
    assert made.clock.oracle_calls + made.clock.approx_calls == 30 * data.n
    assert 3 * data.n < made.clock.oracle_calls < 30 * data.n
    assert np.isfinite(made.visits.policy.gaps).all()


@pytest.mark.parametrize("cost", [0.0, 3.0, 30.0])
def test_the_planes_will_do_where_they_promise_more_a_second(cost):
    data = DATA["chains"].head(1)
    table, asked = Table(data), []
    options = {"by_seconds": True, "M": 0, "inner_steps": 1, "steps": "fw", "refresh": 1000}
    made = solver(problem(data, LAM), "mpbcfw_pairwise", clock=Clock("work", cost, 0, 1), **options)
    made.iterate()
    for _ in range(20):
        w, before = np.append(made.phi.outer_w(), 1), made.clock.oracle_calls
        phi = np.append(-LAM * w[:-1], made.phi.offset)
        of_planes = max(plane @ w for plane in cached(made.phi.blocks, table, 0)[1]) - phi @ w
        of_oracle = made.visits.policy.gaps[0]
        made.iterate()
        asked.append(made.clock.oracle_calls > before)
        assert asked[-1] == (of_planes * (1 + cost) <= of_oracle)
    assert any(asked)
    assert not all(asked)


def test_one_thing_says_when_the_planes_will_do():
    with pytest.raises(ConfigError, match=r"by_seconds takes the place of solver\.share"):
        solver(problem(DATA["chains"]), "mpbcfw_seconds", share=0.25)


@pytest.mark.parametrize("name", ["chains", "multiclass"])
def test_oracles_are_asked_between_w_and_the_centre(name):
    posed, asked = problem(DATA[name], LAM), []

    class Watched(Plain):
        def argmax(self, w, i):
            asked.append((w.copy(), made.phi.outer_w()))
            return super().argmax(w, i)

    options = {"M": 3, "in_out": 0.75, "refresh": 4, "inner_steps": 1}
    made = solver(replace(posed, oracle=Watched(posed.oracle)), "mpbcfw_gram", **options)
    of_labelings = solver(posed, "mpbcfw_gram", **options)
    centre = np.zeros(posed.d)
    for iteration in range(10):
        centre += 0.5 * (made.phi.outer_w() - centre)
        made.iterate()
        of_labelings.iterate()
        for at, w in asked:
            share = 0.75 if iteration % 4 else 0.0
            np.testing.assert_allclose(at, (1 - share) * w + share * centre, atol=1e-12)
        assert len(asked) == posed.n
        asked.clear()
        np.testing.assert_allclose(of_labelings.phi.outer_w(), made.phi.outer_w(), atol=1e-9)


def test_that_nothing_changes_away_from_w_shows_nothing():
    posed = problem(DATA["multiclass"], LAM)
    made = solver(posed, "mpbcfw_pairwise", in_out=0.5, refresh=7)
    converged_in(made, 600)
    assert made.iteration % 7 == 1
    assert posed.primal(made.reported().w) - made.reported().dual < 1e-9


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", DATA)
def test_passes_that_go_astray_are_undone(name, steps, average, monkeypatch):
    undone = []

    def fail(self, w):
        self.leave(w)
        undone.append(self._begin(w, None))

    monkeypatch.setattr(Acceleration, "fail", fail)
    posed, dual = problem(DATA[name], LAM), -np.inf
    options = {"steps": steps, "kappa": 1e4, "M": 4, "average": average}
    for made in run(posed, 30, **options):  # κ is much too large, and never reduced
        current = made.phi.dual()
        assert current >= dual - 1e-12
        dual = current
        w = made.phi.shared.w.copy()
        dual_iterate.sum_of_terms(made.phi.blocks, LAM, w)
        np.testing.assert_allclose(made.phi.shared.w, w, atol=1e-9)
    assert undone


def test_the_centre_runs_ahead():
    lam, kappa, w = 0.5, 1.5, np.array([1.0, -2.0])
    acceleration = Acceleration(lam, kappa / lam)
    acceleration.begin(w)
    assert acceleration.tilde == lam + kappa
    phi = -lam * w
    centre = last = w.copy()
    beta = (1 - 0.5) / (1 + 0.5)  # q = λ/(λ + κ) = 1/4
    for move in ([0.5, 0.1], [0.0, 0.3], [-0.2, 0.0]):
        np.testing.assert_allclose(w, (kappa * centre - phi) / (lam + kappa))
        phi = phi + move
        w -= np.array(move) / (lam + kappa)
        tilde = w.copy()
        assert acceleration.turn(w) == pytest.approx((phi**2).sum() / lam**2)
        centre, last = tilde + beta * (tilde - last), tilde
    acceleration.end(w)
    np.testing.assert_allclose(w, -phi / lam)
