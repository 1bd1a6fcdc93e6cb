"""Features with few zeros: w label by label, and the same runs but for rounding; and 0 or 1."""

import copy

import numpy as np
import pytest
from helpers import dataset, iterated, oracle, random_chains, random_multiclass, solver, together

from ssvm_bench.base import linalg
from ssvm_bench.base.state import StateError
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.joint_features import BinaryFeatures, DenseFeatures, JointFeatures
from ssvm_bench.planes import iterates


def few_zeros(data):
    """Return the examples with a tenth of the features 0."""
    x = data.x.copy()
    x[np.random.default_rng(1).random(x.shape) < 0.1] = 0
    return dataset(x, data.y, data.n_labels, np.diff(data.offsets))


@pytest.fixture(params=["multiclass", "chain"])
def posed(request):
    chain = request.param == "chain"
    data = random_chains([3, 1, 4, 2] * 4, 5, 7) if chain else random_multiclass(40, 6, 19)
    return Problem(oracle(few_zeros(data)), 0.05)


def test_w_label_by_label_changes_nothing(posed, monkeypatch):
    name = "mpbcfw_newton"
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
    assert solver(many, "mpbcfw_newton").phi.oracle is many.oracle


def test_a_run_goes_on_in_its_layout_alone(posed, monkeypatch):
    made, again, other = (solver(posed, "mpbcfw_fast") for _ in range(3))
    state = copy.deepcopy(iterated(made, 4).state())
    again.restore(copy.deepcopy(state))
    for _ in together(3, made, again):
        assert again.phi.dual() == made.phi.dual()
    np.testing.assert_array_equal(again.reported().w, made.reported().w)
    assert state["phi"]["by_label"]
    with pytest.raises(StateError, match=r"^phi/by_label does not fit the rest"):
        other.restore(state | {"phi": state["phi"] | {"by_label": False}})


@pytest.mark.parametrize(
    "kind",
    [np.float64, np.float32, np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint64, np.bool_],
)
def test_products_of_whole_vectors(kind):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-90, 90, 200).astype(kind), rng.integers(-100, 100, 300).astype(float)
    for first, start, size in ((0, 0, 200), (7, 103, 193), (1, 2, 15), (3, 5, 16), (9, 9, 0)):
        found = linalg.dot_from(a, first, b, start, size)
        assert found == a[first : first + size].astype(float) @ b[start : start + size]


@pytest.mark.parametrize("name", ["bcfw_avg", "ssg"])
def test_features_that_are_0_or_1_are_not_multiplied_by(name, monkeypatch):
    chains = random_chains([3, 1, 4, 2] * 4, 5, 40)
    x, lengths = (chains.x > 1.0).astype(np.uint8), np.diff(chains.offsets)
    data = dataset(x, chains.y, chains.n_labels, lengths)
    binary = Problem(oracle(data), 0.05)
    monkeypatch.setattr(joint_features, "BinaryFeatures", JointFeatures)
    plain = Problem(oracle(data), 0.05)
    assert type(binary.oracle.features) is BinaryFeatures
    assert type(plain.oracle.features) is JointFeatures
    made = solver(binary, name), solver(plain, name)
    for _ in together(6, *made):
        (w, dual), (expected, other) = (each.reported() for each in made)
        np.testing.assert_array_equal(w, expected)
        np.testing.assert_array_equal(dual, other)
