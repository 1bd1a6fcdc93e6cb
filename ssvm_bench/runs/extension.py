"""Runs that differ in their budget: which goes on from another one, and where each is written.

They share a folder, which has the longest of them. A run goes on from where one of them was left,
or has ended and kept its state; else it begins anew. One that does not go as far as that which is
there, and is yet made by itself, has a folder of its own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.oracles.objective import Objective
from ssvm_bench.results.budgets import budget_of, ending, goes_as_far
from ssvm_bench.results.reading import is_whole, read_run
from ssvm_bench.results.run_folder import partial_folder
from ssvm_bench.runs.checkpoints import Resumed, resume
from ssvm_bench.runs.recorder import Recorder

logger = logging.getLogger(__name__)


def going_on(
    config: RunConfig,
    whose: dict[str, str],
    problem: Objective,
    new_recorder: Callable[[], Recorder],
    leads_on: bool,
) -> tuple[RunConfig, Resumed] | None:
    """Return the run to make, and where it begins; None if that is the beginning.

    Parameters
    ----------
    config : RunConfig
        The run that is asked for.
    whose, problem, new_recorder
        As for `checkpoints.resume`.
    leads_on : bool
        Whether another run begins at its end.
    """
    for folder in (partial_folder(config.folder), config.folder):
        found = resume(folder, whose, config, problem, new_recorder)
        made = None if found is None else _made_of(found, config, leads_on)
        if found is not None and made is not None:
            logger.info(
                "Going on after iteration %s, from the checkpoint in %s (force=true does not).",
                *(found.progress.iteration, folder),
            )
            return made, found
    if is_whole(config.folder):
        logger.info(_why_anew(config))
    return None


def _made_of(found: Resumed, config: RunConfig, leads_on: bool) -> RunConfig | None:
    """Return the run that a state leads to; None if it is not the one asked for.

    What is asked for can be the beginning of what the state has: then the run ends where it is.
    """
    if config.folder == config.own_folder:
        return config  # it was left by a run of the same budget
    at, budget = found.progress.iteration, config.budget
    if ending(pd.DataFrame(found.recorder.rows), None, budget) is not None:
        return None if leads_on else replace(config, budget=Budget(at, None, 0.0))
    is_ahead = budget.max_iterations is None or at <= budget.max_iterations
    return config if is_ahead else None


def _why_anew(config: RunConfig) -> str:
    """Say why a run begins anew where one has finished that differs in the budget."""
    before = read_run(config.folder)
    reason, at = before.summary["stop_reason"], before.frame["iteration"].iloc[-1]
    if goes_as_far(before.frame, reason, config.budget):
        return (
            f"A longer run, {before.folder}, was not evaluated at iteration "
            f"{config.budget.max_iterations}: this one is made by itself."
        )
    return (
        f"{before.folder} has ended before, after iteration {at} ({reason}), and has no checkpoint "
        "to go on from: the run begins anew. One that is made with checkpoint.keep=true can be "
        "extended."
    )


def destination(config: RunConfig, rows: pd.DataFrame, reason: str) -> Path:
    """Return the folder for a finished run, which replaces no other that went further.

    Parameters
    ----------
    config : RunConfig
        The run.
    rows : DataFrame
        Its trace.
    reason : str
        Why it has ended.
    """
    if os.path.lexists(config.own_folder):
        return config.own_folder
    before = read_run(config.folder) if is_whole(config.folder) else None
    budget = None if before is None else budget_of(before)
    if budget is None or budget == config.budget or goes_as_far(rows, reason, budget):
        return config.folder
    return config.own_folder
