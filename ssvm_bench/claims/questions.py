"""What a paper leaves open: an option that decides it here, and the runs that settle it.

The questions are in the file ``questions.yaml`` of the paper's folder: which option, with our
default and the other values; the claims and numbers that the answer rests on; or the row of the
bench that is the answer. A value of the option is a variant of the runs, beside those of `cases`.

Numbers are those of a run after so many iterations, read off the last evaluated iteration that is
not later:

========  ========================================================================================
gap       (P − F) / |P|
primal    P(w)
dual      F(φ)
call      seconds of an oracle call up to there
========  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, Runs, variant_of
from ssvm_bench.claims.claim import Claim, Measured, UnmeasurableError, measure
from ssvm_bench.figures.style import solver_label
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import counts, number, seconds


class Number(NamedTuple):
    """A quantity of a solver after so many iterations, one of ``QUANTITIES``."""

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
        Its name here, and the question in one sentence.
    section, says : str
        Where the paper leaves it open, and what it says there.
    datasets : tuple of str
        The datasets that it is asked on.
    made_by : str
        The command that measures it.
    option : str
        The option that decides it, ``group.name``; empty if the bench answers.
    default, others
        The value that all other runs have, and those that they are compared with.
    claims : tuple of str
        Keys of the claims whose verdicts may depend on it.
    numbers : tuple of Number
        What else is compared.
    bench : str
        The quantity of the bench that answers.
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

    def value(self, run: Trace) -> Any:
        """Return the value of the option in a run; neutral values are left out of traces."""
        group, _, name = self.option.partition(".")
        return run.metadata["config"].get(group, {}).get(name, self.default)

    def varied(self, run: Trace) -> bool:
        """Tell whether a run has one of the other values."""
        return bool(self.option) and self.value(run) in self.others


def question(key: str, said: dict[str, Any]) -> Question:
    """Return a question of the file, given its name and what is said of it there."""
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    numbers = tuple(Number(**number) for number in said.get("numbers", ()))
    return Question(key, **{**said, **lists, "numbers": numbers})


def usual(questions: Sequence[Question], runs: Sequence[Trace]) -> list[Trace]:
    """Return the runs that a paper's claims are judged by: those that vary no question.

    Where all runs on a dataset vary one, it is these.
    """
    varies = [any(question.varied(run) for question in questions) for run in runs]
    known = {_place(run) for run, varied in zip(runs, varies, strict=True) if not varied}
    return [
        run
        for run, varied in zip(runs, varies, strict=True)
        if not (varied and _place(run) in known)
    ]


def _place(run: Trace) -> tuple[str, str]:
    data = run.metadata["dataset"]
    return str(data["source"]), str(data["name"])


def sides(
    question: Question, value: Any, questions: Sequence[Question], runs: Sequence[Trace]
) -> tuple[list[Trace], list[Trace]]:
    """Return the runs with the default of a question's option, and those with another value.

    They vary nothing else, and have datasets, variants and seeds in common. Solvers without working
    sets ignore the options of those that have them, so their runs are on both sides.

    Parameters
    ----------
    question : Question
        What is asked.
    value
        One of its ``others``.
    questions : sequence of Question
        All of the paper.
    runs : sequence of Trace
        Finished runs.
    """
    others = [other for other in questions if other is not question]
    alike = [
        run
        for run in runs
        if run.metadata["dataset"]["name"] in question.datasets
        and not any(other.varied(run) for other in others)
    ]
    usual = [run for run in alike if question.value(run) == question.default]
    changed = [run for run in alike if question.value(run) == value]
    common = {_kind(run) for run in usual} & {_kind(run) for run in changed}
    usual, changed = ([run for run in side if _kind(run) in common] for side in (usual, changed))
    if question.option.startswith("solver."):
        solvers = {run.metadata["config"]["solver"]["name"] for run in changed}
        changed += [run for run in usual if run.metadata["config"]["solver"]["name"] not in solvers]
    return usual, changed


def _kind(run: Trace) -> tuple[Any, ...]:
    """Return what runs that are compared have in common: dataset, variant and seed."""
    return (*_place(run), variant_of(run), int(run.metadata["config"]["seed"]))


# ---- numbers ----------------------------------------------------------------------------------


QUANTITIES: dict[str, tuple[str, Callable[[pd.Series], float], Callable[[float], str]]] = {
    "gap": ("relative gap", lambda row: row["gap"] / abs(row["primal"]), number),
    "primal": ("primal value", lambda row: row["primal"], number),
    "dual": ("dual value", lambda row: row["dual"], number),
    "call": (
        "time of an oracle call",
        lambda row: row["oracle_time"] / row["oracle_calls"],
        seconds,
    ),
}
"""What it is, from a row of the trace, and as text."""

TIMED = "call"
"""The quantity that is about time."""


def number_claim(asked: Number, datasets: Iterable[str]) -> Claim:
    """Return a number as a claim about datasets that holds whatever it is."""
    name, _, show = QUANTITIES[asked.what]
    text = f"{name} of {solver_label(asked.solver)} after {asked.after} iterations"
    paper = dict.fromkeys(datasets, "")
    timed = asked.what == TIMED
    return Claim(asked.key, "", text, "", paper, _after(asked), show, timed=timed)


@measure
def _after(case: Case, asked: Number) -> Measured:
    """Measure a quantity of each repeat."""
    runs = Runs(asked.solver)
    found = case.timed(runs)[0] if asked.what == TIMED else runs.by_seed(case)
    values, at = [], []
    for run in found.values():
        iterations = run.frame["iteration"].to_numpy(int)
        if iterations[-1] < asked.after:
            raise UnmeasurableError(f"a run ended before iteration {asked.after}")
        row = run.frame[iterations <= asked.after].iloc[-1]
        values.append(float(QUANTITIES[asked.what][1](row)))
        at.append(int(row["iteration"]))
    note = "" if set(at) == {asked.after} else f"evaluated at iteration {counts(at)}"
    return Measured(np.array(values), note=note)
