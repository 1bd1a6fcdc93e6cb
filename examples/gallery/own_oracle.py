"""An oracle in 30 lines: a choice of three.

An example has items with features, of which exactly three are to be chosen. A labeling is a
choice, and the loss the share of items that are wrongly chosen. The oracle sorts. Any solver
trains it; `predict` returns choices.
"""

import matplotlib.pyplot as plt
import numpy as np

from ssvm_bench import StructuredSVM
from ssvm_bench.oracles.base import Oracle

CHOSEN = 3


class Choice(Oracle):
    """Choose three items: ϕ(x, y) is the sum of their features."""

    def __init__(self, dataset):
        self.n, self.d = dataset.n, dataset.n_features
        ends = dataset.offsets[1:-1]
        self.x, self.y = np.split(dataset.x, ends), np.split(dataset.y, ends)

    def truth(self, i):
        """Return the true choice."""
        return self.y[i]

    def argmax(self, w, i):
        """Return the best choice, its loss included: a true item adds none."""
        return self.best(self.x[i] @ w - self.y[i] / CHOSEN, i)

    def predict(self, w, i):
        """Return the best choice."""
        return self.best(self.x[i] @ w, i)

    def best(self, scores, i):
        """Return the choice of the highest scores."""
        y = np.zeros_like(self.y[i])
        y[np.argsort(-scores, kind="stable")[:CHOSEN]] = 1
        return y

    def loss(self, i, y):
        """Return the share of true items that are not chosen."""
        return 1.0 - float(np.sum(y * self.y[i])) / CHOSEN

    def joint_feature(self, i, y):
        """Return the sum of the chosen items' features."""
        return np.arange(self.d), y @ self.x[i]


rng = np.random.default_rng(0)
hidden = np.array([2.0, -1.0, 0.5, 0.0])
X = [rng.normal(size=(10, 4)) for _ in range(80)]
scores = [x @ hidden + rng.normal(size=10) for x in X]
y = [(np.argsort(np.argsort(-each)) < CHOSEN).astype(int) for each in scores]

for solver in ("bcfw", "mpbcfw_fast", "one_slack"):
    model = StructuredSVM("choice", oracle=Choice, solver=solver, bias=0, lam="1/n")
    model.fit(X[:50], y[:50])
    trace = model.history_.iloc[1:]
    plt.semilogy(trace.oracle_calls, trace.gap, "o-", ms=3, label=solver)
    right = model.score(X[50:], y[50:])
    print(f"{solver:12} {right:.1%} of held-out items, w = {model.weights_.round(2)}")
plt.xlabel("oracle calls")
plt.ylabel("gap")
plt.legend()
plt.savefig("own_oracle.svg")
