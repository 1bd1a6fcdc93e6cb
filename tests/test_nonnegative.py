"""`solver.nonnegative`: weights that must not be negative, against a QP solver and brute force.

With v = −Σ φ⋆/λ, Σ diagonal, and w = max(v, 0) on N and v elsewhere, the optimum is

    max over the simplices of  −λ/2 wᵀ Σ⁻¹ w + φ∘
"""

import numpy as np
import pytest
from helpers import (
    Table,
    iterated,
    minimised_over_simplices,
    oracle,
    plane_weights,
    random_chains,
    random_graphs,
    solver,
    together,
)
from linear import binary_oracle, planes, random_binary, random_regression, regression_oracle
from program import config_of, run_here
from scipy.optimize import minimize_scalar

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.prior import Prior, with_prior
from ssvm_bench.results.problem_instance import instance_of
from ssvm_bench.results.reading import read_trace
from ssvm_bench.runs.requirements import check_requirements
from ssvm_bench.solvers.coordinate.nonnegative import ConstrainedConfig

ADULT = ("dataset=adult", "dataset.source=synthetic", "dataset.n_samples=60", "clock=work")
LAM = 0.1
# The dual is a difference of sums below 1, each rounded to 2⁻⁵³ ≈ 1.1e-16 some ten times.
ULPS = 2e-15


def posed(name):
    """Return an oracle and the dense planes of its terms."""
    if name == "binary":
        data = random_binary(20, 6, seed=1)
        return binary_oracle(data), list(planes(data))
    if name == "regression":
        data = random_regression(20, 6, seed=1)
        return regression_oracle(data), list(planes(data))
    data = {
        "chains": random_chains([2, 1, 3, 2], 2, 2, seed=6),
        "graphs": random_graphs([3, 2, 4], 2, 3, seed=8),
    }[name]
    return oracle(data), Table(data).planes


KINDS = {"binary": "LineRows", "regression": "LineRows", "chains": "Labelings", "graphs": "Rows"}
"""A kind of problem for each storage of planes."""


def floor_of(which, d):
    """Return the least value of each weight, and the option that says so."""
    if which == "all":
        return np.zeros(d), "all"
    return np.where(np.arange(d) % 2 == 0, 0.0, -np.inf), tuple(range(0, d, 2))


def quadratic_program(terms, floor, variance):
    """Return the optimal value, w and the weights of all planes."""
    stacked = np.vstack(terms)
    star, circ = stacked[:, :-1], stacked[:, -1]

    def value(alpha):
        w = np.maximum(-variance * (alpha @ star) / LAM, floor)
        return 0.5 * LAM * (w * w / variance).sum() - alpha @ circ, -(star @ w + circ)

    found = minimised_over_simplices(value, [len(rows) for rows in terms])
    return -found.fun, np.maximum(-variance * (found.x @ star) / LAM, floor), found.x


def made_of(inner, variance, option, **options):
    """Return a solver of the problem, and the problem."""
    problem = with_prior(inner, LAM, Prior(np.zeros(inner.d), np.sqrt(variance)))
    return solver(problem, "dcd", nonnegative=option, tol=1e-10, **options), problem


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", ["unit", "diagonal"])
@pytest.mark.parametrize("which", ["all", "some"])
@pytest.mark.parametrize("name", KINDS)
def test_bounds_hold_on_every_row_and_meet_at_the_optimum_of_a_qp_solver(name, which, spread):
    inner, terms = posed(name)
    floor, option = floor_of(which, inner.d)
    rng = np.random.default_rng(0)
    variance = np.ones(inner.d) if spread == "unit" else rng.uniform(0.3, 3.0, inner.d)
    optimum, best, _ = quadratic_program(terms, floor, variance)
    assert (best == 0.0).any()
    made, problem = made_of(inner, variance, option)
    dual = 0.0
    for _ in range(300):
        made.iterate()
        seen, before, dual = made.reported().w, dual, made.reported().dual
        w = problem.oracle.weights(seen)
        assert (w >= floor).all()
        primal = 0.5 * LAM * (w * w / variance).sum()
        primal += sum((rows @ np.append(w, 1.0)).max() for rows in terms)
        assert problem.primal(seen) == pytest.approx(primal, abs=1e-12)
        assert before - ULPS <= dual <= optimum + 1e-8
        assert primal >= optimum - 1e-8
        assert not made.upper < optimum - 1e-8
        if made.converged:
            break
    else:
        raise AssertionError("it did not converge")
    called = spread == "diagonal" and name == "chains"  # from Python, under this prior
    assert type(made.phi.blocks).__name__ == ("Rows" if called else KINDS[name])
    assert dual == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(w, best, atol=1e-4)


@pytest.mark.parametrize("which", ["none", "some"])
def test_weights_of_planes_are_those_of_a_qp_solver(which):
    """In 40 dimensions planes are independent, even without the coordinates that are at 0."""
    data = random_binary(8, 40, seed=3)
    inner, terms = binary_oracle(data), list(planes(data))
    floor = np.full(40, -np.inf)
    if which == "some":
        floor[:10] = 0.0
    optimum, best, alpha = quadratic_program(terms, floor, np.ones(40))
    made, _ = made_of(inner, np.ones(40), "none" if which == "none" else ("0-9",))
    iterated(made, 200)
    assert made.reported().dual == pytest.approx(optimum, abs=1e-9)
    np.testing.assert_allclose(made.reported().w, best, atol=1e-4)
    wrong = np.concatenate([plane_weights(made, i)[1:] for i in range(8)])
    (rows,) = np.nonzero([row.any() for row in np.vstack(terms)])
    np.testing.assert_allclose(wrong, alpha[rows], atol=1e-4)


def test_every_step_is_the_best_one_along_its_direction():
    inner, terms = posed("binary")
    floor, option = floor_of("some", inner.d)
    made, _ = made_of(inner, np.ones(inner.d), option)
    rows = np.array([plane[np.abs(plane).sum(axis=1) > 0][0] for plane in terms])
    star, circ = rows[:, :-1], rows[:, -1]

    def dual(alpha):
        w = np.maximum(-(alpha @ star) / LAM, floor)
        return alpha @ circ - 0.5 * LAM * w @ w

    def highest(alpha, unit):
        bounds = -alpha @ unit, 1.0 - alpha @ unit
        found = minimize_scalar(
            lambda a: -dual(alpha + a * unit), bounds=bounds, options={"xatol": 1e-12}
        )
        return -found.fun

    rng = np.random.default_rng(0)
    alpha, inside = np.zeros(inner.n), 0
    for i in rng.permutation(np.repeat(np.arange(inner.n), 6)):
        before, best = dual(alpha), highest(alpha, np.eye(inner.n)[i])
        order = np.array([i])
        made.visits.prepare(order, new=0)
        made.phi.exact_pass(made.visits.policy, order, made.clock)
        alpha = np.array([plane_weights(made, j)[1] for j in range(inner.n)])
        inside += 0.0 < alpha[i] < 1.0
        assert made.phi.dual() == pytest.approx(dual(alpha), abs=1e-13)
        assert made.phi.dual() >= before - ULPS
        assert made.phi.dual() >= best - 1e-9
    assert inside > 20


def test_a_constraint_that_is_idle_changes_nothing():
    """Where all features of the planes push upwards, no weight is negative anyway."""
    data = random_binary(12, 3, seed=2)
    signs = np.where(data.y == 1, 1.0, -1.0)[:, None]
    data = random_binary(12, 3, seed=2, x=np.abs(data.x) * signs)
    free, bounded = (
        made_of(binary_oracle(data), np.ones(3), option)[0] for option in ("none", "all")
    )
    for _ in together(10, free, bounded):
        np.testing.assert_allclose(bounded.reported().w, free.reported().w, atol=1e-9)


@pytest.mark.parametrize("name", ["binary", "chains"])
def test_cyclic_online_descent_finds_the_same_optimum(name):
    """With a cache of 12 planes, weights that have left it count, too."""
    inner, terms = posed(name)
    floor, option = floor_of("some", inner.d)
    optimum, best, _ = quadratic_program(terms, floor, np.ones(inner.d))
    problem = Problem(inner, LAM)
    made = solver(problem, "dcd_online", nonnegative=option, tol=1e-9, verify=True)
    for _ in range(100):
        made.iterate()
        reported = made.reported()
        assert (reported.w >= floor).all()
        assert reported.dual <= optimum + 1e-8
        assert problem.primal(reported.w) >= optimum - 1e-8
        if made.converged:
            break
    assert made.converged
    assert reported.dual == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(reported.w, best, atol=1e-4)
    before = reported.w
    made.cached.recompute()
    np.testing.assert_allclose(made.reported().w, before, atol=1e-12)
    small = solver(problem, "dcd_online", nonnegative=option, cache=12, tol=0.01)
    small.iterate()
    assert (small.reported().w >= floor).all()
    assert small.reported().dual <= optimum + 1e-8


# ---- runs, and what the caller can do wrong -----------------------------------------------------


def test_a_run_stores_weights_that_are_not_negative(tmp_path):
    options = ("solver=dcd", "budget.max_iterations=4", "prior.variance=2")
    free = run_here(tmp_path, *options, data=ADULT)
    bounded = run_here(tmp_path, *options, "solver.nonnegative=[0-9,15,100-]", data=ADULT)
    w = {made.folder: np.load(made.folder / "weights.npz")["w"] for made in (free, bounded)}
    mask = np.zeros(w[free.folder].size, bool)
    mask[[*range(10), 15]] = True
    mask[100:] = True
    assert (w[free.folder][mask] < 0).any()
    assert (w[bounded.folder][mask] >= 0).all()
    assert (w[bounded.folder][~mask] < 0).any()
    traces = [read_trace(made.folder) for made in (free, bounded)]
    # another problem: its values are no optimum of the other one
    assert traces[1].metadata["prior"] == "N(0, 2), w[0-9,15,100-] ≥ 0"
    assert instance_of(traces[0].metadata) != instance_of(traces[1].metadata)
    assert (traces[1].frame["dual"] <= traces[1].frame["primal"]).all()


def test_the_default_is_neutral_and_ranges_have_one_hash(tmp_path):
    def hashed(*more):
        return config_of(tmp_path, "solver=dcd", *more).with_source("synthetic").hash()

    assert hashed() == hashed("solver.nonnegative=none") != hashed("solver.nonnegative=all")
    assert hashed("solver.nonnegative=[0-]") == hashed("solver.nonnegative=all")
    one, other = "solver.nonnegative=[15,0-9]", "solver.nonnegative=[0-4,5-9,15]"
    assert hashed(one) == hashed(other) != hashed("solver.nonnegative=all")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("[]", "empty list"),
        ("[5-3]", "empty range"),
        ("[0-4,4-9]", "overlap, at the weight 4"),
        ("[0-,7]", "overlap, at the weight 7"),
        ("[0:10]", "such as"),
        ("some", "Valid: all, none"),
        ("3", "a list in brackets"),
    ],
)
def test_ranges_that_are_none_are_refused(value, says, tmp_path):
    with pytest.raises(ConfigError, match=rf"solver\.nonnegative .*{says}|{says}"):
        config_of(tmp_path, "solver=dcd", f"solver.nonnegative={value}")


def test_a_weight_that_does_not_exist_is_refused_before_work_starts(tmp_path):
    with pytest.raises(ConfigError, match=r"the weight 123, .* d = 123"):
        run_here(tmp_path, "solver=dcd", "solver.nonnegative=[100-123]", data=ADULT)
    floor = ConstrainedConfig("dcd", "dcd", nonnegative=("2-", 0)).floor(4)
    assert floor.tolist() == [0, -np.inf, 0, 0]


def test_other_solvers_refuse_it_and_say_which_one_has_it(tmp_path):
    says = r"solver\.nonnegative with solver=bcfw: it is one of solver=dcd, solver=dcd_online\."
    with pytest.raises(ConfigError, match=says):
        config_of(tmp_path, "solver=bcfw", "solver.nonnegative=all")


@pytest.mark.parametrize("prior", ["prior.mean=1", "prior.mean=[0,1]"])
def test_signs_of_weights_are_not_those_of_the_variables_under_every_prior(prior, tmp_path):
    bounded = "solver.nonnegative=[3-5]"
    with pytest.raises(ConfigError, match=r"w\[3-5\] ≥ 0 needs prior\.mean=0"):
        check_requirements(config_of(tmp_path, "solver=dcd", bounded, prior))
    np.save(tmp_path / "full.npy", np.array([[2.0, 1.0], [1.0, 2.0]]))
    full = f"prior.variance={tmp_path}/full.npy"
    with pytest.raises(ConfigError, match=r"w\[3-5\] ≥ 0 needs prior\.mean=0"):
        check_requirements(config_of(tmp_path, "solver=dcd", bounded, full))
    check_requirements(config_of(tmp_path, "solver=dcd", prior))
    check_requirements(config_of(tmp_path, "solver=dcd", bounded, "prior.variance=[1,2]"))
