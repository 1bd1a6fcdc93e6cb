"""Cutting-plane models of the risk, and the reduced problem of the bundle methods.

The risk is a sum over P blocks of terms, R(w) = Σ_p R(w, p), R(w, p) = Σ_{i in block p} H_i(w).
A plane of block p is a subgradient a at some w_s, and an offset b with ⟨a, w_s⟩ + b = R(w_s, p):

.. code-block:: text

    R_t(w) = Σ_p max_{j in p} { ⟨a_j, w⟩ + b_j }  ≤  R(w)         (equations 6 and 14)

    min_w  λ/2 ‖w‖² + R_t(w) + α ‖w − c‖²                         (equation 10; α = 0: equation 9)

is solved through its dual (equation 13), the QP of :mod:`ssvm_bench.solvers.bundle.qp`. Let A have
the a_j as rows, G = A Aᵀ and μ = λ + 2α; then

.. code-block:: text

    q = b + 2α/μ A c            w = (2α c − Aᵀβ)/μ            value = D(β) + αλ/μ ‖c‖²

(equation numbers: Uřičář and Franc 2012). However well the QP is solved, the value is a lower bound
of the reduced problem's minimum, and for α = 0 of the primal's. The QP's gradient is A w + b, the
heights of the planes at w. So A c is known if c is such a w, and a plane costs only its row of G.

Sums are in a fixed order, which BLAS's are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.jit import kernel
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.state import Limits, Stateful
from ssvm_bench.planes.operations import enlarged
from ssvm_bench.solvers.bundle import qp

# mypy: disable-error-code="no-untyped-def"

_ROOM = 64

_BESIDE = 4
"""Vectors of d numbers that a solver and an evaluation need beside the planes."""

_OF_PLANES = ("_planes", "_offsets", "_block", "_used", "_along")
_WEIGHTS = ("weights_0", "weights_1")

_ONE: dict[str, Any] = {"least": 1.0 - 1e-6, "most": 1.0 + 1e-6}
"""Sums of the weights of a block, up to rounding."""


def _size(found: Mapping[str, Any], _: Any = None) -> int:
    """Return the number of planes of a state."""
    return len(found["_planes"])


def _blocks(found: Mapping[str, Any], model: CuttingPlaneModel) -> np.ndarray:
    """Return the blocks that have planes, in a state; all if there are no planes at all."""
    return np.unique(found["_block"]) if _size(found) else np.arange(model.P)


def _sums(name: str, found: Mapping[str, Any], _: Any) -> np.ndarray:
    """Return the sums of some weights of a state, block by block; NaN if any is negative."""
    beta = found[name]
    if not beta.size:
        return np.ones(1)
    return np.bincount(found["_block"], np.where(beta >= 0.0, beta, np.nan))


class Reduced(NamedTuple):
    """A solution of the reduced problem.

    Attributes
    ----------
    w : ndarray, shape (d,)
    value : float
        Lower bound of the minimum.
    gap : float
        By how much the minimum can be higher, at most.
    alpha : float
        α.
    heights : ndarray, shape (m,)
        A w + b, for the planes that the model had then.
    """

    w: np.ndarray
    value: float
    gap: float
    alpha: float
    heights: np.ndarray


class CuttingPlaneModel(Stateful):
    """The planes of P blocks.

    Parameters
    ----------
    d, P : int
        Number of weights, and of blocks.
    truth : bool
        Whether each block begins with the plane of the ground truths, which is 0: the slack of a
        block is then never negative.

    Attributes
    ----------
    size : int
        Number of planes m.
    """

    LIMITS: ClassVar[Mapping[str, Limits]] = {
        "_planes": Limits(size=lambda found, model: (len(found["_planes"]), model.d)),
        **dict.fromkeys(_OF_PLANES[1:], Limits(size=_size)),
        "gram": Limits(size=lambda found, _: 2 * (_size(found),)),
        "blocks": Limits(of=_blocks, equals=lambda _, model: np.arange(model.P)),
        **{name: Limits(size=..., of=partial(_sums, name), **_ONE) for name in _WEIGHTS},
    }

    def __init__(self, d: int, P: int, truth: bool) -> None:
        self.d, self.P = d, P
        self.size = 0
        self._planes = np.zeros((_ROOM, d))
        self._gram = np.zeros((_ROOM, _ROOM))
        self._offsets = np.zeros(_ROOM)
        self._block = np.zeros(_ROOM, np.int64)
        self._used = np.zeros(_ROOM, np.int64)
        self._weights: dict[bool, np.ndarray] = {}  # β of the last solution with α = 0, and α > 0
        self._center = np.zeros(d)
        self._along = np.zeros(_ROOM)  # A c
        self._iteration = 0
        if truth:
            self.add(np.zeros((P, d)), np.zeros(P))

    def _stored(self) -> dict[str, Any]:
        """Return the planes, their inner products and weights."""
        m = self.size
        of_planes = {name: getattr(self, name)[:m] for name in _OF_PLANES}
        weights = {
            name: self._weights.get(bool(proximal), np.zeros(0))[:m]
            for proximal, name in enumerate(_WEIGHTS)
        }
        rest = {"_center": self._center, "_iteration": self._iteration}
        return {**of_planes, **weights, **rest, "gram": self._gram[:m, :m]}

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        self._center, self._iteration = found["_center"], found["_iteration"]
        self.size = m = len(found["_planes"])
        while m > self._offsets.size:
            self._grow()
        for name in _OF_PLANES:
            getattr(self, name)[:m] = found[name]
        self._gram[:m, :m] = found["gram"]
        given = {bool(k): found[name] for k, name in enumerate(_WEIGHTS) if found[name].size}
        self._weights = {key: enlarged(beta, self._offsets.size) for key, beta in given.items()}

    def add(self, stars: np.ndarray, offsets: np.ndarray) -> None:
        """Add a plane to each block: rows a of shape (P, d), and offsets b of shape (P,).

        Raises
        ------
        RunFailedError
            If there is no memory for them.
        """
        self._check_room(self.P)
        while self.size + self.P > self._offsets.size:
            self._grow()
        begin, self.size = self.size, self.size + self.P
        new = slice(begin, self.size)
        self._planes[new], self._offsets[new] = stars, offsets
        self._block[new] = np.arange(self.P)
        self._iteration += 1
        self._used[new] = self._iteration
        if self.P == 1:
            _add_row(self._gram, self._planes, begin)
        else:
            across = np.ascontiguousarray(self._planes[new].T)
            _add_rows(self._gram, self._planes, begin, across, np.zeros((4, self.P)))
        for j in range(begin, self.size):
            self._along[j] = _dot(self._planes[j], self._center)
        for weights in self._weights.values():
            weights[new] = 0.0

    def move_center(self, c: np.ndarray, heights: np.ndarray | None = None) -> None:
        """Set the centre c, to which the next solutions stay close.

        Parameters
        ----------
        c : ndarray, shape (d,)
        heights : ndarray, optional
            A c + b for the first planes, if known, and no plane has been dropped since.
        """
        self._center = c.copy()
        known = 0
        if heights is not None:
            known = heights.size
            self._along[:known] = heights - self._offsets[:known]
        for j in range(known, self.size):
            self._along[j] = _dot(self._planes[j], c)

    def minimise(self, lam: float, alpha: float, tol: float, most_steps: int) -> Reduced:
        """Solve the reduced problem, from the last solution's β, to a gap of ``tol``.

        If the search ends early (:func:`ssvm_bench.solvers.bundle.qp.maximise`), the gap is larger.
        If G has overflowed, w is NaN.
        """
        gram, block, q, mu = self.quadratic(lam, alpha)
        if not np.isfinite(np.diagonal(gram)[: self.size]).all():  # these bound the others
            return Reduced(np.full(self.d, np.nan), np.nan, 0.0, alpha, np.zeros(self.size))
        beta = self.weights(alpha > 0.0)
        found = qp.maximise(gram, block, q, mu, beta, tol, most_steps)
        w = (2.0 * alpha / mu) * self._center
        _subtract(self._planes, beta, 1.0 / mu, w)
        self._used[: self.size][beta > 0.0] = self._iteration
        still = alpha * lam / mu * _dot(self._center, self._center)
        return Reduced(w, found.value + still, found.gap, alpha, found.gradient)

    def quadratic(
        self, lam: float, alpha: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return G, the blocks, q and μ: the first arguments of :func:`qp.maximise`."""
        m, mu = self.size, lam + 2.0 * alpha
        q = self._offsets[:m] + (2.0 * alpha / mu) * self._along[:m]
        return self._gram, self._block[:m], q, mu

    def drop(self, age: int) -> bool:
        """Drop planes without weight in the last ``age`` iterations; return whether any were."""
        kept = np.flatnonzero(self._used[: self.size] > self._iteration - age)
        if kept.size == self.size:
            return False
        for array in (self._offsets, self._block, self._used, self._along):
            array[: kept.size] = array[kept]
        _close_up(self._planes, self._gram, kept)
        # a dropped plane may have weight in the last solution of the other kind of problem
        lost = np.ones(self.size, np.bool_)
        lost[kept] = False
        for proximal, weights in list(self._weights.items()):
            if weights[: self.size][lost].any():
                del self._weights[proximal]
            else:
                weights[: kept.size] = weights[kept]
        self.size = kept.size
        return True

    def weights(self, proximal: bool) -> np.ndarray:
        """Return β of the last solution with α > 0, or with α = 0; shape (m,), a view."""
        if proximal not in self._weights:
            self._weights[proximal] = np.zeros(self._offsets.size)
            other = self._weights.get(not proximal)
            if other is not None:
                self._weights[proximal][:] = other
            else:
                _, first = np.unique(self._block[: self.size], return_index=True)
                self._weights[proximal][first] = 1.0
        return self._weights[proximal][: self.size]

    def _grow(self) -> None:
        """Reserve space for only a quarter more planes, as G may take most of the memory."""
        room = self._offsets.size + self._offsets.size // 4
        self._check_room(self._offsets.size)  # for a moment, planes are at both places
        self._planes = enlarged(self._planes, room, self.d)
        self._gram = enlarged(self._gram, room, room)
        for name in ("_offsets", "_block", "_used", "_along"):
            setattr(self, name, enlarged(getattr(self, name), room))
        self._weights = {key: enlarged(beta, room) for key, beta in self._weights.items()}

    def _check_room(self, planes: int) -> None:
        """Raise ``RunFailedError`` unless there is memory for some planes more."""
        check_room(
            8.0 * (planes + _BESIDE) * self.d,
            f"The model has {self.size} planes of {self.d:,} numbers, and the next",
            "Drop planes that have no weight (BMRM and 1-slack: solver.drop=10), take fewer "
            "features or fewer planes (a larger λ or solver.epsilon), or a solver that keeps "
            "labelings in place of such planes, as solver=mpbcfw_fast does.",
        )


@kernel
def _dot(a, b):
    """Return ⟨a, b⟩ in eight interleaved sums."""
    k = 0
    t0, t1, t2, t3, t4, t5, t6, t7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while k + 8 <= a.size:
        t0 += a[k] * b[k]
        t1 += a[k + 1] * b[k + 1]
        t2 += a[k + 2] * b[k + 2]
        t3 += a[k + 3] * b[k + 3]
        t4 += a[k + 4] * b[k + 4]
        t5 += a[k + 5] * b[k + 5]
        t6 += a[k + 6] * b[k + 6]
        t7 += a[k + 7] * b[k + 7]
        k += 8
    while k < a.size:
        t0 += a[k] * b[k]
        k += 1
    return ((t0 + t1) + (t2 + t3)) + ((t4 + t5) + (t6 + t7))


@kernel
def _add_row(gram, planes, new):
    """Compute row and column ``new`` of G."""
    for j in range(new + 1):
        gram[j, new] = _dot(planes[j], planes[new])
        gram[new, j] = gram[j, new]


@kernel
def _add_rows(gram, planes, begin, across, sums):
    """Compute the last P rows and columns of G, from ``begin`` on: a product of matrices.

    ``across`` holds the last P planes as columns, shape (d, P), so that the inner loop runs over P
    products at once. It does so for four of all planes and four entries: each number that is loaded
    enters four products. ``sums`` is scratch, of shape (4, P).
    """
    d, P = across.shape
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    for first in range(0, begin + P, 4):
        j = min(first, len(planes) - 4)
        p0, p1, p2, p3 = planes[j], planes[j + 1], planes[j + 2], planes[j + 3]
        sums[:] = 0.0
        k = 0
        while k + 4 <= d:
            a, b, c, e = across[k], across[k + 1], across[k + 2], across[k + 3]
            f0, f1, f2, f3 = _four(p0, k), _four(p1, k), _four(p2, k), _four(p3, k)
            for p in range(P):
                new = a[p], b[p], c[p], e[p]
                s0[p] += _sum_of(f0, new)
                s1[p] += _sum_of(f1, new)
                s2[p] += _sum_of(f2, new)
                s3[p] += _sum_of(f3, new)
            k += 4
        while k < d:
            for q in range(4):
                for p in range(P):
                    sums[q, p] += planes[j + q, k] * across[k, p]
            k += 1
        for q in range(4):
            for p in range(P):
                gram[j + q, begin + p] = sums[q, p]
                gram[begin + p, j + q] = sums[q, p]


@kernel
def _four(plane, k):
    return plane[k], plane[k + 1], plane[k + 2], plane[k + 3]


@kernel
def _sum_of(x, y):
    return (x[0] * y[0] + x[1] * y[1]) + (x[2] * y[2] + x[3] * y[3])


@kernel
def _close_up(planes, gram, kept):
    """Move the rows ``kept``, in rising order, to the front; no row is read after it is written."""
    for new in range(kept.size):
        old = kept[new]
        if new < old:
            source, target = planes[old], planes[new]
            for k in range(source.size):
                target[k] = source[k]
        source, target = gram[old], gram[new]
        for other in range(kept.size):
            target[other] = source[kept[other]]


@kernel
def _subtract(planes, beta, scale, w):
    """Subtract scale · Aᵀβ from w."""
    for j in range(beta.size):
        if beta[j] > 0.0:
            factor = scale * beta[j]
            row = planes[j]
            for k in range(w.size):
                w[k] -= factor * row[k]
