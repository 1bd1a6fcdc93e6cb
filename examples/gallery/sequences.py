"""Sequences: what transitions are worth.

Noisy sequences whose labels tend to go round in a circle. A chain learns weights of transitions,
too; a multiclass SVM looks at each part alone. The matrix shows the learned weights: the highest
are one step further on the circle.
"""

import matplotlib.pyplot as plt
import numpy as np

from ssvm_bench import StructuredSVM

K, LENGTH, NOISE = 5, 20, 1.0
rng = np.random.default_rng(0)


def sequence():
    """Return features and labels: mostly one step further, at times a jump."""
    jumps = np.where(rng.random(LENGTH) < 0.8, 1, rng.integers(0, K, LENGTH))
    labels = np.cumsum(jumps) % K
    return np.eye(K)[labels] + NOISE * rng.normal(size=(LENGTH, K)), labels


X, y = zip(*[sequence() for _ in range(120)], strict=True)
train, test = slice(0, 60), slice(60, None)

chain = StructuredSVM("chain", lam="10/n").fit(X[train], y[train])
alone = StructuredSVM(lam="10/n").fit(np.vstack(X[train]), np.concatenate(y[train]))
print(f"each part alone: {alone.score(np.vstack(X[test]), np.concatenate(y[test])):.1%} right")
print(f"chains:          {chain.score(X[test], y[test]):.1%} right")

transitions = chain.transitions_
figure, axes = plt.subplots(figsize=(4, 3.2), constrained_layout=True)
image = axes.imshow(
    transitions, cmap="RdBu", vmin=-abs(transitions).max(), vmax=abs(transitions).max()
)
axes.set(xlabel="next label", ylabel="label", title="weights of transitions")
figure.colorbar(image)
plt.savefig("sequences.svg")
