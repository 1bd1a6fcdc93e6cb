"""Stochastic subgradient steps by hand, in numpy, with cuts by PyMaxflow: a graph of two labels."""

import maxflow
import numpy as np


def best(scores, edges, potts):
    """Return the best labels of a graph, by a minimum cut."""
    graph = maxflow.Graph[float](len(scores), len(edges))
    nodes = graph.add_nodes(len(scores))
    costs = np.full(len(edges), potts)
    graph.add_edges(edges[:, 0], edges[:, 1], costs, costs)
    ahead = scores[:, 1] - scores[:, 0]
    graph.add_grid_tedges(nodes, np.maximum(ahead, 0), np.maximum(-ahead, 0))
    graph.maxflow()
    return 1 - graph.get_grid_segments(nodes).astype(int)


def with_constant(x):
    return np.hstack([x, np.ones((len(x), 1))])


def train(X, y, lam, passes):
    w, potts = np.zeros((X[0][0].shape[1] + 1, 2)), 0.0
    mean, mean_potts = w.copy(), 0.0
    rng, t = np.random.default_rng(0), 0
    for _ in range(passes):
        for i in rng.permutation(len(y)):
            t += 1
            x, edges = with_constant(X[i][0]), X[i][1]
            truth = np.eye(2)[y[i]]
            labels = best(x @ w + (1 - truth) / len(x), edges, potts)
            step = 1 / (lam * t)
            w = (1 - 1 / t) * w + step * (x.T @ (truth - np.eye(2)[labels]))
            cuts = [(of[edges[:, 0]] != of[edges[:, 1]]).sum() for of in (labels, y[i])]
            potts = max(0.0, (1 - 1 / t) * potts + step * (cuts[0] - cuts[1]))
            mean += 2 / (t + 1) * (w - mean)
            mean_potts += 2 / (t + 1) * (potts - mean_potts)
    return lambda X: [best(with_constant(x) @ mean, edges, mean_potts) for x, edges in X]
