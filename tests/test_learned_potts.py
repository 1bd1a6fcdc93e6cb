"""`oracle.potts=learned`: against enumeration, and a QP solver on all planes."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import Table, iterated, minimised_over_simplices, random_graphs, solver
from program import config_of

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.oracles import alpha_expansion, mincut
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.runs.components import check_requirements
from ssvm_bench.runs.contracts import Findings, of_oracles

LAM = 0.1
# Sums of at most 100 terms below 100, taken in different orders: 100 · 2⁻⁵³ · 100 < 2e-12.
ROUNDING = 2e-12
MODULES = {2: mincut, 3: alpha_expansion}
SOLVERS = (
    *("bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg", "mpbcfw_gram", "mpbcfw_pairwise"),
    *("mpbcfw_accelerated", "mpbcfw_fast", "mpbcfw_in_out", "dcd"),
)
LINEAR = ("mpbcfw_pairwise", "mpbcfw_fast", "mpbcfw_in_out")
DATA = ("attractive", "repulsive")
"""Labels of neighbours are the same, or often different: there p is 0."""


def posed(K=2, seed=8, repulsive=False):
    """Return an oracle, and the dense planes of its terms, [φ⋆ of the nodes, of p, φ∘]."""
    data = random_graphs([4, 3, 5, 2], K, 2, seed=seed)
    example = np.repeat(np.arange(data.n), np.diff(data.offsets))
    y = (np.arange(example.size) if repulsive else example) % K
    data = replace(data, y=y.astype(np.uint8))
    module = MODULES[K]
    made = module.build(module.Config("tiny", "tiny", potts="learned"), data)
    free, one = Table(data, 0.0).planes, Table(data, 1.0).planes
    terms = [
        np.column_stack((rows[:, :-1], with_cuts[:, -1] - rows[:, -1], rows[:, -1]))
        for rows, with_cuts in zip(free, one, strict=True)
    ]
    return made, terms, Table(data)


def optimum(terms):
    """Return the optimal value and w by another solver, of the dual over all planes."""
    stacked = np.vstack(terms)
    star, circ = stacked[:, :-1], stacked[:, -1]
    floor = np.full(star.shape[1], -np.inf)
    floor[-1] = 0.0

    def value(alpha):
        w = np.maximum(-(alpha @ star) / LAM, floor)
        return 0.5 * LAM * w @ w - alpha @ circ, -(star @ w + circ)

    found = minimised_over_simplices(value, [len(rows) for rows in terms])
    return -found.fun, np.maximum(-(found.x @ star) / LAM, floor)


@pytest.mark.parametrize("K", MODULES)
def test_planes_and_risk_are_those_of_their_definitions(K):
    made, terms, table = posed(K)
    rng = np.random.default_rng(K)
    w = rng.normal(size=made.d)
    w[-1] = abs(w[-1])
    assert made.d == table.d + 1
    for i, rows in enumerate(terms):
        for row in rng.choice(len(rows), 6):
            y = table.labelings[i][row].astype(np.uint8)
            plane, dense = made.plane(i, y), np.zeros(made.d + 1)
            dense[plane.indices], dense[-1] = plane.values, plane.offset
            np.testing.assert_allclose(dense, rows[row], rtol=0, atol=ROUNDING)
        value = (rows @ np.append(w, 1.0)).max()
        found = made.best_plane(w, i)[1]
        assert found <= value + ROUNDING
        if K == 2:
            assert found == pytest.approx(value, abs=ROUNDING)
    fast, slow = made.risk(w), Oracle.risk(made, w)
    assert fast.value == pytest.approx(slow.value, abs=ROUNDING)
    assert fast.offset == pytest.approx(slow.offset, abs=ROUNDING)
    np.testing.assert_allclose(fast.star, slow.star, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("K", MODULES)
def test_the_contract_of_oracles_holds(K):
    made, _, _ = posed(K)
    findings = Findings("learned")
    of_oracles.check(made, findings)
    assert findings.broken == 0, list(findings.shown())


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_reach_the_constrained_optimum(name, data):
    made, terms, _ = posed(repulsive=data == "repulsive")
    best, w_best = optimum(terms)
    assert (w_best[-1] == 0.0) == (data == "repulsive")
    problem = Problem(made, LAM)
    tested, last = solver(problem, name), 0.0
    for _ in range(60):
        w, dual = tested.reported()
        assert w[-1] >= 0.0
        primal = 0.5 * LAM * w @ w
        primal += sum((rows @ np.append(w, 1.0)).max() for rows in terms)
        assert problem.primal(w) == pytest.approx(primal, abs=ROUNDING)
        assert dual <= best + 1e-8
        assert primal >= best - 1e-8
        assert dual >= last - 1e-12
        last = dual
        if tested.converged or primal - dual < 1e-9:
            break
        tested.iterate()
    # Frank–Wolfe steps are sublinear: of those alone, only the bounds are tested
    if name[:4] != "bcfw":
        assert dual == pytest.approx(best, rel=1e-4 if name in LINEAR else 0.02)
    if name in LINEAR:
        np.testing.assert_allclose(w, w_best, atol=1e-3)


def test_the_path_of_lambda_keeps_it_too():
    made, _, _ = posed(repulsive=True)
    tested = iterated(solver(Problem(made, 1.0), "mpbcfw"), 5)
    tested.warm_start(LAM, tested.clock)
    before = tested.reported().dual
    tested.iterate()
    w, dual = tested.reported()
    assert w[-1] >= 0.0
    assert before <= dual <= Problem(made, LAM).primal(w)


def test_a_negative_weight_is_refused():
    made, _, _ = posed()
    with pytest.raises(RunFailedError, match="keep the last weight"):
        made.argmax(-np.ones(made.d), 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["solver=fw"], "solver=fw does not keep"),
        (["solver=one_slack"], "solver=one_slack does not keep"),
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


def test_the_estimator_learns_it():
    data = random_graphs([6] * 12, 2, 2, seed=1)
    X, y = [], []
    for i in range(data.n):
        parts = slice(*data.offsets[i : i + 2])
        X.append((data.x[parts], data.edges[slice(*data.edge_offsets[i : i + 2])]))
        y.append(np.sort(data.y[parts]))
    model = StructuredSVM("graph", potts="learned").fit(X, y)
    assert model.weights_.shape == (2 * 3 + 1,)
    assert model.weights_[-1] >= 0.0
    assert len(model.predict(X)) == data.n
    weighted = StructuredSVM("graph", potts="learned").fit(X, y, sample_weight=range(1, 13))
    assert weighted.weights_[-1] >= 0.0
    with pytest.raises(ConfigError, match="potts must be"):
        StructuredSVM("graph", potts="learn").fit(X, y)
