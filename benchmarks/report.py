"""Measurements, their targets, and how they are shown.

A measurement meets its target if its value is not above it. The span beside a value goes from the
lowest to the highest of the single comparisons, and so shows how noisy the machine was.

A folder has one file for each release and type of machine, ``VERSION-CPU.json``. It keeps the last
value of every row that was ever measured there, each with its date and the number of what it was
measured by:

.. code-block:: text

    {"provenance": [{"git": …, "cpu": …, …}, …],
     "measurements": [{"subject": "ocr", "source": "real", "quantity": …, "value": …, …,
                       "date": "2026-11-25", "provenance": 0}, …]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ssvm_bench.results.folder import write_file
from ssvm_bench.results.words import duration

EXACT = "exact pass / product"
APPROXIMATE = "approximate pass / exact pass"
OVERHEAD = "run outside solving and evaluating"
MEMORY = "peak memory of a run"
HELP = "--help"
BARE = "oracle call / bare cut"
CALL = "oracle call"
PARTIAL = "oracle call with partial optimality / without"
IN_ORACLE = "time in the oracle"
OUTSIDE_ORACLE = "time outside the oracle"
CHECKED_ANSWERS = "checks of the oracle's answers, of an exact pass"
CLOCK_READS = "reads of the clock, of an exact pass"
CHECKED_DATA = "checks of the data, of loading from the cache"
CHECKPOINT = "a checkpoint, of the time between two"
RESTART = "to go on from a checkpoint, beyond a fresh start"
QP = "inner QP of {} planes / PIQP"
OPTIMA = "dcd, LIBLINEAR: relative difference of optima"
LIBLINEAR = "dcd / LIBLINEAR: time to a gap of 0.1 % / to a primal within it"
COORDINATE = "dcd / mpbcfw_fast: time to a gap of 1 %"
STREAM = "exact pass over a stream / in memory"
ONLINE = "dcd_online: first pass over a stream / in memory"
STREAM_MEMORY = "dcd_online: peak memory on a stream of {} digits"
GROWTH = "dcd_online: peak memory, a stream of twice {} digits / once"
CONVERGENCE = "dcadmm, {} kernel: time to convergence"
ITERATION = "dcadmm: an iteration"
FRAMES_MEMORY = "dcadmm: peak memory, data and all"
CHUNKING = "mpbcfw_fast / CRFsuite's {}: time to the same test accuracy"
CHUNKING_GAP = "mpbcfw_fast to a gap of 1 % / CRFsuite's {} to the same test accuracy"
CHUNKING_MEMORY = "mpbcfw_fast / CRFsuite's {}: peak memory"
WRONG_CHUNKS = "{}: 100 % − F1 of test chunks"
CHUNKING_LONG = "mpbcfw_fast: time to a gap of 1 %, λ = 1/n"
PREDICTION = "prediction of 100,000 words"
ESTIMATOR = "StructuredSVM.fit beyond a run's training"
ONE = "one prediction"
BATCH = "a prediction of a batch"
FIT_NAMED = "StructuredSVM.fit with names / a run's training"
FIT_MEMORY = "StructuredSVM.fit with names: peak memory"
FIT = "StructuredSVM.fit with names / {}"
LOADED = "loading a pickled model"
SIZE = "a pickled model"
SCORES = "exact pass / product of columns and templates"
PASS = "exact pass over {} images"
SHORT_MEMORY = "mpbcfw: peak memory of a short run"
AHEAD = "{} / bcfw: time to the same gap"
SIXTEEN = "p_bmrm with P = 16 / bmrm: time to a gap of 1 %, λ = 10/n"
TO_GAP = "{}: time to a gap of {}"
THREADS = "{}: two threads / one, wall"
TINY = "tiny run, {} cache of compiled code"
SECOND = "tiny run of another structure after it"
FIRST_FIT = "first fit of irises, {} cache of compiled code"
FIRST_CHAIN = "first fit of chains after it"
FIRST_RUN = "first run of mpbcfw_fast on OCR, an empty cache of compiled code"
FIRST_PREDICTION = "first prediction of a loaded model, an empty cache of compiled code"
IMPORT = "import of StructuredSVM"
RIVAL = "mpbcfw_fast / LinearSVC: time to a primal within 0.1 %"

STREAM_REPEATS = (2, 4, 34, 68)
"""How often the digits are in the streams: in the first two, or with ``--all`` in all of them."""

WORSE = 1.3
"""A ratio that is so many times its stored value is shown in red."""

TARGETS: Mapping[tuple[str, str], float] = {
    ("ocr", f"bcfw: {EXACT}"): 4.0,
    ("usps", f"bcfw: {EXACT}"): 8.0,
    ("ocr", f"mpbcfw: {APPROXIMATE}"): 0.25,
    ("weizmann", f"mpbcfw: {APPROXIMATE}"): 0.04,
    ("stanford", f"mpbcfw: {APPROXIMATE}"): 0.02,
    **{
        (dataset, f"{name}_avg / {name}: {kind} pass"): 1.1
        for dataset in ("ocr", "usps", "weizmann", "stanford")
        for name, kind in (("bcfw", "exact"), ("mpbcfw", "exact"), ("mpbcfw", "approximate"))
    },
    ("usps", RIVAL): 1.0,
    **{
        (dataset, row): most
        for dataset in ("adult", "abalone")
        for row, most in ((OPTIMA, 1.0), (LIBLINEAR, 1.5))
    },
    ("mnist", STREAM): 3.0,
    **{
        ("mnist", row.format(60000 * repeat)): most
        for repeat in STREAM_REPEATS
        for row, most in ((STREAM_MEMORY, 600.0), (GROWTH, 1.05))
    },
    ("mnist", f"fw: {EXACT}"): 3.0,
    **{("usps", QP.format(size)): 1 / 3 for size in (200, 500, 1000, 2000)},
    ("ocr", f"mpbcfw: {OVERHEAD}"): 3.0,
    ("usps", f"mpbcfw: {OVERHEAD}"): 3.0,
    ("ocr", f"mpbcfw: {MEMORY}"): 260.0,
    **{
        (dataset, TO_GAP.format("mpbcfw_fast", gap)): most
        for dataset, gap, most in (
            *(("ocr", "0.01", 4.5), ("ocr", "0.001", 10.5), ("usps", "0.01", 0.63)),
            *(("usps", "0.0001", 1.9), ("weizmann", "0.01", 0.4), ("stanford", "0.01", 9.3)),
        )
    },
    ("ocr", TINY.format("empty")): 6.0,
    ("ocr", SECOND): 3.0,
    ("program", IMPORT): 0.6,
    **{
        (dataset, f"mpbcfw: {row}"): most
        for dataset in ("ocr", "usps")
        for row, most in ((CHECKPOINT, 1.0), (RESTART, 3.0))
    },
    ("weizmann", BARE): 2.5,
    ("stanford", CALL): 0.005,
    ("weizmann", f"bcfw: {OUTSIDE_ORACLE}"): 10.0,
    ("stanford", f"bcfw: {OUTSIDE_ORACLE}"): 10.0,
    ("weizmann", f"mpbcfw: {IN_ORACLE}"): 25.0,
    ("stanford", f"mpbcfw: {IN_ORACLE}"): 25.0,
    **{
        (dataset, row): percent
        for dataset in ("ocr", "usps", "weizmann", "stanford")
        for row, percent in ((CHECKED_ANSWERS, 3.0), (CHECKED_DATA, 2.0))
    },
    **{("ssl_digit1", CONVERGENCE.format(kernel)): 10.0 for kernel in ("linear", "rbf")},
    **{
        (video, row): most
        for video in ("davis_bmx_trees", "davis_car_shadow")
        for row, most in ((ITERATION, 2.0), (FRAMES_MEMORY, 2000.0))
    },
    ("conll2000", CHUNKING.format("L-BFGS")): 0.1,
    ("conll2000", CHUNKING.format("averaged perceptron")): 0.5,
    ("conll2000", CHUNKING_MEMORY.format("L-BFGS")): 2.0,
    ("conll2000", CHUNKING_MEMORY.format("averaged perceptron")): 2.0,
    ("conll2000", WRONG_CHUNKS.format("mpbcfw_fast")): 6.5,
    ("conll2000", PREDICTION): 1.0,
    ("conll2000", CHUNKING_LONG): 12.0,
    **{(dataset, ESTIMATOR): 5.0 for dataset in ("usps", "conll2000")},
    ("conll2000", ONE): 1.0,
    ("conll2000", BATCH): 0.3,
    ("conll2000", FIT_NAMED): 1.15,
    ("conll2000", FIT_MEMORY): 600.0,
    ("conll2000", LOADED): 0.5,
    ("conll2000", SIZE): 8.0,
    ("plates", SCORES): 3.0,
    ("landmarks", PASS.format(7000)): 20.0,
    ("landmarks", SHORT_MEMORY): 2000.0,
    **{(dataset, AHEAD.format("mpbcfw")): 1.0 for dataset in ("plates", "landmarks")},
    ("program", HELP): 0.15,
}
"""(subject, quantity) → the value not to exceed."""


FORMS = {"×": ".2f", "s": ".3g", "ms": ".3g", "%": ".1f", "MB": ".0f", "ppm": ".2f"}
"""Unit → how a number is shown."""

Key = tuple[str, str, str]
"""Subject, source and quantity."""


@dataclass(frozen=True)
class Measurement:
    """One number of the bench.

    Attributes
    ----------
    subject : str
        A dataset's name, or ``"program"``.
    source : str
        ``"real"``, ``"synthetic"``, or empty.
    quantity : str
        What was measured.
    value, low, high : float
        The number, and the lowest and highest of what it was made from.
    unit : str
        ``"×"`` for a ratio, ``"s"``, ``"ms"``, ``"%"``, ``"ppm"`` (10⁻⁶) or ``"MB"`` (10⁶ bytes).
    seconds : float, optional
        Of a ratio: the median time of its numerator.
    series : tuple of float
        The ratio pass by pass.
    note : str
        Under which conditions.
    """

    subject: str
    source: str
    quantity: str
    value: float
    low: float
    high: float
    unit: str = "×"
    seconds: float | None = None
    series: tuple[float, ...] = ()
    note: str = ""

    @property
    def key(self) -> Key:
        """What tells rows apart."""
        return self.subject, self.source, self.quantity

    @property
    def target(self) -> float | None:
        """The value not to exceed, if there is one."""
        return TARGETS.get((self.subject, self.quantity))

    @property
    def met(self) -> bool | None:
        """Whether the target is met, if there is one."""
        return None if self.target is None else self.value <= self.target


def from_samples(
    subject: str, source: str, quantity: str, samples: Iterable[float], **details: Any
) -> Measurement:
    """Return the measurement whose value is the median of some numbers."""
    values = np.array(list(samples))
    middle, low, high = np.median(values), values.min(), values.max()
    return Measurement(subject, source, quantity, float(middle), float(low), float(high), **details)


def file_in(path: Path, where: Mapping[str, Any]) -> Path:
    """Return the file of a folder for a release and a machine; of a ``.json`` file, itself."""
    if path.suffix == ".json":
        return path
    cpu = re.sub(r"\((r|tm)\)|[^a-z0-9]+", "-", where["cpu"].lower())
    name = re.sub("-+", "-", f"{where['versions']['ssvm-bench']}-{cpu}").strip("-")
    return path / f"{name}.json"


Stored = Mapping[Key, float]
"""The ratios of a file."""


def stored(path: Path | None) -> Stored:
    """Return the ratios that a file of `write` holds; none if there is no such file."""
    if path is None:
        return {}
    return {_key(row): row["value"] for row in _read(path)["measurements"] if row["unit"] == "×"}


def line(one: Measurement) -> str:
    """Return a measurement in words."""
    subject = f"{one.subject} ({one.source})" if one.source else one.subject
    missed = f", more than {one.target:g}" if one.met is False else ""
    return f"{subject}: {one.quantity}: {one.value:{FORMS[one.unit]}} {one.unit}{missed}"


def show(
    measured: Iterable[Measurement], where: Mapping[str, Any], before: Stored | None = None
) -> None:
    """Print the table to stdout, one section a subject.

    Parameters
    ----------
    measured : iterable of Measurement
        What to show.
    where : mapping
        Its provenance.
    before : mapping, optional
        Ratios to compare with; worse ones are shown in red.
    """
    before = before or {}
    sections: dict[tuple[str, str], list[Measurement]] = {}
    for one in measured:
        sections.setdefault((one.subject, one.source), []).append(one)
    table = Table(title=f"One thread of {where['cpu']}", title_justify="left", box=box.ASCII2)
    for heading in ("what", "value", "min – max", "time", "target", "", "÷ stored"):
        table.add_column(heading, justify="left" if heading == "what" else "right", no_wrap=True)
    table.add_column("note: pass by pass")
    for (subject, source), rows in sections.items():
        table.add_section()
        table.add_row(f"[bold]{subject}[/]" + (f" ({source} data)" if source else ""))
        for one in rows:
            table.add_row(*_cells(one, before.get(one.key)))
    # wide enough for the table: a narrow terminal wraps its lines, but no number is cut off
    Console(highlight=False, width=176).print(table)


def _cells(one: Measurement, before: float | None) -> tuple[str, ...]:
    form = FORMS[one.unit]
    verdict = {None: "", True: "[green]met[/]", False: "[bold red]missed[/]"}[one.met]
    series = " ".join(f"{ratio:.1f}" for ratio in one.series)
    return (
        f"  {one.quantity}",
        f"{one.value:{form}} {one.unit}",
        "" if one.low == one.high else f"{one.low:{form}} – {one.high:{form}}",
        "" if one.seconds is None else duration(one.seconds),
        "" if one.target is None else f"≤ {one.target:g}",
        verdict,
        _against(one, before),
        ": ".join(filter(None, (one.note, series))),
    )


def _against(one: Measurement, before: float | None) -> str:
    """Compare a ratio with its stored value."""
    if before is None or one.unit != "×" or before <= 0:
        return ""
    change = one.value / before
    return f"[bold red]{change:.2f}[/]" if change > WORSE else f"{change:.2f}"


def write(path: Path, measured: Iterable[Measurement], where: Mapping[str, Any]) -> None:
    """Put measurements, and where they come from, into a file; its other rows stay.

    Raises
    ------
    RunFailedError
        If it cannot be written.
    """
    content = _read(path)
    origins = [*content["provenance"], dict(where)]
    rows = {_key(row): row for row in content["measurements"]}
    for one in measured:
        told = {"target": one.target, "met": one.met, "date": f"{date.today()}"}
        rows[one.key] = {**asdict(one), **told, "provenance": origins.index(dict(where))}
    used = sorted({row["provenance"] for row in rows.values()})
    for row in rows.values():
        row["provenance"] = used.index(row["provenance"])
    content = {
        "provenance": [origins[number] for number in used],
        "measurements": sorted(rows.values(), key=lambda row: row["subject"]),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_file(path, text.encode())


def _read(path: Path) -> dict[str, list]:
    """Return what a file holds; nothing if there is none."""
    if not path.is_file():
        return {"provenance": [], "measurements": []}
    return json.loads(path.read_bytes())


def _key(row: Mapping[str, Any]) -> Key:
    return row["subject"], row["source"], row["quantity"]
