"""Dual coordinate descent against the paper's formulas in plain numpy, a QP solver and rivals."""

import helpers
import numpy as np
import pytest

from ssvm_bench.base import memory
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.oracles.base import Constraints, Problem, Risk
from ssvm_bench.oracles.prior import Prior, WithPrior
from ssvm_bench.solvers.bundle import qp
from ssvm_bench.solvers.coordinate.dcd import exchanged

pytestmark = pytest.mark.processors

# Values of order 1, thousands of steps, each rounded to 2⁻⁵³ and divided by a curvature.
CLOSE = 1e-10
# The dual is a difference of sums below 1, each rounded to 2⁻⁵³ ≈ 1.1e-16 some ten times.
ULPS = 2e-15

DATA = helpers.small(0, 50, 43) | {"binary": helpers.random_multiclass(16, 2, 3, seed=2)}
FINITE = ("multiclass", "binary")


def constraints_of(planes):
    """Return lists of dense planes, one list a term, as sparse rows."""
    rows = np.concatenate(planes)
    term, column = np.nonzero(rows[:, :-1])
    return Constraints(
        term_start=np.cumsum([0, *map(len, planes)]),
        indptr=np.searchsorted(term, np.arange(len(rows) + 1)),
        indices=column,
        values=rows[term, column],
        offset=rows[:, -1],
    )


class OfRows(helpers.Plain):
    """An oracle of dense planes, lists of rows [φ⋆ φ∘], the ground truth's left out."""

    def __init__(self, planes):
        self.planes = [np.vstack((np.zeros(p.shape[1]), p)) for p in planes]
        self.n, self.d = len(planes), planes[0].shape[1] - 1

    def constraints(self):
        return constraints_of([planes[1:] for planes in self.planes])

    def best_plane(self, w, i):
        values = self.planes[i] @ np.append(w, 1.0)
        best = self.planes[i][int(values.argmax())]
        return (np.arange(self.d), best[:-1], best[-1]), float(values.max())

    def risk(self, w, **_):
        total = sum(self.best_plane(w, i)[1] for i in range(self.n))
        return Risk(total, np.zeros(self.d), 0.0)


def listed(data):
    """Return an oracle that lists the planes of a dataset."""
    table = helpers.Table(data)
    return OfRows([np.delete(p, t, 0) for p, t in zip(table.planes, table.truth, strict=True)])


class Paper:
    """Algorithm 1 in the paper's units, L = P/λ, with its misprints put right.

    ``x(i)``, ``losses(i)`` and ``alpha[i]`` are x_ij, l_ij and α_ij of the planes known; ``cases``
    is what has happened: kind of step, direction, and whether a bound was hit.
    """

    def __init__(self, table, lam, all_planes, seed, shuffles=True):
        self.table, self.lam, self.all, self.shuffles = table, lam, all_planes, shuffles
        self.bits = np.random.PCG64([seed, 2])
        self.known = [
            [row for row in range(len(planes)) if all_planes and row != truth]
            for planes, truth in zip(table.planes, table.truth, strict=True)
        ]
        self.alpha = [np.zeros(len(known)) for known in self.known]
        self.w, self.cases, self.met = np.zeros(table.d), set(), 0.0

    def x(self, i):
        return -self.table.planes[i][self.known[i], :-1].reshape(-1, self.table.d) / self.lam

    def losses(self, i):
        return self.table.planes[i][self.known[i], -1] / self.lam

    def dual(self):
        linear = sum(self.alpha[i] @ self.losses(i) for i in range(self.table.n))
        return linear - 0.5 * self.w @ self.w

    def sweep(self, order):
        self.met = 0.0
        # a word for each turn where there is a choice; where a plane may be found, as if it were
        turns = [len(self.known[i]) + (not self.all) for i in order]
        words = iter(self.bits.random_raw(sum(t for t in turns if t > 1)).tolist())
        for i in order:
            highest = 0.0
            if not self.all:
                values = self.table.values(self.w, i)
                # labels that no step has moved have one score; the oracle takes the first of them
                best = int(np.flatnonzero(values >= values.max() - ULPS)[0])
                highest = values[best] / self.lam
                if best != self.table.truth[i] and best not in self.known[i]:
                    self.known[i].append(best)
                    self.alpha[i] = np.append(self.alpha[i], 0.0)
            self.met += self.visit(i, words, highest)

    def visit(self, i, words, highest):
        x, l, alpha = self.x(i), self.losses(i), self.alpha[i]
        order = list(range(len(l)))
        for turn in range(len(l)):
            k = None
            if len(l) > 1:
                word = next(words)
                if self.shuffles:
                    other = turn + ((word >> 32) * (len(l) - turn) >> 32)
                    order[turn], order[other] = order[other], order[turn]
                k = (word & 0xFFFFFFFF) * (len(l) - 1) >> 32
            j = order[turn]
            g = l[j] - self.w @ x[j]  # (24)
            highest = max(highest, g)
            if g > 0 and abs(alpha.sum() - 1.0) < 1e-12:
                if k is not None:
                    k += k >= j
                    self.pair(x, l, alpha, j, k, g)
            else:
                self.single(x, l, alpha, j, g)
        return highest

    def single(self, x, l, alpha, j, g):
        low, high = -alpha[j], max(1.0 - alpha.sum(), 0.0)
        a = min(max(low, g / (x[j] @ x[j])), high)  # (25)
        self.check("single", a, low, high, lambda a: g * a - 0.5 * (x[j] @ x[j]) * a * a)
        alpha[j] = 0.0 if a == low else alpha[j] + a  # (26)
        self.w += a * x[j]  # (30)

    def pair(self, x, l, alpha, j, k, g):
        slope, way = g - (l[k] - self.w @ x[k]), x[j] - x[k]
        h = way @ way
        low, high = -min(alpha[j], 1 - alpha[k]), min(alpha[k], 1 - alpha[j])
        a = slope / h if h > 0 else np.inf * slope
        a = min(max(low, a), high)  # (28)
        self.check("pair", a, low, high, lambda a: slope * a - 0.5 * h * a * a)
        alpha[j], alpha[k] = alpha[j] + a, 0.0 if a == alpha[k] else alpha[k] - a  # (29)
        self.w += a * way  # (31)

    def check(self, kind, a, low, high, gain):
        """Check a step against a search of its range, and remember what kind of case it is."""
        grid = np.linspace(low, high, 1001)
        assert gain(a) >= gain(grid).max() - 1e-12
        bound = "bound" if a in (low, high) else "inside"
        self.cases.add((kind, "none" if a == 0 else "up" if a > 0 else "down", bound))


def dcd(posed, **options):
    return helpers.solver(posed, "dcd", **options)


def weights(made):
    """Return the weights of all planes, term by term, the ground truth's first."""
    return np.concatenate([helpers.plane_weights(made, i) for i in range(made.problem.n)])


def quiet(**options):
    """Return options with which the solver does what Algorithm 1 says, and nothing else."""
    return {"M": 0, "epsilon": 0.0, "tol": 0.0, **options}


@pytest.mark.parametrize("seed", range(40))
def test_a_step_is_the_best_of_its_range(seed):
    rng = np.random.default_rng(seed)
    slope, curvature = rng.normal(), rng.choice([0.0, 0.1, 1.0, 10.0])
    taker, giver = rng.choice([0.0, 0.2, 0.5, 1.0], 2) * [1.0, rng.random()]
    a = exchanged(slope, curvature, taker, giver)
    assert -taker <= a <= giver
    grid = np.linspace(-taker, giver, 2001)
    gain = slope * grid - 0.5 * curvature * grid**2
    assert slope * a - 0.5 * curvature * a**2 >= gain.max() - 1e-15


@pytest.mark.parametrize("products", ["keep", "compute", "lengths"])
@pytest.mark.parametrize("order", ["random", "sequential"])
@pytest.mark.parametrize(
    ("name", "planes"),
    [(n, "all") for n in FINITE] + [(n, "found") for n in ("multiclass", "chains", "graphs")],
)
def test_sweeps_follow_the_paper(name, planes, order, products):
    data = DATA[name]
    table, cases = helpers.Table(data), set()
    options = quiet(planes=planes, order=order)
    for lam in (1 / data.n, 0.01 / data.n):
        made = dcd(helpers.problem(data, lam), products=products, **options)
        slow = Paper(table, lam, planes == "all", 0, order == "random")
        twin = dcd(helpers.problem(data, lam), **options)
        for _ in range(6):
            made.iterate()
            slow.sweep(next(twin._orders).tolist())
            reported = made.reported()
            np.testing.assert_allclose(reported.w, slow.w, rtol=0, atol=1e-8)
            assert reported.dual == pytest.approx(lam * slow.dual(), abs=CLOSE)
            tracked = lam * (0.5 * slow.w @ slow.w + slow.met)  # (36)
            assert made.tracked == pytest.approx(tracked, rel=1e-8)
            for i in range(table.n):
                found = helpers.plane_weights(made, i)[1:]
                np.testing.assert_allclose(found, slow.alpha[i], atol=1e-8)
        cases |= slow.cases
    kinds = {("single", way, end) for way in ("up", "down") for end in ("inside", "bound")}
    kinds |= {("single", "none", "bound")}
    if name == "multiclass":
        kinds |= {("pair", "up", "inside"), ("pair", "up", "bound"), ("pair", "none", "bound")}
    assert cases >= kinds or planes == "found"


def test_without_pair_steps_a_term_whose_constraint_is_active_gets_stuck():
    """Section 5: then no single variable can be improved, and a pair of them can."""
    data, lam = DATA["multiclass"], 1.0
    stuck, free = (Paper(helpers.Table(data), lam, True, 0) for _ in range(2))
    stuck.pair = lambda *step: None
    for _ in range(300):
        before = stuck.dual()
        for paper in (stuck, free):
            paper.sweep(range(data.n))
    assert stuck.dual() == pytest.approx(before, abs=CLOSE)
    best = helpers.optimum(helpers.problem(data, lam))
    assert lam * free.dual() == pytest.approx(best, abs=1e-6)
    assert lam * stuck.dual() < best - 1e-3


def opposite(rng, n, d, apart):
    """Return terms of two planes, [x, a] and [−x, b], with a + b = −apart."""
    x, a = rng.normal(size=(n, d)) / n, rng.normal(size=(n, 1)) / n
    return [np.array([[*x[i], *a[i]], [*-x[i], *(-apart - a[i])]]) for i in range(n)]


def test_a_visit_of_opposite_planes_leaves_nothing_to_gain_at_its_term():
    rng, seen, steps = np.random.default_rng(5), set(), np.zeros(2)  # single, pair
    for lam in (3.0, 0.3, 0.03) * 3:
        posed = Problem(OfRows(opposite(rng, n=12, d=3, apart=0.02)), lam)
        made = dcd(posed, **quiet(order="sequential"))
        assert type(made.phi.blocks).__name__ == "LineRows"
        for _ in range(20):
            made.iterate()
            weights = helpers.plane_weights(made, posed.n - 1)  # of the term visited last
            values = posed.oracle.planes[-1] @ np.append(made.reported().w, 1.0)
            assert weights.min() == 0.0
            assert weights.sum() == pytest.approx(1.0, abs=1e-15)
            assert values.max() - values[weights > 0.0].min() <= 1e-12
            inside = (weights > 0.0).sum() == 2
            seen.add("inside" if inside else int(weights.argmax()))
        steps += made.visits.policy.steps
    assert steps.min() > 0
    assert seen == {"inside", 0, 1, 2}


@pytest.mark.parametrize("products", ["keep", "compute"])
def test_a_pair_with_the_same_feature_vector_gives_all_to_the_better_one(products):
    # max(0.5 + w, 1 + w): the second plane is above the first one everywhere
    planes = [np.array([[1.0, 0.5], [1.0, 1.0]]), np.array([[-0.25, 0.1], [-0.25, 0.2]])]
    posed = Problem(OfRows(planes), 0.3)
    made = helpers.iterated(dcd(posed, **quiet(products=products)), 30)
    assert [helpers.plane_weights(made, i)[1] for i in range(2)] == [0.0, 0.0]
    reported = made.reported()
    assert posed.primal(reported.w) - reported.dual <= 1e-12


@pytest.mark.parametrize("products", ["keep", "compute"])
@pytest.mark.parametrize(("name", "storage"), [("multiclass", "FixedRows"), ("binary", "LineRows")])
def test_planes_given_as_rows_are_planes_that_are_labels(name, storage, products):
    """Opposite planes are line rows, others not; both as if all labels were planes."""
    data = DATA[name]
    of_labels = dcd(helpers.problem(data), planes="all", products=products)
    of_rows = dcd(Problem(listed(data), 1 / data.n), products=products)
    assert type(of_rows.phi.blocks).__name__ == storage
    for _ in helpers.together(12, of_labels, of_rows):
        np.testing.assert_allclose(of_rows.reported().w, of_labels.reported().w, atol=CLOSE)
        assert of_rows.tracked == pytest.approx(of_labels.tracked, abs=CLOSE)
        np.testing.assert_array_equal(of_rows.visits.policy.steps, of_labels.visits.policy.steps)
        np.testing.assert_allclose(weights(of_rows), weights(of_labels))


@pytest.mark.parametrize("otherwise", ["compute", "lengths"])
@pytest.mark.parametrize("name", DATA)
def test_kept_and_computed_products_give_the_same_trace(name, otherwise):
    posed = helpers.problem(DATA[name])
    kept, computed = (dcd(posed, products=way) for way in ("keep", otherwise))
    for _ in helpers.together(15, kept, computed):
        np.testing.assert_allclose(kept.reported().w, computed.reported().w, atol=CLOSE)
        assert kept.diagnostics() == pytest.approx(computed.diagnostics(), abs=CLOSE, nan_ok=True)
        assert kept.approx_passes == computed.approx_passes
        assert kept.clock.now() == computed.clock.now()


@pytest.mark.parametrize("planes", ["all", "found"])
def test_a_permutation_of_the_examples_changes_nothing_but_the_order(planes):
    data = DATA["multiclass"]
    shuffled = np.random.default_rng(0).permutation(data.n)
    one = dcd(helpers.problem(data), planes=planes)
    other = dcd(helpers.problem(data.take(shuffled)), planes=planes)
    place = np.argsort(shuffled)
    other._orders = (place[order] for order in other._orders)
    for _ in helpers.together(8, one, other):
        np.testing.assert_allclose(other.reported().w, one.reported().w, rtol=0, atol=CLOSE)
        assert other.diagnostics() == pytest.approx(one.diagnostics(), nan_ok=True)
        expected = np.concatenate([helpers.plane_weights(one, j) for j in shuffled])
        np.testing.assert_allclose(weights(other), expected, atol=CLOSE)


@pytest.mark.parametrize("lam", [None, 60.0])
@pytest.mark.parametrize("name", FINITE)
def test_a_long_run_finds_what_a_qp_solver_does(name, lam):
    """In 40 dimensions the planes are independent, and so the weights of the best are unique."""
    data = helpers.random_multiclass(8, 3 if name == "multiclass" else 2, 40, seed=7)
    posed, rows = helpers.problem(data, lam), np.concatenate(listed(data).planes)
    block = np.repeat(np.arange(data.n), data.n_labels)
    beta = np.zeros(len(rows))
    beta[:: data.n_labels] = 1.0
    gram = rows[:, :-1] @ rows[:, :-1].T
    found = qp.maximise(gram, block, rows[:, -1], posed.lam, beta, 1e-13, 10**6)
    made = dcd(posed, planes="all", M=3, epsilon=1e-12, tol=1e-12)
    w, dual = helpers.converged_in(made, 3000).reported()
    assert made.visits.policy.steps[1] > 0 or lam is None or name == "binary"
    assert dual == pytest.approx(found.value, abs=1e-11)
    np.testing.assert_allclose(w, -beta @ rows[:, :-1] / posed.lam, atol=1e-5)
    np.testing.assert_allclose(weights(made), beta, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"bound": "true"}, {"order": "sequential"}, {"M": 0}])
@pytest.mark.parametrize(("name", "planes"), [(n, "found") for n in DATA] + [("multiclass", "all")])
def test_bounds_hold_on_every_row_and_the_dual_never_falls(name, planes, options):
    posed = helpers.problem(DATA[name])
    best, made = helpers.optimum(posed), dcd(posed, planes=planes, **options)
    for _ in helpers.enclosing(made, best, 40, fall=ULPS):
        assert not made.upper < best - 1e-9
        assert not np.isnan(made.upper) or options.get("bound") != "true"
    assert made.reported().dual >= best - (0.03 if options.get("M") == 0 else 0.003)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_the_dual_rises_with_every_visit(data):
    made, lower = dcd(helpers.problem(data)), 0.0
    for i in np.random.default_rng(0).permutation(np.repeat(np.arange(data.n), 20)):
        order = np.array([i])
        made.visits.prepare(order, new=int(made.finds))
        made.phi.exact_pass(made.visits.policy, order, made.clock)
        assert made.phi.dual() >= lower - ULPS
        lower = made.phi.dual()


@pytest.mark.parametrize("name", DATA)
def test_the_tracked_bound_is_the_true_one_when_nothing_changes(name):
    """With a coarse tolerance ε, sweeps come to rest; then the gap is at most 2 ε."""
    posed, epsilon = helpers.problem(DATA[name]), 0.05
    made = dcd(posed, epsilon=epsilon, tol=0.0)
    rows = [(made.visits.policy.steps.tolist(), *found) for found in helpers.reports(made, 300)]
    (before, *_), (steps, w, dual) = rows[-2:]
    assert made.converged
    assert steps == before
    primal = posed.primal(w)
    assert made.upper == made.tracked == pytest.approx(primal, rel=1e-14)
    assert -ULPS <= primal - dual <= 2 * epsilon
    assert primal - dual > 1e-6  # there would have been more to gain


@pytest.mark.parametrize("name", DATA)
def test_both_ways_to_bound_end_at_the_same_optimum(name):
    posed, ended = helpers.problem(DATA[name]), {}
    for bound in ("tracked", "true"):
        made = helpers.converged_in(dcd(posed, bound=bound, tol=1e-3), 500)
        w, dual = made.reported()
        assert made.upper - dual <= 1e-3 * made.upper
        assert made.upper == pytest.approx(posed.primal(w), rel=1e-12)
        # UB costs a pass, and is computed when UB' says that it may be small enough
        ended[bound] = dual, made.clock.oracle_calls / posed.n / made.iteration
    assert ended["true"][0] == pytest.approx(ended["tracked"][0], abs=2e-3)
    assert ended["tracked"][1] < ended["true"][1] == 2


@pytest.mark.parametrize("nonnegative", ["none", "all"])
@pytest.mark.parametrize("name", [*DATA, "rows", "line"])
def test_a_warm_start_keeps_the_weights(name, nonnegative):
    options, of_rows = {"nonnegative": nonnegative}, {"line": "binary", "rows": "multiclass"}
    data = DATA[of_rows.get(name, name)]
    posed = helpers.problem(data) if name in DATA else Problem(listed(data), 1 / data.n)
    warm = helpers.iterated(dcd(posed, **options), 15)
    sums = [helpers.plane_weights(warm, i).sum() for i in range(posed.n)]
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12)
    warm.warm_start(posed.lam / 2, Clock("work"))
    before = warm.reported()
    assert before.dual > 0
    assert (before.w >= 0).all() or nonnegative == "none"
    warm.visits.recompute()
    np.testing.assert_allclose(warm.reported().w, before.w, atol=1e-12)
    assert warm.reported().dual == pytest.approx(before.dual, abs=1e-12)
    cold = dcd(Problem(posed.oracle, posed.lam / 2), **options)
    for _ in helpers.together(1, warm, cold):
        assert warm.reported().dual > cold.reported().dual


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"term_start": np.array(ends)}, "CSR") for ends in ([0, 2, 4], [0, 4, 3])),
        *(({"indices": np.array(of)}, "CSR") for of in ([0, 0, 1], [0, 0, -1], [0.0, 0.0, 0.0])),
        # an index twice in a row, a row that ends before it begins, a row too few
        *(({"indptr": np.array(ends)}, "CSR") for ends in ([0, 2, 2, 3], [0, 2, 1, 3], [0, 1, 2])),
        *(({"values": values}, "CSR") for values in (np.ones(2), np.ones(3, int))),
        ({"values": np.array([1.0, np.nan, 1.0])}, "not finite"),
        ({"offset": np.array([1.0, 1.0, np.inf])}, "not finite"),
    ],
)
def test_what_is_not_a_list_of_planes_is_refused(changes, message):
    good = constraints_of([np.array([[1.0, 0.5], [1.0, 1.0]]), np.array([[-0.25, 0.1]])])
    good.check(n=2, d=1)
    with pytest.raises(ValueError, match=message):
        good._replace(**changes).check(n=2, d=1)
    for n, d in ((1, 1), (3, 1), (2, 0)):
        with pytest.raises(ValueError, match="CSR"):
            good.check(n, d)


@pytest.mark.parametrize("planes", ["all", "found"])
def test_inner_products_for_which_there_is_no_memory_are_refused(planes, monkeypatch):
    posed = helpers.problem(DATA["multiclass"])
    room = 8 * 12 * 25 if planes == "all" else 8 * 12  # five planes a term, or one at first
    monkeypatch.setattr(memory, "_ALWAYS", 0)
    monkeypatch.setattr(memory, "available", lambda: room)
    made = dcd(posed, planes=planes)
    made.visits.prepare(np.arange(12), new=0)
    with pytest.raises(RunFailedError, match=r"12 examples.*Set solver\.products=compute"):
        made.visits.prepare(np.arange(12), new=1)
    monkeypatch.setattr(memory, "available", lambda: 8 * 12 - 1)
    with pytest.raises(RunFailedError, match=r"Set solver\.products=compute"):
        dcd(posed, planes=planes)
    dcd(posed, planes=planes, products="compute").visits.prepare(np.arange(12), new=1)


def test_a_list_of_planes_for_which_there_is_no_memory_is_refused(monkeypatch):
    inner = helpers.problem(DATA["multiclass"]).oracle
    mapped = WithPrior(inner, Prior(np.ones(inner.d), np.ones(inner.d)))
    assert not dcd(Problem(mapped, 0.1)).finds
    monkeypatch.setattr(memory, "_ALWAYS", 0)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(RunFailedError, match=r"all 48 planes .* Set solver\.planes=found"):
        dcd(Problem(mapped, 0.1))
    assert dcd(Problem(mapped, 0.1), planes="found", products="compute").finds


def test_idle_planes_are_dropped_and_the_ground_truth_stays():
    posed = helpers.problem(DATA["chains"])
    kept, dropped = (helpers.iterated(dcd(posed, T=T), 30) for T in (1000, 1))
    assert dropped.working_set_mean() < kept.working_set_mean()
    assert dropped.visits.policy.simplex.known.tolist() == dropped.phi.blocks.n_planes.tolist()
    before = dropped.reported()
    dropped.visits.recompute()
    np.testing.assert_allclose(dropped.reported().w, before.w, atol=1e-12)
    assert before.dual == pytest.approx(kept.reported().dual, abs=1e-3)
