"""Compilation: dispatch on the type of the first argument, and a cache that is never stale."""

import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from ssvm_bench.base.jit import (
    abstract,
    allocating_kernel,
    generic,
    implements,
    kernel,
    nanoseconds,
    source_digest,
)


class Square(NamedTuple):
    side: float


class Circle(NamedTuple):
    radius: float


class Line(NamedTuple):
    length: float


@abstract
def area(shape, times):
    """Return times · the area of a shape."""


@implements(area, Square)
def _square(shape, times):
    return times * shape.side**2


@implements(area, Circle)
def _circle(shape, times):
    return times * np.pi * shape.radius**2


@generic
def perimeter(shape):
    """Return the way around a shape: of a line, there and back."""
    return 2 * shape.length


@implements(perimeter, Square)
def _around_square(shape):
    return 4 * shape.side


@kernel
def described(shape):
    return perimeter(shape)


@kernel
def twice(shape):
    return area(shape, 2.0)


def test_the_type_of_the_first_argument_selects_the_implementation():
    assert twice(Square(3.0)) == 18.0
    assert twice(Circle(1.0)) == 2.0 * np.pi


def test_the_body_of_a_generic_operation_is_for_types_without_an_implementation():
    assert perimeter(Line(3.0)) == described(Line(3.0)) == 6.0
    assert perimeter(Square(3.0)) == described(Square(3.0)) == 12.0


def test_kernels_inside_others_have_no_wrappers_and_can_be_called_nonetheless():
    @kernel
    def half(value):
        return 0.5 * value

    @kernel
    def quarter(value):
        return half(half(value))

    assert quarter(3.0) == 0.75
    assert [list(each.overloads) for each in (half, half.inlined)] == [[], [(numba.float64,)]]
    (inner,) = half.inlined.overloads.values()
    assert "cpython" not in inner.library.get_llvm_str()  # option no_cpython_wrapper
    engine = inner.library.codegen._engine
    assert not engine.is_symbol_defined(inner.fndesc.llvm_func_name)  # no machine code of it
    assert half(3.0) == 1.5


def test_kernels_are_compiled_without_reference_counts():
    @kernel
    def first(pair):
        return pair[0][0]

    @allocating_kernel
    def ones(n):
        return np.ones(n)

    arrays = np.ones(2), np.zeros(3)
    assert first(arrays) == 1.0
    assert "NRT_" not in first.inspect_llvm(first.signatures[0])  # option _nrt
    ones(2)
    assert "NRT_" in ones.inspect_llvm(ones.signatures[0])


KERNELS = """
import sys
from ssvm_bench.base.jit import kernel

@kernel
def half(value):
    return 0.5 * value

@kernel
def quarter(value):
    return half(half(value))

@kernel
def eighth(value):
    return half(quarter(value))

print(globals()[sys.argv[1]](4.0), sum(half.inlined._cache_hits.values()))
"""


def test_code_that_is_inlined_is_kept_for_other_callers(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    for caller, printed in (("quarter", "1.0 0"), ("eighth", "0.5 1"), ("eighth", "0.5 0")):
        done = subprocess.run(
            [sys.executable, str(path), caller],
            env={"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == printed


def test_a_type_without_an_implementation_fails_to_compile():
    with pytest.raises(numba.core.errors.TypingError, match="area"):
        twice(Line(1.0))


def test_kernels_never_fall_back_on_python():
    @kernel
    def opaque(value):
        return {}.setdefault(value, print)

    with pytest.raises(numba.core.errors.NumbaError):
        opaque(object())


def test_the_digest_follows_kernels_only(tmp_path):
    (tmp_path / "kernels.py").write_text("from ssvm_bench.base.jit import kernel\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    before = source_digest(tmp_path)
    (tmp_path / "other.py").write_text("x = 2\n")
    assert source_digest(tmp_path) == before
    (tmp_path / "kernels.py").write_text("from ssvm_bench.base.jit import kernel\ny = 1\n")
    assert source_digest(tmp_path) != before


def test_the_cache_goes_below_the_folder_that_numba_is_told(tmp_path):
    code = "import numba, ssvm_bench.base.jit; print(numba.config.CACHE_DIR)"
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(tmp_path / "kernels-"))


def test_the_clock_inside_kernels_does_not_run_backwards():
    timespec = np.zeros(2, np.int64)
    readings = [nanoseconds(timespec) for _ in range(100)]
    assert readings == sorted(readings)
    assert readings[-1] > readings[0]


def test_kernels_of_one_name_that_differ_in_a_constant_are_two():
    def made(name):
        return {"one": kernel(lambda x: x + 1.0), "two": kernel(lambda x: x + 2.0)}[name]

    assert made("one")(1.0) == 2.0
    assert made("two")(1.0) == 3.0
