"""What each dependency costs here: the second table of docs/choices.md, measured and written.

.. code-block:: text

    MB        files of the distribution, without those that Python compiles (``__pycache__``)
    seconds   CPU time of ``python -c "import NAME"`` less that of ``python -c pass``, the median of
              seven, each in a new process with its files in the page cache; what it imports counts
    licence, version    from the metadata of the distribution
    last release        the highest version on the package index that is neither a pre-release nor
                        withdrawn, and the day on which its first wheel was uploaded

Usage: ``python docs/dependencies.py`` in the environment of ``pip install .``, with a network
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import requests
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "choices.md"
START, END = "<!-- made by docs/dependencies.py -->", "<!-- end -->"
IMPORTED = {
    "hydra-core": "hydra",
    "pillow": "PIL",
    "pymaxflow": "maxflow",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
"""Distribution → the name that is imported, where they differ."""
INDEX = "https://pypi.org/simple"
HEAD = "| package | version | MB | seconds | licence | last release |\n|---|---|---:|---:|---|---|"


def dependencies() -> list[str]:
    """Return the names of the packages that an installation brings, sorted."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return sorted(re.match(r"[\w-]+", line)[0] for line in about["project"]["dependencies"])


def megabytes(name: str) -> float:
    """Return the size of a distribution's files."""
    files = metadata.files(name) or []
    kept = [Path(file.locate()) for file in files if "__pycache__" not in file.parts]
    return sum(file.stat().st_size for file in kept if file.is_file()) / 1e6


def seconds(*arguments: str) -> float:
    """Return the CPU seconds of Python with these arguments, the median of seven processes.

    What is installed is imported, not what is in the folder (``-P``).
    """

    def once() -> float:
        before = os.times()
        command = (sys.executable, "-P", *arguments)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        mine = after.children_user - before.children_user
        return mine + after.children_system - before.children_system

    once()
    return statistics.median(once() for _ in range(7))


def licence(name: str) -> str:
    """Return what the metadata call the licence: an expression, else a classifier's last words."""
    about = metadata.metadata(name)
    if expression := about.get("License-Expression"):
        return expression
    found = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    if found:
        return found[0].rpartition(" :: ")[2]
    return (about.get("License") or "none named").splitlines()[0]


def last_release(name: str) -> str:
    """Return version and day of the last release on the package index."""
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    answer = requests.get(f"{INDEX}/{name}/", headers=accept, timeout=60)
    answer.raise_for_status()
    uploads = [
        (parse_wheel_filename(file["filename"])[1], file["upload-time"])
        for file in answer.json()["files"]
        if file["filename"].endswith(".whl") and not file["yanked"]
    ]
    last = max(version for version, _ in uploads if not version.is_prerelease)
    return f"{last}, {min(time for version, time in uploads if version == last)[:10]}"


def table() -> str:
    """Return the measured table."""
    nothing = seconds("-c", "pass")
    lines = [HEAD]
    for name in dependencies():
        cost = seconds("-c", f"import {IMPORTED.get(name, name)}") - nothing
        about = (name, metadata.version(name), f"{megabytes(name):.1f}", f"{cost:.2f}")
        lines.append(f"| {' | '.join((*about, licence(name), last_release(name)))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n\n{table()}\n\n{END}{after}", encoding="utf-8")
