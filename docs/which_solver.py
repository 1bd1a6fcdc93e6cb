"""The table of the crossover that is part of the package, and that of ``docs/which_solver.md``.

``make answer`` writes them. ``tests/repository/test_which_solver.py`` checks that they are those of
the committed results: of the numbers of the figures, ``results/figures/*/crossover*.csv`` of the
experiments `NAMES`, and of the stored traces, which say what the problems are.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd

from ssvm_bench.base.errors import RunFailedError, SsvmBenchError
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.figures import style
from ssvm_bench.results import loading, words
from ssvm_bench.results.table import Run, Runs, flatten, grouped, labels
from ssvm_bench.runs import recommendation
from ssvm_bench.runs.recommendation import PASSES, PRESETS, Problem, Ranked, Table, Times, named

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_suffix(".md")
RESULTS, NAMES = ROOT / "results", ("crossover", "crossover_more")
BEGIN, END = "<!-- made by `make answer` -->", "<!-- end of what is made -->"


# ---- the table ----------------------------------------------------------------------------------


def table(results: Path = RESULTS, names: Sequence[str] = NAMES) -> Table:
    """Return the table of experiments with a figure of the kind ``crossover``.

    Raises
    ------
    RunFailedError
        If none of them has been run and drawn.
    """
    problems, times = [], list[Times]()
    for name in names:
        found = _drawn(results / "figures" / name)
        runs = Runs(loading.stored(results, name)).where(clock="cpu")
        for instance, of in runs.groups("problem").items():
            rows = found[found["fingerprint"] == instance.fingerprint]
            rows = rows[np.isclose(rows["lam"], instance.lam, rtol=1e-5)]
            visits = [_visit(run) for run in of.where(solver="bcfw")]
            if len(rows) and visits:
                call = float(rows.loc[rows["real"], "cost"].iloc[0])
                problems.append(_problem(of[0], call, float(np.median(visits))))
                times += _times(problems[-1].name, rows, dict(zip(labels(of), of, strict=True)))
    if not problems:
        raise RunFailedError(
            f"{results} has no real runs of {names[0]}. Make them with `ssvm-bench experiment "
            f"{names[0]} dataset.source=real results_dir={results}`."
        )
    return Table(problems, times)


def _drawn(folder: Path) -> pd.DataFrame:
    """Return the numbers of the figures of an experiment, of real and of simulated data."""
    files = [folder / "crossover.csv", folder / "crossover-synthetic.csv"]
    read = partial(pd.read_csv, keep_default_na=False, na_values=[""])
    empty = pd.DataFrame(columns=["fingerprint", "lam"])
    return pd.concat([empty, *map(read, filter(Path.is_file, files))])


def _visit(run: Run) -> float:
    """Return the seconds of a visit without those of the call, in the first passes of bcfw."""
    k = np.flatnonzero(run["iteration"] <= PASSES)[-1]
    return float((run["cpu_time"][k] - run["oracle_time"][k]) / run["oracle_calls"][k])


def _problem(run: Run, call: float, visit: float) -> Problem:
    oracle = str(run.options["oracle.kind"])
    structures = registry.module("oracle", oracle).Config.structures
    name = f"{run.dataset} n={run.n} λ={words.lam(run.lam, run.n)}"
    sizes = run.n, int(run.data["d"]), run.lam * run.n
    return Problem(name, run.dataset, oracle, structures[0], *sizes, call, visit)


def _times(problem: str, rows: pd.DataFrame, runs: dict[str, Run]) -> Iterator[Times]:
    """Yield the times on a problem; one for all costs, where they are the same."""
    for (gap, label), of in rows.groupby(["gap", "solver"], sort=False):
        about = problem, float(gap), runs[label].solver, _options(runs[label])
        measured = of[["passes", "outside"]].fillna(math.inf)
        if len(measured.drop_duplicates()) == 1:
            yield Times(*about, math.nan, *measured.iloc[0])
        else:
            for cost, each in zip(of["cost"], measured.to_numpy(), strict=True):
                yield Times(*about, cost, *each)


def _options(run: Run) -> str:
    """Return the options of a run's solver that are not those of its name, as overrides."""
    (config,) = compose_runs([f"solver={run.solver}"])
    usual = flatten(config.resolved())
    mine = {key: value for key, value in run.options.items() if key.startswith("solver.")}
    return " ".join(f"{key}={value}" for key, value in mine.items() if value != usual.get(key))


def contents(of: Table) -> dict[str, str]:
    """Return name → content of the files of the package."""
    return {
        "problems.csv": _written(Problem._fields, of.problems),
        "times.csv": _written(Times._fields, of.times),
    }


def _written(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    cells = [[_cell(value) for value in row] for row in rows]
    csv.writer(text, lineterminator="\n").writerows([head, *cells])
    return text.getvalue()


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- the page -----------------------------------------------------------------------------------

HEAD = ("n", "λ", "cost of a call", "gap", "solver", "passes", "time", "evidence")


def lines(of: Table) -> Iterator[str]:
    """Yield the tables of the page, one for each structure of labels."""
    for oracle, problems in grouped(of.problems, lambda problem: problem.oracle).items():
        yield from ("", f"### {problems[0].structure.capitalize()} labels, oracle `{oracle}`", "")
        yield from (f"| data | {' | '.join(HEAD)} |", "|---" * (len(HEAD) + 1) + "|")
        for problem in problems:
            for gap in of.gaps(problem):
                for costs, rankings in _spans(of, problem, gap):
                    yield f"| {' | '.join(_cells(problem, gap, costs, rankings))} |"
    yield ""


def _spans(
    of: Table, problem: Problem, gap: float
) -> Iterator[tuple[list[float], list[list[Ranked]]]]:
    """Yield neighbouring costs of a call at which one solver is named, and the rankings there."""
    ranked = {cost: of.ranked(problem, gap, cost) for cost in of.costs(problem)}
    for _, costs in groupby(ranked, lambda cost: named(ranked[cost]).solver):
        at = [*costs]
        yield at, [ranked[cost] for cost in at]


def _cells(
    problem: Problem, gap: float, costs: list[float], rankings: list[list[Ranked]]
) -> Iterator[str]:
    """Yield the cells of a row."""
    real = words.seconds(problem.call)
    yield f"{style.dataset_name(problem.dataset)} (a call takes {real})"
    yield from (f"{problem.n:,}", words.lam(problem.lam_n / problem.n, problem.n))
    yield words.span((costs[0], costs[-1]))
    yield f"{gap:g}"
    picked = [named(ranked) for ranked in rankings]
    if math.isinf(picked[0].seconds):
        yield from (words.NONE, words.NONE, words.NONE, "no solver gets there")
        return
    options = picked[0].times.options
    yield f"`{picked[0].solver}`" + f" `{options}`" * bool(options)
    passes = [one.times.passes for one in picked]
    yield words.span((min(passes), max(passes)), "{:.0f}".format)
    yield words.span((picked[0].seconds, picked[-1].seconds), _duration)
    rest = [[one for one in ranked if one.solver != picked[0].solver] for ranked in rankings]
    evidence = f"next: {_best(rest, picked)}"
    if picked[0].solver not in PRESETS:
        presets = [[one for one in ranked if one.solver in PRESETS] for ranked in rest]
        evidence += f"; presets: {_best(presets, picked)}"
    yield evidence


def _duration(seconds: float) -> str:
    return words.seconds(seconds) if seconds < 60 else words.duration(seconds)


def _best(rankings: list[list[Ranked]], picked: list[Ranked]) -> str:
    """Return which of some solvers are the best ones at several costs, relative to those named."""
    best = [(ranked[0], it) for ranked, it in zip(rankings, picked, strict=True) if ranked]
    ratios = {(one.solver, one.seconds / it.seconds) for one, it in best if one.ratio < math.inf}
    if not ratios:
        return "none gets there"
    names = " or ".join(sorted({f"`{name}`" for name, _ in ratios}))
    all_there = len(picked) == sum(one.ratio < math.inf for one, _ in best)
    ends = min(of for _, of in ratios), max(of for _, of in ratios)
    return f"{names} {words.span(ends, words.times)}" + ", or none" * (not all_there)


def page(text: str, of: Table) -> str:
    """Return the page with the tables of today."""
    before, rest = text.split(BEGIN)
    return "\n".join([f"{before}{BEGIN}", *lines(of)]) + END + rest.split(END)[1]


def main() -> int:
    """Write the package's table and the page; return the exit status."""
    try:
        found = table()
    except SsvmBenchError as error:
        print(error, file=sys.stderr)
        return 1
    recommendation.FOLDER.mkdir(exist_ok=True)
    for name, content in contents(found).items():
        (recommendation.FOLDER / name).write_text(content, encoding="utf-8")
    recommendation.table.cache_clear()
    read = recommendation.table()
    assert read is not None
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), read), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
