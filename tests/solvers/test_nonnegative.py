"""`solver.nonnegative`: weights that must not be negative, against a QP solver and brute force.

With v = −Σ φ⋆/λ, Σ diagonal, and w = max(v, 0) on N and v elsewhere, the optimum is

    max over the simplices of  −λ/2 wᵀ Σ⁻¹ w + φ∘
"""

import helpers
import linear
import numpy as np
import pytest
from program import config_of, run_here
from scipy.optimize import minimize_scalar

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.prior import Prior, with_prior
from ssvm_bench.results.table import instance_of
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs.resolved import check_requirements
from ssvm_bench.solvers.coordinate.nonnegative import ConstrainedConfig

ADULT = ("dataset=adult", "dataset.source=synthetic", "dataset.n_samples=60", "clock=work")
LAM = 0.1
# The dual is a difference of sums below 1, each rounded to 2⁻⁵³ ≈ 1.1e-16 some ten times.
ULPS = 2e-15


def posed(name):
    """Return an oracle and the dense planes of its terms."""
    if name in ("binary", "regression"):
        draw, build = linear.random_binary, linear.binary_oracle
        if name == "regression":
            draw, build = linear.random_regression, linear.regression_oracle
        data = draw(20, 6, seed=1)
        return build(data), list(linear.planes(data))
    chains = helpers.random_chains([2, 1, 3, 2], 2, 2, seed=6)
    data = chains if name == "chains" else helpers.random_graphs([3, 2, 4], 2, 3, seed=8)
    return helpers.oracle(data), helpers.Table(data).planes


KINDS = {
    "binary": "LineRows",
    "regression": "LineRows",
    "chains": "Labelings",
    "graphs": "SparseRows",
}
"""A kind of problem for each storage of planes."""


def floor_of(which, d):
    """Return the least value of each weight, and the option that says so."""
    if which == "all":
        return np.zeros(d), "all"
    return np.where(np.arange(d) % 2 == 0, 0.0, -np.inf), tuple(range(0, d, 2))


def made_of(inner, variance, option):
    """Return a solver of the problem."""
    problem = with_prior(inner, LAM, Prior(np.zeros(inner.d), np.sqrt(variance)))
    return helpers.solver(problem, "dcd", nonnegative=option, tol=1e-10)


@pytest.mark.parametrize("spread", ["unit", "diagonal"])
@pytest.mark.parametrize("which", ["all", "some"])
@pytest.mark.parametrize("name", KINDS)
def test_bounds_hold_on_every_row_and_meet_at_the_optimum_of_a_qp_solver(name, which, spread):
    inner, terms = posed(name)
    floor, option = floor_of(which, inner.d)
    rng = np.random.default_rng(0)
    variance = np.ones(inner.d) if spread == "unit" else rng.uniform(0.3, 3.0, inner.d)
    optimum, best, _ = helpers.dual_program(terms, LAM, variance=np.diag(variance), floor=floor)
    assert (best == 0.0).any()
    made = made_of(inner, variance, option)
    problem = made.problem
    for seen, _ in helpers.enclosing(made, optimum, 300, 1e-8, ULPS):
        w = problem.oracle.weights(seen)
        assert (w >= floor).all()
        primal = 0.5 * LAM * (w * w / variance).sum()
        primal += sum((rows @ np.append(w, 1.0)).max() for rows in terms)
        assert problem.primal(seen) == pytest.approx(primal, abs=1e-12)
        assert not made.upper < optimum - 1e-8
    assert made.converged
    called = spread == "diagonal" and name == "chains"  # from Python, under this prior
    assert type(made.phi.blocks).__name__ == ("SparseRows" if called else KINDS[name])
    assert made.reported().dual == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(w, best, atol=1e-4)


@pytest.mark.parametrize("which", ["none", "some"])
def test_weights_of_planes_are_those_of_a_qp_solver(which):
    """In 40 dimensions planes are independent, even without the coordinates that are at 0."""
    data = linear.random_binary(8, 40, seed=3)
    inner, terms = linear.binary_oracle(data), list(linear.planes(data))
    floor = np.where((np.arange(40) < 10) & (which == "some"), 0.0, -np.inf)
    optimum, best, alpha = helpers.dual_program(terms, LAM, floor=floor)
    made = made_of(inner, np.ones(40), "none" if which == "none" else ("0-9",))
    w, dual = helpers.iterated(made, 200).reported()
    assert dual == pytest.approx(optimum, abs=1e-9)
    np.testing.assert_allclose(w, best, atol=1e-4)
    wrong = np.concatenate([helpers.plane_weights(made, i)[1:] for i in range(8)])
    (rows,) = np.nonzero([row.any() for row in np.vstack(terms)])
    np.testing.assert_allclose(wrong, alpha[rows], atol=1e-4)


def test_every_step_is_the_best_one_along_its_direction():
    inner, terms = posed("binary")
    floor, option = floor_of("some", inner.d)
    made = made_of(inner, np.ones(inner.d), option)
    rows = np.array([plane[np.abs(plane).sum(axis=1) > 0][0] for plane in terms])
    star, circ = rows[:, :-1], rows[:, -1]

    def dual(alpha):
        w = np.maximum(-(alpha @ star) / LAM, floor)
        return alpha @ circ - 0.5 * LAM * w @ w

    def highest(alpha, unit):
        options = {"bounds": (-alpha @ unit, 1.0 - alpha @ unit), "options": {"xatol": 1e-12}}
        return -helpers.believed(minimize_scalar(lambda a: -dual(alpha + a * unit), **options)).fun

    rng = np.random.default_rng(0)
    alpha, inside = np.zeros(inner.n), 0
    for i in rng.permutation(np.repeat(np.arange(inner.n), 6)):
        before, best = dual(alpha), highest(alpha, np.eye(inner.n)[i])
        order = np.array([i])
        made.visits.prepare(order, new=0)
        made.phi.exact_pass(made.visits.policy, order, made.clock)
        alpha = np.array([helpers.plane_weights(made, j)[1] for j in range(inner.n)])
        inside += 0.0 < alpha[i] < 1.0
        assert made.phi.dual() == pytest.approx(dual(alpha), abs=1e-13)
        assert made.phi.dual() >= before - ULPS
        assert made.phi.dual() >= best - 1e-9
    assert inside > 20


@pytest.mark.parametrize("name", ["binary", "chains"])
def test_cyclic_online_descent_finds_the_same_optimum(name):
    """With a cache of 12 planes, weights that have left it count, too."""
    inner, terms = posed(name)
    floor, option = floor_of("some", inner.d)
    optimum, best, _ = helpers.dual_program(terms, LAM, floor=floor)
    problem, options = Problem(inner, LAM), {"nonnegative": option, "verify": True}
    made = helpers.solver(problem, "dcd_online", tol=1e-9, **options)
    for w, _ in helpers.enclosing(made, optimum, 100, 1e-8):
        assert (w >= floor).all()
    assert made.converged
    assert made.reported().dual == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(w, best, atol=1e-4)
    made.cached.recompute()
    np.testing.assert_allclose(made.reported().w, w, atol=1e-12)
    small = helpers.solver(problem, "dcd_online", nonnegative=option, cache=12, tol=0.01)
    w, dual = helpers.iterated(small, 1).reported()
    assert (w >= floor).all()
    assert dual <= optimum + 1e-8


def test_a_run_stores_weights_that_are_not_negative(tmp_path):
    options, bound = ("solver=dcd", "budget.max_iterations=4", "prior.variance=2"), "[0-9,15,100-]"
    runs = [
        run_here(tmp_path, *options, f"solver.nonnegative={value}", data=ADULT).folder
        for value in ("none", bound)
    ]
    free, bounded = (np.load(run / "weights.npz")["w"] for run in runs)
    mask = np.isin(np.arange(free.size), [*range(10), 15, *range(100, free.size)])
    assert (free[mask] < 0).any()
    assert (bounded[mask] >= 0).all()
    assert (bounded[~mask] < 0).any()
    one, other = (read_trace(run) for run in runs)
    # another problem: its values are no optimum of the other one
    assert other.metadata["prior"] == f"N(0, 2), w{bound} ≥ 0"
    assert instance_of(one.metadata) != instance_of(other.metadata)
    assert (other.frame["dual"] <= other.frame["primal"]).all()


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
        *(("[]", "empty list"), ("[5-3]", "empty range"), ("[0:10]", "such as")),
        *(("[0-4,4-9]", "overlap, at the weight 4"), ("[0-,7]", "overlap, at the weight 7")),
        *(("some", "Valid: all, none"), ("3", "a list in brackets")),
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


def test_signs_of_weights_are_not_those_of_the_variables_under_every_prior(tmp_path):
    bounded, full = "solver.nonnegative=[3-5]", tmp_path / "full.npy"
    np.save(full, np.array([[2.0, 1.0], [1.0, 2.0]]))
    for prior in ("prior.mean=1", "prior.mean=[0,1]", f"prior.variance={full}"):
        with pytest.raises(ConfigError, match=r"w\[3-5\] ≥ 0 needs prior\.mean=0"):
            check_requirements(config_of(tmp_path, "solver=dcd", bounded, prior))
        check_requirements(config_of(tmp_path, "solver=dcd", prior))
    check_requirements(config_of(tmp_path, "solver=dcd", bounded, "prior.variance=[1,2]"))
