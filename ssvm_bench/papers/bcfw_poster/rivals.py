"""The poster's figure, with the seven methods that it shows, and the other runs in a second one.

The poster's methods are BCFW and SSG, each without averages and with tail averages; batch
Frank-Wolfe; online exponentiated gradient; and a cutting-plane method, which is taken to be 1-slack
without a cache. It shows all words of nine folds. What else is judged is ours: weighted averages,
the step 2n/(k + 2n) in place of line search, oracles with an error, cutting planes with more work
between two passes, and half of the words, on which a claim about n depends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ssvm_bench.claims.claim import kinds_of_runs
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import curves
from ssvm_bench.figures.convergence import SUBOPTIMALITY
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.results.table import Run, Runs

METHODS = ("bcfw", "bcfw_tail", "ssg", "ssg_tail", "fw", "eg", "one_slack")
"""The poster's methods, as its file of claims names them."""


def _split(runs: Runs) -> tuple[Runs, Runs]:
    """Return the runs of the poster's figure; and the others, with BCFW to compare them with."""
    kinds = kinds_of_runs(Path(__file__).with_name("claims.yaml"))
    whole = max((run.n for run in runs), default=0)

    def shown(run: Run) -> bool:
        return run.n == whole and any(kinds[name].has(run) for name in METHODS)

    own = runs.where(shown)
    others = runs.where(lambda run: not shown(run) or kinds["bcfw"].has(run))
    return own, others if len(others) > len(own.where(kinds["bcfw"].has)) else others[:0]


def _parts(runs: Runs) -> list[str]:
    whole = max(run.n for run in runs)
    part = sorted({run.n for run in runs} - {whole})
    said = ", ".join(f"n = {n}" for n in part)
    text = f"{said}: a part of the examples, for the claim on how the costs depend on n."
    return [text] * bool(part)


OWN = replace(SUBOPTIMALITY, chosen=lambda runs: _split(runs)[0])
OTHERS = replace(SUBOPTIMALITY, file="{}-ours", chosen=lambda runs: _split(runs)[1], notes=_parts)


def _outputs(data: FigureData, axes: Sequence[str]) -> Iterator[Output]:
    yield from chain(OWN.outputs(data, axes), OTHERS.outputs(data, axes))


KIND = Kind("rivals", Choices((*curves.AXES,)), _outputs)
