"""Training for the loss that counts: mean losses on held-out abalone and adults.

    python docs/losses.py

Abalone: rings, 4 or fewer to 15 or more, are 12 labels in order, and a wrong one costs the
difference (`absolute`). Adult: a missed positive costs five times a false one. Every repeat is a
random half to train on, a quarter to choose λ on, by the loss in the column, and a quarter to test;
`mpbcfw_fast`, to a relative gap of 0.01. The table is kept in ``results/figures/losses``.
"""

import numpy as np
from stored import keep

from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset

REPEATS, LAMS = 5, (1e-4, 1e-3, 1e-2)
ADULTS = 6000


def examples(name):
    """Return the features and labels of a dataset."""
    (config,) = compose_runs([f"dataset={name}", "dataset.source=real"])
    data = load_dataset(config.dataset)
    x = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
    return x.astype(float), data.y.astype(int)


def compare(title, x, y, matrix, words):
    """Yield the rows of a dataset: mean losses by what was trained for, and how much less."""
    found = {"0-1": [], words: []}
    for repeat in range(REPEATS):
        order = np.random.RandomState(repeat).permutation(len(y))
        train, choose, test = np.split(order, [len(y) // 2, 3 * len(y) // 4])
        for name, loss in (("0-1", None), (words, matrix)):
            models = [
                StructuredSVM(lam=lam, loss=loss, gap_tol=0.01).fit(x[train], y[train])
                for lam in LAMS
            ]
            means = [matrix[y[choose], model.predict(x[choose])].mean() for model in models]
            predicted = models[int(np.argmin(means))].predict(x[test])
            wrong = np.mean(predicted != y[test])
            found[name].append((matrix[y[test], predicted].mean(), wrong, means))
    apart = np.array([a[0] - b[0] for a, b in zip(*found.values(), strict=True)])
    for name, rows in found.items():
        losses, wrong = np.array([row[:2] for row in rows]).T
        row = {"dataset": title, "trained_for": name, "loss": losses.mean()}
        row |= {"deviation": losses.std(ddof=1), "wrong": wrong.mean()}
        if name == words:
            row |= {"less_by": apart.mean(), "least": apart.min(), "most": apart.max()}
        yield row


def table():
    """Yield the rows of the table."""
    x, y = examples("abalone")
    y = np.clip(y, 4, 15) - 4
    yield from compare(
        "abalone", x, y, np.abs(np.subtract.outer(np.arange(12), np.arange(12.0))), "absolute"
    )
    x, y = examples("adult")
    yield from compare(
        "adult", x[:ADULTS], y[:ADULTS], np.array([[0.0, 1.0], [5.0, 0.0]]), "5 to 1"
    )


if __name__ == "__main__":
    keep("losses/losses", table())
