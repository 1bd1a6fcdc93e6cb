"""Checks of traces alone: weak duality, summaries, and the best values on record.

.. code-block:: text

    F(φ) ≤ P(w)                in every row, and for the best values of a problem instance
    summary                    its values are those of the last row, and the best of all rows
    optima.json                no run saw a better value
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ssvm_bench.results import optima
from ssvm_bench.results.trace import Best, Trace
from ssvm_bench.verification.finding import Finding, Subject, compared, skipped

ROUNDING = 1e-9
"""Of sums, relative to the largest of P, F and 1, as in the runner."""


def duality(subject: Subject) -> Iterator[Finding]:
    """Yield for each run, stored or raw, whether F ≤ P in every row and on its instance."""
    best, _ = subject.best
    for trace in [*subject.traces, *subject.runs]:
        yield _dual_below(trace, best.get(trace.problem))


def _dual_below(trace: Trace, best: Best | None) -> Finding:
    primal, dual = (trace.values(name) for name in ("primal", "dual"))
    if np.isnan(dual).all():
        return skipped(trace.title, "the solver has no dual value")
    if not optima.is_exact(str(trace.config.get("oracle", {}).get("kind"))):
        return skipped(trace.title, "the oracle is not exact, so that P may be too low")
    above = dual - primal > ROUNDING * np.maximum(np.maximum(abs(primal), abs(dual)), 1.0)
    if above.any():
        row = trace.frame[above].iloc[0]
        values = f"F = {row['dual']:.9g} above P = {row['primal']:.9g}"
        return compared(trace.title, f"iteration {row['iteration']:.0f}: {values}")
    highest, lowest = np.nanmax(dual), math.inf if best is None else best.primal
    if highest - lowest > ROUNDING * max(abs(highest), 1.0):
        values = f"F = {highest:.9g} above P = {lowest:.9g}"
        return compared(trace.title, f"{values}, which another run saw")
    return compared(trace.title)


def summaries(subject: Subject) -> Iterator[Finding]:
    """Yield for each run whether its summary agrees with its rows."""
    for trace in [*subject.traces, *subject.runs]:
        yield compared(trace.title, _unlike(trace))


def _unlike(trace: Trace) -> str:
    """Return where a summary disagrees with the rows; an empty string if nowhere."""
    frame, told = trace.frame, dict(trace.summary)
    if "latent_round" in frame:  # the summary is of the last problem
        frame = frame[frame["latent_round"] == frame["latent_round"].iloc[-1]]
    primal, dual = (frame[name].to_numpy(float) for name in ("primal", "dual"))
    found = {name: float(frame[name].iloc[-1]) for name in ("iteration", "primal", "dual")}
    found["best_primal"] = primal.min()
    found["best_dual"] = math.nan if np.isnan(dual).all() else np.nanmax(dual)
    for name, value in found.items():
        said = told.get(name)
        if said is not None and said != value and not math.isnan(value):
            return f"the summary has {name} {said:.9g}, the rows {value:.9g}"
    return ""


def best_values(subject: Subject) -> Iterator[Finding]:
    """Yield for each problem instance whether ``optima.json`` has the best values of its runs."""
    _, better = subject.best
    names = {trace.problem: trace for trace in subject.traces}
    for problem, trace in names.items():
        name = f"{trace.data['name']}, lam={problem.lam:.6g}"
        why = ""
        if problem in better:
            seen = better[problem]
            why = f"a run saw P = {seen.primal:.9g} or F = {seen.dual:.9g}, which is not on record"
        yield compared(f"{optima.FILE}: {name}", why)
