"""The definition of a run: every option, typed and checked, and the hash that names its folder.

Two runs share a hash exactly if they compute the same, except for the seed and the budget. Hence
the hash covers the versions of the code, and the options that differ from their defaults. It leaves
out the options that say where and how loudly to run (``NOT_HASHED`` of a section) and when to end.
So an option that is added later changes no hash. If a default changes, the ``CODE_VERSION`` of the
component must change, too.

Along a path and in rounds, a run begins where another one ended, so the hash covers the budget,
too. A second hash always covers the budget (`RunConfig.own_hash`): it distinguishes the results of
one run stopped at different budgets, and names the folder of a shorter run beside a longer one.

**A Gaussian prior** N(μ, Σ) of the weights is given as numbers or in files:

.. code-block:: text

    P(w) = λ/2 (w − μ)ᵀ Σ⁻¹ (w − μ) + Σ_i H_i(w)

μ and Σ are a number for all weights, one number per weight in the layout of ``weights.npz``, or an
``.npy`` file of these; the file of Σ may have a full matrix. The content of a file belongs to the
problem, its path does not: a run's hash covers the checksum of the bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.config import ALTERED, SIMULATED, SOURCES, registry, validation
from ssvm_bench.config.catalog import COMPONENTS
from ssvm_bench.config.validation import Count, Natural, NotNegative, Options, OverN, Positive

CLOCKS = ("wall", "cpu", "work")
"""The clocks that can measure a run's time."""


@dataclass(frozen=True)
class Budget(Options):
    """When a run ends: at the first limit that it reaches. What is computed does not depend on it.

    Attributes
    ----------
    max_iterations : int or None
        Outer iterations.
    max_seconds : float or None
        Solver seconds on the run's clock; a pass is not cut. Evaluations are off this clock: each
        calls the oracle for every example, so that a run of a slow oracle takes a multiple of it
        unless ``eval.every`` makes them rare.
    gap_tol : float
        Relative duality gap (P − F)/max(|P|, 1e-12); 0 means that the gap never ends the run.
    """

    section: ClassVar[str] = "budget"

    max_iterations: Natural | None = 50
    max_seconds: Positive | None = None
    gap_tol: NotNegative = 0.0

    def __post_init__(self) -> None:
        """Check the ranges, and that there is a limit."""
        super().__post_init__()
        if self.max_iterations is None and self.max_seconds is None and self.gap_tol == 0:
            raise ConfigError(
                "The run would never end. Set budget.max_iterations, budget.max_seconds or "
                "budget.gap_tol."
            )

    def contains(self, other: Budget) -> bool:
        """Return whether a run with this budget always contains the run with the other one.

        It does if each limit of this budget is at most as strict as that of the other one.
        """
        mine, its = ((b.max_iterations, b.max_seconds) for b in (self, other))
        return self.gap_tol <= other.gap_tol and all(
            limit is None or (earlier is not None and earlier <= limit)
            for limit, earlier in zip(mine, its, strict=True)
        )


@dataclass(frozen=True)
class Eval(Options):
    """When primal and gap are evaluated: at w = 0, then at intervals, and after the last iteration.

    Attributes
    ----------
    every : int
        Least number of iterations from one evaluation to the next. An evaluation takes about as
        long as a pass; with a slow oracle, 5 or 10 saves most of that.
    growth : float
        The next evaluation after the one at iteration k comes at ``growth`` · k, at the earliest;
        1 leaves it to ``every``. Above 1, long runs have a logarithmic number of evaluations.
    after_exact_pass : bool
        Whether to evaluate the solver's iterate after its last exact pass, too.
    bound : bool
        Whether to bound the primal value from above, where the oracle is not exact: the columns
        ``primal_bound`` and ``gap_bound``.
    """

    section: ClassVar[str] = "eval"

    every: Count = 1
    growth: Annotated[float, validation.at_least(1)] = 1.0
    after_exact_pass: bool = False
    bound: bool = False

    def after(self, iteration: int) -> int:
        """Return the iteration to evaluate next, ``max(k + every, ceil(growth · k))``.

        It depends on the iteration only, so that repeats are evaluated at the same iterations.
        """
        grown = math.ceil(round(self.growth * iteration, 6))  # 1.1 · 10 gives 11, not 12
        return max(iteration + self.every, grown)


@dataclass(frozen=True)
class Checkpoint(Options):
    """When a run writes its state to disk, so that it can resume from there.

    Attributes
    ----------
    every : float or None
        Seconds from one checkpoint to the next, and more where writing takes long; 0: after every
        iteration; None: no checkpoints.
    keep : bool
        Whether a finished run keeps its last state.
    """

    section: ClassVar[str] = "checkpoint"

    every: NotNegative | None = 60.0
    keep: bool = False


@dataclass(frozen=True)
class Parallel(Options):
    """Who calls the oracle: threads of this process, processes, or workers of a dask scheduler.

    Attributes
    ----------
    threads : int or None
        Number of threads that call a compiled oracle, for terms at one w, and that evaluate; null:
        one for the solver, and one for each core for evaluations.
    workers : int
        Number of processes that call the oracle at once; 1 without an ``address``: this process.
    batch : int
        τ, the number of terms whose oracle calls share one w, in solvers that move w between calls.
    address : str or None
        Address of a dask scheduler whose workers call the oracle, as ``tcp://host:port``.
    """

    section: ClassVar[str] = "parallel"

    threads: Count | None = None
    workers: Count = 1
    batch: Count = 1
    address: str | None = None

    @property
    def in_threads(self) -> bool:
        """Whether several threads make the solver's calls."""
        return self.threads is not None and self.threads > 1

    @property
    def elsewhere(self) -> bool:
        """Whether other processes call the oracle."""
        return self.workers > 1 or self.address is not None

    def hashed(self, clock: str) -> dict[str, Any]:
        """Return what a run's hash covers of this section; empty if it changes nothing.

        τ changes the iterates. The callers change the measured time and thus the decisions that
        depend on it, unless the clock only counts. The scheduler's address changes nothing.
        """
        found: dict[str, Any] = {"batch": self.batch} if self.batch > 1 else {}
        if clock != "work" and self.elsewhere:
            found |= {"workers": self.workers, "engine": "dask" if self.address else "processes"}
        if clock != "work" and self.in_threads:
            found |= {"workers": self.threads, "engine": "threads"}
        return found


# ---- a Gaussian prior -------------------------------------------------------------------------

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


# ---- the run ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunConfig(Options):
    """Every option of one run.

    Attributes
    ----------
    dataset, oracle, solver : dataclass
        The ``Config`` of the chosen component, defined beside its implementation.
    budget : Budget
        When to end.
    eval : Eval
        When to evaluate.
    seed : int
        Seed of the solver's random choices; the same for every solver.
    lam : float, str or None
        λ of the objective: a number, or ``K/n``, as ``10/n``; None means 1/n.
    path : tuple of float or str
        Larger λ in falling order, as ``[100/n,10/n]``, which are solved first: each is a run with a
        trace, and the next one starts from its solution.
    prior : PriorConfig
        Gaussian prior of w.
    clock : str
        ``wall``, ``cpu``, or ``work``: counted work, the same trace under every load; on another
        processor, up to rounding.
    results_dir : Path
        Root of all results.
    force : bool
        Run again even if the run has finished.
    quiet : bool
        No status output; the result in one line.
    checkpoint : Checkpoint
        When to write the state that is needed to resume.
    parallel : Parallel
        Who calls the oracle.
    """

    NOT_HASHED: ClassVar[tuple[str, ...]] = (
        "seed",  # each has its own folder
        "results_dir",
        "force",
        "quiet",
        "checkpoint",
    )

    dataset: Any
    oracle: Any
    solver: Any
    budget: Budget = Budget()
    eval: Eval = Eval()
    seed: Natural = 0
    lam: float | OverN | None = None
    path: tuple[float | OverN, ...] = ()
    prior: PriorConfig = field(default_factory=PriorConfig)
    clock: Annotated[str, validation.one_of(CLOCKS)] = "wall"
    results_dir: Path = Path("results")
    force: bool = False
    quiet: bool = False
    checkpoint: Checkpoint = Checkpoint()
    parallel: Parallel = Parallel()

    def __post_init__(self) -> None:
        """Check the ranges, and write every λ in one form."""
        super().__post_init__()
        lam = validation.checked_lam("lam", self.lam)
        path = (validation.checked_lam(f"path[{k}]", each) for k, each in enumerate(self.path))
        object.__setattr__(self, "lam", None if lam == "1/n" else lam)
        object.__setattr__(self, "path", tuple(path))
        validation.check_falling("path", self.path)
        validation.check_choice("dataset.source", self.source, (*SOURCES, SIMULATED))

    @property
    def source(self) -> str:
        """The requested source of the data; datasets of other packages may lack this option."""
        return str(getattr(self.dataset, "source", "real"))

    def with_source(self, source: str) -> RunConfig:
        """Return the config with the source that the dataset was really loaded from.

        Trust is kept for altered data only. Simulated datasets ignore the source that is set.
        """
        found: dict[str, Any] = {}
        if hasattr(self.dataset, "source"):
            found["source"] = "synthetic" if source == "synthetic" else "real"
        if hasattr(self.dataset, "trust"):
            found["trust"] = source == ALTERED
        return replace(self, dataset=replace(self.dataset, **found))

    def sources(self) -> tuple[str, ...]:
        """Return the sources that the dataset may come from, the preferred one first."""
        asked = self.source
        real = ("real", ALTERED) if getattr(self.dataset, "trust", False) else ("real",)
        return {"auto": (*real, "synthetic"), "real": real}.get(asked, (asked,))

    @property
    def lam_or_rule(self) -> float | str:
        """λ as a number or K/n, or the oracle's own weight of the regulariser."""
        if (own := self.oracle.own_weight) is not None:
            return float(own)
        return "1/n" if self.lam is None else self.lam

    def lam_of(self, n: int) -> float:
        """Return λ for n examples, or the oracle's own weight of the regulariser.

        Raises
        ------
        ConfigError
            If the path does not fall down to it.
        """
        lam = self.lam_or_rule
        if self.oracle.own_weight is None:
            validation.check_falling("path with lam at its end", (*self.path, lam), n)
        return validation.lam_number(lam, n)

    def path_steps(self) -> list[RunConfig]:
        """Return the runs along the path, each with its own folder; this run is the last."""
        path = self.path
        return [*(replace(self, lam=path[k], path=path[:k]) for k in range(len(path))), self]

    def resolved(self) -> dict[str, Any]:
        """Return the config as nested dicts of plain values: what ``config.yaml`` stores."""
        return {name: plain_values(value) for name, value in vars(self).items()}

    def hash(self) -> str:
        """Return 12 hexadecimal digits over all that changes the computation, except the seed.

        Raises
        ------
        ValueError
            If the dataset's source is still ``auto``: real and synthetic runs must not share a
            hash, so the source has to be known first (see :meth:`with_source`).
        ConfigError
            If a file of the prior cannot be used.
        """
        return self._hash(with_budget=bool(self.path) or self.solver.latent_rounds > 1)

    def own_hash(self) -> str:
        """Return the hash of this budget's run; same conditions as :meth:`hash`."""
        return self._hash(with_budget=True)

    def _hash(self, with_budget: bool) -> str:
        if self.source == "auto":
            raise ValueError("hash() of a config whose dataset.source is not resolved yet")
        content = changed(self)
        if "prior" in content:
            content["prior"] = self.prior.hashed(content["prior"])
        if content.pop("parallel", None) and (of_calls := self.parallel.hashed(self.clock)):
            content["parallel"] = of_calls
        content.pop("budget", None)
        if with_budget:
            content["budget"] = changed(self.budget)  # also if it is the default one
        content["code"] = self.code()
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def code(self) -> dict[str, int | str]:
        """Return ``CODE_VERSION`` of oracle and solver; of a plug-in, by default a digest."""
        return {
            group: registry.code_version(group, getattr(self, group).kind)
            for group in ("oracle", "solver")
        }

    def plug_ins(self) -> dict[str, str]:
        """Return the files of components that are no part of the program, with their digests."""
        kinds = {group: getattr(self, group).kind for group in COMPONENTS}
        found = (registry.source_of(*of) for of in kinds.items() if not registry.is_own(*of))
        return dict(found)

    @property
    def folder(self) -> Path:
        """Folder of the run's files, for any budget; same conditions as :meth:`hash`."""
        return self.folder_of(self.hash())

    @property
    def own_folder(self) -> Path:
        """Folder of the run of this budget alone, which identifies it; as :meth:`own_hash`.

        The run is stored there if another one of the same hash goes further.
        """
        return self.folder_of(self.own_hash())

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders where the run may be; that of its own budget comes first."""
        return tuple(dict.fromkeys((self.own_folder, self.folder)))

    def folder_of(self, digest: str) -> Path:
        """Return the folder of a run with one of the two hashes."""
        runs = self.results_dir / "runs" / self.dataset.name / self.solver.name
        return runs / digest / f"seed={self.seed}"


def changed(options: Any) -> dict[str, Any]:
    """Return the options of a section that a run's hash covers and that are not the defaults."""
    kind: Any = type(options)
    found, hidden, defaults = {}, getattr(kind, "NOT_HASHED", ()), validation.defaults(kind)
    for name in (each.name for each in fields(kind)):
        value = getattr(options, name)
        if name not in hidden and (name not in defaults or value != defaults[name]):
            found[name] = changed(value) if is_dataclass(value) else plain_values(value)
    return found


def plain_values(value: Any) -> Any:
    """Return a value in plain JSON types, a section as a mapping; NaN and infinity become null.

    Bytes of a path that are no UTF-8 are escaped: documents are texts.
    """
    if is_dataclass(value):
        return {each.name: plain_values(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        items = (
            sorted(value.items()) if isinstance(value, validation.NamedNumbers) else value.items()
        )
        return {str(key): plain_values(item) for key, item in items}
    if isinstance(value, (tuple, list)):
        return [plain_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (str, Path)):
        return str(value).encode(errors="backslashreplace").decode()
    return value
