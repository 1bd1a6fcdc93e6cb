"""Tables of a page of the report: its problems, every run, where they came from, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ssvm_bench.figures import style
from ssvm_bench.figures.document import Table
from ssvm_bench.report import contents
from ssvm_bench.report.contents import Failure, Groups
from ssvm_bench.report.markup import Html, block, code, details, facts, rows
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance, instance_of
from ssvm_bench.results.provenance import provenance_of
from ssvm_bench.results.repeats import labels
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, number


def blocks(
    traces: Sequence[Trace],
    groups: Groups,
    names: Mapping[ProblemInstance, str],
    best: BestValues,
) -> Iterator[Html]:
    """Yield the tables of all runs, closed."""
    if traces:
        count = len(groups)
        yield details(f"The problem{'s' * (count > 1)}", block(_problems(groups, names, best)))
        yield details(f"Every run ({len(traces)})", block(_table_of_runs(traces, names)))
        yield details("Machines and versions", facts(_came_from(traces)))


def _problems(groups: Groups, names: Mapping[ProblemInstance, str], best: BestValues) -> Table:
    header = ["problem", "data", "n", "d", "weight", "objective and data", "solvers", "runs"]
    cells = []
    for problem, parts in groups.items():
        traces = [trace for part in parts for trace in part.traces]
        data, known = traces[0].metadata["dataset"], best[problem]
        row: list[object] = [names[problem], style.source_name(data["source"])]
        row += [f"{data['n']:,}", f"{data['d']:,}", contents.weight_text(traces[0])]
        row += [code(problem.fingerprint), ", ".join(sorted({*map(contents.solver_name, traces)}))]
        row += [len(traces), f"{known.primal:.6g}", number(known.dual, ".6g")]
        cells.append(row)
    title = "Problems, and the best values ever seen on them."
    return rows(title, [*header, "lowest primal", "highest dual"], cells)


def _table_of_runs(traces: Sequence[Trace], names: Mapping[ProblemInstance, str]) -> Table:
    losses = sorted({name for trace in traces for name in trace.summary if name.endswith("_loss")})
    header = ["problem", "solver", "seed", "stopped by", "iterations", "oracle calls", "time [s]"]
    header += [
        "in the oracle",
        "primal",
        "dual",
        *(name.replace("train_", "training ").replace("_", " ") for name in losses),
    ]
    cells = []
    for trace, label in zip(traces, labels(traces), strict=True):
        columns = ("iteration", "oracle_calls", "time", "oracle_time", "primal", "dual")
        iterations, calls, time, oracle, primal, dual = (
            float(trace.frame[name].to_numpy()[-1]) for name in columns
        )
        row: list[object] = [names[instance_of(trace.metadata)], style.solver_label(label)]
        row += [trace.metadata["config"]["seed"], trace.summary.get("stop_reason")]
        row += [f"{iterations:.0f}", f"{calls:,.0f}", f"{time:.4g}"]
        row += [number(oracle / time if time > 0 else np.nan, ".0%")]
        row += [f"{primal:.6g}", number(dual, ".6g")]
        row += [number(trace.summary.get(name), ".4g") for name in losses]
        begun = str(trace.metadata.get("started") or NONE)[:19].replace("T", " ")
        beside = trace.metadata.get("concurrent_runs", "not recorded")
        cells.append([*row, trace.own_hash, begun, beside])
    header += ["configuration", "started (UTC)", "other runs beside it"]
    return rows("Runs, and their last rows.", header, cells)


def _came_from(traces: Sequence[Trace]) -> Iterator[tuple[str, str]]:
    came = provenance_of(traces)
    for name in ("clock", "cpu", "cores", "node", "engine", "system", "commits"):
        if name in came:
            yield name, _counted(came[name])
    versions = (f"{name} {_counted(counts)}" for name, counts in came["versions"].items())
    yield "versions", ", ".join(versions)


def _counted(counts: Mapping[str, int]) -> str:
    """Return a value, or all there were, each with the number of runs that had it."""
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({count} runs)" for value, count in counts.items())


def failed(failures: Sequence[Failure]) -> Iterator[Html]:
    """Yield what gave no finished run, if there is anything."""
    if failures:
        cells = [
            [code(place), what, NONE if iterations is None else iterations, reason]
            for place, what, iterations, reason in failures
        ]
        header = ["where", "what", "iterations", "reason"]
        yield block(rows("What gave no finished run.", header, cells))
