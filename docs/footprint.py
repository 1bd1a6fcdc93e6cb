"""What an installation costs, and how much more than that of the last release: CI checks it.

.. code-block:: text

    MB          files of the package, and of all that an installation brings, without those that
                Python compiles (``__pycache__``)
    times       CPU time of a process that imports ``StructuredSVM``, less that of
                ``python -c pass``; divided by what ``import numpy, pandas, scipy.sparse`` takes
    modules     that the import brings in: a count, whatever else the machine does

Usage, with the Python of an environment that has nothing but ``pip install .``::

    PYTHON docs/footprint.py            fails if something has grown by more than it may
    PYTHON docs/footprint.py --store    of a release: writes docs/footprint.json, to compare with
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from dependencies import megabytes, seconds

STORED = Path(__file__).with_suffix(".json")
GROWTH = {"package [MB]": 1.5}
OTHERWISE = 1.25
"""How many times the value of the last release a value may be: by name, and without one."""

PACKAGE = "ssvm-bench"
TOOLS = ("pip", "setuptools", "wheel")
"""What an environment has from the beginning."""

IMPORT = "from ssvm_bench import StructuredSVM"
BASELINE = "import numpy, pandas, scipy.sparse"


def about() -> dict[str, str]:
    """Return where numbers come from: wheels have other sizes on other systems."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "version": metadata.version(PACKAGE),
        "python": python,
        "system": f"{platform.system()} {platform.machine()}",
    }


def measured() -> dict[str, float]:
    """Return name → what this environment costs."""
    brought = {each.metadata["Name"].lower() for each in metadata.distributions()}
    brought -= {PACKAGE, *TOOLS}
    nothing = seconds("-c", "pass")
    unit = seconds("-c", BASELINE) - nothing
    count = f"import sys; {IMPORT}; print(len(sys.modules))"
    counted = subprocess.run((sys.executable, "-P", "-c", count), check=True, capture_output=True)
    return {
        "package [MB]": round(megabytes(PACKAGE), 2),
        "all that it needs [MB]": round(sum(map(megabytes, brought)), 1),
        "import [times]": round((seconds("-c", IMPORT) - nothing) / unit, 2),
        "import [modules]": int(counted.stdout),
    }


def compared(now: dict[str, float], before: dict[str, float]) -> tuple[list[str], list[str]]:
    """Return a line for each value, and the names of those that have grown too much."""
    ratios = {name: now[name] / before[name] for name in before}
    lines = [f"{name}: {now[name]:g}, {ratio:.2f} times that" for name, ratio in ratios.items()]
    return lines, [name for name in ratios if ratios[name] > GROWTH.get(name, OTHERWISE)]


def main(arguments: list[str]) -> str | None:
    """Measure, and compare or store; return what is wrong."""
    here = about()
    if arguments == ["--store"]:
        content = json.dumps({**here, "measured": measured()}, indent=2, ensure_ascii=False)
        STORED.write_text(f"{content}\n", encoding="utf-8")
        return None
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    there = {name: stored[name] for name in here}
    if {**here, "version": ""} != {**there, "version": ""}:
        return f"This is {here}; {STORED.name} was measured with {there}."
    lines, grown = compared(measured(), stored["measured"])
    print(f"{here['version']} against the release {there['version']}", *lines, sep="\n")
    return f"These have grown by more than they may: {', '.join(grown)}" if grown else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
