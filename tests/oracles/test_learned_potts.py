"""Potts weights, learned and of edges: against enumeration, and a QP solver on all planes."""

import functools
import pickle
from dataclasses import replace

import helpers
import numpy as np
import pytest
from program import config_of
from sklearn.base import clone

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.oracles import alpha_expansion, mincut
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs.contracts import Findings, check_oracle
from ssvm_bench.runs.resolved import check_requirements

LAM = 0.1
# Sums of at most 100 terms below 100, taken in different orders: 100 · 2⁻⁵³ · 100 < 2e-12.
ROUNDING = 2e-12
MODULES = {2: mincut, 3: alpha_expansion}
SOLVERS = (
    *("bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg", "mpbcfw_gram", "mpbcfw_pairwise"),
    *("mpbcfw_accelerated", "mpbcfw_fast", "mpbcfw_newton", "dcd"),
)
LINEAR = ("mpbcfw_pairwise", "mpbcfw_fast", "mpbcfw_newton")
DATA = {"attractive": [False], "repulsive": [True], "features": [False, True]}
"""Labels of neighbours are the same, or often different: there p is 0; or the same where the first
feature of their edge is large, different where the second is. → Which weights p are 0."""


def posed_data(K=2, data="attractive"):
    """Return graphs of up to five nodes."""
    made = helpers.random_graphs([4, 3, 5, 2], K, 2, seed=8)
    example = np.repeat(np.arange(made.n), np.diff(made.offsets))
    begins = np.isin(np.arange(example.size), made.offsets)
    y = (np.arange(example.size) if data == "repulsive" else example) % K
    y = (y + begins) % K if data == "features" else y
    made = replace(made, y=y.astype(np.uint8))
    if data != "features":
        return made
    first = np.repeat(made.offsets[:-1], np.diff(made.edge_offsets))[:, None]
    same = np.equal(*made.y[made.edges + first].T)
    some = np.random.default_rng(3).random((same.size, 2))
    return replace(made, edge_x=some * np.where(same[:, None], [1.0, 0.2], [0.2, 1.0]))


def posed(K=2, data="attractive"):
    """Return an oracle, and the dense planes of its terms, [φ⋆ of the nodes, of p, φ∘]."""
    examples = posed_data(K, data)
    made = MODULES[K].build(MODULES[K].Config("tiny", "tiny", potts="learned"), examples)
    free = helpers.Table(examples, 0.0)
    with_cuts = [helpers.Table(examples, each).planes for each in np.eye(made.nonnegative)]
    terms = []
    for rows, *cut in zip(free.planes, *with_cuts, strict=True):
        of_p = [planes[:, -1] - rows[:, -1] for planes in cut]
        terms.append(np.column_stack((rows[:, :-1], *of_p, rows[:, -1])))
    return made, terms, free


@functools.cache
def optimum(data):
    """Return the optimal value and w by another solver, of the dual over all planes."""
    made, terms, _ = posed(data=data)
    of_p = np.arange(made.d) >= made.d - made.nonnegative
    return helpers.dual_program(terms, LAM, floor=np.where(of_p, 0.0, -np.inf))[:2]


@pytest.mark.parametrize("data", ["attractive", "features"])
@pytest.mark.parametrize("K", MODULES)
def test_planes_and_risk_are_those_of_their_definitions(K, data):
    made, terms, table = posed(K, data)
    rng = np.random.default_rng(K)
    w = rng.normal(size=made.d)
    w[table.d :] = abs(w[table.d :])
    assert made.d == table.d + len(DATA[data])
    for i, rows in enumerate(terms):
        truth = helpers.dense((*made.joint_feature(i, made.truth(i)), 0.0), made.d)
        for row in rng.choice(len(rows), 6):
            y = table.labelings[i][row].astype(np.uint8)
            plane = helpers.dense(made.plane(i, y), made.d)
            np.testing.assert_allclose(plane, rows[row], rtol=0, atol=ROUNDING)
            apart = helpers.dense((*made.joint_feature(i, y), 0.0), made.d) - truth
            np.testing.assert_allclose(apart[:-1] / made.n, rows[row, :-1], atol=ROUNDING)
        value = (rows @ np.append(w, 1.0)).max()
        found = made.best_plane(w, i)[1]
        assert found <= value + ROUNDING
        bound = found if K == 2 else made.upper_bound(w, i)
        assert bound >= value - ROUNDING
    helpers.check_risk(made, w, ROUNDING)


@pytest.mark.parametrize("data", ["attractive", "features"])
@pytest.mark.parametrize("K", MODULES)
def test_the_contract_of_oracles_holds(K, data):
    made, _, _ = posed(K, data)
    findings = Findings("learned")
    check_oracle(made, findings)
    assert findings.broken == 0, list(findings.shown())


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_reach_the_constrained_optimum(name, data):
    made, terms, _ = posed(data=data)
    best, w_best = optimum(data)
    assert (w_best[-made.nonnegative :] == 0.0).tolist() == DATA[data]
    problem = Problem(made, LAM)
    for w, dual in helpers.enclosing(helpers.solver(problem, name), best, 60, 1e-8, 1e-12):
        assert (w[-made.nonnegative :] >= 0.0).all()
        primal = 0.5 * LAM * w @ w
        primal += sum((rows @ np.append(w, 1.0)).max() for rows in terms)
        assert problem.primal(w) == pytest.approx(primal, abs=ROUNDING)
        if primal - dual < 1e-9:
            break
    # Frank–Wolfe steps are sublinear: of those alone, only the bounds are tested
    if name[:4] != "bcfw":
        assert dual == pytest.approx(best, rel=1e-4 if name in LINEAR else 0.02)
    if name in LINEAR:
        np.testing.assert_allclose(w, w_best, atol=1e-3)


def test_the_path_of_lambda_keeps_it_too():
    made, _, _ = posed(data="repulsive")
    tested = helpers.iterated(helpers.solver(Problem(made, 1.0), "mpbcfw"), 5)
    tested.warm_start(LAM, tested.clock)
    before = tested.reported().dual
    tested.iterate()
    w, dual = tested.reported()
    assert w[-1] >= 0.0
    assert before <= dual <= Problem(made, LAM).primal(w)


def test_a_negative_weight_is_refused():
    made, _, _ = posed()
    with pytest.raises(RunFailedError, match="keep the last weights"):
        made.argmax(-np.ones(made.d), 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(([f"solver={name}"], f"solver={name} does not keep") for name in ("fw", "one_slack")),
        (["solver=bcfw", "prior.mean=1"], "needs prior.mean=0"),
    ],
)
def test_what_does_not_fit_is_refused(words, message):
    config = config_of("dataset=weizmann", "oracle=mincut", "oracle.potts=learned", *words)
    with pytest.raises(ConfigError, match=message):
        check_requirements(config)


@pytest.mark.parametrize("potts", ["learn", -1.0])
def test_only_a_weight_or_the_word_will_do(potts):
    with pytest.raises(ConfigError, match=r"oracle\.potts"):
        mincut.Config("mincut", "mincut", potts=potts)


def graphs():
    """Return X and y of twelve graphs."""
    data = helpers.random_graphs([6] * 12, 2, 2, seed=1)
    X, y = [], []
    for i in range(data.n):
        parts = slice(*data.offsets[i : i + 2])
        X.append((data.x[parts], data.edges[slice(*data.edge_offsets[i : i + 2])]))
        y.append(np.sort(data.y[parts]))
    return X, y


def learned(X, y, **options):
    return StructuredSVM("graph", potts="learned").fit(X, y, **options)


def test_the_estimator_learns_it():
    X, y = graphs()
    for model in (learned(X, y), learned(X, y, sample_weight=range(1, 13))):
        assert model.weights_.shape == (2 * 3 + 1,)
        assert model.weights_[-1] >= 0.0
        assert len(model.predict(X)) == len(X)
    with pytest.raises(ConfigError, match="potts must be"):
        StructuredSVM("graph", potts="learn").fit(X, y)


def test_the_estimator_learns_it_unless_it_is_given():
    X, y = graphs()
    model = StructuredSVM("graph")
    assert model.potts == "learned"
    assert model.fit(X, y).weights_.tolist() == learned(X, y).weights_.tolist()
    with pytest.raises(
        ConfigError, match=r"solver=one_slack does not keep .* or give a number for potts"
    ):
        StructuredSVM("graph", solver="one_slack").fit(X, y)


def test_a_pickled_model_keeps_the_weight_that_was_the_default_of_version_1_0():
    X, y = graphs()
    fixed = StructuredSVM("graph", potts=1.0).fit(X, y)
    state = fixed.__getstate__()
    del state["_edges"]  # which version 1.0 did not have
    old = StructuredSVM.__new__(StructuredSVM)
    old.__setstate__(pickle.loads(pickle.dumps(state)))
    assert old.potts == clone(old).potts == 1.0
    assert [each.tolist() for each in old.predict(X)] == [
        each.tolist() for each in fixed.predict(X)
    ]
    assert old.fit(X, y).weights_.tolist() == fixed.weights_.tolist()


def test_a_learned_weight_does_no_harm_where_parts_are_many():
    rng, side = np.random.default_rng(0), 10
    places = np.arange(side * side).reshape(side, side)
    pairs = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    edges = np.vstack([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    y = [(rng.random((side, side)) < 0.5).astype(int).ravel() for _ in range(20)]
    X = [(labels[:, None] + 0.5 * rng.normal(size=(side * side, 1)), edges) for labels in y]

    def right(potts, lam):
        model = StructuredSVM("graph", potts=potts, lam=lam, max_iterations=50)
        return model.fit(X[:10], y[:10]).score(X[10:], y[10:])

    for lam in (0.03, 3.0):  # neighbours say nothing of each other
        assert right("learned", lam) >= right(0.0, lam) - 0.02 > right(1.0, lam)


def test_the_estimator_learns_weights_of_edges_features():
    X, y = graphs()
    rng = np.random.default_rng(0)
    Z = []
    for (x, edges), labels in zip(X, y, strict=True):
        same = np.equal(*labels[edges.T])
        edge_x = np.column_stack((same + 0.1 * rng.random(same.size), rng.random(same.size)))
        Z.append((x, edges[::-1, ::-1], edge_x[::-1]))  # in any order

    model = learned(Z, y)
    assert model.weights_.shape == (2 * 3 + 2,)
    assert (model.weights_[-2:] >= 0.0).all()
    with pytest.raises(ValueError, match="X has 0 features an edge, and 2 were trained with"):
        model.predict(X)
    # a feature that is always 1 is what edges have that have none; one twice shares its weight
    ones = [(x, edges, np.ones((len(edges), 1))) for x, edges in X]
    assert np.array_equal(learned(ones, y).weights_, learned(X, y).weights_)
    twice = [(x, np.vstack((e, e[:1])), np.vstack((of, of[:1]))) for x, e, of in Z]
    assert np.array_equal(learned(twice, y).weights_, model.weights_)


PAIR = np.ones((2, 3)), [(0, 1)]
TWICE = PAIR[0], [(0, 1), (1, 0)], [[1.0], [2.0]]
FIELD = r"edge_x, .* of shape \(1, …\), got float64 of shape "


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([(*PAIR, [[1.0]]), PAIR], r"X\[1\] has 2 entries, and X\[0\] has 3: give features of ed"),
        ([(*PAIR, [[1.0]]), (*PAIR, [[1.0, 2.0]])], r"X\[1\], has 2 columns, that of X\[0\] 1"),
        *(
            ([(*PAIR, [[value]])] * 2, f"of edge 0 is {value:g}, and must be at least 0")
            for value in (-1.0, np.nan, np.inf)
        ),
        ([(*PAIR, [[1.0], [2.0]])] * 2, FIELD + r"\(2, 1"),
        ([(*PAIR, [1.0])] * 2, FIELD + r"\(1,\)"),
        ([(*PAIR, np.ones((1, 0)))] * 2, "and no features: leave it out"),
        ([(*PAIR, [["a"]])] * 2, "edge_x, the third entry of .* must be an array of numbers"),
        ([TWICE] * 2, "an edge twice, with different feat"),
    ],
)
def test_features_of_edges_that_are_none_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM("graph").fit(X, [[0, 1]] * 2)
