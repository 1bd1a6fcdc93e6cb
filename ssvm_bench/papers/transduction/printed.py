"""Numbers that the transduction paper prints, and what it compares."""

from __future__ import annotations

import math
from typing import NamedTuple

MOONS = {"kernel_kmeans": 0.666, "coordinate_descent": 0.685, "dcadmm": 0.025}
"""Solver → share of wrong labels (Figure 5)."""


class Spread(NamedTuple):
    """Mean over the splits, and what is behind ±, as shares; the caption calls that a variance."""

    mean: float
    deviation: float

    @property
    def root(self) -> Spread:
        """The same, if what is printed is a variance, in %²: with its root."""
        return Spread(self.mean, math.sqrt(100 * self.deviation) / 100)

    def has(self, mean: float) -> bool:
        """Tell whether a mean is within ±, to either side."""
        return abs(mean - self.mean) <= self.deviation


class Printed(NamedTuple):
    """A cell of Table 1: of the relaxation of Joulin and Bach, and of what the paper proposes."""

    sdp: Spread
    proposed: Spread


_ROWS = """
    ssl_digit1  10  69.27 27.56  82.20 4.54   53.93  9.43  78.18 8.43
    ssl_usps    10  57.72 13.73  64.58 3.37   40.10 11.67  48.19 5.84
    ssl_bci     10  50.44  3.16  50.62 2.08   50.00  3.06  51.67 0.44
    ssl_g241c   10  49.88 38.92  55.42 3.95   62.33 36.84  89.98 0.32
    ssl_g241n   10  52.77 34.37  57.61 4.44   50.13  0.53  51.13 0.13
    ssl_digit1 100  75.74 29.73  85.60 2.91   88.65  0.49  87.61 3.44
    ssl_usps   100  63.44  9.97  72.14 0.84   39.83 12.63  56.54 3.31
    ssl_bci    100  60.58  6.87  65.23 1.25   64.19  1.23  62.62 1.00
    ssl_g241c  100  64.92 17.47  86.31 0.91   85.63  0.76  89.34 1.07
    ssl_g241n  100  54.14 17.13  54.11 0.64   52.23  1.61  53.98 0.38
"""
KERNELS = ("linear", "rbf")


class Overlap(NamedTuple):
    """Intersections over union of section 4.2, by the names of our solvers, and of OSVOS."""

    dcadmm: float
    osvos: float
    inductive: float


VIDEOS = {
    "davis_bmx_trees": Overlap(0.7087, 0.6452, 0.5063),
    "davis_car_shadow": Overlap(0.9196, 0.9262, 0.8844),
}
"""Sequence → what section 4.2 prints; that of Figure 2, which it does not name, is inferred."""


def _table_1() -> dict[tuple[str, int, str], Printed]:
    found = {}
    for line in _ROWS.split("\n")[1:-1]:
        dataset, labeled, *numbers = line.split()
        shares = [float(number) / 100 for number in numbers]
        for kernel, of in zip(KERNELS, (shares[:4], shares[4:]), strict=True):
            found[dataset, int(labeled), kernel] = Printed(Spread(*of[:2]), Spread(*of[2:]))
    return found


TABLE_1 = _table_1()
"""Dataset, labeled points, kernel → accuracies (Table 1)."""

SETS = tuple(dict.fromkeys(dataset for dataset, _, _ in TABLE_1))

SPLITS = 12
"""What the means of Table 1 are over."""

SETTINGS = {"rho": 1e-3, "tau": 1.003, "start": "zero", "delta": 0.0}
"""Options of the solver that Table 1 is made by, and what we read for the start."""

WEIGHTS = {"linear": 0.05, "rbf": 0.0025}
"""Kernel → ν."""

NAMES = {"linear": "linear", "rbf": "RBF"}
"""Kernel → how it is written."""

DRAWS = {"moons": "draw", "scribbles": "picture", **dict.fromkeys(SETS, "split")}
"""Dataset → its option that makes a repeat: data drawn anew, a split or a picture."""

PROPOSED, INDUCTIVE = "dcadmm", "inductive"
BASELINES = {
    "kernel_kmeans": "constrained kernel k-means",
    "coordinate_descent": "coordinate descent on labels and classifier",
}
"""Solvers that it is compared with → what a reader calls them."""
