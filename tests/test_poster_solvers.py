"""What the BCFW poster says of solvers: the dual of subgradients, and inexact subproblems."""

import numpy as np
import pytest
from helpers import TINY as DATA
from helpers import Table, iterated, problem, solver

from ssvm_bench.papers.bcfw_poster.solvers import inexact

LAM = 0.1


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_batch_subgradient_in_the_primal_is_frank_wolfe_in_the_dual(data):
    """The step γ/λ along the subgradient of P is the step γ towards the oracle's planes."""
    table, made = Table(data), solver(problem(data, LAM), "fw", step="2n/(k+2n)")
    w = np.zeros(table.d)
    for k in range(20):
        planes = [table.planes[i][int(np.argmax(table.values(w, i)))] for i in range(table.n)]
        subgradient = LAM * w + np.sum(planes, axis=0)[:-1]
        w = w - 2 / (k + 2) / LAM * subgradient
        made.iterate()
        np.testing.assert_allclose(made.reported().w, w, rtol=0, atol=1e-9)


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


def test_with_an_error_the_gap_falls_to_it_and_without_it_is_bcfw():
    posed = problem(DATA["chains"], LAM)
    plain = iterated(solver(posed, "bcfw"), 5)
    none = iterated(solver(posed, "bcfw_inexact", error=1e-15), 5)
    np.testing.assert_array_equal(none.reported().w, plain.reported().w)
    gaps = {}
    for error, falls in ((0.5, False), (0.5, True)):
        made = iterated(solver(posed, "bcfw_inexact", error=error, falls=falls), 2000)
        w, dual = made.reported()
        gaps[error, falls] = (posed.primal(w) - dual) / posed.primal(w)
        assert gaps[error, falls] >= 0
    assert gaps[0.5, False] <= 0.5
    assert gaps[0.5, True] < 0.1 * gaps[0.5, False]
    assert made.clock.oracle_calls == 2000 * posed.n
