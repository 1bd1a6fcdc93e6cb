"""The folder of compiled kernels: its name depends on all that kernels are compiled from.

Numba decides by a kernel's own file whether a compiled kernel is valid, so a kernel could still
call old code of another edited module. Here the name of the folder depends on the contents of all
modules with kernels, and on the versions of the compilers: an edit in any of them gives a new,
empty folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import llvmlite
import numba

from ssvm_bench.base import files

_OLD_FOLDERS_KEPT = 3
_KERNELS = "kernels-[0-9a-f]{16}"
_OWN = r"[^/]+-[0-9a-f]{24}|[^/]+/[^/]+\.nb[ic]"
"""Names of the files in a folder of kernels; the second are numba's, for other packages."""


def source_digest(package: Path) -> str:
    """Return 16 hexadecimal digits over the compilers' versions and the modules with kernels."""
    versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag
    digest = hashlib.sha256(" ".join(versions).encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"ssvm_bench.base.jit" in source or path.name == "jit.py":
            digest.update(path.relative_to(package).as_posix().encode() + source)
    return digest.hexdigest()[:16]


def _made(name: str) -> Path | None:
    """Return the folder of this version of the kernels; None if there cannot be one."""
    with suppress(OSError):
        given = os.environ.get("NUMBA_CACHE_DIR")
        folder = Path(given or files.user_folder() / "numba").absolute() / name
        if not folder.exists():
            _remove_old(folder.parent)
        if reason := files.why_unusable(folder):
            folder = files.temporary_cache(f"Cannot use {folder.parent}: {reason}") / name
            files.make(folder)
        return folder
    return None


def _remove_old(root: Path) -> None:
    found = [path for path in root.glob("kernels-*") if re.fullmatch(_KERNELS, path.name)]
    others = [path for path in found if path.is_dir() and not path.is_symlink()]
    others.sort(key=lambda path: path.lstat().st_mtime)
    for old in others[: -_OLD_FOLDERS_KEPT or None]:
        files.remove(old, _OWN)


DIGEST = source_digest(Path(__file__).parents[1])
FOLDER = None if numba.config.DISABLE_JIT else _made(f"kernels-{DIGEST}")

numba.config.CACHE_DIR = str(FOLDER or "")  # for functions that other packages compile
