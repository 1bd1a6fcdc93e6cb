"""pystruct's one-slack cutting planes: a multiclass SVM."""

import numpy as np
from pystruct.learners import OneSlackSSVM
from pystruct.models import MultiClassClf


def with_constant(x):
    return np.hstack([x, np.ones((len(x), 1))])


def train(X, y, lam, max_iter):
    model = OneSlackSSVM(MultiClassClf(), C=1 / (lam * len(y)), max_iter=max_iter)
    model.fit(with_constant(X), y)
    return lambda X: model.predict(with_constant(X))
