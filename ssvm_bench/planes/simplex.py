"""φ^i as a convex combination of the planes of W_i, and inner products of these planes.

For term i with the planes p = 0 … m−1 of its working set, all multiplied by n:

.. code-block:: text

    α[p] ≥ 0, Σ_p α[p] = 1        n φ^i = Σ_p α[p] n φ^{ip}
    K[p, q] = n² ⟨φ^{ip}⋆, φ^{iq}⋆⟩
    v[p]    = n² ⟨φ^{ip}⋆, φ^i⋆⟩                       u = n² ‖φ^i⋆‖²

K is computed once for each pair of planes and kept while both planes are kept. So steps over the
working set read w only once. α is kept only if planes with weight must not be dropped (away,
pairwise and coordinate steps); v and u do not need α. Coordinate steps do not need v and u, nor K
if they compute inner products whenever they need one.

The numbers of term i are the ``room[i]`` entries from ``start[i]``. Its K is stored from
``gram_start[i]``, row by row, ``room[i]`` entries a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base import state
from ssvm_bench.base.jit import kernel
from ssvm_bench.base.state import Limits
from ssvm_bench.planes import operations
from ssvm_bench.planes.operations import entries

# mypy: disable-error-code="no-untyped-def"

CHANGED = ("alpha", "product", "square", "known")
"""Fields that visits without new planes change."""

_ROOM = 4


class Simplex(NamedTuple):
    """See the module's docstring.

    Attributes
    ----------
    start, room, gram_start : ndarrays of int64, shape (n,)
    alpha, product : ndarrays of float64
        α and v of every term.
    gram : ndarray of float64
        K of every term; of shape (0,) where it is not kept.
    square : ndarray of float64, shape (n,)
        u.
    known : ndarray of int64, shape (n,)
        How many planes of W_i, the first ones, have their α, v and K stored; the others are new.
    values, change, row : ndarrays of float64, shape (largest room,)
        Scratch: ⟨n φ^{ip}, [w 1]⟩, the change of α in a visit, a row of K.
    order : ndarray of int64, shape (largest room,)
        Scratch: the order in which a visit takes the planes.
    """

    start: np.ndarray
    room: np.ndarray
    gram_start: np.ndarray
    alpha: np.ndarray
    product: np.ndarray
    gram: np.ndarray
    square: np.ndarray
    known: np.ndarray
    values: np.ndarray
    change: np.ndarray
    row: np.ndarray
    order: np.ndarray


def allocate(n: int, room: np.ndarray | None = None, with_gram: bool = True) -> Simplex:
    """Return the numbers of n terms: W_i is empty, and φ^i is the first plane that will enter it.

    Parameters
    ----------
    n : int
    room : ndarray of int64, shape (n,), optional
        Initial capacity of each term, at least one plane.
    with_gram : bool
        Whether K is kept.
    """
    if room is None:
        room = np.full(n, _ROOM, np.int64)
    simplex = no_weights(room, np.zeros(n), np.zeros(n, np.int64), with_gram)
    simplex.alpha[simplex.start] = 1.0
    return simplex


def reserve(simplex: Simplex, needed: np.ndarray) -> Simplex:
    """Return the numbers with space for ``needed`` planes of each term, int64, shape (n,)."""
    room = operations.grown(simplex.room, needed)
    if (room == simplex.room).all():
        return simplex
    larger = no_weights(room, simplex.square, simplex.known, simplex.gram.size > 0)
    _move(simplex, larger)
    return larger


def no_weights(
    room: np.ndarray, square: np.ndarray, known: np.ndarray, with_gram: bool = True
) -> Simplex:
    """Return numbers with the given u and ``known``, ``room[i]`` entries a term, and the rest 0."""
    most = int(room.max())
    return Simplex(
        start=np.cumsum(room) - room,
        room=room,
        gram_start=np.cumsum(room**2) - room**2,
        alpha=np.zeros(room.sum()),
        product=np.zeros(room.sum()),
        gram=np.zeros((room**2).sum() if with_gram else 0),
        square=square,
        known=known,
        values=np.zeros(most),
        change=np.zeros(most),
        row=np.zeros(most),
        order=np.zeros(most, np.int64),
    )


@kernel
def _move(old, new):
    for i in range(old.start.size):
        for p in range(max(old.known[i], 1)):
            new.alpha[new.start[i] + p] = old.alpha[old.start[i] + p]
            new.product[new.start[i] + p] = old.product[old.start[i] + p]
            for q in range(old.known[i] if old.gram.size > 0 else 0):
                new.gram[new.gram_start[i] + p * new.room[i] + q] = old.gram[
                    old.gram_start[i] + p * old.room[i] + q
                ]


@kernel
def enter(simplex, blocks, i):
    """Give the new planes of W_i in the storage ``blocks`` weight 0, and compute their K.

    The first plane that ever enters W_i is φ^i: its α stays 1.
    """
    for p in range(simplex.known[i], blocks.n_planes[i]):
        if simplex.gram.size > 0:
            set_row(simplex, blocks, i, p)
        if p > 0:
            simplex.alpha[simplex.start[i] + p] = 0.0
    simplex.known[i] = blocks.n_planes[i]


@kernel
def set_row(simplex, blocks, i, p):
    """Compute K of plane p of term i with itself and the planes before it."""
    operations.inner_products(blocks, i, p, simplex.row)
    for q in range(p + 1):
        simplex.gram[simplex.gram_start[i] + p * simplex.room[i] + q] = simplex.row[q]
        simplex.gram[simplex.gram_start[i] + q * simplex.room[i] + p] = simplex.row[q]


@kernel
def complete(simplex, blocks, i):
    """Do `enter`, and compute v of the new planes; if the first ever is among them, u is its K."""
    known = simplex.known[i]
    enter(simplex, blocks, i)
    for p in range(known, blocks.n_planes[i]):
        simplex.product[simplex.start[i] + p] = operations.product_with_term(blocks, i, p)
        if p == 0:
            simplex.square[i] = simplex.gram[simplex.gram_start[i]]


@kernel
def renew(simplex, blocks, terms):
    """Recompute K, v and u of terms whose planes have changed, but not their weights."""
    for i in terms:
        for p in range(simplex.known[i]):
            if simplex.gram.size > 0:
                set_row(simplex, blocks, i, p)
            simplex.product[simplex.start[i] + p] = operations.product_with_term(blocks, i, p)
        operations.set_direction_from_truth(blocks, i)
        simplex.square[i] = operations.squared_length(blocks, i)


@kernel
def forget(simplex, i, p):
    """Delete the numbers of plane p of term i, 0 ≤ p < |W_i|."""
    first = simplex.start[i]
    room = simplex.room[i]
    gram = simplex.gram[simplex.gram_start[i] :]
    last = simplex.known[i] - 1
    simplex.known[i] = last
    for q in range(p, last):
        simplex.alpha[first + q] = simplex.alpha[first + q + 1]
        simplex.product[first + q] = simplex.product[first + q + 1]
    if gram.size == 0:
        return
    for q in range(p, last):
        for r in range(last + 1):
            gram[q * room + r] = gram[(q + 1) * room + r]
    for q in range(last):
        for r in range(p, last):
            gram[q * room + r] = gram[q * room + r + 1]


# ---- as arrays, and back (:mod:`.operations`) --------------------------------------------------


@state.of.register
def _(numbers: Simplex) -> dict[str, np.ndarray]:
    count = np.maximum(numbers.known, 1)  # the first plane has its weight before it is known
    planes, gram = entries(numbers.start, count), numbers.gram
    if gram.size:
        number = planes - np.repeat(numbers.start, count)
        row = np.repeat(numbers.gram_start, count) + number * np.repeat(numbers.room, count)
        gram = gram[entries(row, np.repeat(count, count))]
    return {
        "known": numbers.known,
        "square": numbers.square,
        "alpha": numbers.alpha[planes],
        "product": numbers.product[planes],
        "gram": gram,
    }


def _weights(found: Any, _: Simplex) -> np.ndarray:
    """Return the number of weights of each term."""
    return np.maximum(found["known"], 1)


def _products(found: Any, numbers: Simplex) -> np.ndarray:
    """Return the number of inner products of each term."""
    return _weights(found, numbers) ** 2 * min(numbers.gram.size, 1)


_LIMITS = {
    **dict.fromkeys(("alpha", "product"), Limits(size=_weights)),
    "gram": Limits(size=_products),
}

OF_SIMPLEX = {
    "policy.simplex": Limits(
        of=lambda found, _: found["policy.simplex"].known, most="phi.blocks.n_planes"
    )
}
"""What must hold of the numbers of a policy, beside an iterate that is restored before."""


@state.like.register
def _(numbers: Simplex, given: Any) -> Simplex:
    found = state.parts_like(state.of(numbers), given, _LIMITS, numbers)
    room, with_gram = _weights(found, numbers), numbers.gram.size > 0
    return no_weights(room, found["square"], found["known"], with_gram)._replace(**found)
