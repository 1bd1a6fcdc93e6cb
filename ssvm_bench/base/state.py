"""The state of an object as arrays and plain values, from which an equal object is restored.

A class lists in ``STATE`` which of its attributes change; all others are as they were built. A
state is compared with that of a new object before it is used: names, kinds and shapes must be the
same, counts and indices not negative, and numbers finite where those of the new object are. The
owner of an array that grows, or of indices into another array, checks these in addition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import singledispatch
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

_LARGEST = 1 << 62
"""Every count is smaller."""


class StateError(ValueError):
    """A state does not fit an object; the message says where, and what is wrong."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where} {what}" if where else what)
        self.what, self.where = what, where


class Stateful:
    """An object with a state.

    Attributes
    ----------
    STATE : tuple of str
        The attributes that change: arrays, numbers, texts, ``PCG64``, objects with a state, and
        tuples and dataclasses of all these; ``policy.steps`` is a field of a ``NamedTuple``. A
        restored array is a new object: its owner has to share it with other objects again.
    GROWS : tuple of str
        The attributes that are arrays of a size that may differ; their owner checks the size.
    """

    STATE: ClassVar[tuple[str, ...] | None] = ()
    GROWS: ClassVar[tuple[str, ...]] = ()

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs: arrays, which are not copied, and plain values."""
        return {name: of(attrgetter(name)(self)) for name in self.STATE or ()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the state of another object; called right after this one was built.

        Raises
        ------
        StateError
            If the state does not fit this object, which must not be used any more.
        """
        own = {name: attrgetter(name)(self) for name in self.STATE or ()}
        for name, found in parts_like(own, state, self.GROWS).items():
            if found is not own[name]:
                owner, *fields = name.split(".")
                setattr(self, owner, _replaced(getattr(self, owner), fields, found))


def _replaced(value: Any, fields: list[str], found: Any) -> Any:
    """Return a value with a field of a field of … it replaced; without fields, the replacement."""
    if not fields:
        return found
    inner = _replaced(getattr(value, fields[0]), fields[1:], found)
    return value._replace(**{fields[0]: inner})


@singledispatch
def of(value: Any) -> Any:
    """Return the state of a value: an array, a plain value, or a mapping of such.

    Types that store more than what changes, as storages with free space, register it and `like`.
    """
    if isinstance(value, Stateful):
        return value.state()
    if isinstance(value, np.random.PCG64):
        return value.state["state"]["state"]  # the rest, its increment, is given by its seed
    if isinstance(value, np.generic):
        return value.item()
    inner = _fields(value)
    return value if inner is None else {name: of(part) for name, part in inner.items()}


@singledispatch
def like(own: Any, state: Any) -> Any:
    """Return the value that has this state; a `Stateful` object is changed in place.

    Parameters
    ----------
    own : object
        A new value of the same kind.
    state : object
        What `of` has returned, or anything else.

    Raises
    ------
    StateError
        If no value of this kind has this state.
    """
    if isinstance(own, np.ndarray):
        return array(own, state, own.shape)
    if isinstance(own, Stateful):
        expect(isinstance(state, Mapping), "is no mapping")
        own.restore(state)
        return own
    inner = _fields(own)
    if inner is not None:
        found = parts_like(inner, state)
        if isinstance(own, dict):
            return found
        if dataclasses.is_dataclass(own) and not isinstance(own, type):
            return dataclasses.replace(own, **found)
        return own._replace(**found) if hasattr(own, "_replace") else tuple(found.values())
    if isinstance(own, np.random.PCG64):
        expect(type(state) is int and 0 <= state < 1 << 128, "is not the state of a bit generator")
        before = own.state
        own.state = {**before, "state": {**before["state"], "state": state}}
        return own
    return _plain(own, state)


def parts_like(own: Mapping[str, Any], state: Any, grows: Collection[str] = ()) -> dict[str, Any]:
    """Return the values that have states, by name; the arrays ``grows`` may have another size."""
    expect(isinstance(state, Mapping), "is no mapping")
    expect(own.keys() == state.keys(), "has other names")
    found = {}
    for name, part in own.items():
        try:
            found[name] = array(part, state[name]) if name in grows else like(part, state[name])
        except StateError as error:
            where = f"{name}/{error.where}" if error.where else name
            raise StateError(error.what, where) from None
    return found


def array(own: np.ndarray, state: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a state after a check that it is an array like ``own``, of a shape if one is given."""
    expect(
        isinstance(state, np.ndarray) and state.dtype == own.dtype and state.ndim == own.ndim,
        f"is no array of {own.dtype} with {own.ndim} dimensions",
    )
    expect(shape is None or state.shape == shape, f"has the shape {state.shape}, not {shape}")
    if own.dtype.kind == "f":
        for what, test in (("NaN", np.isnan), ("an infinite number", np.isinf)):
            expect(not test(state).any() or bool(test(own).any()), f"has {what}")
    elif own.dtype.kind == "i" and state.size:
        least = own.min(initial=0)
        expect(least <= state.min() and state.max() < _LARGEST, "has an impossible number")
    return state


def expect(holds: bool, what: str) -> None:
    """Raise ``StateError`` unless something holds of a state."""
    if not holds:
        raise StateError(what)


def _plain(own: Any, state: Any) -> Any:
    own = of(own)
    expect(type(state) is type(own), f"is no {type(own).__name__}")
    if isinstance(own, float):
        finite = bool(np.isfinite(state))
        expect(finite or not np.isfinite(own), "is not finite")
    elif type(own) is int:
        expect(min(own, 0) <= state < _LARGEST, "is an impossible number")
    return state


def _fields(value: Any) -> dict[str, Any] | None:
    """Return the parts of a tuple, a dataclass or a mapping by name; None for other values."""
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple):
        names = getattr(value, "_fields", map(str, range(len(value))))
        return dict(zip(names, value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None
