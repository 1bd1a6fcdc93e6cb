"""Exponentiated gradient: expectations against brute force, and what must hold of the dual."""

from typing import NamedTuple

import numpy as np
import pytest
from helpers import (
    Table,
    oracle,
    problem,
    random_chains,
    random_graphs,
    random_multiclass,
    solver,
)
from program import call, error_of

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import LabelingOracle, expect

DATA = {
    "chains": random_chains([3, 1, 4, 2, 3], 3, 2, seed=3),
    "multiclass": random_multiclass(8, 5, 3, seed=4),
}
LAM = 0.1


@allocating_kernel
def expectations(compiled, L, unary, moves):
    mu, nu = np.zeros_like(unary), np.zeros_like(moves)
    work = np.zeros((2, L + compiled.features.n_labels, unary.shape[1]))
    expect(compiled, L, unary, moves, mu, nu, work)
    return mu, nu


@pytest.mark.parametrize("scale", [0.1, 3.0, 80.0, 400.0, 3000.0])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_expectations_are_those_of_all_labelings(data, scale):
    made, table, rng = oracle(data), Table(data), np.random.default_rng(0)
    features = made.features
    stride, K = features.stride, features.n_labels
    for i in range(data.n):
        L = int(features.offsets[i + 1] - features.offsets[i])
        unary = scale * rng.normal(size=(L, stride))
        moves = scale * rng.normal(size=K * stride if features.transitions else 0)
        labelings = table.labelings[i]
        scores = np.array(
            [
                sum(unary[l, y[l]] for l in range(L))
                + sum(moves[y[l] * stride + y[l - 1]] for l in range(1, L) if moves.size)
                for y in labelings
            ]
        )
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        expected_mu, expected_nu = np.zeros((L, stride)), np.zeros_like(moves)
        for y, weight in zip(labelings, weights, strict=True):
            for l in range(L):
                expected_mu[l, y[l]] += weight
                if l > 0 and moves.size:
                    expected_nu[y[l] * stride + y[l - 1]] += weight
        mu, nu = expectations(made.compiled, L, unary, moves)
        np.testing.assert_allclose(mu, expected_mu, atol=1e-12)
        np.testing.assert_allclose(nu, expected_nu, atol=1e-12)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_the_dual_rises_to_the_optimum(data):
    posed, dual = problem(data, LAM), -np.inf
    best = solver(posed, "mpbcfw_pairwise")
    for _ in range(300):
        best.iterate()
    optimum = best.reported().dual
    made = solver(posed, "eg")
    for k in range(400):
        iterate = made.reported()
        assert dual - 1e-14 <= iterate.dual <= optimum + 1e-12
        assert posed.primal(iterate.w) >= optimum - 1e-12
        dual = iterate.dual
        made.iterate()
        assert made.clock.oracle_calls >= (k + 1) * data.n
    assert dual == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_w_is_that_of_the_marginals(data):
    made = solver(problem(data, LAM), "eg")
    table = Table(data)
    for _ in range(5):
        made.iterate()
    features, state, phi = made.oracle.features, made.state, np.zeros(table.d + 1)
    stride = features.stride
    for i in range(data.n):
        first, last = features.offsets[i], features.offsets[i + 1]
        unary, moves = state.unary[first:last], state.moves[i]
        scores = np.array(
            [
                sum(unary[l, y[l]] for l in range(len(y)))
                + sum(moves[y[l] * stride + y[l - 1]] for l in range(1, len(y)) if moves.size)
                for y in table.labelings[i]
            ]
        )
        weights = np.exp(scores - scores.max())
        phi += weights / weights.sum() @ table.planes[i]
    w = joint_features.unpack(features, state.w)
    np.testing.assert_allclose(w, -phi[:-1] / LAM, atol=1e-10)
    assert state.offset[0] == pytest.approx(phi[-1], abs=1e-12)


def test_graphs_have_no_expectations(tmp_path):
    with pytest.raises(ConfigError, match="expectations of a distribution over labelings"):
        solver(problem(random_graphs([4, 2], 2, 3)), "eg")
    options = ("dataset=weizmann", "dataset.source=synthetic", "dataset.n_samples=2")
    result = call("run", "solver=eg", *options, f"results_dir={tmp_path}")
    assert "solver=eg needs the expectations" in error_of(result, 2)


class OnlyMaximises(NamedTuple):
    """A compiled oracle of somebody else's, without expectations."""

    features: object


def test_an_oracle_over_labels_may_have_no_expectations():
    inner = problem(DATA["chains"]).oracle
    with pytest.raises(ConfigError, match="needs the expectations"):
        solver(Problem(LabelingOracle(OnlyMaximises(inner.features)), LAM), "eg")


@pytest.mark.parametrize("change", [{"eta": 0.0}, {"start": -1.0}, {"sampling": "gap"}])
def test_bad_options_are_named(change):
    (name,) = change
    with pytest.raises(ConfigError, match=rf"solver\.{name}"):
        solver(problem(DATA["chains"]), "eg", **change)
