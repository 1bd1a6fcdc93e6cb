"""``python -m benchmarks.newcomer WHAT FOLDER``: a newcomer's program, which imports no more.

WHAT is a first ``fit`` of irises, whose model and rows it leaves in FOLDER, one of a ``chain``
after it, a service's first ``predict`` with what is in FOLDER, a tiny ``run`` of `mpbcfw_fast` on
words, or ``linear``, which fits scikit-learn's LinearSVC.
"""

import pickle  # noqa: S403  (of its own models)
import runpy
import sys
from pathlib import Path

import numpy as np

MODEL, ROWS = "model.pickle", "rows.npy"
RUN = "run", "solver=mpbcfw_fast", "dataset=ocr", "dataset.n_samples=10", "budget.max_iterations=3"


def main(what: str, folder: str) -> None:
    """Do one thing as a newcomer's program does it; imports are part of what is measured."""
    model, rows = Path(folder, MODEL), Path(folder, ROWS)
    if what == "predict":
        pickle.loads(model.read_bytes()).predict(np.load(rows))  # noqa: S301
        return
    if what == "run":
        sys.argv[1:] = *RUN, "quiet=true", f"results_dir={folder}"
        runpy.run_module("ssvm_bench", run_name="__main__")
        return
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    if what == "linear":
        from sklearn.svm import LinearSVC

        LinearSVC().fit(X, y)
        return
    from ssvm_bench import StructuredSVM

    if what == "chain":
        chains = np.add.outer(range(25), (0, 50, 100, 25, 75))  # all three kinds in each
        StructuredSVM("chain").fit(list(X[chains]), list(y[chains]))
        return
    np.save(rows, X)
    model.write_bytes(pickle.dumps(StructuredSVM().fit(X, y)))


if __name__ == "__main__":
    main(*sys.argv[1:])
