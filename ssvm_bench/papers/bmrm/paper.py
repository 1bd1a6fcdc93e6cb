"""The bundle-method report (Uřičář and Franc 2012): its claims are judged in `tables`."""

from __future__ import annotations

from pathlib import Path

from ssvm_bench.claims.paper import Paper, about
from ssvm_bench.papers.bmrm import claims, relative, tables

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the bundle-method report",
    kinds=(relative.KIND, *tables.KINDS),
    claims=(*claims.CLAIMS, *claims.ACROSS),
    **about(__file__),
)
