"""Visits of several steps: their numbers against dense ones, and what must hold of all options."""

import itertools
from dataclasses import replace

import helpers
import numpy as np
import pytest

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.planes import dual_iterate
from ssvm_bench.solvers.block.acceleration import Acceleration
from ssvm_bench.solvers.fw import STARTS

LAM, DATA = 0.02, helpers.SMALL
STEPS = ("fw", "away", "pairwise")
NAMES = ("steps", "inner_steps", "sampling", "share", "shrink", "kappa", "average", "in_out")
OPTIONS = [
    dict(zip(NAMES, values, strict=True))
    for values in itertools.product(
        *(STEPS, (1, 4), ("permutation", "gap"), (None, 0.25), (0.0, 0.5), (0.0, 5.0)),
        *((False, True), (None, 0.5)),
    )
]


def pairwise(data, **options):
    """Return a solver with pairwise steps, if the options do not say otherwise."""
    return helpers.solver(helpers.problem(data, LAM), "mpbcfw_pairwise", **options)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_one_step_a_visit_is_mpbcfw(data, average, rows, start):
    kept = helpers.problem(data)
    if rows and data.n_labels > 2:
        kept = replace(kept, oracle=helpers.Plain(kept.oracle))
    options = {"average": average, "T": 3, "start": start}
    one = helpers.solver(kept, "mpbcfw", **options)
    other = helpers.solver(kept, "mpbcfw_gram", inner_steps=1, **options)
    for _ in helpers.together(15, one, other):
        np.testing.assert_allclose(other.reported().w, one.reported().w, atol=1e-9)
        assert other.reported().dual == pytest.approx(one.reported().dual, abs=1e-12)
        assert other.approx_passes == one.approx_passes
        assert (other.phi.blocks.n_planes == one.phi.blocks.n_planes).all()


@pytest.mark.parametrize(("first", "name"), list(enumerate(helpers.TINY)))
def test_every_combination_of_options_reaches_the_optimum(name, first):
    """On each kind of problem a fifth of them, in which all values of all options meet."""
    posed = helpers.problem(helpers.TINY[name], LAM)
    best = helpers.optimum(posed)
    for options in OPTIONS[first::5]:
        # Frank–Wolfe steps and averages converge sublinearly, the others linearly
        linear = options["steps"] != "fw" and not options["average"]
        made = helpers.solver(posed, "mpbcfw_pairwise", M=5, **options)
        most, fall = 500 if linear else 40, np.inf if options["average"] else 1e-12
        for _, dual in helpers.enclosing(made, best, most, fall=fall):
            if dual > best * (1 - 5e-7):
                break
        assert dual > best - (1e-6 if linear else 0.2) * best, options


def follow_a_path(made, iterations):
    """Yield the solver after each iteration, and after each change of λ."""
    for lam in (4 * LAM, 2 * LAM, LAM):
        made.warm_start(lam, made.clock)
        yield made
        for _ in helpers.together(iterations // 3, made):
            yield made


@pytest.mark.parametrize("kappa", [0.0, 20.0])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", DATA)
def test_the_cached_numbers_are_those_of_the_planes(name, steps, kappa, start):
    table, n = helpers.Table(DATA[name]), DATA[name].n
    options = {"steps": steps, "inner_steps": 3, "T": 4, "kappa": kappa, "start": start}
    for made in follow_a_path(pairwise(DATA[name], **options), 24):
        numbers = made.visits.policy.simplex
        phi = np.zeros(table.d + 1)
        for i in range(n):
            _, planes = helpers.cached(made.phi.blocks, table, i)
            planes, known = n * np.array(planes), numbers.known[i]
            room, alpha = numbers.room[i], helpers.plane_weights(made, i)
            gram = numbers.gram[numbers.gram_start[i] :][: room * room].reshape(room, room)
            stars = planes[:known, :-1]
            np.testing.assert_allclose(gram[:known, :known], stars @ stars.T, atol=1e-10)
            if steps == "fw":
                continue
            assert known == len(planes)
            assert (alpha >= 0).all()
            assert alpha.sum() == pytest.approx(1, abs=1e-12)
            of_term = alpha @ planes
            assert made.phi.blocks.term_offset[i] == pytest.approx(of_term[-1], abs=1e-12)
            product = numbers.product[numbers.start[i] :][:known]
            np.testing.assert_allclose(product, stars @ of_term[:-1], atol=1e-9)
            assert numbers.square[i] == pytest.approx(of_term[:-1] @ of_term[:-1], abs=1e-9)
            phi += of_term / n
        if steps != "fw":
            np.testing.assert_allclose(made.reported().w, -phi[:-1] / made.problem.lam, atol=1e-9)


@pytest.mark.parametrize("steps", ["away", "pairwise"])
def test_planes_with_weight_stay(steps):
    data = DATA["chains"]
    table, weighted, dropped = helpers.Table(data), [set()] * data.n, False
    made = pairwise(data, steps=steps, N=1, T=1, M=3)
    for _ in helpers.together(20, made):
        blocks = made.phi.blocks
        for i in range(data.n):
            alpha = helpers.plane_weights(made, i)
            assert alpha.sum() == pytest.approx(1, abs=1e-12)
            # over N, and after T iterations, the others go
            new = blocks.active[blocks.start[i] :][: alpha.size] == made.iteration
            assert ((alpha > 0) | new).all()
            # a step has taken all the weight of one that is gone
            found = np.array(helpers.cached(blocks, table, i)[0])
            dropped |= not weighted[i] <= set(found.tolist())
            weighted[i] = set(found[alpha > 0].tolist())
    assert dropped


def test_gap_sampling_draws_in_proportion():
    made = pairwise(DATA["multiclass"], sampling="gap")
    made.visits.policy.gaps[:] = [0.0, 1.0, 3.0] + [0.0] * 9
    drawn = np.bincount(made.order.drawn(4000), minlength=12)
    assert drawn[1:3].sum() == 4000
    assert drawn[2] == pytest.approx(3000, abs=150)  # five standard deviations
    made.visits.policy.gaps[:] = 0
    assert sorted(made.order.drawn(12)) == list(range(12))


@pytest.mark.parametrize("name", DATA)
def test_gap_sampling_refreshes_with_a_permutation(name):
    data = DATA[name]
    made, visited = helpers.solver(helpers.problem(data, LAM), "bcfw_gap", refresh=3), []
    prepare = made.visits.prepare
    made.visits.prepare = lambda order, *rest: (visited.append(order), prepare(order, *rest))[1]
    helpers.iterated(made, 7)
    whole = [sorted(order) == list(range(data.n)) for order in visited if order.size == data.n]
    assert whole == [True] * 3
    assert sum(order.size for order in visited) == 7 * data.n == made.clock.oracle_calls
    assert (made.phi.blocks.n_planes == 0).all()


@pytest.mark.parametrize("name", DATA)
def test_spared_calls_are_counted_as_calls_of_working_sets(name):
    data = DATA[name]
    made = helpers.iterated(pairwise(data, share=0.25, M=0, refresh=10), 30)
    assert made.clock.oracle_calls + made.clock.approx_calls == 30 * data.n
    assert 3 * data.n < made.clock.oracle_calls < 30 * data.n
    assert np.isfinite(made.visits.policy.gaps).all()


@pytest.mark.parametrize("cost", [0.0, 3.0, 30.0])
def test_the_planes_will_do_where_they_promise_more_a_second(cost):
    data = DATA["chains"].head(1)
    table, asked = helpers.Table(data), []
    options = {"by_seconds": True, "M": 0, "inner_steps": 1, "steps": "fw", "refresh": 1000}
    made = pairwise(data, clock=Clock("work", cost, 0, 1), **options)
    made.iterate()
    for _ in range(20):
        w, before = np.append(made.phi.outer_w(), 1), made.clock.oracle_calls
        phi = np.append(-LAM * w[:-1], made.phi.offset)
        _, planes = helpers.cached(made.phi.blocks, table, 0)
        of_planes = max(plane @ w for plane in planes) - phi @ w
        of_oracle = made.visits.policy.gaps[0]
        made.iterate()
        asked.append(made.clock.oracle_calls > before)
        assert asked[-1] == (of_planes * (1 + cost) <= of_oracle)
    assert {*asked} == {False, True}


def test_one_thing_says_when_the_planes_will_do():
    with pytest.raises(ConfigError, match=r"by_seconds takes the place of solver\.share"):
        helpers.solver(helpers.problem(DATA["chains"]), "mpbcfw_seconds", share=0.25)


@pytest.mark.parametrize("name", ["chains", "multiclass"])
def test_oracles_are_asked_between_w_and_the_centre(name):
    posed, asked = helpers.problem(DATA[name], LAM), []

    class Watched(helpers.Plain):
        def argmax(self, w, i):
            asked.append((w.copy(), made.phi.outer_w()))
            return super().argmax(w, i)

    options = {"M": 3, "in_out": 0.75, "refresh": 4, "inner_steps": 1}
    made = helpers.solver(replace(posed, oracle=Watched(posed.oracle)), "mpbcfw_gram", **options)
    of_labelings = helpers.solver(posed, "mpbcfw_gram", **options)
    centre = np.zeros(posed.d)
    for iteration in range(10):
        centre += 0.5 * (made.phi.outer_w() - centre)
        made.iterate()
        of_labelings.iterate()
        share = 0.75 if iteration % 4 else 0.0
        for at, w in asked:
            np.testing.assert_allclose(at, (1 - share) * w + share * centre, atol=1e-12)
        assert len(asked) == posed.n
        asked.clear()
        np.testing.assert_allclose(of_labelings.phi.outer_w(), made.phi.outer_w(), atol=1e-9)


def test_that_nothing_changes_away_from_w_shows_nothing():
    made = helpers.converged_in(pairwise(DATA["multiclass"], in_out=0.5, refresh=7), 600)
    assert made.iteration % 7 == 1
    w, dual = made.reported()
    assert made.problem.primal(w) - dual < 1e-9


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", DATA)
def test_passes_that_go_astray_are_undone(name, steps, average, monkeypatch):
    undone = []

    def fail(self, w):
        self.leave(w)
        undone.append(self._begin(w, None))

    monkeypatch.setattr(Acceleration, "fail", fail)
    dual, made = -np.inf, pairwise(DATA[name], steps=steps, kappa=1e4, M=4, average=average)
    for _ in helpers.together(30, made):  # κ is much too large, and never reduced
        before, dual = dual, made.phi.dual()
        assert dual >= before - 1e-12
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
