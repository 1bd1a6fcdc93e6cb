"""Table 2 of the bundle-method report, and what its section 4.4 says of that table.

What each method costs until it stops, for each λ:

.. code-block:: text

    iterations   oracle passes until the relative gap is at most ε
    seconds      CPU seconds until then
    in the QP    qp_time / time at the end: the share of the inner quadratic programs
    speed-up     seconds of BMRM / seconds, on the same problem with the same ε
    rises        share of the evaluated iterations in which P(w) rises, ``primal_rises``

All are medians over repeats. A run that ended before its ε would have cost more than it did: its
iterations and seconds are ranges from there to infinity, and so is what is computed from them.

**Claims.** Where there are runs with both rules of accepting a point, ``accept=sufficient``
(Algorithm 2) and ``accept=always`` (the authors' program), a claim is judged by each. A claim about
all λ holds if it holds at each of them, and does not hold if it fails at one. Numbers that are only
known to lie in a range are compared where that suffices. The statements are in ``claims.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from ssvm_bench.claims.claim import Claim, Measured, Statements, UnmeasurableError, compared
from ssvm_bench.claims.judging import judge
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.curves import timing_notes
from ssvm_bench.figures.document import Table, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, number, percent
from ssvm_bench.solvers.bundle.bmrm import ACCEPT

BASELINE = "bmrm"
RANGES = ("iterations", "seconds", "speedup")
COLUMNS = [
    *bundle_runs.INSTANCE,
    *("lam", "lam_n", "epsilon", "solver", "title", "P", "options", "repeats", "converged"),
    *(f"{name}_{end}" for name in RANGES for end in ("from", "to")),
    *("qp_share", "rises", "report_iterations", "report_speedup"),
]


Row: TypeAlias = dict[str, Any]


class Range(NamedTuple):
    """What is known of a number: that both ends are it, or that it is above ``low``.

    In the second case, it is at most ``high``.
    """

    low: float
    high: float

    def below(self, other: Range) -> bool | None:
        """Tell whether this number is smaller; None if that is not known."""
        if self.high < other.low or self.high == other.low < other.high:
            return True
        return False if self.low >= other.high else None

    def over(self, other: Range) -> Range:
        """Return this number divided by the other one, both positive."""
        if not (self.low > 0 and other.low > 0):
            return UNKNOWN
        low = 0.0 if math.isinf(other.high) else self.low / other.high
        return Range(low, self.high / other.low)

    def text(self, show: Callable[[float], str]) -> str:
        """Return it as text, e.g. ``> 8000``."""
        if math.isnan(self.low) or (self.low == 0 and math.isinf(self.high)):
            return NONE
        if self.low == self.high:
            return show(self.low)
        if math.isinf(self.high):
            return f"> {show(self.low)}"
        return f"< {show(self.high)}" if self.low == 0 else f"{show(self.low)}–{show(self.high)}"


UNKNOWN = Range(math.nan, math.nan)


def costs(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return what each method costs at each λ at which there are runs of BMRM.

    Returns
    -------
    DataFrame
        One row per method and λ, from the largest: ``bundle_runs.INSTANCE``, ``lam``, ``lam_n``
        (the report's λ), ``epsilon``, ``solver`` (the method's label), ``title``, ``P``,
        ``options``, ``repeats``, ``converged`` (how many of them stopped at their ε), ``RANGES``
        as two columns each, ``…_from`` and ``…_to`` (infinite if unknown), ``qp_share``,
        ``rises``, ``report_iterations`` and ``report_speedup``. NaN where there is no value.
    """
    runs = bundle_runs.runs(traces)
    last = pd.DataFrame([_end(trace) for trace in runs["trace"]], columns=list(MEDIANS))
    for name in ("iterations", "seconds"):
        last[f"{name}_to"] = last[f"{name}_from"].where(runs["converged"], math.inf)
    of_method = runs.join(last).groupby(
        [*bundle_runs.PROBLEM, "epsilon", *bundle_runs.METHOD], sort=False
    )
    medians = {name: (name, lambda ends: ends.median(skipna=False)) for name in last}
    table = of_method.agg(
        repeats=("converged", "size"), converged=("converged", "sum"), **medians
    ).reset_index()
    rows: list[Any] = table.to_dict("records")
    found = []
    for row in rows:
        bases = [
            other
            for other in rows
            if _solver(other) == BASELINE
            and all(other[name] == row[name] for name in bundle_runs.PROBLEM)
        ]
        if bases:
            speedup = _speedup(row, [base for base in bases if base["epsilon"] == row["epsilon"]])
            row |= {"speedup_from": speedup.low, "speedup_to": speedup.high}
            method = bundle_runs.Method(_solver(row), row["P"])
            for name in ("iterations", "speedup"):
                row[f"report_{name}"] = bundle_runs.printed(row, name, method)
            found.append(row)
    return pd.DataFrame(found, columns=COLUMNS)


MEDIANS = ("iterations_from", "seconds_from", "qp_share", "rises")
"""What `costs` takes the medians of, at the ends of runs."""


def _end(trace: Trace) -> tuple[float, ...]:
    """Return ``MEDIANS`` of a run."""
    last = trace.frame.iloc[-1]
    qp_share = math.nan
    # counted work and measured seconds have no ratio
    if trace.metadata.get("clock") != "work" and "qp_time" in last and last["time"] > 0:
        qp_share = last["qp_time"] / last["time"]
    # Rises are not counted in the rows: of a long run, a stored trace has but some.
    rises = trace.summary.get("primal_rises")
    return last["iteration"], last["cpu_time"], qp_share, math.nan if rises is None else rises


def _solver(row: Row) -> str:
    return str(row["solver"].partition(" ")[0])


def _speedup(row: Row, bases: Sequence[Row]) -> Range:
    """Return how much faster than BMRM a method is; unknown unless there is just one BMRM."""
    if len(bases) != 1:
        return UNKNOWN
    if _solver(row) == BASELINE:
        return Range(1.0, 1.0)
    return of(bases[0], "seconds").over(of(row, "seconds"))


def of(row: Row, name: str) -> Range:
    """Return one of ``RANGES`` of a row of the table."""
    return Range(row[f"{name}_from"], row[f"{name}_to"])


# ---- claims -----------------------------------------------------------------------------------

SAID = Statements(__file__)

FLUCTUATES = 0.1
"""Share of iterations in which the primal of a method that fluctuates rises, at least."""

HARDLY = 0.5
"""The same share of one that hardly does, at most so many times as large."""


def rules(block: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows to judge by, for each rule of accepting a point that there are runs with."""
    found = [f"accept={rule}" for rule in ACCEPT if f"accept={rule}" in set(block["options"])]
    return {
        rule: block[block["options"].isin(["", rule])].assign(options="") for rule in found
    } or {"": block}


def _runs(block: pd.DataFrame, solver: str, P: int = 1) -> dict[float, Row]:
    """Return the report's λ → row of a method, from the largest λ."""
    rows: list[Any] = block.to_dict("records")
    mine = [row for row in rows if (_solver(row), row["P"]) == (solver, P)]
    name = bundle_runs.Method(solver, P).title
    if not mine:
        raise UnmeasurableError(f"no finished runs of {name}")
    if any(row["options"] for row in mine):
        raise UnmeasurableError(f"runs of {name} differ in more than the seed")
    return {row["lam_n"]: row for row in mine}


def _common(block: pd.DataFrame, *methods: tuple[str, int]) -> dict[float, list[Row]]:
    """Return the report's λ → rows of some methods, where all of them have runs."""
    rows = [_runs(block, *method) for method in methods]
    common = {lam: [of[lam] for of in rows] for lam in rows[0] if all(lam in of for of in rows)}
    if not common:
        raise UnmeasurableError("no λ at which all of these methods have runs")
    return common


def _all(judged: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: false if one fails, else None if one is not known."""
    if False in judged:
        return False
    return None if None in judged else True


PLAIN, PROX, PROX_16 = ("bmrm", 1), ("prox_bmrm", 1), ("prox_p_bmrm", 16)


def _costs(block: pd.DataFrame, name: str, *methods: tuple[str, int]) -> dict[float, list[Range]]:
    """Return the report's λ → one of ``RANGES`` of some methods, where all of them have runs."""
    common = _common(block, *methods)
    return {lam: [of(row, name) for row in rows] for lam, rows in common.items()}


def _fewer_iterations(block: pd.DataFrame) -> Measured:
    found = _costs(block, "iterations", PROX, PLAIN)
    prox, plain = found[min(found)]
    text = " against ".join(each.text("{:.0f}".format) for each in (prox, plain))
    return compared(prox.below(plain), f"{text}, at λ = {min(found):g}")


def _growing_speedup(block: pd.DataFrame) -> Measured:
    found = {lam: prox for lam, (prox, _) in _costs(block, "speedup", PROX, PLAIN).items()}
    if len(found) < 2:
        raise UnmeasurableError("both methods have runs at one λ only")
    holds = _all([one.below(next_) for one, next_ in pairwise(found.values())])
    return compared(holds, _listed({lam: one.text("{:.2g}".format) for lam, one in found.items()}))


def _more_planes_faster(block: pd.DataFrame) -> Measured:
    found = _costs(block, "seconds", PROX_16, PROX)
    several, one = found[min(found)]
    ratios = {lam: one.over(several) for lam, (several, one) in found.items()}
    shown = {lam: ratio.text("{:.2g}×".format) for lam, ratio in ratios.items()}
    return compared(several.below(one), _listed(shown))


def _fewer_with_planes(block: pd.DataFrame) -> Measured:
    several = block["solver"].str.partition(" ")[0] == "p_bmrm"
    counts = [1, *sorted(set(block.loc[several, "P"]))]
    if len(counts) == 1:
        raise UnmeasurableError("no finished runs of P-BMRM")
    of_count = [_runs(block, "p_bmrm" if P > 1 else "bmrm", P) for P in counts]
    holds, texts = [], {}
    for lam in of_count[0]:
        found = [of(rows[lam], "iterations") if lam in rows else None for rows in of_count]
        holds += [later.below(one) for one, later in pairwise(filter(None, found))]
        texts[lam] = " → ".join(one.text("{:.0f}".format) if one else NONE for one in found)
    planes = ", ".join(str(P) for P in counts)
    return compared(_all(holds), f"P = {planes}; {_listed(texts)}")


def _fluctuates(block: pd.DataFrame) -> Measured:
    common = _common(block, PROX, PLAIN)
    holds, texts = [], {}
    for lam, (prox, plain) in common.items():
        if pd.isna([prox["rises"], plain["rises"]]).any():
            raise UnmeasurableError("a run does not say how often its primal rises")
        high, low = plain["rises"], prox["rises"]
        holds.append(bool(high >= FLUCTUATES and low <= HARDLY * high))
        texts[lam] = f"{percent(low)} against {percent(high)}"
    return compared(_all(holds), _listed(texts))


def _planes_by_data(table: pd.DataFrame) -> Measured:
    ratios = {}
    for name, block in table.groupby("dataset", sort=False):
        found = _costs(block, "seconds", PROX, PROX_16)
        one, several = found[min(found)]
        ratios[str(name)] = one.over(several)
    missing = {"plates", "mnist", "landmarks"} - set(ratios)
    if missing:
        raise UnmeasurableError(f"no runs on {' and '.join(sorted(missing))}")
    less = (("mnist", "plates"), ("landmarks", "plates"), ("landmarks", "mnist"))
    holds = _all([ratios[one].below(ratios[other]) for one, other in less])
    shown = [f"{name}: {ratio.text('{:.2g}×'.format)}" for name, ratio in ratios.items()]
    return compared(holds, ", ".join(shown))


def _listed(texts: dict[float, str]) -> str:
    return ", ".join(f"λ = {lam:g}: {text}" for lam, text in texts.items())


CLAIMS = (
    SAID.claim("fewer_iterations", _fewer_iterations),
    SAID.claim("growing_speedup", _growing_speedup),
    SAID.claim("more_planes_faster", _more_planes_faster),
    SAID.claim("fewer_with_planes", _fewer_with_planes),
    SAID.claim(
        "fluctuates", _fluctuates, words={"share": percent(FLUCTUATES), "part": f"{HARDLY:g}"}
    ),
)

ACROSS = (SAID.claim("planes_by_data", _planes_by_data),)
"""Judged by all benchmarks together."""

# ---- the document -----------------------------------------------------------------------------

HEADER = (
    *("λ", "method", "iterations", "the report's", "CPU seconds", "in the QP"),
    *("speed-up", "the report's", "P(w) rises in"),
)


def tables(table: pd.DataFrame, everything: pd.DataFrame | None = None) -> Iterator[Table]:
    """Yield, for each block of `costs`'s table, what the methods cost, and the claims on it.

    What is said of all benchmarks together is judged by the table ``everything``, if there is one:
    the ratios of some may be of drawn data, and those of others of real ones.
    """
    header = ("statement (section 4.4)", "measured by", "ours", "verdict")
    for _, block in table.groupby(bundle_runs.INSTANCE, sort=False):
        title = bundle_runs.title(block)
        epsilons = ", ".join(f"{value:g}" for value in sorted(set(block["epsilon"])))
        rows = [_cells(row) for row in block.to_dict("records")]
        yield Table(f"{title}, ε = {epsilons}", HEADER, rows, words=2)
        rows = list(_judged(block))
        yield Table(f"What the report says, on {title}", header, rows, words=len(header))
    everything = table if everything is None else everything
    if everything["dataset"].nunique() > 1:
        rows = list(_judged(everything, ACROSS))
        yield Table("What the report says of its benchmarks", header, rows, words=len(header))


def _judged(block: pd.DataFrame, claims: Sequence[Claim] = CLAIMS) -> Iterator[list[str]]:
    """Yield the rows of the claims; rules of accepting a point that agree share one."""
    of_rule = rules(block)
    for claim in claims:
        found = {rule: judge(claim, rows) for rule, rows in of_rule.items()}
        cells = {rule: (one.ours or one.note, bold(one.verdict)) for rule, one in found.items()}
        if len(set(cells.values())) == 1:
            cells = {"": next(iter(cells.values()))}
        for rule, (ours, verdict) in cells.items():
            text = f"{claim.text} ({rule})" if rule else claim.text
            yield [text, claim.measured, ours, verdict]


def _cells(row: dict) -> list[str]:
    iterations, seconds, speedup = (of(row, name) for name in RANGES)
    return [
        *(f"{row['lam_n']:g}", row["title"]),
        *(iterations.text("{:.0f}".format), number(row["report_iterations"], "g")),
        *(seconds.text(_seconds), _share(row["qp_share"])),
        *(speedup.text("{:.2g}".format), number(row["report_speedup"], "g")),
        _share(row["rises"]),
    ]


def _share(value: float) -> str:
    text = number(100 * value, ".0f")
    return text if text == NONE else f"{text} %"


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


READING = (
    "What it took until the relative gap was at most ε: passes of the exact oracle, CPU seconds "
    "and the share of the inner quadratic programs in them, for each λ (the report's, n times "
    "ours); medians over the repeats. Speed-up: seconds of BMRM over seconds. “>” and “<”: a run "
    "ended before its ε. The last column is the share of the evaluated iterations in which the "
    "primal value rises. The report's numbers are in its Table 2."
)


# ---- the kind of figure -----------------------------------------------------------------------


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = costs(data.traces)
    if len(table):
        title = "Iterations, time and speed-up of the bundle methods"
        notes = timing_notes(bundle_runs.of_bundles(data.traces)) + bundle_runs.notes(table)
        everything = costs([*data.traces, *data.others])
        yield Output("speedup", table, title, [READING, *notes, *tables(table, everything)])


KIND = Kind("speedup", Choices(("table",)), _outputs, bundle_runs.SECTION, documents=True)
