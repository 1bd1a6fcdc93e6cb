"""The options of a Gaussian prior N(μ, Σ) of the weights, given as numbers or in files.

.. code-block:: text

    P(w) = λ/2 (w − μ)ᵀ Σ⁻¹ (w − μ) + Σ_i H_i(w)

μ and Σ are a number for all weights, one number per weight in the layout of ``weights.npz``, or an
``.npy`` file of these; the file of Σ may have a full matrix. The content of a file belongs to the
problem, its path does not: a run's hash covers the checksum of the bytes.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.config.validation import Options

LARGEST_FULL = 2000
"""The largest number of weights for which Σ can be a full matrix."""

_SYMMETRY = 1e-12
"""Tolerance of differences across the diagonal, relative to the largest entry."""

Moment: TypeAlias = float | tuple[float, ...] | Path


class Stated(NamedTuple):
    """μ or Σ as given.

    Attributes
    ----------
    values : ndarray of float64, shape (), (d,) or (d, d)
    hashed : float, list of float, or str
        What a run's hash covers: the numbers, or the sha256 of a file.
    """

    values: np.ndarray
    hashed: Any


@dataclass(frozen=True)
class PriorConfig(Options):
    """Options of the prior.

    Attributes
    ----------
    mean : float, tuple of float, or Path
        μ: a number for all weights, a list, or an ``.npy`` file.
    variance : float, tuple of float, or Path
        Σ: a multiple of the unit matrix, its diagonal, or an ``.npy`` file of either or of the full
        matrix.
    """

    section: ClassVar[str] = "prior"

    mean: Moment = 0.0
    variance: Moment = 1.0

    def __post_init__(self) -> None:
        """Check the options as far as possible without reading files."""
        super().__post_init__()
        for name, given in self._moments():
            if not isinstance(given, Path):
                _check(f"prior.{name}", name, np.array(given, np.float64))
            elif given.suffix != ".npy":
                raise ConfigError(
                    f"prior.{name} must be a number, a list of numbers in brackets, or the path of "
                    f"an .npy file, got {shown(given)}."
                )

    def _moments(self) -> Iterator[tuple[str, Moment]]:
        """Yield the names and values of the options of μ and Σ."""
        return ((field.name, getattr(self, field.name)) for field in fields(self))

    @cached_property
    def stated(self) -> dict[str, Stated]:
        """μ and Σ by the names of their options, read once.

        Raises
        ------
        ConfigError
            If a file cannot be read, or its content is not a valid μ or Σ.
        """
        found = {}
        for name, given in self._moments():
            if not isinstance(given, Path):
                values = np.array(given, np.float64)
                found[name] = Stated(values, values.tolist())
                continue
            option = f"prior.{name}={shown(given)}"
            try:
                content = files.read(given)
                values = _array(content)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or shown(error, 200)
                raise ConfigError(f"{option} cannot be read: {reason}.") from error
            _check(option, name, values)
            found[name] = Stated(values, f"sha256:{hashlib.sha256(content).hexdigest()}")
        return found

    def hashed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a run's hash covers of the resolved ``options``."""
        return {name: self.stated[name].hashed for name in options}

    def moments(self, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return μ and Σ in their simplest form, of shape () or (d,), and (), (d,) or (d, d).

        Raises
        ------
        ConfigError
            As `stated`, or if the number of weights in one of them is not ``d``.
        """
        for name, (values, _) in self.stated.items():
            if d is not None and values.ndim and len(values) != d:
                raise ConfigError(
                    f"prior.{name} is for {len(values)} weights, and with this dataset and oracle "
                    f"there are d = {d}."
                )
        mean, variance = (_simplest(self.stated[name].values) for name in ("mean", "variance"))
        return mean, variance

    def is_another_lam(self) -> bool:
        """Return whether N(μ, Σ) is N(0, σ²), which is equivalent to λ/σ² in place of λ."""
        mean, variance = self.moments()
        return not mean.any() and variance.ndim == 0

    def text(self, constraint: str = "") -> str:
        """Return the prior's name, however its options are written; empty for N(0, 1).

        A constraint on w is part of the prior and of its name.

        >>> PriorConfig().text(), PriorConfig(mean=0.5, variance=(4.0, 4.0)).text()
        ('', 'N(0.5, 4)')
        >>> PriorConfig().text("w ≥ 0")
        'N(0, 1), w ≥ 0'
        """
        mean, variance = self.moments()
        named = f"N({_word(mean, 'vector')}, {_word(variance, 'diagonal')})"
        if constraint:
            return f"{named}, {constraint}"
        return "" if named == "N(0, 1)" else named


def _word(values: np.ndarray, vector: str) -> str:
    if values.ndim == 0:
        return repr(float(values)).removesuffix(".0")
    kind = vector if values.ndim == 1 else "matrix"
    return f"{kind} {hashlib.sha256(values.tobytes()).hexdigest()[:12]}"


def _simplest(values: np.ndarray) -> np.ndarray:
    """Return a diagonal matrix as its diagonal, and equal numbers as one."""
    if values.ndim == 2 and not (values - np.diag(np.diag(values))).any():
        values = np.diag(values)
    if values.ndim == 1 and (values == values[0]).all():
        values = values[0] + np.zeros(())
    return values + 0.0  # turns −0 into 0


def _array(content: bytes) -> np.ndarray:
    """Return the numbers in the bytes of an ``.npy`` file; nothing is unpickled.

    Raises
    ------
    ValueError
        If this is no ``.npy`` file, or has other entries than numbers.
    """
    try:
        values = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # whatever a damaged file makes numpy raise
        raise ValueError(f"it is no .npy file of numbers ({error})") from error
    if values.dtype.kind not in "fiu":
        raise ValueError(f"its entries are no real numbers, but {values.dtype}")
    numbers = np.ascontiguousarray(values, np.float64)
    if not np.array_equal(numbers.astype(values.dtype), values, equal_nan=True):
        raise ValueError(f"float64 does not hold its entries, {values.dtype}, exactly")
    return numbers


def _check(option: str, name: str, values: np.ndarray) -> None:
    """Raise ``ConfigError`` unless the values are a valid ``mean`` or ``variance``."""
    is_variance = name == "variance"
    square = len(set(values.shape)) == 1 or values.ndim == 0
    if values.ndim > 1 + is_variance or not square or values.size == 0:
        matrix = " or a square matrix" * is_variance
        raise ConfigError(
            f"{option} must be one number per weight{matrix}, got the shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ConfigError(f"{option} must be finite numbers, and one is not.")
    if values.ndim < 2:
        if is_variance and not (values > 0).all():
            raise ConfigError(
                f"{option} must be positive numbers, and the least is {values.min():g}."
            )
        return
    d = len(values)
    if d > LARGEST_FULL:
        raise ConfigError(
            f"{option} is a matrix for {d} weights, and matrices can be for at most {LARGEST_FULL}:"
            " give its diagonal."
        )
    if np.abs(values - values.T).max() > _SYMMETRY * np.abs(values).max():
        raise ConfigError(f"{option} is not symmetric.")
    try:
        pivots = np.diag(np.linalg.cholesky(values)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros(d)
    # rounding may give a singular matrix pivots of about eps, relative to the diagonal
    if not (pivots > d * np.finfo(float).eps * np.diag(values)).all():
        raise ConfigError(f"{option} is not positive definite.")
