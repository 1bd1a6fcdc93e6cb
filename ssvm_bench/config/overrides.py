"""The words of a command line, ``option=value``, in Hydra's override grammar.

Reading takes bounded time: the length and the nesting of a word are limited, and the values of a
sweep are counted before they are created. A value outside of Hydra's grammar is taken literally:
``2n/(k+2n)``, ``~/results``. Interpolations, ``${…}``, are refused and never resolved, as they
might reveal secrets.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hydra.core.override_parser import types
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, shown

MOST_RUNS = 100_000
"""The largest number of runs of one call, unless the environment sets another."""

MOST_RUNS_VARIABLE = "SSVM_BENCH_MAX_RUNS"

_LONGEST, _LONGEST_TOGETHER = 4_000, 20_000  # characters, which Hydra's parser reads in a second
_DEEPEST = 10

_KEY = re.compile(r"\+{0,2}\w+(\.\w+)*")

WHERE_AND_HOW = frozenset(
    {
        *("results_dir", "force", "quiet", "parallel.address"),
        *("checkpoint.every", "checkpoint.keep", "dataset.source", "dataset.trust"),
    }
)
"""Options that choose no other runs; files on data of another source have another name anyway."""

_LONGEST_NAME = 100  # characters of `file_name`, before its digest


class Override(NamedTuple):
    """An option or a group, and what it is set to.

    Attributes
    ----------
    text : str
        The word itself, as messages show it.
    key : str
        The option's full name, or the group.
    value : object
        Its value, or Hydra's sweep over several values.
    added : bool
        Whether it began with ``+``.
    literal : str
        The characters of the value.
    """

    text: str
    key: str
    value: Any
    added: bool
    literal: str = ""

    @property
    def is_sweep(self) -> bool:
        """Whether it describes several runs."""
        return isinstance(self.value, (types.Sweep, types.Glob))

    def values(self, names: Sequence[str] = ()) -> list[Any]:
        """Return its values after counting them; a pattern is matched against ``names``."""
        sweep, found = self.value, [self.value]
        if isinstance(sweep, types.IntervalSweep):
            raise ConfigError(
                f"{self.text}: an interval has no end of values. Write {self.key}=range(…)."
            )
        if isinstance(sweep, types.RangeSweep):
            try:
                ends = (sweep.start, sweep.stop, sweep.step)
                start, stop, step = (Decimal(end) for end in ends if end is not None)
                check_count(math.ceil((stop - start) / step))
            except (ArithmeticError, ValueError):  # step 0; infinite or NaN
                raise ConfigError(
                    f"{self.text}: a range needs finite ends, and a step that is not 0."
                ) from None
            found = list(sweep.range())
        elif isinstance(sweep, types.Glob):
            found = sweep.filter(sorted(names))
        elif isinstance(sweep, types.ChoiceSweep):
            found = list(map(types.Override._convert_value, sweep.list))
        if not found:
            raise ConfigError(f"{self.text} has no values, so there is nothing to run.")
        return found


def check_count(runs: int) -> None:
    """Raise ``ConfigError`` if these are too many runs for one call."""
    text = os.environ.get(MOST_RUNS_VARIABLE) or str(MOST_RUNS)
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise ConfigError(f"${MOST_RUNS_VARIABLE} must be a number of runs, got {shown(text)!r}.")
    if runs > int(text):
        asked = f"{runs:,}" if runs < 10**15 else "too many"
        raise ConfigError(
            f"The sweep asks for {asked} runs; there can be {int(text):,}. Sweep over less, or set "
            f"${MOST_RUNS_VARIABLE}."
        )


def read(words: Iterable[str]) -> list[Override]:
    """Read the words of a command line.

    Raises
    ------
    ConfigError
        If a word cannot be read, or uses Hydra's syntax for removing or moving options.
    """
    settings, length = [], 0
    for word in words:
        length += len(word)
        if len(word) > _LONGEST or length > _LONGEST_TOGETHER:
            raise ConfigError(
                f"{shown(word)}: an override has at most {_LONGEST:,} characters, and all of them "
                f"{_LONGEST_TOGETHER:,}. Write a long list as range(…)."
            )
        settings.append(_read(word))
    return settings


def single(setting: Override) -> Override:
    """Return a setting of one run; what looks like a sweep may be a file with commas in its name.

    Raises
    ------
    ConfigError
        It asks for several runs.
    """
    if setting.is_sweep:
        with suppress(OSError, ValueError):
            if files.expanded(setting.literal).exists():
                return setting._replace(value=setting.literal)
        quoted = shlex.quote(f'{setting.key}="{setting.literal}"')
        raise ConfigError(
            f"{setting.text} asks for several runs. Add -m to make them all. If it is one value "
            f"with commas, quote it: {shown(quoted)}."
        )
    return setting


def variant(words: Iterable[str]) -> str:
    """Return the name of the files that show the runs of these overrides; empty without any.

    It has every option that chooses runs, sorted. The name of overrides that are too long for one,
    or have characters that a file's name should not have, ends in a digest of them.

    >>> variant(["seed=range(3)", "results_dir=here", "dataset=usps", "lam=1e-2"])
    'dataset=usps,lam=0.01,seed=0+1+2'
    """
    last = {of.key: of for of in read(words) if of.key not in WHERE_AND_HOW}
    return file_name({key: _texts(of) for key, of in sorted(last.items())})


def file_name(options: Mapping[str, Sequence[str]]) -> str:
    """Return a readable name for files that options and their values distinguish."""
    name = ",".join(f"{key}={'+'.join(values)}" for key, values in options.items())
    texts = [text for values in options.values() for text in values]
    plain = all(re.fullmatch(r"[\w.-]+", text, re.ASCII) for text in texts)
    if plain and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(repr([*options.items()]).encode()).hexdigest()[:8]
    readable = re.sub(r"[^\w.=+,-]+", "_", re.sub(r"[][(){}]", "", name), flags=re.ASCII)
    return f"{readable[:_LONGEST_NAME]}-{digest}"


def _texts(setting: Override) -> list[str]:
    """Return the values of a setting as they are written; a pattern is a text of its own."""
    if isinstance(setting.value, types.Glob):
        return [repr(setting.value)]
    return [written(setting.key, value).strip("'") for value in setting.values()]


def words(options: Mapping[str, Any]) -> list[str]:
    """Return options and their Python values as words."""
    return [f"{name}={written(name, value)}" for name, value in options.items()]


def written(name: str, value: Any) -> str:
    """Return the Python value of an option in the grammar of overrides."""
    if isinstance(value, np.ndarray):
        value = value.tolist()  # a number if it has no dimensions
    if value is None:
        return "null"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.number):
        return repr(value.item() if isinstance(value, np.number) else value)
    if isinstance(value, str | Path):
        return types.QuotedString(str(value), types.Quote.single).with_quotes()
    if isinstance(value, Mapping):
        inside = (f"{key}:{written(name, number)}" for key, number in value.items())
        return f"{{{','.join(inside)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(written(name, each) for each in value)}]"
    raise ConfigError(f"{name} must be a number, text, path, list or mapping, got {value!r}.")


@functools.lru_cache(maxsize=10_000)  # experiments have many words in common
def _read(word: str) -> Override:
    text = shown(word)
    _check_nesting(word)
    try:
        override = OverridesParser.create().parse_override(word)
    except (HydraException, ValueError):  # ValueError: thousands of digits
        key, equals, value = word.partition("=")
        if not (equals and _KEY.fullmatch(key)):
            raise ConfigError(
                f"Cannot read {shown(repr(word))}. Write option=value, without spaces around '='."
            ) from None
        kind = types.OverrideType.ADD if key.startswith("+") else types.OverrideType.CHANGE
        override = types.Override(kind, key.lstrip("+"), None, value)
    key = override.key_or_group
    if override.is_delete():
        raise ConfigError(f"{text}: an option cannot be removed. Set {shown(key)} to a value.")
    if override.package is not None or not key:
        raise ConfigError(f"Cannot read {shown(repr(word))}. Write option=value or group=name.")
    if "${" in repr(override._value):
        got = shown(repr(override.value()))
        raise ConfigError(f"{shown(key)}: interpolations, ${{…}}, are not accepted, got {got}.")
    added = override.is_add() or override.is_force_add()
    return Override(text, key, override.value(), added, word.partition("=")[2])


def _check_nesting(word: str) -> None:
    """Refuse deeply nested brackets, which nobody writes on purpose."""
    depth = 0
    for bracket in re.findall(r"[\[\](){}]", word):
        depth += 1 if bracket in "[({" else -1
        if depth > _DEEPEST:
            raise ConfigError(f"{shown(word)}: brackets are nested deeper than {_DEEPEST} levels.")
