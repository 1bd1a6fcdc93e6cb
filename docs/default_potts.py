"""Whether the Potts weight of graphs is better learned or fixed: the estimator's default.

    python docs/default_potts.py

Simulated pictures of 12 × 12 parts with four labels, in regions of two sizes: the features of a
part are the centre of its label plus noise, of two levels. For each λ, the table has the share of
right labels in percent, the mean over three draws of 30 pictures to train on and 30 to test.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter
from sklearn.exceptions import ConvergenceWarning

from ssvm_bench import StructuredSVM

SIDE, LABELS, FEATURES, PICTURES, DRAWS = 12, 4, 10, 30, 3
SETTINGS = {"large regions": (2.0, 2.0), "small regions": (0.7, 1.0)}
"""Name → width of the filter that makes regions, and standard deviation of the noise."""
LAMBDAS = [0.003, 0.03, 0.3, 3]
WEIGHTS = [0.0, 1.0, "learned"]

PLACES = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
PAIRS = [(PLACES[:, :-1], PLACES[:, 1:]), (PLACES[:-1], PLACES[1:])]
EDGES = np.vstack([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in PAIRS])


def pictures(rng, centres, width, noise):
    """Return graphs and their labels."""
    X, y = [], []
    for _ in range(PICTURES):
        fields = [gaussian_filter(rng.normal(size=(SIDE, SIDE)), width) for _ in range(LABELS)]
        labels = np.argmax(fields, axis=0).ravel()
        X.append((centres[labels] + noise * rng.normal(size=(labels.size, FEATURES)), EDGES))
        y.append(labels)
    return X, y


def right(potts, lam, width, noise):
    """Return the mean share of right labels in percent."""
    found = []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        centres = rng.normal(size=(LABELS, FEATURES))
        train, test = (pictures(rng, centres, width, noise) for _ in range(2))
        model = StructuredSVM("graph", potts=potts, lam=lam, max_iterations=200).fit(*train)
        found.append(100 * model.score(*test))
    return np.mean(found)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    table = pd.DataFrame(
        {
            (name, f"λ = {lam}"): [right(potts, lam, *setting) for potts in WEIGHTS]
            for name, setting in SETTINGS.items()
            for lam in LAMBDAS
        },
        index=["no edges", "1", "learned"],
    )
    print(table.T.to_string(float_format="{:.1f}".format))
