"""Numbers that the transduction paper prints, and what it compares."""

from __future__ import annotations

import math
from typing import NamedTuple

from ssvm_bench.figures.document import beside


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


class Overlap(NamedTuple):
    """Intersections over union of section 4.2, by the names of our solvers, and of OSVOS."""

    dcadmm: float
    osvos: float
    inductive: float


_PRINTED = beside(__file__, "printed")

MOONS: dict[str, float] = _PRINTED["moons"]
"""Solver → share of wrong labels (Figure 5)."""

KERNELS = ("linear", "rbf")

TABLE_1: dict[tuple[str, int, str], Printed] = {}
"""Dataset, labeled points, kernel → accuracies (Table 1)."""
for _set, _labeled, *_numbers in _PRINTED["table_1"]:
    for _kernel, _of in zip(KERNELS, (_numbers[:4], _numbers[4:]), strict=True):
        _spreads = (Spread(_of[k] / 100, _of[k + 1] / 100) for k in (0, 2))
        TABLE_1[_set, _labeled, _kernel] = Printed(*_spreads)

VIDEOS = {name: Overlap(**of) for name, of in _PRINTED["videos"].items()}
"""Sequence → what section 4.2 prints."""

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
BASELINES: dict[str, str] = _PRINTED["baselines"]
"""Solvers that it is compared with → what a reader calls them."""
