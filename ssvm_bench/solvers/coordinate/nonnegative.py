"""Coordinate steps where some weights must not be negative (Ramanan 2013, section 6).

.. code-block:: text

    min P(w), w_k ≥ 0 for k ∈ N        F(α) = −λ/2 ‖w‖² + φ∘        v = −φ⋆/λ
    w_k = max(v_k, 0) for k ∈ N        w_k = v_k for the others

With the multipliers β of w ≥ 0, w = v + β (41), and β = max(0, −v) is optimal for any α. So v is
kept beside w, but β is not. (The paper's step 2 clips w in index; then w forgets v, and later steps
do not ascend F.) As ⟨v, w⟩ = ‖w‖², the gap has the same form as without the constraint,
P(w) − F = Σ_i (H_i(w) − ⟨φ^i, [w 1]⟩): bounds and tolerances mean the same.

With δ = n φ^{ij} − n φ^{ik}, a step that moves weight a from plane k to plane j, a ≤ α_ik, has

.. code-block:: text

    n dF/da = g + ⟨δ⋆, w(a) − w⟩        w(a) = max(v − a/(λ n) δ⋆, 0)  on N

which is piecewise linear and decreasing in a. Newton's method between bounds finds its zero. It
starts at a = λ n g/‖δ⋆‖², which is never too long, as clipping only lowers the curvature. A step
costs a few times O(non-zeros of δ⋆).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.jit import kernel
from ssvm_bench.config.validation import check_choice
from ssvm_bench.planes.operations import add_direction, direction_indices
from ssvm_bench.solvers.base import SolverConfig

# mypy: disable-error-code="no-untyped-def"

_EXACT = 1e-13
"""Share of the initial slope at which a step ends: the rest is rounding."""

_MOST_TRIALS = 100

_OPTION = "solver.nonnegative"
NONE, ALL = "none", "all"

_RANGE = re.compile(r"(\d{1,18})(-(\d{0,18}))?", re.ASCII)

_OPEN = 10**18
"""End of a range that names none: beyond the index of any weight."""

Range: TypeAlias = tuple[int, int]
"""First and last index of consecutive weights, both inclusive."""


@dataclass(frozen=True)
class ConstrainedConfig(SolverConfig):
    """Options of a solver that can keep weights from being negative.

    Attributes
    ----------
    nonnegative : str or tuple
        ``none``, ``all``, or ranges of weights as ``[0-9,15,20-]``, kept in canonical form. A range
        names its first and its last weight, in the layout of ``weights.npz``; without a last one,
        it goes to the end. (A colon is not possible: YAML reads ``1:10`` as 70.)

    >>> ConstrainedConfig("dcd", "dcd", nonnegative=("15", "5-9", "0-4")).nonnegative
    ('0-9', '15')
    >>> ConstrainedConfig("dcd", "dcd", nonnegative=("0-",)).constraint
    'w ≥ 0'
    """

    nonnegative: str | tuple[int | str, ...] = field(default=NONE, kw_only=True)

    def __post_init__(self) -> None:
        """Check the options, and bring ranges into canonical form, for hashes."""
        super().__post_init__()
        ranges = self._ranges()
        given = ALL if ranges == [(0, _OPEN)] else tuple(map(_text, ranges)) or NONE
        object.__setattr__(self, "nonnegative", given)

    @property
    def constraint(self) -> str:
        """See the base class."""
        if self.nonnegative in (NONE, ALL):
            return "w ≥ 0" if self.nonnegative == ALL else ""
        return f"w[{','.join(map(str, self.nonnegative))}] ≥ 0"

    def floor(self, d: int) -> np.ndarray:
        """Return the least value of each of d weights, or an empty array if all may be negative.

        Raises
        ------
        ConfigError
            If a range names a weight that does not exist.
        """
        floor = np.full(d if self.constraint else 0, -np.inf)
        for first, last in self._ranges():
            end = first if last == _OPEN else last
            if end >= d:
                raise ConfigError(
                    f"{_OPTION} names the weight {end}, and with this dataset and oracle there are "
                    f"d = {d}, from 0 to {d - 1}."
                )
            floor[first : last + 1] = 0.0
        return floor

    def _ranges(self) -> list[Range]:
        """Return the ranges, sorted; adjacent ones are joined.

        Raises
        ------
        ConfigError
            If a range is malformed or empty, or two overlap.
        """
        given = self.nonnegative
        if isinstance(given, str):
            check_choice(_OPTION, given, (NONE, ALL))
            return [(0, _OPEN)] if given == ALL else []
        if not given:
            raise ConfigError(
                f"{_OPTION} is an empty list: write {NONE}, {ALL}, or ranges in brackets."
            )
        joined: list[Range] = []
        for first, last in sorted(_range(str(item)) for item in given):
            if joined and first <= joined[-1][1]:
                raise ConfigError(f"{_OPTION} has ranges that overlap, at the weight {first}.")
            meets = joined and first == joined[-1][1] + 1
            joined.append((joined.pop()[0] if meets else first, last))
        return joined


def _range(item: str) -> Range:
    match = _RANGE.fullmatch(item)
    if match is None:
        raise ConfigError(
            f"{_OPTION} must be {NONE}, {ALL}, or weights and ranges of weights in brackets, such "
            f"as [0-9,15,20-], got {shown(item)}."
        )
    first = int(match[1])
    last = int(match[3] or _OPEN) if match[2] else first
    if last < first:
        raise ConfigError(f"{_OPTION} has an empty range: {shown(item)} ends before it begins.")
    return first, last


def _text(weights: Range) -> str:
    first, last = weights
    return str(first) if first == last else f"{first}-{last if last < _OPEN else ''}"


class Cone(NamedTuple):
    """The constraint, v, and scratch; arrays of shape (D,) in the storage's layout, or all (0,).

    Attributes
    ----------
    floor : ndarray of float64
        0 for k ∈ N, −∞ for the others.
    v : ndarray of float64
    delta : ndarray of float64
        Scratch: δ⋆; all 0 between steps.
    indices : ndarray of int64
    listed : ndarray of bool
        Scratch: the coordinates where δ⋆ may be non-zero; whether a coordinate is one of these.
    """

    floor: np.ndarray
    v: np.ndarray
    delta: np.ndarray
    indices: np.ndarray
    listed: np.ndarray


def cone(floor: np.ndarray) -> Cone:
    """Return the constraint at v = 0; ``floor`` is of shape (0,) if there is none."""
    D = floor.size
    return Cone(floor, np.zeros(D), np.zeros(D), np.zeros(D, np.int64), np.zeros(D, bool))


@kernel
def constrained_step(cone, blocks, i, slope, taker, giver, lam_n, w):
    """Do the best step along δ, the storage's current direction of term i, on v and w.

    Parameters
    ----------
    slope : float
        g ≠ 0.
    taker, giver : float
        α_ij and α_ik.
    lam_n : float
        λ n.

    Returns
    -------
    float
        a.
    """
    sign = 1.0 if slope > 0.0 else -1.0
    add_direction(blocks, i, sign, cone.delta)
    size = direction_indices(blocks, i, cone.listed, cone.indices)
    a = _best_step(cone, size, sign * slope, giver if slope > 0.0 else taker, lam_n, w)
    for k in range(size):
        index = cone.indices[k]
        cone.v[index] -= a / lam_n * cone.delta[index]
        w[index] = max(cone.v[index], cone.floor[index])
        cone.delta[index] = 0.0
        cone.listed[index] = False
    return sign * a


@kernel
def _best_step(cone, size, slope, limit, lam_n, w):
    """Return argmax of F over a in [0, limit]; its slope there is ≥ 0, except for rounding."""
    total = 0.0
    for k in range(size):
        total += cone.delta[cone.indices[k]] ** 2
    if not total < np.inf:
        return np.nan
    if slope * lam_n >= limit * total:
        return limit
    low, high, a = 0.0, np.inf, slope * lam_n / total
    for _ in range(_MOST_TRIALS):
        rest, curvature = slope, 0.0
        for k in range(size):
            index = cone.indices[k]
            delta, moved = cone.delta[index], cone.v[index] - a / lam_n * cone.delta[index]
            if moved > cone.floor[index]:
                curvature += delta * delta / lam_n
            rest += delta * (max(moved, cone.floor[index]) - w[index])
        if abs(rest) <= _EXACT * slope:
            return a
        if rest > 0.0:
            low = a
        else:
            high = a
        if low == limit or high - low <= _EXACT * low:
            break
        a = a + rest / curvature if curvature > 0.0 else np.inf
        if not low < a < high:
            a = 0.5 * (low + high)
        a = min(a, limit)
    return low
