"""Digits: how the gap closes, and what that means for the error.

The estimator on scikit-learn's digits. `history_` has primal and dual of each iteration, which
enclose the optimum. The error on held-out digits is at its end long before the gap is closed:
training to a gap of 1 % is enough here.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ssvm_bench import StructuredSVM

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16.0, y, test_size=0.3, random_state=0)

gaps = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001]
models = [StructuredSVM(lam="1/n", gap_tol=gap).fit(X, y) for gap in gaps]
errors = [1.0 - model.score(X_test, y_test) for model in models]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), constrained_layout=True)
history = models[-1].history_.iloc[1:]
left.plot(history.iteration, history.primal, label="primal P(w)")
left.plot(history.iteration, history.dual, label="dual F(φ)")
left.set(xlabel="iterations", ylim=(0, 2 * history.primal.iloc[-1]))
left.legend()
right.semilogx(gaps, 100 * np.array(errors), "o-")
right.set(xlabel="relative gap at which training ended", ylabel="error on held-out digits in %")
right.invert_xaxis()
plt.savefig("digits.svg")

for gap, model, error in zip(gaps, models, errors, strict=True):
    print(f"gap {gap:5}: {model.n_iter_:3} iterations, {error:.1%} wrong")
