"""The two kinds of failure that a user sees, hints at similar names, and display of input.

Each failure ends in one message that says what is wrong, where, and what to do; the command line
turns it into the documented exit status. A message is one line of bounded length, whatever the
input: `shown` shortens a value that is put into a message, so that the value does not displace the
explanation, and `readable` shortens a message that is printed.
"""

from __future__ import annotations

import difflib
import re
import shlex
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb

_MESSAGE = 1500
"""Most characters of a message."""

_KEPT = 4 * _MESSAGE
"""Characters of a message that is made; `readable` shows one line of them."""

_WORD = 240
"""Most characters of a message without a space between them; a path may have so many."""

EXTRAS = {
    "images": ("cv2", "skimage"),
    "horseseg": ("h5py",),
    "graphs": ("maxflow",),
    "dask": ("distributed",),
    "ray": ("ray",),
}
"""Extra of ``pyproject.toml`` → the packages that are imported from it."""

_PACKAGE, _CHECKOUT = Path(__file__).parents[1], Path(__file__).parents[2]
_LIBRARIES = frozenset({"site-packages", "dist-packages"})


class SsvmBenchError(Exception):
    """Base class; the message is shown to the user without a traceback.

    Attributes
    ----------
    traceback : str
        The traceback in another process, if the error was raised there.
    """

    exit_status = 1
    traceback = ""

    def __init__(self, message: object = "") -> None:
        """Keep as much of a message as is ever shown, whatever has been put into it."""
        super().__init__(str(message)[:_KEPT])


class RunFailedError(SsvmBenchError):
    """The call was right, but the run could not be done: no data, no disk, no number."""


class ConfigError(SsvmBenchError):
    """A mistake in the call or in a config: unknown name, bad value, things that do not fit."""

    exit_status = 2


def shown(value: object, length: int = 100) -> str:
    r"""Return an input on one line, shortened, with unprintable characters escaped.

    >>> shown("a\x1b[31m\n\u202eb"), shown("x" * 20, 8)
    ('a\\x1b[31m\\n\\u202eb', 'xxxxxxx…')
    """
    text = str(value)
    return _cut(_escaped(text[: length + 1]), length)


def readable(message: str) -> str:
    """Return a message as it is printed: one line, with bounded words and bounded length."""
    text = _escaped(" ".join(message[:_KEPT].split()))
    return _cut(re.sub(rf"\S{{{_WORD},}}", _middle, text), _MESSAGE)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the sentence that lists the valid names, the nearest one first, if there are any.

    >>> nearest("mpbcwf", ["bcfw", "mpbcfw"])
    'Did you mean mpbcfw? Valid: bcfw, mpbcfw.'
    """
    valid = sorted(valid)
    if not valid:
        return "There is none."
    close = difflib.get_close_matches(name[:100], valid, n=1, cutoff=0.5)
    hint = f"Did you mean {shown(close[0])}? " if close else ""
    return f"{hint}Valid: {', '.join(map(shown, valid))}."


def described(error: BaseException) -> str:
    """Return the message of an error, with its type and place unless it is an `SsvmBenchError`."""
    if isinstance(error, SsvmBenchError):
        return str(error)
    what, place = shown(" ".join(str(error).split()), 500), place_of(error)
    text = f"{type(error).__name__}: {what}".rstrip(": .")  # it is part of a sentence
    return f"{text} ({place})" if place else text


def place_of(error: BaseException) -> str:
    """Return the file and line of the innermost code of a component on an error's way.

    It is empty where no code of others was involved. Code of others is a file of the user, or a
    module of an installed package that declares components.
    """
    if isinstance(error, SyntaxError) and error.filename and _is_of_others(error.filename):
        return f"{shown(error.filename, 300)}, line {error.lineno}"
    places = [
        f"{shown(frame.f_code.co_filename, 300)}, line {line}"
        for frame, line in walk_tb(error.__traceback__)
        if _is_of_others(frame.f_code.co_filename, frame.f_globals.get("__name__", ""))
    ]
    return places[-1] if places else ""


def _is_of_others(file: str, module: str = "") -> bool:
    """Tell whether a file is the user's, or its module one of a package of components."""
    path = Path(file)
    if path.is_relative_to(_PACKAGE) or file.startswith("<frozen"):
        return False
    if path.is_relative_to(sysconfig.get_path("stdlib")) or not _LIBRARIES.isdisjoint(path.parts):
        return module.partition(".")[0] in _packages_of_components()
    return True


def _packages_of_components() -> set[str]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    groups = (
        entry_points(group=f"ssvm_bench.{name}") for name in ("datasets", "oracles", "solvers")
    )
    return {entry.module.partition(".")[0] for group in groups for entry in group}


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Turn exceptions of a component that would end the program without a message into an error.

    No signal raises ``KeyboardInterrupt`` in this program (:mod:`ssvm_bench.base.interrupts`), and
    click takes ``EOFError`` for the end of its own input.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, EOFError):
            raise  # the command line has a message for it
        raise RunFailedError(
            f"{what}: {described(error)}. A component raised it; ask for the traceback with --debug"
            ", and repair or uninstall that component."
        ) from error


@contextmanager
def needed(extra: str, by: str) -> Iterator[None]:
    """Turn the failure of an import in the block into an error with a message.

    Packages that only some commands, datasets and oracles need are the extras of
    ``pyproject.toml``. They are imported where they are used, inside such a block.

    Parameters
    ----------
    extra : str
        The extra that installs what is imported.
    by : str
        What needs the package: the beginning of the message.

    Raises
    ------
    ConfigError
        The package is not installed.
    RunFailedError
        The package is installed, but cannot be imported.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise _missing(extra, by, str(error.name)) from error
    except ImportError as error:
        raise RunFailedError(
            f"{by} needs a package that cannot be loaded: {shown(error, 300)}. Install it again: "
            f"{_installed_by(extra)}"
        ) from error


def check_installed(extra: str, by: str) -> None:
    """Raise ``ConfigError`` if a package of an extra is not installed; it is not imported.

    The parameters are those of `needed`.
    """
    for package in EXTRAS[extra]:
        if find_spec(package) is None:
            raise _missing(extra, by, package)


def _missing(extra: str, by: str, package: str) -> ConfigError:
    """Return the error that says that a package is not installed, and how to get it."""
    return ConfigError(
        f"{by} needs the package {package}, which is not installed: {_installed_by(extra)}"
    )


def _installed_by(extra: str) -> str:
    """Return the command that installs an extra into this program's own environment."""
    words = [sys.executable or "python3", "-m", "pip", "install"]
    if is_checkout():
        words += ["-e", f"{_CHECKOUT}[{extra}]"]
    else:
        words.append(f"ssvm-bench[{extra}]")
    return shlex.join(words)


def is_checkout() -> bool:
    """Tell whether this program is a checkout, whose code may change, and not installed."""
    return (_CHECKOUT / "pyproject.toml").is_file()


def _escaped(text: str) -> str:
    """Escape control characters, direction marks and lone surrogates as in a Python string."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _middle(word: re.Match[str]) -> str:
    """Leave out the middle of a long word."""
    return f"{word[0][: _WORD // 2]}…{word[0][-_WORD // 3 :]}"
