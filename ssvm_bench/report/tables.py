"""What the report tells in rows: problem instances, runs, failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ssvm_bench.figures import style
from ssvm_bench.report.contents import Failure, Group, dataset_name, lam_text, mark, title
from ssvm_bench.report.markup import Content, Html, details, element, facts, join, markup, table
from ssvm_bench.results import words
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance, instance_of
from ssvm_bench.results.provenance import provenance_of
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, number


def source(trace: Trace) -> Html:
    """Say loudly what is not real data."""
    text = style.source_name(trace.metadata["dataset"]["source"])
    return element("strong", text, class_="standin") if mark(trace) else markup(text)


def problems(groups: Mapping[ProblemInstance, Sequence[Group]], best: BestValues) -> Html:
    """Return one row per problem instance."""
    header = (
        *("dataset", "data", "n", "d", "λ", "fingerprint", "solvers", "runs"),
        *("lowest primal", "highest dual"),
    )
    rows = []
    for problem, parts in groups.items():
        traces = [trace for part in parts for trace in part.traces]
        data, known = traces[0].metadata["dataset"], best[problem]
        names = {style.solver_label(trace.metadata["config"]["solver"]["name"]) for trace in traces}
        sizes = (f"{data['n']:,}", f"{data['d']:,}", lam_text(traces[0]))
        rows.append(
            (
                *(dataset_name(traces[0]), source(traces[0]), *sizes),
                *(element("code", problem.fingerprint), ", ".join(sorted(names)), len(traces)),
                *(f"{known.primal:.6g}", number(known.dual, ".6g")),
            )
        )
    return table("Problem instances, and the best values ever seen on them.", header, rows)


# ---- runs -------------------------------------------------------------------------------------


def runs(traces: Sequence[Trace]) -> Iterator[Html]:
    """Yield one closed part per configuration: what its runs share, and a row per run."""
    configurations = grouped(
        traces, lambda trace: (instance_of(trace.metadata), trace.own_folder.parent)
    )
    for (_, folder), repeats in configurations.items():
        first = repeats[0]
        solver = style.solver_label(first.metadata["config"]["solver"]["name"])
        count = words.runs(len(repeats))
        summary = f"{title(first)}: {solver}, {count}, configuration {folder.name}"
        yield details(summary, facts(_shared(repeats)), _table_of_runs(repeats))


def _shared(traces: Sequence[Trace]) -> Iterator[tuple[str, Content]]:
    """Yield what is the same for all runs of a configuration, and where they came from."""
    metadata, came = traces[0].metadata, provenance_of(traces)
    data = metadata["dataset"]
    yield "data", join((dataset_name(traces[0]), ", ", source(traces[0])))
    yield "n, d", f"{data['n']:,}, {data['d']:,}"
    yield "fingerprint", element("code", data["fingerprint"])
    yield "λ", f"{metadata['lam']:.6g}"
    for name in ("prior", "objective"):
        if metadata.get(name):
            yield name, metadata[name]
    hidden = ("seed", "lam", "prior", "clock", "results_dir", "force", "quiet")
    for name, value in metadata["config"].items():
        if name not in hidden:
            yield name, _options(value)
    for name in ("clock", "cpu", "cores", "node", "engine", "system"):
        if name in came:
            yield name, _counted(came[name])
    versions = (f"{name} {_counted(counts)}" for name, counts in came["versions"].items())
    yield "versions", ", ".join(versions)


def _options(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    shown = {key: item for key, item in value.items() if key != "kind"}
    name = str(shown.pop("name", ""))
    options = " ".join(f"{key}={item}" for key, item in shown.items())
    return f"{name} ({options})" if name and options else name or options


def _counted(counts: Mapping[str, int]) -> str:
    """Return a value, or all there were, each with the number of runs that had it."""
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({count} runs)" for value, count in counts.items())


def _table_of_runs(traces: Sequence[Trace]) -> Html:
    names = {name for trace in traces for name in trace.summary if name.endswith("_loss")}
    held_out = sorted(names - {"train_loss"})
    header = (
        *("seed", "stopped by", "iterations", "oracle calls", "time [s]", "in the oracle"),
        *("primal", "dual", "training loss", *(name.replace("_", " ") for name in held_out)),
        *("started (UTC)", "commit", "other runs beside it"),
    )
    rows = []
    for trace in traces:
        last, metadata = trace.frame.iloc[-1], trace.metadata
        share = last["oracle_time"] / last["time"] if last["time"] > 0 else np.nan
        losses = [trace.summary.get(name) for name in ("train_loss", *held_out)]
        commit = str(metadata.get("git") or "unknown")[:8]
        rows.append(
            (
                *(metadata["config"]["seed"], str(trace.summary.get("stop_reason"))),
                *(f"{last['iteration']:.0f}", f"{last['oracle_calls']:,.0f}"),
                *(f"{last['time']:.4g}", number(share, ".0%")),
                *(f"{last['primal']:.6g}", number(last["dual"], ".6g")),
                *(number(loss, ".4g") for loss in losses),
                _date(metadata.get("started")),
                f"{commit} with changes" if metadata.get("git_dirty") else commit,
                metadata.get("concurrent_runs", "not recorded"),
            )
        )
    return table("Runs, and their last rows.", header, rows)


def _date(started: str | None) -> str:
    """Return when a run began, to the second."""
    if started is None:
        return NONE
    return f"{datetime.fromisoformat(started).astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"


def failures(found: Sequence[Failure]) -> Html:
    """Return one row per failure."""
    rows = [
        (
            element("code", failure.place),
            failure.what,
            NONE if failure.iterations is None else failure.iterations,
            failure.reason,
        )
        for failure in found
    ]
    return table("What gave no finished run.", ("where", "what", "iterations", "reason"), rows)
