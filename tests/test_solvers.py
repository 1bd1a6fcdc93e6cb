"""Solvers against slow, dense versions of the papers' algorithms, and against other optimisers.

Algorithms 1, 2 and 3 are written down here with dense planes and enumeration of all labelings, in
the papers' own units; nothing is shared with the package but the order of the terms.
"""

import os

import numpy as np
import pytest
from helpers import (
    COST_CALL,
    COST_PLANE,
    Table,
    dataset,
    problem,
    random_chains,
    random_graphs,
    random_multiclass,
    solver,
    working_sets,
)
from scipy.linalg import block_diag
from scipy.optimize import minimize

from ssvm_bench.errors import ConfigError
from ssvm_bench.problem import best_interpolation
from ssvm_bench.solvers.block import orders

BLOCK = ("bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg")
NAMES = ("fw", *BLOCK, "bcfw_gap", "mpbcfw_gram", "mpbcfw_pairwise", "mpbcfw_fast")
STEPS = ("line_search", "2n/(k+2n)")

# Values below 10, at most some thousand roundings of 2⁻⁵³ relative, amplified by the steps'
# divisions: production and reference sum in different orders.
CLOSE = 1e-9
# The dual is a difference of sums below 1; each is rounded to 2⁻⁵³ ≈ 1.1e-16 some ten times.
ULPS = 2e-15

DATA = {
    "chains": random_chains([3, 1, 4, 2, 3, 4, 1, 3], 3, 2, seed=3),
    "multiclass": random_multiclass(12, 5, 3, seed=4),
    # of 2^k nodes, whose losses are not rounded, and without ties that rounding would decide
    "graphs": random_graphs([4, 2, 4, 1, 4, 2, 4, 4, 2, 4], 2, 8, seed=8),
}


@pytest.fixture(params=DATA)
def data(request):
    return DATA[request.param]


def dual_of(phi, lam):
    return -phi[:-1] @ phi[:-1] / (2 * lam) + phi[-1]


# ---- the reference ------------------------------------------------------------------------------


class Reference:
    """Algorithm 3 of the MP-BCFW paper, literally (Algorithm 2 for N = M = 0)."""

    def __init__(self, table, lam, order, N, M, T, step="line_search"):
        self.table, self.lam, self.orders = table, lam, order
        self.N, self.M, self.T, self.step = N, M, T, step
        n, d = table.n, table.d
        self.phi_i, self.phi = np.zeros((n, d + 1)), np.zeros(d + 1)
        self.active = [{row: 0} if N > 0 else {} for row in table.truth]  # W_i, oldest first
        self.averages = {"exact": np.zeros(d + 1), "approximate": np.zeros(d + 1)}
        self.averaged = {"exact": 0, "approximate": 0}
        self.steps, self.now, self.time, self.approx_passes = 0, 0, 0.0, 0

    def w(self):
        return -self.phi[:-1] / self.lam

    def dual(self):
        return dual_of(self.phi, self.lam)

    def step_towards(self, i, row, kind):
        n, lam = self.table.n, self.lam
        hat, old = self.table.planes[i][row], self.phi_i[i].copy()
        if self.step == "line_search":
            numerator = (old - hat)[:-1] @ self.phi[:-1] - lam * (old - hat)[-1]
            denominator = (old - hat)[:-1] @ (old - hat)[:-1]
            if denominator == 0:
                gamma = 1.0 if numerator > 0 else 0.0
            else:
                gamma = min(max(numerator / denominator, 0.0), 1.0)
        else:
            gamma = 2 * n / (self.steps + 2 * n)
        self.phi_i[i] = (1 - gamma) * old + gamma * hat
        self.phi = self.phi + self.phi_i[i] - old
        self.steps += 1
        k = self.averaged[kind]
        self.averages[kind] = k / (k + 2) * self.averages[kind] + 2 / (k + 2) * self.phi
        self.averaged[kind] += 1

    def iterate(self):
        self.now += 1
        start, dual_before = self.time, self.dual()
        order = next(self.orders)
        for i in order:
            row = int(np.argmax(self.table.values(self.w(), i)))
            self.time += COST_CALL
            self.step_towards(i, row, "exact")
            if self.N > 0:
                self.active[i][row] = self.now
                if len(self.active[i]) > self.N:
                    del self.active[i][min(self.active[i], key=self.active[i].get)]
        self.approx_passes = 0
        while self.N > 0 and self.approx_passes < self.M:
            before, dual = self.time, self.dual()
            for i in order:
                values = self.table.values(self.w(), i)
                row = max(self.active[i], key=values.__getitem__)
                self.time += COST_PLANE * len(self.active[i])
                self.active[i][row] = self.now
                self.step_towards(i, row, "approximate")
                for old in [p for p, at in self.active[i].items() if at <= self.now - self.T]:
                    del self.active[i][old]
            self.approx_passes += 1
            slope = (self.dual() - dual) / (self.time - before)
            if slope <= (self.dual() - dual_before) / (self.time - start):
                break


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bcfw", {}),
        ("bcfw", {"step": "2n/(k+2n)"}),
        ("bcfw", {"sampling": "uniform"}),
        ("mpbcfw", {}),
        ("mpbcfw", {"T": 1}),
        ("mpbcfw", {"T": 2, "N": 2}),
        ("mpbcfw", {"N": 1}),
        ("mpbcfw", {"M": 1, "T": 3}),
        ("mpbcfw", {"M": 3, "sampling": "uniform"}),
    ],
)
def test_block_methods_follow_the_algorithm(data, name, options):
    table = Table(data)
    for seed in (0, 1):
        made = solver(problem(data), name, seed, **options)
        averaged = solver(problem(data), name + "_avg", seed, **options)
        config, lam = made.config, made.problem.lam
        order = orders(table.n, config.sampling, seed)
        slow = Reference(table, lam, order, config.N, config.M, config.T, config.step)
        assert made.reported().dual == 0.0
        assert not averaged.reported().w.any()
        for _ in range(8):
            made.iterate()
            averaged.iterate()
            slow.iterate()
            assert made.approx_passes == averaged.approx_passes == slow.approx_passes
            np.testing.assert_allclose(made.reported().w, slow.w(), rtol=0, atol=CLOSE)
            assert made.reported().dual == pytest.approx(slow.dual(), abs=CLOSE)
            assert working_sets(made, table) == [list(found) for found in slow.active]
            assert made.clock.now() == pytest.approx(slow.time, rel=1e-12)
            check_average(averaged, slow)


def check_average(averaged, slow):
    """Check the reported iterate against the naive averages and a grid of their mixtures."""
    lam, reported = slow.lam, averaged.reported()
    exact, approximate = slow.averages["exact"], slow.averages["approximate"]
    if slow.averaged["approximate"] == 0:
        approximate = exact
    mixtures = [(1 - s) * exact + s * approximate for s in np.linspace(0, 1, 1001)]
    duals = np.array([dual_of(mixture, lam) for mixture in mixtures])
    best = mixtures[int(duals.argmax())]
    assert reported.dual >= duals.max() - CLOSE
    # a parabola's top is within half a cell of the best grid point: it is higher by at most
    # curvature/2 · cell², and as a point of the segment no farther than a cell
    ends = approximate[:-1] - exact[:-1]
    length = np.linalg.norm(ends) / lam
    assert reported.dual <= duals.max() + 0.5 * lam * length**2 * 1e-6 + CLOSE
    assert np.linalg.norm(reported.w + best[:-1] / lam) <= length * 1e-3 + CLOSE
    # and it is on the segment, with the offset to match
    along = reported.w + exact[:-1] / lam
    s = -(along @ ends) * lam / (ends @ ends) if ends.any() else 0.0
    assert -CLOSE <= s <= 1 + CLOSE
    mixture = (1 - s) * exact + s * approximate
    np.testing.assert_allclose(reported.w, -mixture[:-1] / lam, rtol=0, atol=CLOSE)
    assert reported.dual == pytest.approx(dual_of(mixture, lam), abs=CLOSE)


@pytest.mark.parametrize("step", STEPS)
def test_fw_follows_the_algorithm(data, step):
    table, made = Table(data), solver(problem(data), "fw", step=step)
    lam, phi = made.problem.lam, np.zeros(table.d + 1)
    for k in range(25):
        made.iterate()
        w = -phi[:-1] / lam
        hat = sum(table.planes[i][np.argmax(table.values(w, i))] for i in range(table.n))
        way = phi - hat
        if step == "line_search":
            gamma = (way[:-1] @ phi[:-1] - lam * way[-1]) / (way[:-1] @ way[:-1])
            gamma = min(max(gamma, 0.0), 1.0)
        else:
            gamma = 2 / (k + 2)
        phi = (1 - gamma) * phi + gamma * hat
        np.testing.assert_allclose(made.reported().w, -phi[:-1] / lam, rtol=0, atol=CLOSE)
        assert made.reported().dual == pytest.approx(dual_of(phi, lam), abs=CLOSE)
        assert made.clock.oracle_calls == (k + 1) * table.n


# ---- one code base ------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("options", [{"N": 0, "M": 0}, {"N": 5, "M": 0}, {"N": 0, "M": 5}])
def test_bcfw_is_mpbcfw_without_approximate_passes(data, options, average):
    suffix = "_avg" if average else ""
    one = solver(problem(data), "bcfw" + suffix)
    other = solver(problem(data), "mpbcfw" + suffix, **options)
    for _ in range(6):
        one.iterate()
        other.iterate()
        # to the last bit
        np.testing.assert_array_equal(one.reported().w, other.reported().w)
        assert one.reported().dual == other.reported().dual


@pytest.mark.parametrize("name", BLOCK)
def test_averaging_does_not_change_the_steps(data, name):
    plain = solver(problem(data), name, average=False)
    averaged = solver(problem(data), name, average=True)
    for _ in range(12):  # beyond the recomputation of the sums
        plain.iterate()
        averaged.iterate()
    np.testing.assert_array_equal(plain.state.w, averaged.state.w)


@pytest.mark.parametrize("name", NAMES)
def test_clock_work_gives_the_same_bits_twice(data, name):
    one, other = (solver(problem(data), name, seed=7) for _ in range(2))
    for _ in range(12):
        one.iterate()
        other.iterate()
        np.testing.assert_array_equal(one.reported().w, other.reported().w)
        assert one.reported().dual == other.reported().dual
        assert one.clock.now() == other.clock.now()
        assert one.approx_passes == other.approx_passes


def test_seeds_give_different_runs(data):
    runs = [solver(problem(data), "bcfw", seed) for seed in (0, 1)]
    for run in runs:
        run.iterate()
    assert np.abs(runs[0].reported().w - runs[1].reported().w).max() > 1e-3


def test_bytes_and_floats_give_the_same_bits():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (30, 6)).astype(np.uint8), rng.integers(0, 5, 30)
    lengths = [5, 1, 4, 5, 5, 3, 7]
    runs = [solver(problem(dataset(v, y, 5, lengths)), "mpbcfw_avg") for v in (x, x.astype(float))]
    for _ in range(3):
        for run in runs:
            run.iterate()
    np.testing.assert_array_equal(runs[0].reported().w, runs[1].reported().w)


# ---- duality ------------------------------------------------------------------------------------


VARIANTS = [("fw", {"step": step}) for step in STEPS] + [
    (name, {"step": step, "sampling": sampling})
    for name in BLOCK
    for step in (STEPS if name.startswith("bcfw") else STEPS[:1])
    for sampling in ("permutation", "uniform")
]


@pytest.mark.parametrize("lam", [None, 1e-3, 3.0])
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_weak_duality_and_monotone_dual(data, name, options, lam):
    posed = problem(data, lam)
    made = solver(posed, name, **options)
    monotone = options["step"] == "line_search" and not name.endswith("_avg")
    dual = -np.inf
    for iteration in range(12):
        reported = made.reported()
        primal = posed.primal(reported.w)
        # both sums round to a few 2⁻⁵³ of their largest term, λ/2 ‖w‖² or the risk
        assert primal - reported.dual >= -1e-14 * max(1.0, primal)
        if iteration == 0:
            # w = 0: what is left is the loss and, of graphs, the difference in cut edges
            expected = sum(planes[:, -1].max() for planes in Table(data).planes)
            assert (reported.dual, primal) == (0.0, pytest.approx(expected, rel=1e-15))
        if monotone:
            assert reported.dual >= dual - ULPS
        dual = reported.dual
        made.iterate()
    assert dual > 0 or not monotone


def test_steps_of_fixed_length_towards_cached_planes_are_refused():
    with pytest.raises(ConfigError, match=r"solver\.step"):
        solver(problem(DATA["multiclass"]), "mpbcfw", step="2n/(k+2n)")


# ---- the optimum --------------------------------------------------------------------------------


def quadratic_program(data, lam):
    """Return max F by SLSQP over the product of simplices (one variable a labeling)."""
    table = Table(data)
    planes = np.vstack(table.planes)
    sizes = [len(rows) for rows in table.planes]

    def value(alpha):
        phi = alpha @ planes
        return -dual_of(phi, lam), planes[:, :-1] @ phi[:-1] / lam - planes[:, -1]

    sums = block_diag(*(np.ones(size) for size in sizes))
    result = minimize(
        value,
        np.concatenate([np.full(size, 1 / size) for size in sizes]),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * sums.shape[1],
        constraints={"type": "eq", "fun": lambda a: sums @ a - 1, "jac": lambda a: sums},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return -result.fun


@pytest.mark.parametrize(
    "data", [random_multiclass(4, 3, 2, seed=5), random_chains([2, 1, 2], 2, 2, seed=6)]
)
@pytest.mark.parametrize("name", NAMES)
def test_primal_and_dual_enclose_the_optimum(data, name):
    posed = problem(data, 0.25)
    optimum = quadratic_program(data, 0.25)
    made = solver(posed, name)
    for _ in range(100):
        made.iterate()
        reported = made.reported()
        # SLSQP stops within about 1e-12 of the optimum, and may leave the simplices by as much
        assert reported.dual <= optimum + 1e-10
        assert posed.primal(reported.w) >= optimum - 1e-10
    # the methods converge like C/k here; Algorithm 1's bound with k = 100 and C < 5
    assert reported.dual == pytest.approx(optimum, abs=0.05)


def nearly_orthogonal(lengths, y, K, scale):
    """Return a problem whose optimum is inside the polytope.

    There Frank–Wolfe methods converge geometrically, so that all of them get to 1e-6.
    """
    rng = np.random.default_rng(0)
    x = np.eye(len(y)) + 0.1 * rng.normal(size=(len(y), len(y)))
    return dataset(scale * x, y, K, lengths)


EASY = {
    "multiclass": nearly_orthogonal(None, [0, 1, 2, 1], 3, 1.0),
    "chains": nearly_orthogonal([2, 1, 2], [0, 1, 1, 0, 1], 2, 1.5),
}


@pytest.mark.parametrize("shape", EASY)
@pytest.mark.parametrize("name", NAMES)
def test_all_solvers_reach_the_optimum_of_a_quadratic_program(shape, name):
    posed, tolerance = problem(EASY[shape]), 1e-6
    optimum = quadratic_program(EASY[shape], posed.lam)
    made = solver(posed, name)
    for _ in range(1500):  # the averages' error falls like 1/k², that of the others geometrically
        made.iterate()
    reported = made.reported()
    assert reported.dual == pytest.approx(optimum, abs=tolerance)
    assert posed.primal(reported.w) == pytest.approx(optimum, abs=tolerance)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["fw", "bcfw", "mpbcfw"])
@pytest.mark.parametrize("lam", [100.0, 5.0])
def test_converged_means_that_the_reported_iterate_is_optimal(name, average, lam):
    # with λ this large and two labels, full steps lead to the optimum after a few passes
    posed = problem(random_multiclass(12, 2, 3, seed=1), lam)
    made = solver(posed, name, **({} if name == "fw" else {"average": average}))
    for _ in range(20):
        made.iterate()
        reported = made.reported()
        gap = posed.primal(reported.w) - reported.dual
        assert not made.converged or gap < 1e-14
    assert made.converged or average


def test_uniform_sampling_never_claims_to_have_converged():
    # a pass may have missed the terms that could still move
    made = solver(problem(random_multiclass(12, 2, 3, seed=1), 100.0), sampling="uniform")
    for _ in range(20):
        made.iterate()
        assert not made.converged


def optimum_of(posed, name="bcfw"):
    made = solver(posed, name)
    for _ in range(1000):
        made.iterate()
    assert posed.primal(made.reported().w) - made.reported().dual < 1e-13
    return made.reported()


@pytest.mark.parametrize("shape", EASY)
def test_optimum_does_not_depend_on_the_order_or_on_copies_of_the_examples(shape):
    data, lam = EASY[shape], 1 / EASY[shape].n
    expected = optimum_of(problem(data, lam))
    backwards = optimum_of(problem(data.take(np.arange(data.n)[::-1]), lam))
    twice = optimum_of(problem(data.take(np.repeat(np.arange(data.n), 2)), lam), "mpbcfw")
    for other in (backwards, twice):
        assert other.dual == pytest.approx(expected.dual, abs=1e-13)
        # λ/2 ‖w − w*‖² ≤ gap < 1e-13
        np.testing.assert_allclose(other.w, expected.w, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_features_times_4_and_lambda_times_16_give_the_same_bits(name):
    # w shrinks to a quarter; powers of two are never rounded
    data = DATA["multiclass"]
    scaled = dataset(4 * data.x, data.y, data.n_labels)
    one, other = solver(problem(data, 0.1), name), solver(problem(scaled, 1.6), name)
    for _ in range(6):
        one.iterate()
        other.iterate()
        np.testing.assert_array_equal(one.reported().w, 4 * other.reported().w)
        assert one.reported().dual == other.reported().dual


@pytest.mark.parametrize("name", NAMES)
def test_a_single_term(name):
    # n = 1: BCFW is FW, and a permutation has one element
    posed = problem(random_chains([3], 3, 2, seed=2))
    made, batch = solver(posed, name), solver(posed, "fw")
    for _ in range(5):
        made.iterate()
        batch.iterate()
    if name == "bcfw":
        np.testing.assert_allclose(made.reported().w, batch.reported().w, rtol=0, atol=CLOSE)
    assert posed.primal(made.reported().w) >= made.reported().dual


def test_best_interpolation_is_the_best_of_a_fine_grid():
    posed = problem(DATA["multiclass"])
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = [(rng.normal(size=posed.d), rng.normal()) for _ in range(2)]
        best = posed.dual(*best_interpolation(posed, one, other))
        grid = [
            posed.dual((1 - s) * one[0] + s * other[0], (1 - s) * one[1] + s * other[1])
            for s in np.linspace(0, 1, 201)
        ]
        # above the grid by λ/2 ‖step‖² (half a cell)² at most: ‖step‖² < 100
        assert -ULPS <= best - max(grid) <= 0.5 * posed.lam * 100 * 0.0025**2


# ---- order of the terms -------------------------------------------------------------------------


def test_orders_are_pinned():
    # they decide what a seed means: a change would make old results irreproducible
    stream = orders(5, "permutation", 0)
    found = [next(stream).tolist() for _ in range(3)]
    assert found == [[1, 2, 3, 0, 4], [0, 1, 3, 2, 4], [1, 4, 2, 0, 3]]
    stream = orders(5, "uniform", 0)
    found = [next(stream).tolist() for _ in range(3)]
    assert found == [[3, 1, 0, 0, 4], [4, 3, 3, 2, 4], [4, 0, 4, 0, 3]]


def test_each_order_is_a_fresh_permutation():
    stream = orders(50, "permutation", 3)
    found = [next(stream) for _ in range(20)]
    assert all(sorted(order) == list(range(50)) for order in found)
    assert len({tuple(order) for order in found}) == 20
    assert next(orders(50, "permutation", 4)).tolist() != found[0].tolist()


def test_permutations_are_uniform():
    # each of the 6 has 1/6 of 6000 draws: 1000 ± 29 (one standard deviation); five are allowed
    stream = orders(3, "permutation", 0)
    _, counts = np.unique([next(stream) for _ in range(6000)], axis=0, return_counts=True)
    assert counts.size == 6
    assert abs(counts - 1000).max() < 145


def test_uniform_draws_are_in_range_and_uniform():
    stream = orders(7, "uniform", 0)
    draws = np.concatenate([next(stream) for _ in range(1000)])
    assert draws.dtype == np.int64
    counts = np.bincount(draws, minlength=7)
    assert counts.size == 7
    assert abs(counts - 1000).max() < 150  # ± 29, as above


# ---- real data ----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not os.environ.get("SSVM_BENCH_DATA"), reason="SSVM_BENCH_DATA does not name the real data"
)
@pytest.mark.parametrize(
    ("n_samples", "side", "iterations", "tolerance"),
    [
        # means of 4 × 4 pixels, all digits: 4 digits after some seconds
        (None, 4, 50, 1e-4),
        # the pixels themselves: the error falls like C/k with a larger C
        (500, 1, 150, 1e-2),
    ],
)
def test_usps_agrees_with_liblinear(n_samples, side, iterations, tolerance, tmp_path, monkeypatch):
    # Crammer and Singer's ½‖w‖² + C Σ ξ_i with C = 1 is n P(w) for λ = 1/n
    from sklearn.svm import LinearSVC

    from ssvm_bench.datasets import usps

    monkeypatch.setattr("ssvm_bench.datasets.sources.user_folder", lambda: tmp_path)
    digits = usps.load(usps.Config("usps", "usps", "real", n_samples))
    cells = digits.x.reshape(digits.n, 16 // side, side, 16 // side, side)
    data = dataset(cells.mean(axis=(2, 4)).reshape(digits.n, -1), digits.y, 10)
    posed = problem(data)
    theirs = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=1.0, tol=1e-6, max_iter=100_000
    ).fit(data.x, data.y)
    optimum = posed.primal(theirs.coef_.ravel())  # class by class, as here

    made = solver(posed, "mpbcfw")
    for _ in range(iterations):
        made.iterate()
    ours = made.reported()
    assert ours.dual <= optimum
    assert ours.dual == pytest.approx(optimum, rel=tolerance)
    # nothing is below the optimum, which they miss by about 1e-6
    assert posed.primal(ours.w) >= optimum * (1 - 1e-5)
