"""Exponentiated gradient: expectations against brute force, and what must hold of the dual."""

import numpy as np
import pytest
from helpers import TINY, Table, iterated, optimum, oracle, problem, solver

from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.labeling import expect

DATA = {name: TINY[name] for name in ("chains", "multiclass")}
LAM = 0.1


@allocating_kernel
def expectations(compiled, L, unary, moves):
    mu, nu = np.zeros_like(unary), np.zeros_like(moves)
    work = np.zeros((2, L + compiled.features.n_labels, unary.shape[1]))
    expect(compiled, L, unary, moves, mu, nu, work)
    return mu, nu


def gibbs_weights(labelings, unary, moves, stride):
    """Return the probability of every labeling."""
    scores = unary[np.arange(len(unary)), labelings].sum(axis=1)
    if moves.size:
        scores += moves[labelings[:, 1:] * stride + labelings[:, :-1]].sum(axis=1)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


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
        weights = gibbs_weights(labelings, unary, moves, stride)
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
    best = optimum(posed)
    made = solver(posed, "eg")
    for k in range(400):
        iterate = made.reported()
        assert dual - 1e-14 <= iterate.dual <= best + 1e-9
        assert posed.primal(iterate.w) >= best - 1e-9
        dual = iterate.dual
        made.iterate()
        assert made.clock.oracle_calls >= (k + 1) * data.n
    assert dual == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_w_is_that_of_the_marginals(data):
    made = solver(problem(data, LAM), "eg")
    table = Table(data)
    iterated(made, 5)
    features, state, phi = made.oracle.features, made.kept, np.zeros(table.d + 1)
    stride = features.stride
    for i in range(data.n):
        first, last = features.offsets[i], features.offsets[i + 1]
        unary, moves = state.unary[first:last], state.moves[i]
        phi += gibbs_weights(table.labelings[i], unary, moves, stride) @ table.planes[i]
    w = joint_features.unpack(features, state.w)
    np.testing.assert_allclose(w, -phi[:-1] / LAM, atol=1e-10)
    assert state.offset[0] == pytest.approx(phi[-1], abs=1e-12)
