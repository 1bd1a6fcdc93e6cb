"""Kernels that are compiled already: the package ``ssvm-bench-kernels``, if it is installed.

Its folder has a manifest and the files of `KernelCache` (:mod:`ssvm_bench.base.compiler`), compiled
for a baseline of processors and not for a single one, for one version each of Python, numba,
llvmlite and this program. They are read before the user's own cache, and never written.

Machine code fits exactly or not at all. So the package is used only if all that its manifest says
is as here; else it is ignored as a whole, with one line, and kernels are compiled. A setting of
numba that the user has chosen wins over it. If the package is used, all kernels of the process are
compiled for its target, because the target belongs to the key of a kernel; `adopted` therefore
comes before the first kernel. No ``fastmath`` and no contraction: the bits are those of any target.

The manifest is JSON::

    requires   versions, system, digest of the modules with kernels, settings: see `requirements`
    target     numba's CPU_NAME and CPU_FEATURES
    files      name → [bytes, sha256]

Internals of numba: ``_toplevel_target_context`` of its target, which exists once code generation
has begun, and ``get_host_cpu_features``, which respects ``NUMBA_ENABLE_AVX``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
from llvmlite import binding
from numba import config
from numba.core import registry
from numba.core.codegen import get_host_cpu_features

from ssvm_bench import __version__
from ssvm_bench.base import files
from ssvm_bench.base.errors import is_checkout, shown

logger = logging.getLogger(__name__)

PACKAGE, MANIFEST = "ssvm_bench_kernels", "manifest.json"

_SAID = "SSVM_BENCH_KERNELS_IGNORED"
"""Environment variable with the reason that a process has given: its children do not repeat it."""

_INSTALL = "pip install --upgrade ssvm-bench ssvm-bench-kernels"
_LONGEST = 1 << 20  # bytes of a manifest


class Precompiled(NamedTuple):
    """Files of kernels that are only read.

    Attributes
    ----------
    folder : Path or None
        None if there are none.
    files : dict
        Name → bytes and sha256, as in the manifest.
    """

    folder: Path | None = None
    files: dict[str, tuple[int, str]] = {}  # noqa: RUF012 - never changed

    def read(self, path: Path) -> bytes:
        """Return the content of a file of the folder.

        Raises
        ------
        KeyError
            The manifest has no file of this name.
        OSError
            The file cannot be read, or is not the one of the manifest.
        """
        size, digest = self.files[path.name]
        content = files.read(path, size)
        if hashlib.sha256(content).hexdigest() != digest:
            raise OSError(f"{path} is not the file of {MANIFEST}")
        return content


class _UnfitError(Exception):
    """The package cannot be used; the message is a clause that says why."""


def adopted(kernels: str) -> Precompiled:
    """Return the kernels of the package if they fit, and make their target that of this process.

    Parameters
    ----------
    kernels : str
        Digest of the modules with kernels, `ssvm_bench.base.kernel_folder.source_digest`.
    """
    folder = _installed()
    if folder is None:
        return Precompiled()
    try:
        required, target, listed = _manifest(folder / MANIFEST)
        _check(required, requirements(kernels))
        _check_target(target)
    except _UnfitError as error:
        _say(str(error))
        return Precompiled()
    config.CPU_NAME, config.CPU_FEATURES = target
    return Precompiled(folder / f"kernels-{kernels}", listed)


def requirements(kernels: str) -> dict[str, Any]:
    """Return what must be the same where kernels are compiled and where they are loaded."""
    return {
        "ssvm-bench": __version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "Python": sys.implementation.cache_tag,
        "system": binding.get_process_triple(),
        "kernels": kernels,
        "NUMBA_OPT": "max" if config.OPT.is_opt_max else int(config.OPT),
        "NUMBA_BOUNDSCHECK": config.BOUNDSCHECK,
        "NUMBA_DEBUGINFO": config.DEBUGINFO_DEFAULT,
        "NUMBA_LOOP_VECTORIZE": config.LOOP_VECTORIZE,
        "NUMBA_SLP_VECTORIZE": config.SLP_VECTORIZE,
    }


def _installed() -> Path | None:
    """Return the folder of the package, which is found but not imported; None if there is none.

    Machine code is executed, and Python finds modules in the current folder, which may be anyone's.
    So the package is not looked for there, unless it is where this program is installed.
    """
    with suppress(ImportError, ValueError, OSError):
        own, here = Path(__file__).parents[2].resolve(), Path.cwd().resolve()
        folders = [each for each in sys.path if own == here or Path(each).resolve() != here]
        found = PathFinder.find_spec(PACKAGE, folders)
        if found is not None and found.origin is not None:
            return Path(found.origin).parent
    return None


def _manifest(path: Path) -> tuple[dict[str, Any], tuple[str, str], dict[str, tuple[int, str]]]:
    try:
        content = json.loads(files.read(path, _LONGEST))
        cpu, features = content["target"]
        listed = {
            name: (int(size), str(digest)) for name, (size, digest) in content["files"].items()
        }
        return dict(content["requires"]), (str(cpu), str(features)), listed
    except Exception as error:  # a manifest may be anything
        raise _UnfitError(f"{path} cannot be read ({shown(error)}): install it again") from error


def _check(required: dict[str, Any], found: dict[str, Any]) -> None:
    for what in found:
        theirs = required.get(what)
        if theirs == found[what]:
            continue
        if what.startswith("NUMBA_"):
            raise _UnfitError(f"it was compiled without {what}={found[what]}")
        different = f"it is for {what} {shown(theirs)}, not {found[what]}"
        raise _UnfitError(f"{different} (`{_INSTALL}` installs what fits)")


def _check_target(target: tuple[str, str]) -> None:
    """Check that numba may generate code for a target, and that this processor can execute it."""
    if (config.CPU_NAME, config.CPU_FEATURES) not in {(None, None), target}:
        raise _UnfitError("NUMBA_CPU_NAME or NUMBA_CPU_FEATURES names another processor")
    if lacking := set(filter(None, target[1].split(","))) - set(get_host_cpu_features().split(",")):
        raise _UnfitError(f"this processor lacks {shown(', '.join(sorted(lacking)))}")
    if "_toplevel_target_context" in vars(registry.cpu_target):  # it has chosen a target
        raise _UnfitError("numba has compiled before ssvm_bench was imported")


def _say(why: str) -> None:
    """Warn, once in a process and its children, why the package is ignored."""
    if os.environ.get(_SAID) != why:
        os.environ[_SAID] = why
        text = "The package ssvm-bench-kernels is not used: %s. Kernels are compiled instead."
        again = " `make kernels` builds it anew." if is_checkout() else ""
        logger.warning(text + again, why)
