"""Solvers against slow, dense versions of the papers' algorithms, and against each other."""

from dataclasses import replace

import helpers
import numpy as np
import pytest
from algorithm3 import Algorithm3, UnclearDecisionError, best_plane, dual_of

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.solvers.fw import STARTS
from ssvm_bench.solvers.orders import FRESH, SAME, Orders

pytestmark = pytest.mark.processors

BLOCK = ("bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg")
STEPS = ("line_search", "2n/(k+2n)")

# Values below 10, at most some thousand roundings of 2⁻⁵³ relative, amplified by the steps'
# divisions: production and reference sum in different orders.
CLOSE = 1e-9
# The dual is a difference of sums below 1; each is rounded to 2⁻⁵³ ≈ 1.1e-16 some ten times.
ULPS = 2e-15

# Data and seeds of the solvers with which every decision of the algorithms is clear; with most, the
# same term comes twice in a row some time, and finds the two planes between which the last line
# search has led equally good.
DATA = helpers.small(chains=0, multiclass=50, graphs=43)
SEEDS = {"chains": (0, 1), "multiclass": (11, 16), "graphs": (1, 2)}
FROM_THE_ORACLE = helpers.small(chains=1, multiclass=1, graphs=3)
WITH_FRESH_ORDERS = helpers.small(chains=0, multiclass=35, graphs=6)
SEEDS_OF_FRESH_ORDERS = {"chains": (0, 3), "multiclass": (0, 1), "graphs": (2,)}


@pytest.fixture(params=DATA)
def kind(request):
    return request.param


@pytest.fixture
def data(kind):
    return DATA[kind]


def runs(name, *options):
    """Return cases of a solver with options."""
    return [(name, each) for each in options]


def reference(table, lam, name, seed, **changes):
    """Return Algorithm 3 with the options of a solver, and the same order of the terms."""
    config = replace(helpers.defaults(name), **changes)
    order = Orders(table.n, config.sampling, seed)
    fresh = config.approx_order == FRESH
    approx_orders = Orders(table.n, config.sampling, (seed, 2)) if fresh else None
    costs = helpers.COST_CALL, helpers.COST_PLANE
    options = (config.N, config.M, config.T, config.step, *costs, config.start)
    return Algorithm3(table.planes, table.truth, lam, order, *options, approx_orders)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *runs("bcfw", {}, {"step": "2n/(k+2n)"}, {"sampling": "uniform"}),
        *runs("mpbcfw", {}, {"T": 1}, {"T": 2, "N": 2}, {"N": 1}, {"M": 1, "T": 3}),
        *runs("mpbcfw", {"M": 3, "sampling": "uniform"}),
    ],
)
def test_block_methods_follow_the_algorithm(kind, data, name, options):
    for seed in SEEDS[kind]:
        check_that_it_follows(data, name, seed, options)


@pytest.mark.parametrize(
    ("name", "options"),
    runs("bcfw", {}, {"step": "2n/(k+2n)"}) + runs("mpbcfw", {}, {"T": 2, "N": 1}, {"M": 3}),
)
def test_block_methods_follow_the_algorithm_from_the_oracles_planes(kind, name, options):
    for seed in (0, 3):
        check_that_it_follows(FROM_THE_ORACLE[kind], name, seed, {"start": "oracle", **options})


@pytest.mark.parametrize("options", [{}, {"M": 3, "T": 2}])
def test_mpbcfw_follows_the_algorithm_with_fresh_orders(kind, options):
    for seed in SEEDS_OF_FRESH_ORDERS[kind]:
        options = {"approx_order": FRESH, **options}
        check_that_it_follows(WITH_FRESH_ORDERS[kind], "mpbcfw", seed, options)


def check_that_it_follows(data, name, seed, options):
    """Compare eight iterations of a solver, and of its average, with Algorithm 3."""
    table = helpers.Table(data)
    made = helpers.solver(helpers.problem(data), name, seed, **options)
    averaged = helpers.solver(helpers.problem(data), name + "_avg", seed, **options)
    slow = reference(table, made.problem.lam, name, seed, **options)
    np.testing.assert_array_equal(averaged.reported().w, made.reported().w)
    for iteration in range(9):
        if iteration > 0:
            made.iterate()
            averaged.iterate()
            slow.iterate()
            check_average(averaged, slow)
        assert made.approx_passes == averaged.approx_passes == slow.approx_passes
        np.testing.assert_allclose(made.reported().w, slow.w(), rtol=0, atol=CLOSE)
        assert made.reported().dual == pytest.approx(slow.dual(), abs=CLOSE)
        assert helpers.working_sets(made, table) == [list(found) for found in slow.active]
        assert made.clock.now() == pytest.approx(slow.time, rel=1e-12)


def test_a_decision_that_rounding_would_make_is_told():
    # the same term is the last of one iteration and the first of the next one
    data = helpers.random_graphs([4, 2, 4, 1, 4, 2, 4, 4, 2, 4], 2, 8, seed=8)
    slow = helpers.iterated(reference(helpers.Table(data), 1 / data.n, "mpbcfw", seed=0, N=1), 6)
    with pytest.raises(UnclearDecisionError, match=r"plane \d is as good as \d: .*e-1[678], less"):
        slow.iterate()


def check_average(averaged, slow):
    """Check the reported iterate against the naive averages and a grid of their mixtures."""
    lam, reported = slow.lam, averaged.reported()
    exact, approximate = slow.averages["exact"], slow.averages["approximate"]
    if slow.averaged["approximate"] == 0:
        approximate = exact
    mixtures = [(1 - s) * exact + s * approximate for s in np.linspace(0, 1, 1001)]
    duals = np.array([dual_of(mixture, lam) for mixture in mixtures])
    best = mixtures[int(duals.argmax())]
    own = averaged.diagnostics()["dual_of_average"]
    assert own >= duals.max() - CLOSE
    assert reported.dual == pytest.approx(max(own, slow.dual()), abs=CLOSE)
    # a parabola's top is within half a cell of the best grid point: it is higher by at most
    # curvature/2 · cell², and as a point of the segment no farther than a cell
    ends = approximate[:-1] - exact[:-1]
    length = np.linalg.norm(ends) / lam
    assert own <= duals.max() + 0.5 * lam * length**2 * 1e-6 + CLOSE
    assert np.linalg.norm(reported.w + best[:-1] / lam) <= length * 1e-3 + CLOSE
    # and it is on the segment, with the offset to match
    along = reported.w + exact[:-1] / lam
    s = -(along @ ends) * lam / (ends @ ends) if ends.any() else 0.0
    assert -CLOSE <= s <= 1 + CLOSE
    mixture = (1 - s) * exact + s * approximate
    np.testing.assert_allclose(reported.w, -mixture[:-1] / lam, rtol=0, atol=CLOSE)
    assert own == pytest.approx(dual_of(mixture, lam), abs=CLOSE)


@pytest.mark.parametrize("name", ["bcfw", "mpbcfw"])
def test_tail_averages_are_means_over_the_second_half_of_the_passes(kind, data, name):
    table, seed = helpers.Table(data), SEEDS[kind][0]
    averaged = helpers.solver(helpers.problem(data), name, seed, average=True, averaging="tail")
    slow = reference(table, averaged.problem.lam, name, seed)
    steps, iterates = slow.step_towards, {"exact": [], "approximate": []}

    def kept(i, row, of):
        steps(i, row, of)
        iterates[of].append(slow.phi)

    slow.step_towards = kept
    ends = {of: [0] for of in iterates}
    for _ in helpers.together(8, averaged, slow):
        for of, found in iterates.items():
            if found:
                begin = max(end for end in ends[of] if 2 * end <= len(found))
                slow.averages[of] = np.mean(found[begin:], axis=0)
                ends[of].append(len(found))
        check_average(averaged, slow)
    assert len(iterates["approximate"]) > 0 or name == "bcfw"


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("step", STEPS)
def test_fw_follows_the_algorithm(data, step, start):
    made = helpers.solver(helpers.problem(data), "fw", step=step, start=start)
    table = helpers.Table(data)
    lam, phi, begun = made.problem.lam, np.zeros(table.d + 1), start == "oracle"
    if begun:
        phi = sum(planes[best_plane(planes, phi[:-1])] for planes in table.planes)
    for k in range(25):
        made.iterate()
        w = -phi[:-1] / lam
        hat = sum(planes[best_plane(planes, w)] for planes in table.planes)
        way = phi - hat
        if step == "line_search":
            gamma = (way[:-1] @ phi[:-1] - lam * way[-1]) / (way[:-1] @ way[:-1])
            gamma = min(max(gamma, 0.0), 1.0)
        else:
            gamma = 2 / (k + 2)
        phi = (1 - gamma) * phi + gamma * hat
        np.testing.assert_allclose(made.reported().w, -phi[:-1] / lam, rtol=0, atol=CLOSE)
        assert made.reported().dual == pytest.approx(dual_of(phi, lam), abs=CLOSE)
        assert made.clock.oracle_calls == (k + 1 + begun) * table.n


def test_the_gap_of_fw_is_a_free_certificate(data):
    posed = helpers.problem(data)
    made, calls = helpers.solver(posed, "fw", epsilon=0.1), []
    while not made.converged:
        before = made.reported()
        made.iterate()
        calls.append((posed.primal(before.w) - before.dual) / posed.primal(before.w))
    assert calls[-1] <= 0.1 < min(calls[:-1])
    assert made.clock.oracle_calls == len(calls) * data.n
    np.testing.assert_array_equal(made.reported().w, before.w)


@pytest.mark.parametrize("suffix", ["", "_avg"])
@pytest.mark.parametrize("options", [{"N": 0, "M": 0}, {"N": 5, "M": 0}, {"N": 0, "M": 5}])
def test_bcfw_is_mpbcfw_without_approximate_passes(data, options, suffix):
    one = helpers.solver(helpers.problem(data), "bcfw" + suffix)
    other = helpers.solver(helpers.problem(data), "mpbcfw" + suffix, **options)
    for _ in helpers.together(6, one, other):
        # to the last bit
        np.testing.assert_array_equal(one.reported().w, other.reported().w)
        assert one.reported().dual == other.reported().dual


VARIANTS = [("fw", {"step": step}) for step in STEPS] + [
    (name, {"step": step, "sampling": sampling})
    for name in BLOCK
    for step in (STEPS if name.startswith("bcfw") else STEPS[:1])
    for sampling in ("permutation", "uniform")
]


@pytest.mark.parametrize("lam", [None, 1e-3, 3.0])
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_weak_duality_and_monotone_dual(data, name, options, lam):
    posed = helpers.problem(data, lam)
    made = helpers.solver(posed, name, **options)
    monotone = options["step"] == "line_search" and not name.endswith("_avg")
    # w = 0: what is left is the loss and, of graphs, the difference in cut edges
    expected = sum(planes[:, -1].max() for planes in helpers.Table(data).planes)
    first = made.reported()
    assert (first.dual, posed.primal(first.w)) == (0.0, pytest.approx(expected, rel=1e-15))
    lower = 0.0
    for w, dual in helpers.reports(made, 12):
        primal = posed.primal(w)
        # both sums round to a few 2⁻⁵³ of their largest term, λ/2 ‖w‖² or the risk
        assert primal - dual >= -1e-14 * max(1.0, primal)
        assert dual >= lower - ULPS or not monotone
        lower = dual
    assert lower > 0 or not monotone


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("mpbcfw", "step", "2n/(k+2n)"),  # towards cached planes
        *(("mpbcfw_pairwise", "kappa", -1.0), ("mpbcfw_pairwise", "steps", "newton")),
        *(("mpbcfw_pairwise", "inner_steps", 0), ("mpbcfw_pairwise", "sampling", "uniform")),
        *(("mpbcfw_pairwise", "refresh", 0), ("mpbcfw_pairwise", "share", -0.1)),
        ("mpbcfw_pairwise", "shrink", -1.0),
        *(("ssg", "average", "last"), ("ssg", "sampling", "gap")),
        *(("eg", "eta", 0.0), ("eg", "start", -1.0), ("eg", "sampling", "gap")),
        *(("excessive_gap", "step", "line_search"), ("extragradient", "step", "2/(k+2)")),
        *(("extragradient", "rho", 0.0), ("dcd", "planes", "some"), ("dcd", "order", "uniform")),
        *(("dcd", "products", "kept"), ("dcd", "bound", "UB"), ("dcd", "T", 0), ("dcd", "M", -1)),
        *(("dcd", "tol", -1.0), ("dcd", "epsilon", np.nan), ("dcd", "shrink", np.inf)),
        ("dcd", "planes", "all"),  # chains have too many
    ],
)
def test_bad_options_are_named(name, option, value):
    with pytest.raises(ConfigError, match=rf"solver\.{option}"):
        helpers.solver(helpers.problem(DATA["chains"]), name, **{option: value})


def test_orders_are_pinned():
    # they decide what a seed means: a change would make old results irreproducible
    found = taken(Orders(5, "permutation", 0), 3)
    assert found == [[1, 2, 3, 0, 4], [0, 1, 3, 2, 4], [1, 4, 2, 0, 3]]
    found = taken(Orders(5, "uniform", 0), 3)
    assert found == [[3, 1, 0, 0, 4], [4, 3, 3, 2, 4], [4, 0, 4, 0, 3]]
    assert taken(Orders(5, "permutation", (0, 2)), 2) == [[2, 3, 1, 4, 0], [2, 0, 3, 4, 1]]


def test_each_order_is_a_fresh_permutation():
    found = taken(Orders(50, "permutation", 3), 20)
    assert all(sorted(order) == list(range(50)) for order in found)
    assert len({tuple(order) for order in found}) == 20
    assert taken(Orders(50, "permutation", 4), 1) != found[:1]


def taken(stream, count):
    """Return the first orders of a stream."""
    return [next(stream).tolist() for _ in range(count)]


@pytest.mark.parametrize("name", [name for name in helpers.SOLVERS if name.startswith("mp")])
def test_fresh_orders_lead_to_the_same_optimum(data, name):
    posed = helpers.problem(data)
    made = [
        helpers.iterated(helpers.solver(posed, name, approx_order=order), 40)
        for order in (FRESH, SAME)
    ]
    primals = [posed.primal(one.reported().w) for one in made]
    # each bounds the other's suboptimality
    assert max(one.reported().dual for one in made) <= min(primals) + CLOSE
    assert primals[0] - made[0].reported().dual < 0.5


def test_uniform_draws_are_in_range_and_uniform():
    stream = Orders(7, "uniform", 0)
    draws = np.concatenate([next(stream) for _ in range(1000)])
    assert draws.dtype == np.int64
    counts = np.bincount(draws, minlength=7)
    assert counts.size == 7
    assert abs(counts - 1000).max() < 150  # ± 29, as above
