"""The state of an object as arrays and plain values, from which an equal object is restored.

A class lists in ``STATE`` which of its attributes change; all others are as they were built. A
state is compared with that of a new object before it is used: names, kinds and shapes must be the
same, counts and indices not negative, and numbers finite where those of the new object are. What
else must hold, of an array that grows or of indices into another array, is data in ``LIMITS``,
which `check` reads: kernels check nothing, and a state may come from anywhere. So a class checks
nothing itself; it may compute what follows of its restored parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import singledispatch
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np

_LARGEST = 1 << 62
"""Every count is smaller."""


class StateError(ValueError):
    """A state does not fit an object; the message says where, and what is wrong."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where} {what}" if where else what)
        self.what, self.where = what, where


class Limits(NamedTuple):
    """What must hold of a part of a state, besides its kind.

    Each is a value; a text, the name of another part or of an attribute of the new object; or a
    function of the parts, by name, and the new object.

    Attributes
    ----------
    size : int, tuple of int, ndarray of int64, or ...
        The shape of the array, where it may be another one than in the new object; or the number of
        its entries in each group, one group after the other; ...: any.
    least, below, most : number or ndarray
        Bounds of all entries; they are less than ``below``.
    distinct : bool
        Whether no two entries are equal, or no two of a group.
    equals : object
        The value.
    of : function
        Of what these hold, if not of the part itself.
    """

    size: Any = None
    least: Any = None
    below: Any = None
    most: Any = None
    distinct: bool = False
    equals: Any = None
    of: Any = None


class Stateful:
    """An object with a state.

    Attributes
    ----------
    STATE : tuple of str
        The attributes that change: arrays, numbers, texts, ``PCG64``, objects with a state, and
        tuples and dataclasses of all these; ``policy.steps`` is a field of a ``NamedTuple``. A
        restored array is a new object: its owner has to share it with other objects again.
    LIMITS : mapping of str to Limits
        What must hold of these, in the order in which it is checked.
    """

    STATE: ClassVar[tuple[str, ...] | None] = ()
    LIMITS: ClassVar[Mapping[str, Limits]] = {}

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs: arrays, which are not copied, and plain values."""
        return {name: of(part) for name, part in self._stored().items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the state of another object; called right after this one was built.

        Raises
        ------
        StateError
            If the state does not fit this object, which must not be used any more.
        """
        self._rebuild(parts_like(self._stored(), state, self.LIMITS, self))

    def _stored(self) -> dict[str, Any]:
        """Return what is stored, by name; subclasses may store something in another form."""
        return {name: attrgetter(name)(self) for name in self.STATE or ()}

    def _rebuild(self, found: Mapping[str, Any]) -> None:
        """Take over parts that are within their limits; subclasses compute what follows of them."""
        for name in self.STATE or ():
            if found[name] is not attrgetter(name)(self):
                owner, *fields = name.split(".")
                setattr(self, owner, _replaced(getattr(self, owner), fields, found[name]))


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
        own.state = {**own.state, "state": {**own.state["state"], "state": state}}
        return own
    return array(own, state, own.shape) if isinstance(own, np.ndarray) else _plain(own, state)


def parts_like(
    own: Mapping[str, Any], state: Any, limits: Mapping[str, Limits] | None = None, new: Any = None
) -> dict[str, Any]:
    """Return the values that have states, by name, checked against limits of the object ``new``."""
    expect(isinstance(state, Mapping), "is no mapping")
    expect(own.keys() == state.keys(), "has other names")
    limits, found = limits or {}, {}
    for name, part in own.items():
        grows = name in limits and limits[name].size is not None
        with _at(name):
            found[name] = array(part, state[name]) if grows else like(part, state[name])
    for name, one in limits.items():
        with _at(name):
            check(found.get(name), Limits(*(_value(each, found, new) for each in one)))
    return found


@contextmanager
def _at(name: str) -> Iterator[None]:
    """Add the name of a part to the place in an error's message."""
    try:
        yield
    except StateError as error:
        raise StateError(error.what, f"{name}/{error.where}" if error.where else name) from None


def _value(limit: Any, found: Mapping[str, Any], new: Any) -> Any:
    """Return what a limit is, of given parts and a new object."""
    if isinstance(limit, str):
        return found[limit] if limit in found else attrgetter(limit)(new)
    return limit(found, new) if callable(limit) else limit


def check(part: Any, limits: Limits) -> None:
    """Raise ``StateError`` unless a part is within limits, all of which are values."""
    size, *bounds, distinct, equals, of = limits
    part, shape, counts = np.asarray(part if of is None else of), size, None
    if isinstance(size, np.ndarray):  # a sum of floats, as one of integers might overflow
        counts, shape = size, (size.sum(dtype=float),)
    if shape is not None and shape is not ...:
        expect(part.shape in ((shape,), shape), f"has the shape {part.shape}, not {shape}")
    tests = zip((np.greater_equal, np.less, np.less_equal), bounds, strict=True)
    within = all(bound is None or test(part, bound).all() for test, bound in tests)
    expect(within, "is out of range")
    if distinct:
        group = 0 * part if counts is None else np.repeat(np.arange(counts.size), counts)
        pairs = np.array((group, part))[:, np.lexsort((part, group))]
        expect(bool(np.diff(pairs).any(axis=0).all()), "has an entry twice")
    expect(equals is None or np.array_equal(part, equals), "does not fit the rest")


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
        expect(bool(np.isfinite(state)) or not np.isfinite(own), "is not finite")
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
