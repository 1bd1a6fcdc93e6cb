"""What is measured: calls of the measuring functions, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from benchmarks.report import STREAM_REPEATS, Measurement

FUNCTIONS = {
    "processes": "measure_processes",
    "passes": "measure_passes",
    "checks": "measure_checks",
    "graphs": "measure_graphs",
    "rivals": "measure_rivals",
    "first_sweep": "measure_first_sweep",
    "quadratic": "measure_qps",
    "coordinate": "measure_coordinate",
    "gaps": "measure_gaps",
    "streams": "measure_streams",
    "transductive": "measure_transductive",
    "chunking": "measure_chunking",
    "estimator": "measure_estimator",
    "serving": "measure_serving",
    "dynamic_programs": "measure_dynamic_programs",
    "several_models": "measure_several_models",
    "threads": "measure_threads",
    "first_minute": "measure_first_minute",
}
"""The measuring function of each module; it says which datasets it has no rows for."""

OTHERS = tuple(name for name in FUNCTIONS if name not in ("passes", "transductive"))

SOLVERS = (
    *("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg"),
    *("mpbcfw_gram", "mpbcfw_pairwise", "mpbcfw_fast"),
)
"""The other ones differ from these in which terms they visit, not in how."""


class Part(NamedTuple):
    """What is measured on one dataset.

    Attributes
    ----------
    solvers : sequence of str
        Whose passes; none if empty.
    modules : sequence of str
        What else, by the names of `FUNCTIONS`.
    most_repeats : int
        Fresh runs of each solver, at most.
    cold : bool
        Whether compilation is measured, where that is wanted.
    """

    solvers: Sequence[str] = SOLVERS
    modules: Sequence[str] = OTHERS
    most_repeats: int = 1000
    cold: bool = True


_MP = ("bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg")

MATTERS = {
    "usps": Part(
        (*_MP, "mpbcfw_fast"),
        (
            *("processes", "checks", "rivals", "quadratic", "coordinate", "gaps", "estimator"),
            "serving",
        ),
        cold=False,
    ),
    "ocr": Part(
        (*_MP, "mpbcfw_fast"), ("processes", "first_minute", "checks", "coordinate", "gaps")
    ),
    "weizmann": Part((*_MP, "mpbcfw_fast"), ("processes", "checks", "graphs", "gaps"), cold=False),
    "stanford": Part(_MP, ("checks", "graphs", "gaps", "threads"), most_repeats=1),
    "mnist": Part(("fw",), ("streams", "gaps", "threads")),
    "adult": Part((), ("first_sweep", "coordinate")),
    "abalone": Part((), ("first_sweep", "coordinate")),
    "conll2000": Part((), ("chunking", "estimator", "serving", "threads")),
    "plates": Part((), ("dynamic_programs",)),
    "landmarks": Part((), ("dynamic_programs",)),
    "ssl_digit1": Part((), ("transductive",)),
    "davis_bmx_trees": Part((), ("transductive",)),
    "davis_car_shadow": Part((), ("transductive",)),
}
"""The part that takes some eight minutes: what has a target, start-up and compilation."""

TRANSDUCTIVE = ("ssl_", "davis_", "moons", "scribbles")
"""How the names of datasets begin that have another problem than a structural SVM's."""


def part_of(name: str) -> Part:
    """Return all that is measured on a dataset."""
    return Part((), ("transductive",)) if name.startswith(TRANSDUCTIVE) else Part()


FEW_QPS = 3
"""Sizes of inner QPs that belong to it; the fourth takes longer than these."""

FEW_GAPS = 2
"""Rows of times to a gap; BMRM, whose row is the third on MNIST, takes minutes."""

FEW_STREAMS = 2
"""Lengths of streams that do; to write the other ones takes most of an hour."""


class Job(NamedTuple):
    """One call of a measuring function.

    Attributes
    ----------
    subject : str
        The dataset.
    module : str
        Where the function is, a key of `FUNCTIONS`.
    arguments : tuple
        What it is called with; JSON can hold it.
    most : int, optional
        It is stopped after so many rows.
    """

    subject: str
    module: str
    arguments: tuple[Any, ...]
    most: int | None = None

    @property
    def title(self) -> str:
        """What a user sees of it."""
        return f"{self.subject}: {self.module}"

    def rows(self, package: str = "benchmarks") -> Iterator[Measurement]:
        """Measure, row by row, with the modules of a package."""
        module = import_module(f"{package}.{self.module}")
        return islice(getattr(module, FUNCTIONS[self.module])(*self.arguments), self.most)


def jobs(
    parts: dict[str, Part],
    calls: dict[str, tuple[str, ...]],
    passes: int,
    repeats: int,
    cold: bool,
    few: bool,
) -> list[Job]:
    """Return the calls to make.

    Those that start processes come first, before data are loaded: a child's peak memory is never
    below that of the process it came from.

    Parameters
    ----------
    parts, calls : dict
        Dataset → what to measure, and the overrides that choose it.
    passes, repeats : int
        Iterations of each solver, and fresh runs.
    cold : bool
        Also compile with an empty cache.
    few : bool
        Leave out the largest QPs, and the longest streams.
    """
    first, streams, then = [], [], []
    for name, part in parts.items():
        call = calls[name]
        if "processes" in part.modules:
            first.append(Job(name, "processes", ({name: call}, cold and part.cold)))
        if part.solvers:
            fresh = min(repeats, part.most_repeats)
            then.append(Job(name, "passes", (call, part.solvers, passes, fresh)))
        if "streams" in part.modules:
            repeats_of = STREAM_REPEATS[:FEW_STREAMS] if few else STREAM_REPEATS
            streams.append(Job(name, "streams", (call, repeats_of)))
        for module in part.modules:
            if module not in ("processes", "streams"):
                most = {"quadratic": FEW_QPS, "gaps": FEW_GAPS}.get(module) if few else None
                then.append(Job(name, module, (call,), most))
    return [*first, *streams, *then]
