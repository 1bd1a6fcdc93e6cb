"""Which λ serves as the estimator's default: a small study on nine data sets.

    SSVM_BENCH_DATA=… python docs/default_lambda.py [SET …]

Each set is split five times into 60 % to train on and 40 % to test. The sets of scikit-learn are
standardised, as its guide advises; digits and iris are also taken as they are. OCR has
chains, of which the error is the share of wrong parts. For each λ, the table has the mean test
error in percent, at a relative gap of 0.01. *Regret* is the error less the least of its row.
"""

import sys

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.utils._testing import ignore_warnings

from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset

LAMBDAS = ["1/n", "10/n", "100/n", 0.001, 0.01, 0.03, 0.1]
SPLITS = 5


def of_sklearn(name):
    """Return a set of scikit-learn: matrix and labels."""
    return "multiclass", *getattr(datasets, f"load_{name}")(return_X_y=True)


def of_ours(name, n, structure="multiclass"):
    """Return the first n examples of a fixed permutation of a data set of ours."""
    (config,) = compose_runs([f"dataset={name}", f"dataset.n_samples={n}", "dataset.source=real"])
    found = load_dataset(config.dataset)
    if structure == "multiclass":
        return structure, found.x, found.y
    bounds = list(zip(found.offsets[:-1], found.offsets[1:], strict=True))
    return structure, [found.x[a:b] for a, b in bounds], [found.y[a:b] for a, b in bounds]


def rows_of(X, which):
    """Return some examples of a matrix or of a list."""
    return [X[k] for k in which] if isinstance(X, list) else X[which]


@ignore_warnings(category=ConvergenceWarning)
def errors(structure, X, y, standardised):
    """Return the mean test error of each λ in percent."""
    found = []
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    for train, test in ShuffleSplit(SPLITS, train_size=0.6, random_state=0).split(np.zeros(n)):
        A, B = rows_of(X, train), rows_of(X, test)
        if standardised:
            scaler = StandardScaler().fit(A)
            A, B = scaler.transform(A), scaler.transform(B)
        models = (StructuredSVM(structure, lam=lam).fit(A, rows_of(y, train)) for lam in LAMBDAS)
        found.append([100 * (1 - model.score(B, rows_of(y, test))) for model in models])
    return np.mean(found, axis=0)


SETS = {
    "digits": lambda: (*of_sklearn("digits"), True),
    "digits, raw": lambda: (*of_sklearn("digits"), False),
    "iris": lambda: (*of_sklearn("iris"), True),
    "iris, raw": lambda: (*of_sklearn("iris"), False),
    "wine": lambda: (*of_sklearn("wine"), True),
    "breast_cancer": lambda: (*of_sklearn("breast_cancer"), True),
    "usps": lambda: (*of_ours("usps", 1000), False),
    "adult": lambda: (*of_ours("adult", 1500), False),
    "ocr": lambda: (*of_ours("ocr", 400, "chain"), False),
}

rows = {}
for name in sys.argv[1:] or SETS:
    rows[name] = errors(*SETS[name]())
    print(name, rows[name].round(2), flush=True)
table = pd.DataFrame(rows, index=map(str, LAMBDAS)).T
regret = table.sub(table.min(axis=1), axis=0)
table.loc["mean regret"], table.loc["largest regret"] = regret.mean(), regret.max()
print(table.round(2).to_string())
