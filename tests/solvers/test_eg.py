"""Exponentiated gradient: expectations against brute force, and what must hold of the dual."""

import numpy as np
import pytest
from helpers import TINY, Table, enclosing, iterated, optimum, problem, solver
from scipy.special import softmax

from ssvm_bench.oracles import joint_features

DATA = {name: TINY[name] for name in ("chains", "multiclass")}
LAM = 0.1


def gibbs_weights(labelings, unary, moves, stride):
    """Return the probability of every labeling."""
    scores = unary[np.arange(len(unary)), labelings].sum(axis=1)
    if moves.size:
        scores += moves[labelings[:, 1:] * stride + labelings[:, :-1]].sum(axis=1)
    return softmax(scores)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_the_dual_rises_to_the_optimum(data):
    posed = problem(data, LAM)
    best, made = optimum(posed), solver(posed, "eg")
    for k, _ in enumerate(enclosing(made, best, 400, fall=1e-14), 1):
        assert made.clock.oracle_calls >= k * data.n
    assert made.reported().dual == pytest.approx(best, rel=1e-3)


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
