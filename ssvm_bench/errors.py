"""The two kinds of failure that a user sees; how input is shown, and how a near miss is named.

Both end in one message that says what is wrong, where, and what to do; the command line turns
them into the exit status of the contract.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class SsvmBenchError(Exception):
    """Base class; the message is shown to the user without a traceback."""

    exit_status = 1


class RunFailedError(SsvmBenchError):
    """The call was right, but the run could not be done: no data, no disk, no number."""

    exit_status = 1


class ConfigError(SsvmBenchError):
    """A mistake in the call or in a config: unknown name, bad value, things that do not fit."""

    exit_status = 2


def shown(text: str, length: int) -> str:
    r"""Return what was given in one line that any terminal can take, cut to a length.

    >>> print(shown("two\nlines", 80), shown("abcdef", 4))
    two\nlines abc…
    """
    escaped = "".join(
        letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[: length + 1]
    )
    return escaped if len(escaped) <= length else f"{escaped[: length - 1]}…"


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the sentence that lists the valid names, the nearest one first.

    >>> nearest("mpbcwf", ["bcfw", "mpbcfw"])
    'Did you mean mpbcfw? Valid: bcfw, mpbcfw.'
    """
    valid = sorted(valid)
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"{hint}Valid: {', '.join(valid)}."


def described(error: BaseException) -> str:
    """Return what an error says, with its kind unless it is one of ours."""
    if isinstance(error, SsvmBenchError):
        return str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Turn what would end the program without a message, when a component raises it, into one.

    No signal raises ``KeyboardInterrupt`` in this program (:mod:`ssvm_bench.interrupts`), and
    click takes ``EOFError`` for the end of its own input.
    """
    try:
        yield
    except (SystemExit, KeyboardInterrupt, EOFError) as error:
        raise RunFailedError(
            f"{what}: {described(error)}. A component raised it; ask for the traceback with --debug"
            ", and repair or uninstall that component."
        ) from error
