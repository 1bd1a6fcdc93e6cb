"""The runs of the bundle methods, in the words of the report that proposes them.

.. code-block:: text

    λ of the report    our λ times n: the report sums the losses of the examples, we take the mean
    BMRM               solver bmrm; P-BMRM adds P planes per iteration instead of one
    Prox-BMRM          solver prox_bmrm, with a prox-term; Prox-P-BMRM does both
    ε                  solver.epsilon: the relative gap at which a run has converged and stops

The report's numbers are in ``report.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from ssvm_bench.figures import style
from ssvm_bench.figures.document import beside
from ssvm_bench.results.table import Run, labels_within

SOLVERS = ("bmrm", "p_bmrm", "prox_bmrm", "prox_p_bmrm", "classical_bundle")
SEVERAL = ("p_bmrm", "prox_p_bmrm")
"""The solvers with P planes per iteration."""

CONTROLS = {"alpha=null": "α by Kiwiel's rule", "alpha=10.0": "α = 10 λ"}
"""Controls of the classical bundle method's prox-term: option → words."""

RATIOS = ("speedup",)
"""Quantities of the report that can be compared on data other than its own."""

EPSILON = 0.01
"""The ε of all of the report's runs."""

INSTANCE = ["dataset", "source", "n", "pixels", "fingerprint"]
"""What identifies the data of a run; a table has one block each. ``pixels`` is MNIST's option."""

PROBLEM = [*INSTANCE, "lam", "lam_n"]
METHOD = ["solver", "title", "P", "options"]


class Method(NamedTuple):
    """A solver with its options: a row of a table, or a curve.

    ``options`` are the options other than P in which runs of the solver differ; mostly none.
    """

    solver: str
    P: int = 1
    options: str = ""

    @property
    def label(self) -> str:
        """Return the label of the curve: the solver's name, P, and the options that differ."""
        several = f"P={self.P}" if self.solver in SEVERAL else ""
        return " ".join(filter(None, (self.solver, several, self.options)))

    @property
    def title(self) -> str:
        """Return the method's name in the report."""
        name = style.solver_label(self.solver)
        if self.solver in SEVERAL:
            name = name.replace("P-BMRM", f"P={self.P}-BMRM")
        words = " ".join(CONTROLS.get(text, text) for text in self.options.split(" "))
        return f"{name} ({words})" if words else name


def of_bundles(traces: Sequence[Run]) -> list[Run]:
    """Return the runs of bundle methods."""
    return [trace for trace in traces if trace.solver in SOLVERS]


def runs(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the runs of bundle methods, sorted by data, falling λ, ``SOLVERS``, and P.

    Returns
    -------
    DataFrame
        One row per run: ``INSTANCE``, ``lam``, ``lam_n`` (λ n), ``epsilon``, ``solver``
        (the method's label), ``title``, ``P``, ``options``, ``converged`` (whether the run stopped
        at its ε) and ``trace``.
    """
    chosen = of_bundles(traces)
    # labels per dataset: options that only differ between datasets are not compared
    names = labels_within(chosen, lambda trace: trace.dataset)
    rows = []
    for trace, name in zip(chosen, names, strict=True):
        solver, *options = name.split(" ")
        other = " ".join(text for text in options if not text.startswith("P="))
        method = Method(solver, int(trace.solver_options.get("P", 1)), other)
        data, lam, n = trace.data, float(trace.metadata["lam"]), trace.n
        pixels = str(trace.config.get("dataset", {}).get("pixels", ""))
        instance = data["name"], data["source"], n, pixels, trace.problem.fingerprint
        problem = *instance, lam, float(f"{lam * n:.6g}")  # 1000/n · n is not quite 1000
        ended = float(trace.solver_options["epsilon"]), trace, trace.converged
        row = *problem, method.label, method.title, *method[1:], *ended
        rows.append(((instance, -lam, SOLVERS.index(method.solver), method), row))
    rows.sort(key=lambda pair: pair[0])
    columns = [*PROBLEM, *METHOD, "epsilon", "trace", "converged"]
    return pd.DataFrame([row for _, row in rows], columns=columns)


def elsewhere(traces: Sequence[Run]) -> list[str]:
    """Return a note on the methods timed on another processor than BMRM, if there are any."""
    found: dict[str, None] = {}
    for _, block in runs(traces).groupby(PROBLEM, sort=False):
        used = [*zip(block["title"], (run.processors for run in block["trace"]), strict=True)]
        base = set().union(*(on for name, on in used if name == Method("bmrm").title))
        found |= dict.fromkeys(name for name, on in used if base and on - base)
    if not found:
        return []
    return [
        f"Timed on another processor than BMRM: {', '.join(found)}. Their speed-ups compare "
        "seconds of two processors, except at the report's pass, where those of the oracle do not "
        "count."
    ]


def title(instance: pd.DataFrame) -> str:
    """Return the name, kind of pixels, source and size of the data in the rows of a table."""
    first = instance.iloc[0]
    pixels = f", {first['pixels']} pixels" if first["pixels"] else ""
    name, source = style.dataset_name(first["dataset"]), style.source_name(first["source"])
    return f"{name}{pixels}: {source}, n = {int(first['n'])}"


@cache
def _report() -> dict[str, Any]:
    """Return the report's numbers: dataset → content, with its rows by method."""
    content = beside(__file__, "report")
    for of in content.values():
        of["rows"] = {Method(row["solver"], row["P"]): row for row in of["rows"]}
    return content


def report_lam(instance: Mapping[str, Any]) -> float:
    """Return the report's λ that ours was matched to; without a match, our λ n itself."""
    matched = _report().get(instance["dataset"], {}).get("matched", {})
    return float(matched.get(instance["lam_n"], instance["lam_n"]))


def is_matched(instance: Mapping[str, Any]) -> bool:
    """Return whether λ was chosen so that BMRM takes as many iterations as in the report."""
    return report_lam(instance) != instance["lam_n"]


def printed(instance: Mapping[Any, Any], quantity: str, method: Method | None = None) -> float:
    """Return a number of the report; NaN if it prints none, or ours cannot be compared with it.

    Parameters
    ----------
    instance : mapping
        ``dataset``, ``source``, ``lam_n`` and, if known, ``n``. The report's numbers do not hold
        for synthetic data, nor for a part of the data. Where the report's data are not public,
        only ratios are compared, and iterations where λ is matched.
    quantity : str
        ``"validation"`` or ``"test"``, of all methods; ``"iterations"`` or ``"speedup"``.
    method : Method, optional
        The method whose iterations or speed-up are returned.
    """
    content = _report().get(instance["dataset"])
    if content is None or instance.get("n", content["n"]) != content["n"]:
        return math.nan
    comparable = (*RATIOS, "iterations") if is_matched(instance) else RATIOS
    if "source" not in content and quantity not in comparable:
        return math.nan
    if instance["source"] != content.get("source", instance["source"]):
        return math.nan
    numbers = content.get(quantity, {})
    if method is not None:
        numbers = content["rows"].get(Method(*method[:2]), {}).get(quantity, {})
    return float(numbers.get(report_lam(instance), math.nan))


def pass_seconds(instance: Mapping[str, Any]) -> float:
    """Return the seconds of an iteration of the report's BMRM at its largest λ, scaled to our n."""
    content = _report().get(instance["dataset"])
    if content is None:
        return math.nan
    plain = content["rows"][Method("bmrm")]
    lam = max(plain["hours"])
    return 3600 * plain["hours"][lam] / plain["iterations"][lam] * instance["n"] / content["n"]


def printed_rows(dataset: str) -> list[dict[str, Any]]:
    """Return the report's numbers for a benchmark: a row per λ and method, from the largest λ.

    Of other datasets it prints none.
    """
    content = _report().get(dataset, {"rows": {}})
    found = []
    for method, row in content["rows"].items():
        for lam, iterations in row["iterations"].items():
            seconds = 3600 * row["hours"][lam]
            about = {**dict.fromkeys(PROBLEM, ""), "dataset": dataset, "lam": lam, "lam_n": lam}
            about |= {"solver": method.label, "title": method.title, "P": method.P, "options": ""}
            about |= {"iterations_from": iterations, "iterations_to": iterations}
            about |= {"seconds_from": seconds, "seconds_to": seconds, "epsilon": EPSILON}
            found.append(about)
    return found


def notes(table: pd.DataFrame) -> list[str]:
    """Return notes for readers who compare a table with the report's numbers."""
    found = []
    for name, content in _report().items():
        rows = table[table["dataset"] == name]
        if not len(rows):
            continue
        if "source" not in content:
            found.append(_not_public(name, content))
        elif (rows.loc[rows["source"] == content["source"], "n"] != content["n"]).any():
            found.append(f"The report's numbers are those of n = {content['n']} examples.")
    return found


def _not_public(name: str, content: Mapping[str, Any]) -> str:
    """Return a note with the report's numbers on its own images."""
    losses = ", ".join(f"{loss:g} at λ = {lam:g}" for lam, loss in content["validation"].items())
    (test,) = content["test"].values()
    iterations = "; ".join(
        f"{method.title}: {', '.join(map(str, row['iterations'].values()))}"
        for method, row in content["rows"].items()
    )
    return (
        f"The images of the report's benchmark {content['benchmark']} are not public: those of "
        f"{style.dataset_name(name)} are others, and only orderings and ratios can be compared. "
        f"Its validation losses are {losses} %, its test loss {test:g} %; "
        f"iterations of {iterations}."
    )
