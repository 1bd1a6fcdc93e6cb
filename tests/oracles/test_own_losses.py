"""Problem (1) of the dual-coordinate paper by oracles of one's own: any loss, latent values."""

import itertools

import numpy as np
import pytest
from helpers import converged_in, solver

from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.solvers.bundle import qp

N, F, LABELS = 9, 5, 3
# car, bus and person: a car that is taken for a person costs more than one taken for a bus
COSTS = np.array([[0.0, 1.0, 4.0], [0.5, 0.0, 3.0], [2.0, 2.5, 0.0]])
PLACES = 3


class Listed(Oracle):
    """An oracle that tries all labelings; ϕ(x, y) has the features in the block of the label."""

    exact = True

    def __init__(self, seed, places=1):
        rng = np.random.default_rng(seed)
        self.n, self.d = N, LABELS * F
        self.x = rng.normal(size=(N, places, F))  # the example, seen at each of its places
        true = rng.integers(0, LABELS, N), rng.integers(0, places, N)
        self.y = np.stack(true, axis=1).astype(np.uint8)
        self.all = np.array([*itertools.product(range(LABELS), range(places))], np.uint8)

    def truth(self, i):
        return self.y[i]

    def loss(self, i, y):
        return COSTS[self.y[i, 0], y[0]]

    def joint_feature(self, i, y):
        return np.arange(F) + int(y[0]) * F, self.x[i, y[1]]

    def best(self, w, i, share):
        def value(y):
            at, values = self.joint_feature(i, y)
            return w[at] @ values + share * self.loss(i, y)

        return max(self.all, key=value)

    def argmax(self, w, i):
        return self.best(w, i, 1.0)

    def predict(self, w, i):
        return self.best(w, i, 0.0)


def rows_of(oracle):
    """Return −x_ij and l_ij over n as rows, example by example, as the paper defines them."""
    rows = np.zeros((N, len(oracle.all), LABELS + 1, F))
    for i, (j, y) in itertools.product(range(N), enumerate(oracle.all)):
        (label, place), (true, seen) = y, oracle.y[i]
        rows[i, j, label] += oracle.x[i, place]
        rows[i, j, true] -= oracle.x[i, seen]
        rows[i, j, LABELS, 0] = COSTS[true, label]
    return rows.reshape(N, len(oracle.all), -1)[:, :, : oracle.d + 1] / N


@pytest.mark.parametrize("places", [1, PLACES])
def test_any_loss_and_latent_values_are_trained_as_a_qp_solver_does(places):
    """With one place it is (5), (6); with several (13), z_i given and (h, g) maximised over."""
    oracle, lam = Listed(places, places), 0.1
    rows = rows_of(oracle)
    block = np.repeat(np.arange(N), len(oracle.all))
    flat = rows.reshape(-1, oracle.d + 1)
    beta = (np.arange(len(flat)) % len(oracle.all) == 0).astype(float)
    gram = flat[:, :-1] @ flat[:, :-1].T
    best = qp.maximise(gram, block, flat[:, -1], lam, beta, 1e-12, 10**6).value
    made = converged_in(solver(Problem(oracle, lam), "dcd", tol=1e-6, epsilon=1e-12), 1000)
    found = made.reported()
    w = found.w
    value = lam / 2 * w @ w + (rows @ np.append(w, 1.0)).max(axis=1).sum()
    assert found.dual == pytest.approx(best, rel=1e-5)
    assert value == pytest.approx(best, rel=1e-5)
    # the loss is not the same for all wrong labels, nor is it symmetric
    assert {oracle.loss(0, y) for y in oracle.all} == {*COSTS[oracle.y[0, 0]]}
