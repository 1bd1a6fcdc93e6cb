"""Packages that only some commands, datasets and oracles need: the extras of ``pyproject.toml``.

They are imported where they are used, inside `needed`, so that users who lack one learn what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ssvm_bench.base.errors import ConfigError, RunFailedError, shown


@contextmanager
def needed(extra: str, by: str) -> Iterator[None]:
    """Turn the failure of an import in the block into an error with a message.

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
    install = f"pip install 'ssvm-bench[{extra}]'."
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{by} needs the package {error.name}, which is not installed: {install}"
        ) from error
    except ImportError as error:
        raise RunFailedError(
            f"{by} needs a package that cannot be loaded: {shown(error, 300)}. Install it again: "
            f"{install}"
        ) from error
