"""Convert plain values to frozen dataclasses of options, by their annotations, and check ranges.

Conversion guesses nothing: text is not a number, and a truth value is not an integer. NaN,
infinity, integers beyond 64 bits and text with control characters are refused. ``1e3`` is accepted
as the integer 1000, and an integer as a float, so that equal values written differently are equal.
``true`` is accepted as a word where it is one of the choices.

A range is an annotation of the field, too: ``T: Count = 10``. A check takes the option's full name,
so that its message says what to change.

λ is a number, ``K/n`` for K times 1/n, or null for 1/n itself. The bundle paper's risk is a sum
over the n examples, not a mean, so that its λ is n times ours: its λ = 1000 is ``1000/n`` here, on
a dataset of any size.

>>> check_at_least("solver.T", 10, 1)
"""

from __future__ import annotations

import difflib
import inspect
import itertools
import math
import os
import re
import typing
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, cast, get_args, get_origin

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.base.files import expanded

# ---- ranges ---------------------------------------------------------------------------------

Check = Callable[[str, Any], None]
"""Raises ``ConfigError`` if an option, given by its full name and value, is out of range."""


def check_choice(option: str, value: object, valid: Iterable[str]) -> None:
    """Raise ``ConfigError`` unless ``value`` is one of the ``valid`` names."""
    valid = tuple(valid)
    if value not in valid:
        raise ConfigError(f"{option}={shown(value)} is not known. {nearest(str(value), valid)}")


def check_at_least(option: str, value: float, minimum: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a finite number ≥ ``minimum``."""
    if not (math.isfinite(value) and value >= minimum):
        raise ConfigError(f"{option} must be ≥ {minimum:g}, got {value}.")


def check_positive(option: str, value: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a finite number > 0."""
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{option} must be a positive number, got {value}.")


def check_share(option: str, value: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a number strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ConfigError(f"{option} must be above 0 and below 1, got {value}.")


def one_of(valid: Iterable[str]) -> Check:
    """Return the check of a choice, for ``Annotated[str, one_of(…)]``."""
    return partial(check_choice, valid=valid)


def at_least(minimum: float) -> Check:
    """Return the check of a number with a minimum, for ``Annotated[float, at_least(…)]``."""
    return partial(check_at_least, minimum=minimum)


Natural = Annotated[int, at_least(0)]
Count = Annotated[int, at_least(1)]
NotNegative = Annotated[float, at_least(0)]
Positive = Annotated[float, check_positive]
Share = Annotated[float, check_share]


class Options:
    """A section of options, which checks its fields by their annotations; null is always accepted.

    Attributes
    ----------
    section : str
        First part of the options' full names: ``"solver"`` in ``solver.T``.
    """

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the ranges."""
        cls: Any = type(self)
        for name, check in _checks(cls):
            value = getattr(self, name)
            if value is not None:
                check(f"{self.section}.{name}".lstrip("."), value)


@cache
def _checks(cls: Any) -> tuple[tuple[str, Check], ...]:
    """Return the pairs of a field's name and its check, in the order of the fields."""
    return tuple((name, check) for name, hint in hints(cls).items() for check in _of(hint))


def _of(hint: Any) -> Iterator[Check]:
    """Yield the checks in an annotation, or in the members of a union."""
    yield from (extra for extra in getattr(hint, "__metadata__", ()) if callable(extra))
    for member in get_args(hint) if not hasattr(hint, "__metadata__") else ():
        yield from _of(member)


# ---- types ----------------------------------------------------------------------------------

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
"""Marks a value in a config file that the user must give."""

_PLURALS: dict[Any, str] = {int: "integers", float: "numbers"}


class NamedNumbers(dict[str, float]):
    """A mapping from names to numbers as the value of an option, not to be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash that does not depend on the order."""
        return hash(frozenset(self.items()))


Table = NamedNumbers
"""The name in estimators that version 1.0 has pickled."""


class _WrongTypeError(Exception):
    """The value does not fit the annotation."""


@cache
def hints(cls: Any) -> dict[str, Any]:
    """Return the annotations of a dataclass's fields."""
    found = typing.get_type_hints(cls, include_extras=True)
    return {field.name: found[field.name] for field in fields(cls)}


@cache
def defaults(cls: Any) -> dict[str, Any]:
    """Return the options of a class that have a default."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(cls)
        if each.default is not MISSING or each.default_factory is not MISSING
    }


def meanings(cls: Any) -> dict[str, str]:
    """Return option → meaning, from the section ``Attributes`` of a class's docstring."""
    _, _, section = (inspect.getdoc(cls) or "").partition("Attributes\n----------\n")
    found: dict[str, str] = {}
    for entry in re.split(r"^(?=\w)", section, flags=re.MULTILINE)[1:]:
        names, _, text = entry.partition("\n")
        found |= dict.fromkeys(names.partition(" : ")[0].split(", "), " ".join(text.split()))
    return found


def described(cls: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield name, default and meaning of each option of a class and its sections, as text."""
    for field in fields(cls):
        if is_dataclass(section := hints(cls)[field.name]):
            yield from described(section, f"{field.name}.")
        else:
            meaning = re.sub(r":\w+:|`", "", meanings(cls).get(field.name, ""))
            default = "[]" if field.default == () else _show(field.default)
            yield f"{prefix}{field.name}", default, meaning.replace("None", "null")


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
    annotations, known = hints(cast(Any, cls)), defaults(cast(Any, cls))
    for key in values:
        if key not in annotations:
            options = [_join(section, name) for name in annotations]
            raise unknown_option(_join(section, key), options)
    arguments = {}
    for name, annotation in annotations.items():
        option = _join(section, name)
        if values.get(name, None if name in known else _NOT_SET) == _NOT_SET:
            raise ConfigError(f"{option} has no value: its config file does not set it.")
        if name in values:
            arguments[name] = convert(annotation, values[name], option)
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

    It suggests the valid option whose last word is nearest, preferably in the same section:
    ``budget.max_iterations`` for ``max_iterations``. ``owners`` are components with the option.
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


def _convert(annotation: Any, value: Any) -> Any:
    """Convert without an error message, recursively over unions and sequences."""
    if type(value) is int and not _fits(value):
        raise _WrongTypeError
    if type(value) is str and annotation in (str, Any) and not _is_text(value):
        raise _WrongTypeError
    if annotation is Any or (isinstance(annotation, type) and type(value) is annotation):
        if isinstance(value, float) and not math.isfinite(value):
            raise _WrongTypeError
        return value
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        for member in arguments:
            with suppress(_WrongTypeError):
                return _convert(member, value)
    if origin is Annotated:
        inner, *checks = arguments
        if inner is str and type(value) is bool:  # true may be one of the choices
            keywords = [getattr(check, "keywords", {}) for check in checks]
            if any(_show(value) in each.get("valid", ()) for each in keywords):
                value = _show(value)
        return _convert(inner, value)
    if origin in (tuple, list) and isinstance(value, (tuple, list)):
        return origin(_convert(arguments[0], item) for item in value)
    if annotation is NamedNumbers and isinstance(value, Mapping):
        names = [str(key) for key in value if type(key) in (int, float, str)]
        if len({*names}) == len(value):  # 1 and '1' are one name
            return NamedNumbers(
                zip(names, (_convert(float, of) for of in value.values()), strict=True)
            )
    if annotation is NoneType and value is None:
        return None
    if annotation is float and type(value) is int:
        return float(value)
    if annotation is int and type(value) is float and value.is_integer():
        return _convert(int, int(value))
    if annotation is Path and isinstance(value, (str, Path)) and str(value).strip():
        with suppress(OSError, UnicodeError):  # unknown ~user; lone surrogates
            if _is_text(os.fsencode(value).decode(errors="replace")):  # any bytes
                return expanded(value)
    raise _WrongTypeError


def _fits(value: int) -> bool:
    """Return whether an integer has at most 64 bits."""
    return -(2**63) <= value < 2**63


def _is_text(value: str) -> bool:
    """Return whether a text is free of control characters and lone surrogates."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in value)


def _words(annotation: Any) -> str:
    """Return the type in words: ``a number or null``."""
    if annotation is NamedNumbers:
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
    """Return the value as it is written in a config."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value if isinstance(value, Path) else repr(value))


def _join(section: str, key: str) -> str:
    return f"{section}.{key}" if section else str(key)


# ---- λ ------------------------------------------------------------------------------------

OverN = Annotated[str, "K/n (as 10/n)"]
"""Text of the form K/n."""

_OVER_N = "/n"
_LAM = re.compile(r"[\d.eE+-]+/n")


def lam_number(lam: float | str | None, n: float) -> float:
    """Return λ for n examples.

    >>> lam_number("1000/n", 50), lam_number(0.1, 50), lam_number(None, 50)
    (20.0, 0.1, 0.02)
    """
    if lam is None:
        return 1 / n
    return float(lam.removesuffix(_OVER_N)) / n if isinstance(lam, str) else lam


def checked_lam(option: str, lam: float | str | None) -> float | str | None:
    """Return λ in a canonical form: ``1e1/n`` becomes ``10/n``.

    Raises
    ------
    ConfigError
        If it is not positive and finite, or not of the form ``K/n``.
    """
    if not isinstance(lam, str):
        if lam is not None:
            check_positive(option, lam)
        return lam
    try:
        factor = lam_number(lam, 1) if _LAM.fullmatch(lam) else math.nan
    except ValueError:  # such as 1-1/n
        factor = math.nan
    if not 0 < factor < math.inf:
        raise ConfigError(
            f"{option} must be a number or K/n (as 10/n), K a positive number, "
            f"got {shown(repr(lam))}."
        )
    return f"{repr(factor).removesuffix('.0')}{_OVER_N}"


def check_falling(option: str, lams: Sequence[float | str | None], n: int | None = None) -> None:
    """Raise ``ConfigError`` unless λ falls from one to the next.

    Without n, numbers are compared with numbers and ``K/n`` with ``K/n`` only.
    """
    comparable = [[lam for lam in lams if isinstance(lam, kind)] for kind in (float, str)]
    for values in comparable if n is None else [lams]:
        numbers = [lam_number(lam, n or 1) for lam in values]
        if any(after >= before for before, after in itertools.pairwise(numbers)):
            texts = (
                "1/n" if lam is None else lam if isinstance(lam, str) else f"{lam:g}"
                for lam in lams
            )
            where = "" if n is None else f" with n = {n}"
            raise ConfigError(
                f"{option} must fall from one λ to the next, got {', '.join(texts)}{where}."
            )
