"""Findings of the check of a component: the claims of its contract, each kept or broken."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ssvm_bench.base.errors import described

KEPT, BROKEN, NOTED, NOT_CHECKED = "✓", "✗", "!", "–"


class BrokenError(Exception):
    """A claim does not hold; the message says where, with the numbers."""


@dataclass
class Findings:
    """The claims of a contract, in the order in which they were checked.

    Attributes
    ----------
    of : str
        What was checked, on which instance.
    lines : list of (mark, claim, detail)
    tracebacks : list of str
        Those of exceptions that the component raised.
    """

    of: str = ""
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)

    @contextmanager
    def claim(self, text: str) -> Iterator[None]:
        """Check a claim in the block, which raises an exception if the claim does not hold."""
        try:
            yield
        except BrokenError as error:
            self.lines.append((BROKEN, text, str(error)))
        except BaseException as error:  # raised by the component: a finding, too
            self.lines.append((BROKEN, text, described(error)))
            self.tracebacks.append("".join(traceback.format_exception(error)))
        else:
            self.lines.append((KEPT, text, ""))

    def note(self, text: str, detail: str) -> None:
        """Add a remark: nothing is broken, but the user should know it."""
        self.lines.append((NOTED, text, detail))

    def check(self, text: str, test: Callable[[], object], unless: str = "") -> None:
        """Check a claim by calling ``test``, unless there is a reason why that is not possible."""
        if unless:
            self.lines.append((NOT_CHECKED, text, unless))
            return
        with self.claim(text):
            test()

    @property
    def broken(self) -> int:
        """Number of claims that do not hold."""
        return sum(mark == BROKEN for mark, _, _ in self.lines)

    def shown(self) -> Iterator[str]:
        """Yield a line for each claim."""
        for mark, text, detail in self.lines:
            yield f"  {mark} {text}" + (f": {detail}" if detail else "")


def expect(holds: bool, message: str) -> None:
    """Raise `BrokenError` with a message unless something holds."""
    if not holds:
        raise BrokenError(message)
