"""Cutting-plane models, and the bundle and cutting-plane methods built on them."""

import math
from itertools import pairwise
from unittest import mock

import helpers
import numpy as np
import pytest
from program import USPS, call, error_of, run_here
from scipy.linalg import block_diag
from scipy.optimize import linprog

from ssvm_bench.base import memory
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.trace import read_summary
from ssvm_bench.solvers.bundle import qp
from ssvm_bench.solvers.bundle.model import CuttingPlaneModel

LAM = 0.02
PLAIN = ("bmrm", "prox_bmrm", "classical_bundle", "one_slack", "cutting_plane")
METHODS = {name: (name, {}) for name in PLAIN}
METHODS |= {"p_bmrm": ("p_bmrm", {"P": 4}), "n_bmrm": ("p_bmrm", {"P": 8})}  # as many as chains
METHODS |= {"prox_p_bmrm": ("prox_p_bmrm", {"P": 3})}
METHODS |= {f"{name}_drop": (name, {"drop": 10}) for name in ("bmrm", "one_slack")}
METHODS |= {
    "prox_bmrm_always": ("prox_bmrm", {"accept": "always"}),
    "prox_bmrm_printed": ("prox_bmrm", {"accept": "printed"}),
    "prox_bmrm_drop": ("prox_bmrm", {"drop": 2}),
    "classical_bundle_fixed": ("classical_bundle", {"alpha": 10.0}),
    "one_slack_no_cache": ("one_slack", {"cache": 0}),
    "cutting_plane_often": ("cutting_plane", {"accumulate": 1}),
}


def made_of(data, name, **options):
    """Return a solver of the problem of a dataset at LAM."""
    return helpers.solver(helpers.problem(data, LAM), name, **options)


def value_of(model, w):
    """Return R_t(w), the model of the risk."""
    heights = model._planes[: model.size] @ w + model._offsets[: model.size]
    return sum(heights[model._block[: model.size] == p].max() for p in range(model.P))


def sample(model, posed, w):
    """Add the planes of the risk at w to a model, one a block of terms; return them."""
    bounds = np.linspace(0, posed.n, model.P + 1).astype(int)
    parts = [posed.oracle.risk(w, terms=range(a, b)) for a, b in pairwise(bounds)]
    model.add(np.array([part.star for part in parts]), np.array([p.offset for p in parts]))
    return parts


@pytest.fixture(scope="module", params=helpers.SMALL.values(), ids=helpers.SMALL)
def data(request):
    return request.param


@pytest.fixture(scope="module")
def best(data):
    """The optimum at LAM, found once for all methods."""
    return helpers.optimum(helpers.problem(data, LAM))


@pytest.mark.parametrize("P", [1, 2, 5])
def test_the_model_is_a_lower_bound_and_tight_where_it_was_sampled(data, P):
    posed, rng = helpers.problem(data, LAM), np.random.default_rng(0)
    model, points = CuttingPlaneModel(posed.d, P, truth=False), rng.normal(size=(6, posed.d))
    for w in points:
        parts, whole = sample(model, posed, w), posed.oracle.risk(w)
        assert sum(part.value for part in parts) == pytest.approx(whole.value, rel=1e-12)
        np.testing.assert_allclose(sum(part.star for part in parts), whole.star, atol=1e-14)
    assert model.size == 6 * P
    for w in points:
        assert value_of(model, w) == pytest.approx(posed.oracle.risk(w).value, rel=1e-12)
    for w in 2 * rng.normal(size=(50, posed.d)):
        assert value_of(model, w) <= posed.oracle.risk(w).value + 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_the_reduced_problem_is_minimised(data, alpha):
    posed, rng = helpers.problem(data, LAM), np.random.default_rng(1)
    model, c = CuttingPlaneModel(posed.d, 1, truth=True), rng.normal(size=posed.d)
    for w in rng.normal(size=(8, posed.d)):
        sample(model, posed, w)
    model.move_center(c)

    def objective(w):
        return LAM / 2 * w @ w + value_of(model, w) + alpha * (w - c) @ (w - c)

    found = model.minimise(LAM, alpha, 1e-10, 10**6)
    assert found.gap <= 1e-10
    assert objective(found.w) == pytest.approx(found.value, abs=2e-10)
    for step in rng.normal(size=(40, posed.d)):
        assert objective(found.w + step) >= found.value
        assert objective(found.w + 1e-3 * step) >= found.value
    assert found.heights.max() == pytest.approx(value_of(model, found.w), rel=1e-9)
    # what is known of the planes at a minimiser is what is computed
    model.move_center(found.w, found.heights)
    near = model.minimise(LAM, 5.0, 1e-10, 10**6)
    model.move_center(found.w)
    np.testing.assert_allclose(near.w, model.minimise(LAM, 5.0, 1e-10, 10**6).w, atol=1e-7)


@pytest.mark.parametrize(("other", "often"), [(0.0, 0.3), (0.3, 0.0)])
def test_a_start_that_planes_were_dropped_from_is_not_used(data, other, often):
    """Both kinds of problems start at their own last solution, if all of it is still there."""
    posed, model = (
        helpers.problem(data, LAM),
        CuttingPlaneModel(helpers.problem(data).d, 2, truth=False),
    )
    sample(model, posed, np.random.default_rng(6).normal(size=posed.d))
    model.minimise(LAM, other, 1e-9, 10**6)
    for _ in range(12):
        sample(model, posed, model.minimise(LAM, often, 1e-9, 10**6).w)
    model.minimise(LAM, often, 1e-9, 10**6)
    assert model.drop(1)
    found = model.minimise(LAM, other, 1e-9, 10**6)
    lowest = LAM / 2 * found.w @ found.w + value_of(model, found.w) + other * found.w @ found.w
    assert found.value <= lowest <= found.value + 2e-9


EXACT = {"epsilon": 1e-9}
"""QPs are solved to a hundredth of that."""


def same(one, other):
    """Tell whether two solvers are at the same point, as far as their QPs are exact."""
    (w, dual), (w_other, dual_other) = one.reported(), other.reported()
    return np.abs(w - w_other).max() < 1e-4 and abs(dual - dual_other) < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_weak_duality_a_true_certificate_and_the_same_optimum(data, best, method):
    name, options = METHODS[method]
    made = made_of(data, name, epsilon=1e-5, **options)
    *_, (w, dual) = helpers.enclosing(made, best, 5000, fall=1e-12)
    assert made.converged
    primal = made.problem.primal(w)
    assert primal - dual <= 1e-5 * primal * (1 + 1e-9)
    assert (primal, dual) == pytest.approx((best, best), rel=1e-5)


@pytest.mark.parametrize("planes", [3, 64])
def test_planes_that_memory_cannot_hold_end_the_run(monkeypatch, planes):
    d, model = 1 << 18, CuttingPlaneModel(1 << 18, 1, truth=False)
    stars, heights = np.zeros((1, d)), np.zeros(1)
    for _ in range(planes):
        model.add(stars, heights)
    # room for one plane more and what is beside it, but not for a copy of 64
    free = 8 * d * (5 if planes == 64 else 4)
    monkeypatch.setattr(memory, "available", lambda: free)
    with pytest.raises(RunFailedError, match=rf"has {planes} planes of 262,144.*solver.drop=10"):
        model.add(stars, heights)


@pytest.mark.parametrize("method", ["bmrm", "one_slack", "cutting_plane", "prox_p_bmrm"])
def test_an_oracle_that_is_called_from_python_will_do(method):
    name, options = METHODS[method]
    data = helpers.SMALL["chains"]
    for posed in (helpers.problem(data, LAM), Problem(helpers.Plain(helpers.oracle(data)), LAM)):
        made = helpers.solver(posed, name, epsilon=1e-4, **options)
        w, dual = helpers.converged_in(made, 5000).reported()
        assert posed.primal(w) - dual <= 1e-4 * posed.primal(w) * (1 + 1e-9)


@pytest.mark.parametrize("method", ["bmrm", "one_slack_no_cache"])
def test_the_order_of_the_examples_does_not_matter(data, method):
    name, options = METHODS[method]
    shuffled = data.take(np.random.default_rng(5).permutation(data.n))
    one, other = (made_of(of, name, **EXACT, **options) for of in (data, shuffled))
    for _ in helpers.together(6, one, other):
        assert same(one, other)


def test_one_slack_without_cache_is_bmrm_with_one_plane_more(data):
    one, other = made_of(data, "one_slack", cache=0, **EXACT), made_of(data, "bmrm", **EXACT)
    other.model = CuttingPlaneModel(other.problem.d, 1, truth=True)
    for _ in helpers.together(6, one, other):
        assert same(one, other)


def test_the_caches_save_calls_of_the_oracle(data):
    calls = []
    for cache in (0, 5):
        made = helpers.solver(helpers.problem(data, LAM), "one_slack", cache=cache, epsilon=1e-3)
        rounds = 0
        for passes, _ in enumerate(helpers.reports(made, 5000), 1):
            rounds += made.approx_passes
            counted = made.clock.oracle_calls, made.clock.approx_calls
            assert counted == (data.n * passes, data.n * rounds)
        calls.append(made.clock.oracle_calls)
        assert (rounds > 0) == (cache > 0)
    assert calls[1] < calls[0]
    # a term keeps the planes used last, no more
    assert all(len(kept) <= 5 for kept in helpers.working_sets(made, helpers.Table(data)))


def test_n_slack_adds_what_exceeds_the_slack(data):
    table, made = helpers.Table(data), made_of(data, "cutting_plane", epsilon=1e-3, accumulate=1000)
    for _ in range(6):
        w, tol = made.reported().w, 0.5 * made._tol() / data.n
        before = helpers.working_sets(made, table)
        made.iterate()
        for i, (old, new) in enumerate(zip(before, helpers.working_sets(made, table), strict=True)):
            values = table.values(w, i)
            violated = values.max() > values[old].max() + tol
            assert len(new) - len(old) == violated
            assert not violated or values[new[-1]] == pytest.approx(values.max())


def test_bmrm_is_the_algorithm(data):
    """Against the definition: planes by enumeration, the reduced problem by its objective."""
    table, made, planes = helpers.Table(data), made_of(data, "bmrm", **EXACT), []

    def reduced(w):
        return LAM / 2 * w @ w + (planes @ np.append(w, 1.0)).max()

    for _ in range(6):
        w = made.reported().w
        planes.append(sum(rows[table.values(w, i).argmax()] for i, rows in enumerate(table.planes)))
        made.iterate()
        w = made.reported().w
        assert max(reduced(w), 0.0) == pytest.approx(made.lower, abs=1e-8)
        for step in np.random.default_rng(0).normal(size=(20, table.d)):
            assert reduced(w + 1e-2 * step) >= reduced(w) - 1e-9


@pytest.mark.parametrize("options", [{}, {"alpha": 10.0}])
def test_the_classical_method_linearises_the_whole_objective(data, options):
    """Equation 8 with F for R: its planes, the proximal step, and what a serious step gains."""
    posed, rng = helpers.problem(data, LAM), np.random.default_rng(4)
    made, points = helpers.solver(posed, "classical_bundle", epsilon=1e-9, **options), []

    def reduced(w):
        return value_of(made.model, w) + made.alpha * (w - made.w) @ (w - made.w)

    for k in range(12):
        points.append(made.point)
        center, primal, predicted = made.w, made.primal, made.predicted
        made.iterate()
        value = posed.primal(points[-1])
        if k > 0:
            serious = made.w is points[-1]
            assert serious == (primal - value >= 0.1 * predicted)
            assert serious or made.w is center
        assert made.primal == pytest.approx(posed.primal(made.w), rel=1e-12)
        fall = made.primal - value_of(made.model, made.point)
        assert made.predicted == pytest.approx(fall, abs=1e-8)
        for step in rng.normal(size=(10, posed.d)):
            for size in (1.0, 1e-3):
                assert reduced(made.point + size * step) >= reduced(made.point) - 1e-9
    for w in points:
        assert value_of(made.model, w) == pytest.approx(posed.primal(w), rel=1e-12)
    for w in 2 * rng.normal(size=(50, posed.d)):
        assert value_of(made.model, w) <= posed.primal(w) + 1e-12


def cutting_planes(table, box, epsilon):
    """Yield w, R(w) and the lower bound of the method without λ (5), (7), over ‖w‖_∞ ≤ box."""
    w, planes, lower, best = np.zeros(table.d), [], 0.0, 1.0  # R(0) is at most 1
    while best - lower > epsilon * best:
        values = [table.values(w, i) for i in range(table.n)]
        best = min(best, risk := sum(v.max() for v in values))
        yield w, risk, lower
        planes.append(sum(table.planes[i][v.argmax()] for i, v in enumerate(values)))
        found = below_the_risk(table, box, np.array(planes), np.ones((len(planes), 1)))
        w, lower = found.x[: table.d], found.fun


def below_the_risk(table, box, planes, blocks):
    """Minimise the sum over the blocks of the largest of their planes."""
    d, parts = table.d, blocks.shape[1]
    cost = np.repeat([0.0, 1.0], [d, parts])
    bounds = [(-box, box)] * d + [(0, None)] * parts
    rows = np.column_stack((planes[:, :-1], -blocks))
    return helpers.believed(linprog(cost, rows, -planes[:, -1], bounds=bounds))


@pytest.mark.parametrize("name", ["chains", "multiclass"])
def test_cutting_planes_without_a_regulariser_zig_zag_and_so_does_bmrm_with_a_small_one(name):
    """Section 2: what (7) does, and that BMRM is nearer to it the smaller λ is."""
    table, data = helpers.Table(helpers.SMALL[name]), helpers.SMALL[name]
    blocks = block_diag(*(np.ones((len(rows), 1)) for rows in table.planes))
    least = below_the_risk(table, 3.0, np.concatenate(table.planes), blocks).fun
    points, risks, lower = map(np.array, zip(*cutting_planes(table, 3.0, 0.01), strict=True))
    assert (np.diff(lower) >= -1e-9).all()
    assert lower[-1] <= least + 1e-9
    assert least - 1e-9 <= risks.min() <= least / 0.99 + 1e-9

    def early(points):
        return np.linalg.norm(np.diff(points[:10], axis=0), axis=1).mean()

    taken, lengths = [], []
    for lam in (1.0, 0.1, 0.01):
        made = helpers.solver(helpers.problem(data, lam), "bmrm", epsilon=0.01)
        found = [made.reported().w, *(w for w, _ in helpers.reports(made, 5000))][:-1]
        taken.append(len(found))
        lengths.append(early(found))
    assert (taken, lengths) == (sorted(taken), sorted(lengths))
    assert len(risks) > 1.5 * taken[1]  # slow
    assert np.count_nonzero(np.diff(risks[:10]) > 0) >= 4  # of nine steps
    assert early(points) > 5 * lengths[0]


def algorithm_2(posed, w, K, epsilon, T):
    """Yield w_{t+1} and whether line 10 holds: Algorithm 2 as printed, line by line.

    It is sent the w_{t+1} with which to continue, because a solution of the reduced problem lies on
    a kink of the risk: which of its subgradients an oracle returns there depends on rounding. Each
    reduced problem is solved anew by its dual (13).
    """

    def reduced(alpha):
        """Minimise F_t(·, α); return the minimiser and the value."""
        A, b, mu = np.array(rows), np.array(offsets), LAM + 2 * alpha
        beta, block = np.eye(len(b))[0], np.zeros(len(b), int)
        q = b + 2 * alpha * A @ w / mu
        found = qp.maximise(A @ A.T, block, q, mu, beta, 1e-13, 10**6)
        return (2 * alpha * w - beta @ A) / mu, found.value + alpha * LAM / mu * w @ w

    rows, offsets = [], []
    alpha, gamma = 0.0, math.inf  # line 1
    while True:  # line 2
        risk = posed.oracle.risk(w)  # R_t has planes at w_1, …, w_t, and nowhere else
        rows.append(risk.star)
        offsets.append(risk.offset)
        new, _ = reduced(alpha)  # line 3
        _, lower = reduced(0.0)
        if not posed.primal(w) - posed.primal(new) >= gamma:  # lines 4 to 6
            for alpha in (0.0, *(2.0**k / posed.n for k in range(60))):  # line 7
                new, _ = reduced(alpha)
                if np.linalg.norm(new - w) <= K:
                    break
            gamma = posed.primal(new) / T - lower / (T * (1 - epsilon))  # line 8
        value = posed.primal(new)
        w = yield new, value - lower <= epsilon * abs(value)  # line 10


def test_accepting_as_printed_is_algorithm_2(data):
    """Each w_t; and a stop, which the solver tests where it searches α, with w_t's own plane."""
    posed, T, epsilon = helpers.problem(data, LAM), 20, 1e-4
    made = helpers.solver(posed, "prox_bmrm", accept="printed", epsilon=epsilon, T=T)
    made = helpers.iterated(made, 10)
    plain = algorithm_2(posed, made.w, made.reach, epsilon, T)
    expected, stops = next(plain)
    passes = accepted = stopped = 0
    while not made.converged:
        before = made.w
        made.iterate()
        passes += 1
        if made.w is not before:
            accepted += 1
            np.testing.assert_allclose(made.w, expected, atol=1e-4)  # as exact as QPs
            stopped += stops
            expected, stops = plain.send(made.w)
    assert made.rejected == passes - accepted > 0
    assert made.model.size == accepted + 1
    assert 1 <= stopped <= T


@pytest.mark.parametrize("accept", ["sufficient", "always", "printed"])
def test_steps_that_were_searched_for_are_as_long_as_they_may_be(data, accept):
    posed = helpers.problem(data, LAM)
    made = helpers.iterated(helpers.solver(posed, "prox_bmrm", epsilon=1e-4, accept=accept), 10)
    reach = made.config.K * np.linalg.norm(made.w)
    assert made.reach == pytest.approx(reach)
    searched = rejected = 0
    while not made.converged:
        primal, point = made.primal, made.point
        if made.due:
            searched += 1
            assert np.linalg.norm(made.point - made.w) <= reach * (1 + 1e-9)
            if made.alpha > 0:
                assert math.log2(made.alpha * data.n).is_integer()
                less = made.alpha / 2 if made.alpha > 1 / data.n else 0.0
                shorter = made.model.minimise(LAM, less, 1e-12, 10**6)
                assert np.linalg.norm(shorter.w - made.w) > reach * (1 - 1e-3)
        due, gamma, lower = made.due, made.gamma, made.lower
        made.iterate()
        rejected += made.w is not point
        if accept == "sufficient" and not due:  # else w_t has not moved
            assert made.primal <= primal - gamma or made.primal == primal
        if due:
            assert made.gamma == pytest.approx((made.primal - lower / (1 - 1e-4)) / 100)
    assert searched > 0
    assert made.diagnostics()["rejected"] == rejected
    assert (rejected > 0) == (accept != "always")


@pytest.mark.parametrize("T", [1, 5, 100])
def test_after_t_iterations_of_at_least_the_threshold_the_stop_holds(data, T):
    """Section 3.1: the oracle is made to tell that each point improves F by just that."""
    made = helpers.solver(helpers.problem(data, LAM), "prox_bmrm", T=T, epsilon=1e-3)
    while made._pretrains or made.due:
        made.iterate()
    threshold = made.gamma
    for k in range(T):
        assert not made.converged, k
        _, planes = made.sample(made.point)
        made.learn(made.primal - threshold * (1 + 1e-9), planes)
        assert not made.due
        assert made.gamma == threshold
    assert made.converged


def test_pretraining_keeps_the_best_of_ten_passes(data):
    posed = helpers.problem(data, LAM)
    made = helpers.solver(posed, "prox_bmrm", seed=3)
    sgd = helpers.solver(posed, "ssg", seed=3, sampling="permutation")
    best, w = math.inf, None
    for k in helpers.together(10, made, sgd):
        here = sgd.reported().w
        if posed.primal(here) < best:
            best, w = posed.primal(here), here
        np.testing.assert_allclose(made._best.w if k < 9 else made.w, w, atol=1e-12)
        assert made.clock.oracle_calls == 2 * (k + 1) * data.n
    assert made.primal == pytest.approx(best)


@pytest.mark.parametrize("name", ["bmrm", "prox_bmrm"])
def test_inner_problems_are_counted(data, name):
    """BMRM solves one an iteration; Prox-BMRM also those of the searches for its weight."""
    made = made_of(data, name, epsilon=1e-3)
    with mock.patch.object(
        CuttingPlaneModel, "minimise", autospec=True, side_effect=CuttingPlaneModel.minimise
    ) as solved:
        iterations = len(list(helpers.reports(made, 5000)))
    assert made.converged
    assert made.diagnostics()["qps"] == solved.call_count > 0
    # not after the last evaluation
    assert solved.call_count == iterations - 1 or name != "bmrm"


def test_reuse_begins_at_the_last_solution(data):
    posed = helpers.problem(data, 0.2)
    made = helpers.solver(posed, "prox_p_bmrm", init="reuse", P=3)
    assert made.config.follows_paths
    assert made.config.needs_path
    assert not made.proximal  # w₁ = 0
    w = helpers.converged_in(made, 5000).reported().w
    made.warm_start(0.05, Clock("work"))
    np.testing.assert_array_equal(made.reported().w, w)
    assert made.proximal
    assert not made.converged
    assert made.clock.oracle_calls == 0
    w, after = helpers.converged_in(made, 5000).reported().w, Problem(posed.oracle, 0.05)
    best = helpers.optimum(after)
    assert best <= after.primal(w) <= best / 0.99 + 1e-12


@pytest.mark.parametrize("name", ["bmrm", "one_slack", "cutting_plane"])
def test_a_qp_that_does_not_converge_ends_the_run_at_its_best_point(data, name):
    posed = helpers.problem(data, LAM)
    few = {"qp_passes": 1} if name == "cutting_plane" else {"qp_steps": 1}
    made = helpers.solver(posed, name, epsilon=1e-6, **few)
    best = posed.primal(np.zeros(posed.d))
    while not made.ended:
        made.iterate()
        assert not made.converged
    assert made.ended == "qp_steps"
    assert posed.primal(made.reported().w) <= best or name == "cutting_plane"


def test_the_run_says_that_the_qp_did_not_converge(tmp_path):
    outcome = run_here(tmp_path, "solver=bmrm", "solver.qp_steps=1")
    assert outcome.status == "finished"
    assert read_summary(outcome.folder)["stop_reason"] == "qp_steps"


@pytest.mark.parametrize("name", ["bmrm", "one_slack", "cutting_plane"])
@pytest.mark.parametrize("epsilon", ["0", "-0.1", "1"])
def test_epsilon_is_a_share(tmp_path, name, epsilon):
    words = (f"solver={name}", f"solver.epsilon={epsilon}", f"results_dir={tmp_path}")
    message = error_of(call("run", *USPS, *words), 2)
    assert "solver.epsilon must be above 0 and below 1" in message


def test_prox_needs_a_start():
    with pytest.raises(ConfigError, match=r"solver.prox needs w₁ ≠ 0"):
        helpers.solver(helpers.problem(helpers.SMALL["multiclass"]), "prox_bmrm", init="zero")
