"""The drawings of the glossary, one for each word."""

import matplotlib.pyplot as plt
import numpy as np
import tiny
from algorithms import LINE, bound, heights, hinge, primal, regularised
from scipy.spatial import ConvexHull
from style import BLUE, GREY, RED, drawing

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset

AT = 0.15
"""A w."""


def _small():
    """Return a figure of the glossary, and its axes without ticks."""
    figure, axes = plt.subplots(figsize=(2.4, 1.5))
    axes.set(xticks=[], yticks=[])
    return figure, axes


def _word(chosen=None):
    """Draw a word of the OCR data, and a frame around one of its letters."""
    (run,) = compose_runs(["dataset=ocr", "dataset.source=real", "dataset.n_samples=60"])
    data = load_dataset(run.dataset)
    data = data.take(np.array([int(np.argmax(np.diff(data.offsets) == 5))]))
    figure, all_axes = plt.subplots(1, data.y.size, figsize=(2.4, 1.5))
    for l, (axes, x, label) in enumerate(zip(all_axes, data.x, data.y, strict=True)):
        axes.imshow(1 - x.reshape(16, 8), cmap="gray", vmin=0, vmax=1)
        name = data.label_names[label]
        axes.set_title(chr(97 + int(name)) if name.isdigit() else name)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, color=RED if l == chosen else GREY)
        axes.spines[:].set_linewidth(2.5 if l == chosen else 0.5)
    return figure


@drawing
def glossary_example():
    """Draw a word."""
    return _word()


@drawing
def glossary_part():
    """Draw a letter of it."""
    return _word(2)


@drawing
def glossary_term():
    """Draw H_1."""
    figure, axes = _small()
    axes.plot(LINE, hinge(tiny.in_one_dimension(), 0), color=BLUE, lw=2.5)
    axes.set(xlabel="w", ylabel="H₁(w)", ylim=(-0.1, 0.5))
    return figure


@drawing
def glossary_plane():
    """Draw one plane below H_1."""
    figure, axes = _small()
    problem = tiny.in_one_dimension()
    axes.plot(LINE, hinge(problem, 0), color=GREY, lw=1)
    axes.plot(LINE, heights(tiny.planes(problem, 0)[1])[0], color=RED, lw=2)
    axes.set(xlabel="w", ylabel="⟨φ¹ʸ, [w 1]⟩", ylim=(-0.1, 0.5))
    return figure


@drawing
def glossary_visit():
    """Draw a step of φ^i towards a plane."""
    figure, axes = _small()
    stars = tiny.planes(tiny.in_two_dimensions(), 2)[:, :2]
    hull = stars[ConvexHull(stars).vertices]
    axes.fill(*hull.T, color=GREY, alpha=0.15, lw=0)
    axes.plot(*stars.T, "o", mfc="none", color=GREY, ms=4)
    begin, hat = stars.mean(axis=0), hull[np.argmin(hull[:, 0])]
    end = 0.5 * (begin + hat)
    axes.plot(*hat, "o", color=BLUE, ms=5)
    axes.annotate("", end, begin, arrowprops={"arrowstyle": "->", "color": RED, "lw": 2})
    axes.text(*hat, "  φ̂ⁱ", va="bottom", color=BLUE)
    axes.text(*begin, "  φⁱ", va="center", color=RED)
    return figure


@drawing
def glossary_pass():
    """Draw the terms in a random order."""
    figure, axes = _small()
    order = [3, 1, 5, 2, 4]
    for k, i in enumerate(order):
        axes.text(k, 0, str(i), ha="center", va="center",
                  bbox={"boxstyle": "circle", "fc": "white", "ec": BLUE})  # fmt: skip
        if k:
            axes.annotate("", (k - 0.28, 0), (k - 0.72, 0), arrowprops={"arrowstyle": "->"})
    axes.set(xlim=(-0.6, 4.6), ylim=(-1, 1))
    axes.spines[:].set_visible(False)
    return figure


@drawing
def glossary_exact():
    """Draw the best of all planes at w."""
    figure, axes = _small()
    planes = tiny.planes(tiny.in_one_dimension(), 0)
    _planes_at(axes, planes, planes)
    return figure


@drawing
def glossary_approximate():
    """Draw the best of two planes at w."""
    figure, axes = _small()
    planes = tiny.planes(tiny.in_one_dimension(), 0)
    _planes_at(axes, planes, planes[[1, 6]])
    return figure


def _planes_at(axes, planes, known):
    for values in heights(known):
        axes.plot(LINE, values, color=BLUE, lw=0.8)
    axes.plot(LINE, heights(planes).max(axis=0), color=GREY, lw=1, ls="--")
    best = float((known @ [AT, 1.0]).max())
    axes.plot(AT, best, "o", color=RED, ms=6)
    axes.axvline(AT, color=GREY, lw=0.6)
    axes.set(xlabel="w", ylim=(-0.1, 0.5))


@drawing
def glossary_gap():
    """Draw the distance of P and F."""
    figure, axes = _small()
    problem = tiny.in_one_dimension()
    phi = np.array([-0.05, 0.55])
    w, dual = bound(problem, phi)
    top = float(np.interp(w, LINE, primal(problem)))
    axes.plot(LINE, primal(problem), color=BLUE, lw=2)
    axes.plot(LINE, regularised(heights(phi)[0], problem), color=RED)
    axes.annotate("", (w, top), (w, dual), arrowprops={"arrowstyle": "<->"})
    axes.text(w + 0.1, 0.5 * (top + dual), "gap", va="center")
    axes.set(xlabel="w", ylim=(0.45, 1.2))
    return figure
