"""What an engine itself has to say of a job that did not end in an answer."""

from __future__ import annotations

import traceback

from ssvm_bench.base.errors import RunFailedError, shown


def failed(error: BaseException, engine: str) -> RunFailedError:
    """Return an error of ours for one of an engine, with its traceback."""
    found = RunFailedError(f"{engine} says {type(error).__name__}: {shown(error, 300)}.")
    found.traceback = "".join(traceback.format_exception(error))
    return found
