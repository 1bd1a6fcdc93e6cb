"""The max-oracle of examples that are never in memory as a whole.

A chunk of examples is built into an oracle of its own, used, and let go. That oracle's terms are
scaled by 1/m, m being its number of examples, and those of all n by 1/n:

.. code-block:: text

    Σ_i H_i(w) = Σ_chunks m/n (risk of the chunk)

A solver that trains on it asks for `Oracle.chunks`, which every oracle has: one in memory is its
own only chunk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Oracle, Risk
from ssvm_bench.oracles.caller import Caller


class Examples(Protocol):
    """What can be read in chunks: a `DataStream`, and every `Dataset`."""

    @property
    def n(self) -> int:
        """Number of examples."""

    def chunks(self, rows: int) -> Iterator[Dataset]:
        """Yield the examples in their order, so many at a time."""


def _of_one(*_: object) -> NoReturn:
    raise TypeError("examples of a stream are met in chunks: ask `chunks` for their oracles")


_OF_ONE: Any = _of_one


def _called_by(caller: Caller, build: Callable[[Dataset], Oracle], chunk: Dataset) -> Oracle:
    return build(chunk).called_by(caller)


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

    def called_by(self, caller: Caller) -> Oracle:
        """Return the oracle whose chunks have oracles whose calls a caller makes."""
        made = super().called_by(caller)
        assert isinstance(made, ChunkedOracle)
        made._build = functools.partial(_called_by, caller, self._build)
        return made

    def chunks(self) -> Iterator[tuple[int, Oracle]]:
        """Yield, chunk by chunk, the number of its first example and its oracle."""
        begin = 0
        for dataset in self._examples.chunks(self._rows):
            yield begin, self._build(dataset)
            begin += dataset.n

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of the data's features."""
        return self._head.weights(w)

    def risk(
        self, w: np.ndarray, with_plane: bool = True, begin: int = 0, end: int | None = None
    ) -> Risk:
        """Return H(w) and its maximising plane by one pass over the chunks."""
        star, value, offset = np.zeros(self.d), 0.0, 0.0
        for first, part in self.chunks():
            here = max(begin - first, 0)
            there = part.n if end is None else min(end - first, part.n)
            if here >= there:
                continue
            found = part.risk(w, with_plane, here, there)
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

    truth = argmax = predict = loss = joint_feature = _OF_ONE
