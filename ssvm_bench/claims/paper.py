"""What a paper offers: claims, open questions, remarks, kinds of figures, looks of its solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ssvm_bench.claims.cases import Costs
from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.questions import Question, question
from ssvm_bench.figures.kind import Kind
from ssvm_bench.figures.style import Look


@dataclass(frozen=True)
class Paper:
    """A paper, as the module ``paper`` of its folder has it, under the name ``PAPER``.

    Attributes
    ----------
    folder : Path
        Its folder. Beside ``claims.yaml`` (`Statements`) there may be ``questions.yaml``, what it
        leaves open (:mod:`.questions`), and ``remarks.yaml``, what no trace can tell about a claim
        that fails: claim → dataset → text, the dataset with ``start=oracle`` or ``counted`` behind
        it for other variants.
    title : str
        What it is called in headings.
    short : str
        Its name in experiment files, where that is not the folder's.
    order : int
        The papers of this project are listed by it, then by their folders.
    kinds : tuple of Kind
        Its kinds of figures.
    looks : dict
        Solver → its look in all figures; or solver and first option, as in the label of a curve.
    titles : dict
        Dataset → what it is called, where only this paper has it.
    file : str
        Name of the files of the table of its claims, without suffix; empty if its claims are shown
        by a figure of its own.
    claims : tuple of Claim
        Of one or more datasets each, in the order of their table.
    solvers : frozenset of str
        Its own methods: it is judged on problem instances with runs of any of these.
    beside_runs_of : frozenset of str
        If not empty, with runs of any of these as well: other papers run its methods, too.
    stands_for : dict
        Dataset → the paper's, in whose place it is judged where there are no runs on that one.
    costs : callable
        Dataset → the paper's `Costs`; runs whose time is counted at others are passed over.
    derivation : tuple of str
        Where these costs come from, in sentences.
    beside : dict
        Kind of rows that are not counted as claims → why they are shown, and are not counted.
    draws : dict
        Dataset → its option that draws it anew: runs that differ in that are repeats.
    partial : bool
        Whether some λ of a dataset have the runs of some claims alone: a claim is then judged where
        its runs are, if they are anywhere.
    """

    folder: Path
    title: str
    short: str = ""
    order: int = 1
    kinds: tuple[Kind, ...] = ()
    looks: Mapping[str, Look] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    claims: tuple[Claim, ...] = ()
    solvers: frozenset[str] = frozenset()
    beside_runs_of: frozenset[str] = frozenset()
    stands_for: Mapping[str, str] = field(default_factory=dict)
    costs: Callable[[], Mapping[str, Costs]] = dict
    derivation: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    draws: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False

    @property
    def name(self) -> str:
        """Its name in experiment files."""
        return self.short or self.folder.name

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that its claims are about."""
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.paper))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """What it leaves open; its claims are judged by runs that vary none of it."""
        return tuple(question(key, said) for key, said in self._read("questions").items())

    @cached_property
    def remarks(self) -> Mapping[str, Mapping[str, str]]:
        """What is added to claims that do not hold on real data."""
        return self._read("remarks")

    def _read(self, name: str) -> dict[str, Any]:
        file = self.folder / f"{name}.yaml"
        return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
