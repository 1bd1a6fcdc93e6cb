"""Long chains: products between their parts are not kept, and planes are sparse rows."""

import numpy as np
import pytest
from helpers import iterated, problem, random_chains, solver
from test_expectations import Dense

from ssvm_bench.oracles import viterbi


@pytest.mark.parametrize(
    ("name", "iterations", "same"),
    [("mpbcfw", 30, 1e-9), ("mpbcfw_fast", 100, 1e-7), ("one_slack", 20, 1e-2)],
)
def test_planes_as_rows_lead_where_planes_as_labelings_do(name, iterations, same, monkeypatch):
    """The steps are the same; or with ties in another order, the optimum is, within ε."""
    chains = random_chains([6, 9, 7, 8], K=3, f=4)
    labelings = problem(chains, lam=0.5)
    monkeypatch.setattr(viterbi, "_products_pay", lambda _: False)
    rows = problem(chains, lam=0.5)
    assert labelings.oracle.features.gram.size > 0 == rows.oracle.features.gram.size
    found = []
    for posed in (labelings, rows):
        w, dual = iterated(solver(posed, name), iterations).reported()
        assert dual <= posed.primal(w) + 1e-12
        found.append([dual, posed.primal(w)])
    np.testing.assert_allclose(*found, rtol=same)


def test_the_bound_of_differences_holds_without_products(monkeypatch):
    chains = random_chains([3, 4, 2], K=3, f=2)
    true, kept = Dense(chains).radius2(), problem(chains).oracle.features.squared_radius
    monkeypatch.setattr(viterbi, "_products_pay", lambda _: False)
    assert true <= kept <= problem(chains).oracle.features.squared_radius


def test_products_are_kept_of_chains_that_are_short_or_have_many_features():
    pays = viterbi._products_pay
    assert pays(random_chains([60, 64, 20], K=2, f=3))
    assert pays(random_chains([90], K=2, f=5000))
    assert not pays(random_chains([90], K=2, f=3))
