"""A paper here: claims, open questions, remarks, kinds of figures, looks of its solvers.

Its claims are judged by runs with its settings: those that its experiments (`Paper.experiments`)
define, all options and the budget included, whatever the seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.claims import measures
from ssvm_bench.claims.cases import Costs
from ssvm_bench.claims.claim import Claim, Measured, check_types, located, read_claims, read_mapping
from ssvm_bench.claims.questions import Number, Question
from ssvm_bench.config import GENUINE, catalog, experiment, registry
from ssvm_bench.config.experiment import along_paths
from ssvm_bench.figures.kind import Kind
from ssvm_bench.figures.style import Look
from ssvm_bench.results.table import Run


@dataclass(frozen=True)
class Paper:
    """A paper; the module ``paper`` of its folder defines it under the name ``PAPER``.

    Its folder has ``claims.yaml`` (:mod:`.claim`) and ``about.yaml`` with fields of this class
    (`Paper.of`). There may also be ``questions.yaml`` (`Question`) and ``remarks.yaml``,
    explanations of failing claims that no run contains: claim → dataset → text. For other variants,
    ``start=oracle`` or ``counted`` follows the dataset.

    Attributes
    ----------
    folder : Path
        Its folder.
    title : str
        Its title in headings.
    short : str
        Its name in experiment files, if that differs from the folder's.
    order : int
        Its position among the papers of this project; equal ones are sorted by folder.
    measures : mapping of str to callable
        Name → measure of its claims.
    tables : mapping
        Tables of values that its claims are repeated for, besides those in the file.
    kinds : tuple of Kind
        Its kinds of figures.
    looks : dict
        Solver → its look in all figures; or solver and first option, as in the label of a curve.
    titles : dict
        Dataset → its title, for datasets that only this paper has; claims are about these and those
        that have a YAML file.
    file : str
        Name, without suffix, of the files with the table of its claims; empty if a figure of the
        paper shows them.
    experiments : tuple of str
        The experiments whose runs have its settings; empty: every run has.
    begins : tuple of str
        What the names of its experiments begin with: a list of pages shows them together.
    solvers : frozenset of str
        Its own methods: it is judged on problem instances with runs of any of these.
    beside_runs_of : frozenset of str
        If not empty, an instance must also have runs of any of these, as other papers run the same
        methods.
    stands_for : dict
        Dataset → the paper's dataset that it replaces where there are no runs on the latter.
    costs_in : str
        The experiment whose options ``each`` set the paper's `Costs` on each dataset; runs whose
        time is counted at others are ignored.
    derivation : sequence of str
        Where these costs come from, in sentences.
    beside : dict
        Kind of rows that are not counted as claims → why they are shown but not counted.
    draws : dict
        Dataset → its option that draws it anew: runs that differ in this option are repeats.
    partial : bool
        Whether some λ of a dataset have runs for some claims only. A claim is then shown only where
        it has runs, or once if it has none.
    """

    folder: Path
    title: str
    short: str = ""
    order: int = 1
    measures: Mapping[str, Callable[..., Measured]] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    looks: Mapping[str, Look] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    experiments: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    solvers: frozenset[str] = frozenset()
    beside_runs_of: frozenset[str] = frozenset()
    stands_for: Mapping[str, str] = field(default_factory=dict)
    costs_in: str = ""
    derivation: Sequence[str] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    draws: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False

    @classmethod
    def of(cls, module: str, **more: Any) -> Paper:
        """Return the paper of a module, with the fields in the file ``about.yaml`` beside it.

        Looks are lists of the fields of a `Look` there. ``more`` has further fields. Raises
        ``ConfigError``, which names the file, if that has a mistake.
        """
        file = Path(module).with_name("about.yaml")
        with located(str(file)):
            said = read_mapping(file)
            _check_about(said)
            said |= {name: tuple(said.get(name, ())) for name in ("experiments", "begins")}
            said |= {name: frozenset(said.get(name, ())) for name in ("solvers", "beside_runs_of")}
            said["looks"] = {name: Look(*look) for name, look in said.get("looks", {}).items()}
        with located(module):
            kinds = more.get("kinds", ())
            if not isinstance(kinds, tuple) or not all(isinstance(kind, Kind) for kind in kinds):
                raise ConfigError(
                    f"kinds has to be a tuple of Kind, (KIND,), but is {shown(kinds)}"
                )
            return cls(folder=file.parent, **said, **more)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """Its claims on one or more datasets each, in the order of their table."""
        offered = {**vars(measures), **self.measures}
        known = {name: of for name, of in offered.items() if _is_measure(name, of)}
        found = read_claims(self.folder / "claims.yaml", known, self.tables)
        datasets = {*catalog.entries("dataset", registry.folders()), *self.titles}
        for claim in found:
            with located(claim.place):
                for name in claim.paper.keys() - datasets:
                    raise ConfigError(
                        f"there is no dataset {shown(name)}. {nearest(name, datasets)}"
                    )
        return found

    @cached_property
    def costs(self) -> dict[str, Costs]:
        """Dataset → the paper's costs."""
        if not self.costs_in:
            return {}
        each = catalog.read_yaml(catalog.entries("experiments")[self.costs_in])["each"]
        return {
            dataset: Costs.of({key.removeprefix("oracle."): cost for key, cost in of.items()})
            for dataset, of in each.items()
        }

    @property
    def name(self) -> str:
        """Its name in experiment files."""
        return self.short or self.folder.name

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that its claims are about."""
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.paper))

    def at_settings(self, runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
        """Return the runs with the paper's settings, and the others.

        Runs on other data than papers use are never among the others: they are marked as such.
        """
        found: tuple[list[Run], list[Run]] = [], []
        for run in runs:
            judged = self.experiments and run.source in GENUINE
            found[bool(judged) and run.own_hash not in self._settings].append(run)
        return found

    @cached_property
    def _settings(self) -> frozenset[str]:
        """The own hashes of the runs of its experiments, whichever raw data are at hand."""
        with_files = (lambda _: True, lambda _: False)
        is_own = self.folder.parent == Path(__file__).parents[1] / "papers"
        places = () if is_own else self.folder.parents[1:2]  # DIR of DIR/paper/NAME
        return frozenset(
            config.with_source(source).own_hash()
            for name in self.experiments
            for at_hand in with_files
            for config in along_paths(experiment.load(name, places, None, at_hand).configs())
            for source in config.sources()
            if source in GENUINE
        )

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions it leaves open; its claims are judged by runs that vary none of them."""
        found = []
        for key, said in self._read("questions").items():
            with located(f"The question {key} in {self.folder / 'questions.yaml'}"):
                lists = {of: tuple(value) for of, value in said.items() if isinstance(value, list)}
                numbers = tuple(Number(**number) for number in said.get("numbers", ()))
                found.append(Question(key, **{**said, **lists, "numbers": numbers}))
        return tuple(found)

    @cached_property
    def remarks(self) -> Mapping[str, Mapping[str, str]]:
        """Claim → dataset → what is added where a claim does not hold on real data."""
        said = self._read("remarks")
        for claim, of in said.items():
            if not isinstance(of, dict):
                file = self.folder / "remarks.yaml"
                raise ConfigError(f"{file}: {claim} has to be a mapping, but is {shown(of)}")
        return said

    def _read(self, name: str) -> dict[str, Any]:
        file = self.folder / f"{name}.yaml"
        with located(str(file)):
            return read_mapping(file) if file.is_file() else {}


_NAMES = ("experiments", "begins", "solvers", "beside_runs_of")

_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("title", "short", "file", "costs_in"), (str, "a text")),
    **dict.fromkeys(_NAMES, (list, "a list of names")),
    **dict.fromkeys(("looks", "titles", "stands_for", "beside", "draws"), (dict, "a mapping")),
    "derivation": (list, "a list of sentences"),
    "order": (int, "an integer"),
    "partial": (bool, "true or false"),
}
"""The fields in ``about.yaml``."""


def _check_about(said: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` unless the fields of a paper have their types."""
    for name in said:
        if name not in _TYPES:
            raise ConfigError(f"a paper has no field {shown(name)}. {nearest(str(name), _TYPES)}")
    check_types(said, _TYPES)
    for name in _NAMES:
        if not all(isinstance(one, str) for one in said.get(name, ())):
            raise ConfigError(f"{name} has to be a list of names, but is {shown(said[name])}")
    for name, look in said.get("looks", {}).items():
        if not isinstance(look, list) or not 2 <= len(look) <= len(Look._fields):
            raise ConfigError(
                f"the look {name} has to be a list [{', '.join(Look._fields[:2])}, …], but is "
                f"{shown(look)}"
            )
    if "title" not in said:
        raise ConfigError("it has no title")
    file = said.get("file", "")
    if file and not file.replace("-", "_").isidentifier():
        raise ConfigError(f"file has to be one word, but is {shown(file)}")


def _is_measure(name: str, of: Any) -> bool:
    """Tell a measure from what else the module imports: it returns `Measured`, or does not say."""
    if name.startswith("_") or isinstance(of, type) or not callable(of):
        return False
    if not isinstance(of, partial) and of.__module__ in sys.stdlib_module_names:
        return False
    returns = getattr(of, "__annotations__", {}).get("return", Measured)
    return getattr(returns, "__name__", returns) == Measured.__name__
