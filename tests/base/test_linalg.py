"""Sums that have the same bits wherever arrays are, and whatever is beside them."""

import itertools

import numpy as np
import pytest

from ssvm_bench.base.linalg import applied, inner, matrix_product, norm
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.oracles.kernels import KernelFunction, KernelPoints

pytestmark = pytest.mark.processors

SHAPES = [(1, 1, 1), (1, 5, 9), (6, 8, 64), (7, 9, 65), (13, 40, 130), (5, 300, 3), (2, 1, 200)]


def at(array, offset):
    """Return a copy of an array that begins so many bytes after a multiple of 64."""
    room = np.empty(array.nbytes + 128, np.uint8)
    begin = -room.ctypes.data % 64 + offset
    moved = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[:] = array
    return moved


def of_all_places(function, *arrays):
    """Return what a function gives, which has to be the same wherever its arguments are."""
    expected = function(*arrays)
    for offsets in itertools.product((0, 8, 24, 40), repeat=len(arrays)):
        np.testing.assert_array_equal(function(*map(at, arrays, offsets)), expected)
    return expected


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 100, 1001])
def test_inner_products_do_not_depend_on_where_vectors_are(size):
    a, b = np.random.default_rng(size).normal(size=(2, size))
    assert of_all_places(inner, a, b) == pytest.approx(np.sum(a * b), rel=1e-12, abs=1e-13)
    assert norm(a) == pytest.approx(np.sqrt(np.sum(a * a)), rel=1e-14)
    places = np.arange(size)
    assert inner(Nonzeros(size, places, a), Nonzeros(size, places, b)) == inner(a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_inner_products_are_of_numbers_of_any_type_and_layout(dtype):
    a, b = (np.random.default_rng(3).normal(size=(2, 8, 6)) * 3).astype(dtype)
    wanted = pytest.approx(np.sum(a.astype(float) * b), rel=1e-12)
    assert inner(a, b) == wanted
    assert inner(np.asfortranarray(a), b) == inner(a, b)
    assert inner(np.repeat(a, 2, axis=1)[:, ::2], b) == inner(a, b)
    np.testing.assert_allclose(applied(a.T, b[:, 0]), a.T.astype(float) @ b[:, 0], rtol=1e-12)


@pytest.mark.parametrize(("m", "size", "n"), SHAPES)
def test_numbers_of_a_product_do_not_depend_on_their_neighbours(m, size, n):
    rng = np.random.default_rng(size)
    a, b = rng.normal(size=(m, size)), rng.normal(size=(size, n))
    whole = of_all_places(matrix_product, a, b)
    np.testing.assert_allclose(whole, np.einsum("ik,kj->ij", a, b), rtol=1e-9, atol=1e-12)
    order = rng.permutation(m)[: 1 + m // 2]
    columns = rng.permutation(n)[: 1 + n // 2]
    part = matrix_product(a[order], b[:, columns])
    np.testing.assert_array_equal(part, whole[np.ix_(order, columns)])
    np.testing.assert_array_equal(matrix_product(np.asfortranarray(a), b.T.copy().T), whole)
    np.testing.assert_allclose(of_all_places(applied, a, b[:, 0]), whole[:, 0], atol=1e-12)


@pytest.mark.parametrize(("m", "size", "n"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_products_of_empty_matrices(m, size, n):
    np.testing.assert_array_equal(matrix_product(np.ones((m, size)), np.ones((size, n))), 0.0)
    assert matrix_product(np.ones((m, size)), np.ones((size, n))).shape == (m, n)


def test_what_is_not_finite_stays_in_its_row_and_column():
    a, b = np.ones((7, 3)), np.ones((3, 9))
    a[2, 1], b[0, 4] = np.nan, np.inf
    found = matrix_product(a, b)
    assert np.isnan(found[2]).all()
    assert np.isposinf(np.delete(found[:, 4], 2)).all()
    assert (np.delete(np.delete(found, 2, 0), 4, 1) == 3.0).all()


@pytest.mark.parametrize("kind", ["rbf", "poly"])
@pytest.mark.parametrize("f", [1, 3, 40])
def test_a_row_of_kernel_values_is_the_same_beside_any_others(kind, f):
    points = KernelPoints.of(np.random.default_rng(f).normal(size=(150, f)))
    kernel = KernelFunction(kind, 0.1, 3, 10**6)
    whole = kernel.values(points, points)
    for rows in ([0], [149, 3], range(0, 150, 7), range(64, 128)):
        np.testing.assert_array_equal(kernel.values(points.take([*rows]), points), whole[[*rows]])
        of_some = kernel.values(points, points.take([*rows]))
        np.testing.assert_array_equal(of_some, whole[:, [*rows]])
