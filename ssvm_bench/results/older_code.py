"""Runs of older code: of runs that differ only in the code of a component, the newest count.

Each state of a plug-in's file gives its runs a hash of their own, so that older runs stay beside
the newer ones. They are no repeats of one another. Code is newer than other code if the last of its
runs was started later. Runs that do not say of which code they are (those of version 1.0) count as
of older code beside runs of a plug-in, except in the same folder; beside others they stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ssvm_bench.results import words
from ssvm_bench.results.table import CODE, Run, differing_options, grouped, instance_of

_ANY = (CODE, "clock", "budget.", "eval.", "dataset.")
"""Beginnings of the options in which runs may differ besides the code."""

NAMED = 3
"""The largest number of folders that a message names."""


def among(runs: Sequence[Run]) -> list[Run]:
    """Return those of some runs that newer code has made again, with the same options and data."""
    found: list[Run] = []
    for of_curve in _curves(runs):
        known = (run for run in of_curve if run.code)
        newest = max(known, key=lambda run: str(run.metadata.get("started") or ""))
        found += _others(of_curve, newest)
    return found


def beside(runs: Sequence[Run], candidates: Sequence[Run]) -> list[Run]:
    """Return those of some candidates that differ from one of these runs only in their code."""
    shown = {id(run) for run in runs}
    found: list[Run] = []
    for of_curve in _curves([*runs, *candidates]):
        mine = [run for run in of_curve if id(run) in shown and run.code]
        found += _others([run for run in of_curve if id(run) not in shown], *mine[:1])
    return found


def _others(runs: Sequence[Run], of: Run | None = None) -> list[Run]:
    """Return those of some runs that are of other code than a run."""
    if of is None:
        return []
    is_plug_in = any(isinstance(version, str) for version in of.code.values())
    seen = [run for run in runs if run.folder.parent != of.folder.parent]
    return [run for run in seen if run.code != of.code and (run.code or is_plug_in)]


def _curves(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield the runs that differ only in their code, seed, budget, evaluation or clock."""
    solvers = grouped(runs, lambda run: run.solver).values()
    some = [run for of in solvers if len({str(run.code) for run in of}) > 1 for run in of]
    data = [instance_of(run.metadata, with_code=False) for run in some]
    around, within = differing_options(some, data, lambda option: option.startswith(_ANY))
    keys = [*zip(data, (run.solver for run in some), around, within, strict=True)]
    for places in grouped(range(len(some)), keys.__getitem__).values():
        of_curve = [some[k] for k in places]
        if any(run.code for run in of_curve):
            yield of_curve


def left_out(runs: Sequence[Run], below: Path = Path()) -> str:
    """Return in one line how many runs of older code are left out, and where they are.

    ``below`` is a folder that is not named with them. Empty: there are none.
    """
    if not runs:
        return ""
    number = len({run.own_folder for run in runs})  # a stored trace is no run of its own
    solvers = ", ".join(sorted({run.solver for run in runs}))
    folders = sorted({run.folder.parent for run in runs})
    named = [str(of.relative_to(below) if below in of.parents else of) for of in folders[:NAMED]]
    more = f" and {len(folders) - NAMED} more" if len(folders) > NAMED else ""
    return f"{words.runs(number)} of older code ({solvers}) left out: {', '.join(named)}{more}."
