"""The gallery: scripts of ``examples/gallery``, run while the site is built.

A script saves its figures as SVG files where it runs. Each has a page, and is a notebook to
download, too.
"""

from __future__ import annotations

import os
import posixpath
import subprocess
import sys
import tempfile
from pathlib import Path

from mkdocs.structure.files import File
from notebooks import described, notebook

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
    """Yield the page of a script; beside the list of all, its figures and its notebook."""
    text = script.read_text(encoding="utf-8")
    title, prose, code = described(text)
    with tempfile.TemporaryDirectory() as folder:
        printed = run(script, Path(folder))
        figures = {
            each.name: each.read_text("utf-8") for each in sorted(Path(folder).glob("*.svg"))
        }
    to = posixpath.relpath(FOLDER, posixpath.dirname(place))
    pictures = "\n\n".join(f"![{title}]({to}/{name})" for name in figures)
    said = f"It prints\n\n```text\n{printed.rstrip()}\n```\n" if printed else ""
    content = (
        f"# {title}\n\n{prose}\n\n{pictures}\n\n"
        f"`{FOLDER}{script.name}`, [as a notebook]({to}/{script.stem}.ipynb):\n\n"
        f"```python\n{code}\n```\n\n{said}"
    )
    yield File.generated(config, place, content=content)
    for name, figure in figures.items():
        yield File.generated(config, f"{FOLDER}{name}", content=figure)
    yield File.generated(config, f"{FOLDER}{script.stem}.ipynb", content=notebook(text))
