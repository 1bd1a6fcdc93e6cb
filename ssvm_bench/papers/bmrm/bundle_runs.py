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
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ssvm_bench.figures import style
from ssvm_bench.figures.document import beside
from ssvm_bench.results.table import Run, Runs, grouped, labels_within

TEXTS = beside(__file__)

SOLVERS = ("bmrm", "p_bmrm", "prox_bmrm", "prox_p_bmrm", "classical_bundle")
OTHERS = ("mpbcfw_fast", "bcfw", "dcd")
"""Solvers that the report does not have, as further rows of its Table 2."""

ROWS = (*SOLVERS, *OTHERS)

SEVERAL = ("p_bmrm", "prox_p_bmrm")
"""The solvers with P planes per iteration."""

CONTROLS = {"alpha=null": "α by Kiwiel's rule", "alpha=10.0": "α = 10 λ"}
"""Controls of the classical bundle method's prox-term: option → words."""

RULES = {
    "accept=printed": "Algorithm 2 as printed",
    "accept=sufficient": "with planes of rejected points",
    "accept=always": "every point accepted",
}
"""Rules of accepting a point: option → words."""

RATIOS = ("speedup",)
"""Quantities of the report that can be compared on data other than its own."""

EPSILON = 0.01
"""The ε of all of the report's runs."""


class Method(NamedTuple):
    """A solver with its options: a row of a table, or a curve.

    ``options`` are the options other than P in which runs of the solver differ; mostly none.
    """

    solver: str
    P: int = 1
    options: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the label of the curve: the solver's name, P, and the options that differ."""
        several = f"P={self.P}" if self.solver in SEVERAL else ""
        return " ".join(filter(None, (self.solver, several, *self.options)))

    @property
    def title(self) -> str:
        """Return the method's name in the report."""
        name = style.solver_label(self.solver)
        if self.solver in SEVERAL:
            name = name.replace("P-BMRM", f"P={self.P}-BMRM")
        words = " ".join(CONTROLS.get(text, text) for text in self.options)
        return f"{name} ({words})" if words else name


def of_bundles(runs: Sequence[Run]) -> Runs:
    """Return the runs of bundle methods."""
    return Runs(runs).where(solver=SOLVERS)


BMRM = Method("bmrm")


class Data(NamedTuple):
    """The data of some runs; ``pixels`` is MNIST's option, else empty."""

    dataset: str
    source: str
    n: int
    pixels: str
    fingerprint: str

    @property
    def title(self) -> str:
        """Return the name, kind of pixels, source and size of the data."""
        pixels = f", {self.pixels} pixels" if self.pixels else ""
        name, source = style.dataset_name(self.dataset), style.source_name(self.source)
        return f"{name}{pixels}: {source}, n = {self.n}"


class Setup(NamedTuple):
    """What repeats have in common: the data, our λ, the method, and the ε at which they stop."""

    data: Data
    lam: float
    method: Method
    epsilon: float

    @property
    def lam_n(self) -> float:
        """The report's λ: ours times n."""
        return float(f"{self.lam * self.data.n:.6g}")  # 1000/n · n is not quite 1000

    @property
    def report_lam(self) -> float:
        """The report's λ that ours was matched to; without a match, our λ n itself."""
        return report_lam(self.data.dataset, self.lam_n)

    @property
    def problem(self) -> tuple[Data, float]:
        """The data and λ, which methods are compared on."""
        return self.data, self.lam

    @property
    def columns(self) -> dict[str, Any]:
        """The setup as columns of a table; ``solver`` is the method's label."""
        method, about = self.method, {**self.data._asdict(), "lam": self.lam, "lam_n": self.lam_n}
        about |= {"report_lam": self.report_lam, "epsilon": self.epsilon}
        about |= {"solver": method.label, "title": method.title}
        return {**about, "P": method.P, "options": " ".join(method.options)}


def setups(runs: Sequence[Run]) -> dict[Setup, Runs]:
    """Return the repeats of the rows of Table 2, sorted by data, falling λ, ``ROWS``, and P."""
    chosen = Runs(runs).where(solver=ROWS)
    # labels per dataset: options that only differ between datasets are not compared
    named = zip(chosen, labels_within(chosen, lambda run: run.dataset), strict=True)
    found = grouped(named, lambda pair: _setup_of(*pair))

    def place(setup: Setup) -> tuple[Any, ...]:
        return setup.data, -setup.lam, ROWS.index(setup.method.solver), setup.method

    return {setup: Runs(run for run, _ in found[setup]) for setup in sorted(found, key=place)}


def _setup_of(run: Run, label: str) -> Setup:
    solver, *options = label.split(" ")
    others = tuple(text for text in options if not text.startswith("P="))
    method = Method(solver, int(run.solver_options.get("P", 1)), others)
    pixels = str(run.options.get("dataset.pixels", ""))
    data = Data(run.dataset, run.source, run.n, pixels, run.fingerprint)
    return Setup(data, run.lam, method, float(run.solver_options.get("epsilon", EPSILON)))


def elsewhere(runs: Sequence[Run]) -> list[str]:
    """Return a note on the methods timed on another processor than BMRM, if there are any."""
    found: dict[str, None] = {}
    used = {
        setup: {name for run in repeats for name in run.processors}
        for setup, repeats in setups(runs).items()
    }
    for of_problem in grouped(used, lambda setup: setup.problem).values():
        base = {name for setup in of_problem if setup.method == BMRM for name in used[setup]}
        others = (setup for setup in of_problem if base and used[setup] - base)
        found |= dict.fromkeys(setup.method.title for setup in others)
    return [TEXTS["elsewhere"].format(", ".join(found))] if found else []


# ---- what the report prints -------------------------------------------------------------------


@cache
def _report() -> dict[str, Any]:
    """Return the report's numbers: dataset → content, with its rows by method."""
    content = beside(__file__, "report")
    for of in content.values():
        of["rows"] = {Method(row["solver"], row["P"]): row for row in of["rows"]}
    return content


def report_lam(dataset: str, lam_n: float) -> float:
    """Return the report's λ that ours was matched to; without a match, our λ n itself."""
    return float(_report().get(dataset, {}).get("matched", {}).get(lam_n, lam_n))


def printed(setup: Setup, quantity: str) -> float:
    """Return a number of the report; NaN if it prints none, or ours cannot be compared with it.

    The report's numbers do not hold for synthetic data, nor for a part of the data. Where the
    report's data are not public, only ratios are compared, and iterations where λ is matched.

    Parameters
    ----------
    setup : Setup
    quantity : str
        ``"validation"`` or ``"test"``, of all methods; ``"iterations"`` or ``"speedup"``.
    """
    data, content = setup.data, _report().get(setup.data.dataset)
    if content is None or data.n != content["n"]:
        return math.nan
    if data.source != content.get("source", data.source):
        return math.nan
    is_matched = setup.report_lam != setup.lam_n
    if "source" not in content and quantity not in (*RATIOS, *["iterations"] * is_matched):
        return math.nan
    of_method = content["rows"].get(setup.method._replace(options=()), {})
    numbers = content.get(quantity) or of_method.get(quantity, {})
    return float(numbers.get(setup.report_lam, math.nan))


def examples(dataset: str) -> int:
    """Return the number of training examples of the report's benchmark on a dataset."""
    return int(_report()[dataset]["n"])


def pass_seconds(data: Data) -> float:
    """Return the seconds of an iteration of the report's BMRM at its largest λ, scaled to our n."""
    content = _report().get(data.dataset)
    if content is None:
        return math.nan
    plain = content["rows"][BMRM]
    lam = max(plain["hours"])
    return 3600 * plain["hours"][lam] / plain["iterations"][lam] * data.n / content["n"]


def printed_table(dataset: str) -> Iterator[tuple[Setup, float, float]]:
    """Yield the setups of the report's Table 2 on a dataset, their iterations and seconds."""
    content = _report().get(dataset, {"rows": {}})
    for method, row in content["rows"].items():
        for lam, iterations in row["iterations"].items():
            data = Data(dataset, "", content["n"], "", "")
            yield Setup(data, lam / data.n, method, EPSILON), iterations, 3600 * row["hours"][lam]


def notes(of: Collection[Setup]) -> list[str]:
    """Return notes for readers who compare a table with the report's numbers."""
    found, data = [], {setup.data for setup in of}
    for name, content in _report().items():
        ours = [each for each in data if each.dataset == name]
        if ours and "source" not in content:
            found.append(_not_public(name, content))
        elif any(each.source == content.get("source") and each.n != content["n"] for each in ours):
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
    return TEXTS["not_public"].format(
        benchmark=content["benchmark"],
        name=style.dataset_name(name),
        losses=losses,
        test=f"{test:g}",
        iterations=iterations,
    )
