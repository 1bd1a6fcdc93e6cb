"""Where solvers end up: at the optimum that other optimisers find, whatever the problem's form."""

import os

import helpers
import numpy as np
import pytest
from helpers import SOLVERS, dataset, iterated, problem, random_multiclass, solver

from ssvm_bench.base.linalg import best_interpolation

pytestmark = pytest.mark.processors

DIGITS = random_multiclass(12, 5, 3, seed=4)


@pytest.mark.parametrize(
    "data", [random_multiclass(4, 3, 2, seed=5), helpers.random_chains([2, 1, 2], 2, 2, seed=6)]
)
@pytest.mark.parametrize("name", SOLVERS)
def test_primal_and_dual_enclose_the_optimum(data, name):
    posed = problem(data, 0.25)
    optimum, _ = helpers.quadratic_program(helpers.Table(data), 0.25)
    made = solver(posed, name)
    for _ in range(100):
        made.iterate()
        reported = made.reported()
        # SLSQP stops within about 1e-12 of the optimum, and may leave the simplices by as much
        assert reported.dual <= optimum + 1e-10
        assert posed.primal(reported.w) >= optimum - 1e-10
    # the methods converge like C/k here; Algorithm 1's bound with k = 100 and C < 5
    assert reported.dual == pytest.approx(optimum, abs=0.05)


def nearly_orthogonal(lengths, y, K, scale):
    """Return a problem whose optimum is inside the polytope.

    There Frank–Wolfe methods converge geometrically, so that all of them get to 1e-6.
    """
    rng = np.random.default_rng(0)
    x = np.eye(len(y)) + 0.1 * rng.normal(size=(len(y), len(y)))
    return dataset(scale * x, y, K, lengths)


EASY = {"multiclass": nearly_orthogonal(None, [0, 1, 2, 1], 3, 1.0)}
EASY["chains"] = nearly_orthogonal([2, 1, 2], [0, 1, 1, 0, 1], 2, 1.5)


@pytest.mark.parametrize("shape", EASY)
@pytest.mark.parametrize("name", SOLVERS)
def test_all_solvers_reach_the_optimum_of_a_quadratic_program(shape, name):
    posed, tolerance = problem(EASY[shape]), 1e-6
    optimum, _ = helpers.quadratic_program(helpers.Table(EASY[shape]), posed.lam)
    # the averages' error falls like 1/k², that of the others geometrically
    reported = iterated(solver(posed, name), 1500).reported()
    assert reported.dual == pytest.approx(optimum, abs=tolerance)
    assert posed.primal(reported.w) == pytest.approx(optimum, abs=tolerance)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["fw", "bcfw", "mpbcfw"])
@pytest.mark.parametrize("lam", [100.0, 5.0])
def test_converged_means_that_the_reported_iterate_is_optimal(name, average, lam):
    # with λ this large and two labels, full steps lead to the optimum after a few passes
    posed = problem(random_multiclass(12, 2, 3, seed=1), lam)
    made = solver(posed, name, **({} if name == "fw" else {"average": average}))
    for _ in range(20):
        made.iterate()
        reported = made.reported()
        gap = posed.primal(reported.w) - reported.dual
        assert not made.converged or gap < 1e-14
    assert made.converged or average


def test_uniform_sampling_never_claims_to_have_converged():
    # a pass may have missed the terms that could still move
    made = solver(problem(random_multiclass(12, 2, 3, seed=1), 100.0), sampling="uniform")
    for _ in range(20):
        made.iterate()
        assert not made.converged


def optimum_of(posed, name="bcfw"):
    made = iterated(solver(posed, name), 1000)
    assert posed.primal(made.reported().w) - made.reported().dual < 1e-13
    return made.reported()


@pytest.mark.parametrize("shape", EASY)
def test_optimum_does_not_depend_on_the_order_or_on_copies_of_the_examples(shape):
    data, lam = EASY[shape], 1 / EASY[shape].n
    expected = optimum_of(problem(data, lam))
    backwards = optimum_of(problem(data.take(np.arange(data.n)[::-1]), lam))
    twice = optimum_of(problem(data.take(np.repeat(np.arange(data.n), 2)), lam), "mpbcfw")
    for other in (backwards, twice):
        assert other.dual == pytest.approx(expected.dual, abs=1e-13)
        # λ/2 ‖w − w*‖² ≤ gap < 1e-13
        np.testing.assert_allclose(other.w, expected.w, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", SOLVERS)
def test_features_times_4_and_lambda_times_16_give_the_same_bits(name):
    # w shrinks to a quarter; powers of two are never rounded
    data = DIGITS
    scaled = dataset(4 * data.x, data.y, data.n_labels)
    one, other = solver(problem(data, 0.1), name), solver(problem(scaled, 1.6), name)
    for _ in helpers.together(6, one, other):
        np.testing.assert_array_equal(one.reported().w, 4 * other.reported().w)
        assert one.reported().dual == other.reported().dual


@pytest.mark.parametrize("name", SOLVERS)
def test_a_single_term(name):
    # n = 1: BCFW is FW, and a permutation has one element
    posed = problem(helpers.random_chains([3], 3, 2, seed=2))
    made, batch = solver(posed, name), solver(posed, "fw")
    for _ in range(5):
        made.iterate()
        batch.iterate()
    if name == "bcfw":
        np.testing.assert_allclose(made.reported().w, batch.reported().w, rtol=0, atol=1e-9)
    assert posed.primal(made.reported().w) >= made.reported().dual


def test_best_interpolation_is_the_best_of_a_fine_grid():
    posed = problem(DIGITS)
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = [(rng.normal(size=posed.d), rng.normal()) for _ in range(2)]
        best = posed.dual(*best_interpolation(posed.lam, one, other))
        grid = [
            posed.dual((1 - s) * one[0] + s * other[0], (1 - s) * one[1] + s * other[1])
            for s in np.linspace(0, 1, 201)
        ]
        # above the grid by λ/2 ‖step‖² (half a cell)² at most: ‖step‖² < 100
        assert -2e-15 <= best - max(grid) <= 0.5 * posed.lam * 100 * 0.0025**2


@pytest.mark.skipif(
    not os.environ.get("SSVM_BENCH_DATA"), reason="SSVM_BENCH_DATA does not name the real data"
)
@pytest.mark.parametrize(
    ("n_samples", "side", "iterations", "tolerance"), [(2000, 4, 50, 1e-4), (500, 1, 150, 1e-2)]
)
def test_usps_agrees_with_liblinear(n_samples, side, iterations, tolerance, tmp_path, monkeypatch):
    # of means of 4 × 4 pixels, 4 digits after some seconds; of the pixels themselves, the error
    # falls like C/k with a larger C
    # Crammer and Singer's ½‖w‖² + C Σ ξ_i with C = 1 is n P(w) for λ = 1/n
    from sklearn.svm import LinearSVC

    from ssvm_bench.datasets import usps

    monkeypatch.setattr("ssvm_bench.datasets.reading.user_folder", lambda: tmp_path)
    digits = usps.load(usps.Config("usps", "usps", "real", n_samples))
    cells = digits.x.reshape(digits.n, 16 // side, side, 16 // side, side)
    data = dataset(cells.mean(axis=(2, 4)).reshape(digits.n, -1), digits.y, 10)
    posed = problem(data)
    theirs = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=1.0, tol=1e-6, max_iter=100_000
    ).fit(data.x, data.y)
    optimum = posed.primal(theirs.coef_.ravel())  # class by class, as here

    made = iterated(solver(posed, "mpbcfw"), iterations)
    ours = made.reported()
    assert ours.dual <= optimum
    assert ours.dual == pytest.approx(optimum, rel=tolerance)
    # nothing is below the optimum, which they miss by about 1e-6
    assert posed.primal(ours.w) >= optimum * (1 - 1e-5)
