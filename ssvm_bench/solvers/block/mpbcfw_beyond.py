"""Beyond the papers: MP-BCFW with several steps a visit, gap sampling, and fewer oracle calls.

The loop and its options N, M, T, average, start and approx_order are those of
:mod:`ssvm_bench.solvers.block.mpbcfw`. Further options:

===========  ==================================================================================
option       meaning
===========  ==================================================================================
steps        ``fw``, ``away`` or ``pairwise``: directions of the steps; for the last two, planes
             with weight are never dropped
inner_steps  most steps of a visit, exact or approximate, over the planes of its term
sampling     ``permutation``; ``runs``: one of runs of 8 consecutive terms, with fewer cache misses;
             ``gap``: terms of an exact pass are drawn in proportion to their gap at their last
             exact call
refresh      number of iterations after which an exact pass calls the oracle of every term once
share        a visit of an exact pass uses the term's planes instead of its oracle if their gap is
             at least this share of the gap at its last exact call, and a hundredth of the mean;
             null: every visit of an exact pass calls the oracle
by_seconds   in place of ``share``: a visit uses the planes if their gap, per second of a visit
             without oracle, is above the gap at the last exact call, per second of a visit with
             it; seconds are means of the run so far, on its clock
shrink       approximate passes, except the first of an iteration, leave out the terms whose
             planes had less than this share of the mean gap when they were last visited; 0: none
kappa        approximate passes, except the first of an iteration, are accelerated, with this
             largest κ/λ of :mod:`ssvm_bench.solvers.block.acceleration`; 0: none
window       number of accelerated passes between two checks whether they still pay
in_out       in-out separation: exact passes, except those of ``refresh``, call the oracle at
             (1 − in_out) w + in_out c; before each, the centre c moves half way to w; null: at w
===========  ==================================================================================

``steps=fw inner_steps=1 sampling=permutation share=null by_seconds=false shrink=0 kappa=0
in_out=null`` is MP-BCFW itself, up to rounding. The steps are derived, and the sources of options
named, in :mod:`ssvm_bench.solvers.block.several_steps`; in-out separation is from Ben-Ameur and
Neto, *Acceleration of cutting-plane and column generation algorithms*, Networks 2007.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.validation import Count, NotNegative, Share, one_of
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes.iterates import dual_iterate
from ssvm_bench.solvers.block.acceleration import AcceleratedPasses
from ssvm_bench.solvers.block.mpbcfw import BlockConfig, MultiPlane, PlainPasses
from ssvm_bench.solvers.block.several_steps import STEPS, SeveralStepVisits
from ssvm_bench.solvers.orders import GapOrders, Orders

CODE_VERSION = 1

SAMPLING = ("permutation", "runs", "gap")


@dataclass(frozen=True)
class Config(BlockConfig):
    """Options; see the module's docstring."""

    steps: Annotated[str, one_of(STEPS)] = "fw"
    inner_steps: Count = 1
    sampling: Annotated[str, one_of(SAMPLING)] = "permutation"
    refresh: Count = 10
    share: NotNegative | None = None
    shrink: NotNegative = 0.0
    kappa: NotNegative = 0.0
    window: Count = 1
    in_out: Share | None = None
    by_seconds: bool = False

    def __post_init__(self) -> None:
        """Check that at most one of ``by_seconds`` and ``share`` is set."""
        super().__post_init__()
        if self.by_seconds and self.share is not None:
            raise ConfigError("solver.by_seconds takes the place of solver.share: set one of them.")


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> MultiPlane:
    """Return the solver at φ^i = 0 for all i; `MultiPlane.begin` goes to its start."""
    most = sys.maxsize if config.N > 0 else 0  # planes with weight stay
    phi = dual_iterate(problem, most, own_rows=True, with_zeros=True)
    share = np.inf if config.share is None else float(config.share)
    of_visits = config.N, config.T, config.steps, config.inner_steps
    visits = SeveralStepVisits(
        phi, *of_visits, share, config.shrink, config.in_out or 0.0, config.by_seconds
    )
    passes = PlainPasses(visits)
    if config.kappa > 0:
        passes = AcceleratedPasses(visits, config.kappa, config.window)
    order = Orders(problem.n, config.sampling, seed, config.approx_order)
    if config.sampling == "gap":
        order = GapOrders(problem.n, seed, lambda: visits.policy.gaps, config.approx_order)
    return MultiPlane(config, passes, order, clock, config.refresh)
