"""Four moons and 25 cliques (Laude et al., appendix B): points without any label.

There are 600 points in the plane, 150 per class. No label is observed. For 25 possibly overlapping
cliques of 25 points, the number of points of each class is known up to ±3. The paper does not say
more about the moons; here they are two pairs side by side, and the moons of a pair interlock:

.. code-block:: text

    classes 0, 2    (c + cos t, sin t)              c = 0, 3 + gap
    classes 1, 3    (c − cos t, 1/2 − sin t)        c = 1, 4 + gap,     t uniform in [0, π]

plus noise. Without a gap, the tips of the classes 1 and 2 meet, and points there cannot be told
apart. ``draw`` is the seed of points, noise and cliques; there is no file, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import approx_normal, permutation, uniform
from ssvm_bench.config import SIMULATED
from ssvm_bench.config.validation import Count, Natural, NotNegative
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.papers.transduction.datasets import points
from ssvm_bench.papers.transduction.datasets.points import Cliques

N_LABELS, N_EACH = 4, 150
N = N_LABELS * N_EACH

_MEMBER = 24.0
"""Bytes that a point of a clique takes while the cliques are drawn."""


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of the moons.

    Attributes
    ----------
    draw : int
        Seed of points and cliques.
    noise : float
        Standard deviation of the noise.
    gap : float
        Distance between the two pairs of moons.
    cliques, clique_size, slack : int
        Number of cliques, points in each, and how far bounds on counts are from the true counts.
    """

    draw: Natural = 0
    noise: NotNegative = 0.05
    gap: NotNegative = 0.0
    cliques: Count = 25
    clique_size: Count = 25
    slack: Natural = 3

    def __post_init__(self) -> None:
        """Check the ranges; set the source to ``"drawn"`` in any case, as in the paper."""
        if self.source == SIMULATED:  # as in stored configs
            object.__setattr__(self, "source", "auto")
        super().__post_init__()
        object.__setattr__(self, "source", SIMULATED)
        for option, value in (("clique_size", self.clique_size), ("n_samples", self.n_samples)):
            if value is not None and value > N:
                raise ConfigError(f"dataset.{option} must be ≤ {N}, the number of points.")


def load(config: Config) -> Dataset:
    """Return the points, x float64 (600, 2), without observed labels, and the cliques."""
    bits = np.random.PCG64(config.draw)
    y = (permutation(N, bits) % N_LABELS).astype(np.uint8)
    t, up = np.pi * uniform((N,), bits), 1.0 - 2.0 * (y % 2)
    centre = np.array([0.0, 1.0, 3.0 + config.gap, 4.0 + config.gap])[y]
    moon = np.stack((centre + up * np.cos(t), (1.0 - up) / 4.0 + up * np.sin(t)), axis=1)
    x = moon + config.noise * approx_normal((N, 2), bits)
    size, C = config.clique_size, config.cliques
    check_room(_MEMBER * size * C, f"{C} cliques of {size} points", "Use fewer cliques.")
    members = np.concatenate([permutation(N, bits)[:size] for _ in range(C)])
    counts = np.stack([np.bincount(of, minlength=N_LABELS) for of in y[members].reshape(C, size)])
    bounds = np.maximum(counts - config.slack, 0), np.minimum(counts + config.slack, size)
    cliques, x = Cliques(size * np.arange(C + 1), members, *bounds), np.round(x, 6)
    # x is rounded because the last bits of a cosine depend on the machine
    known = {"labeled": np.zeros(N, bool), "cliques": cliques}
    return points.made(config, config.source, x, y, N_LABELS, **known)
