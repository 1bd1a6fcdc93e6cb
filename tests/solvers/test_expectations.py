"""Excessive gap reduction and extragradient: against brute force, and against the papers' steps.

`Dense` has every labeling's weight in a table, as the papers write their algorithms: it knows
nothing of Gibbs distributions that stay Gibbs distributions, which the solvers rest on.
"""

from typing import NamedTuple

import helpers
import numpy as np
import pytest
from helpers import Dense

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.oracles import gibbs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import LabelingOracle

DATA = {name: helpers.TINY[name] for name in ("chains", "multiclass")}
LAM = 0.1
SOLVERS = ("excessive_gap", "extragradient")
STEPS = ("search", "bound")

on_data = pytest.mark.parametrize("data", DATA.values(), ids=DATA)
of_both = pytest.mark.parametrize("name", SOLVERS)
with_steps = pytest.mark.parametrize("step", STEPS)


def made_of(data, name, **options):
    """Return a solver of the problem of a dataset."""
    return helpers.solver(helpers.problem(data, LAM), name, **options)


def mixed(one, other, tau):
    return [(1 - tau) * a + tau * b for a, b in zip(one, other, strict=True)]


def dual(phi):
    return phi[-1] - phi[:-1] @ phi[:-1] / (2 * LAM)


def with_one(w):
    return np.append(w, 1.0)


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 80.0, 400.0, 3000.0])
@on_data
def test_sums_over_gibbs_distributions_are_those_of_all_labelings(data, scale):
    made, rng = helpers.oracle(data), np.random.default_rng(0)
    z = scale * rng.normal(size=made.d + 1)
    found = helpers.check_gibbs(made, z, Dense(data).planes, atol=1e-11)
    assert found.phi @ z - found.log_mean <= gibbs.log_labelings(made) + 1e-12 * (1 + scale)


@on_data
def test_the_radius_is_no_smaller_than_that_of_any_labeling(data):
    bound, radius2 = helpers.oracle(data).features.squared_radius, Dense(data).radius2()
    assert bound >= radius2 * (1 - 1e-12)
    if data.structure == "independent":
        assert bound == pytest.approx(radius2)


def test_scores_that_are_no_numbers_end_the_run():
    made = helpers.oracle(DATA["chains"])
    with pytest.raises(RunFailedError, match="not finite"):
        gibbs.at(made, np.full(made.d + 1, 1e308))


@with_steps
@of_both
@on_data
def test_the_certificate_holds_on_every_row_and_shrinks_to_the_optimum(data, name, step):
    made, bounds = made_of(data, name, step=step), []
    best = helpers.optimum(made.problem)
    for w, value in helpers.enclosing(made, best, 299):
        primal, said = made.problem.primal(w), made.diagnostics()
        second = said.get("saddle_dual", value)
        assert value - 1e-12 <= second <= best + 1e-9
        assert primal - second <= said["gap_bound"] * (1 + 1e-12) + 1e-12
        bounds.append(said["gap_bound"])
    assert (np.diff(bounds[1:]) < 0).all()
    far = {"excessive_gap": 5e-4, "extragradient": 1e-2}[name] * (1 if step == "search" else 200)
    assert max(primal - best, best - second) < far


@of_both
def test_there_are_no_random_choices(name):
    made = (made_of(DATA["chains"], name, seed=seed) for seed in (0, 1))
    one, other = (helpers.iterated(each, 5).reported() for each in made)
    assert one.dual == other.dual
    np.testing.assert_array_equal(one.w, other.w)


@pytest.mark.parametrize(("name", "each"), [(SOLVERS[0], 1), (SOLVERS[1], 2)])
@on_data
def test_a_pass_of_the_expectation_oracle_counts_n_calls(data, name, each):
    search, bound = (made_of(data, name, step=step) for step in STEPS)
    before = 1  # the start is a pass
    for k in helpers.together(79, search, bound):
        assert bound.clock.oracle_calls == data.n * (1 + (k + 1) * each)
        passes = search.clock.oracle_calls / data.n
        assert passes - before >= each
        assert (passes - before) % each == 0
        before = passes
    assert search.clock.oracle_calls > bound.clock.oracle_calls  # some step was too long


@of_both
def test_the_optimum_of_one_label_is_found_at_once(name):
    made = helpers.iterated(made_of(helpers.random_multiclass(3, 1, 2), name), 3)
    w, value = made.reported()
    assert (made.problem.primal(w), value) == pytest.approx((0.0, 0.0), abs=1e-12)


class OnlyMaximises(NamedTuple):
    """A compiled oracle of somebody else's, without expectations."""

    features: object


@pytest.mark.parametrize("name", ["eg", *SOLVERS])
def test_graphs_and_oracles_without_expectations_are_refused(name):
    with pytest.raises(ConfigError, match="expectations of a distribution"):
        helpers.solver(helpers.problem(helpers.random_graphs([4, 2], 2, 3)), name)
    inner = helpers.problem(DATA["chains"]).oracle
    with pytest.raises(ConfigError, match="needs the expectations"):
        helpers.solver(Problem(LabelingOracle(OnlyMaximises(inner.features)), LAM), name)


@with_steps
@on_data
def test_the_smoothed_primal_is_below_the_dual(data, step):
    dense, made = Dense(data), made_of(data, "excessive_gap", step=step)
    for w, value in helpers.reports(made, 60):
        smoothed = LAM / 2 * w @ w + made.mu * dense.log_mean(with_one(w) / made.mu)
        assert smoothed <= value + 1e-11 * max(1.0, abs(value))
        assert made.mu * made.D == made.diagnostics()["gap_bound"]


@on_data
def test_excessive_gap_does_what_the_paper_does_with_all_weights(data):
    """The Bregman projection V, and w and α as two separate maximisers."""
    dense, made = Dense(data), made_of(data, "excessive_gap", step="bound")
    L = mu = made.problem.oracle.features.squared_radius / LAM

    def gradient(weights):
        return with_one(-dense.plane(weights)[:-1] / LAM)

    w = gradient(dense.uniform)[:-1]
    alpha = dense.tilted(dense.uniform, with_one(w) / mu)
    for _ in range(12):
        made.iterate()
        np.testing.assert_allclose(made.reported().w, w, rtol=1e-9, atol=1e-11)
        assert made.reported().dual == pytest.approx(dual(dense.plane(alpha)), rel=1e-9)
        tau = (-mu / L + np.sqrt((mu / L) ** 2 + 4 * mu / L)) / 2
        beta = dense.tilted(dense.uniform, with_one(w) / mu)
        up = gradient(mixed(alpha, beta, tau))
        w = (1 - tau) * w + tau * up[:-1]
        projected = dense.tilted(beta, tau / ((1 - tau) * mu) * up)
        alpha = mixed(alpha, projected, tau)
        mu *= 1 - tau


@on_data
def test_the_smoothing_falls_as_the_theorem_says(data):
    made = made_of(data, "excessive_gap", step="bound")
    L = made.problem.oracle.features.squared_radius / LAM
    for k in helpers.together(99, made):
        assert made.mu <= 4 * L / (k + 2) ** 2 * (1 + 1e-12)


@pytest.mark.parametrize("rho", [None, 1.0, 0.03])
@on_data
def test_extragradient_does_what_the_paper_does_with_all_weights(data, rho):
    dense, made = Dense(data), made_of(data, "extragradient", step="bound", rho=rho)
    posed = made.problem
    weight = rho or 2 * LAM * np.mean([np.log(len(a)) for a in dense.uniform])
    radius = np.sqrt(posed.oracle.features.squared_radius)
    eta = 1 / (LAM / weight + radius / np.sqrt(weight))

    def project(w):
        return w / max(1.0, np.sqrt(LAM) * np.linalg.norm(w))

    s, z = np.zeros(posed.d), np.zeros(posed.d + 1)
    mean_w, mean_phi = np.zeros(posed.d), np.zeros(posed.d + 1)
    for k in range(12):
        v_w, v_alpha = project(s / weight), dense.tilted(dense.uniform, z)
        slope = LAM * v_w + dense.plane(v_alpha)[:-1]
        u_w = project(v_w - eta / weight * slope)
        u_phi = dense.plane(dense.tilted(v_alpha, eta * with_one(v_w)))
        s -= eta * (LAM * u_w + u_phi[:-1])
        z += eta * with_one(u_w)
        mean_w += (u_w - mean_w) / (k + 1)
        mean_phi += (u_phi - mean_phi) / (k + 1)
        made.iterate()
        np.testing.assert_allclose(made.reported().w, mean_w, rtol=1e-9, atol=1e-12)
        assert made.reported().dual == pytest.approx(dual(mean_phi), rel=1e-9)
        assert np.linalg.norm(made.v.w) <= (1 + 1e-12) / np.sqrt(LAM)


@on_data
def test_the_saddle_dual_is_the_minimum_over_the_ball(data):
    made, rng = made_of(data, "extragradient"), np.random.default_rng(2)
    for _ in helpers.together(4, made):
        phi = made.alpha
        for w in rng.normal(size=(100, phi.size - 1)) - 20 * phi[:-1]:
            inside = w / np.linalg.norm(w) * rng.uniform() / np.sqrt(LAM)
            value = LAM / 2 * inside @ inside + phi @ with_one(inside)
            assert made.diagnostics()["saddle_dual"] <= value + 1e-12
