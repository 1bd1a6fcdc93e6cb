"""How a solver looks: one colour and line style per solver, the same in every figure.

The colours are Okabe and Ito's, which readers with any colour vision can tell apart. An averaged
variant has a lighter relative of its solver's colour and a dashed line, so that the four curves
of the main paper differ in print without colour, too.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

SOLVERS = {
    "bcfw": ("BCFW", "#0072B2"),
    "bcfw_avg": ("BCFW-avg", "#56B4E9"),
    "mpbcfw": ("MP-BCFW", "#D55E00"),
    "mpbcfw_avg": ("MP-BCFW-avg", "#E69F00"),
    "fw": ("FW", "#009E73"),
    "bcfw_gap": ("BCFW, gap sampling", "#332288"),
    "mpbcfw_gram": ("MP-BCFW, several steps", "#882255"),
    "mpbcfw_pairwise": ("MP-BCFW, pairwise steps", "#CC79A7"),
    "mpbcfw_away": ("MP-BCFW, away steps", "#EE6677"),
    "mpbcfw_gap": ("MP-BCFW, gap sampling", "#66CCEE"),
    "mpbcfw_need": ("MP-BCFW, oracle by need", "#BBCC33"),
    "mpbcfw_idle": ("MP-BCFW, idle terms left out", "#4477AA"),
    "mpbcfw_accelerated": ("MP-BCFW, accelerated", "#228833"),
    "mpbcfw_fast": ("MP-BCFW, fast", "#000000"),
}
"""Name in the paper and colour of the solvers that have a fixed one."""

OTHERS = ("#999933", "#117733", "#44AA99", "#AA4499", "#661100", "#6699CC")
"""Colours of all other solvers; which one depends on the name alone."""

DATASETS = {
    "horseseg": "HorseSeg",
    "ocr": "OCR",
    "stanford": "Stanford",
    "usps": "USPS",
    "weizmann": "Weizmann",
}
SOURCES = {"real": "real data", "synthetic": "built-in stand-in (not the real data)"}

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


def color(label: str) -> str:
    """Return the colour of a curve; the label starts with the solver's name."""
    name = label.split(" ")[0]
    if name in SOLVERS:
        return SOLVERS[name][1]
    return OTHERS[zlib.crc32(name.encode()) % len(OTHERS)]


def line(label: str) -> Literal["-", "--"]:
    """Return the line style of a curve: dashed for averaged variants."""
    return "--" if label.split(" ")[0].endswith("_avg") else "-"


def solver_label(label: str) -> str:
    """Return what the legend says: the paper's name, then the options that tell curves apart."""
    name, _, options = label.partition(" ")
    shown = SOLVERS[name][0] if name in SOLVERS else name
    return f"{shown} ({options})" if options else shown


def problem_title(problem: pd.DataFrame, between: str = ": ") -> str:
    """Say which data is shown: name, source, size, λ; from the rows of a tidy table."""
    first = problem.iloc[0]
    name = DATASETS.get(first["dataset"], first["dataset"])
    source = SOURCES.get(first["source"], first["source"])
    n, lam = int(first["n"]), float(first["lam"])
    after = between if between == "\n" else ", "
    return f"{name}{between}{source}{after}n = {n}, λ = {lam_text(lam, n)}"


def lam_text(lam: float, n: int) -> str:
    """Return λ as text, as 1/n where it is."""
    return "1/n" if abs(lam * n - 1) < 1e-9 else f"{lam:.3g}"
