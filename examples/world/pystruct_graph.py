"""pystruct's one-slack cutting planes: a graph, with max-product messages as its inference.

Its inferences by cuts (``qpbo``) and by ``ad3`` are packages apart.
"""

import numpy as np
from pystruct.learners import OneSlackSSVM
from pystruct.models import GraphCRF


def with_constant(X):
    return [(np.hstack([x, np.ones((len(x), 1))]), edges) for x, edges in X]


def train(X, y, lam, max_iter):
    C = np.mean([len(labels) for labels in y]) / (lam * len(y))
    model = OneSlackSSVM(GraphCRF(inference_method="max-product"), C=C, max_iter=max_iter)
    model.fit(with_constant(X), y)
    return lambda X: model.predict(with_constant(X))
