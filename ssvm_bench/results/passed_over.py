"""What is said of damaged files that a command passes over: each once, the first few in full."""

from __future__ import annotations

from collections.abc import Callable

SHOWN = 4


class PassedOver:
    """Told of every damaged run or file, it says a line of each of the first, and sums up the rest.

    Parameters
    ----------
    say : callable
        Told each line; the last one when the ``with`` block ends.

    Attributes
    ----------
    problems : list of str
        All that it was told of, each once.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self.problems: list[str] = []

    def __call__(self, problem: object) -> None:
        """Note what cannot be read, and why."""
        text = str(problem)
        if text not in self.problems:
            self.problems.append(text)
            if len(self.problems) <= SHOWN:
                self._say(f"Passed over: {text}")

    def __enter__(self) -> PassedOver:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Say how many more there were."""
        more = len(self.problems) - SHOWN
        if more > 0:
            self._say(f"Passed over: {more} more that cannot be read.")
