"""Training without files: the loop of a run, on examples that a Python program has.

Kernels are compiled once for each kind of problem in a process, not once for each call: a search
over parameters makes many.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.runs.calls import caller_of, check_calls
from ssvm_bench.runs.components import (
    check_data,
    check_requirements,
    oracle_of,
    prior_of,
    problem_of,
    started,
    warm_up,
)
from ssvm_bench.runs.loop import loop
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display

_warm: set[Hashable] = set()
"""Kinds of problems whose kernels are there."""


@dataclass(frozen=True)
class Trained:
    """What a run has found.

    Attributes
    ----------
    w : ndarray of float64, shape (d,)
    rows : list of dict
        The trace.
    stop_reason : str
        See :mod:`ssvm_bench.runs.loop`.
    """

    w: np.ndarray
    rows: list[dict[str, Any]]
    stop_reason: str


def train(config: RunConfig, dataset: Dataset, display: Display) -> Trained:
    """Do a run, after those of its path, and keep it in memory.

    Parameters
    ----------
    config : RunConfig
        Which run.
    dataset : Dataset
        Its examples.
    display : Display
        Told how it goes.

    Raises
    ------
    ConfigError
        If examples, oracle and solver do not fit together.
    RunFailedError
        If the run fails.
    """
    check_requirements(config)
    check_calls(config, in_memory=True)
    check_data(config, dataset)
    terms, caller = oracle_of(config.oracle, dataset), caller_of(config, dataset.fingerprint)
    if caller is not None:
        terms = terms.called_by(caller)
    prior = prior_of(config, terms.d)
    if (kind := _kind(config, dataset)) not in _warm:
        warm_up(config, dataset, prior, called=caller is not None)
        _warm.add(kind)
    solver = None
    for stage in config.path_steps():
        lam = stage.lam_of(dataset.n)
        problem = problem_of(terms, lam, prior)
        display.start(stage, dataset.source, problem.n, problem.d, lam)
        rounds = getattr(stage.solver, "latent_rounds", 1)
        recorder = Recorder(problem, display, latent_rounds=rounds)
        warm_started, clock = solver is not None, Clock(stage.clock, *stage.oracle.costs)
        clock.caller = caller
        solver = started(stage, problem, clock, solver)
        reason = loop(stage, solver, recorder, warm_started)
        if reason == "diverged":
            raise RunFailedError(
                f"Training diverged in iteration {recorder.rows[-1]['iteration']}; try a larger "
                "lam."
            )
    return Trained(recorder.w, recorder.rows, reason)


def _kind(config: RunConfig, dataset: Dataset) -> Hashable:
    """Return what decides which kernels there are."""
    x, y = dataset.x, dataset.y
    options = config.oracle, config.solver, config.prior, config.parallel, bool(config.path)
    return *options, dataset.structure, type(x), x.dtype, y.dtype
