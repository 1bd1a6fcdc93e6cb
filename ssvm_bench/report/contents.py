"""What a results folder holds: runs, which of them are shown together, and what failed.

Runs on one problem instance are shown together. Where one solver with the same options was run
under several budgets, evaluation intervals or clocks, these are apart: else its curves would only
differ in where they end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import ALTERED, GENUINE
from ssvm_bench.figures import style
from ssvm_bench.results import stored_traces, words
from ssvm_bench.results.files import SkippedFiles
from ssvm_bench.results.folder import ResultsFolder, plain
from ssvm_bench.results.problem_instance import ProblemInstance, instance_of, named_in
from ssvm_bench.results.reading import read_run, read_summary
from ssvm_bench.results.repeats import NOT_A_CURVE, grouped
from ssvm_bench.results.run_folder import PARTIAL
from ssvm_bench.results.trace import Trace

REASON_LENGTH = 400


class Failure(NamedTuple):
    """Something that gave no run: where it is, how far it came, and why."""

    place: str
    what: str
    iterations: int | None
    reason: str


class Contents(NamedTuple):
    """All that was found.

    Finished runs, sorted, of which some (``stored``) were only kept thinned; partial traces, and
    files that cannot be read; the results folder, if it has more to say.
    """

    traces: list[Trace]
    stored: int
    failures: list[Failure]
    results_dir: Path | None = None


class Group(NamedTuple):
    """Runs on a problem instance that are shown together; no configuration twice with one seed.

    ``setting`` tells them from the other groups of the problem instance, if there are any.
    """

    traces: list[Trace]
    setting: str = ""


def read(where: ResultsFolder | Path, skipped: SkippedFiles) -> Contents:
    """Read everything below a results folder.

    Parameters
    ----------
    where : ResultsFolder or Path
        The results folder.
    skipped : SkippedFiles
        Gets finished runs and stored traces that cannot be read.

    Raises
    ------
    RunFailedError
        If there is nothing.
    """
    where = plain(where)
    results_dir = where.root
    traces: list[Trace] = []
    failures: list[Failure] = []
    for folder in sorted(results_dir.glob("runs/*/*/*/seed=*")):
        place = folder.relative_to(results_dir).as_posix()
        if folder.name.endswith(PARTIAL):
            failures.append(Failure(place, "partial trace", *_end(folder, results_dir)))
            continue
        try:
            traces.append(read_run(folder))
        except RunFailedError as error:
            skipped.add(error)
            failures.append(Failure(place, "cannot be read", None, _short(error, results_dir)))
    raw = {trace.own_folder for trace in traces}
    stored: dict[Path, Trace] = {}
    folders = (path for place in where.read for path in place.glob("traces/*") if path.is_dir())
    for name in sorted({folder.name for folder in folders}):
        before, place = len(skipped.problems), f"traces/{name}"
        found_here = stored_traces.read(where, name, skipped)
        stored.update({trace.own_folder: trace for trace in found_here})
        for text in skipped.problems[before:]:
            failures.append(Failure(place, "stored traces", None, _short(text, results_dir)))
    further = [trace for folder, trace in stored.items() if folder not in raw]
    if not (traces or further or failures):
        raise RunFailedError(
            f"There are no runs in {results_dir}. Make some with `ssvm-bench experiment "
            "quickstart`, or choose another folder with results_dir=…"
        )
    return Contents(sorted([*traces, *further], key=_order), len(further), failures, results_dir)


def _short(text: object, results_dir: Path) -> str:
    """Return what an error says, without where on this machine the results are."""
    return str(text).replace(f"{results_dir}/", "")


def _order(trace: Trace) -> tuple:
    """Sort what papers use first, then by dataset, λ, solver, configuration and seed."""
    data, config = trace.metadata["dataset"], trace.metadata["config"]
    instance = data["source"] not in GENUINE, data["name"], data["n"], trace.metadata["lam"]
    return (*instance, config["solver"]["name"], trace.own_hash, config["seed"])


def _end(folder: Path, results_dir: Path) -> tuple[int | None, str]:
    """Return how many iterations a partial trace has, and why it ends."""
    try:
        summary = read_summary(folder)
    except RunFailedError as error:
        return None, _short(error, results_dir)
    reason = str(summary.get("stop_reason"))
    with suppress(OSError):
        text = files.read(folder / "traceback.txt").decode(errors="replace")
        reason += f": {(text.strip().splitlines() or [''])[-1][:REASON_LENGTH]}"
    return summary.get("iteration"), reason


# ---- what belongs together --------------------------------------------------------------------


def group(traces: Sequence[Trace]) -> dict[ProblemInstance, list[Group]]:
    """Return the groups of each problem instance, the one with most solvers and rows first."""
    problems = grouped(traces, lambda trace: instance_of(trace.metadata))
    return {problem: list(_groups(runs)) for problem, runs in problems.items()}


def _groups(traces: Sequence[Trace]) -> Iterator[Group]:
    latest: dict[tuple, Trace] = {}
    for trace in sorted(traces, key=lambda trace: str(trace.metadata.get("started"))):
        key = _options(trace, solver=True), _options(trace), trace.metadata["config"]["seed"]
        latest[key] = trace
    runs = sorted(latest.values(), key=_order)
    settings = grouped(runs, _options)
    of_solver = grouped(runs, lambda trace: _options(trace, solver=True))
    if all(len(set(map(_options, used))) == 1 for used in of_solver.values()):
        yield Group([trace for of_setting in settings.values() for trace in of_setting])
        return
    common = set.intersection(*(set(setting) for setting in settings))

    def weight(setting: tuple) -> tuple[int, int]:
        solvers = {trace.metadata["config"]["solver"]["name"] for trace in settings[setting]}
        return len(solvers), sum(len(trace.frame) for trace in settings[setting])

    for setting in sorted(settings, key=weight, reverse=True):
        own = [f"{key}={value}" for key, value in setting if (key, value) not in common]
        yield Group(settings[setting], ", ".join(own))


def _options(trace: Trace, solver: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the options of the solver, or all others, that make a curve another one."""
    (flat,) = pd.json_normalize(trace.metadata["config"]).to_dict("records")
    return tuple(
        sorted(
            (str(key), str(value))
            for key, value in flat.items()
            if str(key).startswith("solver.") == solver and key not in NOT_A_CURVE
        )
    )


# ---- names ------------------------------------------------------------------------------------


MARKS = {ALTERED: "ALTERED DATA", "synthetic": "STAND-IN"}
"""Source that is not the real data → what marks it."""


def mark(trace: Trace) -> str:
    """Return what marks a run that is not on what papers use; empty if it is."""
    source = str(trace.metadata["dataset"]["source"])
    return "" if source in GENUINE else MARKS.get(source, source)


def dataset_name(trace: Trace) -> str:
    """Return how the dataset is called in headings."""
    return style.dataset_name(str(trace.metadata["dataset"]["name"]))


def lam_text(trace: Trace) -> str:
    """Return λ as titles show it."""
    return words.lam(float(trace.metadata["lam"]), int(trace.metadata["dataset"]["n"]))


def title(trace: Trace) -> str:
    """Name the problem instance of a run."""
    marked = f"{mark(trace)}, " if mark(trace) else ""
    named = named_in(instance_of(trace.metadata).fingerprint)
    n = trace.metadata["dataset"]["n"]
    posed = f"n = {n}, λ = {lam_text(trace)}" + f", {named}" * bool(named)
    return f"{dataset_name(trace)} ({marked}{posed})"
