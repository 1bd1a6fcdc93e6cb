"""The loop of a run: budget, evaluation, stop reason, interrupt.

A run repeats the solver's outer iterations, evaluates the iterate it reports while the clock is
paused, and ends for one of the named reasons:

==================  ==========================================================================
``gap_tol``         the relative gap (P − F)/max(P, 1e-12) is small enough
``max_iterations``  outer iterations done
``max_seconds``     seconds on the run's clock spent
``converged``       a whole exact pass changed nothing: optimal, as far as the oracle is exact;
                    bundle methods: the relative gap is at most their ε
``qp_steps``        an inner QP did not converge in its steps, or for rounding: bundle methods and
                    1-slack cutting planes report their best iterate
``diverged``        primal or dual is not finite: the run has failed
``interrupted``     Ctrl-C, SIGTERM or SIGHUP: a partial trace is kept
``error``           the solver or the oracle raised: partial trace and traceback are kept
==================  ==========================================================================
"""

from __future__ import annotations

import functools
import itertools
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from ssvm_bench.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.progress import silence
from ssvm_bench.errors import RunFailedError, SsvmBenchError
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.oracles.checks import contradicted
from ssvm_bench.problem import Problem
from ssvm_bench.results.provenance import provenance
from ssvm_bench.results.run_folder import lock
from ssvm_bench.results.trace import damage, is_whole, read_summary, write_partial, write_run
from ssvm_bench.runs.components import (
    build_oracle,
    build_solver,
    check_data,
    check_requirements,
    load_dataset,
    warm_up,
)
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

_ROUNDING = 1e-9
"""Of primal and dual values, which are sums over all examples, relative to their size."""


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
        If the data cannot be had, the run fails, or its files cannot be written.
    """
    begin = time.perf_counter()
    check_requirements(config)
    with silence(config.quiet):
        dataset = load_dataset(config.dataset)
    check_data(config, dataset)
    oracle = build_oracle(config.oracle, config.dataset)
    config = config.with_source(dataset.source)
    stages = [(stage, stage.lam_of(dataset.n)) for stage in config.stages()]
    with ExitStack() as locks:
        for stage, _ in stages:
            locks.enter_context(lock(stage.folder, display.message))
        if not config.force:
            for damaged in filter(None, (damage(stage.folder) for stage, _ in stages)):
                display.message(f"{damaged} It is made again.")
        if all(is_whole(stage.folder) for stage, _ in stages) and not config.force:
            display.message(f"This run has finished before: {config.folder} (force=true redoes it)")
            summary = read_summary(config.folder)
            return Outcome("skipped", summary["stop_reason"], config.folder, summary)
        warm_up(config, dataset, display)
        solver = None
        for stage, lam in stages:
            problem = Problem(oracle, lam)
            display.start(stage, dataset.source, problem.n, problem.d, problem.lam)
            outcome, solver = _run(stage, dataset, problem, display, begin, concurrent_runs, solver)
            if outcome.status == "interrupted":
                break
            begin = time.perf_counter()
        return outcome


def _run(
    config: RunConfig,
    dataset: Dataset,
    problem: Problem,
    display: Display,
    begin: float,
    concurrent_runs: int,
    solver: Solver | None,
) -> tuple[Outcome, Solver]:
    """Do one run, from a solver that has solved another λ if there is one; return it, too."""
    metadata = {
        "config": config.resolved(),
        "dataset": {
            "name": dataset.name,
            "source": dataset.source,
            "n": problem.n,
            "d": problem.d,
            "fingerprint": dataset.fingerprint,
        },
        "lam": problem.lam,
        "seed": config.seed,
        "clock": config.clock,
        "concurrent_runs": concurrent_runs,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **provenance(),
    }
    build = registry.module("oracle", config.oracle.kind).build
    held_out = {
        name: functools.partial(build, config.oracle, examples)
        for name, examples in dataset.held_out.items()
    }
    recorder = Recorder(problem, display, held_out)

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

    try:
        clock = Clock(config.clock, config.oracle.cost_call, config.oracle.cost_plane)
        with clock.paused():
            if solver is None:
                solver = build_solver(config, problem, clock)
            else:
                solver.go_on(problem.lam, clock)
        reason = loop(config, solver, recorder)
    except Exception as error:
        rows, text = recorder.rows, traceback.format_exc()
        where = write_partial(config.folder, rows, metadata, summary("error"), text)
        kind = "" if isinstance(error, SsvmBenchError) else f"{type(error).__name__}: "
        raise RunFailedError(
            f"The run failed in iteration {len(rows)}: {kind}{error}. "
            f"What it had measured, and the traceback, are in {where}."
        ) from error
    if reason in ("interrupted", "diverged"):
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
    if is_whole(config.folder) and not config.force:
        display.message(f"This run of the path had finished before, and is kept: {config.folder}")
    else:
        write_run(config.folder, recorder.rows, metadata, config.resolved(), final, recorder.w)
    display.finish(final, config.folder)
    return Outcome("finished", reason, config.folder, final), solver


def loop(config: RunConfig, solver: Solver, recorder: Recorder) -> str:
    """Iterate and evaluate until something ends the run; return the stop reason."""
    with interrupts() as interrupted:
        iteration = due = 0
        while True:
            reason = _exhausted(config.budget, iteration, solver.clock)
            if reason is None:
                reason = "converged" if solver.converged else solver.ended
            if interrupted.is_set():
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
                if reason != "interrupted":
                    recorder.predict()
                return reason
            solver.iterate()
            iteration += 1


def _is_finite(row: Mapping[str, Any], has_dual: bool) -> bool:
    """Tell whether all numbers of an iterate are finite; a method without a dual has NaN there."""
    dual = row["dual"] if has_dual or not math.isnan(row["dual"]) else 0.0
    return all(math.isfinite(value) for value in (row["primal"], dual, row["w_norm"]))


def _exhausted(budget: Budget, iteration: int, clock: Clock) -> str | None:
    if budget.max_iterations is not None and iteration >= budget.max_iterations:
        return "max_iterations"
    if budget.max_seconds is not None and clock.now() >= budget.max_seconds:
        return "max_seconds"
    return None


class Recorder:
    """Evaluates what a solver reports, and keeps the rows of the trace.

    Parameters
    ----------
    problem : Problem
    display : Display
        Told of every row.
    held_out : mapping
        Name → what builds the oracle of held-out examples, which only `predict` needs.

    Attributes
    ----------
    rows : list of dict
        The trace so far.
    w : ndarray of float64, shape (d,)
        The iterate of the last row.
    losses : dict of str to float
        Mean loss of its predictions for the examples: of ``"train"`` and of each held-out name;
        NaN until `predict`.
    """

    def __init__(
        self,
        problem: Problem,
        display: Display,
        held_out: Mapping[str, Callable[[], Oracle]] | None = None,
    ) -> None:
        self.problem = problem
        self.display = display
        self.held_out = held_out or {}
        self.rows: list[dict[str, Any]] = []
        self.w = np.zeros(problem.d)
        self.losses = dict.fromkeys(("train", *self.held_out), math.nan)
        self._earlier = self.w
        self._eval_time = 0.0

    def evaluate(self, solver: Solver, iteration: int) -> Mapping[str, Any]:
        """Add, show and return the row of an iteration; the clock stands still meanwhile."""
        with solver.clock.paused():
            start = time.perf_counter()
            self._earlier, (self.w, dual) = self.w, solver.reported()
            self.problem.oracle.diagnostics()  # those of the calls so far
            primal = self.problem.primal(self.w)
            self._eval_time += time.perf_counter() - start
            row = {
                "iteration": iteration,
                "oracle_calls": solver.clock.oracle_calls,
                "approx_calls": solver.clock.approx_calls,
                "time": solver.clock.now(),
                "oracle_time": solver.clock.oracle_time,
                "cpu_time": solver.clock.cpu(),
                "eval_time": self._eval_time,
                "primal": primal,
                "dual": dual,
                "gap": primal - dual,
                "working_set_mean": solver.working_set_mean(),
                "approx_passes": solver.approx_passes,
                "w_norm": float(np.linalg.norm(self.w)),
                **self.problem.oracle.diagnostics(),
                **solver.diagnostics(),
            }
            self.rows.append(row)
            self.display.row(row)
        return row

    def check_duality(self) -> None:
        """Raise ``RunFailedError`` if the last dual value is above its primal, beyond rounding."""
        oracle, primal, dual = self.problem.oracle, self.rows[-1]["primal"], self.rows[-1]["dual"]
        if oracle.exact and dual - primal > _ROUNDING * max(abs(primal), abs(dual), 1.0):
            found = contradicted(oracle, self.w, self._earlier)
            where = "" if found is None else f", as it does not at example {found}"
            raise RunFailedError(
                f"the dual value {dual:.9g} is above the primal one, {primal:.9g}, which cannot be "
                f"where the oracle returns a best labeling of every example{where}. Test it "
                "against brute force; an approximate oracle says `exact = False`"
            )

    def predict(self) -> None:
        """Find the losses of the last row's iterate, with one held-out oracle at a time."""
        self.losses["train"] = self.problem.oracle.mean_loss(self.w)
        for name, build in self.held_out.items():
            self.losses[name] = build().mean_loss(self.w)

    def summary(self) -> dict[str, Any]:
        """Return the last row, the best primal and dual of all, and ``train_loss`` and others."""
        if not self.rows:
            return {}
        duals = [row["dual"] for row in self.rows if not math.isnan(row["dual"])]
        return {
            **self.rows[-1],
            "best_primal": min(row["primal"] for row in self.rows),
            "primal_rises": self._rises(),
            "best_dual": max(duals, default=math.nan),
            **{f"{name}_loss": loss for name, loss in self.losses.items()},
        }

    def _rises(self) -> float:
        """Return the share of evaluations whose primal is above the one before: fluctuation."""
        pairs = list(itertools.pairwise(row["primal"] for row in self.rows))
        return sum(after > before for before, after in pairs) / len(pairs) if pairs else math.nan


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into an event: no pass is left half done.

    A second one interrupts at once. Signals that are ignored (``nohup``), and all signals outside
    the main thread, are left alone.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    previous = {
        number: signal.signal(number, handle)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield event
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
