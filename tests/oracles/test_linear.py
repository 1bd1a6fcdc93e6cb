"""Binary problems and regression: their oracles, their optimum, costs and margins."""

import math
from dataclasses import replace

import helpers
import linear
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, LinearSVC, LinearSVR

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import catalog, registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.validation import NamedNumbers
from ssvm_bench.datasets.vocabulary import PYTHON, Vocabulary
from ssvm_bench.oracles import mincut, multiclass, regression, viterbi
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.objective import STRUCTURAL_SVM

ROUNDING = 1e-12
FILES = catalog.entries("solver")
KINDS = {name: catalog.read("solver", name, FILES).options["kind"] for name in FILES}
SOLVERS = tuple(
    name
    for name, kind in KINDS.items()
    if registry.module("solver", kind).Config.family == STRUCTURAL_SVM
)


class PlainWithScore(helpers.Plain):
    """The same with a fixed score."""

    def fixed_score(self, i, y):
        return self.inner.fixed_score(i, y)


def of_kind(data):
    return linear.regression_oracle if data.structure == "regression" else linear.binary_oracle


def weights(n, seed):
    return np.random.default_rng(seed).uniform(0.2, 3.0, n)


@st.composite
def instances(draw):
    """Draw (dataset, its oracle, w), with costs and margins or without."""
    n, f, seed = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(0, 99))
    fields = {"costs": weights(n, seed)} if draw(st.booleans()) else {}
    w = np.random.default_rng(seed + 1).normal(size=f)
    if draw(st.booleans()):
        data = linear.random_regression(n, f, seed, **fields)
    else:
        margins = weights(n, seed + 2) if draw(st.booleans()) else None
        data = linear.random_binary(n, f, seed, margins=margins, **fields)
    return data, of_kind(data)(data), w


@given(instances())
@settings(max_examples=60)
def test_planes_and_risk_follow_their_definitions(instance):
    data, tested, w = instance
    planes = linear.planes(data)
    assert (tested.n, tested.d) == (data.n, data.n_features)
    values = planes @ np.append(w, 1.0)
    for i in range(data.n):
        for label, expected in enumerate(planes[i]):
            found = helpers.dense(tested.plane(i, np.array([label], np.uint8)), tested.d)
            np.testing.assert_allclose(found, expected, atol=1e-14)
        (best,) = tested.argmax(w, i)
        assert values[i, best] == pytest.approx(values[i].max(), abs=ROUNDING)
    for risk in (tested.risk(w), Oracle.risk(tested, w), PlainWithScore(tested).risk(w)):
        assert risk.value == pytest.approx(values.max(axis=1).sum(), abs=ROUNDING)
        assert risk.star @ w + risk.offset == pytest.approx(risk.value, abs=ROUNDING)
    largest = np.linalg.norm(planes[:, :, :-1] * data.n, axis=2).max()
    assert tested.features.squared_radius == pytest.approx(largest**2, rel=1e-12)


@given(instances())
@settings(max_examples=30)
def test_constraints_are_the_planes_of_all_wrong_labels(instance):
    _, tested, _ = instance
    helpers.check_constraints(tested, tested.features.n_labels)


def test_binary_risk_is_the_mean_hinge_and_the_loss_the_share_of_wrong_signs():
    data = linear.random_binary(40, 3, seed=1)
    tested, w = linear.binary_oracle(data), np.array([0.3, -1.0, 0.5])
    score, sign = data.x @ w, 2.0 * data.y - 1
    assert tested.risk(w).value == pytest.approx(np.maximum(0, 1 - sign * score).mean())
    assert tested.mean_loss(w) == np.mean(np.where(score > 0, 1, 0) != data.y)
    assert 0.0 < tested.mean_loss(w) < 1.0


def test_regression_risk_is_the_mean_excess_and_the_loss_the_mean_absolute_error():
    data = linear.random_regression(40, 3, seed=1)
    tested, w = linear.regression_oracle(data), np.array([0.3, -1.0, 0.5])
    off = np.abs(data.y - data.x @ w)
    assert tested.risk(w).value == pytest.approx(np.maximum(0, off - linear.EPSILON).mean())
    assert tested.mean_loss(w) == pytest.approx(off.mean())
    above = data.x @ w - data.y
    expected = np.where(above > linear.EPSILON, 1, np.where(above < -linear.EPSILON, 2, 0))
    assert [tested.predict(w, i)[0] for i in range(data.n)] == expected.tolist()


@pytest.mark.parametrize(
    "data",
    [
        linear.random_binary(4, 3, costs=weights(4, 0), margins=weights(4, 1)),
        linear.random_regression(4, 3, costs=weights(4, 0)),
    ],
    ids=["binary", "regression"],
)
def test_expectations_are_those_of_the_gibbs_distribution(data):
    z = np.array([0.5, -0.3, 0.8, 1.7])
    helpers.check_gibbs(of_kind(data)(data), z, linear.planes(data))


def test_scores_of_two_classes_are_another_problem_than_one_number():
    # with weights for each class, ‖w‖² is half as large for the same scores
    data = linear.random_binary(30, 3, seed=2)
    two, one = linear.multiclass_oracle(data), linear.binary_oracle(data)
    w = np.array([0.4, -0.2, 1.0])
    assert (one.d, two.d) == (3, 6)
    assert two.risk(np.concatenate((-w / 2, w / 2))).value == pytest.approx(one.risk(w).value)


def optimum(data):
    """Return P(w) at C = 1 of what LIBLINEAR finds, by the definition of P."""
    options = {"C": 1.0, "fit_intercept": False, "tol": 1e-10, "max_iter": 10**7}
    costs = np.ones(data.n) if data.costs is None else data.costs
    if data.structure == "regression":
        w = LinearSVR(epsilon=linear.EPSILON, **options).fit(data.x, data.y, data.costs).coef_
        losses = np.maximum(0, np.abs(data.y - data.x @ w) - linear.EPSILON)
    else:
        sign = 2.0 * data.y - 1
        w = LinearSVC(loss="hinge", **options).fit(data.x, sign, data.costs).coef_[0]
        losses = np.maximum(0, 1 - sign * (data.x @ w))
    return 0.5 / data.n * w @ w + (costs * losses).mean()


def with_constant(data, v=1.0):
    return replace(data, x=np.column_stack((data.x, np.full(data.n, v))))


PROBLEMS = {
    "binary": with_constant(linear.random_binary(60, 3, seed=3)),
    "binary, costs": linear.random_binary(60, 3, seed=4, costs=weights(60, 4)),
    "regression": with_constant(linear.random_regression(60, 3, seed=5)),
    "regression, costs": linear.random_regression(60, 3, seed=6, costs=weights(60, 6)),
}


def posed(data):
    return Problem(of_kind(data)(data), 1 / data.n)


def solved(problem, name, **options):
    """Return w and the dual value of a solver at a gap of 1e-8 of it, or after 300 iterations."""
    for w, dual in helpers.reports(helpers.solver(problem, name, **options), 300):
        if problem.primal(w) - dual <= 1e-8 * dual:
            break
    return w, dual


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    ("solved_by", "options"), [("mpbcfw_fast", {}), ("one_slack", {"epsilon": 1e-8})]
)
def test_the_optimum_is_liblinears(name, solved_by, options):
    problem, expected = posed(PROBLEMS[name]), optimum(PROBLEMS[name])
    w, dual = solved(problem, solved_by, **options)
    assert (problem.primal(w), dual) == pytest.approx((expected, expected), rel=1e-6)


def test_a_large_constant_is_a_bias_that_is_not_regularised():
    """Section 1.1: v → ∞ is (4), which LIBSVM solves."""
    data = linear.random_binary(40, 2, seed=3)
    data = replace(data, x=data.x + 3.0)
    expected = SVC(kernel="linear", C=1.0, tol=1e-8).fit(data.x, data.y).intercept_[0]
    off = []
    for v in (1.0, 10.0, 100.0):
        w, _ = solved(posed(with_constant(data, v)), "mpbcfw_fast")
        off.append(abs(v * w[-1] / expected - 1))
    assert off[2] < 0.01 < off[0]
    assert off[2] < off[1] < off[0]


@pytest.mark.parametrize("kind", ["binary", "regression"])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_encloses_the_optimum(kind, name):
    data = PROBLEMS[kind].take(np.arange(30))
    problem, best = posed(data), optimum(data)
    for w, dual in helpers.reports(helpers.solver(problem, name), 40):
        assert problem.primal(w) >= best * (1 - 1e-6)
        assert math.isnan(dual) or dual <= best * (1 + 1e-6)
    assert problem.primal(w) - best < 0.6 * (problem.primal(np.zeros(problem.d)) - best)


@pytest.mark.parametrize("kind", ["binary", "regression"])
@pytest.mark.parametrize("name", ["bcfw", "mpbcfw", "mpbcfw_pairwise", "ssg"])
def test_labelings_and_rows_take_the_same_steps(kind, name):
    compiled = posed(PROBLEMS[f"{kind}, costs"])
    called = replace(compiled, oracle=PlainWithScore(compiled.oracle))
    one, other = (helpers.solver(of, name) for of in (compiled, called))
    for _ in helpers.together(10, one, other):
        np.testing.assert_allclose(one.reported().w, other.reported().w, atol=1e-9)


W = np.random.default_rng(7).normal(size=12)
TEXT_OR_MAPPING = "oracle.class_weight must be text or a mapping of names to numbers"


@pytest.mark.parametrize(
    ("K", "build"),
    [(2, linear.multiclass_oracle), (2, linear.binary_oracle), (4, linear.multiclass_oracle)],
)
def test_a_cost_is_a_number_of_repetitions(K, build):
    data, times = helpers.random_multiclass(10, K, 3, seed=8), 1 + np.arange(10) % 3
    weighted = build(replace(data, costs=times * data.n / times.sum()))
    many = build(linear.repeated(data, times))
    one, other = (made.risk(W[: weighted.d]) for made in (weighted, many))
    assert one.value == pytest.approx(other.value)
    np.testing.assert_allclose(one.star, other.star, atol=1e-14)


@pytest.mark.parametrize("K", [2, 4])
def test_margins_scale_the_loss(K):
    data = helpers.random_multiclass(8, K, 3, seed=9)
    margins = np.arange(8) / 2.0
    scores = data.x @ W[: 3 * K].reshape(K, 3).T
    losses = margins[:, None] * (np.arange(K) != data.y[:, None])
    raised = scores + losses - scores[np.arange(8), data.y][:, None]
    tested = linear.multiclass_oracle(replace(data, margins=margins))
    assert tested.risk(W[: 3 * K]).value == pytest.approx(raised.max(axis=1).mean())
    # what is told of predictions is of labels alone
    plain = linear.multiclass_oracle(data)
    assert tested.mean_loss(W[: 3 * K]) == plain.mean_loss(W[: 3 * K]) > 0


@pytest.mark.parametrize("costs", [None, weights(9, 10)], ids=["plain", "costs"])
@pytest.mark.parametrize(
    ("build", "names"),
    [(linear.binary_oracle, ("-1", "1")), (linear.multiclass_oracle, ("0", "1"))],
)
def test_class_weights_are_costs(build, names, costs):
    data = linear.random_binary(9, 3, seed=10, costs=costs)
    counts = np.bincount(data.y, minlength=2)
    assert counts[0] != counts[1] > 0
    balanced = 9 / (2 * counts)
    w = W[: build(data).d]
    for option, of_class in (
        ("balanced", balanced),
        (NamedNumbers(zip(names, balanced, strict=True)), balanced),
        (NamedNumbers({names[1]: 5.0}), np.array([1.0, 5.0])),
    ):
        expected = build(replace(data, costs=of_class[data.y] * (1.0 if costs is None else costs)))
        made = build(data, class_weight=option)
        assert made.risk(w).value == pytest.approx(expected.risk(w).value, rel=1e-14)
    assert build(data).risk(w).value == build(data, class_weight="none").risk(w).value


def test_balanced_classes_weigh_the_same_and_a_missing_one_nothing():
    data = helpers.random_multiclass(20, 3, 2, seed=11)
    config = multiclass.Config(**linear.COSTS, class_weight="balanced")
    costs = config.example_costs(data)
    assert [costs[data.y == c].sum() for c in range(3)] == pytest.approx([20 / 3] * 3)
    alone = data.take(np.flatnonzero(data.y == 1))
    assert config.example_costs(alone).tolist() == [1.0] * alone.n


def test_class_weights_of_the_command_line():
    def composed(data, *options):
        (run,) = compose_runs([f"dataset={data}", *options])
        return run

    run = composed("adult", "oracle.class_weight={-1: 1, 1: 3}")
    others = composed("adult", "oracle.class_weight={1:3.0,-1:1}"), composed("adult")
    parts = composed("conll2000", "oracle.class_weight={B-NP: 2}")
    assert parts.oracle.class_weight == {"B-NP": 2.0}
    assert run.oracle.class_weight == {"-1": 1.0, "1": 3.0}
    hashes = [each.with_source("real").hash() for each in (run, *others)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert run.resolved()["oracle"]["class_weight"] == {"-1": 1.0, "1": 3.0}
    odd = composed("adult", "oracle.class_weight={-1.0:1,1.5:3}").oracle.class_weight
    assert odd == {"-1.0": 1.0, "1.5": 3.0}


def test_class_weights_are_found_by_name_and_else_by_number():
    data = helpers.random_multiclass(30, 4, 2)
    names = Vocabulary(("1", "1.0", "+2", "nan"), PYTHON, "independent", 2)
    data = replace(data, vocabulary=names)

    def weights(**of):
        config = multiclass.Config(**linear.COSTS, class_weight=NamedNumbers(of))
        costs = config.example_costs(data)
        return [costs[data.y == c][0] for c in range(4)]

    assert weights(**{"1": 2.0}) == [2.0, 1.0, 1.0, 1.0]
    assert weights(**{"1.0": 2.0, "2.0": 3.0}) == [1.0, 2.0, 3.0, 1.0]
    assert weights(nan=2.0) == [1.0, 1.0, 1.0, 2.0]
    for other in ("3", "NaN", "two", ""):
        with pytest.raises(ConfigError, match=f"a weight for {other}, and the labels of tiny are"):
            weights(**{other: 2.0})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("balance", "oracle.class_weight=balance is not known.*balanced"),
        ("{1: 0}", "oracle.class_weight.1 must be a positive number, got 0"),
        ("{1: -2}", "oracle.class_weight.1 must be a positive number"),
        *((value, TEXT_OR_MAPPING) for value in ("{1: many}", "[1, 2]", "3", "{true: 1}")),
    ],
)
def test_bad_class_weights_are_one_message(value, message):
    with pytest.raises(ConfigError, match=message):
        compose_runs(["dataset=adult", f"oracle.class_weight={value}"])


def test_weights_of_classes_that_there_are_not_are_refused():
    with pytest.raises(ConfigError, match="a weight for 0, and the labels of tiny are -1, 1"):
        linear.binary_oracle(linear.random_binary(4, 2), class_weight=NamedNumbers({"0": 2.0}))
    config = viterbi.Config(**linear.COSTS, class_weight=NamedNumbers({"B-NP": 2.0}))
    with pytest.raises(ConfigError, match=r"a weight for B-NP, and the labels of tiny are 0, 1\."):
        config.part_weights(helpers.random_chains([2], 2, 2))


def test_oracles_refuse_what_they_cannot_heed():
    ones = np.ones(3)
    for module, data in (
        (viterbi, helpers.random_chains([2, 1, 3], 2, 2)),
        (mincut, helpers.random_graphs([2, 1, 3], 2, 2)),
    ):
        for name in ("costs", "margins"):
            with pytest.raises(ConfigError, match=f"its examples have {name}, which this oracle"):
                module.build(module.Config(**linear.COSTS), replace(data, **{name: ones}))
    with pytest.raises(ConfigError, match="its examples have margins"):
        linear.regression_oracle(linear.random_regression(3, 2, margins=ones))
    with pytest.raises(ConfigError, match=r"two labels, and those of tiny are 3\. Try oracle=mul"):
        linear.binary_oracle(helpers.random_multiclass(3, 3, 2))
    with pytest.raises(ConfigError, match="handles regression labels, and those of tiny are ind"):
        linear.regression_oracle(linear.random_binary(3, 2))
    with pytest.raises(ConfigError, match=r"oracle\.epsilon must be ≥ 0"):
        regression.Config(**linear.COSTS, epsilon=-0.1)
