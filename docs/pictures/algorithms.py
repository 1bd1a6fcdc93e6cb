"""The problem, and what algorithms do with it."""

import matplotlib.pyplot as plt
import numpy as np
import tiny
from scipy.spatial import ConvexHull
from style import BLUE, GREEN, GREY, ORANGE, RED, drawing

# ---- one dimension -----------------------------------------------------------------------------


LINE = np.linspace(-1.0, 2.2, 161)


def heights(planes, w=LINE):
    """Return the values of planes over a range of w, one row a plane."""
    return np.atleast_2d(planes)[:, :-1] * w + np.atleast_2d(planes)[:, -1:]


def regularised(values, problem, w=LINE):
    """Return λ/2 w² and a function of w."""
    return 0.5 * problem.lam * w**2 + values


def hinge(problem, i, w=LINE):
    """Return H_i(w)."""
    return heights(tiny.planes(problem, i), w).max(axis=0)


def primal(problem, w=LINE):
    """Return P(w)."""
    return regularised(sum(hinge(problem, i, w) for i in range(problem.n)), problem, w)


def bound(problem, phi):
    """Return the w at which φ bounds P best, and F(φ) there."""
    return float(-phi[0] / problem.lam), float(phi[1] - phi[0] ** 2 / (2 * problem.lam))


def show_bound(axes, problem, phi, color, label):
    """Draw λ/2 w² + ⟨φ, [w 1]⟩ and its minimum F(φ)."""
    w, dual = bound(problem, phi)
    axes.plot(LINE, regularised(heights(phi)[0], problem), color=color, label=label)
    axes.plot(w, dual, "o", color=color, ms=4)
    return w, dual


def sides(axes, title, y=(-0.05, 0.6), label=""):
    """Name the axes of a drawing in one dimension."""
    axes.set(title=title, xlabel="w", ylim=y, xlim=(LINE[0], LINE[-1]), ylabel=label)


@drawing
def problem():
    """H_1 as a maximum of planes; P and a lower bound."""
    tiny_one = tiny.in_one_dimension()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.9))
    for values in heights(tiny.planes(tiny_one, 0)):
        left.plot(LINE, values, color=GREY, lw=0.7)
    left.plot(LINE, hinge(tiny_one, 0), color=BLUE, lw=2.5)
    sides(left, "H₁(w) is the maximum of 8 planes", (-0.2, 0.45))
    left.annotate("the truth's plane is 0", (1.3, 0.0), (0.15, -0.15), fontsize=8,
                  arrowprops={"arrowstyle": "-", "lw": 0.6})  # fmt: skip

    made = tiny.solver(tiny_one, "bcfw")
    made.iterate()
    w, offset = float(made.reported().w[0]), made.phi.offset
    phi = np.array([-tiny_one.lam * w, offset])
    right.plot(LINE, primal(tiny_one), color=BLUE, lw=2.5, label="P(w)")
    show_bound(right, tiny_one, phi, RED, "λ/2 w² + ⟨φ, [w 1]⟩")
    top, dual = float(tiny_one.primal(np.array([w]))), bound(tiny_one, phi)[1]
    right.annotate("", (w, top), (w, dual), arrowprops={"arrowstyle": "<->", "lw": 0.8})
    right.text(w - 0.07, 0.5 * (top + dual), "gap", ha="right", va="center")
    right.text(w, dual - 0.02, "F(φ), at w = −φ⋆/λ", ha="center", va="top", color=RED)
    sides(right, "P(w), and a lower bound after 3 steps of BCFW", (0.4, 1.5))
    right.legend(loc="upper center")
    return figure


@drawing
def block_step():
    """One step of BCFW: on term 2, after one each on terms 1 and 3."""
    tiny_one = tiny.in_one_dimension()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.9))
    phi_i, w = np.zeros((3, 2)), 0.0
    for i in (0, 2, 1):
        at, before, planes = w, phi_i.copy(), tiny.planes(tiny_one, i)
        hat = planes[np.argmax(planes @ [w, 1.0])]
        way, phi = phi_i[i] - hat, phi_i.sum(axis=0)
        gamma = np.clip((way[0] * phi[0] - tiny_one.lam * way[1]) / way[0] ** 2, 0, 1)
        phi_i[i] = (1 - gamma) * phi_i[i] + gamma * hat
        w = bound(tiny_one, phi_i.sum(axis=0))[0]
    left.plot(LINE, hinge(tiny_one, 1), color=BLUE, lw=2.5, label="H₂(w)")
    left.plot(LINE, heights(before[1])[0], color=GREY, label="φ², before")
    left.plot(LINE, heights(hat)[0], color=ORANGE, ls="--", label="φ̂², the oracle's at w")
    left.plot(LINE, heights(phi_i[1])[0], color=RED, label=f"(1−γ)φ² + γφ̂², γ = {gamma:.2f}")
    left.axvline(at, color=GREY, lw=0.6)
    sides(left, "the term's plane moves towards the oracle's", (-0.4, 1.4))
    left.legend(loc="upper center")
    right.plot(LINE, primal(tiny_one), color=BLUE, lw=2.5, label="P(w)")
    for phi, color, when in ((before.sum(0), GREY, "before"), (phi_i.sum(0), RED, "after")):
        label = f"bound, {when}: F = {bound(tiny_one, phi)[1]:.3f}"
        show_bound(right, tiny_one, phi, color, label)
    right.axvline(at, color=GREY, lw=0.6)
    sides(right, "the bound on P rises as far as it can", (0.0, 1.9))
    right.legend(loc="upper center")
    return figure


@drawing
def bundle():
    """Three iterations of 1-slack cutting planes: the model, its minimum, the next plane."""
    tiny_one = tiny.in_one_dimension()
    figure, all_axes = plt.subplots(1, 3, figsize=(7.4, 2.6), sharey=True)
    known, w = [np.array([0.0, 0.0])], 0.0
    for number, axes in enumerate(all_axes, 1):
        risk = tiny_one.risk(np.array([w]))
        new = np.array([risk.star[0], risk.offset])
        known.append(new)
        model = heights(np.array(known)).max(axis=0)
        axes.plot(LINE, primal(tiny_one), color=BLUE, lw=2.5, label="P(w)")
        axes.plot(LINE, regularised(model, tiny_one), color=RED, label="its model")
        axes.plot(w, tiny_one.primal(np.array([w])), "o", color=BLUE, ms=4)
        fine = np.linspace(-1, 2.2, 32001)
        values = regularised(heights(np.array(known), fine).max(axis=0), tiny_one, fine)
        w = float(fine[np.argmin(values)])
        axes.plot(w, values.min(), "o", color=RED, ms=4)
        axes.axvline(w, color=GREY, lw=0.6)
        sides(axes, f"iteration {number}", (0.0, 1.7))
    all_axes[0].legend(loc="upper center")
    return figure


@drawing
def coordinate():
    """Dual coordinate descent: F along one weight, and where it is clipped; the bounds."""
    tiny_one = tiny.in_one_dimension()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.7))
    planes = tiny_one.n * tiny.planes(tiny_one, 0)
    share = np.linspace(-0.35, 1.35, 200)
    for j, color in ((0, RED), (1, GREEN)):
        g, h = planes[j, 1], planes[j, 0] ** 2
        n, lam = tiny_one.n, tiny_one.lam
        change = share / n * g - share**2 / (2 * lam * n**2) * h
        best = lam * n * g / h if h else np.inf
        step = float(np.clip(best, 0, 1))
        left.plot(share, change, color=color, label=f"plane {j + 1}: λn g/h = {best:.2f}")
        left.plot(step, step / n * g - step**2 / (2 * lam * n**2) * h, "o", color=color, ms=5)
    left.axvspan(0, 1, color=GREY, alpha=0.15, lw=0)
    left.set(title="F along the weight of a plane; 0 ≤ a ≤ 1", xlabel="a", ylim=(-0.3, 0.25))
    left.set(ylabel="F(α + a e) − F(α)")
    left.legend(loc="lower left")
    two = tiny.in_two_dimensions()
    made = tiny.solver(two, "dcd")
    rows = []
    for _ in range(10):
        made.iterate()
        at = made.reported()
        rows.append((two.primal(at.w), at.dual))
    sweeps = np.arange(1, len(rows) + 1)
    right.plot(sweeps, [row[0] for row in rows], color=BLUE, label="UB = P(w)")
    right.plot(sweeps, [row[1] for row in rows], color=RED, label="LB = F(α)")
    right.set(title="the bounds after each sweep", xlabel="sweep over all terms")
    right.legend()
    return figure


# ---- two dimensions ----------------------------------------------------------------------------


def contours(axes, problem, box=(-0.5, 1.5, -0.5, 1.3)):
    """Draw P over two weights."""
    one, two = np.linspace(*box[:2], 61), np.linspace(*box[2:], 61)
    at = np.stack(np.meshgrid(one, two), axis=-1).reshape(-1, 2)
    value = 0.5 * problem.lam * (at**2).sum(axis=1)
    for i in range(problem.n):
        planes = tiny.planes(problem, i)
        value = value + (at @ planes[:, :2].T + planes[:, 2]).max(axis=1)
    levels = tiny.optimum(problem) * np.array([1.01, 1.05, 1.15, 1.3, 1.5, 1.8, 2.2])
    axes.contour(one, two, value.reshape(61, 61), levels=levels, colors=GREY, linewidths=0.6)
    axes.set(xlim=box[:2], ylim=box[2:], xlabel="w₁")


def path_of(problem, name, iterations, **options):
    """Return the w of each iteration of a solver, from the start."""
    made = tiny.solver(problem, name, **options)
    path = [made.reported().w]
    for _ in range(iterations):
        made.iterate()
        path.append(made.reported().w)
    return np.array(path)


OPTIONS = {"mpbcfw": {"T": 2}}
"""What is set in the drawings that a page shows one below the other."""


@drawing
def paths():
    """Subgradient, BCFW and MP-BCFW: w after each pass."""
    two = tiny.in_two_dimensions()
    figure, all_axes = plt.subplots(1, 3, figsize=(7.4, 2.7), sharey=True)
    names = {"ssg": (ORANGE, "subgradient"), "bcfw": (BLUE, "BCFW"), "mpbcfw": (RED, "MP-BCFW")}
    for axes, (name, (color, label)) in zip(all_axes, names.items(), strict=True):
        contours(axes, two)
        path = path_of(two, name, 12, **OPTIONS.get(name, {}))
        axes.plot(*path.T, "-o", color=color, ms=3, lw=1)
        axes.set(title=f"{label}: w after each pass")
    all_axes[0].set(ylabel="w₂")
    return figure


@drawing
def working_sets():
    """W and the working sets of the three terms after 0 to 4 iterations of MP-BCFW."""
    two = tiny.in_two_dimensions()
    made = tiny.solver(two, "mpbcfw", **OPTIONS["mpbcfw"])
    figure, rows = plt.subplots(4, 4, figsize=(7.4, 7.2))
    every = [two.n * tiny.planes(two, i) for i in range(two.n)]
    path = [made.reported().w]
    shown = dict(zip((0, 1, 3, 6), rows, strict=True))
    for iteration in range(7):
        if iteration:
            made.iterate()
            path.append(made.reported().w)
        if iteration in shown:
            _working_sets(shown[iteration], two, made, every, np.array(path), iteration)
    for i, axes in enumerate(rows[0][1:], 1):
        axes.set_title(f"term {i}")
    for axes in rows[-1]:
        axes.set_xlabel("w₁" if axes is rows[-1][0] else "φ⋆₁")
    return figure


def _working_sets(row, problem, made, every, path, iteration):
    contours(row[0], problem)
    row[0].plot(*path.T, "-o", color=RED, ms=3, lw=1)
    primal, dual = problem.primal(path[-1]), made.reported().dual
    row[0].set(xlabel="", ylabel="w₂", title=f"iteration {iteration}: gap {primal - dual:.3f}")
    blocks = made.phi.blocks
    for i, axes in enumerate(row[1:]):
        hull = every[i][ConvexHull(every[i][:, :2]).vertices, :2]
        axes.fill(*hull.T, color=GREY, alpha=0.12, lw=0)
        axes.plot(*every[i][:, :2].T, "o", mfc="none", color=GREY, ms=4, mew=0.8)
        begin = blocks.start[i]
        for slot in range(begin, begin + blocks.n_planes[i]):
            kept = slice(blocks.begin[slot], blocks.begin[slot] + blocks.length[slot])
            star = np.zeros(2)
            star[blocks.indices[kept].astype(int)] = blocks.values[kept]
            axes.plot(*star, "o", color=BLUE, ms=5)
        star, first = np.zeros(2), blocks.support_start[i]
        support = slice(first, first + blocks.size[i])
        star[blocks.support[support].astype(int)] = blocks.phi[support]
        axes.plot(*star, "*", color=RED, ms=9)
        axes.set(xlim=(-2.2, 0.9), ylim=(-2.0, 1.2))
        axes.set_xticks([])
        axes.set_yticks([])


@drawing
def approximate_passes():
    """F over time of BCFW and MP-BCFW; the passes of an iteration, and the rule that ends them."""
    two = tiny.in_two_dimensions()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
    best = tiny.optimum(two)
    for name, color, label in (("bcfw", BLUE, "BCFW"), ("mpbcfw", RED, "MP-BCFW")):
        made = tiny.solver(two, name)
        times, duals = [0.0], [0.0]
        while made.clock.now() < 30:
            made.iterate()
            times.append(made.clock.now())
            duals.append(made.reported().dual)
        left.plot(times, best - np.array(duals), "-o", ms=3, color=color, label=label)
    left.set(title="suboptimality of F: a dot an iteration", xlabel="seconds, a call being one",
             yscale="log")  # fmt: skip
    left.legend()

    made = tiny.solver(two, "mpbcfw")
    made.iterate()
    at, do = [(made.clock.now(), made.phi.dual())], made.passes.do

    def watched(number, order, clock):
        at.append((clock.now(), made.phi.dual())) if number == 0 else None
        dual = do(number, order, clock)
        at.append((clock.now(), dual))
        return dual

    made.passes.do = watched
    made.iterate()
    times, duals = np.array(at).T
    right.plot(times[:2], duals[:2], "-o", color=BLUE, ms=3, label="exact pass")
    right.plot(times[1:], duals[1:], "-o", color=RED, ms=3, label="approximate passes")
    ends = [0, -1]
    right.plot(times[ends], duals[ends], "--", color=GREY, lw=1, label="slope of the iteration")
    right.set(title="F in one iteration, here the second", xlabel="seconds, a call being one")
    right.legend(loc="upper left")
    return figure
