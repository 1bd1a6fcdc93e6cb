"""Kernels executed by plain Python find the bits that compiled ones find."""

import json
from pathlib import Path

import families
import numpy as np
import pytest
from program import python

from ssvm_bench.base import interpreted, jit, linalg


@pytest.fixture(scope="module")
def by_python():
    """Return what an interpreted program finds in all cases."""
    words = "-W", "error::RuntimeWarning", Path(families.__file__)
    done = python(*words, NUMBA_DISABLE_JIT=1, NUMBA_CACHE_DIR="/proc/nothing")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", families.CASES)
def test_every_family_has_the_same_bits(by_python, case):
    assert families.found(case) == by_python[case]


def test_plain_functions_have_the_bits_of_the_intrinsics_that_they_replace(monkeypatch):
    rng = np.random.default_rng(0)
    a, b, columns = rng.normal(size=(7, 50)), rng.normal(size=(7, 50)), rng.normal(size=(50, 11))

    def found():
        return linalg.inner(a, b).hex(), linalg.matrix_product(a, columns).tobytes()

    compiled = found()
    for kernel in (linalg.dot_from, linalg._multiply):
        monkeypatch.setattr(linalg, kernel.__name__, interpreted.compiled(kernel.py_func))
    monkeypatch.setattr(linalg, "_sum_of_products", linalg._plain_sum_of_products)
    monkeypatch.setattr(linalg, "_tile", linalg._plain_tile)
    assert found() == compiled


def test_an_interpreted_kernel_computes_with_the_numbers_of_a_compiled_one():
    def kernel(bytes_, singles, pair):
        pair[1][0] += bytes_[0] * bytes_[1] - 60000  # neither a byte nor a float32 has room for it
        pair[1][1] += singles[0] * singles[1]  # a float32
        pair[1][2] += 3.0 * singles[0] + singles[0] * pair[1][3]  # a float64

    def called(function):
        doubles = np.array([0.1, 0.1, 0.1, 0.7])
        function(np.array([255, 254], np.uint8), np.float32([0.1, 0.3]), (0, doubles))
        return doubles.tolist()

    assert called(interpreted.compiled(kernel)) == called(jit.kernel(kernel))
