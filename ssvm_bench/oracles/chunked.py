"""The max-oracle of examples that are never in memory as a whole.

A chunk of examples is built into an oracle of its own, used, and let go. That oracle's terms are
scaled by 1/m, m being its number of examples, and those of all n by 1/n:

.. code-block:: text

    Σ_i H_i(w) = Σ_chunks m/n (risk of the chunk)

A solver that trains on it asks for `Oracle.chunks`, which every oracle has: one in memory is its
own only chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Oracle, Risk


class Examples(Protocol):
    """What can be read in chunks: a `DataStream`, and every `Dataset`."""

    @property
    def n(self) -> int:
        """Number of examples."""

    def chunks(self, rows: int) -> Iterator[Dataset]:
        """Yield the examples in their order, so many at a time."""


def _of_one(*_: Any, **__: Any) -> Any:
    raise TypeError("examples of a stream are met in chunks: ask `chunks` for their oracles")


class ChunkedOracle(Oracle):
    """See the module's docstring.

    Parameters
    ----------
    examples : Examples
    build : callable
        Returns the oracle of a chunk; what it makes of an example, no other example changes.
    rows : int
        Examples of a chunk.

    Raises
    ------
    RunFailedError
        Here and wherever chunks are read: the examples cannot be.
    """

    def __init__(self, examples: Examples, build: Callable[[Dataset], Oracle], rows: int) -> None:
        self._examples, self._build, self._rows = examples, build, rows
        self._head = build(next(examples.chunks(1)))
        self.n, self.d, self.exact = examples.n, self._head.d, self._head.exact

    @property
    def head(self) -> Oracle:
        """The oracle of the first example."""
        return self._head

    def chunks(self) -> Iterator[tuple[int, Oracle]]:
        """Yield, chunk by chunk, the number of its first example and its oracle.

        Who calls this oracle calls those.
        """
        begin = 0
        for dataset in self._examples.chunks(self._rows):
            part = self._build(dataset)
            yield begin, part if self.caller is None else part.called_by(self.caller)
            begin += dataset.n

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of the data's features."""
        return self._head.weights(w)

    def risk(self, w: np.ndarray, with_plane: bool = True, terms: range | None = None) -> Risk:
        """Return H(w) and its maximising plane by one pass over the chunks."""
        star, value, offset = np.zeros(self.d), 0.0, 0.0
        asked = range(self.n) if terms is None else terms
        for first, part in self.chunks():
            here = range(max(asked.start - first, 0), min(asked.stop - first, part.n))
            if not here:
                continue
            found = part.risk(w, with_plane, here)
            checks.check_risk(part, found)
            share = part.n / self.n
            value += share * found.value
            offset += share * found.offset
            if with_plane:
                star += share * found.star
        return Risk(value, star, offset)

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions by one pass over the chunks."""
        return sum(part.mean_loss(w) * part.n for _, part in self.chunks()) / self.n

    truth = argmax = predict = loss = joint_feature = _of_one
