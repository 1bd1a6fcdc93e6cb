"""Tables of options, from the dataclasses and the files of the choices.

``make options`` writes those in ``docs/options.md``, and the one from which a shell completes;
``tests/repository/test_docs.py`` checks that they are those of the code. The default of an option
is that of its field; what it means, the docstring of its class says under ``Attributes``, or a
table of the module's docstring headed ``option``.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

from ssvm_bench.cli.completion import TABLE
from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import SourceConfig
from ssvm_bench.oracles.options import OracleConfig
from ssvm_bench.solvers.base import SolverConfig
from ssvm_bench.solvers.block import mpbcfw

PAGE = Path(__file__).with_name("options.md")
BEGIN, END = "<!-- made by `make options` -->", "<!-- end of what `make options` makes -->"
SHARED = {"dataset": SourceConfig, "oracle": OracleConfig, "solver": SolverConfig}
LOOP: dict[str, str] = {}
"""What the options of MP-BCFW's loop mean, which several solvers have."""

NAMED = 5
"""The largest number of names in a heading."""

SAID = ("name", "kind")
"""What a choice says of itself."""


def meanings(cls: Any) -> dict[str, str]:
    """Return what the options of a class mean, those of its base classes too."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("ssvm_bench") and base.__dict__.get("__doc__"):
            found |= _of_module(inspect.getdoc(sys.modules[base.__module__]) or "")
            found |= dict(_entries(iter(validation.meanings(base).items())))
    return found


def _of_module(text: str) -> dict[str, str]:
    """Return what a table headed ``option`` says."""
    found = re.search(r"^(=+ +)=+\noption +\S+\n=.*\n", text, re.MULTILINE)
    if found is None:
        return {}
    width, entries = len(found[1]), []
    for line in takewhile(lambda line: line[:1] != "=", text[found.end() :].splitlines()):
        if line[:1] != " ":
            entries.append((line[:width].strip(), ""))
        entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line[width:]}")
    return dict(_entries(iter(entries)))


def _entries(found: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for names, text in found:
        plain = re.sub(r":\w+:`[~.]*([^`]*)`|``", lambda m: f"`{m[1]}`" if m[1] else "`", text)
        plain = " ".join(plain.split()).replace("|", "\\|").replace("None", "`null`")
        for name in names.partition(" : ")[0].split(", "):
            yield name, plain


def written(value: Any) -> str:
    """Return a value as the command line has it."""
    if value is MISSING:
        return "needed"
    text = {"None": "null", "True": "true", "False": "false", "()": "[]"}
    return f"`{text.get(str(value), str(value))}`"


def rows(cls: Any, prefix: str, left_out: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield option, default and meaning of each field."""
    told, hints = {**LOOP, **meanings(cls)}, validation.hints(cls)
    for each in fields(cls):
        if is_dataclass(hints[each.name]):
            yield from rows(hints[each.name], f"{each.name}.")
        elif each.name not in left_out:
            yield f"`{prefix}{each.name}`", written(each.default), told[each.name]


def _table(header: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    for line in lines:
        yield f"| {' | '.join(line)} |"
    yield ""


def tables() -> Iterator[str]:
    """Yield the lines of all tables."""
    header = ("option", "default", "meaning")
    LOOP.update(meanings(mpbcfw.Config))
    yield from ("## Options of every run", "")
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows(RunConfig, "", catalog.COMPONENTS):
        sections.setdefault(row[0].strip("`").rpartition(".")[0], []).append(row)
    for section, of_section in sections.items():
        yield from (f"### Every run: `{section}`" if section else "### Every run", "")
        yield from _table(header, iter(of_section))
    for group, shared in SHARED.items():
        yield from (f"## Options of {group}s", "", f"### Every {group}", "")
        yield from _table(header, rows(shared, f"{group}.", SAID))
        files = catalog.entries(group)
        known, own, differing = {each.name for each in fields(shared)}, {}, []
        for name in files:
            options, _, budget = catalog.read(group, name, files)
            kind, cls = options["kind"], registry.module(group, options["kind"]).Config
            for row in rows(cls, f"{group}.", tuple(known)):
                own.setdefault(row, []).append(name)
            changed = [f"`{key}={val}`" for key, val in options.items() if key not in SAID]
            changed += [f"`budget.{key}={val}`" for key, val in budget.items()]
            if changed or kind != name:
                of = "" if kind == name else f"`{kind}`"
                differing.append((f"`{name}`", of, " ".join(changed)))
        families: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
        for row, names in own.items():
            families.setdefault(tuple(names), []).append(row)
        for names, of_family in families.items():
            yield from _heading(group, names)
            yield from _table(header, iter(of_family))
        yield from (f"### Set by `{group}=NAME`", "")
        yield from ("Choices that set options to other values than the tables above have.", "")
        yield from _table(("name", "another of", "sets"), iter(differing))


def _heading(group: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the heading of options that these choices have; of many names, the others below it."""
    shown = names if len(names) <= NAMED else names[: NAMED - 1]
    kind, others = f"{group.capitalize()}{'s' * (len(names) > 1)}", names[len(shown) :]
    yield from (f"### {kind} {_list(shown)}" + f" and {len(others)} more" * bool(others), "")
    if others:
        yield from (f"Also {_list(others)}.", "")


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page(text: str) -> str:
    """Return the page with the tables of today."""
    before, rest = text.split(BEGIN)
    return "\n".join([f"{before}{BEGIN}", "", *tables()]) + END + rest.split(END)[1]


# ---- what a shell completes ---------------------------------------------------------------------


def completion() -> str:
    """Return the table that `ssvm_bench.cli.completion` describes, a line for each entry."""
    names: dict[str, dict[str, str]] = {}
    kinds: dict[str, dict[str, Any]] = {}
    oracles = {}
    for group in (*catalog.GROUPS, "experiments"):
        files = catalog.entries(group)
        names[group] = dict.fromkeys(files, "")
        for name in files if group in catalog.COMPONENTS else ():
            chosen = catalog.read(group, name, files)
            kind = names[group][name] = chosen.options["kind"]
            kinds.setdefault(group, {})[kind] = _completed(registry.module(group, kind).Config)
            if group == "dataset":
                oracles[name] = chosen.oracle
    table = {
        "defaults": catalog.DEFAULTS,
        "names": names,
        "oracles": oracles,
        "kinds": kinds,
        "shared": {group: _completed(cls) for group, cls in SHARED.items()},
        "run": _completed(RunConfig),
    }
    return f"{_lines(table, 3)}\n"


def _lines(value: Any, levels: int) -> str:
    """Return a value as JSON, with a line for each entry of its so many upper levels."""
    if not (levels and isinstance(value, dict)):
        return json.dumps(value)
    entries = (f"{json.dumps(key)}: {_lines(each, levels - 1)}" for key, each in value.items())
    return "{\n" + ",\n".join(entries) + "\n}"


def _completed(cls: Any) -> dict[str, Any]:
    """Return option → the words that it can be set to; section → its options."""
    return {
        name: _completed(hint) if is_dataclass(hint) else _words(hint)
        for name, hint in validation.hints(cls).items()
        if name not in (*SAID, *catalog.COMPONENTS)
    }


def _words(hint: Any) -> list[str]:
    """Return the words that an annotation lists."""
    if hint in (bool, type(None)):
        return ["true", "false"] if hint is bool else ["null"]
    if isinstance(hint, partial):
        return [*hint.keywords.get("valid", ())]
    return [*dict.fromkeys(word for each in get_args(hint) for word in _words(each))]


if __name__ == "__main__":
    TABLE.write_text(completion(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
