"""Energies of labelings, and the label step (Laude et al., (14)).

.. code-block:: text

    y ← argmin over y of  Σ_i u_{i,y_i} + E(y)

Every step keeps the observed labels. The other labels have one of these energies:

================  =====================================================  =======================
energy            E(y)                                                   the step
================  =====================================================  =======================
`LabelingEnergy`  0                                                      each point by itself
`CountBounds`     0 if every clique C has L_C^j ≤ |{i ∈ C: y_i = j}|     sorting, or a linear
                  ≤ U_C^j, else ∞                                        program and rounding
`Potts`           Σ_{k∼l} c_kl [y_k ≠ y_l],  c ≥ 0                       minimum cut, α-expansion
================  =====================================================  =======================

Of several labels with the same u, the lowest is taken. Between points, ``ties`` decides, below.

**Counts.** With x_il = [y_i = l] the label step is

.. code-block:: text

    min Σ u_il x_il      Σ_l x_il = 1,      L_C^l ≤ Σ_{i ∈ C} x_il ≤ U_C^l,      x_il ∈ {0, 1}

over the points without an observed label; observed labels are subtracted from the bounds. Points in
no clique take their best label; all points do if that keeps the bounds. *One clique with two
labels* is solved exactly: in the order of u_i1 − u_i0, the first points take label 1, as many as
gain by it within the bounds. *In general*, HiGHS' dual simplex solves the linear relaxation. If
cliques overlap, its vertex may have fractional points. Integral points then keep their label, and
an integer program finds the labels of the others, or of all points if that has no solution. So
every labeling keeps the bounds; the paper's rounding by a threshold may break them.

**Ties** between the points of one clique, those with the same u_i1 − u_i0, are decided by their
order. ``index`` puts the first points in front, ``lp`` the last. So if all costs are equal, ``lp``
gives label 1 to the last points, and to as few as the bounds allow. This is the vertex of a linear
program that a dual simplex returns, as follows. Presolving puts x_i0 = 1 − x_i1, which leaves the
row low ≤ Σ x_i1 ≤ high. At the slack basis all x_i1 are 0, which is dual feasible, and the row
lacks ``low``. The ratio test has only ties; each pivot or flip sets one x_i1 to 1, from the last
on, until the row has ``low``, and the basis is optimal. HiGHS does so, with any costs, where both
labels have a lower bound that observed labels do not meet, as with a balance. (Without presolving
it chooses among ties at random.) A solver of linear programs has a tolerance, 1e-7 in HiGHS:
differences are rounded to multiples of ``tolerance``, so that rounding errors decide nothing.

**Potts.** Two labels need one minimum cut. With more labels, α-expansion starts from the better of
the labeling so far and the best label of each point alone. It ends when no expansion lowers the
energy. Energies are multiplied by the largest power of two for which no sum overflows, and rounded
to integers, as in :mod:`ssvm_bench.oracles.graph`. Observed labels are fixed before any cut.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.oracles.cut import Minimiser, expand, graphs
from ssvm_bench.papers.transduction.datasets.points import Cliques

# mypy: disable-error-code="no-untyped-def"

_WHOLE = 1e-6
"""An entry of the relaxation that is so near to 0 or 1 counts as integral."""

_BITS = 60


class LabelingEnergy:
    """An energy of the labelings of n points; here 0, where only observed labels are fixed.

    Parameters
    ----------
    observed : ndarray of int64, shape (n,)
        The observed label of a point, or −1.
    n_labels : int
    """

    def __init__(self, observed: np.ndarray, n_labels: int) -> None:
        self.observed, self.n_labels = observed, n_labels
        self.free = np.flatnonzero(observed < 0)

    def value(self, y: np.ndarray) -> float:
        """Return E(y) of a labeling that keeps the observed labels; ∞ if it is not allowed."""
        return 0.0

    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Return a labeling of low Σ_i u_{i,y_i} + E(y).

        Parameters
        ----------
        u : ndarray of float64, shape (n, L)
        y : ndarray of int64, shape (n,), or None
            The labeling so far, from which a step may start.
        """
        return self.nearest(u)

    def nearest(self, u: np.ndarray) -> np.ndarray:
        """Return the best label of each point alone, or its observed label."""
        y = u.argmin(axis=1)
        known = self.observed >= 0
        y[known] = self.observed[known]
        return y


def sum_of(u: np.ndarray, y: np.ndarray) -> float:
    """Return Σ_i u_{i,y_i}."""
    return float(u[np.arange(y.size), y].sum())


# ---- bounds on counts -------------------------------------------------------------------------


INDEX, LP = TIES = "index", "lp"
"""Which points come first of those with the same costs: see the module."""


def bounds_on_counts(
    observed: np.ndarray,
    n_labels: int,
    cliques: Cliques,
    ties: str = INDEX,
    tolerance: float = 0.0,
) -> LabelingEnergy:
    """Return the energy of bounds on counts; u that differ by less than ``tolerance`` are ties.

    Raises
    ------
    ConfigError
        No labeling keeps the bounds; the message names a clique that prevents it. Or ``ties`` is
        not for these bounds.
    """
    _check_each(observed, n_labels, cliques)
    if len(cliques) == 1 and n_labels == 2:
        return OneClique(observed, n_labels, cliques, ties, tolerance)
    check_ties(ties)
    return CountBounds(observed, n_labels, cliques)


def _check_each(observed: np.ndarray, n_labels: int, cliques: Cliques) -> None:
    """Raise ``ConfigError`` if no labeling keeps the bounds of one of the cliques."""
    for c in range(len(cliques)):
        points = cliques.points(c)
        known = observed[points][observed[points] >= 0]
        fixed, size = np.bincount(known, minlength=n_labels), points.size
        low, high = cliques.low[c], cliques.high[c]
        if (fixed > high).any():
            j = int(np.argmax(fixed > high))
            told = f"{fixed[j]} of its points are given the label {j}"
            _fail(c, f"{told}, and at most {high[j]} may")
        if high.sum() < size or np.maximum(low, fixed).sum() > size:
            _fail(c, f"its {size} points cannot have counts of at least {low} and at most {high}")


def check_ties(ties: str) -> None:
    """Raise ``ConfigError`` if ties are decided by another rule where there is but one."""
    if ties != INDEX:
        raise ConfigError(
            f"oracle.ties={ties} is for bounds on the counts of two labels in one clique, such as "
            f"oracle.balance sets. Leave oracle.ties at {INDEX}."
        )


def _fail(c: int, why: str) -> None:
    raise ConfigError(
        f"No labeling keeps the bounds on counts: clique {c} is impossible, because {why}. "
        "Widen its bounds (oracle.balance, if it is the clique of all points)."
    )


class CountBounds(LabelingEnergy):
    """Bounds on counts in cliques.

    Raises
    ------
    ConfigError
        The bounds contradict each other.
    """

    def __init__(self, observed: np.ndarray, n_labels: int, cliques: Cliques) -> None:
        super().__init__(observed, n_labels)
        self.cliques = cliques
        C, L, members = len(cliques), n_labels, cliques.members
        of = np.repeat(np.arange(C), np.diff(cliques.offsets))
        self._membership = csr_array((np.ones(of.size), (of, members)), shape=(C, observed.size))
        in_some = np.bincount(members, minlength=observed.size) > 0
        self.bound = np.flatnonzero(in_some & (observed < 0))
        m = self.bound.size
        # matrices that map x, as one vector point by point, to each clique's counts and to Σ_l x_il
        self._counts = kron(self._membership[:, self.bound], eye_array(L), format="csr")
        self._one = kron(eye_array(m), np.ones((1, L)), format="csr")
        fixed = self._count(np.flatnonzero(observed >= 0), observed)
        self._low = (np.asarray(cliques.low) - fixed).ravel()
        self._high = (np.asarray(cliques.high) - fixed).ravel()
        self._two_sided = csr_array(vstack((self._counts, -self._counts)))
        self._sides = np.concatenate((self._high, -self._low))
        if m:
            self._check()

    def value(self, y: np.ndarray) -> float:
        """Return 0 if all bounds are kept, else ∞."""
        counts = self._count(np.arange(y.size), y)
        kept = (counts >= self.cliques.low).all() and (counts <= self.cliques.high).all()
        return 0.0 if kept else np.inf

    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Return the labeling of the relaxation, rounded if necessary."""
        found = self.nearest(u)
        if self.value(found) < np.inf:
            return found
        cost = (u[self.bound] - u[self.bound].min(axis=1)[:, None]).ravel()
        x = self._relaxed(cost)
        whole = np.abs(x - np.round(x)).reshape(-1, self.n_labels).max(axis=1) <= _WHOLE
        if not whole.all():
            x = self._rounded(cost, x, whole)
        found[self.bound] = x.reshape(-1, self.n_labels).argmax(axis=1)
        return found

    def _count(self, points: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return how many of these points have each label in each clique, shape (C, L)."""
        labels = np.zeros((y.size, self.n_labels))
        labels[points, y[points]] = 1.0
        return np.rint(self._membership @ labels).astype(np.int64)

    def _relaxed(self, cost: np.ndarray) -> np.ndarray:
        """Solve the linear relaxation."""
        found = linprog(
            cost,
            A_ub=self._two_sided,
            b_ub=self._sides,
            A_eq=self._one,
            b_eq=np.ones(self.bound.size),
            bounds=(0, 1),
            method="highs-ds",
            options={"presolve": False},  # presolving takes as long as the simplex
        )
        if found.x is None:
            raise RunFailedError(f"HiGHS found no labels within the bounds: {found.message}")
        return np.asarray(found.x)

    def _rounded(self, cost: np.ndarray, x: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return an integral x that keeps the bounds, and the integral points if possible."""
        counts = LinearConstraint(self._counts, self._low, self._high)
        kept, integral = np.repeat(whole, self.n_labels), np.ones(cost.size)
        near, one = np.round(x), LinearConstraint(self._one, 1, 1)
        for fixed in (kept, np.zeros_like(kept)):
            bounds = Bounds(np.where(fixed, near, 0.0), np.where(fixed, near, 1.0))
            found = milp(cost, integrality=integral, bounds=bounds, constraints=(counts, one))
            if found.x is not None:
                return np.asarray(found.x)
        raise RunFailedError(f"HiGHS found no labels within the bounds: {found.message}")

    def _check(self) -> None:
        """Raise ``ConfigError`` if no relaxed labeling keeps the bounds; name the worst clique."""
        C, m, L = len(self.cliques), self.bound.size, self.n_labels
        gives = csr_array(-eye_array(2 * C * L))
        found = linprog(
            np.concatenate((np.zeros(m * L), np.ones(2 * C * L))),
            A_ub=csr_array(hstack((self._two_sided, gives))),
            b_ub=self._sides,
            A_eq=csr_array(hstack((self._one, csr_array((m, 2 * C * L))))),
            b_eq=np.ones(m),
            bounds=[(0, 1)] * (m * L) + [(0, None)] * (2 * C * L),
            method="highs-ds",
        )
        given = np.asarray(found.x[m * L :]).reshape(2, C, L).sum(axis=(0, 2))
        if given.max(initial=0.0) > _WHOLE:
            c = int(given.argmax())
            _fail(c, f"its bounds contradict those of other cliques by {given[c]:.3g} points")


class OneClique(LabelingEnergy):
    """One clique, two labels: exact, by sorting."""

    def __init__(
        self,
        observed: np.ndarray,
        n_labels: int,
        cliques: Cliques,
        ties: str = INDEX,
        tolerance: float = 0.0,
    ) -> None:
        super().__init__(observed, n_labels)
        self.ties, self.tolerance = ties, tolerance
        self.points = np.sort(cliques.points(0))
        known, size = observed[self.points], self.points.size
        self.movable = self.points[known < 0]
        (low, high), fixed = (cliques.low[0], cliques.high[0]), np.count_nonzero(known == 1)
        self.low, self.high = max(low[1], size - high[0]), min(high[1], size - low[0])
        self.least = int(max(0, self.low - fixed))
        self.most = int(min(self.movable.size, self.high - fixed))

    def value(self, y: np.ndarray) -> float:
        """Return 0 if the bounds are kept, else ∞."""
        ones = np.count_nonzero(y[self.points])
        return 0.0 if self.low <= ones <= self.high else np.inf

    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Give label 1 to the points that gain most by it, as many as is best within the bounds."""
        found = self.nearest(u)
        points = self.movable if self.ties == INDEX else self.movable[::-1]
        gain = u[points, 1] - u[points, 0]
        if self.tolerance > 0:
            gain = np.round(gain / self.tolerance)
        ones = int(np.clip(np.count_nonzero(gain < 0), self.least, self.most))
        order = np.argsort(gain, kind="stable")
        found[points] = 0
        found[points[order[:ones]]] = 1
        return found


# ---- pairs ------------------------------------------------------------------------------------


class Potts(LabelingEnergy):
    """Pairs of points, with a cost for different labels."""

    def __init__(
        self, observed: np.ndarray, n_labels: int, pairs: np.ndarray, weights: np.ndarray
    ) -> None:
        super().__init__(observed, n_labels)
        self.pairs, self.weights = pairs, weights
        self.graphs = graphs(pairs, np.array([0, len(pairs)]), np.array([0, observed.size]))
        self.minimiser = Minimiser(self.graphs, n_labels)

    def value(self, y: np.ndarray) -> float:
        """Return the total weight of the pairs with different labels."""
        return float(self.weights[y[self.pairs[:, 0]] != y[self.pairs[:, 1]]].sum())

    def minimise(self, u: np.ndarray, y: np.ndarray | None) -> np.ndarray:
        """Return the minimiser for two labels; for more, a labeling that no expansion improves."""
        unary = self._integers(u)
        if self.n_labels == 2:
            start = np.where(self.observed > 0, 1, 0)
            self._expand(unary, start, 1)
            return start
        starts = [self.nearest(u)] + ([] if y is None else [y])
        best = min(starts, key=lambda start: sum_of(u, start) + self.value(start)).copy()
        alpha = failures = 0
        while failures < self.n_labels:
            failures = 0 if self._expand(unary, best, alpha) else failures + 1
            alpha = (alpha + 1) % self.n_labels
        return best

    def _integers(self, u: np.ndarray) -> np.ndarray:
        """Return u as integers, and set even capacities, both scaled by a power of two."""
        u = u - u.min(axis=1)[:, None]
        total = float(u.max(axis=1).sum() + self.weights.sum())
        if not np.isfinite(total):
            raise RunFailedError("The scores of a point are not finite; has the run diverged?")
        scale = 2.0 ** (_BITS - 2 - np.frexp(max(total, 1e-300))[1])
        halves = np.rint(0.5 * scale * self.weights).astype(np.int64)
        of = self.minimiser.energy
        of.capacity[:], of.most[:] = 2 * halves, 0
        for ends in self.pairs.T:
            np.add.at(of.most, ends, 2 * halves)
        return np.rint(scale * u).astype(np.int64)

    def _expand(self, u: np.ndarray, y: np.ndarray, alpha: int) -> bool:
        """Apply the best α-expansion to y in place; return whether a label changed."""
        of = self.minimiser.energy
        if expand(self.graphs, 0, u, alpha, y, self.observed, of):
            self.minimiser.cut(0, y)
        taken = (of.x[: y.size] == 1) & (y != alpha)
        y[taken] = alpha
        return bool(taken.any())
