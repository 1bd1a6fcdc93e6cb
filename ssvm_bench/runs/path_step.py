"""One run of a path: from its problem to its files.

Most paths have one run. While it works, its trace so far and its state
(:mod:`ssvm_bench.runs.checkpoints`) are written to disk. All of its files are written at the end.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import time
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssvm_bench.base import interrupts
from ssvm_bench.base.errors import RunFailedError, described
from ssvm_bench.config.schema import RunConfig, plain
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.vocabulary import Vocabulary
from ssvm_bench.oracles.objective import Objective
from ssvm_bench.results import checkpoint_file, checks, run_folder
from ssvm_bench.results.provenance import cpu_model, provenance
from ssvm_bench.results.trace import as_columns, write_partial, write_run
from ssvm_bench.runs import Outcome, checkpoints, components
from ssvm_bench.runs.loop import BROKEN_OFF, loop, unreached
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class PathStep:
    """One run of a path, and the metadata of its files.

    Parameters
    ----------
    config : RunConfig
    problem : Objective
    lam : float
        λ, or the weight of the regulariser that the oracle has instead.
    had_finished : bool
        Whether it has finished before, as a run on the path of another one can.
    leads_on : bool
        Whether another run of the path begins at its end.
    dataset : Dataset or DataStream
    display : Display
    begin : float
        When the work on the run began, by ``time.perf_counter``.
    concurrent_runs : int
        Number of other runs that are executed at the same time.
    engine : str
        Backend that started this process (:mod:`ssvm_bench.jobs`).

    Attributes
    ----------
    solver : Solver or None
        The current solver; None until it is built or restored.
    """

    config: RunConfig
    problem: Objective
    lam: float
    had_finished: bool
    leads_on: bool
    dataset: Dataset | DataStream
    display: Display
    begin: float
    concurrent_runs: int
    engine: str
    solver: Solver | None = None

    def __post_init__(self) -> None:
        """Compute the identity of the run's checkpoints, and create its recorder."""
        config = self.config
        self.progress = checkpoints.Progress()
        whose = f"{config.hash()}/seed={config.seed}"
        self.whose = checkpoint_file.identity(whose, self.dataset.fingerprint)
        self.recorder = self._new_recorder()

    def _new_recorder(self) -> Recorder:
        config = self.config
        held_out = {
            name: functools.partial(components.held_out_loss, config.oracle, self.dataset, examples)
            for name, examples in self.dataset.held_out.items()
        }
        rounds = getattr(config.solver, "latent_rounds", 1)
        bound = config.eval.bound
        return Recorder(self.problem, self.display, held_out, self._store, rounds, bound)

    def resume(self) -> bool:
        """Restore the run where it was left or had ended; return whether that was possible."""
        if self.had_finished or self.config.force:
            return False

        def begun(state: Any) -> checkpoints.Resumed:
            return checkpoints.restored(state, self.config, self.problem, self._new_recorder())

        found = checkpoints.find_checkpoint(self.config, self.whose, begun, self.leads_on)
        if found is None:
            return False
        self.config, (self.solver, self.recorder, self.progress) = found
        before = {} if self.progress.cpu == cpu_model() else {"cpu": self.progress.cpu}
        self.progress.resumed.append(
            {"iteration": self.progress.iteration, "started": _now(), **before}
        )
        self.progress.cpu = cpu_model()
        return True

    def make(self, before: Solver | None) -> Outcome:
        """Execute the run, warm-started from the solver of another λ if there is one."""
        config, display = self.config, self.display
        if before is not None:
            self.begin = time.perf_counter()
        display.start(config, self.dataset.source, self.problem.n, self.problem.d, self.lam)
        self.metadata = self._metadata()
        writer = checkpoints.Checkpoints(
            config.checkpoint, self.whose, lambda dump: self._store(checkpoint=dump)
        )
        with interrupts.deferred() as arrived:
            try:
                if self.solver is None:
                    self.solver = components.started(config, self.problem, before)
                else:  # restored from a checkpoint
                    self.solver.clock.start()
                about = before is not None, self.progress, writer.write_if_due
                reason = loop(config, self.solver, self.recorder, *about)
            except BaseException as error:  # a component may raise SystemExit
                where = self._write_partial("error", traceback=traceback.format_exc())
                raise RunFailedError(
                    f"The run failed in iteration {len(self.recorder.rows)}: {described(error)}. "
                    f"What it had measured, and the traceback, are in {where}."
                ) from error
            self.metadata |= self._latent()
            if reason not in BROKEN_OFF:
                if not self.leads_on:
                    self.solver = None  # its planes need not be there beside what is written
                return self._finish(reason)
            where = self._write_partial(reason)
            if reason == "diverged":
                raise self._diverged(where)
            arrived.answered = True
            return Outcome("interrupted", reason, where, self._summary(reason))

    def _finish(self, reason: str) -> Outcome:
        """Write the files of a run that has finished."""
        config, recorder, summary = self.config, self.recorder, self._summary(reason)
        if told := unreached(config.budget, recorder.rows[-1], reason):
            logger.warning("%s", told)
        folder = config.folder
        if self.had_finished:
            logger.info("This run of the path had finished before, and is kept: %s", folder)
        else:
            rows = as_columns(recorder.rows)
            folder = checkpoints.destination(config, rows, reason, self.progress)
            with nullcontext() if folder == config.folder else run_folder.lock(folder):
                write_run(
                    folder,
                    recorder.rows,
                    self.metadata,
                    config.resolved(),
                    summary,
                    recorder.problem.arrays(recorder.w),
                    self._vocabulary(),
                    with_checkpoint=config.checkpoint.keep,
                    partial=run_folder.partial_folder(config.folder),
                )
        self.display.finish(summary, folder)
        return Outcome("finished", reason, folder, summary)

    def _vocabulary(self) -> Vocabulary | None:
        """Return the names to store; with a kernel always, so that predictions need no data."""
        if getattr(self.config.oracle, "has_kernel", False):
            return Vocabulary.of(self.dataset)
        return getattr(self.dataset, "vocabulary", None)

    def _diverged(self, where: Path) -> RunFailedError:
        """Return the error of a run whose numbers are not finite."""
        row = self.recorder.rows[-1]
        fixed = getattr(self.config.solver, "step", "line_search") != "line_search"
        return RunFailedError(
            f"The run diverged in iteration {row['iteration']}: primal {row['primal']}, dual "
            f"{row['dual']}. Its trace is in {where}; try "
            f"{'solver.step=line_search or ' if fixed else ''}a larger lam."
        )

    def _store(self, rows: checks.Columns | None = None, **state: Any) -> None:
        """Write the rows so far to disk, and the state if it is given; the clock is paused."""
        if self.had_finished:
            return
        assert self.solver is not None
        with self.solver.clock.paused():
            try:
                self._write_partial("interrupted", rows, **state)
            except RunFailedError as error:
                logger.warning("What was measured so far is not on disk: %s", error)

    def _write_partial(self, reason: str, rows: checks.Columns | None = None, **more: Any) -> Path:
        measured = self.recorder.rows if rows is None else rows
        about = self.metadata, self._summary(reason)
        return write_partial(self.config.folder, measured, *about, **more)

    def _metadata(self) -> dict[str, Any]:
        config, dataset, problem = self.config, self.dataset, self.problem
        prior = config.prior.text(getattr(config.solver, "constraint", ""))
        about = {
            "config": config.resolved(),
            "dataset": {
                "name": dataset.name,
                "source": dataset.source,
                "n": problem.n,
                "d": problem.d,
                "radius": problem.radius(),
                "fingerprint": dataset.fingerprint,
            },
            "hash": config.own_hash(),
            "lam": self.lam,
            **({"prior": prior} if prior else {}),
            **({"objective": problem.name} if problem.name else {}),
            "seed": config.seed,
            "clock": config.clock,
            "concurrent_runs": self.concurrent_runs,
            "engine": self.engine,
            "started": _now(),
            **({"resumed": self.progress.resumed} if self.progress.resumed else {}),
            **self._latent(),
            **provenance(),
        }
        try:
            checks.check(plain(about), checks.METADATA)
        except ValueError as error:  # the value is a component's
            raise RunFailedError(f"No run can be made of that: {error}.") from error
        return about

    def _latent(self) -> dict[str, str]:
        """Return a digest of the problem's fixed latent values, if it has some."""
        values = self.recorder.problem.latent()
        if values is None:
            return {}
        return {"latent": hashlib.sha256(values.tobytes()).hexdigest()[:12]}

    def _summary(self, reason: str) -> dict[str, Any]:
        went_on = self.progress.converged_at
        return {
            **self.recorder.summary(),
            "stop_reason": reason,
            **({"converged_at": went_on} if went_on >= 0 else {}),
            "dataset": self.dataset.name,
            "solver": self.config.solver.name,
            "source": self.dataset.source,
            "seed": self.config.seed,
            "wall_time": self.progress.wall_time + time.perf_counter() - self.begin,
            "checkpoint_time": self.progress.checkpoint_time,
        }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
