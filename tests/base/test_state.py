"""Limits of a state: one table of what is refused, and in which words."""

from typing import ClassVar

import numpy as np
import pytest

from ssvm_bench.base.state import Limits, StateError, Stateful


class Lists(Stateful):
    """Three lists of indices below n, one after the other, and numbers beside them."""

    STATE = ("counts", "listed", "weights", "last", "share")
    LIMITS: ClassVar = {
        "counts": Limits(least=1),
        "listed": Limits(size="counts", below="n", distinct=True),
        "weights": Limits(size=lambda found, _: found["listed"].size, least=0.0, most=1.0),
        "sum": Limits(of=lambda found, _: found["weights"].sum(), equals=1.0),
        "last": Limits(size=..., below="n"),
        "share": Limits(most="most"),
    }
    n, most = 4, 0.5

    def __init__(self):
        self.counts, self.share = np.array([2, 1, 1]), 0.25
        self.listed, self.weights = np.array([3, 0, 3, 1]), np.array([0.25, 0.75, 0.0, 0.0])
        self.last = np.zeros(0, np.int64)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"last": np.arange(4)},
        {"counts": np.array([1, 2, 1])},
        {"counts": np.array([1, 1, 1]), "listed": np.zeros(3, np.int64), "weights": np.eye(3)[0]},
    ],
)
def test_a_state_within_its_limits_is_restored(change):
    state, restored = Lists().state() | change, Lists()
    restored.restore(state)
    assert {name: restored.state()[name] is state[name] for name in change} == dict.fromkeys(
        change, True
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"counts": np.array([4, 0, 0])}, "counts is out of range"),
        ({"counts": np.array([1, 1, 1])}, "listed has the shape"),
        ({"counts": np.full(3, (1 << 62) - 1)}, "listed has the shape"),
        ({"listed": np.array([3, 0, 4, 1])}, "listed is out of range"),
        ({"listed": np.array([3, 3, 0, 1])}, "listed has an entry twice"),
        ({"listed": np.array([3, 0, -3, 1])}, "listed has an impossible number"),
        ({"weights": np.array([1.0])}, "weights has the shape"),
        ({"weights": np.array([1.5, 0.0, 0.0, -0.5])}, "weights is out of range"),
        ({"weights": np.zeros(4)}, "sum does not fit the rest"),
        ({"last": np.array([4])}, "last is out of range"),
        ({"last": np.zeros((1, 1), np.int64)}, "last is no array of int64 with 1 dimensions"),
        ({"share": 0.75}, "share is out of range"),
    ],
)
def test_a_state_beyond_its_limits_is_refused(change, why):
    with pytest.raises(StateError, match=f"^{why}"):
        Lists().restore(Lists().state() | change)
