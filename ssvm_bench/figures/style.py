"""The looks of solvers: one colour and line style per solver, the same in every figure.

The colours of the main paper's solvers are Okabe and Ito's, which readers with any colour vision
can tell apart. An averaged variant has a lighter shade of its solver's colour and a dashed line, so
that the four curves of the main paper differ in print without colour, too. Any other method has
one colour, and a line style for each form of it. One figure can show the solvers of all papers: two
with the same line style have colours that differ for any colour vision.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ssvm_bench.config import ALTERED, SIMULATED, registry
from ssvm_bench.results import words
from ssvm_bench.results.table import named_in, weight_in

if TYPE_CHECKING:
    import pandas as pd

Line = Literal["-", "--", ":", "-."]
Dashes: TypeAlias = Line | tuple[float, tuple[float, ...]]


class Look(NamedTuple):
    """The look of a solver's curves, as defined by a paper (`Paper.looks`).

    Attributes
    ----------
    label : str
        Its name in the paper.
    color, line : str
    doubled : str
        An option whose values double from curve to curve; such curves have solid lines in
        ``shades``.
    shades : tuple of str
        The colours for its values 2, 4, 8, …; larger values have the last colour.
    """

    label: str
    color: str
    line: Line = "-"
    doubled: str = ""
    shades: tuple[str, ...] = ()


FURTHER: tuple[Dashes, ...] = (
    (0, (8, 2)),
    (0, (1, 1)),
    (0, (8, 2, 1, 2, 1, 2)),
    (0, (4, 2, 4, 2, 1, 2)),
)
"""Line styles of a figure's further curves with the same look: points on, off, on, …"""

OTHERS = ("#999933", "#117733", "#44AA99", "#AA4499", "#661100", "#CC6677")
"""Colours of all other solvers, chosen by the name; none is near the blue of BCFW."""

DATASETS = {
    "abalone": "Abalone",
    "adult": "Adult",
    "conll2000": "CoNLL-2000",
    "digits": "Deformed digits",
    "horseseg": "HorseSeg",
    "landmarks": "Facial landmarks",
    "mnist": "MNIST",
    "neighbours": "Digits with neighbours",
    "ocr": "OCR",
    "optdigits": "Digits of scikit-learn",
    "plates": "Number plates",
    "stanford": "Stanford",
    "usps": "USPS",
    "weizmann": "Weizmann",
}
STARTS = {"oracle": "the oracle's labelings at w = 0", "truth": "the truth"}
SOURCES = {
    "real": "real data",
    SIMULATED: "drawn as in the paper",
    ALTERED: "altered files (not the real data)",
    "synthetic": "synthetic, no real data",
}
"""Source of a dataset → its name in texts."""


def as_written(text: str) -> str:
    """Return a text that matplotlib draws literally: no formulas between ``$``, all of it UTF-8."""
    return text.encode(errors="backslashreplace").decode().replace("$", r"\$")


def looks() -> dict[str, Look]:
    """Return the looks that papers define; see `Paper.looks` for the keys."""
    papers = reversed(registry.papers().values())  # the first paper takes precedence
    return {label: look for paper in papers for label, look in paper.looks.items()}


def look(label: str) -> Look:
    """Return the look of a curve; its label starts with the solver's name and its options.

    An unknown solver gets a colour by its name, and dashes if it is an averaged variant.
    """
    if variant := _variant(label)[0]:
        return variant
    name, first = [*label.split(" "), ""][:2]
    found = looks().get(name)
    if found is None:
        of_others = OTHERS[zlib.crc32(name.encode()) % len(OTHERS)]
        return Look(name, of_others, "--" if name.endswith("_avg") else "-")
    option, _, value = first.partition("=")
    if found.doubled and option == found.doubled and value.isdecimal() and int(value) > 1:
        power = min(int(value).bit_length() - 1, len(found.shades))
        return found._replace(color=found.shades[power - 1], line="-")
    return found


def _variant(label: str) -> tuple[Look | None, str]:
    """Return the look of a solver with as many of its first options as a paper names, and the rest.

    Without such a look, the rest are all options.
    """
    known, (name, *options) = looks(), label.split(" ")
    for k in range(len(options), 0, -1):
        if found := known.get(" ".join([name, *options[:k]])):
            return found, " ".join(options[k:])
    return None, " ".join(options)


def color(label: str) -> str:
    """Return the colour of a curve."""
    return look(label).color


def line(label: str) -> Line:
    """Return the line style of a curve."""
    return look(label).line


class Stroke(NamedTuple):
    """Colour and line style of a curve."""

    color: str
    dashes: Dashes


def strokes(labels: Iterable[str]) -> dict[str, Stroke]:
    """Return label → stroke for the curves of a figure.

    Curves with the same look (variants of a solver) get different line styles; when these are used
    up, darker colours.
    """
    found: dict[str, Stroke] = {}
    seen: Counter[tuple[str, Line]] = Counter()
    for label in dict.fromkeys(labels):
        same = shade, first = color(label), line(label)
        darker, place = divmod(seen[same], 1 + len(FURTHER))
        rgb = (int(shade[k : k + 2], 16) >> darker for k in (1, 3, 5))
        found[label] = Stroke("#{:02X}{:02X}{:02X}".format(*rgb), (first, *FURTHER)[place])
        seen[same] += 1
    return found


def solver_label(label: str) -> str:
    """Return the text in the legend: the paper's name, then the options that tell curves apart.

    A paper may name a solver with its first options.
    """
    name, _, options = label.partition(" ")
    variant, others = _variant(label)
    if variant and variant.label:
        shown, options = variant.label, others
    else:
        shown = look(name).label
    return f"{shown} ({options})" if options else shown


def dataset_name(name: str) -> str:
    """Return the name of a dataset in titles."""
    titles = (DATASETS, *(paper.titles for paper in registry.papers().values()))
    return next((known[name] for known in titles if name in known), name)


def source_name(source: str, dataset: str = "") -> str:
    """Return the name of a source in texts; a dataset that no paper has is not drawn as in one."""
    if source == SIMULATED and dataset_name(dataset) == dataset:
        return "simulated"
    return SOURCES.get(source, source)


def weight_of(fingerprint: str, lam: float, n: int, value: bool = False) -> str:
    """Return the weight of the regulariser on a problem instance, with its letter.

    ``value`` adds the number to λ = K/n.
    """
    letter = weight_in(fingerprint)
    text = words.rule if value else words.lam
    return f"{letter} = " + (text(lam, n) if letter == "λ" else f"{lam:g}")


PROBLEM = ["fingerprint", "lam"]
"""Columns of a tidy table that identify a problem instance."""


def by_problem(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the rows of a tidy table for each problem instance, in order of appearance."""
    return [rows for _, rows in table.groupby(PROBLEM, sort=False)]


def problem_title(
    row: Mapping[Any, Any] | pd.Series, between: str = ": ", value: bool = False
) -> str:
    """Return the title of a row's problem instance: name, source, size, λ or ν, prior.

    ``value`` is that of `weight_of`. A row may say for which dataset its own stands.
    """
    name, source = dataset_name(row["dataset"]), source_name(row["source"], row["dataset"])
    if other := row.get("stands_for"):
        name += f" (for {dataset_name(other)})"
    weight, named = (
        weight_of(row["fingerprint"], row["lam"], row["n"], value),
        named_in(row["fingerprint"]),
    )
    parts = f"{name}{between}{source}", f"n = {row['n']}, {weight}", named
    return ("\n" if between == "\n" else ", ").join(filter(None, parts))
