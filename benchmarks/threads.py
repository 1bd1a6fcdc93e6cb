"""``python -m benchmarks.threads``: what threads gain, measured here and scheduled for more cores.

A pass is one call of the oracle for every term at one w, with the sum of the planes (``exact``), or
without it, as an evaluation does (``value``). Passes by one thread and by ``--threads`` are made in
turn, and their medians compared, in wall time: on a machine with other load, this says little.

The schedule needs one thread only. A pass is made in small parts, and the CPU time of each part's
calls and of its sum is taken. Then P threads are simulated by the rules of
:mod:`ssvm_bench.base.threads`: parts get smaller, sums are made in order and one at a time, and
what an interpreter does, one thread does at a time. That is to take a part and to call its kernel,
and for the oracles of graphs all of a call that is no kernel. Caches and memory are not simulated:
cores are taken to be as fast together as alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import click
import numpy as np

from benchmarks.passes import loaded
from benchmarks.report import THREADS, Measurement, from_samples
from ssvm_bench.base import threads
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.compiler import CompiledKernel
from ssvm_bench.base.threads import Add, Call, Team
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import alpha_expansion, mincut
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.caller import Caller
from ssvm_bench.oracles.objective import STRUCTURAL_SVM
from ssvm_bench.runs import components

DATASETS = "stanford", "weizmann", "mnist", "ocr", "conll2000", "usps"
CORES = 2, 4, 8, 16, 32, 64
ROUNDS = 9

SOLVERS = {"mnist": (("bmrm",), ("one_slack", "solver.cache=0"))}
"""Dataset → solvers whose iterations are timed, with options: all they do with terms is to call."""

ITERATIONS = 30

_TAKING = 1e-5
"""Seconds of the interpreter to take the next part, beside those to call its kernel."""

_WAKING = 5e-5
"""Seconds until a thread that waits for work begins."""

_FINE = 128
"""Parts of the pass that is timed."""

_USUAL = 16
"""Parts of a pass by a few threads."""

_LONG = 5e-5
"""A call of one item that takes longer is not one of a kernel for many."""


_FEW = 20


class Timed(Team):
    """One thread that does pieces of work in small parts, and times them.

    Attributes
    ----------
    pieces : list of Piece
        Those of a pass, in order.
    """

    def __init__(self, fine: int = _FINE) -> None:
        super().__init__(2)  # with one, the sum would be a part of the calls
        self.fine = fine
        self.pieces: list[Piece] = []

    def share(self, count: int, call: Call, add: Add | None = None, by_item: bool = False) -> float:
        """See `Team`."""
        start, parts = thread_time(), []
        for _ in range(_FEW):
            call(0, 0, 1)
        dispatch = (thread_time() - start) / _FEW
        for begin in range(0, count, size := max(count // self.fine, 1)):
            end, start = min(begin + size, count), thread_time()
            call(0, begin, end)
            called = thread_time()
            if add is not None:
                add(begin, end)
            parts.append((begin, called - start, thread_time() - called))
        items, calls, sums = np.array(parts).T
        self.pieces.append(Piece(count, items, calls, sums, dispatch, by_item))
        return 0.0


class Piece(NamedTuple):
    """A piece of work, in parts: an item is a term, or a feature whose weights are packed.

    Attributes
    ----------
    n : int
        Number of items.
    items, calls, sums : ndarrays
        First item, and CPU seconds of the calls and of the sum, of each part.
    dispatch : float
        Seconds to call a kernel: those of a call for one item.
    by_item : bool
        See `Team.share`.
    """

    n: int
    items: np.ndarray
    calls: np.ndarray
    sums: np.ndarray
    dispatch: float
    by_item: bool

    @property
    def seconds(self) -> float:
        """Seconds of the calls and of the sum."""
        return float(self.calls.sum() + self.sums.sum())


class Pass(NamedTuple):
    """The pieces of a pass, and the seconds of all that is in none."""

    pieces: list[Piece]
    others: float


def timed(work: Callable[[], object], rounds: int) -> Pass:
    """Time a pass in one thread; return the least of some rounds."""
    found, others = [], []
    for _ in range(rounds):
        team, start = Timed(), thread_time()
        with team.working():
            work()
        inside = sum(piece.seconds + _FEW * piece.dispatch for piece in team.pieces)
        others.append(thread_time() - start - inside)
        found.append(team.pieces)
    return Pass([_least(pieces) for pieces in zip(*found, strict=True)], max(min(others), 0.0))


def _least(pieces: tuple[Piece, ...]) -> Piece:
    """Return what a piece takes at least, without the calls of its kernels."""
    calls = np.min([piece.calls for piece in pieces], axis=0)
    sums = np.min([piece.sums for piece in pieces], axis=0)
    dispatch = min(piece.dispatch for piece in pieces)
    each = dispatch if dispatch < _LONG else 0.0
    calls = np.maximum(calls - each, 1e-9)
    sums = np.maximum(sums - each, 0.0) if sums.any() else sums
    return pieces[0]._replace(calls=calls, sums=sums, dispatch=each)


def held(work: Callable[[], object], rounds: int) -> float:
    """Return the share of the calls of a pass over graphs in which no kernel is executed."""
    inside = [0.0]

    def wrapped(kernel: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = thread_time()
            try:
                return kernel(*arguments)
            finally:
                inside[0] += thread_time() - start

        return call

    before = {}
    for module in (alpha_expansion, mincut):
        for name, value in vars(module).copy().items():
            if isinstance(value, CompiledKernel):
                before[module, name] = value
                setattr(module, name, wrapped(value))
    try:
        shares = []
        for _ in range(rounds):
            inside[0], team = 0.0, Timed(fine=_USUAL)
            with team.working():
                work()
            calls = sum(piece.calls.sum() + _FEW * piece.dispatch for piece in team.pieces)
            shares.append(1.0 - inside[0] / calls)
        return max(min(shares), 0.0)
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


def scheduled(P: int, took: Piece, share: float) -> float:
    """Return the seconds of a piece of work by P threads.

    ``share`` is the part of a call that only one thread does at a time.
    """
    count, at = took.n, np.append(took.items, took.n)
    called, added = (np.concatenate(([0.0], np.cumsum(of))) for of in (took.calls, took.sums))

    def between(total: np.ndarray, begin: int, end: int) -> float:
        return float(np.interp(end, at, total) - np.interp(begin, at, total))

    adds, free = took.sums.any(), np.zeros(P)
    interpreter = turn = 0.0
    taken, least = 0, 1
    while taken < count:
        number, left = int(free.argmin()), count - taken
        size = left // (P * (threads._PARTS if taken else threads._FIRST))
        begin, taken = taken, taken + min(max(size, least), left)
        takes = between(called, begin, taken)
        interpreter = max(interpreter, free[number]) + _TAKING + took.dispatch + share * takes
        free[number] = done = interpreter + (1.0 - share) * takes
        if adds:
            turn = max(turn, done) + took.dispatch + between(added, begin, taken)
            free[number] = turn  # the thread whose turn it is adds
        if begin == 0:
            least = max(int(threads._LEAST_SECONDS * taken / (takes + took.dispatch)), 1)
            free[1:] = free[0] + _WAKING
            each = takes / taken
            too_short = took.by_item and each < threads._LEAST_ITEM
            if too_short or (count - taken) * each <= 2 * threads._LEAST_SECONDS:
                free[1:], least = np.inf, count
    return float(max(free[np.isfinite(free)].max(), turn))


class OnePass(NamedTuple):
    """A pass over all terms of a problem, at a w of its own."""

    kind: str
    dataset: Dataset
    oracle: Oracle
    work: Callable[[], object]


def passes(call: Sequence[str]) -> Iterator[OnePass]:
    """Yield the exact pass and the evaluation of the problem that overrides choose."""
    (config,) = compose_runs(call)
    dataset = loaded(config.dataset)
    oracle = components.oracle_of(config.oracle, dataset)
    w = np.zeros(oracle.d)
    for _ in range(3):
        w -= 0.3 * oracle.risk(w).star
    for kind, with_plane in (("exact", True), ("value", False)):
        yield OnePass(kind, dataset, oracle, partial(oracle.risk, w, with_plane))


def in_turn(work: Callable[[], object], count: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return the wall seconds of passes by one thread, and by several."""
    with Team(count) as team:
        took: dict[Team, list[float]] = {threads.ALONE: [], team: []}
        for _ in range(rounds):
            for one, seconds in took.items():
                start = perf_counter()
                with one.working():
                    work()
                seconds.append(perf_counter() - start)
    return took[threads.ALONE], took[team]


def iterations(call: Sequence[str], solver: str, *options: str) -> Callable[[], None]:
    """Return what makes the first iterations of a solver, from its start, at λ = 1/n."""
    (config,) = compose_runs((*call, f"solver={solver}", *options, "lam=1/n", "clock=work"))
    dataset = loaded(config.dataset)
    oracle, lam = components.oracle_of(config.oracle, dataset), config.lam_of(dataset.n)
    components.warm_up(config, dataset, called=True)

    def work() -> None:
        team = threads.current()
        called = oracle.called_by(Caller(team=team)) if team is not threads.ALONE else oracle
        built = components.build_solver(config, Problem(called, lam), Clock("work"))
        for _ in range(ITERATIONS):
            built.iterate()

    return work


def measure_threads(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure passes by two threads, if the dataset that overrides choose has a max-oracle.

    Where `SOLVERS` names some, their iterations are measured as well.
    """
    if compose_runs(call)[0].oracle.family != STRUCTURAL_SVM:
        return
    for one in passes(call):
        what = {"exact": "exact pass", "value": "evaluation"}[one.kind]
        yield _by_two(one.dataset, what, one.work)
    for solver in SOLVERS.get(one.dataset.name, ()):
        what = f"{ITERATIONS} iterations of {', '.join(solver)}"
        yield _by_two(one.dataset, what, iterations(call, *solver))


def _by_two(dataset: Dataset, what: str, work: Callable[[], object]) -> Measurement:
    """Return the wall time of some work by two threads, relative to that by one."""
    alone, together = in_turn(work, 2, ROUNDS)
    ratios = [several / single for several, single in zip(together, alone, strict=True)]
    quantity, seconds = THREADS.format(what), median(together)
    return from_samples(dataset.name, dataset.source, quantity, ratios[1:], seconds=seconds)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("datasets", nargs=-1)
@click.option("--threads", "count", type=click.IntRange(2), default=2, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True)
def main(datasets: tuple[str, ...], count: int, rounds: int) -> None:
    """Compare passes by one thread and by several, and schedule them for up to 64 cores."""
    columns = "dataset", "pass", "one thread, ms", "sums", "interpreter", f"here, {count}"
    click.echo(f"| {' | '.join([*columns, *map(str, CORES)])} |")
    click.echo(f"|{'---|' * (len(columns) + len(CORES))}")
    for name in datasets or DATASETS:
        for one in passes((f"dataset={name}",)):
            alone, together = (median(seconds) for seconds in in_turn(one.work, count, rounds))
            took = timed(one.work, rounds)
            share = held(one.work, rounds) if one.dataset.structure == "graph" else 0.0
            pieces, others = took
            calls = sum(float(piece.calls.sum()) for piece in pieces)
            sums = sum(float(piece.sums.sum()) for piece in pieces)
            total = calls + sums + others
            several = (others + sum(scheduled(P, of, share) for of in pieces) for P in CORES)
            ratios = [total / seconds for seconds in several]
            cells = [name, one.kind, f"{1e3 * total:.1f}", f"{sums / total:.0%}"]
            cells += [f"{(others + share * calls) / total:.0%}", f"{alone / together:.2f}"]
            click.echo(f"| {' | '.join([*cells, *(f'{ratio:.1f}' for ratio in ratios)])} |")


if __name__ == "__main__":
    main()
