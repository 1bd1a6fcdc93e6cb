"""Runs that a page shows together, and the names of their data, solvers and problems.

Runs on one problem instance are shown together. On a page that is not of an experiment, runs of one
solver with the same options, but other budgets, evaluation intervals or clocks, are in different
groups: otherwise its curves would differ only in where they end. Runs of different solvers are
together whatever their budgets: a budget determines when a run ends, not what it computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ssvm_bench.config import ALTERED, GENUINE
from ssvm_bench.figures import style
from ssvm_bench.report.contents import Contents
from ssvm_bench.results import words
from ssvm_bench.results.table import (
    NOT_A_CURVE,
    ProblemInstance,
    Run,
    Runs,
    differences,
    grouped,
    named_in,
    weight_in,
)


class Group(NamedTuple):
    """Runs on a problem instance that are shown together, one per configuration and seed.

    ``setting`` distinguishes the group from others on the problem instance, if there are any.
    """

    runs: Runs
    setting: str = ""


Groups: TypeAlias = Mapping[ProblemInstance, Sequence[Group]]


def group(found: Contents) -> dict[ProblemInstance, list[Group]]:
    """Return problem instance → groups; unless these are of an experiment, the largest first."""
    problems = found.runs.groups("problem")
    if found.experiment:
        return {problem: [Group(runs)] for problem, runs in problems.items()}
    made = {problem: list(_groups(runs)) for problem, runs in problems.items()}
    return dict(sorted(made.items(), key=lambda item: _weight(item[1][0].runs), reverse=True))


def _weight(runs: Runs) -> tuple[bool, int, int]:
    """Return a sort key for how much there is to see: real data, solvers, rows."""
    return not mark(runs[0]), len(runs.groups("solver")), sum(map(len, runs))


def _groups(runs: Runs) -> Iterator[Group]:
    if _one_setting_each(runs):
        yield Group(Runs(run for members in runs.groups(_options).values() for run in members))
        return
    settings: dict[tuple[tuple[str, str], ...], Runs] = {}
    for setting, members in runs.groups(_without_budget).items():
        together = _one_setting_each(members)
        settings |= {setting: members} if together else members.groups(_options)
    common = set.intersection(*(set(setting) for setting in settings))
    by_weight = sorted(settings.items(), key=lambda item: _weight(item[1]), reverse=True)
    for setting, members in by_weight:
        only = [f"{key}={value}" for key, value in setting if (key, value) not in common]
        yield Group(members, ", ".join(only))


def _one_setting_each(runs: Runs) -> bool:
    """Tell whether all runs of a solver with the same options of its own have one setting."""
    of_solver = runs.groups(lambda run: _options(run, solver=True))
    return all(len(set(map(_options, used))) == 1 for used in of_solver.values())


def _options(run: Run, solver: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the options, either the solver's or all others, that distinguish curves."""
    named = ((key, str(of)) for key, of in run.options.items() if key not in NOT_A_CURVE)
    return tuple(sorted(pair for pair in named if pair[0].startswith("solver.") == solver))


def _without_budget(run: Run) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in _options(run) if not pair[0].startswith("budget."))


# ---- names ------------------------------------------------------------------------------------

NOT_REAL = {
    ALTERED: ("ALTERED DATA", "files that are not the known ones"),
    "synthetic": ("SYNTHETIC", "generated data"),
}
"""Source that is not the real data → its mark, and what it is."""


def mark(run: Run) -> str:
    """Return the mark of a run on data that papers do not use; else empty."""
    return "" if run.source in GENUINE else NOT_REAL.get(run.source, (run.source,))[0]


def dataset_name(run: Run) -> str:
    """Return the name of the dataset in headings."""
    return style.dataset_name(run.dataset)


def marked_dataset(run: Run) -> str:
    """Return the name of the dataset, with its mark if the data are not the real ones."""
    return f"{dataset_name(run)} ({mark(run)})" if mark(run) else dataset_name(run)


def solver_name(run: Run) -> str:
    """Return the name of the solver in texts."""
    return style.solver_label(run.solver)


def weight_text(run: Run) -> str:
    """Return λ, or ν, as K/n or as a number, whichever is shorter.

    λ = 507608/n is 1 where n = 507608.
    """
    decimal, parts = f"{run.lam:.4g}", words.lam(run.lam, run.n)
    exact = float(decimal) == run.lam or "/" not in parts
    shown = min(parts, decimal, key=len) if exact else parts
    return f"{weight_in(run.fingerprint)} = {shown}"


def weight_and_rule(run: Run) -> str:
    """Return λ, or ν, as a number, with K/n before it if it is one."""
    text = weight_text(run)
    return f"{text} = {run.lam:.4g}" if "/" in text else text


def data_of(run: Run) -> str:
    """Return a sentence on the data of a run: their name, source, sizes and λ."""
    source = style.source_name(run.source, run.dataset)
    size = f"n = {run.n:,}, d = {run.data['d']:,}"
    return f"{dataset_name(run)}, {source}: {size}, {weight_and_rule(run)}."


def titles(groups: Groups) -> dict[ProblemInstance, str]:
    """Return problem instance → title: the dataset, and how it differs from others on that."""
    firsts = {problem: parts[0].runs[0] for problem, parts in groups.items()}
    found: dict[ProblemInstance, str] = {}
    for name, runs in grouped(firsts.values(), dataset_name).items():
        options = [run.options for run in runs]
        hidden = NOT_A_CURVE | {"dataset.name", "dataset.kind", "dataset.n_samples"}
        hidden |= {key for of in options for key in of if not key.startswith("dataset.")}
        parts = (
            [f"n = {run.n:,}" for run in runs],
            [weight_text(run) for run in runs],
            [named_in(run.fingerprint) for run in runs],
        )
        varied = [part for part in parts if len({*part}) > 1]
        others = differences(options, [0] * len(runs), hidden)
        others = [text.replace("dataset.", "").replace(" ", ", ") for text in others]
        columns = zip(map(mark, runs), *varied, others, strict=True)
        texts = [", ".join(filter(None, of_run)) for of_run in columns]
        for k, (run, text) in enumerate(zip(runs, texts, strict=True)):
            before = texts[:k].count(text)
            shown = ", ".join(filter(None, (text, f"data {before + 1}" * bool(before))))
            found[run.problem] = f"{name} ({shown})" if shown else name
    return {problem: found[problem] for problem in groups}
