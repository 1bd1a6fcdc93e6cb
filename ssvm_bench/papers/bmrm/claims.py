"""The claims of the bundle-method report, judged by the costs of its methods.

The statements are in ``claims.yaml``; a statement that is not about all data names its own. A claim
about all λ holds if it holds at each λ, and fails if it fails at one of them. Numbers that are only
known to lie in a range are compared where the ranges decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from ssvm_bench.claims.claim import Claim, compared
from ssvm_bench.claims.old import Measured, Statements, measure
from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.papers.bmrm.bundle_runs import Method
from ssvm_bench.papers.bmrm.costs import BASELINE, Range, Row, method_of, of, rows_of
from ssvm_bench.results.table import ensure
from ssvm_bench.results.words import NONE, percent, times
from ssvm_bench.solvers.bundle.bmrm import ACCEPT

SAID = Statements(__file__)

FLUCTUATES = bundle_runs.EPSILON
"""A method fluctuates if its primal is at least so far above its least value so far."""

HARDLY = 0.5
"""A method hardly fluctuates if this height is at most so many times that of one that does."""

USUAL = {"T": "T=100", "K": "K=0.01"}
"""The constants of Algorithm 2 that the report recommends, as options of a method."""

CONSTANTS = "constants"
"""The key of the claim about these constants."""

PLANES = {
    "more_planes_faster": "prox_p_bmrm",
    "fewer_with_planes": "p_bmrm",
    "best_planes": "p_bmrm",
    "largest_speedup": "prox_p_bmrm",
}
"""Claims about several planes per iteration → the solver whose runs they need."""

CLASSICAL = "classical"
"""How the keys of the claims about the classical bundle method begin."""

NEAR_BEST = 2.0
"""Constants work well if they take at most so many times the iterations of the best ones."""


def usual(block: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the usual constants, without these constants among their options."""

    def others(options: str) -> str | None:
        names = [text for text in options.split(" ") if text not in USUAL.values()]
        return None if any(text[:2] in ("T=", "K=") for text in names) else " ".join(names)

    found = block["options"].map(others)
    return block[found.notna()].assign(options=found[found.notna()])


def is_tried(claim: Claim, block: pd.DataFrame) -> bool:
    """Return whether a claim's methods have runs; for T and K, runs with unusual values."""
    solvers = {method_of(row).solver for row in rows_of(block)} - {PLAIN.solver}
    if claim.key.startswith(CLASSICAL):
        return RIVAL in solvers
    if claim.key in PLANES:
        return PLANES[claim.key] in solvers
    if claim.key == CONSTANTS:
        return len(usual(block)) < len(block)
    return bool(solvers - {RIVAL})


def rules(block: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows to judge by for each rule of accepting points that runs differ in."""
    known = [f"accept={rule}" for rule in ACCEPT]
    parts = [text.split(" ") for text in block["options"]]
    others = [" ".join(text for text in options if text not in known) for options in parts]
    chosen = {}
    for rule in known:
        if any(rule in options for options in parts):
            mine = [rule in options or not {*known} & {*options} for options in parts]
            chosen[rule] = block.assign(options=others)[mine]
    return chosen or {"": block}


def _runs(block: pd.DataFrame, method: Method) -> dict[float, Row]:
    """Return λ n → row of a method, from the largest λ."""
    mine, name = [row for row in rows_of(block) if method_of(row) == method], method.title
    ensure(mine, f"no finished runs of {name}")
    ensure(not any(row["options"] for row in mine), f"runs of {name} differ in more than the seed")
    return {row["lam_n"]: row for row in mine}


def _common(block: pd.DataFrame, *methods: Method) -> dict[float, list[Row]]:
    """Return λ n → rows of some methods, for each λ at which all of them have runs."""
    rows = [_runs(block, method) for method in methods]
    common = {lam: [of[lam] for of in rows] for lam in rows[0] if all(lam in of for of in rows)}
    ensure(common, "no λ at which all of these methods have runs")
    return common


def _all(judged: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: False if one fails, else None if one is not known."""
    if False in judged:
        return False
    return None if None in judged else True


QPS = (1.5, 3.5)
"""Numbers of QPs per iteration that round to 2 or 3."""

RIVAL = "classical_bundle"
PLAIN, PROX, PROX_16 = BASELINE, Method("prox_bmrm"), Method("prox_p_bmrm", 16)


def _costs(block: pd.DataFrame, name: str, *methods: Method) -> dict[float, list[Range]]:
    """Return λ n → one of ``RANGES`` of some methods, for each λ at which all have runs."""
    common = _common(block, *methods)
    return {lam: [of(row, name) for row in rows] for lam, rows in common.items()}


@measure
def _less(block: pd.DataFrame, name: str, show: Callable[[float], str]) -> Measured:
    """Measure whether Prox-BMRM takes less than BMRM at the smallest λ."""
    found = _costs(block, name, PROX, PLAIN)
    prox, plain = found[min(found)]
    text = " against ".join(each.text(show) for each in (prox, plain))
    return compared(prox.below(plain), f"{text}, at λ = {min(found):g}")


@measure
def _less_efficient(block: pd.DataFrame, options: str) -> Measured:
    """Measure whether the classical method with some options beats BMRM."""
    plain, texts, holds = _runs(block, PLAIN), {}, None
    for row in rows_of(block[block["solver"] == f"{RIVAL} {options}"]):  # from the largest λ
        if (lam := row["lam_n"]) in plain:
            mine, theirs = of(plain[lam], "iterations"), of(row, "iterations")
            holds = theirs.below(mine)
            texts[lam] = " against ".join(f"{one:.0f}" for one in (theirs, mine))
    ensure(texts, f"no finished runs with {options}")
    return compared(holds, _listed(texts))


def _growing_speedup(block: pd.DataFrame) -> Measured:
    found = {lam: prox for lam, (prox, _) in _costs(block, "speedup", PROX, PLAIN).items()}
    ensure(len(found) >= 2, "both methods have runs at one λ only")
    holds = _all([one.below(next_) for one, next_ in pairwise(found.values())])
    return compared(holds, _listed(found, ".2g"))


def _largest_speedup(block: pd.DataFrame) -> Measured:
    found = {
        method: {lam: own for lam, (own, _) in _costs(block, "speedup", method, PLAIN).items()}
        for method in (PROX, PROX_16)
    }
    lam = min(found[PROX_16])
    own = found[PROX_16].pop(lam)
    holds = _all([one.below(own) for rest in found.values() for one in rest.values()])
    found[PROX_16][lam] = own
    shown = (f"{method.title}: {_listed(speedups, '.2g')}" for method, speedups in found.items())
    return compared(holds, "; ".join(shown))


def _more_planes_faster(block: pd.DataFrame) -> Measured:
    found = _costs(block, "seconds", PROX_16, PROX)
    several, one = found[min(found)]
    ratios = {lam: one.over(several).text(times) for lam, (several, one) in found.items()}
    return compared(several.below(one), _listed(ratios))


def _by_planes(block: pd.DataFrame) -> dict[int, dict[float, Row]]:
    """Return P → λ n → row of BMRM (P = 1) and P-BMRM."""
    several = block["solver"].str.partition(" ")[0] == "p_bmrm"
    counts = sorted(set(block.loc[several, "P"]))
    return {1: _runs(block, PLAIN)} | {P: _runs(block, Method("p_bmrm", P)) for P in counts}


def _fewer_with_planes(block: pd.DataFrame) -> Measured:
    of_count = _by_planes(block)
    ensure(len(of_count) != 1, "no finished runs of P-BMRM")
    holds, texts = [], {}
    for lam in of_count[1]:
        found = [of(rows[lam], "iterations") if lam in rows else None for rows in of_count.values()]
        later = [one.below(before) for before, one in pairwise(filter(None, found))]
        if not later:
            continue
        holds += later
        texts[lam] = " → ".join(f"{one:.0f}" if one else NONE for one in found)
    ensure(holds, "no λ at which there are runs of several P")
    planes = ", ".join(map(str, of_count))
    return compared(_all(holds), f"P = {planes}; {_listed(texts)}")


def _fluctuates(block: pd.DataFrame) -> Measured:
    common = _common(block, PROX, PLAIN)
    holds, texts = [], {}
    for lam, (prox, plain) in common.items():
        high, low = plain["above"], prox["above"]
        ensure(not pd.isna([high, low]).any(), "the curves are not known")
        holds.append(bool(high >= FLUCTUATES and low <= HARDLY * high))
        texts[lam] = f"{percent(low)} against {percent(high)}"
        if not pd.isna([prox["rises"], plain["rises"]]).any():
            texts[lam] += f" (rises in {percent(prox['rises'])} and {percent(plain['rises'])})"
    return compared(_all(holds), _listed(texts))


def _best_planes(block: pd.DataFrame) -> Measured:
    of_count = _by_planes(block)
    ensure(16 in of_count, "no finished runs of P-BMRM with P = 16")
    lam = min(set.intersection(*(set(rows) for rows in of_count.values())))
    seconds = {P: of(rows[lam], "seconds") for P, rows in of_count.items()}
    holds = _all([seconds[16].below(one) for P, one in seconds.items() if P != 16])
    ensure(not (holds and max(of_count) == 16), "no finished runs with P above 16")
    shown = ", ".join(f"P = {P}: {one.text(seconds_text)} s" for P, one in seconds.items())
    return compared(holds, f"{shown}, at λ = {lam:g}")


def _few_qps(block: pd.DataFrame) -> Measured:
    found, (low, high) = {lam: row["qps"] for lam, row in _runs(block, PROX).items()}, QPS
    unknown = pd.isna([*found.values()]).any()
    ensure(not unknown, "a run does not say how many QPs it solved, or points it rejected")
    total = sum(found.values()) / len(found)
    return compared(low <= total < high, f"{total:.2f} on average; {_listed(found, '.2f')}")


def _constants(block: pd.DataFrame) -> Measured:
    mine = block[(block["solver"].str.partition(" ")[0] == PROX.solver) & block["options"].ne("")]
    tried = {name: {*mine["options"].str.extract(rf"\b({name}=\S+)")[0]} for name in USUAL}
    ensure(all(len(values) > 1 for values in tried.values()), "no finished runs with other T and K")
    holds, texts = [], {}
    for lam, rows in mine.groupby("lam_n", sort=False):
        found = {row["options"]: of(row, "iterations") for row in rows_of(rows)}
        (own,) = (one for text, one in found.items() if {*USUAL.values()} <= {*text.split(" ")})
        name, best = min(found.items(), key=lambda pair: pair[1].high)
        above = Range(*(end * (1 + 1e-9) for end in best))  # as small as the best one is enough
        holds.append(Range(*(end / NEAR_BEST for end in own)).below(above))
        texts[float(str(lam))] = f"{own:.0f}, best {best:.0f} with {name}"
    return compared(_all(holds), _listed(texts))


def _planes_by_data(table: pd.DataFrame) -> Measured:
    ratios = {}
    for name, block in table.groupby("dataset", sort=False):
        found = _costs(block, "seconds", PROX, PROX_16)
        one, several = found[min(found)]
        ratios[str(name)] = one.over(several)
    missing = {"plates", "mnist", "landmarks"} - set(ratios)
    ensure(not missing, f"no runs on {' and '.join(sorted(missing))}")
    holds = _all([ratios[name].below(ratios["plates"]) for name in ("mnist", "landmarks")])
    shown = ", ".join(f"{name}: {ratio.text(times)}" for name, ratio in ratios.items())
    return compared(holds, shown)


def _listed(texts: Mapping[float, Any], form: str = "") -> str:
    return ", ".join(f"λ = {lam:g}: {text:{form}}" for lam, text in texts.items())


CLAIMS = (
    SAID.claim("fewer_iterations", _less("iterations", "{:.0f}".format)),
    SAID.claim("growing_speedup", _growing_speedup),
    SAID.claim("more_planes_faster", _more_planes_faster),
    SAID.claim("fewer_with_planes", _fewer_with_planes),
    SAID.claim(
        "fluctuates", _fluctuates, words={"share": percent(FLUCTUATES), "part": f"{HARDLY:g}"}
    ),
    SAID.claim("less_time", _less("seconds", lambda seconds: f"{seconds_text(seconds)} s")),
    SAID.claim("largest_speedup", _largest_speedup),
    SAID.claim("best_planes", _best_planes),
    SAID.claim("few_qps", _few_qps, words={"least": f"{QPS[0]:g}", "most": f"{QPS[1]:g}"}),
    *(
        SAID.claim(CLASSICAL, _less_efficient(options), key=f"{CLASSICAL} {options}", words=words)
        for options, control in bundle_runs.CONTROLS.items()
        for words in [{"control": control}]
    ),
    SAID.claim(CONSTANTS, _constants, words={"times": f"{NEAR_BEST:g}"}),
)

ACROSS = (SAID.claim("planes_by_data", _planes_by_data),)
"""Claims that are judged by all benchmarks together."""


def seconds_text(value: float) -> str:
    """Return seconds as text: three digits, from 1000 on all before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
