"""How many calls to ask a worker for at a time.

Few large messages cost little, and many small ones keep all workers busy until the end. Of N calls
whose seconds have the standard deviation σ, to be made by P workers where a message costs h,
the last worker is expected to end earliest with

.. code-block:: text

    k = ( √2 N h / (σ P √(log P)) )^{2/3}        calls a message,  k ≤ N/P

(C. Kruskal, A. Weiss: *Allocating independent subtasks on parallel processors*, IEEE Transactions
on Software Engineering, 1985). σ is estimated from the messages so far: one of k calls took T, and
(T − k μ)²/k has the expectation σ². Every worker gets as many messages as the others, of the same
size but for one call: with sixteen calls, four workers and k = 3, two of two calls, since six
messages would leave two workers idle for a third of the time.
"""

from __future__ import annotations

import math
from itertools import pairwise

_FIRST = 4
"""Messages to each worker as long as nothing is known."""


class Chunks:
    """What messages the calls of a batch go in.

    Parameters
    ----------
    workers : int
        P.
    overhead : float
        h, in seconds.
    """

    def __init__(self, workers: int, overhead: float) -> None:
        self.workers, self.overhead = workers, overhead
        self._calls = self._messages = 0
        self._seconds = self._squares = 0.0

    def learn(self, calls: int, seconds: float) -> None:
        """Take in what the calls of a message took."""
        self._calls += calls
        self._messages += 1
        self._seconds += seconds
        self._squares += (seconds - calls * self._seconds / self._calls) ** 2 / calls

    def parts(self, calls: int) -> list[slice]:
        """Return which of N calls go into each message."""
        rounds = -(-calls // (self.workers * self._size(calls)))
        count = min(calls, self.workers * rounds)
        bounds = [k * calls // count for k in range(count + 1)]
        return [slice(begin, end) for begin, end in pairwise(bounds)]

    def _size(self, calls: int) -> int:
        """Return k for N calls."""
        share = -(-calls // self.workers)
        if self.workers == 1:
            return share
        if self._messages == 0:
            return -(-share // _FIRST)
        sigma = math.sqrt(self._squares / self._messages)
        spread = sigma * self.workers * math.sqrt(math.log(self.workers))
        if spread == 0.0:
            return share
        best = (math.sqrt(2.0) * calls * self.overhead / spread) ** (2.0 / 3.0)
        return max(1, min(share, round(best)))
