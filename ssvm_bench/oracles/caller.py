"""Executes a mini-batch of oracle calls at one w.

.. code-block:: text

    y_i = argmax_y Δ(y_i,y) + Θ_i(y) + ⟨w, ϕ(x_i,y)⟩        for all i of a batch, at the same w

A `Caller` makes the calls. It returns labelings, which are small. The process of the solver
computes their planes, by the same code as for labelings of its own oracle: so the numbers of a run
do not depend on the caller. An oracle without a caller makes its own calls.

A caller can slow calls down: each sleeps for ``delay`` seconds. Calls of evaluations, which no
clock counts, do not sleep (`Caller.without_delay`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ssvm_bench.base.interrupts import end_if_urgent, interruptible
from ssvm_bench.base.threads import ALONE, Team, current

Oracle = Any
"""The class of :mod:`ssvm_bench.oracles.base`, which imports this module."""

Answer: TypeAlias = tuple[list[np.ndarray], float]
"""Labelings, and the seconds that the calls took, summed over all workers."""

_NAP = 0.1  # seconds; a second signal ends a pause after at most that long


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


def answers(
    oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float = 1.0, delay: float = 0.0
) -> Answer:
    """Call an oracle in its threads; a term that is there twice is called once.

    (Two threads at one term would write to the same memory: flows, for instance.)
    """
    once = np.array([*dict.fromkeys(terms.tolist())], np.int64)
    oracles = [oracle, *(oracle.apart() for _ in range(1, oracle.team.size))]
    found: dict[int, np.ndarray] = {}

    def call(number: int, begin: int, end: int) -> None:
        some = once[begin:end]
        labelings, _ = answer(oracles[number], w, some, loss, delay)
        found.update(zip(some.tolist(), labelings, strict=True))

    seconds = oracle.team.share(once.size, call, by_item=oracle.calls_by_term)
    for other in oracles[1:]:
        oracle.rejoin(other)
    return [found[i] for i in terms.tolist()], seconds


@dataclass(eq=False)
class Caller:
    """Makes the calls: here in the process itself, in one thread or several.

    Attributes
    ----------
    team : Team
        The threads.
    batch : int
        Mini-batch size: how many calls a solver that moves w in between makes at the same w.
    delay : float
        Seconds that each call sleeps.
    seconds, waited : float
        Time that all calls took so far, summed over all workers; time that the solver waited for
        them.
    """

    elsewhere: ClassVar[bool] = False
    """Whether other processes make the calls."""

    team: Team = field(default=ALONE, kw_only=True)
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
            The oracle of this process.
        w : ndarray of float64
            In the layout of kernels, as in `Oracle.own_labelings`.
        terms : ndarray of int64
        loss : float
            Weight of Δ.
        """
        if not terms.size:
            return []
        with self.waits():
            found, seconds = self._ask(oracle, w, terms, loss, self.delay)
        self.seconds += seconds
        return found

    @property
    def calls_here(self) -> bool:
        """Whether a compiled oracle can make its calls itself, all in one pass."""
        return not self.elsewhere and self.delay == 0.0

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Count the time of the block, and let the team work in it, unless another one does."""
        begin, now = perf_counter(), current()
        with (self.team if now is ALONE else now).working():
            yield
        self.waited += perf_counter() - begin

    @contextmanager
    def without_delay(self) -> Iterator[None]:
        """Let no call of the block sleep."""
        delay, self.delay = self.delay, 0.0
        try:
            yield
        finally:
            self.delay = delay

    def pause(self, calls: int) -> None:
        """Sleep as long as so many calls do; code that uses no caller makes them all at once."""
        begin = perf_counter()
        while (left := begin + calls * self.delay - perf_counter()) > 0:
            end_if_urgent()
            time.sleep(min(left, _NAP))
        self.waited += perf_counter() - begin
        self.seconds += perf_counter() - begin

    def start(self, oracle: Oracle) -> None:
        """Get ready for calls, outside of any measured time."""

    def close(self) -> None:
        """Release the workers, or the threads."""
        self.team.close()

    def _ask(
        self, oracle: Oracle, w: np.ndarray, terms: np.ndarray, loss: float, delay: float
    ) -> Answer:
        """Make the calls."""
        if oracle.team.size == 1:
            return answer(oracle, w, terms, loss, delay)
        return answers(oracle, w, terms, loss, delay)
