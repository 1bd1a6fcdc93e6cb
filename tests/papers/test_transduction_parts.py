"""The parts of transduction, each against brute force or a solver that knows nothing of it."""

import numpy as np
import pytest
import scipy.special
from helpers import believed
from points import best, cliques, clouds, points, posed
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, eye_array, kron, vstack

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.papers.transduction.oracles import energies, kernels, losses, transduction
from ssvm_bench.papers.transduction.oracles.energies import sum_of

EPS = np.finfo(float).eps


def built(kernel, x, **options):
    """Return a kernel of points."""
    config = transduction.Config("transduction", "transduction", kernel=kernel, **options)
    return kernels.build(config, x, "tiny")


def table(name, c, rho, guess=None):
    """Return B, u and the guesses for the next time."""
    n, L = c.shape
    B, u = np.zeros((n, L, L)), np.zeros((n, L))
    guess = np.full((n, L), -np.inf) if guess is None else guess
    losses.table(losses.build(name, L), c, rho, B, u, guess)
    return B, u, guess


def loss(name, label, beta):
    """Return ℓ(label; β) from its definition."""
    margin = (np.arange(beta.size) != label).astype(float)
    if name == "softmax":
        return scipy.special.logsumexp(beta) - beta[label]
    if name == "crammer_singer":
        return (beta + margin).max() - beta[label]
    return np.maximum(0, 1 - np.where(margin == 0, beta, -beta)).sum()


def least(name, label, c, rho):
    """Return min_β ℓ(label; β) + ρ/2 ‖β − c‖² by a general method, over the epigraphs of hinges."""
    L, margin = c.size, (np.arange(c.size) != label).astype(float)
    if name == "softmax":
        value = lambda b: loss(name, label, b) + rho / 2 * ((b - c) ** 2).sum()  # noqa: E731
        slope = lambda b: scipy.special.softmax(b) + margin - 1 + rho * (b - c)  # noqa: E731
        return believed(minimize(value, c, jac=slope)).fun
    sign = np.where(margin == 0, 1.0, -1.0)
    if name == "crammer_singer":  # t ≥ β_k + margin_k
        start = np.append(c, (c + margin).max())
        extra = {"type": "ineq", "fun": lambda z: z[L] - z[:L] - margin}
        value = lambda z: z[L] - z[label]  # noqa: E731
    else:  # ξ_k ≥ 0, 1 − s_k β_k
        start = np.append(c, np.maximum(0, 1 - sign * c))
        extra = {"type": "ineq", "fun": lambda z: np.append(z[L:], z[L:] - 1 + sign * z[:L])}
        value = lambda z: z[L:].sum()  # noqa: E731
    penalised = lambda z: value(z) + rho / 2 * ((z[:L] - c) ** 2).sum()  # noqa: E731
    how = {"method": "SLSQP", "options": {"ftol": 1e-10, "maxiter": 500}}
    return believed(minimize(penalised, start, constraints=extra, **how)).fun


@pytest.mark.parametrize("rho", [0.01, 0.5, 20.0])
@pytest.mark.parametrize("L", [2, 4])
@pytest.mark.parametrize("name", losses.LOSSES)
def test_the_table_has_the_minima_of_a_general_method(name, L, rho):
    c = 3 * np.random.default_rng(L).normal(size=(3, L))
    B, u, _ = table(name, c, rho)
    for i in range(3):
        for label in range(L):
            beta = B[i, label]
            own = loss(name, label, beta) + rho / 2 * ((beta - c[i]) ** 2).sum()
            assert u[i, label] == pytest.approx(own, rel=1e-12, abs=1e-12)
            # the general method stops at some 1e-6 of its own
            assert u[i, label] == pytest.approx(least(name, label, c[i], rho), rel=2e-6, abs=2e-6)
            assert u[i, label] <= least(name, label, c[i], rho) + 1e-9


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("L", [2, 3])
def test_softmax_steps_obey_their_equation_from_any_guess(rho, L):
    c = np.random.default_rng(0).normal(size=(20, L)) * np.logspace(-3, 3, 20)[:, None]
    B, u, guess = table("softmax", c, rho)
    for i, label in np.ndindex(u.shape):
        p = scipy.special.softmax(B[i, label])
        gradient = p - np.eye(L)[label] + rho * (B[i, label] - c[i])
        # ρ(β − c) is computed here from numbers of the size of c
        assert np.abs(gradient).max() <= 1e-11 * (1 + rho * np.abs(c[i]).max())
    for start in (guess, guess + 1.0, np.full(u.shape, 1e300)):
        again, values, _ = table("softmax", c, rho, start.copy())
        # t is a number of the size of 1/ρ, and u near 0 a difference of numbers of the size of 1
        np.testing.assert_allclose(values, u, rtol=1e-12, atol=EPS * (8 + 450 / rho))
        np.testing.assert_allclose(again, B, rtol=1e-11, atol=1e-11 * (1 + 1 / rho))


def test_omega_is_wrights_function():
    x = np.concatenate((np.linspace(-40, 40, 2001), np.logspace(2, 8, 50)))
    found = np.array([losses.omega(value) for value in x])
    np.testing.assert_allclose(found, scipy.special.wrightomega(x), rtol=1e-14)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_values_and_their_sum_are_those_of_the_definitions(name):
    beta = np.random.default_rng(1).normal(size=(4, 3))
    of, found = np.zeros((4, 3)), losses.build(name, 3)
    losses.values(found, beta, of)
    for i, label in np.ndindex(of.shape):
        assert of[i, label] == pytest.approx(loss(name, label, beta[i]), abs=1e-14)
    y = np.array([2, 0, 1, 1])
    assert losses.total(found, y, beta) == pytest.approx(sum_of(of, y), abs=1e-13)
    steps, guess = np.zeros((4, 3)), np.full(4, -np.inf)
    losses.steps(found, y, beta, 0.7, steps, guess)
    np.testing.assert_allclose(steps, table(name, beta, 0.7)[0][np.arange(4), y])


def kernel_matrix(x, sigma):
    return np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / (2 * sigma**2))


@pytest.mark.parametrize("shape", [(30, 4), (6, 20)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("decomposed", [True, False])
def test_linear_without_k_is_linear_with_k(shape, sparse, decomposed, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_DECOMPOSED", 3000 if decomposed else 0)
    rng = np.random.default_rng(0)
    x, beta, multipliers = rng.normal(size=shape), *rng.normal(size=(2, shape[0], 3))
    made = built("linear", csr_array(x) if sparse else x)
    nu, rho, K = 0.3, 2.0, x @ x.T
    W = made.fit(rho * beta - multipliers, nu, rho, np.zeros((shape[1], 3)))
    alpha = np.linalg.solve(2 * nu * np.eye(shape[0]) + rho * K, rho * beta - multipliers)
    np.testing.assert_allclose(made.scores(W), K @ alpha, atol=1e-9)
    assert np.vdot(W, W) == pytest.approx(np.vdot(alpha, K @ alpha), rel=1e-8)
    # α is −λ⁺/(2ν): it costs nothing
    following = multipliers + rho * (made.scores(W) - beta)
    np.testing.assert_allclose(alpha, -following / (2 * nu), atol=1e-8)
    smallest, largest = made.extremes
    assert largest == pytest.approx(np.linalg.eigvalsh(K)[-1], rel=1e-8)
    if decomposed:
        lowest = np.linalg.eigvalsh(K)[0]
        assert smallest == pytest.approx(max(lowest, 0), abs=1e-8)


def test_conjugate_gradients_are_counted_and_end_at_their_precision():
    """From 0 they take a step for each different eigenvalue, here three; from the end, none."""
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(20, 6)))
    x, target = basis * [1.0, 1.0, 2.0, 2.0, 3.0, 3.0], rng.normal(size=(20, 2))
    right, counts, exact = x.T @ target, [], None
    for precision in (1e-10, 0.3):
        made = built("linear", x, precision=precision)
        W = made.fit(target, 0.3, 2.0, np.zeros((6, 2)))
        exact = W if exact is None else exact
        counts.append(made.cg_iterations)
        left = np.linalg.norm(0.6 * W + 2.0 * x.T @ (x @ W) - right, axis=0)
        assert (left <= 1.01 * precision * np.linalg.norm(right, axis=0)).all()
        made.fit(target, 0.3, 2.0, W)
        assert made.cg_iterations == counts[-1]
    assert counts[1] < counts[0] == 3
    direct = built("linear", x)
    np.testing.assert_allclose(direct.fit(target, 0.3, 2.0, exact), exact, atol=1e-9)
    assert direct.cg_iterations == 0


def test_rbf_steps_are_those_of_a_dense_solve():
    rng = np.random.default_rng(1)
    x, target = rng.normal(size=(25, 3)), rng.normal(size=(25, 2))
    made = built("rbf", x, sigma=0.9, ridge=0.01)
    K = kernel_matrix(x, 0.9) + 0.01 * np.eye(25)
    alpha = np.linalg.solve(0.2 * np.eye(25) + 3.0 * K, target)
    W = made.fit(target, 0.1, 3.0, np.zeros((made.m, 2)))
    np.testing.assert_allclose(made.scores(W), K @ alpha, atol=1e-10)
    np.testing.assert_allclose(made.alpha(W).T, alpha, atol=1e-9)
    np.testing.assert_allclose(made.extremes, np.linalg.eigvalsh(K)[[0, -1]], rtol=1e-9)


def test_nystrom_with_all_landmarks_is_the_kernel_and_random_features_come_near():
    x = np.random.default_rng(2).normal(size=(40, 2))
    K = kernel_matrix(x, 1.0)
    whole = built("nystrom", x, sigma=1.0, components=40).G
    np.testing.assert_allclose(whole @ whole.T, K, atol=1e-6)
    few = built("nystrom", x, sigma=1.0, components=10)
    assert few.m <= 10
    random = built("random_features", x, sigma=1.0, components=20000).G
    # a mean of 20000 numbers within ±2: five of their standard deviations
    assert np.abs(random @ random.T - K).max() < 5 / np.sqrt(20000)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_scalings(kind):
    x = kind([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    unit, standard = (csr_array(kernels.scaled(x, of)).toarray() for of in ("unit", "standard"))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0], [0.6, 0.8]])
    np.testing.assert_allclose(standard.std(axis=0), 1)
    assert kind is csr_array or np.abs(standard.mean(axis=0)).max() < 1e-15
    dimension = csr_array(kernels.scaled(x, "dimension")).toarray()
    np.testing.assert_allclose(dimension @ dimension.T, csr_array(x @ x.T).toarray() / 2)


def test_without_sigma_the_median_distance_is_taken(monkeypatch):
    x = np.random.RandomState(3).normal(size=(41, 5))
    apart = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))[np.triu_indices(41, 1)]
    sigma = np.median(apart)
    for kernel in ("rbf", "nystrom", "random_features"):
        left, right = (built(kernel, x, sigma=of, components=41).G for of in (None, float(sigma)))
        assert np.allclose(left @ left.T, right @ right.T, rtol=0, atol=1e-9)
    monkeypatch.setattr(kernels, "_MEASURED", 20)
    assert apart.min() < kernels.median_distance(x) < apart.max()
    with pytest.raises(ConfigError, match=r"The median distance of two points is 0"):
        built("rbf", np.ones((9, 2)), sigma=None)


def test_a_kernel_too_large_for_memory_says_how_large_and_what_else_there_is():
    n, data = 10_000_000, points(np.zeros((10, 1)), np.arange(10) % 2)
    x, zeros = np.broadcast_to(np.zeros((1, 1)), (n, 1)), np.zeros(n, np.uint8)
    huge = data.derived(x=x, y=zeros, labeled=zeros.astype(bool), offsets=np.arange(n + 1))
    with pytest.raises(RunFailedError, match=r"3200000000 MB.*oracle\.kernel=nystrom"):
        posed(huge, kernel="rbf")


def observed_of(n, known):
    observed = np.full(n, -1)
    observed[list(known)] = list(known.values())
    return observed


def check_step(energy, observed, L, seed, exact=True):
    """Compare some label steps with all labelings."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        u = rng.normal(size=(observed.size, L))
        y = energy.minimise(u, None)
        assert (y[observed >= 0] == observed[observed >= 0]).all()
        found, goal = sum_of(u, y) + energy.value(y), best(u, observed, L, energy.value)
        assert found < np.inf
        assert found >= goal - 1e-9
        if exact:
            assert found == pytest.approx(goal, abs=1e-9)


def test_labels_that_are_observed_are_kept():
    observed = observed_of(6, {1: 2, 4: 0})
    energy = energies.LabelingEnergy(observed, 3)
    check_step(energy, observed, 3, 0)
    assert energy.minimise(np.zeros((6, 3)), None).tolist() == [0, 2, 0, 0, 0, 0]


@pytest.mark.parametrize("known", [{}, {0: 1, 5: 0, 6: 1}])
def test_sorting_is_exact_for_one_clique_and_two_labels(known):
    observed = observed_of(9, known)
    one = cliques([[0, 1, 2, 4, 5, 6, 8]], [[3, 2]], [[5, 3]])
    energy = energies.bounds_on_counts(observed, 2, one)
    assert isinstance(energy, energies.OneClique)
    check_step(energy, observed, 2, 1)
    check_step(energies.CountBounds(observed, 2, one), observed, 2, 1)  # the general way agrees


def vertex(u, least, most):
    """Return the labels of the vertex at which HiGHS' dual simplex ends."""
    m = len(u)
    counts = kron(np.ones((1, m)), eye_array(2), format="csr")
    found = linprog(
        u.ravel(),
        A_ub=csr_array(vstack((counts, -counts))),
        b_ub=[m - least, most, most - m, -least],
        A_eq=kron(eye_array(m), np.ones((1, 2)), format="csr"),
        b_eq=np.ones(m),
        bounds=(0, 1),
        method="highs-ds",
    )
    assert found.success
    return found.x.reshape(m, 2).argmax(axis=1)


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("n", [20, 37, 60])
def test_ties_are_those_of_the_dual_simplex(n, share):
    rng = np.random.default_rng(n)
    observed = observed_of(n, {3: 1, n - 2: 0, n - 1: 1})
    free = np.flatnonzero(observed < 0)
    low, high = np.floor(n / 2 * (1 - share)), np.ceil(n / 2 * (1 + share))
    one = cliques([np.arange(n)], [[low] * 2], [[high] * 2])
    energy = energies.bounds_on_counts(observed, 2, one, "lp")
    first = energies.bounds_on_counts(observed, 2, one)
    equal = np.full((n, 2), 0.3)
    assert energy.minimise(equal, None)[free].tolist() == sorted(first.minimise(equal, None)[free])
    for costs in (np.zeros((n, 2)), equal, *(rng.integers(0, 2, (n, 2)) for _ in range(20))):
        u = np.asarray(costs, float)
        labels = energy.minimise(u, None)
        assert energy.value(labels) == 0
        assert labels[free].tolist() == vertex(u[free], low - 2, high - 2).tolist()


def test_ties_of_other_energies_have_one_rule_only():
    with pytest.raises(ConfigError, match=r"oracle\.ties=lp is for bounds on the counts of two"):
        posed(clouds(12), ties="lp")
    with pytest.raises(ConfigError, match="one clique"):
        posed(clouds(12, 3), balance=0.2, ties="lp")


@pytest.mark.parametrize("seed", range(4))
def test_linear_programs_and_rounding_keep_bounds_and_are_exact_where_the_relaxation_is(seed):
    rng = np.random.default_rng(seed)
    observed = observed_of(8, {0: 1, 3: 2})
    truth = np.where(observed < 0, rng.integers(0, 3, 8), observed)
    members = [np.sort(rng.choice(8, 5, False)) for _ in range(4)]
    held = np.array([np.bincount(truth[of], minlength=3) for of in members])
    energy = energies.bounds_on_counts(observed, 3, cliques(members, np.maximum(held - 1, 0), held))
    assert energy.value(truth) == 0
    check_step(energy, observed, 3, seed, exact=False)


def test_fractional_relaxations_are_rounded_within_the_bounds():
    # three overlapping pairs, each of one point of each label: half of everything, and no labeling
    pairs, observed = [[0, 1], [1, 2], [0, 2]], observed_of(3, {})
    energy = energies.CountBounds(observed, 2, cliques(pairs, [[0, 0]] * 3, [[1, 1]] * 3))
    with pytest.raises(RunFailedError, match="HiGHS found no labels"):
        energy.minimise(np.zeros((3, 2)), None)
    # with a third label there is one, which the relaxation at half and half does not show
    energy = energies.CountBounds(observed, 3, cliques(pairs, [[0] * 3] * 3, [[1] * 3] * 3))
    u = np.array([[0.0, 0.0, 1.0]] * 3)
    y = energy.minimise(u, None)
    assert sorted(y) == [0, 1, 2]
    assert sum_of(u, y) == best(u, observed, 3, energy.value)


@pytest.mark.parametrize(
    ("members", "low", "high", "observed", "message"),
    [
        ([[0, 1, 2]], [[0, 0]], [[3, 0]], {1: 1}, "clique 0 .* 1 of its points are given"),
        ([[0, 1], [0, 1, 2]], [[0, 0], [2, 2]], [[2, 2], [3, 3]], {}, "clique 1 is impossible"),
        ([[0, 1, 2]], [[0, 0]], [[1, 1]], {}, "its 3 points cannot have counts"),
        ([[0, 1], [0, 1]], [[2, 0], [0, 1]], [[2, 2], [2, 2]], {}, "contradict those of other"),
    ],
)
def test_bounds_that_nothing_keeps_name_the_clique(members, low, high, observed, message):
    with pytest.raises(ConfigError, match=message):
        energies.bounds_on_counts(observed_of(4, observed), 2, cliques(members, low, high))


PAIRS = np.array([[0, 1], [0, 2], [1, 3], [2, 3], [3, 4], [4, 5], [2, 6]])


@pytest.mark.parametrize("known", [{}, {0: 1, 6: 0}])
def test_minimum_cuts_are_exact(known):
    observed = observed_of(7, known)
    weights = np.random.default_rng(3).uniform(0, 1.5, len(PAIRS))
    check_step(energies.Potts(observed, 2, PAIRS, weights), observed, 2, 4)


def test_expansions_keep_what_is_observed_and_are_within_their_factor():
    observed = observed_of(7, {0: 1, 6: 2})
    weights = np.random.default_rng(5).uniform(0, 1.0, len(PAIRS))
    energy, rng = energies.Potts(observed, 3, PAIRS, weights), np.random.default_rng(6)
    for _ in range(10):
        u = rng.uniform(size=(7, 3))
        start = np.where(observed < 0, rng.integers(0, 3, 7), observed)
        y = energy.minimise(u, start)
        assert (y[observed >= 0] == observed[observed >= 0]).all()
        value, goal = sum_of(u, y) + energy.value(y), best(u, observed, 3, energy.value)
        assert goal - 1e-9 <= value <= sum_of(u, start) + energy.value(start) + 1e-9
        # twice the pairs of the best labeling at most (Boykov, Veksler, Zabih 2001)
        assert value <= goal + weights.sum() + 1e-9


def test_bounds_and_pairs_together_are_refused():
    data = clouds(8, pairs=np.array([[0, 1]]), weights=np.ones(1))
    with pytest.raises(ConfigError, match=r"oracle\.potts=0, or oracle\.balance=null"):
        posed(data, balance=0.5)
    posed(data, balance=0.5, potts=0.0)
    posed(data)
