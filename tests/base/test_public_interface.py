"""A numba with other internals: its public interface makes kernels, of equal bits."""

import json
from pathlib import Path

import families
import pytest
from program import python

from ssvm_bench.base import jit

RENAMED = """
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
init = CPUDispatcher.__init__

def renamed(self, py_func, locals=None, targetoptions=None, pipeline=Compiler):
    init(self, py_func, locals, targetoptions, pipeline)

CPUDispatcher.__init__ = renamed
"""
NEWER = """
import numba
numba.version_info = (0, 99, 0)
"""
BEHAVES_DIFFERENTLY = f"""{NEWER}
from numba import types
types.Dispatcher.get_overload = lambda self, sig: self.dispatcher.get_overload(sig)
"""
CHOSEN = "from ssvm_bench.base import jit; print(jit._way.__name__)"
SAID = f"`pip install 'numba<{jit._KNOWN[0]}.{jit._KNOWN[1] + 1}'` is much faster."


@pytest.mark.parametrize(
    ("changes", "way"),
    [(NEWER, "compiler"), (BEHAVES_DIFFERENTLY, "public_interface")],
    ids=["newer, but as expected", "newer and different"],
)
def test_a_newer_numba_is_tried_before_it_is_used(tmp_path, changes, way):
    done = python("-c", changes + CHOSEN, NUMBA_CACHE_DIR=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"ssvm_bench.base.{way}\n")
    lines = done.stderr.splitlines()
    assert len(lines) == (way == "public_interface")
    assert all(SAID in line for line in lines)


def test_other_internals_give_the_same_bits_by_the_public_interface(tmp_path):
    program = f"""{RENAMED}
import runpy, sys
sys.path.insert(0, {str(Path(families.__file__).parent)!r})
runpy.run_module("families", run_name="__main__")
"""
    cases = "multiclass/bcfw", "chains/mpbcfw"
    done = python("-c", program, *cases, NUMBA_CACHE_DIR=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "pipeline_class" in line
    assert line.endswith("by its public interface, which takes longer.")  # no other numba is better
    assert json.loads(done.stdout) == {case: families.found(case) for case in cases}
