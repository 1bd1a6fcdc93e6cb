"""What the BCFW poster says of solvers: other domains, subgradients, and inexact subproblems."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers import TINY as DATA
from helpers import Table, iterated, minimised_over_simplices, problem, solver

from ssvm_bench.papers.bcfw_poster.solvers import inexact
from ssvm_bench.solvers.orders import Orders

LAM = 0.1


def algorithm_3(Q, c, sizes, corner, alpha, draws, searched):
    """Yield α and the duality gap before each step of the poster's Algorithm 3.

    f(α) = ½ αᵀQα − cᵀα over a product of sets, block by block of the given sizes; ``corner``
    returns the point of such a set with the least product with a gradient.
    """
    n, ends = len(sizes), np.cumsum(sizes)
    blocks = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    for k, i in enumerate(draws):
        gradient = Q @ alpha - c
        ways = np.concatenate([corner(gradient[block]) for block in blocks]) - alpha
        yield alpha, -(gradient @ ways)
        way = np.zeros_like(alpha)
        way[blocks[i]] = ways[blocks[i]]
        gamma = 2 * n / (k + 2 * n)
        if searched:
            curved = way @ Q @ way
            gamma = min(1.0, -(gradient @ way) / curved) if curved > 0 else 0.0
        alpha = alpha + gamma * way


def of_simplex(gradient):
    return np.eye(gradient.size)[gradient.argmin()]


def of_ball(gradient):
    return -gradient / np.linalg.norm(gradient)


@pytest.mark.parametrize("step", ["line_search", "2n/(k+2n)"])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_our_solver_is_algorithm_3_on_the_dual_of_the_structural_svm(data, step):
    """Where Q = A⋆A⋆ᵀ/λ and c has the losses, A being the planes, and each set is a simplex."""
    table, n = Table(data), data.n
    planes, sizes = np.concatenate(table.planes), [len(rows) for rows in table.planes]
    Q, c = planes[:, :-1] @ planes[:, :-1].T / LAM, planes[:, -1]
    first = [np.eye(size)[row] for size, row in zip(sizes, table.truth, strict=True)]
    orders = Orders(n, "uniform", 0)
    draws = itertools.chain.from_iterable(next(orders) for _ in range(9))
    searched = step == "line_search"
    steps = algorithm_3(Q, c, sizes, of_simplex, np.concatenate(first), draws, searched)
    made = solver(problem(data, LAM), "bcfw", 0, sampling="uniform", step=step)
    for alpha, gap in itertools.islice(steps, 0, 8 * n, n):
        w, dual = made.reported()
        phi = alpha @ planes
        np.testing.assert_allclose(w, -phi[:-1] / LAM, rtol=0, atol=1e-9)
        assert dual == pytest.approx(c @ alpha - alpha @ Q @ alpha / 2, abs=1e-9)
        assert made.problem.primal(w) - dual == pytest.approx(gap, abs=1e-9)
        made.iterate()


@pytest.mark.parametrize("searched", [False, True])
@pytest.mark.parametrize("corner", [of_simplex, of_ball])
def test_algorithm_3_has_its_rate_on_other_products_of_sets(corner, searched):
    """On a quadratic that couples all blocks, with C_f^prod bounded block by block.

    The poster's bound is of the mean over the draws, of the error and of the best gap so far.
    """
    rng, sizes = np.random.default_rng(1), (3, 2, 4, 5, 3)
    n, d, ends = len(sizes), sum(sizes), np.cumsum(sizes)
    root = rng.normal(size=(d, 4))
    Q, c = root @ root.T, rng.normal(size=d)
    start = np.concatenate([of_simplex(np.arange(size)) for size in sizes])

    def f(alpha):
        return alpha @ Q @ alpha / 2 - c @ alpha

    def steps(draws, searched):
        found = algorithm_3(Q, c, sizes, corner, start, draws, searched)
        return [(f(alpha), gap) for alpha, gap in found]

    square = 2 if corner is of_simplex else 4  # of the diameter
    own = (Q[end - size : end, end - size : end] for end, size in zip(ends, sizes, strict=True))
    curvature = square * sum(np.linalg.eigvalsh(block)[-1] for block in own)
    draws = [np.random.default_rng(seed).integers(0, n, 60 * n) for seed in range(20)]
    values, gaps = np.moveaxis(np.array([steps(each, searched) for each in draws]), 2, 0)
    long = steps(np.tile(np.arange(n), 1000), True)
    least, certified = max((value - gap, -gap) for value, gap in long)
    first = values[0, 0] - least
    assert certified > -1e-3 * first
    if corner is of_simplex:
        _, other = minimised_over_simplices(lambda a: (f(a), Q @ a - c), sizes)
        assert least <= other <= least - certified + 1e-9
    errors, k = values.mean(axis=0) - least, np.arange(60 * n)
    assert (errors >= 0).all()
    assert (errors <= 2 * n / (k + 2 * n) * (curvature + first)).all()
    smallest = np.minimum.accumulate(gaps, axis=1).mean(axis=0)
    assert (smallest <= 6 * n / (k + 1) * (curvature + first)).all()
    assert errors[-1] < 0.05 * first
    assert not searched or np.diff(values, axis=1).max() <= 1e-12


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_batch_subgradient_in_the_primal_is_frank_wolfe_in_the_dual(data):
    """The step γ/λ along the subgradient of P is the step γ towards the oracle's planes."""
    table, made = Table(data), solver(problem(data, LAM), "fw", step="2n/(k+2n)")
    w = np.zeros(table.d)
    for k in range(20):
        planes = [table.planes[i][table.values(w, i).argmax()] for i in range(table.n)]
        w = w - 2 / (k + 2) / LAM * (LAM * w + np.sum(planes, axis=0)[:-1])
        made.iterate()
        np.testing.assert_allclose(made.reported().w, w, rtol=0, atol=1e-9)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_cutting_planes_are_frank_wolfe_that_weighs_all_corners_anew(data):
    """Its plane is the corner of Frank–Wolfe; it maximises F over the hull of all corners so far.

    So it gains at least what a step of Frank–Wolfe does from the same point.
    """
    table, made = Table(data), solver(problem(data, LAM), "one_slack", cache=0, epsilon=1e-9)
    corners = [np.zeros(table.d + 1)]

    def negative(alpha):
        phi = alpha @ corners
        gradient = np.array(corners) @ np.append(phi[:-1] / LAM, -1.0)
        return phi[:-1] @ phi[:-1] / (2 * LAM) - phi[-1], gradient

    for _ in range(5):
        w, before = made.reported()
        planes = [table.planes[i][table.values(w, i).argmax()] for i in range(table.n)]
        corners.append(np.sum(planes, axis=0))
        here = np.append(-LAM * w, before + LAM / 2 * (w @ w))
        way = corners[-1] - here
        gamma = np.clip(LAM * (way @ np.append(w, 1.0)) / max(way[:-1] @ way[:-1], 1e-12), 0, 1)
        stepped = here + gamma * way
        made.iterate()
        dual = made.reported().dual
        _, least = minimised_over_simplices(negative, [len(corners)])
        assert dual == pytest.approx(-least, abs=1e-6)
        assert dual >= stepped[-1] - stepped[:-1] @ stepped[:-1] / (2 * LAM) - 1e-6


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("name", ["chains", "multiclass"])
def test_an_answer_falls_short_by_no_more_than_the_error(name, falls):
    data = DATA[name]
    posed, table = problem(data, LAM), Table(data)
    config = inexact.Config("x", "inexact", error=0.6, falls=falls)
    oracle = inexact.inexact(config, posed.oracle)
    rng, short = np.random.default_rng(0), []
    for k in range(200):
        w, i = rng.normal(size=table.d), int(rng.integers(table.n))
        _, value = oracle.best_plane(w, i)
        highest = table.values(w, i).max()
        error = 0.6 * (2 * table.n / (k + 2 * table.n) if falls else 1.0)
        assert (1 - error) * highest - 1e-12 <= value <= highest + 1e-12
        short.append(highest - value > 1e-9)
    assert any(short) == (name == "chains")  # a wrong label of one part is right or worth nothing


def share(posed, made):
    """Return the gap of a solver as a share of the primal value."""
    w, dual = made.reported()
    return 1 - dual / posed.primal(w)


def test_with_an_error_the_gap_falls_to_it_and_without_it_is_bcfw():
    posed = problem(DATA["chains"], LAM)
    plain = iterated(solver(posed, "bcfw"), 5)
    none = iterated(solver(posed, "bcfw_inexact", error=1e-15), 5)
    np.testing.assert_array_equal(none.reported().w, plain.reported().w)
    stays, falls = (
        iterated(solver(posed, "bcfw_inexact", error=0.5, falls=falls), 2000)
        for falls in (False, True)
    )
    assert share(posed, stays) <= 0.5
    assert 0 <= share(posed, falls) < 0.1 * share(posed, stays)
    assert falls.clock.oracle_calls == 2000 * posed.n


@pytest.mark.parametrize("step", ["line_search", "2n/(k+2n)"])
def test_batch_frank_wolfe_allows_inexact_subproblems_too(step):
    """An error that stays leaves a gap of at most that share of P; one that falls leaves none."""
    posed, gaps = problem(DATA["chains"], LAM), []
    for falls in (False, True):
        config = inexact.Config("x", "inexact", error=0.5, falls=falls)
        short = replace(posed, oracle=inexact.inexact(config, posed.oracle))
        gaps.append(share(posed, iterated(solver(short, "fw", step=step), 2000)))
    assert 0 <= gaps[1] < 0.1 * gaps[0] < 0.1 * 0.5
