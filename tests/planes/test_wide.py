"""Many features: rows of w for those alone that planes have touched, and points without zeros."""

import copy
import io

import numpy as np
import pytest
from helpers import dataset, iterated, oracle, solver, together
from scipy.sparse import csr_array

from ssvm_bench.base.nonzeros import Nonzeros, compact
from ssvm_bench.base.state import StateError, like, of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.joint_features import WideFeatures
from ssvm_bench.planes import iterates, labeling_iterates

F, K, PARTS = 20_000, 4, 120
NAME = "mpbcfw_fast"


def wide_chains():
    """Chains whose parts have a few of many features each, some of which are common."""
    rng = np.random.default_rng(0)
    x = np.zeros((PARTS, F), np.uint8)
    for begin, end in ((0, 50), (50, F)):
        np.put_along_axis(x, rng.integers(begin, end, (PARTS, 4)), 1, axis=1)
    y = (x[:, :50] @ rng.normal(size=(50, K))).argmax(axis=1)
    return dataset(x, y, K, [4] * (PARTS // 4)).derived(x=csr_array(x))


@pytest.fixture
def posed(monkeypatch):
    monkeypatch.setattr(labeling_iterates, "_LEAST", 1)
    monkeypatch.setattr(labeling_iterates, "_LARGEST_SHARE", 1.0)
    return Problem(oracle(wide_chains()), 0.01)


@pytest.mark.parametrize("average", [False, True])
def test_rows_in_the_order_of_touch_change_nothing(average, posed, monkeypatch):
    own = solver(posed, NAME, average=average)
    monkeypatch.setattr(iterates, "with_own_layout", lambda same, *_: same)
    plain = solver(posed, NAME, average=average)
    assert isinstance(posed.oracle.features, WideFeatures)
    for _ in together(8, own, plain):
        (w, dual), (expected, other) = own.reported(), plain.reported()
        assert isinstance(w, Nonzeros) != average
        np.testing.assert_allclose(w, expected, atol=1e-12)  # sums in another order
        assert dual == pytest.approx(other, abs=1e-12)
        assert posed.primal(w) == pytest.approx(posed.primal(expected), abs=1e-12)
        assert posed.size(w) == pytest.approx(np.linalg.norm(expected), abs=1e-12)
    features, inner = own.phi.oracle.features, own.phi.w
    count = features.used[0]
    assert 0 < count < F
    assert not inner[count * features.stride : F * features.stride].any()
    untouched = features.rows == (F - 1) * features.stride
    assert count + np.count_nonzero(untouched) == F
    assert not expected[: K * F].reshape(K, F)[:, untouched].any()
    assert dual <= posed.primal(w)


@pytest.mark.parametrize("few", [True, False])
def test_a_compact_copy_is_the_whole_array(few):
    array = np.eye(7) if few else np.arange(1.0, 50.0).reshape(7, 7)
    made, before = compact(array), array.copy()
    assert isinstance(made, Nonzeros) == few
    assert compact(made) is made or not few
    array[:] = 2.0
    np.testing.assert_array_equal(np.asarray(made).reshape(7, 7), before)


def test_a_point_without_zeros_is_the_whole_one(posed):
    made = iterated(solver(posed, NAME), 3)
    point, oracle = made.reported().w, posed.oracle
    whole = np.asarray(point)
    assert np.count_nonzero(whole) == point.values.size == np.count_nonzero(made.phi.w)
    np.testing.assert_array_equal(whole, made.phi.outer_w())
    np.testing.assert_array_equal(oracle.predictions(point), oracle.predictions(whole))
    packed = oracle.pack(whole)
    np.testing.assert_array_equal(oracle.unpack(packed), whole)
    inner = oracle.own_labelings(packed, np.arange(posed.n), 0.0)
    np.testing.assert_array_equal(np.concatenate(inner), oracle.predictions(point))
    point.write(stored := io.BytesIO())
    stored.seek(0)
    np.testing.assert_array_equal(np.load(stored), whole)
    np.testing.assert_array_equal(like(point, of(point)), whole)
    for wrong in (
        *({"size": point.size - 1}, {"values": point.values[1:]}, {"more": 1}),
        *({"places": places} for places in (point.places[::-1].copy(), point.places + point.size)),
    ):
        with pytest.raises(StateError):
            like(point, of(point) | wrong)


def test_a_run_goes_on_from_its_rows(posed):
    made, again = (solver(posed, NAME) for _ in range(2))
    iterated(made, 12)  # until planes, and with them labels, have been dropped
    state = copy.deepcopy(made.state())
    assert state["phi"]["_state.w"].size < made.phi.w.size / 4
    again.restore(copy.deepcopy(state))
    for _ in together(4, made, again):
        assert again.phi.dual() == made.phi.dual()
    np.testing.assert_array_equal(again.reported().w, made.reported().w)
    touched = state["phi"]["touched"]
    others = np.setdiff1d(np.arange(F), touched)[: touched.size]
    for wrong, why in (
        (touched[1:], "_state.w has the shape"),
        (touched % 7, "touched has an entry twice"),
        (touched + F, "touched is out of range"),
        (others, "features without a row is out of range"),
        (touched.astype(float), "touched is no array"),
        (None, "touched is no array"),
    ):
        with pytest.raises(StateError, match=rf"^phi/{why}"):
            solver(posed, NAME).restore(state | {"phi": state["phi"] | {"touched": wrong}})
