"""Compilation: dispatch on the type of the first argument, and a cache that is never stale."""

import gc
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.registry import CPUDispatcher
from program import python

from ssvm_bench.base.jit import (
    CACHE_FOLDER,
    abstract,
    allocating_kernel,
    implements,
    kernel,
    nanoseconds,
    shared_kernel,
)
from ssvm_bench.base.kernel_folder import source_digest

KERNELS = """
import sys
import numpy as np
from ssvm_bench.base.jit import allocating_kernel, kernel, shared_kernel

@allocating_kernel
def tripled(value):
    return 3.0 * np.full(2, value)[1]

@kernel
def half(value):
    return 0.5 * value

@kernel
def quarter(value):
    return half(half(value))

@kernel
def eighth(value):
    return half(quarter(value))

@shared_kernel
def doubled(value):
    return 2.0 * value

@kernel
def quadrupled(value):
    return doubled(doubled(value))

result = globals()[sys.argv[1]](4.0)
compiles = "numba.np.linalg" in sys.modules
print(result, compiles, sum(half.inlined._cache_hits.values()))
"""


def test_what_is_compiled_is_kept_also_for_callers_that_inline_it_and_loads_no_compiler(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    for caller, printed in (
        ("quarter", "1.0 True 0"),
        ("eighth", "0.5 True 1"),
        ("eighth", "0.5 False 0"),
        ("tripled", "12.0 True 0"),
        ("tripled", "12.0 False 0"),
        ("quadrupled", "16.0 True 0"),
        ("quadrupled", "16.0 False 0"),
    ):
        done = python(path, caller, NUMBA_CACHE_DIR=tmp_path / "cache")
        assert done.stdout.strip() == printed, done.stderr

    # code that calls a shared kernel by its symbol is never loaded without it, or beside another
    for kept in tmp_path.glob("cache/*/kernels.doubled-*"):
        kept.unlink()
    for printed in ("16.0 True 0", "16.0 False 0"):
        done = python(path, "quadrupled", NUMBA_CACHE_DIR=tmp_path / "cache")
        assert done.stdout.strip() == printed, done.stderr


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
    done = python("-c", code, NUMBA_CACHE_DIR=tmp_path)
    assert done.stdout.startswith(str(tmp_path / "kernels-")), done.stderr


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


def test_a_literal_and_a_variable_share_the_compiled_code():
    @kernel
    def scaled(x, k):
        return x * k

    @kernel
    def total(k):
        return scaled(1.0, k) + scaled(1.0, 2) + scaled(3.0, -1)

    assert total(5) == 4.0
    if CACHE_FOLDER is not None:  # made by numba's internals
        assert len(scaled.inlined.overloads) == 1


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_is_off_while_a_kernel_is_compiled(monkeypatch, collects):
    meanwhile, compile_ = [], CPUDispatcher.compile

    def watched(self, sig):
        meanwhile.append(gc.isenabled())
        return compile_(self, sig)

    monkeypatch.setattr(CPUDispatcher, "compile", watched)

    @kernel
    def known(x):
        return x

    @kernel
    def opaque(x):
        return {}.setdefault(x, print)

    (gc.enable if collects else gc.disable)()
    try:
        assert known(1.0) == 1.0
        assert gc.isenabled() == collects
        with pytest.raises(numba.core.errors.NumbaError):
            opaque(object())
        assert gc.isenabled() == collects
        assert meanwhile
        assert CACHE_FOLDER is None or not any(meanwhile)
    finally:
        gc.enable()


class Inner(NamedTuple):
    weights: np.ndarray
    biases: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    factor: float
    calls: np.ndarray


@abstract
def weighted(inner, k):
    """Return weights[k] plus the bias."""


@implements(weighted, Inner)
def _weighted(inner, k):
    return inner.weights[k] + inner.biases[0]


@shared_kernel
def term(outer, k):
    outer.calls[k] += 1
    return outer.factor * weighted(outer.inner, k)


@kernel
def summed(outer, order):
    total = 0.0
    for k in order:
        total += term(outer, k) if k % 2 else term(Outer(outer.inner, -1.0, outer.calls), k)
    return total


@allocating_kernel
def listed(outer, order):
    terms = np.zeros(order.size)
    for k in range(order.size):
        terms[k] = term(outer, order[k]) + summed(outer, order[:0])
    return terms


def test_kernels_pass_named_tuples_on_with_all_that_is_in_them():
    order = np.array([1, 2, 3, 3])
    for kind in (np.float64, np.float32):  # a type of its own each
        outer = Outer(Inner(np.arange(4, dtype=kind), np.array([0.5], kind)), 2.0, np.zeros(4, int))
        assert summed(outer, order) == 2.0 * (1.5 + 3.5 + 3.5) - 2.5
        assert listed(outer, order).tolist() == [3.0, 5.0, 7.0, 7.0]
        assert term(outer, 0) == 1.0
        assert outer.calls.tolist() == [1, 2, 2, 4]
