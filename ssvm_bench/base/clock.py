"""The clock and the work counts of one run.

A solver reads the time from the clock and reports its work to it. The solver does not know which
kind of clock it is. The clock is `Clock.paused` during evaluation and logging.

========  ==========================================================================
``wall``  monotonic seconds
``cpu``   CPU seconds of the process
``work``  exact calls · cost of a call + plane evaluations · cost of an evaluation
          + visits of a term, exact or approximate · cost of a visit
          + kernel values · cost of a kernel value
========  ==========================================================================

The cost of a visit covers the step itself (w, γ and φ), whether or not the exact oracle is called.
Under ``work``, the time is the same under every load, and so is MP-BCFW's choice of the number of
approximate passes. Another processor makes the same calls, passes and planes as long as no
comparison is decided by rounding; values are the same up to rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ssvm_bench.base.state import Stateful


class Clock(Stateful):
    """Time and counted work of one run.

    Parameters
    ----------
    kind : str
        ``"wall"``, ``"cpu"`` or ``"work"``.
    cost_call, cost_plane, cost_visit, cost_kernel : float
        Seconds under ``work`` of an exact oracle call, of a plane evaluation, of the rest of a
        visit of a term, exact or approximate, and of a kernel value.

    Attributes
    ----------
    oracle_calls, approx_calls, plane_evaluations : int
        Exact oracle calls; visits with working sets alone, and planes evaluated in these.
    kernel_values : int
        Kernel values that were computed for steps.
    oracle_time : float
        Seconds of this clock spent inside the exact oracle.
    caller : Caller or None
        The caller that makes the oracle calls; None: the oracle itself. It counts ``seconds`` and
        ``waited`` of all calls so far. It belongs to the process, and is not part of the clock's
        state.
    caller_seconds, caller_waited : float
        Seconds that the counted calls took, summed over workers, and seconds spent waiting for
        them; with every kind of clock.
    """

    STATE = (
        *("oracle_calls", "approx_calls", "plane_evaluations", "kernel_values", "oracle_time"),
        *("caller_seconds", "caller_waited", "_wall", "_cpu"),
    )

    caller: Any = None
    oracle_calls = approx_calls = plane_evaluations = kernel_values = 0
    oracle_time = caller_seconds = caller_waited = 0.0

    def __init__(
        self,
        kind: str,
        cost_call: float = 0.0,
        cost_plane: float = 0.0,
        cost_visit: float = 0.0,
        cost_kernel: float = 0.0,
    ) -> None:
        self.kind = kind
        self._cost_call = cost_call
        self._cost_plane = cost_plane
        self._cost_visit = cost_visit
        self._cost_kernel = cost_kernel
        self._wall = _Stopwatch(time.perf_counter)
        self._cpu = _Stopwatch(time.process_time)

    def now(self) -> float:
        """Return the solver's seconds so far."""
        if self.kind == "work":
            calls = self.oracle_calls * self._cost_call
            visits = (self.oracle_calls + self.approx_calls) * self._cost_visit
            values = self.kernel_values * self._cost_kernel
            return calls + self.plane_evaluations * self._cost_plane + visits + values
        return self.cpu() if self.kind == "cpu" else self._wall.read()

    def visit_share(self) -> float:
        """Return the mean time of a visit without an oracle call over that of one with a call."""
        visits = self.oracle_calls + self.approx_calls
        visit = (self.now() - self.oracle_time) / max(visits, 1)
        both = visit + self.oracle_time / max(self.oracle_calls, 1)
        return visit / both if both > 0 else 1.0

    def cpu(self) -> float:
        """Return the solver's CPU seconds so far, whatever the kind of clock."""
        return self._cpu.read()

    def wall(self) -> float:
        """Return the solver's monotonic seconds so far, whatever the kind of clock."""
        return self._wall.read()

    @contextmanager
    def exact(self, calls: int) -> Iterator[ExactCalls]:
        """Count ``calls`` exact calls made in the block, and their share of its time.

        Yields
        ------
        ExactCalls
            The block may correct the number of calls, and their share, by default all its time.
        """
        start, (seconds, waited) = self.now(), self._called()
        made = ExactCalls(calls)
        yield made
        after = self._called()
        self.caller_seconds += after[0] - seconds
        self.caller_waited += after[1] - waited
        self.oracle_calls += made.calls
        if self.kind == "work":
            self.oracle_time = self.oracle_calls * self._cost_call
        else:
            self.oracle_time += made.share * (self.now() - start)

    def _called(self) -> tuple[float, float]:
        """Return the seconds of all calls of the caller so far, and the seconds waited for them."""
        return (0.0, 0.0) if self.caller is None else (self.caller.seconds, self.caller.waited)

    def approximate(self, calls: int, plane_evaluations: int) -> None:
        """Count visits with working sets alone, and the planes evaluated in them."""
        self.approx_calls += calls
        self.plane_evaluations += plane_evaluations

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock during the block."""
        self._wall.stop()
        self._cpu.stop()
        try:
            yield
        finally:
            self.start()

    def start(self) -> None:
        """Start the clock again; a restored clock is stopped until then."""
        self._wall.start()
        self._cpu.start()


@dataclass
class ExactCalls:
    """Exact calls made in some span of time, and the share of it that they took."""

    calls: int
    share: float = 1.0


class _Stopwatch(Stateful):
    STATE = ("_total",)

    def __init__(self, source: Callable[[], float]) -> None:
        self._source = source
        self._total = 0.0
        self._since: float | None = source()

    def read(self) -> float:
        return self._total + (0.0 if self._since is None else self._source() - self._since)

    def stop(self) -> None:
        self._total = self.read()
        self._since = None

    def start(self) -> None:
        self._since = self._source()

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        super()._rebuild(found)
        self._since = None
