"""Oracles and joint features against enumeration of all labelings."""

from dataclasses import replace

import helpers
import numpy as np
import pytest
from helpers import Plain, Table, dataset, oracle, random_chains, random_graphs, random_multiclass
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from linear import random_regression

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import is_implemented
from ssvm_bench.config import registry
from ssvm_bench.oracles import joint_features, viterbi
from ssvm_bench.oracles.base import Oracle, OracleConfig
from ssvm_bench.oracles.labeling import expect

# Sums of at most 30 terms below 100, taken in different orders: 30 · 2⁻⁵³ · 100 < 1e-12.
ROUNDING = 1e-12

ALPHA = {"partial_optimality": True, "warm_start": False}
small_integers = st.integers(-2, 2).map(float)
real_numbers = st.floats(-4, 4, width=32).map(float)


@st.composite
def instances(draw, lengths=(1, 2, 3, 4), numbers=small_integers):
    """Draw (table, oracle, w): 1–3 chains, or 1–4 multiclass examples; small integers tie often.

    K is below, at and above 4, to which the rows of w are padded, and past two times 4.
    """
    if draw(st.booleans()):
        K = draw(st.sampled_from((1, 2, 3, 4, 5, 6)))
        sizes, parts = None, draw(st.integers(1, 4))
    else:
        K = draw(st.sampled_from((1, 2, 3, 4, 5, 9)))
        lengths = [L for L in lengths if K**L <= 256]
        sizes = draw(st.lists(st.sampled_from(lengths), min_size=1, max_size=3))
        parts = sum(sizes)
    f = draw(st.integers(1, 6))
    x = draw(arrays(np.float64, (parts, f), elements=numbers))
    y = draw(arrays(np.uint8, parts, elements=st.integers(0, K - 1)))
    w = draw(arrays(np.float64, K * f + (0 if sizes is None else K * K), elements=numbers))
    data = dataset(x, y, K, sizes)
    return Table(data), oracle(data), w


def check_bits(expected, got):
    np.testing.assert_array_equal(got, expected)


@given(instances(lengths=(1, 2, 4)))
def test_argmax_is_the_lexicographically_first_maximiser(instance):
    # integers, and losses that are multiples of 1/4: no sum is rounded, ties are exact
    table, tested, w = instance
    for i in range(table.n):
        scores = table.features[i] @ w + table.losses[i]
        check_bits(table.labelings[i][np.argmax(scores)], tested.argmax(w, i))


@given(instances())
def test_prediction_is_the_lexicographically_first_maximiser(instance):
    (table, tested, w), losses = instance, []
    for i in range(table.n):
        row = np.argmax(table.features[i] @ w)
        check_bits(table.labelings[i][row], tested.predict(w, i))
        losses.append(table.losses[i][row])
    assert tested.mean_loss(w) == pytest.approx(np.mean(losses), abs=ROUNDING)
    assert Oracle.mean_loss(tested, w) == pytest.approx(np.mean(losses), abs=ROUNDING)


@given(instances(numbers=real_numbers))
def test_real_numbers_are_maximised_up_to_rounding(instance):
    table, tested, w = instance
    for i in range(table.n):
        values, scores = table.values(w, i), table.features[i] @ w
        assert values[table.row(i, tested.argmax(w, i))] >= values.max() - ROUNDING
        assert scores[table.row(i, tested.predict(w, i))] >= scores.max() - ROUNDING


def test_a_long_chain_of_the_size_of_ocr():
    # L = 15, K = 26, f = 128 bytes cannot be enumerated: compare the value with Viterbi's
    # recursion forwards, written down with dense arrays
    rng = np.random.default_rng(0)
    L, K, f = 15, 26, 128
    x = rng.integers(0, 2, (L, f)).astype(np.uint8)
    data = dataset(x, rng.integers(0, K, L), K, [L])
    tested, w = oracle(data), rng.normal(size=K * f + K * K)
    transitions = w[K * f :].reshape(K, K)
    unary = x.astype(float) @ w[: K * f].reshape(K, f).T
    for loss in (0.0, 1.0):
        best = np.zeros(K)
        for l in range(L):
            arriving = best if l == 0 else (best[:, None] + transitions).max(axis=0)
            best = arriving + unary[l] + loss * (np.arange(K) != data.y[l]) / L
        y = tested.argmax(w, 0) if loss else tested.predict(w, 0)
        value = tested.score(w, 0, y) + loss * tested.loss(0, y)
        assert value == pytest.approx(best.max(), rel=1e-13)  # 2000 terms, rounded at random


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("integers", [True, False])
def test_many_labels_of_which_a_step_looks_at_few(scale, integers):
    # transitions from none to larger than all else, so that from one to all labels matter;
    # integers tie: all 37³ labelings in lexicographic order have the first maximiser first
    rng = np.random.default_rng(0)
    L, K, f = 3, 37, 5
    data = dataset(rng.normal(size=(L, f)).round(), rng.integers(0, K, L), K, [L])
    tested, w = oracle(data), np.round(4 * rng.normal(size=K * f + K * K)) / 4
    w[K * f :] *= scale
    if integers:
        w = np.round(w)
    unary, moves = data.x @ w[: K * f].reshape(K, f).T, w[K * f :].reshape(K, K)
    for loss in (0, 1):
        v = 3 * unary + loss * (np.arange(K) != data.y[:, None])  # times L: integers stay so
        total = v[0][:, None, None] + v[1][:, None] + v[2] + 3 * (moves[:, :, None] + moves)
        found = tested.argmax(w, 0) if loss else tested.predict(w, 0)
        if integers and not loss:
            check_bits(np.unravel_index(np.argmax(total), total.shape), found)
        assert total[tuple(found)] == pytest.approx(total.max(), rel=1e-13)


def test_a_short_chain_of_many_labels_after_a_long_one():
    # of the long one, steps look at the last label alone; the short one needs the first to begin
    # with label 1, whose transition to label 0 is worth more than what label 2 has ahead of it
    K, kinds = 37, np.eye(3)
    data = dataset(kinds[[0, 0, 0, 1, 2]], np.zeros(5, int), K, [3, 2])
    unary, moves = np.zeros((K, 3)), np.zeros((K, K))
    unary[K - 1, 0], unary[2, 1], unary[0, 2], moves[1, 0] = 10, 0.5, 5, 1
    tested, w = oracle(data), np.concatenate((unary.ravel(), moves.ravel()))
    assert tested.predict(w, 0).tolist() == [K - 1, K - 1, K - 1]
    assert tested.predict(w, 1).tolist() == [1, 0]


@given(instances(), st.randoms(use_true_random=False))
def test_features_scores_losses_and_planes_follow_their_definitions(instance, random):
    table, tested, w = instance
    assert (tested.n, tested.d) == (table.n, table.d)
    for i in range(table.n):
        check_bits(table.labelings[i][table.truth[i]], tested.truth(i))
        plane = tested.plane(i, tested.truth(i))
        assert (plane.indices.size, plane.offset) == (0, 0.0)
        row = random.randrange(len(table.labelings[i]))
        y = table.labelings[i][row].astype(np.uint8)

        indices, values = tested.joint_feature(i, y)
        assert indices.dtype == np.int64
        assert len(set(indices.tolist())) == indices.size
        assert np.all(values != 0)
        features = helpers.dense((indices, values, 0.0), table.d)[:-1]
        check_bits(table.features[i][row], features)  # integers: exact
        assert tested.score(w, i, y) == table.features[i][row] @ w
        assert tested.loss(i, y) == table.losses[i][row]

        plane = tested.plane(i, y)
        assert len(set(plane.indices.tolist())) == plane.indices.size
        check_bits(table.planes[i][row], helpers.dense(plane, table.d))


@given(instances(numbers=real_numbers))
def test_risk_is_the_sum_of_the_hinges(instance):
    table, tested, w = instance
    hinges = [table.values(w, i).max() for i in range(table.n)]
    # the same by one Python call per term: the default of the interface
    for risk in (tested.risk(w), Plain(tested).risk(w)):
        assert risk.value == pytest.approx(sum(hinges), abs=ROUNDING)
        assert risk.star @ w + risk.offset == pytest.approx(risk.value, abs=ROUNDING)
        # the plane supports H: at w + v, H is not below it
        v = np.cos(np.arange(w.size))
        above = sum(table.values(w + v, i).max() for i in range(table.n))
        assert risk.star @ (w + v) + risk.offset <= above + ROUNDING
    assert tested.risk(w, with_plane=False).value == tested.risk(w).value
    assert np.all(np.array(hinges) >= 0)


def test_bytes_and_floats_give_the_same_bits():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (6, 5)).astype(np.uint8)
    y = rng.integers(0, 3, 6)
    small, large = (oracle(dataset(values, y, 3, [1, 5])) for values in (x, x.astype(float)))
    w = rng.normal(size=small.d)
    for i in range(2):
        check_bits(large.argmax(w, i), small.argmax(w, i))
    check_bits(large.risk(w).star, small.risk(w).star)
    assert large.risk(w).value == small.risk(w).value


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        (random_multiclass(2, 2, 1), ("multiclass", "binary")),
        (random_regression(2, 1), ("regression",)),
        (random_chains([2], 2, 1), ("viterbi", "latent_chain")),
        (random_graphs([3], 2, 1), ("mincut", "alpha_expansion")),
    ],
)
def test_oracles_accept_the_structures_that_they_name(data, fits):
    extra = {"alpha_expansion": ALPHA, "regression": {"epsilon": 0.1}}
    extra["latent"] = {"bias": 1.0, "start": "ink"}
    for kind in {*registry.kinds("oracle")} - {"given", "weighted"}:  # which are made of others
        module = registry.module("oracle", kind)
        config = module.Config("one", kind, **extra.get(kind, {}))
        assert (data.structure in config.structures) == (kind in fits)
        if kind in fits:
            compiled = type(getattr(module.build(config, data), "compiled", None))
            assert config.has_expectations == is_implemented(expect, compiled)
        else:
            message = f"oracle=one does not fit dataset=tiny.* those of tiny are {data.structure}"
            with pytest.raises(ConfigError, match=message):
                module.build(config, data)


@pytest.mark.parametrize("kind", ["multiclass", "binary"])
def test_an_oracle_of_one_label_takes_no_examples_of_several_parts(kind):
    module = registry.module("oracle", kind)
    data = replace(random_chains([1, 2], 2, 1), structure="independent")
    with pytest.raises(ConfigError, match="those of tiny have several parts"):
        module.build(module.Config("one", kind), data)


def test_an_oracle_that_says_nothing_accepts_every_structure_and_has_no_expectations():
    config = OracleConfig("mine", "mine")
    for structure in ("chain", "tree"):
        config.check_structure(replace(random_chains([2], 2, 1), structure=structure))
    assert not config.has_expectations


@pytest.mark.parametrize(  # also more features than are copied at a time
    "data", [random_chains([2], 3, 600), random_multiclass(2, 2, 256), random_chains([2], 5, 1)]
)
def test_weights_are_laid_out_by_feature_and_back(data):
    (K, f), transitions = (data.n_labels, data.n_features), data.structure == "chain"
    features = joint_features.build(data)
    w = np.random.default_rng(K).normal(size=joint_features.dimension(features))
    inner = joint_features.pack(features, w)
    rows = inner.reshape(-1, features.stride)
    assert inner.size == joint_features.inner_dimension(features)
    assert (rows[:f, :K] == w[: K * f].reshape(K, f).T).all()
    assert rows.shape[0] == f + K * transitions
    assert (rows[f:, :K].T.ravel() == w[K * f :]).all()
    assert not rows[:, K:].any()
    assert (joint_features.unpack(features, inner) == w).all()


LEARNED = {"potts": "learned"}


@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [
        ("multiclass", random_multiclass(4, 3, 5), {}),
        ("viterbi", random_chains([2, 3], 5, 3), {}),
        ("mincut", random_graphs([3, 2], 2, 3), LEARNED),
        ("alpha_expansion", random_graphs([3, 2], 5, 3), LEARNED),
    ],
)
def test_w_has_one_length_wherever_an_oracle_takes_it(kind, data, options):
    module = registry.module("oracle", kind)
    made = module.build(module.Config("one", kind, **options), data)
    packed = made.pack(np.arange(float(made.d)))
    assert packed.shape == (made.inner_d,)
    assert made.unpack(packed).tolist() == list(range(made.d))
    made.own_labelings(packed, np.array([0, 1]), 1.0)
    assert made.risk(np.zeros(made.d)).star.shape == (made.d,)


def test_a_w_of_another_length_is_refused_before_a_kernel_reads_it():
    made = viterbi.build(viterbi.Config("one", "viterbi"), random_chains([2, 3], 5, 3))
    for size in (made.d, made.inner_d - 1, made.inner_d + 1):
        with pytest.raises(ValueError, match=rf"w has the shape \({size},\); in this layout"):
            made.own_labelings(np.zeros(size), np.array([0]), 1.0)
