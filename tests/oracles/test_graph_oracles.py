"""Min-cut and α-expansion against enumeration, and against another max-flow."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import random_cuts
from helpers import Table, check_risk, dense, graphs, oracle, random_chains, random_graphs
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from program import config_of, run_here
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.oracles import alpha_expansion, cut, mincut
from ssvm_bench.oracles.alpha_expansion import FREE, halve, number_of_cuts
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.prior import Prior, WithPrior
from ssvm_bench.oracles.weighted import Weighted
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import runner
from ssvm_bench.runs.components import load_dataset
from ssvm_bench.runs.terminal import Display

# Sums of at most 100 terms below 100, taken in different orders: 100 · 2⁻⁵³ · 100 < 2e-12.
ROUNDING = 2e-12
OPTIONS = [
    {"partial_optimality": first, "warm_start": last}
    for first, last in itertools.product((False, True), repeat=2)
]

MODULES = {2: mincut, 3: alpha_expansion}
CONFIGS = {
    2: mincut.Config("mincut", "mincut"),
    3: alpha_expansion.Config("alpha_expansion", "alpha_expansion", True, False),
}
ENGINES = [cut.COMPILED, cut.PYMAXFLOW]

small_integers = st.integers(-2, 2).map(float)


@st.composite
def instances(draw, labels=(2,), sizes=(1, 2, 4, 8)):
    """Draw (dataset, w): one or two graphs of 2^k nodes; small integers, so that ties abound."""
    K, f = draw(st.sampled_from(labels)), draw(st.integers(1, 3))
    edges = []
    for size in draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=2)):
        pairs = list(itertools.combinations(range(size), 2))
        edges.append((draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [], size))
    parts = sum(size for _, size in edges)
    x = draw(arrays(np.float64, (parts, f), elements=small_integers))
    y = draw(arrays(np.uint8, parts, elements=st.integers(0, K - 1)))
    w = draw(arrays(np.float64, K * f, elements=small_integers))
    return graphs(x, y, K, edges), w


def scores(table, w, i):
    """Return ⟨w, ϕ(x_i,y)⟩ + Θ_i(y) of every labeling."""
    return table.features[i] @ w + table.fixed[i]


@st.composite
def energies(draw):
    size = draw(st.integers(1, 7))
    pairs = draw(st.lists(st.sampled_from(list(itertools.combinations(range(8), 2))), unique=True))
    pairs = [pair for pair in pairs if max(pair) < size]
    d = draw(arrays(np.int64, size, elements=st.integers(-4, 4)))
    capacities = draw(arrays(np.int64, len(pairs), elements=st.integers(0, 3)))
    states = draw(arrays(np.int8, size, elements=st.sampled_from((0, 1, *(cut.OPEN,) * 4))))
    return pairs, d, capacities, states


@pytest.mark.parametrize("engine", ENGINES)
@given(energies())
def test_the_smallest_minimiser_is_found_whatever_is_decided_before(engine, energy):
    if engine == cut.PYMAXFLOW:
        pytest.importorskip("maxflow")
    pairs, d, capacities, states = energy
    data = graphs(np.zeros((d.size, 1)), np.zeros(d.size), 2, [(pairs, d.size)])
    neighbours = cut.graphs(data.edges, data.edge_offsets, data.offsets)
    minimiser = cut.Minimiser(neighbours, 1, engine)
    of = minimiser.energy
    of.d[:], of.capacity[:], of.x[:] = d, capacities, states
    zeros = np.zeros(d.size, np.uint8)
    if cut.minimise(neighbours, 0, of, zeros, 0):
        minimiser.cut(0, zeros)

    every = np.array(list(itertools.product((0, 1), repeat=d.size)))
    every = every[((states == cut.OPEN) | (every == states)).all(axis=1)]
    ends = np.array(pairs, int).reshape(-1, 2)
    values = every @ d + (every[:, ends[:, 0]] != every[:, ends[:, 1]]) @ capacities
    best = every[values == values.min()]
    assert of.x.tolist() == best.min(axis=0).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_flow_that_is_remembered_is_maximal_to_the_last_unit(seed):
    # as large numbers as those of an energy of hundreds of edges
    rng, L = np.random.default_rng(seed), 60
    data = random_graphs([L], 2, 3, seed=seed)
    neighbours = cut.graphs(data.edges, data.edge_offsets, data.offsets)
    minimiser = cut.Minimiser(neighbours, 1)
    of, found = minimiser.energy, []
    of.d[:] = rng.integers(-(2**50), 2**50, L)
    of.capacity[:] = 2 * rng.integers(0, 2**48, len(data.edges))
    for _ in range(2):
        of.x[:] = cut.OPEN
        assert not cut.minimise(neighbours, 0, of, np.zeros(L, np.uint8), 0)
        found.append(of.x.copy())
        paths = of.found.known[of.found.tree == cut.INSIDE]
    assert 0 < found[0].sum() < L
    assert found[0].tolist() == found[1].tolist()
    assert paths.max() == 0


def test_both_engines_find_the_same_cuts_of_random_graphs():
    pytest.importorskip("maxflow")
    assert random_cuts.compare(2000, seed=0) == 0


@pytest.mark.parametrize("K", [2, 5])
def test_both_engines_find_the_same_labelings(K):
    pytest.importorskip("maxflow")
    data, config = random_graphs([30] * 4, K, 3, seed=3), CONFIGS[min(K, 3)]
    one, other = oracle(data), MODULES[min(K, 3)].build(replace(config, engine="pymaxflow"), data)
    for w, i in itertools.product(np.random.default_rng(1).normal(size=(10, one.d)), range(4)):
        assert one.argmax(w, i).tolist() == other.argmax(w, i).tolist()
        assert one.predict(w, i).tolist() == other.predict(w, i).tolist()


def test_an_engine_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match=r"oracle\.engine=fast is not known"):
        replace(CONFIGS[2], engine="fast")


@given(instances())
def test_a_minimum_cut_is_the_lexicographically_first_maximiser(instance):
    # integers, and losses that are multiples of 1/8: no sum is rounded, ties are exact
    data, w = instance
    table, tested = Table(data), oracle(data)
    for i in range(data.n):
        values = scores(table, w, i)
        for found, of in ((tested.argmax, values + table.losses[i]), (tested.predict, values)):
            assert found(w, i).tolist() == table.labelings[i][np.argmax(of)].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_large_graphs_against_the_max_flow_of_scipy(seed):
    # capacities must be small integers there: integer scores, and losses of 1/256 a node
    L, rng = 256, np.random.default_rng(seed)
    data = random_graphs([L], 2, 4, seed=seed)
    data = replace(data, x=rng.integers(-2, 3, size=data.x.shape).astype(float))
    tested, w = oracle(data), rng.integers(-2, 3, 8).astype(float)

    score = data.x @ (w[4:] - w[:4])
    d = np.rint(-L * score).astype(int) + np.where(data.y == 0, -1, 1)
    k, l = data.edges.T
    source, sink = L, L + 1
    rows = np.concatenate((np.full(L, source), np.arange(L), k, l))
    columns = np.concatenate((np.arange(L), np.full(L, sink), l, k))
    capacities = np.concatenate((np.maximum(d, 0), np.maximum(-d, 0), np.full(2 * k.size, L)))
    network = coo_array((capacities.astype(np.int32), (rows, columns)), shape=(L + 2, L + 2))
    flow = maximum_flow(network.tocsr(), source, sink).flow_value

    y = tested.argmax(w, 0).astype(int)
    energy = y @ d + np.maximum(-d, 0).sum() + L * np.count_nonzero(y[k] != y[l])
    assert energy == flow


@pytest.mark.parametrize("K", [2, 3, 5])
def test_planes_scores_and_risk_agree_with_their_definitions(K):
    data = random_graphs([1, 5, 6, 2], K, 3, seed=K)
    table, tested = Table(data), oracle(data)
    rng = np.random.default_rng(K)
    for i in range(data.n):
        for row in rng.choice(len(table.labelings[i]), 10):
            y = table.labelings[i][row].astype(np.uint8)
            plane = tested.plane(i, y)
            assert np.unique(plane.indices).size == plane.indices.size
            expected = table.planes[i][row]
            np.testing.assert_allclose(dense(plane, table.d), expected, rtol=0, atol=ROUNDING)
            assert tested.loss(i, y) == pytest.approx(table.losses[i][row], abs=ROUNDING)
            w = rng.normal(size=table.d)
            expected = scores(table, w, i)[row]
            assert tested.score(w, i, y) == pytest.approx(expected, abs=ROUNDING)
    assert tested.plane(1, tested.truth(1)).indices.size == 0
    check_risk(tested, w, ROUNDING)
    wrong = [np.mean(tested.predict(w, i) != tested.truth(i)) for i in range(data.n)]
    assert tested.mean_loss(w) == pytest.approx(np.mean(wrong), abs=ROUNDING)


def test_sparse_features_in_single_precision_give_the_same_labelings():
    data = random_graphs([6, 7], 3, 4, seed=2)
    data = replace(data, x=np.round(data.x * 8) / 8)
    w = np.random.default_rng(0).normal(size=12)
    sparse = oracle(replace(data, x=csr_array(data.x.astype(np.float32))))
    for i in range(data.n):
        assert sparse.argmax(w, i).tolist() == oracle(data).argmax(w, i).tolist()


@pytest.mark.parametrize("features", [None, 2])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("potts", [0.0, 0.3, 2.5])
def test_neighbours_with_different_labels_cost_what_is_said(potts, K, features):
    data, rng = random_graphs([6, 7], K, 3, seed=4), np.random.default_rng(0)
    if features:  # then it is the weight of each
        data = replace(data, edge_x=rng.random((len(data.edges), features)))
    table, config = Table(data, potts), replace(CONFIGS[K], potts=potts)
    tested = MODULES[K].build(config, data)
    assert tested.d == table.d
    for i in range(data.n):
        w = rng.normal(size=tested.d)
        y, values = tested.argmax(w, i), table.values(w, i)
        row = table.row(i, y)
        bound = table.fixed[i] if K > 2 else np.zeros(values.size)  # of α-expansion
        assert values[row] >= values.max() + bound[values.argmax()] - ROUNDING
        plane, value = tested.best_plane(w, i)
        expected = table.planes[i][row]
        np.testing.assert_allclose(dense(plane, table.d), expected, rtol=0, atol=ROUNDING)
        assert value == pytest.approx(values[row], abs=ROUNDING)
        assert tested.fixed_score(i, y) == pytest.approx(table.fixed[i][row], abs=ROUNDING)
    check_risk(tested, w, ROUNDING)


@given(instances(labels=(3, 4), sizes=(1, 2, 4)), st.sampled_from(OPTIONS))
def test_an_expansion_is_within_the_bound_and_never_below_the_ground_truth(instance, options):
    data, w = instance
    table, tested = Table(data), oracle(data, **options).fresh()
    for i in range(data.n):
        values = scores(table, w, i) + table.losses[i]
        y, alone = tested.argmax(w, i), np.argmax(values - table.fixed[i])
        # the labels that are best on their own are one start, the ground truth the other
        assert values[table.row(i, y)] >= max(values[alone], values[table.truth[i]])
        for found, of in ((y, values), (tested.predict(w, i), scores(table, w, i))):
            best = np.argmax(of)
            assert of[table.row(i, found)] >= of[best] + table.fixed[i][best]


@given(instances(labels=(3, 4), sizes=(2, 4)))
def test_partially_optimal_labels_are_those_of_all_best_labelings(instance):
    data, w = instance
    table, tested = Table(data), oracle(data)
    for i in range(data.n):
        tested.argmax(w, i)
        fixed = tested._room.optimal[: tested.truth(i).size]
        values = scores(table, w, i) + table.losses[i]
        for best in table.labelings[i][values == values.max()]:
            assert (best == fixed)[fixed != FREE].all()
        share = np.mean(fixed != FREE)
        assert tested.diagnostics() == {"fixed_share": pytest.approx(share)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("K", [2, 5, 9])
def test_halving_sets_of_labels_finds_what_a_cut_for_each_label_finds(K, engine):
    if engine == cut.PYMAXFLOW:
        pytest.importorskip("maxflow")
    data, rng = random_graphs([30] * 4, K, 3, seed=3), np.random.default_rng(K)
    x = rng.integers(3, size=(len(data.edges), 1)).astype(float)
    neighbours = cut.graphs(data.edges, data.edge_offsets, data.offsets, x)
    cuts, zeros, fixed = number_of_cuts(K), np.zeros(30, np.uint8), 0
    one, other = (cut.Minimiser(neighbours, K + more, engine) for more in (cuts, 0))
    u = rng.integers(-9, 9, (4, 30, K))
    for step in range(40):
        i, potts = step % 4, rng.integers(3, size=1).astype(float)
        u[i] += rng.integers(-1, 2, (30, K))
        for of in (one.energy, other.energy):
            cut.set_capacities(neighbours, i, potts, 1, of)
        capacity = of.capacity.copy()
        first, end, made = np.zeros(30, np.int64), np.full(30, K), 0
        given = neighbours, i, u[i], capacity, first, end, zeros, cuts, one.energy
        while made := halve(*given, made):
            one.cut(i, zeros)
        expected = np.full(30, FREE)
        for alpha in range(K):
            of.d[:] = u[i, :, alpha] - np.delete(u[i], alpha, axis=1).min(axis=1)
            of.x[:] = cut.OPEN
            if cut.minimise(neighbours, i, of, zeros, alpha):
                other.cut(i, zeros)
            expected[of.x == 1] = alpha
        assert np.where(one.energy.x == 1, first, FREE).tolist() == expected.tolist()
        fixed += np.count_nonzero(expected != FREE)
    assert 0 < fixed < 40 * 30


@given(instances(sizes=(1, 2, 4, 8)), st.sampled_from(OPTIONS))
def test_with_two_labels_an_expansion_is_a_minimum_cut(instance, options):
    data, w = instance
    tested, exact = oracle(data, **options), oracle(data)
    for i in range(data.n):
        assert value(exact, w, i, tested.argmax(w, i)) == value(exact, w, i, exact.argmax(w, i))
        one, other = (exact.score(w, i, made.predict(w, i)) for made in (tested, exact))
        assert one == other


@pytest.mark.parametrize("options", OPTIONS)
def test_no_single_expansion_improves_the_result(options):
    data = random_graphs([7] * 4, 3, 3, seed=5)
    table, tested = Table(data), oracle(data, **options)
    for i in range(data.n):
        w = np.random.default_rng(i).normal(size=tested.d)
        values = table.values(w, i)
        y = tested.argmax(w, i)
        for alpha in range(3):
            moves = ((table.labelings[i] == y) | (table.labelings[i] == alpha)).all(axis=1)
            assert values[table.row(i, y)] >= values[moves].max() - ROUNDING


@pytest.mark.parametrize("options", OPTIONS)
def test_a_prediction_does_not_look_at_the_ground_truth(options):
    data = random_graphs([9] * 5, 4, 3, seed=6)
    other = replace(data, y=((data.y + 1) % 4).astype(np.uint8))
    w = np.random.default_rng(1).normal(size=12)
    for i in range(data.n):
        one, two = (oracle(made, **options).predict(w, i) for made in (data, other))
        assert one.tolist() == two.tolist()


def test_a_warm_start_never_ends_below_the_last_labeling():
    data = random_graphs([12] * 3, 5, 3, seed=7)
    shared = oracle(data, partial_optimality=False, warm_start=True)
    warm, rng = shared.fresh(), np.random.default_rng(2)
    cold = oracle(data, partial_optimality=False)
    for _ in range(20):
        w = rng.normal(size=warm.d)
        for i in range(data.n):
            own = slice(*warm.features.offsets[i : i + 2])
            last = warm.last[own].copy() if warm.known.size and warm.known[i] else None
            y = warm.argmax(w, i)
            if last is not None:
                assert value(warm, w, i, y) >= value(warm, w, i, last) - ROUNDING
            # the shared one has no memory, so that the primal depends on w alone
            assert shared.argmax(w, i).tolist() == cold.argmax(w, i).tolist()
    assert not shared.fresh().known.any()


def value(tested, w, i, y):
    return tested.score(w, i, y) + tested.loss(i, y)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_scores_that_are_not_numbers_are_refused(K, bad):
    tested = oracle(random_graphs([4, 5], K, 2))
    for at in (0, -1):  # a score of the first label, and of the last one
        w = np.ones(2 * K)
        w[at] = bad
        for ask in (tested.argmax, tested.predict):
            with pytest.raises(RunFailedError, match="example 1 are not finite, or too large"):
                ask(w, 1)


@given(instances(labels=(2, 3), sizes=(1, 2, 4)))
def test_no_labeling_is_above_the_bound(instance):
    data, w = instance
    tested, table = oracle(data, partial_optimality=False), Table(data)
    for i in range(data.n):
        values = table.planes[i] @ np.append(w, 1)
        assert tested.upper_bound(w, i) >= values.max() - ROUNDING
        assert tested.upper_bound(w, i) >= tested.best_plane(w, i)[1] - ROUNDING


@pytest.mark.parametrize(("K", "cycles"), [(2, True), (3, False), (4, False)])
def test_with_two_labels_or_on_trees_the_bound_is_the_maximum(K, cycles):
    rng, sizes = np.random.default_rng(5), [6, 5, 6, 1, 2]
    data = random_graphs(sizes, K, 4, seed=9)
    if not cycles:
        trees = [([(int(rng.integers(l)), l) for l in range(1, size)], size) for size in sizes]
        data = graphs(data.x, data.y, K, trees)
    w, table = 2 * rng.normal(size=4 * K), Table(data)
    tested = oracle(data, partial_optimality=False)
    for i in range(data.n):
        highest = (table.planes[i] @ np.append(w, 1)).max()
        assert tested.upper_bound(w, i) == pytest.approx(highest, abs=1e-4)  # sweeps end at 1e-5


def test_a_bound_goes_through_weights_and_priors():
    data = random_graphs([4, 3], 3, 4, seed=2)
    inner, w = oracle(data, partial_optimality=False), np.random.default_rng(1).normal(size=12)
    of_weighted = Weighted(inner, np.array([2.0, 0.5]))
    assert of_weighted.upper_bound(w, 0) == 2 * inner.upper_bound(w, 0)
    moved = WithPrior(inner, Prior(np.ones(12), np.full(12, 2.0)))
    assert moved.upper_bound(w, 1) == inner.upper_bound(moved.prior.weights(w), 1)
    expected = 0.05 * w @ w + sum(of_weighted.upper_bound(w, i) for i in range(2))
    assert Problem(of_weighted, 0.1).upper_bound(w, 0.0) == pytest.approx(expected)


def test_an_oracle_that_is_not_exact_and_knows_no_bound_is_refused():
    exact = oracle(random_chains([3, 2], 3, 2, seed=3))
    w = np.ones(exact.d)
    assert exact.upper_bound(w, 1) == exact.best_plane(w, 1)[1]
    assert Problem(exact, 0.5).upper_bound(w, 7.0) == 7.0
    exact.exact = False
    with pytest.raises(ConfigError, match=r"eval\.bound=true needs an oracle that is exact"):
        Problem(exact, 0.5).upper_bound(w, 7.0)


@pytest.mark.parametrize("name", ["usps", "stanford"])
def test_a_run_has_the_bound_beside_the_primal_value(tmp_path, name):
    options = (f"dataset={name}", "dataset.n_samples=8", "budget.max_iterations=3", "clock=work")
    plain, ours = (run_here(tmp_path, *options, *more) for more in ((), ("eval.bound=true",)))
    usual, frame = read_trace(plain.folder).frame, read_trace(ours.folder).frame
    assert list(frame) == [*usual, "primal_bound", "gap_bound"]
    assert frame["primal"].equals(usual["primal"])
    assert (frame["primal_bound"] >= frame["primal"] - ROUNDING).all()
    assert (frame["primal_bound"] - frame["dual"] == frame["gap_bound"]).all()
    assert (frame["primal_bound"] == frame["primal"]).all() == (name == "usps")
    config = config_of(tmp_path, *options, "eval.bound=true")  # the same run, without files
    rows = runner.train(config, load_dataset(config.dataset), Display()).recorder.rows
    assert [row["primal_bound"] for row in rows] == frame["primal_bound"].tolist()
