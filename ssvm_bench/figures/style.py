"""How a solver looks: one colour and line style per solver, the same in every figure.

The colours of the main paper's solvers are Okabe and Ito's, which readers with any colour vision
can tell apart. An averaged variant has a lighter relative of its solver's colour and a dashed line,
so that the four curves of the main paper differ in print without colour, too. Another family of
solvers has one colour, and a line style per variant. All solvers of the papers can be in one
figure: of two with the same line style, the colours differ for any colour vision.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ssvm_bench.config import ALTERED, DRAWN
from ssvm_bench.results import words
from ssvm_bench.results.problem_instance import named_in, weight_in

if TYPE_CHECKING:
    import pandas as pd

Line = Literal["-", "--", ":", "-."]
Dashes: TypeAlias = Line | tuple[float, tuple[float, ...]]


class Look(NamedTuple):
    """Name in the paper, colour and line style of a solver."""

    label: str
    color: str
    line: Line = "-"


SOLVERS = {
    "bcfw": Look("BCFW", "#0072B2"),
    "bcfw_avg": Look("BCFW-avg", "#56B4E9", "--"),
    "mpbcfw": Look("MP-BCFW", "#D55E00"),
    "mpbcfw_avg": Look("MP-BCFW-avg", "#E69F00", "--"),
    "fw": Look("FW", "#009E73"),
    "bcfw_gap": Look("BCFW, gap sampling", "#332288"),
    "mpbcfw_gram": Look("MP-BCFW, several steps", "#882255"),
    "mpbcfw_pairwise": Look("MP-BCFW, pairwise steps", "#CC79A7"),
    "mpbcfw_away": Look("MP-BCFW, away steps", "#EE6677"),
    "mpbcfw_gap": Look("MP-BCFW, gap sampling", "#66CCEE"),
    "mpbcfw_need": Look("MP-BCFW, oracle by need", "#BBCC33"),
    "mpbcfw_idle": Look("MP-BCFW, idle terms left out", "#4477AA"),
    "mpbcfw_accelerated": Look("MP-BCFW, accelerated", "#228833"),
    "mpbcfw_fast": Look("MP-BCFW, fast", "#000000"),
    "ssg": Look("SSG", "#785EF0"),
    "ssg_weighted": Look("SSG-wavg", "#785EF0", "--"),
    "ssg_tail": Look("SSG-tavg", "#785EF0", ":"),
    "eg": Look("EG", "#8B4513"),
    "excessive_gap": Look("Excessive gap", "#8B4513", "--"),
    "extragradient": Look("Extragradient", "#8B4513", ":"),
    "cutting_plane": Look("Cutting plane (n-slack)", "#CCBB44"),
    "one_slack": Look("1-slack", "#CCBB44", "-."),
    "bmrm": Look("BMRM", "#4B0092"),
    "prox_bmrm": Look("Prox-BMRM", "#4B0092", "--"),
    "p_bmrm": Look("P-BMRM", "#4B0092", ":"),
    "prox_p_bmrm": Look("Prox-P-BMRM", "#4B0092", "-."),
    "dcd": Look("DCD", "#F781BF"),
    "dcd_online": Look("DCD, online", "#F781BF", "--"),
    "dcadmm": Look("DC-ADMM", "#A50026"),
    "coordinate_descent": Look("Coordinate descent", "#2166AC", "--"),
    "kernel_kmeans": Look("Kernel k-means", "#762A83", ":"),
    "inductive": Look("Inductive", "#666666", "-."),
}
"""The solvers that have a fixed look."""

VARIANTS: dict[str, tuple[str, Line]] = {
    "dcd UB": ("#D55E00", "-"),
    "dcd UB'": ("#E69F00", "--"),
    "dcd LB": ("#0072B2", "-"),
    "dcd order=sequential": ("#0072B2", "--"),
    "dcd_online schedule=gap": ("#F781BF", "-"),
    "dcd_online schedule=one_pass": ("#0072B2", "--"),
    "dcd_online schedule=larank": ("#E69F00", ":"),
    "dcd_online schedule=mining": ("#009E73", "-."),
}
"""Colour and line style of curves of one solver that are compared: by the first two words."""

PLANES = ("#3C4F8A", "#2A788E", "#1F9F88", "#4EC36B", "#A8DB34")
"""Colours of P-BMRM for P = 2, 4, 8, 16, and more: from BMRM's on, the lighter the larger P."""

FURTHER: tuple[Dashes, ...] = (
    (0, (8, 2)),
    (0, (1, 1)),
    (0, (8, 2, 1, 2, 1, 2)),
    (0, (4, 2, 4, 2, 1, 2)),
)
"""Line styles of a figure's further curves with the same look: its points on, off, on, …"""

OTHERS = ("#999933", "#117733", "#44AA99", "#AA4499", "#661100", "#6699CC")
"""Colours of all other solvers; which one depends on the name alone."""

DATASETS = {
    "abalone": "Abalone",
    "adult": "Adult",
    "davis_bmx_trees": "bmx-trees",
    "davis_car_shadow": "car-shadow",
    "digits": "Deformed digits",
    "horseseg": "HorseSeg",
    "mnist": "MNIST",
    "moons": "Moons",
    "neighbours": "Digits with neighbours",
    "ocr": "OCR",
    "scribbles": "Scribbles",
    "ssl_bci": "BCI",
    "ssl_digit1": "Digit1",
    "ssl_g241c": "g241c",
    "ssl_g241n": "g241n",
    "ssl_usps": "SSL-USPS",
    "stanford": "Stanford",
    "usps": "USPS",
    "weizmann": "Weizmann",
}
SOURCES = {
    "real": "real data",
    DRAWN: "drawn as in the paper",
    ALTERED: "altered files (not the real data)",
    "synthetic": "built-in stand-in (not the real data)",
}
"""Where a dataset came from → what a reader is told."""

RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "figure.titlesize": 11,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # embedded TrueType, which publishers ask for
    "svg.fonttype": "path",
    "svg.hashsalt": "ssvm-bench",
}


def as_written(text: str) -> str:
    """Return a text such that matplotlib draws it as it stands, and no formulas between ``$``."""
    return text.replace("$", r"\$")


def color(label: str) -> str:
    """Return the colour of a curve; the label starts with the solver's name."""
    name, P = label.split(" ")[0], planes(label)
    if variant := _variant(label):
        return variant[0]
    if P > 1:
        return PLANES[min(P.bit_length() - 1, len(PLANES)) - 1]
    if name in SOLVERS:
        return SOLVERS[name].color
    return OTHERS[zlib.crc32(name.encode()) % len(OTHERS)]


def _variant(label: str) -> tuple[str, Line] | None:
    return VARIANTS.get(" ".join(label.split(" ")[:2]))


def planes(label: str) -> int:
    """Return P of a curve of P-BMRM whose label tells it, which its colour then shows; 0 else."""
    found = re.match(r"p_bmrm P=(\d+)", label)
    return int(found[1]) if found else 0


def line(label: str) -> Line:
    """Return the line style of a curve: of an unknown solver, dashed for an averaged variant."""
    name = label.split(" ")[0]
    if variant := _variant(label):
        return variant[1]
    if planes(label) > 1:
        return "-"
    if name in SOLVERS:
        return SOLVERS[name].line
    return "--" if name.endswith("_avg") else "-"


def repeats(labels: Iterable[str]) -> dict[str, int]:
    """Return of each curve of a figure how many before it look the same: variants of its solver."""
    seen: Counter[tuple[str, Line]] = Counter()
    found = {}
    for label in dict.fromkeys(labels):
        look = color(label), line(label)
        found[label] = seen[look]
        seen[look] += 1
    return found


def dashes(labels: Iterable[str]) -> dict[str, Dashes]:
    """Return the line style of each curve of a figure; of those that look the same, one each."""
    return {
        label: FURTHER[(before - 1) % len(FURTHER)] if before else line(label)
        for label, before in repeats(labels).items()
    }


def solver_label(label: str) -> str:
    """Return what the legend says: the paper's name, then the options that tell curves apart."""
    name, _, options = label.partition(" ")
    shown = SOLVERS[name].label if name in SOLVERS else name
    return f"{shown} ({options})" if options else shown


def dataset_name(name: str) -> str:
    """Return what a dataset is called in titles."""
    return DATASETS.get(name, name)


def source_name(source: str) -> str:
    """Return what is said of where a dataset came from."""
    return SOURCES.get(source, source)


def problem_title(problem: pd.DataFrame, between: str = ": ") -> str:
    """Say which problem is shown: name, source, size, λ or ν, prior; from rows of a tidy table."""
    first = problem.iloc[0]
    name, source = dataset_name(first["dataset"]), source_name(first["source"])
    n, lam = int(first["n"]), words.lam(float(first["lam"]), int(first["n"]))
    after = between if between == "\n" else ", "
    named = named_in(str(first["fingerprint"]))
    weight = weight_in(str(first["fingerprint"]))
    if weight != "λ":
        lam = f"{first['lam']:g}"
    return f"{name}{between}{source}{after}n = {n}, {weight} = {lam}" + f", {named}" * bool(named)
