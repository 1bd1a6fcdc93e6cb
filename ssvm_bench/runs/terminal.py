"""The status output of a run, and its closing table.

Status goes to stderr: one live line on a terminal, one line per evaluated iteration when piped.
Results go to stdout: the closing table and the folder of the run's files. No thread draws in the
background, so drawing never disturbs a time measurement.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ssvm_bench.base import messages
from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.results import words
from ssvm_bench.results.table import differences, flatten, relative_gap

REDRAW_SECONDS = 0.1
"""A live line is redrawn at most this often."""

_NOT_TOLD = frozenset(
    {"seed", "results_dir", "force", "quiet", "dataset.source", "dataset.fingerprint"}
)
"""Options that the ``options`` column leaves out: they have a column or do not matter."""

Row: TypeAlias = Mapping[str, Any]


class Display:
    """Shows the progress of a run; this base class shows nothing (``quiet=true``).

    The runner calls `start` first, `row` after each evaluated iteration, and `finish` if the run
    reaches its end. It may call `message` at any time. `close` leaves the terminal in order,
    whatever has happened.
    """

    def start(self, config: RunConfig, source: str, n: int, d: int, lam: float) -> None:
        """Show what is about to run: n examples, d weights, λ, real or synthetic data."""

    def row(self, row: Row) -> None:
        """Show one row of the trace."""

    def finish(self, summary: Row, folder: Path) -> None:
        """Show the end of the run."""

    def message(self, text: str) -> None:
        """Show a message."""

    def close(self) -> None:
        """End what is shown."""


COLUMNS: dict[str, tuple[str, int, Callable[[Any], str]]] = {
    "iteration": ("iteration", 9, lambda value: f"{value}"),
    "oracle_calls": ("exact calls", 11, lambda value: f"{value:,}"),
    "time": ("time", 9, words.duration),
    "primal": ("primal", 10, lambda value: words.number(value, ".5g", "-")),
    "dual": ("dual", 10, lambda value: words.number(value, ".5g", "-")),
    "gap": ("gap", 8, lambda value: words.number(value, ".1e", "-")),
    "working_set_mean": ("planes", 7, lambda value: words.number(value, ".2f", "-")),
}
"""Trace columns shown in a line: heading, width, format."""

REAL = "real time"
"""The heading of the seconds since the run was called, with loading, compiling and evaluations."""

DEAR = 2.0
"""Evaluations of at least so many seconds that took longer than the solver are remarked on."""

RELATIVE = "relative gap"
"""The heading of gap/max(|primal|, 1e-12) in the closing table."""


class PlainLines(Display):
    """Prints one aligned line per evaluated iteration; for pipes and log files.

    Parameters
    ----------
    console : rich.console.Console
        Where to write.
    clock : callable
        Seconds on a monotonic clock, for the estimate of the time left.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.budget: Budget | None = None
        self.started = clock()
        self.gaps: list[tuple[float, float]] = []
        """Seconds since the start, and the least relative gap until then, of each row."""

    def start(self, config: RunConfig, source: str, n: int, d: int, lam: float) -> None:
        """Print which run begins, on two lines of a narrow terminal, and the heading line."""
        self.budget, self.started = config.budget, self.clock()
        prior = config.prior.text()
        data = f"{config.dataset.name} ({words.source(source)} data)"
        run = f"{config.solver.name} on {data}, seed {config.seed}:"
        about = (
            f"n = {n:,}, d = {d:,}, lam = {words.rule(lam, n)}, "
            f"{f'prior {prior}, ' if prior else ''}clock = {config.clock}"
        )
        fits = cell_len(f"{run} {about}") <= self.console.width
        for line in [f"{run} {about}"] if fits or not self.console.is_terminal else [run, about]:
            self.message(line)
        self.heading()

    def heading(self) -> None:
        """Print the heading line."""
        names = [f"{name:>{width}}" for name, width, _ in COLUMNS.values()]
        self.message(" ".join(names) + f" {'ETA':>8}")

    def row(self, row: Row) -> None:
        """Print the row."""
        self.message(self.cells(row))

    def cells(self, row: Row) -> str:
        """Return the row as a line whose cells are aligned with the heading."""
        cells = [f"{show(row[key]):>{width}}" for key, (_, width, show) in COLUMNS.items()]
        return " ".join(cells) + f" {self.eta(row):>8}"

    def eta(self, row: Row) -> str:
        """Estimate the time until a limit of the budget, or its gap, ends the run; ``?``: unknown.

        Of a limit, the share that is spent decides. A gap is expected to fall on as fast as in the
        second half of the time, in factors a second.
        """
        if self.budget is None:
            return "?"
        elapsed, gap = self.clock() - self.started, _relative(row)
        limits = {"iteration": self.budget.max_iterations, "time": self.budget.max_seconds}
        shares = [row[key] / limit for key, limit in limits.items() if limit]
        share = min(max(shares, default=0.0), 1.0)
        left = elapsed * (1 - share) / share if share > 0 else math.inf
        if self.budget.gap_tol and math.isfinite(gap):
            self.gaps.append((elapsed, min(gap, self.gaps[-1][1] if self.gaps else math.inf)))
            left = min(self._until(self.budget.gap_tol), left)  # NaN stays
        if row["iteration"] == 0 or not math.isfinite(left):
            return "?"
        return words.minutes(left)

    def _until(self, tol: float) -> float:
        """Return the seconds until the gap is ``tol`` at its present decay; NaN: it has none."""
        (elapsed, gap), half = self.gaps[-1], self.gaps[-1][0] / 2
        if gap <= tol:
            return 0.0
        since, before = self.gaps[bisect_left(self.gaps, half, key=itemgetter(0))]
        decay = math.log(before / gap)
        return (elapsed - since) * math.log(gap / tol) / decay if decay > 0 else math.nan

    def message(self, text: str) -> None:
        """Print the text without wrapping or markup."""
        self.console.print(Text(text), soft_wrap=True)


class LiveLine(PlainLines):
    """Redraws one line in place; for terminals."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self.live: Live | None = None
        self.drawn = -math.inf

    def close(self) -> None:
        """Leave the last state of the line on the terminal."""
        if self.live is not None:
            self.live.update(self.line, refresh=True)
            self.live.stop()
            self.live = None

    def heading(self) -> None:
        """Print the heading line, and open the live line below it."""
        super().heading()
        self.line = Text()
        self.live = Live(self.line, console=self.console, auto_refresh=False)
        self.live.start()

    def row(self, row: Row) -> None:
        """Redraw the line, unless that was done less than `REDRAW_SECONDS` ago."""
        self.line = Text(self.cells(row), no_wrap=True, overflow="crop")
        if self.live is not None and self.clock() - self.drawn >= REDRAW_SECONDS:
            self.live.update(self.line, refresh=True)
            self.drawn = self.clock()

    def finish(self, summary: Row, folder: Path) -> None:
        """Close the line."""
        self.close()


@contextmanager
def make_display(quiet: bool = False) -> Iterator[Display]:
    """Yield the display that fits: a silent one, a live line on a terminal, or plain lines.

    The display also shows the messages that are logged in the block.
    """
    display = Display()
    if not quiet:
        console = Console(stderr=True, highlight=False)
        live = console.is_terminal and not console.is_dumb_terminal
        display = LiveLine(console) if live else PlainLines(console)
    with messages.shown_by(display.message), closing(display):
        yield display


def make_display_in_python(shows: bool, quiet: bool = False) -> AbstractContextManager[Display]:
    """Return the display of a run that a Python program makes: of warnings alone if not ``shows``.

    The warnings go to stderr (:mod:`ssvm_bench.base.messages`), unless it is ``quiet``.
    """
    return make_display(quiet) if shows or quiet else nullcontext(Display())


def closing_table(runs: Sequence[tuple[RunConfig, str, Row]]) -> Table:
    """Return the table of the runs: vertical for one run, one line per run for several.

    Parameters
    ----------
    runs : list of (RunConfig, status, summary)
        A summary may lack entries (a run that failed early); they are shown as ``-``.
    """
    losses, options = _held_out(runs), _options(runs)
    entries = [
        _entries(*run, of if any(options) else None, losses)
        for run, of in zip(runs, options, strict=True)
    ]
    if len(entries) == 1:
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, value in entries[0].items():
            table.add_row(name, value)
        return table
    table = Table(box=box.ASCII2, show_edge=False, pad_edge=False)
    numeric = [*(name for name, _, _ in COLUMNS.values()), REAL, RELATIVE, *map(_named, losses)]
    for name in entries[0] if entries else ():
        table.add_column(name, justify="right" if name in numeric else "left", no_wrap=True)
    for entry in entries:
        table.add_row(*entry.values())
    return table


def best_lines(runs: Sequence[tuple[RunConfig, str, Row]]) -> Iterator[str]:
    """Yield for each set of held-out examples which solver and options have the lowest loss.

    It is the loss on the validation examples, if there are any, as a mean over the seeds.
    """
    of_data: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for (config, _, summary), options in zip(runs, _options(runs), strict=True):
        named = of_data.setdefault((_data(config, summary), _held_out_data(config)), {})
        named.setdefault(f"{config.solver.name} {options}".strip(), []).append(summary)
    for (data, _), summaries in of_data.items():
        for loss in sorted(_held_out(runs), key=PREFERRED.__ne__):
            found = {
                name: [float(of[loss]) for of in mine]
                for name, mine in summaries.items()
                if all(of.get(loss) is not None for of in mine)
            }
            if len(found) > 1:
                means = {name: sum(values) / len(values) for name, values in found.items()}
                best = min(means, key=means.__getitem__)
                of_seeds = f" (mean of {len(found[best])} seeds)" * (len(found[best]) > 1)
                yield f"best on {data}: {best}, {_named(loss)} {means[best]:.5g}{of_seeds}"
                break


def _held_out_data(config: RunConfig) -> str:
    """Return what is equal for equal held-out examples: the fingerprint of files, else options."""
    options = vars(config.dataset)
    chosen = {name: value for name, value in options.items() if name not in _OF_TRAINING}
    return str(options.get("fingerprint") or chosen)


_OF_TRAINING = frozenset({"n_samples", "source", "trust"})
"""Options of a dataset that leave the held-out examples as they are."""

PREFERRED = "validation_loss"
"""The held-out loss by which options are chosen, if there is one."""


def _held_out(runs: Sequence[tuple[RunConfig, str, Row]]) -> list[str]:
    """Return the names of the held-out losses in the summaries of runs."""
    names = {name for _, _, summary in runs for name in summary if name.endswith("_loss")}
    return sorted(names - {"train_loss"}, reverse=True)


def _named(loss: str) -> str:
    """Return the heading of a loss."""
    return loss.replace("_", " ")


def _options(runs: Sequence[tuple[RunConfig, str, Row]]) -> list[str]:
    """Return, for each of several runs, the options that tell it from its solver's other runs."""
    if len(runs) < 2:
        return [""] * len(runs)
    configs = [config for config, _, _ in runs]
    groups = [(config.solver.name, config.dataset.name) for config in configs]
    options = [flatten(config.resolved()) for config in configs]
    return differences(options, groups, _NOT_TOLD)


def _data(config: RunConfig, summary: Row) -> str:
    return f"{config.dataset.name} ({words.source(summary.get('source', config.source))})"


def _entries(
    config: RunConfig, status: str, summary: Row, options: str | None, losses: Sequence[str]
) -> dict[str, str]:
    """Return heading → text of one run; ``options`` distinguish it from its solver's other runs."""
    shown = {
        name: show(summary[key]) if key in summary else "-"
        for key, (name, _, show) in COLUMNS.items()
    }
    primal_on = {name: shown.pop(name) for name in [*shown][[*COLUMNS].index("primal") :]}
    shown |= {REAL: words.duration(summary.get("wall_time")), **primal_on}
    planes = shown.pop("planes")
    shown |= {RELATIVE: words.number(_relative(summary), ".2g", "-"), "planes": planes}
    shown |= {_named(loss): words.number(summary.get(loss), ".5g", "-") for loss in losses}
    ended = str(summary.get("stop_reason") or status)
    if ended.startswith("max_") and not config.solver.has_dual:  # else the gap says so
        ended += ", not converged"
    if _fell_short(config, summary):
        ended += f", before budget.gap_tol={config.budget.gap_tol:g}"
    elif ended.startswith("max_") and _relative(summary) <= config.budget.gap_tol:
        ended += f", at budget.gap_tol={config.budget.gap_tol:g}, which was reached in the same row"
    if status == "skipped":
        ended += " (finished before)"
    head = {"solver": config.solver.name}
    if options is not None:
        head["options"] = options
    head |= {"dataset": _data(config, summary), "seed": str(config.seed)}
    return {**head, **shown, "stopped by": ended}


def _relative(summary: Row) -> float:
    """Return the gap that ``budget.gap_tol`` and targets are about; NaN: it is not known."""
    if not {"primal", "gap"} <= summary.keys():
        return math.nan
    return float(relative_gap(summary["primal"], summary["gap"]))


def _fell_short(config: RunConfig, summary: Row) -> bool:
    """Tell whether another limit of the budget ended a run before the gap that it asks for."""
    asked, ended = config.budget.gap_tol, str(summary.get("stop_reason"))
    return 0 < asked < _relative(summary) and ended.startswith("max_")


def short_lines(runs: Sequence[tuple[RunConfig, str, Row]]) -> Iterator[str]:
    """Yield for each limit that ended runs before the gap that they ask for how they get there."""
    short = [str(of["stop_reason"]) for config, _, of in runs if _fell_short(config, of)]
    for limit in dict.fromkeys(short):
        of_several = f" of {short.count(limit)} of {len(runs)} runs" * (len(runs) > 1)
        yield (
            f"budget.{limit} was spent{of_several} before budget.gap_tol was reached: raise it, or "
            f"set budget.{limit}=null"
        )


def evaluation_lines(runs: Sequence[tuple[RunConfig, str, Row]]) -> Iterator[str]:
    """Yield for the run whose evaluations took most how to make fewer, if its solver took less."""
    dear = []
    for config, status, summary in runs:
        spent, real = (summary.get(name) for name in ("eval_time", "wall_time"))
        if status != "finished" or spent is None or real is None or spent < DEAR:
            continue
        solver = summary["time"] if config.clock == "wall" else real - spent
        if spent > solver:
            dear.append((spent, solver, config.eval.every))
    if dear:
        spent, solver, every = max(dear)
        of_several = f" of {len(dear)} of {len(runs)} runs" * (len(runs) > 1)
        most = "up to " * (len(dear) > 1)
        yield (
            f"evaluations{of_several} took {most}{words.duration(spent)}, longer than the solver "
            f"({words.duration(solver)}): each calls the oracle for every example, off the clock. "
            f"eval.every={10 * every} makes fewer"
        )


def result_lines(
    runs: Sequence[tuple[RunConfig, str, Row]], folders: Sequence[Path]
) -> Iterator[str]:
    """Yield the result of each run in one line; parameters are those of `print_results`."""
    for run, options, folder in zip(runs, _options(runs), folders, strict=True):
        entries = _entries(*run, None, _held_out([run]))
        of = f"{entries.pop('solver')} {options}".strip()
        of += f" on {entries.pop('dataset')}, seed {entries.pop('seed')}"
        told = [f"{name} {text}" for name, text in entries.items() if text != "-"]
        yield f"{of}: {', '.join(told)}: {folder}"


def print_results(runs: Sequence[tuple[RunConfig, str, Row]], folders: list[Path]) -> None:
    """Print the closing table and the folder (of several runs: the common one) to stdout."""
    # Wide enough for the table: a narrow terminal wraps its lines, but no digit is cut off.
    console = Console(highlight=False, width=200)
    console.print(closing_table(runs))
    files = f"files: {os.path.commonpath(folders)}"
    for line in (*best_lines(runs), files, *short_lines(runs), *evaluation_lines(runs)):
        console.print(Text(line), soft_wrap=True)
