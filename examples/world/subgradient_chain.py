"""Stochastic subgradient steps by hand, in numpy, with weighted averages: a chain.

A subgradient is a difference of feature counts, so there is nothing to differentiate by a program.
"""

import numpy as np


def best(scores, transitions):
    """Return the best labels of a chain, by Viterbi's recursion."""
    total, back = scores[0], []
    for here in scores[1:]:
        reached = total[:, None] + transitions
        back.append(reached.argmax(axis=0))
        total = reached.max(axis=0) + here
    labels = [total.argmax()]
    for before in reversed(back):
        labels.append(before[labels[-1]])
    return np.array(labels[::-1])


def train(X, y, lam, passes):
    K = max(labels.max() for labels in y) + 1
    w, b, pairs = np.zeros((X[0].shape[1], K)), np.zeros(K), np.zeros((K, K))
    means = [each.copy() for each in (w, b, pairs)]
    rng, t = np.random.default_rng(0), 0
    for _ in range(passes):
        for i in rng.permutation(len(y)):
            t += 1
            truth, x = np.eye(K)[y[i]], X[i]
            labels = best(x @ w + b + (1 - truth) / len(y[i]), pairs)
            found = np.eye(K)[labels]
            step = 1 / (lam * t)
            for each in (w, b, pairs):
                each *= 1 - 1 / t
            w += step * (x.T @ (truth - found))
            b += step * (truth - found).sum(axis=0)
            pairs += step * (truth[:-1].T @ truth[1:] - found[:-1].T @ found[1:])
            for mean, each in zip(means, (w, b, pairs), strict=True):
                mean += 2 / (t + 1) * (each - mean)
    w, b, pairs = means
    return lambda X: [best(x @ w + b, pairs) for x in X]
