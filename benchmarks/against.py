"""Two checkouts in one sitting, this one and another: the same rows of both, and their ratios.

Each job runs in a process of its own, started in the folder of the checkout, so that the package
found there is what is measured: this one, the other, this one, the other, … What slows the machine
for a while slows neighbours alike. A row's ratio is that of its medians over all rounds. The other
checkout may be as old as the bench inside the package, ``ssvm_bench.bench``; the measuring
functions were named as they are now.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import first_minute
from benchmarks.first_minute import HERE
from benchmarks.jobs import FUNCTIONS, Job
from benchmarks.report import Measurement
from ssvm_bench.base.errors import RunFailedError

SLOWER = 1.03
"""A ratio above this is shown in red."""

_CHILD = """
import importlib, itertools, json, sys
from dataclasses import asdict
package, module, function, most, arguments = json.loads(sys.argv[1])
measure = getattr(importlib.import_module(package + "." + module), function)
for row in itertools.islice(measure(*arguments), most):
    print(json.dumps(asdict(row)), flush=True)
"""

Row = tuple[str, str, str, str]
"""Subject, source, quantity and unit."""

RELATIVE = "{}, relative to {}"
"""A stored row: its quantity, and the other checkout's commit."""


@dataclass(frozen=True)
class Comparison:
    """One row of both checkouts, a value a round.

    Attributes
    ----------
    row : Row
        What was measured.
    here, there : list of float
        In this checkout and in the other one.
    """

    row: Row
    here: list[float]
    there: list[float]

    @property
    def ratio(self) -> float:
        """Median here over median there; below 1 is faster."""
        there = median(self.there)
        return median(self.here) / there if there else float("nan")

    @property
    def rounds(self) -> list[float]:
        """The ratio round by round."""
        pairs = zip(self.here, self.there, strict=False)
        return [here / there if there else float("nan") for here, there in pairs]

    def stored(self, commit: str) -> Measurement:
        """Return the ratio as a row of its own; ``commit`` is the other checkout's."""
        subject, source, quantity, unit = self.row
        low, high = min(self.rounds), max(self.rounds)
        seconds = median(self.here) if unit == "s" else None
        what = RELATIVE.format(quantity, commit)
        return Measurement(subject, source, what, self.ratio, low, high, seconds=seconds)


def compare(job: Job, other: Path, rounds: int) -> Iterator[Comparison]:
    """Yield the rows that both checkouts have of one job.

    Raises
    ------
    RunFailedError
        If one of them cannot be measured.
    """
    here: dict[Row, list[float]] = {}
    there: dict[Row, list[float]] = {}
    for _ in range(rounds):
        for checkout, values in ((HERE, here), (other, there)):
            for row, value in _measure(job, checkout):
                values.setdefault(row, []).append(value)
    for row in here:
        if row in there:
            yield Comparison(row, here[row], there[row])


def commit_of(checkout: Path) -> str:
    """Return the first digits of the commit that a checkout is at; its name if git knows none."""
    asked = ["git", "-C", str(checkout), "rev-parse", "--short=8", "HEAD"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)
    return said.stdout.strip() or checkout.name


def package_of(checkout: Path) -> str:
    """Return the package that holds a checkout's bench.

    Raises
    ------
    RunFailedError
        If there is none.
    """
    for package in ("benchmarks", "ssvm_bench.bench"):
        if Path(checkout, *package.split("."), "__main__.py").is_file():
            return package
    raise RunFailedError(f"{checkout} is no checkout of ssvm-bench: it has no bench.")


def _measure(job: Job, checkout: Path) -> Iterator[tuple[Row, float]]:
    """Run a job in a process in the folder of a checkout; yield its rows and their values."""
    package, folder, environment = package_of(checkout), checkout, None
    if job.module == "first_minute":  # programs of a few lines, which an older bench has not
        package, folder = "benchmarks", HERE
        environment = os.environ | {first_minute.CHECKOUT: str(checkout)}
    what = (package, job.module, FUNCTIONS[job.module], job.most, job.arguments)
    command = [sys.executable, "-c", _CHILD, json.dumps(what)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise RunFailedError(f"{job.title} failed in {checkout}: {last}")
    for line in done.stdout.splitlines():
        row = json.loads(line)
        yield (row["subject"], row["source"], row["quantity"], row["unit"]), row["value"]


def line(found: Comparison) -> str:
    """Return one comparison in words."""
    subject, _, quantity, unit = found.row
    here, there = median(found.here), median(found.there)
    return f"{subject}: {quantity}: {here:.4g} / {there:.4g} {unit} = {found.ratio:.3f}"


def show(comparisons: Iterable[Comparison], other: Path) -> None:
    """Print the table to stdout."""
    table = Table(title=f"This checkout / {other}", title_justify="left", box=box.ASCII2)
    for heading in ("", "what", "here", "there", "ratio", "min – max of the rounds"):
        table.add_column(heading, justify="left" if heading in ("", "what") else "right")
    for found in comparisons:
        subject, source, quantity, unit = found.row
        colour = "red" if found.ratio > SLOWER else "default"
        table.add_row(
            f"{subject} {source}".strip(),
            quantity,
            f"{median(found.here):.4g} {unit}",
            f"{median(found.there):.4g} {unit}",
            f"[{colour}]{found.ratio:.3f}[/]",
            f"{min(found.rounds):.3f} – {max(found.rounds):.3f}",
        )
    Console(highlight=False, width=150).print(table)
