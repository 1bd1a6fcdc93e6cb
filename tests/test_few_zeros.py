"""Features with few zeros: w label by label, and the same runs but for rounding."""

import copy

import numpy as np
import pytest
from helpers import dataset, iterated, oracle, random_chains, random_multiclass, solver, together

from ssvm_bench.base.state import StateError
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.joint_scores import DenseFeatures
from ssvm_bench.planes import iterates


def few_zeros(data, kind):
    """Return the examples with a tenth of the features 0."""
    x = data.x if kind is float else np.round(3 * np.abs(data.x))
    x = x.astype(kind)
    x[np.random.default_rng(1).random(x.shape) < 0.1] = 0
    return dataset(x, data.y, data.n_labels, np.diff(data.offsets))


@pytest.fixture(params=["multiclass", "chain", "small integers"])
def posed(request):
    data = random_chains([3, 1, 4, 2] * 4, 5, 7) if request.param == "chain" else None
    data = data or random_multiclass(40, 6, 9)
    kind = np.uint8 if request.param == "small integers" else float
    return Problem(oracle(few_zeros(data, kind)), 0.05)


@pytest.mark.parametrize("name", ["mpbcfw_fast", "mpbcfw_newton", "mpbcfw_gap"])
def test_w_label_by_label_changes_nothing(name, posed, monkeypatch):
    # after the first step of a visit, two planes tie but for rounding
    own = solver(posed, name, inner_steps=1)
    monkeypatch.setattr(iterates, "with_own_layout", lambda same, *_: same)
    plain = solver(posed, name, inner_steps=1)
    assert isinstance(own.phi.oracle.features, DenseFeatures)
    for _ in together(6, own, plain):
        (w, dual), (expected, other) = own.reported(), plain.reported()
        np.testing.assert_allclose(w, expected, atol=1e-9)  # sums in another order
        assert dual == pytest.approx(other, abs=1e-10)
        assert dual <= posed.primal(w)
    assert dual > 0


def test_the_solvers_of_the_papers_have_the_layout_of_all(posed):
    assert solver(posed, "mpbcfw").phi.oracle is posed.oracle


def test_features_with_many_zeros_stay_sparse():
    x = np.eye(6)[np.arange(30) % 6] + np.eye(6)[np.arange(30) * 2 % 6]
    many = Problem(oracle(dataset(x, np.arange(30) % 3, 3)), 0.1)
    assert solver(many, "mpbcfw_fast").phi.oracle is many.oracle


def test_a_run_goes_on_in_its_layout_alone(posed, monkeypatch):
    made, again, other = (solver(posed, "mpbcfw_fast") for _ in range(3))
    state = iterated(made, 4).state()
    again.restore(copy.deepcopy(state))
    for _ in together(3, made, again):
        assert again.phi.dual() == made.phi.dual()
    np.testing.assert_array_equal(again.reported().w, made.reported().w)
    phi = dict(state["phi"])
    assert phi.pop("by_label")
    with pytest.raises(StateError, match="another layout"):
        other.restore(state | {"phi": phi})
