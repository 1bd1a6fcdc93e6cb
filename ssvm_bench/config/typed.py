"""Plain values from YAML or the command line into frozen dataclasses, strictly by annotation.

Strict means that nothing is guessed: text is not a number, a truth value is not an integer, and
NaN and infinity are no values of an option, nor are integers beyond 64 bits or texts with control
characters. The one convenience is that ``1e3`` may stand for the
integer 1000, and an integer for a float, so that equal values written differently are equal; and
that ``true`` is a word where that is one of the words to choose from.
"""

from __future__ import annotations

import difflib
import math
import os
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ssvm_bench.base.errors import ConfigError, shown

T = TypeVar("T")

_WORDS: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    Path: "a path",
    NoneType: "null",
}

_NOT_SET = "???"
"""What a config file has in place of a value that must be given."""

_TRUTH = {True: "true", False: "false"}
"""Truth values as they are written."""

_PLURALS: dict[Any, str] = {int: "integers", float: "numbers"}


class Table(dict[str, float]):
    """A mapping from names to numbers, as a value of an option: it is not changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Return the same for equal ones, in whatever order."""
        return hash(frozenset(self.items()))


class _WrongTypeError(Exception):
    """The value does not fit the annotation."""


@cache
def hints(cls: Any) -> dict[str, Any]:
    """Return the annotations of a dataclass's fields."""
    found = get_type_hints(cls, include_extras=True)
    return {field.name: found[field.name] for field in fields(cls)}


def build(cls: type[T], values: Mapping[str, Any], section: str = "") -> T:
    """Return ``cls(**values)`` with every value converted to its field's type.

    Parameters
    ----------
    cls : dataclass
        The typed section of the config.
    values : mapping
        One value for each field; fields with a default may be absent.
    section : str
        The section's name, for the messages: field ``T`` of ``"solver"`` is ``solver.T``.

    Raises
    ------
    ConfigError
        If an option is unknown, missing, or of the wrong type.
    """
    annotations = hints(cast(Any, cls))
    for key in values:
        if key not in annotations:
            options = [_join(section, name) for name in annotations]
            raise unknown_option(_join(section, key), options)
    arguments = {}
    for field in fields(cast(Any, cls)):
        option = _join(section, field.name)
        needed = field.default is MISSING and field.default_factory is MISSING
        if values.get(field.name, _NOT_SET if needed else None) == _NOT_SET:
            raise ConfigError(f"{option} has no value: its config file does not set it.")
        if field.name in values:
            arguments[field.name] = convert(annotations[field.name], values[field.name], option)
    return cls(**arguments)


def convert(annotation: Any, value: Any, option: str) -> Any:
    """Return ``value`` as the annotated type, or raise ``ConfigError`` naming the ``option``."""
    if is_dataclass(annotation) and isinstance(value, Mapping):
        return build(cast(type, annotation), value, option)
    try:
        return _convert(annotation, value)
    except _WrongTypeError:
        if type(value) is int and not _fits(value):
            raise ConfigError(f"{option} must be an integer of at most 64 bits.") from None
        raise ConfigError(f"{option} must be {_words(annotation)}, got {_show(value)}.") from None


def unknown_option(
    option: str, valid: Iterable[str], where: str = "", owners: Iterable[str] = ()
) -> ConfigError:
    """Return the error for an option that does not exist.

    The nearest valid option is the one whose last word is nearest, whatever its section:
    ``max_iterations`` is a near miss of ``budget.max_iterations``. ``owners`` are what has it.
    """
    valid = list(valid)
    section, _, word = option.rpartition(".")
    siblings = [name for name in valid if name.rpartition(".")[0] == section] or valid
    for names in (siblings, valid):
        last = {name.rpartition(".")[2]: name for name in reversed(names)}
        close = difflib.get_close_matches(word[:100], last, n=1, cutoff=0.6)
        if close:
            break
    hint = f"Did you mean {last[close[0]]}? " if close else ""
    context = f" with {where}" if where else ""
    if owners:
        context += f": it is one of {', '.join(owners)}"
        hint = ""
    return ConfigError(
        f"There is no option {shown(option)}{context}. {hint}Valid: {', '.join(sorted(siblings))}."
    )


def _chooses(checks: Iterable[Any], word: str) -> bool:
    """Tell whether a word is a choice of one of the checks of an option (`validation.one_of`)."""
    return any(word in getattr(check, "keywords", {}).get("valid", ()) for check in checks)


def _convert(annotation: Any, value: Any) -> Any:
    """Convert without a message; the recursion over unions and sequences."""
    if type(value) is int and not _fits(value):
        raise _WrongTypeError
    if type(value) is str and annotation in (str, Any) and not _is_text(value):
        raise _WrongTypeError
    if annotation is Any or (isinstance(annotation, type) and type(value) is annotation):
        if isinstance(value, float) and not math.isfinite(value):
            raise _WrongTypeError
        return value
    if get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            try:
                return _convert(member, value)
            except _WrongTypeError:
                continue
        raise _WrongTypeError
    if get_origin(annotation) is Annotated:
        inner, *checks = get_args(annotation)
        if inner is str and type(value) is bool and _chooses(checks, _TRUTH[value]):
            value = _TRUTH[value]
        return _convert(inner, value)
    if get_origin(annotation) in (tuple, list) and isinstance(value, (tuple, list)):
        return get_origin(annotation)(_convert(get_args(annotation)[0], item) for item in value)
    if annotation is Table and isinstance(value, Mapping) and {*map(type, value)} <= {int, str}:
        return Table((str(key), _convert(float, number)) for key, number in value.items())
    if annotation is NoneType and value is None:
        return None
    if annotation is float and type(value) is int:
        return float(value)
    if annotation is int and type(value) is float and value.is_integer():
        return _convert(int, int(value))
    if annotation is Path and isinstance(value, (str, Path)) and str(value).strip():
        try:
            if _is_text(os.fsencode(value).decode(errors="replace")):  # bytes that are no text, too
                return Path(value).expanduser()
        except (RuntimeError, UnicodeError):  # ~user, who is not known here; half a character
            pass
    raise _WrongTypeError


def _fits(value: int) -> bool:
    """Tell whether an integer has at most 64 bits."""
    return -(2**63) <= value < 2**63


def _is_text(value: str) -> bool:
    """Tell whether there are neither control characters nor halves of characters in a text."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in value)


def _words(annotation: Any) -> str:
    """Say the type in words: ``a number or null``."""
    if annotation is Table:
        return "a mapping of names to numbers"
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_words(member) for member in get_args(annotation))
    if get_origin(annotation) is Annotated:  # with the form of a text, or with a range
        kind, extra = get_args(annotation)
        return extra if isinstance(extra, str) else _words(kind)
    if get_origin(annotation) in (tuple, list):
        plural = _PLURALS.get(get_args(annotation)[0])
        return f"a list of {plural}" if plural else "a list in brackets"
    if is_dataclass(annotation):
        return "a section of options"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _show(value: Any) -> str:
    """Show the value as it would be written in a config."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return shown(repr(value))


def _join(section: str, key: str) -> str:
    return f"{section}.{key}" if section else str(key)
