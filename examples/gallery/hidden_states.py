"""Hidden states: chains whose labels are not the whole story.

Simulated chains. A part is in one of four states, which go round in a circle; its label is the
state's first half or second half, and the states are hidden. The features of the two states of a
label lie on opposite corners of a square, so that no line separates the labels. A chain with two
hidden states for each label finds them: after each convex problem, every example gets the states
that are best and agree with its labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from ssvm_bench import StructuredSVM

LENGTH, NOISE, ROUNDS = 20, 1.0, 10
CORNERS = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])  # of the states 0, 1, 2, 3
rng = np.random.default_rng(0)


def chain():
    """Return features and labels: a state mostly follows the one before it in the circle."""
    steps = np.where(rng.random(LENGTH) < 0.8, 1, rng.integers(0, 4, LENGTH))
    states = np.cumsum(steps) % 4
    return CORNERS[states] + NOISE * rng.normal(size=(LENGTH, 2)), states // 2


X, y = zip(*[chain() for _ in range(200)], strict=True)
train, test = slice(0, 100), slice(100, None)
models = {"labels alone": StructuredSVM("chain", lam="10/n")}
for start in ("clusters", "random"):
    options = {"oracle.start": start, "solver.latent_rounds": ROUNDS}
    models[f"hidden states, start={start}"] = StructuredSVM(
        "chain", oracle="latent_chain", lam="10/n", options=options
    )

figure, axes = plt.subplots(figsize=(5, 3.4), constrained_layout=True)
for (name, model), style in zip(models.items(), ("k:", "C0o-", "C1s--"), strict=True):
    model.fit(X[train], y[train])
    right = model.score(X[test], y[test])
    print(f"{name + ':':34}{right:.1%} right")
    ends = [model.history_["primal"].iloc[-1]] * 2
    at = [1, ROUNDS]
    if "latent_round" in model.history_:
        last = model.history_.groupby("latent_round")["primal"].last()
        at, ends = last.index, last
    axes.plot(at, ends, style, label=f"{name}: {right:.0%} right")
axes.set(xlabel="round", ylabel="objective at the end of a round", ylim=(0, None))
axes.legend(title="parts of test examples", loc="upper right", bbox_to_anchor=(1, 0.94))
plt.savefig("hidden_states.svg")
