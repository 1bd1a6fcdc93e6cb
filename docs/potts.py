"""Fixed Potts weights against learned ones, without and with features of edges, on photographs.

    python docs/potts.py [weizmann] [stanford]

A third of the pictures is held out. Training is by `mpbcfw_fast`, without its centre, to a relative
gap of 0.02, or for 60 iterations; an oracle call counts as 10 ms, so that approximate passes are
many. Features of the edge between the superpixels s and t: 1; their similarity exp(−|x_s −
x_t|²/m), where m is the mean of |x_s − x_t|²; the length of their border over the mean length. The
table has the Hamming loss on the training and the held-out pictures, the learned weights, CPU
seconds of training, and the relative gap at its end. It is kept in ``results/figures/potts``.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from stored import keep

from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import stanford, weizmann
from ssvm_bench.datasets.images import preparation
from ssvm_bench.runs.components import load_dataset

FIXED = 0.0, 0.001, 0.01, 1.0
LEARNED = {"1": 1, "1, similarity": 2, "1, similarity, border": 3}
LAMBDAS = {"weizmann": ("100/n", "10/n"), "stanford": ("100/n",)}
RAW = {"weizmann": weizmann.RAW, "stanford": stanford.RAW}


def pictures(name):
    """Return features, edges and features of edges of all pictures, and their labels."""
    (config,) = compose_runs([f"dataset={name}", "dataset.source=real"])
    data = load_dataset(config.dataset)
    first = np.repeat(data.offsets[:-1], np.diff(data.edge_offsets))
    k, l = data.edges.T + first
    difference = data.x[k].astype(float) - data.x[l].astype(float)
    distance = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
    maps = RAW[name].segments("real", range(data.n))
    length = np.concatenate([preparation.borders(segments)[1] for segments in maps])
    similarity = np.exp(-distance / distance.mean())
    edge_x = np.column_stack((np.ones(len(k)), similarity, length / length.mean()))
    X, y = [], []
    for i in range(data.n):
        parts, edges = (slice(*of[i : i + 2]) for of in (data.offsets, data.edge_offsets))
        X.append((data.x[parts], data.edges[edges], edge_x[edges]))
        y.append(data.y[parts])
    return X, y


def hamming(model, X, y):
    """Return the mean share of wrong labels in a picture."""
    return np.mean([(a != b).mean() for a, b in zip(model.predict(X), y, strict=True)])


def measured(train, test, k, **options):
    """Return two losses, seconds, the gap, and the weights of k features of edges (0: none)."""
    (X, y), (Z, z) = (
        ([(x, edges, *([edge_x[:, :k]] * (k > 0))) for x, edges, edge_x in of], labels)
        for of, labels in (train, test)
    )
    work = {"oracle.cost_call": 0.01, "solver.in_out": None}
    model = StructuredSVM("graph", gap_tol=0.02, max_iterations=60, options=work, **options)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    last = model.history_.iloc[-1]
    return {
        "training": hamming(model, X, y),
        "held_out": hamming(model, Z, z),
        "seconds": seconds,
        "gap": last["gap"] / last["primal"],
        **dict(zip(("constant", "similarity", "border")[:k], model.weights_[-k:], strict=False)),
    }


def table(names):
    """Yield the rows of the table."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    models = [(f"fixed, {p:g}", {"potts": p}, 0) for p in FIXED]
    models += [(f"learned: {of}", {"potts": "learned"}, k) for of, k in LEARNED.items()]
    for name in names:
        X, y = pictures(name)
        held_out, kept = np.split(np.random.RandomState(0).permutation(len(X)), [len(X) // 3])
        parts = [([X[i] for i in of], [y[i] for i in of]) for of in (kept, held_out)]
        few = X[:8], y[:8]
        for k in (0, 2):  # compile
            measured(few, few, k, potts="learned" if k else 1.0)
        for lam in LAMBDAS[name]:
            for title, options, k in models:
                found = measured(*parts, k, lam=lam, **options)
                yield {"dataset": name, "lam": lam, "weight": title, **found}


if __name__ == "__main__":
    keep("potts/potts", table(sys.argv[1:] or RAW))
