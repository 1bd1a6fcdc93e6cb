"""The inner QP of the bundle methods against an independent solver, and its certificate."""

import numpy as np
import pytest
from helpers import minimised_over_simplices

from ssvm_bench.solvers.bundle import qp

pytestmark = pytest.mark.processors

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
    planes, q = planes[order], rng.normal(size=m)
    return planes @ planes.T, q, 10.0 ** rng.uniform(-3, 1), block[order]


def start(block):
    beta = np.zeros(block.size)
    beta[np.unique(block, return_index=True)[1]] = 1.0
    return beta


def dual(gram, q, mu, beta):
    return q @ beta - beta @ gram @ beta / (2 * mu)


@pytest.mark.parametrize("seed", range(30))
def test_it_agrees_with_an_independent_solver(seed):
    P = 1 + seed % 3
    gram, q, mu, block = instance(seed, P + seed % 12, P)
    order = np.argsort(block, kind="stable")  # blocks beside each other
    G, c = gram[np.ix_(order, order)], q[order]
    found = qp.maximise(gram, block, q, mu, start(block), 1e-9, MANY)
    sizes = np.bincount(block)
    _, least = minimised_over_simplices(lambda x: (-dual(G, c, mu, x), G @ x / mu - c), sizes)
    assert found.gap <= 1e-9
    # values are sums of terms as large as the gradient, each rounded
    size = abs(G).max() / mu + abs(c).max()
    assert found.value + least >= -1e-9 - 1e-13 * size  # it does not fall short of the other's
    assert found.value + least <= 1e-7 * size  # SLSQP is not exact


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
    before = beta.copy()
    qp.maximise(gram, block, q, mu, beta, 1e-8, MANY)
    np.testing.assert_array_equal(beta, before)


def test_it_ends_after_the_most_steps_and_says_how_far_it_got():
    gram, q, mu, block = instance(5, 80, 2)
    first = dual(gram, q, mu, start(block))
    found, best = (qp.maximise(gram, block, q, mu, start(block), 1e-12, most) for most in (1, MANY))
    assert found.gap > 1e-12
    assert first < found.value < best.value <= found.value + found.gap
