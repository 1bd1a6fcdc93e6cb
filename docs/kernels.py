"""An exact RBF kernel against linear weights and Nyström's approximation, on digits and on words.

    python docs/kernels.py usps
    python docs/kernels.py ocr [WORDS …]

Of a fixed permutation the first n examples are trained on, and the last are held out: 2,000 digits
of USPS (γ = 0.01, λ = 1/n), 1,000 words of OCR (γ = 0.05, λ = 10/n, which were chosen without these
words). `mpbcfw_fast`, to a relative gap of 0.01. Nyström: features of 500 landmarks, scikit-learn's
`Nystroem`, with linear weights. SVC: one against one, C = 1, its own tolerance. Seconds are CPU
seconds of this process, features included; errors are of digits, or letters. Kernel values are per
pair of digits or letters trained on. At the end of `usps`: two classes (3 and 8) of which SVC with
C = 2/(λ n) has the objective, but for its intercept. The tables are kept in
``results/figures/kernels``.
"""

import sys
import time

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import SVC
from stored import keep

from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset

LANDMARKS = 500


def examples(name, held_out):
    """Return features and labels to train on, and of those held out, in a fixed order."""
    (config,) = compose_runs([f"dataset={name}", "dataset.source=real"])
    data = load_dataset(config.dataset)
    order = np.random.RandomState(0).permutation(data.n)
    x, y = data.x.astype(float), data.y.astype(int)
    if name == "ocr":
        x, y = ([each[i] for i in order] for each in (split(x, data), split(y, data)))
    else:
        x, y = x[order], y[order]
    return x[:-held_out], y[:-held_out], x[-held_out:], y[-held_out:]


def split(rows, data):
    """Return the rows of each example."""
    return np.split(rows, data.offsets[1:-1])


def mapped(mapping, x):
    """Return the features that a mapping makes of those of examples."""
    if isinstance(x, np.ndarray):
        return mapping.transform(x)
    ends = np.cumsum([len(each) for each in x])[:-1]
    return np.split(mapping.transform(np.concatenate(x)), ends)


def flat(labels):
    """Return the labels of all parts."""
    return labels if isinstance(labels, np.ndarray) else np.concatenate(labels)


def compare(structure, sizes, gamma, lam, x, y, test_x, test_y):
    """Yield the rows of a table."""
    own = {"structure": structure, "lam": lam, "gap_tol": 0.01}
    kernel = {"kernel": "rbf", "gamma": gamma, "options": {"oracle.kernel_memory": 4000}}
    halves = [0.5 * each for each in x[:50]]  # no integers, as of Nyström
    for options, head in (({}, x[:50]), ({}, halves), (kernel, x[:50])):  # compile
        StructuredSVM(structure, gap_tol=0.1, **options).fit(head, y[:50])
    for n in sizes:
        models = {
            "linear": StructuredSVM(**own),
            "Nyström": StructuredSVM(**own),
            "RBF": StructuredSVM(**own, **kernel),
        }
        if structure == "multiclass":
            models["SVC"] = SVC(gamma=gamma, C=1.0)
        for name, model in models.items():
            a, b, start = x[:n], test_x, time.process_time()
            if name == "Nyström":
                mapping = Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=0)
                mapping.fit(a if structure == "multiclass" else np.concatenate(a))
                a, b = mapped(mapping, a), mapped(mapping, b)
            model.fit(a, y[:n])
            spent = time.process_time() - start
            row = {"n": n, "model": name, "seconds": spent, "parts": flat(y[:n]).size}
            row["error"] = np.mean(flat(model.predict(b)) != flat(test_y))
            if name != "SVC":
                row["passes"] = model.history_["oracle_calls"].iloc[-1] / n
            if name == "RBF":
                evaluations = model.history_["kernel_evaluations"].iloc[-1]
                row["kernel_values"] = evaluations / row["parts"] ** 2
            if hasattr(model, "support_"):
                row["support"] = model.support_.size
            yield row


def two_classes(gamma, x, y):
    """Yield how far the scores of SVC are from ours for two digits."""
    two = np.isin(y, (3, 8))
    a, b, n = x[two], y[two], int(two.sum())
    model = StructuredSVM(lam="1/n", gap_tol=1e-4, kernel="rbf", gamma=gamma).fit(a, b)
    svc = SVC(gamma=gamma, C=2.0, tol=1e-6).fit(a, b)
    here, there = model.decision_function(a), svc.decision_function(a) - svc.intercept_
    yield {"n": n, "intercept": svc.intercept_[0], "difference": abs(here - there).max()}


def main(name, *sizes):
    """Keep the tables of a dataset."""
    if name == "usps":
        data = examples("usps", 2000)
        keep("kernels/usps", compare("multiclass", (650, 1300, 2600, 5291), 0.01, "1/n", *data))
        keep("kernels/two_classes", two_classes(0.01, *data[:2]))
    else:
        sizes = [int(size) for size in sizes] or (500, 1000, 2000)
        keep("kernels/ocr", compare("chain", sizes, 0.05, "10/n", *examples("ocr", 1000)))


if __name__ == "__main__":
    main(*sys.argv[1:])
