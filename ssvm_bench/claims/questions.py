"""What a paper leaves open.

An option decides a `Question` here, and runs settle it. The file ``questions.yaml`` of the paper's
folder gives the option, our default and the other values, and the claims and numbers that the
answer rests on; or the row of the bench that is the answer. Each value of the option is a variant
of the runs, in addition to those of :mod:`.cases`.

A `Number` is a quantity of a run after a given number of iterations. It is taken from the last
evaluated iteration that is not later:

========  ========================================================================================
gap       (P − F) / |P|
primal    P(w)
dual      F(φ)
call      mean seconds of an oracle call so far
========  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.claims.cases import Case, variant_of
from ssvm_bench.claims.claim import Claim, Measured
from ssvm_bench.figures.style import solver_label
from ssvm_bench.results.curves import ensure
from ssvm_bench.results.table import Run
from ssvm_bench.results.words import counts, number, seconds


class Number(NamedTuple):
    """One of the ``QUANTITIES`` of a solver after a given number of iterations."""

    what: str
    solver: str
    after: int

    @property
    def key(self) -> str:
        """Its name among claims."""
        return "_".join(map(str, self))


@dataclass(frozen=True)
class Question:
    """A question that a paper leaves open.

    Attributes
    ----------
    key, question : str
        Its name, and the question in one sentence.
    section, says : str
        Where the paper leaves it open, and what it says there.
    datasets : tuple of str
        The datasets that it is answered on.
    made_by : str
        The command that measures it.
    option : str
        The option that decides it, ``group.name``; empty if the bench answers.
    default, others
        The value in all other runs, and the values that are compared with it.
    claims : tuple of str
        Keys of the claims whose verdicts may depend on it.
    numbers : tuple of Number
        The numbers that are compared as well.
    bench : str
        The quantity of the bench that answers it.
    """

    key: str
    question: str
    section: str
    says: str
    datasets: tuple[str, ...]
    made_by: str
    option: str = ""
    default: Any = None
    others: tuple[Any, ...] = ()
    claims: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    bench: str = ""

    def value(self, run: Run) -> Any:
        """Return the value of the option in a run; traces omit neutral values."""
        return run.options.get(self.option, self.default)

    def varied(self, run: Run) -> bool:
        """Return whether a run has one of the other values."""
        return bool(self.option) and self.value(run) in self.others


# ---- the runs that are compared ---------------------------------------------------------------


def usual(questions: Sequence[Question], runs: Sequence[Run]) -> list[Run]:
    """Return the runs that a paper's claims are judged by: those that vary no question.

    Where every run on a dataset varies a question, all of them are returned.
    """

    def varies(run: Run) -> bool:
        return any(question.varied(run) for question in questions)

    known = {(run.source, run.dataset) for run in runs if not varies(run)}
    return [run for run in runs if not varies(run) or (run.source, run.dataset) not in known]


def sides(
    question: Question, value: Any, questions: Sequence[Question], runs: Sequence[Run]
) -> tuple[list[Run], list[Run]]:
    """Return the runs with the default of a question's option, and those with another value.

    They vary no other question, and both sides have the same datasets, variants and seeds. Solvers
    without working sets ignore the options of those with, so their runs are on both sides.

    Parameters
    ----------
    question : Question
    value
        One of the question's ``others``.
    questions : sequence of Question
        All questions of the paper.
    runs : sequence of Run
        Finished runs.
    """

    def kind(run: Run) -> tuple[Any, ...]:
        return run.source, run.dataset, variant_of(run), run.seed

    others = [other for other in questions if other is not question]
    of = [run for run in runs if run.dataset in question.datasets]
    alike = [run for run in of if not any(other.varied(run) for other in others)]
    ours, theirs = (
        [run for run in alike if question.value(run) == each] for each in (question.default, value)
    )
    common = {*map(kind, ours)} & {*map(kind, theirs)}
    ours, theirs = ([run for run in side if kind(run) in common] for side in (ours, theirs))
    if question.option.startswith("solver."):
        solvers = {run.solver for run in theirs}
        theirs += [run for run in ours if run.solver not in solvers]
    return ours, theirs


# ---- numbers ----------------------------------------------------------------------------------


QUANTITIES: dict[str, tuple[str, str, Callable[[float], str]]] = {
    "gap": ("relative gap", "relative_gap", number),
    "primal": ("primal value", "primal", number),
    "dual": ("dual value", "dual", number),
    "call": ("time of an oracle call", "seconds_per_call", seconds),
}
"""Name → what it is, its column, its format."""

TIMED = "call"
"""The quantity that is about time."""


def number_claim(asked: Number, datasets: Iterable[str]) -> Claim:
    """Return a number as a claim about the datasets, which any value meets."""
    name, _, show = QUANTITIES[asked.what]
    text = f"{name} of {solver_label(asked.solver)} after {asked.after} iterations"
    paper, timed = dict.fromkeys(datasets, ""), asked.what == TIMED
    return Claim(asked.key, "", text, "", paper, partial(_after, asked=asked), show, timed=timed)


def _after(case: Case, asked: Number) -> Measured:
    """Measure a quantity of each repeat."""
    runs = case.repeats(asked.solver)
    if asked.what == TIMED:
        case.timed(runs)
    rows = {}
    for run in runs:
        ensure(run["iteration"][-1] >= asked.after, f"a run ended before iteration {asked.after}")
        rows[run] = int(np.flatnonzero(run["iteration"] <= asked.after)[-1])
    at = [int(run["iteration"][row]) for run, row in rows.items()]
    facts = {} if {*at} == {asked.after} else {"evaluated at iteration": counts(at)}
    return Measured([run[QUANTITIES[asked.what][1]][row] for run, row in rows.items()], facts=facts)
