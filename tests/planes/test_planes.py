"""Working sets and the planes φ^i: the two storages, against each other and the definitions."""

import helpers
import numpy as np
import pytest
from helpers import Dense
from linear import binary_oracle, random_binary
from scipy.stats import spearmanr

from ssvm_bench.base.linalg import squared_norm
from ssvm_bench.base.state import StateError
from ssvm_bench.oracles import viterbi
from ssvm_bench.oracles.base import Plane, Problem
from ssvm_bench.oracles.joint_features import DenseFeatures
from ssvm_bench.planes import dual_iterate, labeling_iterates, labelings, operations, rows
from ssvm_bench.solvers.block.mpbcfw import AtOracle

# Values below 10 from some hundred operations each: 100 · 10 · 2⁻⁵³ ≈ 1e-13, with a margin.
ROUNDING = 1e-12

DATA = {name: helpers.SMALL[name] for name in ("chains", "multiclass")}
STORAGES = {"labelings": "Labelings", "rows": "SparseRows"}


def make(data, storage, name, **options):
    """Return a solver whose planes are kept in that storage."""
    posed = helpers.problem(data)
    if storage == "rows":
        posed = Problem(helpers.Plain(posed.oracle), posed.lam)
    made = helpers.solver(posed, name, **options)
    assert type(made.phi.blocks).__name__ == STORAGES[storage]
    return made


@pytest.fixture(params=DATA)
def data(request):
    return DATA[request.param]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bcfw", {}),
        ("bcfw", {"step": "2n/(k+2n)", "sampling": "uniform"}),
        ("bcfw_avg", {}),
        ("mpbcfw", {"T": 2, "N": 3}),
        ("mpbcfw_avg", {"T": 2}),
        ("mpbcfw_avg", {"sampling": "uniform"}),
    ],
)
def test_storages_agree(data, name, options):
    table = helpers.Table(data)
    one, other = (make(data, storage, name, **options) for storage in STORAGES)
    for _ in helpers.together(8, one, other):
        here, there = one.reported(), other.reported()
        # the same sums in another order; some hundred steps pass the rounding on
        np.testing.assert_allclose(here.w, there.w, rtol=0, atol=1e-9)
        assert here.dual == pytest.approx(there.dual, abs=1e-10)
        assert helpers.working_sets(one, table) == helpers.working_sets(other, table)
        assert one.approx_passes == other.approx_passes
        for tally in ("oracle_calls", "approx_calls", "plane_evaluations"):
            assert getattr(one.clock, tally) == getattr(other.clock, tally)


@pytest.mark.parametrize("storage", STORAGES)
def test_cached_planes_are_planes_of_labelings_and_never_above_the_hinge(data, storage):
    table, rng = helpers.Table(data), np.random.default_rng(0)
    made = helpers.iterated(make(data, storage, "mpbcfw"), 4)
    for i in range(table.n):
        found, planes = helpers.cached(made.phi.blocks, table, i)
        for row, plane in zip(found, planes, strict=True):
            np.testing.assert_allclose(plane, table.planes[i][row], rtol=0, atol=ROUNDING)
            for w in rng.normal(size=(5, table.d)):
                assert plane @ np.append(w, 1.0) <= table.values(w, i).max() + ROUNDING


def iterate_of(blocks, table, i):
    """Return φ^i as a dense plane."""
    phi = np.zeros(table.d + 1)
    phi[-1] = blocks.term_offset[i]
    if isinstance(blocks, rows.SparseRows):
        here = slice(blocks.support_start[i], blocks.support_start[i] + blocks.size[i])
        phi[blocks.support[here]] = blocks.phi[here]
        return phi / table.n

    features = blocks.features
    f, K = features.n_features, features.n_labels
    for part in range(features.offsets[i], features.offsets[i + 1]):
        span = slice(features.indptr[part], features.indptr[part + 1])
        x = features.values[span]
        if not isinstance(features, DenseFeatures):
            x = np.zeros(f)
            x[features.indices[span] // features.stride] = features.values[span]
        for k in range(blocks.seen_count[part]):
            label = blocks.seen[part, k]
            phi[label * f : (label + 1) * f] += blocks.mu[part, k] * x
    for k in range(blocks.moves_start[i], blocks.moves_start[i] + blocks.moves_count[i]):
        b, a = divmod(int(blocks.moves[k]), features.stride)
        phi[K * f + K * a + b] += blocks.nu[k]
    truth = table.features[i][table.truth[i]]
    phi[:-1] -= truth
    return phi / table.n


@pytest.mark.parametrize("storage", STORAGES)
def test_phi_stays_a_convex_combination_of_planes_even_of_dropped_ones(data, storage):
    table, rng = helpers.Table(data), np.random.default_rng(0)
    made = make(data, storage, "mpbcfw", T=1, N=2)
    for w, dual in helpers.reports(made, 6):
        total = np.zeros(table.d + 1)
        for i in range(table.n):
            phi = iterate_of(made.phi.blocks, table, i)
            total += phi
            # a point is in a convex hull if no direction separates it
            for direction in rng.normal(size=(10, table.d + 1)):
                assert phi @ direction <= (table.planes[i] @ direction).max() + ROUNDING
        # w and the dual are those of φ = Σ φ^i
        np.testing.assert_allclose(w, -total[:-1] / made.problem.lam, atol=1e-11)
        assert dual == pytest.approx(made.problem.dual(w, total[-1]), abs=1e-12)


@pytest.mark.parametrize("name", ["mpbcfw_away", "mpbcfw_fast"])
def test_what_dropped_planes_alone_have_used_is_forgotten(name, data):
    table = helpers.Table(data)
    made = make(data, "labelings", name, T=1)
    features, most = made.phi.blocks.features, 0
    for _ in range(12):
        made.iterate()
        store, total = made.phi.blocks, np.zeros(table.d + 1)
        for i in range(table.n):
            used, planes = helpers.cached(store, table, i)
            phi = iterate_of(store, table, i)
            np.testing.assert_allclose(phi, helpers.plane_weights(made, i) @ planes, atol=ROUNDING)
            total += phi
            begin, end = features.offsets[i : i + 2]
            labels = np.array([table.labelings[i][row] for row in [*used, table.truth[i]]])
            for part, seen in zip(range(begin, end), labels.T, strict=True):
                listed = store.seen[part, : store.seen_count[part]].tolist()
                assert sorted(listed) == sorted(set(seen.tolist()))
                most = max(most, store.mu[part, store.seen_count[part] :].max(initial=0.0))
            pairs = {(*pair,) for y in labels for pair in zip(y[1:], y, strict=False)}
            assert store.moves_count[i] == (len(pairs) if features.transitions else 0)
        w = made.phi.outer_w()
        np.testing.assert_allclose(w, -total[:-1] / made.problem.lam, atol=1e-11)
    assert most == 0.0


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", ["bcfw", "mpbcfw"])
def test_recomputed_sum_is_the_one_kept_step_by_step(data, storage, name):
    made = helpers.iterated(make(data, storage, name), 9)
    w = np.full_like(made.phi.w, np.nan)
    offset = dual_iterate.sum_of_terms(made.phi.blocks, made.problem.lam, w)
    # |w| < 10; at most 9 + 9 · 1000 passes, in practice some hundred updates of 2⁻⁵³ each
    np.testing.assert_allclose(w, made.phi.w, rtol=0, atol=ROUNDING)
    assert offset == pytest.approx(made.phi.offset, abs=ROUNDING)


@pytest.mark.parametrize("storage", STORAGES)
def test_working_sets_begin_with_the_truth(data, storage):
    table, made = helpers.Table(data), make(data, storage, "mpbcfw")
    assert helpers.working_sets(made, table) == [[row] for row in table.truth]
    assert made.working_set_mean() == 1
    assert not any(helpers.cached(made.phi.blocks, table, i)[1][0].any() for i in range(table.n))
    assert helpers.iterated(make(data, storage, "bcfw"), 1).working_set_mean() == 0


class Hand:
    """A storage of one term, filled by hand."""

    def __init__(self, storage, N):
        data = helpers.random_chains([2], 4, 2, seed=1)
        self.oracle, self.table, self.N = helpers.oracle(data), helpers.Table(data), N
        if storage == "labelings":
            self.blocks = labelings.allocate(self.oracle.features)
        else:
            self.blocks = rows.allocate(1, self.oracle.d)
            self.put(Plane(np.zeros(0, int), np.zeros(0), 0.0))
        self.blocks.n_planes[:] = N > 0
        wrong = [row for row in range(16) if row != self.table.truth[0]]
        self.rows = dict(zip("tABCD", [self.table.truth[0], *wrong], strict=False))

    def put(self, plane):
        """Make a plane the candidate, in a storage of rows."""
        self.blocks = rows.put(self.blocks, 0, plane)

    def find(self, letters, now):
        """Let the exact oracle return these planes in iteration ``now``."""
        for letter in letters:
            y = self.table.labelings[0][self.rows[letter]].astype(np.uint8)
            if isinstance(self.blocks, labelings.Labelings):
                self.blocks = labelings.reserve(self.blocks, np.ones(1, np.int64), self.N)
                labelings.set_candidate(self.blocks, 0, y)
            else:
                self.put(self.oracle.plane(0, y))
            operations.insert_candidate(AtOracle(self.N), self.blocks, 0, now)

    def letters(self):
        names = {row: letter for letter, row in self.rows.items()}
        return "".join(names[row] for row in helpers.cached(self.blocks, self.table, 0)[0])


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("N", "steps"),
    [
        (
            3,
            [
                ("", 0, "t"),
                ("A", 1, "tA"),
                ("B", 2, "tAB"),
                ("A", 3, "tAB"),  # marked active, not stored twice
                ("C", 4, "ABC"),  # the truth was active at the start only
                ("D", 5, "ACD"),  # B was active in 2, A in 3
                ("t", 5, "CDt"),  # the truth's plane comes back like any other
            ],
        ),
        (2, [("ABC", 1, "BC")]),  # of equally long inactive ones, the oldest
    ],
)
def test_over_the_limit_the_longest_inactive_is_dropped(storage, N, steps):
    hand = Hand(storage, N)
    for found, now, kept in steps:
        hand.find(found, now)
        assert hand.letters() == kept


@pytest.fixture
def watched(monkeypatch):
    """Let solvers know where w is not 0, however few or many features there are."""
    monkeypatch.setattr(labeling_iterates, "_LEAST", 1)
    monkeypatch.setattr(labeling_iterates, "_LARGEST_SHARE", 1.0)


def sparse_chains(seed=0):
    rng = np.random.default_rng(seed)
    x = (rng.random((60, 400)) < 0.01) * rng.integers(1, 4, (60, 400)).astype(float)
    y = (x @ rng.normal(size=(400, 4))).argmax(axis=1)
    return helpers.dataset(x, y, 4, [3] * 20)


def sparse_signs(seed=0):
    data = sparse_chains(seed)
    return random_binary(60, 400, x=data.x, y=(data.y > 1).astype(np.uint8))


@pytest.mark.parametrize("name", ["mpbcfw", "mpbcfw_fast", "mpbcfw_pairwise", "cutting_plane"])
@pytest.mark.parametrize(
    ("data", "build"), [(sparse_chains, helpers.oracle), (sparse_signs, binary_oracle)]
)
def test_what_is_zero_is_known_and_changes_nothing(name, data, build, watched, monkeypatch):
    posed, found = Problem(build(data()), 0.01), []
    for least in (1 << 18, 1):
        monkeypatch.setattr(labeling_iterates, "_LEAST", least)
        made, rows = helpers.solver(posed, name), []
        for _ in helpers.together(8, made):
            w, indices = made.phi.w, made.phi.indices
            rows.append((made.phi.dual(), *w))
            assert (indices is None) == (least > 1)
            if indices is not None:
                assert set(np.flatnonzero(w)) <= set(indices.tolist())
                assert (np.diff(indices.astype(int)) > 0).all()
                assert made.phi.dual() == made.phi.dual(squared_norm(w))
        found.append(rows)
    np.testing.assert_array_equal(*found)


def test_where_much_of_w_is_touched_all_of_it_is_read(watched, monkeypatch):
    posed = Problem(helpers.oracle(sparse_chains()), 0.01)
    made = helpers.iterated(helpers.solver(posed, "mpbcfw_fast"), 1)
    assert made.phi.indices is not None
    monkeypatch.setattr(labeling_iterates, "_LARGEST_SHARE", 0.0)
    for _ in helpers.together(2, made):
        assert made.phi.indices is None


def test_a_checkpoint_has_the_indices_of_forgotten_labels_too(watched):
    posed = Problem(helpers.oracle(sparse_chains()), 0.01)
    made, again = (helpers.solver(posed, "mpbcfw_fast", T=1) for _ in range(2))
    helpers.iterated(made, 8)
    state = made.state()
    again.restore(state)
    np.testing.assert_array_equal(again.phi.indices, made.phi.indices)
    beyond = np.array([made.phi.w.size], np.uint32)
    with pytest.raises(StateError):
        again.restore(state | {"phi": state["phi"] | {"indices": beyond}})


@pytest.mark.parametrize("kind", DATA)
def test_working_sets_are_small_for_terms_with_few_relevant_planes(kind):
    """MP-BCFW paper, section 3.4: T alone decides; relevant ones have weight at the optimum."""
    lengths = np.random.default_rng(0).integers(1, 9, 60).tolist()
    chains = helpers.random_chains(lengths, 4, 6, seed=1)
    data = chains if kind == "chains" else helpers.random_multiclass(150, 6, 8, seed=2)
    posed = helpers.problem(data)
    best = helpers.iterated(helpers.solver(posed, "dcd", tol=1e-6), 300)
    relevant = [np.count_nonzero(helpers.plane_weights(best, i) > 1e-6) for i in range(data.n)]
    made = helpers.iterated(helpers.solver(posed, "mpbcfw", T=10), 60)
    sizes = made.phi.blocks.n_planes[: data.n]
    assert spearmanr(relevant, sizes).statistic > 0.6
    means = [sizes[np.equal(relevant, count)].mean() for count in (1, 2)]
    assert means[0] < 1.7 < means[1]


@pytest.mark.parametrize(
    ("name", "iterations", "same"),
    [("mpbcfw", 30, 1e-9), ("mpbcfw_fast", 100, 1e-7), ("one_slack", 20, 1e-2)],
)
def test_planes_as_rows_lead_where_planes_as_labelings_do(name, iterations, same, monkeypatch):
    """The steps are the same; or with ties in another order, the optimum is, within ε."""
    chains = helpers.random_chains([6, 9, 7, 8], K=3, f=4)
    as_labelings = helpers.problem(chains, lam=0.5)
    monkeypatch.setattr(viterbi, "_products_pay", lambda _: False)
    as_rows = helpers.problem(chains, lam=0.5)
    assert as_labelings.oracle.features.gram.size > 0 == as_rows.oracle.features.gram.size
    found = []
    for posed in (as_labelings, as_rows):
        w, dual = helpers.iterated(helpers.solver(posed, name), iterations).reported()
        assert dual <= posed.primal(w) + 1e-12
        found.append([dual, posed.primal(w)])
    np.testing.assert_allclose(*found, rtol=same)


def test_the_bound_of_differences_holds_without_products(monkeypatch):
    chains = helpers.random_chains([3, 4, 2], K=3, f=2)
    true, kept = Dense(chains).radius2(), helpers.problem(chains).oracle.features.squared_radius
    monkeypatch.setattr(viterbi, "_products_pay", lambda _: False)
    assert true <= kept <= helpers.problem(chains).oracle.features.squared_radius


def test_products_are_kept_of_chains_that_are_short_or_have_many_features():
    pays = viterbi._products_pay
    assert pays(helpers.random_chains([60, 64, 20], K=2, f=3))
    assert pays(helpers.random_chains([90], K=2, f=5000))
    assert not pays(helpers.random_chains([90], K=2, f=3))
