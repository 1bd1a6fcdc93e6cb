"""An exact RBF kernel against linear weights, Nyström's approximation and SVC, on USPS.

    python docs/kernels.py

The first n of 5,291 digits are trained on, 2,000 others are held out; γ = 0.01, λ = 1/n, to a
relative gap of 0.01, `mpbcfw_fast`. Nyström: features of 500 landmarks, scikit-learn's `Nystroem`,
with linear weights. SVC: one against one, C = 1, its own tolerance. Seconds are CPU seconds of this
process, features included. At the end: two classes (3 and 8) of which SVC with C = 2/(λ n) has the
objective, but for its intercept.
"""

import time

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import SVC

from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset

GAMMA, LANDMARKS, HELD_OUT = 0.01, 500, 2000
SIZES = 650, 1300, 2600, 5291


def digits():
    """Return the features and labels of USPS, in a fixed order."""
    (config,) = compose_runs(["dataset=usps", "dataset.source=real"])
    data = load_dataset(config.dataset)
    order = np.random.RandomState(0).permutation(data.n)
    return data.x[order].astype(float), data.y[order].astype(int)


def seconds(function, *arguments):
    """Return the CPU seconds of a call."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def main():
    """Print the table."""
    x, y = digits()
    test_x, test_y, x, y = x[:HELD_OUT], y[:HELD_OUT], x[HELD_OUT:], y[HELD_OUT:]
    kernel = {"kernel": "rbf", "gamma": GAMMA}
    for options in ({}, kernel):  # compile
        StructuredSVM(gap_tol=0.1, **options).fit(x[:50], y[:50])
    print("| n | model | CPU s | error | kernel values / n² | support |")
    print("|---|---|---|---|---|---|")
    for n in SIZES:
        of = {"lam": "1/n", "gap_tol": 0.01}
        nystroem = Nystroem(gamma=GAMMA, n_components=LANDMARKS, random_state=0)
        mapping = seconds(nystroem.fit, x[:n])
        for name, model, a, b in (
            ("linear", StructuredSVM(**of), x, test_x),
            ("Nyström", StructuredSVM(**of), None, None),
            ("RBF", StructuredSVM(**of, **kernel), x, test_x),
            ("SVC", SVC(gamma=GAMMA, C=1.0), x, test_x),
        ):
            spent = 0.0
            if a is None:
                start = time.process_time()
                a, b = nystroem.transform(x[:n]), nystroem.transform(test_x)
                spent = mapping + time.process_time() - start
            spent += seconds(model.fit, a[:n], y[:n])
            error = np.mean(model.predict(b) != test_y)
            values = support = "–"
            if name == "RBF":
                values = f"{model.history_['kernel_evaluations'].iloc[-1] / n**2:.2f}"
            if hasattr(model, "support_"):
                support = model.support_.size
            print(
                f"| {n} | {name} | {spent:.1f} | {error:.2%} | {values} | {support} |", flush=True
            )
    two = np.isin(y, (3, 8))
    a, b, n = x[two], y[two], int(two.sum())
    model = StructuredSVM(lam="1/n", gap_tol=1e-4, **kernel)
    svc = SVC(gamma=GAMMA, C=2.0, tol=1e-6)
    ours, theirs = seconds(model.fit, a, b), seconds(svc.fit, a, b)
    here, there = model.decision_function(a), svc.decision_function(a) - svc.intercept_
    print(f"\n3 and 8, n = {n}: {ours:.1f} s and SVC {theirs:.1f} s;", end=" ")
    print(
        f"its intercept is {svc.intercept_[0]:.3f}, scores differ by {abs(here - there).max():.3f}"
    )


if __name__ == "__main__":
    main()
