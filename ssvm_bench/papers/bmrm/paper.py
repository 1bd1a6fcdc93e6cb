"""The bundle-method report (Uřičář and Franc 2012): its claims are judged in `tables`."""

from __future__ import annotations

from pathlib import Path

from ssvm_bench.claims.paper import Paper
from ssvm_bench.figures.style import Look
from ssvm_bench.papers.bmrm import claims, relative, tables

SHADES = ("#3C4F8A", "#2A788E", "#1F9F88", "#4EC36B", "#A8DB34")
"""Colours of P-BMRM for P = 2, 4, 8, 16, and more: from BMRM's on, the lighter the larger P."""

LOOKS = {
    "bmrm": Look("BMRM", "#4B0092"),
    "prox_bmrm": Look("Prox-BMRM", "#4B0092", "--"),
    "p_bmrm": Look("P-BMRM", "#4B0092", ":", "P", SHADES),
    "prox_p_bmrm": Look("Prox-P-BMRM", "#4B0092", "-."),
    "classical_bundle": Look("Classical bundle", "#6B4E16"),
}

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the bundle-method report",
    kinds=(relative.KIND, *tables.KINDS),
    looks=LOOKS,
    claims=(*claims.CLAIMS, *claims.ACROSS),
)
