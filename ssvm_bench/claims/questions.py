"""What a paper leaves open: an option that decides it here, and the runs that settle it.

The questions are in the file ``questions.yaml`` of the paper's folder: which option, with our
default and the other values; the claims and numbers that the answer rests on; or the row of the
bench that is the answer. A value of the option is a variant of the runs, beside those of `cases`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ssvm_bench.claims.cases import variant_of
from ssvm_bench.results.trace import Trace


class Number(NamedTuple):
    """A quantity of a solver after so many iterations, of those in :mod:`.fidelity`."""

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
