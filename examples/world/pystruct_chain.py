"""pystruct's one-slack cutting planes: a chain.

pystruct counts wrong labels, and does not divide them by the length of a chain.
"""

import numpy as np
from pystruct.learners import OneSlackSSVM
from pystruct.models import ChainCRF


def with_constant(X):
    return [np.hstack([x, np.ones((len(x), 1))]) for x in X]


def train(X, y, lam, max_iter):
    C = np.mean([len(labels) for labels in y]) / (lam * len(y))
    model = OneSlackSSVM(ChainCRF(), C=C, max_iter=max_iter)
    model.fit(with_constant(X), y)
    return lambda X: model.predict(with_constant(X))
