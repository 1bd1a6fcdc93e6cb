"""The inner QP of the bundle methods against an independent solver, and its certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize

from ssvm_bench.solvers.bundle import qp

MANY = 10**6


def instance(seed, m, P, d=6):
    """Return G, q, μ and blocks of random planes; with m > d, they depend on each other."""
    rng = np.random.default_rng(seed)
    planes = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-2, 1, (m, 1))
    block = np.sort(np.concatenate((np.arange(P), rng.integers(0, P, m - P))))
    if m > P:
        planes[-1] = planes[0]  # one twice
    if m > 1:
        planes[1] = 0.0
    order = rng.permutation(m)
    return (
        planes[order] @ planes[order].T,
        rng.normal(size=m),
        10.0 ** rng.uniform(-3, 1),
        block[order],
    )


def start(block):
    beta = np.zeros(block.size)
    beta[[np.flatnonzero(block == p)[0] for p in range(block.max() + 1)]] = 1.0
    return beta


def dual(gram, q, mu, beta):
    return q @ beta - beta @ gram @ beta / (2 * mu)


@pytest.mark.parametrize("seed", range(30))
def test_it_agrees_with_an_independent_solver(seed):
    P = 1 + seed % 3
    gram, q, mu, block = instance(seed, P + seed % 12, P)
    beta = start(block)
    found = qp.maximise(gram, block, q, mu, beta, 1e-9, MANY)
    sums = [
        {
            "type": "eq",
            "fun": lambda x, p=p: x[block == p].sum() - 1,
            "jac": lambda x, p=p: 1.0 * (block == p),
        }
        for p in range(P)
    ]
    other = minimize(
        lambda x: -dual(gram, q, mu, x),
        np.array([1 / (block == p).sum() for p in block]),
        jac=lambda x: gram @ x / mu - q,
        bounds=[(0, 1)] * q.size,
        constraints=sums,
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    assert found.gap <= 1e-9
    assert found.value >= -other.fun - 1e-8  # it does not fall short of the other's
    assert found.value <= -other.fun + 1e-4 * (1 + abs(other.fun))  # SLSQP is not exact


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-10])
@pytest.mark.parametrize("shape", [(40, 1, 6), (200, 1, 300), (300, 16, 50), (500, 3, 400)])
def test_the_certificate_is_true(shape, tol):
    m, P, d = shape
    gram, q, mu, block = instance(7, m, P, d)
    beta = start(block)
    found = qp.maximise(gram, block, q, mu, beta, tol, MANY)
    assert (beta >= 0).all()
    np.testing.assert_allclose(np.bincount(block, beta), 1.0, rtol=1e-12)
    assert found.value == pytest.approx(dual(gram, q, mu, beta), rel=1e-9, abs=1e-9)
    gradient = q - gram @ beta / mu
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-7, atol=1e-7 * abs(gradient).max())
    top = [found.gradient[block == p].max() for p in range(P)]
    assert found.gap == pytest.approx(sum(top) - beta @ found.gradient, abs=1e-9)
    assert found.gap <= tol
    best = qp.maximise(gram, block, q, mu, start(block), 1e-12, MANY)
    assert best.value <= found.value + found.gap + 1e-12


def test_a_good_start_needs_no_steps():
    gram, q, mu, block = instance(3, 50, 4)
    beta = start(block)
    qp.maximise(gram, block, q, mu, beta, 1e-8, MANY)
    again = beta.copy()
    qp.maximise(gram, block, q, mu, again, 1e-8, MANY)
    np.testing.assert_array_equal(again, beta)


def test_it_ends_after_the_most_steps_and_says_how_far_it_got():
    gram, q, mu, block = instance(5, 80, 2)
    beta = start(block)
    first = dual(gram, q, mu, beta)
    found = qp.maximise(gram, block, q, mu, beta, 1e-12, 1)
    best = qp.maximise(gram, block, q, mu, start(block), 1e-12, MANY)
    assert found.gap > 1e-12
    assert first < found.value < best.value <= found.value + found.gap


def test_one_plane_a_block_leaves_no_choice():
    gram, q, mu, block = instance(1, 4, 4)
    beta = start(block)
    assert qp.maximise(gram, block, q, mu, beta, 1e-12, MANY).gap == 0.0
    np.testing.assert_array_equal(beta, 1.0)
