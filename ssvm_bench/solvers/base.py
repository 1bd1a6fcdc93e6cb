"""The contract of a solver: its state and one outer iteration. The runner has the loop.

A solver sees the problem of its family (:mod:`ssvm_bench.oracles.objective`) and a
:class:`~ssvm_bench.base.clock.Clock`. It knows neither the dataset, nor the file system, nor what
kind of clock it is. To add one, derive from :class:`Solver` and put ``Config``, ``CODE_VERSION``
and ``build`` beside it. Facts about a solver that are needed before anything is loaded are data on
its ``Config``, a `SolverConfig`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.state import Stateful
from ssvm_bench.config.validation import Count, Options
from ssvm_bench.oracles.objective import STRUCTURAL_SVM

if TYPE_CHECKING:
    from ssvm_bench.planes.dual_iterate import DualIterate

STEPS = ("line_search", "2n/(k+2n)")
STARTS = TRUTH, ORACLE = ("truth", "oracle")
"""φ begins at the planes of the true labelings, which are 0, or at the oracle's at w = 0."""


@dataclass(frozen=True)
class SolverConfig(Options):
    """Options that every solver has, and facts about the solver.

    Attributes
    ----------
    name, kind : str
        Name of the YAML file, and of the module.
    has_dual : bool
        Whether it computes a dual value, and hence a gap.
    follows_paths : bool
        Whether it can continue with another λ, by `Solver.warm_start`.
    needs_path : bool
        Whether it can begin only at the solution of another λ.
    needs_expectations : bool
        Whether it needs expectations from the oracle
        (:func:`ssvm_bench.oracles.labeling.expect`), not only maximisers.
    takes_kernels : bool
        Whether kernel values suffice: w is used only for steps along planes, scores and ‖w‖².
    keeps_nonnegative : bool
        Whether it keeps those weights ≥ 0 that its oracle constrains (`Oracle.nonnegative`).
    at_one_w : str
        For how many terms it calls the oracle at one w: ``"all"`` or many, a ``"batch"``
        (`Oracle.batch`), or ``"one"``.
    structures : tuple of str
        The structures of datasets that it accepts; empty: any.
    least_n : int
        Minimum number of terms.
    family : str
        Family of the problems that it solves (:mod:`ssvm_bench.oracles.objective`).
    chunk_rows : int or None
        Number of examples in memory at a time, if it trains on streams (`Oracle.chunks`); None:
        it needs all examples in memory.
    latent_rounds : int
        Most convex problems to solve. Each has the latent values that are best at the previous
        problem's solution (:mod:`ssvm_bench.runs.runner`).
    """

    section: ClassVar[str] = "solver"
    has_dual: ClassVar[bool] = True
    follows_paths: ClassVar[bool] = False
    needs_expectations: ClassVar[bool] = False
    takes_kernels: ClassVar[bool] = False
    keeps_nonnegative: ClassVar[bool] = False
    at_one_w: ClassVar[str] = "all"
    structures: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str] = STRUCTURAL_SVM

    name: str
    kind: str
    latent_rounds: Count = field(default=1, kw_only=True)

    @property
    def constraint(self) -> str:
        """The constraint on w, or an empty text; a constrained problem has another optimum."""
        return ""

    @property
    def needs_path(self) -> bool:
        """See the class."""
        return False

    @property
    def least_n(self) -> int:
        """See the class."""
        return 1

    @property
    def chunk_rows(self) -> int | None:
        """See the class."""
        return None

    def check_chunks(self) -> None:
        """Raise ``ConfigError`` if the solver cannot read its examples in chunks."""

    def check_path(self, follows: bool) -> None:
        """Raise ``ConfigError`` if the solver cannot follow a path of λ, or lacks a needed one."""
        if self.needs_path and not follows:
            raise ConfigError(
                f"solver={self.name} starts from the solution of a larger lam. "
                "Give both: path=[larger,smaller,…]."
            )
        if follows and not self.follows_paths:
            raise ConfigError(
                f"solver={self.name} cannot continue with another λ: "
                "leave path empty, or choose another solver."
            )

    def check_oracle(self, has_expectations: bool | None) -> None:
        """Raise ``ConfigError`` if the oracle is known to lack expectations that are needed."""
        if self.needs_expectations and has_expectations is False:
            raise ConfigError(
                f"solver={self.name} needs the expectations of a distribution over labelings, "
                "which the oracles of graphs, of latent positions and of landmarks cannot compute. "
                "Choose another solver for this dataset."
            )

    def check_data(self, n: int, structure: str) -> None:
        """Raise ``ConfigError`` if there are too few examples, or they are of another structure."""
        if n < self.least_n:
            raise ConfigError(
                f"solver={self.name} needs at least {self.least_n} examples, and there are {n}."
            )
        if self.structures and structure not in self.structures:
            raise ConfigError(
                f"solver={self.name} is for {' and '.join(self.structures)} labels, and those of "
                f"this dataset are {structure}. Choose another solver for it."
            )


class Iterate(NamedTuple):
    """What a solver reports: a point, and its best lower bound F, NaN if it has none.

    The point is w in its outer layout, shape (d,); in other families, a point of their objective
    (:mod:`ssvm_bench.oracles.objective`).
    """

    w: Any
    dual: float


_FINEST = 1e-11
"""Relative gaps below this are near rounding: inner problems would not reach their share of it."""


def finer(precision: float, gap: float, primal: float) -> float:
    """Return a precision, divided by ten until the relative gap is above it; 0: it is rounding."""
    while precision * abs(primal) >= gap and precision > _FINEST:
        precision *= 0.1
    return precision if precision > _FINEST else 0.0


OF_ALL = ("converged", "ended", "approx_passes", "after_exact_pass", "clock", "problem")
"""Attributes that the runner restores for every solver."""


class Solver(Stateful, ABC):
    """A training algorithm.

    Attributes
    ----------
    STATE : tuple of str, or None
        The attributes that iterations change, except ``OF_ALL``, so that a run can resume from a
        checkpoint (:mod:`ssvm_bench.base.state`); None: the run cannot resume, and starts again.
    converged : bool
        Whether the last iteration proved that the iterate is optimal, to the solver's own precision
        if it has one. This ends a run that asks for no gap; in one that asks for a smaller gap,
        `refine` is called.
    ended : str or None
        Another reason to end the run, one of those that :mod:`ssvm_bench.runs.runner` names.
    approx_passes : int
        Approximate passes of the last iteration.
    after_exact_pass : Iterate or None
        The iterate that would have been reported after the last exact pass; None if
        `keep_after_exact_pass` was not called, or the solver does not alternate.
    alternates : bool
        Whether exact and approximate passes alternate; the solver then calls `exact_pass_ended`.
    """

    STATE: ClassVar[tuple[str, ...] | None] = None
    alternates: ClassVar[bool] = False

    converged: bool = False
    ended: str | None = None
    approx_passes: int = 0
    after_exact_pass: Iterate | None = None
    _keeps_after_exact_pass: bool = False

    def __init__(self, problem: Any, clock: Clock) -> None:
        self.problem = problem
        self.clock = clock

    def state(self) -> dict[str, Any]:
        """Return all that iterations have changed, as `restore` takes it: arrays and plain values.

        Raises
        ------
        NotImplementedError
            If the solver does not define ``STATE``.
        """
        if self.STATE is None:
            raise NotImplementedError(f"{type(self).__name__} does not say its STATE")
        return super().state()

    def begin(self) -> None:
        """Do what comes before the first iteration, on the clock; not called after `warm_start`."""

    @abstractmethod
    def iterate(self) -> None:
        """Do one outer iteration (batch methods: one pass of the exact oracle)."""

    def refine(self) -> bool:
        """Prepare to continue after `converged`, on the clock; return whether that is possible.

        A solver with a precision of its own makes it `finer`. Inner tolerances follow it, so that
        what an iteration computes does not depend on the gap that a run asks for.
        """
        return False

    def warm_start(self, lam: float, clock: Clock) -> None:
        """Continue with another λ, from all that is known so far, with a new clock."""
        raise NotImplementedError

    def update_latent(self, problem: Any) -> bool:
        """Continue with a problem with other latent values, from all that is known, if possible.

        Returns
        -------
        bool
            Whether the solver continues. If not, a new solver has to begin.
        """
        return False

    @abstractmethod
    def reported(self) -> Iterate:
        """Return the iterate to report; called while the clock is paused."""

    def keep_after_exact_pass(self) -> None:
        """Update ``after_exact_pass`` from now on, off the clock."""
        self._keeps_after_exact_pass = self.alternates
        self.exact_pass_ended()

    def exact_pass_ended(self) -> None:
        """Keep the iterate of now, if `keep_after_exact_pass` was called."""
        if self._keeps_after_exact_pass:
            with self.clock.paused():
                self.after_exact_pass = self.reported()

    def working_set_mean(self) -> float:
        """Return the mean number of cached planes per term."""
        return 0.0

    def diagnostics(self) -> dict[str, float]:
        """Return further values to log: trace column → value."""
        return {}


class DualSolver(Solver):
    """A solver whose state is a dual iterate with working sets; the iterate holds the problem.

    Attributes
    ----------
    phi : DualIterate
    iteration : int
        Outer iterations so far.
    """

    iteration: int = 0

    def __init__(self, phi: DualIterate, clock: Clock) -> None:
        self.phi = phi
        self.clock = clock

    def begin_iteration(self) -> None:
        """Count an outer iteration."""
        self.iteration += 1
        self.approx_passes = 0
        self.phi.set(now=self.iteration)

    @property
    def problem(self) -> Any:
        """The problem, with λ."""
        return self.phi.problem

    def update_latent(self, problem: Any) -> bool:
        """See `Solver`: planes that are stored as labelings stay, with their weights."""
        changed = self.phi.update_latent(problem)
        if changed is not None:
            self.converged, self.ended = False, None
            self.follow_latent(changed)
        return changed is not None

    @abstractmethod
    def follow_latent(self, changed: np.ndarray) -> None:
        """Continue after the planes of these terms have changed; φ has to be recomputed."""

    def reported(self) -> Iterate:
        """Return w and F(φ)."""
        w = self.phi.point()
        return Iterate(w, self.problem.dual(w, self.phi.offset))

    def working_set_mean(self) -> float:
        """Return the mean of |W_i|."""
        return self.phi.working_set_mean()
