"""Measures of the bundle-method report's claims, on the costs of the methods at several λ.

A claim about all λ holds if it holds at each λ, and fails if it fails at one of them. Numbers that
are only known to lie in a range are compared where the ranges decide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ssvm_bench.claims.claim import Measured, compared
from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.papers.bmrm.bundle_runs import BMRM, Method
from ssvm_bench.papers.bmrm.costs import Cost, Range
from ssvm_bench.results.curves import ensure
from ssvm_bench.results.table import grouped
from ssvm_bench.results.words import NONE, percent, times
from ssvm_bench.solvers.bundle.bmrm import ACCEPT

PROX, PROX_16, RIVAL = Method("prox_bmrm"), Method("prox_p_bmrm", 16), "classical_bundle"

USUAL = {"T": "T=100", "K": "K=0.01"}
"""The constants of Algorithm 2 that the report recommends, as options of a method."""

SHOWN = {
    "iterations": "{:.0f}".format,
    "seconds": lambda value: f"{seconds_text(value)} s",
}
"""A range of `Cost` → the format of its numbers in sentences."""


def seconds_text(value: float) -> str:
    """Return seconds as text: three digits, from 1000 on all before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


# ---- choosing costs ---------------------------------------------------------------------------


def rules(costs: Sequence[Cost]) -> dict[str, list[Cost]]:
    """Return the costs to judge by for each rule of accepting points that runs differ in."""
    known = [f"accept={rule}" for rule in ACCEPT]
    named = {text for cost in costs for text in cost.method.options}
    return {
        rule: [
            _without(cost, [rule])
            for cost in costs
            if not ({*known} - {rule}) & {*cost.method.options}
        ]
        for rule in [rule for rule in known if rule in named] or [""]
    }


def _without(cost: Cost, options: Collection[str]) -> Cost:
    """Return a cost whose method is named without some options."""
    method = cost.method
    rest = tuple(text for text in method.options if text not in options)
    return cost._replace(setup=cost.setup._replace(method=method._replace(options=rest)))


def of(costs: Sequence[Cost], method: Method) -> dict[float, Cost]:
    """Return λ n → cost of a method with the usual constants, from the largest λ."""
    found = {}
    for cost in (_without(cost, USUAL.values()) for cost in costs):
        *kind, options = cost.method
        if kind == [*method[:2]] and not any(text[:2] in ("T=", "K=") for text in options):
            ensure(not options, f"runs of {method.title} differ in more than the seed")
            found[cost.lam_n] = cost
    ensure(found, f"no finished runs of {method.title}")
    return found


def common(costs: Sequence[Cost], name: str, *methods: Method) -> dict[float, list[Any]]:
    """Return λ n → a field of the `Cost` of some methods, for each λ at which all have runs."""
    found = [of(costs, method) for method in methods]
    lams = [lam for lam in found[0] if all(lam in mine for mine in found)]
    ensure(lams, "no λ at which all of these methods have runs")
    return {lam: [getattr(mine[lam], name) for mine in found] for lam in lams}


def _by_planes(costs: Sequence[Cost]) -> dict[int, dict[float, Cost]]:
    """Return P → λ n → cost of BMRM (P = 1) and P-BMRM."""
    counts = {cost.method.P for cost in costs if cost.method.solver == "p_bmrm"}
    ensure(counts, "no finished runs of P-BMRM")
    return {1: of(costs, BMRM)} | {P: of(costs, Method("p_bmrm", P)) for P in sorted(counts)}


def _all(judged: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: False if one fails, else None if one is not known."""
    return False if False in judged else None if None in judged else True


def _listed(texts: Mapping[float, Any], form: str = "") -> str:
    return ", ".join(f"λ = {lam:g}: {text:{form}}" for lam, text in texts.items())


# ---- measures ---------------------------------------------------------------------------------


def less(costs: Sequence[Cost], name: str) -> Measured:
    """Measure whether Prox-BMRM takes less than BMRM at the smallest λ."""
    found = common(costs, name, PROX, BMRM)
    prox, plain = found[min(found)]
    text = " against ".join(each.text(SHOWN[name]) for each in (prox, plain))
    return compared(prox.below(plain), f"{text}, at λ = {min(found):g}")


def growing_speedup(costs: Sequence[Cost]) -> Measured:
    """Measure whether the speed-up of Prox-BMRM grows from each λ to the next."""
    found = {lam: prox for lam, (prox, _) in common(costs, "speedup", PROX, BMRM).items()}
    ensure(len(found) >= 2, "both methods have runs at one λ only")
    by_start = [lam for lam, cost in of(costs, PROX).items() if cost.own_iterations <= 1]
    where = ", ".join(f"{lam:g}" for lam in by_start)
    ensure(not by_start, f"SGD alone reaches ε at λ = {where}: speed-ups there are those of SGD")
    holds = _all([one.below(next_) for one, next_ in pairwise(found.values())])
    return compared(holds, _listed(found, ".2g"))


def largest_speedup(costs: Sequence[Cost]) -> Measured:
    """Measure whether Prox-P=16-BMRM at the smallest λ has the largest speed-up."""
    found = {
        method: {lam: mine for lam, (mine, _) in common(costs, "speedup", method, BMRM).items()}
        for method in (PROX, PROX_16)
    }
    largest = PROX_16, min(found[PROX_16])
    own, others = (
        found[PROX_16][largest[1]],
        (
            one
            for method, of_lam in found.items()
            for lam, one in of_lam.items()
            if (method, lam) != largest
        ),
    )
    holds = _all([one.below(own) for one in others])
    shown = (f"{method.title}: {_listed(speedups, '.2g')}" for method, speedups in found.items())
    return compared(holds, "; ".join(shown))


def more_planes_faster(costs: Sequence[Cost]) -> Measured:
    """Measure whether P = 16 makes Prox-BMRM faster at the smallest λ."""
    found = common(costs, "seconds", PROX_16, PROX)
    several, one = found[min(found)]
    ratios = {lam: one.over(several).text(times) for lam, (several, one) in found.items()}
    return compared(several.below(one), _listed(ratios))


def fewer_with_planes(costs: Sequence[Cost]) -> Measured:
    """Measure whether iterations fall from each P to the next, at every λ with several P."""
    of_count = _by_planes(costs)
    holds, texts = [], {}
    for lam in of_count[1]:
        found = [mine[lam].iterations if lam in mine else None for mine in of_count.values()]
        later = [one.below(before) for before, one in pairwise(filter(None, found))]
        if later:
            holds += later
            texts[lam] = " → ".join(f"{one:.0f}" if one else NONE for one in found)
    ensure(holds, "no λ at which there are runs of several P")
    return compared(_all(holds), f"P = {', '.join(map(str, of_count))}; {_listed(texts)}")


def fluctuates(costs: Sequence[Cost], least: float, part: float) -> Measured:
    """Measure whether BMRM is above its lowest value by some share, and Prox-BMRM by less."""
    rises, holds, texts = common(costs, "rises", PROX, BMRM), [], {}
    for lam, (low, high) in common(costs, "above", PROX, BMRM).items():
        ensure(not np.isnan([high, low]).any(), "the curves are not known")
        holds.append(bool(high >= least and low <= part * high))
        texts[lam] = f"{percent(low)} against {percent(high)}"
        if not np.isnan(rises[lam]).any():
            texts[lam] += " (rises in {} and {})".format(*map(percent, rises[lam]))
    return compared(_all(holds), _listed(texts))


def best_planes(costs: Sequence[Cost]) -> Measured:
    """Measure whether P = 16 takes the least time at the smallest λ, with a larger P tried."""
    of_count = _by_planes(costs)
    ensure(16 in of_count, "P = 16 was not tried")
    lam = min(set.intersection(*map(set, of_count.values())))
    seconds = {P: mine[lam].seconds for P, mine in of_count.items()}
    holds = _all([seconds[16].below(one) for P, one in seconds.items() if P != 16])
    ensure(not (holds and max(of_count) == 16), "no P above 16 was tried")
    shown = ", ".join(f"P = {P}: {one.text(SHOWN['seconds'])}" for P, one in seconds.items())
    return compared(holds, f"{shown}, at λ = {lam:g}")


def qps(costs: Sequence[Cost]) -> Measured:
    """Measure the QPs of Prox-BMRM per iteration, as a mean over λ."""
    found = {lam: cost.qps for lam, cost in of(costs, PROX).items()}
    mean = sum(found.values()) / len(found)
    ensure(mean >= 0, "a run does not say how many QPs it solved, or points it rejected")
    return Measured(mean, text=f"{mean:.2f} on average; {_listed(found, '.2f')}")


def less_efficient(costs: Sequence[Cost], options: str) -> Measured:
    """Measure whether the classical method with some options beats BMRM at the smallest λ."""
    rival, plain, texts, holds = Method(RIVAL, 1, (options,)), of(costs, BMRM), {}, None
    for cost in costs:  # from the largest λ
        if cost.method == rival and cost.lam_n in plain:
            theirs, mine = cost.iterations, plain[cost.lam_n].iterations
            holds = theirs.below(mine)
            texts[cost.lam_n] = f"{theirs:.0f} against {mine:.0f}"
    ensure(texts, f"no finished runs with {options}")
    return compared(holds, _listed(texts))


def constants(costs: Sequence[Cost], at_most: float) -> Measured:
    """Measure whether the usual T and K take few times the iterations of the best ones.

    The report says so of its own experiments: on data of another size, they are other problems.
    """
    data = costs[0].setup.data
    n = bundle_runs.examples(data.dataset)
    ensure(data.n == n, f"the report has no experiment on {data.n} examples, only on {n}")
    mine = [cost for cost in costs if cost.method.solver == PROX.solver and cost.method.options]
    tried = {text for cost in mine for text in cost.method.options}
    varied = [sum(text.startswith(f"{name}=") for text in tried) > 1 for name in USUAL]
    ensure(any(varied), "no finished runs with other T and K")
    ensure(all(varied), "only one of T and K was varied")
    holds, texts = [], {}
    for lam, rows in grouped(mine, lambda cost: cost.lam_n).items():
        (own,) = (cost.iterations for cost in rows if {*USUAL.values()} <= {*cost.method.options})
        best = min(rows, key=lambda cost: cost.iterations.high)
        above = best.iterations.times(1 + 1e-9)  # as small as the best one is enough
        holds.append(own.times(1 / at_most).below(above))
        texts[lam] = f"{own:.0f}, best {best.iterations:.0f} with {' '.join(best.method.options)}"
    return compared(_all(holds), _listed(texts))


def planes_by_data(costs: Sequence[Cost]) -> Measured:
    """Measure whether P = 16 helps Prox-BMRM most on the plates, at the smallest λ of each."""
    ratios: dict[str, Range] = {}
    for name, mine in grouped(costs, lambda cost: cost.setup.data.dataset).items():
        found = common(mine, "seconds", PROX, PROX_16)
        one, several = found[min(found)]
        ratios[name] = one.over(several)
    missing = {"plates", "mnist", "landmarks"} - set(ratios)
    ensure(not missing, f"no runs on {' and '.join(sorted(missing))}")
    holds = _all([ratios[name].below(ratios["plates"]) for name in ("mnist", "landmarks")])
    return compared(holds, ", ".join(f"{name}: {of.text(times)}" for name, of in ratios.items()))
