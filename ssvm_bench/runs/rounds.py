"""Rounds of a problem with latent values: a convex problem each, with better values than the last.

.. code-block:: text

    w ← argmin P(w) for the latent values z            as far as the budget goes: one round
    z ← the best latent values at w                    P(w) does not rise
    J(w) = min_z P(w)                                  what is minimised: not convex

(the convex-concave procedure; Felzenszwalb et al. 2010, *coordinate descent* in Ramanan 2013,
section 1.4). The first row of a round is the w at which the last one ended, and so its primal value
is J there; a round ends at its iterate with the lowest primal value. Hence J never rises from round
to round, however early a convex problem is left. A solver goes on from what it knows, where that
says something of the new problem (`Solver.improve`), and is else built anew.

The rounds end where no latent value changes, or after ``solver.latent_rounds``. The budget is that
of each round.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.config.schema import RunConfig
from ssvm_bench.runs.components import build_solver
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.solvers.base import Solver


def next_round(config: RunConfig, solver: Solver, recorder: Recorder) -> Solver | None:
    """Begin another round; return its solver, or None if there is no other to come.

    Parameters
    ----------
    config, solver, recorder
        The run, whose solver has ended a round.
    """
    w = recorder.end_round()
    if recorder.round == recorder.latent_rounds:
        return None
    problem, clock = recorder.problem, solver.clock
    values = problem.latent()
    assert values is not None  # as problems of several rounds have some
    with clock.exact(int(np.count_nonzero(values))):
        better, changes = problem.improved(w)
    if changes == 0:
        return None
    if not solver.improve(better):
        solver = build_solver(config, better, clock)
        solver.begin()
    if config.eval.after_exact_pass:
        solver.keep_after_exact_pass()
    recorder.begin_round(better, changes)
    return solver
