"""The loop of a run: budget, evaluation, stop reason, interrupt.

A run repeats the solver's outer iterations, evaluates the iterate it reports while the clock is
paused, and ends for one of the named reasons:

==================  ==========================================================================
``gap_tol``         the relative gap (P − F)/max(P, 1e-12) is small enough
``max_iterations``  outer iterations done
``max_seconds``     seconds on the run's clock spent
``converged``       a whole exact pass changed nothing: optimal, as far as the oracle is exact;
                    bundle methods: the relative gap is at most their ε; dual coordinate descent:
                    at most its tolerance
``cache_full``      examples have left the cache of online dual coordinate descent with their
                    weights, which a further pass would count again
``qp_steps``        an inner QP did not converge in its steps, or for rounding: bundle methods and
                    1-slack cutting planes report their best iterate
``diverged``        primal or dual is not finite: the run has failed
``interrupted``     Ctrl-C, SIGTERM or SIGHUP: after the iteration; a partial trace is kept. After
                    two of them, where the loop gets control next, and without an evaluation
``error``           the solver or the oracle raised: partial trace and traceback are kept
==================  ==========================================================================

A problem with latent values may be solved in several rounds (:mod:`ssvm_bench.runs.rounds`); the
reason is then that of the last one.

The partial trace is written while the run goes on as well: ``kill -9`` costs the rows of the last
ten seconds, and the iteration.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench import interrupts
from ssvm_bench.clock import Clock
from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.progress import silence
from ssvm_bench.datasets.streams.data_stream import DataStream
from ssvm_bench.errors import RunFailedError, contained, described
from ssvm_bench.objective import Objective
from ssvm_bench.oracles import prior as priors
from ssvm_bench.problem import with_prior
from ssvm_bench.results.provenance import provenance
from ssvm_bench.results.reading import damage, is_whole, read_metadata, read_summary
from ssvm_bench.results.run_folder import lock
from ssvm_bench.results.trace import write_partial, write_run
from ssvm_bench.runs.components import (
    build_oracle,
    build_solver,
    check_data,
    check_requirements,
    chunk_rows,
    held_out_loss,
    load_dataset,
    warm_up,
)
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.rounds import next_round
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

if TYPE_CHECKING:
    import pandas as pd

BROKEN_OFF = ("interrupted", "diverged")
"""Stop reasons of runs that have a partial trace."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes
    ----------
    status : str
        ``finished``, ``skipped`` (it had finished before) or ``interrupted``.
    stop_reason : str
        See the module's docstring.
    folder : Path
        Where its files are; of an interrupted run, the partial ones.
    summary : dict
        What ``summary.json`` holds.
    """

    status: str
    stop_reason: str
    folder: Path
    summary: dict[str, Any]


@contained("The run failed")
def run(config: RunConfig, display: Display, concurrent_runs: int = 0) -> Outcome:
    """Do one run and write its files, unless it has finished before; first those of its path.

    Parameters
    ----------
    config : RunConfig
        Which run.
    display : Display
        Told how it goes.
    concurrent_runs : int
        Number of other runs that go on beside this one, for the trace's metadata.

    Raises
    ------
    ConfigError
        If dataset, oracle and solver do not fit together.
    RunFailedError
        If the data cannot be had, the run fails, or its files cannot be written; or if the run has
        finished before, on other data.
    """
    begin = time.perf_counter()
    check_requirements(config)
    with silence(config.quiet):
        rows = chunk_rows(config)
        dataset = load_dataset(config.dataset, rows)
    check_data(config, dataset)
    terms = build_oracle(config.oracle, config.dataset, rows)
    prior = priors.build(config.prior, terms.d)
    config = config.with_source(dataset.source)
    stages = [(stage, stage.lam_of(dataset.n)) for stage in config.stages()]
    with ExitStack() as locks:
        for stage, _ in stages:
            locks.enter_context(lock(stage.folder, display.message))
        if not config.force:
            for damaged in filter(None, (damage(stage.folder) for stage, _ in stages)):
                display.message(f"{damaged} It is made again.")
            for stage, _ in stages:
                _check_same_data(stage.folder, dataset)
        if all(is_whole(stage.folder) for stage, _ in stages) and not config.force:
            display.message(f"This run has finished before: {config.folder} (force=true redoes it)")
            summary = read_summary(config.folder)
            return Outcome("skipped", summary["stop_reason"], config.folder, summary)
        _tell_unseen(dataset, display)
        warm_up(config, dataset, display, prior)
        solver = None
        for stage, lam in stages:
            problem = with_prior(terms, lam, prior)
            display.start(stage, dataset.source, problem.n, problem.d, lam)
            with interrupts.deferred() as arrived:
                outcome, solver = _run(
                    stage, dataset, problem, display, begin, concurrent_runs, solver
                )
                arrived.answered = outcome.status == "interrupted"
            if outcome.status == "interrupted":
                break
            begin = time.perf_counter()
        return outcome


def _tell_unseen(dataset: Dataset | DataStream, display: Display) -> None:
    """Say how many labels that are held out training does not know."""
    for name, examples in dataset.held_out.items():
        if examples.unseen is not None:
            display.message(
                f"{np.count_nonzero(examples.unseen.mask)} of the {examples.y.size} {name} labels "
                "are unknown to training. Whatever is predicted for them counts as wrong."
            )


def _check_same_data(folder: Path, dataset: Dataset | DataStream) -> None:
    """Raise an error if a folder holds a finished run of a dataset whose content was another."""
    if is_whole(folder):
        before = read_metadata(folder)["dataset"]["fingerprint"]
        if before != dataset.fingerprint:
            raise RunFailedError(
                f"The run {folder} has finished before, on other data: their fingerprint was "
                f"{before}, that of {dataset.name} ({dataset.source}) is {dataset.fingerprint} now."
                " Keep both with another results_dir, or make it again with force=true."
            )


def _run(
    config: RunConfig,
    dataset: Dataset | DataStream,
    problem: Objective,
    display: Display,
    begin: float,
    concurrent_runs: int,
    solver: Solver | None,
) -> tuple[Outcome, Solver]:
    """Do one run, from a solver that has solved another λ if there is one; return it, too."""
    prior = priors.text(config.prior, getattr(config.solver, "constraint", ""))
    metadata = {
        "config": config.resolved(),
        "dataset": {
            "name": dataset.name,
            "source": dataset.source,
            "n": problem.n,
            "d": problem.d,
            "radius": problem.radius(),
            "fingerprint": dataset.fingerprint,
        },
        "lam": config.lam_of(dataset.n),
        **({"prior": prior} if prior else {}),
        **({"objective": problem.name} if problem.name else {}),
        "seed": config.seed,
        "clock": config.clock,
        "concurrent_runs": concurrent_runs,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **_latent(problem),
        **provenance(),
    }
    held_out = {
        name: functools.partial(held_out_loss, config.oracle, examples)
        for name, examples in dataset.held_out.items()
    }
    clock = Clock(config.clock, *config.oracle.costs)
    had_finished = is_whole(config.folder) and not config.force

    def keep(rows: pd.DataFrame) -> None:
        with clock.paused():
            try:
                write_partial(config.folder, rows, metadata, summary("interrupted"))
            except RunFailedError as error:
                display.message(f"What was measured so far is not on disk: {error}")

    recorder = Recorder(
        problem,
        display,
        held_out,
        None if had_finished else keep,
        getattr(config.solver, "latent_rounds", 1),
    )

    def summary(reason: str) -> dict[str, Any]:
        return {
            **recorder.summary(),
            "stop_reason": reason,
            "dataset": dataset.name,
            "solver": config.solver.name,
            "source": dataset.source,
            "seed": config.seed,
            "wall_time": time.perf_counter() - begin,
        }

    goes_on = solver is not None
    try:
        with clock.paused():
            if solver is None:
                solver = build_solver(config, problem, clock)
            else:
                solver.go_on(problem.lam, clock)
        reason = loop(config, solver, recorder, goes_on)
    except BaseException as error:  # a component may raise SystemExit
        rows, text = recorder.rows, traceback.format_exc()
        where = write_partial(config.folder, rows, metadata, summary("error"), text)
        raise RunFailedError(
            f"The run failed in iteration {len(rows)}: {described(error)}. "
            f"What it had measured, and the traceback, are in {where}."
        ) from error
    metadata |= _latent(recorder.problem)
    if reason in BROKEN_OFF:
        where = write_partial(config.folder, recorder.rows, metadata, summary(reason))
        if reason == "diverged":
            fixed = getattr(config.solver, "step", "line_search") != "line_search"
            raise RunFailedError(
                f"The run diverged in iteration {recorder.rows[-1]['iteration']}: primal "
                f"{recorder.rows[-1]['primal']}, dual {recorder.rows[-1]['dual']}. Its trace is in "
                f"{where}; try {'solver.step=line_search or ' if fixed else ''}a larger lam."
            )
        return Outcome("interrupted", reason, where, summary(reason)), solver
    final = summary(reason)
    if had_finished:
        display.message(f"This run of the path had finished before, and is kept: {config.folder}")
    else:
        resolved, vocabulary = config.resolved(), getattr(dataset, "vocabulary", None)
        arrays = recorder.problem.arrays(recorder.w)
        write_run(config.folder, recorder.rows, metadata, resolved, final, arrays, vocabulary)
    display.finish(final, config.folder)
    return Outcome("finished", reason, config.folder, final), solver


def _latent(problem: Objective) -> dict[str, str]:
    """Return what tells the fixed latent values of a problem from others, if it has some."""
    values = problem.latent()
    return {} if values is None else {"latent": hashlib.sha256(values.tobytes()).hexdigest()[:12]}


def loop(config: RunConfig, solver: Solver, recorder: Recorder, goes_on: bool = False) -> str:
    """Iterate and evaluate until something ends the run; return the stop reason of its last round.

    Parameters
    ----------
    config, solver, recorder
        The run.
    goes_on : bool
        Whether the solver has solved another λ before.
    """
    with interrupts.deferred() as arrived:
        try:
            if not goes_on:
                solver.begin()
            if config.eval.after_exact_pass:
                solver.keep_after_exact_pass()
            reason, begin = _loop(config, solver, recorder, arrived, 0.0), solver.clock.now()
            while reason not in BROKEN_OFF and (after := next_round(config, solver, recorder)):
                solver = after
                reason, begin = _loop(config, solver, recorder, arrived, begin), solver.clock.now()
            if reason not in BROKEN_OFF:
                recorder.predict()
            return reason
        except interrupts.EndedEarlyError:
            return "interrupted"


def _loop(
    config: RunConfig,
    solver: Solver,
    recorder: Recorder,
    arrived: interrupts.Arrived,
    begin: float,
) -> str:
    """Do a round that began at some moment of the clock."""
    iteration = due = 0
    while True:
        interrupts.checkpoint()
        reason = _exhausted(config.budget, iteration, solver.clock.now() - begin)
        if reason is None:
            reason = "converged" if solver.converged else solver.ended
        if arrived.count:
            reason = "interrupted"
        if reason is not None or iteration >= due:
            due = config.eval.after(iteration)
            row = recorder.evaluate(solver, iteration)
            if not _is_finite(row, getattr(config.solver, "has_dual", False)):
                return "diverged"
            recorder.check_duality()
            relative = row["gap"] / max(abs(row["primal"]), 1e-12)
            if reason is None and relative <= config.budget.gap_tol > 0:
                reason = "gap_tol"
        if reason is not None:
            return reason
        recorder.keep()
        solver.iterate()
        iteration += 1


def _is_finite(row: Mapping[str, Any], has_dual: bool) -> bool:
    """Tell whether all numbers of an iterate are finite; a method without a dual has NaN there."""
    dual = row["dual"] if has_dual or not math.isnan(row["dual"]) else 0.0
    return all(math.isfinite(value) for value in (row["primal"], dual, row["w_norm"]))


def _exhausted(budget: Budget, iteration: int, seconds: float) -> str | None:
    if budget.max_iterations is not None and iteration >= budget.max_iterations:
        return "max_iterations"
    if budget.max_seconds is not None and seconds >= budget.max_seconds:
        return "max_seconds"
    return None
