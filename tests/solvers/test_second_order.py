"""`mpbcfw_newton`: the weights of all planes at once."""

import helpers
import numpy as np
import pytest
import scipy.sparse
from program import config_of

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs.resolved import check_requirements
from ssvm_bench.solvers.block.interior_point import Weights, maximise
from ssvm_bench.solvers.block.second_order import products

pytestmark = pytest.mark.processors

ROUNDING = 1e-13
"""Of F, which is below 3: a step may lower it by that."""


def weights(sizes, rng):
    """Return planes with random weights, of which some are 0, and slopes."""
    term = np.repeat(np.arange(len(sizes)) * 3, sizes)
    of = np.repeat(np.arange(len(sizes)), sizes)
    alpha = rng.random(term.size) * (rng.random(term.size) < 0.7)
    alpha[np.cumsum(sizes) - sizes] += 1.0  # the heaviest plane of a term is its first
    alpha /= np.bincount(of, alpha)[of]
    return Weights(term, np.arange(term.size), alpha, rng.normal(size=term.size))


@pytest.mark.parametrize("rank", [2, 9, 40])
def test_interior_points_find_what_slsqp_finds(rank):
    rng = np.random.default_rng(rank)
    sizes = np.array([2, 5, 3, 2, 4, 7])
    found = weights(sizes, rng)
    rows = rng.normal(size=(found.others.size, rank))  # up to 17 planes: singular, and not
    R, start = rows @ rows.T, found.alpha

    def value(alpha):
        delta = alpha - start
        gradient = found.slope.copy()
        gradient[found.others] -= R @ delta[found.others]
        return -float(delta @ (found.slope + gradient)) / 2, -gradient

    alpha = maximise(R, found, 1e-12)
    assert alpha.min() >= 0.0
    np.testing.assert_allclose(np.bincount(found.of, alpha), 1.0, rtol=1e-14)
    # SLSQP's own error is about 1e-12
    _, least = helpers.minimised_over_simplices(value, sizes)
    assert value(alpha)[0] == pytest.approx(least, abs=1e-10)


@pytest.mark.parametrize("density", [0.005, 0.5])
def test_products_of_all_pairs_are_those_of_dense_rows(density):
    rows = scipy.sparse.random(20, 3000, density, format="csr", random_state=0)
    dense = rows.toarray()
    np.testing.assert_allclose(products(rows), dense @ dense.T, atol=1e-12)


@pytest.mark.parametrize("shape", [*helpers.TINY, "rows"])
def test_the_optimum_is_that_of_slsqp_and_bounds_are_bounds(shape):
    data = helpers.TINY["chains" if shape == "rows" else shape]
    made = helpers.oracle(data)
    posed = Problem(helpers.Plain(made) if shape == "rows" else made, 1 / data.n)
    optimum, _ = helpers.quadratic_program(helpers.Table(data), posed.lam)
    tested, before = helpers.solver(posed, "mpbcfw_newton"), 0.0
    for w, dual in helpers.reports(tested, 40):  # first-order passes alone would take some hundred
        primal = posed.primal(w)
        assert before - ROUNDING <= dual <= optimum + 1e-10 <= primal + 2e-10
        before = dual
        if primal - dual < 1e-11:
            break
    assert primal - dual < 1e-11
    assert dual == pytest.approx(optimum, abs=1e-8)


def test_weights_inner_products_and_phi_stay_those_of_each_other():
    data = helpers.TINY["chains"]
    table = helpers.Table(data)
    tested = helpers.iterated(helpers.solver(helpers.problem(data), "mpbcfw_newton"), 8)
    numbers, phi = tested.visits.policy.simplex, np.zeros(table.d + 1)
    for i, planes in enumerate(helpers.working_sets(tested, table)):
        alpha = numbers.alpha[numbers.start[i] :][: len(planes)]
        assert alpha.min() >= 0.0
        assert alpha.sum() == pytest.approx(1.0, abs=1e-13)
        own = alpha @ table.planes[i][planes]
        products = data.n**2 * table.planes[i][planes][:, :-1] @ own[:-1]
        known = numbers.product[numbers.start[i] :][: len(planes)]
        np.testing.assert_allclose(known, products, atol=1e-11)
        assert numbers.square[i] == pytest.approx(data.n**2 * own[:-1] @ own[:-1], abs=1e-11)
        phi += own
    np.testing.assert_allclose(tested.reported().w, -phi[:-1] / tested.problem.lam, atol=1e-11)
    assert tested.phi.offset == pytest.approx(phi[-1], abs=1e-12)


def test_with_more_planes_than_it_may_have_there_is_no_step():
    posed, gaps = helpers.problem(helpers.TINY["multiclass"]), []
    for most in (1, 6000):
        made = helpers.solver(posed, "mpbcfw_newton", newton_planes=most)
        w, dual = helpers.iterated(made, 6).reported()
        gaps.append(posed.primal(w) - dual)
    assert gaps[1] < 1e-3 * gaps[0]


def test_steps_take_at_most_their_share_of_the_time():
    # under clock=work the seconds of a step are those that its planes cost
    posed, spent = helpers.problem(helpers.TINY["chains"]), []
    for share in (0.0, 0.05, 0.5):
        clock = Clock("work", 1.0, 0.1)
        made = helpers.solver(posed, "mpbcfw_fast", clock=clock, newton_share=share)
        for _ in range(10):
            made.iterate()
            seconds = made.passes._spent
            # what it looks at may show that there is no step, and is counted
            assert seconds <= share * (clock.now() - seconds) * (1 + 1e-12)
        spent.append(made.passes._spent)
    assert spent[0] == 0.0 < spent[1] < spent[2]


def test_without_time_for_them_there_are_no_steps():
    problem = helpers.problem(helpers.TINY["chains"])
    options = {"T": 2, "steps": "pairwise", "inner_steps": 5, "shrink": 0.03, "kappa": 6}
    limited = helpers.solver(problem, "mpbcfw_fast", newton_share=0.0)
    others = {"sampling": "runs", "window": 8, **options}
    first_order = helpers.solver(problem, "mpbcfw_in_out", **others)
    for _ in helpers.together(8, limited, first_order):
        (w, dual), (expected, bound) = limited.reported(), first_order.reported()
        assert dual == bound
        np.testing.assert_array_equal(w, expected)


def test_dear_calls_bring_steps_that_save_passes():
    passes = []
    for cost in (1e-9, 1.0):
        problem = helpers.problem(helpers.TINY["chains"])
        clock = Clock("work", cost, 1e-6)
        made = helpers.solver(problem, "mpbcfw_fast", clock=clock)
        for w, dual in helpers.reports(made, 200):
            if problem.primal(w) - dual < 1e-8:
                break
        passes.append(made.iteration)
    assert passes[1] < passes[0] / 2


@pytest.mark.parametrize(
    "options",
    [
        *(("solver.steps=fw",), ("solver.N=0",), ("solver.M=0",)),
        ("oracle.kernel=rbf", "oracle.gamma=1"),
    ],
)
def test_what_it_needs_is_said_before_anything_is_loaded(tmp_path, options):
    asked = "dataset=usps", "solver=mpbcfw_newton", *options
    with pytest.raises(ConfigError, match="mpbcfw_newton needs"):
        check_requirements(config_of(tmp_path, *asked))
    # with a limit there may be no steps
    check_requirements(config_of(tmp_path, *asked, "solver.newton_share=0.2"))
