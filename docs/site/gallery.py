"""The gallery: scripts of ``examples/gallery``, run while the site is built.

A script begins with a docstring, whose first line is its title, and saves its figures as SVG files
where it runs.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

FOLDER = "examples/gallery/"
ROOT = Path(__file__).parents[2]


def run(script: Path, folder: Path) -> str:
    """Run a script in a folder; return what it printed.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    environment = {**os.environ, "MPLBACKEND": "Agg", "SSVM_BENCH_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        (sys.executable, script), cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
    return done.stdout


def files(script: Path, place: str, config):
    """Yield the page of a script and its figures."""
    text = script.read_text(encoding="utf-8")
    title, _, prose = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    code = text.split('"""', 2)[2].strip()
    with tempfile.TemporaryDirectory() as folder:
        printed = run(script, Path(folder))
        figures = {
            each.name: each.read_text("utf-8") for each in sorted(Path(folder).glob("*.svg"))
        }
    beside = place.rpartition("/")[0]
    pictures = "\n\n".join(f"![{title}]({name})" for name in figures)
    said = f"It prints\n\n```text\n{printed.rstrip()}\n```\n" if printed else ""
    content = (
        f"# {title.rstrip('.')}\n\n{prose.strip()}\n\n{pictures}\n\n"
        f"`{FOLDER}{script.name}`:\n\n```python\n{code}\n```\n\n{said}"
    )
    yield File.generated(config, place, content=content)
    for name, figure in figures.items():
        yield File.generated(config, f"{beside}/{name}", content=figure)
