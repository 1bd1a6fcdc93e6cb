"""Executes a mini-batch of oracle calls at one w.

.. code-block:: text

    y_i = argmax_y Δ(y_i,y) + Θ_i(y) + ⟨w, ϕ(x_i,y)⟩        for all i of a batch, at the same w

A `Caller` makes the calls. It returns labelings, which are small. The process of the solver makes
planes of them, by the code that it has for an oracle's own answers: the numbers of a run do not
depend on the caller. An oracle without a caller makes its own calls.

A caller can slow calls down: each sleeps for ``delay`` seconds. Calls of evaluations, which no
clock counts, do not sleep (`Caller.without_delay`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from ssvm_bench.base.interrupts import end_if_urgent, interruptible

Oracle = Any
"""Of :mod:`ssvm_bench.oracles.base`, which imports this module."""

Answer: TypeAlias = tuple[list[np.ndarray], float]
"""Labelings, and the seconds that the calls took, summed over who made them."""

_NAP = 0.1  # a second signal ends a pause after that


def answer(oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float, delay: float) -> Answer:
    """Call an oracle for some terms, with a pause before each call."""
    begin = perf_counter()
    if delay == 0:
        return oracle.own_labelings(w, terms, loss), perf_counter() - begin
    labelings = []
    for k in interruptible(range(terms.size)):
        time.sleep(delay)
        labelings += oracle.own_labelings(w, terms[k : k + 1], loss)
    return labelings, perf_counter() - begin


@dataclass(eq=False)
class Caller:
    """Who makes the calls: here the process itself, one after the other.

    Attributes
    ----------
    batch : int
        Terms that solvers which move w in between ask for at one w.
    delay : float
        Seconds that each call sleeps.
    seconds, waited : float
        What all calls took so far, summed over who made them; and for how long they were waited
        for.
    """

    batch: int = field(default=1, kw_only=True)
    delay: float = field(default=0.0, kw_only=True)
    seconds: float = field(default=0.0, init=False)
    waited: float = field(default=0.0, init=False)

    def labelings(
        self, oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float = 1.0
    ) -> list[np.ndarray]:
        """Return the labelings of some terms, in their order.

        Parameters
        ----------
        oracle : Oracle
            Of this process.
        w : ndarray of float64
            As `Oracle.own_labelings` takes it.
        terms : ndarray of int64
        loss : float
            Weight of Δ.
        """
        if not terms.size:
            return []
        begin = perf_counter()
        found, seconds = self._ask(oracle, w, terms, loss, self.delay)
        self.waited += perf_counter() - begin
        self.seconds += seconds
        return found

    @contextmanager
    def without_delay(self) -> Iterator[None]:
        """Let no call of the block sleep."""
        delay, self.delay = self.delay, 0.0
        try:
            yield
        finally:
            self.delay = delay

    def pause(self, calls: int) -> None:
        """Sleep for so many calls, which are made at once by what knows of no caller."""
        begin = perf_counter()
        while (left := begin + calls * self.delay - perf_counter()) > 0:
            end_if_urgent()
            time.sleep(min(left, _NAP))
        self.waited += perf_counter() - begin
        self.seconds += perf_counter() - begin

    def start(self, oracle: Oracle) -> None:
        """Get ready, off any clock."""

    def close(self) -> None:
        """Let go of whoever calls."""

    def _ask(
        self, oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float, delay: float
    ) -> Answer:
        """Make the calls."""
        return answer(oracle, w, terms, loss, delay)
