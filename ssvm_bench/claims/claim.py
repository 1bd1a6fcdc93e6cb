"""Claims of a paper: words, the name of a measure, and a range, in ``claims.yaml`` of its folder.

.. code-block:: yaml

    runs:                                     # kinds of runs: a solver and some of its options
      bcfw: {solver: bcfw}
      mpbcfw: {solver: mpbcfw, prefer: {T: 10}}
    each:                                     # what a statement is repeated for
      pair: {plain: {single: bcfw, multi: mpbcfw}}
    claims:
      fewer:                                  # its name; its key is fewer_plain here
        each: pair
        section: Fig. 4
        text: '{multi} needs fewer iterations than {single}.'
        measured: iterations of {multi} over those of {single}; holds below {high}
        paper: {usps: fewer}                  # dataset → what the paper says of it
        measure: {by: to_gap, single: '{single}', multi: '{multi}', x: iteration}
        high: < 1                             # or 4/3: without a sign, the end is in the range
        show: times

Values of ``each`` are entries of the statement, and placeholders in its texts and arguments. Where
one names a kind of runs, a text has the kind's name, and the measure gets the kind itself. Several
tables of ``each`` are a list. A statement with ``together: true`` is repeated in turn with the one
before it. A kind with ``of: […]`` instead of a solver is a `Family`.

A *measure* is a function of a claim's subject and of these values that returns `Measured`: one
number per repeat, facts for the note, and a range that depends on the runs, if there is one. It
raises `UnmeasurableError` (`ensure`) where the runs do not decide. The subject of a claim about a
problem instance is its `Case`; of one about several λ, the table of the methods' costs there.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import yaml

from ssvm_bench.base.errors import ConfigError, described, nearest, shown
from ssvm_bench.claims.cases import Family, Selection
from ssvm_bench.results import words
from ssvm_bench.results.curves import UnmeasurableError, band

Fact: TypeAlias = "str | float | Sequence[float] | np.ndarray | tuple[Any, Callable[[float], str]]"
"""A text, or a number per repeat and what writes it, by default `words.number`."""


def fact_text(fact: Fact) -> str:
    """Return a fact as text: the median of its numbers, with minimum and maximum if they differ."""
    if isinstance(fact, str):
        return fact
    values, show = fact if isinstance(fact, tuple) else (fact, words.number)
    values = np.atleast_1d(np.asarray(values, float))
    ends = band(values)
    return words.median(ends, 2 if ends[1] != ends[2] else 1, show)


@dataclass(frozen=True)
class Measured:
    """One number per repeat, and the range that must contain the median for the claim to hold.

    Attributes
    ----------
    values : array_like, shape (repeats,)
        Infinite where a run ended before it reached the target.
    low, high : float
        Both ends belong to the range; a claim may have a smaller range.
    facts : dict
        What else the runs show: words → a number per repeat, see `Fact`.
    text : str
        The result as text, where the values alone do not show it.
    bounds : array_like, optional
        Lower bounds of infinite values: what had been spent when the run ended.
    ended : str
        The error's message where such a bound is too low to decide the claim.
    also : sequence of Measured
        The same to other targets. The claim holds if it does to each: the one decides whose median
        is farthest beyond its range or, if none is, nearest to an end of it.
    void : str
        Why the numbers do not measure what the claim is about, so that no verdict is given.
    """

    values: Any
    low: float = -math.inf
    high: float = math.inf
    facts: Mapping[str, Fact] = field(default_factory=dict)
    text: str = ""
    bounds: Any = None
    ended: str = "a run ended before"
    also: Sequence[Measured] = ()
    void: str = ""

    def __post_init__(self) -> None:
        """Make the values an array."""
        object.__setattr__(self, "values", np.atleast_1d(np.asarray(self.values, float)))

    @property
    def note(self) -> str:
        """The facts in words."""
        return "; ".join(" ".join(filter(None, (of, fact_text(f)))) for of, f in self.facts.items())

    def within(self, low: float, high: float) -> Measured:
        """Return what decides, with the range cut to low–high; raise `UnmeasurableError` if not."""
        found, *others = (
            replace(of, low=max(of.low, low), high=min(of.high, high), also=())
            for of in (self, *self.also)
        )
        if others:
            found = min(found, *others, key=lambda of: of.room)
        if np.isnan(found.values).any():
            raise UnmeasurableError(found.text or "a run has no value")
        limit = found.high if math.isfinite(found.high) else found.low
        if found.bounds is not None and (np.isinf(found.values) & (found.bounds < limit)).any():
            raise UnmeasurableError(found.ended)
        return found

    @property
    def room(self) -> float:
        """How far the median, a ratio, is within its range, as a logarithm; negative: beyond it."""
        middle = float(np.median(self.values))
        at = math.log(middle) if middle > 0 else -math.inf
        below = math.log(self.high) - at if math.isfinite(self.high) else math.inf
        return min(below, at - math.log(self.low) if self.low > 0 else math.inf)

    def holds(self, value: float) -> bool:
        """Return whether a value is in the range."""
        return self.low <= value <= self.high


def compared(holds: bool | None, text: str) -> Measured:
    """Return the result of a comparison: whether it holds (None: unknown), and its numbers."""
    return Measured([math.nan if holds is None else float(holds)], low=1.0, text=text)


Measure: TypeAlias = Callable[[Any], Measured]
"""Function of a claim's subject: returns what was measured or raises `UnmeasurableError`."""


class Claim(NamedTuple):
    r"""A statement of a paper: what it says of which dataset, and how it is measured.

    Attributes
    ----------
    key, section, text : str
        Its name, the section of the paper that makes it, and the statement in one sentence.
    measured : str
        How it is measured, and when it holds.
    paper : dict
        Dataset → what the paper says of it.
    measure : callable
        Measures one number per repeat.
    show : callable
        Formats such a number, as those of `SHOWS` do.
    low, high : float
        The claim holds if the median is in this range, ends included.
    timed : bool
        Whether it is about time; :mod:`.judging` then has a rule of noise.
    lam : float, optional
        The only λ that it is judged at.
    given : bool
        Whether the paper's costs are derived from it. Runs at these costs then say nothing about
        it, and other runs only compare our program and machine with the paper's.
    variants : sequence of str
        The `Variant`\ s that it is judged by, as ``start=oracle counted``; empty: all. If not
        empty, the claim is shown only where it could be measured.
    only : dict
        Options, as ``oracle.kernel``, of the runs that it is about; empty: all runs.
    beside : str
        The kind (`Paper.beside`) of a row that is not counted as a claim of the paper, else empty.
    place : str
        Where it is written, for messages: its name and file.
    """

    key: str
    section: str
    text: str
    measured: str
    paper: Mapping[str, str]
    measure: Measure
    show: Callable[..., str] = words.figures
    low: float = -math.inf
    high: float = math.inf
    timed: bool = False
    lam: float | None = None
    given: bool = False
    variants: Sequence[str] = ()
    only: Mapping[str, Any] = {}
    beside: str = ""
    place: str = ""

    @property
    def kinds(self) -> tuple[Selection | Family, ...]:
        """The kinds of runs that its measure compares."""
        arguments = self.measure.keywords.values() if isinstance(self.measure, partial) else ()
        return tuple(of for of in arguments if isinstance(of, Selection | Family))


# ---- claims.yaml ------------------------------------------------------------------------------

SHOWS: dict[str, Callable[..., str]] = {
    "number": words.figures,
    "percent": words.percent,
    "times": words.times,
    "factor": words.factor,
    "seconds": words.seconds,
}
"""Names of what writes the numbers of a claim, with an argument ``digits``."""

Types: TypeAlias = Mapping[str, tuple[type | tuple[type, ...], str]]
"""Entry of a mapping in a file → its types, and these in words."""

_PARTS = {"name", "each", "together", *Claim._fields} - {"key", "place"}
"""The entries of a statement."""

_TYPES: Types = {
    **dict.fromkeys(("name", "section", "text", "measured", "show", "beside"), (str, "a text")),
    **dict.fromkeys(("paper", "measure", "only"), (dict, "a mapping")),
    **dict.fromkeys(("low", "high"), ((int, float, str), "a number, a fraction or < or > and one")),
    **dict.fromkeys(("timed", "given", "together"), (bool, "true or false")),
    "each": ((str, list, dict), "a table's name, a list of names or a table"),
    "lam": ((int, float), "a number"),
    "variants": (list, "a list"),
}
_NEEDED = ("section", "text", "measured", "measure")
"""The entries that every statement has."""


def end_of_range(value: Any) -> float:
    """Return an end of a range, a number or a fraction; ``< 1`` and ``> 1`` exclude the number.

    >>> end_of_range(2), end_of_range("1/2"), end_of_range("< 1") < 1.0 < end_of_range("> 1")
    (2.0, 0.5, True)
    """
    if not isinstance(value, str):
        return float(value)
    end = float(Fraction(value.lstrip("<>").strip()))
    away = {"<": -math.inf, ">": math.inf}
    return math.nextafter(end, away[value[0]]) if value[0] in away else end


def read_claims(
    path: Path,
    measures: Mapping[str, Callable[..., Measured]],
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
) -> tuple[Claim, ...]:
    """Return the claims in a file, in the order of their table.

    Parameters
    ----------
    path : Path
    measures : mapping
        Name → function.
    tables : mapping, optional
        Further tables that ``each`` may name: name → suffix of the key → values.

    Raises
    ------
    ConfigError
        If the file cannot be read, or has a mistake. The message names the file, and the claim.
    """
    kinds = kinds_of_runs(path)
    with located(str(path)):
        said = read_mapping(path)
        tables = {**_part(said, "each"), **(tables or {})}
        statements = _part(said, "claims")
        if not statements:
            raise ConfigError("it has no claims")
    found: list[list[list[Claim]]] = []
    for name, statement in statements.items():
        place = f"The claim {name} in {path}"
        with located(place):
            claims = [
                _claim(place, key, entries, measures, kinds)
                for key, entries in _repeated(name, statement, tables).items()
            ]
            if not statement.get("together"):
                found.append([[claim] for claim in claims])
            elif not found or len(found[-1]) != len(claims):
                raise ConfigError("no statement before it is repeated as often: drop “together”")
            else:
                found[-1] = [[*row, claim] for row, claim in zip(found[-1], claims, strict=True)]
    return tuple(claim for group in found for row in group for claim in row)


def _repeated(name: str, statement: Any, tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the key of each claim of a statement, and its entries with the values of ``each``."""
    check_types(statement, _TYPES)
    _check("entry", statement, _PARTS)
    each = statement.get("each", {"": {}})
    if not isinstance(each, dict):
        names = [each] if isinstance(each, str) else each
        _check("table", names, tables)
        each = {of: row for name in names for of, row in _mapping(name, tables[name]).items()}
    name = statement.get("name", name)
    return {
        f"{name}_{of}".rstrip("_"): {**statement, **_mapping(of, row)} for of, row in each.items()
    }


def kinds_of_runs(path: Path) -> dict[str, Selection | Family]:
    """Return the kinds of runs in a file of claims by their names there; raises `ConfigError`."""
    kinds: dict[str, Selection | Family] = {}
    with located(str(path)):
        runs = _part(read_mapping(path), "runs")
    for name, of in runs.items():
        with located(f"The kind of runs {name} in {path}"):
            if "of" not in _mapping(name, of):
                kinds[name] = _selection(of)
            elif isinstance(of["of"], list) and isinstance(of.get("name"), str):
                kinds[name] = Family(of["name"], tuple(map(_selection, of["of"])))
            else:
                raise ConfigError("a family has a name, and a list of kinds as “of”")
    return kinds


def _selection(said: Any) -> Selection:
    """Return a kind of runs from its entry in the file: what is not about it is an option."""
    if not isinstance(said, dict) or not isinstance(said.get("solver"), str):
        raise ConfigError(f"it needs a mapping with a solver, but has {shown(said)}")
    about = {of: said[of] for of in ("solver", "prefer", "warm_start") if of in said}
    options = {of: value for of, value in said.items() if of not in {"name", *about}}
    return Selection(options=options, title=said.get("name", ""), **about)


def _claim(
    place: str,
    key: str,
    said: Mapping[str, Any],
    measures: Mapping[str, Callable[..., Measured]],
    kinds: Mapping[str, Any],
) -> Claim:
    """Return the claim of a statement, whose placeholders are among its entries."""
    for name in _NEEDED:
        if name not in said:
            raise ConfigError(f"it has no entry {name!r}")
    check_types(said, _TYPES)
    _check("format", [said.get("show", "number")], SHOWS)
    show = SHOWS[said.get("show", "number")]
    values = {of: _filled(value, {}, kinds) for of, value in said.items() if of not in _READ}
    low, high = (
        end_of_range(_filled(said.get(name, end), values, kinds))
        for name, end in (("low", -math.inf), ("high", math.inf))
    )
    shown = words.percent if show is words.percent else "{:.3g}".format
    texts = values | {"low": shown(low), "high": shown(high)}
    measure = dict(said["measure"])
    by = measure.pop("by", None)
    if not isinstance(by, str):
        raise ConfigError("its measure has no name: add “by”")
    _check("measure", [by], measures)
    arguments = _filled(measure, values, kinds)
    written: dict[str, Any] = {of: _text(said[of], texts) for of in ("section", "text", "measured")}
    try:
        inspect.signature(measures[by]).bind(None, **arguments)
    except TypeError as error:
        raise ConfigError(f"the measure {by} does not fit its arguments: {error}") from error
    return Claim(
        key,
        **written,
        paper=_filled(said.get("paper", {}), texts, {}),
        measure=partial(measures[by], **arguments),
        show=show,
        low=low,
        high=high,
        place=place,
        **{name: value for name, value in values.items() if name in _PARTS & {*Claim._fields}},
    )


_READ = ("key", "section", "text", "measured", "paper", "measure", "show", "low", "high")
"""The entries that are read one by one."""


def _filled(value: Any, values: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    """Return a value of the file with placeholders filled in, and kinds of runs for their names."""
    if isinstance(value, dict):
        return {key: _filled(inner, values, kinds) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values, kinds) for inner in value]
    if not isinstance(value, str):
        return value
    if value in kinds:
        return kinds[value]
    if value[:1] == "{" and value[1:-1].isidentifier() and value[-1] == "}":
        _check("placeholder", [value[1:-1]], values)
        return values[value[1:-1]]
    return _text(value, values) if values else value


def _text(template: str, values: Mapping[str, Any]) -> str:
    try:
        return template.format(**values)
    except KeyError as error:
        _check("placeholder", error.args, values)
        raise


def _check(what: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f"it has no {what} {name!r}. {nearest(str(name), known)}")


# ---- files of a paper -------------------------------------------------------------------------


@contextmanager
def located(place: str) -> Iterator[None]:
    """Turn whatever a mistake raises into one ``ConfigError`` that begins with where it is."""
    try:
        yield
    except Exception as error:
        raise ConfigError(f"{place}: {described(error)}") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the content of a YAML file of a paper; raise ``ConfigError`` if it is no mapping.

    Unlike files of configs, it may have anchors and merge keys.
    """
    try:
        said = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigError(f"{line}{error.problem}") from error
    if not isinstance(said, dict):
        raise ConfigError("it is empty" if said is None else "it has to be a mapping")
    return said


def check_types(said: Any, types: Types) -> None:
    """Raise ``ConfigError`` unless this is a mapping whose entries have their types."""
    if not isinstance(said, dict):
        raise ConfigError(f"it has to be a mapping, but is {shown(said)}")
    for name, (of, in_words) in types.items():
        value = said.get(name, ...)
        is_number = isinstance(value, bool) and of is not bool
        if value is not ... and (is_number or not isinstance(value, of)):
            raise ConfigError(f"{name} has to be {in_words}, but is {shown(value)}")


class _Loader(yaml.SafeLoader):
    """Refuses keys that stand twice; merged ones may be replaced."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Check the keys before others are merged."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    problem = f"the key {shown(key.value)} stands twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return node


def _part(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an entry of a file that maps names to mappings; empty if there is none."""
    part = _mapping(name, {} if said.get(name) is None else said[name])
    for key in part:
        if not isinstance(key, str):
            raise ConfigError(f"{name} has the key {shown(key)}, which is no text: quote it")
    return part


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{name} has to be a mapping, but is {shown(value)}")
    return value
