"""Where a number comes from: versions, commit, processor. No host or user name."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import metadata as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssvm_bench import __version__

if TYPE_CHECKING:
    from ssvm_bench.results.table import Run

PACKAGES = (
    *("numpy", "scipy", "numba", "llvmlite", "pandas", "pyarrow"),
    *("hydra-core", "pymaxflow", "scikit-image", "scikit-learn", "opencv-python-headless"),
)
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"),
)
_GENERATION = {"family": "cpu family", "model": "model"}


def provenance() -> dict[str, Any]:
    """Return what produced a number; no host or user name.

    Returns
    -------
    dict
        ``versions`` {package: version}, ``git`` (commit of the source checkout, or None),
        ``git_dirty`` (its code differs from that commit, or None), ``cpu`` (model), ``cores``
        (that this process may use), ``node`` (cores and memory of the whole machine), ``system``,
        ``threads`` (the thread variables that are set).
    """
    commit, dirty = _source_commit(Path(__file__).resolve().parents[2])
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return {
        "versions": versions(),
        "git": commit,
        "git_dirty": dirty,
        "cpu": cpu_model(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "node": _node(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    }


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on.

    That of this program is the code's: a checkout may be installed since an earlier one.
    """
    found = {"python": platform.python_version(), "ssvm-bench": __version__}
    for package in PACKAGES:
        with suppress(installed.PackageNotFoundError):
            found[package] = installed.version(package)
    return found


@functools.cache
def _source_commit(checkout: Path) -> tuple[str | None, bool | None]:
    """Return a checkout's commit and whether its code (not its results) has changed since.

    The first call decides, because it is closest to what the process has loaded. Only a folder with
    its own ``.git`` counts: an installed package must not report the commit of a repository that
    its environment happens to be in.
    """
    if not (checkout / ".git").exists():
        return None, None
    commit = _output("git", "-C", str(checkout), "rev-parse", "HEAD")
    code = ("ssvm_bench", "configs", "experiments", "benchmarks", "pyproject.toml")
    status = ("--no-optional-locks", "status", "--porcelain", "--", *code)
    changes = _output("git", "-C", str(checkout), *status)
    return commit, None if commit is None or changes is None else bool(changes)


def _node() -> str:
    """Return the number of cores and the memory of the machine."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cores = os.cpu_count() or 1
    return f"{cores} core{'s' * (cores != 1)}, {size / 2**30:.0f} GB"


@functools.cache
def cpu_model() -> str:
    """Return the processor's model name as the system gives it, with its family and model if known.

    Virtual machines often have a bare "AMD EPYC", whose generations differ by a half in speed.
    """
    if platform.system() == "Darwin":
        name = _output("sysctl", "-n", "machdep.cpu.brand_string")
        return name or platform.processor() or platform.machine()
    about = {}
    with suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        about = dict(re.findall(r"^(.*?)\s*:\s*(.*?)\s*$", first, re.M))
    name = about.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{word} {about[key]}" for word, key in _GENERATION.items() if about.get(key)]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _output(*command: str) -> str | None:
    """Return what a program prints, or None if it fails."""
    # Inside a git hook, GIT_DIR and its kin point at the hook's repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


# ---- provenance of the runs behind a figure ---------------------------------------------------


def provenance_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the provenance of the runs behind a figure.

    Returns
    -------
    dict
        ``runs`` and how many of them were ``timed_beside_other_runs``; first and last day of
        ``started``; ``commits`` of the code and ``versions`` of packages, ``cpu``, ``cores``,
        ``system``, ``clock``, and ``engine`` and ``node`` of runs that store them: each value with
        the number of runs that had it; ``plug_ins``, if there are any, the files of components that
        are no part of the program, with the first digits of their SHA-256; ``datasets``.
    """
    about = [run.metadata for run in runs]
    started = sorted(str(run["started"]) for run in about if run.get("started"))
    versions = sorted({name for run in about for name in run.get("versions", {})})
    changed = (" (with changes)" * bool(run.get("git_dirty")) for run in about)
    commits = (f"{run.get('git') or 'unknown'}{of}" for run, of in zip(about, changed, strict=True))
    some = [key for key in ("engine", "node") if any(key in run for run in about)]
    keys = ("cpu", "cores", "system", *some, "clock")
    problems = ({**run["dataset"], **_objective(run)} for run in about)
    plug_ins = [of for run in about for of in run.get("plug_ins", {}).items()]
    datasets = Counter(json.dumps(problem, sort_keys=True) for problem in problems)
    return {
        "runs": len(runs),
        "timed_beside_other_runs": sum(bool(run.get("concurrent_runs")) for run in about),
        "started": {"first": started[0], "last": started[-1]} if started else None,
        "commits": _counts(commits),
        "versions": {
            name: _counts(run.get("versions", {}).get(name) for run in about) for name in versions
        },
        **{key: _counts(run.get(key) for run in about) for key in keys},
        **({"plug_ins": _counts(map(" ".join, plug_ins))} if plug_ins else {}),
        "datasets": [{**json.loads(text), "runs": datasets[text]} for text in sorted(datasets)],
    }


def _objective(run: dict[str, Any]) -> dict[str, Any]:
    return {key: run[key] for key in ("lam", "prior", "objective") if run.get(key)}


def _counts(values: Iterable[Any]) -> dict[str, int]:
    """Return how many runs had each value, sorted."""
    return dict(sorted(Counter(str(value) for value in values).items()))
