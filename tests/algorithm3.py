"""Algorithm 3 of the MP-BCFW paper as it is printed, with every plane written out: slow and plain.

Training minimises P(w) over w; its dual maximises F(φ) over all φ = Σ_i φ^i with each φ^i in the
convex hull of the planes φ^{iy} of term i, one for every labeling y of example i:

.. code-block:: text

    φ^{iy} = [ϕ(x_i, y) − ϕ(x_i, y_i);  Δ(y_i, y)] / n          d numbers φ⋆, and one offset φ∘
    P(w) = λ/2 ‖w‖² + Σ_i max_y ⟨φ^{iy}, [w 1]⟩
    F(φ) = −‖φ⋆‖² / (2λ) + φ∘                                   and  w = −φ⋆ / λ

One step on term i moves φ^i towards one of its planes, φ̂^i, by a share γ in [0, 1], and φ with it.
The γ that makes F largest (line search) is

.. code-block:: text

    γ = (⟨φ^i⋆ − φ̂^i⋆, φ⋆⟩ − λ (φ^i∘ − φ̂^i∘)) / ‖φ^i⋆ − φ̂^i⋆‖²,    clipped to [0, 1]

An *exact* pass visits all terms, and takes for φ̂^i the best of all planes,
argmax_y ⟨φ^{iy}, [w 1]⟩, which costs a call of the max-oracle; an *approximate* pass takes the best
plane of the working set W_i, those that earlier calls have found, which is cheap. An iteration is
one exact pass and then approximate passes, as long as they pay (section 3.4). Both are "in random
order"; whether a pass has an order of its own is left open. Without working sets, N = 0, it is
BCFW, Algorithm 2.

The tests compare the solvers with this. They share nothing but the order of the terms, and sum in
different orders; so where two planes are as good as equal, or two rates, rounding would choose, and
the curves part. Each decision is therefore checked to be clear by `MARGIN`: a test that fails with
`UnclearDecisionError` needs other data, not a wider tolerance.
"""

import numpy as np

MARGIN = 1e-7
"""A decision is clear if it is by so much: 100 times what the tests allow a solver's w to differ.

Of planes, in ⟨φ̂^i, [w 1]⟩, whose values are below 10; of rates, relative to the larger one; of a
line search, in the length ‖φ^i⋆ − φ̂^i⋆‖ that it divides by.
"""


class UnclearDecisionError(AssertionError):
    """Rounding would decide: the data are not fit for comparing curves."""


def dual_of(phi, lam):
    """Return F(φ)."""
    return -phi[:-1] @ phi[:-1] / (2 * lam) + phi[-1]


def best_plane(planes, w, rows=None):
    """Return the row of the plane that is largest at w, of ``rows`` or of all; the first if equal.

    At w = 0 the values are the offsets, and no sum is rounded: planes may then be equally good.
    """
    rows = list(range(len(planes))) if rows is None else list(rows)
    values = planes @ np.append(w, 1.0)
    best = max(rows, key=values.__getitem__)
    others = [row for row in rows if (planes[row] != planes[best]).any()]
    if w.any() and others:
        second = max(others, key=values.__getitem__)
        check(values[best] - values[second], f"plane {best} is as good as {second}")
    return best


def check(margin, what):
    """Raise an error if a decision is not clear."""
    if not margin > MARGIN:
        raise UnclearDecisionError(f"{what}: they differ by {margin:.1e}, less than {MARGIN:g}.")


class Algorithm3:
    """A run of Algorithm 3; `iterate` is one outer iteration.

    ``planes`` has φ^{iy} of each term, one row a labeling, the first of equally good ones being the
    oracle's answer; ``truth`` the row of the ground truth, the plane 0. ``orders`` yields the order
    of the terms in each iteration, ``approx_orders``, if any, in each approximate pass. N is the
    most planes of W_i, M the most approximate passes of an iteration, T the iterations after which
    a plane that was not the best one is dropped. ``step`` is ``"line_search"``, or
    ``"2n/(k+2n)"`` with k the number of steps so far. An oracle call and the evaluation of a cached
    plane count for so many seconds of ``time``. Every φ^i begins, and W_i with it, at the
    ``"truth"``, or, by the ``"oracle"``, at the best of all planes at w = 0, which costs a call.

    ``active`` is W_i: row of each plane → iteration in which it was last the best one; oldest plane
    first. ``averages`` and ``averaged`` have, of the steps of each kind, the weighted average of φ
    after each of them (section 3.5), and their number.
    """

    def __init__(
        self, planes, truth, lam, orders, N, M, T, step, cost_call, cost_plane, start, approx_orders
    ):
        self.planes, self.lam = planes, lam
        self.orders, self.approx_orders = orders, approx_orders
        self.N, self.M, self.T, self.step = N, M, T, step
        self.cost_call, self.cost_plane = cost_call, cost_plane
        self.n, width = len(planes), planes[0].shape[1]
        rows, self.time = truth, 0.0
        if start == "oracle":
            rows = [best_plane(planes_of_term, np.zeros(width - 1)) for planes_of_term in planes]
            self.time = self.n * cost_call
        self.phi_i = np.array([planes[i][row] for i, row in enumerate(rows)])
        self.phi = self.phi_i.sum(axis=0)
        self.active = [{row: 0} if N > 0 else {} for row in rows]
        self.averages = {"exact": np.zeros(width), "approximate": np.zeros(width)}
        self.averaged = {"exact": 0, "approximate": 0}
        self.iteration, self.steps, self.approx_passes = 0, 0, 0

    def w(self):
        """Return w = −φ⋆/λ."""
        return -self.phi[:-1] / self.lam

    def dual(self):
        """Return F(φ)."""
        return dual_of(self.phi, self.lam)

    def iterate(self):
        """Make an exact pass, and approximate passes as long as they pay."""
        self.iteration += 1
        order = next(self.orders)
        begin = self.time, self.dual()
        self.exact_pass(order)
        self.approx_passes = 0
        while self.N > 0 and self.approx_passes < self.M:
            before = self.time, self.dual()
            self.approximate_pass(next(self.approx_orders) if self.approx_orders else order)
            self.approx_passes += 1
            if not self.pays(before, begin):
                break

    def exact_pass(self, order):
        """Step towards the best plane of each term, and keep it in W_i."""
        for i in order:
            row = best_plane(self.planes[i], self.w())
            self.time += self.cost_call
            self.step_towards(i, row, "exact")
            if self.N > 0:
                self.active[i][row] = self.iteration
                if len(self.active[i]) > self.N:  # the longest inactive makes way
                    del self.active[i][min(self.active[i], key=self.active[i].get)]

    def approximate_pass(self, order):
        """Step towards the best plane of each working set, and drop inactive planes."""
        for i in order:
            row = best_plane(self.planes[i], self.w(), self.active[i])
            self.time += self.cost_plane * len(self.active[i])
            self.active[i][row] = self.iteration
            self.step_towards(i, row, "approximate")
            last = self.iteration - self.T
            self.active[i] = {p: at for p, at in self.active[i].items() if at > last}

    def pays(self, before, begin):
        """Tell whether F rose faster in the last pass than in the whole iteration so far."""
        (t_pass, F_pass), (t_all, F_all) = before, begin
        rate = (self.dual() - F_pass) / (self.time - t_pass)
        overall = (self.dual() - F_all) / (self.time - t_all)
        if self.approx_passes < self.M:  # else this was the last one anyway
            larger = max(abs(rate), abs(overall)) or 1.0
            check(abs(rate - overall) / larger, f"a rate of {rate:g} is like one of {overall:g}")
        return rate > overall

    def step_towards(self, i, row, kind):
        """Move φ^i towards a plane of its term, and φ with it; average."""
        hat, old = self.planes[i][row], self.phi_i[i].copy()
        searched = self.step == "line_search"
        gamma = self.line_search(old, hat) if searched else 2 * self.n / (self.steps + 2 * self.n)
        self.phi_i[i] = (1 - gamma) * old + gamma * hat
        self.phi = self.phi + self.phi_i[i] - old
        self.steps += 1
        k = self.averaged[kind]
        self.averages[kind] = k / (k + 2) * self.averages[kind] + 2 / (k + 2) * self.phi
        self.averaged[kind] += 1

    def line_search(self, old, hat):
        """Return γ; 0 if φ^i is that plane."""
        way = old - hat
        if not way.any():
            return 0.0
        gain, length = way[:-1] @ self.phi[:-1] - self.lam * way[-1], way[:-1] @ way[:-1]
        check(np.sqrt(length), "φ^i is as good as its plane")
        return min(max(gain / length, 0.0), 1.0)
