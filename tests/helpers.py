"""Tiny problems, and their terms enumerated straight from the definitions.

`Table` knows neither the oracles nor the joint features of the package: it writes every labeling's
plane down densely, in the outer layout of w, so that a test can compare with it.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from ssvm_bench.base.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import alpha_expansion, gibbs, mincut, multiclass, viterbi
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.planes import given_rows, rows
from ssvm_bench.runs.resolved import ResolvedRun

COST_CALL, COST_PLANE = 1e-6, 1e-7

SOLVERS = (
    *("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg"),
    *("bcfw_gap", "mpbcfw_gram", "mpbcfw_pairwise", "mpbcfw_accelerated", "mpbcfw_fast"),
)


def dataset(x, y, n_labels, lengths=None):
    """Return a dataset of chains of the given lengths; without lengths, a multiclass one."""
    sizes = np.ones(len(y), np.int64) if lengths is None else np.asarray(lengths, np.int64)
    return Dataset(
        name="tiny",
        source="synthetic",
        x=np.ascontiguousarray(x),
        y=np.asarray(y, np.uint8),
        offsets=np.concatenate(([0], np.cumsum(sizes))),
        n_labels=n_labels,
        structure="independent" if lengths is None else "chain",
    )


def random_chains(lengths, K, f, seed=0):
    """Return chains with Gaussian features and labels that the features say something about."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, sum(lengths))
    return dataset(rng.normal(size=(K, f))[y] + rng.normal(size=(y.size, f)), y, K, lengths)


def random_multiclass(n, K, f, seed=0):
    chains = random_chains([1] * n, K, f, seed)
    return dataset(chains.x, chains.y, K)


def graphs(x, y, n_labels, edges):
    """Return a dataset of graphs; ``edges`` has one list of pairs per graph, and its size."""
    sizes = [size for _, size in edges]
    pairs = [np.array(pairs, np.int32).reshape(-1, 2) for pairs, _ in edges]
    return replace(
        dataset(x, y, n_labels, sizes),
        structure="graph",
        edges=np.concatenate(pairs),
        edge_offsets=np.concatenate(([0], np.cumsum([len(rows) for rows in pairs]))),
    )


def random_graphs(sizes, K, f, seed=0):
    """Return connected graphs: a random tree each, and some more edges."""
    rng = np.random.default_rng(seed)
    chains = random_chains(sizes, K, f, seed)
    edges = []
    for size in sizes:
        pairs = {(int(rng.integers(l)), l) for l in range(1, size)}
        pairs |= {tuple(sorted(rng.choice(size, 2, False).tolist())) for _ in range(size // 2)}
        edges.append((sorted(pairs), size))
    return graphs(chains.x, chains.y, K, edges)


TINY = {
    "chains": random_chains([3, 1, 4, 2, 3], 3, 2, seed=3),
    "multiclass": random_multiclass(8, 5, 3, seed=4),
    "graphs": random_graphs([4, 2, 4, 1, 4], 2, 8, seed=8),
}


def small(chains, multiclass, graphs):
    """Return a dataset of each structure from three seeds; graphs of 2^k nodes, as losses are."""
    return {
        "chains": random_chains([3, 1, 4, 2, 3, 4, 1, 3], 3, 2, seed=chains),
        "multiclass": random_multiclass(12, 5, 3, seed=multiclass),
        "graphs": random_graphs([4, 2, 4, 1, 4, 2, 4, 4, 2, 4], 2, 8, seed=graphs),
    }


SMALL = small(3, 4, 8)
"""A dataset of each structure, whose labelings can be enumerated."""


def oracle(data, **options):
    """Build the oracle that fits; ``options`` of α-expansion."""
    costs = {"name": "tiny", "kind": "tiny", "cost_call": COST_CALL, "cost_plane": COST_PLANE}
    if data.structure == "graph" and (data.n_labels > 2 or options):
        chosen = {"partial_optimality": True, "warm_start": False, **options}
        return alpha_expansion.build(alpha_expansion.Config(**costs, **chosen), data)
    modules = {"independent": multiclass, "chain": viterbi, "graph": mincut}
    module = modules[data.structure]
    return module.build(module.Config(**costs), data)


def problem(data, lam=None):
    return Problem(oracle(data), 1 / data.n if lam is None else lam)


@functools.cache
def defaults(name):
    """Return the options that ``solver=name`` has; to compose them takes longer than tiny runs."""
    (run,) = compose_runs([f"solver={name}"])
    return run.solver


def solver(problem, name="bcfw", seed=0, clock=None, **options):
    """Build the solver that ``solver=name`` names, with some of its options changed."""
    config = replace(defaults(name), **options)
    module = registry.module("solver", config.kind)
    clock = clock or Clock("work", COST_CALL, COST_PLANE)
    made = module.build(config, problem, clock, seed)
    made.begin()
    return made


def iterated(made, count):
    """Let a solver make so many iterations; return it."""
    for _ in range(count):
        made.iterate()
    return made


def together(count, *solvers):
    """Let solvers make so many iterations side by side; yield after each."""
    for k in range(count):
        for made in solvers:
            made.iterate()
        yield k


def converged_in(made, most):
    """Let a solver iterate until it has converged; return it."""
    for _ in range(most):
        made.iterate()
        if made.converged:
            return made
    raise AssertionError("the solver did not converge")


def reports(made, most):
    """Let a solver iterate until it has converged; yield what it reports after each iteration."""
    for _ in range(most):
        made.iterate()
        yield made.reported()
        if made.converged:
            return


def enclosing(made, best, most, near=1e-9, fall=np.inf):
    """Check that what a solver reports encloses the optimum, and that its dual does not fall."""
    before = -np.inf
    for w, dual in reports(made, most):
        assert not dual > best + near  # some have none
        assert made.problem.primal(w) >= best - near
        assert not dual < before - fall
        before = dual
        yield w, dual


def dense(plane, d):
    """Return a plane as d + 1 numbers, [φ⋆ φ∘]."""
    indices, values, offset = plane
    row = np.zeros(d + 1)
    row[indices], row[-1] = values, offset
    return row


def check_risk(oracle, w, rounding):
    """Compare the risk that an oracle computes at once with that of its terms, one by one."""
    fast, slow = oracle.risk(w), Oracle.risk(oracle, w)
    assert (fast.value, fast.offset) == pytest.approx((slow.value, slow.offset), abs=rounding)
    np.testing.assert_allclose(fast.star, slow.star, rtol=0, atol=rounding)
    assert oracle.risk(w, with_plane=False).value == fast.value


def check_constraints(oracle, n_labels):
    """Compare the list of planes of an oracle of one part a term with those of wrong labels."""
    listed = oracle.constraints()
    listed.check(oracle.n, oracle.d)
    assert listed.term_start.tolist() == [(n_labels - 1) * i for i in range(oracle.n + 1)]
    rows = np.column_stack((listed.star(oracle.d).toarray(), listed.offset))
    labels = np.arange(n_labels, dtype=np.uint8)[:, None]
    wrong = [(i, c) for i in range(oracle.n) for c in labels if c != oracle.truth(i)]
    expected = [dense(oracle.plane(i, c), oracle.d) for i, c in wrong]
    np.testing.assert_allclose(rows, expected, rtol=1e-13, atol=1e-14)


def check_gibbs(oracle, z, terms, **close):
    """Compare the expectations of an oracle with sums over all planes of all terms."""
    found, n = gibbs.at(oracle, z), len(terms)
    phi = sum(softmax(n * rows @ z) @ rows for rows in terms)
    np.testing.assert_allclose(found.phi, phi, **close)
    log_mean = np.mean([logsumexp(n * rows @ z) - np.log(len(rows)) for rows in terms])
    assert found.log_mean == pytest.approx(log_mean, rel=1e-12, abs=1e-12)
    return found


class Plain(Oracle):
    """An oracle of which only the abstract methods are known: its planes are kept as rows."""

    def __init__(self, inner):
        self.inner, self.n, self.d = inner, inner.n, inner.d

    def truth(self, i):
        return self.inner.truth(i)

    def argmax(self, w, i):
        return self.inner.argmax(w, i)

    def predict(self, w, i):
        return self.inner.predict(w, i)

    def loss(self, i, y):
        return self.inner.loss(i, y)

    def joint_feature(self, i, y):
        return self.inner.joint_feature(i, y)


class Table:
    """All labelings of all terms, in lexicographic order, and their dense planes.

    Attributes
    ----------
    n, d : int
    labelings : list of int arrays, shape (labelings of term i, L)
    features : list of arrays, shape (labelings of term i, d)
    losses : list of arrays, shape (labelings of term i,)
    fixed : list of arrays, shape (labelings of term i,)
        Θ_i, the part of the score that is not learned.
    planes : list of arrays, shape (labelings of term i, d + 1)
    truth : list of int
        The row of the ground truth.
    """

    def __init__(self, data, potts=1.0):
        K, f = data.n_labels, data.n_features
        chain = data.structure == "chain"
        self.n, self.d = data.n, K * f + (K * K if chain else 0)
        self.labelings, self.features, self.losses, self.fixed = [], [], [], []
        self.planes, self.truth = [], []
        for i, (begin, end) in enumerate(itertools.pairwise(data.offsets)):
            x, truth = data.x[begin:end].astype(float), data.y[begin:end]
            labelings = np.array(list(itertools.product(range(K), repeat=len(truth))))
            features = np.zeros((len(labelings), self.d))
            for phi, y in zip(features, labelings, strict=True):
                for part, label in zip(x, y, strict=True):
                    phi[label * f : (label + 1) * f] += part
                if chain:
                    for a, b in itertools.pairwise(y):
                        phi[K * f + K * a + b] += 1
            losses = (labelings != truth).mean(axis=1)
            row = int(np.flatnonzero(losses == 0)[0])
            fixed = np.zeros(len(labelings))
            if data.structure == "graph":
                edges = slice(*data.edge_offsets[i : i + 2])
                edge_x = np.ones((len(data.edges), 1)) if data.edge_x is None else data.edge_x
                for (k, l), x in zip(data.edges[edges], edge_x[edges], strict=True):
                    fixed -= np.sum(potts * x) * (labelings[:, k] != labelings[:, l])
            offsets = losses + fixed - fixed[row]
            planes = np.column_stack((features - features[row], offsets)) / self.n
            self.fixed.append(fixed)
            self.labelings.append(labelings)
            self.features.append(features)
            self.losses.append(losses)
            self.planes.append(planes)
            self.truth.append(row)

    def values(self, w, i):
        """Return ⟨φ^{iy}, [w 1]⟩ of every labeling."""
        return self.planes[i] @ np.append(w, 1.0)

    def row(self, i, y):
        """Return the row of labeling y of term i."""
        return int(np.flatnonzero((self.labelings[i] == y).all(axis=1))[0])


class Dense:
    """Weights of all labelings in a table, and what the papers do with them."""

    def __init__(self, data):
        self.planes, self.n = Table(data).planes, data.n
        self.uniform = [np.full(len(planes), 1 / len(planes)) for planes in self.planes]

    def tilted(self, weights, z):
        """Return α_i[y] exp(n ⟨φ^{iy}, z⟩) / Z: a Bregman projection."""
        pairs = zip(weights, self.planes, strict=True)
        return [softmax(np.log(a) + self.n * planes @ z) for a, planes in pairs]

    def plane(self, weights):
        return sum(a @ planes for a, planes in zip(weights, self.planes, strict=True))

    def log_mean(self, z):
        return np.mean([logsumexp(self.n * p @ z) - np.log(len(p)) for p in self.planes])

    def radius2(self):
        return max(self.n**2 * (planes[:, :-1] ** 2).sum(axis=1).max() for planes in self.planes)


def cached(blocks, table, i):
    """Decode W_i, oldest first: labelings as rows of the table, and dense planes."""
    if isinstance(blocks, rows.SparseRows):
        support, planes = blocks.support[blocks.support_start[i] :], []
        for slot in range(blocks.start[i], blocks.start[i] + blocks.n_planes[i]):
            entries = slice(blocks.begin[slot], blocks.begin[slot] + blocks.length[slot])
            plane = np.zeros(table.d + 1)
            plane[support[blocks.indices[entries]]] = blocks.values[entries]
            plane[-1] = blocks.offset[slot]
            planes.append(plane / table.n)
        found = [int(np.abs(table.planes[i] - plane).sum(axis=1).argmin()) for plane in planes]
        return found, planes

    features, found = blocks.features, []
    parts = np.arange(features.offsets[i], features.offsets[i + 1])
    for p in range(blocks.n_planes[i]):
        base = blocks.plane_start[i] + p * parts.size
        places = blocks.labels[base : base + parts.size]
        y = blocks.seen[parts, places]
        found.append(table.row(i, y))
        assert blocks.offset[blocks.start[i] + p] == table.losses[i][found[-1]]
        if features.transitions:
            links = blocks.links[base + 1 : base + parts.size]
            moves = blocks.moves[blocks.moves_start[i] + links.astype(int)]
            expected = y[1:].astype(int) * features.stride + y[:-1]
            assert moves.tolist() == expected.tolist()
    return found, [table.planes[i][row] for row in found]


def working_sets(made, table):
    return [cached(made.phi.blocks, table, i)[0] for i in range(table.n)]


def optimum(posed):
    """Return the optimum, to 1e-9: the dual value of a long run, whose planes are rows."""
    if isinstance(posed.oracle, LabelingOracle):
        posed = replace(posed, oracle=Plain(posed.oracle))  # the kernels are those of graphs
    made = solver(posed, "mpbcfw_fast")
    for _ in range(400):
        made.iterate()
        reported = made.reported()
        if posed.primal(reported.w) - reported.dual < 1e-9:
            return reported.dual
    raise AssertionError("the solver did not converge")


def plane_weights(made, i):
    """Return the weights that ``dcd`` gives the planes of W_i, the ground truth's first."""
    blocks = made.phi.blocks
    if isinstance(blocks, given_rows.LineRows):
        beta = blocks.numbers[given_rows.STRIDE * i + given_rows.BETA]
        return np.array([1 - abs(beta), max(beta, 0), max(-beta, 0)])[: blocks.n_planes[i]]
    numbers = made.visits.policy.simplex
    return numbers.alpha[numbers.start[i] : numbers.start[i] + blocks.n_planes[i]].copy()


def believed(found):
    """Return what a reference solver of scipy has found, which it has to say itself."""
    assert found.success, found.message
    return found


def minimised_over_simplices(value, sizes):
    """Return the point of a product of simplices where SLSQP finds (f, f′) least, and f there.

    SLSQP is told when to end in units of f, which are taken from f′, and goes on from where it
    ended. Its constraints hold only nearly: the f it returns may be lower than any there.
    """
    sums = block_diag(*(np.ones(size) for size in sizes))
    inside = np.concatenate([np.full(size, 1 / size) for size in sizes])
    for _ in range(4):
        scale = abs(value(inside)[1]).max()
        found = minimize(
            lambda x, scale=scale: tuple(part / scale for part in value(x)),
            inside,
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * inside.size,
            constraints={"type": "eq", "fun": lambda a: sums @ a - 1, "jac": lambda a: sums},
            options={"ftol": 1e-13, "maxiter": 1000},
        )
        inside = np.clip(believed(found).x, 0.0, 1.0)
        inside /= sums.T @ (sums @ inside)
    return inside, value(inside)[0]


def dual_program(terms, lam, mean=0.0, variance=None, floor=-np.inf):
    """Return the optimal value, w and the weights of all planes, by SLSQP.

    With a floor of w, Σ has to be diagonal, and μ 0 where there is one.
    """
    planes = np.vstack(terms)
    star, circ = planes[:, :-1], planes[:, -1]
    variance = np.eye(star.shape[1]) if variance is None else variance

    def w_of(alpha):
        return np.maximum(mean - variance @ (alpha @ star) / lam, floor)

    def value(alpha):
        w = w_of(alpha)
        off, linear = w - mean, np.sum(mean * (alpha @ star)) + alpha @ circ
        return 0.5 * lam * off @ np.linalg.solve(variance, off) - linear, -(star @ w + circ)

    weights, least = minimised_over_simplices(value, [len(rows) for rows in terms])
    return -least, w_of(weights), weights


def quadratic_program(table, lam, mean=0.0, variance=None):
    """Return the optimal value and w over all planes of a table."""
    return dual_program(table.planes, lam, mean, variance)[:2]


def run_of(config, problem):
    """Return a run of a problem that a test poses itself."""
    return ResolvedRun(config, problem.lam, problem, None, None, None, None)
