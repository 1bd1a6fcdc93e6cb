"""Inner products that give the same bits on every machine, and line searches.

Each function has its own order of summation, which is fixed: stored results must be reproducible.
BLAS has none: its sums depend on the processor, on the number of threads, on where arrays are in
memory, and on the rows beside a row. A resumed run has its arrays elsewhere, so what a solver sums,
it sums here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types

from ssvm_bench.base.jit import intrinsic, kernel
from ssvm_bench.base.nonzeros import Nonzeros

# mypy: disable-error-code="no-untyped-def"


@kernel
def line_search(slope, curvature, limit=1.0):
    """Return argmax over γ in [0, limit] of γ · slope − γ²/2 · curvature.

    Parameters
    ----------
    slope, curvature : float
        Both may be scaled by the same factor. A slope ≤ 0 gives 0, and a curvature of 0 gives
        ``limit``. A curvature that has overflowed gives NaN: a step of length 0 would look like an
        optimum.
    limit : float
        Longest step.
    """
    if slope <= 0.0:
        return 0.0
    if not curvature < np.inf:
        return np.nan
    return limit if slope >= limit * curvature else slope / curvature


@kernel
def dot(a, b, size):
    """Return ⟨a, b⟩ over the first ``size`` entries of two vectors, in four interleaved sums."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k + 4 <= size:
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        k += 4
    while k < size:
        s0 += a[k] * b[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


_VECTORS, _LANES = 4, 4


@kernel
def dot_from(a, first, b, start, size):
    """Return Σ_k a[first + k] · b[start + k] over ``size`` entries, in 16 interleaved sums.

    Compilers keep the order of a sum, and so add one product at a time; this function adds four at
    a time. Numbers of any type are converted to float64 first.
    """
    whole = size - size % (_VECTORS * _LANES)
    total = _sum_of_products(a, first, b, start, whole)
    for k in range(whole, size):
        total += a[first + k] * b[start + k]
    return total


@kernel
def _lane(a, first, b, start, size, l):
    """Return the sum of lane l of `_plain_sum_of_products`: one of every vector, then their sum."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for k in range(l, size, _VECTORS * _LANES):
        s0 += np.float64(a[first + k]) * np.float64(b[start + k])
        s1 += np.float64(a[first + k + _LANES]) * np.float64(b[start + k + _LANES])
        s2 += np.float64(a[first + k + 2 * _LANES]) * np.float64(b[start + k + 2 * _LANES])
        s3 += np.float64(a[first + k + 3 * _LANES]) * np.float64(b[start + k + 3 * _LANES])
    return (s0 + s1) + (s2 + s3)


def _plain_sum_of_products(a, first, b, start, size):
    given = a, first, b, start, size
    return (_lane(*given, 0) + _lane(*given, 1)) + (_lane(*given, 2) + _lane(*given, 3))


@intrinsic(_plain_sum_of_products)
def _sum_of_products(typing: Any, a: Any, first: Any, b: Any, start: Any, size: Any) -> Any:
    """Do `dot_from` for a size that is a multiple of the number of sums."""
    from numba.core import cgutils  # an internal: imported only where these are used

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, first, other, start, size = arguments
        index, number = size.type, ir.VectorType(ir.DoubleType(), _LANES)

        def loaded(kind: Any, array: Any, place: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            vector = ir.VectorType(context.get_data_type(kind.dtype), _LANES)
            address = builder.bitcast(builder.gep(data, [place]), vector.as_pointer())
            return _as_doubles(builder, builder.load(address, align=1), kind.dtype, number)

        zero = number([0.0] * _LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(_VECTORS)]
        step = index(_VECTORS * _LANES)
        with cgutils.for_range_slice(builder, index(0), size, step, index) as (k, _):
            for v in range(_VECTORS):
                here = builder.add(k, index(v * _LANES))
                x = loaded(signature.args[0], one, builder.add(first, here))
                y = loaded(signature.args[2], other, builder.add(start, here))
                builder.store(builder.fadd(builder.load(sums[v]), builder.fmul(x, y)), sums[v])
        found = [builder.load(each) for each in sums]
        while len(found) > 1:
            found = [builder.fadd(x, y) for x, y in zip(found[::2], found[1::2], strict=True)]
        lanes = [builder.extract_element(found[0], ir.IntType(32)(l)) for l in range(_LANES)]
        while len(lanes) > 1:
            lanes = [builder.fadd(x, y) for x, y in zip(lanes[::2], lanes[1::2], strict=True)]
        return lanes[0]

    return types.float64(a, types.intp, b, types.intp, types.intp), codegen


def _as_doubles(builder: Any, values: Any, dtype: Any, number: Any) -> Any:
    """Convert a vector of numbers of a type to one of float64."""
    if dtype == types.float64:
        return values
    if isinstance(dtype, types.Float):
        return builder.fpext(values, number)
    if isinstance(dtype, types.Integer) and dtype.signed:
        return builder.sitofp(values, number)
    return builder.uitofp(values, number)  # a bool is stored as a byte


@kernel
def dot_at(values, places, w):
    """Return Σ_k values[k] · w[places[k]], in four interleaved sums: the same bits everywhere."""
    k = 0
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    while k + 4 <= values.size:
        t0 += values[k] * w[places[k]]
        t1 += values[k + 1] * w[places[k + 1]]
        t2 += values[k + 2] * w[places[k + 2]]
        t3 += values[k + 3] * w[places[k + 3]]
        k += 4
    while k < values.size:
        t0 += values[k] * w[places[k]]
        k += 1
    return (t0 + t1) + (t2 + t3)


@kernel
def squared_norm(w):
    """Return ‖w‖² of a vector, summed in order."""
    total = 0.0
    for value in w:
        total += value * value
    return total


def inner(a: np.ndarray | Nonzeros, b: np.ndarray | Nonzeros) -> float:
    """Return ⟨a, b⟩ of two arrays of one shape, or of two vectors non-zero at the same places."""
    if isinstance(a, Nonzeros) and isinstance(b, Nonzeros):
        a, b = a.values, b.values
    one, other = (np.ascontiguousarray(each, np.float64).reshape(-1) for each in (a, b))
    return float(dot_from(one, 0, other, 0, one.size))


def norm(a: np.ndarray | Nonzeros) -> float:
    """Return ‖a‖₂ of a vector, ‖a‖_F of a matrix."""
    return math.sqrt(inner(a, a))


def applied(a: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the product of a matrix and a vector."""
    found = np.empty(len(a))
    _apply(np.ascontiguousarray(a, np.float64), np.ascontiguousarray(v, np.float64), found)
    return found


@kernel
def _apply(a, v, found):
    for i in range(found.size):
        found[i] = dot_from(a[i], 0, v, 0, v.size)


_ROWS, _COLUMNS = 6, 8
"""Size of the tiles of a product, whose sums are in registers: a tile takes 12 of AVX2's 16."""

_TILES = 8
"""Tiles beside each other whose columns are copied at once: less would miss the cache."""


def matrix_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two matrices of float64.

    Each number is summed in order, one product at a time, so that its bits depend on its row of a
    and its column of b only.
    """
    (m, size), n = a.shape, b.shape[1]
    rows = np.zeros((-(-m // _ROWS) * _ROWS, size))
    rows[:m] = a
    found = np.empty((len(rows), n))
    scratch = np.zeros((_TILES, size, _COLUMNS)), np.empty((_ROWS, _COLUMNS))
    _multiply(rows, np.ascontiguousarray(b), found, *scratch)
    return found[:m]


@kernel
def _multiply(rows, columns, found, panel, tile):
    """Write the product tile by tile; the last two arrays are scratch."""
    size, n = columns.shape
    of_rows, of_panel = rows.reshape(rows.size), panel.reshape(panel.size)
    of_tile, whole = tile.reshape(tile.size), found.reshape(found.size)
    for begin in range(0, n, _TILES * _COLUMNS):
        end = min(begin + _TILES * _COLUMNS, n)
        for k in range(size):
            at, place = columns[k, begin:end], k * _COLUMNS
            for j in range(0, at.size - at.size % _COLUMNS, _COLUMNS):
                for c in range(_COLUMNS):
                    of_panel[place + c] = at[j + c]
                place += size * _COLUMNS
            for j in range(at.size - at.size % _COLUMNS, at.size):
                of_panel[place + j % _COLUMNS] = at[j]
        for j in range(begin, end, _COLUMNS):
            for i in range(0, found.shape[0], _ROWS):
                given = of_rows, i * size, size, of_panel, (j - begin) * size
                if j + _COLUMNS <= n:
                    _tile(*given, whole, i * n + j, n)
                else:
                    _tile(*given, of_tile, 0, _COLUMNS)
                    for r in range(_ROWS):
                        for c in range(n - j):
                            found[i + r, j + c] = tile[r, c]


def _plain_tile(rows, start, size, columns, first, found, at, step):
    for r in range(_ROWS):
        for c in range(_COLUMNS):
            total = 0.0
            for k in range(size):
                total += rows[start + r * size + k] * columns[first + k * _COLUMNS + c]
            found[at + r * step + c] = total


@intrinsic(_plain_tile)
def _tile(
    typing: Any,
    rows: Any,
    start: Any,
    size: Any,
    columns: Any,
    first: Any,
    found: Any,
    at: Any,
    step: Any,
) -> Any:
    """Multiply ``_ROWS`` rows, which begin at ``start``, by ``_COLUMNS`` columns, at ``first``.

    Row r of the product is written to ``found[at + r · step:]``. Compilers do not keep the sums in
    registers.
    """
    from numba.core import cgutils  # as above

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, start, size, b, first, out, at, step = arguments
        index, number = size.type, ir.VectorType(ir.DoubleType(), _COLUMNS)
        lanes = ir.VectorType(ir.IntType(32), _COLUMNS)([0] * _COLUMNS)
        none = ir.Constant(number, ir.Undefined)

        def address(kind: Any, array: Any, place: Any) -> Any:
            return builder.gep(context.make_array(kind)(context, builder, array).data, [place])

        def vector(kind: Any, array: Any, place: Any) -> Any:
            return builder.bitcast(address(kind, array, place), number.as_pointer())

        zero = number([0.0] * _COLUMNS)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(_ROWS)]
        with cgutils.for_range_slice(builder, index(0), size, index(1), index) as (k, _):
            place = builder.add(first, builder.mul(k, index(_COLUMNS)))
            y = builder.load(vector(signature.args[3], b, place), align=8)
            for r, total in enumerate(sums):
                here = builder.add(builder.add(start, builder.mul(size, index(r))), k)
                x = builder.load(address(signature.args[0], a, here))
                x = builder.insert_element(none, x, ir.IntType(32)(0))
                x = builder.shuffle_vector(x, none, lanes)
                builder.store(builder.fadd(builder.load(total), builder.fmul(x, y)), total)
        for r, total in enumerate(sums):
            place = builder.add(at, builder.mul(step, index(r)))
            builder.store(builder.load(total), vector(signature.args[5], out, place), align=8)
        return context.get_dummy_value()

    given = types.intp, types.intp, columns, types.intp, found, types.intp, types.intp
    return types.void(rows, *given), codegen


def rounded_once(a: np.ndarray, b: np.ndarray) -> float:
    """Return ⟨a, b⟩; the sum of the rounded products is rounded once."""
    return math.fsum(a * b)


Point: TypeAlias = tuple[np.ndarray, float]
"""A plane φ as (w, φ∘), w = −φ⋆/λ."""


def best_interpolation(
    lam: float, one: Point, other: Point, metric: Callable[[np.ndarray], np.ndarray] = lambda w: w
) -> Point:
    """Return the point between two planes, as (w, φ∘), with the highest dual value.

    The inner product of v and w is ⟨v, ``metric`` w⟩. F is a concave parabola on the segment, so
    its maximum over [0, 1] has a closed form (Algorithm 1, step 5; MP-BCFW, section 3.5).
    """
    (w, offset), (w_other, offset_other) = one, other
    step, climb = w_other - w, offset_other - offset
    of_step = metric(step)
    slope = climb - lam * inner(w, of_step)
    curvature = lam * inner(step, of_step)
    gamma = line_search(slope, curvature)
    return w + gamma * step, offset + gamma * climb


def best_scale(norm2: float, offset: float, old: float, new: float) -> float:
    """Return the s in [0, 1] for which s φ has the highest dual value at a new λ.

    φ is given by ‖w‖², w = −φ⋆/λ at the ``old`` λ, and by ``offset`` = φ∘. All s φ are feasible:
    they are between φ and the planes of the ground truth, which are 0. If φ is the optimum at the
    old λ and the new λ is smaller, the new s w λ/λ_new is about w again.
    """
    return line_search(offset, old * old / new * norm2)
