"""The max-oracle of examples that are never in memory as a whole.

Each chunk of examples gets an oracle of its own, which is dropped after use. That oracle's terms
are scaled by 1/m, with m its number of examples; the terms of all n examples are scaled by 1/n:

.. code-block:: text

    Σ_i H_i(w) = Σ_chunks m/n (risk of the chunk)

A solver that trains on such examples iterates over `Oracle.chunks`. Every oracle has them: an
oracle in memory is its own only chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Oracle, Risk


class ChunkedExamples(Protocol):
    """Examples that can be read in chunks: a `DataStream`, and every `Dataset`."""

    @property
    def n(self) -> int:
        """Number of examples."""

    def chunks(self, rows: int) -> Iterator[Dataset]:
        """Yield the examples in their order, ``rows`` at a time."""


def _of_one(*_: Any, **__: Any) -> Any:
    raise TypeError("examples of a stream are met in chunks: ask `chunks` for their oracles")


class ChunkedOracle(Oracle):
    """A max-oracle over chunks of examples; see the module's docstring.

    Parameters
    ----------
    examples : ChunkedExamples
    build : callable
        Returns the oracle of a chunk, in which no example depends on the others.
    rows : int
        Examples of a chunk.

    Raises
    ------
    RunFailedError
        If the examples cannot be read, here or whenever chunks are read.
    """

    def __init__(
        self, examples: ChunkedExamples, build: Callable[[Dataset], Oracle], rows: int
    ) -> None:
        self._examples, self._build, self._rows = examples, build, rows
        self._head = build(next(examples.chunks(1)))
        self.n, self.d, self.exact = examples.n, self._head.d, self._head.exact

    @property
    def takes_threads(self) -> bool:
        """Whether the oracles of the chunks do."""
        return self._head.takes_threads

    @property
    def calls_by_term(self) -> bool:
        """See `Oracle`."""
        return self._head.calls_by_term

    @property
    def head(self) -> Oracle:
        """The oracle of the first example."""
        return self._head

    def chunks(self) -> Iterator[tuple[int, Oracle]]:
        """Yield the index of the first example and the oracle of each chunk.

        The caller of this oracle is that of the chunks' oracles, too.
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
