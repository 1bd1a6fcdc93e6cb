"""The centre of in-out separation, and the point between it and w where oracles are called.

.. code-block:: text

    c ← c + (w − c)/2        query = (1 − s) w + s c

Both are 0 where w has to be. The query is one array for all passes: w may have gigabytes. The
centre has numbers only for the places where w may not be 0, of which there may be more by and by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.state import Stateful, expect
from ssvm_bench.planes.dual_iterate import DualIterate, everywhere


class Centre(Stateful):
    """c, and the query.

    Parameters
    ----------
    phi : DualIterate
        Restored before its centre.
    share : float
        s; 0: there are no centre and no query.
    """

    STATE = GROWS = ("centre",)

    def __init__(self, phi: DualIterate, share: float) -> None:
        self.phi, self.share = phi, share
        self.query = np.zeros(phi.w.size if share > 0 else 0)
        self._begin()

    def _begin(self) -> None:
        self._places = self.phi.indices if self.share > 0 else None
        self.centre = np.zeros_like(self.query[everywhere(self._places)])

    def state(self) -> dict[str, Any]:
        """See `Stateful`."""
        self._follow()
        return super().state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`."""
        self._begin()
        size = self.centre.size
        super().restore(state)
        expect(self.centre.size == size, "has another size")

    def move(self) -> np.ndarray:
        """Let the centre follow w; return the query."""
        self._follow()
        there, centre = everywhere(self._places), self.centre
        w, query = self.phi.w[there], self.query[there]
        np.subtract(w, centre, out=query)
        query *= 0.5
        centre += query
        np.multiply(w, 1.0 - self.share, out=query)
        query += self.share * centre
        self.query[there] = query
        return self.query

    def _follow(self) -> None:
        """Let the centre have the places where w may not be 0 now."""
        before, now, centre = self._places, self.phi.indices, self.centre
        if now is before or self.share == 0:
            return
        if before is None:
            self.centre = centre[now]
        else:
            self.centre = np.zeros(self.query[everywhere(now)].size)
            self.centre[before if now is None else np.searchsorted(now, before)] = centre
        self._places = now
