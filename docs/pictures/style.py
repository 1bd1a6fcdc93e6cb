"""How drawings look, and where they register themselves."""

import matplotlib as mpl

mpl.use("svg")

BLUE, RED, GREEN, ORANGE, GREY = "#0072B2", "#CC3311", "#009E73", "#E69F00", "#888888"
STYLE = {
    "svg.hashsalt": "ssvm-bench",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
DRAWN = {}
"""Name of a drawing → the function that draws it."""


def drawing(function):
    """Register a drawing by its name."""
    DRAWN[function.__name__] = function
    return function
